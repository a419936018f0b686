"""In which order a host issues the operations of a GPU with in-order queues.

Paper C, section 2: "For Fermi architecture, a GPU operation scheduler is implemented to
stabilize performance when GPU operations are issued from multiple CPU threads." Our
reading: Fermi serves its queue in the order of issue, so a bad order blocks whoever is
ready; the scheduler issues in the order in which a GPU with many queues would start.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from dlsim.cpugpu.operations import ON_GPU, Operation, Work, run_operations
from dlsim.errors import InputError
from dlsim.given import option, whole


def issue_order(
    work: Work, issue: str | Sequence[Operation] = "depth", threads: int = 0, seed: int = 0
) -> list[Operation]:
    """Return the order in which all copies and kernels are issued.

    Examples
    --------
    >>> import pandas as pd
    >>> from dlsim.cpugpu.operations import Gpu, work_of
    >>> chunks = pd.DataFrame({"h2d": [3, 3], "map": [1, 1], "d2h": [2, 2]})
    >>> issue_order(work_of(chunks, Gpu(streams=2, queues="single")), "breadth")[:3]
    [(0, 'h2d'), (1, 'h2d'), (0, 'map')]
    """
    if isinstance(issue, str):
        option("issue", issue, ORDERS)
        named: Sequence[Operation] = _NAMED[issue](work, threads, seed)
    else:
        named = issue
    order = _each_once(len(work.times), named)
    return [] if work.gpu.queues == "hyper-q" else order


def _depth(work: Work, threads: int = 0, seed: int = 0) -> list[Operation]:
    return [(chunk, stage) for chunk in range(len(work.times)) for stage in ON_GPU]


def _breadth(work: Work, threads: int, seed: int) -> list[Operation]:
    """Stage by stage over waves of k chunks a GPU: more would wait for their streams."""
    wave = work.gpu.streams * work.gpus
    return sorted(_depth(work), key=lambda op: (op[0] // wave, ON_GPU.index(op[1]), op[0]))


def _scheduled(work: Work, threads: int, seed: int) -> list[Operation]:
    gpu = replace(work.gpu, queues="hyper-q")
    free = run_operations(Work(work.stages, work.times, gpu, work.gpus, work.buffers), [])
    pairs = zip(free["chunk"].tolist(), free["stage"].tolist(), strict=True)
    return [op for op in pairs if op[1] in ON_GPU]


def _each_once(count: int, issue: Sequence[Operation]) -> list[Operation]:
    try:
        order = [(int(chunk), str(stage)) for chunk, stage in issue]
    except (TypeError, ValueError):
        raise InputError(
            f"issue must be one of {', '.join(ORDERS)} or a list of (chunk, stage); got {issue!r}"
        ) from None
    left = {(chunk, stage) for chunk in range(count) for stage in ON_GPU}
    for op in order:
        if op not in left:
            raise InputError(
                f"issue must name chunks 0..{count - 1} and stages {', '.join(ON_GPU)}, each "
                f"operation once; got {op!r} unknown or twice"
            )
        left.remove(op)
    if left:
        raise InputError(f"issue must name every operation once; {min(left)!r} is missing")
    return order


def _interleave(work: Work, threads: int, seed: int) -> list[Operation]:
    """Merge the calls of several threads at random; each issues its streams chunk by chunk.

    A thread whose chunk does not fit in host memory yet holds its calls back.
    """
    streams = work.gpu.streams * work.gpus
    threads = whole("threads", threads, 0, streams) or streams
    calls: list[list[Operation]] = [[] for _ in range(threads)]
    for chunk, stage in reversed(_depth(work)):
        calls[chunk % streams % threads].append((chunk, stage))
    source = random.Random(whole("seed", seed, 0, 2**63))
    order, out = list[Operation](), set[int]()
    while any(calls):
        ready = [own for own in calls if own and _fits(own[-1], work.buffers, out)]
        op = source.choice(ready).pop()
        order.append(op)
        out |= {op[0]} if op[1] == "d2h" else set()
    return order


def _fits(op: Operation, buffers: int, out: set[int]) -> bool:
    return op[1] != "h2d" or not buffers or op[0] < buffers or op[0] - buffers in out


_NAMED = {"depth": _depth, "breadth": _breadth, "threads": _interleave, "scheduled": _scheduled}
#: The orders by name: chunk by chunk; stage by stage over k chunks; several threads whose
#: calls interleave at random; as the operation scheduler would.
ORDERS = tuple(_NAMED)

"""Chunks on their way through a GPU: copy in, map, copy out, several at a time.

Source: the pipelined multi-GPU MapReduce that paper C describes as its contributions
(section 2), from Y. Chen, Z. Qiao, S. Davis, H. Jiang, K.-C. Li, "Pipelined Multi-GPU
MapReduce for Big-Data Processing" (2013). The issue order is our reading of its "GPU operation
scheduler", to "stabilize performance when GPU operations are issued from multiple CPU threads":
Fermi serves its queue in the order of issue, so that a bad order blocks whoever is ready; the
scheduler issues in the order in which a GPU with many queues (Hyper-Q) would start.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dlsim.cpugpu.operations import ON_GPU, STAGES, Gpu, Operation, Work, run_operations, work_of
from dlsim.cpugpu.timeline import Timeline
from dlsim.errors import InputError
from dlsim.given import number, option, whole

__all__ = ["Gpu", "equal_chunks", "equal_chunks_time", "run_chunks"]


def run_chunks(
    chunks: pd.DataFrame, gpu: Gpu | None = None, issue: str | Sequence[Operation] = "depth", *,
    gpus: int = 1, buffers: int = 0, threads: int = 0, seed: int = 0,
) -> Timeline:  # fmt: skip
    r"""Run chunks through copy in, map and copy out, on one or several equal GPUs.

    How long equal chunks take has a closed form, `equal_chunks_time`.

    Parameters
    ----------
    chunks : DataFrame
        Columns h2d, map, d2h: the times of each chunk; read and write where it passes a
        disk. Chunk i goes to GPU i mod `gpus`.
    gpu : Gpu, optional
        Each of the GPUs.
    issue : str or sequence of (chunk, stage)
        Order in which the host issues operations, for in-order queues: one of
        `dlsim.cpugpu.pipeline.ORDERS`, or every operation of the GPUs once.
    gpus : int
        Number of GPUs.
    buffers : int
        Chunks that fit in host memory at once, 0 for any number: chunk i is read only
        when chunk i - buffers has passed its last stage.
    threads : int
        Issuing threads of ``issue="threads"``, 0 for one per stream.
    seed : int
        Of ``issue="threads"``.

    Returns
    -------
    Timeline
        Table of operations; its `check` tests the model's rules.

    Raises
    ------
    InputError
        For chunks without a time, an unknown order, or an order that blocks itself.

    Examples
    --------
    >>> chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    >>> [run_chunks(chunks, Gpu(streams=k)).makespan for k in (1, 2, 3)]
    [30, 18, 18]
    """
    gpu = Gpu() if gpu is None else gpu
    work = work_of(chunks, gpu, gpus, buffers)
    order = issue_order(work, issue, threads, seed)
    return Timeline(run_operations(work, order), gpu, gpus, buffers, chunks, order)


def equal_chunks(count: int, h2d: Any, map: Any, d2h: Any, **disk: Any) -> pd.DataFrame:  # noqa: A002
    """Return a table of equal chunks by the times of their stages; read and write with a disk."""
    times = {"h2d": h2d, "map": map, "d2h": d2h, **disk}
    for name, value in times.items():
        option("stage", name, STAGES)
        number(name, value)
    rows = range(whole("count", count, 1, 10**6))
    return pd.DataFrame(
        {stage: [times[stage]] * len(rows) for stage in STAGES if stage in times},
        index=pd.RangeIndex(len(rows), name="chunk"),
    )


def equal_chunks_time(count: int, h: float, m: float, d: float, k: int) -> float:
    r"""When the last of C equal chunks on k streams is out, with two copy engines and Hyper-Q.

    .. math:: T_1 = C S, \quad
              T_2 = \lfloor (C-1)/2 \rfloor \max(2X, S) + S + ((C-1) \bmod 2) X, \quad
              T_{k \ge 3} = S + (C-1) X

    with :math:`S = h + m + d` and :math:`X = \max(h, m, d)`, which `run_chunks` keeps to.

    >>> [equal_chunks_time(5, 3, 1, 2, k) for k in (1, 2, 3)]
    [30, 18, 18]
    """
    whole, most = h + m + d, max(h, m, d)
    if k == 1:
        return count * whole
    if k == 2:
        pairs, odd = divmod(count - 1, 2)
        return pairs * max(2 * most, whole) + whole + odd * most
    return whole + (count - 1) * most


def issue_order(
    work: Work, issue: str | Sequence[Operation] = "depth", threads: int = 0, seed: int = 0
) -> list[Operation]:
    """Return the order in which all copies and kernels are issued.

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
    """Merge the calls of several threads at random; one whose chunk has no host memory waits."""
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

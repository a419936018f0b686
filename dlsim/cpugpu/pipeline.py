"""Chunks on their way through a GPU: copy in, map, copy out, several at a time.

Source: the pipelined multi-GPU MapReduce that paper C describes as its contributions
(section 2), from Y. Chen, Z. Qiao, S. Davis, H. Jiang, K.-C. Li, "Pipelined Multi-GPU
MapReduce for Big-Data Processing" (2013). The issue order on one hardware queue
(Fermi) or many (Hyper-Q) is our reading of its "GPU operation scheduler".
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dlsim.cpugpu.issue import ORDERS, issue_order
from dlsim.cpugpu.operations import STAGES, SWITCHES, Gpu, Operation, run_operations, work_of
from dlsim.cpugpu.timeline import Timeline
from dlsim.given import number, option, whole

__all__ = [
    "ORDERS",
    "STAGES",
    "SWITCHES",
    "Gpu",
    "Operation",
    "equal_chunks",
    "equal_chunks_time",
    "run_chunks",
]


def run_chunks(
    chunks: pd.DataFrame,
    gpu: Gpu | None = None,
    issue: str | Sequence[Operation] = "depth",
    *,
    gpus: int = 1,
    buffers: int = 0,
    threads: int = 0,
    seed: int = 0,
) -> Timeline:
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
        `dlsim.cpugpu.issue.ORDERS`, or every operation of the GPUs once.
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

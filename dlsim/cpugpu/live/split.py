"""One divisible job over all devices at once: shares by `ideal_split`, moved by `adapt_split`.

A device's share x of the elements takes it a + b x, measured on this machine while all devices
work: what they share (cores, memory, a bus) is then part of it. Each round of shares is a
run of the whole job; the next one follows the rates that were measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.live.crew import Crew
from dlsim.cpugpu.live.devices import Part, Slot
from dlsim.cpugpu.live.kernels import ROUNDING, Kernel
from dlsim.cpugpu.live.sizes import LEAST_SIZES, fit_line
from dlsim.cpugpu.live.work import Task, perform, problem_of
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.cpugpu.split import Split, adapt_split, ideal_split
from dlsim.errors import InputError
from dlsim.given import whole

#: Parts of an equal share by which a + b x is measured.
PROBES = (0.25, 0.5, 0.75, 1.0)


@dataclass
class LiveSplit:
    """What a split took: runs (share and time by way, round and device), a and b, the ideal.

    `agrees`: every way gave the same sum of the result.
    """

    runs: pd.DataFrame
    fixed: list[float]
    unit: list[float]
    ideal: Split
    agrees: bool

    def table(self) -> pd.DataFrame:
        """Return the makespan of every way and its ratio to the ideal; the split's last round."""
        spans = self.runs.groupby(["way", "round"], sort=False)["time"].max()
        table = spans.groupby("way", sort=False).last().rename("makespan").reset_index()
        return table.assign(over_ideal=table["makespan"] / self.ideal.time)


def _whole(shares: Sequence[float], total: int) -> list[int]:
    """Return shares as whole numbers of elements with the same sum."""
    ends = np.rint(np.cumsum(shares) / math.fsum(shares) * total).astype(int)
    return np.diff(ends, prepend=0).tolist()


def run_split(
    kernel: Kernel, crew: Crew, devices: Sequence[Slot], size: int | None = None, rounds: int = 5,
    repeats: int = 2,
) -> LiveSplit:  # fmt: skip
    """Run one divisible job on each device alone, on the faster, and split over all.

    Parameters
    ----------
    kernel : Kernel
        Its elements are what is split.
    crew, devices : Crew, sequence of Slot
        At least two devices; none may be NumPy, which computes whole results only.
    size : int, optional
        Of the problem; the kernel's usual one by default.
    rounds : int
        Runs of the split job; the shares of the first come from `ideal_split`, the next ones
        from `adapt_split` with what the last one took.
    repeats : int
        Measurements of each of the `PROBES`; the least time counts.

    Returns
    -------
    LiveSplit
        Every run, the measured a and b of each device, the ideal split.

    Raises
    ------
    InputError
        For a device that cannot run a part, or less than two.
    """
    rounds = whole("rounds", rounds, 1, MOST_COUNT)
    repeats = whole("repeats", repeats, 1, MOST_COUNT)
    for slot in devices:
        if slot.backend == "numpy":
            raise InputError(f"{slot.name}: NumPy computes whole results only; use --cpu numba")
    if len(devices) < 2:
        raise InputError(f"a job is split over two devices or more, got {len(devices)}")
    size = kernel.size if size is None else size
    n, count = problem_of(kernel, size).n, len(devices)
    if n < count * 4 * LEAST_SIZES:
        raise InputError(f"{kernel.name} of size {size} has only {n} elements; name a larger size")
    rows: list[dict[str, Any]] = []
    totals: list[float] = []

    def run(shares: Sequence[int], way: str = "", turn: int = 0) -> list[float]:
        """Run contiguous shares at once, one per device; return their times."""
        futures, ends = {}, np.cumsum(shares).tolist()
        for d, (share, end) in enumerate(zip(shares, ends, strict=True)):
            if share:
                part = Part(end - share, end)
                task = Task(crew.pack(kernel), devices[d], size, part=part)
                futures[d] = crew.submit(d, perform, task)
        done = {d: future.result() for d, future in futures.items()}
        times = [done[d].seconds if d in done else 0.0 for d in range(count)]
        if way:
            totals.append(math.fsum(part.signature[0] for part in done.values()))
            rows.extend(
                {"way": way, "round": turn, "device": slot.name, "share": share, "time": time}
                for slot, share, time in zip(devices, shares, times, strict=True)
            )
        return times

    probes = [_whole([1.0] * count, round(n * part)) for part in PROBES]
    run(probes[-1])  # compiles, and touches all memory
    times = [np.min([run(shares) for _ in range(repeats)], axis=0) for shares in probes]
    lines = [
        fit_line(*each) for each in zip(np.transpose(probes), np.transpose(times), strict=True)
    ]
    fixed, unit = [a for a, _ in lines], [b for _, b in lines]
    ideal = ideal_split(n, fixed, unit)
    alone = [
        max(run([n * (k == d) for k in range(count)], f"all on {slot.name}"))
        for d, slot in enumerate(devices)
    ]
    best = alone.index(min(alone))  # the history knows both times now, and sends it there
    run([n * (k == best) for k in range(count)], "history's choice")
    shares = _whole(ideal.shares, n)
    for turn in range(rounds):
        shares = _next(n, shares, run(shares, "split", turn))
    agrees = all(math.isclose(one, totals[0], rel_tol=ROUNDING) for one in totals)
    return LiveSplit(pd.DataFrame(rows), fixed, unit, ideal, agrees)


def _next(n: int, shares: list[int], times: list[float]) -> list[int]:
    """Return the shares of the next round: what `adapt_split` makes of the measured rates."""
    used = [d for d, share in enumerate(shares) if share]
    if len(used) < 2:
        return shares
    rates = [times[d] / shares[d] for d in used]
    start = [shares[d] for d in used]
    moved = adapt_split(n, [0.0] * len(used), rates, rounds=2, start=start).rounds
    changed = dict(zip(used, _whole(moved.query("round == 1")["share"].tolist(), n), strict=True))
    return [changed.get(d, share) for d, share in enumerate(shares)]

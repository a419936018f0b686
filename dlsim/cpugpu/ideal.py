"""The ideal schedule that paper C compares with: every schedule of a small queue tried.

A set of jobs on one device has a best order of its own, found set by set; the devices then
share the jobs in the best of all ways. That is exact, and cheaper than listing every
sequence. For larger queues there is a lower bound on the makespan.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu.model import Decide, Decision, Machine, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats

#: Most jobs of an exhaustive schedule, and most pairs of sets that it compares.
MOST_JOBS, MOST_PAIRS = 12, 2_000_000


def _fronts(arrival: Sequence[float], time: Sequence[float], total: bool) -> list[float]:
    """Least cost of every set of jobs on one device, a set being the bits of its place."""
    n = len(arrival)
    if not total:
        return _last_ends(arrival, time)
    fronts: list[list[tuple[float, float]]] = [[(0.0, 0.0)]]
    for jobs in range(1, 2**n):
        found = []
        for j in (j for j in range(n) if jobs >> j & 1 and time[j] == time[j]):
            for end, cost in fronts[jobs ^ 1 << j]:
                then = max(end, arrival[j]) + time[j]
                found.append((then, cost + then - arrival[j]))
        fronts.append(_undominated(found))
    return [min((cost for _, cost in front), default=math.inf) for front in fronts]


def _undominated(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep the (end, cost) that no other is at or below in both."""
    kept: list[tuple[float, float]] = []
    for end, cost in sorted(points):
        if not kept or cost < kept[-1][1]:
            kept.append((end, cost))
    return kept


def _last_ends(arrival: Sequence[float], time: Sequence[float]) -> list[float]:
    """Earliest last end of every set: first come, first served is best."""
    ends = [-math.inf]
    for jobs in range(1, 2 ** len(arrival)):
        j = jobs.bit_length() - 1
        last = max(ends[jobs ^ 1 << j], arrival[j]) + time[j]
        ends.append(last if last == last else math.inf)
    return ends


def _shared_out(costs: list[Floats], total: bool, n: int) -> list[int]:
    """Return the set of jobs of each device that makes the joint cost least."""
    join = np.add if total else np.maximum
    best, choices = costs[0], []
    for cost in costs[1:]:
        joint, choice = np.empty(2**n), np.empty(2**n, dtype=np.int64)
        for jobs in range(2**n):
            parts = _subsets(jobs)
            values = join(cost[parts], best[jobs ^ parts])
            place = int(np.argmin(values))
            joint[jobs], choice[jobs] = values[place], parts[place]
        best = joint
        choices.append(choice)
    sets, jobs = [], 2**n - 1
    for choice in reversed(choices):
        sets.append(int(choice[jobs]))
        jobs ^= sets[-1]
    return [jobs, *reversed(sets)]


def _subsets(jobs: int) -> NDArray[np.int64]:
    """Return every subset of a set, itself and the empty one included."""
    parts = np.zeros(1, dtype=np.int64)
    for bit in range(jobs.bit_length()):
        if jobs >> bit & 1:
            parts = np.concatenate([parts, parts | 1 << bit])
    return parts


def _ordered(
    jobs: int, arrival: Sequence[float], time: Sequence[float], total: bool
) -> tuple[int, ...]:
    """Return a best order of one set of jobs on one device."""
    members = [j for j in range(len(arrival)) if jobs >> j & 1]
    if not total or not members:
        return tuple(members)
    fronts: dict[int, list[tuple[float, float, tuple[int, ...]]]] = {0: [(0.0, 0.0, ())]}
    for part in sorted(_subsets(jobs).tolist())[1:]:
        found = []
        for j in (j for j in members if part >> j & 1):
            for end, cost, order in fronts[part ^ 1 << j]:
                then = max(end, arrival[j]) + time[j]
                found.append((then, cost + then - arrival[j], (*order, j)))
        found.sort()
        fronts[part] = [p for i, p in enumerate(found) if i == 0 or p[1] < found[i - 1][1]]
    return min(fronts[jobs], key=lambda point: point[1])[2]


def ideal_plan(
    arrival: Sequence[float], times: Floats, objective: str = "makespan"
) -> list[tuple[int, ...]]:
    """Return the best of all schedules of a small queue."""
    n, devices = times.shape
    if n > MOST_JOBS or (devices - 1) * 3**n > MOST_PAIRS:
        raise InputError(
            f"an exhaustive schedule takes at most {MOST_JOBS} jobs and {MOST_PAIRS} pairs of "
            f"sets, got {n} jobs on {devices} devices; for long queues use lb_fractional"
        )
    total = objective == "completion"
    columns = [[float(t) for t in times[:, d]] for d in range(devices)]
    seen: dict[tuple[float, ...], Floats] = {}
    costs = []
    for column in columns:
        key = tuple(-1.0 if t != t else t for t in column)
        if key not in seen:
            seen[key] = np.array(_fronts(arrival, column, total))
        costs.append(seen[key])
    sets = _shared_out(costs, total, n)
    return [_ordered(jobs, arrival, c, total) for jobs, c in zip(sets, columns, strict=True)]


def follow(plan: list[tuple[int, ...]]) -> Decide:
    """Return a decision function that follows a plan."""
    left = [list(jobs) for jobs in plan]

    def decide(state: State, policy: Policy, reading: Reading) -> Decision | None:
        waiting = {item.job for item in state.main}
        for device in state.free():
            if left[device] and left[device][0] in waiting:
                return Decision(left[device].pop(0), device, "ideal")
        return None

    return decide


def lb_fractional(jobs: Sequence[tuple[float, dict[str, float]]], machine: Machine) -> float:
    r"""Lower bound of the last end, with jobs that may be cut into parts.

    For every instant a, the jobs that arrive at a or later take at least the least T with

    .. math:: \sum_j x_j p_j^{gpu} \le m T, \quad \sum_j (1 - x_j) p_j^{cpu} \le n T,
              \quad 0 \le x_j \le 1

    beyond a (jobs by falling :math:`p^{cpu}/p^{gpu}` go to the GPUs first); and no job
    ends before its arrival plus its shorter time.
    """
    bound = max((a + min(times.values()) for a, times in jobs), default=0.0)
    ranked = sorted(jobs, key=lambda job: -_ratio(job[1]))
    for since in {a for a, _ in jobs}:
        late = [times for a, times in ranked if a >= since]
        bound = max(bound, since + _least_span(late, machine))
    return bound


def _ratio(times: dict[str, float]) -> float:
    """How much a job gains from the GPU: infinite or 0 where it has one version."""
    return times.get("cpu", math.inf) / times["gpu"] if "gpu" in times else 0.0


def _least_span(ranked: list[dict[str, float]], machine: Machine) -> float:
    """Least T of the fractional problem for jobs by falling gain from the GPU."""
    m, n = machine.gpus, machine.cpus
    gpu, cpu = 0.0, math.fsum(times.get("cpu", 0.0) for times in ranked)
    for times in ranked:
        if "gpu" not in times:
            break
        own, other = times["gpu"], times.get("cpu", math.inf)
        if other < math.inf and n and (gpu + own) * n >= (cpu - other) * m:
            part = (cpu * m - gpu * n) / (own * n + other * m)
            if part <= 0:
                break
            return (gpu + part * own) / m
        gpu, cpu = gpu + own, cpu - (other if other < math.inf else 0.0)
    return max(gpu / m if m else 0.0, cpu / n if n else 0.0)

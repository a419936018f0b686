"""The ideal schedule that paper C compares with: an exhaustive search for small queues.

First the best order of every set of jobs on one device is found; then the jobs are divided among
the devices in the best way. This is exact, and cheaper than listing every sequence. For larger
queues there is a lower bound on the makespan.
"""

import math
from collections.abc import Sequence

import numpy as np

from dlsim.cpugpu.model import Policy, Reading
from dlsim.cpugpu.queues import SchedulerState
from dlsim.cpugpu.rules import Decide, Decision
from dlsim.errors import InputError
from dlsim.validate import Floats

#: Most jobs of an exhaustive schedule, and most pairs of sets that it compares.
MOST_JOBS_TO_PLAN, MOST_PAIRS_OF_SETS = 12, 2_000_000

#: The schedule of a set of jobs (the bits of its place) on one device: the last end, the objective
#: (that end, or the sum of the completion times), and the order of the jobs.
FrontPoint = tuple[float, float, tuple[int, ...]]


def _best_orders(arrival: Sequence[float], time: Sequence[float]) -> list[FrontPoint]:
    """Return the least sum of completion times of every set of jobs on one device.

    Of each set those orders are kept that no other order equals or beats in both the last end and
    the sum.
    """
    fronts: list[list[FrontPoint]] = [[(0.0, 0.0, ())]]
    for jobs in range(1, 2 ** len(arrival)):
        found: list[FrontPoint] = []
        for j in (j for j in range(len(arrival)) if jobs >> j & 1 and time[j] < math.inf):
            for end, cost, order in fronts[jobs ^ 1 << j]:
                then = max(end, arrival[j]) + time[j]
                found.append((then, cost + then - arrival[j], (*order, j)))
        front: list[FrontPoint] = []
        for point in sorted(found):
            if not front or point[1] < front[-1][1]:
                front.append(point)
        fronts.append(front)
    return [front[-1] if front else (math.inf, math.inf, ()) for front in fronts]


def _last_ends(arrival: Sequence[float], time: Sequence[float]) -> list[FrontPoint]:
    """Return the earliest last end of every set, which first come, first served attains."""
    best: list[FrontPoint] = [(-math.inf, -math.inf, ())]
    for jobs in range(1, 2 ** len(arrival)):
        j = jobs.bit_length() - 1
        ahead, _, order = best[jobs ^ 1 << j]
        end = max(ahead, arrival[j]) + time[j]
        best.append((end, end, (*order, j)))
    return best


def _assign_jobs(costs: list[Floats], total: bool, count: int) -> list[int]:
    """Return the set of jobs of each device that makes the joint cost least."""
    join = np.add if total else np.maximum
    best, choices = costs[0], []
    for cost in costs[1:]:
        joint, choice = np.empty(2**count), np.empty(2**count, dtype=np.int64)
        for jobs in range(2**count):
            parts = np.arange(jobs + 1)
            parts = parts[parts & ~jobs == 0]  # its subsets, itself and the empty one included
            values = join(cost[parts], best[jobs ^ parts])
            place = int(np.argmin(values))
            joint[jobs], choice[jobs] = values[place], parts[place]
        best = joint
        choices.append(choice)
    sets, jobs = [], 2**count - 1
    for choice in reversed(choices):
        sets.append(int(choice[jobs]))
        jobs ^= sets[-1]
    return [jobs, *reversed(sets)]


def ideal_plan(
    arrival: Sequence[float], times: Floats, objective: str = "makespan"
) -> list[tuple[int, ...]]:
    """Return the best of all schedules of a small queue, the jobs of each device in order."""
    n, devices = times.shape
    if n > MOST_JOBS_TO_PLAN or (devices - 1) * 3**n > MOST_PAIRS_OF_SETS:
        raise InputError(
            f"an exhaustive schedule takes at most {MOST_JOBS_TO_PLAN} jobs and "
            f"{MOST_PAIRS_OF_SETS} pairs of sets, got {n} jobs on {devices} devices; "
            "for long queues use lb_fractional"
        )
    total = objective == "completion"
    columns = [tuple(column) for column in np.where(np.isnan(times), np.inf, times).T.tolist()]
    solve = _best_orders if total else _last_ends
    best = {column: solve(arrival, column) for column in set(columns)}
    sets = _assign_jobs([np.array([p[1] for p in best[column]]) for column in columns], total, n)
    return [best[column][jobs][2] for jobs, column in zip(sets, columns, strict=True)]


def make_plan_rule(plan: list[tuple[int, ...]]) -> Decide:
    """Return a rule that follows a plan."""
    left = [list(jobs) for jobs in plan]

    def decide(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
        waiting = {item.job for item in state.main}
        for device in state.free():
            if left[device] and left[device][0] in waiting:
                return Decision(left[device].pop(0), device, "ideal")
        return None

    return decide


def lb_fractional(arrival: Floats, times: Floats, gpus: int) -> float:
    r"""Return a lower bound of the last end, with jobs that may be cut into parts.

    For every instant a, the jobs that arrive at a or later take at least the least T with

    .. math:: \sum_j x_j p_j^{gpu} \le m T, \quad \sum_j (1 - x_j) p_j^{cpu} \le n T,
              \quad 0 \le x_j \le 1

    beyond a (jobs by falling :math:`p^{cpu}/p^{gpu}` go to the GPUs first); and no job
    ends before its arrival plus its shorter time. Of `times` the first columns are the GPUs'.
    """
    cpus = times.shape[1] - gpus
    parts = times[:, :gpus], times[:, gpus:]
    gpu, cpu = (np.fmin.reduce(part, axis=1, initial=np.inf) for part in parts)
    order, bound = np.argsort(-cpu / gpu, kind="stable"), float(max(arrival + np.fmin(gpu, cpu)))
    for since in set(arrival.tolist()):
        late = order[arrival[order] >= since]
        span = _least_span(gpu[late].tolist(), cpu[late].tolist(), gpus, cpus)
        bound = max(bound, since + span)
    return bound


def _least_span(gpu: list[float], cpu: list[float], gpus: int, cpus: int) -> float:
    """Return the least T of the fractional problem, jobs by falling gain from the GPU."""
    on_gpu, on_cpu = 0.0, math.fsum(time for time in cpu if time < math.inf)
    for gpu_time, cpu_time in zip(gpu, cpu, strict=True):
        if gpu_time == math.inf:
            break
        has_both = cpu_time < math.inf and cpus > 0
        if has_both and (on_gpu + gpu_time) * cpus >= (on_cpu - cpu_time) * gpus:
            part = (on_cpu * gpus - on_gpu * cpus) / (gpu_time * cpus + cpu_time * gpus)
            if part <= 0:
                break
            return (on_gpu + part * gpu_time) / gpus
        on_gpu += gpu_time
        if cpu_time < math.inf:
            on_cpu -= cpu_time
    return max(on_gpu / gpus if gpus else 0.0, on_cpu / cpus if cpus else 0.0)

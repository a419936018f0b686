"""Simulate jobs on CPUs and GPUs under one policy (paper C, section 5)."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dlsim.cpugpu.check import check_schedule
from dlsim.cpugpu.dispatch import Desk, Move
from dlsim.cpugpu.fairness import Fairness, judged, local_bounds
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan, lb_fractional
from dlsim.cpugpu.intake import Given, check_targets, checked, need_known
from dlsim.cpugpu.model import Decide, Machine, Measures, Policy, Reading, policy_named
from dlsim.errors import InputError
from dlsim.given import option
from dlsim.kernel import clock_origin, latest_finish


class Trace(NamedTuple):
    """What happened to each job, by its place in the queue order; times are from `origin` on."""

    origin: float
    device: list[int]
    start: list[float]
    end: list[float]
    moves: dict[int, Move]


@dataclass(frozen=True)
class Schedule(Measures):
    """What a policy did with every job; plain tables.

    Attributes
    ----------
    jobs : DataFrame
        Columns app, arrival, decided (when it left the main queue), turn (the how manieth
        decision), device, start, end, rule, predicted (finish there, NaN where nothing
        was predicted); index as the jobs'.
    machine, policy, name, reading, given
        What it was made with and of.
    history : History
        What is known afterwards; the history that was given stays as it was.
    predictions : DataFrame
        Predicted finish of each job on every device when it was decided.
    """

    jobs: pd.DataFrame
    machine: Machine
    policy: Policy
    name: str
    reading: Reading
    history: History
    given: Given = field(repr=False)
    predictions: pd.DataFrame = field(repr=False)

    @property
    def mean_wait(self) -> float:
        """Mean time from arrival to start."""
        return float((self.jobs["start"] - self.jobs["arrival"]).mean())

    @property
    def mean_completion(self) -> float:
        """Mean time from arrival to end."""
        return float((self.jobs["end"] - self.jobs["arrival"]).mean())

    @property
    def utilisation(self) -> pd.Series:
        """Part of the makespan that each device was busy."""
        busy = (self.jobs["end"] - self.jobs["start"]).groupby(self.jobs["device"]).sum()
        return busy.reindex(list(self.machine.devices), fill_value=0.0) / self.makespan

    @property
    def explored(self) -> pd.Series:
        """Which jobs were placed to fill the history (rule 2)."""
        return self.jobs["rule"].isin(("R2", "R2*"))

    @functools.cached_property
    def bound(self) -> float:
        """Lower bound of the makespan, jobs being divisible (`lb_fractional`)."""
        given = _on_own_clock(self.given)[1]
        return lower_bound(given, self.machine) - float(given.arrival[0])

    @property
    def run_times(self) -> pd.Series:
        """Realised time of each run, without the rounding of end - start."""
        if self.reading.gpu_cpu_share:
            return self.jobs["end"] - self.jobs["start"]
        places = [self.machine.devices.index(device) for device in self.jobs["device"]]
        times = self.given.times[np.arange(len(places)), places]
        return pd.Series(times, index=self.jobs.index)

    def fairness(self, reading: str = "local", significant: float = 0.1) -> Fairness:
        """Say which jobs ended later than on their preferred device (section 5).

        `reading` "local" compares with the end behind the work that was assigned there when the
        job was decided (F1), "global" with its end in the schedule in which every job goes to its
        preferred device (F2). A prediction with a relative error from `significant` on is wrong.
        """
        option("reading", reading, ("local", "global"))
        if reading == "local":
            return judged(self, local_bounds(self), significant)
        fifo = play(self.given, self.machine, Policy("fifo"), self.reading, History())
        return judged(self, fifo.origin + np.array(fifo.end), significant)

    def check(self) -> None:
        """Verify the schedule against the model alone (`dlsim.cpugpu.check`)."""
        check_schedule(self)


def _on_own_clock(given: Given) -> tuple[float, Given]:
    """Return where the engine's clock begins, by the first arrival, and the jobs on it."""
    origin = clock_origin(given.arrival)
    return origin, given._replace(arrival=given.arrival - origin)


def lower_bound(given: Given, machine: Machine) -> float:
    """Return an instant before which no schedule's last job ends (`lb_fractional`)."""
    m = machine.gpus
    least = {
        cls: np.fmin.reduce(part, axis=1).tolist()
        for cls, part in (("gpu", given.times[:, :m]), ("cpu", given.times[:, m:]))
        if part.shape[1]
    }
    jobs = [
        (arrival, {cls: least[cls][item.job] for cls in item.declared})
        for arrival, item in zip(given.arrival.tolist(), given.items, strict=True)
    ]
    return lb_fractional(jobs, machine)


class _Devices:
    """What runs where until when; CPUs slow down beside running GPU jobs (`gpu_cpu_share`)."""

    def __init__(self, machine: Machine, share: float) -> None:
        if machine.cpus and share * machine.gpus >= machine.cpus:
            raise InputError(
                f"gpu_cpu_share={share:g} would leave no CPU to {machine.cpus} CPUs beside "
                f"{machine.gpus} GPUs; it must be below {machine.cpus / max(1, machine.gpus):g}"
            )
        self.gpus, self.cpus, self.share = machine.gpus, machine.cpus, share
        self.end = [math.inf] * (machine.gpus + machine.cpus)
        self.rate, self.since = 1.0, 0.0

    def begin(self, device: int, now: float, time: float) -> None:
        slow = device >= self.gpus and self.share > 0
        self.end[device] = now + (time / self.rate if slow else time)

    def settle(self, now: float) -> None:
        """Let the CPUs go on at the speed that the running GPU jobs leave them."""
        if self.share == 0 or self.cpus == 0:
            return
        busy = sum(end < math.inf for end in self.end[: self.gpus])
        rate = 1.0 - self.share * busy / self.cpus
        if rate != self.rate:
            for d in range(self.gpus, len(self.end)):
                self.end[d] = now + (self.end[d] - now) * self.rate / rate
            self.rate = rate

    def due(self, until: float) -> list[int]:
        """Take off what ends by an instant, in order of its end."""
        done = [d for d, end in enumerate(self.end) if end <= until]
        return sorted(done, key=lambda d: (self.end[d], d))


def play(
    given: Given, machine: Machine, policy: Policy, reading: Reading, history: History,
    decide: Decide | None = None,
) -> Trace:  # fmt: skip
    """Run the event loop: completions, arrivals, then decisions, instant by instant."""
    origin, given = _on_own_clock(given)
    span = float(np.nanmin(given.times))
    desk = Desk(machine, policy, reading, history, decide)
    n, coming, left = len(given.items), 0, len(given.items)
    trace = Trace(origin, [-1] * n, [math.nan] * n, [math.nan] * n, desk.moves)
    devices = _Devices(machine, reading.gpu_cpu_share)
    arrival, times = given.arrival.tolist(), given.times.tolist()
    while left:
        first = min(min(devices.end), arrival[coming] if coming < n else math.inf)
        if first == math.inf:
            label = given.labels[desk.state.main[0].job] if desk.state.main else None
            name = policy_named(policy)[0]
            raise InputError(f"policy {name} leaves job {label!r} waiting for ever")
        limit, now = latest_finish(first, span), first
        for d in devices.due(limit):
            job, now = desk.state.running[d], devices.end[d]
            if job is not None:
                trace.end[job.item.job] = now
                seconds = now - job.start if devices.share else times[job.item.job][d]
                desk.complete(now, d, seconds)
            devices.end[d], left = math.inf, left - 1
        batch = []
        while coming < n and arrival[coming] <= limit:
            batch.append(given.items[coming])
            now, coming = max(now, arrival[coming]), coming + 1
        desk.arrive(now, batch)
        devices.settle(now)
        for d, item in desk.dispatch(now):
            trace.device[item.job], trace.start[item.job] = d, now
            devices.begin(d, now, times[item.job][d])
        devices.settle(now)
    return trace


def plan_for(given: Given, policy: Policy, reading: Reading) -> Decide | None:
    """Return the plan of an ideal policy as a decision function."""
    if policy.rule != "ideal":
        return None
    if reading.gpu_cpu_share:
        raise InputError("an exhaustive schedule needs times of its own: use gpu_cpu_share=0")
    arrival = _on_own_clock(given)[1].arrival.tolist()
    return follow(ideal_plan(arrival, given.times, policy.objective))


def _tables(given: Given, machine: Machine, trace: Trace) -> tuple[pd.DataFrame, pd.DataFrame]:
    moves = [trace.moves[j] for j in range(len(given.items))]
    blank = (math.nan,) * len(machine.devices)
    finishes = trace.origin + np.array([move.decision.finishes or blank for move in moves])
    columns = {
        "app": [item.app for item in given.items],
        "arrival": given.arrival,
        "decided": [trace.origin + move.when for move in moves],
        "turn": [move.turn for move in moves],
        "device": [machine.devices[d] for d in trace.device],
        "start": trace.origin + np.array(trace.start),
        "end": trace.origin + np.array(trace.end),
        "rule": [move.decision.rule for move in moves],
        "predicted": finishes[np.arange(len(moves)), trace.device],
    }
    jobs = pd.DataFrame(columns, index=given.labels)
    return jobs, pd.DataFrame(finishes, index=given.labels, columns=list(machine.devices))


def simulate(
    jobs: pd.DataFrame,
    machine: Machine | None = None,
    policy: str | Policy = "history",
    history: History | None = None,
    reading: Reading | None = None,
    extra: ArrayLike | Sequence[Sequence[float]] | None = None,
) -> Schedule:
    """Schedule jobs on CPUs and GPUs as they arrive, under one policy and one reading.

    Parameters
    ----------
    jobs : DataFrame
        Columns app, arrival, cpu_time, gpu_time (realised; NaN: no version), and
        cpu_estimate, gpu_estimate (declared; default: the realised ones). Sorted by
        arrival, which with the table order is the queue order; index = job id.
    machine : Machine, optional
        The devices; default one CPU and one GPU.
    policy : str or Policy
        A name of `POLICIES` or a row of one's own.
    history : History, optional
        What is known at the start; default nothing. It is not changed.
    reading : Reading, optional
        How the gaps of the paper are filled; default `Reading()`.
    extra : array_like of float, shape (n, devices), optional
        Time added to each job's run on each device, unknown to the policies.

    Returns
    -------
    Schedule
        Tables of what was decided; `Schedule.check` verifies them.

    Raises
    ------
    InputError
        For jobs, a machine, a policy, a history or a reading that cannot be used.

    References
    ----------
    Paper C, section 5 (the five rules), sections 6 and 7 (rivals).

    Examples
    --------
    >>> jobs = pd.DataFrame({"app": "A", "arrival": [0.0] * 4, "cpu_time": 40.0,
    ...                      "gpu_time": 10.0})
    >>> r = simulate(jobs, Machine(cpus=1, gpus=1), "history")
    >>> r.jobs[["device", "start", "end", "rule"]].values.tolist()  # doctest: +NORMALIZE_WHITESPACE
    [['gpu0', 0.0, 10.0, 'R2*'], ['cpu0', 0.0, 40.0, 'R2'],
     ['gpu0', 10.0, 20.0, 'R3'], ['gpu0', 20.0, 30.0, 'R3']]
    """
    machine = Machine() if machine is None else machine
    reading, known = need_known(reading, history)
    name, policy = policy_named(policy)
    given = checked(jobs, machine, extra)
    check_targets(given, policy, name)
    trace = play(given, machine, policy, reading, known, plan_for(given, policy, reading))
    tables = _tables(given, machine, trace)
    return Schedule(tables[0], machine, policy, name, reading, known, given, tables[1])

"""One run: completions, arrivals and decisions on a machine's devices, instant by instant."""

import math
from typing import NamedTuple

import numpy as np

from dlsim.cpugpu.dispatch import Desk, Move
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan, lb_fractional
from dlsim.cpugpu.intake import Given
from dlsim.cpugpu.model import Decide, Machine, Policy, Reading, policy_named
from dlsim.errors import InputError
from dlsim.kernel import clock_origin, latest_finish


class Trace(NamedTuple):
    """What happened to each job, by its place in the queue order; times are from `origin` on."""

    origin: float
    device: list[int]
    start: list[float]
    end: list[float]
    moves: dict[int, Move]


def on_own_clock(given: Given) -> tuple[float, Given]:
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
    origin, given = on_own_clock(given)
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
    arrival = on_own_clock(given)[1].arrival.tolist()
    return follow(ideal_plan(arrival, given.times, policy.objective))

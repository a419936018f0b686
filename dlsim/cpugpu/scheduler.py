"""The online scheduler of paper C under one policy, and the event loop that drives it.

`OnlineScheduler` takes arrivals and completions and returns the jobs that start. The event loop of
a queue and that of MapReduce drive it, each with its own clock.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, deadline_with_tolerance, time_offset
from dlsim.cpugpu import rules
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import ideal_plan, make_plan_rule
from dlsim.cpugpu.model import POLICY_RULES, JobView, Machine, Policy, Reading, Rule
from dlsim.cpugpu.queues import SchedulerState
from dlsim.cpugpu.rules import Decide, Decision
from dlsim.cpugpu.workload import JobTable
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import Floats, instance, or_default, to_floats, whole

#: Most moves between sub-queues at one instant before a job starts.
MOST_MOVES = 100_000


def _find_function(rule: Rule) -> Decide:
    """Return the function of a rule, which is asked only while a device is free, or always."""
    decide: Decide = getattr(rules, rule.decide)
    if rule.works_while_busy:
        return decide

    @functools.wraps(decide)
    def ask(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
        return decide(state, policy, reading) if None in state.running else None

    return ask


#: The function of every rule that is not a plan.
DECIDE = {name: _find_function(rule) for name, rule in POLICY_RULES.items() if rule.decide}


def require_reading_and_history(
    reading: Reading | None, history: History | None
) -> tuple[Reading, History]:
    """Return a reading, and a copy of the history at the start."""
    reading = or_default("reading", reading, Reading, "; see Reading.from_switches(mapping)")
    return reading, or_default(
        "history", history, History, "; see HistoryDatabase.history()"
    ).copy()


def decider(policy: Policy) -> Decide:
    """Return the rule function of a policy; a user's function is wrapped in a check."""
    if not callable(policy.rule):
        return DECIDE[policy.rule]
    own, name = policy.rule, f"policy {policy.name}"

    def ask(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
        """Call a user's function; raise InputError unless it returns a decision valid here."""
        with calling_user_code(f"{name} must return None or a Decision"):
            found = own(state, policy, reading)
            if found is None:
                return None
            predicted_finish = to_floats(
                instance(f"what {name} returns", found, Decision).predicted_finish
            )
        devices = len(state.classes)
        if predicted_finish.shape not in ((0,), (devices,)):
            rule = f"must be empty or hold a number for each of {devices} devices"
            raise InputError(f"predicted_finish of {name} {rule}, got {found.predicted_finish!r}")
        job = whole(f"job of {name}", found.job, 0, math.inf)
        device = whole(f"device of {name}", found.device, 0, devices - 1)
        return found._replace(
            job=job, device=device, predicted_finish=tuple(predicted_finish.tolist())
        )

    return ask


class OnlineScheduler:
    """Queues, devices and history under one policy.

    Attributes
    ----------
    state : SchedulerState
        What the policy sees.
    moves : dict of int to tuple
        The last decision about every job, its instant, and its place among all decisions, by the
        number of the job.
    """

    def __init__(
        self,
        machine: Machine,
        policy: Policy,
        reading: Reading,
        history: History,
        decide: Decide | None = None,
    ) -> None:
        self.policy, self.reading = policy, reading
        self.decide = decide or decider(policy)
        self.state = SchedulerState(machine.devices, history)
        self.moves: dict[int, tuple[Decision, float, int]] = {}
        self._made = 0

    def arrive(self, now: float, jobs: Iterable[JobView]) -> None:
        """Put jobs at the end of the main queue."""
        self.state.now = now
        for job in jobs:
            self.state.main.put(job)

    def complete(self, now: float, device: int, seconds: float) -> None:
        """Rule 5: take a finished job off its device and add its time to the history."""
        job = self._take_off(now, device)
        self.state.history.entry(job.app, self.state.classes[device]).add(seconds)

    def return_lost_job(self, now: float, device: int) -> None:
        """Put a job of a failed device back at the head of the main queue; rule 2 forgets it."""
        job = self._take_off(now, device)
        self.state.history.withdraw(job.app, self.state.classes[device])
        self.state.main.put(job, first=True)

    def _take_off(self, now: float, device: int) -> JobView:
        """Take the running job off a device."""
        state = self.state
        job = state.running[device]
        if job is None:
            raise InputError(
                f"{state.devices[device]} runs no job that could end under "
                f"policy {self.policy.name}; end only jobs that dispatch() returned"
            )
        state.now, state.running[device] = now, None
        return job

    def dispatch(self, now: float) -> list[tuple[int, JobView]]:
        """Apply rule 1, then the policy until it decides nothing; return the jobs that start.

        Rule 1: an idle device starts the next job of its own sub-queue.
        """
        state, policy, reading, decide = self.state, self.policy, self.reading, self.decide
        main, running, queues, history = state.main, state.running, state.queues, state.history
        started: list[tuple[int, JobView]] = []
        state.now, moves = now, 0
        for device, queue in enumerate(queues):
            if queue and running[device] is None:  # rule 1
                running[device], state.started[device] = (job := queue.take()), now
                started.append((device, job))
        while (decision := decide(state, policy, reading)) is not None:
            number, device = decision.job, decision.device
            if number in main:
                job = main.take(number)
            else:
                job = self._take_from_sub_queue(number)
                moves += 1
            cls = state.classes[device]
            if cls not in job.declared:
                raise InputError(
                    f"job {job.job} ({job.app}) has no version for a {cls}, chosen by policy "
                    f"{self.policy.name}; return a job of state.main with {cls!r} in "
                    "job.declared"
                )
            history.assign(job.app, cls)
            self.moves[number] = decision, now, self._made
            self._made += 1
            if running[device] is None:
                running[device], state.started[device] = job, now
                started.append((device, job))
                moves = 0
            else:
                queues[device].put(job)
            if moves > MOST_MOVES:
                raise InputError(
                    f"policy {self.policy.name} moved job {number!r} and others {moves} times "
                    "between sub-queues and started none; return None when nothing is to be moved"
                )
        return started

    def _take_from_sub_queue(self, number: int) -> JobView:
        """Take a job out of the sub-queue in which it waits."""
        for queue in self.state.queues:
            if any(job.job == number for job in queue):
                return queue.take(number)
        raise InputError(
            f"policy {self.policy.name} moved job {number!r}, which does not wait; return a job "
            "of state.main, or of state.queues"
        )


class Trace(NamedTuple):
    """The arrays of a run, jobs in queue order; times count from `time_offset`."""

    time_offset: float
    device: NDArray[np.int64]
    turn: NDArray[np.int64]  # place of the last move among all decisions
    decided: Floats  # when the job was moved last
    start: Floats
    completion: Floats
    rules: list[str]  # why the job was moved
    predicted_finish: Floats  # shape (jobs, devices), NaN where none was predicted


def shift_clock(job_table: JobTable) -> tuple[float, JobTable]:
    """Return where the engine's clock begins, by the first arrival, and the jobs on it."""
    offset = time_offset(job_table.arrival)
    return offset, replace(job_table, arrival=job_table.arrival - offset)


def require_share(machine: Machine, policy: Policy, reading: Reading) -> None:
    """Refuse `Reading.gpu_cpu_share` with a plan, or where it would leave no CPU."""
    share = reading.gpu_cpu_share
    if policy.is_planned and share:
        raise InputError("an exhaustive schedule needs times of its own: use gpu_cpu_share=0")
    if machine.cpus and share * machine.gpus >= machine.cpus * (1 - TOL):
        raise InputError(
            f"gpu_cpu_share={share:g} would leave no CPU to {machine.cpus} CPUs beside "
            f"{machine.gpus} GPUs; it must be below {machine.cpus / max(1, machine.gpus):g}"
        )


def simulate_jobs(
    job_table: JobTable, machine: Machine, policy: Policy, reading: Reading, history: History
) -> Trace:
    """Simulate the jobs event by event, and add every run to the history."""
    require_share(machine, policy, reading)
    offset, job_table = shift_clock(job_table)
    plan = None
    if policy.is_planned:
        arrival = job_table.arrival.tolist()
        plan = make_plan_rule(ideal_plan(arrival, job_table.times, policy.objective))
    scheduler = OnlineScheduler(machine, policy, reading, history, plan)
    loop = EventLoop(job_table, machine, reading, scheduler)
    loop.run()
    moves = [scheduler.moves[job] for job in range(len(job_table.arrival))]
    decisions, instants, turns = zip(*moves, strict=True)
    none = (math.nan,) * len(machine.devices)
    return Trace(
        time_offset=offset,
        device=np.array([decision.device for decision in decisions]),
        turn=np.array(turns),
        decided=np.array(instants),
        start=np.array(loop.start),
        completion=np.array(loop.completion),
        rules=[decision.rule for decision in decisions],
        predicted_finish=np.array([decision.predicted_finish or none for decision in decisions]),
    )


@dataclass(slots=True)
class Device:
    """A device of the event loop: the time of every job on it, the job it runs and its end."""

    times: list[float]
    job: int = -1
    end: float = math.inf


class EventLoop:
    """The event loop of paper C: completions, arrivals, then decisions, instant by instant.

    Beside running GPU jobs the CPUs run at a lower rate (`Reading.gpu_cpu_share`).
    """

    def __init__(
        self, job_table: JobTable, machine: Machine, reading: Reading, scheduler: OnlineScheduler
    ) -> None:
        self.job_table, self.scheduler = job_table, scheduler
        self.share, self.cpu_rate = reading.gpu_cpu_share, 1.0
        self.devices = [Device(times) for times in job_table.times.T.tolist()]
        self.gpus, self.cpus = self.devices[: machine.gpus], self.devices[machine.gpus :]
        self.slows_cpus = bool(self.share and self.cpus)
        count, self.shortest = len(job_table.arrival), float(np.nanmin(job_table.times))
        self.start, self.completion = [math.nan] * count, [math.nan] * count
        self.arrival = [*job_table.arrival.tolist(), math.inf]
        self.views, self.coming, self.left = job_table.job_views(), 0, count

    def run(self) -> None:
        """Run until every job is done."""
        devices, arrival = self.devices, self.arrival
        while self.left:
            first_end = min([device.end for device in devices])
            now = min(first_end, arrival[self.coming])
            if now == math.inf:
                self.refuse_to_wait()
            limit = deadline_with_tolerance(now, self.shortest)  # until here instants are equal
            if first_end <= limit:
                now = self.end_due(limit)
            if arrival[self.coming] <= limit:
                now = self.admit_due(now, limit)
            if self.slows_cpus:
                self.change_cpu_rate(now)
            self.start_jobs(now)
            if self.slows_cpus:
                self.change_cpu_rate(now)

    def end_due(self, limit: float) -> float:
        """End the jobs that are due, first by their ends, then by device; return the last end."""
        due = [
            (device.end, place) for place, device in enumerate(self.devices) if device.end <= limit
        ]
        for now, place in sorted(due):
            device = self.devices[place]
            job, device.end = device.job, math.inf
            self.completion[job] = now
            seconds = now - self.start[job] if self.share else device.times[job]
            self.scheduler.complete(now, place, seconds)
            self.left -= 1
        return now

    def admit_due(self, now: float, limit: float) -> float:
        """Put the jobs that arrive into the main queue; return the later of `now` and the last."""
        first = self.coming
        while self.arrival[self.coming] <= limit:
            self.coming += 1
        now = max(now, self.arrival[self.coming - 1])
        self.scheduler.arrive(now, islice(self.views, self.coming - first))
        return now

    def start_jobs(self, now: float) -> None:
        """Start the jobs that the policy chooses."""
        for place, view in self.scheduler.dispatch(now):
            device, job = self.devices[place], view.job
            device.job, self.start[job] = job, now
            time = device.times[job]
            device.end = now + (time if place < len(self.gpus) else time / self.cpu_rate)

    def change_cpu_rate(self, now: float) -> None:
        """Set the rate of the CPUs beside the running GPU jobs, and move the ends of CPU jobs."""
        busy = sum(device.end < math.inf for device in self.gpus)
        rate = 1.0 - self.share * busy / len(self.cpus)
        if rate != self.cpu_rate:
            for device in self.cpus:
                device.end = now + (device.end - now) * self.cpu_rate / rate
            self.cpu_rate = rate

    def refuse_to_wait(self) -> None:
        """Raise InputError: no job runs or will come, and the policy starts none that waits."""
        waiting = next(iter(self.scheduler.state.main), None)
        label = None if waiting is None else self.job_table.labels[waiting.job]
        raise InputError(
            f"policy {self.scheduler.policy.name} leaves job {label!r} waiting for ever; its rule "
            "returned None while a device was free"
        )

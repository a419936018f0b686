"""The online scheduler of paper C: queues, devices and history under one policy.

`OnlineScheduler` takes arrivals and completions and returns the jobs that start. The engine,
Hadoop's slots and MapReduce drive it, each with its own clock.
"""

import math
from collections.abc import Iterable

from dlsim.cpugpu import rules
from dlsim.cpugpu.history import History
from dlsim.cpugpu.jobs import JobView
from dlsim.cpugpu.model import POLICY_RULES, Machine, Policy, Reading, find_job_policy
from dlsim.cpugpu.rules import Decide, Decision, SchedulerState
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import instance, to_floats, whole

#: Most moves between sub-queues at one instant before a job starts.
MOST_MOVES = 100_000


def decider(policy: Policy) -> Decide:
    """Return the rule function of a policy; a user's function is wrapped in a check."""
    if not callable(policy.rule):
        decide: Decide = getattr(rules, POLICY_RULES[policy.rule].decide)
        return decide
    own, name = policy.rule, f"policy {find_job_policy(policy)[0]}"

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
    decisions, decided, decision_no : dict
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
        self.decisions: dict[int, Decision] = {}
        self.decided: dict[int, float] = {}
        self.decision_no: dict[int, int] = {}
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
                f"policy {self._policy_name()}; end only jobs that dispatch() returned"
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
                    f"{self._policy_name()}; return a job of state.main with {cls!r} in "
                    "job.declared"
                )
            history.assign(job.app, cls)
            self.decisions[number] = decision
            self.decided[number], self.decision_no[number] = now, self._made
            self._made += 1
            if running[device] is None:
                running[device], state.started[device] = job, now
                started.append((device, job))
                moves = 0
            else:
                queues[device].put(job)
            if moves > MOST_MOVES:
                raise InputError(
                    f"policy {self._policy_name()} moved job {number!r} and others {moves} times "
                    "between sub-queues and started none; return None when nothing is to be moved"
                )
        return started

    def _take_from_sub_queue(self, number: int) -> JobView:
        """Take a job out of the sub-queue in which it waits."""
        for queue in self.state.queues:
            if any(job.job == number for job in queue):
                return queue.take(number)
        raise InputError(
            f"policy {self._policy_name()} moved job {number!r}, which does not wait; return a job "
            "of state.main, or of state.queues"
        )

    def _policy_name(self) -> str:
        """Return the name of the policy, for messages."""
        return find_job_policy(self.policy)[0]

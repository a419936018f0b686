"""The scheduler's desk: one state, changed by arrivals, decisions, starts and completions.

The live run, MapReduce and simulated policies of one's own drive the same desk: what differs
is who says when a job is done.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import Decide, Decision, Item, Machine, Policy, Reading, Running, State
from dlsim.cpugpu.rules import DECIDE
from dlsim.errors import InputError


class Move(NamedTuple):
    """A decision that was followed, when, and the how manieth it was."""

    decision: Decision
    when: float
    turn: int


class Desk:
    """Queues, devices and history under one policy."""

    def __init__(
        self, machine: Machine, policy: Policy, reading: Reading, history: History,
        decide: Decide | None = None, watch: Callable[[State, Decision], None] | None = None,
    ) -> None:  # fmt: skip
        rule = policy.rule
        self.decide = decide or (rule if callable(rule) else DECIDE[rule])
        self.policy, self.reading, self.watch = policy, reading, watch
        self.state = State.of(machine, history)
        self.moves: dict[int, Move] = {}
        self._turns = 0

    def arrive(self, now: float, items: Iterable[Item]) -> None:
        """Put jobs at the end of the main queue."""
        self.state.now = now
        self.state.main.extend(items)

    def complete(self, now: float, device: int, seconds: float) -> None:
        """Take a finished job off its device; its time enters the history (rule 5)."""
        state, job = self.state, self._taken_off(now, device)
        state.history.measure(job.item.app, state.classes[device], seconds)

    def lose(self, now: float, device: int) -> None:
        """Put a job whose device broke back to the head of the main queue; rule 2 forgets it."""
        state, job = self.state, self._taken_off(now, device)
        state.history.withdraw(job.item.app, state.classes[device])
        state.main.insert(0, job.item)

    def fail(self, now: float, device: int, again: Item | None = None) -> None:
        """Take a job that failed by its own fault off its device, unmeasured."""
        self._taken_off(now, device)
        if again is not None:
            self.state.main.insert(0, again)

    def dispatch(self, now: float) -> list[tuple[int, Item]]:
        """Follow rule 1 and the policy until nothing more can be decided."""
        state, started = self.state, []
        state.now = now
        while True:
            for device, queue in enumerate(state.queues):
                if queue and state.running[device] is None:  # rule 1
                    item = queue.pop(0)
                    state.running[device] = Running(item, now)
                    started.append((device, item))
            decision = self.decide(state, self.policy, self.reading)
            if decision is None:
                return started
            self._follow(decision)

    def _taken_off(self, now: float, device: int) -> Running:
        job = self.state.running[device]
        if job is None:
            raise InputError(f"{self.state.devices[device]} runs nothing that could end")
        self.state.now, self.state.running[device] = now, None
        return job

    def _follow(self, decision: Decision) -> None:
        state = self.state
        if self.watch is not None:
            self.watch(state, decision)
        item = self._withdrawn(decision)
        cls = state.classes[decision.device]
        if cls not in item.declared:
            raise InputError(f"job {item.job} ({item.app}) has no version for a {cls}")
        state.queues[decision.device].append(item)
        state.history.assign(item.app, cls)
        self.moves[item.job] = Move(decision, state.now, self._turns)
        self._turns += 1

    def _withdrawn(self, decision: Decision) -> Item:
        for queue in [self.state.main, *self.state.queues]:
            for place, item in enumerate(queue):
                if item.job == decision.job:
                    return queue.pop(place)
        raise InputError(f"the policy moved job {decision.job!r}, which does not wait")

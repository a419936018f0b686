"""A policy in Python: as the compiled core knows it, its decision for one state, and its desk.

The live run, MapReduce and the audit of a log keep their queues in lists: `decide` copies what
the policy looks at into arrays and asks `dlsim.cpugpu.core`; nothing is decided here. A `Desk` is
a state that is changed by arrivals, decisions, starts and completions: what differs between the
live run, MapReduce and simulated policies of one's own is who says when a job is done.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu import model
from dlsim.cpugpu.core import state as core
from dlsim.cpugpu.core.events import decide_from
from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES, Decide, Decision, Item, Machine, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats

_TARGETS = {"gpu": core.GPU, "cpu": core.CPU, "preferred": core.PREFERRED}
#: Rules that look at one job of the main queue; that predict; that need no free device.
_AT_HEAD = (core.FIVE, core.MCT, core.STRICT, core.TURN)
_PREDICT = (core.FIVE, core.MCT)
_WHILE_BUSY = (core.MCT, core.TURN)


def rules_of(policy: Policy, reading: Reading) -> core.Rules:
    """Return a policy under its reading as numbers; a plan and a function are both a user's."""
    rule = policy.rule
    own = core.USER if callable(rule) or rule == "ideal" else model.RULES.index(rule)
    return core.Rules(
        own, _TARGETS[policy.target], model.TAKES.index(policy.take), policy.min_samples,
        policy.re_explore, float(policy.bound), model.ESTIMATES.index(policy.estimate),
        policy.steal, reading.both_free == "best",
        model.SWITCHES["unknown_remaining"].index(reading.unknown_remaining),
        float(reading.deviations), float(reading.gpu_cpu_share),
    )  # fmt: skip


def world_of(
    r: core.Rules, arrival: Floats, times: Floats, column: NDArray[np.int64],
    app: NDArray[np.int64], told: Floats, has: NDArray[np.bool_], number: NDArray[np.int64],
    gpus: int,
) -> core.World:  # fmt: skip
    """Return jobs and machine as the core takes them, sorted as the policy needs them."""
    keys: list[Floats] = []
    if r.rule == core.SPEED_UP:
        slow, fast = np.fmax(*told.T), np.fmin(*told.T)
        keys = [-np.where(has.all(axis=1), slow / fast, np.inf)]
    elif r.rule == core.SHORTEST:
        keys = list(told.T)
    order = np.empty((len(keys), len(app)), dtype=np.int64)
    rank, first = np.empty_like(order), np.argsort(number, kind="stable")
    for k, key in enumerate(keys):
        order[k] = first[np.argsort(key[first], kind="stable")]
        rank[k, order[k]] = np.arange(len(app))
    nobody = np.empty(0, dtype=np.int64), np.empty(0)
    return core.World(arrival, times, column, app, told, has, number, order, rank, gpus,
                      float(np.nanmin(times)), *nobody)  # fmt: skip


def state_of(w: core.World, r: core.Rules, names: Sequence[Any], history: History) -> core.State:
    """Return the state before the first event, with what the history knows."""
    numbers = {name: a for a, name in enumerate(names)}
    jobs = np.bincount(w.app, minlength=len(names))
    rooms = 2 * (np.cumsum(jobs) - jobs + np.arange(len(jobs)))
    s = core.fresh_state(w, r, len(names), r.rule in _PREDICT)
    s.known["room"] = rooms[:, None]
    averages: list[list[float]] = [[], []]
    for (app, cls), record in history.records().items():
        a, c, n = numbers.get(app), CLASSES.index(cls), record.count
        if a is None:
            averages[c] += [record.expected(model.ESTIMATES[r.estimate])] if n else []
            continue
        low = high = 0
        if n and s.heaps.size:  # as many about the middle as the jobs can move it over
            ranked, middle, reach = record.runs.ranked(n), (n + 1) // 2, jobs[a] + 1
            below, above = ranked[max(0, middle - reach) : middle], ranked[middle : middle + reach]
            low, high = len(below), len(above)
            s.heaps[c, 0, rooms[a] : rooms[a] + low] = -below[::-1]
            s.heaps[c, 1, rooms[a] : rooms[a] + high] = above
        s.known[a, c] = (
            1, record.assigned, record.elsewhere, n, record.mean, record.spread, record.recent,
            math.nan, math.nan, core.NOBODY, rooms[a], low, high,
        )  # fmt: skip
    for c, known in enumerate(averages):
        s.averages[c] = (len(known), math.fsum(known), 0.0)
    return s


def decide(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """Decide what a built-in policy does in a state: the next job to move, or None."""
    r = rules_of(policy, reading)
    if not (state.main or r.steal) or (r.rule not in _WHILE_BUSY and not state.free()):
        return None
    devices = len(state.classes)
    held = [(d, job.item) for d, job in enumerate(state.running) if job is not None]
    held += [(devices + d, item) for d, queue in enumerate(state.queues) for item in queue]
    waiting = state.main[:1] if r.rule in _AT_HEAD and not r.bound else state.main
    if r.rule == core.FIFO:  # the first of each class
        heads = [next((i for i in state.main if i.preferred == c), None) for c in CLASSES]
        firsts = [item for item in heads if item is not None]
        waiting = firsts if r.target == core.PREFERRED else state.main[:1]
    held += [(core.NOBODY, item) for item in waiting]
    if not held:
        return None
    items = [item for _, item in held]
    names = list(dict.fromkeys(item.app for item in items))
    numbers = {name: a for a, name in enumerate(names)}
    told = np.array([[item.declared.get(c, math.nan) for c in CLASSES] for item in items], float)
    has = np.array([[c in item.declared for c in CLASSES] for item in items])
    gpus = state.classes.count("gpu")
    w = world_of(
        r, np.zeros(len(items)), np.where(has, 1.0, told), (np.arange(devices) >= gpus).astype(int),
        np.array([numbers[item.app] for item in items]), told, has,
        np.array([item.job for item in items], np.int64), gpus,
    )  # fmt: skip
    s = state_of(w, r, names, state.history)
    s.head["now"] = state.now
    for j, job in enumerate(job for job in state.running if job is not None):
        s.jobs["start"][j] = job.start
    if not decide_from(np.array([place for place, _ in held]), w, r, s):
        return None
    head = s.head[0]
    finishes = tuple(s.finishes[head["job"]].tolist()) if head["foretold"] else ()
    moved: Item = items[head["job"]]
    return Decision(moved.job, int(head["on"]), core.WORDS[head["word"]], finishes)


#: The decision of each `Policy.rule`; ``ideal`` follows a plan (`dlsim.cpugpu.ideal`).
DECIDE: dict[str, Decide] = {rule: decide for rule in model.RULES if rule != "ideal"}


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
                    state.running[device] = model.Running(item, now)
                    started.append((device, item))
            decision = self.decide(state, self.policy, self.reading)
            if decision is None:
                return started
            self._follow(decision)

    def _taken_off(self, now: float, device: int) -> model.Running:
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

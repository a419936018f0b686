"""A policy as the compiled core knows it: its runs, its decision for one state, and its desk.

`play` runs a table of jobs. The live run, MapReduce and the audit of a log keep their queues in
lists: `decide` copies what the policy looks at into arrays and asks `dlsim.cpugpu.core`; nothing
is decided here. A `Desk` is a state that is changed by arrivals, decisions, starts and
completions: who says when a job is done differs between the live run, MapReduce and `play`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.cpugpu import model
from dlsim.cpugpu.core import state as core
from dlsim.cpugpu.core.events import act, begin, decide_from, run
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.intake import Given
from dlsim.cpugpu.model import CLASSES, Decide, Decision, Item, Machine, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats
from dlsim.kernel import clock_origin

#: Rules that look at one job of the main queue; that predict; that need no free device.
AT_HEAD = ("five", "mct", "strict", "round-robin")
_PREDICT = (core.FIVE, core.MCT)
_WHILE_BUSY = (core.MCT, core.TURN)


def rules_of(policy: Policy, reading: Reading) -> core.Rules:
    """Return a policy under its reading as numbers; a plan and a function are both a user's."""
    rule = policy.rule
    own = core.USER if callable(rule) or rule == "ideal" else model.RULES.index(rule)
    target, take, _, estimate = (
        known.index(getattr(policy, name)) for name, known in model.CHOICES.items()
    )
    return core.Rules(
        own, target, take, policy.min_samples, policy.re_explore, float(policy.bound), estimate,
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
        keys = [-np.where(has[:, 0] & has[:, 1], slow / fast, np.inf)]
    elif r.rule == core.SHORTEST:
        keys = list(told.T)
    order = np.empty((len(keys), len(app)), dtype=np.int64)
    rank = np.empty_like(order)
    for k, key in enumerate(keys):
        order[k] = np.lexsort((number, key))
        rank[k, order[k]] = np.arange(len(app))
    nobody = np.empty(0, dtype=np.int64), np.empty(0)
    told = np.ascontiguousarray(told)  # another layout would be compiled once more
    return core.World(arrival, times, column, app, told, has, number, order, rank, gpus,
                      float(np.fmin.reduce(times, axis=None)), *nobody)  # fmt: skip


def state_of(w: core.World, r: core.Rules, names: Sequence[Any], history: History) -> core.State:
    """Return the state before the first event, with what the history knows."""
    numbers = {name: a for a, name in enumerate(names)}
    jobs = np.bincount(w.app, minlength=len(names))
    rooms = 2 * (np.cumsum(jobs) - jobs + np.arange(len(jobs)))
    s = core.fresh_state(w, r, len(names), r.rule in _PREDICT)
    s.known["room"] = rooms[:, None]
    averages: list[list[float]] = [[], []]
    estimate = model.CHOICES["estimate"][r.estimate]
    for (app, cls), record in history.records().items():
        a, c, n = numbers.get(app), CLASSES.index(cls), record.count
        if a is None:
            averages[c] += [record.expected(estimate)] if n else []
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
    waiting = state.main[:1] if policy.rule in AT_HEAD and not r.bound else state.main
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
    rows = np.array([item.row for item in items], float)
    told, has = rows[:, :2], rows[:, 2:] > 0
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


def decider(policy: Policy) -> Decide:
    """Return what decides for a policy; ``ideal`` follows a plan instead."""
    return policy.rule if callable(policy.rule) else decide


class Desk:
    """Queues, devices and history under one policy."""

    def __init__(
        self, machine: Machine, policy: Policy, reading: Reading, history: History,
        decide: Decide | None = None, watch: Callable[[State, Decision], None] | None = None,
    ) -> None:  # fmt: skip
        self.decide = decide or decider(policy)
        self.policy, self.reading, self.watch = policy, reading, watch
        self.state = State.of(machine, history)
        self.decisions: dict[int, Decision] = {}

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
        self.decisions[item.job] = decision

    def _withdrawn(self, decision: Decision) -> Item:
        for queue in [self.state.main, *self.state.queues]:
            for place, item in enumerate(queue):
                if item.job == decision.job:
                    return queue.pop(place)
        raise InputError(f"the policy moved job {decision.job!r}, which does not wait")


_WORDS = pd.Series(core.WORDS).array


class Trace(NamedTuple):
    """What happened to each job, by its place in the queue order; times are from `origin` on.

    `jobs` are records (`dlsim.cpugpu.core.state.JOB`), `rules` why each was moved, `finishes`
    what was predicted on every device: no row where nothing ever is.
    """

    origin: float
    jobs: np.ndarray
    rules: Any
    finishes: Floats


def on_own_clock(given: Given) -> tuple[float, Given]:
    """Return where the engine's clock begins, by the first arrival, and the jobs on it."""
    origin = clock_origin(given.arrival)
    return origin, replace(given, arrival=given.arrival - origin)


def play(
    given: Given, machine: Machine, policy: Policy, reading: Reading, history: History
) -> Trace:
    """Run the jobs; the history learns. A plan or a function is asked for every decision."""
    share, gpus = reading.gpu_cpu_share, machine.gpus
    if policy.rule == "ideal" and share:
        raise InputError("an exhaustive schedule needs times of its own: use gpu_cpu_share=0")
    if machine.cpus and share * gpus >= machine.cpus:
        raise InputError(
            f"gpu_cpu_share={share:g} would leave no CPU to {machine.cpus} CPUs beside "
            f"{gpus} GPUs; it must be below {machine.cpus / max(1, gpus):g}"
        )
    origin, given = on_own_clock(given)
    r, places = rules_of(policy, reading), np.arange(gpus + machine.cpus)
    column = (places >= gpus).astype(np.int64) if given.extra is None else places
    w = world_of(
        r, given.arrival, given.real if given.extra is None else given.times, column, given.app,
        given.told, given.has, np.arange(len(given.labels)), gpus,
    )  # fmt: skip
    names = given.names.tolist()
    s = state_of(w, r, names, history)
    begin(w, r, s)
    if r.rule == core.USER:
        decide = None
        if policy.rule == "ideal":
            decide = follow(ideal_plan(given.arrival.tolist(), given.times, policy.objective))
        desk = Desk(machine, policy, reading, history, decide)
        step = _run_with_desk(desk, given, w, r, s)
    else:
        step = run(w, r, s)
    if step == core.STUCK:
        waits, name = s.jobs["on"][: s.head["coming"][0]] < 0, model.policy_named(policy)[0]
        label = given.labels[int(np.argmax(waits))] if waits.any() else None
        raise InputError(f"policy {name} leaves job {label!r} waiting for ever")
    if r.rule != core.USER:
        _teach(history, names, w, s)
        return Trace(origin, s.jobs, _WORDS.take(s.jobs["word"]), s.finishes)
    decisions = [desk.decisions[j] for j in range(len(given.labels))]
    blank = (math.nan,) * len(places)
    finishes = np.array([decision.finishes or blank for decision in decisions])
    return Trace(origin, s.jobs, pd.Series([one.rule for one in decisions]).array, finishes)


def _run_with_desk(desk: Desk, given: Given, w: core.World, r: core.Rules, s: core.State) -> int:
    """Let a desk decide: it is told what ended and arrived, and what it moved is done here."""
    moved: list[tuple[int, int, int]] = []

    def note(state: State, decision: Decision) -> None:
        held = (d for d, queue in enumerate(state.queues) for i in queue if i.job == decision.job)
        moved.append((decision.job, decision.device, next(held, core.NOBODY)))

    desk.watch, head, ended, arrived = note, s.head[0], 0, 0
    while (step := run(w, r, s)) == core.CHOOSE:
        for job in s.jobs[s.done[ended : head["done"]]]:
            desk.complete(float(job["end"]), int(job["on"]), float(job["seconds"]))
        desk.arrive(float(head["now"]), given.items[arrived : head["coming"]])
        ended, arrived = int(head["done"]), int(head["coming"])
        desk.dispatch(float(head["now"]))
        for job, device, line in moved:
            head["job"], head["on"], head["line"] = job, device, line
            act(w, r, s)
        moved.clear()
        head["phase"] = core.DECIDED
    return int(step)


def _teach(history: History, names: Sequence[str], w: core.World, s: core.State) -> None:
    """Bring a history up to date with a run."""
    pair = 2 * w.app[s.done] + (s.jobs["on"][s.done] >= w.gpus)
    fits = pair.astype(np.uint16) if 2 * len(names) <= 2**16 else pair  # sorted by its digits
    seconds = s.jobs["seconds"][s.done[np.argsort(fits, kind="stable")]].tobytes()
    ends = [0, *(8 * np.cumsum(np.bincount(pair, minlength=2 * len(names)))).tolist()]
    for place, (seen, *known) in enumerate(s.known.ravel().tolist()):
        if not seen:
            continue
        record = history.own(names[place // 2], CLASSES[place % 2])
        if ends[place] < ends[place + 1]:
            record.own_runs().times.frombytes(seconds[ends[place] : ends[place + 1]])
        (record.assigned, record.elsewhere, record.count, record.mean, record.spread,
         record.recent) = known[:6]  # fmt: skip

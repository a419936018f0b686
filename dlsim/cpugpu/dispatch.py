"""A policy as the compiled core knows it: its runs, its decision for one state, and its desk.

`play` runs a table of jobs. MapReduce keeps its queues in lists: a
`Desk` is a state that is changed by arrivals, decisions, starts and completions, and tells them
to `dlsim.cpugpu.core`, which decides; nothing is decided here. `decide` asks it for one state.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter, indexOf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.cpugpu import model
from dlsim.cpugpu.core import state as core
from dlsim.cpugpu.core.events import act, begin, decide_from, run
from dlsim.cpugpu.given import Given, first_of
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.model import CLASSES, Decide, Decision, Item, Machine, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats, floats, instance, theirs, whole
from dlsim.kernel import clock_origin, records

#: Rules that look at one job of the main queue; that predict; that need no free device.
AT_HEAD = ("five", "mct", "strict", "round-robin")
#: Most moves between sub-queues at one instant before a job starts.
MOST_MOVES = 100_000
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


class _Laid:
    """What a desk holds as the core has it: laid out once, then told of all that happens."""

    def __init__(self, state: State, r: core.Rules, waiting: list[Item], room: int = 0) -> None:
        devices, gpus = len(state.classes), state.classes.count("gpu")
        held = [(d, job.item) for d, job in enumerate(state.running) if job is not None]
        held += [(devices + d, item) for d, queue in enumerate(state.queues) for item in queue]
        held += [(core.NOBODY, item) for item in waiting]
        self.items, self.joins = [item for _, item in held], len(held)
        apps = {name: a for a, name in enumerate(dict.fromkeys(i.app for i in self.items))}
        self.at = {item.job: j for j, item in enumerate(self.items)}
        self.places, self.events = np.array([place for place, _ in held], np.int64), list[Any]()
        rows = np.full((len(held) + room, 6), (math.nan, math.nan, 0, 0, 0, 0))
        for j, item in enumerate(self.items):
            rows[j] = *item.row, apps[item.app], item.job
        told, has, (app, number) = rows[:, :2], rows[:, 2:4] > 0, rows[:, 4:].astype(np.int64).T
        self.r = r._replace(share=0.0)
        self.w = world_of(
            self.r, np.zeros(len(rows)), np.where(has, 1.0, told),
            (np.arange(devices) >= gpus).astype(int), app.copy(), told, has, number.copy(), gpus,
        )  # fmt: skip
        self.s = state_of(self.w, self.r, list(apps), state.history)
        for j, job in enumerate(job for job in state.running if job is not None):
            self.s.jobs["start"][j] = job.start

    def fits(self) -> bool:
        """Tell whether there is a cell for one more job that joins a sub-queue."""
        self.joins += 1
        return self.r.rule != core.FIVE or self.joins <= len(self.w.app)

    def decide(self, now: float) -> Decision | None:
        """Decide at an instant, after all that has happened."""
        told = records(len(self.events), core.EVENT, blank=False)
        told[:] = self.events
        self.events.clear()
        head = self.s.head[0]
        head["now"] = now
        places, self.places = self.places, self.places[:0]
        if not decide_from(places, told, self.w, self.r, self.s):
            return None
        finishes = tuple(self.s.finishes[head["job"]].tolist()) if head["foretold"] else ()
        job = self.items[head["job"]].job
        return Decision(job, int(head["on"]), core.WORDS[head["word"]], finishes)


def decide(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """Decide what a built-in policy does in a state: the next job to move, or None."""
    r = rules_of(policy, reading)
    if not _may_decide(state, r):
        return None
    waiting = state.main[:1] if policy.rule in AT_HEAD and not r.bound else state.main
    if r.rule == core.FIFO:  # the first of each class
        heads = [next((i for i in state.main if i.preferred == c), None) for c in CLASSES]
        firsts = [item for item in heads if item is not None]
        waiting = firsts if r.target == core.PREFERRED else state.main[:1]
    return _Laid(state, r, waiting).decide(state.now)


def _may_decide(state: State, r: core.Rules) -> bool:
    """Tell whether a job could be moved, and what the rule needs of the devices is there."""
    waits = bool(state.main) or (r.steal and any(state.queues))
    return waits and (r.rule in _WHILE_BUSY or bool(state.free()))


def user_rule(policy: Policy, rule: Decide) -> Decide:
    """Return a user's function, held to return None or a decision that can be followed."""
    name = f"policy {model.policy_named(policy)[0]}"

    def checked(state: State, policy: Policy, reading: Reading) -> Decision | None:
        with theirs(f"{name} must return None or a Decision"):
            found = rule(state, policy, reading)
            if found is None:
                return None
            told = floats(instance(f"what {name} returns", found, Decision).finishes)
        devices = len(state.classes)
        if told.shape not in ((0,), (devices,)):
            raise InputError(
                f"finishes of {name} must be empty or hold a number for each of {devices} devices,"
                f" got {found.finishes!r}"
            )
        device = whole(f"device of {name}", found.device, 0, devices - 1)
        return found._replace(device=device, finishes=tuple(told.tolist()))

    return checked


class Desk:
    """Queues, devices and history under one policy."""

    def __init__(
        self, machine: Machine, policy: Policy, reading: Reading, history: History,
        decide: Decide | None = None,
    ) -> None:  # fmt: skip
        own = user_rule(policy, policy.rule) if callable(policy.rule) else self._ask
        self.decide = decide or own
        self.policy, self.reading = policy, reading
        self.watch: Callable[[Decision, int], object] | None = None
        self.state = State.of(machine, history)
        self.decisions: dict[int, Decision] = {}
        self._rules = rules_of(policy, reading)
        self._laid: _Laid | None = None

    def arrive(self, now: float, items: Iterable[Item]) -> None:
        """Put jobs at the end of the main queue."""
        self.state.now = now
        before = len(self.state.main)
        self.state.main.extend(items)
        if len(self.state.main) > before:
            self.changed()

    def complete(self, now: float, device: int, seconds: float) -> None:
        """Take a finished job off its device; its time enters the history (rule 5)."""
        state, job = self.state, self._taken_off(now, device)
        state.history.measure(job.item.app, state.classes[device], seconds)
        self._note(core.ENDED, None, device, seconds=seconds)

    def lose(self, now: float, device: int) -> None:
        """Put a job whose device broke back to the head of the main queue; rule 2 forgets it."""
        state, job = self.state, self._taken_off(now, device)
        state.history.withdraw(job.item.app, state.classes[device])
        state.main.insert(0, job.item)
        if self._laid is not None and not self._laid.fits():
            self._laid = None
        self._note(core.LOST, None, device)

    def changed(self) -> None:
        """Forget what the core was told: the state was changed otherwise than here."""
        self._laid = None

    def dispatch(self, now: float) -> list[tuple[int, Item]]:
        """Follow rule 1 and the policy until nothing more can be decided."""
        state, started, moves = self.state, [], 0
        state.now = now
        while True:
            for device, queue in enumerate(state.queues):
                if queue and state.running[device] is None:  # rule 1
                    item = queue.pop(0)
                    state.running[device] = model.Running(item, now)
                    started.append((device, item))
                    moves = 0
                    self._note(core.TAKEN_UP, None, device)
            decision = self.decide(state, self.policy, self.reading)
            if decision is None:
                return started
            moves += self._follow(decision) >= 0
            if moves > MOST_MOVES:
                raise InputError(
                    f"the policy moved job {decision.job!r} and others {moves} times between "
                    "sub-queues and started none; return None when nothing is to be moved"
                )

    def _ask(self, *seen: Any) -> Decision | None:
        """Let the core decide, which is laid out anew only where it was not told of a change."""
        state, r = self.state, self._rules
        if not _may_decide(state, r):
            return None
        if self._laid is None:
            self._laid = _Laid(state, r, state.main, room=16 + len(state.main) // 2)
        return self._laid.decide(state.now)

    def _note(
        self, what: int, item: Item | None, device: int = -1, line: int = -1, seconds: float = 0.0
    ) -> None:
        if (laid := self._laid) is not None:
            job = -1 if item is None else laid.at[item.job]
            laid.events.append((what, job, device, line, self.state.now, seconds))

    def _taken_off(self, now: float, device: int) -> model.Running:
        job = self.state.running[device]
        if job is None:
            raise InputError(f"{self.state.devices[device]} runs nothing that could end")
        self.state.now, self.state.running[device] = now, None
        return job

    def _follow(self, decision: Decision) -> int:
        """Move a job, and return the line that it left: a sub-queue, or -1 the main queue."""
        state = self.state
        line, item = self._withdrawn(decision)
        cls = state.classes[decision.device]
        if cls not in item.declared:
            raise InputError(f"job {item.job} ({item.app}) has no version for a {cls}")
        state.queues[decision.device].append(item)
        state.history.assign(item.app, cls)
        self.decisions[item.job] = decision
        self._note(core.MOVED, item, decision.device, line)
        if self.watch is not None:
            self.watch(decision, line)
        return line

    def _withdrawn(self, decision: Decision) -> tuple[int, Item]:
        """Take a job that was decided out of its line."""
        for line, queue in enumerate([self.state.main, *self.state.queues], core.NOBODY):
            with suppress(ValueError):
                return line, queue.pop(indexOf(map(_JOB, queue), decision.job))
        raise InputError(f"the policy moved job {decision.job!r}, which does not wait")


_WORDS = pd.Series(core.WORDS).array
_JOB = attrgetter("job")


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
        label = first_of(given.labels, waits) if waits.any() else None
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
    desk.watch = lambda one, line: moved.append((one.job, one.device, line))
    head, ended, arrived = s.head[0], 0, 0
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

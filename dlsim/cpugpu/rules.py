"""Policies as the compiled core knows them, and its decision for one state in Python.

The live run, MapReduce and the audit of a log keep their queues in lists: `decide` copies what
the policy looks at into arrays and asks `dlsim.cpugpu.core`. Nothing is decided here.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu.core import state as core
from dlsim.cpugpu.core.events import decide_from
from dlsim.cpugpu.history import History, Record
from dlsim.cpugpu.model import (
    CLASSES,
    ESTIMATES,
    RULES,
    SWITCHES,
    TAKES,
    Decide,
    Decision,
    Item,
    Policy,
    Reading,
    State,
)  # fmt: skip
from dlsim.given import Floats

_TARGETS = {"gpu": core.GPU, "cpu": core.CPU, "preferred": core.PREFERRED}
#: Rules that look at one job of the main queue; that predict; that need no free device.
_AT_HEAD = (core.FIVE, core.MCT, core.STRICT, core.TURN)
_PREDICT = (core.FIVE, core.MCT)
_WHILE_BUSY = (core.MCT, core.TURN)


def rules_of(policy: Policy, reading: Reading) -> core.Rules:
    """Return a policy under its reading as numbers; a plan and a function are both a user's."""
    own = core.USER if callable(policy.rule) or policy.rule == "ideal" else RULES.index(policy.rule)
    return core.Rules(
        own, _TARGETS[policy.target], TAKES.index(policy.take), policy.min_samples,
        policy.re_explore, float(policy.bound), ESTIMATES.index(policy.estimate), policy.steal,
        reading.both_free == "best",
        SWITCHES["unknown_remaining"].index(reading.unknown_remaining),
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
    rooms, rows, base, size = np.cumsum(jobs) - jobs, [], [np.empty(0)], 0
    averages: list[list[float]] = [[], []]
    estimate = ESTIMATES[r.estimate]
    for (app, cls), record in history.records().items():
        a, c = numbers.get(app), CLASSES.index(cls)
        if a is None:
            averages[c] += [record.expected(estimate)] if record.count else []
            continue
        window, split = np.empty(0), 0
        if r.rule == core.FIVE and r.estimate == core.MEDIAN and record.count:
            window, split = _around_the_middle(record, int(jobs[a]))
        row = (1, record.assigned, record.elsewhere, record.count, record.mean, record.spread,
               record.recent, math.nan, math.nan, core.NOBODY, rooms[a], size, size + split,
               size + len(window), 0, 0, record.count % 2)  # fmt: skip
        rows.append((a, c, row))
        base.append(window)
        size += len(window)
    s = core.fresh_state(w, r, len(names), np.concatenate(base), r.rule in _PREDICT)
    s.known["room"] = rooms[:, None]
    for a, c, row in rows:
        s.known[a, c] = row
    for c, known in enumerate(averages):
        s.averages[c] = (len(known), math.fsum(known), 0.0)
    return s


def _around_the_middle(record: Record, jobs: int) -> tuple[Floats, int]:
    """Return as many sorted times as so many jobs can move the median over, and its place."""
    lower = (record.count + 1) // 2
    start = max(0, lower - jobs - 1)
    return record.runs.ranked(record.count)[start : lower + jobs + 1], lower - start


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
DECIDE: dict[str, Decide] = {rule: decide for rule in RULES if rule != "ideal"}

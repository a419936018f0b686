"""One run: the compiled loop on a table of jobs, and what the history learns of it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu import model
from dlsim.cpugpu.core import state as core
from dlsim.cpugpu.core.events import act, begin, run
from dlsim.cpugpu.dispatch import Desk, rules_of, state_of, world_of
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.intake import Given
from dlsim.cpugpu.model import CLASSES, Decision, Machine, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats
from dlsim.kernel import clock_origin

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
    decisions = [desk.moves[j].decision for j in range(len(given.labels))]
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

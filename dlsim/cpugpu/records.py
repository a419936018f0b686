"""The log of decisions: written with all their inputs, read back, computed again, explained."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import Decision, Item, Machine, Policy, Reading, Running, State
from dlsim.cpugpu.rules import DECIDE
from dlsim.errors import InputError
from dlsim.files import DOCUMENT, LIMIT, StrPath, numbered_lines, parse_json, write_text

#: What each rule says, for `explain`.
WORDS = {
    "R0": "nothing is measured yet: the first free device",
    "R2": "never assigned to this class: tried, to fill the history",
    "R2*": "never assigned to this class, both free: tried, to fill the history",
    "R3": "the free device is the faster one",
    "R3*": "both free: the faster one",
    "R4": "ends sooner on the slower, free device",
    "R4q": "ends sooner behind the busy device: into its sub-queue",
    "steal": "taken from the end of another sub-queue, where it would end later",
}
#: What reading a line raises that is not as `save` wrote it.
BROKEN = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError,
    StopIteration,
)  # fmt: skip


def _plain(value: float) -> float | None:
    """JSON knows no NaN and no infinity: null, and a number beyond all others."""
    return None if math.isnan(value) else min(value, 1.7e308)


def _number(value: float | None) -> float:
    if value is None:
        return math.nan
    return math.inf if value >= 1.7e308 else float(value)


def _item(item: Item) -> list[Any]:
    return [item.job, item.app, {cls: _plain(time) for cls, time in item.declared.items()}]


def _as_item(row: list[Any]) -> Item:
    return Item(row[0], row[1], {cls: _number(time) for cls, time in row[2].items()})


class Entry(NamedTuple):
    """A decision and what it was based on."""

    state: State
    decision: Decision


def _dump(state: State, decision: Decision) -> dict[str, Any]:
    return {
        "now": state.now,
        "main": [_item(item) for item in state.main],
        "running": [job and [_item(job.item), job.start] for job in state.running],
        "queues": [[_item(item) for item in queue] for queue in state.queues],
        "history": [
            [app, cls, record.assigned, record.elsewhere, record.times.copy()]
            for (app, cls), record in sorted(state.history.records().items())
        ],
        "decision": [
            decision.job, decision.device, decision.rule, [_plain(t) for t in decision.finishes],
        ],
    }  # fmt: skip


def _load(row: dict[str, Any], machine: Machine) -> Entry:
    history = History()
    for app, cls, assigned, elsewhere, times in row["history"]:
        for time in times:
            history.measure(app, cls, time)
        history.restore(app, cls, assigned, elsewhere)
    state = State.of(machine, history)
    state.now, state.main = row["now"], [_as_item(item) for item in row["main"]]
    state.queues = [[_as_item(item) for item in queue] for queue in row["queues"]]
    state.running = [job and Running(_as_item(job[0]), job[1]) for job in row["running"]]
    job, device, rule, finishes = row["decision"]
    return Entry(state, Decision(job, device, rule, tuple(map(_number, finishes))))


@dataclass
class Log:
    """Every decision of a run, in order."""

    machine: Machine
    name: str
    policy: Policy
    reading: Reading
    devices: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def write(self, state: State, decision: Decision) -> None:
        """Add a decision with the state it was made in."""
        self.rows.append(_dump(state, decision))

    def entries(self) -> Iterator[Entry]:
        """Yield every decision with the state it was made in."""
        for row in self.rows:
            yield _load(row, self.machine)

    def audit(self) -> list[tuple[Decision, Decision | None]]:
        """Decide everything again by the pure policy, from the logged inputs."""
        rule = self.policy.rule
        decide = rule if callable(rule) else DECIDE.get(rule)
        if decide is None:
            raise InputError(f"decisions of {rule!r} cannot be computed one by one")
        wrong = []
        for number, (state, old) in enumerate(self.entries(), 1):
            try:
                new = decide(state, self.policy, self.reading)
            except BROKEN as error:
                if callable(rule):
                    raise
                why = f"{type(error).__name__}: {error}"
                raise InputError(f"decision {number}: inputs that cannot be ({why})") from error
            if repr(old) != repr(new):
                wrong.append((old, new))
        return wrong

    def save(self, path: StrPath) -> None:
        """Write the log as lines of JSON, whole or not at all."""
        if callable(self.policy.rule):
            raise InputError("the log of a policy that is a function cannot be written")
        head = {
            "log": "dlsim live 1", "machine": asdict(self.machine), "name": self.name,
            "policy": asdict(self.policy), "reading": asdict(self.reading),
            "devices": self.devices,
        }  # fmt: skip
        lines = [json.dumps(row, allow_nan=False) for row in [head, *self.rows]]
        write_text(path, "\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: StrPath, limit: int = LIMIT) -> "Log":
        """Read a log that `save` wrote."""
        log, number = None, 0
        try:
            # a line holds every time measured so far: it is long in a long session
            for number, line in numbered_lines(path, limit, longest=DOCUMENT):
                row = parse_json(path, line.decode(), number)
                if log is None:
                    log = cls._begun(row)
                else:
                    log._words(_load(row, log.machine))
                    log.rows.append(row)
            if log is None:
                raise ValueError("empty")
        except BROKEN as error:
            if str(path) in str(error):
                raise
            why = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}, line {number}: not the log of a live run ({why})") from error
        return log

    @classmethod
    def _begun(cls, head: dict[str, Any]) -> "Log":
        if head["log"] != "dlsim live 1":
            raise ValueError("another kind of log")
        policy, reading = Policy(**head["policy"]), Reading(**head["reading"])
        return cls(Machine(**head["machine"]), head["name"], policy, reading, head["devices"])

    def explain(self) -> Iterator[str]:
        """Say in words why each job went where it went."""
        yield from map(self._words, self.entries())

    def _words(self, entry: Entry) -> str:
        """Say one decision in words, as only one that is whole can be said."""
        state, decision = entry
        waiting = [state.main, *state.queues]
        item = next(i for queue in waiting for i in queue if i.job == decision.job)
        word, names = WORDS.get(decision.rule, self.name), self.machine.devices
        lines = [
            f"{state.now:.3f} s: job {item.job} {item.app} -> {names[decision.device]} "
            f"({decision.rule}: {word})"
        ]
        for d, name in enumerate(names):
            lines.append(f"    {name}: {_situation(state, d, item, decision)}")
        return "\n".join(lines)


def _situation(state: State, device: int, item: Item, decision: Decision) -> str:
    """Say what a device does, what is known of the job there, when it would end."""
    job, record = state.running[device], state.history.record(item.app, state.classes[device])
    doing = f"runs {job.item.app} since {job.start:.3f}" if job else "free"
    queue = len(state.queues[device])
    known = f"{record.mean:.3f} s +- {record.std:.3f} of {record.count} runs"
    parts = [doing, f"{queue} waiting", known if record.count else "not measured"]
    if decision.finishes and not math.isnan(decision.finishes[device]):
        parts.append(f"would end at {decision.finishes[device]:.3f}")
    return ", ".join(parts)

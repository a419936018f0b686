"""The log of a live run: what was decided, started and ended, written as it happens.

A decision's row holds exactly what its rule used, so that it can be computed again, and is
written before the job starts. A job is done once its end is written, and only once: a job
that was running when the session was killed has no end, and runs again.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd

from dlsim.cpugpu.dispatch import AT_HEAD, decider
from dlsim.cpugpu.history import UNSEEN, History, Record, Runs
from dlsim.cpugpu.live.sizes import Sizes
from dlsim.cpugpu.model import CLASSES, Decision, Item, Machine, Policy, Reading, Running, State
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.ledger import BROKEN, EventLog, kind_of_log, said

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
#: What a row is of: a start of the session, a job of it, a decision, a job's start, its end.
EVENTS = ("run", "job", "decision", "start", "end")
#: What the end of a job that is done tells.
MEASURED = ("seconds", "transfer", "compiled", "signature", "agrees")


class LogFile(EventLog):
    """The rows of one live run in an SQLite file."""

    KIND = kind_of_log(0x646C736C, "a log of a live run", "first: dlsim live run", EVENTS)


def _plain(value: float) -> float | None:
    """JSON knows no NaN and no infinity: null, and a number beyond all others."""
    return None if math.isnan(value) else min(value, 1.7e308)


def _number(value: float | None) -> float:
    if value is None:
        return math.nan
    return math.inf if value >= 1.7e308 else float(value)


def _ranges(items: Iterable[Item]) -> list[list[int]]:
    """Return the numbers of waiting jobs as ranges: a queue is mostly one or two of them."""
    found: list[list[int]] = []
    for item in items:
        if found and item.job == found[-1][1] + 1:
            found[-1][1] = item.job
        else:
            found.append([item.job, item.job])
    return found


class Entry(NamedTuple):
    """A decision and what it was based on."""

    state: State
    decision: Decision


class Asked(History):
    """What a rule may use of a state: the jobs at hand; the others together, where it guesses."""

    def __init__(self, sizes: Sizes, state: State, policy: Policy, reading: Reading) -> None:
        is_own, main = callable(policy.rule), state.main
        if policy.rule in AT_HEAD and not policy.bound:
            main = main[:1]
        placed = [
            (item.app, cls)
            for job, queue, cls in zip(state.running, state.queues, state.classes, strict=True)
            for item in [*([job.item] if job else []), *queue]
        ]
        apps = dict.fromkeys([*(app for app, _ in placed), *(item.app for item in main)])
        self.known = {(app, cls): sizes.record(app, cls) for app in apps for cls in CLASSES}
        # the mean of all the others stands for a time that is not known, and for nothing else
        is_guessed = policy.rule == "five" and reading.unknown_remaining == "avg" and any(
            not self.known[pair].count for pair in placed
        )  # fmt: skip
        others: dict[str, list[float]] = {cls: [] for cls in CLASSES}
        for (app, cls), record in sizes.history.records().items() if is_guessed or is_own else ():
            if is_own:  # a function may ask for any
                self.known.setdefault((app, cls), record)
            elif app not in apps and record.count:
                others[cls].append(record.expected(policy.estimate))
        self.others = {cls: [len(known), math.fsum(known)] for cls, known in others.items()}
        self._records = _with_others(self.known, self.others)


def _with_others(
    records: dict[tuple[str, str], Record], others: dict[str, list[Any]]
) -> dict[tuple[str, str], Record]:
    """Add as many other applications, whose times sum to what they sum to."""
    found = {pair: one for pair, one in records.items() if one is not UNSEEN}
    for cls, (count, whole) in others.items():
        first, nothing = (Record(1, 0, 1, x, 0.0, x, Runs([x])) for x in (float(whole), 0.0))
        for k in range(count):
            found[f"\0{k}", cls] = nothing if k else first
    return found


#: What a table of jobs says of one that has only arrived; the last two are for the log alone.
FATE: dict[str, Any] = {
    "app": "", "arrival": 0.0, "decided": math.nan, "turn": -1, "device": "", "backend": "",
    "start": math.nan, "end": math.nan, "seconds": math.nan, "transfer": math.nan, "rule": "",
    "predicted": math.nan, "losses": 0, "error": "", "agrees": False, "compiled": 0.0,
    "output": "", "is_over": False, "signature": [],
}  # fmt: skip


def _follow(items: dict[int, Item], kind: str, row: dict[str, Any]) -> None:
    """Let the jobs that wait or run be what an event makes them."""
    if kind == "job":
        declared = {cls: _number(time) for cls, time in row["declared"].items()}
        items[row["job"]] = Item(row["job"], row["app"], declared)
    elif kind == "end" and row["without"]:
        item = items[row["job"]]
        rest = {cls: time for cls, time in item.declared.items() if cls != row["without"]}
        items[item.job] = replace(item, declared=rest)


def _load(row: dict[str, Any], items: dict[int, Item], machine: Machine) -> Entry:
    """Return a decision as its row tells it, and the state that its rule saw."""

    def queue(ranges: list[list[int]]) -> list[Item]:
        return [items[job] for first, last in ranges for job in range(first, last + 1)]

    known = {
        (app, cls): Record(*[*counts, *map(_number, times), Runs(runs)])
        for app, cls, counts, times, runs in row["known"]
    }
    state = State.of(machine, History())
    state.history._records = _with_others(known, row["others"])
    state.now, state.main = row["now"], queue(row["main"])
    state.queues = [queue(ranges) for ranges in row["queues"]]
    state.running = [job and Running(items[job[0]], job[1]) for job in row["running"]]
    job, device, rule, finishes = row["decision"]
    return Entry(state, Decision(job, device, rule, tuple(map(_number, finishes))))


@dataclass
class Log:
    """Every event of a run, in order; written to a file as it comes where there is one."""

    machine: Machine
    name: str
    policy: Policy
    reading: Reading
    devices: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    file: LogFile | None = field(default=None, repr=False, compare=False)
    items: dict[int, Item] = field(default_factory=dict, repr=False, compare=False)
    fates: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    decisions: int = 0
    _later: list[tuple[str, dict[str, Any]]] = field(default_factory=list, repr=False)

    # --- writing --------------------------------------------------------------------------

    def begin(self, items: Iterable[tuple[Item, float]], **who: Any) -> None:
        """Write that a session starts, or goes on, and with which jobs."""
        if self.file is not None and callable(self.policy.rule):
            raise InputError("the log of a policy that is a function cannot be written")
        rule = {"rule": "?"} if callable(self.policy.rule) else asdict(self.policy)
        head = {
            "log": "dlsim live 2", "machine": asdict(self.machine), "name": self.name,
            "policy": rule, "reading": asdict(self.reading), "devices": self.devices, **who,
        }  # fmt: skip
        self.add([("run", head), *(
            ("job", {"job": item.job, "app": item.app, "arrival": arrival,
                     "declared": {cls: _plain(time) for cls, time in item.declared.items()}})
            for item, arrival in items
        )])  # fmt: skip

    def write(self, state: State, decision: Decision, asked: Asked) -> None:
        """Keep a decision with what its rule used, to be written before the job starts."""
        self.add([("decision", {
            "now": state.now, "main": _ranges(state.main),
            "running": [job and [job.item.job, job.start] for job in state.running],
            "queues": [_ranges(queue) for queue in state.queues],
            "known": [
                [app, cls, [record.assigned, record.elsewhere, record.count],
                 [_plain(time) for time in (record.mean, record.spread, record.recent)],
                 record.times if self.policy.estimate == "median" else []]
                for (app, cls), record in asked.known.items()
            ],
            "others": asked.others,
            "decision": [decision.job, decision.device, decision.rule,
                         [_plain(time) for time in decision.finishes]],
        })], later=True)  # fmt: skip

    def add(self, rows: list[tuple[str, dict[str, Any]]], later: bool = False) -> None:
        """Take notice of events, and write them, all or none, with those kept for `later`."""
        for kind, row in rows:
            self._take(kind, row)
        self._later += rows
        if not later:
            rows, self._later = self._later, []
            if self.file is not None and rows:
                self.file.write(rows)

    def _take(self, kind: str, row: dict[str, Any]) -> None:
        """Take notice of an event."""
        self.rows.append((kind, row))
        _follow(self.items, kind, row)
        if kind == "job":
            told = {"app": row["app"], "arrival": row["arrival"]}
            self.fates.setdefault(row["job"], FATE | told)
        elif kind == "decision":
            job, device, rule, finishes = row["decision"]
            predicted = _number(finishes[device]) if finishes else math.nan
            self.fates[job] |= {"decided": row["now"], "rule": rule, "turn": self.decisions,
                                "predicted": predicted}  # fmt: skip
            self.decisions += 1
        elif kind == "start":
            where = {name: row[name] for name in ("backend", "output")}
            device = self.machine.devices[row["device"]]
            self.fates[row["job"]] |= {"start": row["now"], "device": device, **where}
        elif kind == "end":
            fate, names = self.fates[row["job"]], MEASURED if row["outcome"] == "done" else ()
            if fate["is_over"]:
                raise InputError(f"job {row['job']} ended before; it cannot end twice")
            fate |= {"end": row["now"], "is_over": row["final"], "error": row["error"]}
            fate |= {name: row[name] for name in names}
            fate["losses"] += row["outcome"] == "lost"

    def end(self, job: int, now: float, outcome: str, final: bool = True, **more: Any) -> None:
        """Write how a run of a job ended: done, failed or lost, and whether for good."""
        told = {"job": job, "now": now, "outcome": outcome, "final": final}
        self.add([("end", {**told, "without": "", "error": "", **more})])

    # --- reading --------------------------------------------------------------------------

    @classmethod
    def read(cls, path: StrPath) -> "Log":
        """Read a log, of a run that goes on or has ended in whatever way."""
        log: Log | None = None

        def take(kind: str, row: dict[str, Any]) -> None:
            nonlocal log
            if log is None:
                if row["log"] != "dlsim live 2":
                    raise ValueError("another kind of log")
                policy, reading = Policy(**row["policy"]), Reading(**row["reading"])
                log = cls(Machine(**row["machine"]), row["name"], policy, reading, row["devices"])
            log._take(kind, row)
            if kind == "decision":
                log._words(_load(row, log.items, log.machine))

        with LogFile(path, create=False) as file:
            file.tell(take)
        if log is None:
            raise InputError(f"{path}: a log without any event; run again")
        return log

    @property
    def head(self) -> dict[str, Any]:
        """The last start of the session: who ran it, with which jobs."""
        return next(row for kind, row in reversed(self.rows) if kind == "run")

    @property
    def now(self) -> float:
        """The last moment that it tells."""
        return max((row["now"] for _, row in self.rows if "now" in row), default=0.0)

    @property
    def left(self) -> list[int]:
        """The jobs that have not ended for good."""
        return [job for job, fate in self.fates.items() if not fate["is_over"]]

    def table(self) -> pd.DataFrame:
        """Return what became of each job."""
        table = pd.DataFrame([self.fates[job] for job in sorted(self.fates)])
        return table.drop(columns=["is_over", "signature"]).rename_axis("job")

    def entries(self) -> Iterator[Entry]:
        """Yield every decision with the state it was made in."""
        items: dict[int, Item] = {}
        for kind, row in self.rows:
            _follow(items, kind, row)
            if kind == "decision":
                yield _load(row, items, self.machine)

    def audit(self) -> list[tuple[Decision, Decision | None]]:
        """Decide everything again by the pure policy, from the logged inputs."""
        rule, decide, wrong = self.policy.rule, decider(self.policy), []
        if rule == "ideal":
            raise InputError(f"decisions of {rule!r} cannot be computed one by one")
        for number, (state, old) in enumerate(self.entries(), 1):
            try:
                new = decide(state, self.policy, self.reading)
            except BROKEN as error:
                if callable(rule):
                    raise
                why = f"inputs that cannot be ({said(error)})"
                raise InputError(f"decision {number}: {why}") from error
            if repr(old) != repr(new):
                wrong.append((old, new))
        return wrong

    def explain(self) -> Iterator[str]:
        """Say in words why each job went where it went."""
        yield from map(self._words, self.entries())

    def _words(self, entry: Entry) -> str:
        """Say one decision in words, as only one that is whole can be said."""
        state, decision = entry
        waiting = [state.main, *state.queues]
        item = next(i for queue in waiting for i in queue if i.job == decision.job)
        word, names = WORDS.get(decision.rule, self.name), self.machine.devices
        lines = [f"{state.now:.3f} s: job {item.job} {item.app} -> {names[decision.device]} "
                 f"({decision.rule}: {word})"]  # fmt: skip
        for d, name in enumerate(names):
            job, record = state.running[d], state.history.record(item.app, state.classes[d])
            doing = f"runs {job.item.app} since {job.start:.3f}" if job else "free"
            known = f"{record.mean:.3f} s +- {record.std:.3f} of {record.count} runs"
            parts = [doing, f"{len(state.queues[d])} waiting"]
            parts.append(known if record.count else "not measured")
            if decision.finishes and not math.isnan(decision.finishes[d]):
                parts.append(f"would end at {decision.finishes[d]:.3f}")
            lines.append(f"    {name}: {', '.join(parts)}")
        return "\n".join(lines)

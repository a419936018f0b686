"""Schedule real work on real devices, by the policy that drives the simulation.

The desk of `dlsim.cpugpu.dispatch` decides; a crew runs; measured times enter the history.
Every event is logged as it happens, every decision with all it was based on.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim import processes
from dlsim.cpugpu import Decision, History, Machine, Policy, Reading, Store
from dlsim.cpugpu.dispatch import Desk, decide, decider
from dlsim.cpugpu.given import need_known
from dlsim.cpugpu.live.crew import Crew
from dlsim.cpugpu.live.devices import Slot
from dlsim.cpugpu.live.kernels import Kernel, agree
from dlsim.cpugpu.live.log import Asked, Log, LogFile
from dlsim.cpugpu.live.sizes import Sizes
from dlsim.cpugpu.live.work import App, LiveJob, Outcome, Task, perform
from dlsim.cpugpu.model import MOST_COUNT, Item, Measures, State, policy_named
from dlsim.errors import InputError
from dlsim.files import StrPath, placed
from dlsim.given import column, number, whole
from dlsim.ledger import said

#: A job whose worker died so often is given up.
MOST_LOSSES = 3


@dataclass
class LiveRun(Measures):
    """What a live run did."""

    jobs: pd.DataFrame
    history: History
    log: Log = field(repr=False)


def _keep(
    store: Store | None, host: str, slot: Slot, job: LiveJob,
    outcome: Outcome | None, what: str = "done", error: str = "",
) -> None:  # fmt: skip
    """Write to the store what became of a run: its time, or why it has none."""
    if store is None:
        return
    name, cls = job.kernel.name, slot.name[:3]
    size = "" if job.size is None else str(job.size)
    where = {"size": size, "host": host, "device": slot.kind}
    if outcome is not None:
        store.add(name, cls, outcome.seconds, transfer=outcome.transfer, **where)
    else:
        store.note(name, cls, what, error, **where)


class _Session:
    """One live run: the desk, the clock, and the log of what became of each job."""

    def __init__(
        self, jobs: Sequence[LiveJob], crew: Crew, devices: Sequence[Slot], log: Log,
        sizes: Sizes, store: Store | None, clock: Callable[[], float], outputs: Path | None,
    ) -> None:  # fmt: skip
        self.jobs, self.crew, self.devices, self.log = jobs, crew, devices, log
        self.sizes, self.store, self.outputs = sizes, store, outputs
        self.clock, self.zero = clock, clock() - log.now
        self.rule = decider(log.policy)
        self.desk = Desk(log.machine, log.policy, log.reading, sizes.history, decide=self._decide)
        fates = log.fates.values()
        self.first = {fate["app"]: fate["signature"] for fate in fates if fate["signature"]}
        self.running: dict[Future[Outcome], tuple[int, Item]] = {}
        self.limits: dict[Future[Outcome], float] = {}  # of functions: a command ends by itself
        self.late: set[Future[Outcome]] = set()
        self.coming: dict[Future[int], int] = {}  # workers that are started anew
        self.held: dict[int, Item] = {}  # what waits for them

    def now(self) -> float:
        return self.clock() - self.zero

    def _decide(self, state: State, policy: Policy, reading: Reading) -> Decision | None:
        """Let the rule decide by what is known, also of other sizes; log what it used."""
        asked = state.history = Asked(self.sizes, state, policy, reading)
        try:
            decision = self.rule(state, policy, reading)
        finally:
            state.history = self.sizes.history
        if decision is not None and decision.job in self.log.items:
            self.log.write(state, decision, asked)
        return decision

    def go(self) -> None:
        """Complete, arrive, dispatch, until every job has an end."""
        left = [self.log.items[job] for job in sorted(self.log.left)]
        while True:
            now = self.now()
            arrived = [item for item in left if self.jobs[item.job].arrival <= now]
            left = left[len(arrived) :]
            self.desk.arrive(now, arrived)
            self._start(now)
            if not (self.running or self.held or left):
                break
            busy: list[Future[Any]] = [*self.running, *self.coming]
            moments = [*self.limits.values(), *(self.jobs[item.job].arrival for item in left[:1])]
            patience = max(0.0, min(moments) - self.now()) if moments else None
            if not busy:
                time.sleep(patience or 0.0)
                continue
            for future in wait(busy, patience, FIRST_COMPLETED).done:
                if self.coming.pop(future, None) is None:
                    self._end(future)
            for late, moment in list(self.limits.items()):
                if moment <= self.now():
                    del self.limits[late]
                    self.late.add(late)
                    self.crew.end(self.running[late][0])
        for item in self.desk.state.main:
            raise InputError(f"the policy leaves {item.app} waiting for ever")

    def _start(self, now: float) -> None:
        """Start what the desk decides, once decisions and starts are written."""
        tasks, rows = [], []
        self.held |= dict(self.desk.dispatch(now))
        for device in [one for one in self.held if one not in self.coming.values()]:
            item, slot = self.held.pop(device), self.devices[device]
            job = self.jobs[item.job]
            is_app = isinstance(job.kernel, App)
            output = str(self.outputs / f"{item.job}.txt") if self.outputs and is_app else ""
            where = {"backend": slot.backend, "output": output}
            rows.append(("start", {"job": item.job, "device": device, "now": now, **where}))
            work = self.crew.pack(job.kernel)
            tasks.append((device, item, Task(work, slot, job.size, job.args, output)))
        self.log.add(rows)
        for device, item, task in tasks:
            future, work = self.crew.submit(device, perform, task), self.jobs[item.job].kernel
            self.running[future] = device, item
            is_command = isinstance(getattr(work, task.slot.name[:3], None), tuple)
            if work.limit < math.inf and not is_command:
                self.limits[future] = self.now() + work.limit

    def _end(self, future: Future[Outcome]) -> None:
        """Log how a run ended before all else; learn its time, or let its job be tried again."""
        (device, item), now = self.running.pop(future), self.now()
        self.limits.pop(future, None)
        error, is_late = future.exception(), future in self.late
        if is_late or isinstance(error, self.crew.lost):
            self.coming[self.crew.ready(device)] = device
        if error is None:
            self._measured(item, device, now, future.result())
        elif is_late:
            limit = self.jobs[item.job].kernel.limit
            self._failed(item, device, now, f"ran longer than its limit of {limit:g} s", False)
        else:
            self._failed(item, device, now, said(error), isinstance(error, self.crew.lost))

    def _measured(self, item: Item, device: int, now: float, outcome: Outcome) -> None:
        """Learn the time of a run that is done, unless something was compiled in it."""
        job, slot = self.jobs[item.job], self.devices[device]
        reference = self.first.setdefault(item.app, outcome.signature)
        told = outcome._asdict() | {"agrees": agree(reference, outcome.signature)}
        self.log.end(item.job, now, "done", **told)
        if outcome.is_clean:
            self.desk.complete(now, device, outcome.seconds)
            self.sizes.measured(item.app, slot.name[:3], outcome.seconds)
            _keep(self.store, self.crew.host, slot, job, outcome)
        else:
            self.desk.fail(now, device)
            self.sizes.history.withdraw(item.app, slot.name[:3])

    def _failed(self, item: Item, device: int, now: float, error: str, is_lost: bool) -> None:
        """Try a job again: as it was if its worker died, else without the version that failed."""
        slot, what = self.devices[device], "lost" if is_lost else "failed"
        losses = self.log.fates[item.job]["losses"] + is_lost
        work = self.jobs[item.job].kernel
        is_final = losses >= MOST_LOSSES if is_lost else len(item.declared) == 1 or work.is_one
        told = {} if is_lost else {"without": slot.name[:3]}
        if is_final:
            told = {"error": f"its worker died {losses} times" if is_lost else error}
        self.log.end(item.job, now, what, is_final, **told)
        _keep(self.store, self.crew.host, slot, self.jobs[item.job], None, what, error)
        if is_lost and not is_final:
            self.desk.lose(now, device)
        else:
            self.desk.fail(now, device, None if is_final else self.log.items[item.job])


def _item(
    j: int, job: LiveJob, policy: Policy, sizes: Sizes, machine: Machine, classes: Iterable[str]
) -> Item:
    """Return a job as the policy sees it; declared times are learned means."""
    told = {
        c: sizes.record(job.app, c).expected(policy.estimate) for c in classes if machine.count(c)
    }
    if not told:
        raise InputError(f"job {j} ({job.app}) has a version for {' and '.join(job.kernel.classes)}"
                         " only, and this machine has no such device")  # fmt: skip
    unknown = any(map(math.isnan, told.values()))
    if unknown and policy.rule != "five" and not callable(policy.rule):
        raise InputError(
            f"policy {policy.rule!r} needs declared times, and {job.app} was not measured on "
            "both devices; first: dlsim live calibrate"
        )
    return Item(j, job.app, told)


def identity(
    jobs: Sequence[LiveJob], devices: Sequence[Slot], name: str, policy: Policy, reading: Reading
) -> str:
    """Return what tells one run from another: jobs, devices, policy, reading."""

    def told(version: Any) -> str:
        name = getattr(version, "__qualname__", "")
        return f"{version.__module__}:{name}" if name else str(version)

    rows = [
        (job.app, job.arrival, job.args, [
            getattr(job.kernel, cls) for cls in job.kernel.classes if isinstance(job.kernel, App)])
        for job in jobs
    ]  # fmt: skip
    there = [(slot.name, slot.kind) for slot in devices]
    parts = [name, asdict(policy), asdict(reading), rows, there]
    whole = json.dumps(parts, default=told)
    return hashlib.sha256(whole.encode()).hexdigest()


def _opened(stack: ExitStack, path: StrPath, fresh: Log, same: str) -> Log:
    """Return the log to write to: a new one, or that of the same run, which goes on."""
    file = stack.enter_context(LogFile(path))
    stack.enter_context(file.alone())
    log = Log.read(path) if file.rows() else fresh
    log.file = file
    if log.rows:
        if not log.left:
            raise InputError(f"{path}: the log of a run whose jobs are all done; name another file")
        if log.head["identity"] != same:
            raise InputError(
                f"{path}: the log of another run (jobs, devices, policy or reading), with "
                f"{len(log.left)} jobs left; the same command goes on with them; or name another "
                "file with --log, or move this one away"
            )
        processes.end_run(log.head["mark"])  # what a killed session left running
        log.devices = fresh.devices
    return log


def run_live(
    jobs: Sequence[LiveJob], crew: Crew, devices: Sequence[Slot],
    policy: str | Policy = "history", reading: Reading | None = None,
    history: History | None = None, store: Store | None = None,
    clock: Callable[[], float] = time.monotonic, log: StrPath | None = None,
) -> LiveRun:  # fmt: skip
    """Run work on devices, each where the policy sends it.

    Parameters
    ----------
    jobs : sequence of LiveJob
        Kernels or `App` with size, arrival and arguments, sorted by arrival.
    crew : Crew
        Who runs them, entered as a context.
    devices : sequence of Slot
        Of `slots`, in the order of the crew.
    policy : str or Policy
        Any but ideal. Those that need declared times take what was measured.
    reading : Reading, optional
        Its gpu_cpu_share has no effect.
    history : History, optional
        What is known at the start; else what `store` holds of this host and these devices.
    store : Store, optional
        Measured runs go there as they end.
    clock : callable
        Seconds.
    log : path, optional
        Every event is written there as it happens. Where it holds the same run, begun and not
        ended, only the jobs left are run: those without a logged end.

    Returns
    -------
    LiveRun
        Table of jobs, history, log.

    Raises
    ------
    InputError
        For jobs, devices or a policy that cannot be used, and a log of another run.

    Notes
    -----
    Every job brings its data and takes its result back, which its time holds: nothing lies on a
    device for the next one, so that what is learned has the transfer term of StarPU's dmda
    (`dlsim.cpugpu.run_graph`) in it.

    A kernel is compiled and run at the size of its first job before the session. A time in
    which something was compiled is not learned: a kernel is run once more, a function is
    tried again by rule 2. A job whose worker dies goes back to the head of the main queue
    and is decided anew; one that fails on one device is tried on the other.
    """
    name, policy = policy_named(policy)
    if policy.rule == "ideal":
        raise InputError(f"policy {name} knows all times in advance: simulate only")
    machine = Machine(*(sum(s.name[:3] == cls for s in devices) for cls in ("cpu", "gpu")))
    if tuple(slot.name for slot in devices) != machine.devices:
        raise InputError(f"devices must be {', '.join(machine.devices)} in this order")
    arrivals = column("arrival", [job.arrival for job in jobs]).tolist()
    if not jobs or arrivals != sorted(arrivals):
        raise InputError(f"a live run needs jobs sorted by arrival, got arrivals {arrivals}")
    for j, job in enumerate(jobs):
        work = job.kernel
        if isinstance(work, Kernel):
            placed(f"job {j}", work.problem_size, job.size)
        if work.has_function and work.limit < math.inf and not crew.HAS_PROCESSES:
            raise InputError(f"{work.name}: a function in a thread cannot be ended at its limit of "
                             f"{work.limit:g} s; use --crew processes")  # fmt: skip
    if history is None:
        history = History() if store is None else store.history(crew.host, kinds_of(devices))
    reading, known = need_known(reading, history)
    events = Log(machine, name, policy, reading, {s.name: s.note for s in devices})
    with ExitStack() as stack:
        same = identity(jobs, devices, name, policy, reading)
        if log is not None:
            events = _opened(stack, log, events, same)
        sizes = Sizes(known, policy.min_samples)
        left = events.left if events.rows else range(len(jobs))
        items = [
            (_item(j, jobs[j], policy, sizes, machine, classes), jobs[j].arrival)
            for j in left
            for classes in [events.items[j].declared if events.rows else jobs[j].kernel.classes]
        ]
        outputs = Path(f"{log}-output") if log is not None else None
        events.begin(items, identity=same, mark=crew.mark, host=crew.host,
                     kinds={slot.name: slot.kind for slot in devices})  # fmt: skip
        first = {jobs[j].kernel: jobs[j] for j in reversed(left)}
        wait([  # a kernel compiles for the size of its first job; NumPy compiles nothing
            crew.submit(d, perform, Task(crew.pack(kernel), slot, kernel.tiny
                        if slot.backend == "numpy" else job.size))
            for d, slot in enumerate(devices)
            for kernel, job in first.items() if isinstance(kernel, Kernel)
        ])  # fmt: skip
        if not callable(policy.rule):  # compiled, before the clock starts
            state = State.of(machine, History())
            state.main = [item for item, _ in items[:1]]
            decide(state, policy, reading)
        _Session(jobs, crew, devices, events, sizes, store, clock, outputs).go()
    return LiveRun(events.table(), known, events)


def kinds_of(devices: Sequence[Slot]) -> dict[str, str]:
    """Return the kind of the devices of each class, by which the store knows them."""
    return {slot.name[:3]: slot.kind for slot in devices}


def calibrate(
    kernels: Sequence[Kernel], crew: Crew, devices: Sequence[Slot], repeats: int = 3,
    store: Store | None = None, factor: float | Sequence[float] = 1.0,
) -> pd.DataFrame:  # fmt: skip
    """Measure every kernel on every device, alone, and compare the results.

    `factor`, or each of several, scales the usual sizes. A row per kernel, size and device:
    app, device, backend, seconds, transfer (means), std (population), agrees (with the first
    device's result) and error.
    """
    repeats = whole("repeats", repeats, 1, MOST_COUNT)
    factors = [factor] if isinstance(factor, int | float) else list(factor)
    rows = []
    for job in [sized(kernel, one) for kernel in kernels for one in factors]:
        reference: list[float] = []
        for device, slot in enumerate(devices):
            done: list[Outcome] = []
            task, error = Task(crew.pack(job.kernel), slot, job.size), ""
            while len(done) < repeats and not error:
                future = crew.submit(device, perform, task)
                if (failure := future.exception()) is None:
                    done.append(future.result())
                else:  # whatever a kernel raises is noted
                    error = said(failure)
                _keep(store, crew.host, slot, job, None if error else done[-1], "failed", error)
            reference = reference or next((one.signature for one in done), [])
            runs = pd.DataFrame(done, columns=Outcome._fields).astype({"seconds": float})
            rows.append({
                "app": job.app, "device": slot.name, "backend": slot.backend,
                "seconds": runs["seconds"].mean(), "transfer": runs["transfer"].mean(),
                "std": runs["seconds"].std(ddof=0),
                "agrees": bool(done) and all(agree(reference, one.signature) for one in done),
                "error": error,
            })  # fmt: skip
    return pd.DataFrame(rows)


def sized(kernel: Kernel, factor: float) -> LiveJob:
    """Return a job of a kernel at a multiple of its usual size."""
    number("factor", factor, high=100.0, above=True)
    return LiveJob(kernel, max(1, round(factor * kernel.size)))

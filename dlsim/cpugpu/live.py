"""Schedule real kernels on real devices, by the policy that drives the simulation.

The desk of `dlsim.cpugpu.dispatch` decides; a crew runs; measured times enter the history.
Every decision is logged with all it was based on, and can be computed again from the log.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd

from dlsim.cpugpu import backends
from dlsim.cpugpu.crew import Crew
from dlsim.cpugpu.dispatch import Desk
from dlsim.cpugpu.given import MOST_COUNT
from dlsim.cpugpu.history import History
from dlsim.cpugpu.intake import need_known
from dlsim.cpugpu.kernels import Kernel, agree
from dlsim.cpugpu.model import Item, Machine, Measures, Policy, Reading, policy_named
from dlsim.cpugpu.records import Log
from dlsim.cpugpu.store import Store, key
from dlsim.errors import InputError, StudyError
from dlsim.given import whole

#: A job whose worker died so often is given up.
MOST_LOSSES = 3


class Slot(NamedTuple):
    """A device of the live machine."""

    name: str
    backend: str
    note: str


def slots(gpu: str = "auto", cpu: str = "numpy") -> tuple[Slot, ...]:
    """Return the two devices of this machine; auto is the first of cuda, opencl, threads."""
    chosen = {"gpu0": backends.best_gpu() if gpu == "auto" else gpu, "cpu0": cpu}
    return tuple(Slot(name, one, backends.describe(one)) for name, one in chosen.items())


class LiveJob(NamedTuple):
    """A kernel, its problem size, and when it enters the main queue (seconds after the start)."""

    kernel: Kernel
    size: int
    arrival: float = 0.0

    @property
    def app(self) -> str:
        """The name under which the history knows it."""
        return key(self.kernel.name, str(self.size))


@dataclass
class LiveRun(Measures):
    """What a live run did."""

    jobs: pd.DataFrame
    history: History
    log: Log = field(repr=False)


@dataclass
class _Fate:
    losses: int = 0
    start: float = math.nan
    end: float = math.nan
    seconds: float = math.nan
    transfer: float = math.nan
    device: int = -1
    error: str = ""
    agrees: bool = False


def _keep(
    store: Store | None, host: str, slot: Slot, job: LiveJob,
    outcome: backends.Outcome | None, what: str = "done", error: BaseException | None = None,
) -> None:  # fmt: skip
    """Write to the store what became of a run: its time, or why it has none."""
    if store is None:
        return
    name, cls = job.kernel.name, slot.name[:3]
    where = {"size": str(job.size), "host": host, "device": slot.backend}
    if outcome is not None:
        store.add(name, cls, outcome.seconds, transfer=outcome.transfer, **where)
    else:
        store.note(name, cls, what, _said(error), **where)


def _said(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}"


class _Session:
    """One live run: the desk, the clock, and what became of each job."""

    def __init__(
        self, jobs: Sequence[LiveJob], crew: Crew, devices: Sequence[Slot], desk: Desk,
        store: Store | None, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.jobs, self.crew, self.devices, self.desk = jobs, crew, devices, desk
        self.store, self.clock, self.zero = store, clock, clock()
        self.fates = [_Fate() for _ in jobs]
        self.first: dict[str, list[float]] = {}
        self.running: dict[Future[backends.Outcome], int] = {}

    def now(self) -> float:
        return self.clock() - self.zero

    def go(self, items: Sequence[Item]) -> None:
        """Complete, arrive, dispatch, until every job has an end."""
        coming = list(items)
        while True:
            now = self.now()
            arrived = [item for item in coming if self.jobs[item.job].arrival <= now]
            coming = coming[len(arrived) :]
            self.desk.arrive(now, arrived)
            self._start(now)
            if not self.running and not coming:
                break
            left = self.jobs[coming[0].job].arrival - self.now() if coming else None
            done, _ = wait(self.running, None if left is None else max(0.0, left), FIRST_COMPLETED)
            if not self.running:
                time.sleep(max(0.0, left or 0.0))
            for future in done:
                self._end(future)
        for item in self.desk.state.main:
            raise InputError(f"the policy leaves {item.app} waiting for ever")

    def _start(self, now: float) -> None:
        for device, item in self.desk.dispatch(now):
            job, fate = self.jobs[item.job], self.fates[item.job]
            fate.start, fate.device = now, device
            work = (job.kernel, self.devices[device].backend, job.size)
            self.running[self.crew.submit(device, backends.perform, *work)] = device

    def _end(self, future: Future[backends.Outcome]) -> None:
        device, now = self.running.pop(future), self.now()
        held = self.desk.state.running[device]
        if held is None:
            raise StudyError(f"{self.devices[device].name} reports a job it was not given")
        fate = self.fates[held.item.job]
        fate.end, error = now, future.exception()
        if error is None:
            self._measured(held.item, device, future.result())
        elif self.crew.was_lost(error):
            self._lost(held.item, device, error)
        else:
            self._failed(held.item, device, error)

    def _measured(self, item: Item, device: int, outcome: backends.Outcome) -> None:
        fate, job, slot = self.fates[item.job], self.jobs[item.job], self.devices[device]
        fate.seconds, fate.transfer = outcome.seconds, outcome.transfer
        reference = self.first.setdefault(item.app, outcome.signature)
        fate.agrees = agree(reference, outcome.signature)
        self.desk.complete(fate.end, device, outcome.seconds)
        _keep(self.store, self.crew.host, slot, job, outcome)

    def _lost(self, item: Item, device: int, error: BaseException) -> None:
        """The worker died: the job goes back to the head of the queue, without a time."""
        fate = self.fates[item.job]
        fate.losses += 1
        self._note(item, device, "lost", error)
        if fate.losses < MOST_LOSSES:
            self.desk.lose(fate.end, device)
        else:
            fate.error = f"its worker died {fate.losses} times"
            self.desk.fail(fate.end, device)

    def _failed(self, item: Item, device: int, error: BaseException) -> None:
        """The kernel failed there: the job goes back without this version, if it has another."""
        self._note(item, device, "failed", error)
        fate, cls = self.fates[item.job], self.devices[device].name[:3]
        rest = {kind: time for kind, time in item.declared.items() if kind != cls}
        self.desk.fail(fate.end, device, replace(item, declared=rest) if rest else None)
        fate.error = "" if rest else _said(error)

    def _note(self, item: Item, device: int, what: str, error: BaseException) -> None:
        place = (self.crew.host, self.devices[device], self.jobs[item.job])
        _keep(self.store, *place, None, what, error)

    def table(self) -> pd.DataFrame:
        rows = []
        for job, fate, j in zip(self.jobs, self.fates, range(len(self.jobs)), strict=True):
            move, slot = self.desk.moves[j], self.devices[fate.device]
            finishes = move.decision.finishes
            rows.append({
                "app": job.app, "arrival": job.arrival, "decided": move.when, "turn": move.turn,
                "device": slot.name, "backend": slot.backend, "start": fate.start,
                "end": fate.end, "seconds": fate.seconds, "transfer": fate.transfer,
                "rule": move.decision.rule,
                "predicted": finishes[move.decision.device] if finishes else math.nan,
                "losses": fate.losses, "error": fate.error, "agrees": fate.agrees,
            })  # fmt: skip
        return pd.DataFrame(rows).rename_axis("job")


def _items(jobs: Sequence[LiveJob], policy: Policy, history: History) -> list[Item]:
    """Return the jobs as the policy sees them; declared times are learned means."""
    items = []
    for j, job in enumerate(jobs):
        told = {cls: history.record(job.app, cls).expected() for cls in ("gpu", "cpu")}
        unknown = any(map(math.isnan, told.values()))
        if unknown and policy.rule != "five" and not callable(policy.rule):
            raise InputError(
                f"policy {policy.rule!r} needs declared times, and {job.app} was not measured on "
                "both devices; first: dlsim live calibrate"
            )
        items.append(Item(j, job.app, told))
    return items


def run_live(
    jobs: Sequence[LiveJob], crew: Crew, devices: Sequence[Slot],
    policy: str | Policy = "history", reading: Reading | None = None,
    history: History | None = None, store: Store | None = None,
    clock: Callable[[], float] = time.monotonic, keep: Callable[[Log], object] | None = None,
) -> LiveRun:  # fmt: skip
    """Run kernels on devices, each where the policy sends it.

    A version is compiled and run on a tiny input before its first timed run. A job whose
    worker dies goes back to the head of the main queue and is decided anew; its time is
    not recorded. A kernel that fails on one device is tried on the other.

    `devices` are in the order of the crew, GPUs first; any policy but ideal will do, and the
    reading's gpu_cpu_share has no effect. What is known at the start is `history`, else what
    `store` holds of this host and these devices; measured runs go to `store` as they end.
    `keep` gets the log when the run ends, also where an interrupt or an error ends it.
    """
    name, policy = policy_named(policy)
    if policy.rule == "ideal":
        raise InputError(f"policy {name} knows all times in advance: simulate only")
    machine = Machine(
        sum(s.name.startswith("cpu") for s in devices),
        sum(s.name.startswith("gpu") for s in devices),
    )
    if tuple(slot.name for slot in devices) != machine.devices:
        raise InputError(f"devices must be {', '.join(machine.devices)} in this order")
    arrivals = [job.arrival for job in jobs]
    if not jobs or arrivals != sorted(arrivals):
        raise InputError(f"a live run needs jobs sorted by arrival, got arrivals {arrivals}")
    if history is None:
        played = {slot.name[:3]: slot.backend for slot in devices}
        history = History() if store is None else store.history(crew.host, played)
    reading, known = need_known(reading, history)
    log = Log(machine, name, policy, reading, {s.name: s.note for s in devices})
    desk = Desk(machine, policy, reading, known, watch=log.write)
    items = _items(jobs, policy, known)
    warmed = {
        crew.submit(d, backends.warm_up, kernel, slot.backend)
        for d, slot in enumerate(devices)
        for kernel in {job.kernel for job in jobs}
    }
    wait(warmed)
    session = _Session(jobs, crew, devices, desk, store, clock)
    try:
        session.go(items)
    finally:
        if keep is not None:
            keep(log)
    return LiveRun(session.table(), known, log)


def calibrate(
    kernels: Sequence[Kernel], crew: Crew, devices: Sequence[Slot], repeats: int = 3,
    store: Store | None = None, factor: float = 1.0,
) -> pd.DataFrame:  # fmt: skip
    """Measure every kernel on every device, alone, and compare the results.

    A row per kernel and device: app, device, backend, seconds, transfer (means), std
    (population), agrees (with the first device's result) and error.
    """
    repeats = whole("repeats", repeats, 1, MOST_COUNT)
    rows = []
    for kernel in kernels:
        job, reference = LiveJob(kernel, max(1, round(factor * kernel.size))), None
        for device, slot in enumerate(devices):
            outcomes, error = _measured(job, crew, device, slot, repeats, store)
            reference = reference or next((one.signature for one in outcomes), None)
            rows.append(_row(job, slot, outcomes, error, reference))
    return pd.DataFrame(rows)


def _measured(
    job: LiveJob, crew: Crew, device: int, slot: Slot, repeats: int, store: Store | None
) -> tuple[list[backends.Outcome], BaseException | None]:
    """Run a kernel over and over on one device, until it fails; keep each time at once."""
    outcomes: list[backends.Outcome] = []
    for _ in range(repeats):
        try:
            one = crew.submit(device, backends.perform, job.kernel, slot.backend, job.size).result()
        except Exception as error:  # whatever a kernel raises is noted
            _keep(store, crew.host, slot, job, None, "failed", error)
            return outcomes, error
        _keep(store, crew.host, slot, job, one)
        outcomes.append(one)
    return outcomes, None


def _row(
    job: LiveJob, slot: Slot, outcomes: list[backends.Outcome], error: BaseException | None,
    reference: list[float] | None,
) -> dict[str, Any]:  # fmt: skip
    times = [one.seconds for one in outcomes]
    return {
        "app": job.app, "device": slot.name, "backend": slot.backend,
        "seconds": statistics.fmean(times) if times else math.nan,
        "transfer": statistics.fmean(one.transfer for one in outcomes) if times else math.nan,
        "std": statistics.pstdev(times) if times else math.nan,
        "agrees": bool(times) and all(agree(reference or [], o.signature) for o in outcomes),
        "error": _said(error),
    }  # fmt: skip

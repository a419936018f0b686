"""MapReduce tasks in the main queue: placed by a policy, lost, run again.

Paper C, section 4: "Reliability is achieved by reassigning any failed node's job to another
node." A lost attempt puts its task back to the head of the main queue; a node that dies
takes its devices, its running tasks, and the output of its finished maps with it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu.dispatch import Desk
from dlsim.cpugpu.given import near
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.mapdata import MapReduce, Pairs, map_block, reduce_partition
from dlsim.cpugpu.mapnodes import Costs, NodeGroup, local_first, spread
from dlsim.cpugpu.model import Decide, Item, Policy, Reading, class_of, policy_named
from dlsim.cpugpu.rules import DECIDE
from dlsim.errors import InputError
from dlsim.kernel import latest_finish


class Faults(NamedTuple):
    """What goes wrong."""

    lost: Mapping[tuple[str, int], int]
    rate: float
    dead: Mapping[int, float]
    seed: int

    def part(self, kind: str, number: int, task: int, attempt: int) -> float:
        """Return after which part of its time an attempt is lost; infinity: never."""
        if attempt < self.lost.get((kind, number), 0):
            return 1.0
        if not self.rate:
            return math.inf
        key = np.random.SeedSequence(self.seed, spawn_key=(task, attempt))
        chance, part = np.random.default_rng(key).random(2)
        return float(1 - part) if chance < self.rate else math.inf


class Setting(NamedTuple):
    """All that a run is made of."""

    job: MapReduce
    blocks: Sequence[Any]
    group: NodeGroup
    homes: list[tuple[int, ...]]
    costs: Costs
    policy: Policy
    reading: Reading
    history: History
    faults: Faults
    prefer_local: bool


@dataclass
class Attempt:
    """One try at a task."""

    task: int
    kind: str
    number: int
    attempt: int
    device: str
    node: int
    start: float
    end: float
    seconds: float
    size: float
    remote: float
    outcome: str
    rule: str
    predicted: float
    data: Any = None


class TaskRun:
    """The event loop of one run; `attempts` and `output` are what came of it."""

    def __init__(self, setting: Setting) -> None:
        self.set, self.maps = setting, len(setting.blocks)
        self.places = setting.group.places
        self.sizes = [len(block) / 1000 for block in setting.blocks]
        self.plan: Decide | None = None
        self.desk = Desk(
            setting.group.machine, setting.policy, setting.reading, setting.history, self._decider()
        )
        self.attempts: list[Attempt] = []
        self.running: dict[str, Attempt] = {}
        self.outputs: dict[int, tuple[int, list[Pairs]]] = {}
        self.results: dict[int, dict[Any, Any]] = {}
        self.dead: set[int] = set()

    @property
    def output(self) -> dict[Any, Any]:
        """Results of all partitions, keys ascending."""
        found = {key: value for part in self.results.values() for key, value in part.items()}
        return {key: found[key] for key in sorted(found)}

    def run(self) -> None:
        """Run until every reduce task is done."""
        now = 0.0
        self._settle(now)
        self._dispatch(now)
        while len(self.results) < self.set.job.partitions:
            now = self._next_instant()
            for attempt in sorted(self.running.values(), key=lambda a: (a.end, a.task)):
                if near(attempt.end, now, attempt.seconds):
                    self._end(attempt)
            limit = latest_finish(now, min((a.seconds for a in self.attempts), default=0.0))
            for node, when in self.set.faults.dead.items():
                if node not in self.dead and when <= limit:
                    self._die(node, now)
            self._settle(now)
            self._dispatch(now)

    def _next_instant(self) -> float:
        deaths = [t for node, t in self.set.faults.dead.items() if node not in self.dead]
        ends = [attempt.end for attempt in self.running.values()]
        if not ends and not (deaths and self.desk.state.main):
            name, waiting = policy_named(self.set.policy)[0], len(self.desk.state.main)
            raise InputError(
                f"policy {name} leaves {waiting} tasks waiting for ever: no "
                "device of the class that they wait for; use another policy, version or group"
            )
        return min([*ends, *deaths])

    def _decider(self) -> Decide | None:
        """Return what decides instead of the policy's rule, if anything does."""
        rule, faults = self.set.policy.rule, self.set.faults
        if rule == "ideal":
            if faults.lost or faults.rate or faults.dead or self.set.prefer_local:
                raise InputError(
                    "an exhaustive schedule is made beforehand: use it without faults and "
                    "without prefer_local"
                )
            return lambda *seen: self.plan(*seen) if self.plan else None
        if not self.set.prefer_local:
            return None
        decide = rule if callable(rule) else DECIDE[rule]
        return local_first(decide, self._is_local, self.places)

    def _is_local(self, task: int, node: int) -> bool:
        return task >= self.maps or node in self.set.homes[task]

    def _name(self, task: int) -> tuple[str, int]:
        return ("map", task) if task < self.maps else ("reduce", task - self.maps)

    def size_of(self, task: int, node: int | None = None) -> float:
        """Return the units of a task, or those of other nodes; a reduce's once maps are done."""
        if task < self.maps:
            return 0.0 if node is not None and self._is_local(task, node) else self.sizes[task]
        part = task - self.maps
        counts = (len(parts[part]) for home, parts in self.outputs.values() if home != node)
        return sum(counts) / 1000

    def _item(self, task: int) -> Item:
        """Return a task as the policy sees it: its times where its data is at hand."""
        kind, _ = self._name(task)
        size = self.size_of(task)
        classes = [c for c in ("gpu", "cpu") if c in self.desk.state.classes]
        versions = [c for c in classes if self.set.job.version(kind, c)]
        if not versions:
            raise InputError(
                f"{kind} of {self.set.job.name!r} must have a version for a device of the group; "
                f"there are {self.set.group.gpus} GPUs and {self.set.group.cpus} CPUs"
            )
        times: dict[str, float] = {c: self.set.costs.time(kind, c, size) for c in versions}
        return Item(task, f"{self.set.job.name} {kind}", times)

    def _settle(self, now: float) -> None:
        """Queue the maps whose output is missing, and the reduces once none is."""
        state = self.desk.state
        total = self.maps + self.set.job.partitions
        held = {a.task for a in self.running.values()} | set(self.results)
        if not set(range(self.maps, total)) - held:
            return
        queued = {item.job for queue in [state.main, *state.queues] for item in queue}
        missing = set(range(self.maps)) - set(self.outputs)
        if missing:
            self._withdraw(lambda item: item.job >= self.maps)
            again = sorted(missing - queued - held)
            for task in again:
                self._need_replica(task)
            state.main[:0] = self._plan([self._item(task) for task in again])
            return
        ready = sorted(set(range(self.maps, total)) - held - queued)
        self.desk.arrive(now, self._plan([self._item(task) for task in ready]))

    def _need_replica(self, task: int) -> None:
        if set(self.set.homes[task]) <= self.dead:
            raise InputError(
                f"dead must leave a replica of block {task}, held by nodes "
                f"{self.set.homes[task]}; place more replicas"
            )

    def _plan(self, items: list[Item]) -> list[Item]:
        """Return the items; under an ideal policy, lay their best schedule first."""
        if self.set.policy.rule == "ideal" and items:
            now = self.desk.state.now
            times = spread([item.declared for item in items], self.desk.state.classes)
            nodes = [self.places[device] for device in self.desk.state.devices]
            away = [[self.size_of(item.job, node) for node in nodes] for item in items]
            times = times + self.set.costs.remote * np.array(away)
            plan = ideal_plan([now] * len(items), times, self.set.policy.objective)
            self.plan = follow([tuple(items[j].job for j in jobs) for jobs in plan])
        return items

    def _dispatch(self, now: float) -> None:
        for device, item in self.desk.dispatch(now):
            name = self.desk.state.devices[device]
            attempt = self._begin(name, item, now)
            self.attempts.append(attempt)
            self.running[name] = attempt

    def _begin(self, device: str, item: Item, now: float) -> Attempt:
        task, node, cls = item.job, self.places[device], class_of(device)
        kind, number = self._name(task)
        remote = self.size_of(task, node)
        seconds = item.declared[cls] + self.set.costs.remote * remote
        tries = sum(a.task == task for a in self.attempts)
        past = sum(a.task == task and a.outcome in ("lost", "killed") for a in self.attempts)
        part = self.set.faults.part(kind, number, task, past)
        decision = self.desk.moves[task].decision
        place = self.desk.state.devices.index(device)
        expected = decision.finishes[place] if decision.finishes else math.nan
        return Attempt(
            task, kind, number, tries, device, node, now, now + seconds * min(part, 1.0), seconds,
            self.size_of(task), remote, "lost" if part <= 1 else "done", decision.rule, expected,
            self._compute(kind, number, cls) if part > 1 else None,
        )  # fmt: skip

    def _compute(self, kind: str, number: int, cls: str) -> Any:
        if kind == "map":
            return map_block(self.set.job, self.set.blocks[number], cls)
        runs = [self.outputs[task][1][number] for task in range(self.maps)]
        return reduce_partition(self.set.job, runs, cls)

    def _end(self, attempt: Attempt) -> None:
        device = self.desk.state.devices.index(attempt.device)
        del self.running[attempt.device]
        if attempt.outcome == "lost":
            self.desk.lose(attempt.end, device)
            return
        self.desk.complete(attempt.end, device, attempt.seconds)
        if attempt.kind == "map":
            self.outputs[attempt.task] = (attempt.node, attempt.data)
        else:
            self.results[attempt.task] = attempt.data

    def _die(self, node: int, now: float) -> None:
        """Take a node away: running tasks and sub-queues go back, outputs are lost."""
        self.dead.add(node)
        state = self.desk.state
        doomed = [d for d, name in enumerate(state.devices) if self.places[name] == node]
        for d in reversed(doomed):
            attempt = self.running.pop(state.devices[d], None)
            state.main[:0] = self._unassigned(d, state.queues[d])
            if attempt is not None:
                self.desk.lose(now, d)
                attempt.end, attempt.outcome = now, "killed"
            del state.running[d], state.queues[d]
        kept = [d for d in range(len(state.devices)) if d not in doomed]
        state.devices = tuple(state.devices[d] for d in kept)
        state.classes = tuple(state.classes[d] for d in kept)
        self._forget_versions()
        for task in [task for task, (home, _) in self.outputs.items() if home == node]:
            del self.outputs[task]
            for attempt in self.attempts:
                if attempt.task == task and attempt.outcome == "done":
                    attempt.outcome = "gone"

    def _forget_versions(self) -> None:
        """Make waiting tasks forget a class whose last device is gone."""
        state = self.desk.state
        for queue in [state.main, *state.queues]:
            queue[:] = [self._item(item.job) for item in queue]
        for task in (item.job for item in state.main if item.job < self.maps):
            self._need_replica(task)

    def _withdraw(self, unwanted: Callable[[Item], bool]) -> None:
        state = self.desk.state
        for d, queue in enumerate(state.queues):
            self._unassigned(d, [item for item in queue if unwanted(item)])
        for queue in [state.main, *state.queues]:
            queue[:] = [item for item in queue if not unwanted(item)]

    def _unassigned(self, device: int, items: list[Item]) -> list[Item]:
        """Return items that leave a sub-queue unserved: rule 2 forgets the assignment."""
        for item in items:
            self.set.history.withdraw(item.app, self.desk.state.classes[device])
        return items

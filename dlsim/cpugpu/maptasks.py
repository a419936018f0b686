"""MapReduce tasks in the main queue: placed by a policy, lost, run again.

Paper C, section 4: "Reliability is achieved by reassigning any failed node's job to another
node." A lost attempt puts its task back to the head of the main queue; a node that dies
takes its devices, its running tasks, and the output of its finished maps with it.
"""

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu.dispatch import Desk
from dlsim.cpugpu.given import near
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.mapdata import MapReduce, map_block, reduce_partition
from dlsim.cpugpu.mapnodes import Costs, NodeGroup, local_first
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

    def part(self, name: tuple[str, int], task: int, attempt: int) -> float:
        """Return after which part of its time an attempt is lost; infinity: never."""
        if attempt < self.lost.get(name, 0):
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
    """One try at a task: the row of a table, and what only the run needs."""

    kind: str
    number: int
    attempt: int
    device: str
    node: int
    start: float
    end: float
    size: float
    remote: float
    outcome: str
    rule: str
    predicted: float
    task: int
    seconds: float
    data: Any


class TaskRun:
    """The event loop of one run; `attempts` and `output` are what came of it.

    A task is idle where it is neither done nor running nor in a queue.
    """

    def __init__(self, setting: Setting) -> None:
        self.set, self.maps = setting, len(setting.blocks)
        self.places = setting.group.places
        self.sizes = [len(block) / 1000 for block in setting.blocks]
        self.time = functools.cache(setting.costs.time)
        self.plan: Decide | None = None
        self.desk = Desk(
            setting.group.machine, setting.policy, setting.reading, setting.history, self._decider()
        )
        self.attempts: list[Attempt] = []
        self.running: dict[str, Attempt] = {}
        self.outputs: dict[int, Attempt] = {}
        self.results: dict[int, dict[Any, Any]] = {}
        self.idle = {
            "map": set(range(self.maps)),
            "reduce": set(range(self.maps, self.maps + setting.job.partitions)),
        }
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.tries: Counter[int] = Counter()
        self.failed: Counter[int] = Counter()
        self.dead: set[int] = set()
        self.shortest = math.inf

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
            limit = latest_finish(now, self.shortest if self.attempts else 0.0)
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
        part, nodes = task - self.maps, range(self.set.group.nodes)
        return sum(self.pairs[home, part] for home in nodes if home != node) / 1000

    def _item(self, task: int) -> Item:
        """Return a task as the policy sees it: its times where its data is at hand."""
        (kind, _), size = self._name(task), self.size_of(task)
        classes = [c for c in ("gpu", "cpu") if c in self.desk.state.classes]
        times: dict[str, float] = {
            c: self.time(kind, c, size) for c in classes if self.set.job.version(kind, c)
        }
        if not times:
            raise InputError(
                f"{kind} of {self.set.job.name!r} must have a version for a device of the group; "
                f"there are {self.set.group.gpus} GPUs and {self.set.group.cpus} CPUs"
            )
        return Item(task, f"{self.set.job.name} {kind}", times)

    def _settle(self, now: float) -> None:
        """Queue the maps whose output is missing, and the reduces once none is."""
        reducing = sum(attempt.kind == "reduce" for attempt in self.running.values())
        waiting = self.set.job.partitions - len(self.results) - reducing
        if not waiting:
            return
        is_missing = len(self.outputs) < self.maps
        if is_missing and waiting > len(self.idle["reduce"]):
            self._withdraw_reduces()
        idle = self.idle["map" if is_missing else "reduce"]
        items = [self._item(task) for task in sorted(idle)]
        idle.clear()
        if is_missing:
            self._need_replicas(items)
            self.desk.state.main[:0] = self._plan(items)
        else:
            self.desk.arrive(now, self._plan(items))

    def _withdraw_reduces(self) -> None:
        state = self.desk.state
        for d, queue in enumerate(state.queues):
            self._unassigned(d, [item for item in queue if item.job >= self.maps])
        for queue in [state.main, *state.queues]:
            self.idle["reduce"].update(item.job for item in queue if item.job >= self.maps)
            queue[:] = [item for item in queue if item.job < self.maps]

    def _unassigned(self, device: int, items: list[Item]) -> list[Item]:
        """Return items that leave a sub-queue unserved: rule 2 forgets the assignment."""
        for item in items:
            self.set.history.withdraw(item.app, self.desk.state.classes[device])
        return items

    def _need_replicas(self, items: list[Item]) -> None:
        for task in (item.job for item in items if item.job < self.maps):
            if set(self.set.homes[task]) <= self.dead:
                raise InputError(
                    f"dead must leave a replica of block {task}, held by nodes "
                    f"{self.set.homes[task]}; place more replicas"
                )

    def _plan(self, items: list[Item]) -> list[Item]:
        """Return the items; under an ideal policy, lay their best schedule first."""
        if self.set.policy.rule == "ideal" and items:
            state, costs = self.desk.state, self.set.costs
            times = np.array([
                [item.declared.get(class_of(device), math.nan)
                 + costs.remote * self.size_of(item.job, self.places[device])
                 for device in state.devices]
                for item in items
            ])  # fmt: skip
            plan = ideal_plan([state.now] * len(items), times, self.set.policy.objective)
            self.plan = follow([tuple(items[j].job for j in jobs) for jobs in plan])
        return items

    def _dispatch(self, now: float) -> None:
        for device, item in self.desk.dispatch(now):
            attempt = self._begin(device, item, now)
            self.attempts.append(attempt)
            self.running[attempt.device] = attempt

    def _begin(self, place: int, item: Item, now: float) -> Attempt:
        task, device = item.job, self.desk.state.devices[place]
        node, cls, name = self.places[device], class_of(device), self._name(task)
        remote = self.size_of(task, node)
        seconds = item.declared[cls] + self.set.costs.remote * remote
        part = self.set.faults.part(name, task, self.failed[task])
        decision = self.desk.moves[task].decision
        expected = decision.finishes[place] if decision.finishes else math.nan
        self.tries[task] += 1
        self.shortest = min(self.shortest, seconds)
        return Attempt(
            *name, self.tries[task] - 1, device, node, now, now + seconds * min(part, 1.0),
            self.size_of(task), remote, "lost" if part <= 1 else "done", decision.rule, expected,
            task, seconds, self._compute(*name, cls) if part > 1 else None,
        )  # fmt: skip

    def _compute(self, kind: str, number: int, cls: str) -> Any:
        if kind == "map":
            return map_block(self.set.job, self.set.blocks[number], cls)
        runs = [self.outputs[task].data[number] for task in range(self.maps)]
        return reduce_partition(self.set.job, runs, cls)

    def _end(self, attempt: Attempt) -> None:
        device = self.desk.state.devices.index(attempt.device)
        del self.running[attempt.device]
        if attempt.outcome == "lost":
            self.failed[attempt.task] += 1
            self.desk.lose(attempt.end, device)
            return
        self.desk.complete(attempt.end, device, attempt.seconds)
        if attempt.kind == "reduce":
            self.results[attempt.task] = attempt.data
            return
        self.outputs[attempt.task] = attempt
        for part, pairs in enumerate(attempt.data):
            self.pairs[attempt.node, part] += len(pairs)

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
                self.failed[attempt.task] += 1
                attempt.end, attempt.outcome = now, "killed"
            del state.running[d], state.queues[d]
        kept = [d for d in range(len(state.devices)) if d not in doomed]
        state.devices = tuple(state.devices[d] for d in kept)
        state.classes = tuple(state.classes[d] for d in kept)
        for queue in [state.main, *state.queues]:  # a class whose last device is gone
            queue[:] = [self._item(item.job) for item in queue]
        self._need_replicas(state.main)
        for task in [task for task, made in self.outputs.items() if made.node == node]:
            self.outputs.pop(task).outcome = "gone"
            self.idle["map"].add(task)
        for part in range(self.set.job.partitions):
            del self.pairs[node, part]

"""MapReduce tasks in the main queue: placed by a policy, lost, run again.

Paper C, section 4: "Reliability is achieved by reassigning any failed node's job to another
node." A lost attempt puts its task back to the head of the main queue; a node that dies
takes its devices, its running tasks, and the output of its finished maps with it.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu import model
from dlsim.cpugpu.dispatch import DECIDE, Desk
from dlsim.cpugpu.given import near
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.mapdata import Costs, MapReduce, NodeGroup, map_block, reduce_partition
from dlsim.cpugpu.model import CLASSES, Decide, Decision, Item, Policy, Reading, State, class_of
from dlsim.errors import InputError
from dlsim.kernel import latest_finish


class Setting(NamedTuple):
    """All that a run is made of; from `lost` on what goes wrong."""

    job: MapReduce
    blocks: Sequence[Any]
    group: NodeGroup
    homes: list[tuple[int, ...]]
    costs: Costs
    policy: Policy
    reading: Reading
    history: History
    prefer_local: bool
    lost: Mapping[tuple[str, int], int]
    loss_rate: float
    dead: Mapping[int, float]
    seed: int

    def part(self, name: tuple[str, int], task: int, attempt: int) -> float:
        """Return after which part of its time an attempt is lost; infinity: never."""
        if attempt < self.lost.get(name, 0):
            return 1.0
        if not self.loss_rate:
            return math.inf
        key = np.random.SeedSequence(self.seed, spawn_key=(task, attempt))
        chance, part = np.random.default_rng(key).random(2)
        return float(1 - part) if chance < self.loss_rate else math.inf


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
        self.tasks = self.maps + setting.job.partitions
        self.places = setting.group.places
        self.sizes = [len(block) / 1000 for block in setting.blocks]
        self.time = functools.cache(setting.costs.time)
        self.plan: Decide | None = None
        machine, policy, reading = setting.group.machine, setting.policy, setting.reading
        self.desk = Desk(machine, policy, reading, setting.history, self._decider())
        self.attempts: list[Attempt] = []
        self.running: dict[str, Attempt] = {}
        self.outputs: dict[int, Attempt] = {}
        self.results: dict[Any, Any] = {}
        self.left = setting.job.partitions
        self.idle = {"map": set(range(self.maps)), "reduce": set(range(self.maps, self.tasks))}
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.tries: Counter[int] = Counter()
        self.failed: Counter[int] = Counter()
        self.dead: set[int] = set()
        self.shortest = math.inf

    @property
    def output(self) -> dict[Any, Any]:
        """Results of all partitions, keys ascending."""
        return {key: self.results[key] for key in sorted(self.results)}

    def run(self) -> None:
        """Run until every reduce task is done."""
        state, deaths, now = self.desk.state, self.set.dead, 0.0
        while self.left:
            self._settle(now)
            for device, item in self.desk.dispatch(now):
                self._begin(device, item, now)
            left = [when for node, when in deaths.items() if node not in self.dead]
            ends = [attempt.end for attempt in self.running.values()]
            if not ends and not (left and state.main):
                name, waiting = model.policy_named(self.set.policy)[0], len(state.main)
                raise InputError(
                    f"policy {name} leaves {waiting} tasks waiting for ever: no "
                    "device of the class that they wait for; use another policy, version or group"
                )
            now = min([*ends, *left])
            for attempt in sorted(self.running.values(), key=lambda a: (a.end, a.task)):
                if near(attempt.end, now, attempt.seconds):
                    self._end(attempt)
            limit = latest_finish(now, self.shortest if self.attempts else 0.0)
            for node, when in deaths.items():
                if node not in self.dead and when <= limit:
                    self._die(node, now)

    def _decider(self) -> Decide | None:
        """Return what decides instead of the policy's rule, if anything does."""
        rule, given = self.set.policy.rule, self.set
        if rule == "ideal":
            if given.lost or given.loss_rate or given.dead or given.prefer_local:
                raise InputError(
                    "an exhaustive schedule is made beforehand: use it without faults and "
                    "without prefer_local"
                )
            return lambda *seen: self.plan(*seen) if self.plan else None
        decide = rule if callable(rule) else DECIDE[rule]

        def local_first(state: State, policy: Policy, reading: Reading) -> Decision | None:
            """Of the tasks alike to a policy, serve the first whose block is there (section 4)."""
            decision = decide(state, policy, reading)
            own = next((i for i in state.main if decision and i.job == decision.job), None)
            if decision is None or own is None:
                return decision
            node, versions = self.places[state.devices[decision.device]], own.declared.keys()
            alike = (i for i in state.main if i.app == own.app and i.declared.keys() == versions)
            near_by = (item for item in chain([own], alike) if self._is_local(item.job, node))
            local = next(near_by, own)
            if local.declared != own.declared:
                decision = decision._replace(finishes=())
            return decision._replace(job=local.job)

        return local_first if given.prefer_local else None

    def _is_local(self, task: int, node: int) -> bool:
        return task >= self.maps or node in self.set.homes[task]

    def size_of(self, task: int, node: int | None = None) -> float:
        """Return the units of a task, or those of other nodes; a reduce's once maps are done."""
        if task < self.maps:
            return 0.0 if node is not None and self._is_local(task, node) else self.sizes[task]
        part, nodes = task - self.maps, range(self.set.group.nodes)
        return sum(self.pairs[home, part] for home in nodes if home != node) / 1000

    def _items(self, tasks: Iterable[int]) -> list[Item]:
        """Return tasks as the policy sees them: their times where their data is at hand."""
        job, group, found = self.set.job, self.set.group, []
        for task in tasks:
            kind, size = "map" if task < self.maps else "reduce", self.size_of(task)
            classes = [c for c in CLASSES if c in self.desk.state.classes and job.version(kind, c)]
            if not classes:
                raise InputError(
                    f"{kind} of {job.name!r} must have a version for a device of the group; "
                    f"there are {group.gpus} GPUs and {group.cpus} CPUs"
                )
            times = {c: self.time(kind, c, size) for c in classes}
            found.append(Item(task, f"{job.name} {kind}", times))
        return found

    def _settle(self, now: float) -> None:
        """Queue the maps whose output is missing, and the reduces once none is."""
        waiting = self.left - sum(attempt.kind == "reduce" for attempt in self.running.values())
        if not waiting:
            return
        state, is_missing = self.desk.state, len(self.outputs) < self.maps
        if is_missing and waiting > len(self.idle["reduce"]):
            for d, queue in enumerate(state.queues):
                self._unassigned(d, [item for item in queue if item.job >= self.maps])
            for queue in [state.main, *state.queues]:
                self.idle["reduce"].update(item.job for item in queue if item.job >= self.maps)
                queue[:] = [item for item in queue if item.job < self.maps]
        idle = self.idle["map" if is_missing else "reduce"]
        items = self._items(sorted(idle))
        idle.clear()
        if is_missing:
            self._need_replicas(items)
        if self.set.policy.rule == "ideal" and items:
            times = np.array([
                [item.declared.get(class_of(device), math.nan)
                 + self.set.costs.remote * self.size_of(item.job, self.places[device])
                 for device in state.devices]
                for item in items
            ])  # fmt: skip
            plan = ideal_plan([state.now] * len(items), times, self.set.policy.objective)
            self.plan = follow([tuple(items[j].job for j in jobs) for jobs in plan])
        if is_missing:
            state.main[:0] = items
        else:
            self.desk.arrive(now, items)

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

    def _begin(self, place: int, item: Item, now: float) -> None:
        task, device, job = item.job, self.desk.state.devices[place], self.set.job
        node, cls, is_map = self.places[device], class_of(device), task < self.maps
        kind, number = ("map", task) if is_map else ("reduce", task - self.maps)
        remote = self.size_of(task, node)
        data: Any = None
        seconds = item.declared[cls] + self.set.costs.remote * remote
        part = self.set.part((kind, number), task, self.failed[task])
        if part > 1 and is_map:
            data = map_block(job, self.set.blocks[number], cls)
        elif part > 1:
            runs = [self.outputs[one].data[number] for one in range(self.maps)]
            data = reduce_partition(job, runs, cls)
        decision = self.desk.moves[task].decision
        self.running[device] = attempt = Attempt(
            kind, number, self.tries[task], device, node, now, now + seconds * min(part, 1.0),
            self.size_of(task), remote, "lost" if part <= 1 else "done", decision.rule,
            decision.finishes[place] if decision.finishes else math.nan, task, seconds, data,
        )  # fmt: skip
        self.attempts.append(attempt)
        self.tries[task] += 1
        self.shortest = min(self.shortest, seconds)

    def _end(self, attempt: Attempt) -> None:
        device = self.desk.state.devices.index(attempt.device)
        del self.running[attempt.device]
        if attempt.outcome == "lost":
            self.failed[attempt.task] += 1
            self.desk.lose(attempt.end, device)
            return
        self.desk.complete(attempt.end, device, attempt.seconds)
        if attempt.kind == "reduce":
            self.results.update(attempt.data)
            self.left -= 1
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
            queue[:] = self._items(item.job for item in queue)
        self._need_replicas(state.main)
        for task in [task for task, made in self.outputs.items() if made.node == node]:
            self.outputs.pop(task).outcome = "gone"
            self.idle["map"].add(task)
        for part in range(self.set.job.partitions):
            del self.pairs[node, part]

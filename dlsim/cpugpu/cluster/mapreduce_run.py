"""The event loop of a MapReduce run: tasks, attempts, lost attempts and dead nodes (paper C).

If an attempt is lost, its task returns to the head of the main queue. If a node dies, its devices
leave, its running tasks return to the queue, and the output of its finished maps is lost.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from dlsim.compiled import deadline_with_tolerance
from dlsim.cpugpu.cluster import mapreduce_job
from dlsim.cpugpu.cluster.mapreduce_job import Costs, Faults, MapReduce, NodeGroup, Storage
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import ideal_plan, make_plan_rule
from dlsim.cpugpu.model import CLASSES, JobView, Policy, Reading, device_class, is_simultaneous
from dlsim.cpugpu.queues import MainQueue, SchedulerState
from dlsim.cpugpu.rules import Decide, Decision
from dlsim.cpugpu.scheduler import OnlineScheduler, decider
from dlsim.errors import InputError


class Setting(NamedTuple):
    """The inputs of a run."""

    job: MapReduce
    blocks: Sequence[Any]
    sizes: list[float]
    group: NodeGroup
    block_locations: list[tuple[int, ...]]
    costs: Costs
    policy: Policy
    reading: Reading
    history: History
    storage: Storage
    faults: Faults


@dataclass
class Attempt:
    """One attempt at a task: a row of the table of attempts, and values that only the run needs."""

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
    """The event loop of one run; it fills `attempts` and `results`.

    A task is idle if it is neither done nor running nor in a queue.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.maps = setting, len(setting.blocks)
        self.node_of_device = setting.group.node_of_device
        self.time = functools.cache(setting.costs.time)
        self.plan: Decide | None = None
        machine, policy, reading = setting.group.machine, setting.policy, setting.reading
        self.scheduler = OnlineScheduler(
            machine, policy, reading, setting.history, self._make_rule()
        )
        self.attempts: list[Attempt] = []
        self.running: dict[str, Attempt] = {}
        self.outputs: dict[int, Attempt] = {}
        self.results: dict[Any, Any] = {}
        self.left = setting.job.partitions
        reduces = range(self.maps, self.maps + self.left)
        self.idle = {"map": set(range(self.maps)), "reduce": set(reduces)}
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.tries: Counter[int] = Counter()
        self.failed: Counter[int] = Counter()
        self.dead: set[int] = set()
        self.shortest = math.inf

    def run(self) -> None:
        """Run until every reduce task is done."""
        node_failures, now = dict(self.setting.faults.dead), 0.0
        while self.left:
            self._queue_idle_tasks(now)
            for device, view in self.scheduler.dispatch(now):
                self._begin_attempt(device, view, now)
            now = self._next_instant(node_failures)
            for attempt in sorted(self.running.values(), key=lambda a: (a.end, a.task)):
                if is_simultaneous(attempt.end, now, attempt.seconds):
                    self._end_attempt(attempt)
            limit = deadline_with_tolerance(now, self.shortest if self.attempts else 0.0)
            for node in [node for node, when in node_failures.items() if when <= limit]:
                del node_failures[node]
                self._on_node_failure(node, now)

    def _next_instant(self, node_failures: dict[int, float]) -> float:
        """Return when the next attempt ends or the next node dies."""
        ends = [attempt.end for attempt in self.running.values()]
        waiting = self.scheduler.state.main
        if not ends and not (node_failures and waiting):
            raise InputError(
                f"policy {self.setting.policy.name} leaves {len(waiting)} tasks waiting for ever: "
                "no device of the class that they wait for; use another policy, version or group"
            )
        return min([*ends, *node_failures.values()])

    def _make_rule(self) -> Decide:
        """Return the rule that decides: a plan, or the policy's rule, with or without locality."""
        setting = self.setting
        if setting.policy.is_planned:
            if setting.faults.any or setting.storage.prefer_local:
                raise InputError(
                    "an exhaustive schedule is made beforehand: use it without faults and "
                    "without prefer_local"
                )
            return lambda *seen: self.plan(*seen) if self.plan else None
        decide = decider(setting.policy)

        def local_first(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
            """Replace the task chosen by the first equal one with its block on the node (4)."""
            decision = decide(state, policy, reading)
            if decision is None or decision.job not in state.main:
                return decision
            own = state.main.find(decision.job)
            node = self.node_of_device[state.devices[decision.device]]
            versions = own.declared.keys()
            alike = (i for i in state.main if i.app == own.app and i.declared.keys() == versions)
            local_tasks = (view for view in chain([own], alike) if self._is_local(view.job, node))
            local = next(local_tasks, own)
            if local.declared != own.declared:
                decision = decision._replace(predicted_finish=())
            return decision._replace(job=local.job)

        return local_first if setting.storage.prefer_local else decide

    def _is_local(self, task: int, node: int) -> bool:
        return task >= self.maps or node in self.setting.block_locations[task]

    def size_of(self, task: int, node: int | None = None) -> float:
        """Return the units of a task, or those that it reads from other nodes than `node`.

        Those of a reduce task are known once all maps are done.
        """
        if task < self.maps:
            is_at_hand = node is not None and self._is_local(task, node)
            return 0.0 if is_at_hand else self.setting.sizes[task]
        part, nodes = task - self.maps, range(self.setting.group.nodes)
        return sum(self.pairs[home, part] for home in nodes if home != node) / 1000

    def _time_on(self, view: JobView, device: str) -> float:
        """Return the time of a task on a device, with the reading of remote data."""
        remote = self.size_of(view.job, self.node_of_device[device])
        local_time = view.declared.get(device_class(device), math.nan)
        return local_time + self.setting.costs.remote * remote

    def _task_views(self, tasks: Iterable[int]) -> list[JobView]:
        """Return tasks as the policy sees them, with the times that they take on local data."""
        job, group, found = self.setting.job, self.setting.group, []
        for task in tasks:
            kind, size = "map" if task < self.maps else "reduce", self.size_of(task)
            classes = [
                c for c in CLASSES if c in self.scheduler.state.classes and job.version(kind, c)
            ]
            if not classes:
                raise InputError(
                    f"{kind} of {job.name!r} must have a version for a device of the group; "
                    f"there are {group.gpus} GPUs and {group.cpus} CPUs"
                )
            times = {c: self.time(kind, c, size) for c in classes}
            found.append(JobView(task, f"{job.name} {kind}", times))
        return found

    def _queue_idle_tasks(self, now: float) -> None:
        """Queue the maps whose output is missing, or the reduces if no output is missing."""
        waiting = self.left - sum(attempt.kind == "reduce" for attempt in self.running.values())
        if not waiting:
            return
        is_missing = len(self.outputs) < self.maps
        if is_missing and waiting > len(self.idle["reduce"]):
            self._recall_reduces()
        idle = self.idle["map" if is_missing else "reduce"]
        task_views = self._task_views(sorted(idle))
        idle.clear()
        if is_missing:
            self._require_replicas(task_views)
        if self.setting.policy.is_planned and task_views:
            self.plan = self._plan_tasks(task_views)
        if not is_missing:
            self.scheduler.arrive(now, task_views)
        else:
            self._put_first(task_views)

    def _recall_reduces(self) -> None:
        """Take the reduces out of the queues: they wait until every map's output is there."""
        state = self.scheduler.state
        for view in [view for view in state.main if view.job >= self.maps]:
            self.idle["reduce"].add(state.main.take(view.job).job)
        for d, queue in enumerate(state.queues):
            reduces = [view for view in queue if view.job >= self.maps]
            self.idle["reduce"].update(view.job for view in self._withdraw(d, reduces))

    def _plan_tasks(self, task_views: list[JobView]) -> Decide:
        """Return the rule that follows the best schedule of some tasks."""
        state = self.scheduler.state
        times = np.array(
            [[self._time_on(view, device) for device in state.devices] for view in task_views]
        )
        plan = ideal_plan([state.now] * len(task_views), times, self.setting.policy.objective)
        return make_plan_rule([tuple(task_views[j].job for j in jobs) for jobs in plan])

    def _put_first(self, task_views: list[JobView]) -> None:
        """Put tasks at the head of the main queue, in the given order."""
        for view in reversed(task_views):
            self.scheduler.state.main.put(view, first=True)

    def _withdraw(self, device: int, task_views: list[JobView]) -> list[JobView]:
        """Take tasks out of a sub-queue, and take back their assignments, which rule 2 counts."""
        for view in task_views:
            self.scheduler.state.queues[device].take(view.job)
            self.setting.history.withdraw(view.app, self.scheduler.state.classes[device])
        return task_views

    def _require_replicas(self, task_views: Iterable[JobView]) -> None:
        for task in (view.job for view in task_views if view.job < self.maps):
            if set(self.setting.block_locations[task]) <= self.dead:
                raise InputError(
                    f"dead must leave a replica of block {task}, locations by nodes "
                    f"{self.setting.block_locations[task]}; place more replicas"
                )

    def _begin_attempt(self, place: int, view: JobView, now: float) -> None:
        task, device, job = view.job, self.scheduler.state.devices[place], self.setting.job
        node, cls, is_map = self.node_of_device[device], device_class(device), task < self.maps
        kind, number = ("map", task) if is_map else ("reduce", task - self.maps)
        remote = self.size_of(task, node)
        data: Any = None
        seconds = view.declared[cls] + self.setting.costs.remote * remote
        part = self.setting.faults.part_before_loss((kind, number), task, self.failed[task])
        if part > 1 and is_map:
            data = mapreduce_job.map_block(job, self.setting.blocks[number], cls)
        elif part > 1:
            runs = [self.outputs[one].data[number] for one in range(self.maps)]
            data = mapreduce_job.reduce_partition(job, runs, cls)
        decision, *_ = self.scheduler.moves[task]
        self.running[device] = attempt = Attempt(
            kind=kind,
            number=number,
            attempt=self.tries[task],
            device=device,
            node=node,
            start=now,
            end=now + seconds * min(part, 1.0),
            size=self.size_of(task),
            remote=remote,
            outcome="lost" if part <= 1 else "done",
            rule=decision.rule,
            predicted=decision.predicted_finish[place] if decision.predicted_finish else math.nan,
            task=task,
            seconds=seconds,
            data=data,
        )
        self.attempts.append(attempt)
        self.tries[task] += 1
        self.shortest = min(self.shortest, seconds)

    def _end_attempt(self, attempt: Attempt) -> None:
        device = self.scheduler.state.devices.index(attempt.device)
        del self.running[attempt.device]
        if attempt.outcome == "lost":
            self.failed[attempt.task] += 1
            self.scheduler.return_lost_job(attempt.end, device)
            return
        self.scheduler.complete(attempt.end, device, attempt.seconds)
        if attempt.kind == "reduce":
            if twice := self.results.keys() & attempt.data.keys():
                raise InputError(
                    f"a key goes to a reduce task by its text, so keys that are equal must print "
                    f"alike; {twice.pop()!r} came to two: convert keys to one type"
                )
            self.results.update(attempt.data)
            self.left -= 1
            return
        self.outputs[attempt.task] = attempt
        for part, pairs in enumerate(attempt.data):
            self.pairs[attempt.node, part] += len(pairs)

    def _on_node_failure(self, node: int, now: float) -> None:
        """Remove a node: its tasks return to the main queue, the outputs of its maps are lost."""
        self.dead.add(node)
        state = self.scheduler.state
        doomed = [d for d, name in enumerate(state.devices) if self.node_of_device[name] == node]
        for d in reversed(doomed):
            attempt = self.running.pop(state.devices[d], None)
            self._put_first(self._withdraw(d, list(state.queues[d])))
            if attempt is not None:
                self.scheduler.return_lost_job(now, d)
                self.failed[attempt.task] += 1
                attempt.end, attempt.outcome = now, "killed"
        state.remove_devices(doomed)
        self._revise_versions()
        self._require_replicas(state.main)
        for task in [task for task, made in self.outputs.items() if made.node == node]:
            self.outputs.pop(task).outcome = "gone"
            self.idle["map"].add(task)
        for part in range(self.setting.job.partitions):
            del self.pairs[node, part]

    def _revise_versions(self) -> None:
        """Let waiting tasks lose their version for a class that has no device left."""
        state = self.scheduler.state
        state.main = MainQueue(self._task_views(view.job for view in state.main))
        for queue in state.queues:
            for view in self._task_views([view.job for view in queue]):
                queue.take(view.job)
                queue.put(view)

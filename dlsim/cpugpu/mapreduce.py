"""MapReduce on the CPUs and GPUs of several nodes: its tasks in the main queue of any policy.

Source: paper C, the abstract and section 4: "Reliability is achieved by reassigning any failed
node's job to another node." If an attempt is lost, its task returns to the head of the main queue.
If a node dies, its devices leave, its running tasks return to the queue, and the output of its
finished maps is lost. The functions run on real data; times are simulated, by `Costs`.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import deadline_with_tolerance
from dlsim.cpugpu import mapreduce_job, model
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import ideal_plan, make_plan_rule
from dlsim.cpugpu.job_table import (
    do_not_overlap,
    is_simultaneous,
    require,
    require_reading_and_history,
    table_times_equal,
)
from dlsim.cpugpu.jobs import CLASSES, JobView, device_class
from dlsim.cpugpu.mapreduce_job import Costs, MapReduce, NodeGroup, place_blocks
from dlsim.cpugpu.model import Policy, Reading
from dlsim.cpugpu.queues import MainQueue
from dlsim.cpugpu.rules import Decide, Decision, SchedulerState
from dlsim.cpugpu.scheduler import OnlineScheduler, decider
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.validate import (
    flag,
    instance,
    mapping,
    number,
    one_of,
    or_default,
    random_generator,
    user_code,
    whole,
)


class Setting(NamedTuple):
    """The inputs of a run; the fields from `lost` on describe its faults."""

    job: MapReduce
    blocks: Sequence[Any]
    sizes: list[float]
    group: NodeGroup
    block_locations: list[tuple[int, ...]]
    costs: Costs
    policy: Policy
    reading: Reading
    history: History
    prefer_local: bool
    lost: Mapping[tuple[str, int], int]
    loss_rate: float
    dead: Mapping[int, float]
    seed: int

    def part_before_loss(self, name: tuple[str, int], task: int, attempt: int) -> float:
        """Return the part of its time after which an attempt is lost, infinity if it is not."""
        if attempt < self.lost.get(name, 0):
            return 1.0
        if not self.loss_rate:
            return math.inf
        chance, part = random_generator(self.seed, task, attempt).random(2)
        return float(1 - part) if chance < self.loss_rate else math.inf


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
        state, node_failures, now = self.scheduler.state, dict(self.setting.dead), 0.0
        while self.left:
            self._queue_idle_tasks(now)
            for device, view in self.scheduler.dispatch(now):
                self._begin_attempt(device, view, now)
            ends = [attempt.end for attempt in self.running.values()]
            if not ends and not (node_failures and state.main):
                name, waiting = model.find_job_policy(self.setting.policy)[0], len(state.main)
                raise InputError(
                    f"policy {name} leaves {waiting} tasks waiting for ever: no "
                    "device of the class that they wait for; use another policy, version or group"
                )
            now = min([*ends, *node_failures.values()])
            for attempt in sorted(self.running.values(), key=lambda a: (a.end, a.task)):
                if is_simultaneous(attempt.end, now, attempt.seconds):
                    self._end_attempt(attempt)
            limit = deadline_with_tolerance(now, self.shortest if self.attempts else 0.0)
            for node in [node for node, when in node_failures.items() if when <= limit]:
                del node_failures[node]
                self._on_node_failure(node, now)

    def _make_rule(self) -> Decide:
        """Return the rule that decides: a plan, or the policy's rule, with or without locality."""
        setting = self.setting
        if setting.policy.is_planned:
            if setting.lost or setting.loss_rate or setting.dead or setting.prefer_local:
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

        return local_first if setting.prefer_local else decide

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
        state, is_missing = self.scheduler.state, len(self.outputs) < self.maps
        if is_missing and waiting > len(self.idle["reduce"]):
            for view in [view for view in state.main if view.job >= self.maps]:
                self.idle["reduce"].add(state.main.take(view.job).job)
            for d, queue in enumerate(state.queues):
                reduces = [view for view in queue if view.job >= self.maps]
                self.idle["reduce"].update(view.job for view in self._withdraw(d, reduces))
        idle = self.idle["map" if is_missing else "reduce"]
        task_views = self._task_views(sorted(idle))
        idle.clear()
        if is_missing:
            self._require_replicas(task_views)
        if self.setting.policy.is_planned and task_views:
            times = np.array(
                [[self._time_on(view, device) for device in state.devices] for view in task_views]
            )
            plan = ideal_plan([state.now] * len(task_views), times, self.setting.policy.objective)
            self.plan = make_plan_rule([tuple(task_views[j].job for j in jobs) for jobs in plan])
        if not is_missing:
            self.scheduler.arrive(now, task_views)
        else:
            self._put_first(task_views)

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
        part = self.setting.part_before_loss((kind, number), task, self.failed[task])
        if part > 1 and is_map:
            data = mapreduce_job.map_block(job, self.setting.blocks[number], cls)
        elif part > 1:
            runs = [self.outputs[one].data[number] for one in range(self.maps)]
            data = mapreduce_job.reduce_partition(job, runs, cls)
        decision = self.scheduler.decisions[task]
        self.running[device] = attempt = Attempt(
            kind,
            number,
            self.tries[task],
            device,
            node,
            now,
            now + seconds * min(part, 1.0),
            self.size_of(task),
            remote,
            "lost" if part <= 1 else "done",
            decision.rule,
            decision.predicted_finish[place] if decision.predicted_finish else math.nan,
            task,
            seconds,
            data,
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
        # tasks lose their version for a class that has no device left
        state.main = MainQueue(self._task_views(view.job for view in state.main))
        for queue in state.queues:
            for view in self._task_views([view.job for view in queue]):
                queue.take(view.job)
                queue.put(view)
        self._require_replicas(state.main)
        for task in [task for task, made in self.outputs.items() if made.node == node]:
            self.outputs.pop(task).outcome = "gone"
            self.idle["map"].add(task)
        for part in range(self.setting.job.partitions):
            del self.pairs[node, part]


@dataclass(frozen=True, eq=False)
class MapReduceResult:
    """The output of a run and the table of its attempts.

    `output` is sorted by key. `attempts` has one row per attempt, in order of their starts: kind
    ("map" or "reduce"), number, attempt (from 0), device, node, start, end, size (units), remote
    (the units read from other nodes), outcome ("done"; "lost"; "killed": its node died; "gone":
    done, but the node died later, and the output with it), rule and predicted (by the policy).
    `blocks` has the size of each block (thousands of characters) and its nodes.
    """

    output: dict[Any, Any]
    attempts: pd.DataFrame
    blocks: pd.DataFrame
    setting: Setting
    name: str

    @property
    def history(self) -> History:
        """Run times known after the run; the history given to the run is not changed."""
        return self.setting.history

    @property
    def makespan(self) -> float:
        """End of the last reduce task."""
        return float(self.attempts["end"].max())

    @property
    def throughput(self) -> float:
        """Thousands of characters per unit of time."""
        return float(self.blocks["size"].sum()) / self.makespan

    def _failure_times(self, attempts: pd.DataFrame) -> pd.Series:
        """Return when the node of each attempt dies, infinity if it does not."""
        return attempts["node"].map(lambda node: self.setting.dead.get(node, np.inf))

    def check(self) -> None:
        """Check the output against a plain computation, and the attempts against the model."""
        attempts, setting = self.attempts, self.setting
        job, costs, node_of_device = setting.job, setting.costs, setting.group.node_of_device
        rows: list[Any] = list(attempts.itertuples(index=False))
        labels, died = attempts.index.tolist(), self._failure_times(attempts)
        reads = list(self._expected_reads(rows))
        local_times = [costs.time(r.kind, device_class(r.device), r.size) for r in rows]
        needed = np.array(local_times) + costs.remote * attempts["remote"].to_numpy()
        plain = mapreduce_job.run_plainly(job, setting.blocks)
        require("the output is that of a plain computation", self.output == plain)
        placed = [node_of_device.get(r.device) == r.node for r in rows]
        require("a device is on its node", placed, labels)
        require("nothing runs on a dead node", not_after(attempts["end"], died, needed), labels)
        is_killed = attempts["outcome"] == "killed"
        ends_with_node = table_times_equal(attempts["end"], died, needed)
        require("only a dying node kills", ~is_killed | ends_with_node, labels)
        require("nothing starts before 0", attempts["start"] >= 0, labels)
        alone = do_not_overlap(
            pd.factorize(attempts["device"])[0], attempts["start"], attempts["end"], needed.min()
        )
        require("a device runs one task at a time", alone, labels)
        in_order = [found is not None for found in reads]
        require("a reduce starts when all maps are done", in_order, labels)
        good = [found == (r.size, r.remote) for found, r in zip(reads, rows, strict=True)]
        require("a task reads its data, at hand or from other nodes", good, labels)
        end = attempts["start"] + needed
        cut = attempts["outcome"].isin(("lost", "killed")) & not_after(attempts["end"], end, needed)
        takes_its_time = cut | table_times_equal(end, attempts["end"], needed)
        require("an attempt takes its time", takes_its_time, labels)
        for kind, count in (("map", len(self.blocks)), ("reduce", job.partitions)):
            mine = attempts[attempts["kind"] == kind]
            require(f"every {kind} task runs", set(mine["number"]) == set(range(count)))
            once = mine[mine["outcome"] == "done"]["number"].value_counts()
            require("a task is not run again once it is done", (once <= 1).all())
        done = attempts[(attempts["kind"] == "reduce") & (attempts["outcome"] == "done")]["number"]
        require("every reduce task is done", set(done) == set(range(job.partitions)))
        tries = attempts.groupby(["kind", "number"], sort=False).cumcount()
        require("attempts are counted from 0", (tries == attempts["attempt"]).all())
        is_lost = attempts["outcome"] == "lost"
        lost = attempts[is_lost].groupby(["kind", "number"]).size().to_dict()
        owed = {} if setting.dead else setting.lost
        seen = [lost.get(task, 0) >= count for task, count in owed.items()]
        require("attempts are lost as injected", all(seen))

    def _expected_reads(self, rows: list[Any]) -> Iterator[tuple[float, float] | None]:
        """Yield the units that each attempt reads, and those from other nodes.

        None stands for a reduce task that starts before a map's output is there.
        """
        sizes, block_locations = self.blocks["size"].tolist(), self.blocks["nodes"].tolist()
        job, blocks, attempts = self.setting.job, self.setting.blocks, self.attempts
        mapped = functools.cache(
            lambda number, cls: mapreduce_job.map_block(job, blocks[number], cls)
        )
        made = attempts[(attempts["kind"] == "map") & attempts["outcome"].isin(("done", "gone"))]
        took, died = made["end"] - made["start"], self._failure_times(made)
        for row in rows:
            if row.kind == "map":
                size = sizes[row.number]
                yield size, 0.0 if row.node in block_locations[row.number] else size
                continue
            is_there = not_after(made["end"], row.start, took) & ~not_after(died, row.start, took)
            there = made[is_there].drop_duplicates("number", keep="last")
            locations = zip(there["number"], there["device"], strict=True)
            counts = np.array(
                [len(mapped(n, device_class(d))[row.number]) for n, d in locations], int
            )
            away = counts[there["node"].to_numpy() != row.node]
            yield None if len(there) < len(sizes) else (counts.sum() / 1000, away.sum() / 1000)


def run_mapreduce(
    job: MapReduce,
    blocks: Sequence[Any],
    group: NodeGroup | None = None,
    policy: str | Policy = "history",
    *,
    costs: Costs | None = None,
    replicas: int = 1,
    prefer_local: bool = False,
    lost: Mapping[tuple[str, int], int] | None = None,
    loss_rate: float = 0.0,
    dead: Mapping[int, float] | None = None,
    history: History | None = None,
    reading: Reading | None = None,
    seed: int = 0,
) -> MapReduceResult:
    """Run a MapReduce job, whose map and reduce tasks enter the main queue of one policy.

    All map tasks arrive at 0, all reduce tasks when the output of every map is there.

    Parameters
    ----------
    job : MapReduce
        Functions and number of partitions.
    blocks : sequence
        The input, each with a length: `split_text` of a text.
    group : NodeGroup, optional
        Nodes with their CPUs and GPUs.
    policy : str or Policy
        As in `dlsim.cpugpu.simulate`; "ideal" only without faults and with few tasks.
    costs : Costs, optional
        Times of the tasks.
    replicas : int
        Number of nodes that hold each block, drawn at random (`place_blocks`).
    prefer_local : bool
        Whether a node that the policy chooses for a map gets, in its place, the first waiting map
        of the same application whose block it holds.
    lost : mapping of (str, int) to int, optional
        How many attempts at a task are lost, each at its end: ``{("map", 1): 1}``.
    loss_rate : float
        Probability below 1 that any other attempt is lost, at a uniform part of its time.
    dead : mapping of int to float, optional
        The instant at which a node dies, by node; the map outputs on it are lost.
    history : History, optional
        Run times known at the start; the object is not changed.
    reading : Reading, optional
        How the gaps of the paper are filled.
    seed : int
        Seed of the nodes of blocks and of the losses.

    Returns
    -------
    MapReduceResult
        Output and tables; `check` compares the output with that of a plain computation.

    Raises
    ------
    InputError
        For a value that cannot be used, or tasks that no device can run.

    Examples
    --------
    >>> from dlsim.cpugpu import split_text, word_count
    >>> blocks = split_text("the quick fox the dog the fox", 3)
    >>> r = run_mapreduce(word_count(), blocks, lost={("map", 1): 1})
    >>> r.output
    {'dog': 1, 'fox': 2, 'quick': 1, 'the': 3}
    >>> len(r.attempts[r.attempts["kind"] == "map"])
    4
    """
    instance("job", job, MapReduce, "; see word_count()")
    group, costs = or_default("group", group, NodeGroup), or_default("costs", costs, Costs)
    reading, known = require_reading_and_history(reading, history)
    if isinstance(blocks, str):
        raise InputError("blocks must be a list, got one text; see split_text(text, blocks)")
    rule = "blocks must be a list of things with a length"
    with user_code(rule):
        blocks = list(blocks)
        sizes = [len(block) / 1000 for block in blocks]
    if not blocks:
        raise InputError(f"{rule}, got none")
    locations = place_blocks(len(blocks), group.nodes, replicas, seed)
    lost = dict(mapping("lost", lost or {}))
    counts = {"map": len(blocks), "reduce": job.partitions}
    for task, times in lost.items():
        if not isinstance(task, tuple) or len(task) != 2:
            raise InputError(f'lost must name tasks as ("map", 1), got {task!r}')
        one_of("lost", task[0], mapreduce_job.KINDS)
        whole(f"lost {task[0]}", task[1], 0, counts[task[0]] - 1)
        whole(f"lost[{task!r}]", times, 0, 1000)
    dead = mapping("dead", dead or {})
    node_failures = {
        whole("dead", node, 0, group.nodes - 1): number("dead", at) for node, at in dead.items()
    }
    if len(node_failures) == group.nodes:
        raise InputError(f"dead must leave a node alive, got all {group.nodes}")
    name, row = model.find_job_policy(policy)
    setting = Setting(
        job,
        blocks,
        sizes,
        group,
        locations,
        costs,
        row,
        reading,
        known,
        flag("prefer_local", prefer_local),
        lost,
        number("loss_rate", loss_rate, 0, 0.99),
        node_failures,
        whole("seed", seed, 0, 2**63),
    )
    run = TaskRun(setting)
    run.run()
    attempts = pd.DataFrame(map(vars, run.attempts)).drop(columns=["task", "seconds", "data"])
    table = pd.DataFrame({"size": sizes, "nodes": setting.block_locations})
    with user_code(f"keys of {job.name!r} must be such that they can be sorted"):
        output = {key: run.results[key] for key in sorted(run.results)}
    return MapReduceResult(output, attempts, table, setting, name)

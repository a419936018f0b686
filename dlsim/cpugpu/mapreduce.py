"""MapReduce on the CPUs and GPUs of several nodes: its tasks in the main queue of any policy.

Source: paper C, the abstract and section 4: "Reliability is achieved by reassigning any failed
node's job to another node." A lost attempt puts its task back to the head of the main queue; a
node that dies takes its devices, its running tasks, and the output of its finished maps with it.
The functions run on real data; times are those of `Costs`, in simulated time.
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

from dlsim.compiled import latest_finish
from dlsim.cpugpu import mapreduce_job, model
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow, ideal_plan
from dlsim.cpugpu.job_table import (
    busy_shares,
    do_not_overlap,
    is_same_instant,
    require,
    require_reading_and_history,
    same_instants,
)
from dlsim.cpugpu.jobs import CLASSES, JobView, device_class
from dlsim.cpugpu.mapreduce_job import (
    Costs,
    MapReduce,
    NodeGroup,
    place_blocks,
    split_text,
    word_count,
)
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

__all__ = [
    "Costs",
    "MapReduce",
    "MapReduceResult",
    "NodeGroup",
    "place_blocks",
    "run_mapreduce",
    "split_text",
    "word_count",
]


class Setting(NamedTuple):
    """All that a run is made of; from `lost` on what goes wrong."""

    job: MapReduce
    blocks: Sequence[Any]
    sizes: list[float]
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
        chance, part = random_generator(self.seed, task, attempt).random(2)
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
    """The event loop of one run; `attempts` and `results` are what came of it.

    A task is idle where it is neither done nor running nor in a queue.
    """

    def __init__(self, setting: Setting) -> None:
        self.set, self.maps = setting, len(setting.blocks)
        self.places = setting.group.places
        self.time = functools.cache(setting.costs.time)
        self.plan: Decide | None = None
        machine, policy, reading = setting.group.machine, setting.policy, setting.reading
        self.desk = OnlineScheduler(machine, policy, reading, setting.history, self._decider())
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
        state, deaths, now = self.desk.state, dict(self.set.dead), 0.0
        while self.left:
            self._settle(now)
            for device, item in self.desk.dispatch(now):
                self._begin(device, item, now)
            ends = [attempt.end for attempt in self.running.values()]
            if not ends and not (deaths and state.main):
                name, waiting = model.find_job_policy(self.set.policy)[0], len(state.main)
                raise InputError(
                    f"policy {name} leaves {waiting} tasks waiting for ever: no "
                    "device of the class that they wait for; use another policy, version or group"
                )
            now = min([*ends, *deaths.values()])
            for attempt in sorted(self.running.values(), key=lambda a: (a.end, a.task)):
                if is_same_instant(attempt.end, now, attempt.seconds):
                    self._end(attempt)
            limit = latest_finish(now, self.shortest if self.attempts else 0.0)
            for node in [node for node, when in deaths.items() if when <= limit]:
                del deaths[node]
                self._die(node, now)

    def _decider(self) -> Decide:
        """Return what decides: the policy's rule, or what stands in its place."""
        given = self.set
        if given.policy.rule == "ideal":
            if given.lost or given.loss_rate or given.dead or given.prefer_local:
                raise InputError(
                    "an exhaustive schedule is made beforehand: use it without faults and "
                    "without prefer_local"
                )
            return lambda *seen: self.plan(*seen) if self.plan else None
        decide = decider(given.policy)

        def local_first(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
            """Of the tasks alike to a policy, serve the first whose block is there (section 4)."""
            decision = decide(state, policy, reading)
            if decision is None or decision.job not in state.main:
                return decision
            own = state.main.find(decision.job)
            node, versions = self.places[state.devices[decision.device]], own.declared.keys()
            alike = (i for i in state.main if i.app == own.app and i.declared.keys() == versions)
            near_by = (item for item in chain([own], alike) if self._is_local(item.job, node))
            local = next(near_by, own)
            if local.declared != own.declared:
                decision = decision._replace(finishes=())
            return decision._replace(job=local.job)

        return local_first if given.prefer_local else decide

    def _is_local(self, task: int, node: int) -> bool:
        return task >= self.maps or node in self.set.homes[task]

    def size_of(self, task: int, node: int | None = None) -> float:
        """Return the units of a task, or those of other nodes; a reduce's once maps are done."""
        if task < self.maps:
            return 0.0 if node is not None and self._is_local(task, node) else self.set.sizes[task]
        part, nodes = task - self.maps, range(self.set.group.nodes)
        return sum(self.pairs[home, part] for home in nodes if home != node) / 1000

    def _items(self, tasks: Iterable[int]) -> list[JobView]:
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
            found.append(JobView(task, f"{job.name} {kind}", times))
        return found

    def _settle(self, now: float) -> None:
        """Queue the maps whose output is missing, and the reduces once none is."""
        waiting = self.left - sum(attempt.kind == "reduce" for attempt in self.running.values())
        if not waiting:
            return
        state, is_missing = self.desk.state, len(self.outputs) < self.maps
        if is_missing and waiting > len(self.idle["reduce"]):
            for item in [item for item in state.main if item.job >= self.maps]:
                self.idle["reduce"].add(state.main.take(item.job).job)
            for d, queue in enumerate(state.queues):
                reduces = [item for item in queue if item.job >= self.maps]
                self.idle["reduce"].update(item.job for item in self._unassigned(d, reduces))
        idle = self.idle["map" if is_missing else "reduce"]
        items = self._items(sorted(idle))
        idle.clear()
        if is_missing:
            self._need_replicas(items)
        if self.set.policy.rule == "ideal" and items:
            times = np.array(
                [
                    [
                        item.declared.get(device_class(device), math.nan)
                        + self.set.costs.remote * self.size_of(item.job, self.places[device])
                        for device in state.devices
                    ]
                    for item in items
                ]
            )
            plan = ideal_plan([state.now] * len(items), times, self.set.policy.objective)
            self.plan = follow([tuple(items[j].job for j in jobs) for jobs in plan])
        if not is_missing:
            self.desk.arrive(now, items)
        else:
            self._put_first(items)

    def _put_first(self, items: list[JobView]) -> None:
        """Put tasks before all others of the main queue, in their order."""
        for item in reversed(items):
            self.desk.state.main.put(item, first=True)

    def _unassigned(self, device: int, items: list[JobView]) -> list[JobView]:
        """Take items out of a sub-queue, unserved: rule 2 forgets the assignment."""
        for item in items:
            self.desk.state.queues[device].take(item.job)
            self.set.history.withdraw(item.app, self.desk.state.classes[device])
        return items

    def _need_replicas(self, items: Iterable[JobView]) -> None:
        for task in (item.job for item in items if item.job < self.maps):
            if set(self.set.homes[task]) <= self.dead:
                raise InputError(
                    f"dead must leave a replica of block {task}, held by nodes "
                    f"{self.set.homes[task]}; place more replicas"
                )

    def _begin(self, place: int, item: JobView, now: float) -> None:
        task, device, job = item.job, self.desk.state.devices[place], self.set.job
        node, cls, is_map = self.places[device], device_class(device), task < self.maps
        kind, number = ("map", task) if is_map else ("reduce", task - self.maps)
        remote = self.size_of(task, node)
        data: Any = None
        seconds = item.declared[cls] + self.set.costs.remote * remote
        part = self.set.part((kind, number), task, self.failed[task])
        if part > 1 and is_map:
            data = mapreduce_job.map_block(job, self.set.blocks[number], cls)
        elif part > 1:
            runs = [self.outputs[one].data[number] for one in range(self.maps)]
            data = mapreduce_job.reduce_partition(job, runs, cls)
        decision = self.desk.moves[task].decision
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
            decision.finishes[place] if decision.finishes else math.nan,
            task,
            seconds,
            data,
        )
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

    def _die(self, node: int, now: float) -> None:
        """Take a node away: running tasks and sub-queues go back, outputs are lost."""
        self.dead.add(node)
        state = self.desk.state
        doomed = [d for d, name in enumerate(state.devices) if self.places[name] == node]
        for d in reversed(doomed):
            attempt = self.running.pop(state.devices[d], None)
            self._put_first(self._unassigned(d, list(state.queues[d])))
            if attempt is not None:
                self.desk.lose(now, d)
                self.failed[attempt.task] += 1
                attempt.end, attempt.outcome = now, "killed"
        state.remove_devices(doomed)
        # a class whose last device is gone is no longer among a task's versions
        state.main = MainQueue(self._items(item.job for item in state.main))
        for queue in state.queues:
            for item in self._items([item.job for item in queue]):
                queue.take(item.job)
                queue.put(item)
        self._need_replicas(state.main)
        for task in [task for task, made in self.outputs.items() if made.node == node]:
            self.outputs.pop(task).outcome = "gone"
            self.idle["map"].add(task)
        for part in range(self.set.job.partitions):
            del self.pairs[node, part]


@dataclass(frozen=True, eq=False)
class MapReduceResult:
    """What a run produced and how.

    `output` has ascending keys; `attempts` a row each, in order of their starts: kind ("map"
    or "reduce"), number, attempt (from 0), device, node, start, end, size (units), remote
    (those read from other nodes), outcome ("done", "lost", "killed" with its node, "gone":
    done, but its output died with its node), rule and predicted (the policy's); `blocks` their
    size (thousands of characters) and nodes.
    """

    output: dict[Any, Any]
    attempts: pd.DataFrame
    blocks: pd.DataFrame
    setting: Setting
    name: str

    @property
    def history(self) -> History:
        """What is known afterwards; the history that was given stays as it was."""
        return self.setting.history

    @property
    def makespan(self) -> float:
        """End of the last reduce task."""
        return float(self.attempts["end"].max())

    @property
    def map_end(self) -> float:
        """End of the last map before the first reduce starts."""
        maps = self.attempts["kind"] == "map"
        first = self.attempts.loc[~maps, "start"].min()
        return float(self.attempts.loc[maps & (self.attempts["end"] <= first), "end"].max())

    @property
    def throughput(self) -> float:
        """Thousands of characters per unit of time."""
        return float(self.blocks["size"].sum()) / self.makespan

    @property
    def local_share(self) -> float:
        """Share of the map attempts that found their block on their node."""
        maps = self.attempts[self.attempts["kind"] == "map"]
        return float((maps["remote"] == 0).mean())

    @property
    def utilisation(self) -> pd.Series:
        """Part of the makespan that each device was busy."""
        return busy_shares(self.attempts, self.setting.group.machine.devices, self.makespan)

    def _deaths(self, attempts: pd.DataFrame) -> pd.Series:
        """Return when the node of each attempt dies; infinity: never."""
        return attempts["node"].map(lambda node: self.setting.dead.get(node, np.inf))

    def check(self) -> None:
        """Check the output against a plain computation, and the attempts against the model."""
        a, given = self.attempts, self.setting
        job, costs, places = given.job, given.costs, given.group.places
        rows: list[Any] = list(a.itertuples(index=False))
        labels, died, reads = a.index.tolist(), self._deaths(a), list(self._readings(rows))
        needed = np.array(
            [
                costs.time(r.kind, device_class(r.device), r.size) + costs.remote * r.remote
                for r in rows
            ]
        )
        plain = mapreduce_job.run_plainly(job, given.blocks)
        require("the output is that of a plain computation", self.output == plain)
        placed = [places.get(r.device) == r.node for r in rows]
        require("a device is on its node", placed, labels)
        require("nothing runs on a dead node", not_after(a["end"], died, needed), labels)
        killed_then = (a["outcome"] != "killed") | same_instants(a["end"], died, needed)
        require("only a dying node kills", killed_then, labels)
        require("nothing starts before 0", a["start"] >= 0, labels)
        alone = do_not_overlap(pd.factorize(a["device"])[0], a["start"], a["end"], needed.min())
        require("a device runs one task at a time", alone, labels)
        in_order = [found is not None for found in reads]
        require("a reduce starts when all maps are done", in_order, labels)
        good = [found == (r.size, r.remote) for found, r in zip(reads, rows, strict=True)]
        require("a task reads its data, at hand or from other nodes", good, labels)
        end = a["start"] + needed
        cut = a["outcome"].isin(("lost", "killed")) & not_after(a["end"], end, needed)
        require("an attempt takes its time", cut | same_instants(end, a["end"], needed), labels)
        for kind, count in (("map", len(self.blocks)), ("reduce", job.partitions)):
            mine = a[a["kind"] == kind]
            require(f"every {kind} task runs", set(mine["number"]) == set(range(count)))
            once = mine[mine["outcome"] == "done"]["number"].value_counts()
            require("a task is not run again once it is done", (once <= 1).all())
        done = a[(a["kind"] == "reduce") & (a["outcome"] == "done")]["number"]
        require("every reduce task is done", set(done) == set(range(job.partitions)))
        tries = a.groupby(["kind", "number"], sort=False).cumcount()
        require("attempts are counted from 0", (tries == a["attempt"]).all())
        lost = a[(a["outcome"] == "lost")].groupby(["kind", "number"]).size().to_dict()
        owed = {} if given.dead else given.lost
        seen = [lost.get(task, 0) >= count for task, count in owed.items()]
        require("attempts are lost as injected", all(seen))

    def _readings(self, rows: list[Any]) -> Iterator[tuple[float, float] | None]:
        """Yield each attempt's units, and those from other nodes; None: a reduce before a map."""
        sizes, homes = self.blocks["size"].tolist(), self.blocks["nodes"].tolist()
        job, blocks, a = self.setting.job, self.setting.blocks, self.attempts
        mapped = functools.cache(
            lambda number, cls: mapreduce_job.map_block(job, blocks[number], cls)
        )
        made = a[(a["kind"] == "map") & a["outcome"].isin(("done", "gone"))]
        took, died = made["end"] - made["start"], self._deaths(made)
        for row in rows:
            if row.kind == "map":
                size = sizes[row.number]
                yield size, 0.0 if row.node in homes[row.number] else size
                continue
            is_there = not_after(made["end"], row.start, took) & ~not_after(died, row.start, took)
            there = made[is_there].drop_duplicates("number", keep="last")
            held = zip(there["number"], there["device"], strict=True)
            counts = np.array([len(mapped(n, device_class(d))[row.number]) for n, d in held], int)
            away = counts[there["node"].to_numpy() != row.node]
            yield None if len(there) < len(sizes) else (counts.sum() / 1000, away.sum() / 1000)


def run_mapreduce(
    job: MapReduce,
    blocks: Sequence[Any],
    group: NodeGroup | None = None,
    policy: str | Policy = "history",
    *,
    costs: Costs | None = None,
    homes: Sequence[Sequence[int]] | None = None,
    replicas: int = 1,
    prefer_local: bool = False,
    lost: Mapping[tuple[str, int], int] | None = None,
    loss_rate: float = 0.0,
    dead: Mapping[int, float] | None = None,
    history: History | None = None,
    reading: Reading | None = None,
    seed: int = 0,
) -> MapReduceResult:
    """Run a MapReduce job; its map and reduce tasks enter the main queue of one policy.

    All maps arrive at 0, all reduces when every map's output is there.

    Parameters
    ----------
    job : MapReduce
        Functions and number of partitions.
    blocks : sequence
        The input, each with a length: `split_text` of a text.
    group : NodeGroup, optional
        Nodes with their CPUs and GPUs.
    policy : str or Policy
        As of `dlsim.cpugpu.simulate`; "ideal" only without faults, and few tasks.
    costs : Costs, optional
        Times of the tasks.
    homes : sequence of sequence of int, optional
        The nodes that hold each block; by default `place_blocks` with `replicas`, `seed`.
    replicas : int
        Of each block.
    prefer_local : bool
        Locality first: a node served by the policy gets the first waiting map of the same
        application whose block it holds.
    lost : mapping of (str, int) to int, optional
        Attempts that are lost at their end: ``{("map", 1): 1}``.
    loss_rate : float
        Probability below 1 that any other attempt is lost, at a uniform part of its time.
    dead : mapping of int to float, optional
        When a node dies, with the map outputs on it.
    history : History, optional
        What is known at the start. It is not changed.
    reading : Reading, optional
        How the gaps of the paper are filled.
    seed : int
        Of the places of blocks and of the losses.

    Returns
    -------
    MapReduceRun
        Output and tables; its `check` compares with a plain computation.

    Raises
    ------
    InputError
        For a value that cannot be used, or tasks that no device can run.

    Examples
    --------
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
    last = group.nodes - 1
    if homes is None:
        homes = place_blocks(len(blocks), group.nodes, replicas, seed)
    with user_code("homes must be a list of the nodes of each block"):
        held = [tuple(sorted(set(places))) for places in homes]
    if len(held) != len(blocks):
        wrong = f"homes must have an entry for each of {len(blocks)} blocks, got {len(held)}"
        raise InputError(wrong)
    for block, places in enumerate(held):
        if not places or not set(places) <= set(range(group.nodes)):
            raise InputError(
                f"homes of block {block} must be nodes among 0..{last}, at least one; "
                f"got {places!r}"
            )
    lost = dict(mapping("lost", lost or {}))
    counts = {"map": len(blocks), "reduce": job.partitions}
    for task, times in lost.items():
        if not isinstance(task, tuple) or len(task) != 2:
            raise InputError(f'lost must name tasks as ("map", 1), got {task!r}')
        one_of("lost", task[0], mapreduce_job.KINDS)
        whole(f"lost {task[0]}", task[1], 0, counts[task[0]] - 1)
        whole(f"lost[{task!r}]", times, 0, 1000)
    dead = mapping("dead", dead or {})
    deaths = {whole("dead", node, 0, last): number("dead", at) for node, at in dead.items()}
    if len(deaths) == group.nodes:
        raise InputError(f"dead must leave a node alive, got all {group.nodes}")
    name, row = model.find_job_policy(policy)
    setting = Setting(
        job,
        blocks,
        sizes,
        group,
        held,
        costs,
        row,
        reading,
        known,
        flag("prefer_local", prefer_local),
        lost,
        number("loss_rate", loss_rate, 0, 0.99),
        deaths,
        whole("seed", seed, 0, 2**63),
    )
    run = TaskRun(setting)
    run.run()
    attempts = pd.DataFrame(map(vars, run.attempts)).drop(columns=["task", "seconds", "data"])
    table = pd.DataFrame({"size": sizes, "nodes": setting.homes})
    with user_code(f"keys of {job.name!r} must be such that they can be sorted"):
        output = {key: run.results[key] for key in sorted(run.results)}
    return MapReduceResult(output, attempts, table, setting, name)

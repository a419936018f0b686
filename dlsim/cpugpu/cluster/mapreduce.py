"""MapReduce on the CPUs and GPUs of several nodes: its tasks in the main queue of any policy.

Source: paper C, the abstract and section 4: "Reliability is achieved by reassigning any failed
node's job to another node." The functions run on real data; times are simulated, by `Costs`. The
event loop is in `dlsim.cpugpu.cluster.mapreduce_run`.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.check import do_not_overlap, require, table_times_equal
from dlsim.cpugpu.cluster import mapreduce_job
from dlsim.cpugpu.cluster.mapreduce_job import (
    Costs,
    Faults,
    MapReduce,
    NodeGroup,
    Storage,
    place_blocks,
)
from dlsim.cpugpu.cluster.mapreduce_run import Setting, TaskRun
from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import AnyPolicy, Policy, Reading, device_class, read_policy
from dlsim.cpugpu.scheduler import require_reading_and_history
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.user_code import calling_user_code
from dlsim.validate import instance, or_default


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
    def policy(self) -> Policy:
        """The policy of the run."""
        return self.setting.policy

    @property
    def reading(self) -> Reading:
        """The reading of the run."""
        return self.setting.reading

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

    def summary(self) -> pd.Series:
        """Return the measures that paper C names, under the name of the policy.

        Returns
        -------
        Series
            makespan (units of time; less is better) and throughput (thousands of characters per
            unit of time; more is better).
        """
        values = {"makespan": self.makespan, "throughput": self.throughput}
        return pd.Series(values, name=self.name)

    def _failure_times(self, attempts: pd.DataFrame) -> pd.Series:
        """Return when the node of each attempt dies, infinity if it does not."""
        return attempts["node"].map(lambda node: self.setting.faults.dead.get(node, np.inf))

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
        owed = {} if setting.faults.dead else setting.faults.lost
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
    group: NodeGroup,
    policy: AnyPolicy,
    reading: Reading | None = None,
    *,
    costs: Costs | None = None,
    storage: Storage | None = None,
    faults: Faults | None = None,
    history: History | None = None,
) -> MapReduceResult:
    """Run a MapReduce job, whose map and reduce tasks enter the main queue of one policy.

    All map tasks arrive at 0, all reduce tasks when the output of every map is there.

    Parameters
    ----------
    job : MapReduce
        Functions and number of partitions.
    blocks : sequence
        The input, each with a length: `split_text` of a text.
    group : NodeGroup
        Nodes with their CPUs and GPUs.
    policy : str or Policy or callable
        As in `dlsim.cpugpu.simulate`; "ideal" only without faults and with few tasks.
    reading : Reading, optional
        How the gaps of the paper are filled.
    costs : Costs, optional
        Times of the tasks.
    storage : Storage, optional
        On which nodes the blocks are; default one each, drawn at random.
    faults : Faults, optional
        What breaks; default nothing.
    history : History, optional
        Run times known at the start; the object is not changed.

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
    >>> blocks, faults = split_text("the quick fox the dog the fox", 3), Faults({("map", 1): 1})
    >>> r = run_mapreduce(word_count(), blocks, NodeGroup(), "history", faults=faults)
    >>> r.output
    {'dog': 1, 'fox': 2, 'quick': 1, 'the': 3}
    >>> len(r.attempts[r.attempts["kind"] == "map"])
    4
    """
    instance("job", job, MapReduce, "; see word_count()")
    instance("group", group, NodeGroup)
    costs, storage = or_default("costs", costs, Costs), or_default("storage", storage, Storage)
    faults = or_default("faults", faults, Faults)
    reading, known = require_reading_and_history(reading, history)
    if isinstance(blocks, str):
        raise InputError("blocks must be a list, got one text; see split_text(text, blocks)")
    rule = "blocks must be a list of things with a length"
    with calling_user_code(rule):
        blocks = list(blocks)
        sizes = [len(block) / 1000 for block in blocks]
    if not blocks:
        raise InputError(f"{rule}, got none")
    locations = place_blocks(len(blocks), group.nodes, storage.replicas, storage.seed)
    faults.require_tasks_and_nodes(len(blocks), job.partitions, group.nodes)
    name, policy = read_policy(policy)
    setting = Setting(
        job, blocks, sizes, group, locations, costs, policy, reading, known, storage, faults
    )
    run = TaskRun(setting)
    run.run()
    attempts = pd.DataFrame(map(vars, run.attempts)).drop(columns=["task", "seconds", "data"])
    table = pd.DataFrame({"size": sizes, "nodes": setting.block_locations})
    with calling_user_code(f"keys of {job.name!r} must be such that they can be sorted"):
        output = {key: run.results[key] for key in sorted(run.results)}
    return MapReduceResult(output, attempts, table, setting, name)

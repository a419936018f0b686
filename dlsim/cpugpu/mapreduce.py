"""MapReduce on the CPUs and GPUs of several nodes: its tasks in the main queue of any policy.

Source: paper C, the abstract and section 4: "Reliability is achieved by reassigning any failed
node's job to another node." The functions run on real data; times are simulated, by `Costs`. The
event loop is in `dlsim.cpugpu.mapreduce_run`.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu import mapreduce_job, model
from dlsim.cpugpu.history import History
from dlsim.cpugpu.job_table import (
    do_not_overlap,
    require,
    require_reading_and_history,
    table_times_equal,
)
from dlsim.cpugpu.jobs import device_class
from dlsim.cpugpu.mapreduce_job import Costs, MapReduce, NodeGroup, place_blocks
from dlsim.cpugpu.mapreduce_run import Setting, TaskRun
from dlsim.cpugpu.model import Policy, Reading
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.user_code import calling_user_code
from dlsim.validate import flag, instance, mapping, number, one_of, or_default, whole


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
    with calling_user_code(rule):
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
    with calling_user_code(f"keys of {job.name!r} must be such that they can be sorted"):
        output = {key: run.results[key] for key in sorted(run.results)}
    return MapReduceResult(output, attempts, table, setting, name)

"""MapReduce on the CPUs and GPUs of several nodes, its tasks placed by any policy.

Source: paper C, the abstract and section 4. The functions run on real data; times are
those of `Costs`, in simulated time.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu import mapdata
from dlsim.cpugpu.given import apart, hold, together
from dlsim.cpugpu.history import History
from dlsim.cpugpu.intake import need_known
from dlsim.cpugpu.mapdata import Costs, MapReduce, NodeGroup, place_blocks, split_text, word_count
from dlsim.cpugpu.maptasks import Setting, TaskRun
from dlsim.cpugpu.model import Policy, Reading, class_of, policy_named
from dlsim.errors import InputError
from dlsim.given import flag, instance, number, option, usual, whole
from dlsim.rounding import not_after

__all__ = [
    "Costs", "MapReduce", "MapReduceRun", "NodeGroup", "place_blocks", "run_mapreduce",
    "split_text", "word_count",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class MapReduceRun:
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
        busy = (self.attempts["end"] - self.attempts["start"]).groupby(self.attempts["device"])
        devices = list(self.setting.group.machine.devices)
        return (busy.sum().reindex(devices, fill_value=0.0) / self.makespan).rename("busy")

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
            [costs.time(r.kind, class_of(r.device), r.size) + costs.remote * r.remote for r in rows]
        )
        plain = mapdata.run_plainly(job, given.blocks)
        hold("the output is that of a plain computation", self.output == plain)
        placed = [places.get(r.device) == r.node for r in rows]
        hold("a device is on its node", placed, labels)
        hold("nothing runs on a dead node", not_after(a["end"], died, needed), labels)
        killed_then = (a["outcome"] != "killed") | together(a["end"], died, needed)
        hold("only a dying node kills", killed_then, labels)
        hold("nothing starts before 0", a["start"] >= 0, labels)
        alone = apart(pd.factorize(a["device"])[0], a["start"], a["end"], needed.min())
        hold("a device runs one task at a time", alone, labels)
        in_order = [found is not None for found in reads]
        hold("a reduce starts when all maps are done", in_order, labels)
        good = [found == (r.size, r.remote) for found, r in zip(reads, rows, strict=True)]
        hold("a task reads its data, at hand or from other nodes", good, labels)
        end = a["start"] + needed
        cut = a["outcome"].isin(("lost", "killed")) & not_after(a["end"], end, needed)
        hold("an attempt takes its time", cut | together(end, a["end"], needed), labels)
        for kind, count in (("map", len(self.blocks)), ("reduce", job.partitions)):
            mine = a[a["kind"] == kind]
            hold(f"every {kind} task runs", set(mine["number"]) == set(range(count)))
            once = mine[mine["outcome"] == "done"]["number"].value_counts()
            hold("a task is not run again once it is done", (once <= 1).all())
        done = a[(a["kind"] == "reduce") & (a["outcome"] == "done")]["number"]
        hold("every reduce task is done", set(done) == set(range(job.partitions)))
        tries = a.groupby(["kind", "number"], sort=False).cumcount()
        hold("attempts are counted from 0", (tries == a["attempt"]).all())
        lost = a[(a["outcome"] == "lost")].groupby(["kind", "number"]).size().to_dict()
        owed = {} if given.dead else given.lost
        seen = [lost.get(task, 0) >= count for task, count in owed.items()]
        hold("attempts are lost as injected", all(seen))

    def _readings(self, rows: list[Any]) -> Iterator[tuple[float, float] | None]:
        """Yield each attempt's units, and those from other nodes; None: a reduce before a map."""
        sizes, homes = self.blocks["size"].tolist(), self.blocks["nodes"].tolist()
        job, blocks, a = self.setting.job, self.setting.blocks, self.attempts
        mapped = functools.cache(lambda number, cls: mapdata.map_block(job, blocks[number], cls))
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
            counts = np.array([len(mapped(n, class_of(d))[row.number]) for n, d in held], int)
            away = counts[there["node"].to_numpy() != row.node]
            yield None if len(there) < len(sizes) else (counts.sum() / 1000, away.sum() / 1000)


def run_mapreduce(
    job: MapReduce, blocks: Sequence[Any], group: NodeGroup | None = None,
    policy: str | Policy = "history", *, costs: Costs | None = None,
    homes: Sequence[Sequence[int]] | None = None, replicas: int = 1, prefer_local: bool = False,
    lost: Mapping[tuple[str, int], int] | None = None, loss_rate: float = 0.0,
    dead: Mapping[int, float] | None = None, history: History | None = None,
    reading: Reading | None = None, seed: int = 0,
) -> MapReduceRun:  # fmt: skip
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
    group, costs = usual("group", group, NodeGroup), usual("costs", costs, Costs)
    reading, known = need_known(reading, history)
    if isinstance(blocks, str):
        raise InputError("blocks must be a list, got one text; see split_text(text, blocks)")
    blocks = list(blocks)
    if not blocks or not all(hasattr(block, "__len__") for block in blocks):
        raise InputError(f"blocks must be a list of things with a length, got {blocks[:3]!r}")
    if homes is None:
        homes = place_blocks(len(blocks), group.nodes, replicas, seed)
    if len(homes) != len(blocks):
        wrong = f"homes must have an entry for each of {len(blocks)} blocks, got {len(homes)}"
        raise InputError(wrong)
    for block, places in enumerate(homes):
        if not places or not set(places) <= set(range(group.nodes)):
            raise InputError(
                f"homes of block {block} must be nodes among 0..{group.nodes - 1}, at least one; "
                f"got {tuple(places)!r}"
            )
    lost, counts = dict(lost or {}), {"map": len(blocks), "reduce": job.partitions}
    for task, times in lost.items():
        if not isinstance(task, tuple) or len(task) != 2:
            raise InputError(f'lost must name tasks as ("map", 1), got {task!r}')
        option("lost", task[0], mapdata.KINDS)
        whole(f"lost {task[0]}", task[1], 0, counts[task[0]] - 1)
        whole(f"lost[{task!r}]", times, 0, 1000)
    last = group.nodes - 1
    deaths = {whole("dead", k, 0, last): number("dead", at) for k, at in (dead or {}).items()}
    if len(deaths) == group.nodes:
        raise InputError(f"dead must leave a node alive, got all {group.nodes}")
    name, row = policy_named(policy)
    setting = Setting(
        job, blocks, group, [tuple(sorted(set(places))) for places in homes], costs, row,
        reading, known, flag("prefer_local", prefer_local), lost,
        number("loss_rate", loss_rate, 0, 0.99), deaths, whole("seed", seed, 0, 2**63),
    )  # fmt: skip
    run = TaskRun(setting)
    run.run()
    attempts = pd.DataFrame(map(vars, run.attempts)).drop(columns=["task", "seconds", "data"])
    table = pd.DataFrame({"size": run.sizes, "nodes": setting.homes})
    return MapReduceRun(run.output, attempts, table, setting, name)

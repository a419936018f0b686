"""A MapReduce job: its functions, data, nodes and task times (paper C, section 4).

"The output of all the maps will be partitioned and each map will be partitioned and then
each partition will be sorted. There will be only one partition for each reduce task." All
of it is done here, on real data.
"""

import heapq
import itertools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from dlsim.cpugpu.gpu.chunks import Gpu
from dlsim.cpugpu.gpu.pipeline import makespan
from dlsim.cpugpu.model import CLASSES, MOST_COUNT, Machine
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import (
    flag,
    instance,
    mapping,
    number,
    one_of,
    random_generator,
    unwrap_scalar,
    whole,
)

#: From a block to pairs (key, value); keys of one job must be sortable.
Mapper = Callable[[Any], Iterable[tuple[Any, Any]]]
#: From a key and all of its values to the result of that key.
Reducer = Callable[[Any, list[Any]], Any]
Pairs = list[tuple[Any, Any]]

KINDS = ("map", "reduce")


@dataclass(frozen=True)
class MapReduce:
    """A MapReduce job: one function per device class, or one for all.

    "Our scheme allows for implementations that have separate versions of a kernel for each
    available device" (section 5): the version is chosen once a device is.

    Parameters
    ----------
    name : str
        Of the application; its tasks are the applications "name map" and "name reduce".
    map, reduce : callable or mapping of str to callable
        A function, or versions by class: "cpu", "gpu" or both.
    partitions : int
        Reduce tasks.

    Raises
    ------
    InputError
        For a blank name, what cannot be called, or an unknown class.
    """

    name: str
    map: Mapper | Mapping[str, Mapper]
    reduce: Reducer | Mapping[str, Reducer]
    partitions: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be the name of the job, got {self.name!r}")
        vars(self)["partitions"] = whole("partitions", self.partitions, 1, 10**6)
        for kind in KINDS:
            given = getattr(self, kind)
            is_mapping = isinstance(given, Mapping)
            versions = dict(given) if is_mapping else dict.fromkeys(CLASSES, given)
            good = versions and all(map(callable, versions.values()))
            if not good or not set(versions) <= set(CLASSES):
                raise InputError(
                    f"{kind} must be a function, or functions for cpu, gpu or both; got {given!r}"
                )
            vars(self)[kind] = versions if is_mapping else given

    def version(self, kind: str, cls: str) -> Any:
        """Return the function that a task ("map", "reduce") runs on a class, if there is one."""
        given = getattr(self, kind)
        return given.get(cls) if isinstance(given, Mapping) else given


def partition_of(key: Any, partitions: int) -> int:
    """Return the partition of a key by its text, the same in every process and for NumPy's 1."""
    return zlib.crc32(repr(unwrap_scalar(key)).encode()) % partitions


def map_block(job: MapReduce, block: Any, cls: str) -> list[Pairs]:
    """Map a block, partition its pairs, and sort every partition by key."""
    parts: list[Pairs] = [[] for _ in range(job.partitions)]
    with calling_user_code(
        f"map of {job.name!r} must give pairs (key, value), with keys that can be sorted"
    ):
        for key, value in job.version("map", cls)(block):
            parts[partition_of(key, job.partitions)].append((key, value))
        for pairs in parts:
            pairs.sort(key=itemgetter(0))
    return parts


def reduce_partition(job: MapReduce, runs: Sequence[Pairs], cls: str) -> dict[Any, Any]:
    """Merge the sorted runs of a partition and reduce every key."""
    reducer = job.version("reduce", cls)
    merged = heapq.merge(*runs, key=itemgetter(0))
    groups = itertools.groupby(merged, key=itemgetter(0))
    rule = f"reduce of {job.name!r} must take a key, which is hashed and sorted, and its values"
    with calling_user_code(rule):
        return {key: reducer(key, [value for _, value in pairs]) for key, pairs in groups}


def run_plainly(job: MapReduce, blocks: Sequence[Any]) -> dict[Any, Any]:
    """Compute the result without tasks, partitions or sorting: what every run must equal."""
    values: dict[Any, list[Any]] = {}
    mapper, reducer = (job.version(kind, "cpu") or job.version(kind, "gpu") for kind in KINDS)
    for block in blocks:
        for key, value in mapper(block):
            values.setdefault(key, []).append(value)
    return {key: reducer(key, own) for key, own in values.items()}


def split_text(text: str, blocks: int) -> list[str]:
    """Cut a text into at most `blocks` blocks of about equal length, never inside a word.

    The concatenation of the blocks is the text, which must contain a word.

    >>> split_text("the quick fox the dog the fox", 3)
    ['the quick ', 'fox the dog ', 'the fox']
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"text must hold a word, got {text!r}")
    whole("blocks", blocks, 1, 10**6)
    starts = np.array([match.start() for match in re.finditer(r"\S+", text)][1:], dtype=int)
    wanted = np.arange(1, blocks) * len(text) / blocks
    after = np.minimum(np.searchsorted(starts, wanted), max(len(starts) - 1, 0))
    cuts = sorted({int(starts[i]) for i in after}) if len(starts) else []
    return [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]


def words_of(text: str) -> list[str]:
    """Return the words of a text: letters and digits, in lower case."""
    return re.findall(r"\w+", text.lower())


def _count_words_sorted(text: str) -> Pairs:
    """Return the count of each word, in order: the version for a GPU, which sorts all at once."""
    words, counts = np.unique(np.array(words_of(text)), return_counts=True)
    return list(zip(words.tolist(), counts.tolist(), strict=True))


def word_count(partitions: int = 2) -> MapReduce:
    """Return the word count, with one version of its map per device class."""
    maps: dict[str, Mapper] = {
        "cpu": lambda text: [(word, 1) for word in words_of(text)],
        "gpu": _count_words_sorted,
    }
    return MapReduce("word count", maps, lambda word, counts: sum(counts), partitions)


@dataclass(frozen=True)
class NodeGroup:
    """Nodes among which CPUs and GPUs are dealt out in turn.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    cpus, gpus : int
        Devices in all; device i of a class is on node i mod nodes.

    Examples
    --------
    >>> NodeGroup(nodes=2, cpus=2, gpus=1).node_of_device
    {'gpu0': 0, 'cpu0': 0, 'cpu1': 1}
    """

    nodes: int = 2
    cpus: int = 2
    gpus: int = 2

    def __post_init__(self) -> None:
        vars(self).update(vars(self.machine), nodes=whole("nodes", self.nodes, 1, 10_000))

    @property
    def machine(self) -> Machine:
        """Return all devices as one machine."""
        return Machine(self.cpus, self.gpus)

    @property
    def node_of_device(self) -> dict[str, int]:
        """Return the node of every device."""
        return {device: int(device[3:]) % self.nodes for device in self.machine.devices}


@dataclass(frozen=True)
class Costs:
    """Times of map and reduce tasks, per unit: a thousand characters, or a thousand pairs.

    A GPU's task goes through its pipeline in equal chunks (`dlsim.cpugpu.gpu.pipeline`).

    Parameters
    ----------
    cpu_map, gpu_map, cpu_reduce, gpu_reduce : float
        Time to process a unit, on a GPU the kernel alone.
    copy : float
        Time to copy a unit to a GPU, and back.
    remote : float
        Time to read a unit from another node.
    setup : float
        Of every task, positive.
    chunks : int
        Chunks of a task on a GPU.
    gpu : Gpu
        Its streams and engines; ``Gpu(streams=1)`` overlaps nothing.
    """

    cpu_map: float = 1.0
    gpu_map: float = 0.1
    cpu_reduce: float = 0.5
    gpu_reduce: float = 0.1
    copy: float = 0.05
    remote: float = 0.3
    setup: float = 0.01
    chunks: int = 4
    gpu: Gpu = field(default_factory=Gpu)

    def __post_init__(self) -> None:
        own = vars(self)
        for name, value in own.items():
            if name not in ("chunks", "gpu"):
                own[name] = number(name, value, above=name == "setup")
        own["chunks"] = whole("chunks", self.chunks, 1, 10_000)
        instance("gpu", self.gpu, Gpu)

    def time(self, kind: str, cls: str, size: float) -> float:
        """Return the time of a task on local data, by its kind, device class and units."""
        unit = getattr(self, f"{one_of('class', cls, CLASSES)}_{one_of('kind', kind, KINDS)}")
        number("size", size)
        if cls == "cpu":
            return float(self.setup + size * unit)
        part = size / self.chunks
        times = [part * self.copy, part * unit, part * self.copy] * self.chunks
        return float(self.setup + makespan(times, self.gpu))


@dataclass(frozen=True)
class Storage:
    """On which nodes the blocks of the input are, and whether maps look for them.

    Parameters
    ----------
    replicas : int
        Number of nodes that hold each block, drawn at random (`place_blocks`).
    prefer_local : bool
        Whether a node that the policy chooses for a map gets, in its place, the first waiting map
        of the same application whose block it holds.
    seed : int
        Seed of the nodes of the blocks.

    Raises
    ------
    InputError
        For a number out of range, or a value that is not True or False.
    """

    replicas: int = 1
    prefer_local: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        vars(self).update(
            replicas=whole("replicas", self.replicas, 1, MOST_COUNT),
            seed=whole("seed", self.seed, 0, 2**63),
        )
        flag("prefer_local", self.prefer_local)


@dataclass(frozen=True)
class Faults:
    """What breaks in a run: attempts at tasks, and nodes.

    Parameters
    ----------
    lost : mapping of (str, int) to int, optional
        How many attempts at a task are lost, each at its end: ``{("map", 1): 1}``.
    loss_rate : float
        Probability below 1 that any other attempt is lost, at a uniform part of its time.
    dead : mapping of int to float, optional
        The instant at which a node dies, by node; the map outputs on it are lost.
    seed : int
        Seed of the losses.

    Raises
    ------
    InputError
        For a value that no run has.
    """

    lost: Mapping[tuple[str, int], int] = field(default_factory=dict)
    loss_rate: float = 0.0
    dead: Mapping[int, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        vars(self).update(
            lost=dict(mapping("lost", self.lost)),
            loss_rate=number("loss_rate", self.loss_rate, 0, 0.99),
            dead={
                whole("dead", node, 0): number("dead", at)
                for node, at in mapping("dead", self.dead).items()
            },
            seed=whole("seed", self.seed, 0, 2**63),
        )
        for task, times in self.lost.items():
            if not isinstance(task, tuple) or len(task) != 2:
                raise InputError(f'lost must name tasks as ("map", 1), got {task!r}')
            one_of("lost", task[0], KINDS)
            whole(f"lost {task[0]}", task[1], 0)
            whole(f"lost[{task!r}]", times, 0, 1000)

    def require_tasks_and_nodes(self, maps: int, reduces: int, nodes: int) -> None:
        """Refuse tasks and nodes that a run does not have, and the death of every node."""
        counts = {"map": maps, "reduce": reduces}
        for kind, task in self.lost:
            whole(f"lost {kind}", task, 0, counts[kind] - 1)
        for node in self.dead:
            whole("dead", node, 0, nodes - 1)
        if len(self.dead) == nodes:
            raise InputError(f"dead must leave a node alive, got all {nodes}")

    @property
    def any(self) -> bool:
        """Whether anything may break."""
        return bool(self.lost or self.loss_rate or self.dead)

    def part_before_loss(self, name: tuple[str, int], task: int, attempt: int) -> float:
        """Return the part of its time after which an attempt is lost, infinity if it is not."""
        if attempt < self.lost.get(name, 0):
            return 1.0
        if not self.loss_rate:
            return math.inf
        chance, part = random_generator(self.seed, task, attempt).random(2)
        return float(1 - part) if chance < self.loss_rate else math.inf


def place_blocks(
    blocks: int, nodes: int, replicas: int = 1, seed: int = 0
) -> list[tuple[int, ...]]:
    """Put replicas of every block on distinct nodes, at random."""
    blocks, nodes = whole("blocks", blocks, 1, 10**6), whole("nodes", nodes, 1, MOST_COUNT)
    source, replicas = random_generator(seed), whole("replicas", replicas, 1, nodes)
    chosen = (source.choice(nodes, replicas, replace=False) for _ in range(blocks))
    return [tuple(sorted(node_of_device.tolist())) for node_of_device in chosen]

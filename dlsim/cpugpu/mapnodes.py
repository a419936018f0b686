"""Where MapReduce runs: nodes with CPUs and GPUs, the blocks they hold, what a task costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain

import numpy as np

from dlsim.cpugpu.given import MOST_COUNT
from dlsim.cpugpu.model import Decide, Decision, Machine, Policy, Reading, State
from dlsim.cpugpu.pipeline import Gpu, makespan
from dlsim.errors import InputError
from dlsim.given import instance, number, whole


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
    >>> NodeGroup(nodes=2, cpus=2, gpus=1).places
    {'gpu0': 0, 'cpu0': 0, 'cpu1': 1}
    """

    nodes: int = 2
    cpus: int = 2
    gpus: int = 2

    def __post_init__(self) -> None:
        whole("nodes", self.nodes, 1, 10_000)
        Machine(self.cpus, self.gpus)

    @property
    def machine(self) -> Machine:
        """Return all devices as one machine."""
        return Machine(self.cpus, self.gpus)

    @property
    def places(self) -> dict[str, int]:
        """Return the node of every device."""
        return {device: int(device[3:]) % self.nodes for device in self.machine.devices}


@dataclass(frozen=True)
class Costs:
    """Times of map and reduce tasks, per unit: a thousand characters, or a thousand pairs.

    A GPU's task goes through its pipeline in equal chunks (`dlsim.cpugpu.pipeline`).

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
        for one in fields(self):
            if one.name not in ("chunks", "gpu"):
                cost = number(one.name, getattr(self, one.name), above=one.name == "setup")
                object.__setattr__(self, one.name, cost)
        whole("chunks", self.chunks, 1, 10_000)
        instance("gpu", self.gpu, Gpu)

    def time(self, kind: str, cls: str, size: float) -> float:
        """Return the time of a task whose data is at hand, by its kind, class and units."""
        unit = getattr(self, f"{cls}_{kind}")
        if cls == "cpu":
            return float(self.setup + size * unit)
        part = size / self.chunks
        times = [part * self.copy, part * unit, part * self.copy] * self.chunks
        return float(self.setup + makespan(times, self.gpu))


def place_blocks(
    blocks: int, nodes: int, replicas: int = 1, seed: int = 0
) -> list[tuple[int, ...]]:
    """Put replicas of every block on distinct nodes, at random."""
    whole("blocks", blocks, 1, 10**6)
    whole("replicas", replicas, 1, whole("nodes", nodes, 1, MOST_COUNT))
    source = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0, 2**63)))
    return [
        tuple(sorted(source.choice(nodes, replicas, replace=False).tolist())) for _ in range(blocks)
    ]


def need_homes(homes: Sequence[Sequence[int]], blocks: int, nodes: int) -> list[tuple[int, ...]]:
    """Return the nodes of every block, refusing places that are not there."""
    if len(homes) != blocks:
        raise InputError(f"homes must have an entry for each of {blocks} blocks, got {len(homes)}")
    for block, places in enumerate(homes):
        if not places or not set(places) <= set(range(nodes)):
            raise InputError(
                f"homes of block {block} must be nodes among 0..{nodes - 1}, at least one; "
                f"got {tuple(places)!r}"
            )
    return [tuple(sorted(set(places))) for places in homes]


def need_dead(dead: Mapping[int, float] | None, nodes: int) -> dict[int, float]:
    """Return when nodes die, refusing those that are not there and a group that dies out."""
    found = {whole("dead", node, 0, nodes - 1): when for node, when in (dead or {}).items()}
    for when in found.values():
        number("dead", when)
    if len(found) == nodes:
        raise InputError(f"dead must leave a node alive, got all {nodes}")
    return found


def local_first(
    decide: Decide, is_local: Callable[[int, int], bool], places: Mapping[str, int]
) -> Decide:
    """Of the tasks that are alike to a policy, serve the first whose block is there (section 4)."""

    def chosen(state: State, policy: Policy, reading: Reading) -> Decision | None:
        decision = decide(state, policy, reading)
        own = next((i for i in state.main if decision and i.job == decision.job), None)
        if decision is None or own is None:
            return decision
        node = places[state.devices[decision.device]]
        kind, versions = own.app, own.declared.keys()
        alike = (i for i in state.main if i.app == kind and i.declared.keys() == versions)
        local = next((item for item in chain([own], alike) if is_local(item.job, node)), own)
        if local.declared != own.declared:
            decision = decision._replace(finishes=())
        return decision._replace(job=local.job)

    return chosen

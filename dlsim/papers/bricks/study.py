"""All experiments on paper B at one scale: each is run once, when first asked for."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Scheduler
from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.papers.bricks import cells, claims
from dlsim.papers.bricks.cells import Kind
from dlsim.study import study
from dlsim.study.study import Switches, name_of

HOUR = 3600.0
INTERVALS = (60.0, 90.0, 120.0)
OPTS = (0.5, 0.6, 0.7, 0.8, 0.9)
NODES = tuple(cells.SIZES)
#: Readings under which claims 10 and 11 are judged too: what Load is, and the network that
#: the paper has.
DEEP: tuple[dict[str, Any], ...] = (
    {}, {"load": "util"}, {"load": "queue"}, {"load": "ext"}, {"network": "packet"},
)  # fmt: skip
#: Switches that the two background models of claim 12 depend on.
OF_BACKGROUND = ("server_load", "H", "trace_step", "trace_std", "trace_method")
SCALES = study.scales("bricks")


def printed_table() -> pd.DataFrame:
    """Return Table 1 as printed."""
    path = shared_file("data/papers/bricks-table1.csv")
    return read_csv(path, {"parameter": "text", "low": "number", "high": "number", "law": "text"})


@dataclass(frozen=True)
class Study(study.Study):
    """Paper B's experiments: `dlsim.study.study.Study` with the axes of section 4.

    ``runs`` is the number of environments; ``reading`` may name fields of
    `dlsim.bricks.Reading`, keys of `dlsim.bricks.DRAWN`, and exclude_rejecting.

    Parameters
    ----------
    intervals, opts, fallbacks : sequence
        Axes: Int in minutes, Opt, most fallbacks; fallbacks must hold 0 and 1.
    nodes : sequence of int
        Sizes of the systems of claim 11, keys of `cells.SIZES`.
    domains : int
        Local domains of 5 to 10 nodes each.
    swf : str
        A job log to replay (``.gwf``: Grid Workload Format, else Standard Workload Format);
        "" for a synthetic one.
    """

    intervals: Sequence[float] = INTERVALS
    opts: Sequence[float] = OPTS
    fallbacks: Sequence[int] = tuple(range(6))
    nodes: Sequence[int] = NODES
    domains: int = 10
    swf: str = ""

    KEY, SCALES, SWITCHES = "bricks", SCALES, cells.SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, and axes that claims cannot be compared on."""
        if not self.intervals:
            raise InputError("intervals must be one value or more, got none")
        if len(set(self.opts)) < 2:
            raise InputError("opts must be two values or more: claims compare them")
        for opt in self.opts:
            Scheduler("deadline", opt=opt)
        if not {0, 1} < set(self.fallbacks):
            raise InputError("fallbacks must hold 0, 1 and a larger number: claims compare them")
        if not self.nodes or set(self.nodes) - set(NODES):
            known = ", ".join(map(str, NODES))
            raise InputError(f"nodes must be one or more of {known}; got {self.nodes!r}")
        drawn = cells.split_switches(self.switches).drawn
        tiny = {"horizon": 60.0, "domains": self.domains, "nodes": (2, 2), **drawn}
        for interval in self.intervals:
            Environment.random(0, interval, **{**tiny, "server_load": 0.0})

    @functools.cached_property
    def size(self) -> Any:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        other = self.runs or size.other_runs
        packets = min(size.packet_runs, other)
        return size._replace(runs=self.runs or size.runs, other_runs=other, packet_runs=packets)

    @property
    def policies(self) -> list[str]:
        """Legends of Figures 3 to 6."""
        return ["Greedy", *(cells.deadline(opt) for opt in sorted(self.opts))]

    @property
    def few(self) -> list[str]:
        """Greedy, and the smallest, middle and largest Opt."""
        return ["Greedy", *claims.ends(self.policies[1:])]

    @property
    def middle(self) -> str:
        """The legend of the middle Opt."""
        return self.few[len(self.few) // 2]

    @property
    def most(self) -> int:
        """The largest number of fallbacks."""
        return int(max(self.fallbacks))

    @property
    def drawn_first(self) -> dict[str, Any]:
        """What the environment of the first replicate is drawn by."""
        seed = np.random.SeedSequence(self.seed, spawn_key=(0,))
        size = {"horizon": self.size.hours * HOUR, "domains": self.domains}
        drawn = cells.split_switches(self.switches).drawn
        return {"seed": seed, "interval": float(self.intervals[0]), **size, **drawn}

    def versions(self, policies: Sequence[str], fallbacks: Sequence[int] = ()) -> list[Kind]:
        """List schedulers: four versions of each, and more fallbacks without correction."""
        more = [(0, n) for n in fallbacks if n > 1]
        return [Kind(p, *v) for p in policies for v in (*cells.VERSIONS.values(), *more)]

    def run(
        self, function: Any, grid: Any, label: str, hours: float = 0, count: int = 0, **fixed: Any
    ) -> pd.DataFrame:
        """Sweep in environments of some hours at the first Int; 0 hours = the smaller size."""
        size = self.size
        if not hours:
            hours, count = size.other_hours, size.other_runs
        options = {"horizon": hours * HOUR, "domains": self.domains}
        how: dict[str, Any] = {"options": options, "switches": self.switches}
        if "interval" not in grid:
            how["interval"] = float(self.intervals[0])
        return self.sweep(function, grid, label, count, **how | fixed)

    def _hours(self, network: Any) -> float:
        """Hours of the environments of other readings in a network."""
        return self.size.packet_hours if network == "packet" else self.size.other_hours

    @functools.cached_property
    def main(self) -> pd.DataFrame:
        """Figures 3 to 6: every scheduler, version and number of fallbacks at every Int."""
        return self.run(
            cells.compare, {"interval": tuple(self.intervals)}, "Figures 3 to 6", self.size.hours,
            schedulers=self.versions(self.policies, self.fallbacks),
        )  # fmt: skip

    def at_reading(self, switches: Mapping[str, Any]) -> pd.DataFrame:
        """Run the schedulers that the claims need under another reading."""
        return self.run(
            cells.compare, {"interval": self.size.reading_intervals},
            f"reading {name_of(switches) or 'default'}", self._hours(switches.get("network")),
            self.size.other_runs, schedulers=self.versions(self.few, (self.most,)),
            switches=dict(switches),
        )  # fmt: skip

    @functools.cached_property
    def causes(self) -> pd.DataFrame:
        """Load Correction without what section 4.2 blames: condition replicate policy ..."""
        grid, schedulers = {"condition": list(cells.CONDITIONS)}, self.versions(self.few)
        return self.run(cells.under, grid, "causes", schedulers=schedulers)

    @functools.cached_property
    def sizes(self) -> pd.DataFrame:
        """The same over the number of nodes: parameter value replicate policy ..."""
        grid, schedulers = _of_nodes(self.nodes), self.versions(self.few)
        return self.run(cells.vary, grid, "nodes", schedulers=schedulers)

    def background_at(self, switches: Mapping[str, Any]) -> pd.DataFrame:
        """Draw both models of other users' load."""
        own = {k: v for k, v in switches.items() if k in OF_BACKGROUND}
        count, grid = max(2, self.size.other_runs), {"model": ["trace", "extraneous"]}
        return self.sweep(cells.background, grid, "background", count, switches=own)

    @functools.cached_property
    def background(self) -> pd.DataFrame:
        """Both models of other users' load under the study's own reading."""
        return self.background_at(self.switches)

    @functools.cached_property
    def extras(self) -> pd.DataFrame:
        """Further mechanisms: network mechanism replicate policy corrected fallbacks ..."""
        versions = ((0, 0), (0, 1), (1, 1))
        schedulers = [Kind(p, c, n) for p in ("Greedy", self.middle) for c, n in versions]
        parts = [
            self.run(
                cells.extra, {"network": [network], "mechanism": names},
                f"further mechanisms, {network}", self._hours(network), self.size.other_runs,
                schedulers=schedulers,
            )
            for network, names in (("fluid", list(cells.EXTRAS)), ("packet", ["as it is", "links"]))
        ]  # fmt: skip
        return pd.concat(parts, ignore_index=True)

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the claims are measured on; less of it under another reading."""
        if switches is None:
            return claims.Evidence(self.main, self.causes, self.sizes, self.background)
        main, background = self.at_reading(switches), self.background_at(switches)
        if dict(switches) not in DEEP:
            return claims.Evidence(main, background=background)
        size, interval = self.size, self.size.reading_intervals[0]
        count = size.packet_runs if "network" in switches else size.other_runs
        known = main.query("interval == @interval and replicate < @count and fallbacks <= 1")
        known = known.drop(columns="interval")
        plain, usual = next(iter(cells.CONDITIONS)), (self.domains, (5, 10))
        others = [name for name in size.reading_causes if name != plain]
        nodes = [n for n in size.reading_nodes if cells.SIZES[n] != usual]
        run = functools.partial(
            self.run, label=f"claims 10 and 11, {name_of(switches) or 'default'}",
            hours=self._hours(switches.get("network")), count=count, interval=interval,
            schedulers=self.versions(self.few), switches=dict(switches),
        )  # fmt: skip
        causes: Any = [known.assign(condition=plain), run(cells.under, {"condition": others})]
        sizes: Any = [known.assign(value=float(n)) for n in size.reading_nodes if n not in nodes]
        if nodes:
            sizes.append(run(cells.vary, _of_nodes(nodes)))
        causes, sizes = (pd.concat(parts, ignore_index=True) for parts in (causes, sizes))
        return claims.Evidence(main, causes, sizes, background)


def _of_nodes(nodes: Sequence[int]) -> list[dict[str, Any]]:
    return [{"parameter": "nodes", "value": float(n)} for n in nodes]

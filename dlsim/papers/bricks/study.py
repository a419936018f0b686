"""All experiments on paper B at one scale: each is run once, when first asked for."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Scheduler
from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.papers.bricks import cells, claims
from dlsim.papers.bricks.cells import Kind
from dlsim.study import study
from dlsim.study.study import Switches, labelled
from dlsim.study.sweeps import sweep

HOUR = 3600.0
NODES = tuple(cells.SIZES)
#: Switches that the two background models of claim 12 depend on.
OF_BACKGROUND = ("server_load", "H", "trace_step", "trace_std", "trace_method")
#: Fewest runs that are timed: if all of six agree, most runs do (95 %).
TIMED = 6
#: What a reading has fewer of.
RUNS = ("runs", "other_runs")
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

    intervals: Sequence[float] = (60.0, 90.0, 120.0)
    opts: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9)
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
        return size._replace(runs=self.runs or size.runs, other_runs=other)

    @property
    def policies(self) -> list[str]:
        """Legends of Figures 3 to 6."""
        return ["Greedy", *(cells.deadline(opt) for opt in sorted(self.opts))]

    @property
    def few(self) -> list[str]:
        """Greedy, and the smallest, middle and largest Opt."""
        rising = self.policies[1:]
        return list(dict.fromkeys(["Greedy", rising[0], rising[len(rising) // 2], rising[-1]]))

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

    def main_at(self, switches: Switches) -> pd.DataFrame:
        """Run every scheduler, version and number of fallbacks at every Int."""
        return self.run(
            cells.compare, {"interval": tuple(self.intervals)},
            labelled("Figures 3 to 6", switches), self.size.hours,
            schedulers=self.versions(self.policies, self.fallbacks), switches=dict(switches),
        )  # fmt: skip

    def causes_at(self, switches: Switches) -> pd.DataFrame:
        """Take away what section 4.2 blames for the small gain of Load Correction."""
        how: Any = {"schedulers": self.versions(self.few), "switches": dict(switches)}
        grid = {"condition": list(cells.CONDITIONS)}
        return self.run(cells.under, grid, labelled("causes", switches), **how)

    def sizes_at(self, switches: Switches) -> pd.DataFrame:
        """Run the same over the number of nodes."""
        how: Any = {"schedulers": self.versions(self.few), "switches": dict(switches)}
        grid = [{"parameter": "nodes", "value": float(n)} for n in self.nodes]
        return self.run(cells.vary, grid, labelled("nodes", switches), **how)

    def background_at(self, switches: Switches) -> pd.DataFrame:
        """Draw both models of other users' load."""
        own = {k: v for k, v in switches.items() if k in OF_BACKGROUND}
        count, grid = max(2, self.size.other_runs), {"model": ["trace", "extraneous"]}
        return self.sweep(cells.background, grid, "background", count, switches=own)

    # the same under the study's own reading: interval replicate policy corrected failure ...,
    # condition replicate policy ..., parameter value replicate policy ..., model replicate ...
    main = functools.cached_property(lambda self: self.main_at(self.switches))
    causes = functools.cached_property(lambda self: self.causes_at(self.switches))
    sizes = functools.cached_property(lambda self: self.sizes_at(self.switches))
    background = functools.cached_property(lambda self: self.background_at(self.switches))

    @functools.cached_property
    def seconds(self) -> pd.DataFrame:
        """CPU time of runs with either model: resource replicate model seconds."""
        own = {k: v for k, v in self.switches.items() if k in OF_BACKGROUND}
        count, grid = max(TIMED, self.size.other_runs), {"resource": list(cells.EXTRANEOUS)}
        return sweep(
            cells.timed, grid, count, self.seed, jobs=1, fixed={"switches": own}, label="CPU time"
        )

    @functools.cached_property
    def extras(self) -> pd.DataFrame:
        """Further mechanisms: network mechanism replicate policy corrected fallbacks ..."""
        versions = ((0, 0), (0, 1), (1, 1))
        schedulers = [Kind(p, c, n) for p in ("Greedy", self.middle) for c, n in versions]
        parts = [
            self.run(
                cells.extra, {"network": [network], "mechanism": names},
                f"further mechanisms, {network}", schedulers=schedulers,
            )
            for network, names in (("fluid", list(cells.EXTRAS)), ("packet", ["as it is", "links"]))
        ]  # fmt: skip
        return pd.concat(parts, ignore_index=True)

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the claims are measured on; for a reading on the same grids, in fewer runs."""
        if switches is None:
            return claims.Evidence(
                self.main, self.causes, self.sizes, self.background, self.seconds
            )
        few, size = replace(self), self.size
        counts = {name: min(getattr(size, name), size.reading_runs) for name in RUNS}
        vars(few)["size"] = size._replace(**counts)
        runs = (few.main_at, few.causes_at, few.sizes_at, few.background_at)
        return claims.Evidence(*(run(switches) for run in runs))

"""All experiments on paper S at one scale: each is run once, when first asked for."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import number, option
from dlsim.papers.steady_state import cells, claims
from dlsim.papers.steady_state.cells import PRINTED, STRUCTURES
from dlsim.steady.routes import need_pairs
from dlsim.study import study
from dlsim.study.study import Switches

KINDS = ("Tiers", "random")
NUMBERS = ("Table 1", "Table 2")
HETEROGENEITIES = (0.4, 0.6, 0.8)
#: Times of a period and numbers of periods of claim 14.
LENGTHS, COUNTS = (10, 100, 1000), (2, 5, 10, 20, 50, 100, 200, 500, 1000)
#: How schedules of the side experiments are made.
METHOD = "LPRG"
SCALES = study.scales("steady-state")


@dataclass(frozen=True)
class Study(study.Study):
    """Paper S's experiments: `dlsim.study.study.Study` with the strata of its samples.

    ``runs`` is the number of platforms per stratum, of every experiment.

    Parameters
    ----------
    share : float
        Part of the paper's 29,298 and 269,835 platforms to run on; 0 = what the scale and
        `runs` say. A larger share contains a smaller one, and only what is new is run.
    tiers_clusters, random_clusters, connectivities : sequence
        Strata; empty = what the scale says.
    side_clusters : sequence of int
        K of all other experiments and readings; empty = what the scale says.
    """

    share: float = 0.0
    tiers_clusters: Sequence[int] = ()
    random_clusters: Sequence[int] = ()
    connectivities: Sequence[float] = ()
    side_clusters: Sequence[int] = ()

    KEY, SCALES, SWITCHES = "steady-state", SCALES, cells.SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, and strata that cannot be compared."""
        number("share", self.share, high=1, rule="from 0 (what the scale says) to 1")
        for name, value in self.switches.items():
            option("reading switch", name, tuple(self.SWITCHES))
            option(name, value, self.SWITCHES[name])
        for name, least in (("tiers_clusters", 2), ("random_clusters", 2), ("side_clusters", 1)):
            sizes = getattr(self.size, name)
            if len(set(sizes)) < least or min(sizes) < 2:
                rule = f"{name} must be at least {least} different numbers above 1"
                raise InputError(f"{rule}; got {list(sizes)}")
            need_pairs(max(sizes))
        if not all(0 < c <= 1 for c in self.size.connectivities):
            raise InputError(f"connectivities must be above 0 and at most 1: {self.connectivities}")

    @functools.cached_property
    def size(self) -> Any:
        """The scale with the parameters that were given put in."""
        size = SCALES[self.scale]
        strata = ("tiers_clusters", "random_clusters", "connectivities", "side_clusters")
        own = {name: tuple(sorted(getattr(self, name))) for name in strata}
        given: dict[str, Any] = {name: values for name, values in own.items() if values}
        if "random_clusters" in given:
            given["vertex_clusters"] = given["random_clusters"]
        if "side_clusters" in given:
            others = ("timed_clusters", "reading_clusters", "churn_clusters")
            given |= dict.fromkeys(others, given["side_clusters"])
        if self.runs:
            given |= {name: self.runs for name in size._fields if name.endswith("runs")}
        size = size._replace(**given)
        if self.share:
            random = len(size.random_clusters) * len(size.connectivities)
            size = size._replace(
                tiers_runs=math.ceil(self.share * PRINTED["Tiers"] / len(size.tiers_clusters)),
                random_runs=math.ceil(self.share * PRINTED["random"] / random),
            )
        return size

    def samples(self, switches: Switches | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Run the heuristics on both samples (Figure 4); on few platforms under a reading."""
        s = self.size
        if switches is None:
            tiers = ({"clusters": s.tiers_clusters}, s.tiers_runs, s.tiers_every)
            strata = {"clusters": s.random_clusters, "connectivity": s.connectivities}
            random = (strata, s.random_runs, s.random_every)
        else:
            tiers = ({"clusters": s.reading_clusters}, s.reading_runs, 1)
            random = ({"clusters": s.reading_clusters, "connectivity": (0.4,)}, s.reading_runs, 1)
        one, other = (
            self.sweep(
                cells.compare, grid, f"Figure 4({part})", runs, switches, kind=kind,
                costly_to=s.costly_to, costly_every=every,
            )
            for kind, part, (grid, runs, every) in zip(KINDS, "ab", (tiers, random), strict=True)
        )  # fmt: skip
        return one, other

    def vertices(self, switches: Switches | None = None) -> pd.DataFrame:
        """Round random optimal vertices on the first platforms of some strata of both samples."""
        s, links = self.size, self.size.connectivities
        sizes, runs, links = s.vertex_clusters, s.vertex_runs, sorted({links[0], links[-1]})
        if switches is not None:
            sizes, runs, links = s.reading_clusters, s.reading_runs, [0.4]
        grid = [
            {"kind": kind, "clusters": k, "connectivity": c}
            for kind in KINDS
            for k in sizes
            for c in (links if kind == "random" else [0.0])
        ]
        return self.sweep(cells.at_vertices, grid, "vertices", runs, switches, count=s.vertices)

    def spread(self, switches: Switches | None = None) -> pd.DataFrame:
        """Run G and LPRG at every heterogeneity on otherwise equal platforms."""
        links = self.size.connectivities if switches is None else (0.4,)
        strata = {"clusters": self.size.side_clusters, "connectivity": links}
        return self.sweep(
            cells.improve, {"heterogeneity": HETEROGENEITIES, **strata}, "heterogeneity",
            2 * self.size.runs, switches, kind="random", methods=("G", "LPRG"),
        )  # fmt: skip

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the claims are measured on; on few platforms under another reading."""
        samples, s = (*self.samples(switches), self.spread(switches)), self.size
        e = claims.Evidence(*samples, vertices=self.vertices(switches))
        if switches is not None:
            return e
        crossed = {"structure": STRUCTURES, "numbers": NUMBERS, "clusters": s.side_clusters}
        return e._replace(
            crossed=self.sweep(cells.across, crossed, "networks and numbers"),
            timing=self.sweep(  # one at a time in this process
                cells.timed, {"clusters": s.timed_clusters}, "Figure 5", s.timed_runs, jobs=1,
                methods=(*cells.HEURISTICS, "MILP"),
            ),
            ends=self.sweep(
                cells.start_up, {"kind": KINDS, "clusters": (10,)}, "start-up", lengths=LENGTHS,
                counts=COUNTS, method=METHOD,
            ),
        )  # fmt: skip

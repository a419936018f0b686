"""All experiments on paper S at one scale: each is run once, when first asked for."""

import functools
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import number, option
from dlsim.papers.steady_state import beyond, claims, runs
from dlsim.papers.steady_state.platforms import PRINTED, STRUCTURES, steps
from dlsim.papers.steady_state.switches import SWITCHES
from dlsim.study.claims import Verdict, load_claims, verdict_of
from dlsim.study.experiment import need_common
from dlsim.study.report import Results
from dlsim.study.sweeps import sweep

KEY = "steady-state"
KINDS = ("Tiers", "random")
NUMBERS = ("Table 1", "Table 2")
HETEROGENEITIES = (0.4, 0.6, 0.8)
#: Times of a period and numbers of periods of claim 14.
LENGTHS, COUNTS = (10, 100, 1000), (2, 5, 10, 20, 50, 100, 200, 500, 1000)
#: How schedules of the side experiments are made.
METHOD = "LPRG"


class Scale(NamedTuple):
    """How much is computed."""

    tiers_clusters: tuple[int, ...]
    random_clusters: tuple[int, ...]
    connectivities: tuple[float, ...]
    tiers_runs: int
    random_runs: int
    costly_to: int
    costly_runs: int
    side_clusters: tuple[int, ...]
    side_runs: int
    timed_clusters: tuple[int, ...]
    timed_runs: int
    reading_clusters: tuple[int, ...]
    reading_runs: int
    churn_clusters: tuple[int, ...]
    churn_runs: int
    churn_hours: float


def _whole(values: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(value) for value in values)


#: ``paper`` takes a stratified sample of the paper's platforms, all its K and connectivities;
#: LPRR and the exact search run on the smaller platforms, up to `Scale.costly_to`.
SCALES = {
    "quick": Scale(
        (5, 15, 25, 35, 45), (5, 15, 25, 35), (0.1, 0.4, 0.8), 6, 5, 25, 3,
        (15,), 4, (5, 15, 25, 35), 2, (5, 15), 3, (5,), 3, 12.0,
    ),
    "paper": Scale(
        _whole(steps(1, "K")), _whole(steps(2, "K")), steps(2, "connectivity"), 16, 12, 45, 4,
        (15, 25), 10, (5, 15, 25, 35, 45, 55, 65, 75, 85), 3, (5, 15, 25, 35), 6,
        (5, 15), 10, 24.0,
    ),
}  # fmt: skip


def alternatives() -> list[dict[str, str]]:
    """List every reading that differs from the default in one switch."""
    return [{}, *({name: value} for name, options in SWITCHES.items() for value in options[1:])]


@dataclass(frozen=True)
class Study:
    """Paper S's experiments under one set of parameters; results are kept once computed.

    Parameters
    ----------
    scale : {"quick", "paper"}
        Strata and sizes of the samples.
    seed : int
        Root of all randomness.
    runs : int
        Platforms per stratum, of every experiment; 0 = what the scale says.
    jobs : int
        Worker processes; 0 = all cores.
    out : str
        Where results go; "" = results/steady-state under the project, or under the current
        folder.
    reading : mapping
        Switches of the engine and of the platforms that differ from the default.
    share : float
        Part of the paper's 29,298 and 269,835 platforms to run on; 0 = what the scale and
        `runs` say. A larger share contains a smaller one, and only what is new is run.
    tiers_clusters, random_clusters, connectivities : sequence
        Strata; empty = what the scale says.
    side_clusters : sequence of int
        K of all other experiments and readings; empty = what the scale says.
    executor : concurrent.futures.Executor, optional
        Where sweeps run; worker processes of this machine otherwise.

    Raises
    ------
    InputError
        For an unknown scale, switch or value, or a number out of range.
    """

    scale: str = "quick"
    seed: int = 0
    runs: int = 0
    jobs: int = 0
    out: str = ""
    reading: Mapping[str, str] | None = None
    share: float = 0.0
    tiers_clusters: Sequence[int] = ()
    random_clusters: Sequence[int] = ()
    connectivities: Sequence[float] = ()
    side_clusters: Sequence[int] = ()
    executor: Executor | None = None

    def __post_init__(self) -> None:
        """Refuse unknown scales and readings before anything runs."""
        need_common(self, SCALES)
        number("share", self.share, high=1, rule="from 0 (what the scale says) to 1")
        for name, value in self.switches.items():
            option("reading switch", name, tuple(SWITCHES))
            option(name, value, SWITCHES[name])
        for name, least in (("tiers_clusters", 2), ("random_clusters", 2), ("side_clusters", 1)):
            sizes = getattr(self.size, name)
            if len(set(sizes)) < least or min(sizes) < 2:
                rule = f"{name} must be at least {least} different numbers above 1"
                raise InputError(f"{rule}; got {list(sizes)}")
        if not all(0 < c <= 1 for c in self.size.connectivities):
            raise InputError(f"connectivities must be above 0 and at most 1: {self.connectivities}")

    @property
    def switches(self) -> dict[str, str]:
        """The reading as a plain mapping."""
        return dict(self.reading or {})

    @functools.cached_property
    def size(self) -> Scale:
        """The scale with the parameters that were given put in."""
        size = SCALES[self.scale]
        given: dict[str, Any] = {
            name: tuple(sorted(getattr(self, name)))
            for name in ("tiers_clusters", "random_clusters", "connectivities", "side_clusters")
            if len(getattr(self, name))
        }
        if "side_clusters" in given:
            others = ("timed_clusters", "reading_clusters", "churn_clusters")
            given |= dict.fromkeys(others, given["side_clusters"])
        if self.runs:
            names = [name for name in Scale._fields if name.endswith("_runs")]
            given |= dict.fromkeys(names, self.runs)
        size = size._replace(**given)
        if self.share:
            random = len(size.random_clusters) * len(size.connectivities)
            size = size._replace(
                tiers_runs=math.ceil(self.share * PRINTED["Tiers"] / len(size.tiers_clusters)),
                random_runs=math.ceil(self.share * PRINTED["random"] / random),
            )
        return size

    @functools.cached_property
    def results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        return Results(self.out, KEY)

    def sweep(
        self, function: Any, grid: Any, replicates: int, label: str, jobs: int = 0, **fixed: Any
    ) -> pd.DataFrame:
        """Run a cell function over a grid under the study's seed and reading."""
        fixed.setdefault("switches", self.switches)
        executor = None if jobs else self.executor
        return sweep(
            function, grid, replicates, self.seed, executor, jobs or self.jobs, fixed=fixed,
            label=label,
        )  # fmt: skip

    def samples(
        self, switches: Mapping[str, str] | None = None, is_small: bool = False
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Run the heuristics on both samples (Figure 4)."""
        s = self.size
        switches = self.switches if switches is None else dict(switches)
        tiers, random, links = s.tiers_clusters, s.random_clusters, s.connectivities
        count = s.tiers_runs, s.random_runs
        if is_small:
            tiers = random = s.reading_clusters
            links, count = (0.4,), (s.reading_runs, s.reading_runs)
        more: dict[str, Any] = {
            "costly_to": s.costly_to,
            "costly_runs": s.costly_runs,
            "switches": switches,
        }
        grid = {"clusters": random, "connectivity": links}
        names = [_label(f"Figure 4({part})", switches) for part in "ab"]
        return (
            self.sweep(runs.compare_on_tiers, {"clusters": tiers}, count[0], names[0], **more),
            self.sweep(runs.compare_on_random, grid, count[1], names[1], **more),
        )

    def spread(self, switches: Mapping[str, str] | None = None) -> pd.DataFrame:
        """Run G and LPRG at every heterogeneity on otherwise equal platforms."""
        links = self.size.connectivities if switches is None else (0.4,)
        switches = self.switches if switches is None else dict(switches)
        grid = {
            "heterogeneity": HETEROGENEITIES,
            "clusters": self.size.side_clusters,
            "connectivity": links,
        }
        label = _label("heterogeneity", switches)
        return self.sweep(
            runs.at_heterogeneity, grid, 2 * self.size.side_runs, label, switches=switches
        )

    @functools.cached_property
    def crossed(self) -> pd.DataFrame:
        """Networks of both kinds with numbers of both tables."""
        grid = {
            "structure": STRUCTURES,
            "numbers": NUMBERS,
            "clusters": self.size.side_clusters,
        }
        return self.sweep(runs.across, grid, self.size.side_runs, "networks and numbers")

    @functools.cached_property
    def improved(self) -> pd.DataFrame:
        """Methods with least connections and polish: kind clusters replicate, one column each."""
        grid = {"kind": KINDS, "clusters": self.size.side_clusters}
        count = self.size.side_runs
        return self.sweep(runs.improve, grid, count, "polish", methods=runs.IMPROVED)

    @functools.cached_property
    def limited(self) -> pd.DataFrame:
        """Heuristics under the policies of section 7: kind rule clusters replicate G ..."""
        grid = {
            "kind": KINDS,
            "rule": runs.POLICIES,
            "clusters": self.size.side_clusters[:1],
        }
        return self.sweep(runs.under_policy, grid, self.size.side_runs, "policies")

    @functools.cached_property
    def timing(self) -> pd.DataFrame:
        """Seconds of every method, one at a time in this process: clusters replicate policy ..."""
        grid = {"clusters": self.size.timed_clusters}
        methods = (*runs.HEURISTICS, "MILP")
        count = self.size.timed_runs
        return self.sweep(runs.timed, grid, count, "Figure 5", jobs=1, methods=methods)

    @functools.cached_property
    def ends(self) -> pd.DataFrame:
        """What whole units, the first and the last period cost: kind ... length count kept."""
        grid = {"kind": KINDS, "clusters": (10,)}
        fixed: dict[str, Any] = {"lengths": LENGTHS, "counts": COUNTS, "method": METHOD}
        return self.sweep(beyond.start_up, grid, self.size.side_runs, "start-up", **fixed)

    @functools.cached_property
    def adapted(self) -> pd.DataFrame:
        """Schedules on drifting bandwidths: clusters replicate period policy ratio."""
        return self.sweep(
            beyond.adapt, {"clusters": (15,)}, self.size.side_runs, "drifting bandwidths",
            periods=24, method=METHOD,
        )  # fmt: skip

    @functools.cached_property
    def churn(self) -> pd.DataFrame:
        """Organisations whose sites come and go: kind clusters replicate policy ratio ..."""
        s = self.size
        grid = {"kind": KINDS, "clusters": s.churn_clusters}
        return self.sweep(
            beyond.under_churn, grid, s.churn_runs, "churn", methods=beyond.SERVING,
            hours=s.churn_hours,
        )  # fmt: skip

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        return claims.Evidence(*self.samples(), self.spread(), self.crossed, self.timing, self.ends)

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on every claim under the study's own reading."""
        return [
            verdict_of(claim, claims.measured(claim, self.evidence)) for claim in load_claims(KEY)
        ]

    @functools.cached_property
    def by_reading(self) -> pd.DataFrame:
        """Verdicts under the study's own reading and under every other one.

        Rows are the claims that the samples decide; columns are readings, the study's own
        first (from its `verdicts`), then the same and all that are one switch away from
        the default on fewer platforms: the scale's `reading_clusters`.
        """
        rows = [claim for claim in load_claims(KEY) if claim.measure in claims.BY_READING]
        own = {verdict.claim.id: str(verdict) for verdict in self.verdicts}
        mine = _name(self.switches) or "default"
        columns = {mine: [own[claim.id] for claim in rows]}
        readings = {f"{mine}, fewer platforms": self.switches}
        readings |= {_name(s) or "default": s for s in alternatives() if s != self.switches}
        for name, switches in readings.items():
            evidence = claims.Evidence(*self.samples(switches, True), self.spread(switches))
            columns[name] = [
                str(verdict_of(claim, claims.measured(claim, evidence))) for claim in rows
            ]
        return pd.DataFrame(columns, index=pd.Index([claim.id for claim in rows], name="claim"))


def _name(switches: Mapping[str, str]) -> str:
    return ", ".join(f"{k}={v}" for k, v in switches.items())


def _label(what: str, switches: Mapping[str, str]) -> str:
    return f"{what}, {_name(switches)}" if switches else what

"""All experiments on paper I at one scale: each is run once, when first asked for."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.given import number
from dlsim.papers.inserted_idle_time import claims, runs
from dlsim.papers.inserted_idle_time.runs import RULES, Setting, both
from dlsim.papers.inserted_idle_time.switches import GENERATORS, SWITCHES
from dlsim.realtime import Cluster, workload
from dlsim.study.claims import Verdict, load_claims, verdict_of
from dlsim.study.experiment import need_common
from dlsim.study.report import Results
from dlsim.study.sweeps import sweep

KEY = "inserted-idle-time"
LOADS = tuple(round(0.1 * k, 1) for k in range(1, 11))
TAUS = (8.0, 4.0, 2.0, 1.0)
#: Figure 4 has one curve for each of them.
TAU_LOADS = (0.6, 0.8, 1.0)
DC_RATIOS = (2.0, 3.0, 5.0, 10.0, 20.0)
CLUSTERS = (4, 16)
#: Partitions whose gain over unused idle time is mapped.
MAPPED = ("OPR-MN", "DLT", "II", "EXACT", "EXACT-N")

#: Readings under which Table 1 is counted beside the study's own.
COUNT_READINGS = (
    "scope=all", "scope=all, count_single=yes", "ties=skip", "release=finish", "mn_count=frozen",
)  # fmt: skip


class Scale(NamedTuple):
    """How much is computed."""

    horizon: float
    map_horizon: float
    runs: int
    pools: int
    reading_loads: tuple[float, ...] = ()


#: ``paper`` is the size that section 5.1 states: 10,000,000 time units, ten runs.
SCALES = {
    "quick": Scale(1_000_000.0, 300_000.0, 5, 20, (1.0,)),
    "paper": Scale(10_000_000.0, 3_000_000.0, 10, 100, (0.2, 0.6, 1.0)),
}


def switches_known() -> dict[str, tuple[str, ...]]:
    """List the switches that matter to this paper with their options, the default first."""
    return {**SWITCHES, "counting": RULES}


def alternatives() -> list[dict[str, str]]:
    """List every reading that differs from the default in one switch.

    A task on one node has no idle time among its own nodes, so that ``count_single`` comes
    with ``scope="all"``.
    """
    known = switches_known()
    needs = {"count_single": {"scope": "all"}}
    return [
        {},
        *(
            {**needs.get(name, {}), name: value}
            for name, options in known.items()
            for value in options[1:]
        ),
    ]


def printed_table() -> pd.DataFrame:
    """Return Table 1 as printed, with the percentages that follow from its counts."""
    path = shared_file("data/papers/inserted-idle-time-table1.csv")
    columns = ("load", "s_iits", "opt_iits", "opt_iits_ii", "percent", "percent_ii")
    table = read_csv(path, dict.fromkeys(columns, "positive"))
    for end in ("", "_ii"):
        share = table[f"opt_iits{end}"] / table["s_iits"]
        table[f"share{end}"] = share
        table[f"follows{end}"] = (100 * share - table[f"percent{end}"]).abs() <= 0.5
    return table


@dataclass(frozen=True)
class Study:
    """Paper I's experiments under one set of parameters; results are kept once computed.

    Parameters
    ----------
    scale : {"quick", "paper"}
        Simulated time and number of runs.
    seed : int
        Root of all randomness.
    runs : int
        Number of runs; 0 = what the scale says.
    jobs : int
        Worker processes; 0 = all cores.
    out : str
        Where results go; "" = results/inserted-idle-time under the project, or under the
        current folder.
    reading : mapping
        Switches of the engine and the workload that differ from the default.
    counting : str
        How plannings with idle time are counted: one of `runs.RULES`.
    loads, taus, dc_ratios, clusters : sequence
        Axes: nominal loads, costs of sending, deadline ratios, numbers of nodes.
    nodes, cms, cps, mean, dc_ratio : int, float, float, float, float
        The baseline of section 5.2: N, tau, chi, Avg sigma, DCRatio.

    Raises
    ------
    InputError
        For an unknown scale, switch, value or rule, or a number out of range.
    """

    scale: str = "quick"
    seed: int = 0
    runs: int = 0
    jobs: int = 0
    out: str = ""
    reading: Mapping[str, str] | None = None
    counting: str = RULES[0]
    loads: Sequence[float] = LOADS
    taus: Sequence[float] = TAUS
    dc_ratios: Sequence[float] = DC_RATIOS
    clusters: Sequence[int] = CLUSTERS
    nodes: int = 16
    cms: float = 1.0
    cps: float = 100.0
    mean: float = 200.0
    dc_ratio: float = 2.0

    def __post_init__(self) -> None:
        """Refuse unknown scales and readings before anything runs."""
        need_common(self, SCALES)
        if self.counting not in RULES:
            raise InputError(f"counting must be one of {', '.join(RULES)}; got {self.counting!r}")
        workload.split_reading(self.reading or {}, *GENERATORS)
        Cluster(self.nodes, self.cms, self.cps)
        for name in ("mean", "dc_ratio", "cps"):
            number(name, getattr(self, name), above=True)
        for name in ("loads", "taus", "dc_ratios", "clusters"):
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InputError(
                    f"{name} must be one value or more, such as (1, 2); got {values!r}"
                )
            for value in values:
                number(name, value, above=True)
        if len(set(self.taus)) < 2:
            raise InputError("taus must be two values or more: claims compare neighbours")

    @property
    def switches(self) -> dict[str, str]:
        """The reading as a plain mapping, and ``counting`` where it is not the default."""
        rule = {} if self.counting == RULES[0] else {"counting": self.counting}
        return {**(self.reading or {}), **rule}

    @functools.cached_property
    def size(self) -> Scale:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        return size._replace(runs=self.runs or size.runs)

    @functools.cached_property
    def results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        return Results(self.out, KEY)

    @property
    def cluster(self) -> Cluster:
        """The baseline's cluster."""
        return Cluster(self.nodes, self.cms, self.cps)

    def setting(self, horizon: float = 0.0) -> Setting:
        """Return what all workloads have in common."""
        horizon = horizon or self.size.horizon
        return Setting(self.nodes, self.cps, self.mean, self.dc_ratio, horizon)

    def _sweep(self, function: Any, grid: Any, label: str, **fixed: Any) -> pd.DataFrame:
        return sweep(
            function, grid, self.size.runs, self.seed, jobs=self.jobs, fixed=fixed, label=label
        )

    def main(
        self,
        policies: Sequence[str],
        use: Sequence[str] = (),
        switches: Mapping[str, str] | None = None,
        loads: Sequence[float] = (),
        taus: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Run policies on one workload per load, cost of sending and replicate."""
        loads = tuple(loads or self.loads)
        # schedules of another reading are verified at the study's own cost of sending
        check_at = math.nan if taus and switches is not None else min(loads)
        switches = self.switches if switches is None else dict(switches)
        return self._sweep(
            runs.compare, {"load": loads, "tau": tuple(taus or (self.cms,))},
            _label("Figures 3 and 4", switches), policies=tuple(policies), use=tuple(use),
            setting=self.setting(), switches=switches, check_at=check_at,
        )  # fmt: skip

    @functools.cached_property
    def figure_3(self) -> pd.DataFrame:
        """The six policies of Figure 3 at every load."""
        return self.main(both(("DLT", "I", "II")))

    def measure(
        self, switches: Mapping[str, str] | None = None, loads: Sequence[float] = ()
    ) -> claims.Evidence:
        """Run what the claims are measured on."""
        policies, use = both(claims.ROLES), both(claims.USE)
        if not loads:
            policies, use = both(runs.ROLES), both(runs.USED)
        taus = self.main(("EDF-DLT", "EDDO-II"), (), switches, loads[-1:] or TAU_LOADS, self.taus)
        return claims.Evidence(self.main(policies, use, switches, loads), taus)

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        return self.measure()

    def counted(self) -> pd.DataFrame:
        """Count plannings with idle time by every rule and reading (Table 1)."""
        readings = ["", *COUNT_READINGS]
        own = {k: v for k, v in self.switches.items() if k not in ("counting", "backfill")}
        return self._sweep(
            runs.count, {"load": tuple(self.loads), "reading": readings}, "Table 1",
            tau=self.cms, setting=self.setting(), switches=own,
        )  # fmt: skip

    def gain_map(self, load: float = 1.0) -> pd.DataFrame:
        """Run the partitions over deadlines, links and clusters."""
        grid = {
            "nodes": tuple(self.clusters),
            "dc_ratio": tuple(self.dc_ratios),
            "tau": tuple(self.taus),
        }
        return self._sweep(
            runs.vary, grid, "deadlines and links", load=load, policies=both(MAPPED),
            setting=self.setting(self.size.map_horizon), switches=self.switches,
        )  # fmt: skip

    @functools.cached_property
    def pools(self) -> pd.DataFrame:
        """Single loads on random release times: tau replicate partition nodes excess admitted."""
        return self._sweep(
            runs.pools, {"tau": tuple(self.taus)}, "random pools", count=self.size.pools,
            setting=self.setting(),
        )  # fmt: skip

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on every claim under the study's own reading."""
        return [
            verdict_of(claim, claims.measured(claim, self.evidence)) for claim in load_claims(KEY)
        ]

    @functools.cached_property
    def by_reading(self) -> pd.DataFrame:
        """Verdicts under the study's own reading and under every other one.

        Rows are the claims that simulations decide; columns are readings, the study's own
        first (from its `verdicts`), the others one switch away from the default, at the
        scale's `reading_loads`.
        """
        rows = [claim for claim in load_claims(KEY) if claim.measure in claims.BY_READING]
        own = {verdict.claim.id: str(verdict) for verdict in self.verdicts}
        columns = {_name(self.switches) or "default": [own[claim.id] for claim in rows]}
        for switches in alternatives():
            if _name(switches) in columns or not (switches or self.switches):
                continue
            evidence = self.measure(switches, self.size.reading_loads)
            columns[_name(switches) or "default"] = [
                str(verdict_of(claim, claims.measured(claim, evidence))) for claim in rows
            ]
        return pd.DataFrame(columns, index=pd.Index([claim.id for claim in rows], name="claim"))


def _name(switches: Mapping[str, str]) -> str:
    return ", ".join(f"{k}={v}" for k, v in switches.items())


def _label(what: str, switches: Mapping[str, str]) -> str:
    return f"{what}, {_name(switches)}" if switches else what

"""All experiments on paper I at one scale: each is run once, when first asked for."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.given import number, option
from dlsim.papers.inserted_idle_time import cells, claims
from dlsim.papers.inserted_idle_time.cells import GENERATORS, RULES, Setting, both
from dlsim.realtime import Cluster, workload
from dlsim.realtime.own import policies_of, workload_of
from dlsim.study import study
from dlsim.study.stats import share_bounds
from dlsim.study.study import Switches

#: Figure 4 has one curve for each of them.
TAU_LOADS = (0.6, 0.8, 1.0)
#: Readings under which Table 1 is counted beside the study's own.
COUNT_READINGS = (
    "scope=all", "scope=all, count_single=yes", "ties=skip", "release=finish", "mn_count=frozen",
)  # fmt: skip
SCALES = study.scales("inserted-idle-time")


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
class Study(study.Study):
    """Paper I's experiments: `dlsim.study.study.Study` with the axes and baseline of section 5.

    Parameters
    ----------
    counting : str
        How plannings with idle time are counted: one of `cells.RULES`.
    loads, taus, dc_ratios, clusters : sequence
        Axes: nominal loads, costs of sending, deadline ratios, numbers of nodes.
    nodes, cms, cps, mean, dc_ratio : int, float, float, float, float
        The baseline of section 5.2: N, tau, chi, Avg sigma, DCRatio.
    policies, workload
        One's own (`dlsim.study.study.Study.mine`).
    """

    counting: str = RULES[0]
    loads: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    taus: Sequence[float] = (8.0, 4.0, 2.0, 1.0)
    dc_ratios: Sequence[float] = (2.0, 3.0, 5.0, 10.0, 20.0)
    clusters: Sequence[int] = (4, 16)
    nodes: int = 16
    cms: float = 1.0
    cps: float = 100.0
    mean: float = 200.0
    dc_ratio: float = 2.0
    policies: Any = ()
    workload: Any = ""

    KEY, SCALES, SWITCHES = "inserted-idle-time", SCALES, {**cells.SWITCHES, "counting": RULES}

    def check(self) -> None:
        """Refuse unknown switches and rules, a baseline that is none, and empty axes."""
        option("counting", self.counting, RULES)
        workload.split_reading(self.reading or {}, *GENERATORS)
        Cluster(self.nodes, self.cms, self.cps)
        vars(self)["mine"] = policies_of(self.policies, both(cells.ROLES))
        for name, policy in self.mine.items():
            if not policy.admission:
                rule = "refuses nobody, and this paper counts refusals"
                raise InputError(f"policy {name!r} {rule}; use one with admission control")
        vars(self)["drawn_by"] = workload_of(self.workload)
        for name in ("mean", "dc_ratio", "cps"):
            number(name, getattr(self, name), above=True)
        for name in ("loads", "taus", "dc_ratios", "clusters"):
            values = getattr(self, name)
            if not values:
                rule = f"{name} must be one value or more, such as (1, 2)"
                raise InputError(f"{rule}; got {values!r}")
            for value in values:
                number(name, value, above=True)
        if len(set(self.taus)) < 2:
            raise InputError("taus must be two values or more: claims compare neighbours")

    @classmethod
    def alternatives(cls) -> Iterator[dict[str, Any]]:
        """Yield the default reading, then every reading one switch away from it.

        A task on one node has no idle time among its own nodes, so that ``count_single`` comes
        with ``scope="all"``.
        """
        for switches in super().alternatives():
            yield {**({"scope": "all"} if "count_single" in switches else {}), **switches}

    @property
    def switches(self) -> dict[str, str]:
        """The reading as a plain mapping, and ``counting`` where it is not the default."""
        rule = {} if self.counting == RULES[0] else {"counting": self.counting}
        return {**super().switches, **rule}

    def setting(self, horizon: float = 0.0) -> Setting:
        """Return what all workloads have in common."""
        horizon = horizon or self.size.horizon
        return Setting(self.nodes, self.cps, self.mean, self.dc_ratio, horizon)

    def given(self, switches: Switches) -> dict[str, Any]:
        """What cells are given: what workloads have in common, the cost of sending, a reading."""
        own = {"mine": self.mine, "drawn_by": self.drawn_by}
        return super().given(switches) | {"setting": self.setting(), "tau": self.cms} | own

    @property
    def beside(self) -> tuple[str, ...]:
        """Policies of one's own beside the paper's."""
        return tuple(name for name in self.mine if name not in both(cells.ROLES))

    def over_remodel(self, order: str) -> dict[str, tuple[str, str]]:
        """Pair the remodel of an order with the policies beside that are compared with it."""
        remodel = cells.named(order, "DLT")
        own = (name for name in self.beside if cells.order_of(name, self.mine[name]) == order)
        return {f"{remodel} - {name}": (remodel, name) for name in own}

    def main(
        self, policies: Sequence[str], use: Sequence[str] = (), switches: Switches | None = None,
        loads: Sequence[float] = (), taus: Sequence[float] = (),
    ) -> pd.DataFrame:  # fmt: skip
        """Run policies on one workload per load, cost of sending and replicate."""
        grid = {"load": tuple(loads or self.loads), "tau": tuple(taus or (self.cms,))}
        # schedules of another reading are verified at the study's own cost of sending
        check_at = math.nan if taus and switches is not None else min(grid["load"])
        return self.sweep(
            cells.compare, grid, "Figures 3 and 4", reading=switches, policies=tuple(policies),
            use=tuple(use), check_at=check_at,
        )  # fmt: skip

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the claims are measured on; at fewer loads under another reading."""
        loads = () if switches is None else self.size.reading_loads
        policies, use = (claims.ROLES, claims.USE) if loads else (cells.ROLES, cells.USED)
        last = loads[-1:] or TAU_LOADS
        beyond = () if loads else ("EDF-EXACT", "EDF-EXACT-N", *self.beside)
        taus = self.main(("EDF-DLT", "EDDO-II", *beyond), (), switches, last, self.taus)
        shown, used = (*both(policies), *self.beside), (*both(use), *self.beside)
        main = self.main(shown, used, switches, loads)
        return claims.Evidence(main.assign(use=main["used"] / main["idle"]), taus)

    @functools.cached_property
    def counted(self) -> pd.DataFrame:
        """Cases of all runs and shares with exact bounds, by rule and reading (Table 1)."""
        own = {k: v for k, v in self.switches.items() if k not in ("counting", "backfill")}
        grid = {"load": tuple(self.loads), "reading": ("", *COUNT_READINGS)}
        frame = self.sweep(cells.count, grid, "Table 1", switches=own)
        groups = frame.groupby(["reading", "rule", "load"], sort=False)
        table = groups[list(cells.COUNTS)].sum(min_count=1).reset_index()
        for share, column in {"share": "opt_iits", "share_ii": "opt_iits_ii"}.items():
            table[share] = table[column] / table["s_iits"]
            low, high = share_bounds(table[column], table["s_iits"])
            table[f"{share}_low"], table[f"{share}_high"] = low, high
        return table

    @functools.cached_property
    def pools(self) -> pd.DataFrame:
        """Single loads on random release times: tau replicate partition nodes excess admitted."""
        grid = {"tau": tuple(self.taus)}
        return self.sweep(cells.pools, grid, "random pools", count=self.size.pools)

"""All experiments on paper M at one scale: each is run once, when first asked for."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dlsim.errors import InputError
from dlsim.papers.mcdf import claims, runs
from dlsim.papers.mcdf.runs import WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.papers.mcdf.switches import SWITCHES
from dlsim.realtime.workload import split_reading
from dlsim.study.claims import Verdict, load_claims, verdict_of
from dlsim.study.experiment import need_common
from dlsim.study.report import Results
from dlsim.study.sweeps import sweep

KEY = "mcdf"
LOADS = tuple(round(0.1 * k, 1) for k in range(1, 11))
OVERLOADS = (*LOADS, 1.5, 2.0, 3.0, 5.0)
SETUPS = (0.0, 5.0, 10.0, 15.0, 20.0)
RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
FACTORS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
MODES = ("vary_cms", "vary_cps")
THREE_LOADS = (0.1, 0.5, 1.0)
#: Random queues of claims 15 and 16: a cluster so small that tasks have to wait.
QUEUES = {"spread": 1.5, "nodes": 3, "cms": 10.0, "cps": 10.0}


class Scale(NamedTuple):
    """How much is computed."""

    horizon: float
    ratio_horizon: float
    runs: int
    pools: int
    reading_loads: tuple[float, ...] = ()


#: ``paper`` is the size that section 6.1 states: 1,000,000 time units, ten runs.
SCALES = {
    "quick": Scale(100_000.0, 400_000.0, 5, 40, (0.1, 0.5, 1.0)),
    "paper": Scale(1_000_000.0, 1_000_000.0, 10, 200),
}


def alternatives() -> list[dict[str, str]]:
    """List every reading that differs from the default in one switch."""
    return [{}, *({name: v} for name, options in SWITCHES.items() for v in options[1:])]


@dataclass(frozen=True)
class Study:
    """Paper M's experiments under one set of parameters; results are kept once computed.

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
        Where results go; "" = results/mcdf under the project, or under the current folder.
    reading : mapping
        Switches of the engine and the workload that differ from the default.
    loads, setups, ratios : sequence of float
        Axes of Figures 4 to 10.
    nodes, cms, cps : int, float, float
        The cluster of section 6.1.

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
    loads: Sequence[float] = LOADS
    setups: Sequence[float] = SETUPS
    ratios: Sequence[float] = RATIOS
    nodes: int = 10
    cms: float = 10.0
    cps: float = 10.0

    def __post_init__(self) -> None:
        """Refuse unknown scales and readings before anything runs."""
        need_common(self, SCALES)
        split_reading(self.switches, "mcdf")
        axes = {"loads": self.loads, "ratios": self.ratios}
        axes["setups above 0"] = [setup for setup in self.setups if setup > 0]
        for name, values in axes.items():
            if len(set(values)) < 2:
                raise InputError(f"{name} must be two values or more: claims compare neighbours")

    @property
    def switches(self) -> dict[str, str]:
        """The reading as a plain mapping."""
        return dict(self.reading or {})

    @functools.cached_property
    def size(self) -> Scale:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        return size._replace(runs=self.runs or size.runs)

    @functools.cached_property
    def results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        return Results(self.out, KEY)

    def _sweep(self, function: Any, grid: Any, label: str, **fixed: Any) -> pd.DataFrame:
        return sweep(
            function, grid, self.size.runs, self.seed, jobs=self.jobs, fixed=fixed, label=label
        )

    def _fixed(self, switches: Mapping[str, str] | None, horizon: float = 0.0) -> dict[str, Any]:
        return {
            "check_at": min(self.loads),
            "nodes": self.nodes,
            "horizon": horizon or self.size.horizon,
            "switches": self.switches if switches is None else dict(switches),
            "cms": self.cms,
            "cps": self.cps,
        }

    def main(
        self, switches: Mapping[str, str] | None = None, loads: Sequence[float] = ()
    ) -> pd.DataFrame:
        """Run Figures 4 to 9: every policy at every load and set-up cost."""
        grid = {"load": loads or self.loads, "setup": self.setups}
        return self._sweep(
            runs.compare, grid, _label("Figures 4-9", switches),
            policies=WITH_ADMISSION, without=WITHOUT_ADMISSION, **self._fixed(switches),
        )  # fmt: skip

    def by_ratio(
        self,
        switches: Mapping[str, str] | None = None,
        loads: Sequence[float] = (),
        horizon: float = 0.0,
    ) -> pd.DataFrame:
        """Run Figure 10: every policy at every ratio Cms/Cps."""
        fixed = self._fixed(switches, horizon or self.size.ratio_horizon)
        if switches is not None:  # `main` verifies schedules of every reading
            fixed["check_at"] = math.nan
        grid = {"mode": MODES, "value": self.ratios, "load": loads or self.loads}
        label = _label("Figure 10", switches)
        return self._sweep(runs.at_ratio, grid, label, policies=WITH_ADMISSION, **fixed)

    def overload(self) -> pd.DataFrame:
        """Run Figure 5 on a longer load axis, without set-up costs."""
        return self._sweep(
            runs.compare, {"load": OVERLOADS, "setup": [0.0]}, "deep overload",
            policies=WITH_ADMISSION, without=WITHOUT_ADMISSION, **self._fixed(None),
        )  # fmt: skip

    def negotiation(self) -> pd.DataFrame:
        """Run negotiating clients at three loads."""
        return self._sweep(
            runs.negotiated, {"load": THREE_LOADS, "factor": FACTORS}, "negotiation",
            policies=WITH_ADMISSION, **self._fixed(None),
        )  # fmt: skip

    def half(self, switches: Mapping[str, str] | None = None) -> pd.DataFrame | None:
        """Run Figure 5 for half the time, where the whole is what claim 18 is about."""
        if self.size.horizon < SCALES["paper"].horizon:
            return None
        return self._sweep(
            runs.compare, {"load": self.loads, "setup": [0.0]}, _label("half the time", switches),
            policies=WITH_ADMISSION, without=WITHOUT_ADMISSION,
            **self._fixed(switches, self.size.horizon / 2),
        )  # fmt: skip

    def doubled(
        self, switches: Mapping[str, str] | None = None, policies: Sequence[str] = WITH_ADMISSION
    ) -> pd.DataFrame:
        """Run every parameter doubled, one at a time, at three loads."""
        grid = {"parameter": ["base", *runs.BASE], "load": THREE_LOADS}
        fixed = self._fixed(switches)
        return self._sweep(
            runs.doubled, grid, _label("sensitivities", switches), policies=policies,
            horizon=fixed["horizon"], switches=fixed["switches"],
        )  # fmt: skip

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        queues = {"pools": self.size.pools, "switches": self.switches, **QUEUES}
        orders = self._sweep(
            runs.order_costs, {"queue": [3, 4, 5, 6]}, "orders of a queue", **queues
        )
        newcomers = self._sweep(
            runs.newcomers, {"load": THREE_LOADS}, "newcomers", queue=4, **queues
        )
        return claims.Evidence(
            self.main(), self.by_ratio(), self.half(), orders, newcomers, self.doubled()
        )

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on every claim under the study's own reading."""
        return [
            verdict_of(claim, claims.measured(claim, self.evidence)) for claim in load_claims(KEY)
        ]

    @functools.cached_property
    def by_reading(self) -> pd.DataFrame:
        """Verdicts under the study's own reading and under every other one.

        Rows are the claims about long simulations; columns are readings, the study's own
        first (from its `verdicts`), the others one switch away from the default, at the
        scale's `reading_loads`.
        """
        rows = [claim for claim in load_claims(KEY) if claim.measure in claims.BY_READING]
        own = {verdict.claim.id: str(verdict) for verdict in self.verdicts}
        columns = {_name(self.switches) or "default": [own[claim.id] for claim in rows]}
        ends, loads = (min(self.loads), max(self.loads)), self.size.reading_loads
        for switches in alternatives():
            if _name(switches) in columns or not (switches or self.switches):
                continue
            evidence = claims.Evidence(
                self.main(switches, loads),
                self.by_ratio(switches, ends, self.size.horizon),
                self.half(switches),
                doubled=self.doubled(switches, ("MCDF",)),
            )
            columns[_name(switches) or "default"] = [
                str(verdict_of(claim, claims.measured(claim, evidence))) for claim in rows
            ]
        return pd.DataFrame(columns, index=pd.Index([claim.id for claim in rows], name="claim"))


def _name(switches: Mapping[str, str]) -> str:
    return ", ".join(f"{k}={v}" for k, v in switches.items())


def _label(what: str, switches: Mapping[str, str] | None) -> str:
    return f"{what}, {_name(switches)}" if switches else what

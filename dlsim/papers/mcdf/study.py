"""All experiments on paper M at one scale: each is run once, when first asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.papers.mcdf import cells, claims
from dlsim.papers.mcdf.cells import SWITCHES, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.realtime.workload import split_reading
from dlsim.study import study
from dlsim.study.study import Switches, labelled

LOADS = tuple(round(0.1 * k, 1) for k in range(1, 11))
MODES = ("vary_cms", "vary_cps")
THREE_LOADS = (0.1, 0.5, 1.0)
#: Random queues of claims 15 and 16: a cluster so small that tasks have to wait.
QUEUES = {"spread": 1.5, "nodes": 3, "cms": 10.0, "cps": 10.0}
SCALES = study.scales("mcdf")


@dataclass(frozen=True)
class Study(study.Study):
    """Paper M's experiments: `dlsim.study.study.Study` with the axes and the cluster of section 6.

    Parameters
    ----------
    loads, setups, ratios : sequence of float
        Axes of Figures 4 to 10.
    nodes, cms, cps : int, float, float
        The cluster of section 6.1.
    """

    loads: Sequence[float] = LOADS
    setups: Sequence[float] = (0.0, 5.0, 10.0, 15.0, 20.0)
    ratios: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
    nodes: int = 10
    cms: float = 10.0
    cps: float = 10.0

    KEY, SCALES, SWITCHES = "mcdf", SCALES, SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, and axes without neighbours to compare."""
        split_reading(self.switches, "mcdf")
        axes = {"loads": self.loads, "ratios": self.ratios}
        axes["setups above 0"] = [setup for setup in self.setups if setup > 0]
        for name, values in axes.items():
            if len(set(values)) < 2:
                raise InputError(f"{name} must be two values or more: claims compare neighbours")

    def compare(
        self, function: Any, grid: Any, label: str, switches: Switches | None = None, **other: Any
    ) -> pd.DataFrame:
        """Run policies over a grid of workloads on the study's cluster."""
        fixed = {
            "policies": WITH_ADMISSION, "nodes": self.nodes, "cms": self.cms, "cps": self.cps,
            "horizon": self.size.horizon, "check_at": min(self.loads),
            "switches": self.under(switches),
        }  # fmt: skip
        return self.sweep(function, grid, labelled(label, switches), **(fixed | other))

    def main(self, switches: Switches | None = None, loads: Sequence[float] = ()) -> pd.DataFrame:
        """Run Figures 4 to 9: every policy at every load and set-up cost."""
        grid = {"load": loads or self.loads, "setup": self.setups}
        return self.compare(cells.compare, grid, "Figures 4-9", switches, without=WITHOUT_ADMISSION)

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run Figures 4 to 10, half the time, doubled parameters; queues without `switches`."""
        other, size = switches is not None, self.size
        main = self.main(switches, size.reading_loads if other else ())
        ends = (min(self.loads), max(self.loads)) if other else self.loads
        ratios = self.compare(
            cells.compare, {"mode": MODES, "value": self.ratios, "load": ends}, "Figure 10",
            switches, horizon=size.horizon if other else size.ratio_horizon,
            # `main` verifies schedules of every reading
            check_at=math.nan if other else min(self.loads),
        )  # fmt: skip
        half = None
        if size.horizon >= SCALES["paper"].horizon:  # what claim 18 is about
            half = self.compare(
                cells.compare, {"load": self.loads, "setup": [0.0]}, "half the time", switches,
                horizon=size.horizon / 2, without=WITHOUT_ADMISSION,
            )  # fmt: skip
        doubled = self.sweep(
            cells.doubled, {"parameter": ["base", *cells.BASE], "load": THREE_LOADS},
            labelled("sensitivities", switches), horizon=size.horizon,
            policies=("MCDF",) if other else WITH_ADMISSION, switches=self.under(switches),
        )  # fmt: skip
        if other:
            return claims.Evidence(main, ratios, doubled, half)
        queues = {"pools": size.pools, "switches": self.switches, **QUEUES}
        lengths, loads = {"queue": [3, 4, 5, 6]}, {"load": THREE_LOADS}
        orders = self.sweep(cells.order_costs, lengths, "orders of a queue", **queues)
        newcomers = self.sweep(cells.newcomers, loads, "newcomers", queue=4, **queues)
        return claims.Evidence(main, ratios, doubled, half, orders, newcomers)

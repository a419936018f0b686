"""All experiments on paper M at one scale, each run once, when first asked for; its drawings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.errors import InputError
from dlsim.papers.mcdf import cells, claims
from dlsim.papers.mcdf.cells import SWITCHES, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.realtime.own import policies_of, workload_of
from dlsim.realtime.workload import split_reading
from dlsim.study import study
from dlsim.study.plot import axes_of, boxed
from dlsim.study.study import Switches

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
    policies, workload
        One's own (`dlsim.study.study.Study.mine`).
    """

    loads: Sequence[float] = LOADS
    setups: Sequence[float] = (0.0, 5.0, 10.0, 15.0, 20.0)
    ratios: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
    nodes: int = 10
    cms: float = 10.0
    cps: float = 10.0
    policies: Any = ()
    workload: Any = ""

    KEY, SCALES, SWITCHES = "mcdf", SCALES, SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, and axes without neighbours to compare."""
        split_reading(self.switches, "mcdf")
        vars(self)["mine"] = policies_of(self.policies, (*WITH_ADMISSION, *WITHOUT_ADMISSION))
        vars(self)["drawn_by"] = workload_of(self.workload)
        axes = {"loads": self.loads, "ratios": self.ratios}
        axes["setups above 0"] = [setup for setup in self.setups if setup > 0]
        for name, values in axes.items():
            if len(set(values)) < 2:
                raise InputError(f"{name} must be two values or more: claims compare neighbours")

    @property
    def admitting(self) -> tuple[str, ...]:
        """Policies with admission control, those of one's own last."""
        own = (name for name, policy in self.mine.items() if policy.admission)
        return (*WITH_ADMISSION, *(name for name in own if name not in WITH_ADMISSION))

    def given(self, switches: Switches) -> dict[str, Any]:
        """What cells are given: the cluster, how long and by whom, what is verified, a reading."""
        return super().given(switches) | {
            "policies": self.admitting, "mine": self.mine, "drawn_by": self.drawn_by,
            "nodes": self.nodes, "cms": self.cms, "cps": self.cps,
            "horizon": self.size.horizon, "check_at": min(self.loads),
        }  # fmt: skip

    def main(self, switches: Switches | None = None, loads: Sequence[float] = ()) -> pd.DataFrame:
        """Run Figures 4 to 9: every policy at every load and set-up cost."""
        grid, more = {"load": loads or self.loads, "setup": self.setups}, WITHOUT_ADMISSION
        return self.sweep(cells.compare, grid, "Figures 4-9", reading=switches, without=more)

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run Figures 4 to 10, half the time, doubled parameters; queues without `switches`."""
        other, size = switches is not None, self.size
        main = self.main(switches, size.reading_loads if other else ())
        ends = (min(self.loads), max(self.loads)) if other else self.loads
        ratios = self.sweep(
            cells.compare, {"mode": MODES, "value": self.ratios, "load": ends}, "Figure 10",
            reading=switches, horizon=size.horizon if other else size.ratio_horizon,
            # `main` verifies schedules of every reading
            check_at=math.nan if other else min(self.loads),
        )  # fmt: skip
        half = None
        if size.horizon >= SCALES["paper"].horizon:  # what claim 18 is about
            half = self.sweep(
                cells.compare, {"load": self.loads, "setup": [0.0]}, "half the time",
                reading=switches, horizon=size.horizon / 2, without=WITHOUT_ADMISSION,
            )  # fmt: skip
        doubled = self.sweep(
            cells.doubled, {"parameter": ["base", *cells.BASE], "load": THREE_LOADS},
            "sensitivities", reading=switches, policies=("MCDF",) if other else self.admitting,
        )  # fmt: skip
        if other:
            return claims.Evidence(main, ratios, doubled, half)
        queues, grid = {"pools": size.pools, **QUEUES}, {"load": THREE_LOADS}
        orders = self.sweep(
            cells.order_costs, {"queue": [3, 4, 5, 6]}, "orders of a queue", **queues
        )
        newcomers = self.sweep(cells.newcomers, grid, "newcomers", queue=4, **queues)
        return claims.Evidence(main, ratios, doubled, half, orders, newcomers)


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1 redrawn: head node, switch and N processing nodes."""
    ax, n = axes_of(ax, (6.4, 2.8)), study.nodes
    shown = [*range(1, min(n, 4) + 1), *([n] if n > 4 else [])]
    middle = (len(shown) - 1) / 2
    boxes = [(float(x), 0, f"$P_{{{k}}}$") for x, k in enumerate(shown)]
    boxes += [(middle, 1, "switch"), (middle, 2, "$P_0$ head node: admits, divides, sends")]
    for x, y, text in boxes:
        ax.plot([middle, x], [1, y], color="0.55", zorder=1)
        boxed(ax, x, y, text, 0.45)
    if n > 5:
        ax.text(len(shown) - 1.5, 0, "…", ha="center", va="center")
    ax.text(middle + 0.15, 1.5, "one chunk at a time", va="center", color="0.35")
    ax.set(xlim=(-0.7, len(shown) - 0.3), ylim=(-0.5, 2.5))
    ax.set_title(f"The system: N = {n} equal nodes")
    ax.axis("off")
    return study.keep("fig1", ax)

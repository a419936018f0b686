"""Maps beyond paper I: where Constraint 1 can hold, and what each partition gains where."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from dlsim.papers.inserted_idle_time.claims import ORDERS
from dlsim.papers.inserted_idle_time.figures import POINTS, compared, panels_of
from dlsim.papers.inserted_idle_time.runs import PARTITIONS, named
from dlsim.papers.inserted_idle_time.study import MAPPED, Study
from dlsim.study.experiment import keep
from dlsim.study.stats import summary
from dlsim.study.style import INK, axes_of


def window(n: int, ratio: float) -> float:
    r"""Return the room that a minimal n leaves for the last gap, in units of sigma tau.

    .. math:: \frac{\mathcal{E}(n-1) - \mathcal{E}(n)}{\sigma\tau}
              = \frac{1}{1-\beta^{n-1}} - \frac{1}{1-\beta^n}

    n is the fewest nodes that meet the deadline, so that :math:`r_{n-1} +
    \mathcal{E}(n-1) > A + D \ge r_n + \mathcal{E}(n)`; Constraint 1 needs a gap
    :math:`r_n - r_{n-1}` of at least 1 in these units.

    Examples
    --------
    >>> [max(n for n in range(2, 17) if window(n, 100 / tau) > 1) for tau in (8, 4, 2, 1)]
    [4, 5, 7, 10]
    """
    decay = -np.log1p(1 / ratio)  # ln beta
    return float(1 / np.expm1(n * decay) - 1 / np.expm1((n - 1) * decay))


def feasible(nodes: int, ratios: Sequence[float]) -> pd.DataFrame:
    """Tell for every n and chi/tau whether Constraint 1 can hold."""
    rows = [
        (n, ratio, window(n, ratio), n * (n - 1) / 2 < 1 + ratio)
        for n in range(2, nodes + 1)
        for ratio in ratios
    ]
    return pd.DataFrame(rows, columns=["n", "ratio", "window", "positive"])


def fig_feasible(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: where Constraint 1 can hold at all, over n and chi/tau."""
    ax = axes_of(ax, (7.2, 4.4))
    ratios = np.geomspace(1, 1000, 91)
    table = feasible(max(study.nodes, 2), list(ratios))
    state = np.where(table["window"] > 1, 2, np.where(table["positive"], 1, 0))
    grid = table.assign(state=state).pivot(index="n", columns="ratio", values="state")
    inks = {
        2: ("#BFE3D6", "can hold"),
        1: ("#F6E7A8", "cannot hold: n would not be the fewest"),
        0: ("#F2B999", "nor could all shares be positive"),
    }
    edges = np.geomspace(ratios[0], ratios[-1], len(ratios) + 1)
    sides = np.append(grid.index - 0.5, grid.index[-1] + 0.5)
    colors = ListedColormap([inks[k][0] for k in (0, 1, 2)])
    ax.pcolormesh(edges, sides, grid.to_numpy(), cmap=colors, vmin=0, vmax=2, rasterized=True)
    for tau in study.taus:
        ratio = study.cps / tau
        most = max((n for n in grid.index if window(int(n), ratio) > 1), default=1)
        ax.axvline(ratio, color="#333333", lw=1, ls=":")
        ax.text(
            ratio, most + 0.75, rf"$\tau$ = {tau:g}" + f"\nn ≤ {most}", ha="center", va="bottom",
            fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
        )  # fmt: skip
    ax.set(
        xscale="log", xlim=(1, 1000), ylim=(1.5, grid.index[-1] + 0.5), xlabel=r"$\chi / \tau$",
        ylabel="fewest nodes n", title="Where Constraint 1 can hold",
    )  # fmt: skip
    ax.set_yticks(range(2, int(grid.index[-1]) + 1, 2))
    ax.grid(False)
    keys = [Patch(facecolor=color, label=text) for color, text in inks.values()]
    ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=8)
    return keep(study, "feasible", ax, table)


def fig_gain(study: Study, load: float = 1.0, axes: Any = None) -> Axes:
    """What each partition gains, over deadlines and costs of sending."""
    frame, steps = study.gain_map(load), {"DLT": "OPR-MN", **dict.fromkeys(MAPPED[2:], "DLT")}
    rows = [(n, order) for n in study.clusters for order in ORDERS]
    if axes is None:
        size, room = (3.1 * len(steps), 2.4 * len(rows)), {"hspace": 0.35, "wspace": 0.12}
        axes = plt.subplots(len(rows), len(steps), figsize=size, gridspec_kw=room, layout="none")[1]
    axes = np.reshape(np.asarray(axes, dtype=object), (len(rows), len(steps)))
    tables = {}
    for n, order in rows:
        pairs = {
            f"{named(order, role)} over {named(order, base)}": (
                named(order, base),
                named(order, role),
            )
            for role, base in steps.items()
        }
        part = frame[frame["nodes"] == n]
        tables[n, order] = compared(part, pairs, ["dc_ratio", "tau"])
    table = pd.concat(tables, names=["nodes", "order"]).reset_index([0, 1])
    reach = POINTS * float(table["estimate"].abs().max())
    for k, (line, (n, order)) in enumerate(zip(axes, rows, strict=True), start=1):
        for ax, (title, part) in zip(
            line, tables[n, order].groupby("policy", sort=False), strict=True
        ):
            _heat(ax, part, reach)
            ax.set_title(title, fontsize=9)
            ax.set_ylabel(f"N = {n}\nDCRatio" if ax is line[0] else "")
            ax.set_xlabel(r"cost of sending $\tau$" if k == len(rows) else "")
    figure = axes[0, 0].get_figure(root=True)
    words = f"points of the reject ratio gained at load {load:g}; [ ]: the 95 % interval contains 0"
    figure.suptitle(words, fontsize=10)
    return keep(study, "gain", axes[0, 0], table)


def _heat(ax: Axes, part: pd.DataFrame, reach: float) -> None:
    """Draw one map; the root of a gain gives its colour, so that small ones show."""
    grid = {
        name: POINTS * part.pivot(index="dc_ratio", columns="tau", values=name)
        for name in ("estimate", "low", "high")
    }
    shown, bound = grid["estimate"], np.sqrt(reach)
    values = shown.to_numpy(dtype=float)
    ink = np.sign(values) * np.sqrt(np.abs(values))
    ax.pcolormesh(ink, cmap="RdBu", vmin=-bound, vmax=bound, edgecolors="white", lw=1)
    unsure = ((grid["low"] <= 0) & (grid["high"] >= 0)).to_numpy()
    for (i, j), value in np.ndenumerate(values):
        dark = abs(ink[i, j]) > 0.62 * bound
        number = f"{round(value, 2) + 0.0:.2f}"  # no minus sign before 0.00
        text = f"[{number}]" if unsure[i, j] else number
        color = "white" if dark else "#222222"
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", size=8, color=color)
    ax.set_yticks(np.arange(len(values)) + 0.5, [f"{value:g}" for value in shown.index])
    ax.set_xticks(np.arange(len(values.T)) + 0.5, [f"{value:g}" for value in shown.columns])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.grid(False)


_POOL_LOOKS = {
    "no idle time used": (INK["blue"], "o", "-"),
    "remodel, estimate": (INK["black"], "s", ":"),
    "remodel, actual": (INK["black"], "s", "-"),
    "constraint 2": (INK["green"], "D", "--"),
    "optimum": (INK["vermillion"], "^", "-"),
}


def _pools(
    study: Study, name: str, column: str, ylabel: str, axes: Sequence[Axes] | None
) -> tuple[list[Axes], pd.DataFrame]:
    panels = panels_of(axes, len(study.taus), (2.7 * len(study.taus) + 0.6, 3.9))
    table = summary(study.pools, ["partition", "tau", "nodes"], column)
    for ax, tau in zip(panels, sorted(study.taus), strict=True):
        for partition in PARTITIONS:
            rows = table[(table["partition"] == partition) & (table["tau"] == tau)]
            rows = rows[rows["nodes"] >= 2]
            if (rows["estimate"] == 0).all():
                continue
            color, marker, dash = _POOL_LOOKS[partition]
            ax.plot(
                rows["nodes"], POINTS * rows["estimate"], color=color, marker=marker, ls=dash, ms=4,
                label=partition, lw=1.3, markeredgecolor="white", markeredgewidth=0.5,
            )  # fmt: skip
        ax.set(xlabel="number of nodes n", title=rf"$\tau$ = {tau:g}")
        ax.set_xticks(range(2, study.nodes + 1, 2))
    panels[0].set_ylabel(ylabel)
    panels[len(panels) // 2].get_figure().legend(  # type: ignore[union-attr]
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5
    )
    keep(study, name, panels[0], table)
    return panels, table


def fig_excess(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: finish of one load over its optimum, on random release times."""
    panels, _ = _pools(study, "excess", "excess", "finish over the optimum, %", axes)
    return panels[0]


def fig_admission(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: single loads that meet their deadline on at most n nodes."""
    panels, _ = _pools(study, "admission", "admitted", "loads in time, %", axes)
    return panels[0]

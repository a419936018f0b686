"""The pictures of paper M: a study in, Axes out; tables and PNGs are kept beside them.

Every ``fig...`` function takes the `Study`, which runs what has not been run, and optionally
the Axes to draw on (``axes`` where there are several panels), and returns the (first) Axes.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.mcdf import claims, runs
from dlsim.papers.mcdf.runs import WITH_ADMISSION
from dlsim.papers.mcdf.study import KEY, Study
from dlsim.realtime import Cluster, simulate
from dlsim.study.experiment import verdicts as verdicts
from dlsim.study.gantt import plot_gantt, task_colors
from dlsim.study.stats import summary
from dlsim.study.style import axes_of, policy_lines, verdict_heat

_LOAD = "nominal load L"


def _keep(study: Study, name: str, ax: Axes, table: pd.DataFrame | None = None) -> Axes:
    if table is not None:
        study.results.table(f"{KEY}-{name}", table)
    study.results.figure(f"{KEY}-{name}", ax)
    return ax


def _lines(
    frame: pd.DataFrame, x: str, xlabel: str, ylabel: str, title: str, ax: Axes | None,
    **options: Any,
) -> Axes:  # fmt: skip
    shares = frame.assign(low=frame["low"].clip(0, 1), high=frame["high"].clip(0, 1))
    ax = policy_lines(shares, x, ax=ax, **options)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    top = 1.04 * float(shares[["estimate", "high"]].max().max())
    ax.set_ylim(0, max(top, ax.get_ylim()[1]))  # an axis may be shared with other panels
    return ax


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1 redrawn: head node, switch and N processing nodes."""
    ax = axes_of(ax, (6.4, 2.8))
    n = study.nodes
    shown = [*range(1, min(n, 4) + 1), *([n] if n > 4 else [])]
    box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "0.25"}
    middle = (len(shown) - 1) / 2
    switch = (middle, 1.0)
    for x, k in enumerate(shown):
        ax.plot([switch[0], x], [switch[1], 0], color="0.55", zorder=1)
        ax.text(x, 0, f"$P_{{{k}}}$", ha="center", va="center", bbox=box, zorder=2)
    if n > 5:
        ax.text(len(shown) - 1.5, 0, "…", ha="center", va="center")
    ax.plot([middle, middle], [1, 2], color="0.55", zorder=1)
    ax.text(*switch, "switch", ha="center", va="center", bbox=box, zorder=2)
    ax.text(middle, 2, "$P_0$ head node: admits, divides, sends", ha="center", va="center",
            bbox=box, zorder=2)  # fmt: skip
    ax.text(middle + 0.15, 1.5, "one chunk at a time", va="center", color="0.35")
    ax.set(
        xlim=(-0.7, len(shown) - 0.3), ylim=(-0.5, 2.5), title=f"The system: N = {n} equal nodes"
    )
    ax.axis("off")
    return _keep(study, "fig1", ax)


def _summed(rows: pd.DataFrame, by: Sequence[str], column: str = "ratio") -> pd.DataFrame:
    """Summarise shares, with the realised load beside the nominal one."""
    table = summary(rows, by, column)
    keys = [name for name in by if name != "policy"]
    loads = summary(rows, keys, "realised_load")[[*keys, "estimate"]]
    return table.merge(loads.rename(columns={"estimate": "realised_load"}), on=keys, how="left")


def _realised_axis(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the realised load above the nominal one: they are proportional but for chance."""
    nominal, realised = table["load"], table["realised_load"]
    slope = float((nominal * realised).sum() / (nominal**2).sum())

    def forward(x: Any) -> Any:
        return np.asarray(x) * slope

    def back(x: Any) -> Any:
        return np.asarray(x) / slope

    top = ax.secondary_xaxis("top", functions=(forward, back))
    top.set_xlabel("realised load", fontsize="small")


def _by_load(
    study: Study, name: str, setup: float, policies: Sequence[str], ylabel: str, ax: Axes | None
) -> Axes:
    rows = study.evidence.main.query("setup == @setup and policy in @policies")
    table = _summed(rows, ["policy", "load"])
    title = f"ST = SC = {setup:g}" if setup else "no set-up cost"
    ax = _lines(table, "load", _LOAD, ylabel, title, ax)
    _realised_axis(ax, table)
    return _keep(study, name, ax, table)


def _log_loads(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    ax.minorticks_off()


def fig4(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 4: reject ratio against load, policies with admission control."""
    return _by_load(study, "fig4", 0.0, WITH_ADMISSION, "task reject ratio", ax)


def fig5(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 5: reject or miss ratio against load, all seven policies."""
    both = (*WITH_ADMISSION, *runs.WITHOUT_ADMISSION)
    return _by_load(study, "fig5", 0.0, both, "reject ratio, or miss ratio (…NA)", ax)


def fig_setup(study: Study, number: int, ax: Axes | None = None) -> Axes:
    """Figures 6 to 9: reject ratio against load with ST = SC = 5, 10, 15, 20."""
    setup = 5.0 * (number - 5)
    return _by_load(study, f"fig{number}", setup, WITH_ADMISSION, "task reject ratio", ax)


def fig10(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 10: reject ratio of MCDF against load for several Cms/Cps, both ways to vary it."""
    mine = study.evidence.ratios.query("policy == 'MCDF'")
    table = _summed(mine, ["mode", "value", "load"])
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")[1]
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, table["value"].nunique()))
    fixed = {
        "vary_cms": f"Cps = {study.cps:g}, Cms varied",
        "vary_cps": f"Cms = {study.cms:g}, Cps varied",
    }
    for ax, (mode, rows) in zip(axes, table.groupby("mode"), strict=True):
        for color, (value, line) in zip(colors, rows.groupby("value"), strict=True):
            ax.plot(
                line["load"], line["estimate"], color=color, marker="o", ms=3, label=f"{value:g}"
            )
            low, high = line["low"].clip(0, 1), line["high"].clip(0, 1)
            ax.fill_between(line["load"], low, high, color=color, alpha=0.15, lw=0)
        ax.set(xlabel=_LOAD, title=fixed[str(mode)])
        _realised_axis(ax, rows)
    axes[0].set(ylabel="task reject ratio of MCDF", ylim=(0, None))
    axes[-1].legend(title="Cms / Cps", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return _keep(study, "fig10", axes[0], table)


def fig_overload(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the load axis of Figure 5 continued into deep overload."""
    table = _summed(study.overload(), ["policy", "load"])
    ax = _lines(table, "load", _LOAD, "reject or miss ratio", "deep overload", ax)
    _log_loads(ax)
    _realised_axis(ax, table)
    return _keep(study, "overload", ax, table)


def fig_weighted(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: refused tasks beside refused work."""
    rows = study.overload().query("policy in @WITH_ADMISSION")
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")[1]
    parts = {"tasks": "ratio", "work": "work_ratio"}
    tables = {what: _summed(rows, ["policy", "load"], column) for what, column in parts.items()}
    for ax, (what, table) in zip(axes, tables.items(), strict=True):
        _lines(table, "load", _LOAD, f"share of refused {what}", what, ax, legend=ax is axes[-1])
        _log_loads(ax)
    return _keep(study, "weighted", axes[0], pd.concat(tables, names=["counted"]).reset_index(0))


def fig_negotiation(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: reject ratio if clients accept a later deadline."""
    rows = study.negotiation()
    table = _summed(rows, ["policy", "load", "factor"])
    for extra in ("agreed", "stretch"):
        means = summary(rows, ["policy", "load", "factor"], extra)
        table[extra] = means["estimate"].to_numpy()
    loads = sorted(table["load"].unique())
    if axes is None:
        axes = plt.subplots(
            1, len(loads), figsize=(4 * len(loads), 3.8), sharey=True, layout="constrained"
        )[1]
    for ax, load in zip(axes, loads, strict=True):
        label, last = "accepted stretch of the deadline", ax is axes[-1]
        part = table[table["load"] == load]
        title = f"L = {load:g} (realised {part['realised_load'].mean():.2f})"
        _lines(part, "factor", label, "task reject ratio", title, ax, legend=last)
    return _keep(study, "negotiation", axes[0], table)


def fig_stability(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: range of the reject ratio over each axis, per policy."""
    tidy = claims.ranges(study.evidence).reset_index()
    tidy = tidy.melt(["axis", "replicate"], var_name="policy", value_name="range")
    table = summary(tidy, ["policy", "axis"], "range")
    place = {axis: k for k, axis in enumerate(table["axis"].unique())}
    spread = {name: 0.09 * (k - 2) for k, name in enumerate(WITH_ADMISSION)}
    where = table["axis"].map(place) + table["policy"].map(spread)
    ax = _lines(
        table.assign(place=where), "place", "", "range of the reject ratio",
        "how far each policy moves", ax, interval="bar",
    )  # fmt: skip
    for line in ax.get_lines():
        line.set_linestyle("none")
    ax.set_xticks(list(place.values()), [f"over {axis}" for axis in place])
    ax.margins(x=0.15)
    return _keep(study, "stability", ax, table)


def fig_gantt(
    study: Study, policies: Sequence[str] = ("MCDF", "EDFMN"), axes: Sequence[Axes] | None = None
) -> Axes:
    """One workload under two policies, the head node's link as its own row."""
    cluster = Cluster(study.nodes, study.cms, study.cps)
    tasks, reading = runs.tasks_and_reading(cluster, 0.5, 12_000.0, study.seed, study.switches)
    if axes is None:
        size = (10, 3.6 * len(policies))
        axes = plt.subplots(len(policies), 1, figsize=size, sharex=True, layout="constrained")[1]
    schedules = [simulate(tasks, cluster, name, reading) for name in policies]
    until = max(s.tasks["completion"].max() for s in schedules)
    colors = task_colors(list(tasks.index))
    for ax, s in zip(axes, schedules, strict=True):
        s.check()
        plot_gantt(s.chunks, cluster.nodes, until=until, colors=colors, ax=ax)
        ax.set_xlim(left=0.98 * tasks["arrival"].min())
        ax.set_title(f"{s.name}: {int(s.tasks['admitted'].sum())} of {len(tasks)} tasks admitted")
    table = pd.concat({s.name: s.chunks for s in schedules}, names=["policy"]).reset_index(0)
    return _keep(study, "gantt", axes[0], table)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the verdict of every claim under every reading."""
    table = study.by_reading
    ax = verdict_heat(table, ax)
    full = int((table == "holds").all().sum())
    lighter = ", ".join(f"{load:g}" for load in study.size.reading_loads)
    title = f"{full} of {table.shape[1]} readings support every claim shown"
    title += f"; first column: all loads, others: {lighter}" if lighter else ""
    ax.set_title(title, pad=12)
    return _keep(study, "readings", ax, table.reset_index())


def table_sensitivities(study: Study) -> pd.DataFrame:
    """Change of every policy's reject ratio when one parameter doubles."""
    table = claims.effects(study.evidence).groupby("parameter", sort=False).mean()
    study.results.table(f"{KEY}-sensitivities", table.reset_index())
    return table

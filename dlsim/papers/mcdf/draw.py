"""The pictures of paper M: a study in, Axes out; tables and PNGs are kept beside them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.mcdf import cells, claims
from dlsim.papers.mcdf.cells import WITH_ADMISSION
from dlsim.papers.mcdf.study import Study
from dlsim.realtime import Cluster, simulate
from dlsim.study import plot
from dlsim.study import study as base
from dlsim.study.gantt import plot_gantt, task_colors
from dlsim.study.measure import tidy
from dlsim.study.plot import axes_of, panels, policy_lines, realised_axis, with_load
from dlsim.study.stats import summary
from dlsim.study.study import verdicts as verdicts

_LOAD = "nominal load L"
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5)


def _lines(
    frame: pd.DataFrame, x: str, xlabel: str, ylabel: str, title: str, ax: Axes | None,
    **options: Any,
) -> Axes:  # fmt: skip
    shown = plot.shares(frame)
    ax = policy_lines(shown, x, ax=ax, **options)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    top = 1.04 * float(shown[["estimate", "high"]].max().max())
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
    return study.keep("fig1", ax)


def _by_load(
    study: Study, name: str, setup: float, policies: Sequence[str], ylabel: str, ax: Axes | None
) -> Axes:
    rows = study.evidence.main.query("setup == @setup and policy in @policies")
    table = with_load(rows, ["policy", "load"])
    title = f"ST = SC = {setup:g}" if setup else "no set-up cost"
    ax = _lines(table, "load", _LOAD, ylabel, title, ax)
    realised_axis(ax, table)
    return study.keep(name, ax, table)


def fig4(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 4: reject ratio against load, policies with admission control."""
    return _by_load(study, "fig4", 0.0, WITH_ADMISSION, "task reject ratio", ax)


def fig5(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 5: reject or miss ratio against load, all seven policies."""
    both = (*WITH_ADMISSION, *cells.WITHOUT_ADMISSION)
    return _by_load(study, "fig5", 0.0, both, "reject ratio, or miss ratio (…NA)", ax)


def fig_setup(study: Study, number: int, ax: Axes | None = None) -> Axes:
    """Figures 6 to 9: reject ratio against load with ST = SC = 5, 10, 15, 20."""
    setup = 5.0 * (number - 5)
    return _by_load(study, f"fig{number}", setup, WITH_ADMISSION, "task reject ratio", ax)


def fig10(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 10: reject ratio of MCDF against load for several Cms/Cps, both ways to vary it."""
    mine = study.evidence.ratios.query("policy == 'MCDF'")
    table = with_load(mine, ["mode", "value", "load"])
    axes = panels(axes, 2, (10, 4))
    fixed = {
        "vary_cms": f"Cps = {study.cps:g}, Cms varied",
        "vary_cps": f"Cms = {study.cms:g}, Cps varied",
    }
    for ax, (mode, rows) in zip(axes, plot.shares(table).groupby("mode"), strict=True):
        plot.bands(rows, "load", "value", ax=ax, ms=3)
        ax.set(xlabel=_LOAD, title=fixed[str(mode)])
        realised_axis(ax, rows)
    axes[0].set(ylabel="task reject ratio of MCDF", ylim=(0, None))
    axes[-1].legend(title="Cms / Cps", **plot.BESIDE)
    return study.keep("fig10", axes[0], table)


def fig_overload(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the load axis of Figure 5 continued into deep overload."""
    table = with_load(study.overload(), ["policy", "load"])
    ax = _lines(table, "load", _LOAD, "reject or miss ratio", "deep overload", ax)
    plot.log_ticks(ax, _TICKS)
    realised_axis(ax, table)
    return study.keep("overload", ax, table)


def fig_weighted(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: refused tasks beside refused work."""
    rows = study.overload().query("policy in @WITH_ADMISSION")
    axes = panels(axes, 2, (10, 4))
    parts = {"tasks": "ratio", "work": "work_ratio"}
    tables = {what: with_load(rows, ["policy", "load"], column) for what, column in parts.items()}
    for ax, (what, table) in zip(axes, tables.items(), strict=True):
        _lines(table, "load", _LOAD, f"share of refused {what}", what, ax, legend=ax is axes[-1])
        plot.log_ticks(ax, _TICKS)
    return study.keep("weighted", axes[0], pd.concat(tables, names=["counted"]).reset_index(0))


def fig_negotiation(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: reject ratio if clients accept a later deadline."""
    rows = study.negotiation()
    table = with_load(rows, ["policy", "load", "factor"])
    for extra in ("agreed", "stretch"):
        means = summary(rows, ["policy", "load", "factor"], extra)
        table[extra] = means["estimate"].to_numpy()
    loads = sorted(table["load"].unique())
    axes = panels(axes, len(loads), (4 * len(loads), 3.8))
    for ax, load in zip(axes, loads, strict=True):
        label, last = "accepted stretch of the deadline", ax is axes[-1]
        part = table[table["load"] == load]
        title = f"L = {load:g} (realised {part['realised_load'].mean():.2f})"
        _lines(part, "factor", label, "task reject ratio", title, ax, legend=last)
    return study.keep("negotiation", axes[0], table)


def fig_stability(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: range of the reject ratio over each axis, per policy."""
    ranges = tidy(claims.ranges(study.evidence), ["axis"], "range")
    table = summary(ranges, ["policy", "axis"], "range")
    order = list(table["axis"].unique())
    ax = plot.beside_each_other(plot.shares(table), "axis", order, 0.09, ax)
    ax.set_xticks(range(len(order)), [f"over {axis}" for axis in order])
    ax.set(ylabel="range of the reject ratio", title="how far each policy moves", ylim=(0, None))
    ax.legend(handlelength=3.2, **plot.BESIDE)
    ax.margins(x=0.15)
    return study.keep("stability", ax, table)


def fig_gantt(
    study: Study, policies: Sequence[str] = ("MCDF", "EDFMN"), axes: Sequence[Axes] | None = None
) -> Axes:
    """One workload under two policies, the head node's link as its own row."""
    cluster = Cluster(study.nodes, study.cms, study.cps)
    tasks, reading = cells.tasks_and_reading(cluster, 0.5, 12_000.0, study.seed, study.switches)
    rows = len(policies)
    axes = panels(axes, 1, (10, 3.6 * rows), rows=rows, sharex=True)
    schedules = [simulate(tasks, cluster, name, reading) for name in policies]
    until = max(s.tasks["completion"].max() for s in schedules)
    colors = task_colors(list(tasks.index))
    for ax, s in zip(axes, schedules, strict=True):
        s.check()
        plot_gantt(s.chunks, cluster.nodes, until=until, colors=colors, ax=ax)
        ax.set_xlim(left=0.98 * tasks["arrival"].min())
        ax.set_title(f"{s.name}: {int(s.tasks['admitted'].sum())} of {len(tasks)} tasks admitted")
    table = pd.concat({s.name: s.chunks for s in schedules}, names=["policy"]).reset_index(0)
    return study.keep("gantt", axes[0], table)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the verdict of every claim under every reading."""
    table = study.by_reading
    full = int((table == "holds").all().sum())
    lighter = ", ".join(f"{load:g}" for load in study.size.reading_loads)
    title = f"{full} of {table.shape[1]} readings support every claim shown"
    title += f"; first column: all loads, others: {lighter}" if lighter else ""
    return base.fig_readings(study, title, ax)


def table_sensitivities(study: Study) -> pd.DataFrame:
    """Change of every policy's reject ratio when one parameter doubles."""
    table = claims.effects(study.evidence).groupby("parameter", sort=False).mean()
    study.table("sensitivities", table.reset_index())
    return table

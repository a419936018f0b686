"""Paper I's drawings: schedules with idle time, the test as a flow, maps, Table 1."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from dlsim.papers.inserted_idle_time import cells, claims
from dlsim.papers.inserted_idle_time.cells import RULES, named
from dlsim.papers.inserted_idle_time.claims import ORDERS
from dlsim.papers.inserted_idle_time.study import MAPPED, Study, printed_table
from dlsim.realtime import Cluster, Schedule, execution_time, simulate, split_load
from dlsim.study.gantt import plot_gantt, task_colors
from dlsim.study.plot import (
    PERCENT,
    axes_of,
    panels,
    stretched,
)
from dlsim.study.study import verdicts as verdicts
from dlsim.study.style import INK

#: Figure 1: three tasks on one node each, then one that needs all four. By hand: r =
#: (0, 14, 26, 36), p = 36 + 22 + 10 + 0; on three nodes the task would end at 107.97.
FOUR = Cluster(nodes=4, cms=1.0, cps=4.0)
FIRST = pd.DataFrame(
    {
        "arrival": [0.0] * 4,
        "sigma": [2.8, 5.2, 7.2, 40.0],
        "deadline": [14.0, 26.0, 36.0, 105.0],
    },
    index=pd.Index(["a", "b", "c", "T"], name="task"),
)
#: Release times under which Constraint 2 fails for the same task.
CROWDED = (0.0, 8.0, 30.0, 34.0)
_IDLE = "#F6D5C2"
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8}


def mark_waits(ax: Axes, table: pd.DataFrame, names: bool = True, size: float = 5) -> None:
    """Shade how long nodes waited for a task's last node, and mark r_i and s_i."""
    ax.set_ylim(ax.get_ylim()[0] + 0.25, ax.get_ylim()[1])
    if names:  # room for marks at time 0
        ax.set_xlim(left=-0.012 * ax.get_xlim()[1])
    for _, rows in table.groupby("task", sort=False):
        order = rows.sort_values(["release", "send_start"], kind="stable")
        columns = ("node", "release", "send_start", "last")
        cells = (order[name].to_numpy(dtype=float) for name in columns)
        for k, (node, r, begin, last) in enumerate(zip(*cells, strict=True), start=1):
            y, until = node + 1, min(begin, last)
            if until > r:
                ax.barh(
                    y, until - r, left=r, height=0.72, color=_IDLE, hatch="xx",
                    edgecolor="#B5651D", linewidth=0, zorder=1.5,
                )  # fmt: skip
            ax.plot(r, y + 0.44, marker="^", color=INK["blue"], ms=size, zorder=5)
            ax.plot(begin, y - 0.44, marker="v", color=INK["black"], ms=size, zorder=5)
            if names:
                for text, place, color, x in (
                    (f"$r_{k}$", (r, y + 0.48), INK["blue"], 5),
                    (f"$s_{k}$", (begin, y - 0.48), INK["black"], 5),
                ):
                    ax.annotate(
                        text, place, (x, 0), textcoords="offset points", fontsize=8, zorder=6,
                        color=color, va="center", annotation_clip=False, bbox=_PLATE,
                    )  # fmt: skip


def _legend(ax: Axes) -> None:
    keys = [
        Patch(facecolor="#DDDDDD", edgecolor="#333333", hatch="////", label="sending"),
        Patch(facecolor="#999999", edgecolor="#333333", label="computing"),
        Patch(facecolor=_IDLE, edgecolor="#B5651D", hatch="xx", linewidth=0, label="idle"),
        *ax.plot([], [], "^", color=INK["blue"], ms=5, label="free: $r_i$"),
        *ax.plot([], [], "v", color=INK["black"], ms=5, label="start: $s_i$"),
    ]
    ax.legend(handles=keys, loc="lower right", bbox_to_anchor=(1, 1), ncols=5, fontsize=8)


def _without_legend(ax: Axes) -> None:
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()


def _first(study: Study, name: str, policy: str, ax: Axes | None) -> Axes:
    s = simulate(FIRST, FOUR, policy)
    s.check()
    mine = cells.waits(s).query("task == 'T'").sort_values("release")
    # nodes by release; at r_n any of them may be the first to be sent to
    place = dict(zip(mine["node"], range(4), strict=True))
    chunks = s.chunks.assign(node=s.chunks["node"].map(place))
    own = chunks["task"] == "T"
    chunks.loc[own, "node"] = range(4)
    times = ["send_start", "compute_end"]
    mine = mine.assign(node=range(4))
    mine[times] = chunks.loc[own, times].to_numpy()
    idle, used = (mine["last"] - mine["release"]).sum(), mine["used"].sum()
    ax = axes_of(ax, (7.2, 3.8))
    colors = dict.fromkeys("abc", "#A9A9A9") | {"T": INK["blue"]}
    plot_gantt(chunks, 4, until=108, colors=colors, ax=ax)
    ax.set_yticks(range(5), ["link", *(f"$P_{k}$" for k in range(1, 5))])
    mark_waits(ax, mine)
    _legend(ax)
    end = float(s.tasks["completion"]["T"])
    title = rf"$\sum p_i$ = {idle:g}, used {used:g}; T ends at {end:.4g}"
    ax.set_title(title, loc="left", fontsize=10, pad=22)
    return study.keep(name, ax, mine)


def fig1a(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1a from a computed schedule: the task waits for its last node."""
    return _first(study, "fig1a", "FIFO-OPR-MN", ax)


def fig1b(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1b from a computed schedule: the same task, all nodes from their release on."""
    return _first(study, "fig1b", "FIDO-II", ax)


def fig_partitions(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: one load on nodes where Constraint 2 fails, three partitions."""
    kinds = {
        "Constraint 2 fails, so the remodel": "II",
        "true optimum": "exact",
        "idle time unused": "opr",
    }
    if axes is None:
        axes = plt.subplots(3, 1, figsize=(7.2, 9.0), sharex=True, layout="constrained")[1]
    tables = {}
    for ax, (title, partition) in zip(axes, kinds.items(), strict=True):
        split = split_load(40.0, CROWDED, FOUR, partition)
        chunks = pd.DataFrame(
            {
                "task": "T", "node": np.arange(len(split.alpha)), "alpha": split.alpha,
                "send_start": split.send_start, "send_end": split.send_end,
                "compute_end": split.compute_end,
            }
        )  # fmt: skip
        plot_gantt(chunks, 4, until=108, colors={"T": INK["blue"]}, ax=ax)
        ax.set_yticks(range(5), ["link", *(f"$P_{k}$" for k in range(1, 5))])
        tables[title] = chunks.assign(release=split.release, last=max(split.release))
        mark_waits(ax, tables[title])
        _without_legend(ax)
        words = f"{title}: ends at {split.completion:.4g}"
        if split.estimate > split.completion * (1 + 1e-9):
            words += f", booked until {split.estimate:.4g}"
        ax.set_title(words, loc="left", fontsize=10)
        ax.label_outer()
    _legend(axes[0])
    axes[0].set_title(axes[0].get_title("left"), loc="left", fontsize=10, pad=22)
    table = pd.concat(tables, names=["asked"]).reset_index(0)
    return study.keep("partitions", axes[0], table)


def fig_gantt(
    study: Study,
    policies: Sequence[str] = ("FIFO-OPR-MN", "FIFO-DLT", "FIDO-II", "FIFO-EXACT-N"),
    load: float = 1.0,
    axes: Sequence[Axes] | None = None,
) -> Axes:
    """One stretch of a workload under several policies, with idle node time and r_i, s_i."""
    least = execution_time(study.mean, study.nodes, study.cluster)
    setting = study.setting(150 * least)
    tasks, cluster, reading, _ = cells.drawn(setting, load, study.cms, study.switches, study.seed)
    schedules = [simulate(tasks, cluster, name, reading) for name in policies]
    left = max(0.0, _where_most_wait(tasks["arrival"], schedules) - 1.5 * least)
    if axes is None:
        size = (10, 3.0 * len(policies))
        axes = plt.subplots(len(policies), 1, figsize=size, sharex=True, layout="constrained")[1]
    panels = list(np.atleast_1d(np.asarray(axes, dtype=object)))
    for ax, s in zip(panels, schedules, strict=True):
        s.check()
        _stretch(ax, s, left, left + 4.5 * least)
        ax.label_outer()
    _legend(panels[0])
    panels[0].set_title(panels[0].get_title("left"), loc="left", fontsize=10, pad=22)
    shown = {s.name: _between(s.chunks, left, left + 4.5 * least) for s in schedules}
    table = pd.concat(shown, names=["policy"]).reset_index(0)
    return study.keep("gantt", panels[0], table)


def _where_most_wait(arrival: "pd.Series[float]", schedules: Sequence[Schedule]) -> float:
    """Return when the task came whose nodes wait longest, under all policies if possible."""
    table = pd.DataFrame({s.name: _waited(s) for s in schedules}).fillna(0.0)
    ranks = pd.DataFrame({"least": table.min(axis=1), "total": table.sum(axis=1)})
    order = ranks.sort_values(["least", "total"], kind="stable").index
    return float(arrival[order[-1]]) if len(order) else 0.0


def _waited(s: Schedule) -> "pd.Series[float]":
    table = cells.waits(s)
    return (table["last"] - table["release"]).groupby(table["task"]).sum()


def _between(chunks: pd.DataFrame, left: float, right: float) -> pd.DataFrame:
    return chunks[(chunks["compute_end"] > left) & (chunks["send_start"] < right)]


def _stretch(ax: Axes, s: Schedule, left: float, right: float) -> None:
    """Draw the chunks between two instants, and the marks of tasks that waited."""
    shown, table = _between(s.chunks, left, right), cells.waits(s)
    plot_gantt(shown, s.cluster.nodes, until=right, colors=task_colors(list(s.tasks.index)), ax=ax)
    _without_legend(ax)
    ax.set_xlim(left, right)
    table = table[table["task"].isin(shown["task"])]
    wait = (table["last"] - table["release"]).groupby(table["task"]).transform("max")
    mark_waits(ax, table[wait > 1e-9 * right], names=False, size=3.5)
    came = s.tasks[s.tasks["arrival"].between(left, right)]
    use = cells.idle_use(s)
    share = f"; {100 * use['used'] / use['idle']:.0f} % of all waits used" if use["idle"] else ""
    title = f"{s.name}: {int(came['admitted'].sum())} of {len(came)} arrivals here admitted{share}"
    ax.set_title(title, loc="left", fontsize=10)


def flow(study: Study, load: float, order: str = "FIFO") -> pd.DataFrame:
    """Count, for both constraints, what became of all tasks in the test of Figure 2."""
    columns = {}
    for role, column in (("I", "opt_iits"), ("II", "opt_iits_ii")):
        rows = study.figure_3[study.figure_3["policy"] == named(order, role)]
        total = rows[rows["load"] == load].sum(numeric_only=True)
        columns[role] = {
            "arrived": total["tasks"],
            "refused": total["tasks"] - total["admitted"],
            "admitted": total["admitted"],
            "no idle time": total["admitted"] - total["s_iits"],
            "idle time": total["s_iits"],
            "constraint holds": total[column],
            "remodelled": total["s_iits"] - total[column],
        }
    return pd.DataFrame(columns).astype(int).rename_axis("branch")


_BOXES = {
    "arrived": (0, 5, "a task arrives"),
    "admitted": (0, 4, "is there a number of nodes n with\n"
                       r"$r_n + \mathcal{E}(\sigma, n) \leq A + D$,"
                       "\nfor it and for all who wait?"),
    "idle time": (0, 3, r"inserted idle time: $r_1 \neq r_n$?"),
    "constraint holds": (0, 2, "does the constraint hold,\nand are all shares positive?"),
    "equations": (0, 1, "equations (3), (4):\nall nodes finish together"),
    "refused": (1, 4, "refuse; the plan\nstays as it was"),
    "no idle time": (1, 3, "nodes start together:\noptimal partitioning rule"),
    "remodelled": (1, 2, "remodel of [6]"),
}  # fmt: skip
_ARROWS = (
    ("arrived", "admitted", "arrived", ""),
    ("admitted", "idle time", "admitted", "yes"),
    ("idle time", "constraint holds", "idle time", "yes"),
    ("constraint holds", "equations", "constraint holds", "yes"),
    ("admitted", "refused", "refused", "no"),
    ("idle time", "no idle time", "no idle time", "no"),
    ("constraint holds", "remodelled", "remodelled", "no"),
)


def fig2(study: Study, load: float = 0.0, ax: Axes | None = None) -> Axes:
    """Figure 2: the schedulability test as a flow, with the number of tasks on each branch."""
    ax, load = axes_of(ax, (8.6, 6.4)), load or max(study.loads)
    counts = flow(study, load)
    width, step, boxes = 5.2, 1.0, {}
    for name, (column, row, text) in _BOXES.items():
        question = text.endswith("?")
        boxes[name] = ax.text(
            column * width, row * step, text, ha="center", va="center", fontsize=9, zorder=3,
            bbox={
                "boxstyle": "round,pad=0.5" if question else "square,pad=0.5",
                "facecolor": "#EAF3FA" if question else "white", "edgecolor": "#333333",
            },
        )  # fmt: skip
    for start, end, branch, word in _ARROWS:
        (x0, y0, _), (x1, y1, _) = _BOXES[start], _BOXES[end]
        ends = {f"patch{side}": boxes[name].get_bbox_patch() for side, name in
                (("A", start), ("B", end))}  # fmt: skip
        look = {"arrowstyle": "-|>", "color": "#555555", "shrinkA": 0, "shrinkB": 0}
        ax.annotate(
            "", (x1 * width, y1 * step), (x0 * width, y0 * step), zorder=4, arrowprops=ends | look
        )
        one, two = (f"{int(counts[role][branch]):,}" for role in ("I", "II"))
        label = f"{word + ': ' if word else ''}I {one}, II {two}"
        if x0 == x1:
            ax.text(0.12, (y0 + y1) / 2, label, va="center", fontsize=8.5, color=INK["blue"])
        else:
            ax.text(0.56 * width, y0 + 0.1, label, ha="center", fontsize=8.5, color=INK["blue"])
    ax.set(xlim=(-2.4, width + 1.9), ylim=(0.4, 5.5))
    ax.axis("off")
    ax.set_title(f"FIDO-I and FIDO-II at load {load:g}, {study.size.runs} runs", fontsize=10)
    return study.keep("fig2", ax, counts)


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
    return study.keep("feasible", ax, table)


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
        tables[n, order] = claims.compared(part, pairs, ["dc_ratio", "tau"])
    table = pd.concat(tables, names=["nodes", "order"]).reset_index([0, 1])
    reach = PERCENT * float(table["estimate"].abs().max())
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
    return study.keep("gain", axes[0, 0], table)


def _heat(ax: Axes, part: pd.DataFrame, reach: float) -> None:
    """Draw one map; the root of a gain gives its colour, so that small ones show."""
    grid = {
        name: PERCENT * part.pivot(index="dc_ratio", columns="tau", values=name)
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


#: How the partitions of one load are drawn.
POOL_LOOKS: dict[str, dict[str, Any]] = {
    name: {
        "color": color, "marker": marker, "ls": dash, "ms": 4, "lw": 1.3,
        "markeredgecolor": "white", "markeredgewidth": 0.5,
    }
    for name, color, marker, dash in (
        ("no idle time used", INK["blue"], "o", "-"),
        ("remodel, estimate", INK["black"], "s", ":"),
        ("remodel, actual", INK["black"], "s", "-"),
        ("constraint 2", INK["green"], "D", "--"),
        ("optimum", INK["vermillion"], "^", "-"),
    )
}  # fmt: skip


#: Ten runs of 10,000,000 time units: what Table 1 seems to be summed over.
PAPER_TIME = 1e8


def counted(study: Study) -> pd.DataFrame:
    """Estimate how often the constraints hold, by every counting rule and reading."""
    columns = ["s_iits", "opt_iits", "opt_iits_ii", "non_positive"]
    keys = ["reading", "rule", "load"]
    table = study.counted().groupby(keys, sort=False)[columns].mean().reset_index()
    return table.assign(
        share=table["opt_iits"] / table["s_iits"], share_ii=table["opt_iits_ii"] / table["s_iits"]
    )


def table1(study: Study) -> pd.DataFrame:
    """Table 1: printed counts, the percentages that follow from them, and measured ones."""
    printed, measured = printed_table(), counted(study)
    said: dict[tuple[str, str], Any] = {
        ("printed", "S-IITs"): printed["s_iits"].map("{:.0f}".format),
        ("printed", "Opt"): printed["opt_iits"].map("{:.0f}".format),
        ("printed", "Opt-II"): printed["opt_iits_ii"].map("{:.0f}".format),
    }
    for end, name in (("", "%"), ("_ii", "% II")):
        said["printed", name] = [
            f"{p:.0f}" if right else f"{p:.0f} (≠ {100 * share:.1f})"
            for p, right, share in zip(
                printed[f"percent{end}"], printed[f"follows{end}"], printed[f"share{end}"],
                strict=True,
            )
        ]  # fmt: skip
    table = pd.DataFrame(said).set_axis(printed["load"].to_numpy()).rename_axis("load")
    own = measured[measured["reading"] == ""]
    for rule in RULES:
        rows = own[own["rule"] == rule].set_index("load").reindex(table.index)
        whole = rows["s_iits"] * (PAPER_TIME / study.size.horizon)
        table[rule, "S-IITs"] = whole.map("{:.0f}".format)
        table[rule, "%"] = (100 * rows["share"]).map("{:.1f}".format)
        if rule != "rtgrid":
            table[rule, "% II"] = (100 * rows["share_ii"]).map("{:.1f}".format)
    flat = measured.merge(printed.add_prefix("printed_"), left_on="load", right_on="printed_load",
                          how="left").drop(columns="printed_load")  # fmt: skip
    study.table("table1", flat)
    return table


def fig_table1(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Draw Table 1: share of plannings with idle time in which a constraint holds."""
    axs, printed, measured = panels(axes, 2, (11, 4.2)), printed_table(), counted(study)
    for ax, end, title in zip(axs, ("", "_ii"), claims.CONSTRAINTS, strict=True):
        share = f"share{end}"
        for key, line in measured.groupby(["reading", "rule"], sort=False):
            reading, rule = map(str, key)
            if line[share].isna().all() or (reading and rule != RULES[0]):
                continue
            color = list(INK.values())[1 + RULES.index(rule)] if not reading else "#999999"
            look: dict[str, Any] = (
                {"lw": _WIDE[rule]} if not reading else {"ls": _THIN[reading], "lw": 1.1}
            )
            label = f"{rule}, {reading}" if reading else rule
            ax.plot(line["load"], 100 * line[share], color=color, label=label, **look)
        ax.plot(printed["load"], 100 * printed[share], "kD", ms=5, label="printed counts")
        wrong = printed[~printed[f"follows{end}"]]
        ax.plot(
            wrong["load"], wrong[f"percent{end}"], "x", color=INK["vermillion"], ms=8, mew=2,
            label="printed %, does not follow",
        )  # fmt: skip
        ax.set(xlabel="nominal load", title=f"{title} holds", ylim=(0, 120))
        stretched(ax, (0, 0.5, 1, 2, 5, 10, 20, 50, 100))
    axs[0].set_ylabel("% of the cases with idle time (linear up to 1)")
    figure = axs[0].get_figure(root=True)
    assert figure is not None
    handles, labels = axs[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, handlelength=3)
    return study.keep("table1", axs[0])


_WIDE = {"admitted": 8, "arrival": 5.6, "replanned": 3.4, "dispatched": 1.4, "rtgrid": 1.8}
_THIN = {
    "scope=all": (0, (5, 2)),
    "ties=skip": (0, (1, 1.4)),
    "scope=all, count_single=yes": (0, (6, 2, 1.4, 2)),
    "release=finish": "-",
    "mn_count=frozen": (0, (9, 2.5)),
}

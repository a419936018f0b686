"""Timing diagrams of inserted idle time, and the schedulability test as a flow."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlsim.papers.inserted_idle_time import runs
from dlsim.papers.inserted_idle_time.runs import named
from dlsim.papers.inserted_idle_time.study import Study
from dlsim.realtime import Cluster, Schedule, execution_time, simulate, split_load
from dlsim.study.experiment import keep
from dlsim.study.gantt import plot_gantt, task_colors
from dlsim.study.style import INK, axes_of

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
    mine = runs.waits(s).query("task == 'T'").sort_values("release")
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
    return keep(study, name, ax, mine)


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
    return keep(study, "partitions", axes[0], table)


def fig_gantt(
    study: Study,
    policies: Sequence[str] = ("FIFO-OPR-MN", "FIFO-DLT", "FIDO-II", "FIFO-EXACT-N"),
    load: float = 1.0,
    axes: Sequence[Axes] | None = None,
) -> Axes:
    """One stretch of a workload under several policies, with idle node time and r_i, s_i."""
    least = execution_time(study.mean, study.nodes, study.cluster)
    setting = study.setting(150 * least)
    tasks, cluster, reading, _ = runs.drawn(setting, load, study.cms, study.switches, study.seed)
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
    return keep(study, "gantt", panels[0], table)


def _where_most_wait(arrival: "pd.Series[float]", schedules: Sequence[Schedule]) -> float:
    """Return when the task came whose nodes wait longest, under all policies if possible."""
    table = pd.DataFrame({s.name: _waited(s) for s in schedules}).fillna(0.0)
    ranks = pd.DataFrame({"least": table.min(axis=1), "total": table.sum(axis=1)})
    order = ranks.sort_values(["least", "total"], kind="stable").index
    return float(arrival[order[-1]]) if len(order) else 0.0


def _waited(s: Schedule) -> "pd.Series[float]":
    table = runs.waits(s)
    return (table["last"] - table["release"]).groupby(table["task"]).sum()


def _between(chunks: pd.DataFrame, left: float, right: float) -> pd.DataFrame:
    return chunks[(chunks["compute_end"] > left) & (chunks["send_start"] < right)]


def _stretch(ax: Axes, s: Schedule, left: float, right: float) -> None:
    """Draw the chunks between two instants, and the marks of tasks that waited."""
    shown, table = _between(s.chunks, left, right), runs.waits(s)
    plot_gantt(shown, s.cluster.nodes, until=right, colors=task_colors(list(s.tasks.index)), ax=ax)
    _without_legend(ax)
    ax.set_xlim(left, right)
    table = table[table["task"].isin(shown["task"])]
    wait = (table["last"] - table["release"]).groupby(table["task"]).transform("max")
    mark_waits(ax, table[wait > 1e-9 * right], names=False, size=3.5)
    came = s.tasks[s.tasks["arrival"].between(left, right)]
    use = runs.idle_use(s)
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
    return keep(study, "fig2", ax, counts)

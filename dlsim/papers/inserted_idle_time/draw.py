"""Paper I's drawings: schedules with idle time, the test as a flow; Table 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from scipy.special import gammaincinv

from dlsim.files import read_toml, shared_file
from dlsim.papers.inserted_idle_time import cells
from dlsim.papers.inserted_idle_time.cells import RULES, named
from dlsim.papers.inserted_idle_time.study import Study, printed_table
from dlsim.realtime import Cluster, Schedule, execution_time, simulate, split_load
from dlsim.study.gantt import mark, plot_gantt, task_colors
from dlsim.study.plot import arrow, axes_of, boxed, panels
from dlsim.study.style import INK

#: The cluster of Figure 1 and of what is drawn beside it.
FOUR = Cluster(nodes=4, cms=1.0, cps=4.0)
_IDLE: dict[str, Any] = {
    "facecolor": "#F6D5C2", "edgecolor": "#B5651D", "hatch": "xx", "linewidth": 0,
}  # fmt: skip
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8}


def mark_waits(ax: Axes, table: pd.DataFrame, names: bool = True, size: float = 5) -> None:
    """Shade how long nodes waited for a task's last node; mark, and name, r_i and s_i."""
    ax.set_ylim(ax.get_ylim()[0] + 0.25, ax.get_ylim()[1])
    table = table.assign(until=table[["send_start", "last"]].min(axis=1))
    wait = table[table["until"] > table["release"]]
    long = wait["until"] - wait["release"]
    ax.barh(wait["node"] + 1, long, left=wait["release"], height=0.72, zorder=1.5, **_IDLE)
    ax.plot(table["release"], table["node"] + 1.44, "^", color=INK["blue"], ms=size, zorder=5)
    ax.plot(table["send_start"], table["node"] + 0.56, "v", color="black", ms=size, zorder=5)
    if not names:
        return
    ax.set_xlim(left=-0.012 * ax.get_xlim()[1])  # room for marks at time 0
    order = table.sort_values(["release", "send_start"], kind="stable")
    for k, row in enumerate(order.to_dict("records"), start=1):
        for text, x, y, color in (
            (f"$r_{k}$", row["release"], row["node"] + 1.48, INK["blue"]),
            (f"$s_{k}$", row["send_start"], row["node"] + 0.52, "black"),
        ):
            ax.annotate(
                text, (x, y), (5, 0), textcoords="offset points", fontsize=8, zorder=6,
                color=color, va="center", annotation_clip=False, bbox=_PLATE,
            )  # fmt: skip


def one_legend(axes: Sequence[Axes]) -> None:
    """Keep the first panel's legend only, with the marks of waiting, below its title."""
    first = axes[0]
    known = first.get_legend()
    due = known.get_lines() if known else []
    for ax in axes:
        ax.label_outer()
        ax.legend_ = None
    keys = [
        Patch(facecolor="#DDDDDD", edgecolor="#333333", hatch="////", label="sending"),
        Patch(facecolor="#999999", edgecolor="#333333", label="computing"),
        Patch(**_IDLE, label="idle"),
        *first.plot([], [], "^", color=INK["blue"], ms=5, label="free: $r_i$"),
        *first.plot([], [], "v", color="black", ms=5, label="start: $s_i$"),
        *(mark("deadline", color="#555555", marker="v") for _ in due),
    ]
    first.legend(handles=keys, loc="lower right", bbox_to_anchor=(1, 1), ncols=6, fontsize=8)
    first.set_title(first.get_title("left"), loc="left", fontsize=10, pad=22)


def _four(
    ax: Axes, chunks: pd.DataFrame, waits: pd.DataFrame, title: str,
    tasks: pd.DataFrame | None = None,
) -> None:  # fmt: skip
    """Draw what four nodes do, the big task in blue."""
    colors = dict.fromkeys(chunks["task"], "#A9A9A9") | {"T": INK["blue"]}
    plot_gantt(chunks, 4, until=108, colors=colors, tasks=tasks, ax=ax)
    link = ax.get_yticklabels()[0].get_text()
    ax.set_yticks(range(5), [link, *(f"$P_{k}$" for k in range(1, 5))])
    mark_waits(ax, waits)
    ax.set_title(title, loc="left", fontsize=10)


def fig1(study: Study, name: str, s: Schedule, ax: Axes | None = None) -> Axes:
    """Figure 1a or 1b from a computed schedule on four nodes: the idle time of the task T."""
    s.check()
    mine = cells.waits(s).query("task == 'T'").sort_values("release")
    # nodes by release; at r_n any of them may be the first to be sent to
    place = dict(zip(mine["node"], range(4), strict=True))
    chunks = s.chunks.assign(node=s.chunks["node"].map(place))
    own, times = chunks["task"] == "T", ["send_start", "compute_end"]
    chunks.loc[own, "node"] = range(4)
    mine = mine.assign(node=range(4))
    mine[times] = chunks.loc[own, times].to_numpy()
    ax, end = axes_of(ax, (7.2, 3.8)), s.tasks["completion"]["T"]
    _four(ax, chunks, mine, f"{s.name}: T ends at {end:.4g}", s.tasks.loc[["T"]])
    one_legend([ax])
    return study.keep(name, ax, mine)


def fig_partitions(study: Study, releases: Sequence[float]) -> Axes:
    """Beyond the paper: one load on nodes where Constraint 2 fails, three partitions."""
    axes = panels(None, 1, (7.2, 9.0), sharey=False, rows=3, sharex=True)
    kinds = {"Constraint 2 fails, so the remodel": "II", "true optimum": "exact",
             "idle time unused": "opr"}  # fmt: skip
    tables = {}
    for ax, (title, partition) in zip(axes, kinds.items(), strict=True):
        split = split_load(40.0, releases, FOUR, partition)
        times = {name: getattr(split, name) for name in ("send_start", "send_end", "compute_end")}
        chunks = pd.DataFrame({"task": "T", "node": range(4), "alpha": split.alpha, **times})
        tables[title] = chunks.assign(release=split.release, last=max(split.release))
        words = f"{title}: ends at {split.completion:.4g}"
        if split.estimate > split.completion * (1 + 1e-9):
            words += f", booked until {split.estimate:.4g}"
        _four(ax, chunks, tables[title], words)
    one_legend(axes)
    return study.keep("partitions", axes[0], pd.concat(tables, names=["asked"]).reset_index(0))


def longest_waits(
    study: Study, policies: Sequence[str], load: float = 1.0
) -> tuple[list[Schedule], list[pd.DataFrame], dict[str, Any]]:
    """Schedule one workload by several policies; return what waits in each, and where most do.

    The last is a window of time for `plot_gantt`: where nodes wait longest, under all if possible.
    """
    least = execution_time(study.mean, study.nodes, Cluster(study.nodes, study.cms, study.cps))
    setting = study.setting(150 * least)
    given = setting, load, study.cms, study.switches, study.seed, study.drawn_by
    tasks, cluster, reading, _ = cells.drawn(*given)
    who = [study.mine.get(name, name) for name in policies]
    schedules = [simulate(tasks, cluster, policy, reading) for policy in who]
    waits = [cells.waits(s).assign(wait=lambda t: t["last"] - t["release"]) for s in schedules]
    waits = [table[table.groupby("task")["wait"].transform("max") > 0] for table in waits]
    each = pd.concat([table.groupby("task")["wait"].sum() for table in waits], axis=1)
    each = each.sort_index().fillna(0.0)
    order = each.index[np.lexsort((each.sum(axis=1), each.min(axis=1)))]
    left = max(0.0, tasks["arrival"][order[-1]] - 1.5 * least) if len(order) else 0.0
    right = left + 4.5 * least
    every = pd.concat([s.chunks for s in schedules])
    inside = (every["compute_end"] > left) & (every["send_start"] < right)
    colors = task_colors(sorted(every.loc[inside, "task"].unique()))
    return schedules, waits, {"since": left, "until": right, "colors": colors}


def flow(study: Study, load: float, order: str = "FIFO") -> pd.DataFrame:
    """Count what became of all tasks in the test of Figure 2; <NA> what backfilling leaves out."""
    columns, there = {}, study.evidence.main.query("load == @load")
    for role, column in (("I", "opt_iits"), ("II", "opt_iits_ii")):
        rows = there[there["policy"] == named(order, role)]
        counted = ["tasks", "admitted", "s_iits", column]
        arrived, admitted, idle, holds = rows.reindex(columns=counted).sum(min_count=1)
        columns[role] = {
            "arrived": arrived, "refused": arrived - admitted, "admitted": admitted,
            "no idle time": admitted - idle, "idle time": idle, "constraint holds": holds,
            "remodelled": idle - holds,
        }  # fmt: skip
    return pd.DataFrame(columns).astype("Int64").rename_axis("branch")


def fig2(study: Study, load: float = 0.0, ax: Axes | None = None) -> Axes:
    """Figure 2: the schedulability test as a flow, with the number of tasks on each branch."""
    ax, load = axes_of(ax, (8.6, 6.4)), load or max(study.loads)
    counts, width, boxes = flow(study, load), 5.2, {}
    diagram = read_toml(shared_file("data/diagrams.toml"))["inserted-idle-time"]
    places = {name: (column * width, y) for name, column, y, _ in diagram["boxes"]}
    for name, _, _, text in diagram["boxes"]:
        shape, face = ("round", "#EAF3FA") if text.endswith("?") else ("square", "white")
        boxes[name] = boxed(ax, *places[name], text, 0.5, face, "#333333", shape, fontsize=9)
    for start, end, branch, word in diagram["arrows"]:
        (x0, y0), (x1, y1) = places[start], places[end]
        arrow(ax, boxes[start], boxes[end], "-|>", color="#555555")
        one, two = ("?" if pd.isna(n := counts[role][branch]) else f"{n:,}" for role in ("I", "II"))
        x, y, ha, va = 0.56 * width, y0 + 0.1, "center", "baseline"
        if x0 == x1:
            x, y, ha, va = 0.12, (y0 + y1) / 2, "left", "center"
        ax.text(x, y, f"{word}I {one}, II {two}", ha=ha, va=va, fontsize=8.5, color=INK["blue"])
    ax.set(xlim=(-2.4, width + 1.9), ylim=(0.4, 5.5))
    ax.axis("off")
    ax.set_title(f"FIDO-I and FIDO-II at load {load:g}, {study.size.runs} runs", fontsize=10)
    return study.keep("fig2", ax, counts)


_SHARES = {"%": "share", "% II": "share_ii"}


def table1(study: Study) -> pd.DataFrame:
    """Table 1: printed counts, the percentages that follow from them, and measured ones.

    Measured are the cases seen in all runs, the exact bounds of what they are in the time of
    the paper's runs, and shares with exact bounds.
    """
    printed, measured, longer = printed_table(), study.counted, _longer(study)
    beside = printed.add_prefix("printed_").rename(columns={"printed_load": "load"})
    study.table("table1", measured.merge(beside, on="load", how="left"))
    printed = printed.set_index("load")
    counts = {"S-IITs": "s_iits", "Opt": "opt_iits", "Opt-II": "opt_iits_ii"}
    said: dict[tuple[str, str], Any] = {
        ("printed", name): printed[column].map("{:.0f}".format) for name, column in counts.items()
    }
    for name, end in zip(_SHARES, ("", "_ii"), strict=True):
        each = zip(*(printed[c + end] for c in ("percent", "follows", "share")), strict=True)
        said["printed", name] = [f"{p:.0f}" + f" (≠ {100 * x:.1f})" * (not ok) for p, ok, x in each]
    # the last rule and reading lie nearest to the printed shares
    for rule, reading in [*((rule, "") for rule in RULES), ("rtgrid", "release=finish")]:
        what = ", ".join(filter(None, (rule, reading)))
        rows = measured.query("rule == @rule and reading == @reading").set_index("load")
        rows = rows.reindex(printed.index)
        said[what, "seen"] = rows["s_iits"].map("{:.0f}".format)
        # exact bounds of the mean of a count
        ends = (longer * gammaincinv(rows["s_iits"] + k, q) for k, q in ((0, 0.025), (1, 0.975)))
        said[what, "in 10⁸"] = list(map("{:.0f} to {:.0f}".format, *ends))
        for name, share in _SHARES.items():
            if (rule, share) != ("rtgrid", "share_ii"):  # it has one count only
                parts = (100 * rows[f"{share}{end}"] for end in ("", "_low", "_high"))
                said[what, name] = list(map("{:.1f} [{:.1f}, {:.1f}]".format, *parts))
    return pd.DataFrame(said, index=printed.index)


def _longer(study: Study) -> float:
    """Ten runs of 10,000,000 time units, which Table 1 seems to sum over, over those run here."""
    return 1e8 / (study.size.horizon * study.size.runs)


def fit(study: Study) -> pd.DataFrame:
    """Compare every rule and reading of Table 1 with what is printed, the nearest shares first.

    The extent of the shares, their distance in points from those of the printed counts (root
    of the mean square over cases), and of measured over printed cases in equal time.
    """
    printed, longer, rows = printed_table().set_index("load"), _longer(study), {}
    for (rule, reading), part in study.counted.groupby(["rule", "reading"], sort=False):
        part, row = part.set_index("load"), dict[str, Any]()
        for name, share in _SHARES.items():
            if part[share].notna().all():
                percent, cases = 100 * part[share], part["s_iits"] / part["s_iits"].sum()
                row[name] = f"{percent.min():.1f} to {percent.max():.1f}"
                far = np.sqrt((cases * (percent - 100 * printed[share]) ** 2).sum())
                row[f"{name} apart"] = round(float(far), 2)
        times = longer * part["s_iits"] / printed["s_iits"]
        row["S-IITs over printed"] = f"{times.min():.2f} to {times.max():.2f}"
        rows[rule, reading or "own"] = row
    return pd.DataFrame(rows).T.rename_axis(["rule", "reading"]).sort_values("% apart").fillna("")

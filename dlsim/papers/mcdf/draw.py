"""Paper M's drawings: its system, and schedules of one workload."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.mcdf import cells
from dlsim.papers.mcdf.study import Study
from dlsim.realtime import Cluster, simulate
from dlsim.study.gantt import plot_gantt, task_colors
from dlsim.study.plot import axes_of, panels


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1 redrawn: head node, switch and N processing nodes."""
    ax, n = axes_of(ax, (6.4, 2.8)), study.nodes
    shown = [*range(1, min(n, 4) + 1), *([n] if n > 4 else [])]
    middle = (len(shown) - 1) / 2
    boxes = [(float(x), 0, f"$P_{{{k}}}$") for x, k in enumerate(shown)]
    boxes += [(middle, 1, "switch"), (middle, 2, "$P_0$ head node: admits, divides, sends")]
    box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "0.25"}
    for x, y, text in boxes:
        ax.plot([middle, x], [1, y], color="0.55", zorder=1)
        ax.text(x, y, text, ha="center", va="center", bbox=box, zorder=2)
    if n > 5:
        ax.text(len(shown) - 1.5, 0, "…", ha="center", va="center")
    ax.text(middle + 0.15, 1.5, "one chunk at a time", va="center", color="0.35")
    ax.set(xlim=(-0.7, len(shown) - 0.3), ylim=(-0.5, 2.5))
    ax.set_title(f"The system: N = {n} equal nodes")
    ax.axis("off")
    return study.keep("fig1", ax)


def fig_gantt(study: Study, policies: Sequence[str] = ("MCDF", "EDFMN")) -> Axes:
    """One workload under two policies, the head node's link as its own row."""
    cluster = Cluster(study.nodes, study.cms, study.cps)
    tasks, reading = cells.tasks_and_reading(cluster, 0.5, 12_000.0, study.seed, study.switches)
    axes = panels(None, 1, (10, 3.6 * len(policies)), rows=len(policies), sharex=True)
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

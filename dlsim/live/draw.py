"""Pictures of a live cluster: planned beside real, and what was fitted."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.live.costs import Costs
from dlsim.study.gantt import draw_chunks, key, legend_above, mark, name_rows
from dlsim.study.plot import axes_of, panels
from dlsim.study.style import INK

_LANE, _PLANNED = 0.34, INK["sky"]


def draw_chunks_of(
    chunks: pd.DataFrame, deadline: float = math.nan, promised: float = math.nan,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the chunks of a load (`Job.chunks`) on their workers: planned above, as it was below."""
    chunks = chunks.dropna(subset=["compute_end"])
    workers = sorted(chunks["worker"].unique())
    rows = chunks["worker"].map({name: k for k, name in enumerate(workers)}).to_numpy()
    ax = axes_of(ax, (7.2, 1.2 + 0.42 * len(workers)))
    for shift, prefix, color in ((-_LANE / 2, "planned_", _PLANNED), (_LANE / 2, "", INK["blue"])):
        start, sent, done = (
            chunks[f"{prefix}{name}"].to_numpy()
            for name in ("send_start", "send_end", "compute_end")
        )
        draw_chunks(ax, rows + shift, (start, sent, sent, done), color, height=_LANE * 0.9)
    right = 1.05 * float(np.nanmax(chunks[["compute_end", "planned_compute_end"]].to_numpy()))
    name_rows(ax, [f"worker {k}" for k in range(len(workers))], 0.0, right)
    keys = [key("compute", "planned", _PLANNED), key("compute", "as it was", INK["blue"])]
    for at, style, label in ((promised, "--", "promised"), (deadline, "-", "deadline")):
        if at <= right:
            look: dict[str, Any] = {"color": INK["vermillion"], "linestyle": style}
            ax.axvline(at, linewidth=1.2, **look)
            keys.append(mark(label, **look))  # type: ignore[arg-type]
    ax.set_xlabel("seconds since the load came")
    legend_above(ax, keys)
    return ax


def draw_costs(costs: Costs, ax: Any = None) -> Any:
    """Draw measured times of sending and computing over size, with what was fitted."""
    ax, table = panels(ax, 2, (7.2, 2.8), sharey=False), costs.table()
    for one, what, fit in zip(ax, ("send", "compute"), costs.fits(), strict=True):
        for k, (_, part) in enumerate(table.groupby("worker")):
            color = list(INK.values())[k % len(INK)]
            one.plot(part["units"], part[what], "o", color=color, markersize=3.5, alpha=0.7)
        x = np.array([0.0, table["units"].max()])
        one.plot(x, fit.time(x), color="#555555", linewidth=1.2)
        one.set(title=what, xlabel="size (units)", ylabel="seconds", xlim=0, ylim=0)
    return ax

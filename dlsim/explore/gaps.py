"""One load on nodes with given release times: what every partition makes of the gaps (paper I)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.explore.panel import Numbers, Panel, Slider, new_figure, say
from dlsim.explore.strips import draw_bars, key, legend_above, mark
from dlsim.kernel import meets
from dlsim.realtime import SWITCHES, Cluster, Reading, Split, split_load
from dlsim.realtime.model import IN_ROUNDS, PARTITIONS
from dlsim.study.style import INK

#: What each partition of `dlsim.realtime.model.PARTITIONS` is, in words.
NAMES = {
    "opr": "wait for the last node (OPR)",
    "equal": "wait, equal shares",
    "pieces": "equal pieces (User Split)",
    "dlt": "remodel of [6]",
    "I": "FIDO-I",
    "II": "FIDO-II",
    "exact": "true optimum",
    "exact-n": "fewest nodes in time",
    "umr": "wait, in rounds",
    "umr-iit": "from release, in rounds",
}


def splits_of(
    release: tuple[float, ...], sigma: float, deadline: float, cms: float, cps: float, rounds: int
) -> dict[str, Split]:
    """Split one load by every partition there is."""
    times, cluster = sorted(release), Cluster(len(release), cms, cps)
    splits = {
        name: split_load(sigma, times, cluster, name, rounds if name in IN_ROUNDS else 1)
        for name in PARTITIONS
    }
    for count in range(1, len(times)):  # the fewest nodes that end in time; all if none do
        fewer = split_load(sigma, times[:count], cluster, "exact-n")
        if meets(fewer.estimate, deadline, deadline):
            return splits | {"exact-n": fewer}
    return splits


def table_of(splits: dict[str, Split], deadline: float) -> pd.DataFrame:
    """Tell when each partition ends, what it was booked for, and what it gains."""
    rows = [(one.kind, len(one.release), one.completion, one.estimate) for one in splits.values()]
    columns = ["kind", "nodes", "completion", "estimate"]
    frame = pd.DataFrame(rows, pd.Index(splits, name="partition"), columns)
    frame["gain"] = splits["opr"].completion - frame["completion"]
    frame["in_time"] = [meets(end, deadline, deadline) for end in frame["estimate"]]
    return frame


def _draw_rows(ax: Axes, splits: Iterable[Split], times: list[float], booked: bool) -> None:
    """Draw every partition: a thin row per node, in a band one row high, look by look."""
    height, bars = 0.8 / len(times), defaultdict[tuple[str, str], list[Any]](list)
    for place, split in enumerate(splits):
        begin, sent, done = (
            np.atleast_2d(part) for part in (split.send_start, split.send_end, split.compute_end)
        )
        rows = place - 0.4 + (np.arange(len(split.release)) + 0.5) * height
        starts = np.maximum(sent, np.vstack([np.full(len(rows), -np.inf), done[:-1]]))
        free, last = np.asarray(split.release), done.max(axis=0)
        waits = np.minimum(begin[0], max(times))
        late, until = waits > free, split.estimate > last * (1 + 1e-9)
        bars["waits", INK["orange"]].append((rows[late], free[late], waits[late]))
        if booked and split.kind != "pieces":  # each piece is a task of its own
            ends = np.full(len(rows), split.estimate)
            bars["booked", "#999999"].append((rows[until], last[until], ends[until]))
        every = np.broadcast_to(rows, begin.shape).ravel()
        bars["send", INK["blue"]].append((every, begin.ravel(), sent.ravel()))
        bars["compute", INK["blue"]].append((every, starts.ravel(), done.ravel()))
    for (look, ink), parts in bars.items():
        y, start, end = map(np.concatenate, zip(*parts, strict=True))
        draw_bars(ax, y, start, end, ink, look, height)


def _words(row: Any, booked: bool) -> str:
    text = f"{'✓' if row.in_time else '✗'} {row.completion:.5g}"
    if booked and row.estimate > row.completion * (1 + 1e-9):
        text += f" (est. {row.estimate:.5g})"
    return f"{text}, {row.gain:+.3g}" if abs(row.gain) > 1e-9 * row.completion else text


def _sentence(table: pd.DataFrame, release: tuple[float, ...]) -> str:
    end, gain = table["completion"], table["gain"]["exact"]
    lost = len(release) * max(release) - sum(release)
    held = [name for name in ("I", "II") if table.loc[name, "kind"] == "equal finish"]
    if lost == 0:
        said = "All nodes are free at once: no constraint is asked."
    elif held:
        said = "Constraints I and II hold" if len(held) == 2 else f"Constraint {held[0]} holds"
        said += "." if len(held) == 2 else ", Constraint I does not."
    else:
        said = "Neither constraint holds, so FIDO falls back on the remodel."
    return (
        f"Nodes wait {lost:.4g} in all for the last of them. Waiting ends at "
        f"{end['opr']:.5g}, the remodel at {end['dlt']:.5g}, the true "
        f"optimum at {end['exact']:.5g}, {gain:.3g} earlier. {said}"
    )


def update(
    release: tuple[float, ...], sigma: float, deadline: float, cms: float, cps: float,
    rounds: int, reading: dict[str, str],
) -> Figure:  # fmt: skip
    """Draw one load under every partition, one band each."""
    splits = splits_of(release, sigma, deadline, cms, cps, rounds)
    table, booked = table_of(splits, deadline), reading.get("release") != "finish"
    figure = new_figure(8.4, 6.4, (1.95, 0.45, 2.05, 0.8))
    ax, times = figure.subplots(), sorted(release)
    end = max(float(table["completion"].max()), float(table["estimate"].max()))
    right = 1.02 * max(end, deadline if deadline < 1.5 * end else 0.0)
    _draw_rows(ax, splits.values(), times, booked)
    places = np.arange(len(splits))
    nodes = (places[:, None] - 0.4 + (np.arange(len(times)) + 0.5) * 0.8 / len(times)).ravel()
    ax.plot(times * len(splits), nodes, "|", color="black", ms=5, mew=1.6, zorder=5)
    ax.vlines(table["completion"], places - 0.46, places + 0.46, color="#333333", lw=1.6)
    ax.axvline(deadline, color=INK["vermillion"], linewidth=1.6, zorder=3)
    ax.set_yticks(range(len(splits)), [NAMES[name] for name in splits], fontsize=9)
    ax.set_ylim(len(splits) - 0.4, -0.6)
    ax.set_xlim(min(0.0, times[0]), right)
    ax.grid(False, axis="y")
    ax.set_xlabel("time", labelpad=1)
    for place, row in enumerate(table.itertuples()):
        ax.text(1.01, place, _words(row, booked), transform=ax.get_yaxis_transform(), fontsize=8.5,
                va="center")  # fmt: skip
    ax.text(1.01, 1.0, " in time? end, gain", transform=ax.transAxes, fontsize=8.5, va="bottom")
    keys = [
        mark("node free", color="black", linestyle="none", marker="|", ms=7, mew=1.6),
        key("waits", "stands idle", INK["orange"]), key("send", "sending", INK["blue"]),
        key("compute", "computing", INK["blue"]),
    ]  # fmt: skip
    if booked:
        keys.append(key("booked", "booked", "#999999"))
    legend_above(ax, [*keys, mark("deadline", color=INK["vermillion"])])
    say(figure, _sentence(table, release))
    return figure


PANEL = Panel(
    "idle_times",
    "One load on nodes that become free one after another: every way to use the gaps",
    update,
    (
        Numbers("release", (0.0, 14.0, 26.0, 36.0), "nodes free at", 0.0, 1000.0, 8),
        Slider("sigma", 1.0, 200.0, 1.0, 40.0, "size σ"),
        Slider("deadline", 1.0, 1000.0, 1.0, 90.0, "deadline, absolute"),
        Slider("cms", 0.1, 10.0, 0.05, 1.0, "sending a unit τ", log=True),
        Slider("cps", 0.1, 100.0, 0.05, 4.0, "computing a unit χ", log=True),
        Slider("rounds", 1, 8, 1, 4, "rounds"),
    ),
    {"release": SWITCHES["release"]},
    (Reading,),
)

"""One load: why more nodes can be slower (paper M, sections 3 to 5); in gaps (paper I)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.compiled import meets
from dlsim.errors import InputError
from dlsim.explore.panel import Numbers, Slider, new_figure, panel, say
from dlsim.realtime import SWITCHES, Cluster, Reading, Split, simulate, split_load
from dlsim.realtime.model import IN_ROUNDS
from dlsim.realtime.partition import execution_time, fastest_nodes, fewest_nodes, total_cost
from dlsim.study.gantt import draw_bars, draw_chunks, key, legend_above, mark, name_rows
from dlsim.study.style import INK

#: Most nodes that the panel draws.
MOST = 16


def _draw_chunks(ax: Axes, chunks: pd.DataFrame, deadline: float, st: float, sc: float) -> None:
    """Draw sends and computations, each with its set-up, and in another look what no node can."""
    rows, end = np.arange(1, len(chunks) + 1), float(chunks["compute_end"].max())
    start, sent, done = chunks[["send_start", "send_end", "compute_end"]].to_numpy(float).T
    real = chunks["alpha"].to_numpy() > 0
    for part, ink, looks in (
        (real, "blue", ("send", "compute")), (~real, "vermillion", ("impossible", "impossible")),
    ):  # fmt: skip
        times = [values[part] for values in (start, sent, sent, done)]
        draw_bars(ax, 0 * rows[part], times[0], times[1], INK[ink], looks[0])
        draw_chunks(ax, rows[part], times, INK[ink], looks)
    for row, begin, set_up in ((0 * rows, start, st), (rows, start, st), (rows, sent, sc)):
        if set_up:
            draw_bars(ax, row[real], begin[real], begin[real] + set_up, "black", "set-up")
    right = 1.04 * max(end, deadline if deadline < 2 * end else 0.0)
    ax.axvline(end, color="#333333", linestyle="--", linewidth=1.2, zorder=3)
    ax.axvline(deadline, color=INK["vermillion"], linewidth=1.6, zorder=3)
    shares = zip(rows, 100 * chunks["alpha"], strict=True)
    names = ["link", *(f"node {row}: {share:.3g} %" for row, share in shares)]
    name_rows(ax, names, 0, right, fontsize=10.5 if len(names) < 14 else 8.5)
    ax.set_xlabel("time", labelpad=1)


def _draw_curve(
    ax: Axes, values: list[float], best: int, ran: int, names: dict[str, int], label: str
) -> None:
    """Draw E or W over the number of nodes; hollow where the formula is no schedule."""
    n = np.arange(1, len(values) + 1)
    ax.plot(n[:best], values[:best], "o-", color=INK["blue"], zorder=3)
    ax.plot(n[best - 1 :], values[best - 1 :], ":", color=INK["vermillion"], zorder=2)
    ax.plot(n[best:], values[best:], "o", color=INK["vermillion"], mfc="white", zorder=3)
    ax.plot(ran, values[ran - 1], "o", color=INK["black"], mfc="none", ms=13, mew=1.6, zorder=4)
    ticks = sorted({1, len(values), *names.values()})
    words = {tick: [name if at == tick else "" for name, at in names.items()] for tick in ticks}
    ax.set_xticks(ticks, ["\n".join([str(tick), *words[tick]]).rstrip() for tick in ticks])
    ax.set_xlim(0.3, len(values) + 0.7)
    ax.margins(y=0.15)
    ax.locator_params(axis="y", nbins=5)
    ax.set_title(label, loc="left", fontsize=11.5, y=1.0)


@panel(
    "One load on n nodes: who sends, who computes, and why more nodes can be slower",
    Slider("used", 1, MOST, 1, 3, "nodes used n"),
    Slider("nodes", 1, MOST, 1, 10, "cluster's nodes N"),
    Slider("sigma", 1.0, 400.0, 1.0, 100.0, "size σ"),
    Slider("deadline", 10.0, 5000.0, 10.0, 1300.0, "deadline D"),
    Slider("cms", 0.1, 100.0, 0, 10.0, "sending a unit Cms"),
    Slider("cps", 0.1, 1000.0, 0, 10.0, "computing a unit Cps"),
    Slider("st", 0.0, 100.0, 1.0, 40.0, "set-up to send ST"),
    Slider("sc", 0.0, 100.0, 1.0, 20.0, "set-up to compute SC"),
    switches={"an_nodes": SWITCHES["an_nodes"]}, explained=(Reading,),
    ends={"used": lambda v: int(v["nodes"])},
)  # fmt: skip
def timing(
    nodes: int, used: int, sigma: float, deadline: float, cms: float, cps: float, st: float,
    sc: float, reading: dict[str, str],
) -> Figure:  # fmt: skip
    """Draw the timing diagram of one load, and execution time and cost over the nodes."""
    if used > nodes:
        remedy = "use fewer nodes, or give the cluster more"
        raise InputError(f"used must be at most nodes={nodes}, got {used}: {remedy}")
    cluster = Cluster(nodes, cms, cps, st, sc)
    # what the engine does where all nodes serve every task
    task = pd.DataFrame({"arrival": [0.0], "sigma": [sigma], "deadline": [deadline]})
    chunks = simulate(task, Cluster(used, cms, cps, st, sc), "FIFOANNA", Reading.of(reading)).chunks
    n, end = len(chunks), float(chunks["compute_end"].max())
    best, least = fastest_nodes(sigma, cluster), fewest_nodes(sigma, deadline, cluster)
    figure = new_figure(9.2, 6.0, (1.55, 0.95, 0.15, 0.38), wspace=0.28, hspace=0.5)
    grid = figure.add_gridspec(2, 2, height_ratios=[1.25, 1])
    top = figure.add_subplot(grid[0, :])
    _draw_chunks(top, chunks, deadline, st, sc)
    keys = [
        *[key("set-up", "set-up", "black")] * bool(st or sc), key("send", "sending", INK["blue"]),
        key("compute", "computing", INK["blue"]),
        mark("all done", color="#333333", linestyle="--"),
        mark("deadline", color=INK["vermillion"]),
    ]  # fmt: skip
    if n > best:
        keys.insert(-2, key("impossible", "share below 0", INK["vermillion"]))
    legend_above(top, keys, 10)
    names = {"fewest in time": least, "fastest": best, "used": n}
    names = {name: at for name, at in names.items() if at}
    every = [execution_time(sigma, k, cluster) for k in range(1, nodes + 1)]
    costs = [total_cost(sigma, k, cluster) for k in range(1, nodes + 1)]
    times, below = (figure.add_subplot(grid[1, column]) for column in (0, 1))
    _draw_curve(times, every, best, n, names, "execution time E(n)")
    times.axhline(deadline, color=INK["vermillion"], linewidth=1.6)
    _draw_curve(below, costs, best, n, names, "cost W(n) = n E(n), node time")
    verdict = "in time" if meets(end, deadline, deadline) else "too late"
    few = f"{least} would do" if least else f"no number of the {nodes} would do"
    words = f"On {n} of {nodes} nodes the load ends at {end:.4g}, {verdict}: {few}"
    words += f", {best} {'is' if best == 1 else 'are'} the fastest ({every[best - 1]:.4g})."
    if n > best:
        count = int((chunks["alpha"] <= 0).sum())
        words += " Beyond that a further set-up costs more than the share it takes over: "
        words += f"{count} {'share comes' if count == 1 else 'shares come'} out at or below zero."
    say(figure, words)
    return figure


#: What each partition of `dlsim.realtime.model.PARTITIONS` is that is drawn, in words.
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
    count = {name: rounds if name in IN_ROUNDS else 1 for name in NAMES}
    splits = {name: split_load(sigma, times, cluster, name, count[name]) for name in NAMES}
    for few in range(1, len(times)):  # the fewest nodes that end in time; all if none do
        fewer = split_load(sigma, times[:few], cluster, "exact-n")
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
        parts = split.send_start, split.send_end, split.compute_end
        begin, sent, done = map(np.atleast_2d, parts)
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
    for (look, ink), drawn in bars.items():
        y, start, end = map(np.concatenate, zip(*drawn, strict=True))
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
    ends = f"Waiting ends at {end['opr']:.5g}, the remodel at {end['dlt']:.5g}"
    best = f"the true optimum at {end['exact']:.5g}, {gain:.3g} earlier"
    return f"Nodes wait {lost:.4g} in all for the last of them. {ends}, {best}. {said}"


@panel(
    "One load on nodes that become free one after another: every way to use the gaps",
    Numbers("release", (0.0, 14.0, 26.0, 36.0), "nodes free at", 0.0, 1000.0, 8),
    Slider("sigma", 1.0, 200.0, 1.0, 40.0, "size σ"),
    Slider("deadline", 1.0, 1000.0, 1.0, 90.0, "deadline, absolute"),
    Slider("cms", 0.1, 10.0, 0, 1.0, "sending a unit τ"),
    Slider("cps", 0.1, 100.0, 0, 4.0, "computing a unit χ"),
    Slider("rounds", 1, 8, 1, 4, "rounds"),
    switches={"release": SWITCHES["release"]}, explained=(Reading,),
)  # fmt: skip
def idle_times(
    release: tuple[float, ...], sigma: float, deadline: float, cms: float, cps: float,
    rounds: int, reading: dict[str, str],
) -> Figure:  # fmt: skip
    """Draw one load under every partition, one band each."""
    splits = splits_of(release, sigma, deadline, cms, cps, rounds)
    table, booked = table_of(splits, deadline), reading.get("release") != "finish"
    figure = new_figure(9.6, 6.6, (2.35, 0.6, 2.45, 0.4))
    ax, times = figure.subplots(), sorted(release)
    end = max(float(table["completion"].max()), float(table["estimate"].max()))
    right = 1.02 * max(end, deadline if deadline < 1.5 * end else 0.0)
    _draw_rows(ax, splits.values(), times, booked)
    places = np.arange(len(splits))
    nodes = (places[:, None] - 0.4 + (np.arange(len(times)) + 0.5) * 0.8 / len(times)).ravel()
    ax.plot(times * len(splits), nodes, "|", color="black", ms=5, mew=1.6, zorder=5)
    ax.vlines(table["completion"], places - 0.46, places + 0.46, color="#333333", lw=1.6)
    ax.axvline(deadline, color=INK["vermillion"], linewidth=1.6, zorder=3)
    ax.set_yticks(range(len(splits)), [NAMES[name] for name in splits], fontsize=11)
    ax.set_ylim(len(splits) - 0.4, -0.6)
    ax.set_xlim(min(0.0, times[0]), right)
    ax.grid(False, axis="y")
    ax.set_xlabel("time", labelpad=1)
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": 10.5}
    for place, row in enumerate(table.itertuples()):
        ax.text(1.01, place, _words(row, booked), va="center", **beside)
    ax.text(1.01, 1.0, " in time? end, gain", transform=ax.transAxes, fontsize=10.5, va="bottom")
    keys = [
        mark("node free", color="black", linestyle="none", marker="|", ms=7, mew=1.6),
        key("waits", "stands idle", INK["orange"]), key("send", "sending", INK["blue"]),
        key("compute", "computing", INK["blue"]),
    ]  # fmt: skip
    keys += [key("booked", "booked", "#999999")] * booked
    legend_above(ax, [*keys, mark("deadline", color=INK["vermillion"])], 9)
    say(figure, _sentence(table, release))
    return figure

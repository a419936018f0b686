"""Two policies on one workload, one admission test after the other (papers M and I)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.compiled import same_instant
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Numbers, Slider, Values, new_figure, panel, say, wrapped
from dlsim.given import label
from dlsim.realtime import POLICIES, SWITCHES, Cluster, Offer, Reading, Schedule, simulate
from dlsim.realtime import workload as laws
from dlsim.realtime.model import ABOUT, Policy
from dlsim.realtime.partition import execution_time
from dlsim.study.gantt import draw_bars, draw_chunks, key, lanes_of, mark, name_rows, task_colors
from dlsim.study.style import INK

_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.75}
#: Most tasks that are drawn, and nodes of the cluster.
MOST, NODES = 24, 16
#: From how many chunks on the link's row is drawn without hatching, which takes time.
CROWDED = 100
#: Where tasks come from: the laws of two papers, or lists.
SOURCES = ("paper M", "paper I", "my lists")
#: Switches of the engine that a picture of the plan can show: those of counting are left
#: out, and the order within a batch, because the walk goes by the order of the table.
_HIDDEN = ("batch_order", "scope", "ties", "count_single")
SWITCHES_SHOWN = {name: options for name, options in SWITCHES.items() if name not in _HIDDEN} | {
    name: laws.SWITCHES["mcdf"][name] for name in ("batch", "interval")
}


def tasks_of(
    source: str, cluster: Cluster, count: int, load: float, seed: int,
    lists: tuple[tuple[float, ...], ...], switches: dict[str, Any],
) -> pd.DataFrame:  # fmt: skip
    """Draw the tasks, or take those of the lists."""
    if source == "my lists":
        if len(set(map(len, lists))) > 1:
            got = "{}, {} and {} numbers".format(*map(len, lists))
            raise InputError(f"arrival, size and deadline must be lists of one length, got {got}")
        tasks = pd.DataFrame(dict(zip(("arrival", "sigma", "deadline"), lists, strict=True)))
        tasks = tasks.sort_values("arrival", kind="stable", ignore_index=True)
    else:
        mean = 100.0 if source == "paper M" else 200.0
        span = 4 * count * execution_time(mean, cluster.nodes, cluster) / load
        law, how = (laws.mcdf, switches) if source == "paper M" else (laws.dcratio, {})
        tasks = law(cluster, load, span, seed, **how).head(count)
    tasks = laws.user_split(tasks, cluster, seed)
    return tasks.set_axis(range(1, len(tasks) + 1))


def _draw_all(ax: Axes, chunks: pd.DataFrame, inks: "np.ndarray[Any, Any]") -> None:
    """Draw every chunk on its node and on the link: solid once its task has started."""
    begin, sent, done = chunks[["send_start", "send_end", "compute_end"]].to_numpy(float).T
    rows = chunks["node"].to_numpy() + 1
    # a node computes the chunk of a round once it is done with that of the round before
    last = chunks.groupby(["task", "node"])["compute_end"].shift().fillna(-np.inf)
    begins = np.minimum(np.maximum(sent, last.to_numpy(dtype=float)), done)
    lanes = lanes_of(begin, sent)
    height = 0.72 / (lanes.max(initial=0) + 1)
    on_link = -0.36 + (lanes + 0.5) * height
    waits, real = chunks["planned"].to_numpy(), chunks["alpha"].to_numpy() > 0
    for part, send, compute in (
        (~waits & real, "send", "compute"), (waits & real, "planned send", "planned"),
        (~real, "impossible", "impossible"),
    ):  # fmt: skip
        link = "many sends" if len(chunks) > CROWDED and send == "send" else send
        times = [values[part] for values in (begin, sent, begins, done)]
        draw_bars(ax, on_link[part], times[0], times[1], inks[part], link, height)
        draw_chunks(ax, rows[part], times, inks[part], (send, compute))


def _draw_plan(ax: Axes, s: Schedule, colors: dict[Any, Any], now: float) -> None:
    """Draw the plan in force, deadlines over the nodes of their tasks, and who came when."""
    planned = s.chunks["task"].map(s.tasks["start"]) > s.tasks["arrival"].iloc[-1]
    chunks = s.chunks.assign(planned=planned)
    _draw_all(ax, chunks, np.array([colors[t] for t in chunks["task"]]).reshape(-1, 3))
    due = s.tasks["arrival"] + s.tasks["deadline"]
    place = chunks.groupby("task")["node"].agg(["min", "max"])
    ends, inks = due[place.index], [colors[task] for task in place.index]
    ax.vlines(ends, place["min"] + 0.5, place["max"] + 1.5, colors=inks, linewidth=1.8, zorder=3)
    ax.scatter(ends, place["min"] + 0.5, 36, inks, marker="v", edgecolors="#333333", linewidths=0.5,
               zorder=4)  # fmt: skip
    widest = (chunks["compute_end"] - chunks["send_start"]).groupby(chunks["task"]).idxmax()
    for task, own in chunks.loc[widest].set_index("task").iterrows():
        x, y = (own["send_start"] + own["compute_end"]) / 2, own["node"] + 1
        look: dict[str, Any] = {"ha": "center", "va": "center", "clip_on": True, "zorder": 5}
        ax.text(x, y, str(task), fontsize=11, fontweight="bold", bbox=_PLATE, **look)
    ax.axvline(now, color=INK["black"], linewidth=1.2, linestyle="--", zorder=4)
    for answer, marker, ink in ((True, "o", INK["green"]), (False, "x", INK["vermillion"])):
        came = s.tasks.loc[s.tasks["admitted"] == answer, "arrival"]
        above = np.full(len(came), -0.6)
        ax.plot(came, above, marker, color=ink, ms=6, mew=1.8, zorder=5, clip_on=False)


class Refusal(NamedTuple):
    """Why one task was refused: what it would have needed, and who stood in its way."""

    offer: Offer | None
    alone: bool | None
    rival: object


def _same_runs(old: pd.DataFrame, new: pd.DataFrame) -> bool:
    """Tell whether tasks run as they did: same start, nodes and estimate."""
    return bool(new["admitted"].all() and (new["nodes"] == old["nodes"]).all()) and all(
        same_instant(float(a), float(b), float(span))
        for name in ("start", "estimate")
        for a, b, span in zip(old[name], new[name], old["deadline"], strict=True)
    )


def why_refused(s: Schedule, tasks: pd.DataFrame, task: Any) -> Refusal:
    """Explain a refusal by asking the engine again.

    Tasks that had started when the newcomer came are given to it as arriving at their start: each
    then starts at once, on as many nodes, and the state is the one the newcomer met. Whether that
    worked is checked, and nothing is said about who is in the way where it did not.
    """
    try:
        offer = s.offer(task)
    except InputError:  # pieces of a task that are admitted one by one
        offer = None
    now, mine, others = s.tasks.loc[task, "arrival"], s.tasks.loc[[task]], s.tasks.drop(index=task)
    ran = (others["start"] <= now) & (others["arrival"] < now)
    both = ran, others["admitted"] & ~ran  # in the order in which they start, or would
    started, waiting = (others[some].sort_values("start", kind="stable") for some in both)
    started, waiting = (
        rows.assign(arrival=at, deadline=rows["arrival"] + rows["deadline"] - at)
        for rows, at in ((started, started["start"]), (waiting, now))
    )

    def again(count: int) -> pd.DataFrame:
        """Run the policy on the newcomer and some who wait, with the columns it was given."""
        some = pd.concat([started, waiting.iloc[:count], mine])[["arrival", "sigma", "deadline"]]
        if "user_nodes" in tasks:
            some = some.join(tasks["user_nodes"])
        return simulate(some, s.cluster, s.policy, s.reading).tasks

    unknown = Refusal(offer, None, None)
    if not s.policy.admission or s.parts is not None or (waiting["deadline"] <= 0).any():
        return unknown
    state = again(len(waiting))
    rest = state.drop(index=task)
    if state.loc[task, "admitted"] or not _same_runs(others.loc[rest.index], rest):
        return unknown
    for count in range(len(waiting) + 1):
        if not again(count).loc[task, "admitted"]:
            rival = waiting.index[count - 1] if count else None
            return Refusal(offer, count > 0, label(rival))
    return unknown


def told(s: Schedule, why: Refusal | None) -> str:
    """Say what the last admission test decided, and why."""
    task, row = s.tasks.index[-1], s.tasks.iloc[-1]
    due = row["arrival"] + row["deadline"]
    if why is None:
        if np.isnan(row["start"]):
            return f"task {task} is dropped: it was late before its turn came."
        nodes = f"{int(row['nodes'])} node{'s' if row['nodes'] != 1 else ''}"
        words = f"starts at {row['start']:.5g} on {nodes} and ends at {row['estimate']:.5g}"
        if s.policy.admission:
            return f"task {task} is accepted: it {words}, due {due:.5g}."
        return f"nobody is asked: task {task} {words}, due {due:.5g}" + (
            " - too late." if row["missed"] else "."
        )
    words = f"task {task}, due {due:.5g}, is refused"
    if why.alone is False:
        words += ": even were nobody waiting, it could not end in time"
    elif why.rival is not None:
        words += f": it and waiting task {why.rival} cannot both end in time"
    if why.offer is None:
        unknown = s.parts is not None
        return words + ("." if unknown else "; no deadline, however long, would let it in.")
    best, due = why.offer, row["arrival"] + why.offer.deadline
    would = f"start at {best.start:.5g} on {best.nodes} and end at {best.completion:.5g}"
    return f"{words}; due {due:.5g} it would {would}."


def walk(
    tasks: pd.DataFrame, step: int, cluster: Cluster, policy: str, reading: Reading
) -> tuple[Schedule, Refusal | None]:
    """Run a policy up to one admission test."""
    seen = tasks.head(step)
    s = simulate(seen, cluster, policy, reading)
    last = s.tasks.index[-1]
    return s, None if s.tasks.loc[last, "admitted"] else why_refused(s, seen, last)


def _span(schedules: list[Schedule]) -> tuple[float, float]:
    """Return where the time axis begins and ends: all of the plans, and a near deadline."""
    ends = [s.tasks["completion"].max() for s in schedules]
    due = max(float((s.tasks["arrival"] + s.tasks["deadline"]).iloc[-1]) for s in schedules)
    first, now = (float(schedules[0].tasks["arrival"].iloc[k]) for k in (0, -1))
    last = max([now, *(float(end) for end in ends if np.isfinite(end))])
    last = max(last, due if due - first < 1.4 * (last - first) else 0.0, first + 1e-9)
    return first - 0.01 * (last - first), last + 0.03 * (last - first)


def _listed(v: Values) -> bool:
    return bool(v["source"] == "my lists")


def _one(is_so: Callable[[Policy], bool]) -> Callable[[Values], bool]:
    """Tell of values whether one of the two policies is so."""
    return lambda v: any(is_so(POLICIES[v[side]]) for side in ("left", "right"))


#: Whether a policy splits tasks as users ask, who are drawn.
_splits = _one(lambda p: p.nodes == "user")


@panel(
    "Two policies on one workload: who is let in, and why not",
    Slider("step", 1, MOST, 1, 12, "admission tests so far"),
    Choice("left", tuple(ABOUT), "upper policy", "MCDF", ABOUT),
    Choice("right", tuple(ABOUT), "lower policy", "FIFOMN", ABOUT),
    Choice("source", SOURCES, "tasks from"),
    Slider("seed", 0, 99, 1, 0, "seed"),
    Slider("load", 0.1, 3.0, 0.1, 1.0, "load"),
    Slider("count", 1, MOST, 1, 12, "tasks drawn"),
    Slider("nodes", 1, NODES, 1, 6, "nodes N"),
    Slider("cms", 0.1, 100.0, 0, 10.0, "sending a unit Cms"),
    Slider("cps", 0.1, 1000.0, 0, 10.0, "computing a unit Cps"),
    Slider("setup", 0.0, 20.0, 1.0, 0.0, "set-up ST = SC"),
    Numbers("arrival", (0.0, 0.0, 0.0), "my arrivals", most=MOST),
    Numbers("sigma", (6.0, 18.0, 6.0), "my sizes", low=0.001, most=MOST),
    Numbers("deadline", (10.0, 64.0, 16.0), "my deadlines", low=0.001, most=MOST),
    switches=SWITCHES_SHOWN, explained=(Reading, laws.mcdf),
    live={
        "seed": lambda v: not _listed(v) or _splits(v),
        **dict.fromkeys(("load", "count"), lambda v: not _listed(v)),
        **dict.fromkeys(("arrival", "sigma", "deadline"), _listed),
        **dict.fromkeys(("batch", "interval"), lambda v: bool(v["source"] == "paper M")),
        **dict.fromkeys(("dc_at_N", "order_when"), _one(lambda p: p.order == "dc")),
        "an_nodes": _one(lambda p: p.nodes == "all"), "split": _splits,
        "late": _one(lambda p: not p.admission),
        "release": _one(lambda p: p.partition not in ("opr", "pieces", "exact")),
    },
    ends={"step": lambda v: len(v["arrival"]) if _listed(v) else int(v["count"])},
)  # fmt: skip
def schedules(
    left: str, right: str, step: int, source: str, seed: int, load: float, count: int,
    nodes: int, cms: float, cps: float, setup: float, arrival: tuple[float, ...],
    sigma: tuple[float, ...], deadline: tuple[float, ...], reading: dict[str, str],
) -> Figure:  # fmt: skip
    """Draw the plans of two policies after one admission test."""
    cluster = Cluster(nodes, cms, cps, setup, setup)
    engine, law = laws.split_reading(reading, "mcdf")
    lists = (arrival, sigma, deadline)
    tasks = tasks_of(source, cluster, count, load, seed, lists, law)
    if not len(tasks):
        raise InputError(f"no task came with seed={seed} and load={load:g}: take another seed")
    runs = [walk(tasks, step, cluster, name, Reading.of(engine)) for name in (left, right)]
    schedules = [s for s, _ in runs]
    colors, (begin, end) = task_colors(list(tasks.index)), _span(schedules)
    now, done = float(schedules[0].tasks["arrival"].iloc[-1]), len(schedules[0].tasks)
    figure = new_figure(9.2, 7.2, (0.85, 0.95, 0.15, 0.6), hspace=0.29)
    axes = figure.subplots(2, 1, sharex=True)
    for ax, (s, why) in zip(axes, runs, strict=True):
        _draw_plan(ax, s, colors, now)
        rows = ["link", *(f"node {k}" for k in range(1, nodes + 1))]
        name_rows(ax, rows, begin, end, fontsize=10.5 if nodes < 13 else 8.5)
        ax.set_title(wrapped(f"{s.name}: {told(s, why)}", 8.2, 11), loc="left", fontsize=11, y=1.0)
    axes[1].set_xlabel("time", labelpad=1)
    keys = [
        key("send", "sending"), key("compute", "computing"), key("planned", "waits, planned"),
        mark("deadline", color="#555555", marker="v"),
        mark("accepted", color=INK["green"], linestyle="none", marker="o"),
        mark("refused", color=INK["vermillion"], linestyle="none", marker="x", mew=1.8),
        mark("now", color=INK["black"], linestyle="--"),
    ]  # fmt: skip
    figure.legend(handles=keys, loc="lower center", ncols=len(keys))
    took = []
    for s in schedules:
        sizes, did = s.tasks["sigma"][s.tasks["admitted"]], ("run", "accepted")[s.policy.admission]
        took.append(f"{s.name} has {did} {len(sizes)} ({sizes.sum():.4g} of data)")
    say(figure, f"Test {done} of {len(tasks)}, at time {now:.5g}: {', '.join(took)}.")
    return figure

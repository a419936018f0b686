"""Two policies on one workload, one admission test after the other (papers M and I)."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.errors import InputError
from dlsim.explore.controls import Menu, Slider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import WIDTH, new_figure, set_title
from dlsim.explore.timing import UNIT_TIMES
from dlsim.realtime import (
    POLICIES,
    SWITCHES,
    Cluster,
    Reading,
    Schedule,
    execution_time,
    simulate,
    workload,
)
from dlsim.study.plots import (
    INK,
    bar_legend_entry,
    draw_bars,
    draw_chunks,
    lanes_of,
    line_legend_entry,
    name_rows,
    task_colors,
)

#: Most tasks and nodes that can be told apart in the picture.
MAX_TASKS, MAX_NODES_PER_POLICY = 24, 8
#: Most chunks whose sends on the link are hatched; hatching takes time.
MAX_HATCHED_CHUNKS = 100
#: Width of the mark of an answer, with the space after it.
POINTS_PER_ANSWER = 7.0
#: Letters of a title that fit into one line.
TITLE_LETTERS = 88
#: Workloads of two papers, each with the mean size of its tasks.
MEAN_SIZES = {"paper M": 100.0, "paper I": 200.0}
#: Switches that change no picture: those of counting, and the order within a batch, since the
#: tests go by the order of the table.
_WITHOUT_EFFECT = ("batch_order", "scope", "ties", "count_single")
_SWITCHES_SHOWN = {
    name: options for name, options in SWITCHES.items() if name not in _WITHOUT_EFFECT
}
_SWITCHES_SHOWN |= {name: workload.SWITCHES["mcdf"][name] for name in ("batch", "interval")}

_DEFINITIONS = {
    "admission test": "when a task arrives, the policy plans it together with the waiting tasks; "
    "the task is accepted only if all of them meet their deadlines",
    "accepted, refused": "a mark for every test above the arrival of its task; marks of tasks that "
    "arrive together stand side by side, in the order of the tests",
    "planned": "tasks that have not started; a later arrival may change their plan",
    "load": "1 means that the tasks need all nodes all the time",
    "due": "arrival plus deadline",
    "data": "sum of the sizes of the tasks",
    **{name: policy.text for name, policy in POLICIES.items()},
}


@panel(
    "Two policies on one workload: which tasks each of them accepts",
    Slider("step", "admission tests so far", 1, MAX_TASKS, 1, 12),
    Menu("upper", "upper policy", tuple(POLICIES), "MCDF"),
    Menu("lower", "lower policy", tuple(POLICIES), "FIFOMN"),
    Slider("load", "load", 0.1, 3.0, 0.1, 1.0),
    Slider("seed", "seed of the tasks", 0, 99, 1, 0),
    Slider("nodes", "nodes N", 1, MAX_NODES_PER_POLICY, 1, 6),
    settings=(
        Menu("source", "tasks as in", tuple(MEAN_SIZES)),
        Slider("count", "tasks drawn", 1, MAX_TASKS, 1, 12),
        *UNIT_TIMES,
        Slider("setup", "set-up of a node ST = SC", 0.0, 20.0, 1.0, 0.0),
    ),
    switches=_SWITCHES_SHOWN,
    labels=Reading.labels() | workload.TaskDraw.labels(),
    words=_DEFINITIONS,
)
def schedules(
    upper: str,
    lower: str,
    step: int,
    source: str,
    seed: int,
    load: float,
    count: int,
    nodes: int,
    cms: float,
    cps: float,
    setup: float,
    reading: dict[str, str],
) -> tuple[Figure, str]:
    """Draw the plans of two policies after one admission test."""
    cluster = Cluster(nodes, cms, cps, setup, setup)
    engine_switches, workload_switches = workload.split_reading(reading, "mcdf")
    tasks = draw_tasks(source, cluster, count, load, seed, workload_switches)
    if not len(tasks):
        raise InputError(f"no task came with seed={seed} and load={load:g}: take another seed")
    rules = Reading.from_switches(engine_switches)
    pair = [run_up_to(tasks, step, cluster, name, rules) for name in (upper, lower)]
    colors = task_colors(list(tasks.index))
    begin, end = _time_limits(pair)
    figure = new_figure(0.62, 0.72, 0.1, 0.42, hspace=0.44)
    axes = figure.subplots(2, 1, sharex=True)
    rows = ["link", *(f"node {k}" for k in range(1, nodes + 1))]
    for ax, schedule in zip(axes, pair, strict=True):
        name_rows(ax, rows, begin, end, fontsize=8.5)
        _draw_plan(ax, schedule, colors)
        title = f"{schedule.name}: {describe_test(schedule)}"
        set_title(ax, textwrap.fill(title, TITLE_LETTERS), pad=7.0)
        ax.title.set_fontsize(9)
    axes[1].set_xlabel("time", labelpad=1)
    figure.legend(
        handles=_legend_entries(), loc="lower center", ncols=7, handlelength=1.4, columnspacing=1.1
    )
    return figure, _sentence(pair, len(tasks))


def draw_tasks(
    source: str, cluster: Cluster, count: int, load: float, seed: int, switches: dict[str, Any]
) -> pd.DataFrame:
    """Draw the first tasks of a workload, numbered from 1."""
    mean_size = MEAN_SIZES[source]
    horizon = 4 * count * execution_time(mean_size, cluster.nodes, cluster) / load
    if source == "paper M":
        tasks = workload.mcdf(cluster, load, horizon, seed, **switches)
    else:
        tasks = workload.dcratio(cluster, load, horizon, seed)
    tasks = workload.user_split(tasks.head(count), cluster, seed)
    return tasks.set_axis(range(1, len(tasks) + 1))


def run_up_to(
    tasks: pd.DataFrame, step: int, cluster: Cluster, policy: str, reading: Reading
) -> Schedule:
    """Run a policy up to one admission test, that of the last task of the schedule."""
    return simulate(tasks.head(step), cluster, policy, reading, engine="python")  # compiling: 20 s


def describe_test(schedule: Schedule) -> str:
    """Describe the decision of the last admission test, and what would have changed it."""
    task, row = schedule.tasks.index[-1], schedule.tasks.iloc[-1]
    due = row["arrival"] + row["deadline"]
    if not row["admitted"]:
        return f"task {task}, due {due:.5g}, is refused{_describe_offer(schedule)}."
    if np.isnan(row["start"]):
        return f"task {task} is dropped: its deadline passed before it could start."
    nodes = _count_nodes(row["nodes"])
    run = f"starts at {row['start']:.5g} on {nodes} and ends at {row['estimate']:.5g}"
    if schedule.policy.admission:
        return f"task {task} is accepted: it {run}, due {due:.5g}."
    late = ", too late" if row["missed"] else ""
    return f"without an admission test, task {task} {run}, due {due:.5g}{late}."


def _describe_offer(schedule: Schedule) -> str:
    """Say with which deadline the last task would have been accepted, after a semicolon."""
    if schedule.parts is not None:  # the pieces of a task are admitted one by one
        return ""
    offer = schedule.offer(schedule.tasks.index[-1])
    if offer is None:
        return "; no deadline would be accepted"
    due = schedule.tasks["arrival"].iloc[-1] + offer.deadline
    run = f"start at {offer.start:.5g} on {_count_nodes(offer.nodes)} and end at"
    return f"; if due {due:.5g}, it would {run} {offer.completion:.5g}"


def _count_nodes(nodes: float) -> str:
    """Return a number of nodes in words."""
    return "1 node" if nodes == 1 else f"{int(nodes)} nodes"


def _draw_plan(ax: Axes, schedule: Schedule, colors: dict[Any, Any]) -> None:
    """Draw the plan in force, the deadlines, and the answer to every task at its arrival."""
    now = float(schedule.tasks["arrival"].iloc[-1])
    chunks = schedule.chunks
    chunks = chunks.assign(planned=chunks["task"].map(schedule.tasks["start"]) > now)
    _draw_chunks(ax, chunks, np.array([colors[t] for t in chunks["task"]]).reshape(-1, 3))
    _draw_deadlines(ax, schedule, colors)
    _draw_task_numbers(ax, chunks)
    ax.axvline(now, color=INK["black"], linewidth=1.2, linestyle="--", zorder=4)
    _draw_answers(ax, schedule.tasks)


def _draw_answers(ax: Axes, tasks: pd.DataFrame) -> None:
    """Mark every answer above the arrival of its task, those of a batch side by side."""
    points = ax.get_position().width * WIDTH * 72
    gap = POINTS_PER_ANSWER / points * float(np.ptp(ax.get_xlim()))
    places = keep_apart(tasks["arrival"].to_numpy(float), gap)
    for answer, marker, ink in ((True, "o", INK["green"]), (False, "x", INK["vermillion"])):
        shown = places[tasks["admitted"].to_numpy(bool) == answer]
        above = np.full(len(shown), -0.6)
        ax.plot(shown, above, marker, color=ink, ms=5, mew=1.6, zorder=5, clip_on=False)


def keep_apart(times: "np.ndarray[Any, Any]", gap: float) -> "np.ndarray[Any, Any]":
    """Return ascending times, each moved to the right as far as the gap after the last asks."""
    steps = gap * np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps


def _draw_chunks(ax: Axes, chunks: pd.DataFrame, inks: "np.ndarray[Any, Any]") -> None:
    """Draw every chunk on its node and on the link; solid once its task has started."""
    send_start, send_end, compute_end = (
        chunks[name].to_numpy(float) for name in ("send_start", "send_end", "compute_end")
    )
    rows = chunks["node"].to_numpy() + 1
    # a node computes the chunk of a round once it has finished that of the round before
    previous_end = chunks.groupby(["task", "node"])["compute_end"].shift().fillna(-np.inf)
    compute_start = np.minimum(np.maximum(send_end, previous_end.to_numpy(float)), compute_end)
    lanes = lanes_of(send_start, send_end)
    height = 0.72 / (lanes.max(initial=0) + 1)
    link_rows = -0.36 + (lanes + 0.5) * height
    planned, possible = chunks["planned"].to_numpy(), chunks["alpha"].to_numpy() > 0
    for part, send, compute in (
        (~planned & possible, "send", "compute"),
        (planned & possible, "planned send", "planned"),
        (~possible, "impossible", "impossible"),
    ):
        link = "many sends" if len(chunks) > MAX_HATCHED_CHUNKS and send == "send" else send
        times = [values[part] for values in (send_start, send_end, compute_start, compute_end)]
        draw_bars(ax, link_rows[part], times[0], times[1], inks[part], link, height)
        draw_chunks(ax, rows[part], times, inks[part], (send, compute))


def _draw_deadlines(ax: Axes, schedule: Schedule, colors: dict[Any, Any]) -> None:
    """Draw the absolute deadline of every task over the nodes that it has."""
    rows = schedule.chunks.groupby("task")["node"].agg(["min", "max"])
    due = (schedule.tasks["arrival"] + schedule.tasks["deadline"])[rows.index]
    inks = [colors[task] for task in rows.index]
    top, bottom = rows["min"] + 0.5, rows["max"] + 1.5
    ax.vlines(due, top, bottom, colors=inks, linewidth=1.8, zorder=3)
    ax.scatter(due, top, 26, inks, marker="v", edgecolors="#333333", linewidths=0.5, zorder=4)


def _draw_task_numbers(ax: Axes, chunks: pd.DataFrame) -> None:
    """Write the number of every task on its longest chunk."""
    lengths = chunks["compute_end"] - chunks["send_start"]
    longest = chunks.loc[lengths.groupby(chunks["task"]).idxmax()]
    middles = (longest["send_start"] + longest["compute_end"]) / 2
    plates: dict[str, Any] = {"s": 130, "c": "white", "marker": "s", "alpha": 0.75, "lw": 0}
    ax.scatter(middles, longest["node"] + 1, zorder=5, **plates)
    look: dict[str, Any] = {"ha": "center", "va": "center", "clip_on": True, "zorder": 6}
    for task, x, node in zip(longest["task"], middles, longest["node"], strict=True):
        ax.text(x, node + 1, str(task), fontsize=8.5, fontweight="bold", **look)


def _legend_entries() -> list[Any]:
    return [
        bar_legend_entry("send", "sending"),
        bar_legend_entry("compute", "computing"),
        bar_legend_entry("planned", "planned"),
        line_legend_entry("deadline", color="#555555", marker="v"),
        line_legend_entry("accepted", color=INK["green"], linestyle="none", marker="o"),
        line_legend_entry(
            "refused", color=INK["vermillion"], linestyle="none", marker="x", mew=1.8
        ),
        line_legend_entry("now", color=INK["black"], linestyle="--"),
    ]


def _time_limits(schedules: list[Schedule]) -> tuple[float, float]:
    """Return the ends of the time axis: it shows all plans, and the last deadline if it is near."""
    arrivals = schedules[0].tasks["arrival"]
    first, now = float(arrivals.iloc[0]), float(arrivals.iloc[-1])
    ends = [float(schedule.tasks["completion"].max()) for schedule in schedules]
    due = max(float((s.tasks["arrival"] + s.tasks["deadline"]).iloc[-1]) for s in schedules)
    last = max([now, *(end for end in ends if np.isfinite(end))])
    if due - first < 1.4 * (last - first):
        last = max(last, due)
    last = max(last, first + 1e-9)
    return first - 0.01 * (last - first), last + 0.03 * (last - first)


def _sentence(schedules: list[Schedule], count: int) -> str:
    """Say how many tasks each policy has accepted, and how much data."""
    accepted = []
    for schedule in schedules:
        sizes = schedule.tasks["sigma"][schedule.tasks["admitted"]]
        verb = "accepted" if schedule.policy.admission else "run"
        accepted.append(f"{schedule.name} has {verb} {len(sizes)} ({sizes.sum():.4g} of data)")
    tasks = schedules[0].tasks
    now = float(tasks["arrival"].iloc[-1])
    return f"Test {len(tasks)} of {count}, at time {now:.5g}: {', '.join(accepted)}."

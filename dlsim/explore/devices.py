"""`explore.queue`: jobs on CPUs and GPUs under two policies, rule by rule; `explore.pipeline`.

Source: paper C (cpu-gpu), section 5 (the five rules), sections 6 and 7 (their rivals), section 2
and the pipelined MapReduce of Y. Chen, Z. Qiao, S. Davis, H. Jiang, K.-C. Li (2013) that it
describes: chunks on their way through a GPU with one, two and three streams.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import SWITCHES, History, Machine, Reading, Schedule, simulate, workload
from dlsim.cpugpu import gpu as devices
from dlsim.cpugpu.model import ABOUT
from dlsim.cpugpu.pipeline import Gpu, Timeline, equal_chunks, equal_chunks_time, run_chunks
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Numbers, Slider, new_figure, panel, say, title
from dlsim.study.gantt import plot_blocks, task_colors
from dlsim.study.style import INK

#: Colours of the stages of a chunk.
STAGE_INK = {"h2d": INK["sky"], "map": INK["green"], "d2h": INK["orange"]}
#: Most applications and most jobs of a queue.
APPS, JOBS = 8, 24
#: What the history may hold at the start.
KNOWN = ("nothing", "every run time")
#: Switches of the five rules alone.
_OF_HISTORY = ("both_free", "unknown_remaining", "deviations")
_LETTERS = "ABCDEFGH"


def applications(cpu: Sequence[float], gpu: Sequence[float], speed_up: float) -> pd.DataFrame:
    """Return the applications A, B, ... of the editor as `dlsim.cpugpu.workload` knows them."""
    if len(cpu) != len(gpu):
        got = f"{len(cpu)} and {len(gpu)}"
        raise InputError(f"cpu and gpu must hold one time per application each, got {got}")
    times = {"cpu_time": np.array(cpu), "gpu_time": np.array(gpu) / speed_up}
    return pd.DataFrame(times, index=pd.Index(list(_LETTERS[: len(cpu)]), name="app"))


def jobs_of(
    table: pd.DataFrame, queue: Sequence[float], arrivals: Sequence[float], noise: float, seed: int
) -> pd.DataFrame:
    """Return the jobs of the editor: declared times as typed, realised ones with noise."""
    known = range(1, len(table) + 1)
    for number in queue:
        if number not in known:
            rule = f"queue must name applications 1 to {len(table)}, as many as there are times in"
            raise InputError(f"{rule} cpu; got {number:g}")
    if len(arrivals) not in (1, len(queue)):
        rule = f"arrivals must hold one time, or one per job, {len(queue)}"
        raise InputError(f"{rule}; got {len(arrivals)}")
    jobs = workload.repeated(table, [str(table.index[int(number) - 1]) for number in queue])
    unit = pd.DataFrame({"cpu_time": [1.0], "gpu_time": [1.0]}, index=pd.Index(["one"]))
    factors = workload.draw(unit, len(jobs), seed, noise, 0.0)
    for kind in ("cpu", "gpu"):
        declared = jobs[f"{kind}_time"]
        jobs[f"{kind}_estimate"] = declared
        jobs[f"{kind}_time"] = declared * factors[f"{kind}_time"]
    return jobs.assign(arrival=arrivals[0] if len(arrivals) == 1 else list(arrivals))


def _schedule(ax: Axes, s: Schedule, inks: Mapping[str, Any], until: float) -> None:
    devices, texts = {d: d for d in s.machine.devices}, s.jobs["app"] + "\n" + s.jobs["rule"]
    plot_blocks(ax, s.jobs, devices, s.jobs["device"], "app", inks, texts, until, 9.5)
    if s.jobs["arrival"].any():
        ax.plot(s.jobs["arrival"], np.full(len(s.jobs), len(devices) - 0.52), "^", ms=4.5,
                color="#222222", clip_on=False, zorder=4)  # fmt: skip
    late = int(s.fairness().jobs["late"].sum())
    ends, wait = f"last end {s.jobs['end'].max():.4g} s", f"mean wait {s.mean_wait:.4g} s"
    title(ax, f"{s.name}: {ends}, {wait}, {late} later than on the preferred device")


def _learned(ax: Axes, history: History, table: pd.DataFrame) -> None:
    """Draw the means of what was measured over the times that were typed."""
    right = 0.0
    for kind, shift, ink, mark in (
        ("gpu", -0.17, INK["blue"], "o"), ("cpu", 0.17, INK["vermillion"], "s"),
    ):  # fmt: skip
        true = table[f"{kind}_time"]
        places = np.arange(len(table)) + shift
        found = [history.record(str(app), kind) for app in table.index]
        seen = [(r.expected(), y, r.std) for r, y in zip(found, places, strict=True) if r.times]
        mean, at, spread = np.reshape(seen, (-1, 3)).T
        ax.errorbar(mean, at, xerr=spread, fmt=mark, ms=4, color=ink, lw=1, zorder=3,
                    label=f"{kind.upper()}, seen")  # fmt: skip
        ax.scatter(true, places, s=62, marker=mark, facecolors="none", edgecolors=ink, zorder=2,
                   label=f"{kind.upper()}, typed")  # fmt: skip
        for record, y, time in zip(found, places, true, strict=True):
            far = max(float(time), record.expected() + record.std if record.times else 0.0)
            right = max(right, far)
            ax.annotate(f"n={record.count}", (far, y), (7, 0), textcoords="offset points",
                        va="center", fontsize=10, color="#222222")  # fmt: skip
    ax.set_xlim(-0.05 * right, 1.3 * right)
    ax.set_yticks(range(len(table)), list(table.index))
    ax.set_ylim(len(table) - 0.45, -0.55)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_xlabel("seconds")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.14), ncols=2)


@panel(
    "A queue of jobs on CPUs and GPUs: two policies, rule by rule",
    Choice("policy", tuple(ABOUT), "policy", "history", ABOUT),
    Choice("rival", tuple(ABOUT), "beside it", "mct", ABOUT),
    Numbers("queue", (1.0, 2.0, 3.0) * 3, "applications of the jobs", 1.0, APPS, JOBS),
    Numbers("cpu", (40.0, 15.0, 5.0), "seconds on a CPU", 0.01, 1e6, APPS),
    Numbers("gpu", (10.0, 10.0, 20.0), "seconds on a GPU", 0.01, 1e6, APPS),
    Slider("speed_up", 0.1, 10.0, 0, 1.0, "GPUs faster, times"),
    Numbers("arrivals", (0.0,), "arrivals (one, or per job)", 0.0, 1e6, JOBS),
    Choice("known", KNOWN, "history at the start holds"),
    Slider("noise", 0.0, 1.0, 0.05, 0.0, "noise, std / mean"),
    Slider("seed", 0, 99, 1, 0, "seed of the noise"),
    Slider("cpus", 0, 4, 1, 1, "CPUs"),
    Slider("gpus", 0, 4, 1, 1, "GPUs"),
    switches=SWITCHES, explained=(Reading,),
    live={
        "seed": lambda v: v["noise"] > 0,
        **dict.fromkeys(_OF_HISTORY, lambda v: "history" in (v["policy"], v["rival"])),
    },
)  # fmt: skip
def queue(
    policy: str, rival: str, queue: Sequence[float], cpu: Sequence[float], gpu: Sequence[float],
    speed_up: float, arrivals: Sequence[float], known: str, noise: float, seed: int,
    cpus: int, gpus: int, reading: Mapping[str, str],
) -> Figure:  # fmt: skip
    """Draw one queue under two policies, and what the first one's history then holds."""
    table = applications(cpu, gpu, speed_up)
    jobs = jobs_of(table, queue, arrivals, noise, seed)
    history = History() if known == KNOWN[0] else History.exact(table)
    rules, machine, inks = Reading.of(reading), Machine(cpus, gpus), task_colors(list(table.index))
    pair = [simulate(jobs, machine, name, history, rules) for name in (policy, rival)]
    until = 1.02 * max(float(s.jobs["end"].max()) for s in pair)
    figure = new_figure(9.6, 5.2, (0.65, 1.2, 0.1, 0.3), wspace=0.08, hspace=0.22)
    grid = figure.add_gridspec(2, 2, width_ratios=[2.6, 1])
    for row, s in enumerate(pair):
        ax = figure.add_subplot(grid[row, 0])
        _schedule(ax, s, inks, until)
        if row == 0:
            ax.set_xticks([])
    ax.xaxis.set_major_locator(MaxNLocator(6))
    triangles = "; triangles: arrivals" * bool(jobs["arrival"].any())
    ax.set_xlabel(f"seconds; in a block: application and rule{triangles}")
    below = figure.add_subplot(grid[:, 1])
    _learned(below, pair[0].history, table)
    title(below, f"run times {pair[0].name} has seen")
    say(figure, _sentence(*pair))
    return figure


def _sentence(one: Schedule, other: Schedule) -> str:
    ends = [float(s.jobs["end"].max()) for s in (one, other)]
    words = f"{one.name} ends at {ends[0]:.4g} s"
    if one.name == other.name:
        words += f" with a mean wait of {one.mean_wait:.4g} s"
    elif math.isclose(*ends, rel_tol=1e-9):
        words += f", as {other.name} does"
    else:
        change = 100 * (ends[0] / ends[1] - 1)
        words += f", {abs(change):.3g} % {'later' if change > 0 else 'earlier'} than {other.name}"
        words += f" at {ends[1]:.4g} s"
    learning = int(one.explored.sum())
    return words + f"; placed to learn: {learning} of {len(one.jobs)} jobs" * bool(learning) + "."


#: Streams whose timelines are drawn, and those whose speed-up is.
DRAWN, STREAMS = (1, 2, 3), (1, 2, 3, 4, 5)
#: Switches of `dlsim.cpugpu.gpu` that can change the picture: of equal chunks the one
#: whose copy out waits is always the earliest, so that ``first="chunk"`` is ``"d2h"``.
READINGS = {**devices.SWITCHES, "first": ("d2h", "h2d")}
_LANES = {"h2d": "copy in", "map": "kernel", "d2h": "copy out", "copy": "copies", "gpu": "GPU"}
_STAGES = {"h2d": "copy to the device", "map": "kernel", "d2h": "copy to the host"}


def _timeline(ax: Axes, t: Timeline, until: float) -> None:
    engines = (t.gpu.engine(stage) for stage in _STAGES if stage in t.chunks)
    at = [t.gpu.engine(stage) for stage in t.ops["stage"]]
    texts, named = (t.ops["chunk"] + 1).astype(str), {lane: _LANES[lane] for lane in engines}
    plot_blocks(ax, t.ops, named, at, "stage", STAGE_INK, texts, until, 9.5)
    ax.axvline(t.makespan, color=INK["black"], ls="--", lw=1.1, zorder=1)
    k = t.gpu.streams
    title(ax, f"{k} stream{'s' * (k > 1)}: done at {t.makespan:.4g}")


def _speed_ups(
    ax: Axes, runs: Mapping[tuple[int, int], Timeline], engines: int, formula: Sequence[float]
) -> None:
    for one, look in ((engines, "-"), (3 - engines, ":")):
        base = runs[one, 1].makespan
        gains = [base / runs[one, k].makespan for k in STREAMS]
        name = f"{one} copy engine{'s' * (one > 1)}, simulated"
        ink = INK["blue"] if one == engines else "#666666"
        ax.plot(STREAMS, gains, look, marker="o", ms=4, color=ink, label=name)
    if formula:
        gains = [formula[0] / end for end in formula]
        ax.plot(STREAMS, gains, "D", ms=10, mfc="none", mew=1.5, color=INK["vermillion"],
                label="2 copy engines, closed form")  # fmt: skip
    low, high = ax.get_ylim()
    ax.set(xlabel="streams k", ylabel="speed-up over one stream", xticks=STREAMS)
    ax.set_ylim(min(low, 0.9), max(high, 1.5) + 0.35 * (max(high, 1.5) - min(low, 0.9)))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.legend(loc="upper left")


@panel(
    "A GPU pipeline: what overlapping copies with kernels gives",
    Slider("chunks", 1, 10, 1, 5, "chunks"),
    Slider("copy_in", 0.0, 10.0, 0.5, 3.0, "copy to the device"),
    Slider("kernel", 0.0, 10.0, 0.5, 1.0, "kernel"),
    Slider("copy_out", 0.0, 10.0, 0.5, 2.0, "copy to the host"),
    Choice("engines", (2, 1), "copy engines"),
    Choice("pinned", (True, False), "pinned memory"),
    Choice("issue", ("depth", "breadth", "scheduled"), "order of issue"),
    switches=READINGS, explained=(Gpu,),
    live={
        "issue": lambda v: v["reading"].get("queues", "hyper-q") != "hyper-q",
        "first": lambda v: v["reading"].get("queues", "hyper-q") == "hyper-q",
    },
)  # fmt: skip
def pipeline(
    chunks: int, copy_in: float, kernel: float, copy_out: float, engines: int, pinned: bool,
    issue: str, reading: Mapping[str, Any],
) -> Figure:  # fmt: skip
    """Draw equal chunks under one, two and three streams, and the speed-up against k."""
    if max(copy_in, kernel, copy_out) == 0:
        raise InputError("copy_in, kernel or copy_out must be above 0: a chunk has to take time")
    table = equal_chunks(chunks, h2d=copy_in, map=kernel, d2h=copy_out)
    runs = {(n, k): run_chunks(table, Gpu(k, n, pinned=pinned, **reading), issue)
            for n in (1, 2) for k in STREAMS}  # fmt: skip
    told = pinned and reading.get("queues", "hyper-q") == "hyper-q"
    formula = [equal_chunks_time(chunks, copy_in, kernel, copy_out, k) for k in STREAMS * told]
    figure = new_figure(9.6, 4.9, (0.95, 1.0, 0.1, 0.3), wspace=0.2, hspace=0.36)
    grid = figure.add_gridspec(3, 2, width_ratios=[1.5, 1])
    drawn = [runs[engines, k] for k in DRAWN]
    for row, t in enumerate(drawn):
        ax = figure.add_subplot(grid[row, 0])
        _timeline(ax, t, 1.02 * max(float(t.makespan) for t in drawn))
        if row < len(drawn) - 1:
            ax.set_xticks([])
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel("time; the number in a block is its chunk")
    keys = [Patch(facecolor=STAGE_INK[s], edgecolor="#333333", label=_STAGES[s]) for s in _STAGES]
    figure.legend(handles=keys, loc="lower left", ncols=3)
    _speed_ups(figure.add_subplot(grid[:, 1]), runs, engines, formula)
    say(figure, _told(drawn, formula if engines == 2 else []))
    return figure


def _told(drawn: Sequence[Timeline], formula: Sequence[float]) -> str:
    ends, last = [t.makespan for t in drawn], drawn[-1]
    stages = " + ".join(f"{last.chunks[stage].iloc[0]:g}" for stage in _STAGES)
    count, ratio = len(last.chunks), f"{ends[0] / ends[-1]:.3g}"
    gain = "just" if ratio == "1" else f"{ratio} times"
    said = ", ".join(f"{end:.4g}" for end in ends)
    text = f"{count} chunk{'s' * (count > 1)} of {stages} end at {said} with 1, 2, 3 streams: "
    text += f"three are {gain} as fast as one"
    if last.hidden == last.hidden:
        text += f" and hide {100 * last.hidden:.0f} % of the copying behind kernels"
    if formula:
        told = ", ".join(f"{end:.4g}" for end in formula[: len(ends)])
        text += f"; the closed form says {told}"
    return text + "."

"""`explore.queue`: a queue of jobs on CPUs and GPUs under two policies, rule by rule.

Source: paper C (cpu-gpu), section 5 (the five rules) and sections 6 and 7 (their rivals).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import POLICIES, SWITCHES, History, Machine, Reading, Schedule, simulate, workload
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Numbers, Panel, Slider, new_figure, say, title
from dlsim.study.gantt import plot_blocks, task_colors
from dlsim.study.style import INK

#: Most applications and most jobs of a queue.
APPS, JOBS = 8, 24
#: What the history may hold at the start.
KNOWN = ("nothing", "every run time")
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
    plot_blocks(ax, s.jobs, devices, s.jobs["device"], "app", inks, texts, until)
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
                        va="center", fontsize=7.5, color="#222222")  # fmt: skip
    ax.set_xlim(-0.05 * right, 1.3 * right)
    ax.set_yticks(range(len(table)), list(table.index))
    ax.set_ylim(len(table) - 0.45, -0.55)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_xlabel("seconds")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.14), ncols=2, fontsize=8)


def draw_queue(
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
    figure = new_figure(9.4, 4.8, (0.51, 0.95, 0.1, 0.43), wspace=0.073, hspace=0.15)
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


PANEL = Panel(
    name="queue",
    title="A queue of jobs on CPUs and GPUs: two policies, rule by rule",
    update=draw_queue,
    controls=(
        Choice("policy", tuple(POLICIES), "policy", "history"),
        Choice("rival", tuple(POLICIES), "beside it", "mct"),
        Numbers(
            "queue", (1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0), "applications of the jobs",
            1.0, APPS, JOBS,
        ),
        Numbers("cpu", (40.0, 15.0, 5.0), "seconds on a CPU", 0.01, 1e6, APPS),
        Numbers("gpu", (10.0, 10.0, 20.0), "seconds on a GPU", 0.01, 1e6, APPS),
        Slider("speed_up", 0.1, 10.0, 0.05, 1.0, "GPUs faster, times", log=True),
        Numbers("arrivals", (0.0,), "arrivals (one, or per job)", 0.0, 1e6, JOBS),
        Choice("known", KNOWN, "history at the start holds"),
        Slider("noise", 0.0, 1.0, 0.05, 0.0, "noise, std / mean"),
        Slider("seed", 0, 99, 1, 0, "seed of the noise"),
        Slider("cpus", 0, 4, 1, 1, "CPUs"),
        Slider("gpus", 0, 4, 1, 1, "GPUs"),
    ),
    switches=SWITCHES,
    explained=(Reading,),
)  # fmt: skip

"""Jobs on CPUs and GPUs under two policies, rule by rule.

Source: paper C (cpu-gpu), section 5 (the five rules), sections 6 and 7 (their rivals).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import (
    POLICIES,
    SWITCHES,
    History,
    Machine,
    Reading,
    ScheduleResult,
    simulate,
    workload,
)
from dlsim.errors import InputError
from dlsim.explore.controls import Menu, NumberList, Slider, StopSlider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure, set_title
from dlsim.study.plots import INK, legible_on, name_rows, task_colors

#: Most applications and most jobs of a queue.
MAX_APPLICATIONS, MAX_JOBS = 8, 24
#: Contents of the history at the start.
INITIAL_HISTORIES = ("nothing", "every run time")
_LETTERS = "ABCDEFGH"
#: Height of a job's block in rows, size of its text in points, width of a letter in inches.
_BLOCK_HEIGHT, _BLOCK_POINTS, _LETTER_WIDTH = 0.76, 8.5, 0.075

_DEFINITIONS = {
    "in a block": "application of the job and the rule that placed it",
    "R2": "the application was never run on this kind of device: run it there to learn "
    "(R2*: both kinds were free)",
    "R3": "the free device is the faster one for it (R3*: both kinds were free)",
    "R4": "the free device is the slower one for it, but finishes it sooner",
    "R4q": "the busy device finishes it sooner: wait there",
    "R0": "no run time is known yet, though both kinds of device were tried",
    "preferred device": "the kind of device on which the application is faster",
    "late": "a job is completed later than it would have on its preferred device, queue included",
    "seen, typed": "means and standard deviations of the measured run times, and the times of "
    "the text fields; n counts the measurements",
    **{f"policy {name}": policy.text for name, policy in POLICIES.items()},
}


@panel(
    "A queue of jobs on CPUs and GPUs: two policies, rule by rule",
    Menu("policy", "policy", tuple(POLICIES), "history"),
    Menu("rival", "policy below it", tuple(POLICIES), "mct"),
    NumberList("queue", "applications of the jobs", (1.0, 2.0, 3.0) * 3, 1.0, most=MAX_JOBS),
    NumberList("cpu", "seconds on a CPU", (40.0, 15.0, 5.0), 0.01, 1e6, MAX_APPLICATIONS),
    NumberList("gpu", "seconds on a GPU", (10.0, 10.0, 20.0), 0.01, 1e6, MAX_APPLICATIONS),
    Menu("known", "the history holds at first", INITIAL_HISTORIES),
    settings=(
        Slider("cpus", "CPUs", 0, 4, 1, 1),
        Slider("gpus", "GPUs", 0, 4, 1, 1),
        StopSlider("speed_up", "GPUs faster, times", (0.1, 0.2, 0.5, 1, 2, 5, 10), 1.0),
        NumberList("arrivals", "arrivals (one, or one per job)", (0.0,), 0.0, 1e6, MAX_JOBS),
        Slider("noise", "noise of run times, std / mean", 0.0, 1.0, 0.05, 0.0),
        Slider("seed", "seed of the noise", 0, 99, 1, 0),
    ),
    switches=SWITCHES,
    labels=Reading.labels(),
    words=_DEFINITIONS,
)
def queue(
    policy: str,
    rival: str,
    queue: Sequence[float],
    cpu: Sequence[float],
    gpu: Sequence[float],
    speed_up: float,
    arrivals: Sequence[float],
    known: str,
    noise: float,
    seed: int,
    cpus: int,
    gpus: int,
    reading: Mapping[str, str],
) -> tuple[Figure, str]:
    """Draw one queue under two policies, and the history of the first policy afterwards."""
    applications = application_table(cpu, gpu, speed_up)
    jobs = job_table(applications, queue, arrivals, noise, seed)
    history = History() if known == "nothing" else History.exact(applications)
    rules, machine = Reading.from_switches(reading), Machine(cpus, gpus)
    pair = [simulate(jobs, machine, name, rules, history=history) for name in (policy, rival)]
    inks = task_colors(list(applications.index))
    until = 1.02 * max(float(schedule.jobs["completion"].max()) for schedule in pair)

    figure = new_figure(0.5, 0.75, 0.1, 0.24, wspace=0.1, hspace=0.2)
    grid = figure.add_gridspec(2, 2, width_ratios=[2.6, 1])
    upper, lower = (figure.add_subplot(grid[row, 0]) for row in (0, 1))
    for ax, schedule in zip((upper, lower), pair, strict=True):
        _draw_schedule(ax, schedule, inks, until)
    upper.set_xticks([])
    lower.xaxis.set_major_locator(MaxNLocator(6))
    arrows = "; triangles: arrivals" if jobs["arrival"].any() else ""
    lower.set_xlabel(f"seconds; in a block: application and rule{arrows}")
    learned = figure.add_subplot(grid[:, 1])
    _draw_history(learned, pair[0].history, applications)
    set_title(learned, "measured run times")
    return figure, _sentence(*pair)


def application_table(cpu: Sequence[float], gpu: Sequence[float], speed_up: float) -> pd.DataFrame:
    """Return the applications A, B, ... with their times, as `dlsim.cpugpu.workload` knows them."""
    if len(cpu) != len(gpu):
        got = f"{len(cpu)} and {len(gpu)}"
        raise InputError(f"cpu and gpu must hold one time per application each, got {got}")
    times = {"cpu_time": np.array(cpu), "gpu_time": np.array(gpu) / speed_up}
    return pd.DataFrame(times, index=pd.Index(list(_LETTERS[: len(cpu)]), name="app"))


def job_table(
    applications: pd.DataFrame,
    queue: Sequence[float],
    arrivals: Sequence[float],
    noise: float,
    seed: int,
) -> pd.DataFrame:
    """Return the jobs of a queue: estimates as typed, run times with noise around them."""
    known = range(1, len(applications) + 1)
    for number in queue:
        if number not in known:
            rule = f"queue must name applications 1 to {len(applications)}, as many as there are"
            raise InputError(f"{rule} times in cpu; got {number:g}")
    if len(arrivals) not in (1, len(queue)):
        rule = f"arrivals must hold one time, or one per job, {len(queue)}"
        raise InputError(f"{rule}; got {len(arrivals)}")
    names = [str(applications.index[int(number) - 1]) for number in queue]
    jobs = workload.jobs_in_order(applications, names)
    unit = pd.DataFrame({"cpu_time": [1.0], "gpu_time": [1.0]}, index=pd.Index(["one"]))
    factors = workload.random_jobs(unit, len(jobs), seed, workload.Noise(noise, outliers=0.0))
    for kind in ("cpu", "gpu"):
        jobs[f"{kind}_estimate"] = jobs[f"{kind}_time"]
        jobs[f"{kind}_time"] = jobs[f"{kind}_time"] * factors[f"{kind}_time"]
    return jobs.assign(arrival=arrivals[0] if len(arrivals) == 1 else list(arrivals))


def _draw_schedule(
    ax: Axes, schedule: ScheduleResult, inks: Mapping[str, Any], until: float
) -> None:
    """Draw the jobs on their devices, each with its application and the rule that placed it."""
    devices, jobs = list(schedule.machine.devices), schedule.jobs
    name_rows(ax, devices, 0, until, -0.55)
    _draw_blocks(ax, jobs, jobs["device"].map(devices.index), inks)
    if jobs["arrival"].any():
        bottom = np.full(len(jobs), len(devices) - 0.52)
        look: dict[str, Any] = {"ms": 4.5, "color": "#222222", "clip_on": False, "zorder": 4}
        ax.plot(jobs["arrival"], bottom, "^", **look)
    late = int(schedule.fairness()["late"].sum())
    end, wait = f"{jobs['completion'].max():.4g} s", f"{schedule.mean_wait:.4g} s"
    text = f"{schedule.name}: end {end}, mean wait {wait}, {late} late"
    set_title(ax, text)
    ax.title.set_fontsize(9)


def _draw_blocks(
    ax: Axes, jobs: pd.DataFrame, places: "pd.Series[int]", inks: Mapping[str, Any]
) -> None:
    """Draw a block per job in its row, with a text where it is wide enough for it."""
    length = jobs["completion"] - jobs["start"]
    look: dict[str, Any] = {"height": _BLOCK_HEIGHT, "edgecolor": "#333333", "linewidth": 0.6}
    ax.barh(places, length, left=jobs["start"], color=jobs["app"].map(inks), zorder=2, **look)
    figure, place = ax.get_figure(root=True), ax.get_position()  # before the layout
    assert figure is not None
    inches = np.array([place.width, place.height]) * figure.get_size_inches()
    units = np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1)
    wide, tall = inches / units  # of a unit of time, of a row
    look = {"ha": "center", "va": "center", "fontsize": _BLOCK_POINTS, "zorder": 3}
    look |= {"linespacing": 0.95, "in_layout": False}
    for start, app, rule, row, span in zip(
        jobs["start"], jobs["app"], jobs["rule"], places, length, strict=True
    ):
        text = f"{app}\n{rule}"
        shown, is_turned = _fit_text(text, span * wide, tall * _BLOCK_HEIGHT)
        look |= {"color": legible_on(inks[app]), "rotation": 90 * is_turned}
        if shown:
            ax.text(start + span / 2, row, shown, **look)


def _fit_text(text: str, width: float, height: float) -> tuple[str, bool]:
    """Return the part of a text that fits into a block (in inches), and whether it is vertical."""
    lines, line = text.split("\n"), " ".join(text.split("\n"))
    if width > 0.02 + _LETTER_WIDTH * max(map(len, lines)):
        return text, False
    if width > 1.6 * _LETTER_WIDTH and height > 0.02 + _LETTER_WIDTH * len(line):
        return line, True
    return (lines[0], False) if width > 0.02 + _LETTER_WIDTH * len(lines[0]) else ("", False)


def _draw_history(ax: Axes, history: History, applications: pd.DataFrame) -> None:
    """Draw the means of the measured times over the times that were typed."""
    right = 0.0
    for kind, shift, ink, marker in (
        ("gpu", -0.17, INK["blue"], "o"),
        ("cpu", 0.17, INK["vermillion"], "s"),
    ):
        typed = applications[f"{kind}_time"]
        places = np.arange(len(applications)) + shift
        records = [history.record(str(app), kind) for app in applications.index]
        measured = [(r, y) for r, y in zip(records, places, strict=True) if r.times]
        means, spreads = [r.expected() for r, _ in measured], [r.std for r, _ in measured]
        look: dict[str, Any] = {"fmt": marker, "ms": 4, "color": ink, "lw": 1, "zorder": 3}
        seen = f"{kind.upper()}, seen"
        ax.errorbar(means, [y for _, y in measured], xerr=spreads, label=seen, **look)
        look = {"s": 52, "marker": marker, "facecolors": "none", "edgecolors": ink, "zorder": 2}
        ax.scatter(typed, places, label=f"{kind.upper()}, typed", **look)
        for record, y, time in zip(records, places, typed, strict=True):
            end = max(float(time), record.expected() + record.std if record.times else 0.0)
            right = max(right, end)
            look = {"textcoords": "offset points", "va": "center", "fontsize": 8}
            ax.annotate(f"n={record.count}", (end, y), (6, 0), color="#222222", **look)
    ax.set_xlim(-0.05 * right, 1.4 * right)
    ax.set_yticks(range(len(applications)), list(applications.index))
    ax.set_ylim(len(applications) - 0.45, -0.55)
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.set_xlabel("seconds", labelpad=1)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.45, -0.1),
        ncols=2,
        fontsize=8,
        columnspacing=0.6,
        handletextpad=0.2,
    )


def _sentence(one: ScheduleResult, other: ScheduleResult) -> str:
    """Compare the ends of two policies, and say how many jobs were placed to learn."""
    ends = [float(schedule.jobs["completion"].max()) for schedule in (one, other)]
    text = f"{one.name} ends at {ends[0]:.4g} s"
    if one.name == other.name:
        text += f" with a mean wait of {one.mean_wait:.4g} s"
    elif math.isclose(*ends, rel_tol=1e-9):
        text += f", as {other.name} does"
    else:
        change = 100 * (ends[0] / ends[1] - 1)
        word = "later" if change > 0 else "earlier"
        text += f", {abs(change):.3g} % {word} than {other.name} at {ends[1]:.4g} s"
    if learning := int(one.explored.sum()):
        text += f"; {learning} of {len(one.jobs)} jobs were placed to learn their run times"
    return text + "."

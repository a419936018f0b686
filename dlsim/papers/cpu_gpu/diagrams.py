"""Drawings of paper C made from runs: its Figures 1 to 3, and who ran where and when."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import simulate, workload
from dlsim.cpugpu.mapdata import map_block, partition_of
from dlsim.cpugpu.mapreduce import run_mapreduce, split_text, word_count
from dlsim.cpugpu.moldable import NodePool, run_moldable
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.slots import run_slots
from dlsim.papers.cpu_gpu.runs import policy_of
from dlsim.papers.cpu_gpu.study import Study
from dlsim.papers.cpu_gpu.systems import moldable_jobs
from dlsim.study.experiment import keep
from dlsim.study.gantt import task_colors
from dlsim.study.style import INK, axes_of

#: The sentence of Figure 3, and how it is cut.
SENTENCE, MAPS, PARTS = "the quick fox the dog the fox", 3, 2
#: Policies whose schedules are drawn.
DRAWN = ("history", "mct", "preferred", "round-robin", "rsc", "asjf")
#: Jobs and queues of Hadoop's three schedulers (four slots).
HADOOP = pd.DataFrame(
    {"tasks": [8, 4, 4], "queue": ["x", "x", "y"], "share": [0.25, 0.25, 0.75]},
    index=pd.Index(["A", "B", "C"], name="job"),
)
#: Colours of the stages of a chunk.
STAGE_INK = {"h2d": INK["sky"], "map": INK["green"], "d2h": INK["orange"]}
_EDGE: dict[str, Any] = {"edgecolor": "#333333", "linewidth": 0.6}


def records(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a table, each with its columns as attributes."""
    return list(table.itertuples())


def bar(ax: Axes, y: float, start: float, end: float, color: Any, text: str = "") -> None:
    """Draw one run on a device, with a text if it fits."""
    ax.barh(y, end - start, left=start, height=0.72, color=color, zorder=2, **_EDGE)
    if text:
        ax.text(
            (start + end) / 2, y, text, ha="center", va="center", fontsize=7, zorder=3,
            clip_on=True,
        )  # fmt: skip


def rows_of(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a diagram, top to bottom."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.grid(False, axis="y")


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1, redrawn: the parallel parts of a program run on the GPU, between copies."""
    ax = axes_of(ax, (7.6, 2.3))
    serial, chunks, at = (6.0, 4.0, 5.0), equal_chunks(1, h2d=2, map=4, d2h=1), 0.0
    rows = []
    for number, length in enumerate(serial):
        rows.append(("CPU", "serial", at, at + length))
        at += length
        if number < len(serial) - 1:
            ops = run_chunks(chunks, Gpu(1)).ops
            rows += [("GPU", r.stage, at + r.start, at + r.end) for r in records(ops)]
            at = rows[-1][3]
    inks, words = STAGE_INK | {"serial": INK["blue"]}, {"h2d": "copy", "d2h": "copy"}
    for place, stage, start, end in rows:
        bar(ax, ("CPU", "GPU").index(place), start, end, inks[stage], words.get(stage, stage))
    rows_of(ax, ["CPU: rest of the program", "GPU: parallel parts"])
    ax.set(xlabel="time", xlim=(0, at), title="The GPU takes the parallel parts of a program")
    return keep(study, "fig1", ax, pd.DataFrame(rows, columns=["place", "part", "start", "end"]))


def fig2(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 2, redrawn: 8 and 16 cores of a CPU, thousands of a GPU, one square each."""
    panels = list(axes) if axes is not None else _three((7.6, 2.9), [1, 1, 2.2])
    counts = (("CPU, 8 cores", 2, 4), ("CPU, 16 cores", 4, 4), ("GPU, 2048 cores", 32, 64))
    for ax, (title, down, across), ink in zip(
        panels, counts, ("blue", "blue", "green"), strict=True
    ):
        y, x = np.divmod(np.arange(down * across), across)
        cores = [Rectangle((a, b), 0.86, 0.86) for a, b in zip(x, y, strict=True)]
        ax.add_collection(PatchCollection(cores, facecolor=INK[ink], linewidth=0))
        ax.set(xlim=(-0.3, across + 0.1), ylim=(-0.3, down + 0.1), aspect="equal", title=title)
        ax.axis("off")
    table = pd.DataFrame([(t, d * a) for t, d, a in counts], columns=["device", "cores"])
    return keep(study, "fig2", panels[0], table)


def _three(size: tuple[float, float], widths: Sequence[float]) -> list[Axes]:
    figure = plt.figure(figsize=size, layout="constrained")
    return list(figure.subplots(1, len(widths), width_ratios=widths))


def flow_of(text: str = SENTENCE, maps: int = MAPS, parts: int = PARTS) -> dict[str, list[str]]:
    """Return what each step of a word count hands on, in words."""
    job, blocks = word_count(parts), split_text(text, maps)
    run = run_mapreduce(job, blocks)
    run.check()
    mapped = [map_block(job, block, "cpu") for block in blocks]
    merged = [sorted(pair for own in mapped for pair in own[part]) for part in range(parts)]
    return {
        "input": [text],
        "split": [block.strip() for block in blocks],
        "map": ["\n".join(f"{k} {v}" for own in made for k, v in own) for made in mapped],
        "partition, sort": ["\n".join(f"{k} {v}" for k, v in pairs) for pairs in merged],
        "reduce": [
            "\n".join(f"{k} {v}" for k, v in run.output.items() if partition_of(k, parts) == part)
            for part in range(parts)
        ],
    }


def fig3(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 3, redrawn: a word count on its way through map, partition, sort and reduce."""
    ax = axes_of(ax, (8.6, 3.8))
    steps = flow_of()
    places = {
        name: [(2.1 * column, -(i + 0.5) * 6 / len(texts)) for i in range(len(texts))]
        for column, (name, texts) in enumerate(steps.items())
    }
    inks = ("#EEEEEE", "#EEEEEE", "#CFE6F3", "#F6E7A8", "#BFE3D6")
    for (name, texts), ink in zip(steps.items(), inks, strict=True):
        ax.text(places[name][0][0], 0.35, name, ha="center", fontsize=10, weight="bold")
        for (x, y), text in zip(places[name], texts, strict=True):
            shown = text.replace(" the dog", "\nthe dog").replace(" the fox", "\nthe fox")
            shown = shown if name == "input" else text
            ax.text(
                x, y, shown, ha="center", va="center", fontsize=8, zorder=3,
                bbox={"boxstyle": "round", "facecolor": ink, "edgecolor": "#555555"},
            )  # fmt: skip
    names = list(steps)
    for one, other in pairwise(names):
        for i, a in enumerate(places[one]):
            for j, b in enumerate(places[other]):
                if len(places[one]) != len(places[other]) or i == j:
                    ax.add_patch(
                        FancyArrowPatch(
                            (a[0] + 0.62, a[1]), (b[0] - 0.62, b[1]), arrowstyle="->",
                            mutation_scale=9, color="#888888", lw=0.8,
                        )
                    )  # fmt: skip
    ax.set(xlim=(-1, 9.4), ylim=(-6.2, 0.8))
    ax.axis("off")
    table = pd.DataFrame(
        [(name, i, text) for name, texts in steps.items() for i, text in enumerate(texts)],
        columns=["step", "box", "text"],
    )
    return keep(study, "fig3", ax, table)


def _depth(jobs: pd.DataFrame, kind: str) -> tuple[list[float], list[int]]:
    """Return how many jobs wait in a class's sub-queues, as steps."""
    rows = jobs[jobs["device"].str.startswith(kind) & (jobs["start"] > jobs["decided"])]
    steps = Counter[float]()
    for begin, end in zip(rows["decided"], rows["start"], strict=True):
        steps[begin] += 1
        steps[end] -= 1
    times = sorted(steps)
    return [0.0, *times], [0, *np.cumsum([steps[t] for t in times]).tolist()]


def fig_gantt(
    study: Study, policies: Sequence[str] = DRAWN, axes: Sequence[Axes] | None = None
) -> Axes:
    """F1: one queue under several policies, each bar with its rule, sub-queues below."""
    table = workload.applications(study.mixes[0], 5, study.seed)
    jobs = workload.draw(table, 12, study.seed, study.cv, 0.0)
    down = (len(policies) + 1) // 2
    if axes is None:
        figure = plt.figure(figsize=(11, 2.6 * down), layout="constrained")
        grid = figure.subplots(2 * down, 2, height_ratios=[2, 1] * down, sharex=True, squeeze=False)
        axes = [grid[2 * (i // 2) + k][i % 2] for i in range(len(policies)) for k in (0, 1)]
    colors, parts = task_colors(sorted(set(jobs["app"]))), {}
    for name, ax, below in zip(policies, axes[::2], axes[1::2], strict=True):
        s = simulate(jobs, study.setting.machine, policy_of(name), None, None)
        s.check()
        devices = list(s.machine.devices)
        for row in records(s.jobs):
            text = str(row.app) + ("\n" + str(row.rule) if name == "history" else "")
            wide = row.end - row.start > 0.06 * s.makespan
            bar(ax, devices.index(row.device), row.start, row.end, colors[row.app],
                text if wide else "")  # fmt: skip
        rows_of(ax, devices)
        ax.set_title(
            f"{name}: last end {s.makespan:.0f} s, mean wait {s.mean_wait:.0f} s", fontsize=10
        )
        for kind, ink in (("gpu", INK["blue"]), ("cpu", INK["vermillion"])):
            below.step(*_depth(s.jobs, kind), where="post", color=ink, lw=1.4, label=kind)
        below.set_ylabel("queued", fontsize=8)
        below.set_ylim(-0.1, max(1.1, below.get_ylim()[1]))
        below.yaxis.set_major_locator(MaxNLocator(integer=True))
        parts[name] = s.jobs
    axes[1].legend(loc="upper right", fontsize=8, ncols=2)
    for below in axes[1::2][-2:]:
        below.set_xlabel("seconds")
    return keep(study, "gantt", axes[0], pd.concat(parts, names=["policy"]).reset_index())


def fig_nodes(
    study: Study, schedulers: Sequence[str] = ("torque", "mct", "mct-any", "flexible"),
    axes: Sequence[Axes] | None = None,
) -> Axes:  # fmt: skip
    """F11: one batch of moldable jobs on nodes with a CPU and a GPU each."""
    jobs = moldable_jobs(
        study.mixes[0], 0.0, study.setting._replace(jobs=12), np.random.SeedSequence(study.seed)
    )
    if axes is None:
        down = (len(schedulers) + 1) // 2
        figure = plt.figure(figsize=(11, 2.7 * down), layout="constrained")
        axes = figure.subplots(down, 2, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    colors, parts = task_colors(list(jobs.index)), {}
    pool = NodePool(study.nodes)
    for name, ax in zip(schedulers, axes, strict=False):
        s = run_moldable(jobs, pool, name)
        s.check()
        for row in records(s.uses):
            y = 2 * int(row.node) + (row.device == "cpu")
            bar(ax, y, row.start, row.end, colors[row.job], str(row.job))
        rows_of(ax, [f"node {n} {d}" for n in range(pool.nodes) for d in ("gpu", "cpu")])
        ax.set_title(
            f"{name}: last end {s.makespan:.0f} s, mean wait {s.mean_wait:.0f} s", fontsize=10
        )
        parts[name] = s.uses
    for ax in axes[-2:]:
        ax.set_xlabel("seconds")
    return keep(study, "nodes", axes[0], pd.concat(parts, names=["scheduler"]).reset_index(0))


def fig_slots(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Hadoop's own schedulers: three jobs on four slots, FIFO, fair, capacity."""
    panels = list(axes) if axes is not None else _three((9.6, 2.3), [1, 1, 1])
    colors: Mapping[Any, Any] = task_colors(list(HADOOP.index))
    parts = {}
    for ax, name in zip(panels, ("fifo", "fair", "capacity"), strict=True):
        s = run_slots(HADOOP, 4, name)
        s.check()
        for row in records(s.tasks):
            bar(ax, int(row.slot), row.start, row.end, colors[row.job], str(row.job))
        ends = ", ".join(f"{job} {end:g}" for job, end in s.jobs["end"].items())
        rows_of(ax, [f"slot {k}" for k in range(s.slots)])
        ax.set(title=f"{name}: {ends}", xlabel="time")
        parts[name] = s.tasks
    return keep(study, "slots", panels[0], pd.concat(parts, names=["scheduler"]).reset_index(0))

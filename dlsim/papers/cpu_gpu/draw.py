"""The pictures and tables of paper C: a study in, Axes or tables out, numbers kept beside."""

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import backends, live, simulate, workload
from dlsim.cpugpu.crew import CREWS
from dlsim.cpugpu.kernels import kernel_named
from dlsim.cpugpu.mapdata import map_block, partition_of
from dlsim.cpugpu.mapreduce import run_mapreduce, split_text, word_count
from dlsim.cpugpu.moldable import NodePool, run_moldable
from dlsim.cpugpu.optimiser import adapt_split, amdahl_bound
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.slots import run_slots
from dlsim.errors import InputError
from dlsim.papers.cpu_gpu import cells, claims
from dlsim.papers.cpu_gpu.cells import VARIANTS, moldable_jobs, policy_of
from dlsim.papers.cpu_gpu.study import GPUS, SHORT, Study
from dlsim.realtime import Cluster, split_load
from dlsim.study.gantt import task_colors
from dlsim.study.plot import axes_of, cumulative, panels, policy_lines, reach
from dlsim.study.stats import relative_reduction, summary
from dlsim.study.study import fig_readings as draw_readings
from dlsim.study.study import verdicts as verdicts
from dlsim.study.style import INK, style_of

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
    return study.keep("fig1", ax, pd.DataFrame(rows, columns=["place", "part", "start", "end"]))


def fig2(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 2, redrawn: 8 and 16 cores of a CPU, thousands of a GPU, one square each."""
    axs = list(axes) if axes is not None else _three((7.6, 2.9), [1, 1, 2.2])
    counts = (("CPU, 8 cores", 2, 4), ("CPU, 16 cores", 4, 4), ("GPU, 2048 cores", 32, 64))
    for ax, (title, down, across), ink in zip(axs, counts, ("blue", "blue", "green"), strict=True):
        y, x = np.divmod(np.arange(down * across), across)
        cores = [Rectangle((a, b), 0.86, 0.86) for a, b in zip(x, y, strict=True)]
        ax.add_collection(PatchCollection(cores, facecolor=INK[ink], linewidth=0))
        ax.set(xlim=(-0.3, across + 0.1), ylim=(-0.3, down + 0.1), aspect="equal", title=title)
        ax.axis("off")
    table = pd.DataFrame([(t, d * a) for t, d, a in counts], columns=["device", "cores"])
    return study.keep("fig2", axs[0], table)


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
    return study.keep("fig3", ax, table)


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
    return study.keep("gantt", axes[0], pd.concat(parts, names=["policy"]).reset_index())


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
    return study.keep("nodes", axes[0], pd.concat(parts, names=["scheduler"]).reset_index(0))


def fig_slots(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Hadoop's own schedulers: three jobs on four slots, FIFO, fair, capacity."""
    axs = list(axes) if axes is not None else _three((9.6, 2.3), [1, 1, 1])
    colors: Mapping[Any, Any] = task_colors(list(HADOOP.index))
    parts = {}
    for ax, name in zip(axs, ("fifo", "fair", "capacity"), strict=True):
        s = run_slots(HADOOP, 4, name)
        s.check()
        for row in records(s.tasks):
            bar(ax, int(row.slot), row.start, row.end, colors[row.job], str(row.job))
        ends = ", ".join(f"{job} {end:g}" for job, end in s.jobs["end"].items())
        rows_of(ax, [f"slot {k}" for k in range(s.slots)])
        ax.set(title=f"{name}: {ends}", xlabel="time")
        parts[name] = s.tasks
    return study.keep("slots", axs[0], pd.concat(parts, names=["scheduler"]).reset_index(0))


#: What the sources print: saved against GPU only, against the preferred device; gained.
PRINTED = {"gpu-only": 0.39, "preferred": 0.29}
GAINED = 0.42
_RIVALS = ("gpu-only", "preferred", "round-robin", "cpu-only", "mct", "rsc", "asjf")


def fig_learning(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F2: makespan over MCT's, batch after batch, while the history fills."""
    axs = panels(axes, len(study.mixes), (2.7 * len(study.mixes) + 1, 3.6))
    table = claims.over_mct(study.evidence.main)
    table = table.assign(bound=table["bound"] / table["mct"])
    shown = ("history", "preferred", "rsc", "asjf")
    lines = summary(table[table["policy"].isin(shown)], ["mix", "policy", "batch"], "ratio")
    own = table[table["policy"] == "history"]
    counts = own.groupby(["mix", "batch"], as_index=False)["explored"].mean()
    for ax, mix in zip(axs, study.mixes, strict=True):
        policy_lines(lines[lines["mix"] == mix], "batch", legend=ax is axs[0], ax=ax)
        low = own[own["mix"] == mix].groupby("batch")["bound"].mean()
        ax.plot(low.index, low, color="#777777", ls=":", label="lower bound")
        ax.axhline(1, color="#333333", lw=0.8)
        mine = counts[counts["mix"] == mix]
        for batch, count in zip(mine["batch"], mine["explored"], strict=True):
            if count > 0.05:
                ax.annotate(f"{count:.0f}" if count >= 1 else f"{count:.1f}", (batch, 0.01),
                            xycoords=("data", "axes fraction"), size=8, ha="center")  # fmt: skip
        ax.set(title=mix, ylabel="", xlabel="batch (below: explorations)")
    axs[0].set_ylabel("makespan over MCT's")
    axs[0].legend(fontsize=8, loc="upper right")
    axs[0].set_ylim(0.55, min(2.5, 1.05 * float(lines["high"].max())))
    counts = counts.assign(policy="history")
    return study.keep("learning", axs[0],
                lines.merge(counts, on=["mix", "policy", "batch"], how="left"))  # fmt: skip


def fig_savings(study: Study, ax: Axes | None = None) -> Axes:
    """F3: total run time that the history policy saves against each rival, mix by mix."""
    ax = axes_of(ax, (9.6, 4.2))
    table = pd.concat(
        [claims.saved(study.evidence.main, ["history"], rival).assign(rival=rival)
         for rival in _RIVALS], ignore_index=True,
    )  # fmt: skip
    mixes, width = list(study.mixes), 0.8 / len(_RIVALS)
    for i, rival in enumerate(_RIVALS):
        rows = table[table["rival"] == rival].set_index("mix").loc[mixes]
        x = np.arange(len(mixes)) + (i - (len(_RIVALS) - 1) / 2) * width
        ends = reach(rows)
        ax.bar(x, 100 * rows["estimate"], width, color=style_of(rival).color, label=rival,
               hatch=None if i < 4 else "//", edgecolor="white", linewidth=0.4,
               yerr=100 * ends, error_kw={"lw": 0.9, "capsize": 2})  # fmt: skip
    for rival, value in PRINTED.items():
        ax.axhline(100 * value, color=style_of(rival).color, ls="--", lw=1.1)
        side = "bottom" if rival == "gpu-only" else "top"
        said = f"{100 * value:.0f} % (Gregg et al.)\nagainst {rival}"
        ax.text(len(mixes) - 0.58, 100 * value, said, fontsize=7.5,
                color=style_of(rival).color, va=side)  # fmt: skip
    ax.axhline(0, color="#333333", lw=0.8)
    ax.set_xticks(range(len(mixes)), mixes)
    low = max(-160.0, 110 * float(table["low"].min()))
    ax.set(ylabel="% of the total run time saved by history", ylim=(low, 105),
           xlim=(-0.55, len(mixes) + 0.25))  # fmt: skip
    ax.legend(ncols=7, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return study.keep("savings", ax, table.drop(columns="point"))


def variants(study: Study) -> pd.DataFrame:
    """Compare the literal rules with their variants: total run time over the literal rules'."""
    names = [*VARIANTS, "mct", "rsc", "asjf"]
    table = claims.saved(study.evidence.main, names, "history")
    table["more"] = -100 * table["estimate"]
    study.table("variants", table.drop(columns="point"))
    wide = table.pivot(index="policy", columns="mix", values="more")
    return wide.loc[names, list(study.mixes)].map("{:+.1f} %".format)


def fig_ideal(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Excess over the exhaustive schedule of short queues, with exact histories (claim 4)."""
    axs, rows = panels(axes, 2, (10, 3.8)), study.ideal
    if rows is None:
        axs[0].set_title("no exhaustive schedule where GPU jobs slow CPUs down", fontsize=9)
        return study.keep("ideal", axs[0])
    names = [
        name
        for name in ("history", "mct", "rsc", "asjf", "preferred")
        if name in set(rows["policy"])
    ]
    for ax, column, title in zip(
        axs, ("makespan", "completion"), ("makespan", "mean completion time"), strict=True
    ):
        for name in names:
            color, _, dash = style_of(name)
            own = rows.loc[rows["policy"] == name, column]
            cumulative(ax, 100 * own, color=color, ls=dash, label=name)
        ax.axvline(5, color="#777777", lw=0.8, ls=":")
        ax.set(xlabel="% beyond the ideal schedule", title=title, xlim=(-1, 150), ylim=(0, 1.02))
    axs[0].set_ylabel(f"share of the queues of {SHORT} jobs")
    axs[1].legend(loc="lower right", fontsize=8)
    return study.keep("ideal", axs[0], rows)


def fig_moulding(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F4: gain in throughput over the best rival, queue by queue (problem 2)."""
    frame = study.evidence.moulded
    assert frame is not None
    axs = panels(axes, 3, (12.5, 3.8))
    exact, parts = frame[frame["error"] == 0], {}
    colors = dict(zip(study.mixes, sns.color_palette("viridis", len(study.mixes)), strict=True))
    rivals = {
        "best of TORQUE and MCT": claims.EXISTING,
        "MCT that may use both devices": ("mct-any",),
    }
    for ax, (title, names) in zip(axs, rivals.items(), strict=False):
        gains = claims.moulding_gains(exact, names)
        parts[title] = gains
        for mix, own in gains[gains["scheduler"] == "flexible"].groupby("mix", sort=False):
            x = 100 * own["gain"]
            label = f"{mix}, mean {x.mean():.0f} %"
            cumulative(ax, x, color=colors[str(mix)], label=label)
        ax.axvline(
            100 * GAINED, color=INK["vermillion"], ls="--", lw=1.2, label="42 % (Ravi et al.)"
        )
        ax.axvline(0, color="#333333", lw=0.8)
        ax.set(xlabel="% more throughput", title=f"flexible over the\n{title}")
        ax.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    wide = frame.pivot(index=["mix", "replicate", "scheduler"], columns="error", values="makespan")
    cost = (wide[wide.columns[-1]] / wide[0.0] - 1).rename("cost").reset_index()
    for name, ink in (("mct", "vermillion"), ("flexible", "green"), ("area", "blue")):
        cumulative(axs[2], 100 * cost.loc[cost["scheduler"] == name, "cost"], color=INK[ink],
                   label=name)  # fmt: skip
    axs[2].axvline(7, color=INK["vermillion"], ls="--", lw=1.2)
    axs[2].set(
        xlabel="% longer, declared times wrong by up to 20 %",
        title="cost of wrong inputs\n(dashed: 7 %, Ravi et al.)",
    )
    axs[2].legend(fontsize=8, loc="lower right")
    axs[0].set_ylabel("share of the queues")
    table = pd.concat(parts, names=["rivals"]).reset_index(0)
    return study.keep("moulding", axs[0], table)


def fig_fairness(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F5: by how much jobs end later than on their preferred device, under noise."""
    axs = panels(axes, 2, (10, 3.8), sharey=False)
    table = summary(study.noises, ["fair", "cv", "above"], "share")
    late = study.noises.groupby(["fair", "cv"], as_index=False)[["late", "unexcused"]].mean()
    inks = sns.color_palette("viridis", table["cv"].nunique())
    titles = {
        "local": "behind what was assigned there (F1)",
        "global": "in the all-preferred schedule (F2)",
    }
    for ax, (fair, title) in zip(axs, titles.items(), strict=True):
        for ink, (cv, rows) in zip(inks, table[table["fair"] == fair].groupby("cv"), strict=True):
            own = late[(late["fair"] == fair) & (late["cv"] == cv)]
            missed = 100 * float(own["unexcused"].iloc[0])
            rows = rows[rows["above"] > 0]
            ax.plot(rows["above"], 100 * rows["estimate"], color=ink,
                    label=f"cv {cv:g}; under neither exception: {missed:.1f} %")  # fmt: skip
            ax.fill_between(
                rows["above"], 100 * rows["low"], 100 * rows["high"], color=ink, alpha=0.15
            )
        ax.set(
            xscale="log", xlabel="late by more than x run times there", title=title, ylim=(0, None)
        )
        ax.legend(fontsize=8)
    axs[0].set_ylabel(f"% of the jobs ({study.mixes[0]})")
    kept = table.merge(late, on=["fair", "cv"], how="left")
    return study.keep("fairness", axs[0], kept)


def fig_even(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F6: what one cold batch gains, by how applications differ and how often they return."""
    axs = panels(axes, 2, (10.5, 3.8))
    keys, parts = ["spread", "repeats"], {}
    for ax, rival in zip(axs, ("preferred", "gpu-only"), strict=True):
        table = relative_reduction(study.even, "makespan", "policy", "history", rival, at=keys)
        parts[rival] = table
        sure = (table["low"] > 0) | (table["high"] < 0)
        text = (100 * table["estimate"]).map("{:.0f}".format)
        table["text"] = text.where(sure, "(" + text + ")")
        grids = [
            table.pivot(index="repeats", columns="spread", values=c) for c in ("estimate", "text")
        ]
        sns.heatmap(100 * grids[0].iloc[::-1], annot=grids[1].iloc[::-1], fmt="", cmap="RdBu",
                    center=0, vmin=-60, vmax=60, ax=ax, cbar=ax is axs[1],
                    cbar_kws={"label": "% saved by history"})  # fmt: skip
        ax.set(title=f"against {rival}", xlabel="spread of ln(speed-up)", ylabel="")
    axs[0].set_ylabel("jobs per application")
    table = pd.concat(parts, names=["rival"]).reset_index(0).drop(columns="text")
    return study.keep("even", axs[0], table)


def break_even(study: Study) -> pd.DataFrame:
    """Tell after which batch a cold start has paid, learning included."""
    mean = study.evidence.main.groupby(["mix", "policy", "batch"])["makespan"].mean()
    total = mean.groupby(level=["mix", "policy"]).cumsum().unstack("policy")
    rivals = ["gpu-only", "cpu-only", "preferred", "round-robin", "mct", "rsc", "asjf"]
    rows = {}
    for mix in study.mixes:
        own = total.loc[mix]
        rows[mix] = {rival: _first_stay(own["history"] < own[rival]) for rival in rivals}
    table = pd.DataFrame(rows).T.rename_axis("mix")
    study.table("break-even", table.reset_index())
    return table


def _first_stay(below: "pd.Series[bool]") -> str:
    stays = below[::-1].cummin()[::-1]
    return str(int(np.argmax(stays)) + 1) if stays.any() else "never"


def fig_poison(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F7: what is left of wrong first samples, batch after batch."""
    axs = panels(axes, len(study.mixes), (2.6 * len(study.mixes) + 1, 3.4))
    excess = claims.excess_of_poison(study.evidence.poisoned)
    table = summary(excess, ["mix", "wrong", "batch"], "excess")
    inks = sns.color_palette("flare", table["wrong"].nunique())
    for ax, mix in zip(axs, study.mixes, strict=True):
        for ink, (wrong, rows) in zip(
            inks, table[table["mix"] == mix].groupby("wrong"), strict=True
        ):
            ax.plot(
                rows["batch"], 100 * rows["estimate"], "o-", color=ink, label=f"{wrong:g} times"
            )
            ax.fill_between(
                rows["batch"], 100 * rows["low"], 100 * rows["high"], color=ink, alpha=0.15
            )
        ax.axhline(0, color="#333333", lw=0.8)
        ax.set(title=mix, xlabel="batch")
    axs[0].set_ylabel("% longer than with right samples")
    axs[0].legend(fontsize=8)
    return study.keep("poison", axs[0], table)


def fig_assumption(study: Study, ax: Axes | None = None) -> Axes:
    """Claim 13: what the CPU thread of a GPU job costs, were it to keep a core busy."""
    ax, table = axes_of(ax, (6.8, 3.6)), claims.thread_is_free(study.evidence)
    assert table is not None
    for share, ink in zip(sorted(set(table["share"])), (INK["sky"], INK["blue"]), strict=False):
        rows = table[table["share"] == share]
        place = np.arange(len(rows)) + (0.1 if ink == INK["blue"] else -0.1)
        ends = reach(rows)
        ax.errorbar(place, 100 * rows["estimate"], yerr=100 * ends, fmt="o", color=ink, capsize=3,
                    label=f"one core of {1 / share:.0f}")  # fmt: skip
    ax.axhspan(-2, 2, color="#BFE3D6", alpha=0.5, lw=0, label="negligible: under 2 %")
    ax.set_xticks(range(len(study.mixes)), study.mixes)
    ax.set(ylabel="% longer", xlim=(-0.5, len(study.mixes) - 0.5))
    ax.legend(fontsize=8, loc="upper left", ncols=3)
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    return study.keep("assumption", ax, table.drop(columns="point"))


def fig_tradeoff(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """T2 as a picture: mean wait against makespan of every policy, over MCT's."""
    axs = panels(axes, len(study.mixes), (2.5 * len(study.mixes) + 1, 3.4))
    table = tradeoff(study)
    for ax, mix in zip(axs, study.mixes, strict=True):
        for name in ("history", "mct", "preferred", "rsc", "asjf"):
            row = table.loc[[(mix, name)]]
            color, marker, _ = style_of(name)
            ax.plot(row["wait"], row["makespan"], marker, color=color, ms=8, label=name)
        ax.axhline(1, color="#999999", lw=0.7)
        ax.axvline(1, color="#999999", lw=0.7)
        ax.set(title=mix, xlabel="mean wait over MCT's")
    axs[0].set_ylabel("makespan over MCT's")
    axs[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    return study.keep("tradeoff", axs[0], table.reset_index())


def tradeoff(study: Study) -> pd.DataFrame:
    """T2: makespan, mean wait and mean completion time of every policy over those of MCT."""
    columns = {"makespan": "makespan", "mean_wait": "wait", "mean_completion": "completion"}
    sums = study.evidence.main.groupby(["mix", "policy"], sort=False)[list(columns)].sum()
    mct = sums.xs("mct", level="policy")
    return sums.div(mct, level="mix").rename(columns=columns)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """The verdict of every claim that the engine's switches decide, under every reading."""
    few = study.size.reading_mixes < len(study.mixes)
    more = f"others: {study.size.reading_mixes} mixes, " if few else "others: "
    return draw_readings(study, f"claims of paper C; {more}{study.size.reading_runs} runs", ax)


#: Pipelines drawn: streams and copy engines.
PIPES = ((1, 2), (2, 2), (3, 2), (3, 1))
#: Start-ups of equal devices whose split is the one-round condition of paper I.
RELEASES = (0.0, 8.0, 16.0, 30.0)


def fig_overlap(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F8: five chunks with one to three streams, one and two copy engines; the speed-up."""
    if axes is None:
        figure = plt.figure(figsize=(11.5, 5.2), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=[1.5, 1])
        left, right = halves
        axes = [*left.subplots(len(PIPES), 1, sharex=True), right.subplots()]
    chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    for (streams, engines), ax in zip(PIPES, axes, strict=False):
        t = run_chunks(chunks, Gpu(streams, engines))
        t.check()
        lanes = ["h2d", "map", "d2h"] if engines == 2 else ["copy", "map"]
        for op in records(t.ops):
            lane = op.stage if op.stage in lanes else "copy"
            bar(ax, lanes.index(lane), op.start, op.end, STAGE_INK[op.stage], str(op.chunk))
        rows_of(ax, lanes)
        many = "" if streams == 1 else "s"
        ax.set_title(
            f"{streams} stream{many}, {engines} copy engine{'s' * (engines > 1)}: {t.makespan}",
            fontsize=10,
        )
    axes[0].legend(handles=[Patch(facecolor=c, label=s) for s, c in STAGE_INK.items()],
                   fontsize=8, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.5))  # fmt: skip
    axes[len(PIPES) - 1].set_xlabel("time (five chunks of 3 + 1 + 2)")
    return study.keep("overlap", axes[0], _speed_up(study, axes[len(PIPES)]))


def _speed_up(study: Study, ax: Axes) -> pd.DataFrame:
    frame = study.evidence.pipelines
    assert frame is not None
    keys = ["profile", "engines", "replicate"]
    one = frame[frame["streams"] == 1].set_index(keys)["makespan"].rename("one")
    table = frame.join(one, on=keys)
    table = table.assign(speed_up=table["one"] / table["makespan"])
    lines = summary(table, ["profile", "engines", "streams"], "speed_up")
    for profile, ink in zip(cells.PROFILES, sns.color_palette("colorblind"), strict=False):
        for engines, dash in ((1, ":"), (2, "-")):
            rows = lines[(lines["profile"] == profile) & (lines["engines"] == engines)]
            times = "/".join(f"{x:g}" for x in cells.PROFILES[profile])
            label = f"{profile} ({times})" if engines == 2 else None
            ax.plot(rows["streams"], rows["estimate"], dash, marker="o", color=ink, label=label)
    ax.axhline(2.5, color=INK["vermillion"], ls="--", lw=1.1)
    ax.text(1, 2.53, "2.5 (Chen et al.)", fontsize=8, color=INK["vermillion"])
    ax.set(xlabel="streams k (dotted: one copy engine)", ylabel="speed-up over k = 1")
    ax.set(xticks=[1, 2, 3, 4], ylim=(0.4, 3.0))
    ax.legend(
        fontsize=8, title="copy in/map/copy out", title_fontsize=8, loc="lower center", ncols=2
    )
    return lines


def fig_issue(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F9: slowdown over a GPU with many queues, for many interleavings of the threads' calls."""
    axs, frame = panels(axes, 4, (13, 3.4)), study.issued
    cases = list(frame.groupby(["queues", "engines"], sort=False))
    inks = {"scheduled": INK["green"], "depth": INK["vermillion"], "breadth": INK["orange"]}
    for ax, (case, rows) in zip(axs, cases, strict=True):
        queues, engines = map(str, case)
        drawn = rows[rows["order"] == "threads"]["slowdown"]
        ax.hist(drawn, bins=np.linspace(0.95, 2.15, 49).tolist(), color=INK["sky"],
                weights=np.full(len(drawn), 100 / len(drawn)))  # fmt: skip
        for name, ink in inks.items():
            mean = float(rows.loc[rows["order"] == name, "slowdown"].mean())
            ax.axvline(mean, color=ink, lw=2, ls="-" if name == "scheduled" else "--", label=name)
        words = {"per-engine": "a queue per engine", "single": "one queue"}[queues]
        ax.set(title=f"{words}, {engines} copy engine{'s' * (engines != '1')}", xlabel="slowdown")
    axs[0].set_ylabel("% of the interleavings")
    axs[0].legend(fontsize=8, title="one thread issues", title_fontsize=8, loc="center right")
    table = frame.groupby(["queues", "engines", "order"])["slowdown"].describe().reset_index()
    return study.keep("issue", axs[0], table)


def fig_optimiser(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F10: rounds of the optimiser against equal finish, the one-round condition."""
    axes = panels(axes, 2, (11, 3.8), sharey=False)
    frame = study.evidence.adapted
    assert frame is not None
    table = summary(frame, ["case", "round"], "excess")
    for ink, (case, rows) in zip(
        sns.color_palette("colorblind"), table.groupby("case", sort=False), strict=False
    ):
        axes[0].plot(rows["round"], 100 * rows["estimate"], "o-", ms=4, color=ink, label=case)
        axes[0].fill_between(
            rows["round"], 100 * rows["low"], 100 * rows["high"], color=ink, alpha=0.12
        )
    axes[0].set_yscale("symlog", linthresh=1)
    axes[0].set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes[0].set(xlabel="round", ylabel="% beyond equal finish (linear up to 1)", ylim=(-0.1, 600))
    axes[0].legend(fontsize=7.5, ncols=2, loc="upper right")
    _one_round(axes[1])
    return study.keep("optimiser", axes[0], table)


def _one_round(ax: Axes) -> None:
    """Draw equal devices with start-ups r_i: their ideal is the optimum of paper I."""
    work, unit = 20.0, 3.0
    split = adapt_split(work, RELEASES, [unit] * len(RELEASES), 8)
    optimum = split_load(work, list(RELEASES), Cluster(len(RELEASES), 0.0, unit), "exact")
    times = split.rounds.pivot(index="round", columns="device", values="time")
    for device, line in times.items():
        ax.plot(
            line.index,
            line,
            "o-",
            ms=4,
            lw=1.2,
            label=f"device {device}, $r$ = {RELEASES[int(str(device))]:g}",
        )
    ax.axhline(optimum.completion, color="black", ls="--", lw=1.2,
               label=f"optimum of paper I's engine: {optimum.completion:.2f}")  # fmt: skip
    ax.set(xlabel="round", ylabel="finish")
    ax.legend(fontsize=8)


def fig_memory(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Claim 16: inputs beyond the GPU's memory and the host's: time per unit, memory used."""
    axes = panels(axes, 2, (10, 3.5), sharey=False)
    table = study.evidence.memory
    assert table is not None
    inks = {"in-core": INK["green"], "out-of-core": INK["orange"], "disk": INK["vermillion"]}
    axes[0].plot(table["size"], table["per_unit"], color="#999999", lw=1)
    for mode, rows in table.groupby("mode", sort=False):
        axes[0].plot(rows["size"], rows["per_unit"], "o", color=inks[str(mode)], label=mode)
    axes[0].set(ylabel="time per unit of input", ylim=(0, None))
    axes[0].legend(fontsize=8)
    for name, marker in (("gpu", "o-"), ("host", "s--")):
        axes[1].plot(table["size"], 100 * table[name], marker, label=f"{name} memory")
    axes[1].axhline(100, color="#333333", lw=0.8)
    axes[1].set(ylabel="peak use, %", ylim=(0, 110))
    axes[1].legend(fontsize=8)
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.axvline(1 / 1.25, color="#777777", ls=":", lw=1)
        ax.axvline(cells.HOST / 1.25, color="#777777", ls=":", lw=1)
        ax.set_xlabel("input over the GPU's memory")
    return study.keep("memory", axes[0], table)


def fig_mapreduce(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Claims 14 and 15: a word count on CPUs, GPUs and both, with and without overlap."""
    axes = panels(axes, 2, (10, 3.6), sharey=False)
    cpus, parts = claims.counted(study.words, 3, "cpu").iloc[:, 0], {}
    for devices, ink in (("gpu", INK["blue"]), ("both", INK["green"])):
        times = {streams: claims.counted(study.words, streams, devices) for streams in (3, 1)}
        for streams, dash in ((3, "-"), (1, ":")):
            rows = claims.by_gpus(times[streams].rdiv(cpus, axis=0))
            parts[(devices, streams)] = rows.drop(columns="point")
            name = {"gpu": "GPUs only", "both": "4 CPUs and GPUs"}[devices]
            name += ", no overlap" * (streams == 1)
            axes[0].plot(rows["gpus"], rows["estimate"], dash, marker="o", color=ink, label=name)
            axes[0].fill_between(rows["gpus"], rows["low"], rows["high"], color=ink, alpha=0.12)
        gain = 100 * (times[1] / times[3] - 1).mean()
        axes[1].plot(gain.index, gain, "o-", color=ink)
    axes[0].axhline(1, color="#333333", lw=0.8)
    axes[0].set(ylabel="speed-up over 4 CPUs", ylim=(0, None))
    axes[1].set(ylabel="% more throughput by overlap", ylim=(0, None))
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.set_xticks(GPUS, [str(n) for n in GPUS])
        ax.set_xlabel("GPUs on four nodes")
    axes[0].legend(fontsize=8)
    table = pd.concat(parts, names=["devices", "streams"]).reset_index([0, 1])
    return study.keep("mapreduce", axes[0], table)


def fig_amdahl(
    study: Study, parallel: Sequence[float] = (0.5, 0.9, 0.99, 0.999), ax: Axes | None = None
) -> Axes:
    """Amdahl's law (section 3): what cores can give a program with serial parts."""
    ax, cores = axes_of(ax, (6.8, 3.8)), np.geomspace(1, 4096, 61).tolist()
    rows = []
    for ink, p in zip(sns.color_palette("viridis", len(parallel)), parallel, strict=True):
        bounds = [amdahl_bound(p, n) for n in cores]
        limit = amdahl_bound(p, np.inf)
        ax.plot(cores, bounds, color=ink, label=f"{100 * p:g} %, limit {limit:.4g}")
        rows += [(p, n, bound) for n, bound in zip(cores, bounds, strict=True)]
    table = pd.DataFrame(rows, columns=["parallel", "cores", "bound"])
    for count, name in ((8, "CPU, 8"), (16, "16"), (2048, "GPU, 2048")):
        ax.axvline(count, color="#999999", ls=":", lw=1)
        ax.text(count * 1.05, 1.0, name, fontsize=8)
    ax.set(xscale="log", yscale="log", xlabel="cores", ylabel="speed-up", ylim=(0.9, 1200))
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    ax.legend(title="runs in parallel", title_fontsize=8, fontsize=8, loc="upper left")
    return study.keep("amdahl", ax, table)


#: What is run, in this order.
QUEUE = ("mandelbrot", "n-body", "black-scholes", "matmul") * 3


class Session(NamedTuple):
    """What a live run did, and where."""

    run: live.LiveRun
    devices: tuple[live.Slot, ...]
    said: str


def record(
    queue: Sequence[str] = QUEUE, factor: float = 1.0, policy: str = "history", gpu: str = "auto",
    cpu: str = "numpy", crew: str = "threads",
) -> Session:  # fmt: skip
    """Run kernels on the real devices of this machine under a policy, from an empty history."""
    devices = live.slots(gpu, cpu)
    kernels = [kernel_named(name) for name in queue]
    jobs = [live.LiveJob(k, max(k.tiny, round(factor * k.size))) for k in kernels]
    with CREWS[crew]([slot.name for slot in devices]) as workers:
        run = live.run_live(jobs, workers, devices, policy)
    return Session(run, devices, _said(devices))


def _said(devices: Sequence[live.Slot]) -> str:
    played = "; ".join(f"{slot.name}: {slot.note}" for slot in devices)
    if devices[0].backend == "threads" and backends.best_gpu() == "threads":
        played += (
            ". Neither a CUDA device nor an OpenCL platform is here (extra opencl), so that run is"
            " skipped and all CPU threads play the GPU"
        )
    return played + "."


def fig_live(study: Study, session: Session, ax: Axes | None = None) -> Axes:
    """A live run as a timing diagram, each bar with its kernel and rule."""
    ax, jobs = axes_of(ax, (9.6, 2.4)), session.run.jobs
    names = [slot.name for slot in session.devices]
    colors = task_colors(list(jobs["app"]))
    for row in records(jobs):
        text = f"{str(row.app).partition('[')[0]}\n{row.rule}"
        wide = row.end - row.start > 0.06 * session.run.makespan
        bar(ax, names.index(row.device), row.start, row.end, colors[row.app], text if wide else "")
    rows_of(ax, [f"{slot.name}\n{slot.backend}" for slot in session.devices])
    ax.set(
        xlabel="seconds",
        title=f"{len(jobs)} real kernels, last end after {session.run.makespan:.2f} s",
    )
    return study.keep("live", ax)


def learned(session: Session) -> pd.DataFrame:
    """Return what a live run taught: mean time, deviation and count by kernel and class."""
    table = session.run.history.table()
    agrees = session.run.jobs.groupby("app")["agrees"].all()
    return table.assign(agrees=table["app"].map(agrees))


def audited(session: Session) -> str:
    """Compute every decision of a live run again from its log, by the pure policy."""
    count, other = len(list(session.run.log.entries())), len(session.run.log.audit())
    return f"{count} decisions logged; computed again from the log, {count - other} are the same"


#: Mechanism, section of the paper, what runs it, and the picture or table, if there is one.
ROWS = (
    ("main queue, a sub-queue per device, rules 1 to 5", "5", "rules.five", "fig_gantt"),
    ("history: count, mean, deviation; persistent", "5, rule 5", "store.Store", "learned"),
    ("several CPUs and GPUs, history per class", "5", "model.Machine", "fig_gantt"),
    ("noise and outliers of run times", "5", "workload.draw", "fig_poison"),
    ("fairness in both readings, two exceptions", "5", "fairness.Fairness", "fig_fairness"),
    ("explorations counted, once per class", "5", "rules.rule_2", "fig_learning"),
    ("GPU only, preferred device, blind round robin", "7", "rivals.round_robin", "fig_savings"),
    ("MCT by declared times", "6, 7", "rivals.mct", "fig_learning"),
    ("TORQUE: one line, or a line per class", "6", "rivals.strict", "fig_nodes"),
    ("RSC, RSC-strict, RSA, ASJF (our reading)", "7", "rivals.speed_up", "fig_tradeoff"),
    ("exhaustive ideal, fractional bound", "7", "ideal.ideal_plan", "fig_ideal"),
    ("problem 2: nodes, moldable jobs, both devices", "2, 7", "moldable.run_moldable", "fig_nodes"),
    ("batches that arrive at random, no preemption", "5 A", "engine.simulate", ""),
    ("the CPU thread of a GPU job", "5 A", "model.Reading", "fig_assumption"),
    ("pipeline: streams and copy engines", "2", "pipeline.run_chunks", "fig_overlap"),
    ("inputs beyond GPU and host memory", "2", "outofcore.cut_input", "fig_memory"),
    ("operation scheduler: order of issue", "2", "issue.issue_order", "fig_issue"),
    ("configuration optimiser", "2", "optimiser.adapt_split", "fig_optimiser"),
    ("Amdahl's law", "3", "optimiser.amdahl_bound", "fig_amdahl"),
    ("MapReduce on nodes; Hadoop's slots", "4", "mapreduce.run_mapreduce", "fig_mapreduce"),
    ("a version per device, chosen after the device", "5", "mapdata.MapReduce", "fig_live"),
    ("throughput, makespan, wait, completion, use", "2, 7", "engine.Schedule", "tradeoff"),
)


def inventory() -> pd.DataFrame:
    """T1: list every mechanism of the paper with what runs it and what shows it.

    Examples
    --------
    >>> inventory().loc[8, "runs in"]
    'rivals.mct'
    """
    for _, _, path, _ in ROWS:
        module, name = path.split(".")
        if not hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name):
            raise InputError(f"dlsim.cpugpu.{module} must hold {name}, which the inventory names")
    columns = ["mechanism", "section", "runs in", "shown by"]
    return pd.DataFrame(ROWS, columns=columns, index=pd.RangeIndex(1, len(ROWS) + 1, name="row"))

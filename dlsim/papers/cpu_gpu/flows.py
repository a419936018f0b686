"""Pictures of paper C's contributions: overlap, issue order, optimiser, memory, MapReduce."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from dlsim.cpugpu.optimiser import adapt_split, amdahl_bound
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.papers.cpu_gpu import claims, systems
from dlsim.papers.cpu_gpu.diagrams import STAGE_INK, bar, records, rows_of
from dlsim.papers.cpu_gpu.study import GPUS, Study
from dlsim.papers.inserted_idle_time.figures import panels_of
from dlsim.realtime import Cluster, split_load
from dlsim.study.experiment import keep
from dlsim.study.stats import summary
from dlsim.study.style import INK, axes_of

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
    return keep(study, "overlap", axes[0], _speed_up(study, axes[len(PIPES)]))


def _speed_up(study: Study, ax: Axes) -> pd.DataFrame:
    frame = study.evidence.pipelines
    assert frame is not None
    keys = ["profile", "engines", "replicate"]
    one = frame[frame["streams"] == 1].set_index(keys)["makespan"].rename("one")
    table = frame.join(one, on=keys)
    table = table.assign(speed_up=table["one"] / table["makespan"])
    lines = summary(table, ["profile", "engines", "streams"], "speed_up")
    for profile, ink in zip(systems.PROFILES, sns.color_palette("colorblind"), strict=False):
        for engines, dash in ((1, ":"), (2, "-")):
            rows = lines[(lines["profile"] == profile) & (lines["engines"] == engines)]
            times = "/".join(f"{x:g}" for x in systems.PROFILES[profile])
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
    panels, frame = panels_of(axes, 4, (13, 3.4)), study.issued
    cases = list(frame.groupby(["queues", "engines"], sort=False))
    inks = {"scheduled": INK["green"], "depth": INK["vermillion"], "breadth": INK["orange"]}
    for ax, (case, rows) in zip(panels, cases, strict=True):
        queues, engines = map(str, case)
        drawn = rows[rows["order"] == "threads"]["slowdown"]
        ax.hist(drawn, bins=np.linspace(0.95, 2.15, 49).tolist(), color=INK["sky"],
                weights=np.full(len(drawn), 100 / len(drawn)))  # fmt: skip
        for name, ink in inks.items():
            mean = float(rows.loc[rows["order"] == name, "slowdown"].mean())
            ax.axvline(mean, color=ink, lw=2, ls="-" if name == "scheduled" else "--", label=name)
        words = {"per-engine": "a queue per engine", "single": "one queue"}[queues]
        ax.set(title=f"{words}, {engines} copy engine{'s' * (engines != '1')}", xlabel="slowdown")
    panels[0].set_ylabel("% of the interleavings")
    panels[0].legend(fontsize=8, title="one thread issues", title_fontsize=8, loc="center right")
    table = frame.groupby(["queues", "engines", "order"])["slowdown"].describe().reset_index()
    return keep(study, "issue", panels[0], table)


def fig_optimiser(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F10: rounds of the optimiser against equal finish, the one-round condition."""
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")[1].tolist()
    frame = study.evidence.adapted
    assert frame is not None
    assert axes is not None
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
    return keep(study, "optimiser", axes[0], table)


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
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")[1].tolist()
    table = study.evidence.memory
    assert table is not None
    assert axes is not None
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
        ax.axvline(systems.HOST / 1.25, color="#777777", ls=":", lw=1)
        ax.set_xlabel("input over the GPU's memory")
    return keep(study, "memory", axes[0], table)


def fig_mapreduce(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Claims 14 and 15: a word count on CPUs, GPUs and both, with and without overlap."""
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")[1].tolist()
    assert axes is not None
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
    return keep(study, "mapreduce", axes[0], table)


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
    return keep(study, "amdahl", ax, table)

"""Paper C's drawings made from runs, its live run, and the inventory of its mechanisms."""

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
from dlsim.cpugpu.optimiser import adapt_split
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.slots import run_slots
from dlsim.errors import InputError
from dlsim.papers.cpu_gpu import cells, claims
from dlsim.papers.cpu_gpu.cells import VARIANTS, moldable_jobs, policy_of
from dlsim.papers.cpu_gpu.study import Study
from dlsim.realtime import Cluster, split_load
from dlsim.study.gantt import task_colors
from dlsim.study.plot import axes_of, cumulative, panels
from dlsim.study.stats import summary
from dlsim.study.study import verdicts as verdicts
from dlsim.study.style import INK

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


#: What the second source prints of its gain.
GAINED = 0.42


def variants(study: Study) -> pd.DataFrame:
    """Compare the literal rules with their variants: total run time over the literal rules'."""
    names = [*VARIANTS, "mct", "rsc", "asjf"]
    table = claims.saved(study.evidence.main, names, "history")
    table["more"] = -100 * table["estimate"]
    study.table("variants", table.drop(columns="point"))
    wide = table.pivot(index="policy", columns="mix", values="more")
    return wide.loc[names, list(study.mixes)].map("{:+.1f} %".format)


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


def tradeoff(study: Study) -> pd.DataFrame:
    """T2: makespan, mean wait and mean completion time of every policy over those of MCT."""
    columns = {"makespan": "makespan", "mean_wait": "wait", "mean_completion": "completion"}
    sums = study.evidence.main.groupby(["mix", "policy"], sort=False)[list(columns)].sum()
    mct = sums.xs("mct", level="policy")
    return sums.div(mct, level="mix").rename(columns=columns)


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
    ("main queue, a sub-queue per device, rules 1 to 5", "5", "rules.five", "gantt"),
    ("history: count, mean, deviation; persistent", "5, rule 5", "store.Store", "learned"),
    ("several CPUs and GPUs, history per class", "5", "model.Machine", "gantt"),
    ("noise and outliers of run times", "5", "workload.draw", "poison"),
    ("fairness in both readings, two exceptions", "5", "fairness.Fairness", "fairness"),
    ("explorations counted, once per class", "5", "rules.rule_2", "learning"),
    ("GPU only, preferred device, blind round robin", "7", "rivals.round_robin", "savings"),
    ("MCT by declared times", "6, 7", "rivals.mct", "learning"),
    ("TORQUE: one line, or a line per class", "6", "rivals.strict", "nodes"),
    ("RSC, RSC-strict, RSA, ASJF (our reading)", "7", "rivals.speed_up", "tradeoff"),
    ("exhaustive ideal, fractional bound", "7", "ideal.ideal_plan", "ideal"),
    ("problem 2: nodes, moldable jobs, both devices", "2, 7", "moldable.run_moldable", "nodes"),
    ("batches that arrive at random, no preemption", "5 A", "engine.simulate", ""),
    ("the CPU thread of a GPU job", "5 A", "model.Reading", "assumption"),
    ("pipeline: streams and copy engines", "2", "pipeline.run_chunks", "overlap"),
    ("inputs beyond GPU and host memory", "2", "outofcore.cut_input", "memory"),
    ("operation scheduler: order of issue", "2", "issue.issue_order", "issue"),
    ("configuration optimiser", "2", "optimiser.adapt_split", "optimiser"),
    ("Amdahl's law", "3", "optimiser.amdahl_bound", "amdahl"),
    ("MapReduce on nodes; Hadoop's slots", "4", "mapreduce.run_mapreduce", "mapreduce"),
    ("a version per device, chosen after the device", "5", "mapdata.MapReduce", "live"),
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

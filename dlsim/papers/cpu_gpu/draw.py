"""Paper C's drawings made from runs, its live run, and the inventory of its mechanisms."""

import importlib
from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu import live, simulate, workload
from dlsim.cpugpu.mapdata import map_block, partition_of
from dlsim.cpugpu.mapreduce import run_mapreduce, split_text, word_count
from dlsim.cpugpu.moldable import NodePool, run_moldable
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.slots import run_slots
from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.papers.cpu_gpu.cells import NAMED, moldable_jobs
from dlsim.papers.cpu_gpu.study import Study
from dlsim.study.gantt import plot_blocks, task_colors
from dlsim.study.plot import axes_of, panels
from dlsim.study.style import INK

#: The sentence of Figure 3, and how it is cut.
SENTENCE, MAPS, PARTS = "the quick fox the dog the fox", 3, 2
#: Policies whose schedules are drawn.
DRAWN = ("history", "mct", "preferred", "round-robin", "rsc", "asjf")
#: Schedulers of moldable jobs that are drawn.
MOULDED = ("torque", "mct", "mct-any", "flexible")
#: Jobs and queues of Hadoop's three schedulers (four slots).
HADOOP = pd.DataFrame(
    {"tasks": [8, 4, 4], "queue": ["x", "x", "y"], "share": [0.25, 0.25, 0.75]},
    index=pd.Index(["A", "B", "C"], name="job"),
)
#: Colours of the stages of a chunk.
STAGE_INK = {"h2d": INK["sky"], "map": INK["green"], "d2h": INK["orange"]}


def _ended(name: str, s: Any) -> str:
    return f"{name}: last end {s.makespan:.0f} s, mean wait {s.mean_wait:.0f} s"


def fig1(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 1, redrawn: the parallel parts of a program run on the GPU, between copies."""
    ax = axes_of(ax, (7.6, 2.3))
    serial, chunks, at = (6.0, 4.0, 5.0), equal_chunks(1, h2d=2, map=4, d2h=1), 0.0
    rows = []
    for number, length in enumerate(serial):
        rows.append(("CPU", "serial", at, at + length))
        at += length
        if number < len(serial) - 1:
            ops: Any = run_chunks(chunks, Gpu(1)).ops
            rows += [("GPU", r.stage, at + r.start, at + r.end) for r in ops.itertuples()]
            at = rows[-1][3]
    table = pd.DataFrame(rows, columns=["place", "part", "start", "end"])
    inks, words = STAGE_INK | {"serial": INK["blue"]}, {"h2d": "copy", "d2h": "copy"}
    lanes = {"CPU": "CPU: rest of the program", "GPU": "GPU: parallel parts"}
    texts = table["part"].replace(words)
    plot_blocks(ax, table, lanes, table["place"], "part", inks, texts, at)
    ax.set(xlabel="time", title="The GPU takes the parallel parts of a program")
    return study.keep("fig1", ax, table)


def fig2(study: Study) -> Axes:
    """Figure 2, redrawn: 8 and 16 cores of a CPU, thousands of a GPU, one square each."""
    axs = panels(None, 3, (7.6, 2.9), sharey=False, width_ratios=[1, 1, 2.2])
    counts = (("CPU, 8 cores", 2, 4), ("CPU, 16 cores", 4, 4), ("GPU, 2048 cores", 32, 64))
    for ax, (title, down, across), ink in zip(axs, counts, ("blue", "blue", "green"), strict=True):
        y, x = np.divmod(np.arange(down * across), across)
        cores = [Rectangle((a, b), 0.86, 0.86) for a, b in zip(x, y, strict=True)]
        ax.add_collection(PatchCollection(cores, facecolor=INK[ink], linewidth=0))
        ax.set(xlim=(-0.3, across + 0.1), ylim=(-0.3, down + 0.1), aspect="equal", title=title)
        ax.axis("off")
    table = pd.DataFrame([(t, d * a) for t, d, a in counts], columns=["device", "cores"])
    return study.keep("fig2", axs[0], table)


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
        box = {"boxstyle": "round", "facecolor": ink, "edgecolor": "#555555"}
        for (x, y), text in zip(places[name], texts, strict=True):
            shown = text.replace(" the", "\nthe").lstrip() if name == "input" else text
            ax.text(x, y, shown, ha="center", va="center", fontsize=8, zorder=3, bbox=box)
    arrow = {"arrowstyle": "->", "color": "#888888", "lw": 0.8}
    for one, other in pairwise(places.values()):
        for i, a in enumerate(one):
            for j, b in enumerate(other):
                if len(one) != len(other) or i == j:
                    ends = (b[0] - 0.62, b[1]), (a[0] + 0.62, a[1])
                    ax.annotate("", *ends, arrowprops=arrow)
    ax.set(xlim=(-1, 9.4), ylim=(-6.2, 0.8))
    ax.axis("off")
    table = pd.DataFrame(
        [(name, i, text) for name, texts in steps.items() for i, text in enumerate(texts)],
        columns=["step", "box", "text"],
    )
    return study.keep("fig3", ax, table)


def _depth(jobs: pd.DataFrame, come: str, go: str) -> tuple[list[float], list[int]]:
    """Return how many jobs wait from one instant of theirs to another, as steps."""
    rows = jobs[jobs[go] > jobs[come]]
    steps = rows[come].value_counts().sub(rows[go].value_counts(), fill_value=0)
    return [0.0, *steps.sort_index().index], [0, *steps.sort_index().cumsum().astype(int)]


def fig_gantt(study: Study, policies: Sequence[str] = DRAWN) -> Axes:
    """F1: one queue under several policies, each bar with its rule; who waits where, below."""
    table = study.setting._replace(apps=5).applications(study.mixes[0], study.seed)
    jobs = workload.draw(table, 12, study.seed, study.cv, 0.0)
    down = (len(policies) + 1) // 2
    grid = np.array(panels(
        None, 2, (12.5, 3 * down), False, 2 * down, height_ratios=[5, 2] * down, sharex=True,
    )).reshape(down, 2, 2)  # fmt: skip
    runs = {p: simulate(jobs, study.setting.machine, NAMED[p]) for p in policies}
    until, colors = 1.02 * max(s.makespan for s in runs.values()), task_colors(sorted(table.index))
    for k, (name, s) in enumerate(runs.items()):
        ax, below = grid[k // 2, :, k % 2]
        s.check()
        devices = {device: device for device in s.machine.devices}
        texts = s.jobs["app"] + "\n" + s.jobs["rule"]
        plot_blocks(ax, s.jobs, devices, s.jobs["device"], "app", colors, texts, until)
        ax.set_title(_ended(name, s), fontsize=10)
        waits = {"main": _depth(s.jobs, "arrival", "decided")}
        for kind in ("gpu", "cpu"):
            own = s.jobs[s.jobs["device"].str.startswith(kind)]
            waits[kind] = _depth(own, "decided", "start")
        for (queue, steps), ink in zip(waits.items(), ("black", "blue", "vermillion"), strict=True):
            below.step(*steps, where="post", color=INK[ink], lw=1.4, label=queue)
        below.set_ylabel("queued", fontsize=8)
        below.set_ylim(-0.1, max(1.1, below.get_ylim()[1]))
        below.yaxis.set_major_locator(MaxNLocator(integer=True))
    grid[0, 1, 0].legend(loc="upper right", fontsize=8, ncols=3)
    for below in grid[-1, 1]:
        below.set_xlabel("seconds")
    kept = pd.concat({name: s.jobs for name, s in runs.items()}, names=["policy"])
    return study.keep("gantt", ax, kept.reset_index())


def fig_nodes(study: Study) -> Axes:
    """F11: one batch of moldable jobs on nodes with a CPU and a GPU each."""
    setting, seed = study.setting._replace(jobs=12), np.random.SeedSequence(study.seed)
    jobs = moldable_jobs(study.mixes[0], 0.0, study.nodes, setting, seed)
    pool = NodePool(study.nodes)
    axs = panels(None, 2, (11, 5.4), rows=2, sharex=True)
    runs = {name: run_moldable(jobs, pool, name) for name in MOULDED}
    until, colors = 1.02 * max(s.makespan for s in runs.values()), task_colors(list(jobs.index))
    lanes = {(n, d): f"node {n} {d}" for n in range(pool.nodes) for d in ("gpu", "cpu")}
    for (name, s), ax in zip(runs.items(), axs, strict=True):
        s.check()
        at, texts = zip(s.uses["node"], s.uses["device"], strict=True), s.uses["job"].astype(str)
        plot_blocks(ax, s.uses, lanes, at, "job", colors, texts, until)
        ax.set_title(_ended(name, s), fontsize=10)
    for ax in axs[-2:]:
        ax.set_xlabel("seconds")
    kept = pd.concat({name: s.uses for name, s in runs.items()}, names=["scheduler"])
    return study.keep("nodes", axs[0], kept.reset_index(0))


def fig_slots(study: Study) -> Axes:
    """Hadoop's own schedulers: three jobs on four slots, FIFO, fair, capacity."""
    axs, colors = panels(None, 3, (9.6, 2.3), sharey=False), task_colors(list(HADOOP.index))
    parts = {}
    for ax, name in zip(axs, ("fifo", "fair", "capacity"), strict=True):
        s = run_slots(HADOOP, 4, name)
        s.check()
        t, lanes = s.tasks, {k: f"slot {k}" for k in range(s.slots)}
        plot_blocks(ax, t, lanes, t["slot"], "job", colors, t["job"])
        ends = ", ".join(f"{job} {end:g}" for job, end in s.jobs["end"].items())
        ax.set(title=f"{name}: {ends}", xlabel="time")
        parts[name] = t
    return study.keep("slots", axs[0], pd.concat(parts, names=["scheduler"]).reset_index(0))


#: Pipelines drawn: streams and copy engines.
PIPES = ((1, 2), (2, 2), (3, 2), (3, 1))


def fig_pipes() -> Axes:
    """F8: five chunks with one to three streams, one and two copy engines; room beside them."""
    figure = plt.figure(figsize=(11.5, 5.2), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.5, 1])
    axes = halves[0].subplots(len(PIPES), 1, sharex=True)
    chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    for (streams, engines), ax in zip(PIPES, axes, strict=True):
        t = run_chunks(chunks, Gpu(streams, engines))
        t.check()
        lanes = ["h2d", "map", "d2h"] if engines == 2 else ["copy", "map"]
        at = [stage if stage in lanes else "copy" for stage in t.ops["stage"]]
        texts, named = t.ops["chunk"].astype(str), {lane: lane for lane in lanes}
        plot_blocks(ax, t.ops, named, at, "stage", STAGE_INK, texts, 31)
        many = f"{streams} stream{'s' * (streams > 1)}, {engines} copy engine{'s' * (engines > 1)}"
        ax.set_title(f"{many}: {t.makespan}", fontsize=10)
    axes[0].legend(handles=[Patch(facecolor=c, label=s) for s, c in STAGE_INK.items()],
                   fontsize=8, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.5))  # fmt: skip
    ax.set_xlabel("time (five chunks of 3 + 1 + 2)")
    return halves[1].subplots()


#: What is run, in this order.
QUEUE = ("mandelbrot", "n-body", "black-scholes", "matmul") * 3
#: What a live run did, on which devices, and what is said of them.
Session = namedtuple("Session", "run devices said")


def record(
    queue: Sequence[str] = QUEUE, factor: float = 1.0, policy: str = "history", gpu: str = "auto",
    cpu: str = "numpy", crew: str = "threads",
) -> Session:  # fmt: skip
    """Run kernels on the real devices of this machine under a policy, from an empty history."""
    devices = live.slots(gpu, cpu)
    kernels = [live.kernel_named(name) for name in queue]
    jobs = [live.LiveJob(k, max(k.tiny, round(factor * k.size))) for k in kernels]
    with live.CREWS[crew]([slot.name for slot in devices]) as workers:
        run = live.run_live(jobs, workers, devices, policy)
    played = "; ".join(f"{slot.name}: {slot.note}" for slot in devices)
    if devices[0].backend == "threads" and live.best_gpu() == "threads":
        played += (
            ". Neither a CUDA device nor an OpenCL platform is here (extra opencl), so that run is"
            " skipped and all CPU threads play the GPU"
        )
    return Session(run, devices, f"{played}.")


def fig_live(study: Study, session: Session, ax: Axes | None = None) -> Axes:
    """A live run as a timing diagram, each bar with its kernel and rule."""
    ax, jobs = axes_of(ax, (9.6, 2.4)), session.run.jobs
    lanes = {slot.name: f"{slot.name}\n{slot.backend}" for slot in session.devices}
    texts = jobs["app"].str.partition("[")[0] + "\n" + jobs["rule"]
    plot_blocks(ax, jobs, lanes, jobs["device"], "app", task_colors(list(jobs["app"])), texts)
    end = f"last end after {session.run.makespan:.2f} s"
    ax.set(xlabel="seconds", title=f"{len(jobs)} real kernels, {end}")
    return study.keep("live", ax)


def learned(session: Session) -> pd.DataFrame:
    """Return what a live run taught: mean time, deviation and count by kernel and class."""
    table = session.run.history.table()
    agrees = session.run.jobs.groupby("app")["agrees"].all()
    return table.assign(agrees=table["app"].map(agrees))


def audited(session: Session) -> str:
    """Compute every decision of a live run again from its log, by the pure policy."""
    count, other = session.run.log.decisions, len(session.run.log.audit())
    return f"{count} decisions logged; computed again from the log, {count - other} are the same"


def inventory() -> pd.DataFrame:
    """T1: list every mechanism of the paper with its section, what runs it and what shows it.

    >>> inventory().loc[8, "runs in"]
    'core.rules.mct'
    """
    path = shared_file("data/papers/cpu-gpu-mechanisms.csv")
    table = read_csv(path, {"mechanism": "text"})
    for module, name in table["runs in"].str.rsplit(".", n=1):
        if not hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name):
            raise InputError(f"dlsim.cpugpu.{module} must hold {name}, which the inventory names")
    return table.set_index(pd.RangeIndex(1, len(table) + 1, name="row"))

"""`explore.pipeline`: chunks on their way through a GPU with one, two and three streams.

Source: paper C (cpu-gpu), section 2, and the pipelined MapReduce of Y. Chen, Z. Qiao,
S. Davis, H. Jiang, K.-C. Li (2013) that it describes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlsim.cpugpu.gpu import SWITCHES
from dlsim.cpugpu.pipeline import Gpu, Timeline, equal_chunks, equal_chunks_time, run_chunks
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Panel, Slider, new_figure, say, title
from dlsim.papers.cpu_gpu.draw import STAGE_INK
from dlsim.study.gantt import plot_blocks
from dlsim.study.style import INK

#: Streams whose timelines are drawn, and those whose speed-up is.
DRAWN, STREAMS = (1, 2, 3), (1, 2, 3, 4, 5)
#: Switches of `dlsim.cpugpu.gpu` that can change the picture: of equal chunks the one
#: whose copy out waits is always the earliest, so that ``first="chunk"`` is ``"d2h"``.
READINGS = {**SWITCHES, "first": ("d2h", "h2d")}
_LANES = {"h2d": "copy in", "map": "kernel", "d2h": "copy out", "copy": "copies", "gpu": "GPU"}
_STAGES = {"h2d": "copy to the device", "map": "kernel", "d2h": "copy to the host"}


def _timeline(ax: Axes, t: Timeline, until: float) -> None:
    engines = (t.gpu.engine(stage) for stage in _STAGES if stage in t.chunks)
    at = [t.gpu.engine(stage) for stage in t.ops["stage"]]
    texts, named = (t.ops["chunk"] + 1).astype(str), {lane: _LANES[lane] for lane in engines}
    plot_blocks(ax, t.ops, named, at, "stage", STAGE_INK, texts, until)
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
    ax.legend(fontsize=8, loc="upper left")


def draw_pipeline(
    chunks: int, copy_in: float, kernel: float, copy_out: float, engines: int, pinned: bool,
    issue: str, reading: Mapping[str, Any],
) -> Figure:  # fmt: skip
    """Draw equal chunks under one, two and three streams, and the speed-up against k."""
    if max(copy_in, kernel, copy_out) == 0:
        raise InputError("copy_in, kernel or copy_out must be above 0: a chunk has to take time")
    table = equal_chunks(chunks, h2d=copy_in, map=kernel, d2h=copy_out)
    runs = {
        (n, k): run_chunks(table, Gpu(k, n, pinned=pinned, **reading), issue)
        for n in (1, 2) for k in STREAMS
    }  # fmt: skip
    formula = []
    if pinned and reading.get("queues", "hyper-q") == "hyper-q":
        formula = [equal_chunks_time(chunks, copy_in, kernel, copy_out, k) for k in STREAMS]
    figure = new_figure(9.0, 4.6, (0.73, 0.79, 0.1, 0.63), wspace=0.19, hspace=0.27)
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
    figure.legend(handles=keys, loc="lower left", ncols=3, fontsize=8)
    _speed_ups(figure.add_subplot(grid[:, 1]), runs, engines, formula)
    say(figure, _sentence(drawn, formula if engines == 2 else []))
    return figure


def _sentence(drawn: Sequence[Timeline], formula: Sequence[float]) -> str:
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


PANEL = Panel(
    name="pipeline",
    title="A GPU pipeline: what overlapping copies with kernels gives",
    update=draw_pipeline,
    controls=(
        Slider("chunks", 1, 10, 1, 5, "chunks"),
        Slider("copy_in", 0.0, 10.0, 0.5, 3.0, "copy to the device"),
        Slider("kernel", 0.0, 10.0, 0.5, 1.0, "kernel"),
        Slider("copy_out", 0.0, 10.0, 0.5, 2.0, "copy to the host"),
        Choice("engines", (2, 1), "copy engines"),
        Choice("pinned", (True, False), "pinned memory"),
        Choice("issue", ("depth", "breadth", "scheduled"), "issue (in-order queues)"),
    ),
    switches=READINGS,
    explained=(Gpu,),
)

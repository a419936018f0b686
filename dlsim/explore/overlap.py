"""Chunks on their way through a GPU: copies and kernels that overlap, or do not.

Source: paper C, section 2; the closed forms are those of `dlsim.cpugpu.gpu.pipeline`.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.cpugpu import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.gpu.pipeline import PipelineResult
from dlsim.explore.controls import Menu, Slider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure, set_title
from dlsim.study.plots import INK, draw_bars, legible_on, name_rows

#: Most chunks whose numbers can be read.
MAX_CHUNKS = 10
#: Numbers of streams that are compared.
STREAMS = (1, 2, 3)
#: What stands beside the row of each stage of the engine, and its colour.
STAGE_ROWS = {
    "h2d": ("copy in", INK["sky"]),
    "map": ("compute", INK["green"]),
    "d2h": ("copy out", INK["orange"]),
}

_DEFINITIONS = {
    "chunk": "a part of the input that is copied in, computed and copied out",
    "stream": "the operations of a stream run one after another; those of two streams may overlap",
    "copy in, copy out": "from the memory of the host to that of the device, and back",
    "copy engine": "the part of a device that copies: with two, it copies in and out at once",
    "pinned memory": "memory of the host that the device reaches by itself; from other memory a "
    "copy overlaps with nothing",
    "done at": "when the last chunk has been copied out",
}


@panel(
    "Copies and kernels that overlap: one, two and three streams",
    Slider("chunks", "chunks", 1, MAX_CHUNKS, 1, 5),
    Slider("copy_in", "time to copy in", 0.5, 10.0, 0.5, 3.0),
    Slider("kernel", "time to compute", 0.5, 10.0, 0.5, 1.0),
    Slider("copy_out", "time to copy out", 0.5, 10.0, 0.5, 2.0),
    Menu("copy_engines", "copy engines", (1, 2), 2),
    Menu("pinned", "pinned memory", (True, False)),
    words=_DEFINITIONS,
)
def overlap(
    chunks: int,
    copy_in: float,
    kernel: float,
    copy_out: float,
    copy_engines: int,
    pinned: bool,
    reading: Mapping[str, str],
) -> tuple[Figure, str]:
    """Draw the chunks on their way through a device, with one, two and three streams."""
    table = equal_chunks(chunks, h2d=copy_in, map=kernel, d2h=copy_out)
    runs = {n: run_chunks(table, Gpu(n, copy_engines, pinned=pinned)) for n in STREAMS}
    until = 1.02 * max(float(run.makespan) for run in runs.values())
    figure = new_figure(0.72, 0.42, 0.1, 0.24, hspace=0.34)
    panels = figure.subplots(len(STREAMS))
    for ax, (streams, run) in zip(panels, runs.items(), strict=True):
        _draw_run(ax, run, until)
        name = "stream" if streams == 1 else "streams"
        set_title(ax, f"{streams} {name}: done at {float(run.makespan):.4g}")
        if ax is not panels[-1]:
            ax.tick_params(axis="x", labelbottom=False)
    panels[-1].set_xlabel("time; the number in a block is its chunk", labelpad=1)
    return figure, _sentence({n: float(run.makespan) for n, run in runs.items()})


def _draw_run(ax: Axes, run: PipelineResult, until: float) -> None:
    """Draw a block per operation in the row of its stage, with the number of its chunk."""
    for row, (stage, (_, color)) in enumerate(STAGE_ROWS.items()):
        blocks = run.ops[run.ops["stage"] == stage]
        start, end = blocks["start"].to_numpy(float), blocks["end"].to_numpy(float)
        draw_bars(ax, [row] * len(blocks), start, end, color, "compute")
        look: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": 8,
            "color": legible_on(color),
        }
        for chunk, middle in zip(blocks["chunk"], (start + end) / 2, strict=True):
            ax.text(middle, row, str(chunk + 1), zorder=4, **look)
    name_rows(ax, [name for name, _ in STAGE_ROWS.values()], 0, until, fontsize=8.5)


def _sentence(ends: Mapping[int, float]) -> str:
    """Say when the last chunk is done with one stream, and how much faster the others are."""
    first, *others = ends
    parts = []
    for streams in others:
        gain = ends[first] / ends[streams]
        word = f"{gain:.3g} times as fast" if gain > 1 + 1e-9 else "no faster"
        parts.append(f"{word} with {streams}")
    return f"With one stream the last chunk is done at {ends[first]:.4g}; {' and '.join(parts)}."

"""The pictures of panels: one size, one style, and their files."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dlsim.study import plots
from dlsim.study.results import PICTURE_FORMATS

#: Size of every picture in inches, and its dots per inch on the screen.
WIDTH, HEIGHT, SCREEN_DPI = 6.9, 3.9, 96
#: Sizes of text in points; letters are not fitted to the pixels of a screen.
TEXT_LOOK: Any = {
    "text.hinting": "no_hinting",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
}
#: Letters of the sentence above a saved picture that fit into one line.
LETTERS_PER_LINE = 100


@contextmanager
def theme() -> Iterator[None]:
    """Draw in the style of all figures, with the texts of a panel."""
    with matplotlib.rc_context():
        plots.use_style()
        matplotlib.rcParams.update(TEXT_LOOK)
        yield


def new_figure(left: float, bottom: float, right: float, top: float, **gaps: float) -> Figure:
    """Return an empty figure of a panel; margins in inches, `gaps` as of subplots_adjust."""
    layout: Any = "none"  # a layout engine would draw the figure twice
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=SCREEN_DPI, layout=layout)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(
        left / WIDTH, bottom / HEIGHT, 1 - right / WIDTH, 1 - top / HEIGHT, **gaps
    )
    return figure


def set_title(ax: Axes, text: str, pad: float = 3.0) -> None:
    """Write a title at the left above axes, `pad` points away from them."""
    ax.set_title(text, loc="left", pad=pad, y=1.0)


def write_sentence(figure: Figure, sentence: str) -> None:
    """Write a sentence above the picture."""
    text = textwrap.fill(sentence, LETTERS_PER_LINE)
    figure.suptitle(text, fontsize=10, y=1 + 0.05 / HEIGHT, va="bottom")


def draw_for_screen(figure: Figure, kind: str) -> bytes:
    """Draw a figure in its own size, with its margins; no date is in it."""
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=SCREEN_DPI, metadata=PICTURE_FORMATS[kind])
    return stream.getvalue()

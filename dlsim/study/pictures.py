"""Draw a figure once: the file of results and the notebook get the same picture."""

import contextlib
import io
import struct
import sys
from collections.abc import Iterator
from typing import Any

from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

from dlsim.study.figures import PICTURE_FORMATS

#: Dots per inch of a picture in the PNG format.
PICTURE_DPI = 150


def draw_picture(figure: Figure, kind: str = "png") -> bytes:
    """Draw a figure in a format of `PICTURE_FORMATS`; no date and no tool is in it.

    Empty margins are cut off. A PNG has a palette of 256 colours, which takes a third of the bytes.
    """
    buffer = io.BytesIO()
    options: dict[str, Any] = {
        "format": kind,
        "dpi": PICTURE_DPI,
        "metadata": PICTURE_FORMATS[kind],
    }
    if kind != "png":
        figure.savefig(buffer, bbox_inches="tight", **options)
        return buffer.getvalue()
    with _laid_out(figure) as area:
        figure.savefig(buffer, bbox_inches=area, pil_kwargs={"compress_level": 0}, **options)
    return _reduce_colors(buffer)


@contextlib.contextmanager
def _laid_out(figure: Figure) -> Iterator[Bbox]:
    """Lay a figure out at `PICTURE_DPI`, and yield the area in inches without empty margins.

    ``bbox_inches="tight"`` finds the same area, but draws the figure once more to that end.
    """
    engine, dpi = figure.get_layout_engine(), figure.dpi
    figure.dpi = PICTURE_DPI
    try:
        if engine is not None:
            engine.execute(figure)
            with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
                figure.set_layout_engine(None)
        yield figure.get_tightbbox().padded(rcParams["savefig.pad_inches"])
    finally:
        figure.dpi = dpi
        if engine is not None:
            figure.set_layout_engine(engine)


def _reduce_colors(stream: io.BytesIO) -> bytes:
    """Return a PNG with a palette of 256 colours."""
    with Image.open(stream) as image:
        is_opaque = image.getextrema()[-1] == (255, 255)
        source = image.convert("RGB") if is_opaque else image
        reduced = source.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        reduced.save(buffer, format="png", compress_level=8, dpi=image.info["dpi"])
    return buffer.getvalue()


def show_picture(figure: Figure, png: bytes) -> None:
    """Show a PNG of a figure in the notebook that runs this, if one does, and close the figure.

    The picture has the size at which the notebook would show the figure.
    """
    import matplotlib.pyplot as plt

    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        from IPython.display import display

        width, height = struct.unpack(">ii", png[16:24])  # of the header of a PNG
        scale = figure.dpi / PICTURE_DPI
        size = {"width": round(width * scale), "height": round(height * scale)}
        data = {"image/png": png, "text/plain": "<a picture>"}
        display(data, metadata={"image/png": size}, raw=True)
    plt.close(figure)

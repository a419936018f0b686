"""A picture is drawn once: for its file, for the notebook that shows it, for the runs after.

A figure is known by a digest of all it holds, of matplotlib's settings and of the sources; as
long as a picture with that name lies in the cache folder, it need not be drawn.
"""

import copyreg
import hashlib
import io
import pickle
import struct
import sys
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.transforms import TransformNode
from PIL import Image

from dlsim.cache import cache_folder, private_folder, source_digest
from dlsim.errors import DlsimError, InputError
from dlsim.files import MAX_TABLE_BYTES, read_bytes, write_bytes
from dlsim.study.figures import KINDS

_DPI = 150
#: Whose functions and classes stay the same as long as matplotlib's version and dlsim's sources.
_TRUSTED = sys.stdlib_module_names | set(
    "dlsim cycler kiwisolver matplotlib mpl_toolkits numpy pandas seaborn".split()
)


class _Content(pickle.Pickler):
    """Writes what a figure holds, equal for equal figures of two processes; never read."""

    def reducer_override(self, thing: Any) -> Any:
        """Leave out addresses; refuse code that may change behind its name."""
        if isinstance(thing, TransformNode | Figure):
            state: Any = thing.__getstate__()
            # addresses of what is found where it is used; the how many-th figure it is
            state = {n: value for n, value in state.items() if n not in ("_parents", "_number")}
            return copyreg.__newobj__, (type(thing),), state  # type: ignore[attr-defined]
        if not isinstance(thing, type | FunctionType):
            return NotImplemented
        if str(thing.__module__).partition(".")[0] not in _TRUSTED:
            raise TypeError(f"{thing!r} is somebody's own")
        if isinstance(thing, FunctionType) and "<" in thing.__qualname__:
            inside = [cell.cell_contents for cell in thing.__closure__ or ()]
            name = thing.__module__, thing.__qualname__, thing.__code__.co_firstlineno
            return tuple, ([*name, thing.__defaults__, inside],)
        return NotImplemented


def _place(figure: Figure, kind: str) -> Path | None:
    """Return where a picture of a figure is kept; None for one that holds what cannot be told."""
    stream = io.BytesIO()
    try:
        _Content(stream, protocol=5).dump((mpl.__version__, dict(mpl.rcParams), _DPI, figure, kind))
        folder = private_folder(cache_folder(), "pictures", source_digest())
    except Exception:  # whatever a part of it raises, it is drawn
        return None
    return folder / hashlib.sha256(stream.getvalue()).hexdigest()


def _kept(path: Path) -> bytes:
    """Return the picture in a file, nothing for none that is whole."""
    try:
        content = read_bytes(path, MAX_TABLE_BYTES)
    except InputError:
        return b""
    return content[32:] if content[:32] == hashlib.sha256(content[32:]).digest() else b""


def _drawn(figure: Figure, kind: str) -> bytes:
    """Draw a figure; where matplotlib would draw all of it for its layout, lay it out alone."""

    def lay_out(_renderer: Any) -> None:
        del vars(figure)["draw"]
        if engine := figure.get_layout_engine():
            engine.execute(figure)

    buffer = io.BytesIO()
    fast: dict[str, Any] = {"pil_kwargs": {"compress_level": 0}} if kind == "png" else {}
    vars(figure)["draw"] = lay_out
    try:
        figure.savefig(
            buffer, format=kind, dpi=_DPI, metadata=KINDS[kind], bbox_inches="tight", **fast
        )
    finally:
        vars(figure).pop("draw", None)
    return _with_palette(buffer) if kind == "png" else buffer.getvalue()


def _with_palette(stream: io.BytesIO) -> bytes:
    """Write a picture with 256 colours, which takes a third of the bytes."""
    with Image.open(stream) as image:
        seen = image.convert("RGB") if image.getextrema()[-1] == (255, 255) else image
        few = seen.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        few.save(buffer, format="png", compress_level=8, dpi=image.info["dpi"])
    return buffer.getvalue()


def picture_of(figure: Figure, kind: str = "png") -> bytes:
    """Return a figure in a format, without a date or tool; a notebook then shows the same PNG."""
    path = _place(figure, kind)
    data = _kept(path) if path else b""
    if not data:
        data = _drawn(figure, kind)
        if path:
            with suppress(DlsimError):  # on a full disk it is drawn again
                write_bytes(path, hashlib.sha256(data).digest() + data, sync=False)
    if kind == "png":
        _show(figure, data)
    return data


class _Shown:
    """Shows a figure as the picture that was drawn of it, unless it was changed since."""

    def __init__(self, usual: Any) -> None:
        self.usual, self.pictures = usual, WeakKeyDictionary[Figure, bytes]()

    def __call__(self, figure: Figure) -> Any:
        if figure not in self.pictures:
            return self.usual(figure)
        png = self.pictures[figure]
        width, height = (round(n * figure.dpi / _DPI) for n in struct.unpack(">ii", png[16:24]))
        return png, {"width": width, "height": height}


def _show(figure: Figure, png: bytes) -> None:
    """Let the notebook that this runs in, if one does, show a picture for a figure."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    formatters = shell.display_formatter.formatters if shell else {}
    try:
        usual = formatters["image/png"].lookup_by_type(Figure)
    except KeyError:
        return
    if not isinstance(usual, _Shown):
        usual = _Shown(usual)
        formatters["image/png"].for_type(Figure, usual)
    usual.pictures[figure], redraw = png, figure.stale_callback

    def changed(one: Any, stale: bool) -> None:
        usual.pictures.pop(one, None)
        if redraw:
            redraw(one, stale)

    figure.stale, figure.stale_callback = False, changed

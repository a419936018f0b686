"""What a notebook leaves in a folder of results: figures, tables (also as LaTeX) and verdicts.

data/figures.toml says which figures and tables the papers have, one row each. A table as LaTeX fits
a column of a paper: it is pivoted, with rounded numbers. A figure is drawn once: the file of
results and the notebook get the same picture.
"""

import io
import math
import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.output_folder import OutputFolder
from dlsim.progress import running_shell
from dlsim.study.stats import ENDS
from dlsim.validate import mapping, one_of, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ------------------------------------------------------------------ figures of data/figures.toml

#: Formats that a picture can be saved in, each with what would date it left out.
PICTURE_FORMATS: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
#: Environment variable that names the format of the pictures beside those of the report.
FORMAT_VARIABLE = "DLSIM_FIGURES"
#: Environment variable that asks, if it is not empty, for every table as LaTeX as well.
LATEX_VARIABLE = "DLSIM_LATEX"

FIGURE_STATUSES = ("reproduced", "redrawn", "beyond", "cannot be reproduced")


@dataclass(frozen=True)
class FigureRow:
    """One row of data/figures.toml."""

    id: str
    paper: str
    printed: str
    title: str
    notebook: str
    status: str
    caption: str = ""
    expect: str = ""
    parameters: str = ""
    why: str = ""


class Figures(NamedTuple):
    """What data/figures.toml holds: of every paper, by key, its title and more; and the rows."""

    papers: dict[str, dict[str, Any]]
    figures: list[FigureRow]


_NEEDED = dict.fromkeys(("id", "paper", "printed", "title", "notebook"), partial(text, blank=False))
_FIELDS = files.field_rules(FigureRow, **_NEEDED, status=partial(one_of, options=FIGURE_STATUSES))


def paper_of(notebook: str) -> str:
    """Return the key of a notebook's paper, where it has one: its name without its number.

    >>> paper_of("20-mcdf"), paper_of("21-mcdf-beyond")
    ('mcdf', 'mcdf')
    """
    return re.sub(r"^\d+-|-beyond$", "", notebook)


def paper_letters() -> dict[str, str]:
    """Return the papers by the letters that notebooks and README use, such as M for mcdf."""
    papers = load_figures().papers
    return {str(row["letter"]): name for name, row in papers.items() if "letter" in row}


def load_figures(path: StrPath | None = None) -> Figures:
    """Read the papers and the table of all their figures, by default from data/figures.toml."""
    path = files.shared_file("data/figures.toml") if path is None else path
    found = files.read_tables(path, {"figure": _FIELDS}, {"papers?": mapping})
    papers, figures = found.get("papers", {}), []
    for row in found.get("figure", []):
        one_of(f"{row.where}: paper", row["paper"], papers)
        figures.append(FigureRow(**row))
    return Figures(papers, figures)


# ------------------------------------------------------------------ a figure as a picture

#: Dots per inch of a picture in the PNG format.
PICTURE_DPI = 150


def draw_picture(figure: "Figure", kind: str = "png") -> bytes:
    """Draw a figure in a format of `PICTURE_FORMATS`; no date and no tool is in it.

    Empty margins are cut off. A PNG has a palette of 256 colours, which takes a third of the bytes.
    """
    buffer = io.BytesIO()
    options: dict[str, Any] = {"format": kind, "metadata": PICTURE_FORMATS[kind]}
    if kind == "png":
        options["pil_kwargs"] = {"compress_level": 0}
    figure.savefig(buffer, dpi=PICTURE_DPI, bbox_inches="tight", **options)
    return _reduce_colors(buffer) if kind == "png" else buffer.getvalue()


def _reduce_colors(stream: io.BytesIO) -> bytes:
    """Return a PNG with a palette of 256 colours."""
    from PIL import Image

    with Image.open(stream) as image:
        is_opaque = image.getextrema()[-1] == (255, 255)
        source = image.convert("RGB") if is_opaque else image
        reduced = source.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        reduced.save(buffer, format="png", compress_level=8, dpi=image.info["dpi"])
    return buffer.getvalue()


def show_picture(figure: "Figure", png: bytes) -> None:
    """Show a PNG of a figure in the notebook that runs this, if one does, and close the figure.

    The picture has the size at which the notebook would show the figure.
    """
    import matplotlib.pyplot as plt

    if running_shell() is not None:
        from IPython.display import display

        width, height = struct.unpack(">ii", png[16:24])  # of the header of a PNG
        scale = figure.dpi / PICTURE_DPI
        size = {"width": round(width * scale), "height": round(height * scale)}
        data = {"image/png": png, "text/plain": "<a picture>"}
        display(data, metadata={"image/png": size}, raw=True)
    plt.close(figure)


# ------------------------------------------------------------------ folder of results

#: Digits of a float in a table of results.
SIGNIFICANT_DIGITS = 12
#: First characters of a text that a spreadsheet takes for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def quote_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would compute; return others unchanged.

    >>> [quote_formula(value) for value in ("=1+1", "ann", -1.5)]
    ["'=1+1", 'ann', -1.5]
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def round_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy whose floats have at most `SIGNIFICANT_DIGITS` digits.

    >>> round_floats(pd.DataFrame({"tasks": [7, 8], "load": [0.1 + 0.2, 2047.9999999999989]}))
       tasks    load
    0      7     0.3
    1      8  2048.0
    """

    def shortened(value: object) -> object:
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value

    named = any(name is not None for name in frame.index.names)
    return (frame.reset_index() if named else frame).map(shortened)


class Results:
    """Where a notebook leaves its results; "" is `files.results_folder` of the paper."""

    def __init__(self, folder: StrPath = "", paper: str = "") -> None:
        place = folder or files.results_folder(paper)
        self.home = OutputFolder(place, remedy="choose another folder with out=...").check()
        self.folder = self.home.folder

    def _write(self, kind: str, name: str, ending: str, data: bytes) -> Path:
        if not re.fullmatch(r"[a-z0-9]+([-_.][a-z0-9]+)*", name):
            rule = "made of a-z, 0-9 and single - _ . between"
            raise InputError(f"the name of a result is {rule}; got {name!r}")
        return self.home.write(f"{kind}/{name}{ending}", data)

    def table(self, name: str, frame: pd.DataFrame, quote: bool = False) -> Path:
        """Write a table as data/<name>.csv and return its path; equal tables give equal bytes.

        Floats are written with `SIGNIFICANT_DIGITS` digits: the others are noise of rounding.
        With `quote`, a spreadsheet shows every text as it is (`quote_formula`): for tables that
        hold texts of a user's file.
        """
        frame = frame.drop(columns="values", errors="ignore")
        if quote:
            frame = frame.map(quote_formula).rename(columns=quote_formula)
        text = files.csv_text(round_floats(frame))
        return self._write("data", name, ".csv", text.encode())

    def latex(self, name: str, frame: pd.DataFrame) -> Path:
        """Write a table as data/<name>.tex (`latex_table`) and return its path."""
        return self._write("data", name, ".tex", latex_table(frame).encode())

    def figure(self, name: str, drawn: "Axes | Figure", formats: Sequence[str] = ()) -> Path:
        """Write a figure as figures/<name>.png, show that picture in a notebook, close the figure.

        It is written, too, in the other `formats` ("svg", "pdf") and in that which
        `FORMAT_VARIABLE` names. A figure can be changed and written again.
        """
        from matplotlib.axes import Axes  # not at the top: a batch draws nothing itself
        from matplotlib.figure import Figure

        figure = drawn.get_figure(root=True) if isinstance(drawn, Axes) else drawn
        assert isinstance(figure, Figure)
        kind = one_of(FORMAT_VARIABLE, os.environ.get(FORMAT_VARIABLE) or "png", PICTURE_FORMATS)
        for one in {kind, *formats} - {"png"}:
            one_of("a format", one, PICTURE_FORMATS)
            self.picture(name, draw_picture(figure, one), one)
        png = draw_picture(figure)
        path = self.picture(name, png)
        show_picture(figure, png)
        return path

    def picture(self, name: str, data: bytes, kind: str = "png") -> Path:
        """Write a picture that is drawn already as figures/<name>.<kind>, and return its path."""
        return self._write("figures", name, f".{kind}", data)


# ------------------------------------------------------------------ tables as LaTeX

#: Columns of a table of estimates that are no place of a point, or only name it.
_NO_PLACES = frozenset((*ENDS, "least", "most", "n", "values", "point", "group"))
#: Most values of a column that become columns of the LaTeX table.
MAX_COLUMNS_ACROSS = 6
#: Significant digits of an interval's half width, and of a number that has none.
DIGITS_OF_HALF_WIDTH, DIGITS = 2, 3


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals leave a number so many significant digits.

    >>> _decimals(0.0181, 2), _decimals(12.3, 2), _decimals(1234.0, 2)
    (3, 0, 0)
    """
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def write_rounded(value: float) -> str:
    """Write a number with three significant digits, from 100 on as a whole number.

    >>> write_rounded(0.04567), write_rounded(8489.78), write_rounded(10.0)
    ('0.0457', '8490', '10')
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e9 else f"{value:.{DIGITS}g}"


def write_estimate(estimate: float, low: float, high: float) -> str:
    r"""Write an estimate with its interval, rounded to two digits of the half width.

    An interval that is not the same on both sides stands in brackets.

    >>> print(write_estimate(0.44319, 0.42513, 0.46125))
    $0.443 \pm 0.018$
    >>> print(write_estimate(0.2, 0.05, 0.29))
    $0.20$ [$0.05$, $0.29$]
    >>> print(write_estimate(0.2, float("nan"), float("nan")))
    $0.2$
    """
    half = (high - low) / 2
    if math.isnan(estimate):
        return "--"
    if not half > 0:
        return f"${write_rounded(estimate)}$"
    places = _decimals(half, DIGITS_OF_HALF_WIDTH)
    number = f"${estimate:.{places}f}"
    if f"{high - estimate:.{places}f}" == f"{estimate - low:.{places}f}":
        return rf"{number} \pm {half:.{places}f}$"
    return f"{number}$ [${low:.{places}f}$, ${high:.{places}f}$]"


def _write_plain(value: Any) -> Any:
    is_number = isinstance(value, float) and not math.isnan(value)
    return f"${write_rounded(value)}$" if is_number else _escape(value)


def _escape(value: object) -> str:
    """Return a text as LaTeX shows it."""
    text = "" if isinstance(value, float) and math.isnan(value) else str(value)
    signs = {one: "\\" + one for one in "&%$#_{}"}
    signs |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(signs.get(character, character) for character in text)


def latex_table(frame: pd.DataFrame) -> str:
    """Return a table as LaTeX for the package booktabs.

    In a table of estimates the interval stands beside each number, places that are the same in
    all rows are left out, and the place with the fewest values (at most `MAX_COLUMNS_ACROSS`)
    becomes the columns. Other tables keep their shape.
    """
    if not set(ENDS) <= set(frame.columns):
        shown = frame.drop(columns="values", errors="ignore").map(_write_plain)
        return shown.rename(columns=_escape).to_latex(index=False)
    places = places_of(frame)
    cells = [write_estimate(*row) for row in frame[list(ENDS)].itertuples(index=False)]
    table = frame[places].map(_write_place).rename(columns=_escape).assign(estimate=cells)
    counts = {_escape(name): frame[name].nunique() for name in places}
    across = min(counts, key=lambda name: counts[name], default="")
    rest = [name for name in counts if name != across]
    if not rest or counts[across] > MAX_COLUMNS_ACROSS or table.duplicated(list(counts)).any():
        return table.to_latex(index=False)
    rows, columns = table[rest].drop_duplicates(), list(table[across].drop_duplicates())
    wide = table.pivot(index=rest, columns=across, values="estimate").fillna("--")
    wide = wide[columns].rename_axis(columns=None).reset_index()
    return rows.merge(wide, on=rest).to_latex(index=False)


def places_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table of estimates that say which point a row is of.

    They are the columns before the estimate and those of texts; then as many further ones as tell
    all rows apart. A column that is the same in all rows is left out.
    """
    columns = [name for name in frame.columns if name not in _NO_PLACES]
    names = [name for name in columns if frame[name].nunique() > 1]
    before = frame.columns[: frame.columns.get_loc("estimate")]
    texts = frame.select_dtypes(exclude="number").columns
    places = [name for name in names if name in before or name in texts]
    for name in names:
        is_enough = bool(places) and not frame.duplicated(places).any()
        if name not in places and not is_enough:
            places.append(name)
    return places


def _write_place(value: object) -> str:
    return _escape(f"{value:g}" if isinstance(value, float) else value)

"""What a notebook leaves in a folder of results: figures, tables and verdicts."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.output_folder import OutputFolder
from dlsim.study.figures import FORMAT_VARIABLE, PICTURE_FORMATS
from dlsim.validate import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        """Write a table as data/<name>.tex (`dlsim.study.latex`) and return its path."""
        from dlsim.study.latex import latex_table  # not at the top: a batch writes no table

        return self._write("data", name, ".tex", latex_table(frame).encode())

    def figure(self, name: str, drawn: "Axes | Figure", formats: Sequence[str] = ()) -> Path:
        """Write a figure as figures/<name>.png, show that picture in a notebook, close the figure.

        It is written, too, in the other `formats` ("svg", "pdf") and in that which
        `FORMAT_VARIABLE` names. A figure can be changed and written again.
        """
        from matplotlib.axes import Axes  # not at the top: a batch draws nothing itself
        from matplotlib.figure import Figure

        from dlsim.study.pictures import draw_picture, show_picture

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

"""The figures and tables of the papers: one row of data/figures.toml each."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlsim import files
from dlsim.files import StrPath
from dlsim.validate import mapping, one_of, text

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

FIGURE_STATUSES = ("reproduced", "redrawn", "beyond", "planned", "cannot be reproduced")


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
    papers = load_figures()[0]
    return {str(row["letter"]): name for name, row in papers.items() if "letter" in row}


def load_figures(path: StrPath | None = None) -> tuple[dict[str, dict[str, Any]], list[FigureRow]]:
    """Read title and source of every paper by key, and the table of all their figures."""
    path = files.shared_file("data/figures.toml") if path is None else path
    found = files.read_tables(path, {"figure": _FIELDS}, {"papers?": mapping})
    papers, figures = found.get("papers", {}), []
    for row in found.get("figure", []):
        one_of(f"{row.where}: paper", row["paper"], papers)
        figures.append(FigureRow(**row))
    return papers, figures

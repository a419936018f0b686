"""The report as one HTML page, from page.html.

Everything that comes from outside is escaped by the template engine; pictures are embedded;
there is no script and no address of another machine in the page.
"""

import base64
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jinja2
import pandas as pd

from dlsim.files import read_bytes
from dlsim.study.claims import SYMBOLS
from dlsim.study.notebooks import NotebookResult
from dlsim.study.style import VERDICT_INK


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


@dataclass(frozen=True)
class Material:
    """Everything that the page shows."""

    folder: Path
    headline: str
    facts: Mapping[str, str]
    scale: str
    claims: pd.DataFrame
    figures: Sequence[FigureRow]
    papers: Mapping[str, Mapping[str, str]]
    notebooks: Sequence[NotebookResult]
    problems: Sequence[str]

    def result_of(self, row: FigureRow) -> NotebookResult | None:
        """Return what became of a figure's notebook in this run."""
        return next((result for result in self.notebooks if result.name == row.notebook), None)

    def file(self, kind: str, name: str) -> Path | None:
        """Return a file of the results that is there."""
        path = self.folder / kind / name
        return path if path.is_file() else None

    def address(self, path: Path) -> str:
        """Return the address of a file as the page links it."""
        return quote(Path(os.path.relpath(path, self.folder)).as_posix(), safe="/#.-")

    def shown(self) -> list[tuple[str, list[tuple[FigureRow, NotebookResult]]]]:
        """Return every paper of this run, with its figures and what became of their notebook."""
        cards: dict[str, list[tuple[FigureRow, NotebookResult]]] = {}
        for row in self.figures:
            if result := self.result_of(row):
                cards.setdefault(row.paper, []).append((row, result))
        return list(cards.items())

    def scorecard(self) -> list[tuple[str, list[dict[str, str]]]]:
        """Return every paper that was judged, with the rows of its claims."""
        if self.claims.empty:
            return []
        groups = self.claims.groupby("paper", sort=False)
        return [(str(paper), rows.to_dict("records")) for paper, rows in groups]  # type: ignore[misc]


def duration(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(read_bytes(path)).decode("ascii")


def render(material: Material) -> str:
    """Write the page."""
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    pages.filters |= {"embedded": _embedded, "duration": duration}
    facts = dict(material.facts) | {"Written": time.strftime("%Y-%m-%d %H:%M %Z")}
    page = pages.get_template("page.html")
    return page.render(m=material, facts=facts, symbols=SYMBOLS, ink=VERDICT_INK)

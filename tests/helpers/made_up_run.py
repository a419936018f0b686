"""A small folder of results that no notebook had to run for."""

import base64
import os

import nbformat
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dlsim.study import pages
from dlsim.study.notebooks import NotebookResult
from dlsim.study.results import Results
from tests.study.test_report import drawing, verdicts

META = {"scale": "quick", "seed": 7, "runs": 0, "seconds": 12.34, "reading": {"link": "shared"}}


def make_run(folder, card=None):
    """Write figures, tables, verdicts, and the executed notebooks 20-mcdf and 90-scorecard."""
    results = Results(folder)
    picture = results.figure("mcdf-fig4", drawing()[1])
    results.figure("mcdf-gantt", drawing()[0])
    results.table("mcdf-fig4", pd.DataFrame({"load": [0.1], "ratio": [1 / 3]}))
    results.table("mcdf-claims", verdicts() if card is None else card)
    write_paper_notebook(folder / "notebooks" / "20-mcdf.ipynb", picture)
    write_scorecard_notebook(folder)
    return folder


def write_paper_notebook(path, picture):
    """Write an executed notebook with formulas, links, a picture, a table and text."""
    png = base64.b64encode(picture.read_bytes()).decode()
    outputs = [
        new_output("display_data", {"image/png": png}, metadata={"image/png": {"width": 90}}),
        new_output("display_data", {"text/html": "<table><tr><td>$n_{min}$</td></tr></table>"}),
        new_output("stream", text="\x1b[31m1 < 2\x1b[0m costs $1 or $2"),
    ]
    text = (
        "# Paper M\n\nAs $\\beta^{n}$, see [theory](10-theory.ipynb) or [all](90-scorecard.ipynb)."
    )
    text += "\n\n![f](../data/figures/mcdf-fig5.png)\n\n| a | b |\n|---|---|\n| $$x = 1$$ | 2 |"
    cells = [new_markdown_cell(text), new_code_cell("x = 1  # $y$", outputs=outputs)]
    path.parent.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)


def write_scorecard_notebook(folder):
    """Write 90-scorecard as it is after it has run: its parts are computed here."""
    here = os.getcwd()
    os.chdir(folder / "notebooks")
    try:
        card = pages.read_scorecards(folder)
        shown = (pages.show_findings, pages.show_figures, pages.show_claims)
        parts = [show(card, folder) for show in shown]
    finally:
        os.chdir(here)
    outputs = [new_output("display_data", {"text/html": part.data}) for part in parts]
    cells = [new_markdown_cell("# What the papers claim"), new_code_cell("code", outputs=outputs)]
    nbformat.write(new_notebook(cells=cells), folder / "notebooks" / "90-scorecard.ipynb")


def ended(folder, name="20-mcdf", **change):
    """Return the result of a notebook of the folder."""
    path = folder / "notebooks" / f"{name}.ipynb"
    fields = {"name": name, "path": path, "status": "ok", "seconds": 3.2}
    return NotebookResult(**(fields | change))

"""What the results page shows of all papers: findings, claims and figures, for 90-scorecard.

Each function returns HTML that a notebook displays. Links lead from the folder of the notebook to
the files of a folder of results; the page that `dlsim.study.pages` makes mends them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from dlsim.files import StrPath
from dlsim.study.claims import SHOWN_SYMBOLS, STRONGER
from dlsim.study.figures import FigureRow, load_figures
from dlsim.study.pages import TEMPLATES
from dlsim.study.style import SHOWN_INK
from dlsim.study.verdict_text import with_sentences

#: What the verdicts mean, for a reader who meets them for the first time.
MEANINGS = {
    "supported": "Every comparison that the claim makes comes out as claimed (each with 95 % "
    "confidence).",
    "partly supported": "Some comparisons come out as claimed, and none is shown to be otherwise.",
    "mixed": "Some comparisons come out as claimed, and others are shown to be otherwise.",
    "contradicted": "Some comparisons are shown to be otherwise, and none comes out as claimed.",
    "inconclusive": "With this number of runs the intervals are too wide to say.",
    "not checkable": "The paper does not say enough to measure it, or it is not about numbers.",
    STRONGER: "The measurement exceeds the paper's number, in the paper's favour.",
}


def show_findings(card: pd.DataFrame, out: StrPath) -> Any:
    """Show, for every paper, its main claim, our finding, and how many claims hold.

    The verdicts are those that `dlsim.study.scorecard.read_scorecards` returns for the folder.
    """
    papers, found = load_figures()[0], []
    folder, card = Path(out), with_sentences(card)
    notebooks = {row.paper: row.notebook for row in reversed(load_figures()[1])}
    for paper, title in _titles(card).items():
        about, rows = papers.get(paper, {}), card[card["paper"] == paper].to_dict("records")
        lead = next((row for row in rows if row["id"] == about.get("claim")), rows[0])
        notebook = folder / "notebooks" / f"{notebooks.get(paper, '')}.ipynb"
        found.append(
            {
                "paper": paper,
                "title": title,
                "source": about.get("source", ""),
                "says": about.get("says", lead["claim"]),
                "found": about.get("found", ""),
                "lead": lead,
                "rows": rows,
                "supported": sum(row["verdict"] == "supported" for row in rows),
                "is_quick": any(row["reference"] for row in rows),
                "picture": _picture_of(folder, lead["figure"]),
                "notebook": _address(notebook),
            }
        )
    return _show("findings", found, papers=_titles(card))


def show_claims(card: pd.DataFrame) -> Any:
    """Show all claims with their verdicts, and menus that show only some of them."""
    return _show("claims", with_sentences(card).to_dict("records"), papers=_titles(card))


def show_figures(card: pd.DataFrame, out: StrPath) -> Any:
    """Show a card for every figure and table of the notebooks that a run has executed."""
    papers, rows = load_figures()
    folder, card = Path(out), with_sentences(card)
    there = {path.name.partition(".")[0] for path in (folder / "notebooks").glob("*.ipynb")}
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in (row for row in rows if row.notebook in there):
        title = papers.get(row.paper, {}).get("title", row.paper)
        groups.setdefault(title, []).append(_card_of(row, card, folder))
    absent = [row for row in rows if row.notebook not in there]
    return _show("figures", list(groups.items()), absent, papers=_titles(card))


def _picture_of(folder: Path, name: str) -> str:
    """Return the address of a picture, or of a drawing that was redrawn once."""
    places = (folder / "figures" / f"{name}.{kind}" for kind in ("png", "svg"))
    return next(filter(None, map(_address, places)), "")


def _card_of(row: FigureRow, card: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Return the card of a figure: its picture, its claims, and links to its files."""
    about = card[card["figure"] == row.id].to_dict("records")
    failed = folder / "notebooks" / f"{row.notebook}.failed.ipynb"
    files_of_figure = {
        "numbers (CSV)": folder / "data" / f"{row.id}.csv",
        "picture (SVG)": folder / "figures" / f"{row.id}.svg",
        "picture (PDF)": folder / "figures" / f"{row.id}.pdf",
        "notebook": failed if failed.is_file() else failed.with_name(f"{row.notebook}.ipynb"),
    }
    links = {text: _address(path) for text, path in files_of_figure.items()}
    return {
        "row": row,
        "claims": about,
        "words": [str(one["verdict"]).replace(" ", "-") for one in about] or ["none"],
        "picture": _picture_of(folder, row.id),
        "has_failed": failed.is_file(),
        "links": {text: address for text, address in links.items() if address},
    }


def _titles(card: pd.DataFrame) -> dict[str, str]:
    """Return the title of every paper that has verdicts, by its key."""
    papers = load_figures()[0]
    keys = dict.fromkeys(str(paper) for paper in card["paper"])
    return {key: papers.get(key, {}).get("title", key) for key in keys}


def _address(path: Path) -> str:
    """Return the way to a file from the notebook that is shown, or "" where there is none."""
    if not path.is_file():
        return ""
    return quote(Path(os.path.relpath(path)).as_posix())


def _show(part: str, *arguments: Any, papers: Mapping[str, str]) -> Any:
    """Return a part of the template as HTML in which texts are escaped."""
    import jinja2
    from IPython.display import HTML

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names: dict[str, Any] = {"symbols": SHOWN_SYMBOLS, "inks": SHOWN_INK, "meanings": MEANINGS}
    names |= {"papers": papers, "zip": zip}
    template = environment.get_template("overview.html.j2", globals=names)
    return HTML(str(getattr(template.module, part)(*arguments)))

"""All verdicts of a suite side by side, for 90-scorecard: list of claims, tables, a picture.

Nothing is measured here. What a run left is taken where there is a run, and the reference
results that travel with dlsim for every paper that it does not hold. Links lead from the folder of
the notebook to the files of a folder of results; the page that `dlsim.study.pages` makes mends
them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from matplotlib.axes import Axes
from pandas.io.formats.style import Styler

from dlsim.errors import InputError
from dlsim.files import StrPath, results_folder
from dlsim.study.claims import (
    VERDICTS,
    beside_reference,
    load_claims,
    read_scorecard,
    reference_of,
    tabulate,
)
from dlsim.study.figures import FigureRow, load_figures
from dlsim.study.pages import TEMPLATES
from dlsim.study.plain_text import WITHOUT_FORMULAS, shown_table
from dlsim.study.plot import axes_of
from dlsim.study.verdict import with_sentences

REFERENCE = "reference, at full scale"


def read_scorecards(out: StrPath = "") -> pd.DataFrame:
    """Collect all scorecards, each from `out` ("": results/latest) or else from data/reference."""
    folder = Path(out) if out else results_folder("latest")
    parts = [tabulate([]).assign(origin="")]
    for paper in dict.fromkeys(claim.paper for claim in load_claims()):
        own, shipped = folder / "data" / f"{paper}-claims.csv", reference_of(paper)
        try:
            if own.exists():
                card = read_scorecard(own)
                parts.append(card.assign(origin="this run: " + card["sample"]))
            elif shipped.exists():
                parts.append(read_scorecard(shipped).assign(origin=REFERENCE))
        except InputError as error:
            raise InputError(f"{error}; run dlsim reproduce again") from error
    return beside_reference(pd.concat(parts[1:] or parts, ignore_index=True))


def count_verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of every paper."""
    table = pd.crosstab(frame["paper"], frame["verdict"])
    papers = list(dict.fromkeys(frame["paper"]))
    return table.reindex(index=papers, columns=list(VERDICTS), fill_value=0)


def plot_counts(frame: pd.DataFrame) -> Axes:
    """Draw how many claims of every paper hold: one bar per paper, a part per verdict."""
    if frame.empty:
        raise InputError("a picture of verdicts needs claims, got none: run dlsim reproduce")
    table = count_verdicts(frame)
    ax = axes_of(None, (9, 1.2 + 0.42 * len(table)))
    left = table.cumsum(axis=1) - table
    for word, (symbol, color, _) in VERDICTS.items():
        bars = ax.barh(
            list(table.index),
            table[word],
            left=left[word],
            color=color,
            height=0.68,
            edgecolor="white",
            linewidth=1.5,
            label=f"{symbol} {word}",
        )
        labels = [f"{symbol} {number}" if number else "" for number in table[word]]
        ax.bar_label(bars, labels, label_type="center", color="#222222", fontsize=9)
    ax.invert_yaxis()
    ax.grid(False)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="claims", xlim=(0, table.sum(axis=1).max()))
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, columnspacing=1.4)
    return ax


def style_table(frame: pd.DataFrame) -> Styler:
    """Show a table of texts, which stand at the left."""
    props = [("text-align", "left"), ("vertical-align", "top")]
    styles: Any = [{"selector": "th, td", "props": props}]
    return shown_table(frame).hide().set_table_styles(styles)


def style_claims(frame: pd.DataFrame, *columns: str) -> Styler:
    """Show columns of a scorecard, a verdict in colour and symbol with its number of points."""
    shown = with_sentences(frame)
    words = shown["verdict"]
    colors = words.map({word: one.color for word, one in VERDICTS.items()})
    inks = "background-color: " + colors + "; color: #1d1d1f"
    counted = [
        " ".join(filter(None, [VERDICTS[word].symbol, whose, word, count]))
        for word, whose, count in zip(
            words, shown["whose_experiment"], shown["counted"], strict=True
        )
    ]
    shown = shown.assign(verdict=counted)
    style = style_table(shown[list(columns)])
    if "id" in columns:
        style = style.set_properties(subset=["id"], **{"white-space": "nowrap"})
    return style.apply(lambda _: inks, subset=["verdict"])


def style_verdicts(frame: pd.DataFrame, *more: str) -> Styler:
    """Show the claims of one paper, with further columns after the id, and the reasons."""
    beside = ["reference", "agreement"] if frame["reference"].any() else []
    columns = ("claim", "printed", "measured", "verdict", *beside, "readings", "reason")
    return style_claims(frame, "id", *more, *columns)


def show_findings(card: pd.DataFrame, out: StrPath) -> Any:
    """Show, for every paper, its main claim, our finding, and how many claims hold.

    The verdicts are those that `dlsim.study.scorecard.read_scorecards` returns for the folder.
    """
    papers, found = load_figures()[0], []
    folder, card = Path(out), with_sentences(card)
    notebooks = {row.paper: row.notebook for row in reversed(load_figures()[1])}
    for paper, title in _titles(card).items():
        about, rows = papers.get(paper, {}), card[card["paper"] == paper].to_dict("records")
        leads = [row for row in rows if row["id"] in about.get("claims", ())] or rows[:1]
        notebook = folder / "notebooks" / f"{notebooks.get(paper, '')}.ipynb"
        found.append(
            {
                "paper": paper,
                "title": title,
                "source": about.get("source", ""),
                "says": about.get("says", leads[0]["claim"]),
                "found": about.get("found", ""),
                "terms": about.get("terms", ""),
                "leads": leads,
                "rows": rows,
                "supported": sum(row["verdict"] == "supported" for row in rows),
                "is_quick": any(row["reference"] for row in rows),
                "picture": _picture_of(folder, leads[0]["figure"]),
                "notebook": _address(notebook),
            }
        )
    return _show("findings", found, card=card)


def show_claims(card: pd.DataFrame, out: StrPath) -> Any:
    """Show all claims with verdicts and links to files, and menus that show only some of them."""
    folder, rows = Path(out), with_sentences(card).to_dict("records")
    figures = {row.id: row for row in load_figures()[1]}
    notebooks = {row.paper: row.notebook for row in reversed(figures.values())}
    for row in rows:
        figure = figures.get(row["figure"])
        notebook = figure.notebook if figure else notebooks.get(row["paper"], "")
        files_of_claim = {
            "numbers": folder / "data" / f"{row['figure']}.csv",
            "comparisons": folder / "data" / f"{row['paper']}-points.csv",
            "notebook": folder / "notebooks" / f"{notebook}.ipynb",
        }
        links = {"figure": _picture_of(folder, row["figure"])}
        links |= {text: _address(path) for text, path in files_of_claim.items()}
        row["links"] = {text: address for text, address in links.items() if address}
    return _show("claims", rows, card=card)


def show_figures(card: pd.DataFrame, out: StrPath) -> Any:
    """Show a card for every figure and table of the notebooks that a run has executed."""
    papers, rows = load_figures()
    folder, card = Path(out), with_sentences(card)
    there = {path.name.partition(".")[0] for path in (folder / "notebooks").glob("*.ipynb")}
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in (row for row in rows if row.notebook in there):
        title = _title_of(row.paper, papers)
        groups.setdefault(title, []).append(_card_of(row, card, folder))
    absent = [row for row in rows if row.notebook not in there]
    return _show("figures", list(groups.items()), absent, card=card)


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
    return {key: _title_of(key, papers) for key in map(str, card["paper"])}


def _title_of(paper: str, papers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the title of a paper after its letter, if it has one."""
    about = papers.get(paper, {})
    title = str(about.get("title", paper))
    return f"Paper {about['letter']}: {title}" if "letter" in about else title


def _address(path: Path) -> str:
    """Return the way to a file from the notebook that is shown, or "" where there is none."""
    if not path.is_file():
        return ""
    return quote(Path(os.path.relpath(path)).as_posix())


def _show(part: str, *arguments: Any, card: pd.DataFrame) -> Any:
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
    menu = {word: word for word in VERDICTS}
    names = {"words": VERDICTS, "papers": _titles(card), "menu_of_words": menu}
    template = environment.get_template("overview.html.j2", globals=names)
    text = str(getattr(template.module, part)(*arguments))
    return HTML(f'<article class="{WITHOUT_FORMULAS}">{text}</article>')

"""All verdicts of a suite side by side: read back, tabulated, counted in one picture.

Nothing is measured here. What a run left is taken where there is a run, and the reference
results that travel with dlsim for every paper that it does not hold.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from pandas.io.formats.style import Styler

from dlsim.errors import InputError
from dlsim.files import StrPath, read_json, results_folder
from dlsim.study.claims import (
    SHOWN_SYMBOLS,
    SHOWN_WORDS,
    load_claims,
    read_scorecard,
    reference_of,
    scorecard,
    words_for_readers,
)
from dlsim.study.plot import axes_of
from dlsim.study.style import SHOWN_INK
from dlsim.study.verdict_text import with_sentences

REFERENCE = "reference, at the papers' scale"


def _origin(folder: Path, paper: str) -> str:
    """Say with what parameters a paper's notebook last ended well in a folder of results."""
    for stamp in sorted((folder / "notebooks").glob(f".*-{paper}.stamp.json")):
        executed = stamp.with_name(stamp.name[1:].replace(".stamp.json", ".ipynb"))
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # of a damaged stamp
            given = read_json(stamp)["parameters"]
            words = [f"this run, scale {given.get('scale')}, seed {given.get('seed')}"]
            words += [f"{given['runs']} runs"] * bool(given.get("runs"))
            words += [f"{k}={v}" for k, v in (given.get("reading") or {}).items()]
            if executed.is_file():
                return ", ".join(words)
    return "a run that did not end, or ran by itself"


def read_scorecards(out: StrPath = "") -> pd.DataFrame:
    """Collect all scorecards, each from `out` ("": results/latest) or else from data/reference."""
    folder = Path(out) if out else results_folder("latest")
    parts = [scorecard([]).assign(origin="")]
    for paper in dict.fromkeys(claim.paper for claim in load_claims()):
        own, shipped = folder / "data" / f"{paper}-claims.csv", reference_of(paper)
        try:
            if own.exists():
                parts.append(read_scorecard(own).assign(origin=_origin(folder, paper)))
            elif shipped.exists():
                parts.append(read_scorecard(shipped).assign(origin=REFERENCE))
        except InputError as error:
            raise InputError(f"{error}; run dlsim reproduce again") from error
    return pd.concat(parts, ignore_index=True)


def count_verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of every paper, by the words that a reader is shown."""
    table = pd.crosstab(frame["paper"], words_for_readers(frame).rename("verdict"))
    papers = list(dict.fromkeys(frame["paper"]))
    return table.reindex(index=papers, columns=list(SHOWN_SYMBOLS), fill_value=0)


def plot_counts(frame: pd.DataFrame) -> Axes:
    """Draw how many claims of every paper hold: one bar per paper, a part per verdict."""
    if frame.empty:
        raise InputError("a picture of verdicts needs claims, got none: run dlsim reproduce")
    table = count_verdicts(frame)
    ax = axes_of(None, (9, 1.2 + 0.42 * len(table)))
    left = table.cumsum(axis=1) - table
    for word, symbol in SHOWN_SYMBOLS.items():
        bars = ax.barh(
            list(table.index),
            table[word],
            left=left[word],
            color=SHOWN_INK[word],
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
    """Show a table of texts, which are escaped and stand at the left."""
    props = [("text-align", "left"), ("vertical-align", "top")]
    styles: Any = [{"selector": "th, td", "props": props}]
    return frame.style.hide().format(escape="html").set_table_styles(styles)


def style_claims(frame: pd.DataFrame, *columns: str) -> Styler:
    """Show columns of a scorecard, a verdict in colour and symbol."""
    shown = with_sentences(frame)
    words = shown["verdict"]
    inks = "background-color: " + words.map(SHOWN_INK) + "; color: #1d1d1f; white-space: nowrap"
    agreement = frame["agreement"].str.replace("undecided", SHOWN_WORDS["undecided"])
    shown = shown.assign(verdict=words.map(SHOWN_SYMBOLS) + " " + words, agreement=agreement)
    style = style_table(shown[list(columns)])
    if "id" in columns:
        style = style.set_properties(subset=["id"], **{"white-space": "nowrap"})
    return style.apply(lambda _: inks, subset=["verdict"])


def style_verdicts(frame: pd.DataFrame, *more: str) -> Styler:
    """Show the claims of one paper, with further columns after the id, and the reasons."""
    beside = ["reference", "agreement"] if frame["reference"].any() else []
    columns = ("claim", "printed", "measured", "verdict", *beside, "reason")
    return style_claims(frame, "id", *more, *columns)

"""What an executed notebook shows."""

import functools
import re

import nbformat
import pandas as pd

from dlsim.study.claims import SYMBOLS, reference_of

_VERDICT = re.compile(rf"\*\*([\w-]+) ({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})\*\*")


def said(path):
    """All sentences that a notebook computed, in one text."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in outputs)


def unsaid(path, card, elsewhere=()):
    """Verdicts of a scorecard that a notebook does not say by their pictures, or contradicts.

    What another notebook says is named in `elsewhere`.
    """
    table = pd.read_csv(card, keep_default_na=False)
    pairs = pd.Series(zip(table["id"], table["verdict"], strict=True))
    due = pairs[(table["figure"] != "") & ~table["id"].isin(elsewhere)]
    found = set(_VERDICT.findall(said(path)))
    prose = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type != "code"]
    fixed = [pair for cell in prose for pair in _VERDICT.findall(cell.source)]
    assert fixed == []  # what is written down cannot know the reading
    return sorted((set(due) - found) | (found - set(pairs)))


def shown_beside_the_shipped(out, paper, reading):
    """Whether the map has this run's own verdicts before the shipped ones, and they differ."""
    read = functools.partial(pd.read_csv, index_col="claim")
    table = read(out / "data" / f"{paper}-readings.csv")
    shipped = read(reference_of(paper).parent / f"{paper}-readings.csv")
    card = pd.read_csv(out / "data" / f"{paper}-claims.csv", index_col="id")["verdict"]
    own, *others = table
    assert own == f"this run: {reading}"
    assert (
        table[own].str.replace(r" \d+/\d+$", "", regex=True).to_dict()
        == card[table.index].to_dict()
    )
    assert table[others].to_dict() == shipped.to_dict()
    return bool((table[own] != table["default"]).any())

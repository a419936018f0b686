"""What an executed notebook shows."""

import re

import nbformat
import pandas as pd

from dlsim.study.claims import SYMBOLS

_VERDICT = re.compile(rf"\*\*([\w-]+) ({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})\*\*")


def said(path):
    """All sentences that a notebook computed, in one text."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in outputs)


def needs_saying(study):
    """The sentences of all claims that a picture belongs to."""
    return [v.sentence for v in study.verdicts if v.claim.figure]


def unsaid(path, card):
    """Claims whose verdict on the scorecard a notebook does not say, or contradicts."""
    table = pd.read_csv(card, keep_default_na=False)
    words = dict(zip(table["id"], table["verdict"], strict=True))
    found = _VERDICT.findall(said(path))
    prose = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type != "code"]
    fixed = [pair for cell in prose for pair in _VERDICT.findall(cell.source)]
    assert fixed == []  # what is written down cannot know the reading
    return sorted(set(words.items()) ^ set(found))

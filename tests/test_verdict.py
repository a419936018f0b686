"""The sentences about verdicts are made from rows of numbers, and stay what they were.

They were frozen when a scorecard held texts. Since then one point of mcdf-15 has another name.
"""

import csv
from pathlib import Path

import pytest

from dlsim.study import scorecard
from dlsim.study.verdict import with_sentences

FROZEN = Path(__file__).parent / "golden" / "verdicts.csv"


@pytest.fixture(scope="module")
def shown():
    return with_sentences(scorecard.read_scorecards("nowhere")).set_index("id")


def frozen():
    with FROZEN.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", frozen(), ids=lambda row: row["id"])
def test_verdicts_and_sentences_are_those_that_were_frozen(shown, row):
    name = row.pop("id")
    now = shown.loc[name]
    apart = [column for column in row if now[column] != row[column]]
    assert apart == [], {column: (row[column], now[column]) for column in apart}

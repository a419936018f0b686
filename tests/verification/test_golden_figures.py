"""Figures, tables and verdicts at quick scale are the same bytes as when they were frozen.

They were frozen with all digits of a float; since then tables are written with twelve. With
release 2.0.0 the scorecards and the map of readings of paper I were frozen anew: they show the
reference results beside their own, and these are new.
Since LPRR starts from one vertex at every size, its rows in 14 tables of paper S are frozen anew;
so is claim 9a of paper I, since Theorem 1 is corrected.
A test that fails here found a result that moved: explain it and freeze anew, or undo it.
"""

import csv
import io
import os
from pathlib import Path

import pytest

from tests.golden import figures, versions

#: Another solver may return another optimal vertex.
COMPARED = [
    name for name in figures.PAPERS if name != "steady-state" or versions.is_frozen_solver()
]
RESULTS = os.environ.get("DLSIM_QUICK_RESULTS")


def twelve_digits(table: bytes) -> bytes:
    """Write a table again with at most twelve digits in every float."""

    def shortened(cell: str) -> str:
        try:
            is_whole = cell.removeprefix("-").isdigit()
            return cell if is_whole else repr(float(f"{float(cell):.12g}"))
        except ValueError:  # a text
            return cell

    text = io.StringIO()
    rows = csv.reader(io.StringIO(table.decode()))
    csv.writer(text, lineterminator="\n").writerows([map(shortened, row) for row in rows])
    return text.getvalue().encode()


def test_the_thirteenth_digit_goes():
    table = b'name,load\n"a, b",2047.9999999999989\n,1e-05\n12345678901234,0.1\n'
    short = b'name,load\n"a, b",2048.0\n,1e-05\n12345678901234,0.1\n'
    assert twelve_digits(table) == short


@pytest.mark.skipif(not RESULTS, reason="DLSIM_QUICK_RESULTS names no results at quick scale")
@pytest.mark.parametrize("paper", COMPARED)
def test_results_are_the_same_bytes(paper):
    was, now = figures.frozen(paper), figures.results_of(Path(str(RESULTS)), paper)
    added = [f"{paper}-points.csv"] * (paper != "theory")  # came after the others were frozen
    assert sorted(now) == sorted([*was, *added])
    assert [name for name in was if now[name] != twelve_digits(was[name])] == []

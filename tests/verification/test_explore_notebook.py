"""What 70-explore shows: its cells, run in one namespace, against numbers worked elsewhere."""

import re
from fractions import Fraction
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from dlsim import explore
from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "70-explore.ipynb"


def execution_time(n, st, sc):
    """Time of 100 units on n nodes, Cms = Cps = 10, in fractions: all nodes end together.

    Node i + 1 is sent its share while node i computes: 10 a_i + sc = st + 20 a_(i+1) + sc.
    """
    one, rest = Fraction(1), Fraction(0)  # a_i = one * a_1 + rest
    ones, rests = one, rest
    for _ in range(n - 1):
        one, rest = one / 2, (rest * 10 - st) / 20
        ones, rests = ones + one, rests + rest
    return st + 20 * (100 - rests) / ones + sc


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that the notebook's cells leave, and what each shows, by its id."""
    folder = tmp_path_factory.mktemp("explore")
    names = in_one_space(NOTEBOOK, folder, {"out": str(folder / "slides")})
    plt.close("all")
    return names


def test_more_nodes_stop_helping_because_of_the_set_ups(seen):
    for cell, set_ups in (("explore-21", (40, 20)), ("explore-23", (0, 0))):
        lines = seen[1][f"{cell} said"].splitlines()
        fastest = min(range(1, 11), key=lambda n: execution_time(n, *set_ups))
        assert fastest == {40: 4, 0: 10}[set_ups[0]]
        for line, n in zip(lines, (3, 4, 5, 10), strict=True):
            if n <= fastest:  # beyond, the formula is no schedule: shares are negative
                time = float(execution_time(n, *set_ups))
                assert f"On {n} of 10 nodes the load ends at {time:.4g}," in line
            assert re.search(rf"{fastest} (is|are) the fastest", line)
            assert ("one more set-up costs more" in line) == (n > fastest)


def ends_of(panel, **given):
    """Return the numbers at the ends of the titles of a panel's pictures."""
    figure, _ = panel.picture(**given)
    return [float(ax.get_title(loc="left").split()[-1]) for ax in figure.axes]


@pytest.mark.parametrize(
    ("free_at", "ends"),
    [  # send 1, compute 3, size 14: cases 2 and 3 of paper I, worked by hand
        ("0, 21", [53, Fraction(424, 11), Fraction(77, 2)]),
        ("12, 0", [44, None, 34]),
        ("5, 5", [37, 37, 37]),
    ],
)
def test_ways_of_using_idle_nodes_by_hand(free_at, ends):
    found = ends_of(explore.idle_time, free_at=free_at, size=14.0, send=1.0, compute=3.0)
    for value, end in zip(found, ends, strict=False):
        if end is not None:
            assert value == pytest.approx(float(end), rel=1e-4)


def test_the_sentence_says_what_waiting_costs_by_hand():
    # Figures 1a and 1b of paper I: 36 + 22 + 10 of idle time; 36 + 40/(1 - .8^4); 4 e - 76 = 200
    said = explore.idle_time.sentence(free_at="0, 14, 26, 36", size=40.0, send=1.0, compute=4.0)
    assert "inserts 68 of idle time, and the load ends at 103.75, 50.4 % later" in said
    assert said.endswith("(optimum of one round: 69).")
    alone = explore.idle_time.sentence(free_at="5, 5", size=14.0, send=1.0, compute=3.0)
    assert alone.startswith(
        "Waiting for the last node inserts 0 of idle time, and the load ends at 37"
    )


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ({}, [30, 18, 18]),
        ({"copy_engines": 1}, [30, 26, 26]),
        ({"pinned": False}, [30, 30, 30]),
        ({"chunks": 1}, [6, 6, 6]),
    ],
)
def test_overlap_of_copies_and_kernels_by_hand(change, ends):
    assert ends_of(explore.overlap, **change) == ends
    said = explore.overlap.sentence(**change)
    assert f"With one stream the last chunk is done at {ends[0]};" in said
    for streams, end in zip((2, 3), ends[1:], strict=True):
        gain = "no faster" if end == ends[0] else f"{ends[0] / end:.3g} times as fast"
        assert f"{gain} with {streams}" in said


def test_the_notebook_shows_every_panel(seen):
    code = NOTEBOOK.read_text("utf-8")
    assert all(f"explore.{name}(" in code for name in explore.PANELS)

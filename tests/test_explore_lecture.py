"""The section for a lecturer in 70-explore: its cells, run, against numbers worked elsewhere."""

import io
import re
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "70-explore.ipynb"


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
def lecture(tmp_path_factory):
    """What the cells printed, in order, and the names they left."""
    names, said = {"out": str(tmp_path_factory.mktemp("slides"))}, []
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.id == "explore-02" or cell.id >= "explore-20":
            if cell.cell_type == "code":
                with redirect_stdout(io.StringIO()) as stream:
                    exec(cell.source.replace("explore.save_pictures", "str"), names)
                said.append(stream.getvalue().splitlines())
    return names, said


def test_more_nodes_stop_helping_because_of_the_set_ups(lecture):
    for lines, set_ups in zip(lecture[1][1:3], ((40, 20), (0, 0)), strict=True):
        times = [execution_time(n, *set_ups) for n in (3, 4, 5, 10)]
        fastest = min(range(1, 11), key=lambda n: execution_time(n, *set_ups))
        assert fastest == {40: 4, 0: 10}[set_ups[0]]
        for line, n, time in zip(lines, (3, 4, 5, 10), times, strict=True):
            if n <= fastest:  # beyond, the formula is no schedule: shares are negative
                assert f"On {n} of 10 nodes the load ends at {float(time):.4g}," in line
            assert re.search(rf"{fastest} (is|are) the fastest", line)
            assert ("Beyond that a further set-up costs more" in line) == (n > fastest)


def test_the_slides_are_named_after_the_panel_and_hold_its_sentence(lecture):
    names = [path.name for path in lecture[0]["slides"]]
    assert names == ["explore-timing-used-5.svg", "explore-timing-used-5-st-0-sc-0.svg"]
    first, second = (path.read_bytes() for path in lecture[0]["slides"])
    assert first.startswith(b"<?xml")
    assert first != second
    assert first == lecture[0]["explore"].timing.saved("svg", used=5)

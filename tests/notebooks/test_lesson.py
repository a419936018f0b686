"""What the answers of 75-lesson say of the panels, against the engines behind the panels."""

import itertools
import json
import re
from pathlib import Path

import pytest

from dlsim import explore

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "75-lesson.ipynb"


def numbers(sentence):
    """Return the numbers of a sentence in their order."""
    return [float(text) for text in re.findall(r"(?<![\w-])\d+(?:\.\d+)?", sentence)]


def test_from_the_fifth_node_on_the_load_ends_later():
    ends = [numbers(explore.timing.sentence(used=used))[2] for used in range(1, 11)]
    assert ends.index(min(ends)) == 3
    assert ends[:4] == sorted(ends[:4], reverse=True)
    assert ends[3:] == sorted(ends[3:])
    free = [numbers(explore.timing.sentence(used=used, st=0))[2] for used in range(1, 11)]
    gains = [before - after for before, after in itertools.pairwise(free)]
    assert all(gain > 0 for gain in gains)
    assert gains == sorted(gains, reverse=True)


def test_the_longer_the_last_node_keeps_the_others_waiting_the_more_is_lost():
    lost = []
    for free_at in ((0, 0, 0), (0, 20, 40), (0, 40, 80)):
        sentence = explore.idle_time.sentence(free_at=free_at)
        lost.append(float(re.search(r"([\d.]+) % later", sentence)[1]))
    assert lost == sorted(lost)


def test_greedy_beats_rounding_down_and_random_rounding_is_optimal_on_the_panels_network():
    share = {
        method: float(
            re.search(r"([\d.]+) % of the optimum", explore.wan.sentence(method=method))[1]
        )
        for method in ("LPRG", "G", "LPRR")
    }
    assert share["LPRG"] < share["G"] < share["LPRR"] == 100


@pytest.mark.parametrize(("probe", "greedy_is_later"), [(60, False), (600, True), (3600, True)])
def test_old_measurements_hurt_greedy_more(probe, greedy_is_later):
    sentence = explore.grid.sentence(probe=probe)
    deadline = float(re.search(r"([\d.]+) % of \d+ requests late", sentence)[1])
    greedy = float(re.search(r"Greedy: ([\d.]+) %", sentence)[1])
    assert (greedy > deadline) == greedy_is_later


def test_minutes_of_the_plan_are_those_of_the_steps():
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    plan = re.findall(r"^\| (\d+) to (\d+) \|", texts[0], flags=re.MULTILINE)
    steps = re.findall(r"^## Minutes (\d+) to (\d+):", "\n".join(texts), flags=re.MULTILINE)
    assert plan == steps
    assert [end for _, end in plan[:-1]] == [begin for begin, _ in plan[1:]]
    assert plan[-1][1] == "45"

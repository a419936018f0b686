"""What the answers of 75-lesson say of the panels, against the engines behind the panels."""

import ast
import itertools
import json
import re
from pathlib import Path

import pytest

from dlsim import explore

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "75-lesson.ipynb"
CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
TEXTS = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown"]


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
    assert ", in time:" in explore.timing.sentence(used=3)
    assert ", too late:" in explore.timing.sentence(used=10)


def test_the_longer_the_last_node_keeps_the_others_waiting_the_more_is_lost():
    lost = []
    for free_at in ((0, 0, 0), (0, 20, 40), (0, 40, 80)):
        sentence = explore.idle_time.sentence(free_at=free_at)
        lost.append(float(re.search(r"([\d.]+) % later", sentence)[1]))
    assert lost == sorted(lost)


def test_late_nodes_as_slow_ones_end_near_the_best_split_into_one_share_per_node():
    later = []
    for free_at in ((0, 0, 0), (0, 20, 40), (0, 40, 80)):
        figure, _ = explore.idle_time.picture(free_at=free_at)
        ends = [float(ax.get_title(loc="left").split()[-1]) for ax in figure.axes]
        _, slow, best, rounds = ends
        later.append(slow / best - 1)
        assert (rounds < best) == (free_at == (0, 0, 0))
    assert 0.12 < max(later) <= 0.13


def share_of_optimum(method, connections=10):
    """Return the objective of a method in the panel of 70, in percent of the optimum."""
    sentence = explore.wan.sentence(method=method, connections=connections)
    return float(re.search(r"([\d.]+) % of the optimum", sentence)[1])


def test_methods_on_the_network_of_the_panel():
    assert share_of_optimum("LPR") == 0
    assert 95 < share_of_optimum("LPRG") < share_of_optimum("G") < share_of_optimum("LPRR") == 100
    assert share_of_optimum("G", 4) < share_of_optimum("LPRG", 4)
    for connections in range(4):
        assert share_of_optimum("G", connections) == share_of_optimum("LPRG", connections) == 100


def late_in_percent(probe, correction=False):
    """Return how many requests Deadline and Greedy make late, in percent."""
    sentence = explore.grid.sentence(probe=probe, correction=correction)
    deadline = re.search(r"([\d.]+) % of \d+ requests late", sentence)[1]
    return float(deadline), float(re.search(r"Greedy: ([\d.]+) %", sentence)[1])


@pytest.mark.parametrize(("probe", "greedy_is_later"), [(60, False), (600, True), (3600, True)])
def test_old_measurements_hurt_greedy_more(probe, greedy_is_later):
    deadline, greedy = late_in_percent(probe)
    assert (greedy > deadline) == greedy_is_later


def test_load_correction_in_the_answer_is_what_the_panel_says():
    answer = next(text for text in TEXTS if "Load Correction adds" in text)
    said = [float(number) for number in re.findall(r"([\d.]+) %", answer)]
    before, after = late_in_percent(3600), late_in_percent(3600, correction=True)
    assert said == [after[1], before[1], after[0], before[0]]


def test_every_answer_and_its_numbers_are_folded():
    """JupyterLab unfolds the output of a cell that runs, so the output itself is folded."""
    for cell in CELLS:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            last = ast.unparse(ast.parse(source).body[-1])
            assert re.match(r"(reading|explore\.\w+\(|def fold|fold\()", last)
            assert ".sentence(" not in source or last.startswith("fold(")
        else:
            for word in ("Answer", "Solution"):
                assert (f"**{word}**" in source or f"{word}</b>" in source) == (
                    source.startswith(f"<details><summary><b>{word}</b></summary>")
                )


def test_minutes_of_the_plan_are_those_of_the_steps():
    plan = re.findall(r"^\| (\d+) to (\d+) \|", TEXTS[0], flags=re.MULTILINE)
    steps = re.findall(r"^## Minutes (\d+) to (\d+):", "\n".join(TEXTS), flags=re.MULTILINE)
    assert plan == steps
    assert [end for _, end in plan[:-1]] == [begin for begin, _ in plan[1:]]
    assert plan[-1][1] == "45"

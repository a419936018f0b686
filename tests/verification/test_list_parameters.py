"""Every list parameter of every notebook with one value, and with values that leave a figure empty.

The notebooks are run in this process at tiny sizes. A list that is empty, holds a value twice or is
of a wrong type is refused: `tests.notebooks.test_parameters`.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from dlsim.study.notebooks import parameters_of
from dlsim.study.results import paper_of
from tests.helpers.scale import LONG, some_of
from tests.verification.executed import run_small

FOLDER = Path(__file__).parents[2] / "notebooks"
#: How much is computed: tiny rows of data/scales.toml.
SIZES = {
    "mcdf": {"horizon": 1e5, "ratio_horizon": 1e5, "pools": 4},
    "inserted-idle-time": {
        "horizon": 1e5, "map_horizon": 5e4, "pools": 4,
    },
    "steady-state": {
        "tiers_clusters": [5, 7], "random_clusters": [5, 7], "connectivities": [0.4, 0.8],
        "tiers_runs": 2, "random_runs": 2, "tiers_every": 1, "random_every": 1, "map_tiers_runs": 2,
        "map_runs": 2, "exact_every": 1, "vertices": 3, "vertex_clusters": [5], "vertex_runs": 2,
        "side_clusters": [5], "timed_clusters": [5, 7], "timed_runs": 1,
        "churn_clusters": [5], "churn_runs": 2, "churn_hours": 3.0,
    },
    "cpu-gpu": {"draws": 3, "words": 300},
    "bricks": {
        "hours": 2.0, "front_hours": 1.0, "other_hours": 1.0, "other_runs": 2, "map_runs": 2,
        "slow_runs": 2,
    },
}  # fmt: skip
#: Other parameters of every run of a notebook, so small that it takes seconds.
SMALL = {
    "00-start-here": {},
    "20-mcdf": {"loads": [0.2, 0.5], "setups": [0, 5], "ratios": [0.5, 3], "runs": 2},
    "21-mcdf-beyond": {"loads": [0.2, 0.5], "runs": 2},
    "30-inserted-idle-time": {"loads": [0.5, 1.0], "taus": [2, 1], "runs": 2},
    "31-inserted-idle-time-beyond": {
        "taus": [2, 1], "dc_ratios": [2, 3], "clusters": [4], "runs": 2,
    },
    "40-steady-state": {"runs": 2},
    "41-steady-state-beyond": {"runs": 2},
    "50-cpu-gpu": {"mixes": ["lee", "wide"], "runs": 2},
    "51-cpu-gpu-beyond": {"mixes": ["lee", "wide"], "runs": 2},
    "60-bricks": {"intervals": [60], "fallbacks": [0, 1], "policies": ["Greedy", "D-0.7"],
                  "runs": 2},
    "65-your-log": {},
}  # fmt: skip
#: One value of each list, then values that have no partner in a comparison or leave a figure empty.
LISTS = {
    "00-start-here": [
        {"arrivals": [0], "sizes": [8], "deadlines": [22]},
        {"arrivals": [0], "sizes": [8], "deadlines": [1]},
    ],
    "20-mcdf": [
        {"loads": [0.5]}, {"loads": [7]}, {"setups": [0]}, {"setups": [5]}, {"setups": [3]},
        {"ratios": [1]}, {"ratios": [5]}, {"policies": ["mine=EDFMN"]},
        {"loads": [0.5], "setups": [0], "ratios": [1], "runs": 1},
    ],
    "21-mcdf-beyond": [{"loads": [0.5]}, {"loads": [7]}, {"policies": ["mine=EDFMN"]}],
    "30-inserted-idle-time": [
        {"loads": [0.5]}, {"loads": [0.75]}, {"taus": [3]}, {"policies": ["mine=FIFO-DLT"]},
        {"loads": [1.0], "taus": [1], "runs": 1},
    ],
    "31-inserted-idle-time-beyond": [
        {"taus": [1]}, {"dc_ratios": [2]}, {"dc_ratios": [7]}, {"clusters": [1]},
        {"policies": ["mine=EDF-DLT"]},
    ],
    "40-steady-state": [
        {"tiers_clusters": [5]}, {"random_clusters": [5]}, {"side_clusters": [5]},
        {"tiers_clusters": [9], "random_clusters": [9]},
        {"tiers_clusters": [2], "random_clusters": [2], "side_clusters": [2]},
    ],
    "41-steady-state-beyond": [{"side_clusters": [5]}, {"side_clusters": [2]}],
    "50-cpu-gpu": [{"mixes": ["lee"]}, {"mixes": ["balanced"]}, {"policies": ["mct"]}],
    "51-cpu-gpu-beyond": [{"mixes": ["lee"]}],
    "60-bricks": [
        {"intervals": [75]}, {"fallbacks": [0]}, {"fallbacks": [1]}, {"fallbacks": [3]},
        {"policies": ["Greedy"]}, {"policies": ["D-0.7"]}, {"policies": ["D-0.3", "D-0.7"]},
    ],
    "65-your-log": [
        {"factors": [2]}, {"factors": [7]}, {"ignore": ["weight"]}, {"policy": ["MCDF"]},
    ],
}  # fmt: skip
CASES = [(name, given) for name, rows in LISTS.items() for given in rows]


def run(name, folder, **given):
    """Run a notebook at tiny sizes; return all that its cells printed."""
    sizes = {"runs": 2, **SIZES.get(paper_of(name), {})}
    _, shown, _ = run_small(name, folder, sizes, **SMALL[name] | given)
    return "\n".join(text for cell, text in shown.items() if cell.endswith(" said"))


def test_every_list_parameter_has_a_case():
    for path in FOLDER.glob("*.ipynb"):
        lists = {name for name, kind in parameters_of(path).items() if kind == "list"}
        assert lists == {key for given in LISTS.get(path.stem, ()) for key in given} & lists
        assert path.stem in LISTS or not lists


@pytest.mark.parametrize(("name", "given"), some_of(CASES, LONG))
def test_one_value_and_values_without_a_partner_run_to_the_end(name, given, tmp_path):
    run(name, tmp_path, **given)
    for path in (tmp_path / "results" / "data").glob("*.csv"):
        assert len(pd.read_csv(path)), f"{path.name} is empty"


@pytest.mark.parametrize(
    ("setups", "left_out"), [([0], {6, 7, 8, 9}), ([5], {4, 5, 7, 8, 9}), ([0, 10], {6, 8, 9})]
)
def test_a_figure_without_rows_is_left_out_with_a_line(setups, left_out, tmp_path):
    said = run("20-mcdf", tmp_path, setups=setups)
    lines = re.findall(r"^mcdf-fig(\d+) is left out: it needs the set-up cost", said, re.MULTILINE)
    assert set(map(int, lines)) == left_out
    drawn = {path.stem for path in (tmp_path / "results" / "figures").glob("mcdf-fig?.png")}
    assert drawn == {f"mcdf-fig{k}" for k in {4, 5, 6, 7, 8, 9} - left_out}

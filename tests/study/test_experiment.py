"""A run of other code, loads or policies is another experiment; a policy in addition is not."""

import importlib.util
import json
import linecache
import re
import sys
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

from dlsim.files import shared_file
from dlsim.study import fingerprint, judge, session, show_scorecard
from dlsim.study.claims import beside_reference, read_scorecard

ROOT = Path(__file__).resolve().parents[2]
#: The cells of 20-mcdf up to the sweep of Figures 4 to 9.
CELLS = ("mcdf-01", "mcdf-02", "mcdf-02b", "mcdf-04b")
SMALL = {"loads": [0.5], "setups": [0], "runs": 2, "jobs": 1}
RULES = "from dlsim.realtime import POLICIES\n\nmine = POLICIES['EDF-OPR-MN']\n"
#: Sizes of the tasks in two groups, in place of the paper's law.
BIMODAL = (
    "    return tasks, Reading.from_switches(rules)\n",
    "    few = seed.generate_state(len(tasks)) % 2 == 0\n"
    '    tasks["sigma"] = np.where(few, 20.0, 180.0) * times\n'
    "    return tasks, Reading.from_switches(rules)\n",
)


@pytest.fixture(autouse=True)
def _no_module():
    yield
    sys.modules.pop("figures", None)


def run_figures(folder, change=("", ""), **parameters):
    """Run the first experiment of 20-mcdf, shortened, with one change of its code."""
    book = json.loads((ROOT / "notebooks" / "20-mcdf.ipynb").read_text("utf-8"))
    sources = {cell["id"]: "".join(cell["source"]) for cell in book["cells"]}
    given = SMALL | {"out": str(folder / "results")} | parameters
    named = "\n".join(f"{name} = {value!r}" for name, value in given.items())
    cells = [sources[CELLS[0]], named, *(sources[name] for name in CELLS[1:])]
    code = "\n\n".join(cells)
    assert change[0] in code
    path = folder / "figures.py"
    code = code.replace(*change).replace("= size.horizon, size.ratio", "= 6_000.0, size.ratio")
    path.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location("figures", path)
    linecache.checkcache(str(path))
    # Python takes a file of the same second and length for the one that it compiled before
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module.main


def test_the_digest_tells_code_loads_and_parameters_but_not_seed_runs_and_added_policies(tmp_path):
    digests = {}
    (tmp_path / "rules.py").write_text(RULES)
    mine = f"{tmp_path / 'rules.py'}:mine"
    for name, parameters, change in (
        ("shipped", {}, ("", "")),
        ("seed", {"seed": 7}, ("", "")),
        ("runs", {"runs": 3}, ("", "")),
        ("added", {"policies": [mine]}, ("", "")),
        ("comment", {}, (BIMODAL[0], "    # tasks and rules\n" + BIMODAL[0])),
        ("loads", {"loads": [0.7]}, ("", "")),
        ("reading", {"reading": {"link": "shared"}}, ("", "")),
        ("bimodal", {}, BIMODAL),
        ("nodes", {}, ("nodes, cms, cps = 10,", "nodes, cms, cps = 12,")),
        ("in place", {}, ("| yours\n", '| yours | {"MCDF": "EDFMN"}\n')),
        ("left out", {}, ('with_admission = ["MCDF", ', "with_admission = [")),
    ):
        frame = run_figures(tmp_path, change, **parameters)
        digests[name] = frame.attrs["experiment"]
        if name == "added":
            assert "mine" in set(frame["policy"])
    same = {name for name, digest in digests.items() if digest == digests["shipped"]}
    assert same == {"shipped", "seed", "runs", "added", "comment"}
    assert len(set(digests.values())) == len(digests) - 4


def test_sizes_of_a_scale_count_but_for_the_number_of_runs(tmp_path):
    loop = "    for name in policies:\n"
    change = loop, "    assert size.pools\n" + loop
    digest = run_figures(tmp_path, change).attrs["experiment"]
    assert run_figures(tmp_path, change, runs=3).attrs["experiment"] == digest
    assert run_figures(tmp_path, change, scale="full").attrs["experiment"] != digest


#: What versions of Python compile, quote or name otherwise.
OF_ANY_PYTHON = '''
import math

import numpy as np

class Scale:
    """A class with a docstring of its own.

    And more lines.
    """

    factor: float = 2.0

    def of(self, x):
        return self.factor * x

def again(n):
    return again(n - 1) if n else Scale().of(n)

def drawn(values, seed):
    """Say something.

    On several lines.
    """
    roots = [np.random.default_rng(seed).normal() * math.sqrt(x) for x in values]
    return {f"{len(values):>{5}} {values['a']!r}": again(n) for n, x in enumerate(roots)}
'''


def test_every_version_of_python_finds_the_same_digest(tmp_path):
    path = tmp_path / "any.py"
    path.write_text(OF_ANY_PYTHON)
    names = {"__name__": "__main__"}
    exec(compile(OF_ANY_PYTHON, str(path), "exec"), names)
    digest = fingerprint.digest_experiment(names["drawn"], {"seed": 1}, [{"values": [0.5]}])
    assert digest == "e9799e16d94869a0"  # of Python 3.11 to 3.13


def judge_figures(folder, monkeypatch, change=("", ""), **parameters):
    """Judge a claim on an experiment, beside the unchanged one as the shipped one."""
    shipped = run_figures(folder).attrs["experiment"]
    monkeypatch.setattr(fingerprint, "_shipped", lambda paper, scale: frozenset({shipped}))
    said = judge("mcdf-2", run_figures(folder, change, **parameters))
    shown = unescape(show_scorecard().data)
    card = beside_reference(read_scorecard(folder / "results" / "data" / "mcdf-claims.csv"))
    return said, shown, card.set_index("id").loc["mcdf-2"]


def test_what_is_shipped_is_compared_with_the_reference(tmp_path, monkeypatch):
    (tmp_path / "rules.py").write_text(RULES)
    parameters = {"policies": [f"{tmp_path / 'rules.py'}:mine"], "seed": 3}
    said, shown, row = judge_figures(tmp_path, monkeypatch, **parameters)
    assert "our experiment" not in said + shown
    assert (row["experiment"], row["reference"]) == ("as shipped", "mixed")
    assert row["agreement"]


CHANGES = {
    "a reading": (("", ""), {"reading": {"link": "shared"}}),
    "another policy in its place": (("| yours\n", '| yours | {"FIFOANNA": "EDFANNA"}\n'), {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_experiment_is_the_users_own(tmp_path, monkeypatch, change):
    code, parameters = CHANGES[change]
    said, shown, row = judge_figures(tmp_path, monkeypatch, code, **parameters)
    assert "**Your experiment: mcdf-2 is " in said
    assert "your experiment: " in shown
    assert (row["experiment"], row["reference"], row["agreement"]) == ("changed", "", "")


def test_a_frame_that_lost_its_note_counts_as_made_by_all_sweeps(tmp_path, monkeypatch):
    frame = run_figures(tmp_path)
    shipped = frame.attrs.pop("experiment")
    monkeypatch.setattr(fingerprint, "_shipped", lambda paper, scale: frozenset({shipped}))
    assert fingerprint.name_experiment([frame]) == "as shipped"
    session.current().experiments.append(("mine", "0123456789abcdef"))
    assert fingerprint.name_experiment([frame]) == "changed"
    session.current().experiments.clear()
    assert fingerprint.name_experiment([frame]) == "changed"  # made up, by no sweep at all


def test_the_shipped_experiments_are_known_by_their_digests():
    table = pd.read_csv(shared_file("data/reference/mcdf/mcdf-experiments.csv"))
    for scale, rows in table.groupby("scale"):
        assert fingerprint._shipped("mcdf", scale) == set(rows["digest"])
    assert fingerprint._shipped("theory", "quick") is None


def test_a_run_keeps_its_experiments_and_the_reference_takes_them(tmp_path):
    run_figures(tmp_path)
    show_scorecard()
    table = pd.read_csv(tmp_path / "results" / "data" / "mcdf-experiments.csv")
    [[scale, name, digest]] = table.to_numpy().tolist()
    assert (scale, name) == ("quick", "reject_ratios")
    assert re.fullmatch("[0-9a-f]{16}", digest)
    spec = importlib.util.spec_from_file_location("keep", ROOT / ".ci" / "keep_experiments.py")
    keep = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(keep)
    full = tmp_path / "full" / "data"
    full.mkdir(parents=True)
    table.assign(scale="full", digest="f" * 16).to_csv(full / "mcdf-experiments.csv", index=False)
    (tmp_path / "reference" / "mcdf").mkdir(parents=True)
    keep.keep([tmp_path / "results", tmp_path / "full"], tmp_path / "reference")
    kept = pd.read_csv(tmp_path / "reference" / "mcdf" / "mcdf-experiments.csv")
    assert kept.to_numpy().tolist() == [["full", name, "f" * 16], ["quick", name, digest]]

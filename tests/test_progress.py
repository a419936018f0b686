"""A run that takes long says what it is at, and a short one says nothing."""

import re
import threading

import pytest

from dlsim import progress
from dlsim.cli import main
from dlsim.cli import simulate as command
from tests.children import until


def last_said(capsys, what):
    """Wait for a line that tells this, however many others a busy machine tells before it."""
    said = []
    until(lambda: said.extend(capsys.readouterr().err.splitlines()) or what in str(said[-1:]))
    return said[-1]


def test_a_long_run_tells_each_step(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    with progress.told("dlsim wait"):
        assert re.fullmatch(r"dlsim wait: \d s, starting \.\.\.", last_said(capsys, "starting"))
        progress.step("reading a log")
        assert last_said(capsys, "reading").endswith(" s, reading a log ...")


def test_a_short_run_tells_nothing_and_leaves_no_thread(capsys):
    with progress.told("dlsim wait"):
        progress.step("nothing much")
    with pytest.raises(KeyboardInterrupt), progress.told("dlsim wait"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""
    assert not [one for one in threading.enumerate() if one.name == "dlsim-progress"]


def test_simulate_says_which_policy_it_is_at(capsys, monkeypatch, tmp_path):
    """Each step of a run is the one that stands there while it is done."""
    steps = []
    monkeypatch.setattr(command, "step", steps.append)
    (tmp_path / "tasks.csv").write_text("arrival,sigma,deadline\n0,6,10\n0,18,64\n")
    words = ["--csv", str(tmp_path / "tasks.csv"), "--nodes", "2", "--cms", "1", "--cps", "1"]
    assert main(["simulate", *words, "--compare", "MCDF,EDFMN", "--out", str(tmp_path / "o")]) == 0
    assert steps == [
        "loading the engine", "reading or drawing the tasks", "2 tasks under MCDF", "checking MCDF",
        "2 tasks under EDFMN", "checking EDFMN", "what MCDF could have promised",
        "what EDFMN could have promised", "drawing and writing the tables",
    ]  # fmt: skip

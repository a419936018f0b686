"""A run that takes long says what it is at, and a short one says nothing."""

import threading
import time

import pytest

from dlsim import progress
from dlsim.cli import main
from dlsim.cli import simulate as command


def until_said(capsys, count):
    said = []
    while len(said) < count:
        said += capsys.readouterr().err.splitlines()
        time.sleep(0.01)
    return said


def test_a_long_run_tells_each_step(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    with progress.told("dlsim wait"):
        assert until_said(capsys, 1)[0] == "dlsim wait: 0 s, starting ..."
        progress.step("reading a log")
        assert until_said(capsys, 2)[-1].endswith("s, reading a log ...")


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
        "2 tasks under EDFMN", "checking EDFMN", "drawing and writing the tables",
    ]  # fmt: skip

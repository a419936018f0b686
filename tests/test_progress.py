"""A run that takes long says what it is at, and a short one says nothing."""

import re
import threading

import pytest

from dlsim import progress
from tests.helpers.children import until


def last_said(capsys, what):
    """Wait for a line that tells this, however many others a busy machine tells before it."""
    said = []
    until(lambda: said.extend(capsys.readouterr().err.splitlines()) or what in str(said[-1:]))
    return said[-1]


def test_a_long_run_tells_each_step(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.02)
    with progress.stderr_progress("dlsim wait"):
        assert re.fullmatch(r"dlsim wait: \d s, starting \.\.\.", last_said(capsys, "starting"))
        progress.set_status("reading a log")
        assert last_said(capsys, "reading").endswith(" s, reading a log ...")


def test_a_short_run_tells_nothing_and_leaves_no_thread(capsys):
    with progress.stderr_progress("dlsim wait"):
        progress.set_status("nothing much")
    with pytest.raises(KeyboardInterrupt), progress.stderr_progress("dlsim wait"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""
    assert not [one for one in threading.enumerate() if one.name == "dlsim-progress"]


def test_computations_within_a_shared_bar_move_that_bar_alone():
    told = []
    with progress.shared_bar("a page", 10, told.append):
        with progress.progress_bar("first", 4, 1, told.append) as show:  # one was done before
            for done in (2, 3, 4):
                show(done)
        with progress.progress_bar("second", 5) as show:
            show(5)
    assert told == sorted(told)
    assert told[-1] == 10  # fewer were needed than there are at most
    with progress.progress_bar("alone", 3, 0, told.append) as show:
        show(3)
    assert told[-1] == 3


def test_a_shared_bar_counts_what_is_done_within_it(monkeypatch):
    monkeypatch.setattr(progress, "MIN_REPORT_INTERVAL", 0.0)
    told = []
    with progress.shared_bar("a page", 10, told.append):
        with progress.progress_bar("first", 4, 1) as show:
            show(2)
            show(4)
        with progress.progress_bar("second", 5) as show:
            show(5)
    assert told == [0, 1, 3, 8, 10]


def test_no_bar_is_shared_after_an_interrupt():
    told = []
    with pytest.raises(KeyboardInterrupt), progress.shared_bar("a page", 10, told.append):
        raise KeyboardInterrupt
    assert told == [0]
    assert not progress._move_shared_bar

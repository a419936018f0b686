"""A run that takes long says what it is at, and a short one says nothing."""

import re
import threading

import pytest

from dlsim import progress
from tests.children import until


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

"""A run that takes long says what it is at, and a short one says nothing."""

import json
import re
import threading
import time

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

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


def test_what_takes_seconds_is_told_once_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_told", set())
    for _ in range(2):
        with progress.timed_bar("compiling, once per version", 20):
            time.sleep(0.1)
    assert capsys.readouterr().err == "compiling, once per version: about 20 s ...\n"


def test_what_takes_seconds_is_reported_by_the_run_of_a_notebook(tmp_path, monkeypatch, capsys):
    place = tmp_path / "progress.json"
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(progress, "MIN_REPORT_INTERVAL", 0.01)
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(place))
    with progress.timed_bar("compiling", 20):
        until(lambda: place.exists() and json.loads(place.read_text() or "{}"))
    news = json.loads(place.read_text())
    assert (news["label"], news["total"]) == ("compiling", 20)
    assert 0 < news["done"] < 20
    assert capsys.readouterr().err == ""


def test_what_ends_at_once_starts_no_bar(capsys):
    with pytest.raises(KeyboardInterrupt), progress.timed_bar("compiling", 20):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""


BARS = """
import time
from dlsim import progress
progress.SILENT_SECONDS, progress.MIN_REPORT_INTERVAL = 0.0, 0.2
with progress.timed_bar("compiling", 4):
    time.sleep(0.7)
with progress.progress_bar("<b>a</b> sweep", 4) as show:
    time.sleep(0.2)
    show(3)
"""


def test_bars_leave_nothing_in_a_notebook():
    """Neither red text on standard error, nor a widget: JupyterLab reports an error for a box of
    widgets that is closed before it is drawn, and shows one where it is opened again."""
    book = new_notebook(cells=[new_code_cell(BARS)])
    shown = []
    client = NotebookClient(book, on_cell_executed=None)
    process = client.process_message
    client.process_message = lambda msg, *more: shown.append(msg) or process(msg, *more)
    client.execute()
    texts = [msg["content"]["data"] for msg in shown if msg["msg_type"] == "display_data"]
    assert [data["text/plain"].partition(":")[0] for data in texts] == [
        "compiling",
        "<b>a</b> sweep",
    ]
    news = [msg["content"]["data"] for msg in shown if msg["msg_type"] == "update_display_data"]
    assert any(re.search(r"compiling: +[1-9]\d%.* of about 4 s", new["text/plain"]) for new in news)
    assert any(re.search(r"<b>a</b> sweep: +75%.*3/4", new["text/plain"]) for new in news)
    assert all(list(data) == ["text/plain"] for data in texts + news)
    assert not [msg for msg in shown if msg["msg_type"].startswith("comm_")]
    assert [output["data"] for output in book.cells[0].outputs] == 2 * [{"text/plain": ""}]

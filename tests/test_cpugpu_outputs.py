"""What `dlsim live` writes: nothing of the user's is overwritten, a cut leaves files whole."""

import collections
import functools
import json
import math
import os
import random
import signal
import socket
import subprocess
import sys

import pytest

from dlsim.cli import main
from dlsim.cpugpu import Store
from dlsim.cpugpu.live import Log, Slot, Threads, calibrate
from dlsim.cpugpu.live.log import LogFile
from dlsim.errors import InputError
from tests import live_kernels as own
from tests.scale import SCALE

MACHINE = ["--gpu", "numpy", "--factor", "0.01", "--kernels", "saxpy"]
RUN, CALIBRATE = ["live", "run", *MACHINE, "--jobs", "3"], ["live", "calibrate", *MACHINE]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(here, capsys):
    assert main([*RUN, "--log", "log.sqlite", "--seed", "1"]) == 0
    assert "kept" not in capsys.readouterr().out
    return (here / "log.sqlite").read_bytes()


def plug(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


#: What may stand where an output is to go, and how the refusal calls it.
THINGS = {
    "folder": (os.mkdir, "a folder is there"),
    "link": (lambda path: path.symlink_to("elsewhere"), "a symbolic link is there"),
    "link to a log": (lambda path: path.symlink_to("log.sqlite"), "a symbolic link is there"),
    "pipe": (lambda path: os.mkfifo(path), "a device or the like is there"),
    "socket": (plug, "a device or the like is there"),
}
FILES = {
    "empty": (b"", "not a log of a live run of version 1, nor of any other"),
    "text": (b"my notes\n", "damaged (file is not a database)"),
    "bytes": (b"\xff\xfe\x00", "damaged (file is not a database)"),
    "a history": (None, "not a log of a live run of version 1, nor of any other"),
}


def refused(words, capsys, what):
    """The command says what is in the way and starts nothing: no history, no other file."""
    names = sorted(os.listdir())
    assert main(words) == 2
    said = capsys.readouterr()
    assert what in said.err
    assert "it stays as it is: name a new file, or move it away" in said.err
    assert said.out == ""
    assert sorted(os.listdir()) == names


@pytest.mark.skipif(os.name != "posix", reason="makes links and pipes")
@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("words", [[*RUN, "--log"], [*CALIBRATE, "--csv"]], ids=["log", "csv"])
def test_what_is_no_file_is_refused_before_anything_runs(here, log, capsys, words, thing):
    make, what = THINGS[thing]
    make(here / "out")
    refused([*words, "out"], capsys, f"{words[-1]} out: {what}")
    assert (here / "log.sqlite").read_bytes() == log


@pytest.mark.skipif(os.name != "posix", reason="names devices")
def test_a_device_is_neither_read_nor_written(capsys):
    refused([*RUN, "--log", "/dev/zero"], capsys, "/dev/zero: a device or the like is there")
    refused([*CALIBRATE, "--csv", "/dev/null"], capsys, "/dev/null: a device or the like")
    assert main(["live", "explain", "--log", "/dev/zero"]) == 2
    assert "not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_no_log_is_refused_before_anything_runs(here, capsys, kind):
    content, what = FILES[kind]
    if content is None:
        Store("mine").close()
        content = (here / "mine").read_bytes()
    (here / "mine").write_bytes(content)
    refused([*RUN, "--log", "mine"], capsys, what)
    refused([*CALIBRATE, "--csv", "mine"], capsys, "--csv mine: a file is there")
    assert (here / "mine").read_bytes() == content
    assert not (here / "results").exists()


def test_a_place_that_cannot_be_written_to_is_refused_before_anything_runs(here, capsys):
    (here / "file").write_text("x")
    for words in ([*RUN, "--log"], [*CALIBRATE, "--csv"]):
        assert main([*words, "file/deep/out"]) == 2
        said = capsys.readouterr()
        assert "nothing can be written to file; name another folder" in said.err
        assert said.out == ""


def test_an_earlier_log_is_kept_beside(here, log, capsys):
    (here / "log-2.sqlite").mkdir()
    for name in ("log-1.sqlite", "log-3.sqlite"):
        old = (here / "log.sqlite").read_bytes()
        assert main([*RUN, "--log", "log.sqlite"]) == 0
        assert f"the log that was there is kept as {name}\n" in capsys.readouterr().out
        assert (here / name).read_bytes() == old
        assert (here / "log.sqlite").read_bytes() != old
    assert (here / "log-1.sqlite").read_bytes() == log
    assert main(["live", "explain", "--log", "log-1.sqlite"]) == 0


def test_what_comes_while_a_calibration_goes_on_is_not_overwritten(here, capsys, monkeypatch):
    add = Store.add
    monkeypatch.setattr(Store, "add", lambda *a, **o: ((here / "b").write_text("b"), add(*a, **o)))
    assert main([*CALIBRATE, "--csv", "b"]) == 2
    assert "--csv b: a file is there" in capsys.readouterr().err
    assert (here / "b").read_text() == "b"


def test_a_log_that_is_written_to_is_nobody_elses(here, log, capsys):
    with LogFile("log.sqlite") as file, file.alone():
        assert main([*RUN, "--log", "log.sqlite"]) == 2
    assert "another run writes to it; wait for its end" in capsys.readouterr().err
    assert (here / "log.sqlite").read_bytes() == log


def nodes(value, path=()):
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, below in value.items() if isinstance(value, dict) else ():
        yield from nodes(below, (*path, key))


ODD = (None, True, -1, 99, 1e308, -math.inf, math.nan, "x", "gpu", [], {}, [[]], 10**400)


def replaced(body, rng):
    """An event of a log with one value, however deep, gone or another."""
    row = json.loads(body)
    *path, last = rng.choice(list(nodes(row))[1:])
    place = functools.reduce(lambda value, key: value[key], path, row)
    if rng.random() < 0.2:
        del place[last]
    else:
        place[last] = rng.choice(ODD)
    return json.dumps(row)


def test_a_damaged_log_is_refused_in_words_or_read(here, log):
    """Bytes that change are seen by the checksums; a forged event, whole in itself, by reading."""
    rng, seen = random.Random(5), collections.Counter()
    with LogFile("log.sqlite") as file:
        events = file.rows()
    for _ in range(round(200 * SCALE)):
        (here / "damaged").unlink(missing_ok=True)
        if kind := rng.random() < 0.5:
            data = bytearray(log)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            (here / "damaged").write_bytes(data)
        else:
            at = rng.randrange(len(events))
            with LogFile("damaged") as file:
                file.append([(what, replaced(body, rng) if k == at else body, 0.0)
                             for k, (what, body, _) in enumerate(events)])  # fmt: skip
        try:
            read = Log.read("damaged")
            list(read.explain())
            seen["audited", bool(read.audit())] += 1
            if kind:  # a byte that means nothing
                assert read == Log.read("log.sqlite")
        except InputError:
            seen["refused"] += 1
    assert seen["refused"] > 0 < seen["audited", False], seen


# --- cut short ------------------------------------------------------------------------------------


def test_an_interrupted_run_leaves_its_decisions_and_its_times(here, log, capsys, monkeypatch):
    add = Store.add

    def interrupt(store, *args, **options):
        add(store, *args, **options)
        if len(store.table()) == 8:
            raise KeyboardInterrupt("stopped")

    monkeypatch.setattr(Store, "add", interrupt)
    assert main([*RUN, "--log", "log.sqlite", "--jobs", "50"]) == 130
    said = capsys.readouterr()
    taken = Log.read("log.sqlite")
    assert 5 <= taken.decisions < 50
    assert "interrupted; stopped; " in said.err
    assert f"{taken.decisions} decisions so far in log.sqlite, {len(taken.left)} jobs " in said.err
    assert "the log that was there is kept as log-1.sqlite" in said.out
    assert (here / "log-1.sqlite").read_bytes() == log
    assert taken.audit() == []
    assert main(["live", "explain", "--log", "log.sqlite"]) == 0
    with Store("results/live/history.sqlite", create=False) as store:
        assert len(store.table()) == 8


def test_the_same_command_goes_on_with_the_jobs_left(here, capsys, monkeypatch):
    add = Store.add

    def interrupt(store, *args, **options):
        add(store, *args, **options)
        if len(store.table()) == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", interrupt)
        assert main([*RUN, "--log", "log.sqlite", "--jobs", "20"]) == 130
    left = len(Log.read("log.sqlite").left)
    assert 0 < left <= 12
    capsys.readouterr()
    assert main([*RUN, "--log", "log.sqlite", "--jobs", "20"]) == 0
    said = capsys.readouterr().out
    assert f"goes on where it stopped: {left} of 20 jobs are left" in said
    whole = Log.read("log.sqlite")
    assert whole.left == []
    assert whole.audit() == []
    assert sum(row["outcome"] == "done" for kind, row in whole.rows if kind == "end") == 20
    assert main([*RUN, "--log", "log.sqlite", "--jobs", "20"]) == 0  # done: a run of its own
    assert "the log that was there is kept as log-1.sqlite" in capsys.readouterr().out


def test_an_interrupt_before_the_first_decision_keeps_the_earlier_log(here, log, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dlsim.cpugpu.live.session.Desk.dispatch", interrupt)
    assert main([*RUN, "--log", "log.sqlite"]) == 130
    assert (here / "log-1.sqlite").read_bytes() == log


def test_an_interrupted_calibration_keeps_each_time_and_writes_no_table(here, monkeypatch):
    submit, calls = Threads.submit, []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return submit(*args)

    monkeypatch.setattr(Threads, "submit", interrupt)
    assert main([*CALIBRATE, "--csv", "a.csv", "--repeats", "3", "--history", "h"]) == 130
    assert sorted(os.listdir()) == ["h"]
    with Store("h", create=False) as store:
        assert store.table()["outcome"].tolist() == ["done"] * 4


def test_a_history_that_fails_is_no_fault_of_the_kernel(here):
    """Were it taken for one, it would be noted as a failed run and the calibration went on."""
    devices = (Slot("gpu0", "numpy", ""), Slot("cpu0", "numpy", ""))
    with Store("h") as store, Threads(["gpu0", "cpu0"]) as crew:
        (here / "h").write_bytes(b"x" * 20_000)
        with pytest.raises(InputError, match="left as it is"):
            calibrate([own.DOUBLE], crew, devices, store=store)


KILL = """
import os, signal, sys
from dlsim.cli import main
os.{} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_kill_leaves_a_table_absent(here, moment):
    words = ["-W", "ignore", "-c", KILL.format(moment), *CALIBRATE, "--csv", "a.csv"]
    command = [sys.executable, *words]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (here / "a.csv").exists()
    with Store("results/live/history.sqlite", create=False) as store:
        assert len(store.table()) >= 6

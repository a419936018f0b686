"""The history database of measured runs: restarts, several processes, damage."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dlsim.cpugpu import HistoryDatabase, Machine, simulate
from dlsim.cpugpu import database as database_module
from dlsim.cpugpu.database import APPLICATION_ID, KEY, TABLE, VERSION, checksum_of, sized_name
from dlsim.errors import InputError, StudyError
from tests.helpers.children import forked
from tests.helpers.refusals import require_refusals


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "folder" / "history.sqlite"
    with HistoryDatabase(path) as database:
        database.add("matmul", "gpu", 2.0, size="512", host="here", device="gpu0")
        database.add("matmul", "gpu", 4.0, size="512", host="here", device="gpu0")
        database.add("matmul", "cpu", 9.0, size="512", host="there", device="cpu0")
        database.add("saxpy", "gpu", 1.0, host="here", device="gpu1")
        database.add("saxpy", "cpu", 3.0, host="there")
    return path


def run_sql(path, *commands):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for command in commands:
            connection.execute(command)
        connection.commit()


def test_a_history_survives_a_restart(path):
    with HistoryDatabase(path) as database:
        runs, known = database.runs(), database.history().table().set_index(["app", "class"])
    assert list(runs.columns) == [*KEY, "seconds"]
    assert runs["seconds"].tolist() == [2, 4, 9, 1, 3]
    assert known.loc[("matmul[512]", "gpu"), ["count", "mean", "std"]].tolist() == [2, 3, 1]
    assert known.loc[("saxpy", "gpu"), ["assigned", "count"]].tolist() == [1, 1]


def test_hosts_and_devices_are_kept_apart(path):
    with HistoryDatabase(path) as database:
        here = database.history(host="here").table()
        gpu0 = database.history(devices={"gpu": "gpu0"}).table()
        with pytest.raises(InputError, match="devices must be a mapping"):
            database.history(devices="gpu0")
    assert here[["app", "class"]].to_numpy().tolist() == [["matmul[512]", "gpu"], ["saxpy", "gpu"]]
    assert gpu0[["app", "class", "count"]].to_numpy().tolist() == [["matmul[512]", "gpu", 2]]
    assert sized_name("saxpy") == "saxpy"


def test_a_stored_history_steers_a_simulation(path):
    jobs = pd.DataFrame({"app": ["matmul[512]"], "arrival": 0.0, "cpu_time": 9.0, "gpu_time": 3.0})
    with HistoryDatabase(path) as database:
        schedule = simulate(jobs, Machine(), "history", history=database.history())
    assert schedule.jobs["rule"].tolist() == ["R3*"]


def test_odd_but_whole_values_are_read_back_exactly(tmp_path):
    texts = ("", "a\0b", "\u20ac \U0001f600", "'; DROP TABLE runs", "x" * 50_000)
    times = (1e-99, 0.1 + 0.2, 1e99, np.float32(0.1), Fraction(1, 3))
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        for text, seconds in zip(texts, times, strict=True):
            database.add(text, "gpu", seconds, size=text, host=text, device=text)
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        runs = database.runs()
    assert runs["app"].tolist() == [*texts]
    assert runs["seconds"].tolist() == [float(seconds) for seconds in times]


def test_a_run_that_cannot_be_kept_is_refused(tmp_path):
    runs = [
        ({"app": 1}, "app must be a text"),
        ({"size": None}, "size must be a text"),
        ({"host": "\ud800"}, "not Unicode"),
        ({"device": b"gpu0"}, "device must be a text"),
        ({"cls": "tpu"}, "'tpu'"),
        *(({"seconds": value}, "positive and finite") for value in (0.0, -1.0, np.nan, np.inf)),
        ({"seconds": "1.0"}, "seconds|run time"),
    ]
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        good = {"app": "A", "cls": "gpu", "seconds": 1.0}
        require_refusals([(lambda r=run: database.add(**good | r), words) for run, words in runs])
        assert database.runs().empty


# --- several processes ----------------------------------------------------------------------------

WRITER = """
from dlsim.cpugpu import HistoryDatabase

def do(name):
    with HistoryDatabase(PATH) as database:
        say(name, "opened", "it")
        os.read(0, 1)  # returns when all are to begin
        for run in range(1, 21):
            database.add("shared", "gpu", float(run), host=name)
            database.add("both", "gpu", float(run))
            say(name, "wrote", run)
"""


def test_two_processes_write_at_once_and_a_third_is_killed(tmp_path):
    path, written, ended, pids = tmp_path / "h.sqlite", {}, {}, {}
    names = ("first", "second", "victim")
    with forked(WRITER.replace("PATH", repr(str(path))), names) as writers:
        opened = 0
        for name, what, word in map(str.split, writers.stdout):
            if what == "is":
                pids[name] = int(word)
            elif what == "opened":
                opened += 1
                if opened == len(names):
                    writers.stdin.close()
            elif what == "wrote":
                written[name] = int(word)
                if (name, word) == ("victim", "7"):
                    os.kill(pids[name], signal.SIGKILL)
            else:
                ended[name] = int(word)
    assert ended == {"first": 0, "second": 0, "victim": -signal.SIGKILL}
    with HistoryDatabase(path) as database:
        runs = database.runs()
    own = runs[runs["app"] == "shared"].groupby("host")["seconds"].apply(list)
    for name, count in written.items():
        assert own[name] == [float(run) for run in range(1, len(own[name]) + 1)]
        assert len(own[name]) >= count
    assert written["first"] == written["second"] == 20
    assert len(runs[runs["app"] == "both"]) >= 20 + 20 + written["victim"]


def test_a_writer_that_was_killed_half_way_leaves_no_trace(path):
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN')\n"
        "for i in range(5000): c.execute(\"INSERT INTO runs VALUES ('half', '', 'gpu', '', '', "
        '1.0, ?)", [str(i)])\n'
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 9
    assert path.with_name(path.name + "-journal").exists()
    with HistoryDatabase(path) as database:
        assert database.runs()["app"].tolist() == ["matmul"] * 3 + ["saxpy"] * 2


def test_two_objects_that_create_a_file_share_it(tmp_path):
    databases = [HistoryDatabase(tmp_path / "h.sqlite") for _ in range(2)]
    for time, database in enumerate(databases, start=1):
        database.add("A", "gpu", float(time))
    times = [database.history().record("A", "gpu").times for database in databases]
    assert times == [[1.0, 2.0]] * 2
    for database in databases:
        database.close()
    assert [p.name for p in tmp_path.iterdir()] == ["h.sqlite"]


def test_a_busy_file_is_a_failure_and_no_damage(path, monkeypatch):
    monkeypatch.setattr(database_module, "LOCK_TIMEOUT", 0.0)
    with HistoryDatabase(path) as database, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StudyError, match=r"locked; run again"):
            database.add("A", "gpu", 1.0)
        other.rollback()
        database.add("A", "gpu", 1.0)
        assert len(database.runs()) == 6


# --- damage ---------------------------------------------------------------------------------------


def shorten(path):
    path.write_bytes(path.read_bytes()[:-1500])


def scribble(path):
    data = bytearray(path.read_bytes())
    data[4096:5096] = b"\xff" * 1000
    path.write_bytes(bytes(data))


def loosen(path, command):
    """Change what the table's own types and CHECKs forbid, and put its text back."""
    change = "UPDATE sqlite_master SET sql = '{}' WHERE name = 'runs'"
    plain = "CREATE TABLE runs (app, size, class, host, device, seconds, checksum)"
    run_sql(path, "DROP TABLE runs", plain, command)
    run_sql(path, "PRAGMA writable_schema = ON", change.format(TABLE.replace("'", "''")))


def sql(*commands):
    return lambda path: run_sql(path, *commands)


ROW = "INSERT INTO runs VALUES ('A', '', '{}', '', '', {}, 'none')"
COPY = f"INSERT INTO runs SELECT {', '.join(KEY)}, seconds, checksum FROM runs"
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs WHERE seconds = 1; END"
#: What is done to a history of five runs, and what the refusal says.
DAMAGE = {
    "empty": (lambda p: p.write_bytes(b""), "not a history database"),
    "text": (lambda p: p.write_text("app,seconds\nA,1\n" * 99), "not a history database"),
    "another program's": (sql("PRAGMA application_id = 7"), "not a history database"),
    "older": (sql("PRAGMA user_version = 3"), "of version 3, and this dlsim reads version 5"),
    "cut": (shorten, "damaged"),
    "scribbled": (scribble, "damaged|was changed"),
    "other table": (sql("DROP TABLE runs", "CREATE TABLE runs (x)"), "table of runs was changed"),
    "no table": (sql("DROP TABLE runs"), "holds: nothing"),
    "trigger": (sql(TRIGGER), "table runs, trigger t"),
    "further column": (sql("ALTER TABLE runs ADD COLUMN x TEXT"), "was changed"),
    "negative time": (sql(ROW.format("gpu", -1)), "CHECK constraint failed"),
    "unknown class": (sql(ROW.format("tpu", 2)), "CHECK constraint failed"),
    "text for time": (lambda p: loosen(p, ROW.format("gpu", "'fast'")), "damaged|was changed"),
    "endless time": (sql("UPDATE runs SET seconds = 9e999"), "CHECK constraint failed"),
    "loosened table": (lambda p: loosen(p, ROW.format("gpu", 2)), "was changed"),
    "no UTF-8": (sql("UPDATE runs SET app = CAST(x'ff41' AS TEXT) WHERE seconds = 4"), "damaged"),
    "another time": (sql("UPDATE runs SET seconds = 5 WHERE seconds = 4"), "row 2 was changed"),
    "another host": (sql("UPDATE runs SET host = 'here' WHERE seconds = 9"), "row 3 was changed"),
    "further row": (sql(ROW.format("gpu", 2)), "row 6 was changed"),
    "a row twice": (sql(f"{COPY} WHERE seconds = 9"), "row 6 was changed"),
    "a gap": (sql("DELETE FROM runs WHERE seconds = 2"), "row 1 .* or one before it is missing"),
    "another order": (
        sql(
            "UPDATE runs SET rowid = 9 WHERE rowid = 1", "UPDATE runs SET rowid = 1 WHERE rowid = 2"
        ),
        "row 1 was changed, or one before it is missing",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_in_words_and_left_as_it_is(path, damage):
    change, named = DAMAGE[damage]
    change(path)
    before = path.read_bytes()
    pattern = rf"history\.sqlite: .*({named}).*left as it is.*move this one away"
    with pytest.raises(InputError, match=pattern), HistoryDatabase(path) as database:
        database.history()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["history.sqlite"]


def test_a_checksum_covers_the_row_and_all_before_it():
    row = ("matmul", "", "gpu", "", "", 2.0)
    first = checksum_of("", *row)
    assert first == checksum_of("", *row)
    changed = [checksum_of("x", *row), *(checksum_of("", *row[:k], "y", *row[k + 1 :])
                                         for k in range(len(row)))]  # fmt: skip
    assert len({first, *changed, checksum_of("", *row[:-1], 2.0 + 2**-51)}) == len(changed) + 2


def test_places_that_hold_no_history(tmp_path):
    path = tmp_path / "mine.sqlite"
    run_sql(path, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")
    (tmp_path / "file").write_text("x")
    require_refusals(
        [
            (lambda: HistoryDatabase(path), "not a history database"),
            (lambda: HistoryDatabase(tmp_path), "not a regular file"),
            (lambda: HistoryDatabase(tmp_path / "file" / "h.sqlite"), "not created"),
        ]
    )
    assert 0 not in (APPLICATION_ID, VERSION)

"""What is known of run times, in memory and on disk: statistics, restarts, damage, readers."""

import math
import sqlite3
import statistics
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.cpugpu import History, Machine, Store, simulate, workload
from dlsim.cpugpu.store import COLUMNS, key
from dlsim.errors import DlsimError, InputError, StudyError

APPLICATION, TABLE = Store.KIND.application, Store.KIND.table

TIMES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=30)


@given(TIMES)
def test_count_mean_and_population_deviation(times):
    history = History()
    for time in times:
        history.add("A", "gpu", time)
    row = history.record("A", "gpu")
    assert row.count == row.assigned == len(times)
    assert row.mean == pytest.approx(statistics.fmean(times), rel=1e-12)
    assert row.std == pytest.approx(statistics.pstdev(times), rel=1e-6, abs=1e-6)
    assert row.expected("median") == statistics.median(times)


def test_what_was_never_seen_is_unknown():
    row = History().record("A", "gpu")
    assert (row.assigned, row.count) == (0, 0)
    assert all(math.isnan(row.expected(name)) for name in ("mean", "median", "ewma"))
    assert math.isnan(row.std)
    assert math.isnan(History().average("gpu"))


def test_a_copy_is_independent():
    history = History()
    history.add("A", "gpu", 1.0)
    other = history.copy()
    other.add("A", "gpu", 3.0)
    other.add("B", "cpu", 3.0)
    assert history.record("A", "gpu").times == [1.0]
    assert len(history.table()) == 1
    assert other.record("A", "gpu").mean == 2


def test_elsewhere_counts_since_the_last_assignment():
    history = History()
    for cls in ("gpu", "cpu", "cpu", "gpu", "cpu"):
        history.assign("A", cls)
    assert history.record("A", "gpu").elsewhere == 1
    assert history.record("A", "cpu").elsewhere == 0
    assert [history.record("A", cls).assigned for cls in ("gpu", "cpu")] == [2, 3]


@pytest.mark.parametrize("time", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(time, tmp_path):
    with pytest.raises(InputError, match=f"positive and finite.*{time!r}"):
        History().measure("A", "gpu", time)
    with Store(tmp_path / "h.sqlite") as store, pytest.raises(InputError, match="positive"):
        store.add("A", "gpu", time)


def test_an_unknown_class_is_refused(tmp_path):
    with pytest.raises(InputError, match="'tpu'"):
        History().measure("A", "tpu", 1.0)
    with Store(tmp_path / "h.sqlite") as store, pytest.raises(InputError, match="'tpu'"):
        store.add("A", "tpu", 1.0)


# --- on disk ----------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sub" / "history.sqlite"
    with Store(path) as store:
        store.add("mandelbrot", "gpu", 2.0, size="512", host="here", device="gpu0")
        store.add("mandelbrot", "gpu", 4.0, size="512", host="here", device="gpu0")
        store.add("mandelbrot", "cpu", 9.0, size="512", host="there", device="cpu0")
        store.add("saxpy", "gpu", 1.0, host="here", device="gpu1")
        store.add("saxpy", "cpu", 3.0, host="there")
    return path


def test_a_history_survives_a_restart(path):
    with Store(path, create=False) as store:
        known = store.history().table().set_index(["app", "class"])
        table = store.table()
    assert known.loc[("mandelbrot[512]", "gpu"), ["count", "mean", "std"]].tolist() == [2, 3, 1]
    assert known.loc[("saxpy", "gpu"), ["assigned", "count"]].tolist() == [1, 1]
    assert list(table.columns) == list(COLUMNS)
    assert table["seconds"].tolist() == [2, 4, 9, 1, 3]


def test_a_history_knows_hosts_and_devices_apart(path):
    with Store(path) as store:
        known = store.history(host="here").table()
        mine = store.history(devices={"gpu": "gpu0"}).table()
    assert known["app"].tolist() == ["mandelbrot[512]", "saxpy"]
    assert known["class"].tolist() == ["gpu", "gpu"]
    assert mine[["app", "class", "count"]].to_numpy().tolist() == [["mandelbrot[512]", "gpu", 2]]
    assert key("saxpy") == "saxpy"


def test_a_stored_history_steers_a_simulation(path):
    jobs = pd.DataFrame(
        {"app": ["mandelbrot[512]"], "arrival": 0.0, "cpu_time": 9.0, "gpu_time": 3.0}
    )
    with Store(path) as store:
        r = simulate(jobs, Machine(), history=store.history())
    assert r.jobs["rule"].tolist() == ["R3*"]


def test_simulated_runs_are_kept_as_the_history_knows_them(tmp_path):
    jobs = workload.draw(workload.applications("lee", 4, seed=1), 30, seed=1)
    r = simulate(jobs, Machine(2, 1))
    with Store(tmp_path / "h.sqlite") as store:
        store.keep(r)
        pd.testing.assert_frame_equal(store.history("simulated").table(), r.history.table())
        again = simulate(jobs, Machine(2, 1), history=store.history())
    assert again.explored.sum() == 8 - r.explored.sum()


def test_measured_times_become_applications(path):
    with Store(path) as store:
        table = workload.measured(store.history())
    assert table.loc["mandelbrot[512]"].tolist() == [9.0, 3.0]
    assert table.loc["saxpy"].tolist() == [3.0, 1.0]
    with pytest.raises(InputError, match="no measured run"):
        workload.measured(History())


def test_a_reader_sees_whole_runs_while_another_process_writes(path):
    code = (
        "import sys; from dlsim.cpugpu.store import Store\n"
        "s = Store(sys.argv[1]); print('ready', flush=True)\n"
        "for i in range(30): s.add('w', 'gpu', 1.0 + i)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    assert writer.stdout.readline()
    seen = [0]
    while writer.poll() is None or len(seen) < 3:
        with Store(path, create=False) as store:
            times = store.history().record("w", "gpu").times
        assert times == [1.0 + i for i in range(len(times))]
        seen.append(len(times))
    writer.stdout.close()
    assert writer.returncode == 0
    assert seen == sorted(seen)
    with Store(path) as store:
        assert store.history().record("w", "gpu").count == 30


def test_a_writer_that_was_killed_half_way_leaves_no_trace(path):
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN')\n"
        "for i in range(5000): c.execute(\"INSERT INTO runs SELECT NULL, 'half', size, class, \"\n"
        '  "host, device, seconds, at, digest FROM runs WHERE id = 1")\n'
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 9
    assert path.with_name(path.name + "-journal").exists()
    with Store(path, create=False) as store:
        table = store.table()
    assert len(table) == 5
    assert "half" not in set(table["app"])


def test_two_who_create_at_once_share_one_file(tmp_path):
    stores = [Store(tmp_path / "h.sqlite") for _ in range(2)]
    for time, store in enumerate(stores, start=1):
        store.add("A", "gpu", float(time))
    assert [s.history().record("A", "gpu").times for s in stores] == [[1.0, 2.0]] * 2
    for store in stores:
        store.close()
    assert [p.name for p in tmp_path.iterdir()] == ["h.sqlite"]


def with_sql(path, *commands):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for command in commands:
            connection.execute(command)
        connection.commit()


def loosely(path, *commands):
    """Change what the table itself forbids: its types are set aside, and put back."""
    change = "UPDATE sqlite_master SET sql = {} WHERE name = 'runs'"
    for sql, then in (("replace(sql, ' STRICT', '')", commands), (f'"{TABLE}"', ())):
        with_sql(path, "PRAGMA writable_schema = ON", change.format(sql))
        with_sql(path, *then)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1500])


def scribble(path):
    data = bytearray(path.read_bytes())
    data[4096:5096] = b"\xff" * 1000
    path.write_bytes(bytes(data))


def earlier(path):
    """A history as version 2 kept it."""
    path.unlink()
    fields = ", ".join([*COLUMNS, "transfer", "outcome", "note", "digest"])
    with_sql(path, f"CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, {fields})",
             f"PRAGMA application_id = {APPLICATION}", "PRAGMA user_version = 2")  # fmt: skip


def sql(*commands):
    return lambda path: with_sql(path, *commands)


TRIGGER = "CREATE TRIGGER {} AFTER INSERT ON runs BEGIN DELETE FROM runs WHERE id = 1; END"
ROW = "INSERT INTO runs VALUES (6, 'A', '', '{}', '', '', {}, 0.0, 'x')"
#: What was done to a history of five runs, and what the refusal names.
DAMAGE = {
    "empty": (lambda p: p.write_bytes(b""), "not a history"),
    "text": (lambda p: p.write_text("app,seconds\nA,1\n" * 99), "not a database"),
    "cut": (cut, "damaged"),
    "scribbled": (scribble, "damaged"),
    "other table": (sql("DROP TABLE runs", "CREATE TABLE runs (x)"), "table runs is not of"),
    "no table": (sql("DROP TABLE runs"), "holds the tables .'sqlite_sequence'"),
    "newer": (sql("PRAGMA user_version = 4"), "of version 3, but of version 4;"),
    "older": (earlier, "version 2, which holds what this one does not: measure anew"),
    "someone else's": (sql("PRAGMA application_id = 7"), "not a history"),
    "negative time": (sql(ROW.format("gpu", -1)), "run 6, column seconds: -1.0 is not pos"),
    "unknown class": (sql(ROW.format("tpu", 2)), "run 6, column class: 'tpu' is not gpu"),
    "endless": (sql("UPDATE runs SET at = 9e999 WHERE id = 2"), "run 2, column at: inf is not fin"),
    "text for time": (
        lambda p: loosely(p, "UPDATE runs SET seconds = 'fast' WHERE id = 3"),
        "run 3, column seconds: 'fast' is not positive and finite",
    ),
    "no UTF-8": (
        sql("UPDATE runs SET app = CAST(x'ff41' AS TEXT) WHERE id = 1"),
        r"run 1, column app: '\\udcffA' is not a text",
    ),
    "a flipped value": (
        sql("UPDATE runs SET seconds = 4.5 WHERE id = 2"),
        "run 2, column digest: it does not fit the values",
    ),
    "a flipped name": (sql("UPDATE runs SET host = 'hers' WHERE id = 4"), "run 4, column digest"),
    "no first run": (sql("DELETE FROM runs WHERE id = 1"), "run 1 is missing, 2 follows"),
    "a gap": (sql("DELETE FROM runs WHERE id = 3"), "run 3 is missing, 4 follows"),
    "a gap closed": (
        sql("DELETE FROM runs WHERE id = 3", "UPDATE runs SET id = id - 1 WHERE id > 3"),
        "run 3, column digest",
    ),
    "no last run": (sql("DELETE FROM runs WHERE id = 5"), "run 5 is missing.*there are 4 runs"),
    "no run": (sql("DELETE FROM runs"), "run 1 is missing"),
    "not counted": (sql("DELETE FROM runs", "DELETE FROM sqlite_sequence"), "run 1 is missing"),
    "twice": (
        sql(f"INSERT INTO runs SELECT 6, {', '.join(COLUMNS)}, digest FROM runs WHERE id = 5"),
        "run 6, column digest",
    ),
    "trigger": (sql(TRIGGER.format("t")), "its trigger t is not of dlsim .CREATE TRIGGER t AFTER"),
    "trigger of our name": (sql(TRIGGER.format("runs")), "its trigger runs is not of dlsim"),
    "view": (sql("CREATE VIEW v AS SELECT * FROM runs"), "its view v is not of dlsim"),
    "index": (sql("CREATE INDEX i ON runs (app)"), "its index i is not of dlsim"),
    "further table": (sql("CREATE TABLE t (x)"), "its table t is not of dlsim"),
    "further column": (sql("ALTER TABLE runs ADD COLUMN x TEXT"), "its table runs is not of dlsim"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_history_is_refused_and_left_as_it_is(path, damage):
    change, what = DAMAGE[damage]
    change(path)
    before = path.read_bytes()
    named = rf"history\.sqlite: .*{what}.*left as it is.*move this one away"
    with pytest.raises(InputError, match=named):
        with Store(path) as store:
            store.history()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["history.sqlite"]


def test_an_ordinary_database_is_not_taken_over(tmp_path):
    path = tmp_path / "mine.sqlite"
    with_sql(path, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")
    with pytest.raises(InputError, match="not a history of version 3"):
        Store(path)
    assert APPLICATION != 0


def test_a_missing_or_unwritable_place_is_named(tmp_path):
    with pytest.raises(InputError, match="no such history"):
        Store(tmp_path / "none.sqlite", create=False)
    with pytest.raises(InputError, match="not a regular file"):
        Store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not written"):
        Store(tmp_path / "file" / "h.sqlite")


def test_a_busy_file_is_a_failure_not_damage(path, monkeypatch):
    monkeypatch.setattr("dlsim.ledger.PATIENCE", 0.0)
    with Store(path) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StudyError, match="locked"):
            store.add("A", "gpu", 1.0)
        other.rollback()
        store.add("A", "gpu", 1.0)
    assert issubclass(StudyError, DlsimError)


def test_what_others_do_to_an_open_file_is_noticed_before_a_run_is_added(path):
    with Store(path) as store:
        with_sql(path, "DELETE FROM runs WHERE id = 5")
        with pytest.raises(InputError, match="run 5 is missing"):
            store.add("A", "gpu", 1.0)
        with_sql(path, TRIGGER.format("t"))
        with pytest.raises(InputError, match="trigger t"):
            store.add("A", "gpu", 1.0)
        with pytest.raises(InputError, match="trigger t"):
            store.table()


@pytest.mark.parametrize(
    "row",
    [
        (1, "", "here", "gpu0", 1.0),
        ("A", None, "here", "gpu0", 1.0),
        ("A", "", "\ud800", "gpu0", 1.0),
        ("A", "", "here", b"gpu0", 1.0),
        ("A" * (2**20 + 1), "", "here", "gpu0", 1.0),
        ("A", "", "here", "gpu0", "1.0"),
        ("A", "", "here", "gpu0", True),
        ("A", "", "here", "gpu0", 10**400),
    ],
)
def test_a_run_that_could_not_be_read_back_is_refused(tmp_path, row):
    app, size, host, device, seconds = row
    with Store(tmp_path / "h.sqlite") as store:
        with pytest.raises(InputError, match=r"a text|positive and finite"):
            store.add(app, "gpu", seconds, size=size, host=host, device=device)
        assert store.table().empty


def test_odd_but_whole_values_are_read_back_exactly(tmp_path):
    texts = ("", "a\0b", "\u20ac \U0001f600", "'; DROP TABLE runs", "x" * 50_000)
    times = (5e-324, 0.1 + 0.2, 1e308, np.float32(0.1), Fraction(1, 3))
    with Store(tmp_path / "h.sqlite") as store:
        for text, seconds in zip(texts, times, strict=True):
            store.add(text, "gpu", seconds, size=text, host=text, device=text)
    with Store(tmp_path / "h.sqlite", create=False) as store:
        table = store.table()
    assert table["app"].tolist() == [*texts]
    assert table["seconds"].tolist() == [float(seconds) for seconds in times]


def test_an_sqlite_without_strict_tables_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dlsim.ledger.OLDEST", (99, 1))
    with pytest.raises(InputError, match=r"SQLite 99\.1 or later, this Python has .*use another"):
        Store(tmp_path / "h.sqlite")
    assert not list(tmp_path.iterdir())

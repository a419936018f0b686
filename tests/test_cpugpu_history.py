"""What is known of run times, in memory and on disk: statistics, restarts, damage, readers."""

import math
import sqlite3
import statistics
import subprocess
import sys
from contextlib import closing

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.cpugpu import History, Machine, Store, simulate, workload
from dlsim.cpugpu.store import APPLICATION, COLUMNS, key
from dlsim.errors import DlsimError, InputError, StudyError

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
        store.add("mandelbrot", "gpu", 2.0, size="512", host="here", device="gpu0", transfer=0.5)
        store.add("mandelbrot", "gpu", 4.0, size="512", host="here", device="gpu0")
        store.add("mandelbrot", "cpu", 9.0, size="512", host="there", device="cpu0")
        store.note("saxpy", "gpu", "failed", "no kernel", host="here")
        store.note("saxpy", "cpu", "lost", "killed", host="here")
    return path


def test_a_history_survives_a_restart(path):
    with Store(path, create=False) as store:
        known = store.history().table().set_index(["app", "class"])
        table = store.table()
    assert known.loc[("mandelbrot[512]", "gpu"), ["count", "mean", "std"]].tolist() == [2, 3, 1]
    assert known.loc[("saxpy", "gpu"), ["assigned", "count"]].tolist() == [1, 0]
    assert ("saxpy", "cpu") not in known.index
    assert list(table.columns) == list(COLUMNS)
    assert table["seconds"].isna().tolist() == [False] * 3 + [True] * 2
    assert table["transfer"].tolist() == [0.5, 0, 0, 0, 0]


def test_a_history_knows_hosts_apart(path):
    with Store(path) as store:
        known = store.history(host="here").table()
    assert known["app"].tolist() == ["mandelbrot[512]", "saxpy"]
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
    assert "saxpy" not in table.index
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
        '  "host, device, seconds, transfer, outcome, note, at FROM runs WHERE id = 1")\n'
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
        for command in commands:
            connection.execute(command)
        connection.commit()


def cut(path):
    path.write_bytes(path.read_bytes()[:-1500])


def scribble(path):
    data = bytearray(path.read_bytes())
    data[4096:5096] = b"\xff" * 1000
    path.write_bytes(bytes(data))


ROW = "INSERT INTO runs VALUES (99, 'A', '', '{}', '', '', {}, 0, '{}', '', 0)"
DAMAGE = {
    "empty": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_text("app,seconds\nA,1\n" * 99),
    "cut": cut,
    "scribbled": scribble,
    "other table": lambda p: with_sql(p, "DROP TABLE runs", "CREATE TABLE runs (x)"),
    "no table": lambda p: with_sql(p, "DROP TABLE runs"),
    "newer": lambda p: with_sql(p, "PRAGMA user_version = 2"),
    "someone else's": lambda p: with_sql(p, "PRAGMA application_id = 7"),
    "negative time": lambda p: with_sql(p, ROW.format("gpu", -1, "done")),
    "no time": lambda p: with_sql(p, ROW.format("gpu", "NULL", "done")),
    "text for time": lambda p: with_sql(p, ROW.format("gpu", "'fast'", "done")),
    "time of a lost run": lambda p: with_sql(p, ROW.format("gpu", 2.0, "lost")),
    "unknown class": lambda p: with_sql(p, ROW.format("tpu", 2.0, "done")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_history_is_refused_and_left_as_it_is(path, damage):
    DAMAGE[damage](path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"history\.sqlite.*left as it is.*move this one away"):
        with Store(path) as store:
            store.history()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["history.sqlite"]


def test_an_ordinary_database_is_not_taken_over(tmp_path):
    path = tmp_path / "mine.sqlite"
    with_sql(path, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")
    with pytest.raises(InputError, match="not a history of version 1"):
        Store(path)
    assert APPLICATION != 0


def test_a_missing_or_unwritable_place_is_named(tmp_path):
    with pytest.raises(InputError, match="no such history"):
        Store(tmp_path / "none.sqlite", create=False)
    with pytest.raises(InputError, match="not a file"):
        Store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not written"):
        Store(tmp_path / "file" / "h.sqlite")


def test_a_busy_file_is_a_failure_not_damage(path, monkeypatch):
    monkeypatch.setattr("dlsim.cpugpu.store.PATIENCE", 0.0)
    with Store(path) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StudyError, match="locked"):
            store.add("A", "gpu", 1.0)
        other.rollback()
        store.add("A", "gpu", 1.0)
    assert issubclass(StudyError, DlsimError)


def test_an_outcome_is_failed_or_lost(path):
    with Store(path) as store, pytest.raises(InputError, match="outcome"):
        store.note("A", "gpu", "done", "")

"""The history under fire: damaged files by the hundred, and processes that write at once or die.

`damaged` can be called on its own with as many instances as wanted; it counts by kind.
"""

import collections
import os
import random
import shutil
import signal
import sqlite3
from contextlib import suppress

import pytest

from dlsim.cpugpu import Store
from dlsim.cpugpu.store import COLUMNS
from dlsim.errors import InputError
from tests.children import forked
from tests.scale import SCALE
from tests.test_cpugpu_history import loosely, with_sql

# --- damage ---------------------------------------------------------------------------------------


def fill(path, runs, seed):
    rng = random.Random(seed)
    with Store(path) as store:
        for k in range(runs):
            app, cls = rng.choice(("a", "long" * k * 9)), rng.choice(("gpu", "cpu"))
            where = {"size": str(rng.randrange(9)), "host": "h"}
            store.add(app, cls, rng.lognormvariate(0, 3), **where)


def read(path):
    with Store(path, create=False) as store:
        return store.table()


def flip(data, rng, _):
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def flip_head(data, rng, _):
    data[rng.randrange(100)] ^= 1 << rng.randrange(8)


def overwrite(data, rng, _):
    start, length = rng.randrange(len(data)), rng.choice((1, 8, 64, 512, 4096))
    new = rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length)))
    data[start : start + length] = new[: len(data) - start]


def cut(data, rng, _):
    del data[rng.choice((rng.randrange(len(data)), 4096 * rng.randrange(len(data) // 4096))) :]


def grow(data, rng, _):
    data += rng.choice((bytes, rng.randbytes))(rng.choice((1, 100, 4096, 10_000)))


def splice(data, rng, others):
    """A page of another history, of this one earlier, or from another place of this one."""
    source = rng.choice((*others, bytes(data)))
    step = rng.choice((4096, 4096, 512, 1))
    start, end = (step * rng.randrange(len(x) // step) for x in (source, data))
    piece = source[start : start + rng.choice((step, 4096))][: len(data) - end]
    if rng.random() < 0.2:
        data[end:end] = piece
    else:
        data[end : end + len(piece)] = piece


TEXTS = ("'a'", "'gpu'", "'cpu'", "''", "x'00ff'", "NULL", "0", "1.5", "-1.0", "9e999")


def command(rng, runs):
    """A change of the values, the runs, the schema or the marks, as SQL."""
    one, two = rng.randrange(1, runs + 1), rng.randrange(1, runs + 1)
    names = [*COLUMNS, "digest"]
    name, columns = rng.choice(names), ", ".join(names)
    acts = "BEGIN DELETE FROM runs WHERE id = {}; END"
    return rng.choice([
        *[f"UPDATE runs SET {name} = {rng.choice(TEXTS)} WHERE id = {one}"] * 6,
        *[f"UPDATE runs SET {name} = (SELECT {name} FROM runs WHERE id = {two}) WHERE id = {one}",
          f"UPDATE runs SET seconds = seconds * (1 + 1e-15) WHERE id = {one}"] * 3,
        f"UPDATE runs SET id = id + {runs} WHERE id = {one}",
        f"DELETE FROM runs WHERE id = {one}", f"DELETE FROM runs WHERE id >= {one}",
        f"DELETE FROM runs WHERE id <= {one}", "DELETE FROM runs",
        f"INSERT INTO runs SELECT {runs + 1}, {columns} FROM runs WHERE id = {one}",
        "UPDATE sqlite_sequence SET seq = seq - 1", "DELETE FROM sqlite_sequence",
        f"CREATE TRIGGER t AFTER INSERT ON runs {acts.format(one)}",
        f"CREATE TRIGGER runs BEFORE INSERT ON runs {acts.format(one)}",
        "CREATE VIEW v AS SELECT 1", "CREATE INDEX i ON runs (at)", "CREATE TABLE t (x)",
        "ALTER TABLE runs ADD COLUMN x TEXT", "ALTER TABLE runs RENAME COLUMN size TO length",
        "ALTER TABLE runs RENAME TO walks", "DROP TABLE runs", "ANALYZE", "VACUUM", "REINDEX",
        f"PRAGMA user_version = {rng.randrange(5)}", "PRAGMA application_id = 3",
        "PRAGMA journal_mode = WAL",
    ])  # fmt: skip


def by_sql(path, rng, runs):
    change = command(rng, runs)
    values = change.startswith(("UPDATE runs", "INSERT", "DELETE"))
    with suppress(sqlite3.IntegrityError):  # the table keeps it out: nothing was damaged
        (loosely if values and rng.random() < 0.5 else with_sql)(path, change)


BYTES = {f.__name__: f for f in (flip, flip_head, overwrite, cut, grow, splice)}


def damaged(folder, instances, seed=0):
    """Damage histories; each is refused, or gives the same runs and takes a further one."""
    rng, counts, wholes = random.Random(seed), collections.Counter(), []
    for runs in (3, 12, 60):
        path = folder / f"{runs}.sqlite"
        fill(path, runs - 1, runs)
        before = path.read_bytes()
        with Store(path) as store:
            store.add("a", "gpu", 1.0)
        wholes.append((path, runs, (before, path.read_bytes()), read(path)))
    room = folder / "room"
    for number in range(instances):
        path, runs, versions, table = wholes[number % 3]
        kind = rng.choice((*BYTES, "sql"))
        room.mkdir()
        victim = room / "h.sqlite"
        if kind == "sql":
            shutil.copy(path, victim)
            by_sql(victim, rng, runs)
        else:
            data = bytearray(versions[1])
            BYTES[kind](data, rng, (versions[0], *(other[2][1] for other in wholes)))
            victim.write_bytes(data)
        left = victim.read_bytes()
        try:
            found = read(victim)
        except InputError:
            counts[kind, "refused"] += 1
        else:
            assert found.equals(table), (seed, number, kind)
            counts[kind, "whole"] += 1
            took = 0
            with Store(victim) as store:
                try:
                    store.add("a", "cpu", 2.0)
                    took = 1
                except InputError:  # a flag that forbids writing
                    counts[kind, "whole, but not written to"] += 1
            again = read(victim)
            assert len(again) == runs + took
            assert again.iloc[:runs].equals(table), (seed, number, kind)
            left = victim.read_bytes()
        assert victim.read_bytes() == left, (seed, number, kind)
        assert [p.name for p in room.iterdir()] == ["h.sqlite"], (seed, number, kind)
        shutil.rmtree(room)
    return counts


def test_a_damaged_history_is_refused_or_whole(tmp_path):
    counts = damaged(tmp_path, round(400 * SCALE))
    assert counts.total() >= round(400 * SCALE)
    for kind in {*BYTES, "sql"} - {"grow"}:  # what is beyond the end is not read
        assert counts[kind, "refused"] > 0, counts


# --- processes ------------------------------------------------------------------------------------

WRITER = """
from dlsim.cpugpu import Store

def do(name):
    with Store(PATH) as store:
        say(name, "opened", "it")
        os.read(0, 1)  # till all are to begin
        for k in range(1, 21):
            store.add(name, "gpu", float(k))
            say(name, "wrote", k)
"""


def left(path):
    """What is there once a run was added: it takes away the journal a killed writer began."""
    with Store(path) as store:
        store.add("last", "gpu", 1.0)
    return sorted(p.name for p in path.parent.iterdir())


def test_two_who_write_at_once_lose_nothing_even_if_one_is_killed(tmp_path):
    path, told, rng = tmp_path / "h.sqlite", collections.Counter(), random.Random(7)
    for trial in range(round(2 * SCALE)):
        one, two, victim = names = [f"{who}{trial}" for who in ("a", "b", "victim")]
        most, pids, ended, opened = rng.randrange(1, 18), {}, {}, 0
        with forked(WRITER.replace("PATH", repr(str(path))), names) as writers:
            for name, what, word in map(str.split, writers.stdout):
                if what == "is":
                    pids[name] = int(word)
                elif what == "opened":
                    opened += 1
                    if opened == 3:
                        writers.stdin.close()  # begin
                elif what == "wrote":
                    told[name] += 1
                    if (name, int(word)) == (victim, most):
                        os.kill(pids[name], signal.SIGKILL)
                else:
                    ended[name] = int(word)
        assert ended == {one: 0, two: 0, victim: -signal.SIGKILL}
    runs = read(path).groupby("app")["seconds"].apply(list)
    for name, lines in told.items():
        assert runs[name] == [float(k) for k in range(1, len(runs[name]) + 1)]
        # a run may be on disk before its line is
        assert lines <= len(runs[name]) <= lines + ("victim" in name)
        assert "victim" in name or lines == 20
    assert left(path) == ["h.sqlite"]


def test_what_a_store_is_asked_is_of_its_kind(tmp_path):
    with Store(tmp_path / "h.sqlite") as store:
        with pytest.raises(InputError, match="devices must be a mapping"):
            store.history(devices="gpu0")
        assert store.history(devices={}).table().empty

"""What may be relied on: eleven promises, the tests that hold them, and further counts.

1. Every engine decides as an exact or plain twin does, at ties too:
   test_realtime_engine, test_inserted_idle, test_steady_heuristics, test_steady_program,
   test_bricks_twin, test_cpugpu_engine, test_cpugpu_moldable, test_cpugpu_pipeline,
   test_cpugpu_mapreduce; the tie rule itself: test_kernel_tie, test_kernel_tie_releases.
2. No schedule in a test breaks a rule of its model: test_check, test_check_releases,
   test_bricks_check, test_cpugpu_check hold the checks, and the tests of 1 call them.
3. Schedulers keep their word as tasks arrive and time passes: test_realtime_properties
   (stateful: ``Office``), test_broker (stateful: ``Organisation``).
4. A run that is killed resumes with the same bytes; a full disk or a folder that cannot be
   written to is an error: test_grid
   (test_a_killed_sweep_loses_no_finished_cell_and_leaves_no_worker,
   test_a_worker_that_dies_costs_nothing_but_its_cell,
   test_a_full_disk_is_an_error_and_leaves_no_file), test_faults
   (test_kills_of_the_command_lose_nothing_and_leave_nobody), test_dask, test_files
   (test_killed_writer_never_shows_half_a_file, test_read_only_folder).
5. Same seed, same bytes, for any number of workers and back end: test_grid
   (test_one_and_two_jobs_and_any_executor_give_the_same_bytes,
   test_two_workers_of_dask_give_the_same_bytes).
6. A broken file is refused by name, line and field: test_files (test_mutated_files_never_crash),
   test_swf, test_notebooks, test_claims, test_steady_model.
7. Parameters of a notebook are values of the declared type, never code: test_notebooks
   (test_ill_typed_parameters_are_refused_by_name).
8. No answer of a solver is believed unchecked: test_steady_program
   (test_a_loose_bound_is_proved_anew_and_never_refused,
   test_a_search_that_ends_with_nothing_says_so_and_what_to_do),
   test_steady_model (test_the_check_and_the_programs_agree_on_the_rows).
9. A cell that fails fails the run: test_notebooks
   (test_a_failed_notebook_is_kept_under_a_name_that_says_so). A wrong formula fails a test:
   test_theory (test_wrong_variants_are_refused) and ``python tests/verification/mutation.py``.

10. Nothing is written over, moved or removed but what dlsim wrote; what is reused is what was
   computed: test_output_folder (stateful: ``Folder``), test_lab, test_cpugpu_database.
11. A fault is told, and leaves nobody behind. The table of faults: test_faults (kills of the
   command by signal, victim and moment; two runs on one cache; a full disk, a read-only folder, no
   home, a stranger's cache), test_notebooks
   (test_a_cell_that_never_ends_is_ended_with_all_that_it_started), test_trust (what is taken from
   the cache), test_hostile_files (within a memory limit).

``pytest -s`` on this file prints the counts; DLSIM_TEST_SCALE multiplies them.
"""

import gzip
import random
import re
import resource
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dlsim.cpugpu.engine import ONLINE
from dlsim.errors import InputError
from tests.cpugpu_queues import queue
from tests.readers import READERS, SEALED
from tests.scale import LONG, scale_count
from tests.steady_platforms import draw_platform
from tests.strategies import IN_LINE, ROWS, ROWS_I, any_reading, differences, seeded, seeded_for
from tests.test_bricks_twin import OF_ENVIRONMENT, OF_READING, OF_SCHEDULER, draw, draw_environment
from tests.test_bricks_twin import agree as agree_grid
from tests.test_cpugpu_engine import agree, both, runnable
from tests.test_steady_heuristics import READINGS, same_steps

HERE = Path(__file__).parents[1]


def test_the_list_above_names_tests_that_are_there():
    there = {path.stem for path in HERE.rglob("test_*.py")}
    for path in HERE.rglob("test_*.py"):
        there.update(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"\btest_\w+", __doc__)) - {"test_reliability"}
    assert len(named) > 30
    assert named <= there


# --- 1: how many instances, and how many of them at a tie ---------------------------------------


def coinciding(instants):
    """How many of these exact instants are another one's too."""
    return sum(n for n in Counter(instants).values() if n > 1)


def realtime(rng):
    """One instance of paper M's kind or paper I's; ties: tasks that end at their deadline."""
    if rng.random() < 0.5:
        policy = rng.choice(sorted(ROWS))
        _, instance = seeded(rng.random())
        reading = any_reading(rng.choice)
    else:
        policy = rng.choice(sorted(set(IN_LINE) - SLOW))
        _, instance, reading = seeded_for(policy, rng.random())
    records = instance.exact(policy, reading)
    s = instance.simulate(policy, reading)
    assert differences(records, s) == [], (policy, reading, instance)
    s.check()
    ends = [getattr(r, "estimate", None) or r.completion for r in records]
    due = [row[0] + row[2] for row in instance.rows]
    return len(records), sum(end == limit for end, limit in zip(ends, due, strict=True))


def cpu_gpu(rng):
    """One queue; ties: jobs that end or arrive as another does, exactly."""
    name, q = rng.choice(ONLINE), queue(rng)
    if not runnable(q, name):
        return 0, 0
    r, jobs = both(q, name)
    agree(r, jobs)
    return len(jobs), coinciding([*(job.end for job in jobs), *{job.arrival for job in jobs}])


def wide_area(rng):
    """One platform under the greedy heuristic; ties: clusters of the same speed."""
    p = draw_platform(rng.randrange(2**31), rng.random() < 0.5, rng.randint(1, 5))
    return same_steps(p, READINGS[rng.choice(sorted(READINGS))]), coinciding(p.speed.tolist())


def grid(rng):
    """One Grid; ties: requests of the same instant, exactly."""
    scheduler, reading = draw(OF_SCHEDULER, rng), draw(OF_READING, rng)
    env = draw_environment(rng, **draw(OF_ENVIRONMENT, rng, often=0.7))
    agree_grid(env, scheduler, reading)
    return len(env.requests), coinciding(env.requests["time"].tolist())


#: Rows whose exact twin tries 64 numbers of rounds.
SLOW = {name for name, row in ROWS_I.items() if row.rounds == "best"}
ENGINES = [(realtime, 400), (cpu_gpu, 600), (wide_area, 1000), (grid, 300)]


@pytest.mark.parametrize(("engine", "count"), ENGINES, ids=[e.__name__ for e, _ in ENGINES])
def test_no_decision_differs_from_the_twins_and_ties_are_among_them(engine, count):
    rng = random.Random(engine.__name__)
    found = np.array([engine(rng) for _ in range(scale_count(count, LONG, least=20))])
    decisions, tied = found.sum(axis=0)
    print(f"{engine.__name__}: {len(found)} instances, {decisions} decisions, {tied} at a tie")
    assert decisions > 0
    assert tied > 0


# --- 6: files that somebody else wrote, damaged in 16 ways ---------------------------------------


def flip(rng, data):
    """Change single bits."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(rng, data):
    """End too early."""
    return data[: rng.randrange(len(data))]


def splice(rng, data):
    """Repeat or drop a piece."""
    a, b = sorted(rng.choices(range(len(data) + 1), k=2))
    return data[:b] + data[a:] if rng.random() < 0.5 else data[:a] + data[b:]


def number(value, rng, data):
    """Put another number in the place of one."""
    places = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not places:
        return b""
    place = rng.choice(places)
    return data[: place.start()] + value + data[place.end() :]


def foreign(rng, data):
    """Break the encoding."""
    at = rng.randrange(len(data))
    return data[:at] + rng.choice([b"\xff", b"\xc3(", b"\0", "\u0664".encode()]) + data[at:]


def crlf(rng, data):
    """End lines as elsewhere, all or one."""
    return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n"]), rng.choice([-1, 1]))


def bomb(rng, data):
    """Unpack to too much."""
    return gzip.compress(data + rng.choice([b"\n", b"1 ", b"#", b"\0"]) * 70_000, mtime=0)


VALUES = (b"nan", b"-1", b"-1e308", b"inf", b"1e999", b"0", b"9" * 400, b"", b"1_0", b"true")
DAMAGE = [flip, cut, splice, foreign, crlf, bomb, *(partial(number, v) for v in VALUES)]

#: Refusals of a file as a whole, where no line is to blame.
WHOLE = ("no job that could be", "holds no ", "has no version", "gzip", "used twice", "bytes",
         "tells no step", "nested more", "1.8e308")  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore:max_connect|limits.pairs:UserWarning")
def test_damaged_files_are_read_or_refused_by_name_and_place(tmp_path, name):
    read, good, lines = READERS[name]
    path, rng, counts = tmp_path / name, random.Random(name), Counter()
    path.write_bytes(good)
    read(path)
    for k in range(scale_count(5 * len(DAMAGE), least=len(DAMAGE))):
        data = DAMAGE[k % len(DAMAGE)](rng, good)
        if name.endswith((".swf", ".csv")) and rng.random() < 0.1:
            data = gzip.compress(data, mtime=0)
        path.write_bytes(data)
        try:
            read(path)
        except InputError as refusal:
            said = str(refusal)
            assert name in said, data
            placed = (
                re.search("line |field ", said) or not lines or any(word in said for word in WHOLE)
            )
            assert placed, (said, data)
            counts["refused"] += 1
            counts["with a line"] += "line " in said
        else:
            counts["read"] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    files = counts["read"] + counts["refused"]
    print(f"{name}: {files} files, {dict(counts)}, peak memory {peak} MiB")
    assert counts["refused"] > 0
    assert counts["read"] > 0 or name in SEALED

"""What may be relied on: eleven promises, the tests that hold them, and further counts.

1. Every engine decides as an exact or plain twin does, at ties too:
   realtime/test_engine, realtime/test_inserted_idle, steady/test_heuristics, steady/test_program,
   bricks/test_twin, cpugpu/test_engine, cpugpu/test_moldable, cpugpu/test_pipeline,
   cpugpu/test_mapreduce; the tie rule itself: test_kernel_tie, test_kernel_tie_releases.
2. No schedule in a test breaks a rule of its model: realtime/test_check,
   bricks/test_check, cpugpu/test_check hold the checks, and the tests of 1 call them.
3. Schedulers keep their word as tasks arrive and time passes: test_realtime_properties
   (stateful: ``Office``), steady/test_broker (stateful: ``Organisation``).
4. A run that is killed resumes with the same bytes; a full disk or a folder that cannot be
   written to is an error: study/test_sweeps
   (test_a_killed_sweep_loses_no_finished_cell_and_leaves_no_worker,
   test_a_worker_that_dies_costs_nothing_but_its_cell,
   test_a_full_disk_is_an_error_and_leaves_no_file), test_faults
   (test_kills_of_the_command_lose_nothing_and_leave_no_process), test_dask, test_files
   (test_killed_writer_never_shows_half_a_file, test_unwritable_places_are_named).
5. Same seed, same bytes, for any number of workers and back end: study/test_sweeps
   (test_one_and_two_jobs_and_any_executor_give_the_same_bytes,
   test_two_workers_of_dask_give_the_same_bytes).
6. A broken file is refused by name, line and field: test_damaged_files,
   joblog/test_swf, study/test_notebooks, study/test_claims, steady/test_model.
7. Parameters of a notebook are values of the declared type, never code: study/test_notebooks
   (test_ill_typed_parameters_are_refused_by_name).
8. No answer of a solver is believed unchecked: steady/test_program
   (test_a_loose_bound_is_proved_anew_and_never_refused,
   test_a_search_cut_short_keeps_its_start_and_its_gap),
   steady/test_model (test_the_check_and_the_programs_agree_on_the_rows).
9. A cell that fails fails the run: study/test_notebooks
   (test_a_failed_notebook_is_kept_under_a_name_that_says_so). A wrong formula fails a test:
   theory/test_statements (test_wrong_variants_are_refused) and
   ``python tests/verification/mutation.py``.

10. Nothing is written over, moved or removed but what dlsim wrote; what is reused is what was
   computed: test_output_folder (stateful: ``Folder``), test_lab,
   cpugpu/test_database.
11. A fault is told, and leaves no process behind. The table of faults: test_faults (kills of the
   command by signal, victim and moment; two runs on one cache; a full disk, a read-only folder, no
   home, a stranger's cache), study/test_notebooks
   (test_a_cell_that_never_ends_is_ended_with_all_that_it_started), test_trust (what is taken from
   the cache), test_hostile_files (within a memory limit).

``pytest -s`` on this file prints the counts; DLSIM_TEST_SCALE multiplies them.
"""

import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.bricks.test_twin import OF_ENVIRONMENT, OF_POLICY, OF_READING, draw, draw_environment
from tests.bricks.test_twin import agree as agree_grid
from tests.cpugpu.test_engine import agree, both
from tests.helpers.cpugpu_queues import ONLINE, queue, runnable
from tests.helpers.scale import LONG, scale_count
from tests.helpers.steady_platforms import draw_platform
from tests.helpers.strategies import (
    IN_LINE,
    ROWS,
    ROWS_I,
    any_reading,
    differences,
    seeded,
    seeded_for,
)
from tests.steady.test_heuristics import READINGS, same_steps

HERE = Path(__file__).parents[1]


def test_the_list_above_names_tests_that_are_there():
    there = {
        path.stem for folder in (".", "verification") for path in (HERE / folder).glob("test_*")
    }
    for path in HERE.rglob("test_*.py"):
        there.add(path.relative_to(HERE).with_suffix("").as_posix())
        there.update(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:\b\w+/)?\btest_\w+", __doc__)) - {"test_reliability"}
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
    r, exact = both(q, name)
    agree(r, exact)
    ends, arrivals = [job.end for job in exact.jobs], {job.arrival for job in exact.jobs}
    return len(exact.jobs), coinciding([*ends, *arrivals])


def wide_area(rng):
    """One platform under the greedy heuristic; ties: clusters of the same speed."""
    p = draw_platform(rng.randrange(2**31), rng.random() < 0.5, rng.randint(1, 5))
    return same_steps(p, READINGS[rng.choice(sorted(READINGS))]), coinciding(p.speed.tolist())


def grid(rng):
    """One Grid; ties: requests of the same instant, exactly."""
    policy, reading = draw(OF_POLICY, rng), draw(OF_READING, rng)
    env = draw_environment(rng, **draw(OF_ENVIRONMENT, rng, often=0.7))
    agree_grid(env, policy, reading)
    return len(env.requests), coinciding(env.requests["arrival"].tolist())


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

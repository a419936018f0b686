"""The engine of papers M and I takes several ways through its code; all return the same bytes.

It runs compiled or not, serves plain policies in a loop of their own (`opr_loop`), and remembers
what a long plan leaves.
"""

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import replace

import numba
import numpy as np
import pandas as pd
import pytest

from dlsim.compiled import CORES
from dlsim.realtime import (
    SWITCHES,
    Cluster,
    Policy,
    Reading,
    Schedule,
    execution_time,
    fewest_nodes,
    formulas,
    simulate,
    split_load,
    workload,
)
from tests.golden.realtime_runs import ROWS, draw_cluster, draw_reading, draw_tasks
from tests.helpers.scale import LONG, SCALE, TRIES_ALL, scale_count, some_of

CORE = CORES["realtime"]
#: The module of the run; its name in the package is that of the function.
room = importlib.import_module("dlsim.realtime.simulate")
jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")


def digits_of(table: pd.DataFrame | None) -> str:
    """Write a table; other bits are another text."""
    if table is None:
        return ""
    return table.map(lambda x: x.hex() if isinstance(x, float) else x).to_csv()


def results_of(s: Schedule, offers: int = 2) -> list[str]:
    """Write all that a run returns: tables, counts, and offers to the first refused tasks."""
    digits = [digits_of(s.tasks), digits_of(s.chunks), digits_of(s.runs)]
    if s.counted is not None:
        digits.append(s.counts.to_csv())
    if s.policy.admission and not s.policy.has_user_rules and s.parts is None:
        for task in s.tasks.index[~s.tasks["admitted"]][:offers]:
            offer = s.offer(task)
            digits.append(f"{task} {offer and [float(x).hex() for x in offer]}")
    return digits


# --- two speeds ---------------------------------------------------------------------------------


@contextlib.contextmanager
def all_at(speed: str) -> Iterator[None]:
    """Let every function run the core at one speed, also those that choose it themselves."""
    core = getattr(CORE, speed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CORE, "at_speed", lambda *given: contextlib.nullcontext(core))
        yield


def draw_run(name: str, seed: int) -> tuple[pd.DataFrame, Cluster, Policy]:
    """Draw tasks and a cluster for a policy; many nodes may be released at one instant."""
    rng, policy = np.random.default_rng([list(ROWS).index(name), seed]), ROWS[name]
    cluster = draw_cluster(rng, policy)
    nodes = cluster.nodes if policy.rounds == "best" else int(rng.choice([2, 5, 16, 40]))
    cluster = Cluster(nodes, cluster.cms, cluster.cps, cluster.st, cluster.sc)
    return draw_tasks(rng, cluster, int(rng.integers(8, 25))), cluster, policy


#: Policies that can be compiled: none of their functions is asked at an instant.
COMPILED_ROWS = [name for name, policy in ROWS.items() if not policy.has_user_rules]


@jit
@pytest.mark.parametrize("name", COMPILED_ROWS)
def test_compiled_and_uncompiled_runs_are_the_same_bytes(name):
    """Under many readings at once; `tests/test_golden.py` compares other runs at each speed."""
    rng = np.random.default_rng([11, list(ROWS).index(name)])
    for seed in range(100 if TRIES_ALL else 1):
        reading = draw_reading(rng)
        whole = ROWS[name].admission and reading.get("split") != "piece"
        negotiate = float(rng.choice([0, 1.5, 4])) if whole else 0.0
        given, found = draw_run(name, seed), []
        for speed in ("compiled", "python"):
            with all_at(speed):
                s = simulate(*given, Reading.from_switches(reading), negotiate=negotiate)
                found.append(results_of(s))
        assert found[0] == found[1], (seed, reading, negotiate)


@jit
@pytest.mark.parametrize("partition", ["opr", "equal", "dlt", "I", "II", "exact", "umr", "umr-iit"])
def test_compiled_and_uncompiled_splits_are_the_same_bytes(partition):
    rng = np.random.default_rng(5)
    for _ in range(scale_count(100)):
        cluster = Cluster(60, float(rng.choice([0.3, 1, 8])), float(rng.choice([1.5, 10, 1000])))
        releases = rng.choice(rng.uniform(0, 100, 5), int(rng.integers(1, 60)))
        sigma, digits = rng.uniform(200, 300), []
        for speed in ("compiled", "python"):
            with all_at(speed):
                split = split_load(sigma, releases, cluster, partition)
            digits.append([np.asarray(field).tobytes() for field in split[1:]])
        assert digits[0] == digits[1]


@jit
def test_tables_and_fewest_nodes_are_the_same_bytes_at_both_speeds(monkeypatch):
    """Large ones are computed by the compiled formulas."""
    rng, found = np.random.default_rng(6), []
    costs = rng.choice([0.0, 0.7, 1.0, 3.0, 10.0], (40, 4))
    costs[:, 0] += 0.1
    clusters = [Cluster(int(rng.integers(1, 80)), *row) for row in costs.tolist()]
    sigma, budget = rng.uniform(1, 50, 200), rng.uniform(1, 500, 200)
    for most in (0, 10**9):
        monkeypatch.setattr(formulas, "SMALL_TABLE", most)
        formulas.opr_table.cache_clear()
        tables = [column.tobytes() for c in clusters for column in formulas.opr_table(c)]
        found.append(tables + [fewest_nodes(sigma, budget, c).tobytes() for c in clusters])
    assert found[0] == found[1]


# --- the loop of plain policies -----------------------------------------------------------------


@pytest.mark.parametrize("order", ["edf", "fifo", lambda tasks: -tasks["sigma"].to_numpy()])
def test_the_short_loop_decides_as_the_general_one(order, monkeypatch):
    draw, policy = np.random.default_rng(3), Policy(order, "min")
    for _ in range(scale_count(60, LONG)):
        nodes, slack = int(draw.choice([1, 3, 16, 40, 300])), float(draw.choice([2, 20, 500]))
        cluster = Cluster(
            nodes, float(draw.choice([0, 1, 8])), 100.0, 0.0, float(draw.choice([0, 2]))
        )
        interval = execution_time(200.0, nodes, cluster) / float(draw.choice([0.5, 1, 4]))
        tasks = workload.dcratio(
            cluster, 1.0, 200 * interval, int(draw.integers(99)), dc_ratio=slack
        )
        at = np.sort(draw.uniform(0, interval * len(tasks), len(tasks)))
        if draw.random() < 0.5:  # batches, equal sizes, equal deadlines
            at, tasks["sigma"] = at // (4 * interval) * (4 * interval), 200.0
            tasks["deadline"] = execution_time(200.0, 1, cluster) * draw.integers(1, 9, len(tasks))
        tasks["arrival"] = at + draw.choice([0, 1e9])
        reading = Reading(link=str(draw.choice(SWITCHES["link"])))
        assert room.fits_opr_loop(room.Rules(cluster, policy, reading))
        short = simulate(tasks, cluster, policy, reading)
        with monkeypatch.context() as patch:
            patch.setattr(room, "fits_opr_loop", lambda _: False)
            general = simulate(tasks, cluster, policy, reading)
        for table in ("tasks", "runs", "chunks"):
            assert digits_of(getattr(short, table)) == digits_of(getattr(general, table)), table
        pd.testing.assert_frame_equal(short.counts, general.counts)


# --- long plans -----------------------------------------------------------------------------------

#: Policies whose long plans are remembered: in line, by a rank that does not change with time.
REMEMBERED = [name for name in ROWS if ROWS[name].admission and not ROWS[name].overtake]
REMEMBERED = [name for name in REMEMBERED if name in COMPILED_ROWS and ROWS[name].order != "dc"]


@pytest.mark.parametrize("name", some_of(REMEMBERED, SCALE))
def test_a_long_plan_that_is_remembered_is_planned_alike(name, monkeypatch):
    """What a plan leaves is remembered from a length on: from 2 tasks, or never."""
    line = CORE.python.line
    follows_plan, remembered = line.follows_plan, []

    def follows(*given):
        remembered.append(follows_plan(*given))
        return remembered[-1]

    monkeypatch.setattr(room, "fits_opr_loop", lambda _: False)
    monkeypatch.setattr(line, "follows_plan", follows)
    rng, policy = np.random.default_rng([9, list(ROWS).index(name)]), ROWS[name]
    for reading in (Reading(), Reading(link="shared", release="finish")):
        cluster = replace(draw_cluster(rng, policy), nodes=5)
        tasks = draw_tasks(rng, cluster, 30)
        tasks = tasks.assign(arrival=tasks["arrival"] / 9, deadline=tasks["deadline"] * 20)
        found = []
        for length in (2, 10**9):
            monkeypatch.setattr(line, "LONG_QUEUE", length)
            found.append(results_of(simulate(tasks, cluster, policy, reading, engine="python"), 1))
        assert found[0] == found[1], reading
    assert any(remembered)

"""Rigid jobs: hand cases, a twin from the definition, and what EASY promises."""

import random

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime.rigid import run_rigid
from tests.scale import SCALE
from tests.twins.rigid import starts


def table(jobs):
    return pd.DataFrame(jobs, columns=["submit", "run_time", "estimate", "processors"])


def test_by_hand():
    """Four processors: 3 until 10; 4 asked at 1; at 2 one for 8 (fits), at 3 one for 8 (too long).

    The first in line could start at 10 and leave nothing over: who ends by then may pass.
    """
    jobs = table([(0, 10, 10, 3), (1, 5, 5, 4), (2, 8, 8, 1), (3, 8, 8, 1)])
    assert run_rigid(jobs, 4, "fcfs").tolist() == [0, 10, 15, 15]
    assert run_rigid(jobs, 4, "easy").tolist() == [0, 10, 2, 15]


def test_processors_that_the_first_in_line_leaves_may_be_kept_longer():
    jobs = table([(0, 10, 10, 3), (1, 5, 5, 3), (2, 99, 99, 1)])
    assert run_rigid(jobs, 4, "easy").tolist() == [0, 10, 2]


def test_an_estimate_that_is_too_long_costs_a_backfill_and_never_a_job():
    jobs = table([(0, 10, 10, 3), (1, 5, 5, 4), (2, 1, 100, 1)])
    assert run_rigid(jobs, 4, "easy").tolist() == [0, 10, 15]


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_as_the_definition_says(policy):
    for k in range(round(400 * SCALE)):
        source = random.Random(f"rigid {policy} {k}")
        nodes, jobs, t = source.randint(1, 6), [], 0
        for _ in range(source.randint(1, 25)):
            t += source.choice([0, 0, 1, 2, 5])
            run = source.randint(1, 12)
            jobs.append((t, run, run + source.choice([0, 0, 3, 9]), source.randint(1, nodes)))
        assert run_rigid(table(jobs), nodes, policy).tolist() == starts(
            jobs, nodes, policy == "easy"
        ), (nodes, jobs)


def test_no_processor_serves_two():
    source = np.random.default_rng(7)
    jobs = table({
        "submit": np.sort(source.integers(0, 5000, 3000)), "run_time": source.integers(1, 90, 3000),
        "estimate": source.integers(1, 900, 3000), "processors": source.integers(1, 33, 3000),
    })  # fmt: skip
    start = run_rigid(jobs, 32)
    events = pd.concat([
        pd.Series(jobs["processors"].to_numpy(), start),
        pd.Series(-jobs["processors"].to_numpy(), start + jobs["run_time"]),
    ])  # fmt: skip
    busy = events.groupby(level=0).sum().cumsum()
    assert (start >= jobs["submit"]).all()
    assert 0 <= busy.min() <= busy.max() <= 32


def test_what_cannot_be_served_is_refused():
    with pytest.raises(InputError, match=r"processors.*33"):
        run_rigid(table([(0, 1, 1, 33)]), 32)
    with pytest.raises(InputError, match="jobs must be a pandas DataFrame"):
        run_rigid(None, 32)
    twice = table([(0, 1, 1, 1)])
    twice = pd.concat([twice, twice[["estimate"]]], axis=1)
    with pytest.raises(InputError, match="column estimate appears twice"):
        run_rigid(twice, 32)
    with pytest.raises(InputError, match="sort_values"):
        run_rigid(table([(1, 1, 1, 1), (0, 1, 1, 1)]), 32)

"""Paper I's workload (section 5.1) and the users' splits."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.errors import InputError
from dlsim.realtime import workload
from dlsim.realtime.formulas import execution_time
from dlsim.realtime.model import Cluster
from tests.helpers.refusals import refuses_each
from tests.helpers.times import least
from tests.realtime.test_workload import one_size, require_attrs, stream

BASE = Cluster(nodes=16, cms=1.0, cps=100.0)  # paper I, section 5.2
SETUP = Cluster(nodes=16, cms=1.0, cps=100.0, st=30.0, sc=5.0)
SIZES, DEADLINES = (workload.SWITCHES["dcratio"][name] for name in ("size", "deadline"))
EVERY = list(product(SIZES, DEADLINES))


def twin(cluster, load, horizon, seed, size, deadline):
    """The workload, one draw after the other."""
    arrivals, lengths, deadlines = (stream(seed, purpose) for purpose in (0, 2, 3))
    typical, now, rows = execution_time(200.0, cluster.nodes, cluster), 0.0, []
    while (now := now + typical / load * arrivals.standard_exponential()) < horizon:
        while True:
            sigma, factor = one_size(lengths, size, 200.0), 2.0 * (0.5 + deadlines.random())
            own = execution_time(sigma, cluster.nodes, cluster)
            due = factor * (own if deadline == "scaled" else typical)
            if deadline != "redraw_both" or due >= least(sigma, cluster):
                break
        rows.append((now, sigma, max(due, least(sigma, cluster))))
    return pd.DataFrame(rows, columns=["arrival", "sigma", "deadline"])


@pytest.mark.parametrize(("size", "deadline"), EVERY)
@pytest.mark.parametrize("cluster", [BASE, SETUP])
def test_every_law_against_a_plain_twin(cluster, size, deadline):
    tasks = workload.dcratio(cluster, 0.7, 5e5, 3, size=size, deadline=deadline)
    expected = twin(cluster, 0.7, 5e5, 3, size, deadline)
    assert len(tasks) > 150
    np.testing.assert_allclose(tasks.to_numpy(), expected.to_numpy(), rtol=1e-12)
    reading = {"size": size, "deadline": deadline}
    known = {"load": 0.7, "horizon": 5e5, "seed": 3, "mean": 200.0, "dc_ratio": 2.0}
    require_attrs(tasks, cluster, reading, **known)


def test_pairs_that_hardly_ever_fit_are_refused(monkeypatch):
    monkeypatch.setattr(workload, "MAX_WORKLOAD_TASKS", 1_000_000)  # it gives up then
    message = "found 0 pairs with D >= E among .* use a larger dc_ratio, or deadline='clamp'"
    with pytest.raises(InputError, match=message):
        workload.dcratio(BASE, 0.5, 3e4, dc_ratio=1e-12, deadline="redraw_both")


# --- user split --------------------------------------------------------------------------------


def table(*rows):
    """Tasks (sigma, deadline) that arrive together."""
    sigma, deadline = zip(*rows, strict=True)
    return pd.DataFrame({"arrival": 0.0, "sigma": sigma, "deadline": deadline})


@pytest.mark.parametrize(
    ("sigma", "deadline", "n_min", "low"),
    [
        (4.0, 400.0, "text", 2),  # 400 / 396 = 1.01
        (4.0, 104.0, "text", 4),  # 400 / 100, exactly
        (4.0, 104.0, "code", 16),  # 400 / (100 - 100): no positive denominator
        (4.0, 204.0, "text", 2),
        (4.0, 204.0, "code", 4),
        (4.0, 1e6, "text", 1),  # 0.0004
        (4.0, 404.0, "text", 1),
        (4.0, 30.666, "text", 16),  # 15.0004
        (4.0, 30.667, "text", 15),  # 14.9998
        (4.0, 4.0, "text", 16),
        (4.0, 3.0, "text", 16),
    ],
)
def test_users_draw_between_their_minimum_and_one_less_than_all(sigma, deadline, n_min, low):
    """Of 4000 users one at least draws each number."""
    tasks = workload.user_split(table(*[(sigma, deadline)] * 4000), BASE, 7, n_min)
    assert tasks["user_nodes"].dtype == np.int64
    assert set(tasks["user_nodes"]) == (set(range(low, 16)) or {low})


@given(
    st.integers(1, 60), st.integers(1, 90), st.integers(1, 900), st.integers(1, 400),
    st.sampled_from([1.0, 10.0, 7.0, 1e3, 1e-3]),
)  # fmt: skip
def test_exact_quotients_are_not_rounded_up(cms, cps, sigma, q, unit):
    cluster = Cluster(nodes=q + 1, cms=cms / unit, cps=cps / unit)
    size = sigma / 7
    deadline = size * cluster.cms + size * cluster.cps / q
    assert workload.user_split(table((size, deadline)), cluster)["user_nodes"][0] == q
    # one part in 1e8 less than q pieces need is no rounding, where it shows against TOL
    short = deadline - size * cluster.cps / q * 1e-8
    if size * cluster.cps / q * 1e-8 > 1e-11 * max(1.0, deadline):
        assert workload.user_split(table((size, short)), cluster)["user_nodes"][0] == q + 1


@given(st.integers(0, 5), st.integers(1, 50), st.integers(1, 40), st.integers(1, 3000),
       st.integers(1, 30), st.sampled_from(["text", "code"]), st.integers(0, 9))  # fmt: skip
def test_splits_lie_in_the_range_of_exact_arithmetic(cms, cps, sigma, deadline, n, n_min, seed):
    cluster = Cluster(nodes=n, cms=cms, cps=cps)
    nodes = workload.user_split(table((sigma, deadline)), cluster, seed, n_min)["user_nodes"][0]
    denominator = deadline - sigma * cms - (cps if n_min == "code" else 0)
    low = math.ceil(Fraction(sigma * cps, denominator)) if denominator > 0 else n
    assert (nodes == n) if low >= n else (low <= nodes <= n - 1)


def test_a_split_changes_nothing_else():
    tasks = workload.dcratio(BASE, 0.5, 1e6, 3)
    before, attrs = tasks.copy(), dict(tasks.attrs)
    split = workload.user_split(tasks, BASE, 3, "code")
    assert tasks.equals(before)
    assert tasks.attrs == attrs
    assert split.drop(columns="user_nodes").equals(tasks)
    assert split["user_nodes"].between(1, 16).all()
    assert split.attrs == {
        **attrs,
        "user_seed": 3,
        "reading": {**attrs["reading"], "n_min": "code"},
    }
    json.dumps(split.attrs, allow_nan=False)


def test_a_split_is_drawn_from_a_stream_of_its_own():
    tasks = workload.dcratio(BASE, 0.5, 1e6, 3)
    place = stream(3, 4).random(len(tasks))
    for n_min, less in (("text", 0), ("code", 100)):
        spare = tasks["deadline"] - tasks["sigma"] - less
        low = np.ceil(100 * tasks["sigma"] / spare).where(spare > 0, 16).clip(1, 16)
        expected = low + np.floor(place * (16 - low))
        split = workload.user_split(tasks, BASE, 3, n_min)
        assert split["user_nodes"].tolist() == expected.tolist()


test_what_cannot_be_split_is_refused = refuses_each(
    [
        (lambda: workload.user_split(table((1.0, 2.0)), BASE, n_min="x"), "one of text, code; got"),
        (lambda: workload.user_split([1.0], BASE), "tasks must be a pandas DataFrame .*got list"),
        *[
            (lambda tasks=tasks: workload.user_split(tasks, BASE), words)
            for tasks, words in (
                (table((1.0, 2.0))[["arrival"]], "tasks need .*not found among arrival"),
                (table((1.0, 2.0), (1.0, 0.0)), "deadline of task 1 must be .* above 0, got 0.0"),
                (table((1.0, 2.0), (math.nan, 1.0)), "sigma of task 1 must be .* above 0, got nan"),
                (pd.concat([table((1.0, 2.0))] * 2, axis=1), "(sigma|deadline) appears twice"),
            )
        ],
    ]
)


def test_extreme_tasks_are_split_in_silence():
    far = table((1e100, 1e-100), (1e100, 1e100), (1e-100, 1e100), (1e-100, 1e-100))
    for cluster in (BASE, Cluster(4, 1e100, 1e100), Cluster(4, 0.0, 1e-100), Cluster(3, 1.0, 0.0)):
        nodes = workload.user_split(far, cluster)["user_nodes"]
        assert nodes.between(1, cluster.nodes).all()

"""Paper I's workload (section 5.1) and the users' splits: laws, streams, hand cases, refusals."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator, SeedSequence
from scipy.stats import chisquare

from dlsim.errors import InputError
from dlsim.realtime import model, workload
from dlsim.realtime.formulas import execution_time
from dlsim.realtime.model import Cluster, Reading
from tests.helpers.times import least

BASE = Cluster(nodes=16, cms=1.0, cps=100.0)  # paper I, section 5.2
SETUP = Cluster(nodes=16, cms=1.0, cps=100.0, st=30.0, sc=5.0)
SIZES, DEADLINES = (workload.SWITCHES["dcratio"][name] for name in ("size", "deadline"))
EVERY = list(product(SIZES, DEADLINES))
TYPICAL = execution_time(200.0, 16, BASE)
#: Mean of N(1, 1) given that it is positive: 1 + phi(1) / Phi(1).
POSITIVE_MEAN = 1 + math.exp(-0.5) / math.sqrt(2 * math.pi) / ((1 + math.erf(0.5**0.5)) / 2)
#: A fixed seed fails a true law once in a thousand tests.
RARE = 1e-3


def least_of(tasks, cluster=BASE):
    return least(tasks["sigma"].to_numpy(), cluster)


def stream(seed, purpose):
    """arrivals 0, batches 1 (of paper M), sizes 2, deadlines 3, user_nodes 4."""
    return Generator(PCG64(SeedSequence(seed).spawn(5)[purpose]))


def test_switches_are_those_of_the_spec():
    assert workload.SWITCHES["dcratio"] == {
        "size": ("resample", "clip", "abs", "uniform"),
        "deadline": ("clamp", "scaled", "redraw_both"),
    }
    assert workload.SWITCHES["user_split"] == {"n_min": ("text", "code")}
    for table in workload.SWITCHES.values():
        assert not set(table) & set(model.SWITCHES)
    default = workload.dcratio(BASE, 0.5, 1e5).attrs
    assert default["reading"] == {"size": "resample", "deadline": "clamp"}


def one_size(draws, size):
    if size == "uniform":
        return 400.0 * (1 - draws.random())
    while (sigma := 200 + 200 * draws.standard_normal()) <= 0 and size == "resample":
        pass
    return {"resample": sigma, "abs": abs(sigma), "clip": max(sigma, 2.0)}[size]


def twin(cluster, load, horizon, seed, size, deadline):
    """The workload, one draw after the other."""
    arrivals, lengths, deadlines = (stream(seed, purpose) for purpose in (0, 2, 3))
    typical, now, rows = execution_time(200.0, cluster.nodes, cluster), 0.0, []
    while (now := now + typical / load * arrivals.standard_exponential()) < horizon:
        while True:
            sigma, factor = one_size(lengths, size), 2.0 * (0.5 + deadlines.random())
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
    assert tasks.index.equals(pd.RangeIndex(len(tasks), name="task"))
    assert tasks.attrs["reading"] == {"size": size, "deadline": deadline}
    known = {"load": 0.7, "horizon": 5e5, "seed": 3, "mean": 200.0, "dc_ratio": 2.0}
    assert known.items() <= tasks.attrs.items()
    realised = least_of(tasks, cluster).sum() / 5e5
    assert tasks.attrs["realised_load"] == pytest.approx(realised, rel=1e-12)
    json.dumps(tasks.attrs, allow_nan=False)  # plain values only


def test_realised_over_nominal_load():
    factor = {size: workload.mean_least_time(BASE, 200.0, size) / TYPICAL for size in SIZES}
    assert factor["resample"] == pytest.approx(POSITIVE_MEAN, rel=1e-12)
    assert 200 * POSITIVE_MEAN == pytest.approx(257.52, abs=0.005)
    assert factor["uniform"] == pytest.approx(1.0, rel=1e-12)


# --- streams ---


@pytest.mark.parametrize(("size", "deadline"), EVERY)
def test_a_shorter_horizon_is_the_beginning(size, deadline):
    short, long = (
        workload.dcratio(BASE, 0.9, horizon, 8, size=size, deadline=deadline)
        for horizon in (2.5e6, 1e7)
    )
    assert 1000 < len(short) < len(long) / 3
    pd.testing.assert_frame_equal(short, long[: len(short)], check_exact=True)
    assert long["arrival"].iloc[len(short)] >= 2.5e6


def test_what_a_change_leaves_alone():
    base = workload.dcratio(BASE, 0.5, 1e6)
    scaled = workload.dcratio(BASE, 0.5, 1e6, deadline="scaled")
    assert scaled[["arrival", "sigma"]].equals(base[["arrival", "sigma"]])
    loose = workload.dcratio(BASE, 0.5, 1e6, dc_ratio=20.0)
    assert loose[["arrival", "sigma"]].equals(base[["arrival", "sigma"]])
    free = (base["deadline"] > least_of(base) * (1 + 1e-12)).to_numpy()
    assert 0.6 < free.mean() < 0.9
    np.testing.assert_allclose(loose["deadline"][free], 10 * base["deadline"][free], rtol=1e-12)
    even = workload.dcratio(BASE, 0.5, 1e6, size="uniform")
    assert even["arrival"].equals(base["arrival"])
    busy = workload.dcratio(BASE, 1.0, 1e6)[: len(base)]
    assert busy[["sigma", "deadline"]].equals(base[["sigma", "deadline"]])
    np.testing.assert_allclose(2 * busy["arrival"], base["arrival"], rtol=1e-12)
    paper_m = workload.mcdf(BASE, 0.5, 1e6, mean=200.0, batch="single", base="nominal")
    pd.testing.assert_frame_equal(paper_m[["arrival", "sigma"]], base[["arrival", "sigma"]])


@pytest.mark.parametrize("seed", [0, 12345678901234567890, SeedSequence(5, spawn_key=(2, 1))])
def test_same_seed_same_bytes(seed):
    one, other = (workload.dcratio(SETUP, 0.8, 1e6, seed) for _ in range(2))
    assert one.to_csv() == other.to_csv()
    assert one.attrs == other.attrs
    assert one.to_csv() != workload.dcratio(SETUP, 0.8, 1e6, 99).to_csv()


def test_short_horizon_may_hold_no_task():
    for deadline in DEADLINES:
        tasks = workload.dcratio(BASE, 0.1, 1.0, deadline=deadline)
        assert tasks.empty
        assert tasks.attrs["realised_load"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"load": 1e9}, "mean interval of .*choose values that make at most 1000000 tasks"),
        ({"load": 1e-50}, "mean interval of .*choose values"),
        ({"size": "x"}, "size must be one of resample, clip, abs, uniform; got 'x'"),
        ({"deadline": "minmax"}, "deadline must be one of clamp, scaled, redraw_both; got 'minmax"),
        (
            {"deadline": "redraw_both", "dc_ratio": 1e-12, "horizon": 3e4},
            "found 0 pairs with D >= E among .* use a larger dc_ratio, or deadline='clamp'",
        ),
    ],
)
def test_bad_parameters_are_refused(arguments, message, monkeypatch):
    monkeypatch.setattr(workload, "MAX_WORKLOAD_TASKS", 1_000_000)  # it gives up then
    with pytest.raises(InputError, match=message):
        workload.dcratio(BASE, **{"load": 0.5, **arguments})


def test_switches_are_sorted_by_generator():
    mixed = {"size": "uniform", "deadline": "scaled", "n_min": "code", "link": "shared"}
    reading, law, split = workload.split_reading(mixed, "dcratio", "user_split")
    assert reading == {"link": "shared"}
    assert law == {"size": "uniform", "deadline": "scaled"}
    assert split == {"n_min": "code"}
    assert Reading.from_switches(reading).link == "shared"
    assert workload.split_reading({"link": "shared"}) == ({"link": "shared"},)
    # one name, two papers: each generator gets the options that it knows
    _, paper_m, paper_i = workload.split_reading(
        {"size": "clip", "deadline": "scaled"}, "mcdf", "dcratio"
    )
    assert paper_m == {"size": "clip"}
    assert paper_i == {"size": "clip", "deadline": "scaled"}


@pytest.mark.parametrize(
    ("switches", "generators", "message"),
    [
        ({"batch": "single"}, ["dcratio"], "switch must be one of .*size, deadline; got 'batch'"),
        ({"deadline": "minmax"}, ["dcratio"], "deadline must be one of clamp, .*got 'minmax'"),
        ({"deadline": "x"}, ["mcdf", "dcratio"], "deadline must be one of minmax, .*clamp,"),
        ({"size": "clip"}, [], "switch must be one of .*; got 'size'"),
        ({}, ["paper"], "generator must be one of mcdf, dcratio, user_split; got 'paper'"),
    ],
)
def test_switches_of_others_are_refused(switches, generators, message):
    with pytest.raises(InputError, match=message):
        workload.split_reading(switches, *generators)


# --- user split ---


def table(*rows):
    """Tasks (sigma, deadline) that arrive together."""
    sigma, deadline = map(column, zip(*rows, strict=True))
    return pd.DataFrame({"arrival": 0.0, "sigma": sigma, "deadline": deadline})


def column(numbers):
    """A column of numbers, as objects where one is larger than any float."""
    try:
        return pd.Series(numbers)
    except OverflowError:  # of pandas before 3
        return pd.Series(numbers, dtype=object)


def drawn(cluster, sigma, deadline, n_min="text", count=4000):
    tasks = table(*[(sigma, deadline)] * count)
    return workload.user_split(tasks, cluster, 7, n_min)["user_nodes"].to_numpy()


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
    nodes = drawn(BASE, sigma, deadline, n_min)
    assert nodes.dtype == np.int64
    if low >= 15:
        assert set(nodes) == {low}
    else:
        counts = np.bincount(nodes, minlength=17)
        assert counts[:low].sum() == counts[16] == 0
        assert chisquare(counts[low:16]).pvalue > RARE


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


def test_splits_share_their_draws():
    tasks = workload.dcratio(BASE, 0.5, 1e6, 3)
    split = workload.user_split(tasks, BASE, 3)
    assert split.to_csv() == workload.user_split(tasks, BASE, 3).to_csv()
    assert split.to_csv() != workload.user_split(tasks, BASE, 4).to_csv()
    short = workload.user_split(workload.dcratio(BASE, 0.5, 3e5, 3), BASE, 3)
    assert short["user_nodes"].equals(split["user_nodes"][: len(short)])
    code = workload.user_split(tasks, BASE, 3, "code")
    assert (code["user_nodes"] >= split["user_nodes"]).all()  # the same place in a later range
    plain = stream(3, 4).random(len(tasks))
    low = [
        max(1, math.ceil(100 * s / (d - s)))
        for s, d in zip(tasks["sigma"], tasks["deadline"], strict=True)
    ]
    expected = [n + int(u * (16 - n)) if n < 16 else 16 for n, u in zip(low, plain, strict=True)]
    assert split["user_nodes"].tolist() == expected


@pytest.mark.parametrize(
    ("tasks", "arguments", "message"),
    [
        (table((1.0, 2.0)), {"n_min": "x"}, "n_min must be one of text, code; got 'x'"),
        (
            table((1.0, 2.0)).drop(columns="sigma"),
            {},
            "tasks need .*; sigma not found among arrival",
        ),
        ([1.0], {}, "tasks must be a pandas DataFrame .*got list"),
        (table((1.0, 2.0), (1.0, 0.0)), {}, "deadline of task 1 must be .* above 0, got 0.0"),
        (table((1.0, 2.0), (math.nan, 1.0)), {}, "sigma of task 1 must be .* above 0, got nan"),
        (table(("x", 2.0)), {}, "sigma of task 0 .*got 'x'"),
        (table((1j, 2.0)), {}, "sigma of task 0 .*got 1j"),
        (table((10**400, 2.0)), {}, "sigma of task 0 must be a finite number above 0, got 1000"),
        (pd.concat([table((1.0, 2.0))] * 2, axis=1), {}, "column (sigma|deadline) appears twice"),
    ],
)
def test_bad_splits_are_refused(tasks, arguments, message):
    with pytest.raises(InputError, match=message):
        workload.user_split(tasks, BASE, **arguments)


def test_extreme_tasks_are_split_in_silence():
    far = table((1e100, 1e-100), (1e100, 1e100), (1e-100, 1e100), (1e-100, 1e-100))
    for cluster in (BASE, Cluster(4, 1e100, 1e100), Cluster(4, 0.0, 1e-100), Cluster(3, 1.0, 0.0)):
        nodes = workload.user_split(far, cluster)["user_nodes"]
        assert nodes.between(1, cluster.nodes).all()

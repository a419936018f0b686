"""Workloads: the laws of paper M section 6.1, their switches, CSV tables and job logs."""

import json
import math
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator, SeedSequence
from scipy.integrate import quad
from scipy.stats import norm

from dlsim import files
from dlsim.errors import InputError
from dlsim.realtime import model, workload
from dlsim.realtime.formulas import execution_time, fastest_nodes
from dlsim.realtime.model import Cluster, Reading
from tests.helpers.scale import scale_count
from tests.helpers.times import least

PAPER = Cluster(nodes=10, cms=10.0, cps=10.0)  # paper M, section 6.1
SETUP = Cluster(nodes=10, cms=10.0, cps=10.0, st=20.0, sc=20.0)  # Figure 9
COLUMNS = ["arrival", "sigma", "deadline"]
SWITCHES = workload.SWITCHES["mcdf"]
OTHERS = [(name, value) for name, row in SWITCHES.items() for value in row[1:]]


def bytes_of(tasks):
    return tasks.to_csv().encode()


# --- the generator ---


def test_switches_are_those_of_the_spec():
    assert SWITCHES == {
        "batch": ("literal", "scaled", "single"),
        "interval": ("exponential", "poisson"),
        "size": ("resample", "abs", "clip"),
        "base": ("actual", "nominal"),
        "deadline": ("minmax", "largest"),
        "setup": ("regenerate", "same_tasks"),
    }
    assert not set(SWITCHES) & set(model.SWITCHES)
    defaults = {name: row[0] for name, row in SWITCHES.items()}
    assert workload.mcdf(PAPER, 0.5, 1e4).attrs["reading"] == defaults


def twin(cluster, load, horizon, seed):
    """The default workload, one draw after the other."""
    parts = [Generator(PCG64(child)) for child in SeedSequence(seed).spawn(4)]
    arrivals, batches, sizes, deadlines = parts
    positive = 100 + 100 * math.exp(-0.5) / math.sqrt(2 * math.pi) / ((1 + math.erf(0.5**0.5)) / 2)
    mean = execution_time(positive, cluster.nodes, cluster) / load  # E is linear where ST = 0
    now, rows = 0.0, []
    counts = iter(batches.integers(1, 11, size=10_000))
    while (now := now + mean * arrivals.standard_exponential()) < horizon:
        for _ in range(next(counts)):
            while (sigma := 100 + 100 * sizes.standard_normal()) <= 0:
                pass
            low, high = least(sigma, cluster), execution_time(sigma, 1, cluster)
            rows.append((now, sigma, low + (high - low) * deadlines.random()))
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.mark.parametrize("seed", [0, 7])
def test_default_workload_against_a_plain_twin(seed):
    tasks = workload.mcdf(PAPER, 0.7, 200_000.0, seed)
    expected = twin(PAPER, 0.7, 200_000.0, seed)
    assert len(tasks) > 300
    np.testing.assert_allclose(tasks.to_numpy(), expected.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize(("name", "value"), [("batch", "literal"), *OTHERS])
@pytest.mark.parametrize("cluster", [PAPER, SETUP, Cluster(1, 1, 0), Cluster(4, 0, 1, 5, 1)])
def test_every_switch_gives_tasks_an_engine_can_run(cluster, name, value):
    tasks = workload.mcdf(cluster, 0.5, 1e5, seed=3, **{name: value})
    assert list(tasks.columns) == COLUMNS
    assert tasks.index.equals(pd.RangeIndex(len(tasks), name="task"))
    assert len(tasks) > 20
    assert np.isfinite(tasks.to_numpy()).all()
    assert tasks["arrival"].is_monotonic_increasing
    assert tasks["arrival"].between(0, 1e5, inclusive="left").all()
    assert (tasks["sigma"] > 0).all()
    drawn = Cluster(cluster.nodes, cluster.cms, cluster.cps) if value == "same_tasks" else cluster
    minimum = least(tasks["sigma"].to_numpy(), drawn)
    assert (tasks["deadline"] >= minimum * (1 - 1e-12)).all()
    realised = least(tasks["sigma"].to_numpy(), cluster).sum() / 1e5
    assert tasks.attrs["realised_load"] == pytest.approx(realised, rel=1e-12)
    assert tasks.attrs["reading"][name] == value
    assert {"load": 0.5, "horizon": 1e5, "seed": 3}.items() <= tasks.attrs.items()
    json.dumps(tasks.attrs, allow_nan=False)  # plain values only


def within(values, expected, errors=4.0):
    """Whether a mean lies within so many standard errors, and is sharp enough to fail."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert error < 0.03 * expected
    return abs(np.mean(values) - expected) < errors * error


def test_poisson_intervals_of_zero_join_batches():
    # mean interval 0.4: two in three are 0, so that points coincide
    fast = Cluster(nodes=1, cms=0.0, cps=0.4 / 128.76)
    tasks = workload.mcdf(fast, 1.0, 50.0, interval="poisson")
    assert set(tasks["arrival"]) <= set(range(50))
    assert tasks.groupby("arrival").size().max() > 10


def test_sizes_by_switch():
    draw = partial(workload.mcdf, PAPER, 1.0, 1e6, base="nominal")
    resample, absolute, clip = (draw(size=size)["sigma"] for size in ("resample", "abs", "clip"))
    assert len(absolute) == len(resample) == len(clip)
    raw = clip.to_numpy() > 1.0  # the floor is mean / 100
    assert (clip[~raw] == 1.0).all()
    assert 0.12 < (~raw).mean() < 0.20  # 15.9 % of N(100, 100) are not positive
    np.testing.assert_array_equal(absolute[raw], clip[raw])
    kept = clip.to_numpy()[raw]
    assert np.isin(kept, resample).mean() > 0.8  # the same stream, gaps closed
    np.testing.assert_array_equal(resample[:50], kept[kept > 1][:50])


def test_mean_least_times_by_hand():
    unit = Cluster(nodes=1, cms=0.5, cps=0.5)  # E(sigma) = sigma
    assert workload.mean_least_time(unit) == pytest.approx(128.76, abs=0.005)
    assert workload.mean_least_time(unit, 200.0) == pytest.approx(257.52, abs=0.01)
    # half-normal: sigma (sqrt(2/pi) exp(-1/2) + erf(1/sqrt 2))
    expected = 100 * (math.sqrt(2 / math.pi) * math.exp(-0.5) + math.erf(math.sqrt(0.5)))
    assert workload.mean_least_time(unit, size="abs") == pytest.approx(expected, rel=1e-12)
    # at least 1, 0.99 standard deviations below 100: 1 Phi(-.99) + 100 Phi(.99) + 100 phi(.99)
    expected = norm.cdf(-0.99) + 100 * (norm.cdf(0.99) + norm.pdf(0.99))
    assert workload.mean_least_time(unit, size="clip") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", SWITCHES["size"])
@pytest.mark.parametrize(
    "cluster", [PAPER, SETUP, Cluster(16, 1, 100, 300, 5), Cluster(4, 1, 0, 2, 3), Cluster(1, 1, 1)]
)
def test_average_minimum_time_against_quadrature(size, cluster):
    mean = 70.0

    def integrand(z):
        value = mean + mean * z
        if size == "resample" and value <= 0:
            return 0.0
        value = {"abs": abs(value), "clip": max(value, 0.7)}.get(size, value)
        return least(value, cluster) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) if value else 0

    edges = np.linspace(-10, 10, 401)
    pieces = [quad(integrand, a, b, epsrel=1e-9)[0] for a, b in pairwise(edges)]
    positive = (1 + math.erf(math.sqrt(0.5))) / 2 if size == "resample" else 1.0
    expected = math.fsum(pieces) / positive
    assert workload.mean_least_time(cluster, mean, size) == pytest.approx(expected, rel=1e-6)


# --- what a switch changes, and what it does not ---


def shared(one, other, columns):
    size = min(len(one), len(other))
    assert size > 50
    return all((one[name][:size] == other[name][:size]).all() for name in columns)


def test_deadline_switch_changes_deadlines_only():
    dear = Cluster(nodes=10, cms=10.0, cps=10.0, st=900.0)  # E(10) > E(1) for small tasks
    one, other = (workload.mcdf(dear, 0.5, deadline=name) for name in ("minmax", "largest"))
    assert shared(one, other, ["arrival", "sigma"])
    assert (other["deadline"] >= one["deadline"]).all()
    assert (other["deadline"] > one["deadline"]).mean() > 0.3
    cheap = [workload.mcdf(PAPER, 0.5, deadline=name) for name in ("minmax", "largest")]
    assert bytes_of(cheap[0]) == bytes_of(cheap[1])  # equal without set-up costs


def test_largest_deadlines_reach_the_largest_time():
    dear = Cluster(nodes=10, cms=10.0, cps=10.0, st=900.0)
    tasks = workload.mcdf(dear, 0.5, seed=2, deadline="largest")
    times = execution_time(tasks["sigma"].to_numpy()[:, None], np.arange(1, 11), dear)
    high, low = np.max(times, axis=1), np.min(times, axis=1)
    place = (tasks["deadline"] - low) / (high - low)
    assert place.between(-1e-9, 1 + 1e-9).all()
    assert place.max() > 0.95


def test_batch_switch_shares_points_and_sizes():
    literal, scaled, single = (workload.mcdf(PAPER, 0.5, batch=name) for name in SWITCHES["batch"])
    assert shared(literal, scaled, ["sigma", "deadline"])
    assert shared(literal, single, ["sigma", "deadline"])
    points = np.unique(literal["arrival"])
    np.testing.assert_array_equal(single["arrival"], points)
    size = scaled["arrival"].nunique()
    np.testing.assert_allclose(np.unique(scaled["arrival"]), 5.5 * points[:size], rtol=1e-12)


def test_base_and_interval_switches_change_arrivals_only():
    default = workload.mcdf(PAPER, 0.5)
    for changed in ({"base": "nominal"}, {"interval": "poisson"}):
        other = workload.mcdf(PAPER, 0.5, **changed)
        assert shared(default, other, ["sigma", "deadline"])
        assert not shared(default, other, ["arrival"])
    ratio = (
        default["arrival"].iloc[9] / workload.mcdf(PAPER, 0.5, base="nominal")["arrival"].iloc[9]
    )
    assert ratio == pytest.approx(1.2876, abs=1e-4)


def test_size_switch_leaves_nominal_arrivals():
    default = workload.mcdf(PAPER, 0.5, base="nominal")
    for size in ("abs", "clip"):
        other = workload.mcdf(PAPER, 0.5, base="nominal", size=size)
        assert shared(default, other, ["arrival"])
        assert not shared(default, other, ["sigma"])


def test_same_tasks_are_those_without_setup_costs():
    bare, same = workload.mcdf(PAPER, 0.5), workload.mcdf(SETUP, 0.5, setup="same_tasks")
    assert bytes_of(bare) == bytes_of(same)
    assert bytes_of(bare) != bytes_of(workload.mcdf(SETUP, 0.5))
    assert same.attrs["realised_load"] > bare.attrs["realised_load"]


def test_loads_and_horizons_share_their_draws():
    low, high = workload.mcdf(PAPER, 0.5), workload.mcdf(PAPER, 1.0)
    assert shared(low, high, ["sigma", "deadline"])
    size = len(low)
    np.testing.assert_allclose(low["arrival"], 2 * high["arrival"][:size], rtol=1e-12)
    half = workload.mcdf(PAPER, 1.0, 500_000.0)
    assert bytes_of(half) == bytes_of(high[high["arrival"] < 500_000.0])


@pytest.mark.parametrize("seed", [0, 12345678901234567890, SeedSequence(5, spawn_key=(2, 1))])
def test_same_seed_same_bytes(seed):
    one, other = (workload.mcdf(SETUP, 0.8, seed=seed) for _ in range(2))
    assert bytes_of(one) == bytes_of(other)
    assert one.attrs == other.attrs
    if isinstance(seed, SeedSequence):
        assert one.attrs["seed"] == {"entropy": 5, "spawn_key": [2, 1]}


def test_seeds_differ_and_a_sequence_is_a_seed():
    assert bytes_of(workload.mcdf(PAPER, 1, seed=1)) != bytes_of(workload.mcdf(PAPER, 1, seed=2))
    plain, sequence = (workload.mcdf(PAPER, 1, seed=seed) for seed in (9, SeedSequence(9)))
    assert bytes_of(plain) == bytes_of(sequence)
    first, second = SeedSequence(9).spawn(2)
    assert bytes_of(workload.mcdf(PAPER, 1, seed=first)) != bytes_of(
        workload.mcdf(PAPER, 1, seed=second)
    )


def test_short_horizon_may_hold_no_task():
    tasks = workload.mcdf(PAPER, 0.1, 1.0)
    assert tasks.empty
    assert list(tasks.columns) == COLUMNS
    assert tasks.attrs["realised_load"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"load": 1e9}, "mean interval of .*choose values that make at most 50000000 tasks"),
        ({"load": 1e-50}, "mean interval of .*choose values"),
        ({"horizon": 1e20}, "mean interval of .*choose values"),
        *[
            ({name: "x"}, f"{name} must be one of {', '.join(options)}; got 'x'")
            for name, options in SWITCHES.items()
        ],
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        workload.mcdf(PAPER, **{"load": 0.5, **arguments})


def test_split_reading():
    mixed = {"batch": "single", "an_nodes": "best", "setup": "same_tasks"}
    reading, switches = workload.split_reading(mixed, "mcdf")
    assert reading == {"an_nodes": "best"}
    assert switches == {"batch": "single", "setup": "same_tasks"}
    assert Reading.from_switches(reading).an_nodes == "best"
    assert workload.split_reading({}, "mcdf") == ({}, {})
    with pytest.raises(
        InputError, match=r"switch must be one of an_nodes, .*batch, .*; got 'btch'"
    ):
        workload.split_reading({"btch": "single"}, "mcdf")
    with pytest.raises(InputError, match=r"batch must be one of literal, .* got 'x'"):
        workload.split_reading({"batch": "x"}, "mcdf")


# --- tables ---


def test_from_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task,deadline,arrival,sigma,rank\n7,20,0,100,2\n3,20,5.5,50,1\n")
    tasks = workload.from_csv(path)
    assert tasks.columns.tolist() == [*COLUMNS, "rank"]
    assert tasks.index.tolist() == [7, 3]
    assert tasks.index.name == "task"
    assert tasks.loc[3].tolist() == [5.5, 50, 20, 1]
    assert tasks.attrs["source"] == str(path)
    assert tasks.attrs["horizon"] == 5.5
    assert tasks.attrs["skipped"] == {}
    assert workload.realised_load(tasks, PAPER, 5.5) == pytest.approx(
        (least(100, PAPER) + least(50, PAPER)) / 5.5
    )


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        ("", [0, 1]),
        ("a,b", ["a", "b"]),
        ("1,b", ["1", "b"]),
        ("1,01", ["1", "01"]),
        ("1," + "9" * 20, ["1", "9" * 20]),
    ],
)
def test_task_ids(tmp_path, column, ids):
    rows = ["arrival,sigma,deadline", "0,1,2", "0,1,2"]
    if column:
        rows = [
            f"{row},{name}" for row, name in zip(rows, ("task", *column.split(",")), strict=True)
        ]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    assert workload.from_csv(tmp_path / "t.csv").index.tolist() == ids


def test_generated_tasks_survive_a_file(tmp_path):
    tasks = workload.mcdf(SETUP, 0.5, 1e5)
    files.write_text(tmp_path / "t.csv", files.csv_text(tasks))
    read = workload.from_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read, tasks, check_exact=True, check_index_type=False)
    files.write_text(tmp_path / "again.csv", files.csv_text(read))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival,sigma,deadline\n", r"t\.csv: holds no task; give one line per task"),
        ("arrival,sigma,deadline\n0,-1,1\n", r"t\.csv, line 2, field sigma: .* above 0, got '-1'"),
        ("arrival,sigma,deadline\n0,1,0\n", r"t\.csv, line 2, field deadline: .* above 0"),
        ("arrival,sigma,deadline\n1,1,1\n0,1,1\n", r"t\.csv, line 3, field arrival: .* sort"),
        ("task,arrival,sigma,deadline\n1,1,1,1\n1,1,1,1\n", r"line 3, field task: '1' is used tw"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        workload.from_csv(tmp_path / "t.csv")


# --- job logs ---


def job(number, submit, run_time, processors, requested=-1, status=1):
    fields = [number, submit, -1, run_time, processors, -1, -1, requested, -1, -1, status]
    return " ".join(map(str, fields + [-1] * 7)) + "\n"


def log(folder, *jobs):
    (folder / "log.swf").write_text("".join(jobs))
    return folder / "log.swf"


NODES = Cluster(nodes=4, cms=1.0, cps=100.0)


def test_a_job_becomes_a_task(tmp_path):
    path = log(tmp_path, job(11, 1000, 50, 8), job(12, 1060, 30, -1, 2), job(15, 1060, 7, 1))
    tasks = workload.from_swf(path, NODES)
    assert tasks.columns.tolist() == COLUMNS
    assert tasks.index.tolist() == [11, 12, 15]
    assert tasks.index.name == "task"
    assert tasks["arrival"].tolist() == [0, 60, 60]  # one second, one batch
    assert tasks["sigma"].tolist() == [4.0, 0.6, 0.07]  # processors * run time / cps
    low = least(tasks["sigma"].to_numpy(), NODES)
    ratio = tasks["deadline"] / low
    assert ratio.between(1, 3).all()  # U[0.5, 1.5] * 2, at least 1
    assert tasks.attrs["realised_load"] == pytest.approx(low.sum() / 60)
    assert tasks.attrs["load"] is None
    assert tasks.attrs["reading"] == {
        "work_per_unit": 100.0,
        "dc_ratio": 2.0,
        "time_scale": 1.0,
        "max_jobs": None,
    }
    assert tasks.attrs["skipped"] == {}
    assert tasks.attrs["notes"] == []
    json.dumps(tasks.attrs, allow_nan=False)


def test_rules_of_the_mapping(tmp_path):
    path = log(tmp_path, *(job(k, 10 * k, 100 + k, 2) for k in range(2000)))
    base = workload.from_swf(path, NODES)
    unit = workload.from_swf(path, NODES, work_per_unit=1.0)
    np.testing.assert_allclose(unit["sigma"], 100 * base["sigma"], rtol=1e-12)
    dense = workload.from_swf(path, NODES, time_scale=0.5)
    np.testing.assert_allclose(dense["arrival"], base["arrival"] / 2)
    assert dense.attrs["realised_load"] == pytest.approx(2 * base.attrs["realised_load"])
    assert (dense["deadline"] == base["deadline"]).all()
    loose = workload.from_swf(path, NODES, dc_ratio=20.0)
    low = least(base["sigma"].to_numpy(), NODES)
    assert within(loose["deadline"] / low, 20.0)
    assert (loose["deadline"] / low).between(10, 30).all()
    tight = workload.from_swf(path, NODES, dc_ratio=1.0)
    assert 0.45 < (tight["deadline"] == low).mean() < 0.55  # half of U[0.5, 1.5] is raised to 1
    first = workload.from_swf(path, NODES, max_jobs=10)
    pd.testing.assert_frame_equal(first, base[:10])
    assert first.attrs["skipped"] == {"beyond max_jobs": 1990}
    assert bytes_of(base) == bytes_of(workload.from_swf(path, NODES))
    other = workload.from_swf(path, NODES, seed=1)
    assert (other["sigma"] == base["sigma"]).all()
    assert (other["deadline"] != base["deadline"]).mean() > 0.5


def test_skipped_jobs_are_counted_by_reason(tmp_path):
    lines = (
        job(1, 5, 100, 4),
        job(2, 6, 0, 4),
        job(3, 6, -1, 4),
        job(4, 7, 10, -1),
        job(5, 7, 10, 0, 0),
        job(6, -1, 10, 4),
        job(7, 8, 10, 4, status=2),
        job(7, 8, 10, 4, status=3),
        job(7, 8, 10, 4, status=4),
        job(8, 9, 1e300, 1e300),
        job(9, 9, 1e-300, 1e-300),
        job(10, 9, 10, 4, status=5),  # cancelled after it had run
        job(11, 2e300, 10, 4),
    )
    tasks = workload.from_swf(log(tmp_path, *lines), NODES)
    assert tasks.index.tolist() == [1, 10]
    assert tasks.attrs["skipped"] == {
        "run time not above 0": 2,
        "no processors": 2,
        "no submit time": 1,
        "part of a job (status 2, 3 or 4)": 3,
        "value out of range": 3,
    }
    few = workload.from_swf(log(tmp_path, *lines), NODES, max_jobs=1)
    assert sum(few.attrs["skipped"].values()) + len(few) == len(lines)


def test_skipping_a_job_keeps_the_deadlines_of_the_others(tmp_path):
    jobs = [job(k, k, 100, 4) for k in range(100)]
    base = workload.from_swf(log(tmp_path, *jobs), NODES)
    jobs[0] = job(0, 0, 0, 4)
    other = workload.from_swf(log(tmp_path, *jobs), NODES)
    assert (base["deadline"][1:] == other["deadline"]).all()


def test_log_out_of_order_is_sorted_and_said(tmp_path):
    tasks = workload.from_swf(log(tmp_path, job(1, 50, 9, 1), job(2, 20, 9, 1)), NODES)
    assert tasks.index.tolist() == [2, 1]
    assert tasks["arrival"].tolist() == [0, 30]
    assert tasks.attrs["notes"] == ["submit times are not in order"]


def test_repeated_job_numbers_are_replaced_and_said(tmp_path):
    tasks = workload.from_swf(log(tmp_path, *[job(-1, k, 9, 1) for k in range(3)]), NODES)
    assert tasks.index.tolist() == [0, 1, 2]
    assert tasks.attrs["notes"] == [
        "job numbers are not different whole numbers; tasks are counted from 0"
    ]


def test_thousands_of_jobs_in_one_second_are_one_batch(tmp_path):
    tasks = workload.from_swf(log(tmp_path, *[job(k, 77, 9, 1) for k in range(3000)]), NODES)
    assert tasks["arrival"].unique().tolist() == [0]
    assert tasks.attrs["realised_load"] is None  # no time passes


@pytest.mark.parametrize(
    ("cluster", "arguments", "message"),
    [
        (NODES, {"work_per_unit": 0}, "work_per_unit must be a finite number above 0"),
        (Cluster(4, 1.0, 0.0), {}, "work_per_unit must be a finite number above 0, got 0"),
        (NODES, {"dc_ratio": -1}, "dc_ratio must be a finite number above 0"),
        (NODES, {"time_scale": math.nan}, "time_scale must be a finite number above 0"),
        (NODES, {"max_jobs": 0}, "max_jobs must be a whole number of at least 1, got 0"),
        (NODES, {"max_jobs": 1.5}, "max_jobs must be a whole number of at least 1, got 1.5"),
        (NODES, {"seed": -1}, "seed must be a whole number"),
        (NODES, {"limit": 10}, r"log\.swf, line 1: more than 10 bytes"),
    ],
)
def test_bad_rules_are_refused(tmp_path, cluster, arguments, message):
    with pytest.raises(InputError, match=message):
        workload.from_swf(log(tmp_path, job(1, 0, 1, 1)), cluster, **arguments)


def test_log_without_usable_job_is_refused(tmp_path):
    path = log(tmp_path, job(1, 0, 0, 1), job(2, 0, 0, 1), job(3, 0, 1, -1))
    message = r"log\.swf: no job that could be a task \(run time not above 0: 2, no processors: 1\)"
    with pytest.raises(InputError, match=message):
        workload.from_swf(path, NODES)


ODD = st.sampled_from([0, 1, -1, 0.5, 7, 128, 1e9, 1e99, 1e308, 5e-324, -1e308])


@given(
    st.lists(st.tuples(ODD, ODD, ODD, ODD, ODD, st.integers(-1, 6)), min_size=1, max_size=8),
    st.sampled_from([NODES, SETUP, Cluster(4, 0.0, 1.0, 2.0, 1.0)]),
)
@settings(max_examples=scale_count(150), deadline=None)
def test_any_numbers_make_tasks_or_a_refusal(tmp_path_factory, jobs, cluster):
    path = log(tmp_path_factory.getbasetemp(), *(job(*fields) for fields in jobs))
    try:
        tasks = workload.from_swf(path, cluster)
    except InputError:
        return
    assert len(tasks) + sum(tasks.attrs["skipped"].values()) == len(jobs)
    assert np.isfinite(tasks.to_numpy()).all()
    assert tasks["arrival"].is_monotonic_increasing
    assert (tasks["arrival"] >= 0).all()
    assert (tasks[["sigma", "deadline"]] > 0).all(axis=None)
    assert tasks.index.is_unique
    low = [execution_time(s, fastest_nodes(s, cluster), cluster) for s in tasks["sigma"]]
    assert (tasks["deadline"] >= np.array(low) * (1 - 1e-12)).all()
    json.dumps(tasks.attrs, allow_nan=False)


# --- a law of one's own --------------------------------------------------------------------


def pareto(rng, count):
    """Draw sizes of Pareto's law with index 2.5 from 1 on; their mean is 5/3."""
    return rng.pareto(2.5, count) + 1


def test_a_law_of_ones_own_makes_the_load_that_was_asked_for():
    cluster = Cluster(4, cms=1, cps=2)  # E is proportional to the size: 81/65 of it
    tasks = workload.mcdf(cluster, 0.5, 400_000, 7, size=pareto, batch="single")
    assert tasks.attrs["reading"]["size"] == "pareto"
    assert tasks["sigma"].min() >= 1
    # of some 96,000 sizes: mean 5/3, standard deviation 1.49
    assert len(tasks) == pytest.approx(400_000 * 0.5 / (5 / 3 * 81 / 65), rel=0.03)
    assert tasks["sigma"].mean() == pytest.approx(5 / 3, rel=0.02)
    assert tasks.attrs["realised_load"] == pytest.approx(0.5, rel=0.03)
    again = workload.mcdf(cluster, 0.5, 400_000, 7, size=pareto, batch="single")
    pd.testing.assert_frame_equal(tasks, again)
    other = workload.mcdf(cluster, 0.5, 400_000, 8, size=pareto, batch="single")
    assert tasks["sigma"].iloc[0] != other["sigma"].iloc[0]
    assert workload.dcratio(cluster, 0.5, 1000.0, 7, size=pareto)["sigma"].min() >= 1


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (lambda rng, n: rng.random(n + 1), r"must return \d+ sizes above 0; got ndarray of shape"),
        (lambda rng, n: -rng.random(n), r"size by law <lambda>\[0\] must be .* above 0, got -0"),
        (lambda rng, n: np.full(n, np.nan), r"size by law <lambda>\[0\] must be"),
        (lambda rng, n: 3.0, r"got float of shape \(\)"),
    ],
)
def test_a_law_that_returns_no_sizes_is_refused(law, message):
    for draw in (workload.mcdf, workload.dcratio):
        with pytest.raises(InputError, match=message):
            draw(PAPER, 0.5, 1e6, size=law)


def test_a_law_named_in_a_reading_is_loaded_and_goes_to_the_generator(tmp_path):
    file = tmp_path / "laws.py"
    file.write_text("def two(rng, count):\n    return [2.0] * count\n")
    switches = {"size": f"{file}:two", "link": "shared"}
    for generator in ("mcdf", "dcratio"):
        rules, drawing = workload.split_reading(switches, generator)
        assert rules == {"link": "shared"}
        assert drawing["size"](None, 3) == [2.0] * 3
    with pytest.raises(InputError, match="there is no file"):
        workload.load_laws({"size": "nowhere.py:two"})
    file.write_text("two = 2\n")
    with pytest.raises(InputError, match="must be a function of a generator and a count"):
        workload.load_laws(switches)
    with pytest.raises(InputError, match="link must be one of"):
        workload.split_reading({"link": pareto}, "mcdf")


def test_a_law_twice_as_large_doubles_every_size():
    options = {"load": 0.5, "horizon": 1e5, "seed": 7, "batch": "single"}
    cluster = Cluster(4, cms=1, cps=2)
    once = workload.mcdf(cluster, size=pareto, **options)
    twice = workload.mcdf(cluster, size=workload.scale_law(pareto, 2), **options)
    assert twice.attrs["reading"]["size"] == "pareto"
    # the same load: half as many tasks of twice the size, from the same draws
    shared = min(len(once), len(twice))
    assert (twice["sigma"][:shared] == 2 * once["sigma"][:shared]).all()
    assert len(twice) == pytest.approx(len(once) / 2, rel=0.05)
    assert workload.scale_law("abs", 2) == "abs"


def test_sizes_are_the_first_positive_draws():
    draws = 100 + 100 * np.random.default_rng(3).standard_normal(200)
    found = workload.draw_sizes(np.random.default_rng(3), 50)
    assert found.tolist() == draws[draws > 0][:50].tolist()

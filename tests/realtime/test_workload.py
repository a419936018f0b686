"""Workloads: the laws of papers M and I, their switches, CSV tables and job logs.

What paper I draws is compared in `test_dcratio`; here is what both generators share.
"""

import json
import math
from dataclasses import replace
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
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count
from tests.helpers.times import least

PAPER = Cluster(nodes=10, cms=10.0, cps=10.0)  # paper M, section 6.1
SETUP = Cluster(nodes=10, cms=10.0, cps=10.0, st=20.0, sc=20.0)  # Figure 9
COLUMNS = ["arrival", "sigma", "deadline"]
GENERATORS = (workload.mcdf, workload.dcratio)


def stream(seed, purpose):
    """Return the stream of arrivals 0, batches 1, sizes 2, deadlines 3 or user_nodes 4."""
    return Generator(PCG64(SeedSequence(seed).spawn(5)[purpose]))


def one_size(draws, size, mean):
    """Draw one size by a law of the papers."""
    if size == "uniform":
        return 2 * mean * (1 - draws.random())
    while (sigma := mean + mean * draws.standard_normal()) <= 0 and size == "resample":
        pass
    return {"resample": sigma, "abs": abs(sigma), "clip": max(sigma, mean / 100)}[size]


def require_attrs(tasks, cluster, reading, **known):
    """Hold the table to what every generator promises of its index and its attrs."""
    assert tasks.index.equals(pd.RangeIndex(len(tasks), name="task"))
    assert tasks.attrs["reading"] == reading
    assert known.items() <= tasks.attrs.items()
    realised = least(tasks["sigma"].to_numpy(), cluster).sum() / known["horizon"]
    assert tasks.attrs["realised_load"] == pytest.approx(realised, rel=1e-12)
    json.dumps(tasks.attrs, allow_nan=False)  # plain values only


# --- the generator of paper M -----------------------------------------------------------------


def twin(cluster, load, horizon, seed, reading):
    """The workload of paper M, one draw after the other."""
    arrivals, batches, sizes, deadlines = (stream(seed, purpose) for purpose in range(4))
    drawn = replace(cluster, st=0.0, sc=0.0) if reading["setup"] == "same_tasks" else cluster
    average = least(100.0, drawn)
    if reading["base"] == "actual":
        average = workload.mean_least_time(drawn, 100.0, reading["size"])
    gap = average / load * (5.5 if reading["batch"] == "scaled" else 1)
    now, rows, counts = 0.0, [], iter(batches.integers(1, 11, size=10_000))
    while True:
        poisson = reading["interval"] == "poisson"
        now += arrivals.poisson(gap) if poisson else gap * arrivals.standard_exponential()
        if now >= horizon:
            return pd.DataFrame(rows, columns=COLUMNS)
        for _ in range(1 if reading["batch"] == "single" else next(counts)):
            sigma = one_size(sizes, reading["size"], 100.0)
            times = execution_time(sigma, np.arange(1, cluster.nodes + 1), drawn)
            high = times.max() if reading["deadline"] == "largest" else times[0]
            rows.append((now, sigma, times.min() + (high - times.min()) * deadlines.random()))


#: E(10) > E(1) for small tasks.
DEAR = Cluster(nodes=10, cms=10.0, cps=10.0, st=900.0)
#: The mean interval is 0.4, so that two of three Poisson intervals are 0 and points coincide.
FAST = Cluster(nodes=1, cms=0.0, cps=0.4 / 128.76)


@pytest.mark.parametrize(
    ("cluster", "horizon", "switches"),
    [
        (PAPER, 2e5, {}),
        *[(PAPER, 2e5, {"batch": value}) for value in ("scaled", "single")],
        *[(PAPER, 2e5, {"size": value}) for value in ("abs", "clip")],
        (PAPER, 2e5, {"interval": "poisson"}),
        (FAST, 50.0, {"interval": "poisson"}),
        (PAPER, 2e5, {"base": "nominal"}),
        (DEAR, 2e5, {"base": "nominal", "deadline": "largest"}),
        (SETUP, 2e5, {}),
        (SETUP, 2e5, {"setup": "same_tasks"}),
        (Cluster(1, 1, 0), 1e4, {"base": "nominal"}),
        (Cluster(4, 0, 1, 5, 1), 1e4, {"batch": "scaled", "size": "clip"}),
    ],
)
def test_every_switch_against_a_plain_twin(cluster, horizon, switches):
    reading = {name: row[0] for name, row in workload.SWITCHES["mcdf"].items()} | switches
    for seed in (0, 7):
        tasks = workload.mcdf(cluster, 0.7, horizon, seed, **switches)
        expected = twin(cluster, 0.7, horizon, seed, reading)
        assert len(tasks) > 40
        np.testing.assert_allclose(tasks.to_numpy(), expected.to_numpy(), rtol=1e-12)
        require_attrs(tasks, cluster, reading, load=0.7, horizon=horizon, seed=seed)


def within(values, expected, errors=4.0):
    """Whether a mean lies within so many standard errors, and is sharp enough to fail."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert error < 0.03 * expected
    return abs(np.mean(values) - expected) < errors * error


def test_mean_least_times_by_hand():
    unit = Cluster(nodes=1, cms=0.5, cps=0.5)  # E(sigma) = sigma
    assert workload.mean_least_time(unit) == pytest.approx(128.76, abs=0.005)
    assert workload.mean_least_time(unit, 200.0) == pytest.approx(257.52, abs=0.01)
    assert workload.mean_least_time(unit, 200.0, "uniform") == pytest.approx(200, rel=1e-12)
    # half-normal: sigma (sqrt(2/pi) exp(-1/2) + erf(1/sqrt 2))
    expected = 100 * (math.sqrt(2 / math.pi) * math.exp(-0.5) + math.erf(math.sqrt(0.5)))
    assert workload.mean_least_time(unit, size="abs") == pytest.approx(expected, rel=1e-12)
    # at least 1, 0.99 standard deviations below 100: 1 Phi(-.99) + 100 Phi(.99) + 100 phi(.99)
    expected = norm.cdf(-0.99) + 100 * (norm.cdf(0.99) + norm.pdf(0.99))
    assert workload.mean_least_time(unit, size="clip") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", workload.SWITCHES["mcdf"]["size"])
@pytest.mark.parametrize(
    "cluster", [PAPER, SETUP, Cluster(16, 1, 100, 300, 5), Cluster(4, 1, 0, 2, 3)]
)
def test_average_minimum_time_against_quadrature(size, cluster):
    mean = 70.0

    def integrand(z):
        value = mean + mean * z
        if size == "resample" and value <= 0:
            return 0.0
        value = {"abs": abs(value), "clip": max(value, 0.7)}.get(size, value)
        return least(value, cluster) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) if value else 0

    edges = np.linspace(-10, 10, 201)
    pieces = [quad(integrand, a, b, epsrel=1e-9)[0] for a, b in pairwise(edges)]
    positive = (1 + math.erf(math.sqrt(0.5))) / 2 if size == "resample" else 1.0
    expected = math.fsum(pieces) / positive
    assert workload.mean_least_time(cluster, mean, size) == pytest.approx(expected, rel=1e-6)


# --- what both generators share ---------------------------------------------------------------


@pytest.mark.parametrize("draw", GENERATORS)
def test_a_seed_is_the_same_bytes_and_may_be_a_sequence(draw):
    branch = SeedSequence(5, spawn_key=(2, 1))
    for seed in (0, 12345678901234567890, branch):
        one, other = (draw(SETUP, 0.8, 2e5, seed) for _ in range(2))
        assert one.to_csv() == other.to_csv()
        assert one.attrs == other.attrs
        assert one.to_csv() != draw(SETUP, 0.8, 2e5, 99).to_csv()
    assert draw(SETUP, 0.8, 2e5, branch).attrs["seed"] == {"entropy": 5, "spawn_key": [2, 1]}
    plain, sequence = (draw(PAPER, 1, 2e5, seed) for seed in (9, SeedSequence(9)))
    assert plain.to_csv() == sequence.to_csv()


@pytest.mark.parametrize("draw", GENERATORS)
def test_a_shorter_horizon_is_the_beginning_and_may_hold_no_task(draw):
    short, long = (draw(PAPER, 0.9, horizon, 8) for horizon in (3e5, 1e6))
    assert 100 < len(short) < len(long) / 2
    pd.testing.assert_frame_equal(short, long[: len(short)], check_exact=True)
    assert long["arrival"].iloc[len(short)] >= 3e5
    none = draw(PAPER, 0.1, 1.0)
    assert none.empty
    assert none.columns.tolist() == COLUMNS
    assert none.attrs["realised_load"] == 0.0


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
    assert not any(set(table) & set(model.SWITCHES) for table in workload.SWITCHES.values())


# --- a law of one's own -----------------------------------------------------------------------


def pareto(rng, count):
    """Draw sizes of Pareto's law with index 2.5 from 1 on; their mean is 5/3."""
    return rng.pareto(2.5, count) + 1


def test_a_law_of_ones_own_makes_the_load_that_was_asked_for():
    cluster = Cluster(4, cms=1, cps=2)  # E is proportional to the size: 81/65 of it
    draw = partial(workload.mcdf, cluster, 0.5, 400_000, 7, batch="single")
    tasks, again = draw(size=pareto), draw(size=pareto)
    assert tasks.attrs["reading"]["size"] == "pareto"
    assert tasks["sigma"].min() >= 1
    # of some 96,000 sizes: mean 5/3, standard deviation 1.49
    assert len(tasks) == pytest.approx(400_000 * 0.5 / (5 / 3 * 81 / 65), rel=0.03)
    assert tasks["sigma"].mean() == pytest.approx(5 / 3, rel=0.02)
    assert tasks.attrs["realised_load"] == pytest.approx(0.5, rel=0.03)
    pd.testing.assert_frame_equal(tasks, again)
    assert workload.dcratio(cluster, 0.5, 1000.0, 7, size=pareto)["sigma"].min() >= 1
    # the same load: half as many tasks of twice the size, from the same draws
    twice = draw(size=workload.scale_law(pareto, 2))
    assert twice.attrs["reading"]["size"] == "pareto"
    assert (twice["sigma"] == 2 * tasks["sigma"][: len(twice)]).all()
    assert len(twice) == pytest.approx(len(tasks) / 2, rel=0.05)
    assert workload.scale_law("abs", 2) == "abs"


def test_a_law_named_in_a_reading_is_loaded_and_goes_to_the_generator(tmp_path):
    file = tmp_path / "laws.py"
    file.write_text("def two(rng, count):\n    return [2.0] * count\n")
    switches = {"size": f"{file}:two", "link": "shared"}
    for generator in ("mcdf", "dcratio"):
        rules, drawing = workload.split_reading(switches, generator)
        assert rules == {"link": "shared"}
        assert drawing["size"](None, 3) == [2.0] * 3
    file.write_text("two = 2\n")
    with pytest.raises(InputError, match="must be a function of a generator and a count"):
        workload.load_laws(switches)


# --- refusals ---------------------------------------------------------------------------------


def drawn(draw, **options):
    return draw(PAPER, **({"load": 0.5, "horizon": 1e6} | options))


sort_switches = workload.split_reading
REFUSED = [
    *[(partial(drawn, draw, load=load), "mean interval of .*choose values that make at most 50000")
      for draw in GENERATORS for load in (1e9, 1e-50)],
    (partial(drawn, workload.mcdf, horizon=1e20), "mean interval of .*choose values"),
    *[(partial(drawn, getattr(workload, of), **{name: "x"}), f"{name} must be one of .*; got 'x'")
      for of in ("mcdf", "dcratio") for name in workload.SWITCHES[of]],
    *[(partial(drawn, draw, size=law), words)
      for draw in GENERATORS for law, words in (
          (lambda rng, n: rng.random(n + 1), r"must return \d+ sizes above 0; got ndarray of shap"),
          (lambda rng, n: -rng.random(n), r"size by law <lambda>\[0\] must be .* above 0, got -0"),
          (lambda rng, n: 3.0, r"got float of shape \(\)"))],
    (lambda: sort_switches({"btch": "single"}, "mcdf"), "one of an_nodes, .*batch, .*; got 'btch'"),
    (lambda: sort_switches({"batch": "x"}, "mcdf"), "batch must be one of literal, .* got 'x'"),
    (lambda: sort_switches({"batch": "single"}, "dcratio"), "one of .*size, deadline; got 'batch'"),
    (lambda: sort_switches({"deadline": "minmax"}, "dcratio"), "one of clamp, .*got 'minmax'"),
    (lambda: sort_switches({"deadline": "x"}, "mcdf", "dcratio"), "one of minmax, .*clamp,"),
    (lambda: sort_switches({}, "paper"), "one of mcdf, dcratio, user_split; got 'paper'"),
    (lambda: sort_switches({"link": pareto}, "mcdf"), "link must be one of"),
    (lambda: workload.load_laws({"size": "nowhere.py:two"}), "there is no file"),
]  # fmt: skip
test_what_cannot_be_drawn_is_refused = refuses_each(REFUSED)


# --- tables -----------------------------------------------------------------------------------


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


def test_task_ids_are_numbers_only_where_all_are_written_as_numbers(tmp_path):
    file = tmp_path / "t.csv"
    for names, ids in (
        (("a", "b"), ["a", "b"]),
        (("1", "b"), ["1", "b"]),
        (("1", "01"), ["1", "01"]),
        (("1", "9" * 20), ["1", "9" * 20]),
        (("7", "3"), [7, 3]),
    ):
        rows = "".join(f"0,1,2,{name}\n" for name in names)
        file.write_text(f"arrival,sigma,deadline,task\n{rows}")
        assert workload.from_csv(file).index.tolist() == ids
    file.write_text("arrival,sigma,deadline\n0,1,2\n0,1,2\n")
    assert workload.from_csv(file).index.tolist() == [0, 1]


def test_generated_tasks_survive_a_file(tmp_path):
    tasks = workload.mcdf(SETUP, 0.5, 1e5)
    files.write_text(tmp_path / "t.csv", files.csv_text(tasks))
    read = workload.from_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read, tasks, check_exact=True, check_index_type=False)


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


# --- job logs ---------------------------------------------------------------------------------


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
    assert base.equals(workload.from_swf(path, NODES))
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


def test_what_is_odd_in_a_log_is_said(tmp_path):
    tasks = workload.from_swf(log(tmp_path, job(1, 50, 9, 1), job(2, 20, 9, 1)), NODES)
    assert tasks.index.tolist() == [2, 1]
    assert tasks["arrival"].tolist() == [0, 30]
    assert tasks.attrs["notes"] == ["submit times are not in order"]
    tasks = workload.from_swf(log(tmp_path, *[job(-1, 7, 9, 1) for _ in range(3)]), NODES)
    assert tasks.index.tolist() == [0, 1, 2]
    assert tasks.attrs["notes"] == [
        "job numbers are not different whole numbers; tasks are counted from 0"
    ]
    assert tasks["arrival"].tolist() == [0, 0, 0]
    assert tasks.attrs["realised_load"] is None  # no time passes


@pytest.mark.parametrize(
    ("cluster", "arguments", "message"),
    [
        (NODES, {"work_per_unit": 0}, "work_per_unit must be a finite number above 0"),
        (Cluster(4, 1.0, 0.0), {}, "work_per_unit must be a finite number above 0, got 0"),
        (NODES, {"dc_ratio": -1}, "dc_ratio must be a finite number above 0"),
        (NODES, {"time_scale": math.nan}, "time_scale must be a finite number above 0"),
        (NODES, {"max_jobs": 0}, "max_jobs must be a whole number of at least 1, got 0"),
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

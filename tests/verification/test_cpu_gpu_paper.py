"""Paper C: the experiments of its notebook against direct simulation, its measures by hand."""

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlsim import cpugpu
from dlsim.cpugpu import (
    Gpu,
    History,
    Machine,
    Noise,
    Reading,
    ideal_split,
    run_chunks,
    simulate,
    workload,
)
from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.papers import cpu_gpu
from dlsim.study.claims import load_claims
from dlsim.study.measure import MEASURES
from dlsim.study.results import load_figures
from dlsim.study.session import start
from tests.verification.notebook_code import function_in, functions_of

KEY = "cpu-gpu"
NOISE = Noise(cv=0.1, outliers=0.02, factor=5.0)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """What 50-cpu-gpu defines, with five applications and three batches of eight jobs."""
    out = str(tmp_path_factory.mktemp(KEY))
    return functions_of("50-cpu-gpu", out=out, apps=5, queue=8, batches=3, words=300, draws=2)


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    out = str(tmp_path_factory.mktemp(KEY))
    return functions_of("51-cpu-gpu-beyond", out=out, apps=6, queue=12, batches=4)


def stream(replicate=0, seed=0):
    return np.random.SeedSequence(seed, spawn_key=(replicate,))


def run_directly(policy):
    """Run the batches of a replicate one after another, without the notebook."""
    applications = workload.applications("gpuheavy", 5, stream(2))
    jobs = workload.random_jobs(applications, 8, stream(2), NOISE, batches=3)
    history, makespans = None, []
    for _, part in jobs.groupby("batch"):
        schedule = simulate(part, Machine(1, 1), policy, history=history)
        makespans.append(schedule.makespan)
        history = schedule.history
    return makespans


# --- the queue on one machine ---------------------------------------------------------------------


def test_hadoop_schedulers_end_as_by_hand():
    # specification of paper C, section 10, case 10
    three = {"tasks": [8, 4, 4], "queue": ["x", "x", "y"], "share": [0.25, 0.25, 0.75]}
    jobs = pd.DataFrame(three, pd.Index(["A", "B", "C"], name="job"))
    schedulers = ("fifo", "fair", "capacity")
    run_slots = function_in("50-cpu-gpu", "run_slots")
    tasks = {name: run_slots(jobs, 4, name) for name in schedulers}
    ends = {name: one.groupby("job")["end"].max().tolist() for name, one in tasks.items()}
    assert ends == {"fifo": [2, 3, 4], "fair": [4, 4, 4], "capacity": [3, 4, 2]}


@pytest.mark.parametrize(("scheduler", "name"), [("fair", "weight"), ("capacity", "share")])
def test_running_tasks_per_share_tie_whatever_the_rounding(scheduler, name):
    # by hand, seven slots: 1 of A per .3 is 3 of B per .9. A, B; B twice more (1/.9, 2/.9 < 1/.3);
    # a tie, A; B (3/.9 < 2/.3); B, for 4/.9 < 2/.3.
    jobs = pd.DataFrame({"tasks": 9, "queue": ["a", "b"], name: [0.3, 0.9]}, index=["A", "B"])
    tasks = function_in("50-cpu-gpu", "run_slots")(jobs, 7, scheduler)
    assert tasks["job"].head(7).tolist() == list("ABBBABB")


def test_batches_are_those_of_direct_simulation(notebook):
    names = ["history", "rsc", "preferred"]
    runs = notebook["compare_policies"]("gpuheavy", 0.0, names, stream(2))
    for name in names:
        found = runs[runs["policy"] == name]["makespan"].tolist()
        assert found == pytest.approx(run_directly(name))


def test_jobs_in_the_queues_are_counted(notebook):
    # four jobs A(40/10) from an empty history: 2 start at once, one more at 10, the last at 20
    four = pd.DataFrame({"app": "A", "arrival": [0.0] * 4, "cpu_time": 40.0, "gpu_time": 10.0})
    lengths = notebook["queue_lengths"](simulate(four, Machine(1, 1), "history").jobs)
    main = lengths[lengths["queue"] == "main"].set_index("time")["jobs"]
    assert main.to_dict() == {0.0: 2, 10.0: 1, 20.0: 0}
    assert set(lengths[lengths["queue"] != "main"]["jobs"]) == {0}


# --- several nodes, the inside of a GPU, MapReduce ------------------------------------------------


def test_pipelines_follow_the_closed_forms(tmp_path):
    # specification, P4: C = 24 chunks of (2, 2, 2): S = 6, X = 2
    given = {"out": str(tmp_path), "noise": replace(NOISE, cv=0.0)}
    rows = pd.DataFrame(functions_of("50-cpu-gpu", **given)["overlap_chunks"]("balanced", stream()))
    two = rows[rows["engines"] == 2].set_index("streams")["makespan"]
    assert two[1] == pytest.approx(24 * 6)
    assert two[2] == pytest.approx(11 * 6 + 6 + 2)
    assert two[3] == two[4] == pytest.approx(6 + 23 * 2)
    assert rows["use"].tolist() == pytest.approx((48 / rows["makespan"]).tolist())


def test_an_outsider_keeps_the_optimiser_from_its_ideal(notebook):
    # the rounds approach max(T, a): by hand from the shares' fixed point
    rows = notebook["split_repeatedly"]("an outsider", stream(1))
    source = np.random.default_rng(stream(1))
    unit = np.exp(source.uniform(np.log(0.5), np.log(5), 4))
    ideal = 100 / (1 / unit).sum()
    fixed = 0.3 * ideal * source.random(4)
    fixed[-1] = 3 * ideal
    time = ideal_split(100.0, fixed.tolist(), unit.tolist()).time
    assert rows[-1]["excess"] == pytest.approx(fixed[-1] / time - 1, rel=0.05)
    assert rows[-1]["excess"] < rows[0]["excess"]
    assert notebook["split_repeatedly"]("no start-up", stream(1))[-1]["excess"] < 1e-9


def test_chunks_that_are_there_at_once_are_counted(notebook):
    chunks = cpugpu.equal_chunks(5, h2d=3, map=1, d2h=2)
    for streams, most in ((1, 1), (2, 2), (3, 2)):
        assert notebook["chunks_at_once"](run_chunks(chunks, Gpu(streams)).ops) == most


# --- beyond the paper -----------------------------------------------------------------------------


def test_regret_from_its_definition(beyond):
    rows = beyond["measure_regret"]("lee", 3, ["history"], stream(1, 2))
    table = workload.applications("lee", 6, stream(1, 2))
    jobs = workload.random_jobs(table, 12, stream(1, 2), NOISE, batches=3)
    lost, first, history = 0.0, None, None
    for row, (_, part) in zip(rows, jobs.groupby("batch"), strict=True):
        known = simulate(part, Machine(), "history", history=History.exact(table)).makespan
        cold = simulate(part, Machine(), "history", history=history)
        lost, history, first = lost + cold.makespan - known, cold.history, first or known
        assert row["regret"] == pytest.approx(lost / first)
    gaps = (table["cpu_time"] - table["gpu_time"]).abs()
    assert [row["jobs"] for row in rows] == [12, 24, 36]
    assert rows[0]["bound"] == pytest.approx(gaps.sum() / first)  # two runs each: explored once
    assert rows[2]["bound"] > rows[1]["bound"] > rows[0]["bound"]


def test_break_even_needs_to_stay(beyond):
    first_stay = beyond["first_stay"]
    assert first_stay(pd.Series([False, True, False, True, True])) == "4"
    assert first_stay(pd.Series([True, True])) == "1"
    assert first_stay(pd.Series([True, False])) == "never"


# --- measures and tables --------------------------------------------------------------------------


def batch_frame(values):
    """Return mix, replicate, policy, batch, makespan from {policy: batches}, the same twice."""
    rows = [
        ("m", replicate, policy, batch, makespan)
        for replicate in (0, 1)
        for policy, own in values.items()
        for batch, makespan in enumerate(own)
    ]
    return pd.DataFrame(rows, columns=["mix", "replicate", "policy", "batch", "makespan"])


def test_savings_and_learning_by_hand():
    runs = batch_frame({"history": [30, 10, 11, 9], "mct": [10] * 4, "gpu-only": [25] * 4})
    assert cpu_gpu.total_saved(runs, ["history"], "gpu-only")["estimate"].tolist() == pytest.approx(
        [1 - 60 / 100]
    )
    row = cpu_gpu.fall_over_batches(runs, first=0).iloc[0]
    # least squares of 3, 1, 1.1, .9 over 0, 1, 2, 3, times 3
    assert row["estimate"] == pytest.approx(-3 * (-1.5 * 3 - 0.5 * 1 + 0.5 * 1.1 + 1.5 * 0.9) / 5)
    assert (row["point"], row["steps"], row["wrong"]) == ("fall, mix m", 3, 1)
    assert cpu_gpu.fall_over_batches(runs, first=1).iloc[0]["estimate"] == pytest.approx(0.1)
    assert cpu_gpu.fall_over_batches(
        runs[runs["batch"] == 0], first=0
    ).empty  # one batch shows no way


def test_gain_is_over_the_best_rival_in_the_mix_that_other_queues_choose():
    times = {"torque-strict": 30, "torque": 20, "mct": 12, "flexible": 10, "area": 8}
    other = {"torque-strict": 30, "torque": 11, "mct": 12, "flexible": 10, "area": 10}
    rows = [
        (mix, 0.0, replicate, name, makespan + (replicate % 2 if name == "flexible" else 0))
        for replicate in range(4)
        for mix, own in (("a", times), ("b", other))
        for name, makespan in own.items()
    ]
    moldable = pd.DataFrame(rows, columns=["mix", "error", "replicate", "scheduler", "makespan"])
    table = cpu_gpu.greatest_gain(moldable).set_index("scheduler")
    assert table["estimate"].to_dict() == pytest.approx({"flexible": 12 / 11 - 1, "area": 0.5})
    assert table["mix"].tolist() == ["a", "a"]


def test_wrong_samples_are_compared_with_right_ones():
    rows = [("m", wrong, 0, 1, makespan) for wrong, makespan in ((1.0, 10.0), (5.0, 12.0))]
    frame = pd.DataFrame(rows, columns=["mix", "wrong", "replicate", "batch", "makespan"])
    table = cpu_gpu.excess_of_wrong_samples(frame)
    assert table["wrong"].tolist() == [5.0]
    assert table["excess"].tolist() == pytest.approx([0.2])


def test_every_claim_has_a_measure_or_is_true_by_construction():
    listed = load_claims(KEY)
    numbers = {claim.id.removeprefix(f"{KEY}-").rstrip("ab") for claim in listed}
    assert numbers == {str(number) for number in range(1, 20)} - {"2", "9"}
    unmeasured = {claim.id for claim in listed if claim.id not in MEASURES}
    assert unmeasured == {claim.id for claim in listed if claim.reason}
    assert unmeasured == {f"{KEY}-{number}" for number in (5, 16, 17, 19)}
    assert {claim.whose for claim in listed} == {"authors' statement"}  # it prints no measurement


def test_the_inventory_names_what_runs_and_what_shows_it():
    table = pd.read_csv(shared_file("data/papers/cpu-gpu-mechanisms.csv"), keep_default_na=False)
    assert len(table) == 22
    assert table["mechanism"].is_unique
    shown = {row.id.removeprefix(f"{KEY}-") for row in load_figures().figures if row.paper == KEY}
    assert set(table["shown by"]) <= {*shown, ""}
    for module, name in table["runs in"].str.rsplit(".", n=1):
        assert hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name), (module, name)


# --- readings -------------------------------------------------------------------------------------


def test_a_reading_gives_every_switch_a_value():
    chosen = cpu_gpu.choose_reading({"base": "gpu", "gpu_cpu_share": "0.05"})
    assert chosen["engine"] == Reading(gpu_cpu_share=0.05)
    assert chosen["base"] == "gpu"
    assert chosen["nodes"] == 4


@pytest.mark.parametrize(
    ("reading", "named"), [({"both_fre": "best"}, "both_fre"), ({"both_free": "worst"}, "worst")]
)
def test_an_unknown_reading_is_refused_before_anything_runs(reading, named, tmp_path):
    with pytest.raises(InputError, match=named):
        start(KEY, str(tmp_path), reading=reading)
    with pytest.raises(InputError, match=named):
        cpu_gpu.choose_reading(reading)

"""Paper C: the experiments of its notebook against direct simulation, its measures by hand."""

import importlib
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dlsim import cpugpu
from dlsim.cpugpu import (
    POLICIES,
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
from dlsim.cpugpu.cluster.mapreduce_job import words_of
from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.papers import cpu_gpu
from dlsim.study.claims import load_claims
from dlsim.study.measure import MEASURES
from dlsim.study.plots import STYLES
from dlsim.study.readings import list_changes
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


def draw_directly(mix, replicate):
    """Draw the applications and the batches of a replicate without the notebook."""
    applications = workload.applications(mix, 5, stream(replicate))
    jobs = workload.random_jobs(applications, 8, stream(replicate), NOISE, batches=3)
    return applications, [part for _, part in jobs.groupby("batch")]


def run_directly(mix, replicate, policy):
    """Run the batches of a replicate one after another, without the notebook."""
    history, schedules = None, []
    for part in draw_directly(mix, replicate)[1]:
        schedules.append(simulate(part, Machine(1, 1), policy, history=history))
        history = schedules[-1].history
    return schedules


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


def test_torque_is_the_preferred_device_on_one_machine():
    assert POLICIES["torque"] == POLICIES["preferred"]
    assert set(POLICIES) - {"ideal-mean"} <= set(STYLES)


@pytest.mark.parametrize(("mix", "replicate"), [("lee", 0), ("gpuheavy", 2)])
def test_batches_are_those_of_direct_simulation(notebook, mix, replicate):
    names = ["history", "rsc", "preferred"]
    runs = notebook["compare_policies"](mix, 0.0, names, stream(replicate))
    for name in names:
        found = runs[runs["policy"] == name]["makespan"].tolist()
        assert found == pytest.approx([s.makespan for s in run_directly(mix, replicate, name)])


def test_unfair_jobs_are_counted(notebook):
    rows = pd.DataFrame(notebook["measure_lateness"]("lee", 0.1, stream()))
    rows = rows.set_index(["fair", "above"])
    schedules = run_directly("lee", 0, "history")
    for fair, against in (("local", "assigned"), ("global", "preferred")):
        judged = pd.concat([s.fairness(against) for s in schedules])
        assert rows.loc[(fair, 0.0), "share"] == pytest.approx(judged["late"].mean())
        alone = judged["late"] & (judged["excuse"] == "")
        assert rows.loc[(fair, 0.0), "unexcused"] == pytest.approx(alone.mean())
        assert (rows.loc[fair, "share"].diff().dropna() <= 1e-12).all()


def test_exact_history_without_noise_is_fair_in_the_first_sense():
    # property P2 of the specification
    table = workload.applications("wide", 6, 3)
    jobs = workload.random_jobs(table, 30, 3, Noise(cv=0.0, outliers=0.0))
    s = simulate(jobs, Machine(1, 1), "history", history=History.exact(table))
    assert not s.fairness()["late"].any()


def test_the_base_is_the_class_whose_times_the_mixes_draw():
    tables = [workload.applications("wide", 200, 1, base=base) for base in ("cpu", "gpu")]
    for base, table in zip(("cpu", "gpu"), tables, strict=True):
        assert table[f"{base}_time"].between(*workload.BASE).all()
    gains = [(table["cpu_time"] / table["gpu_time"]).tolist() for table in tables]
    assert gains[0] == pytest.approx(gains[1])


def test_right_first_samples_do_no_harm(notebook):
    follow, reading = notebook["follow_wrong_sample"], Reading()
    applications, calm = notebook["draw_batches"]("lee", stream(), "cpu", outliers=0.0)
    rows = follow("lee", 1.0, stream(), poisoned="all")
    right = notebook["run_batches"](calm, reading, History.exact(applications))
    assert [row["makespan"] for row in rows] == pytest.approx([s.makespan for s in right])
    one, every = (
        sum(row["makespan"] for row in follow("lee", 100.0, stream(), poisoned=which))
        for which in cpu_gpu.SWITCHES["poisoned"]
    )
    assert sum(row["makespan"] for row in rows) < one < every


def test_without_outliers_nothing_has_to_be_smoothed_out(tmp_path):
    for probability, changed in ((0.0, [False, False]), (0.5, [False, True])):
        noise = replace(NOISE, outliers=probability)
        given = {"out": str(tmp_path), "apps": 5, "queue": 8, "batches": 3, "noise": noise}
        rows = functions_of("50-cpu-gpu", **given)["follow_outliers"]("wide", stream())
        assert [row["batch"] for row in rows] == [1, 2]
        assert [row["excess"] != 0 for row in rows] == changed


def test_no_policy_beats_the_exhaustive_schedule(notebook):
    names = ["history", "mct", "rsc", "asjf", "round-robin", "gpu-only"]
    for replicate in range(3):
        for row in notebook["compare_with_ideal"]("lee", names, stream(replicate)):
            assert min(row["makespan"], row["completion"]) >= -1e-12, row


def test_jobs_in_the_queues_are_counted(notebook):
    # four jobs A(40/10) from an empty history: 2 start at once, one more at 10, the last at 20
    four = pd.DataFrame({"app": "A", "arrival": [0.0] * 4, "cpu_time": 40.0, "gpu_time": 10.0})
    lengths = notebook["queue_lengths"](simulate(four, Machine(1, 1), "history").jobs)
    main = lengths[lengths["queue"] == "main"].set_index("time")["jobs"]
    assert main.to_dict() == {0.0: 2, 10.0: 1, 20.0: 0}
    assert set(lengths[lengths["queue"] != "main"]["jobs"]) == {0}


# --- several nodes, the inside of a GPU, MapReduce ------------------------------------------------


def test_moldable_jobs_ask_for_nodes_that_are_there(notebook):
    for nodes, asked in ((4, {1, 2, 4}), (2, {1, 2})):
        jobs = notebook["draw_moldable"]("lee", 40, 0.0, nodes, "cpu", stream())
        assert set(jobs["nodes"]) == asked
    rows = notebook["schedule_moldable"]("lee", 0.0, stream())
    assert {*cpu_gpu.EXISTING_SCHEMES, "flexible", "area"} <= {row["scheduler"] for row in rows}


def test_pipelines_follow_the_closed_forms(tmp_path):
    # specification, P4: C = 24 chunks of (2, 2, 2): S = 6, X = 2
    given = {"out": str(tmp_path), "noise": replace(NOISE, cv=0.0)}
    rows = pd.DataFrame(functions_of("50-cpu-gpu", **given)["overlap_chunks"]("balanced", stream()))
    two = rows[rows["engines"] == 2].set_index("streams")["makespan"]
    assert two[1] == pytest.approx(24 * 6)
    assert two[2] == pytest.approx(11 * 6 + 6 + 2)
    assert two[3] == two[4] == pytest.approx(6 + 23 * 2)
    assert rows["use"].tolist() == pytest.approx((48 / rows["makespan"]).tolist())


def test_the_scheduled_order_loses_little_and_threads_lose_more(notebook):
    for queues, engines in product(("per-engine", "single"), (1, 2)):
        rows = pd.DataFrame(notebook["issue_operations"](queues, engines, stream()))
        slowdown = rows.groupby("order")["slowdown"].mean()
        assert set(slowdown.index) == {"threads", "depth", "breadth", "scheduled"}
        # planned from mean times: with two copy engines nothing is lost
        assert (slowdown["scheduled"] > 1.01) == (engines == 1)
        assert slowdown["threads"] > slowdown["scheduled"]


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


def test_drawn_words_are_as_frequent_as_in_a_language(notebook):
    found = notebook["count_words"]("both", 2, 3, stream())
    # every word takes 8 letters and a space: thousands of letters per unit of time
    assert found["throughput"] * found["makespan"] == pytest.approx((300 * 8 - 1) / 1000)
    assert notebook["draw_text"](3, stream()).count("word") == 3
    (_, first), (_, second) = Counter(words_of(notebook["draw_text"](3000, stream()))).most_common(
        2
    )
    assert 1.3 < first / second < 3  # 1/1 against 1/2


# --- beyond the paper -----------------------------------------------------------------------------


def test_queues_of_the_usual_length_are_those_of_the_comparison(notebook):
    mix, names, seed = "wide", ["history", "rsc", "asjf"], stream(3)
    sums = notebook["vary_queue"](mix, notebook["queue"], seed).set_index("policy")["makespan"]
    usual = notebook["compare_policies"](mix, 0.0, names, seed)
    usual = usual.groupby("policy")["makespan"].sum()
    assert sums[names].to_dict() == pytest.approx(usual.to_dict())
    applications, drawn = notebook["draw_batches"](mix, seed, "cpu")
    known, total = History.exact(applications), 0.0
    for batch in drawn:  # the history goes on from the exact one
        done = simulate(batch, Machine(), "history", history=known)
        known, total = done.history, total + done.makespan
    assert sums["rules that know"] == pytest.approx(total)


def test_a_cold_batch_of_equal_speed_ups_has_no_slower_surprise(beyond):
    rows = beyond["run_cold_batch"](0.0, 4, ["history", "gpu-only"], stream())
    assert [row["policy"] for row in rows] == ["history", "gpu-only"]
    assert rows[0]["makespan"] < rows[1]["makespan"]  # two devices, the slower half as fast


@pytest.mark.parametrize("arrivals", ["batch", "online"])
def test_no_rule_is_below_the_least(beyond, arrivals):
    names = ["history", "mct", "rsc"]
    for length in (7, 40):
        rows = beyond["measure_gap"]("lee", arrivals, length, names, stream(1, 2))
        assert min(row["over"] for row in rows) >= -1e-9


def test_the_bound_is_no_more_than_the_optimum():
    for replicate in range(5):
        jobs = workload.random_jobs(workload.applications("wide", 6, replicate), 7, replicate)
        best = simulate(jobs, Machine(), "ideal")
        assert 0 < best.bound <= best.makespan * (1 + 1e-12)


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
    shown = {row.id.removeprefix(f"{KEY}-") for row in load_figures()[1] if row.paper == KEY}
    assert set(table["shown by"]) <= {*shown, ""}
    for module, name in table["runs in"].str.rsplit(".", n=1):
        assert hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name), (module, name)


# --- readings -------------------------------------------------------------------------------------

READINGS = [{name: value} for name, value in list_changes(cpu_gpu.SWITCHES)]


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


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_every_switch_changes_some_result(notebook, reading):
    (switch,) = reading
    chosen = cpu_gpu.choose_reading(reading)
    given = {name: chosen[name] for name in ("engine", "base")}
    for replicate in range(6):
        mix, seed = "wide", stream(replicate + 1)
        if switch in ("exponent", "both", "nodes"):
            run = notebook["schedule_moldable"]
            frames = run(mix, 0.0, seed), run(mix, 0.0, seed, **reading)
        elif switch == "poisoned":
            run = notebook["follow_wrong_sample"]
            frames = run(mix, 20.0, seed), run(mix, 20.0, seed, **reading)
        elif switch == "significant":
            run = notebook["measure_lateness"]
            frames = run(mix, 0.1, seed), run(mix, 0.1, seed, **reading)
        else:
            run = notebook["compare_policies"]
            names = ["history"]
            frames = run(mix, 0.0, names, seed), run(mix, 0.0, names, seed, **given)
        if not pd.DataFrame(frames[0]).equals(pd.DataFrame(frames[1])):
            return
    pytest.fail(f"{reading} changed nothing")


# --- the notebooks --------------------------------------------------------------------------------


def test_the_engine_offers_its_rooms():
    assert all(getattr(cpugpu, name) is not None for name in cpugpu.__all__)
    with pytest.raises(AttributeError, match="no_such"):
        _ = cpugpu.no_such

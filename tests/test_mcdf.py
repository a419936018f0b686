"""Paper M's study: its measures against direct simulation, its readings, its pictures."""

import itertools
import runpy

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.papers import mcdf
from dlsim.papers.mcdf import cells
from dlsim.papers.mcdf.study import SCALES
from dlsim.realtime import Cluster, Reading, simulate, workload
from dlsim.realtime.model import SWITCHES_M
from dlsim.study.claims import load_claims, verdict_of
from dlsim.study.measure import MEASURES, measured
from dlsim.study.stats import mean_interval
from tests.executed import (
    FILE,
    brought,
    execute,
    shown_beside_the_shipped,
    shows_what_is_brought,
    unsaid,
)
from tests.scale import deep, some_of

alternatives = list(mcdf.Study.alternatives())

LOADS = (0.2, 0.5)
bursts = runpy.run_path(str(FILE))["bursts"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("mcdf"))
    with pytest.MonkeyPatch.context() as patch:  # shorter, fewer queues, readings at one load
        small = SCALES["quick"]._replace(ratio_horizon=1e5, pools=8, reading_loads=(0.5,))
        patch.setitem(SCALES, "quick", small)
        study = mcdf.Study(
            runs=3, jobs=1, out=out, loads=LOADS, setups=(0.0, 5.0, 10.0), ratios=(0.5, 3.0)
        )
        assert study.size.pools == 8  # cached from here on
    return study


def direct(study, load, setup, replicate, name, reading=None, law=workload.mcdf):
    """One cell, computed without sweep, cells or claims."""
    cluster = Cluster(10, 10, 10, setup, setup)
    seed = np.random.SeedSequence(0, spawn_key=(replicate,))
    tasks = law(cluster, load, study.size.horizon, seed)
    return simulate(tasks, cluster, name, reading or Reading())


def test_leads_are_means_of_paired_differences(study):
    table = MEASURES["mcdf-1"].function(study.evidence).set_index("point")
    differences = [
        direct(study, 0.5, 0.0, k, "FIFOAN").reject_ratio
        - direct(study, 0.5, 0.0, k, "MCDF").reject_ratio
        for k in range(3)
    ]
    wanted = mean_interval(differences)
    row = table.loc["FIFOAN, load 0.5"]
    assert tuple(row[["estimate", "low", "high"]]) == pytest.approx(wanted[:3], abs=1e-12)
    assert len(table) == 6 * len(LOADS)


def test_the_realised_load_lies_above_the_nominal_one(study):
    """It is 5.5 times that, but for chance."""
    loads = study.main()[["load", "realised_load"]]
    assert (loads["realised_load"] > loads["load"]).mean() > 0.9


def test_miss_ratios_are_those_of_the_engine(study):
    table = MEASURES["mcdf-2"].function(study.evidence).set_index("point")
    ratios = [direct(study, 0.2, 0.0, k, "EDFANNA").miss_ratio for k in range(3)]
    assert table.loc["EDFANNA, load 0.2", "estimate"] == pytest.approx(np.mean(ratios), abs=1e-12)


def test_trends_over_setups_average_over_the_loads(study):
    table = MEASURES["mcdf-8"].function(study.evidence).set_index("point")
    mean = {
        setup: np.mean(
            [direct(study, x, setup, k, "EDFMN").reject_ratio for x in LOADS for k in range(3)]
        )
        for setup in (5.0, 10.0)
    }
    assert table.loc["EDFMN", "estimate"] == pytest.approx(mean[10.0] - mean[5.0])
    assert table.loc["EDFMN", "wrong"] == (mean[10.0] < mean[5.0])


def test_sensitivity_at_two_loads_is_their_difference(study):
    table = MEASURES["mcdf-12"].function(study.evidence).set_index("point")
    cluster = Cluster(10, 30, 10)
    ratios = {load: [] for load in LOADS}
    for load, k in itertools.product(LOADS, range(3)):
        seed = np.random.SeedSequence(0, spawn_key=(k,))
        tasks = workload.mcdf(cluster, load, study.size.ratio_horizon, seed)
        ratios[load].append(simulate(tasks, cluster, "MCDF").reject_ratio)
    wanted = np.mean(ratios[0.5]) - np.mean(ratios[0.2])
    assert table.loc["vary_cms, value 3", "estimate"] == pytest.approx(wanted)


def test_latency_share_is_a_third():
    # 8 Gbit at 40 Gbit/s take 0.2 s, and the latency is 0.1 s
    assert MEASURES["mcdf-19"].function(None)["estimate"].tolist() == pytest.approx([1 / 3])


def test_mcdf_order_is_beaten_in_the_counterexample():
    # specification of the theory, erratum 34: MCDF's order costs 32, order 1, 2, 3 costs 30
    pool = pd.DataFrame({"arrival": 0.0, "sigma": [3.0, 6.0, 6.0], "deadline": [17.0, 32.0, 19.0]})
    cluster = Cluster(2, 1, 1)
    costs = cells._costs(pool, cluster, Reading())["cost"]
    assert simulate(pool, cluster, "MCDF").total_cost == pytest.approx(32)
    assert costs.min() == pytest.approx(30)
    assert len(costs) == 6


def test_every_claim_has_a_measure_and_a_verdict(study):
    for claim in load_claims("mcdf"):
        assert claim.id in MEASURES, claim.id
    words = {verdict.claim.id: verdict.word for verdict in study.verdicts}
    assert len(words) == len(load_claims("mcdf")) == 21  # 19 of the specification; 4, 5 both ways
    assert words["mcdf-19"] == "holds"
    assert words["mcdf-13"] == "holds"  # sizes below 507 have N* < 10 (specification of the theory)


def test_results_do_not_depend_on_the_number_of_processes(study, tmp_path):
    options = {"runs": 3, "loads": LOADS, "setups": (0.0, 5.0, 10.0)}
    frames = []
    for jobs, place in ((1, "one"), (2, "two")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DLSIM_CACHE", str(tmp_path / place))
            frames.append(mcdf.Study(jobs=jobs, **options).main().to_csv())
    assert frames[0] == frames[1]


def test_other_readings_are_one_switch_each():
    assert alternatives[0] == {}
    assert all(len(switches) == 1 for switches in alternatives[1:])
    engine = sum(len(options) - 1 for options in SWITCHES_M.values())
    law = sum(len(options) - 1 for options in workload.SWITCHES["mcdf"].values())
    assert len(alternatives) == 1 + engine + law


@pytest.mark.parametrize("switches", alternatives[1:], ids=lambda s: "=".join(*s.items()))
def test_every_switch_changes_some_schedule(switches):
    """A switch that never changes anything would be no switch."""
    names = (*cells.WITH_ADMISSION, *cells.WITHOUT_ADMISSION)
    for seed, (cluster, load) in itertools.product(
        range(30), ((Cluster(10, 10, 10, 20, 20), 0.3), (Cluster(3, 1, 10), 1.0))
    ):
        both = []
        for reading in ({}, switches):
            tasks, engine = cells.tasks_and_reading(cluster, load, 60_000.0, seed, reading)
            if "same_time" in switches:  # arrivals that coincide with starts need whole numbers
                tasks = (tasks / 50).round().clip(lower=1) * 50
            both.append([simulate(tasks, cluster, name, engine).tasks for name in names])
        if any(not a.equals(b) for a, b in zip(*both, strict=True)):
            return
    pytest.fail(f"{switches} changed nothing")


def test_the_heat_map_begins_with_the_scorecard(study, monkeypatch):
    """All columns, the first too, are run on the loads of readings."""
    some = [{}, *some_of(alternatives[1:])]
    monkeypatch.setattr(mcdf.Study, "alternatives", lambda *_: iter(some))
    table = study.by_reading
    assert table.columns[0] == "default"
    light = study.measure({})
    own = {one.id: verdict_of(one, measured(one, light)) for one in load_claims("mcdf")}
    words = {key: f"{own[key].word}{_counts(own[key])}" for key in table.index}
    assert table["default"].to_dict() == words
    assert table.shape[1] == len(some)


def _counts(verdict):
    return f" {verdict.counts[0]}/{sum(verdict.counts)}" if verdict.counts else ""


def test_claims_of_long_runs_are_left_to_the_paper_scale(study):
    words = {verdict.claim.id: verdict for verdict in study.verdicts}
    assert words["mcdf-18"].word == "cannot be checked"
    assert "--scale paper" in words["mcdf-18"].reason


@pytest.mark.parametrize(
    "mine",
    [brought("EDFMN"), pytest.param({}, marks=deep)],
    ids=["a policy and a workload brought", "of the paper"],
)
def test_the_notebook_says_the_verdicts_of_its_reading(study, tmp_path, mine):
    """What is brought is on every figure, and drawn on its workload to the map of readings."""
    out = tmp_path / "results"
    given = {"loads": list(LOADS), "setups": [0.0, 5.0, 10.0], "ratios": [0.5, 3.0], **mine}
    done = execute("20-mcdf", out, **given, runs=2, reading={"link": "shared"})
    assert unsaid(done, out / "data" / "mcdf-claims.csv") == []
    pictures = {path.stem for path in (out / "figures").glob("*.png")}
    tables = {path.stem for path in (out / "data").glob("*.csv")}
    names = "fig1 fig4 fig5 fig6 fig7 fig10 stability gantt overload weighted negotiation readings"
    names += " setups sensitivity left"
    assert pictures == {f"mcdf-{name}" for name in names.split()}
    more = "claims sensitivities readings-intervals lead fig4-lead fig5-lead fig6-lead fig7-lead"
    more += " overload-lead"
    assert tables == (pictures - {"mcdf-fig1"}) | {f"mcdf-{name}" for name in more.split()}
    fig4 = pd.read_csv(out / "data" / "mcdf-fig4.csv").set_index(["policy", "load"])
    beside = {"mine"} if mine else set()
    assert set(fig4.index.unique("policy")) == {*cells.WITH_ADMISSION, *beside}
    law = bursts if mine else workload.mcdf
    shared = Reading(link="shared")
    ran = [direct(study, 0.5, 0.0, k, "MCDF", shared, law) for k in range(2)]
    want = np.mean([schedule.reject_ratio for schedule in ran])
    assert fig4.loc[("MCDF", 0.5), "estimate"] == pytest.approx(want)
    assert shown_beside_the_shipped(out, "mcdf", "link=shared")
    if mine:
        shown = "fig4 fig5 fig6 fig7 setups gantt overload weighted negotiation stability"
        assert shows_what_is_brought(out, "mcdf", "EDFMN", shown)
    else:
        for name in ("fig4", "fig10", "overload", "weighted", "negotiation"):
            table = pd.read_csv(out / "data" / f"mcdf-{name}.csv")
            assert (table["realised_load"] > table["load"]).mean() > 0.9


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"scale": "huge"}, "huge"),
        ({"loads": 0.5}, r"loads must be one value or more, such as \(1, 2\); got 0.5"),
        ({"loads": "0.5"}, "loads must be one value or more"),
        ({"loads": (0.1, "a")}, "loads must be a finite number, got 'a'"),
        ({"runs": -1}, "-1"),
        ({"setups": (0.0, 5.0)}, "setups"),
        ({"reading": {"lnik": "shared"}}, "lnik"),
        ({"reading": {"link": "both"}}, "both"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(wrong, named):
    with pytest.raises(InputError, match=named):
        mcdf.Study(**wrong)

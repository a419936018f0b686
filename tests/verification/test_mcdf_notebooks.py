"""Paper M's notebooks: small runs against direct simulation, readings, a policy of the user."""

import numpy as np
import pandas as pd
import pytest

from dlsim.papers import mcdf
from dlsim.realtime import Cluster, Reading, simulate, workload
from dlsim.study.claims import load_claims, read_scorecard
from dlsim.study.measure import MEASURES
from dlsim.study.verdict import with_sentences
from tests.helpers.intervals import student
from tests.verification.executed import run_small

LOADS, RUNS = [0.2, 0.5], 3
GIVEN = {"loads": LOADS, "runs": RUNS, "policies": ["mine=EDFMN"]}
AXES = {"setups": [0, 5, 10], "ratios": [0.5, 3]}
SIZES = {"horizon": 1e5, "ratio_horizon": 1e5, "runs": 10, "pools": 8}
TEN = Cluster(10, 10, 10)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return run_small("20-mcdf", tmp_path_factory.mktemp("mcdf"), SIZES, **GIVEN, **AXES)


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    return run_small("21-mcdf-beyond", tmp_path_factory.mktemp("beyond"), SIZES, **GIVEN)


def direct(load, replicate, policy, reading=None):
    """One cell, computed without a sweep or the notebook."""
    seed = np.random.SeedSequence(0, spawn_key=(replicate,))
    tasks = workload.mcdf(TEN, load, 1e5, seed)
    return simulate(tasks, TEN, policy, reading or Reading())


def test_leads_are_means_of_paired_differences(seen):
    table = mcdf.lead_over_all(seen[0]["main"]).set_index("point")
    differences = [
        direct(0.5, k, "FIFOAN").reject_ratio - direct(0.5, k, "MCDF").reject_ratio
        for k in range(RUNS)
    ]
    row = table.loc["FIFOAN, load 0.5"]
    wanted = student(differences)
    assert tuple(row[["estimate", "low", "high"]]) == pytest.approx(wanted, abs=1e-12)
    assert len(table) == 6 * len(LOADS)


def test_latency_share_is_a_third():
    # 8 Gbit at 40 Gbit/s take 0.2 s, and the latency is 0.1 s
    assert mcdf.share_of_latency()["estimate"].tolist() == pytest.approx([1 / 3])


def test_the_smallest_instance_is_the_one_worked_by_hand(seen):
    names, _, _ = seen
    three, two_nodes = names["three"], names["two_nodes"]
    assert simulate(three, two_nodes, "MCDF").total_cost == pytest.approx(12 + 12 + 2 * 4)
    assert simulate(three, two_nodes, "FIFOMN").total_cost == pytest.approx(6 + 12 + 12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(names, "small_cluster", two_nodes)
        costs = names["cost_of_orders"](three, Reading())["cost"]
    assert len(costs) == 6
    assert costs.min() == pytest.approx(30)


def test_the_test_in_plain_python_decides_as_worked_by_hand(seen):
    # two tasks of 100 on ten nodes: E(10) = 1000 / (1 - 2**-10), E(1) = 2000
    test, all_idle = seen[0]["all_in_time"], np.zeros(10)
    both = np.array([100.0, 100.0])
    on_all = 1000 / (1 - 2.0**-10)
    for order in ("MCDF", "EDFMN"):
        assert test(order, both, np.array([2000.0, 2000.0]), all_idle, 0.0)
        assert not test(order, both, np.array([on_all, on_all]), all_idle, 0.0)
        assert test(order, both[:1], np.array([on_all]), all_idle, 0.0)
        assert not test(order, both[:1], np.array([on_all]), all_idle + 1, 0.0)


def test_every_claim_is_judged_but_the_one_of_long_runs(seen):
    _, _, out = seen
    card = pd.read_csv(out / "data" / "mcdf-claims.csv", index_col="id")
    assert list(card.index) == [claim.id for claim in load_claims("mcdf")]
    assert len(card) == 23  # 21 sentences; 4 and 5 both ways
    assert card.loc["mcdf-19", "verdict"] == "supported"
    assert card.loc["mcdf-13", "verdict"] == "supported"  # sizes below 507 have N* < 10
    assert card.loc["mcdf-18", "verdict"] == "not checkable"
    shown = with_sentences(read_scorecard(out / "data" / "mcdf-claims.csv")).set_index("id")
    assert "--scale full" in shown.loc["mcdf-18", "reason"]
    assert {claim.id for claim in load_claims("mcdf")} == {
        name for name in MEASURES if name.startswith("mcdf-")
    }


@pytest.mark.parametrize("name", ["fig4", "setups", "overload", "negotiation"])
def test_a_policy_of_the_user_has_a_line_in_every_figure_but_those_of_figure_10(seen, beyond, name):
    """It is EDFMN under another name, so it has the same numbers."""
    out = beyond[2] if name in ("overload", "negotiation") else seen[2]
    table = pd.read_csv(out / "data" / f"mcdf-{name}.csv").set_index("policy")
    ours, theirs = table.loc["mine"], table.loc["EDFMN"]
    assert len(ours) > 1
    pd.testing.assert_frame_equal(ours.reset_index(drop=True), theirs.reset_index(drop=True))


def test_a_policy_of_the_user_is_no_part_of_the_papers_claims(seen):
    """A rival that led MCDF under another name would change claim 1."""
    names, _, out = seen
    assert "mine" in set(names["main"]["policy"])
    judged = set(pd.read_csv(out / "data" / "mcdf-fig5-lead.csv")["what"])
    assert {"EDFMN", "FIFOAN"} <= judged
    assert "mine" not in judged
    stable = pd.read_csv(out / "data" / "mcdf-stability.csv")
    assert set(stable["policy"]) == set(mcdf.WITH_ADMISSION)


def test_the_experiments_of_a_reading_are_those_of_the_notebook(seen, tmp_path, monkeypatch):
    names, _, _ = seen
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path))
    frames = names["run_under"]("link", "shared", ["MCDF"])
    assert set(frames) == {"main", "ratios", "doubled"}
    row = frames["main"].query("policy == 'MCDF' and load == 0.5 and setup == 0 and replicate == 1")
    wanted = direct(0.5, 1, "MCDF", Reading(link="shared")).reject_ratio
    assert row["ratio"].item() == wanted
    assert wanted != direct(0.5, 1, "MCDF").reject_ratio


def test_at_full_scale_every_reading_and_half_the_length_are_run(tmp_path, monkeypatch):
    few = {name: mcdf.SWITCHES[name] for name in ("link", "size")}
    monkeypatch.setattr(mcdf, "SWITCHES", few)
    given = GIVEN | AXES | {"runs": 2, "scale": "full"}
    _, _, out = run_small("20-mcdf", tmp_path, SIZES, **given)
    table = pd.read_csv(out / "data" / "mcdf-readings.csv", index_col="claim")
    assert list(table) == ["default", "link=shared", "size=abs", "size=clip"]
    card = pd.read_csv(out / "data" / "mcdf-claims.csv", index_col="id")
    assert set(card["scale"]) == {"full"}  # it is the reference itself
    assert card.loc["mcdf-18", "verdict"] != "not checkable"
    assert table.loc["mcdf-18"].notna().all()


def test_the_bound_is_below_every_policy(beyond):
    names, _, _ = beyond
    bound = names["bound"].query("what == 'tasks'").set_index(["load", "replicate"])["ratio"]
    rows = names["admitted"].set_index(["load", "replicate"])["ratio"]
    both = rows.to_frame("policy").join(bound.rename("bound"), how="inner")
    assert len(both) == 2 * 2 * 6  # loads, runs of the bound, policies
    assert (both["bound"] <= both["policy"]).all()

"""Paper I's notebooks: hand cases, small runs against direct simulation, readings, own policies."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.papers import inserted_idle_time as iit
from dlsim.realtime import POLICIES, Cluster, Reading, simulate, workload
from dlsim.record import find_records
from dlsim.study.claims import load_claims
from dlsim.study.measure import MEASURES
from tests.helpers.intervals import student
from tests.verification.executed import FILE, run_small
from tests.verification.notebook_code import defined_in

KEY, PAPER, BEYOND = "inserted-idle-time", "30-inserted-idle-time", "31-inserted-idle-time-beyond"
paper = defined_in(PAPER)
LOADS, RUNS, HORIZON = [0.6, 1.0], 3, 3e5
SIZES = {"horizon": HORIZON, "map_horizon": 1e5, "runs": 10, "pools": 8}
GIVEN = {"runs": RUNS, "taus": [8, 1], "policies": ["mine=EDF-EXACT-N"]}

#: Three tasks on one node each, then one that needs all four. By hand: r = (0, 14, 26, 36).
FIRST = pd.DataFrame(
    {"arrival": 0.0, "sigma": [2.8, 5.2, 7.2, 40.0], "deadline": [14.0, 26.0, 36.0, 105.0]},
    index=pd.Index(list("abcT"), name="task"),
)
FOUR = Cluster(4, 1.0, 4.0)
#: Specification of paper I, section 7, case 2: the second task runs on r = (0, 21).
TWO = Cluster(2, 1.0, 3.0)
PAIR = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": [5.25, 14.0], "deadline": [21.0, 54.0]})


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return run_small(PAPER, tmp_path_factory.mktemp("iit"), SIZES, **GIVEN, loads=LOADS)


@pytest.fixture(scope="module")
def beyond(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beyond")
    return run_small(BEYOND, folder, SIZES, **GIVEN, dc_ratios=[2, 5], clusters=[4])


def direct(load, replicate, name, tau=1.0, reading=None):
    """One schedule, computed without a sweep or the notebook."""
    cluster, seed = Cluster(16, tau, 100), np.random.SeedSequence(0, spawn_key=(replicate,))
    tasks = workload.dcratio(cluster, load, HORIZON, seed)
    tasks = workload.user_split(tasks, cluster, seed)
    return simulate(tasks, cluster, name, reading or Reading())


# ----------------------------------------------------------------------- idle time, by hand


def test_figure_1_is_the_instance_worked_by_hand(seen):
    # p = (36, 22, 10, 0); e = (0 + 14 + 26 + 36 + 40 * 5) / 4 = 69
    names, _, out = seen
    pd.testing.assert_frame_equal(names["four_tasks"], FIRST)
    waiting, used = (pd.read_csv(out / "data" / f"{KEY}-fig1{part}.csv") for part in "ab")
    assert (waiting["last"] - waiting["release"]).sum() == pytest.approx(68)
    assert waiting["used"].sum() == pytest.approx(0)
    assert waiting["send_start"].min() == pytest.approx(36)
    assert waiting["compute_end"].max() == pytest.approx(36 + 40 / (1 - 0.8**4))
    assert used["used"].sum() == pytest.approx(68)
    assert used["compute_end"].tolist() == pytest.approx([69] * 4)


def test_idle_time_of_a_hand_case():
    waited = paper.idle_used(simulate(PAIR, TWO, "FIFO-OPR-MN"))
    assert waited == pytest.approx({"idle": 21.0, "used": 0.0})
    for name in ("FIFO-DLT", "FIDO-I", "FIDO-II", "FIFO-EXACT"):
        schedule = simulate(PAIR, TWO, name)
        assert paper.idle_used(schedule) == pytest.approx({"idle": 21.0, "used": 21.0}), name
        gaps = paper.idle_gaps(schedule)
        late = gaps[gaps["task"] == 1]
        assert sorted(late["release"]) == pytest.approx([0.0, 21.0])
        assert late["last"].tolist() == pytest.approx([21.0, 21.0])


def test_a_node_that_ends_before_the_last_one_is_free_leaves_idle_time():
    # r = (0, 8, 30, 34), sigma = 40, tau = 1, chi = 4: the optimum fills node 1 after r_4,
    # while node 2 has to wait for the link until the send to node 1 is over
    tasks = FIRST.assign(sigma=[1.6, 6.0, 6.8, 40.0], deadline=[8.0, 30.0, 34.0, 105.0])
    schedule = simulate(tasks, FOUR, "FIFO-EXACT")
    gaps = paper.idle_gaps(schedule)
    big = gaps[gaps["task"] == "T"].sort_values("release")
    assert big["release"].tolist() == pytest.approx([0, 8, 30, 34])
    idle = (big["send_start"].clip(upper=34) - big["release"]).sum()
    use = paper.idle_used(schedule)
    assert use["idle"] == pytest.approx(34 + 26 + 4)
    assert use["used"] == pytest.approx(use["idle"] - idle)
    assert idle > 0


# ----------------------------------------------------------------------- Constraint 1


def test_bounds_on_n_are_those_of_the_specification(seen):
    # chi = 100: n <= 4, 5, 7, 10 for tau = 8, 4, 2, 1
    most = {
        tau: max(n for n in range(2, 17) if paper.room_for_last_gap(n, 100 / tau) > 1)
        for tau in (8, 4, 2, 1)
    }
    assert most == {8: 4, 4: 5, 2: 7, 1: 10}
    table = seen[0]["feasible"]
    positive = table[table["positive"] & (table["ratio"].round(6) == 100)]
    assert positive["n"].max() == 14  # n (n - 1) / 2 < 101


def test_the_three_tasks_are_decided_as_worked_in_rational_numbers(seen):
    # statement 1.DLTcex: the remodel books b until 9101/8050, (3) and (4) until 91/100
    plans = {name: run.tasks for name, run in seen[0]["plans"].items()}
    assert plans["FIFO-DLT"]["estimate"]["b"] == pytest.approx(9101 / 8050)
    assert plans["FIDO-II"]["estimate"]["b"] == pytest.approx(0.91)
    assert plans["FIFO-DLT"]["admitted"].tolist() == [True, True, False]
    assert plans["FIDO-II"]["admitted"].all()


def test_the_gain_of_the_better_split_is_of_second_order(seen):
    for idle in (0.05, 0.2, 0.5):
        gain = seen[0]["booked_longer"](idle, 1e-6)
        assert gain == pytest.approx(idle**2 / (1 + idle), rel=1e-4)


# ----------------------------------------------------------------------- Table 1 and Figure 2


def test_two_printed_percentages_do_not_follow_from_their_counts(seen):
    # by hand: 553/4551 = 12.15 %, printed 13; 757/5661 = 13.37 %, printed 14
    table = seen[0]["printed"].set_index("load")
    assert table.index[~table["follows"]].tolist() == [0.8, 0.9]
    assert table["follows_ii"].all()
    assert len(table) == 10
    assert table.loc[1.0, ["s_iits", "opt_iits", "opt_iits_ii"]].tolist() == [6108, 890, 1203]


def test_counts_are_those_of_the_engine(seen):
    table = seen[0]["counted"].set_index(["reading", "rule", "load"])
    each = [direct(1.0, k, "FIFO-DLT").counts for k in range(RUNS)]
    for rule in iit.COUNTING_RULES:
        row = table.loc["", rule, 1.0]
        assert row["s_iits"] == sum(counts.loc[rule, "s_iits"] for counts in each)
        assert row["share"] == sum(counts.loc[rule, "opt_iits"] for counts in each) / row["s_iits"]
        assert row["share_low"] <= row["share"] <= row["share_high"]
    other = direct(1.0, 0, "FIFO-DLT", reading=Reading(ties="skip")).counts
    cases = seen[0]["cases"].query("reading == 'ties=skip' and load == 1 and replicate == 0")
    assert cases.set_index("rule")["opt_iits"]["admitted"] == other.loc["admitted", "opt_iits"]


# ----------------------------------------------------------------------- measures


def test_steps_are_means_of_paired_differences(seen):
    table = MEASURES[f"{KEY}-3"].function(**seen[0]).set_index("point")
    ratios = [
        [direct(1.0, k, name).reject_ratio for name in ("FIDO-I", "FIDO-II")] for k in range(RUNS)
    ]
    wanted = student([a - b for a, b in ratios])
    row = table.loc["FIDO-I - FIDO-II, load 1"]
    assert tuple(row[["estimate", "low", "high"]]) == pytest.approx(wanted, abs=1e-12)
    assert len(table) == 2 * len(LOADS)


def test_paired_and_unpaired_errors_by_hand(seen, beyond):
    # differences -0.1, 0.1, 0 with deviation 0.1; both sides have deviation 0.1
    frame = pd.DataFrame(
        {
            "load": 1.0,
            "replicate": [0, 1, 2] * 2,
            "policy": np.repeat(["FIFO-DLT", "FIDO-II"], 3),
            "ratio": [0.1, 0.2, 0.3, 0.2, 0.1, 0.3],
        }
    )
    base_of = {"FIDO-II": "FIFO-DLT"}
    apart = paper.less_refused(frame, base_of, ["load"])
    assert apart["difference"].tolist() == pytest.approx([-0.1, 0.1, 0.0])
    of_paper = paper.standard_errors(frame, apart, base_of, ["load"]).iloc[0]
    of_beyond = beyond[0]["less_refused"](frame, base_of, ["load"]).iloc[0]
    for row in (of_paper, of_beyond):
        assert row["standard_error"] == pytest.approx(0.1 / np.sqrt(3))
        assert row["unpaired_error"] == pytest.approx(np.sqrt(0.02 / 3))
    assert of_beyond["estimate"] == pytest.approx(0)


# ----------------------------------------------------------------------- claims and readings


def test_every_claim_is_judged_but_those_that_cannot_be(seen):
    card = pd.read_csv(seen[2] / "data" / f"{KEY}-claims.csv", index_col="id")
    assert list(card.index) == [claim.id for claim in load_claims(KEY)]
    words = card["verdict"].rename(lambda name: name.removeprefix(f"{KEY}-"))
    assert len({name.rstrip("abc") for name in words.index}) == 18
    # theorems take the status of their statements: erratum 13 corrects Theorems 1 and 3
    assert words["9b"] == "supported"
    assert words["9a"] == words["9c"] == "partly supported"
    assert words["8"] == "partly supported"
    assert {"13a", "13b", "18"} <= set(words[words == "not checkable"].index)
    measured = {name for name in MEASURES if name.startswith(KEY)}
    assert measured == {
        f"{KEY}-{n}" for n in words.index if n not in "8 9a 9b 9c 13a 13b 18".split()
    }


@pytest.mark.parametrize(
    "name", "fig3b fig4:what paired:what rivals use gain".split(), ids=lambda name: name
)
def test_a_policy_of_the_user_has_the_numbers_of_the_one_that_it_is(seen, beyond, name):
    name, _, column = name.partition(":")
    out = beyond[2] if name == "gain" else seen[2]
    table = pd.read_csv(out / "data" / f"{KEY}-{name}.csv")
    table = table[table["order"] == "EDF"] if "order" in table else table
    words = table[column or "policy"].str.split(" ")
    ours, theirs = (
        table[words.map(lambda some, who=who: who in some)].replace(who, "it", regex=True)
        for who in ("mine", "EDF-EXACT-N")
    )
    assert len(ours) > 1
    numbers = ours.select_dtypes("number").columns
    assert ours[numbers].to_numpy() == pytest.approx(theirs[numbers].to_numpy(), nan_ok=True)


def test_a_policy_of_the_user_is_no_part_of_the_papers_claims(seen):
    assert "mine" in set(seen[0]["main"]["policy"])
    table = pd.read_csv(seen[2] / "data" / f"{KEY}-readings-intervals.csv")
    assert not table["what"].dropna().str.contains("mine").any()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("FIFO-DLT=EDF-OPR-MN", "FIFO-DLT is compared already"),
        ("EDF-EXACT", "EDF-EXACT is compared already"),
        ("EDFANNA", "EDFANNA refuses no task"),
        ("MCFD", "did you mean MCDF"),
    ],
)
def test_policies_that_are_compared_already_or_refuse_no_task_are_refused(policy, message):
    with pytest.raises(InputError, match=message):
        iit.require_admission(find_records("policy", [policy], POLICIES, iit.COMPARED_POLICIES))
    given = [f"LLF={FILE}:least_laxity", "MCDF"]
    found = find_records("policy", given, POLICIES, iit.COMPARED_POLICIES)
    iit.require_admission(found)
    assert list(found) == ["LLF", "MCDF"]


def test_the_experiments_of_a_reading_are_those_of_the_notebook(seen, tmp_path, monkeypatch):
    names, _, _ = seen
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path))
    frames = names["run_under"]("backfill", "on", list(iit.POLICIES))
    assert set(frames) == {"main", "costs"}
    row = frames["main"].query("policy == 'FIDO-II' and load == 1 and replicate == 1")
    wanted = direct(1.0, 1, "FIDO-II", reading=Reading(backfill="on")).reject_ratio
    assert row["ratio"].item() == wanted
    own = names["main"].query("load == 1").set_index(["policy", "replicate"])["ratio"]
    other = frames["main"].set_index(["policy", "replicate"])["ratio"]
    assert (other != own[other.index]).any()
    # nothing is counted where tasks may overtake each other
    assert iit.share_under_constraint(frames["main"], "opt_iits") is None
    assert iit.gain_under_rare_constraints(frames["main"]) is None
    assert iit.rise_of_shares(frames["costs"]) is None
    assert MEASURES[f"{KEY}-10a"].function(**frames)["estimate"].notna().any()


# ----------------------------------------------------------------------- beyond the paper


def test_the_bound_is_below_the_best_policy(beyond):
    bound = beyond[0]["bound"]
    assert len(bound) == 2 * 2 * RUNS
    assert (bound["left"] >= 0).all()
    lifted = beyond[0]["lifted"].pivot(
        index=["dc_ratio", "replicate"], columns="allowed", values="refused"
    )
    assert lifted.sub(lifted["any planner, at least"], axis=0).ge(0).all(axis=None)


def test_all_nodes_waste_eight_times_as_much_as_by_hand(beyond):
    table = beyond[0]["all_fewest"].query("nodes == 16 and sending == 1")
    assert table["waste"].tolist() == pytest.approx([16 / 2 / (1 - 2**-16)] * 4)  # beta = 1/2


def test_splits_keep_the_order_that_is_proved(beyond):
    table = beyond[0]["single"].set_index(["partition", "tau", "replicate", "nodes"])
    excess = table["excess"].unstack("partition")
    order = ["no idle time used", "remodel, estimate", "remodel, actual", "optimum"]
    for late, early in itertools.pairwise(order):
        assert (excess[late] >= excess[early] - 1e-12).all(), (late, early)
    assert (excess["optimum"] == 0).all()
    assert (excess["constraint 2"] >= -1e-12).all()
    admitted = table["admitted"].unstack("nodes")
    assert (admitted.diff(axis=1).iloc[:, 1:] >= 0).all().all()
    assert table["admitted"].between(0, 1).all()


def test_only_the_optimum_lets_all_nodes_end_together(beyond):
    """The optimum by hand: on nodes 1 to 4 the end e solves sum of x_i = 40 (tau 1, chi 4)."""
    # node 1: x = e/5, its send ends at e/5 > 8; node 2 starts there: x = (e - e/5)/5; the send
    # ends at 9e/25 < 30; node 3: x = (e - 30)/5, its send ends at 24 + e/5 > 34; node 4: the rest
    end = (40 + 30 / 5 + 24 / 5) / (1 / 5 + 4 / 25 + 1 / 5 + 4 / 25)
    table = pd.read_csv(beyond[2] / "data" / f"{KEY}-partitions.csv")
    optimum = table[table["asked"] == "true optimum"]
    assert optimum["compute_end"].tolist() == pytest.approx([end] * 4)
    others = table[table["asked"].str.startswith("Constraint 2")]
    assert others["compute_end"].nunique() == 4

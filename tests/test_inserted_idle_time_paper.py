"""Paper I's study: its measures against direct simulation and hand cases, its pictures."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from dlsim.errors import InputError
from dlsim.papers import inserted_idle_time as iit
from dlsim.papers.inserted_idle_time import cells, claims, draw
from dlsim.papers.inserted_idle_time.study import COUNT_READINGS, SCALES, printed_table
from dlsim.realtime import POLICIES, Cluster, execution_time, simulate, workload
from dlsim.study.claims import load_claims
from dlsim.study.measure import MEASURES
from dlsim.study.stats import mean_interval
from dlsim.study.style import STYLES
from tests.executed import brought, execute, shown_beside_the_shipped, shows_what_is_brought, unsaid
from tests.scale import deep, some_of

#: Three tasks on one node each, then one that needs all four. By hand: r = (0, 14, 26, 36).
FIRST = pd.DataFrame(
    {"arrival": 0.0, "sigma": [2.8, 5.2, 7.2, 40.0], "deadline": [14.0, 26.0, 36.0, 105.0]},
    index=pd.Index(list("abcT"), name="task"),
)

KEY = "inserted-idle-time"
alternatives = list(iit.Study.alternatives())
LOADS = (0.6, 1.0)
#: Realised load over the nominal one: the positive part of N(200, 200) has the mean 257.5.
REALISED = 1.29
SMALL = {"loads": LOADS, "taus": (8.0, 1.0), "dc_ratios": (2.0, 5.0), "clusters": (4,), "jobs": 1}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # shorter, fewer pools, readings at one load
        short = {"horizon": 3e5, "map_horizon": 1e5}
        small = SCALES["quick"]._replace(pools=8, reading_loads=(1.0,), **short)
        patch.setitem(SCALES, "quick", small)
        study = iit.Study(runs=3, out=str(tmp_path_factory.mktemp("iit")), **SMALL)
        assert study.size.pools == 8  # cached from here on
    return study


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def direct(study, load, replicate, name, tau=1.0):
    """One cell, computed without sweep, cells or claims."""
    cluster = Cluster(16, tau, 100)
    seed = np.random.SeedSequence(0, spawn_key=(replicate,))
    tasks = workload.dcratio(cluster, load, study.size.horizon, seed)
    return simulate(workload.user_split(tasks, cluster, seed), cluster, name)


# ----------------------------------------------------------------------- the printed table


def test_two_printed_percentages_do_not_follow_from_their_counts():
    # by hand: 553/4551 = 12.15 %, printed 13; 757/5661 = 13.37 %, printed 14
    table = printed_table().set_index("load")
    assert table.index[~table["follows"]].tolist() == [0.8, 0.9]
    assert table["follows_ii"].all()
    assert len(table) == 10
    assert table.loc[1.0, ["s_iits", "opt_iits", "opt_iits_ii"]].tolist() == [6108, 890, 1203]


def test_table_1_marks_them(study):
    table = iit.table1(study)
    assert table["printed", "%"].str.contains("≠").tolist() == [False] * 7 + [True, True, False]
    assert table.shape == (10, 5 + 4 * 4 + 3 + 3)
    rows = pd.read_csv(study.results.folder / "data" / f"{KEY}-table1.csv", keep_default_na=False)
    assert set(rows["rule"]) == set(cells.RULES)
    assert set(rows["reading"]) == {"", *COUNT_READINGS}


def test_counts_are_those_of_the_engine(study):
    table = study.counted.set_index(["reading", "rule", "load"])
    each = [direct(study, 1.0, k, "FIFO-DLT").counts for k in range(3)]
    for rule in cells.RULES:
        row = table.loc["", rule, 1.0]
        assert row["s_iits"] == sum(counts.loc[rule, "s_iits"] for counts in each)
        assert row["share"] == sum(counts.loc[rule, "opt_iits"] for counts in each) / row["s_iits"]
        assert row["share_low"] <= row["share"] <= row["share_high"]


def test_few_cases_are_not_blown_up(study):
    """What so few runs saw is said as it was seen, with its exact bounds in the paper's time."""
    row = iit.table1(study).loc[1.0, "admitted"]
    seen = study.counted.set_index(["reading", "rule", "load"]).loc[("", "admitted", 1.0), "s_iits"]
    assert row["seen"] == f"{seen:.0f}"
    longer = 1e8 / (3 * study.size.horizon)
    ends = [chi2.ppf(q, 2 * (seen + more)) / 2 for q, more in ((0.025, 0), (0.975, 1))]
    assert row["in 10⁸"] == "{:.0f} to {:.0f}".format(*(longer * end for end in ends))


def test_the_nearest_reading_of_table_1_comes_first(study):
    table = iit.fit(study)
    assert table["% apart"].is_monotonic_increasing
    rows = study.counted.query("rule == 'rtgrid' and reading == ''").set_index("load")
    shares, printed = rows["share"], printed_table().set_index("load")["share"]
    far = np.average((100 * (shares - printed[list(LOADS)])) ** 2, weights=rows["s_iits"]) ** 0.5
    assert table.loc[("rtgrid", "own"), "% apart"] == pytest.approx(far, abs=0.005)


# ----------------------------------------------------------------------- Constraint 1


@given(st.integers(2, 16), st.floats(0.1, 1000), st.floats(1, 500))
def test_window_is_the_difference_of_execution_times(n, ratio, sigma):
    cluster = Cluster(16, 2.0, 2.0 * ratio)
    gap = execution_time(sigma, n - 1, cluster) - execution_time(sigma, n, cluster)
    assert claims.window(n, ratio) == pytest.approx(gap / (2.0 * sigma), rel=1e-6)


def test_bounds_on_n_are_those_of_the_specification():
    # chi = 100: n <= 4, 5, 7, 10 for tau = 8, 4, 2, 1
    most = {
        tau: max(n for n in range(2, 17) if claims.window(n, 100 / tau) > 1) for tau in (8, 4, 2, 1)
    }
    assert most == {8: 4, 4: 5, 2: 7, 1: 10}
    table = claims.feasible(16, [100.0])
    assert table.loc[table["positive"], "n"].max() == 14  # n (n - 1) / 2 < 101


def test_constraint_1_holds_only_inside_the_window():
    """Search for a counterexample with n chosen by trying, away from the formula."""
    rng, found = np.random.default_rng(5), 0
    cluster = Cluster(8, 1.0, 10.0)
    for _ in range(4000):
        sigma = rng.uniform(1, 10)
        releases = np.sort(rng.uniform(0, 8 * sigma, 8))
        due = rng.uniform(10, 120)
        fit = [n for n in range(1, 9) if releases[n - 1] + execution_time(sigma, n, cluster) <= due]
        if fit and fit[0] > 1 and (np.diff(releases[: fit[0]]) >= sigma).all():
            found += 1
            assert claims.window(fit[0], 10.0) > 1
    assert found > 50


# ----------------------------------------------------------------------- idle time


TWO = Cluster(2, 1.0, 3.0)
PAIR = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": [5.25, 14.0], "deadline": [21.0, 54.0]})


def test_idle_time_of_a_hand_case():
    # specification of paper I, section 7, case 2: T2 runs on r = (0, 21)
    waited = cells.idle_use(simulate(PAIR, TWO, "FIFO-OPR-MN"))
    assert waited == pytest.approx({"idle": 21.0, "used": 0.0})
    for name in ("FIFO-DLT", "FIDO-I", "FIDO-II", "FIFO-EXACT"):
        s = simulate(PAIR, TWO, name)
        assert cells.idle_use(s) == pytest.approx({"idle": 21.0, "used": 21.0}), name
        table = cells.waits(s)
        late = table[table["task"] == 1]
        assert sorted(late["release"]) == pytest.approx([0.0, 21.0])
        assert late["last"].tolist() == pytest.approx([21.0, 21.0])


def test_a_node_that_ends_before_the_last_one_is_free_leaves_idle_time():
    # r = (0, 8, 30, 34), sigma = 40, tau = 1, chi = 4: the remodel ends node 1 after r_4,
    # while node 2 has to wait for the link until the send to node 1 is over
    tasks = FIRST.assign(sigma=[1.6, 6.0, 6.8, 40.0], deadline=[8.0, 30.0, 34.0, 105.0])
    s = simulate(tasks, draw.FOUR, "FIFO-EXACT")
    table = cells.waits(s)
    mine = table[table["task"] == "T"].sort_values("release")
    assert mine["release"].tolist() == pytest.approx([0, 8, 30, 34])
    idle = (mine["send_start"].clip(upper=34) - mine["release"]).sum()
    use = cells.idle_use(s)
    assert use["idle"] == pytest.approx(34 + 26 + 4)
    assert use["used"] == pytest.approx(use["idle"] - idle)
    assert idle > 0


@pytest.mark.parametrize("role", cells.ROLES)
def test_used_time_is_part_of_the_idle_time(study, role):
    for order in ("FIFO", "EDF"):
        use = cells.idle_use(direct(study, 1.0, 0, cells.named(order, role)))
        assert -1e-9 <= use["used"] <= use["idle"] * (1 + 1e-9)
        if role not in (*cells.EARLY, "US"):
            assert use["used"] == pytest.approx(0, abs=1e-6)


def test_figure_1_shows_the_idle_time_it_says(study):
    # by hand: p = (36, 22, 10, 0); e = (0 + 14 + 26 + 36 + 40 * 5) / 4 = 69
    for name, policy in (("fig1a", "FIFO-OPR-MN"), ("fig1b", "FIDO-II")):
        iit.fig1(study, name, simulate(FIRST, draw.FOUR, policy))
    folder = study.results.folder / "data"
    waiting, used = (pd.read_csv(folder / f"{KEY}-fig1{part}.csv") for part in "ab")
    assert (waiting["last"] - waiting["release"]).sum() == pytest.approx(68)
    assert waiting["used"].sum() == pytest.approx(0)
    assert waiting["send_start"].min() == pytest.approx(36)
    assert waiting["compute_end"].max() == pytest.approx(36 + 40 / (1 - 0.8**4))
    assert used["used"].sum() == pytest.approx(68)
    assert used["compute_end"].tolist() == pytest.approx([69] * 4)


# ----------------------------------------------------------------------- measures


def test_the_realised_load_is_that_of_the_mean_size(study):
    loads = study.evidence.main.groupby("load")["realised_load"].mean()
    assert (loads / loads.index).tolist() == pytest.approx([REALISED] * len(LOADS), rel=0.1)


def test_names_are_those_of_the_table_of_policies():
    names = [*cells.both(cells.ROLES)]
    assert set(names) <= set(POLICIES)
    assert set(names) <= set(STYLES)
    assert len(set(names)) == 24


def test_steps_are_means_of_paired_differences(study):
    table = MEASURES[f"{KEY}-3"].function(study.evidence).set_index("point")
    ratios = [
        [direct(study, 1.0, k, name).reject_ratio for name in ("FIDO-I", "FIDO-II")]
        for k in range(3)
    ]
    wanted = mean_interval([a - b for a, b in ratios])
    row = table.loc["FIDO-I - FIDO-II, load 1"]
    assert tuple(row[["estimate", "low", "high"]]) == pytest.approx(wanted[:3], abs=1e-12)
    assert len(table) == 2 * len(LOADS)


def test_the_gain_rises_over_the_whole_axis(study):
    table = claims.gain_grows(study.evidence).set_index("point")
    gain = {
        tau: np.mean(
            [
                direct(study, 0.6, k, "EDF-DLT", tau).reject_ratio
                - direct(study, 0.6, k, "EDDO-II", tau).reject_ratio
                for k in range(3)
            ]
        )
        for tau in (8.0, 1.0)
    }
    got = table.loc["gain, tau 8 to 1, load 0.6", "estimate"]
    assert got == pytest.approx(gain[1.0] - gain[8.0], abs=1e-12)


def test_shares_are_ratios_of_mean_counts(study):
    table = MEASURES[f"{KEY}-2"].function(study.evidence).set_index("point")
    counts = [direct(study, 1.0, k, "FIFO-DLT").counts.loc["admitted"] for k in range(3)]
    want = sum(c["opt_iits_ii"] for c in counts) / sum(c["s_iits"] for c in counts)
    assert table.loc["load 1", "estimate"] == pytest.approx(want)
    assert table.loc["load 1", "low"] <= want <= table.loc["load 1", "high"]


def test_paired_and_unpaired_errors():
    frame = pd.DataFrame(
        {
            "load": 1.0,
            "replicate": [0, 1, 2] * 4,
            "policy": np.repeat(["FIFO-DLT", "FIDO-II", "EDF-DLT", "EDDO-II"], 3),
            "ratio": [0.1, 0.2, 0.3, 0.2, 0.1, 0.3] * 2,
        }
    )
    row = claims.less_refused(frame, {"II": "DLT"}, ["load"]).iloc[0]
    # by hand: differences -0.1, 0.1, 0 with deviation 0.1; both sides have deviation 0.1
    assert row["estimate"] == pytest.approx(0)
    assert row["standard_error"] == pytest.approx(0.1 / np.sqrt(3))
    assert row["unpaired_error"] == pytest.approx(np.sqrt(0.02 / 3))


def test_tasks_decided_differently_are_counted_one_by_one(study):
    table = claims.discordant(study.evidence.main)
    for order in ("FIFO", "EDF"):
        decided = {
            role: [
                direct(study, load, k, cells.named(order, role)).tasks["admitted"]
                for load in LOADS
                for k in range(3)
            ]
            for role in ("DLT", "EXACT-N", "AN", "OPR-FRAG")
        }
        for role, runs in decided.items():
            pairs = zip(runs, decided["DLT"], strict=True)
            apart = sum((one != other).sum() for one, other in pairs)
            assert table.loc[cells.named(order, role), "discordant"] == apart
        # without set-up costs all idle nodes are all nodes: claims 13a and 13b
        for one, other in zip(decided["AN"], decided["OPR-FRAG"], strict=True):
            assert one.equals(other)
    assert table.loc["FIFO-EXACT-N", "discordant"] > 0


def test_every_task_takes_one_branch_of_the_flow(study):
    table = draw.flow(study, 1.0)
    for role in ("I", "II"):
        column = table[role]
        assert column["arrived"] == column["refused"] + column["admitted"]
        assert column["admitted"] == column["idle time"] + column["no idle time"]
        assert column["idle time"] == column["constraint holds"] + column["remodelled"]
        assert (column >= 0).all()
    each = [direct(study, 1.0, k, "FIDO-II") for k in range(3)]
    assert table.loc["admitted", "II"] == sum(int(s.tasks["admitted"].sum()) for s in each)
    held = sum(int(s.counts.loc["admitted", "opt_iits_ii"]) for s in each)
    assert table.loc["constraint holds", "II"] == held


def test_pools_keep_the_order_that_is_proved(study):
    table = study.pools.set_index(["partition", "tau", "replicate", "nodes"])
    excess = table["excess"].unstack("partition")
    order = ["no idle time used", "remodel, estimate", "remodel, actual", "optimum"]
    for late, early in itertools.pairwise(order):
        assert (excess[late] >= excess[early] - 1e-12).all(), (late, early)
    assert (excess["optimum"] == 0).all()
    assert (excess["constraint 2"] >= -1e-12).all()
    admitted = table["admitted"].unstack("nodes")
    assert (admitted.diff(axis=1).iloc[:, 1:] >= 0).all().all()
    assert table["admitted"].between(0, 1).all()


# ----------------------------------------------------------------------- claims and readings


def test_every_claim_has_a_measure_and_a_verdict(study):
    listed = load_claims(KEY)
    assert all(claim.id in MEASURES or claim.statement or claim.reason for claim in listed)
    words = {verdict.claim.id.removeprefix(f"{KEY}-"): verdict for verdict in study.verdicts}
    assert len({name.rstrip("abc") for name in words}) == 15
    # theorems take the status of their statements: erratum 13 corrects Theorem 3
    assert [words[key].word for key in ("9a", "9b", "9c")] == ["holds", "holds", "in part"]
    assert words["8"].word == "in part"
    unknown = {name for name, verdict in words.items() if verdict.word == "cannot be checked"}
    assert unknown == {"13a", "13b"}


def test_other_readings_are_one_switch_each():
    known = iit.Study.SWITCHES
    assert alternatives[0] == {}
    assert len(alternatives) == 1 + sum(len(options) - 1 for options in known.values())
    twofold = [s for s in alternatives[1:] if len(s) != 1]
    assert twofold == [{"scope": "all", "count_single": "yes"}]


@pytest.mark.parametrize(
    "switches",
    [s for s in alternatives[1:] if "same_time" not in s],  # needs arrivals at starts
    ids=lambda s: ",".join(s),
)
def test_every_switch_changes_some_result(switches):
    """A switch that never changes anything would be no switch."""
    setting = cells.Setting(16, 100.0, 200.0, 2.0, 1_000_000.0)
    for seed, load in itertools.product(range(5), (1.0, 0.6)):
        key = np.random.SeedSequence(seed, spawn_key=(1,))
        rows = [
            cells.compare(
                load, 1.0, policies=cells.both(cells.ROLES), use=(), setting=setting,
                switches=reading, check_at=0.0, seed=key,
            )
            for reading in ({}, switches)
        ]  # fmt: skip
        if not pd.DataFrame(rows[0]).equals(pd.DataFrame(rows[1])):
            return
    pytest.fail(f"{switches} changed nothing")


@deep
def test_the_heat_map_begins_with_the_scorecard(study, monkeypatch):
    some = [{}, {"backfill": "on"}, *some_of(s for s in alternatives[1:] if "backfill" not in s)]
    monkeypatch.setattr(iit.Study, "alternatives", lambda *_: iter(some))
    table = study.by_reading
    own = {verdict.claim.id: str(verdict) for verdict in study.verdicts}
    assert table.columns[0] == "default"
    assert set(table.index) <= set(own)
    assert table.shape == (15, len(some))
    counted = [f"{KEY}-{number}" for number in (1, 2, 6, 15)]
    assert (table.loc[counted, "backfill=on"] == "cannot be checked").all()


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    frames = []
    for jobs, place in ((1, "one"), (2, "two")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DLSIM_CACHE", str(tmp_path / place))
            frames.append(iit.Study(runs=2, **{**SMALL, "jobs": jobs}).main(["FIDO-II"]).to_csv())
    assert frames[0] == frames[1]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"scale": "huge"}, "huge"),
        ({"clusters": (4, 4.5)}, "clusters must be a whole number, got 4.5"),
        ({"runs": -1}, "-1"),
        ({"taus": (1.0,)}, "taus"),
        ({"loads": ()}, "loads"),
        ({"loads": 0.5}, "loads"),
        ({"loads": (-1,)}, "loads must be a finite number above 0, got -1"),
        ({"clusters": (0,)}, "clusters must be a finite number above 0"),
        ({"dc_ratios": "12"}, "dc_ratios"),
        ({"mean": -5}, "mean must be a finite number above 0, got -5"),
        ({"dc_ratio": float("nan")}, "dc_ratio"),
        ({"cps": 0}, "cps must be a finite number above 0"),
        ({"runs": 1.5}, r"runs must be a whole number of at least 0 .*, got 1.5"),
        ({"jobs": -3}, "jobs"),
        ({"seed": -1}, "seed"),
        ({"reading": "x"}, "reading must be a mapping"),
        ({"nodes": 0}, "nodes"),
        ({"reading": {"lnik": "shared"}}, "lnik"),
        ({"reading": {"release": "never"}}, "never"),
        ({"counting": "guessed"}, "guessed"),
        ({"reading": {"counting": "rtgrid"}}, "counting"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(wrong, named):
    with pytest.raises(InputError, match=named):
        iit.Study(**wrong)


# ----------------------------------------------------------------------- pictures


@deep  # tests.test_mcdf executes one with all that these share
@pytest.mark.parametrize(
    "mine", [brought("EDF-EXACT-N"), {}], ids=["a policy and a workload brought", "of the paper"]
)
def test_the_notebook_says_the_verdicts_of_its_reading(tmp_path, mine):
    """What is brought is on every figure, and drawn on its workload to the map of readings."""
    given = {k: list(v) for k, v in SMALL.items() if k != "jobs"} | mine
    if mine:
        given["loads"] = [1.0, 3.0]  # where those who wait and those who do not differ
    out = tmp_path / "results"
    done = execute(f"30-{KEY}", out, **given, runs=2, reading={"backfill": "on"})
    assert unsaid(done, out / "data" / f"{KEY}-claims.csv") == []
    assert shown_beside_the_shipped(out, KEY, "backfill=on")
    pictures = {path.stem for path in (out / "figures").glob("*.png")}
    tables = {path.stem for path in (out / "data").glob("*.csv")}
    names = (
        "fig1a fig1b fig2 fig3a fig3b fig4 table1 feasible paired rivals use gain excess "
        "admission partitions gantt readings left"
    )
    assert pictures == {f"{KEY}-{name}" for name in names.split()}
    more = {f"{KEY}-{name}" for name in ("claims", "readings-intervals")}
    assert tables == pictures | more
    use = pd.read_csv(out / "data" / f"{KEY}-use.csv").set_index("policy")
    assert set(use.index) == {*cells.both(cells.USED), *(["mine"] if mine else [])}
    if mine:
        shown = "fig3b fig4:what paired:what rivals use gain gantt"
        assert shows_what_is_brought(out, KEY, "EDF-EXACT-N", shown)
    else:
        assert (use.loc[["FIFO-OPR-MN", "EDF-OPR-MN"], "estimate"].abs() < 1e-9).all()
        for name in ("fig3a", "fig3b"):
            table = pd.read_csv(out / "data" / f"{KEY}-{name}.csv")
            assert (table["realised_load"] / table["load"]).tolist() == pytest.approx(
                [REALISED] * len(table), rel=0.1
            )

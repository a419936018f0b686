"""Paper B's study: its measures against direct simulation and hand cases, its pictures."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.bricks import Environment, Reading, Scheduler, simulate, workload
from dlsim.errors import InputError
from dlsim.papers import bricks
from dlsim.papers.bricks import cells, claims, draw
from dlsim.papers.bricks.cells import SWITCHES, Kind
from dlsim.papers.bricks.study import SCALES, printed_table
from dlsim.study import pictures, sweeps, workers
from dlsim.study.claims import judge, load_claims
from dlsim.study.measure import MEASURES, ratio
from dlsim.study.stats import mean_interval
from dlsim.study.study import name_of
from tests.executed import execute, shown_beside_the_shipped, unsaid
from tests.scale import deep

KEY = "bricks"
alternatives = list(bricks.Study.alternatives())
SMALL = {
    "intervals": (60.0, 120.0), "opts": (0.5, 0.9), "fallbacks": (0, 1, 3), "nodes": (4, 75),
    "domains": 3,
}  # fmt: skip
HOURS = 4.0
#: The heat map is drawn of these; the notebook's has all.
SOME_READINGS = (
    {"load": "util"}, {"network": "packet"}, {"interval_scope": "system"}, {"H": 0.5},
    {"exclude_rejecting": True},
)  # fmt: skip


#: Claims of every kind of region.
REGIONS = ("bricks-1a", "bricks-2a", "bricks-2b", "bricks-8b", "bricks-11")


def shorten(patch):
    small = SCALES["quick"]._replace(hours=HOURS, front_hours=2.0, other_hours=2.0, other_runs=2)
    patch.setitem(SCALES, "quick", small)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        patch.setattr(bricks.Study, "alternatives", lambda *_: iter([{}, *SOME_READINGS]))
        yield bricks.Study(runs=3, jobs=1, out=str(tmp_path_factory.mktemp("b")), **SMALL)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def direct(replicate, interval, scheduler):
    """One run, computed without sweep, cells or claims."""
    seed = np.random.SeedSequence(0, spawn_key=(replicate,))
    env = Environment.random(seed, interval, horizon=HOURS * 3600, domains=3)
    return simulate(env, scheduler)


# ----------------------------------------------------------------------- Table 1


def test_the_defaults_of_the_simulator_are_table_1():
    table = printed_table()
    names = workload.draw.__kwdefaults__
    checked = 0
    for row in table.itertuples():
        if row.argument in names:
            default = names[row.argument]
            ends = default if isinstance(default, tuple) else (default, default)
            assert ends == (row.low, row.high), row.parameter
            checked += 1
    assert checked == 11
    assert len(table) == 15


def test_drawn_values_lie_in_their_printed_ranges(study):
    bricks.table1(study)
    table = pd.read_csv(study.results.folder / "data" / f"{KEY}-table1.csv")
    table = table[table["drawn_low"].notna() & (table["argument"] != "domains")]
    slack = 0.15 * table["argument"].isin(["lan", "wan"])  # means over a noisy trace
    assert (table["drawn_low"] >= table["low"] * (1 - slack) - 1e-9).all()
    assert (table["drawn_high"] <= table["high"] * (1 + slack) + 1e-9).all()
    assert len(table) == 9


# ----------------------------------------------------------------------- measures


def test_rows_are_those_of_direct_runs(study):
    rows = study.main.set_index(["interval", "replicate", "policy", "corrected", "fallbacks"])
    o = direct(1, 120.0, Scheduler("deadline", opt=0.9, load_correction=True, max_fallbacks=1))
    row = rows.loc[(120.0, 1, "D-0.9", 1, 1)]
    assert row["failure"] == o.failure_rate
    assert row["cost"] == pytest.approx(o.requests["cost"].mean())
    late = (o.requests["completion"] - o.environment.requests["deadline"]).clip(lower=0)
    assert row["tardiness"] == pytest.approx(late.mean() / 60)
    assert row["resubmitted"] == pytest.approx(len(o.attempts) / len(o.requests) - 1)


def test_claims_are_means_of_paired_differences(study):
    rates = [
        [
            direct(k, 60.0, Scheduler(load_correction=on)).failure_rate for on in (False, True)
        ]
        for k in range(3)
    ]  # fmt: skip
    wanted = mean_interval([a - b for a, b in rates])
    table = MEASURES["bricks-2a"].function(study.evidence).set_index("point")
    row = table.loc["Greedy x/x - L/x, interval 60"]
    assert tuple(row[["estimate", "low", "high"]]) == pytest.approx(wanted[:3], abs=1e-12)
    assert len(table) == 2 * 3 * 2  # versions, Greedy and two Opts, two Int


def test_costs_are_compared_relative_to_greedy(study):
    table = MEASURES["bricks-4"].function(study.evidence).set_index("point")
    ratio = [
        direct(k, 60.0, Scheduler("deadline", opt=0.5)).cost / direct(k, 60.0, Scheduler()).cost
        for k in range(3)
    ]
    want = 1 - np.mean(ratio)
    assert table.loc["D-0.5 x/x, interval 60", "estimate"] == pytest.approx(want)


def synthetic(failure):
    """Evidence made up by hand: two environments, one Int, from failures by (policy, c, n)."""
    rows = [
        {"interval": 60.0, "replicate": k, "policy": p, "corrected": c, "fallbacks": n,
         "failure": rate + shift, "cost": 100.0 * (1 + n), "requests": 100}
        for (p, c, n), rate in failure.items()
        for k, shift in enumerate((-0.01, 0.01))
    ]  # fmt: skip
    return claims.Evidence(pd.DataFrame(rows))


def test_measures_of_a_hand_case():
    names = ("Greedy", "D-0.5", "D-0.9")
    base = dict(zip(names, (0.4, 0.2, 0.3), strict=True))
    failure = {(p, c, n): base[p] / 2**n - 0.05 * c for p in names for c in (0, 1) for n in (0, 1)}
    failure |= {(p, 0, 3): base[p] / 8 for p in names}
    e = synthetic(failure)

    def got(number, point):
        measure = MEASURES[f"{KEY}-{number}"].function
        return measure(e).set_index("point").loc[point, "estimate"]

    assert got("1a", "Greedy x/x - x/F, interval 60") == pytest.approx(0.2)
    assert got("1b", "D-0.5, interval 60") == pytest.approx(0.5)
    assert got("2a", "D-0.9 x/F - L/F, interval 60") == pytest.approx(0.05)
    assert got("1b", "Greedy, corrected, interval 60") == pytest.approx(0.2 / 0.35)
    assert got("3", "x/x over opt, interval 60") == pytest.approx(0.1)
    assert got("5", "x/x over opt, interval 60") == 0
    assert got("6a", "D-0.5 L/x, interval 60") == pytest.approx(0.4 - 0.15)  # Greedy x/x
    assert got("6b", "D-0.5 x/F, interval 60") == -1
    assert got("7a", "Greedy, interval 60") == pytest.approx(0.875)
    assert got("7b", "Greedy, interval 60") == pytest.approx(0.75)
    assert got("8a", "Greedy, interval 60") == pytest.approx(3.0)
    assert got("9", "failure, 3 fallbacks, interval 60") == pytest.approx(0.1 / 8)


def test_lateness_is_the_ratio_of_means():
    frame = pd.DataFrame(
        {"replicate": [0, 1], "policy": "a", "tardiness": [2.0, 4.0], "failure": [0.1, 0.3]}
    )
    assert ratio(frame, "tardiness", "failure", ["policy"])["estimate"].item() == pytest.approx(
        6 / 0.4
    )


def test_background_models_are_counted():
    trace, jobs = (
        cells.background(m, switches={}, seed=np.random.SeedSequence(3))
        for m in ("trace", "extraneous")
    )
    assert trace["servers"] == trace["links"] == 360  # one entry in ten seconds
    # by hand: 0.1 of 300 Mops/s in jobs of 50 Mops is 0.6 a second
    assert jobs["servers"] == pytest.approx(0.6 * 3600, rel=0.25)
    assert jobs["links"] > 20 * trace["links"]
    assert jobs["spread"] > 1 > trace["spread"]


def test_extraneous_users_are_timed_against_traces():
    rows = cells.timed("links", switches={}, seed=np.random.SeedSequence(3))
    seconds = {row["model"]: row["seconds"] for row in rows}
    assert seconds["extraneous"] > seconds["trace"] > 0


def test_background_models_without_load_and_noise_are_counted():
    seed = np.random.SeedSequence(3)
    still = {"server_load": 0.0, "trace_std": 0.0, "trace_step": 60.0}
    trace, jobs = (cells.background(m, switches=still, seed=seed) for m in ("trace", "extraneous"))
    assert trace == {"servers": 0, "links": 60, "spread": 0}
    assert jobs["servers"] == 0 < jobs["links"]


# ----------------------------------------------------------------------- fronts, bills, logs


def test_the_front_is_the_lower_hull():
    rows = pd.DataFrame({"cost": [1.0, 2.0, 3.0, 2.0], "failure": [0.4, 0.3, 0.0, 0.9]})
    assert claims.on_front(rows, 2.0) == (pytest.approx(0.2), True)
    assert claims.on_front(rows, 0.5) == (pytest.approx(0.4), False)
    assert claims.on_front(rows, 9.0) == (pytest.approx(0.0), False)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=8))
def test_no_fixed_opt_lies_below_the_front(found):
    rows = pd.DataFrame(found, columns=["cost", "failure"], dtype=float)
    for cost, failure in found:
        at, inside = claims.on_front(rows, cost)
        assert inside
        assert at <= failure + 1e-9


def test_bills_of_a_hand_case():
    servers = pd.DataFrame({"domain": [0], "performance": [1200.0]})
    requests = pd.DataFrame(
        {"time": [0.0, 1.0], "client": 0, "send": 0.0, "recv": 0.0, "work": [12_000.0, 36_000.0],
         "deadline": 100.0}
    )  # fmt: skip
    clients = pd.DataFrame({"domain": [0]})
    env = Environment(servers, clients, np.full((1, 4, 1), 100.0), 10.0, requests)
    o = simulate(env, Scheduler())
    # the second arrives while the first (0 to 10 s) is served: one waits there
    assert cells.waiting(o).tolist() == [0, 1]
    bill = cells.bills(o)
    assert bill["speed of the server"] == pytest.approx(4)
    assert bill["per second, as speed"] == pytest.approx(1)
    assert bill["per second, premium"] == pytest.approx(2)
    assert bill["per second, spot"] == pytest.approx((12 + 2 * 36) / 48)


def test_a_buyer_takes_the_cheapest_server_in_time():
    # 20, 10 and 5 seconds of work: with a premium for speed the slowest in time is cheapest
    servers = pd.DataFrame({"domain": 0, "performance": [100.0, 200.0, 400.0]})
    requests = pd.DataFrame(
        {"time": [0.0, 1000.0, 2000.0], "client": 0, "send": 0.0, "recv": 0.0, "work": 2000.0,
         "deadline": [30.0, 1015.0, 2001.0]}
    )  # fmt: skip
    clients = pd.DataFrame({"domain": [0]})
    env = Environment(servers, clients, np.full((1, 4, 1), 100.0), 10.0, requests)
    o = simulate(env, Scheduler(cells.cheapest("per second, premium", 1.0)))
    assert o.requests["server"].tolist() == [0, 1, 2]


def test_traffic_of_figure_1(study):
    o = direct(0, 60.0, Scheduler(max_fallbacks=1))
    n = draw.traffic(o)
    assert n["submissions"] == n["requests"] + n["fallbacks"] == len(o.attempts)
    assert n["links"] == 12


# ----------------------------------------------------------------------- claims and readings


def test_every_claim_has_a_measure_and_a_verdict(study):
    listed = load_claims(KEY)
    assert all(claim.id in MEASURES for claim in listed)
    names = [verdict.claim.id.removeprefix(f"{KEY}-") for verdict in study.verdicts]
    assert {int(name.rstrip("ab")) for name in names} == set(range(1, 13))
    assert all(verdict.word != "cannot be checked" for verdict in study.verdicts)


def test_other_readings_are_one_switch_each():
    known = SWITCHES
    assert alternatives[0] == {}
    assert len(alternatives) == 1 + sum(len(options) - 1 for options in known.values())
    names = [name_of(switches) for switches in alternatives]
    assert len(set(names)) == len(names)
    assert all(switches in alternatives for switches in SOME_READINGS)
    assert all(bricks.Study(reading=switches).switches == switches for switches in alternatives)
    split = cells.split_switches({"load": "util", "H": 0.5, "exclude_rejecting": True})
    assert split == (Reading(load="util"), {"H": 0.5}, {"exclude_rejecting": True})


@deep
def test_the_heat_map_begins_with_the_scorecard(study):
    table = study.by_reading
    own = {verdict.claim.id: str(verdict) for verdict in study.verdicts}
    words = table["default"].str.removesuffix(" ").str.replace(r" \d+/\d+$", "", regex=True)
    assert words.to_dict() == {key: own[key] for key in table.index}
    assert table.columns.tolist() == ["default", *map(name_of, SOME_READINGS)]
    # CPU times are the machine's
    assert table.index.tolist() == [c.id for c in load_claims(KEY) if c.id != f"{KEY}-12a"]


@deep
def test_every_verdict_under_a_reading_stands_beside_its_interval(study):
    table = study.judged_readings.set_index(["reading", "claim"])
    measured = table[table["runs"] > 0]
    assert not (measured["low"] > measured["mean"]).any()
    own = {verdict.claim.id: verdict for verdict in study.verdicts}
    for name in table.loc["default"].index:
        row = table.loc[("default", name)]
        assert (row["verdict"], row["reason"]) == (own[name].word, own[name].reason)
        if "weakest at" in own[name].statistic:
            assert f"weakest at {row['point']}: " in own[name].statistic
    first, *others = bricks.table_readings(study).columns[1:]
    assert first == "this run: default"
    assert {"default", "load=util", "network=packet"} < set(others)


def test_all_readings_have_the_grid_and_the_environments_of_the_first(study):
    keys = ["policy", "corrected", "fallbacks", "replicate", "requests"]
    own, other = study.evidence, study.measure({"load": "util"})
    for name, place in (("main", "interval"), ("causes", "condition"), ("sizes", "value")):
        one, two = (getattr(e, name)[[place, *keys]] for e in (own, other))
        pd.testing.assert_frame_equal(one, two)
    pd.testing.assert_frame_equal(study.measure({}).main, own.main)  # three runs are few too
    assert other.seconds is None


def test_other_causes_and_sizes_are_those_of_direct_runs(study):
    e = study.measure({"load": "util"})
    table = claims.large_systems(e).set_index("point")
    assert table.index.str.endswith("nodes 75").all()
    rates = []
    for k in range(3):
        seed = np.random.SeedSequence(0, spawn_key=(k,))
        env = Environment.random(seed, 60.0, horizon=7200.0, domains=10)
        both = [Scheduler(load_correction=on) for on in (False, True)]
        rates.append([simulate(env, s, Reading(load="util")).failure_rate for s in both])
    want = np.mean([a - b for a, b in rates])
    assert table.loc["Greedy x/x - L/x, nodes 75", "estimate"] == pytest.approx(want, abs=1e-12)
    assert e.causes["condition"].unique().tolist() == list(cells.CONDITIONS)


@given(
    st.lists(
        st.tuples(st.integers(-6, 6), st.integers(0, 3)).filter(lambda one: one != (0, 0)),
        min_size=1, max_size=6,
    ),
    st.sampled_from([claim for claim in load_claims(KEY) if claim.id in REGIONS]),
)  # fmt: skip
def test_the_weakest_point_decides(found, claim):
    """All holds exactly if it does."""
    middle, half = np.array(found).T / 50
    table = pd.DataFrame(
        {"point": range(len(found)), "estimate": middle, "low": middle - half,
         "high": middle + half}
    )  # fmt: skip
    verdict = judge(table, claim)
    alone = judge(table[table["point"] == verdict.weakest["point"]], claim)
    assert (verdict.word == "holds") == (alone.word == "holds")


def test_costs_are_weighted_by_work_too(study):
    o = direct(1, 120.0, Scheduler("deadline", opt=0.9, max_fallbacks=1))
    rows = study.main.set_index(["interval", "replicate", "policy", "corrected", "fallbacks"])
    assert rows.loc[(120.0, 1, "D-0.9", 0, 1), "work_cost"] == o.work_weighted_cost != o.cost


def test_further_mechanisms_are_those_of_direct_runs(study):
    keys = ["network", "mechanism", "replicate", "policy", "corrected", "fallbacks"]
    rows = study.extras.set_index(keys)
    seed = np.random.SeedSequence(0, spawn_key=(1,))
    env = Environment.random(seed, 60.0, horizon=7200.0, domains=3)
    late = simulate(env, Scheduler(max_fallbacks=1, fallback_slack=300.0))
    assert rows.loc[("fluid", "slack 300", 1, "Greedy", 0, 1), "failure"] == late.failure_rate
    both = Scheduler(max_fallbacks=1, load_correction=True, correct_links=True)
    o = simulate(env, both, Reading(network="packet"))
    assert rows.loc[("packet", "links", 1, "Greedy", 1, 1), "cost"] == o.cost


def test_schedulers_of_legends():
    assert cells.scheduler_of(Kind("D-0.7", 1, 2)) == Scheduler(
        "deadline", opt=0.7, load_correction=True, max_fallbacks=2
    )
    assert {cells.version(*v) for v in cells.VERSIONS.values()} == set(cells.VERSIONS)
    assert all(callable(cells.scheduler_of(Kind(name)).algorithm) for name in cells.TUNERS)
    with pytest.raises(InputError, match="Lazy"):
        cells.scheduler_of(Kind("Lazy"))


def test_results_do_not_depend_on_the_number_of_processes():
    workers.close()
    frames = []
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        for name in ("START_SECONDS", "USE_SECONDS", "BATCH_SECONDS"):  # however little there is
            patch.setattr(sweeps, name, 0.0)
        fresh = functools.partial(sweeps.sweep, cache=False)
        patch.setattr("dlsim.study.study.sweep", fresh)
        for jobs in (1, 2):
            frames.append(bricks.Study(runs=4, jobs=jobs, **SMALL).main.to_csv())
            assert workers.is_open() == (jobs > 1)
    workers.close()
    assert frames[0] == frames[1]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"scale": "huge"}, "huge"),
        ({"intervals": 60.0}, "intervals must be one value or more"),
        ({"fallbacks": (0, 1, 2.5)}, "fallbacks must be a whole number, got 2.5"),
        ({"fallbacks": (0, 1, 2, -1)}, "fallbacks must be a whole number of at least 0, got -1"),
        ({"runs": -1}, "-1"),
        ({"intervals": ()}, "intervals"),
        ({"intervals": (0.0,)}, "interval"),
        ({"opts": (0.5,)}, "opts"),
        ({"opts": (0.5, 1.5)}, "opt"),
        ({"fallbacks": (0, 1)}, "fallbacks"),
        ({"domains": 0}, "domains"),
        ({"nodes": (5,)}, "nodes"),
        ({"reading": {"laod": "util"}}, "laod"),
        ({"reading": {"load": "guessed"}}, "guessed"),
        ({"reading": {"H": 2.0}}, "H"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(wrong, named):
    with pytest.raises(InputError, match=named):
        bricks.Study(**wrong)


# ----------------------------------------------------------------------- pictures


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook, run at a small size."""
    folder = tmp_path_factory.mktemp("notebook")
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in SMALL.items()}
    given |= {"intervals": [120], "domains": 1, "runs": 2, "reading": {"load": "util"}}
    return execute(f"60-{KEY}", folder, **given), folder


@deep  # tests.test_mcdf executes one with all that these share
def test_the_notebook_leaves_every_picture_and_its_numbers(executed):
    done, out = executed
    pictures = {path.stem for path in (out / "figures").glob("*.png")}
    tables = {path.stem for path in (out / "data").glob("*.csv")}
    names = (
        "fig1 fig2 fig3 fig4 fig5 fig6 paired magnitude drivers correction pareto economy "
        "background readings mechanisms herding foretold rivals left"
    )
    assert pictures == {f"{KEY}-{name}" for name in names.split()}
    others = ("table1", "tuning", "claims", "readings-intervals", "seconds")
    assert tables == pictures | {f"{KEY}-{name}" for name in others}
    assert unsaid(done, out / "data" / f"{KEY}-claims.csv") == []
    assert shown_beside_the_shipped(out, KEY, "load=util")


@deep
def test_figure_3_is_that_of_direct_runs(executed):
    _, out = executed
    table = pd.read_csv(out / "data" / f"{KEY}-fig3.csv")
    row = table.query("interval == 120 and policy == 'D-0.5' and version == 'x/F'")
    rates = []
    for k in range(2):
        seed = np.random.SeedSequence(0, spawn_key=(k,))
        env = Environment.random(seed, 120.0, horizon=24 * 3600, domains=1)
        o = simulate(env, Scheduler("deadline", opt=0.5, max_fallbacks=1), Reading(load="util"))
        rates.append(o.failure_rate)
    assert row["estimate"].item() == pytest.approx(np.mean(rates))


def test_drawings_take_a_study(study, monkeypatch):
    monkeypatch.setattr(pictures, "_DPI", 40)
    for name in bricks.__all__:
        if name.startswith(("fig", "table", "verdicts")):
            assert getattr(bricks, name)(study) is not None

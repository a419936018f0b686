"""Paper C's study: its measures against direct simulation and hand cases, its pictures."""

import itertools
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dlsim import cpugpu
from dlsim.cpugpu import POLICIES, History, Machine, Reading, simulate, workload
from dlsim.cpugpu.gpu import Cut
from dlsim.cpugpu.mapdata import words_of
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.slots import run_slots
from dlsim.cpugpu.split import ideal_split
from dlsim.errors import InputError
from dlsim.papers import cpu_gpu as cg
from dlsim.papers.cpu_gpu import cells, claims, draw
from dlsim.papers.cpu_gpu.study import SCALES
from dlsim.study.claims import load_claims
from dlsim.study.figures import load_figures
from dlsim.study.measure import MEASURES
from dlsim.study.style import STYLES
from tests.executed import execute, shown_beside_the_shipped, unsaid
from tests.scale import deep, some_of

KEY = "cpu-gpu"
alternatives = list(cg.Study.alternatives())
MIXES = ("lee", "gpuheavy")
SMALL = {"mixes": MIXES, "queue": 8, "batches": 3, "apps": 5, "jobs": 1}
SETTING = cells.Setting(1, 1, 5, 8, 3, 0.1, 0.02, 5.0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        small = SCALES["quick"]._replace(draws=5, words=300)
        patch.setitem(SCALES, "quick", small)
        study = cg.Study(runs=3, out=str(tmp_path_factory.mktemp("cpu-gpu")), **SMALL)
        assert study.size.words == 300  # cached from here on
    return study


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def key(replicate=0, seed=0):
    return np.random.SeedSequence(seed, spawn_key=(replicate,))


def batches(mix, replicate):
    """The jobs of a replicate, drawn without sweep or cells."""
    table = workload.applications(mix, 5, key(replicate))
    drawn = workload.draw(table, 8, key(replicate), 0.1, 0.02, 5.0, batches=3)
    return table, [part for _, part in drawn.groupby("batch")]


def direct(mix, replicate, policy):
    """The schedules of a replicate, one batch after another."""
    known, schedules = None, []
    for part in batches(mix, replicate)[1]:
        schedules.append(simulate(part, Machine(1, 1), policy, known))
        known = schedules[-1].history
    return schedules


# ----------------------------------------------------------------------- drawings


def test_figure_3_counts_words_as_by_hand():
    steps = draw.flow_of()
    found = sorted(line for box in steps["reduce"] for line in box.split("\n"))
    assert found == ["dog 1", "fox 2", "quick 1", "the 3"]
    assert steps["split"] == ["the quick", "fox the dog", "the fox"]
    pairs = [line for box in steps["partition, sort"] for line in box.split("\n")]
    assert Counter(pairs) == {"the 1": 3, "fox 1": 2, "dog 1": 1, "quick 1": 1}
    for box in steps["partition, sort"]:
        assert box.split("\n") == sorted(box.split("\n"))


def test_hadoop_schedulers_end_as_by_hand():
    # specification of paper C, section 10, case 10
    names = pd.Index(["A", "B", "C"], name="job")
    three = {"tasks": [8, 4, 4], "queue": ["x", "x", "y"], "share": [0.25, 0.25, 0.75]}
    ends = {name: run_slots(pd.DataFrame(three, names), 4, name).jobs["end"].tolist()
            for name in ("fifo", "fair", "capacity")}  # fmt: skip
    assert ends == {"fifo": [2, 3, 4], "fair": [4, 4, 4], "capacity": [3, 4, 2]}


def test_torque_is_the_preferred_device_on_one_machine():
    assert POLICIES["torque"] == POLICIES["preferred"]
    assert set(cells.ONLINE) <= set(POLICIES) & set(STYLES)


# ----------------------------------------------------------------------- cells


@pytest.mark.parametrize("policy", ["history", "rsc", "preferred"])
def test_batches_are_those_of_direct_simulation(study, policy):
    main = study.evidence.main
    for mix, replicate in itertools.product(MIXES, (0, 2)):
        rows = main[
            (main["mix"] == mix) & (main["replicate"] == replicate) & (main["policy"] == policy)
        ]
        found = [s.makespan for s in direct(mix, replicate, policy)]
        assert rows["makespan"].tolist() == pytest.approx(found)


def test_unfair_jobs_are_counted():
    rows = pd.DataFrame(
        cells.fairness("lee", 0.1, significant=0.1, setting=SETTING, switches={}, seed=key())
    ).set_index(["fair", "above"])
    schedules = direct("lee", 0, "history")
    for fair in cells.FAIR:
        judged = pd.concat([s.fairness(fair).jobs for s in schedules])
        assert rows.loc[(fair, 0.0), "share"] == pytest.approx(judged["late"].mean())
        alone = judged["late"] & (judged["excuse"] == "")
        assert rows.loc[(fair, 0.0), "unexcused"] == pytest.approx(alone.mean())
        assert (rows.loc[fair, "share"].diff().dropna() <= 1e-12).all()


def test_exact_history_without_noise_is_fair_in_the_first_sense():
    # property P2 of the specification
    table = workload.applications("wide", 6, 3)
    jobs = workload.draw(table, 30, 3, cv=0.0, outliers=0.0)
    s = simulate(jobs, Machine(1, 1), "history", History.exact(table))
    assert s.fairness("local").is_fair


def test_the_base_is_the_class_whose_times_the_mixes_draw():
    tables = [workload.applications("wide", 200, 1, base=base) for base in ("cpu", "gpu")]
    for base, table in zip(("cpu", "gpu"), tables, strict=True):
        assert table[f"{base}_time"].between(*workload.BASE).all()
    gains = [(table["cpu_time"] / table["gpu_time"]).tolist() for table in tables]
    assert gains[0] == pytest.approx(gains[1])


def test_right_first_samples_do_no_harm():
    given = {"setting": SETTING, "switches": {}, "seed": key()}
    rows = cells.poison("lee", 1.0, poisoned="all", **given)
    table, _ = batches("lee", 0)
    parts = cells.batches_of(table, SETTING._replace(outliers=0.0), key())
    found = list(cells.follow(parts, SETTING, "history", Reading(), History.exact(table)))
    assert [row["makespan"] for row in rows] == pytest.approx([s.makespan for s in found])
    one, every = (
        sum(row["makespan"] for row in cells.poison("lee", 100.0, poisoned=which, **given))
        for which in cells.SWITCHES["poisoned"]
    )
    assert sum(row["makespan"] for row in rows) < one < every


def test_without_outliers_nothing_has_to_be_smoothed_out():
    calm, often = (
        cells.outlying("wide", setting=SETTING._replace(outliers=p), switches={}, seed=key())
        for p in (0.0, 0.5)
    )
    assert [(row["batch"], row["excess"]) for row in calm] == [(1, 0.0), (2, 0.0)]
    assert [row["excess"] != 0 for row in often] == [False, True]


def test_nobody_beats_the_exhaustive_schedule(study):
    assert (study.evidence.ideal[["makespan", "completion"]] >= -1e-12).all().all()


def test_a_cold_batch_of_equal_speed_ups_has_no_slower_surprise():
    rows = cells.break_even(
        0.0, 4, policies=("history", "gpu-only"), setting=SETTING, switches={}, seed=key()
    )
    assert [row["policy"] for row in rows] == ["history", "gpu-only"]
    assert rows[0]["makespan"] < rows[1]["makespan"]  # two devices, the slower half as fast


# ----------------------------------------------------------------------- systems


def test_pipelines_follow_the_closed_forms():
    # specification, P4: C = 24 chunks of (2, 2, 2): S = 6, X = 2
    rows = pd.DataFrame(cells.pipeline("balanced", chunks=24, cv=0.0, seed=key()))
    two = rows[rows["engines"] == 2].set_index("streams")["makespan"]
    assert two[1] == pytest.approx(24 * 6)
    assert two[2] == pytest.approx(11 * 6 + 6 + 2)
    assert two[3] == two[4] == pytest.approx(6 + 23 * 2)
    assert rows["use"].tolist() == pytest.approx((48 / rows["makespan"]).tolist())


def test_the_scheduled_order_loses_nothing_where_times_are_their_means():
    given = {"profile": "balanced", "chunks": 9, "draws": 1, "seed": key()}
    for queues, engines in itertools.product(("per-engine", "single"), (1, 2)):
        mean, other = (
            {row["order"]: row["slowdown"] for row in cells.issue(queues, engines, cv=cv, **given)}
            for cv in (0.0, 0.3)
        )
        assert mean["scheduled"] == pytest.approx(1.0)
        assert (other["scheduled"] > 1.01) == (engines == 1)  # planned without knowing them


def test_an_outsider_keeps_the_optimiser_from_its_ideal():
    # the rounds approach max(T, a): by hand from the shares' fixed point
    rows = cells.adapt("an outsider", devices=3, rounds=60, seed=key(1))
    source = np.random.default_rng(key(1))
    unit = np.exp(source.uniform(np.log(0.5), np.log(5), 3))
    ideal = 100 / (1 / unit).sum()
    fixed = 0.3 * ideal * source.random(3)
    fixed[-1] = 3 * ideal
    time = ideal_split(100.0, fixed.tolist(), unit.tolist()).time
    assert rows[-1]["excess"] == pytest.approx(fixed[-1] / time - 1, rel=1e-3)
    assert cells.adapt("no start-up", devices=3, rounds=3, seed=key(1))[-1]["excess"] < 1e-9


def test_memory_is_never_exceeded_and_modes_follow_the_sizes():
    table = cells.memory().set_index("size")
    # 1.25 units for each unit of input: in core up to 0.8, in the host up to 6.4
    assert table["mode"].tolist() == ["in-core"] * 2 + ["out-of-core"] * 3 + ["disk"] * 3
    assert (table[["gpu", "host"]] <= 1).all().all()
    assert table["mapped"].tolist() == pytest.approx([1.0] * len(table))


def test_peaks_count_chunks_that_are_there_at_once():
    chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    for streams, most in ((1, 1), (2, 2), (3, 2)):
        t = run_chunks(chunks, Gpu(streams))
        peaks = cells.peaks(Cut(chunks, "out-of-core", 0, 4.0), t, 0.5)
        assert peaks == {"gpu": most * 6.0, "host": 5 * 6.0}


def test_words_are_counted_from_the_text_given():
    text = "a b a c " * 40
    fixed = {"words": 10, "text": text, "policy": "history", "seed": key()}
    (own,) = cells.count_words("both", 2, 3, **fixed)
    assert own["throughput"] * own["makespan"] == pytest.approx(len(text) / 1000)
    drawn = words_of(cells.zipf_text(2000, 1))
    assert len(drawn) == 2000
    (_, first), (_, second) = Counter(drawn).most_common(2)
    assert 1.3 < first / second < 3  # 1/1 against 1/2


# ----------------------------------------------------------------------- measures


def batch_frame(values):
    """mix, replicate, policy, batch, makespan from {policy: batches}, the same twice."""
    return pd.DataFrame(
        [("m", r, policy, b, x) for r in (0, 1) for policy, own in values.items()
         for b, x in enumerate(own)],
        columns=["mix", "replicate", "policy", "batch", "makespan"],
    )  # fmt: skip


def evidence(**frames):
    return claims.Evidence(**{**dict.fromkeys(claims.Evidence._fields), **frames})


def test_savings_and_learning_by_hand():
    frame = batch_frame({"history": [30, 10, 11, 9], "mct": [10] * 4, "gpu-only": [25] * 4})
    e = evidence(main=frame)
    assert MEASURES["cpu-gpu-2a"].function(e)["estimate"].tolist() == pytest.approx([1 - 60 / 100])
    row = claims.improves(e).iloc[0]
    # least squares of 3, 1, 1.1, .9 over 0, 1, 2, 3, times 3
    assert row["estimate"] == pytest.approx(-3 * (-1.5 * 3 - 0.5 * 1 + 0.5 * 1.1 + 1.5 * 0.9) / 5)
    assert (row["point"], row["steps"], row["wrong"]) == ("fall, mix m", 3, 1)
    assert claims.improves(e, since=1).iloc[0]["estimate"] == pytest.approx(0.1)
    assert claims.improves(e, since=3).empty  # one batch is no way


def test_break_even_needs_to_stay():
    assert claims.first_stay(pd.Series([False, True, False, True, True])) == "4"
    assert claims.first_stay(pd.Series([True, True])) == "1"
    assert claims.first_stay(pd.Series([True, False])) == "never"


def test_gain_is_over_the_best_rival_in_the_mix_that_other_queues_choose():
    rows = [
        (mix, 0.0, r, name, x)
        for r in range(4)
        for mix, times in (
            (
                "a",
                {"torque-strict": 30, "torque": 20, "mct": 12, "flexible": 10 + r % 2, "area": 8},
            ),
            ("b", {"torque-strict": 30, "torque": 11, "mct": 12, "flexible": 10, "area": 10}),
        )
        for name, x in times.items()
    ]
    frame = pd.DataFrame(rows, columns=["mix", "error", "replicate", "scheduler", "makespan"])
    table = claims.greatest_gain(evidence(moulded=frame)).set_index("scheduler")
    assert table["estimate"].to_dict() == pytest.approx({"flexible": 12 / 11 - 1, "area": 0.5})
    assert table["mix"].tolist() == ["a", "a"]
    every = claims.throughput_gain(evidence(moulded=frame)).set_index(["scheduler", "mix"])
    assert every.loc[("area", "b"), "estimate"] == pytest.approx(0.1)


def test_wrong_samples_are_compared_with_right_ones(study):
    table = claims.excess_of_poison(study.evidence.poisoned)
    assert set(table["wrong"]) == {5.0, 20.0, 100.0}
    frame = study.evidence.poisoned.set_index(["mix", "wrong", "replicate", "batch"])["makespan"]
    row = table.iloc[-1]
    place = (row["mix"], row["replicate"], row["batch"])
    wrong, right = (frame[(place[0], x, *place[1:])] for x in (row["wrong"], 1.0))
    assert row["excess"] == pytest.approx(wrong / right - 1)


def test_the_cost_of_errors_has_the_right_sign(study):
    table = claims.tolerates_errors(study.evidence).set_index(["policy", "mix"])
    sums = {
        error: frame[(frame["policy"] == "rsc") & (frame["mix"] == "lee")]["makespan"].sum()
        for error, frame in ((0.0, study.evidence.main), (0.2, study.evidence.wrong))
    }
    assert table.loc[("rsc", "lee"), "estimate"] == pytest.approx(sums[0.2] / sums[0.0] - 1)


def test_every_claim_has_a_measure_and_a_verdict(study):
    listed = load_claims(KEY)
    numbers = {claim.id.removeprefix(f"{KEY}-").rstrip("ab") for claim in listed}
    assert numbers == {str(number) for number in range(1, 19)}
    unmeasured = {claim.id for claim in listed if claim.id not in MEASURES}
    assert unmeasured == {claim.id for claim in listed if "by construction" in claim.reason}
    assert unmeasured == {v.claim.id for v in study.verdicts if "by construction" in v.reason}
    assert unmeasured == {f"{KEY}-{number}" for number in (5, 16, 17)}
    quoted = {claim.id for claim in listed if claim.whose == "quoted"}
    assert quoted == {f"{KEY}-{number}" for number in ("2a", "2b", "8a", "8b", "9", "10b")}


def test_the_inventory_names_what_runs_and_what_shows_it():
    table = cg.inventory()
    assert table.index.tolist() == list(range(1, 23))
    shown = {row.id.removeprefix(f"{KEY}-") for row in load_figures()[1] if row.paper == KEY}
    assert set(table["shown by"]) <= {*shown, *cg.__all__, ""}
    assert table["mechanism"].is_unique


def test_an_inventory_of_what_is_not_there_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "mechanisms.csv"
    path.write_text("mechanism,section,runs in,shown by\na dream,8,rules.rule_6,\n")
    monkeypatch.setattr(draw, "shared_file", lambda name: path)
    with pytest.raises(InputError, match="rule_6"):
        draw.inventory()


# ----------------------------------------------------------------------- readings, input


@deep
def test_the_heat_map_begins_with_the_scorecard(study, monkeypatch):
    some = [{}, *some_of(alternatives[1:])]
    monkeypatch.setattr(cg.Study, "alternatives", lambda *_: iter(some))
    table = study.by_reading
    own = {verdict.claim.id: str(verdict) for verdict in study.verdicts}
    found = {name: cell.split(" ")[:1] for name, cell in table["default"].items()}
    assert found == {name: own[name].split(" ")[:1] for name in table.index}
    assert table.shape == (14, len(some))


#: What a switch that is not the engine's changes, and nothing else of what is measured.
CHANGED = {"poisoned": "poisoned", "significant": "fair"} | dict.fromkeys(
    ("exponent", "both", "nodes"), "moulded"
)


@pytest.mark.parametrize(
    "switches", alternatives[1:], ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items())
)
def test_every_switch_changes_what_it_concerns(study, switches):
    own, other = (e._asdict() for e in (study.evidence, study.measure(switches)))
    changed = {
        name for name, frame in other.items() if frame is not None and frame is not own[name]
    }
    (switch,) = switches
    if switch in CHANGED:
        assert changed == {CHANGED[switch]}
        assert not own[CHANGED[switch]].equals(other[CHANGED[switch]])
        return
    assert changed == {"main", "fair", "outlying", "poisoned"} | (
        {"moulded"} if switch == "base" else set()
    )


@pytest.mark.parametrize(
    "switches", [s for s in alternatives[1:] if not {*s} & {*CHANGED}], ids=str
)
def test_every_switch_of_the_engine_and_the_base_change_some_result(switches):
    for replicate in range(6):
        hows = [cg.Study(**SMALL).given_to(cells.compare, given) for given in ({}, switches)]
        seed = key(replicate + 1)
        frames = [
            cells.compare("wide", 0.0, policies=("history",), seed=seed, **how) for how in hows
        ]
        if not frames[0].equals(frames[1]):
            return
    pytest.fail(f"{switches} changed nothing")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"scale": "huge"}, "huge"),
        ({"mixes": "balanced"}, "mixes must be a list of names; got 'balanced'"),
        ({"runs": -1}, "-1"),
        ({"mixes": ()}, "mixes"),
        ({"mixes": ("lea",)}, "lea"),
        ({"gpus": 0}, "gpus"),
        ({"batches": 1}, "batches"),
        ({"reading": {"both_fre": "best"}}, "both_fre"),
        ({"reading": {"both_free": "worst"}}, "worst"),
        ({"reading": {"base": "both"}}, "base"),
        ({"reading": {"nodes": 3}}, "nodes"),
        ({"cv": -1.0}, "cv"),
        ({"nodes": 0}, "nodes"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(wrong, named):
    with pytest.raises(InputError, match=named):
        cg.Study(**wrong)


def test_a_text_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"no-such\.txt"):
        _ = cg.Study(text="no-such.txt", **SMALL).words


def test_the_engine_offers_its_rooms():
    assert all(getattr(cpugpu, name) is not None for name in cpugpu.__all__)
    with pytest.raises(AttributeError, match="no_such"):
        _ = cpugpu.no_such


# ----------------------------------------------------------------------- pictures


@deep  # tests.test_mcdf executes one with all that these share
def test_the_notebook_runs_and_leaves_every_picture(tmp_path):
    (tmp_path / "own.txt").write_text("to be or not to be " * 20)
    given = {"mixes": ["lee"], "queue": 6, "batches": 2, "apps": 3, "runs": 2}
    given["reading"] = {"both_free": "best"}
    given["text"], out = str(tmp_path / "own.txt"), tmp_path / "results"
    done = execute(f"50-{KEY}", out, **given)
    pictures = {path.stem for path in (out / "figures").glob("*.png")}
    names = (
        "fig1 fig2 fig3 amdahl assumption even fairness gantt ideal issue judged learning "
        "left mapreduce memory moulding nodes optimiser overlap poison readings savings slots "
        "tradeoff"
    )
    assert pictures == {f"{KEY}-{name}" for name in names.split()}
    assert unsaid(done, out / "data" / f"{KEY}-claims.csv") == []
    tables = {path.stem for path in (out / "data").glob("*.csv")}
    others = ("claims", "break-even", "variants", "readings-intervals")
    assert tables == pictures | {f"{KEY}-{name}" for name in others}
    assert shown_beside_the_shipped(out, KEY, "both_free=best")

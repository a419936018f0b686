"""The measures of paper S's claims: on frames made up to support and to contradict; by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from dlsim.papers.steady_state import PAPER_S_HEURISTICS, mean_ratio
from dlsim.steady.samples import STRUCTURES
from dlsim.study.claims import judge_claim, load_claims
from dlsim.study.measure import MEASURES
from tests.helpers.intervals import student
from tests.verification.made_up import assert_judged_each_way
from tests.verification.notebook_code import defined_in

RUNS, SIZES, LINKS = 50, (5, 15, 25, 35, 45), (0.1, 0.8)


def cross(**levels):
    """Every combination of some levels with every replicate."""
    levels["replicate"] = range(RUNS)
    return pd.DataFrame(itertools.product(*levels.values()), columns=list(levels))


def filled(frame, **columns):
    """Set columns to values, or to functions of the frame, each plus noise of its own."""
    rng = np.random.default_rng(0)
    noise = {name: 0.002 * rng.standard_normal(len(frame)) for name in columns}
    values = {name: v(frame) if callable(v) else v for name, v in columns.items()}
    return frame.assign(**{name: v + noise[name] for name, v in values.items()})


def samples(**columns):
    """Both samples with the same columns, and a vertex of each platform."""
    frame = filled(cross(clusters=SIZES, connectivity=LINKS), **columns)
    both = pd.concat([frame.assign(kind=kind) for kind in ("Tiers", "random")])
    return {"tiers": frame.drop(columns="connectivity"), "random": frame, "vertices": both}


def some(share):
    """1 in about this share of the rows, 0 in the others."""
    return lambda frame: (np.random.default_rng(1).random(len(frame)) < share).astype(float)


def over_k(first, last):
    """From one value at the least K to another at the largest."""
    return lambda frame: first + (last - first) * (frame["clusters"] - 5) / 40


def spread(first, last):
    frame = cross(heterogeneity=(0.4, 0.6, 0.8), clusters=(15, 25))
    lead = first + (last - first) * (frame["heterogeneity"] - 0.4) / 0.4
    return {"spread": filled(frame, G=0.6, LPRG=0.6 + lead)}


def crossed(network, numbers):
    """The lead of G that a structured network and the first table's numbers give."""
    frame = cross(structure=STRUCTURES, numbers=("Table 1", "Table 2"), clusters=(15,))
    lead = network * frame["structure"].str.startswith("Tiers")
    lead += numbers * (frame["numbers"] == "Table 1")
    return {"crossed": filled(frame, LPRG=0.5, G=0.5 + lead)}


def ends(lost):
    frame = cross(kind=("Tiers", "random"), count=(100,))
    return {"ends": frame.assign(ends=lost)}


def losing(more):
    """Vertices at which LPRG loses, where a column is so much larger, and others."""
    given = {name: lambda f: 0.4 + more * some(0.5)(f) for name in ("below", "own_use")}
    return samples(G=0.9, LPRG=lambda f: 1 - 0.5 * some(0.5)(f), **given)


def wins(share):
    """LPRR wins on this share of the platforms and loses on the others."""
    return samples(G=0.5, LPRG=0.5, LPRR=lambda f: 0.3 + 0.4 * some(share)(f))


def many(**columns):
    """Both samples ten times as large: 5,000 platforms."""
    made = samples(**columns)
    return {name: pd.concat([frame] * 10, ignore_index=True) for name, frame in made.items()}


def of_sizes(**columns):
    """Tiers platforms of 43 sizes, as in the paper."""
    return {"tiers": filled(cross(clusters=range(5, 91, 2)), **columns)}


def of_lprr(tiers, random):
    return {"tiers": samples(LPRR=tiers)["tiers"], "random": samples(LPRR=random)["random"]}


MADE = {
    "1a": (many(LPR=0.2), many(LPR=lambda f: 0.5 + some(0.5)(f))),
    "1b": (samples(LPR=lambda f: some(0.5)(f) - 0.1), samples(LPR=lambda f: 0.8 - some(0)(f))),
    "2a": (samples(G=0.5, LPRG=lambda f: 1 - some(0.8)(f)), samples(G=0.5, LPRG=0.7)),
    "2b": (samples(G=0.5, LPRG=lambda f: 1 - some(0.8)(f)), samples(G=0.5, LPRG=0.7)),
    "2c": (samples(G=0.59, LPRG=0.5), samples(G=0.5, LPRG=0.59)),
    "3a": (samples(G=0.75, LPRG=0.7), samples(G=0.7, LPRG=0.75)),
    "3b": (samples(G=over_k(1, 0.5), LPRG=over_k(1, 0.4)), samples(G=over_k(0.5, 1), LPRG=1.0)),
    "3c": (of_sizes(G=0.75, LPRG=0.7), of_sizes(G=0.7, LPRG=0.7)),
    "4a": (samples(LPRG=0.792, G=0.4), samples(LPRG=0.5, G=0.5)),
    "4b": (samples(G=0.8, LPRG=0.7), samples(G=0.7, LPRG=0.8)),
    "4c": (samples(G=0.7, LPRG=0.8), samples(G=0.8, LPRG=0.7)),
    "4d": (samples(G=0.5, LPRG=over_k(0.5, 0.9)), samples(G=0.5, LPRG=over_k(0.9, 0.5))),
    "5": (spread(0.1, 0.1), spread(0.1, 0.3)),
    "6a": (samples(G=0.7, LPRG=0.8, LPRR=0.9), samples(G=0.7, LPRG=0.9, LPRR=0.8)),
    "6b": (samples(LPRR=0.99), samples(LPRR=0.8)),
    "6c": (samples(LPRR=lambda f: 2 - some(0)(f)), samples(LPRR=lambda f: 0.5 + some(0.5)(f))),
    "6d": (wins(0.8), wins(0.2)),
    "6e": (many(G=0.5, LPRG=0.5, LPRR=0.7), many(G=0.5, LPRG=0.5, LPRR=0.5)),
    "7b": (
        samples(programs=lambda f: f["clusters"] ** 2),
        samples(programs=lambda f: f["clusters"]),
    ),
    "9a": (samples(lost=0.4), samples(lost=0.05)),
    "9b": (samples(lost=lambda f: 0.4 * some(0.8)(f)), samples(lost=lambda f: 0.4 * some(0.2)(f))),
    "10a": (losing(0.3), losing(-0.3)),
    "10b": (losing(0.3), losing(-0.3)),
    "11": (samples(LPRG=over_k(0.9, 0.5)), samples(LPRG=over_k(0.5, 0.9))),
    "12a": (crossed(0.3, 0), crossed(-0.3, 0)),
    "12b": (crossed(0.3, 0.1), crossed(0.1, 0.3)),
    "13": (
        samples(MILP=1.0, G=0.99, LPR=0.1, LPRG=0.9, LPRR=0.9),
        samples(MILP=1.0, G=0.8, LPR=0.1, LPRG=0.8, LPRR=0.8),
    ),
    "14": (ends(0.01), ends(0.5)),
    "15": (many(G=0.8, LPRG=0.5), many(G=0.5, LPRG=0.5)),
    "16": (samples(G=0.8, LPRG=0.7), samples(G=0.7, LPRG=0.8)),
    "17": (of_lprr(tiers=0.8, random=0.9), of_lprr(tiers=0.9, random=0.8)),
}


def test_every_claim_can_hold_and_can_be_contrary():
    assert_judged_each_way("steady-state", MADE)


# ----------------------------------------------------------------------- by hand


def measure(number, frames):
    """Measure a claim on the frames that its measure names."""
    return MEASURES[f"steady-state-{number}"].function(**frames)


def frames(**columns):
    """Two replicates at K = 5, 15, 25: each column a list of six ratios."""
    keys = pd.DataFrame(itertools.product((5, 15, 25), (0, 1)), columns=["clusters", "replicate"])
    frame = keys.assign(connectivity=0.4, **columns)
    both = pd.concat([frame.assign(kind=kind) for kind in ("Tiers", "random")])
    return {"tiers": frame, "random": frame, "vertices": both}


def test_differences_between_sizes_by_hand():
    made = frames(G=[0.8] * 6, LPRG=[0.7, 0.9, 0.9, 0.9, 0.6, 0.8])
    # means 0.8, 0.9, 0.7 at three K: of least squares only the ends count
    fall = {"estimate": 0.1, "wrong": 1, "steps": 2}
    for number in ("11", "3b"):
        row = measure(number, made).iloc[-1]
        assert row[list(fall)].to_dict() == pytest.approx(fall)
    assert measure("4d", made)["estimate"].tolist() == pytest.approx([-0.1])
    assert measure("4b", made)["estimate"].tolist() == pytest.approx([0.0])
    assert measure("4c", made)["point"].tolist() == ["LPRG - G, K 25"]
    assert measure("3a", made)["estimate"].tolist() == pytest.approx([0.0])
    # the means of G over LPRG are 1, 0.8 / 0.9 and 0.8 / 0.7
    assert measure("3c", made)["estimate"].tolist() == pytest.approx([0.0])
    nearer = made | {"tiers": made["tiers"].assign(G=[0.8, 0.9, 0.95, 0.95, 0.8, 0.8])}
    assert measure("3c", nearer)["estimate"].tolist() == pytest.approx([2 / 3])  # 1.06, 1.06, 1.14
    assert measure("15", made)[["estimate", "total"]].to_numpy().tolist() == [[0.5, 6]]
    assert measure("16", made)["estimate"].tolist() == pytest.approx([0.0])


def test_one_case_among_many_counts_against_always():
    """Four of 688 platforms: by tables of the binomial law at least 1.6 of a thousand."""
    frame = pd.DataFrame({"LPR": [1.0] * 4 + [0.2] * 684})
    made = {"tiers": frame, "random": frame.assign(LPR=0.2)}
    claim = next(one for one in load_claims("steady-state") if one.number == "1a")
    verdict = judge_claim(claim, measure("1a", made))
    low = scipy.stats.binomtest(4, 688).proportion_ci(method="exact").low
    found = verdict.intervals.set_index("point")
    assert found["low"].tolist() == pytest.approx([low, 0.0])
    assert (verdict.word, verdict.counts) == ("contradicted", (0, 1, 1))


def test_independent_samples_are_paired_in_order():
    tiers = pd.DataFrame({"replicate": [0, 2, 2, 4], "LPRR": [0.5, 0.6, 0.8, np.nan]})
    random = pd.DataFrame({"replicate": [0, 1, 2], "LPRR": [0.9, 0.9, 1.0]})
    row = measure("17", {"tiers": tiers, "random": random}).iloc[0]
    assert row["values"].tolist() == pytest.approx([0.4, 0.2])


def test_one_ratio_makes_a_mean_by_hand():
    made = frames(G=[1, 1, 1, 1, 1, 0], LPRG=[1.0, 1, 1, 2, 10, 5])
    row = mean_ratio(made["tiers"].drop(columns="connectivity"), "LPRG", "G").iloc[0]
    assert (row["estimate"], row["n"]) == (pytest.approx(3), 5)
    assert row["low"] < 3 < row["high"] <= 10
    assert (row["median"], row["outlier"], row["mean_without"]) == (1, 10, 1.25)
    assert row["outlier_at"] == "K 25, replicate 0"
    by_numbers = mean_ratio(made["random"], "LPRG", "G").iloc[0]  # of 4 and 3/2
    assert (by_numbers["estimate"], by_numbers["n"]) == (pytest.approx(2.75), 2)


def test_losers_are_compared_with_the_others_by_hand():
    one, other = (
        frames(G=[1] * 6, LPRG=lprg, below=below)["vertices"]
        for lprg, below in (
            ([0.5, 0.5, 1, 1, 1, 1], [0.6, 0.8, 0.1, 0.2, 0.9, np.nan]),
            ([1] * 6, [0.2, 0.2, 0.3, 0.3, 0.9, 0.9]),
        )
    )
    # LPRG loses at one of two vertices of both platforms with K = 5; other sizes say nothing
    want = student([0.4, 0.6])
    made = {"vertices": pd.concat([one, other])}
    got = measure("10a", made)[["estimate", "low", "high"]].iloc[0]
    assert tuple(got) == pytest.approx(want)


def test_the_best_heuristic_is_held_against_the_optimum_by_hand():
    made = frames(
        G=[0.5] * 6,
        LPR=[0.0] * 6,
        LPRG=[0.6] * 6,
        MILP=[0.8, np.nan, 0.8, 0.8, 1, 1],
        LPRR=[0.8, 0.1, 0.6, 0.8, 1, 0.9],
    )
    got = measure("13", made)
    assert set(got["what"]) == {"1 - best/optimum"}
    tiers = got[got["point"].str.contains("Tiers")].set_index("point")["estimate"]
    assert tiers.tolist() == pytest.approx([0, 0.125, 0.05])
    frame = made["tiers"]
    less = frame.assign(LPRR=frame["LPRR"].where(frame["clusters"] < 25))
    got = measure("13", made | {"tiers": less}).set_index("point")["estimate"]
    assert got.filter(like="Tiers").tolist() == pytest.approx([0, 0.125, 0.4])  # LPRG at K = 25


def test_structure_and_numbers_are_separated_by_hand():
    rows = []
    for replicate, structure, numbers in itertools.product(
        (0, 1), STRUCTURES, ("Table 1", "Table 2")
    ):
        lead = 0.3 * structure.startswith("Tiers") + 0.1 * (numbers == "Table 1")
        rows.append((structure, numbers, 15, replicate, 0.5 + lead + 0.01 * replicate, 0.5))
    names = ["structure", "numbers", "clusters", "replicate", "G", "LPRG"]
    made = {"crossed": pd.DataFrame(rows, columns=names)}
    assert measure("12b", made)["estimate"].tolist() == pytest.approx([0.2])
    assert measure("12a", made)["estimate"].tolist() == pytest.approx([0.3] * 6)


def test_two_methods_by_hand():
    frame = pd.DataFrame({"a": [0.5, 1.0, 1.0, 0.9, 0.3], "b": [1.0, 1.0, 0.25, 0.3, 0.0]})
    got = defined_in("40-steady-state").compare_methods(frame, "a", "b")
    assert (got["better"], got["tie"], got["worse"]) == pytest.approx((0.6, 0.2, 0.2))
    # ratios 0.5, 1, 4, 3; the last platform has none
    assert got["mean"] == pytest.approx(8.5 / 4)
    assert got["mean without it"] == pytest.approx(4.5 / 3)
    assert got["geometric"] == pytest.approx(6**0.25)
    assert got["q50"] == pytest.approx(2)
    assert got["zero"] == pytest.approx(0.2)


def test_every_claim_has_a_measure_or_a_reason():
    listed = {claim.id: claim for claim in load_claims("steady-state")}
    missing = set(listed) - set(MEASURES)
    assert missing == {"steady-state-7a", "steady-state-8"}
    assert "Pentium" in listed["steady-state-7a"].reason
    # with corrected indices
    assert judge_claim(listed["steady-state-8"]).word == "partly supported"


def test_claims_without_data_are_left_open():
    columns = (*PAPER_S_HEURISTICS, "MILP", "programs")
    empty = frames(**dict.fromkeys(columns, [np.nan] * 6))
    for claim in load_claims("steady-state"):
        number = claim.id.removeprefix("steady-state-")
        if number in ("6a", "6b", "6c", "6d", "6e", "7b", "13", "17"):
            assert judge_claim(claim, measure(number, empty)).word == "not checkable"

"""Paper B's claims on frames made up so that they must be supported, or contradicted."""

import numpy as np
import pandas as pd
import pytest

from dlsim.papers import bricks
from dlsim.study.claims import judge_claim, load_claims
from dlsim.study.measure import MEASURES
from tests.verification.made_up import assert_judged_each_way

NAMES = ("Greedy", "D-0.5", "D-0.7", "D-0.9")
RUNS = 8
RNG = np.random.default_rng(0)
CLAIMS = {claim.id: claim for claim in load_claims("bricks")}


def runs(failure, cost=lambda *_: 1.0, most=5, **at):
    """Rows of a sweep: failure rate and cost of every scheduler, a little apart in every run."""
    kinds = [(c, n) for c in (0, 1) for n in (0, 1)] + [(0, most)]
    rows = [
        {"policy": p, "corrected": c, "fallbacks": n, "replicate": k, "requests": 1000,
         "failure": failure(p, c, n), "cost": 400 * cost(p, c, n)}
        for p in NAMES for c, n in kinds for k in range(RUNS)
    ]  # fmt: skip
    frame = pd.DataFrame(rows).assign(**at)
    return frame.assign(
        failure=frame["failure"] + 1e-4 * RNG.standard_normal(len(frame)),
        cost=frame["cost"] + 0.1 * RNG.standard_normal(len(frame)),
    )


def gaining(gain, column, places):
    """Runs in which Load Correction takes so much from the failure rate, place by place."""
    parts = [
        runs(lambda _, c, n, place=place: 0.4 - c * gain(place), **{column: place})
        for place in places
    ]
    return pd.concat(parts, ignore_index=True)


def evidence(failure, cost, gain, in_large, dearer, spread):
    """Frames for all claims, by their names in `dlsim.papers.bricks`."""
    models = {"trace": 1.0, "extraneous": dearer}
    timed = [
        {"resource": resource, "model": model, "replicate": k, "seconds": seconds}
        for resource in ("servers", "links")
        for model, seconds in models.items()
        for k in range(RUNS)
    ]
    drawn = [
        {"model": model, "replicate": k, "spread": 1.0 + k / 100 + (model != "trace") * spread * k}
        for model in models
        for k in range(1, RUNS)
    ]
    usual = bricks.BLAMED_CAUSES
    return {
        "runs": pd.concat([runs(failure, cost, interval=i) for i in (60, 120)], ignore_index=True),
        "causes": gaining(lambda name: 0.02 if name == "as it is" else gain, "condition", usual),
        "sizes": gaining(lambda _: in_large, "nodes", (4, 75, 300)),
        "background": pd.DataFrame(drawn),
        "seconds": pd.DataFrame(timed),
    }


#: Failure rate and cost as the paper finds them, and the other way round.
AS_CLAIMED = dict(zip(NAMES, ((0.4, 1.0), (0.25, 0.8), (0.3, 0.7), (0.35, 0.6)), strict=True))
AGAINST = dict(zip(NAMES, ((0.2, 0.5), (0.35, 0.7), (0.3, 0.8), (0.25, 0.9)), strict=True))
FOR_IT = evidence(
    lambda p, c, n: (AS_CLAIMED[p][0] - 0.01 * c) * {0: 1, 1: 0.3, 5: 0.1}[n],
    lambda p, _, n: AS_CLAIMED[p][1] * (1 + 0.002 * n), 0.2, 0.01, 2.0, 0.1,
)  # fmt: skip
AGAINST_IT = evidence(
    lambda p, c, n: (AGAINST[p][0] + 0.05 * c) * {0: 1, 1: 0.95, 5: 0.9}[n],
    lambda p, _, n: AGAINST[p][1] * (1 - 0.02 * n), 0.0, 0.2, 0.5, -0.1,
)  # fmt: skip
#: Fallbacks that cost much, where those above save.
DEAR = evidence(lambda *_: 0.4, lambda p, c, n: 1 + 0.05 * n, 0.0, 0.0, 1.0, 0.0)


def points_of(number, frames):
    """Measure a claim on the frames that its measure names."""
    return MEASURES[f"bricks-{number}"].function(**frames)


def judge(number, frames):
    return judge_claim(CLAIMS[f"bricks-{number}"], points_of(number, frames))


def test_every_claim_can_hold_and_can_be_contrary():
    made = {claim.number: (FOR_IT, AGAINST_IT) for claim in CLAIMS.values()}
    assert_judged_each_way("bricks", made | {"8b": (FOR_IT, DEAR)})
    assert len(made) == 19


def test_ten_points_are_asked_only_where_so_many_fail():
    rare = evidence(lambda *_: 0.05, lambda *_: 1.0, 0.0, 0.0, 1.0, 0.0)
    verdict = judge("1a", rare)
    assert verdict.word == "not checkable"
    assert "Nowhere" in verdict.claim.reason


def test_no_gain_in_any_run_is_judged_by_the_median_of_runs():
    """Eight equal runs at 16 points: (1 - 2**-7)**16 = 88 %, too little; at four points 97 %."""
    rows = FOR_IT["sizes"].assign(failure=0.1)
    assert judge("11", {"sizes": rows}).word == "inconclusive"
    assert judge("11", {"sizes": rows[rows["policy"] == "Greedy"]}).word == "supported"


def test_lower_costs_are_no_increase():
    """Several fallbacks that save do not cost much more (8b), and do not raise the cost (8a)."""
    assert judge("8b", AGAINST_IT).word == "supported"
    assert judge("8a", AGAINST_IT).word == "contradicted"


def test_opt_is_judged_over_its_whole_range():
    rows = FOR_IT["runs"].copy()
    rows.loc[rows["policy"] == "D-0.7", "failure"] *= 0.5
    verdict = judge("3", {"runs": rows})
    assert verdict.word == "supported"
    assert (verdict.row["steps"], verdict.row["wrong"]) == (16, 8)


def test_measures_of_a_hand_case():
    """Two environments, one Int: every estimate by hand."""
    names = ("Greedy", "D-0.5", "D-0.9")
    base = dict(zip(names, (0.4, 0.2, 0.3), strict=True))
    failure = {(p, c, n): base[p] / 2**n - 0.05 * c for p in names for c in (0, 1) for n in (0, 1)}
    failure |= {(p, 0, 3): base[p] / 8 for p in names}
    rows = []
    for (p, c, n), rate in failure.items():
        for k, shift in enumerate((-0.01, 0.01)):
            row = {"interval": 60, "replicate": k, "policy": p, "corrected": c, "fallbacks": n}
            row |= {"failure": rate + shift, "cost": 100.0 * (1 + n), "requests": 100}
            rows.append(row)
    frames = {"runs": pd.DataFrame(rows)}

    def got(number, point):
        return points_of(number, frames).set_index("point").loc[point, "estimate"]

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
    assert got("13", "failure, D-0.9, interval 60") == pytest.approx(0.4 - 0.3 / 8)  # Greedy x/x
    assert got("13", "cost, D-0.9, interval 60") == pytest.approx(-3.0)

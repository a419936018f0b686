"""Paper B's claims on evidence made up so that they must hold, and so that they must not."""

import numpy as np
import pandas as pd
import pytest

from dlsim.papers.bricks import cells, claims
from dlsim.study.claims import load_claims, verdict_of
from dlsim.study.measure import measured
from tests.made_up import assert_each_way

OPTS = (0.5, 0.7, 0.9)
NAMES = ("Greedy", *map(cells.deadline, OPTS))
RUNS = 8
RNG = np.random.default_rng(0)


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
    """Evidence on all claims."""
    models = {"trace": 1.0, "extraneous": dearer}
    timed = [
        {"resource": resource, "model": model, "replicate": k, "seconds": seconds}
        for resource in cells.EXTRANEOUS for model, seconds in models.items() for k in range(RUNS)
    ]  # fmt: skip
    drawn = [
        {"model": model, "replicate": k, "spread": 1.0 + k / 100 + (model != "trace") * spread * k}
        for model in models for k in range(1, RUNS)
    ]  # fmt: skip
    return claims.Evidence(
        pd.concat([runs(failure, cost, interval=i) for i in (60.0, 120.0)], ignore_index=True),
        gaining(lambda name: 0.02 if name == "as it is" else gain, "condition", cells.CONDITIONS),
        gaining(lambda _: in_large, "value", (4.0, 75.0, 300.0)),
        pd.DataFrame(drawn), pd.DataFrame(timed),
    )  # fmt: skip


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
NUMBERS = "1a 1b 2a 2b 3 4 5 6a 6b 7a 7b 8a 8b 9 10 11 12a 12b".split()


def word_of(number, e):
    [one] = [one for one in load_claims("bricks") if one.id == f"bricks-{number}"]
    return verdict_of(one, measured(one, e))


def test_every_claim_can_hold_and_can_be_contrary():
    assert_each_way("bricks", dict.fromkeys(NUMBERS, (FOR_IT, AGAINST_IT)))


def test_ten_points_are_asked_only_where_so_many_fail():
    rare = evidence(lambda *_: 0.05, lambda *_: 1.0, 0.0, 0.0, 1.0, 0.0)
    verdict = word_of("1a", rare)
    assert verdict.word == "cannot be checked"
    assert "Nowhere" in verdict.reason


def test_no_gain_in_any_run_is_bounded_by_the_requests_that_gained_nothing():
    sizes = FOR_IT.sizes.assign(failure=0.1)
    verdict = word_of("11", FOR_IT._replace(sizes=sizes))
    assert verdict.word == "holds"
    # eight runs of 1000 requests: minus the logarithm of 0.025
    assert verdict.weakest["high"] * 8000 == pytest.approx(3.688, abs=1e-3)


def test_opt_is_judged_over_its_whole_range():
    main = FOR_IT.main.copy()
    main.loc[main["policy"] == "D-0.7", "failure"] *= 0.5
    verdict = word_of("3", FOR_IT._replace(main=main))
    assert verdict.word == "holds"
    assert "Of 16 steps to a neighbour 8 go the other way." in verdict.reason

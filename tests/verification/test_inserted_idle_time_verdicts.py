"""Every measured claim of paper I can hold and can be contrary: evidence made up by hand."""

import pandas as pd

from dlsim.papers import inserted_idle_time as iit
from tests.verification.made_up import assert_judged_each_way

KEY = "inserted-idle-time"
TAUS = (8.0, 4.0, 2.0, 1.0)
#: Ten runs of 10,000 tasks, of which 1,000 have idle time.
RUNS, TASKS, CASES = 10, 10_000, 1_000


def row(place, policy, ratio, held, **more):
    """One run of one policy; whatever differs from 0 or from CASES varies from run to run."""
    k = place["replicate"] - (RUNS - 1) / 2
    one, two = ((share + 0.001 * k) * CASES for share in held)
    return {
        **place, "policy": policy, "ratio": 0.4 + ratio * (1 + 0.01 * k), "tasks": TASKS,
        "discordant": round(TASKS * abs(ratio)), "s_iits": CASES, "opt_iits": one,
        "opt_iits_ii": two, **{name: 0.5 + x * (1 + 0.01 * k) for name, x in more.items()},
    }  # fmt: skip


def made(refused=(), use=(), held=(0.14, 0.17), gain=(0, 0, 0, 0), rise=0.0):
    """What roles refuse and use more than DLT, how often constraints hold; Figure 4 by tau."""
    refused, use = dict(refused), dict(use)
    places = [{"replicate": k, "load": load} for k in range(RUNS) for load in (0.6, 1.0)]
    main = [
        row(place, iit.policy_name(order, role), refused.get(role, 0), held, use=use.get(role, 0))
        for place in places
        for order in iit.ORDERS_OF_PAPER_I
        for role in iit.ROLES
    ]
    costs = [
        row({**place, "tau": tau}, policy, -less * (policy == "EDDO-II"), [0.5 + rise * at] * 2)
        for place in places
        for at, (tau, less) in enumerate(zip(TAUS, gain, strict=True))
        for policy in ("EDF-DLT", "EDDO-II")
    ]
    return {"main": pd.DataFrame(main), "costs": pd.DataFrame(costs)}


def test_every_claim_can_hold_and_can_be_contrary():
    alike, ladder = made(), made({"I": -0.02, "II": -0.05})
    better, worse = ({name: x for name in ("AN", "EQ-MN", "US")} for x in (0.05, -0.05))
    makers = {
        "1": (alike, made(held=(0.01, 0.17))),
        "2": (alike, made(held=(0.14, 0.02))),
        "3": (ladder, alike),
        "4": (ladder, alike),
        "5": (made(gain=(0, 0.01, 0.02, 0.03)), alike),
        "6": (made(rise=0.1), made(rise=-0.1)),
        "7a": (made({"OPR-MN": 0.01}), made({"OPR-MN": -0.01})),
        "7b": (made({"OPR-MN": 0.05}), made({"OPR-MN": 0.01})),
        "10a": (made(use={"II": 0.1}), made(use={"II": -0.1})),
        "10b": (ladder, alike),
        "11": (made(better), made(worse)),
        "12": (made(better), made(worse)),
        "14a": (made(use={"UMR-IIT": 0.1}), made(use={"UMR-IIT": -0.1})),
        "14b": (made({"UMR-IIT": -0.01}), made({"UMR-IIT": 0.01})),
        "15": (alike, ladder),
        "16": (alike, made(held=(0.01, 0.02))),
        "17": (alike, made(held=(0.17, 0.14))),
    }
    frame = {number: "costs" if number in ("5", "6") else "main" for number in makers}
    needed = {
        number: tuple({frame[number]: one[frame[number]]} for one in both)
        for number, both in makers.items()
    }
    assert_judged_each_way(KEY, needed)


def test_equal_runs_are_judged_by_their_median():
    """Ten runs without a difference: the median of 20 points is none with 96 %, of 40 with 92 %."""
    main, pair = made()["main"], {"gain": ("FIFO-DLT", "FIDO-II")}
    table = iit.estimate_gains(main, pair)
    assert table[["estimate", "low", "high", "least", "most"]].eq(0).all(axis=None)
    few = iit.estimate_gains(main[main["replicate"] < 6], pair)  # 94 % of two points at once
    assert few[["low", "high", "least", "most"]].isna().all(axis=None)
    one = main["policy"].eq("FIDO-II") & main["replicate"].eq(3)
    apart = iit.estimate_gains(main.assign(ratio=main["ratio"] - 0.02 * one), pair)
    # the runs vary, and the long tail is on the right: two-sided, above 0
    assert (apart["estimate"] - 0.002).abs().max() < 1e-12
    assert (apart["high"] > 0.004).all()

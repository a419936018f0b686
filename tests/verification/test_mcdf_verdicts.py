"""Paper M's claims on evidence made up so that they must hold, and must be contrary."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dlsim.papers import mcdf
from dlsim.study.claims import judge_points, load_claims
from dlsim.study.measure import MEASURES
from tests.verification.made_up import assert_judged_each_way

LOADS, SETUPS, RATIOS = (0.1, 0.5, 1.0), (0.0, 5.0, 10.0, 20.0), (0.1, 0.5, 3.0, 5.0)
BASE = ("Cms", "Cps", "N", "ST", "SC", "mean size")


def frame(value, column="ratio", **axes):
    """One row per place and replicate: what a function of the place gives, and some noise."""
    axes |= {"replicate": range(8)}
    table = pd.DataFrame(itertools.product(*axes.values()), columns=list(axes))
    rows = [value(**place) for place in table.drop(columns="replicate").to_dict("records")]
    noise = np.random.default_rng(1).normal(0, 1e-3, len(table))
    return table.assign(tasks=1000, **{column: np.array(rows) + noise})


def policies(value, column="ratio", others=0.9):
    """Frames of Figures 4 to 9: reject ratios by policy, load and set-up cost."""

    def one(policy, load, setup):
        return value(policy, load, setup) if policy in mcdf.WITH_ADMISSION else others

    return {"main": frame(one, column, policy=mcdf.POLICIES, load=LOADS, setup=SETUPS)}


def mine(value, rivals=0.4):
    """The same where all rivals refuse the same share."""
    return policies(lambda policy, *at: value(*at) if policy == "MCDF" else rivals)


def theirs(value):
    """The same where MCDF refuses a tenth."""
    return policies(lambda policy, *at: value(*at) if policy != "MCDF" else 0.1)


def near(policies_near):
    """The same where some policies are near MCDF and the others far."""
    distance = dict.fromkeys(policies_near, 0.05) | {"MCDF": 0.0}
    return policies(lambda policy, *at: 0.1 + distance.get(policy, 0.3))


def unrefused(ratio=0.9, delay=1.0):
    """The same for the policies without admission control."""
    both = policies(lambda *at: 0.1, others=ratio)["main"]
    return {"main": both.assign(delay_growth=delay * (1 + both["ratio"]))}


def costs(value):
    """Evidence of Figure 10: MCDF's reject ratio by ratio of the costs and load."""

    def one(value_, policy, at, load):
        return value_(at, load) if policy == "MCDF" else 0.4

    axes = {"policy": mcdf.WITH_ADMISSION, "mode": ("vary_cms", "vary_cps"), "load": LOADS}
    table = frame(lambda policy, mode, at, load: one(value, policy, at, load), at=RATIOS, **axes)
    return {"ratios": table.rename(columns={"at": "value"})}


def stable(ours, rivals):
    """Evidence of all axes: how far MCDF moves on each, and the others."""
    how = {name: ours if name == "MCDF" else rivals for name in mcdf.WITH_ADMISSION}
    main = policies(lambda policy, load, setup: how[policy] * (load + setup / 20))["main"]
    axes = {"policy": mcdf.WITH_ADMISSION, "mode": ("vary_cms",), "load": LOADS, "at": RATIOS}
    ratios = frame(lambda policy, mode, load, at: how[policy] * at, **axes)
    return {"main": main, "ratios": ratios.rename(columns={"at": "value"})}


def effects(cms_and_cps, others):
    """Evidence of section 6.4: what doubling Cms or Cps adds, and doubling another parameter."""
    added = dict.fromkeys(BASE, others) | {"Cms": cms_and_cps, "Cps": cms_and_cps, "base": 0}
    axes = {"parameter": ("base", *BASE), "load": LOADS, "policy": ("MCDF",)}
    return {"doubled": frame(lambda parameter, **_: 0.2 + added[parameter], **axes)}


def newcomers(cheap, dear):
    both = [frame(lambda load, x=x: x, "share", load=LOADS) for x in (cheap, dear)]
    apart = 0.01 * both[1]["share"]  # two draws of the same noise would cancel
    table = both[0].assign(cheap=both[0]["share"], dear=dear + apart)
    return {"newcomers": table}


def lengths(apart):
    main = mine(lambda load, setup: 0.1)["main"]
    half = main[main["setup"] == 0].assign(ratio=lambda rows: apart + 1.01 * rows["ratio"])
    return {"main": main, "half": half}


def test_every_claim_can_hold_and_can_be_contrary():
    low, high = mine(lambda *at: 0.1), mine(lambda *at: 0.9)
    assert_judged_each_way(
        "mcdf",
        {
            "1": (low, high),
            "2": (unrefused(ratio=0.999), unrefused(ratio=0.9)),
            "3": (unrefused(delay=1.0), unrefused(delay=-1.0)),
            "4a": (near(mcdf.ALL_NODES), near(mcdf.FEWEST_NODES)),
            "4b": (near(mcdf.ALL_NODES), near(mcdf.FEWEST_NODES)),
            "5a": (mine(lambda *at: 0.36), low),
            "5b": (mine(lambda *at: 0.3), low),
            "6": (low, high),
            "7": (theirs(lambda load, s: 0.2 + s / 50), theirs(lambda load, s: 0.8 - s / 50)),
            "8": (theirs(lambda load, s: 0.2 + s / 50), theirs(lambda load, s: 0.8 - s / 50)),
            "9": (low, mine(lambda load, setup: setup / 20)),
            "10": (costs(lambda at, load: load / 2), costs(lambda at, load: 0.1)),
            "11": (costs(lambda at, load: load / (1 + at)), costs(lambda at, load: load * at)),
            "12": (costs(lambda at, load: 0.1), costs(lambda at, load: load / 2)),
            "14": (stable(ours=0.1, rivals=0.4), stable(ours=0.4, rivals=0.1)),
            "20": (low, high),
            "21": (stable(ours=0.1, rivals=0.4), stable(ours=0.4, rivals=0.1)),
            "16": (newcomers(0.9, 0.8), newcomers(0.8, 0.9)),
            "17": (effects(0.3, others=0.1), effects(0.1, others=0.3)),
            "18": (lengths(apart=0.0), lengths(apart=0.1)),
        },
        not_made=("19",),  # arithmetic
    )


def judge(number, frames):
    claim = next(one for one in load_claims("mcdf") if one.number == number)
    return judge_points(MEASURES[claim.id].function(**frames), claim)


def test_a_lead_that_is_none_does_not_grow():
    """Two rivals refuse fewer than MCDF; their lead shrinks, and MCDF still has none."""
    ahead = dict.fromkeys(mcdf.FEWEST_NODES, -0.2) | dict.fromkeys(mcdf.ALL_NODES, 0.2)
    verdict = judge(
        "7", policies(lambda p, load, s: 0.4 if p == "MCDF" else 0.4 + ahead.get(p, 0) + s / 200)
    )
    assert (verdict.word, verdict.counts) == ("mixed", (2, 0, 2))


def test_beyond_three_does_not_mean_three():
    assert judge("12", costs(lambda at, load: load / 2 if at == 3 else 0.1)).word == "supported"


def test_stability_is_claimed_over_setup_costs_and_over_the_load_apart():
    restless = {"MCDF": 0.4}
    main = policies(
        lambda policy, load, setup: 0.1 * load + restless.get(policy, 0.1) * setup / 20
    )["main"]
    ratios = stable(ours=0.05, rivals=0.1)["ratios"]
    main["ratio"] += 0.1 * (main["policy"] != "MCDF") * main["load"]
    both = {"main": main, "ratios": ratios}
    assert (judge("14", both).word, judge("21", both).word) == ("contradicted", "supported")


def test_one_better_rival_decides_a_load():
    """The rivals of a load are one point: MCDF does not lead where one of them leads."""
    better = policies(lambda policy, *at: {"MCDF": 0.2, "EDFMN": 0.1}.get(policy, 0.4))
    for name, measure in {"mcdf-1": mcdf.lead_over_all, "mcdf-6": mcdf.lead_with_setup}.items():
        table = measure(**better)
        assert table["group"].nunique() in (len(LOADS), len(LOADS) * (len(SETUPS) - 1))
        assert set(table.groupby("group")["estimate"].min().round(1)) == {-0.1}
        verdict = judge_points(table, next(one for one in load_claims("mcdf") if one.id == name))
        assert verdict.counts == (0, 0, table["group"].nunique())
        assert np.isnan(verdict.row["detectable"])  # none is open


def test_equal_miss_ratios_are_judged_by_the_median_of_runs():
    """Eight equal runs at six points: (1 - 2**-7)**6 = 95.4 %."""
    main = unrefused()["main"].assign(ratio=1.0)
    assert judge("2", {"main": main}).word == "supported"
    assert judge("2", {"main": main[main["replicate"] < 7]}).word == "inconclusive"


def overload(value):
    table = policies(value)["main"]
    return table[table["setup"] == 0]


@pytest.mark.parametrize(
    ("lead", "wanted"),
    [(lambda x: x - 0.3, 0.3), (lambda x: 1.0, LOADS[0]), (lambda x: -1.0, np.inf)],
)
def test_the_load_from_which_mcdf_leads(lead, wanted):
    """A straight lead of known root; a lead at all loads; none at any."""
    found = mcdf.find_start_of_lead(
        overload(lambda policy, load, _: 2.0 if policy == "MCDF" else 2.0 + lead(load))
    ).set_index("rival")
    assert list(found.index) == [*mcdf.RIVALS_OF_MCDF, "all rivals"]
    assert found["estimate"].tolist() == pytest.approx([wanted] * 5, abs=0.01)
    assert (found["low"] <= found["estimate"]).all()
    assert (found["estimate"] <= found["high"]).all()
    assert found.loc["all rivals", "high"] == found["high"].max()

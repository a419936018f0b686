"""A sample of every paper's claims, measured again and held against data/reference.

The sample is smaller and drawn from another seed. At the point that a reference result
names as its weakest, the new interval must meet the one that is kept there.
"""

import importlib
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from dlsim.study.claims import intervals, load_claims, reference_of
from dlsim.study.measure import measured
from tests.scale import LONG, deep

SEED = 1
#: ``13.11 to 98.01 points; weakest at K 5: 13.11 points [4.59, 21.63]; 12 runs``
KEPT = re.compile(
    r"(?:.*weakest at (?P<point>.*): )?(?P<estimate>-?[\d.,]+) ?(?P<unit>.*) "
    r"\[(?P<low>-?[\d.,]+), (?P<high>-?[\d.,]+)\]; \d+ runs.*"
)


def of_mcdf(study):
    nothing = {"ratios": None, "half": None, "orders": None, "newcomers": None, "doubled": None}
    return SimpleNamespace(main=study.main(), **nothing)


def of_steady_state(study):
    return SimpleNamespace(**dict(zip(("tiers", "random"), study.samples(), strict=True)))


#: Paper: parameters of its reduced study, what it runs, and claims whose weakest point lies
#: in it.
SAMPLES = {
    "mcdf": (
        {"runs": 4, "loads": (0.1, 0.5, 1.0), "setups": (0.0, 10.0, 20.0)},
        of_mcdf,
        ("1", "2", "4a", "5a", "5b"),
    ),
    "inserted-idle-time": (
        {"runs": 4, "loads": (0.1, 0.2, 0.3, 0.7, 1.0)},
        lambda study: study.evidence,
        ("3", "4", "6", "7a", "7b", "10a", "10b", "11", "14a", "14b", "15"),
    ),
    "steady-state": (
        {
            "tiers_clusters": (5, 25, 45, 65, 85), "random_clusters": (5, 15),
            "connectivities": (0.4,), "side_clusters": (5,), "runs": 0 if LONG >= 1 else 8,
        },
        of_steady_state,
        ("2a", "2b", "3c", "4b"),
    ),
    "bricks": (
        {"runs": 4, "intervals": (60.0,)},
        lambda study: SimpleNamespace(main=study.main),
        ("2b", "4", "5", "6b", "7a", "7b"),
    ),
}  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[deep] * (name not in ("mcdf", "bricks"))) for name in SAMPLES
    ],
)
def sample(request, tmp_path_factory):
    """A paper, its reference results, and what was run again."""
    paper, (parameters, run, names) = request.param, SAMPLES[request.param]
    package = f"dlsim.papers.{paper.replace('-', '_')}"
    study = importlib.import_module(f"{package}.study").Study(
        scale="paper", seed=SEED, jobs=1, out=str(tmp_path_factory.mktemp(paper)), **parameters
    )
    kept = pd.read_csv(reference_of(paper), keep_default_na=False)
    return SimpleNamespace(paper=paper, names=names, evidence=run(study), kept=kept.set_index("id"))


def number(text):
    return float(text.replace(",", ""))


def test_a_smaller_sample_meets_the_reference(sample):
    known = {claim.id: claim for claim in load_claims(sample.paper)}
    apart = {}
    for name in sample.names:
        claim = known[f"{sample.paper}-{name}"]
        kept = KEPT.fullmatch(sample.kept.loc[claim.id, "measured"])
        assert kept, f"{claim.id}: the reference names no point"
        points = measured(claim, sample.evidence)
        here = points[points["point"] == kept["point"]] if kept["point"] else points
        assert len(here) == 1, f"{claim.id}: no point {kept['point']!r} in the smaller sample"
        factor = 100 if kept["unit"] in ("%", "points") else 1
        own = intervals(points, claim).set_index("point").loc[here["point"].iloc[0]]
        low, high = factor * own[["low", "high"]].astype(float)
        half_a_digit = 0.005 if factor == 100 else 5e-4 * abs(number(kept["estimate"]))
        if high + half_a_digit < number(kept["low"]) or low - half_a_digit > number(kept["high"]):
            apart[claim.id] = f"kept {kept[0]}, now [{low:.4g}, {high:.4g}]"
    assert not apart

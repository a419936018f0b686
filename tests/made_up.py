"""Data made up so that a claim must hold, and so that it must be contrary."""

from dlsim.study.claims import load_claims, verdict_of
from dlsim.study.measure import MEASURES, measured


def assert_each_way(paper, makers, not_made=()):
    """Judge every measured claim on evidence for it and on evidence against it.

    `makers` gives, by the number in the claim's id, two pieces of evidence; `not_made` names
    the claims that can take only one word, such as a constant.
    """
    due = {
        claim.id.removeprefix(f"{paper}-"): claim
        for claim in load_claims(paper)
        if claim.id in MEASURES and claim.kind == "measured"
    }
    assert set(makers) | set(not_made) == set(due)
    found = {
        number: tuple(verdict_of(due[number], measured(due[number], one)).word for one in both)
        for number, both in makers.items()
    }
    assert found == dict.fromkeys(makers, ("holds", "contrary"))

"""Data made up so that a claim must be supported, and so that it must be contradicted."""

from dlsim.study.claims import judge_claim, load_claims
from dlsim.study.measure import MEASURES


def assert_judged_each_way(paper, makers, not_made=()):
    """Judge every measured claim on frames that support it and on frames that contradict it.

    `makers` gives, by the number in the claim's id, two dicts of frames by the names that the
    claim's measure has; `not_made` names the claims that can take only one word.
    """
    due = {
        claim.id.removeprefix(f"{paper}-"): claim
        for claim in load_claims(paper)
        if claim.id in MEASURES and claim.kind == "measured"
    }
    assert set(makers) | set(not_made) == set(due)
    found = {}
    for number, both in makers.items():
        measure = MEASURES[due[number].id].function
        found[number] = tuple(judge_claim(due[number], measure(**one)).word for one in both)
    against = {"contradicted", "stronger than claimed"}
    apart = {
        name: two for name, two in found.items() if two[0] != "supported" or two[1] not in against
    }
    assert apart == {}

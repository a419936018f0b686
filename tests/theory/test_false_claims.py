"""No step shows a false statement that a careless checker would prove by it.

It is refused, or what the step returns rests on a hypothesis that is false, and says so.
"""

import re
from itertools import product

import pytest

from dlsim.theory import steps
from dlsim.theory.relations import ProofError, eq
from tests.theory.false_claims import FAMILIES
from tests.theory.rows import CALLED, STEPS, changing, read, rows, tried, values_of


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_what_is_false_is_refused(family):
    for row, call in product(rows(family.values), rows(family.calls)):
        text, _, hypothesis = call.partition(" rests on ")
        shown, rests_on = tried(text, family.form, row)
        wanted = {read(hypothesis, values_of(family.form, row))} if hypothesis else set()
        assert (shown is None) == (not hypothesis), f"{text} with {family.form}: {row}"
        assert rests_on == wanted, f"{text} with {family.form}: {row}"
        if not family.form and CALLED:  # refused is the step itself, no line that it takes
            first = next(name for name in re.findall(r"\w+", text) if name in STEPS)
            assert CALLED[-1][0] is STEPS[first], f"{text} was not called"


@pytest.mark.parametrize(
    "family", [one for one in FAMILIES if one.controls], ids=lambda one: one[0]
)
def test_what_is_true_is_shown_by_the_same_calls(family):
    for call in rows(family.calls):
        text = call.partition(" rests on ")[0]
        assert any(tried(text, family.form, row)[0] for row in rows(family.controls)), call


def test_every_step_is_tried():
    tries = dict.fromkeys(STEPS, 0)
    for family in FAMILIES:
        for call in rows(family.calls):
            for name in {*re.findall(r"\w+(?=\()", call)} & {*STEPS}:
                tries[name] += len(rows(family.values))
    assert min(tries.values()) >= 4


def test_a_function_of_python_is_asked_once_and_for_all():
    asked = []
    table = steps.exact_function("h", lambda value: asked.append(value) or 3)
    unsure = changing(1, 2, 2, 2)
    for _ in range(3):
        steps.compute(eq(table(1), 3), "a reason")
        with pytest.raises(ProofError, match="no one value"):  # it is not asked until it agrees
            steps.compute(eq(unsure, 2), "a reason")
    assert asked == [1, 1]

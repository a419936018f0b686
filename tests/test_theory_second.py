"""The second opinion agrees wherever it applies, says where it does not, and can disagree."""

import collections
import re

import pytest
import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim import theory
from dlsim.theory.claim import Iff, computed, eq, gt, lt, plain, sequence, sides, total, under
from dlsim.theory.residues import residue
from dlsim.theory.second import _OTHERWISE, CHECKED, opinion, second
from tests.scale import deep

x, y, b = sp.symbols("x y b", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
a = sequence("a", real=True)


#: Goals of which each is looked at for more than a second: 15 of 21 for all, by statement.
LONG_ONES = {"U.mk": {2}, "1.T3": {0}, "6.safe": {0, 1}, "1.opt": {0}}


@deep
def test_nothing_disagrees():
    """Of all goals but few; that their proofs reach them is what `tests.test_theory` shows."""
    words = collections.Counter(
        opinion(goal, statement.exists)
        for statement in theory.statements()
        for number, goal in enumerate(statement.expanded())
        if number not in LONG_ONES.get(statement.key, ())
    )
    assert words["DISAGREES"] == 0
    assert all(words[word] for word in CHECKED)
    every = sum(len(statement.goals) for statement in theory.statements())
    assert words.total() == every - sum(map(len, LONG_ONES.values()))
    assert sum(words[word] for word in CHECKED) >= 0.75 * every


def counted_by(text):
    """The numbers in the last lines of a table: all goals, by how they were checked, the rest."""
    lines = text.splitlines()[-len(CHECKED) - 2 :]
    return [int(re.match(r" *(\d+) ", line)[1]) for line in lines]


@deep
def test_nothing_at_all_disagrees():
    text, failed = second()
    assert failed == 0
    every, *parts = counted_by(text)
    assert every == sum(parts)  # every goal is counted once
    assert sum(parts[:-1]) >= 0.75 * every
    assert all(parts[:-1])


def test_the_goals_of_a_few_statements_are_counted(monkeypatch):
    keys = ["5.1", "disc", "5.sum", "U.rec", "Y.floor"]
    found = theory.statements(keys)
    words = collections.Counter(opinion(goal, s.exists) for s in found for goal in s.expanded())
    checked = [words[word] for word in CHECKED]
    absent = words.total() - sum(checked)
    text, failed = second(keys)
    assert (failed, counted_by(text)) == (0, [words.total(), *checked, absent])
    assert absent == 1
    assert [line.split()[0] for line in text.splitlines()[: len(keys)]] == keys
    monkeypatch.setitem(vars(found[0]), "proof", lambda d: d.equal(x, y, "which does not hold"))
    text, failed = second("5.1")
    assert failed == 1
    assert text.startswith("5.1  FAILED 5.1: which does not hold")
    assert text.endswith("    0 have no such check, 1 disagree")


def test_a_count_is_not_only_called_again():
    """What a statement calls by name is counted in another function here."""
    for statement in theory.statements():
        for goal in statement.expanded():
            for side in sides(goal.claim):
                for term in side.gap.atoms(AppliedUndef):
                    if hasattr(term, "computes"):
                        known = term.func.__name__ in _OTHERWISE
                        assert opinion(goal) == "counted" if known else "one way" in opinion(goal)


def test_another_count_is_seen():
    alone = computed("alone", lambda k: k)
    assert "one way" in opinion(under(eq(alone(3), 3)))
    wrong = computed("cost", lambda order: 31)
    assert opinion(under(eq(wrong((1, 2, 3)), 31))) == "DISAGREES"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (eq(b ** (n + 1), b * b**n), "residues"),
        (eq(total(a, n + 1), total(a, n) + a(n + 1)), "residues"),
        (eq(sp.exp(x * (n + 1)), sp.exp(x) * sp.exp(n * x)), "residues"),
        (eq(b ** (n + 1), b**n), "DISAGREES"),
        (eq(total(a, n + 1), total(a, n)), "DISAGREES"),
        (gt(sp.exp(x), 1 + x), "certified"),
        (gt(x, y), "DISAGREES"),
        (Iff(gt(x, y), gt(2 * x, 2 * y)), "certified"),
        (gt(sp.log(2), sp.Rational(2, 3)), "exact"),
        (lt(sp.log(2), sp.Rational(2, 3)), "DISAGREES"),
        (Iff(eq(x, y), eq(2 * x, y + x)), "certified"),
        (Iff(eq(x, y), eq(2 * x, y)), "DISAGREES"),
        (Iff(gt(x, y), lt(x, y)), "DISAGREES"),
        (gt(sp.ceiling(x), 0), "no interval for ceiling"),
    ],
)
def test_an_opinion(claim, said):
    assert opinion(under(claim)) == said


def test_a_whole_term_is_not_one_number():
    """Terms are tried at 1 and 2 beside small counts; what holds of those is not certified."""
    whole = sequence("k", integer=True, positive=True)
    assert opinion(under(lt(whole(1), 3))) == "DISAGREES"
    assert opinion(under(gt(3 * x, whole(1) * x))) == "DISAGREES"
    assert opinion(under(gt(4 * x * whole(1), whole(1) * x))) == "certified"


def test_hypotheses_bind_the_boxes():
    assert opinion(under(gt(1 - b**2, 0), lt(b, 1))) == "certified"
    assert opinion(under(gt(1 - b, 0), lt(b, 2))) == "DISAGREES"
    assert opinion(under(gt(x, 0), lt(x, -1))) == "no box found where the hypotheses hold"
    assert opinion(under(gt(x, 0)), [x]) == "a named root"


def test_hypotheses_that_are_equations_are_solved():
    grows, whole = eq(a(n + 1), b * a(n), over=n), eq(total(a, 3), 1)
    first = eq(a(1), 1 / (1 + b + b**2))
    assert opinion(under(eq(a(3), b**2 * a(1)), grows)) == "certified"
    assert opinion(under(first, grows, whole)) == "certified"
    assert opinion(under(eq(a(2), b**2 * a(1)), grows)) == "DISAGREES"
    assert (
        opinion(under(eq(a(1), 1), eq(a(1) ** 2, 1)))
        == "no certificate found, and no box has equations in it"
    )
    assert "no certificate" in opinion(under(eq(x, 1), eq(x, y), gt(y, x)))


def test_two_forms_have_one_value_and_others_another():
    assert residue((x + y) ** 3) == residue(sp.expand((x + y) ** 3))
    assert residue((1 - b ** (2 * n)) / (1 - b**n)) == residue(1 + b**n)
    assert residue(x) != residue(y)
    assert residue(1 / (x - x * sp.Rational(1, 1) + 0 * y + 1)) == 1
    assert residue(sp.floor(x)) is None


def test_a_terminal_shows_no_latex():
    assert plain(r"$\beta^n \ge \frac{1}{n}$") == "β^n ≥ 1/n"
    assert plain(r"$\Delta \to \infty$") == "Δ → ∞"

"""The second opinion agrees wherever it applies, says where it does not, and can disagree."""

import re

import pytest
import sympy as sp

from dlsim.theory.claim import Iff, eq, gt, lt, plain, sequence, total, under
from dlsim.theory.residues import residue
from dlsim.theory.second import opinion, second

x, y, b = sp.symbols("x y b", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
a = sequence("a", real=True)


def test_nothing_disagrees():
    text, failed = second()
    assert failed == 0
    counted = re.match(
        r"(\d+) goals: (\d+) agree .* (\d+) in interval boxes", text.splitlines()[-1]
    )
    whole, residues, intervals = map(int, counted.groups())
    assert residues + intervals >= 0.7 * whole


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (eq(b ** (n + 1), b * b**n), "residues"),
        (eq(total(a, n + 1), total(a, n) + a(n + 1)), "residues"),
        (eq(sp.exp(x * (n + 1)), sp.exp(x) * sp.exp(n * x)), "residues"),
        (eq(b ** (n + 1), b**n), "DISAGREES"),
        (eq(total(a, n + 1), total(a, n)), "DISAGREES"),
        (gt(sp.exp(x), 1 + x), "intervals"),
        (gt(x, y), "DISAGREES"),
        (Iff(gt(x, y), gt(2 * x, 2 * y)), "intervals"),
        (Iff(gt(x, y), lt(x, y)), "DISAGREES"),
        (gt(sp.ceiling(x), 0), "no interval for ceiling"),
    ],
)
def test_an_opinion(claim, said):
    assert opinion(under(claim)) == said


def test_hypotheses_bind_the_boxes():
    assert opinion(under(gt(1 - b**2, 0), lt(b, 1))) == "intervals"
    assert opinion(under(gt(1 - b, 0), lt(b, 2))) == "DISAGREES"
    assert opinion(under(gt(x, 0), lt(x, -1))) == "no box found where the hypotheses hold"
    assert "equations" in opinion(under(eq(x, y), eq(y, x)))
    assert opinion(under(gt(x, 0)), [x]) == "a named root"


def test_two_forms_have_one_value_and_others_another():
    assert residue((x + y) ** 3) == residue(sp.expand((x + y) ** 3))
    assert residue((1 - b ** (2 * n)) / (1 - b**n)) == residue(1 + b**n)
    assert residue(x) != residue(y)
    assert residue(1 / (x - x * sp.Rational(1, 1) + 0 * y + 1)) == 1
    assert residue(sp.floor(x)) is None


def test_a_terminal_shows_no_latex():
    assert plain(r"$\beta^n \ge \frac{1}{n}$") == "β^n ≥ 1/n"
    assert plain(r"$\Delta \to \infty$") == "Δ → ∞"

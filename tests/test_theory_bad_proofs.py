"""Proofs that a prover must refuse, each by its name and for its own reason."""

import pytest
import sympy as sp

from dlsim.theory import ProofError
from dlsim.theory.book import STATED, cited, statement
from dlsim.theory.claim import Iff, Relation, differ, eq, ge, gt, lt, sequence, total, under
from dlsim.theory.derivation import Derivation

x, y, u, p, q, b, root = sp.symbols("x y u p q b xi", positive=True)
r, s = sp.symbols("r s", real=True)
v, z = sp.symbols("v z", nonnegative=True)
n, j, k = sp.symbols("n j k", integer=True, positive=True)
i = sp.Symbol("i", integer=True, nonnegative=True)
a = sequence("a", real=True)
below = lt(b, 1)
curve = sp.exp(u) - 1 - u - x


def half_a_case(d):
    d.assume(gt(r, 0))
    d.show(ge(r**2, 0), "only where r > 0", p**2, {p: r})
    d.either(0, gt(r, 0), "both cases")


def an_assumption_outlives_its_induction(d):
    before, grows = d.assume(gt(a(j), 0)), d.assume(gt(a(j + 1) - a(j), 0))
    d.positive(a(j + 1), p + q, "it grows", {p: before, q: grows})


def a_fixed_term_is_any_term(d):
    d.assume(d.goals[0].given[0])
    d.at(eq(a(j), 0), {j: k})


def a_root_moves_with_its_curve(d, point):
    grown = d.climbs(sp.exp(u) - 1, u, sp.exp(u), "rises")
    for high in (1 + x, x):
        d.assume(gt(curve.subs(u, high), 0))
    d.crosses(curve, u, (0, 1 + x), root, p, "crosses", {p: grown})
    d.at(eq(curve.subs(u, root), 0), point)


def a_hidden_root(d):
    grown = d.climbs(sp.exp(u) - 1, u, sp.exp(u), "rises")
    d.given(0)
    d.crosses(curve, u, (0, 1 + x), root, p, "crosses", {p: grown})


def nothing_added_up_is_positive(d):
    d.adds(gt(x, 0), j, i, "terms above 0")


#: name: (goals, proof, part of the reason for which it is refused)
BAD = {
    "empty": ([gt(x - y, 0)], lambda d: None, "not among the facts"),
    "another claim": (
        [gt(x - y, 0)], lambda d: d.positive(x + y, x + y, "true"), "not among the facts",
    ),
    "an idle step": (
        [eq((x + 1) ** 2, x**2 + 2 * x + 1)],
        lambda d: (d.show(0, "expanded"), d.equal(x * (x + 1), x**2 + x, "idle")), "is not used",
    ),
    "the conclusion assumed": ([gt(x - y, 0)], lambda d: d.assume(x - y), "rests on"),
    "more assumed than the goal says": (
        [under(gt(1 - b**2, 0), below)],
        lambda d: (d.assume(gt(1 - 2 * b, 0)),
                   d.show(0, "so", p + 2 * b - b**2 + 0 * q, {p: 1 - 2 * b})),
        "not made of positive parts",
    ),
    "a stronger hypothesis": (
        [under(gt(1 - b, 0), ge(1, b))], lambda d: d.assume(1 - b), "rests on",
    ),
    "at least 0 is above 0": (
        [under(gt(r, 0), ge(r, 0))], lambda d: (d.given(0), d.show(0, "so", z, {z: r})),
        "not made of positive parts",
    ),
    "a jump": (
        [gt(u / (1 - u), 0)],
        lambda d: d.climbs(u / (1 - u), u, u / u, "slope"), "jump",
    ),
    "a step function": (
        [gt(u + sp.floor(-u), 0)],
        lambda d: d.climbs(u + sp.floor(-u), u, sp.S.One, "slope 1 almost everywhere"), "jump",
    ),
    "no slope at 0": (
        [gt(sp.sqrt(u), 0)], lambda d: d.climbs(sp.sqrt(u), u, 1 / sp.sqrt(u) / 2, "root"), "jump",
    ),
    "calculus over all reals": (
        [ge(sp.exp(r) - 1, 0)], lambda d: d.climbs(sp.exp(r) - 1, r, sp.exp(r), "r < 0 too"),
        "does not run",
    ),
    "division by zero": (
        [under(eq(r, s), eq(r * (r - s), s * (r - s)))],
        lambda d: (d.given(0), d.show(0, "cancelled", by={d.goals[0].given[0]: 1 / (r - s)})),
        "divides by",
    ),
    "nothing over nothing": (
        [eq(x / ((r + s) ** 2 - r**2 - 2 * r * s - s**2), 1)], lambda d: d.show(0, "why not"),
        "divides by",
    ),
    "a denominator of any sign": (
        [Iff(gt(x / (1 - b), 0), gt(x, 0))],
        lambda d: d.show(0, "times 1 - b", 1 / p, {p: 1 - b}), "not known yet",
    ),
    "sign of a branch": ([eq(sp.sqrt(r**2), r)], lambda d: d.show(0, "the root"), "decide"),
    "logarithm of a negative": (
        [Iff(ge(1 - x, sp.exp(r)), ge(sp.log(1 - x), r))],
        lambda d: d.exponentials(sp.log(1 - x), r, "increasing"), "divides by|not known",
    ),
    "outside the domain": (
        [under(gt(1 - b ** (n - 1), 0), below)],
        lambda d: (d.assume(below), d.grows(1 - b**n, n, p, b**n * p, "powers", {p: 1 - b}),
                   d.at(1 - b**n, {n: n - 1})), "outside the range",
    ),
    "a real for a count": (
        [under(gt(1 - b**x, 0), below)],
        lambda d: (d.assume(below), d.grows(1 - b**n, n, p, b**n * p, "powers", {p: 1 - b}),
                   d.at(1 - b**n, {n: x})), "outside the range",
    ),
    "a hypothesis about another": (
        [under(gt(1 - x, 0), below)], lambda d: (d.given(0), d.at(1 - b, {b: x})),
        "is assumed: show",
    ),
    "induction on what is restricted": (
        [under(gt(n - 4, 0), gt(n - 5, 0))],
        lambda d: (d.given(0), d.grows(n**2 - 10 * n + 10, n, 1, 2 * p + 1, "no", {p: n - 5})),
        "n is not free",
    ),
    "induction over the reals": (
        [ge(x, 1)], lambda d: d.grows(x - 1, x, 0, 1, "steps of 1", strict=False), "does not count",
    ),
    "induction without a base": (
        [eq(total(a, n), total(a, n) + 1)], lambda d: d.recur(0, n, "steps agree"),
        "wrong at n = 1",
    ),
    "induction without a step": (
        [eq(total(lambda m: m, n), n**2)], lambda d: d.recur(0, n, "true at 1"), "does not pass",
    ),
    "half of the cases": ([ge(r**2, 0)], half_a_case, "not shown where"),
    "a fixed term is any term": (
        [under(eq(a(k), 0), eq(a(j), 0))], a_fixed_term_is_any_term, "is assumed: show",
    ),
    "an assumption that is none": ([gt(a(j + 1), 0)], an_assumption_outlives_its_induction,
        "rests on"),
    "a root of another curve": (
        [gt(root, 0)], lambda d: a_root_moves_with_its_curve(d, {x: 2 * x}),
        "depends on|is assumed",
    ),
    "a root at will": (
        [gt(root, 0)], lambda d: a_root_moves_with_its_curve(d, {root: 5}), "depends on",
    ),
    "a hidden root": (
        [under(eq(curve.subs(u, root), 0), gt(curve.subs(u, 1 + x), 0))], a_hidden_root,
        "does not say that a root is meant",
    ),
    "a limit without a bound": (
        [eq(sp.Limit(x**2, x, 1, "-"), 2)], lambda d: d.squeeze(0, 1, "close"), "not known yet",
    ),
    "a sum of nothing": ([gt(i * x, 0)], nothing_added_up_is_positive, "no terms"),
    "a maximum is any part": (
        [eq(sp.Max(r, s), r)], lambda d: d.extreme(d[0], "the larger"), "not known yet",
    ),
    "not what was computed": (
        [lt(sp.Rational(1, 3), sp.Rational(333, 1000))], lambda d: d.compute(0, "no"),
        "does not hold",
    ),
    "identical after all": (
        [differ(x * (x + 1), x**2 + x)], lambda d: d.show(0, "different"), "is identical",
    ),
    "a contradiction that is none": (
        [ge(r, s)], lambda d: (d.assume(gt(s, r)), d.absurd(0, s - r, "no")), "is not zero",
    ),
    "a refuted lemma": ([gt(x, 0)], lambda d: d.lemma("5.2b", "cited"), "may be cited"),
    "an unknown lemma": ([gt(x, 0)], lambda d: d.lemma("9.9", "cited"), "no statement"),
    "a goal that a lemma has not": ([gt(x, 0)], lambda d: d.lemma("5.1", "cited", 9),
        "may be cited"),
    "a lemma beyond its hypotheses": (
        [gt(x, 0)], lambda d: d.lemma("L5.1", "cited"), "is assumed: show",
    ),
}  # fmt: skip


def derived(goals, proof):
    """Run a proof and check its end."""
    every = [under(goal) if isinstance(goal, Relation | Iff) else goal for goal in goals]
    d = Derivation(every, cite=cited)
    proof(d)
    d.finish()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_proof_is_refused(name):
    goals, proof, reason = BAD[name]
    with pytest.raises(ProofError, match=reason):
        derived(goals, proof)


@pytest.fixture
def book(monkeypatch):
    """An empty book, to which a test adds statements."""
    entries = {}
    monkeypatch.setattr("dlsim.theory.book._BOOK", entries)
    monkeypatch.setattr("dlsim.theory.book._SOUND", set())
    for key in ("t.1", "t.2"):
        monkeypatch.setitem(STATED, key, {"source": "test"})
    return entries


def test_a_statement_that_cites_itself_is_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.1", "itself"))
    with pytest.raises(ProofError, match=r"rests on itself: t\.1 -> t\.1"):
        book["t.1"].prove()


def test_two_statements_that_cite_each_other_are_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.2", "the other"))
    statement("t.2", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.1", "the other"))
    for key in book:
        with pytest.raises(ProofError, match="rests on itself"):
            book[key].prove()


def test_what_rests_on_an_unproved_statement_is_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.2", "the other"))
    statement("t.2", {"none": {}}, [gt(1 - x, 0)])(lambda d: None)
    with pytest.raises(ProofError, match=r"t\.2: the goal .* is not among"):
        book["t.1"].prove()


def test_hypotheses_that_exclude_each_other_are_refused(book):
    given = [gt(r, 1), lt(r, 0)]
    prove = statement("t.1", {"none": {}}, [gt(r, s)], given, witness={r: 2})
    prove(lambda d: (d.given(0), d.given(1), d.show(0, "so", p, {p: r - s})))
    statement("t.2", {"none": {}}, [gt(r, 1)], given, witness={r: 2})(lambda d: d.given(0))
    with pytest.raises(ProofError, match="not known yet"):
        book["t.1"].prove()
    with pytest.raises(ProofError, match="no witness point"):
        book["t.2"].prove()

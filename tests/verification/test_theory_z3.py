"""A second opinion on every step of plain algebra: z3 asks whether it could be false.

The lines of all proofs that rest on `identity`, `positive` or `iff` are put to z3 as statements
about real numbers, without SymPy's factors or coefficients: is there a point at which the sources
hold and the line does not? Its answer must be no; false variants of the lines must get a yes.
"""

import functools

import pytest
import sympy as sp
import z3

from dlsim import theory
from dlsim.theory.algebra import _KERNELS, flatten
from dlsim.theory.relations import Every, Iff, Relation, eq, ge, gt, le, lt
from dlsim.theory.symbols import Ratio, beta, geometric, n, phi

MILLISECONDS = 3000


class Translation:
    """Expressions as z3's real numbers, with what is known of each generator and denominator."""

    def __init__(self):
        self.names, self.known = {}, []

    def variable(self, generator):
        if generator in self.names:
            return self.names[generator]
        number = z3.Real(f"v{len(self.names)}")
        self.names[generator] = number
        kernel = _KERNELS.get(generator, generator)
        if isinstance(kernel, Ratio):
            self.known += [number > 0, number < 1]
        elif isinstance(kernel, sp.log) and isinstance(kernel.args[0], Ratio):
            self.known.append(number < 0)
        elif (
            isinstance(kernel, sp.Pow)
            and isinstance(kernel.base, Ratio)
            and kernel.exp.is_nonnegative
        ):
            self.known += [number > 0, number <= 1]
            if kernel.exp.is_positive:
                self.known.append(number < 1)
                if kernel.exp.is_integer:
                    self.known.append(number <= self.variable(kernel.base))
        elif isinstance(kernel, sp.Sum):
            pass
        elif kernel.is_positive:
            self.known.append(number >= 1 if kernel.is_integer else number > 0)
        elif kernel.is_nonnegative:
            self.known.append(number >= 0)
        return number

    def expression(self, expression):
        return self._term(flatten(expression))

    def _term(self, flat):
        if flat.is_Rational:
            return z3.RealVal(str(flat))
        if flat.is_Symbol:
            return self.variable(flat)
        if flat.is_Add:
            return functools.reduce(lambda one, two: one + two, map(self._term, flat.args))
        if flat.is_Mul:
            return functools.reduce(lambda one, two: one * two, map(self._term, flat.args))
        assert flat.is_Pow
        assert flat.exp.is_Integer
        base, power = self._term(flat.base), abs(int(flat.exp))
        product = functools.reduce(lambda one, two: one * two, [base] * power)
        if flat.exp > 0:
            return product
        self.known.append(base != 0)
        return 1 / product

    def relation(self, relation):
        if isinstance(relation, Iff):
            return self.relation(relation.first) == self.relation(relation.second)
        left, right = map(self.expression, relation.sides)
        return {"=": left == right, ">": left > right, ">=": left >= right,
                "<": left < right, "<=": left <= right}[relation.sign]  # fmt: skip


def opinion(claim, sources):
    """Return whether z3 finds that the sources imply the claim: "proved", "false" or "unknown"."""
    translation = Translation()
    known = [translation.relation(source) for source in sources]
    wanted = translation.relation(claim)
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*known, *translation.known, z3.Not(wanted))
    return {"unsat": "proved", "sat": "false"}.get(str(solver.check()), "unknown")


def algebra_lines():
    """Each line of plain algebra, with the claims of its sources."""
    for proof in theory.prove():
        for line in proof.lines:
            sources = [source.claim for source, _ in line.sources]
            if line.rule and not any(isinstance(source, Every) for source in sources):
                yield proof.statement.key, line.claim, sources


def is_algebraic(claim):
    """Whether z3 can be asked: no power of a number other than beta, no root."""
    try:
        Translation().relation(claim)
    except AssertionError:
        return False
    return True


def test_no_line_of_algebra_is_false():
    asked = [one for one in algebra_lines() if all(map(is_algebraic, (one[1], *one[2])))]
    found = [(key, opinion(claim, sources), claim) for key, claim, sources in asked]
    assert [row for row in found if row[1] == "false"] == []
    proved = sum(row[1] == "proved" for row in found)
    assert proved > 200
    assert proved > 0.9 * len(found)


@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        (lt(geometric(n), 1), []),
        (gt(geometric(n + 1), geometric(n) + 1), []),
        (gt(phi, 0), []),
        (ge(beta**n, beta), []),
        (eq(geometric(2), 1 - beta), []),
        (gt(n * phi, phi), [ge(n, 1)]),
        (le(n, 1), [ge(n, 1)]),
    ],
    ids=str,
)
def test_what_is_false_is_found(claim, sources):
    assert opinion(claim, sources) == "false"


def test_the_sources_count():
    assert opinion(gt(n * phi, 0), []) == "false"
    assert opinion(gt(n * phi, 0), [gt(phi, 0)]) == "proved"
    assert opinion(Iff(gt(phi, 0), gt(2 * phi, 0)), []) == "proved"
    assert opinion(Relation(phi, ">=", 0), []) == "proved"

"""A second opinion on every goal, from outside SymPy.

Identities are evaluated at random points of a prime field (`dlsim.theory.residues`), inequalities
and equivalences in interval arithmetic (mpmath), in small boxes at random points where the
hypotheses certainly hold: in such a box the sign is certain for every point of it. What rests on
equations between unknown sequences, on limits or on named roots has no such check, and is said
to have none. SymPy's trees are only read here; nothing of them is transformed.
"""

import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy as sp
from mpmath import iv
from sympy.core.function import AppliedUndef

from dlsim.theory.book import Statement, matching
from dlsim.theory.claim import Claim, Goal, Relation, sides
from dlsim.theory.residues import residue
from dlsim.theory.zero import ProofError

#: Random points of an identity, boxes of an inequality, and how often a box is looked for.
TRIALS, BOXES, TRIES = 8, 20, 400


class _AbsentError(Exception):
    """What an expression holds that has no value here."""


class _Box:
    """A small box: an interval for every symbol and every term of a sequence, by need."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values: dict[Any, Any] = {}

    def _any(self, symbol: Any) -> Any:
        if symbol.is_integer:
            return self.random.randint(1, 6)
        low = 0.02 if symbol.is_nonnegative else -2.0
        centre = self.random.choice((self.random.uniform(low, 1), self.random.uniform(low, 4)))
        return iv.mpf([centre, centre * (1 + 2.0**-30)] if centre > 0 else centre)

    def _kept(self, key: Any, symbol: Any) -> Any:
        if key not in self.values:
            self.values[key] = self._any(symbol)
        return self.values[key]

    def value(self, expr: Any) -> Any:
        """Return a whole number or an interval that holds the value of an expression."""
        if expr.is_Integer:
            return int(expr)
        if expr.is_Rational:
            return iv.mpf(int(expr.p)) / int(expr.q)
        if expr.is_Symbol:
            return self._kept(expr.name, expr)
        if expr == sp.E:
            return iv.e
        if expr.is_Add:
            return sum(map(self.value, expr.args))
        if expr.is_Mul:
            result: Any = 1
            for arg in expr.args:
                result = result * self.value(arg)
            return result
        if isinstance(expr, sp.exp | sp.log):
            return getattr(iv, expr.func.__name__)(iv.mpf(self.value(expr.args[0])))
        if expr.is_Pow:
            base, power = self.value(expr.base), self.value(expr.exp)
            return iv.mpf(base) ** power if isinstance(power, int) else iv.exp(power * iv.log(base))
        if isinstance(expr, sp.Derivative):
            return self.value(expr.doit())
        if isinstance(expr, sp.Sum):
            return self._sum(expr)
        if hasattr(expr.func, "unfolded"):
            return self.value(expr.func.unfolded(self.value(expr.args[0])))
        if hasattr(expr.func, "computes"):
            found = Fraction(expr.func.computes(*map(_plain, expr.args)))
            return iv.mpf(found.numerator) / found.denominator
        if isinstance(expr, AppliedUndef):
            return self._kept((expr.func.__name__, *map(self.value, expr.args)), expr)
        raise _AbsentError(expr.func.__name__)

    def _sum(self, expr: Any) -> Any:
        index, start, end = expr.limits[0]
        kept, result = self.values.get(index.name), 0
        for number in range(int(start), self.value(end) + 1):
            self.values[index.name] = number
            result = result + self.value(expr.function)
        self.values.pop(index.name, None)
        if kept is not None:
            self.values[index.name] = kept
        return result

    def sign(self, relation: Relation) -> bool | None:
        """Tell whether an inequality certainly holds, certainly fails, or (None) neither."""
        gap = iv.mpf(self.value(relation.left)) - iv.mpf(self.value(relation.right))
        gap = -gap if relation.op[0] == "<" else gap
        if gap.a > 0 or (gap.a >= 0 and relation.sign == ">="):
            return True
        return False if gap.b < 0 or (gap.b <= 0 and relation.sign == ">") else None


def _plain(value: Any) -> Any:
    """Return an exact number of SymPy's as one of Python's."""
    if isinstance(value, sp.Tuple):
        return tuple(map(_plain, value))
    return int(value) if value.is_Integer else Fraction(int(value.p), int(value.q))


def _identity(claim: Relation) -> str:
    gaps = [residue(claim.gap, trial) for trial in range(TRIALS)]
    if None in gaps:
        return "no value in a prime field"
    same = not any(gaps)
    return "residues" if same == (claim.op == "=") else "DISAGREES"


def _in_boxes(goal: Goal) -> str:
    claim, found = goal.claim, 0
    for seed in range(TRIES):
        box = _Box(seed)
        try:
            if not all(box.sign(premise) for premise in goal.given):
                continue
            signs = [box.sign(side) for side in sides(claim)]
        except _AbsentError as absent:
            return f"no interval for {absent}"
        except ZeroDivisionError:
            continue
        if None in signs:
            continue
        if not (signs[0] if len(signs) == 1 else signs[0] == signs[1]):
            return "DISAGREES"
        found += 1
        if found == BOXES or not (claim.free or goal.given):
            return "intervals"
    return "intervals" if found else "no box found where the hypotheses hold"


def opinion(goal: Goal, roots: Iterable[Any] = ()) -> str:
    """Return by what a goal was checked, "DISAGREES", or why it cannot be checked."""
    claim = goal.claim
    if claim.free & set(roots):
        return "a named root"
    if any(premise.sign == "=" or premise.over is not None for premise in goal.given):
        return "rests on equations or on whole sequences"
    numbers = isinstance(claim, Relation) and not claim.free
    if any(side.op in ("=", "!=") for side in sides(claim)) and not numbers:
        return _identity(claim) if isinstance(claim, Relation) else "an equivalence of equations"
    if numbers and claim.op == "=":  # type: ignore[union-attr]
        return _equal_numbers(claim)  # type: ignore[arg-type]
    return _in_boxes(goal)


def _equal_numbers(claim: Relation) -> str:
    try:
        box = _Box(0)
        gap = iv.mpf(box.value(claim.left)) - iv.mpf(box.value(claim.right))
    except _AbsentError as absent:
        return f"no interval for {absent}"
    return "intervals" if gap.a <= 0 <= gap.b and gap.delta < 1e-9 else "DISAGREES"


def _counted_again(claim: Claim) -> bool:
    """Tell whether a claim names a function of exact numbers, which is called a second time."""
    ends = [end for side in sides(claim) for end in (side.left, side.right)]
    return any(hasattr(part.func, "computes") for end in ends for part in end.atoms(AppliedUndef))


def _line(statement: Statement, width: int) -> tuple[str, Counter[str]]:
    found = Counter[str]()
    again = 0
    for goal in statement.expanded():
        word = opinion(goal, statement.exists)
        found[word] += 1
        again += word == "intervals" and _counted_again(goal.claim)
    said = ", ".join(f"{count} {word}" for word, count in found.items())
    found["again"] = again
    return f"{statement.key:<{width}}  {said}", found


def second(keys: str | Iterable[str] = ()) -> tuple[str, int]:
    """Check the goals of statements outside SymPy: a table of text, and how many disagree.

    A goal that its proof does not reach is not asked about: the proofs run first.
    """
    found = matching(keys)
    width = max(len(s.key) for s in found)
    lines, words, failed = [], Counter[str](), 0
    for statement in found:
        try:
            statement.prove()
            line, counted = _line(statement, width)
        except ProofError as error:
            line, counted = f"{statement.key:<{width}}  FAILED {error}", Counter(DISAGREES=1)
        lines.append(line)
        words += counted
        failed += counted["DISAGREES"]
    again = words.pop("again", 0)
    agreed = words["residues"] + words["intervals"]
    lines.append(
        f"{words.total()} goals: {words['residues']} agree at {TRIALS} points modulo 2^61 - 1 (a "
        f"false identity of degree d agrees with probability below (d/2^61)^{TRIALS}), "
        f"{words['intervals']} in interval boxes ({again} of them only by calling a "
        f"function of exact numbers again), {failed} disagree, "
        f"{words.total() - agreed - failed} have no such check"
    )
    return "\n".join(lines), failed

"""What may be claimed, and when one claim is another or says more."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.theory.claim import NEGATED, Claim, Iff, Relation, ends, one_letter_each, sides
from dlsim.theory.residues import residue
from dlsim.theory.zero import ProofError, UndecidedError, is_zero


def bound_in(claim: Claim) -> set[Any]:
    """Return the letters bound by a sum, a derivative or a limit."""
    parts = [part for end in ends([claim]) for part in end.atoms(sp.Sum, sp.Derivative)]
    return nearing(claim).union(*(part.variables for part in parts))


def nearing(claim: Claim) -> set[Any]:
    """Return the letters bound by a limit, which is no function of them."""
    return {part.args[1] for end in ends([claim]) for part in end.atoms(sp.Limit)}


#: The ranges that a letter may have; with any other, SymPy knows more than an instance checks.
_RANGES = [
    sp.Symbol("x", **kind, **of).assumptions0
    for kind in ({"integer": True}, {"real": True}, {})
    for of in ({}, {"nonnegative": True}, {"positive": True})
]


def ordinary(letter: Any) -> bool:
    """Tell whether a letter is any number, real or whole, of any sign, >= 0 or positive."""
    return letter.assumptions0 in _RANGES


#: What no rule knows to be continuous.
_JUMPS = (sp.Max, sp.Min, sp.floor, sp.ceiling, sp.Limit, AppliedUndef)
#: All that a claim may be built of: the rules, and both readers of trees, know these alone.
_READ = (sp.Symbol, sp.Rational, sp.E.func, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log, sp.Sum,
         sp.Derivative, sp.Tuple, *_JUMPS)  # fmt: skip


def _readable(part: Any) -> bool:
    """Tell whether a part of a claim means the same to SymPy, to the rules and to a reader.

    A sum runs from 1 to a count, which may be 0; a slope is one of a smooth function of a real.
    """
    if isinstance(part, sp.Sum):
        return all(
            start == 1 and index.is_integer and index.is_positive
            and end.is_integer and end.is_nonnegative
            for index, start, end in part.limits
        )  # fmt: skip
    if isinstance(part, sp.Derivative):
        return not part.expr.has(*_JUMPS) and not any(u.is_integer for u in part.variables)
    return isinstance(part, _READ)


def sound(claim: Claim, why: str, given: Iterable[Relation] = ()) -> None:
    """Refuse what is not exact, other ranges, one name for two letters, a bound index."""
    if any(side.over is not None for side in sides(claim)):
        raise ProofError(f"{why}: {claim.tex()} binds an index, which only a hypothesis may")
    one_letter_each(ends([claim, *given]), why)
    for end in ends([claim, *given]):
        if end.has(sp.Float, sp.oo, -sp.oo, sp.zoo, sp.nan):
            raise ProofError(f"{why}: {end} is no exact number")
        for part in sp.preorder_traversal(end):
            if part.is_Symbol and not ordinary(part):
                raise ProofError(f"{why}: {part} has a range that no rule checks")
            if not _readable(part):
                raise ProofError(f"{why}: no rule reads {part}")
    for side in (side for each in (claim, *given) for side in sides(each)):
        if side.sign in NEGATED and not real(side.gap):
            raise ProofError(f"{why}: {side.tex()} compares what need not be real")


def real(value: Any) -> bool:
    """Tell whether an expression is real wherever its denominators and logarithms are defined."""
    if isinstance(value, sp.Sum | sp.Derivative):
        return real(value.args[0])
    if value.is_real or not isinstance(value, sp.Add | sp.Mul | sp.Pow | sp.log | sp.Max | sp.Min):
        return bool(value.is_real) or hasattr(value, "computes")
    if value.is_Pow and not (
        value.exp.is_integer or (value.base.is_positive and value.exp.is_real)
    ):
        return False
    return all(map(real, value.args))


@cache
def identity(gap: Any) -> bool:
    """Tell whether a gap is zero for all values; undecided counts as no."""
    try:
        return not residue(gap) and is_zero(gap)
    except UndecidedError:
        return False


@cache
def _same(a: Any, b: Any) -> bool:
    """Tell whether two expressions are one; undecided counts as no."""
    if a == b or a.free_symbols != b.free_symbols:
        return bool(a == b)
    values = residue(a), residue(b)
    return (None in values or values[0] == values[1]) and identity(a - b)


_SUFFICES = {"=": ("=",), ">": (">",), ">=": (">", ">="), "!=": ("!=",)}


def implies(known: Claim, wanted: Claim) -> bool:
    """Tell whether one claim is another up to equal expressions, or says more."""
    if isinstance(known, Iff) or isinstance(wanted, Iff):
        if not (isinstance(known, Iff) and isinstance(wanted, Iff)):
            return False
        return any(
            a.sign == wanted.left.sign and b.sign == wanted.right.sign
            and implies(a, wanted.left) and implies(b, wanted.right)
            for a, b in known.ways
        )  # fmt: skip
    if known.sign not in _SUFFICES[wanted.sign] or known.over != wanted.over:
        return False
    if known.sign == "!=":
        return _same(known.left, wanted.left) and _same(known.right, wanted.right)
    if known.sign == "=":
        if {known.left, known.right} == {wanted.left, wanted.right}:
            return True
        # all identities have one gap, 0: which of them is known is a matter of form
        if identity(wanted.gap):
            return False
    return (wanted.sign == "=" and _same(-known.gap, wanted.gap)) or _same(known.gap, wanted.gap)


def evident(claim: Claim) -> bool:
    """Tell whether a claim follows from the ranges of the symbols alone."""
    if isinstance(claim, Iff) or claim.sign not in (">", ">="):
        return False
    gap = claim.gap
    return bool(gap.is_positive or (claim.sign == ">=" and gap.is_nonnegative))

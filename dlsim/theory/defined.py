"""Where an expression is defined: what is divided by is not 0, a sum has no fewer than no terms.

A part of an expression is defined under the `facts`, inequalities that hold, or because it stands
in a claim that holds. Facts about a symbol say nothing of an index of the same name.
"""

import functools
from collections.abc import Iterable, Iterator

import sympy as sp

from dlsim.theory import expressions
from dlsim.theory.algebra import SHOWN_BY, sign
from dlsim.theory.expressions import ProofError
from dlsim.theory.relations import Every, Proposition, Relation
from dlsim.theory.symbols import Ratio

Facts = tuple[Relation, ...]


def require_defined(
    parts: Iterable[sp.Expr], facts: Iterable[Relation] = (), holding: Iterable[Proposition] = ()
) -> None:
    """Refuse expressions that are not shown to be defined and real.

    They may divide by what may be 0, take the logarithm or root of what may be negative, add up a
    negative number of terms, or differentiate what has no derivative. What stands in a claim that
    is `holding` is defined.
    """
    facts, known = tuple(facts), frozenset(_parts_of(holding))
    for part in parts:
        expressions.require_known(part)
        if part not in known and not _is_defined_alone(part):
            _require(part, facts, known)


def _parts_of(claims: Iterable[Proposition]) -> Iterator[sp.Basic]:
    """Yield the parts of claims that hold, but nothing that an index is bound in."""
    for claim in claims:
        waiting = [*claim.span[1:]] if isinstance(claim, Every) else [*claim.sides]
        while waiting:
            part = waiting.pop()
            yield part
            if not isinstance(part, sp.Sum | sp.Subs | sp.Derivative):
                waiting.extend(part.args)


@functools.cache
def _is_defined_alone(part: sp.Expr) -> bool:
    try:
        _require(part, (), frozenset())
    except ProofError:
        return False
    return True


def _require(part: sp.Basic, facts: Facts, known: frozenset[sp.Basic]) -> None:
    """Refuse a part that is not shown to be defined."""
    if part in known:
        return
    if isinstance(part, sp.Sum):
        _require_sum(part, facts, known)
        return
    if isinstance(part, sp.Subs):
        _require_values(part, facts, known)
        return
    for inner in part.args:
        _require(inner, facts, known)
    if isinstance(part, sp.Derivative):
        _require(expressions.put_in(part), facts, known)
    elif isinstance(part, sp.Pow):
        _require_power(part, facts)
    elif isinstance(part, sp.log) and not _is_positive(part.args[0], facts):
        raise ProofError(f"the logarithm of {part.args[0]} may not exist")
    elif expressions.is_exact_function(part):
        if not all(argument.is_number for argument in part.args):
            raise ProofError(f"{part} is computed of numbers only")
        expressions.exact_value(part)


def _is_positive(part: sp.Expr, facts: Facts) -> bool:
    return bool(part.is_positive) or sign(part, facts) == ">"


def _require_power(power: sp.Pow, facts: Facts) -> None:
    base, exponent = power.args
    if _is_positive(base, facts):
        return
    if not exponent.is_nonnegative and sign(base, facts) not in (">", "<"):
        raise ProofError(f"{base} may be 0, and something is divided by it")
    if not exponent.is_integer and sign(base, facts) not in SHOWN_BY[">="]:
        raise ProofError(f"{power} may not be a real number")


def _without(
    symbols: Iterable[sp.Symbol], facts: Facts, known: frozenset[sp.Basic]
) -> tuple[Facts, frozenset[sp.Basic]]:
    """Return the facts and the known parts that say nothing of symbols that are bound here."""
    bound = set(symbols)
    return (
        tuple(fact for fact in facts if not fact.free_symbols & bound),
        frozenset(part for part in known if not part.free_symbols & bound),
    )


def _require_sum(part: sp.Sum, facts: Facts, known: frozenset[sp.Basic]) -> None:
    ((index, low, high),) = part.limits
    inside = _without([index], facts, known)
    _require(low, facts, known)
    _require(high, facts, known)
    _require_terms(part, inside[0])
    _require(part.function, *inside)


def _require_terms(part: sp.Sum, facts: Facts = ()) -> None:
    """Refuse a sum over a wrong range, or of what may be a negative number of terms."""
    ((index, low, high),) = part.limits
    require_range(index, low, high)
    if sign(high - low + 1, facts) not in SHOWN_BY[">="]:
        raise ProofError(f"{part} may have a negative number of terms: {high - low + 1}")


def require_ranges(expression: sp.Expr) -> None:
    """Refuse an expression with a sum over a wrong range, where the sum means nothing."""
    for part in expression.atoms(sp.Sum):
        _require_terms(part)


def require_range(index: sp.Symbol, low: sp.Expr, high: sp.Expr) -> None:
    """Refuse a range that is not of whole numbers, or has some that the index cannot be."""
    expressions.require_plain(index)
    if not (is_whole(low) and is_whole(high)) or not index.is_real or isinstance(index, Ratio):
        raise ProofError(f"{index} = {low}, ..., {high} is no range of whole numbers")
    wanted = ">" if index.is_positive else ">=" if index.is_nonnegative else ""
    if wanted and sign(low) not in SHOWN_BY[wanted]:
        raise ProofError(f"{index} cannot be {low}")


def is_whole(value: sp.Expr) -> bool:
    """Return whether an expression is a whole number; ceilings and floors of what is real are."""
    rounded = {one: sp.Dummy(integer=True) for one in value.atoms(sp.ceiling, sp.floor)}
    return bool(value.xreplace(rounded).is_integer)


def _require_values(part: sp.Subs, facts: Facts, known: frozenset[sp.Basic]) -> None:
    for symbol, value in zip(part.variables, part.point, strict=True):
        _require(value, facts, known)
        require_kind(symbol, value, facts)
    _require(part.expr, *_without(part.variables, facts, known))
    _require(expressions.put_in(part), facts, known)


def require_kind(symbol: sp.Symbol, value: sp.Expr, facts: Facts) -> None:
    """Refuse a value that a symbol cannot have by its assumptions."""
    expressions.require_plain(symbol)
    found = sign(value, facts)
    wrong = symbol.is_positive and found != ">"
    wrong = wrong or (symbol.is_nonnegative and found not in SHOWN_BY[">="])
    wrong = wrong or (symbol.is_integer and not is_whole(value))
    if isinstance(symbol, Ratio):
        wrong = wrong or sign(1 - value, facts) != ">"
    if wrong:
        raise ProofError(f"{symbol} cannot be {value}")

"""The steps of a derivation: each is a function that returns the line to print, or raises.

A `Line` holds a claim and the hypotheses on which it rests (`given`). A step makes a line from
earlier lines and collects their hypotheses, so that the last line of a proof names everything that
was assumed. Signs and equalities are decided in `dlsim.theory.algebra`, never by trying numbers.

The arguments of steps: `claim` is what is shown and `why` one sentence for the reader. `by` maps
lines to what each is multiplied by; a line for every index stands there for its relation. `signs`
and `inside` are inequalities that give the signs of factors, or that an index is in range. A step
that does not follow raises `ProofError`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy as sp

from dlsim.theory.algebra import is_real, is_zero, require_defined, sign
from dlsim.theory.relations import Every, Iff, ProofError, Proposition, Relation, eq, ge, gt, le, lt
from dlsim.theory.symbols import Ratio

#: The signs of a gap, as `sign` returns them, that show a relation of each kind.
SHOWN_BY = {">": (">",), ">=": (">", ">=", "="), "=": ("=",)}


@dataclass(frozen=True, eq=False)
class Line:
    """What was shown, why, from which lines times what, under which hypotheses, and by which rule.

    The rule is named only where it is plain algebra: ``identity``, ``positive`` or ``iff``.
    """

    claim: Any  # a Proposition
    why: str
    sources: tuple[tuple["Line", Any], ...] = ()
    given: frozenset[Proposition] = frozenset()
    rule: str = ""

    @property
    def relation(self) -> Relation:
        """The one relation that it claims."""
        if not isinstance(self.claim, Relation):
            raise ProofError(f"{self.claim} is not one relation")
        return self.claim

    @property
    def every(self) -> Every:
        """The relation that it claims for every index."""
        if not isinstance(self.claim, Every):
            raise ProofError(f"{self.claim} does not hold for every index")
        return self.claim

    def _repr_markdown_(self) -> str:
        return f"{self.claim._repr_latex_()} — {self.why}"


By = Mapping[Line, Any]


def _line(
    claim: Proposition, why: str, by: By | Sequence[Line] = (), given: Any = None, rule: str = ""
) -> Line:
    """Return a line that rests on what its sources rest on, unless `given` says otherwise."""
    sources = tuple(by.items()) if isinstance(by, Mapping) else tuple((line, 1) for line in by)
    if given is None:
        given = frozenset().union(*(line.given for line, _ in sources))
    return Line(claim, why, sources, frozenset(given), rule)


def _facts(lines: Sequence[Line]) -> tuple[Relation, ...]:
    return tuple(line.relation for line in lines)


def _with_signs(signs: Sequence[Line], by: By | None = None) -> dict[Line, Any]:
    """Return sources: lines that give signs, and lines that are multiplied."""
    return {**dict.fromkeys(signs, "sign"), **(by or {})}


def shows(found: Proposition, wanted: Proposition) -> bool:
    """Return whether a claim is another one, or stronger than it by its sign alone."""
    if found == wanted:
        return True
    if isinstance(found, Relation) and isinstance(wanted, Relation):
        if found.kind not in SHOWN_BY[wanted.kind]:
            return False
        difference = found.gap - wanted.gap
        return is_zero(difference) or (found.kind == "=" and is_zero(found.gap + wanted.gap))
    if isinstance(found, Iff) and isinstance(wanted, Iff):
        pairs = ((found.first, wanted.first), (found.second, wanted.second))
        return all(one.kind == two.kind and shows(one, two) for one, two in pairs)
    if isinstance(found, Every) and isinstance(wanted, Every):
        if wanted.index != found.index and wanted.index in found.free_symbols | found.bound_symbols:
            return False
        same_range = is_zero(found.low - wanted.low) and is_zero(found.high - wanted.high)
        renamed = found.relation.subs({found.index: wanted.index})
        return same_range and shows(renamed, wanted.relation)
    return False


# ------------------------------------------------------------------ hypotheses


def assume(hypothesis: Proposition, why: str) -> Line:
    """Take a hypothesis, or an assumption that a later step discharges."""
    return Line(hypothesis, why, (), frozenset([hypothesis]))


def substitute(line: Line, values: Mapping[Any, Any], why: str, signs: Sequence[Line] = ()) -> Line:
    """Put values in for symbols, in a line and in the hypotheses on which it rests.

    A value must be what the symbol stands for, and contain no index that is bound.
    """
    claims, facts = (line.claim, *line.given), _facts(signs)
    values = {old: sp.sympify(new) for old, new in values.items()}
    for old, value in values.items():
        if not isinstance(old, sp.Symbol):
            raise ProofError(f"{old} is not a symbol")
        _require_kind(old, value, facts)
        for claim in claims:
            # another value may bring in what is replaced here
            replaced = any(part.has(old) for part in (*claim.sides, *values.values()))
            if replaced and (value.free_symbols | {old}) & claim.bound_symbols:
                raise ProofError(f"{old} -> {value} meets an index that is bound in {claim}")
    mapped = line.claim.subs(values)
    require_defined(mapped.sides, facts)
    known = {claim.subs(values) for claim in line.given}
    # what says of an expression that it is not below itself, as n >= n, is no hypothesis
    known = {claim for claim in known if claim != ge(claim.sides[0], claim.sides[0])}
    return _line(mapped, why, [line, *signs], known.union(*(one.given for one in signs)))


def discharge(line: Line, known: Line, why: str) -> Line:
    """Replace a hypothesis of a line by what shows it."""
    used = {one for one in line.given if shows(known.claim, one)}
    if not used:
        raise ProofError(f"the line does not rest on {known.claim}")
    return _line(line.claim, why, [line, known], (line.given - used) | known.given)


def _require_kind(symbol: sp.Symbol, value: sp.Expr, facts: tuple[Relation, ...]) -> None:
    """Refuse a value that a symbol cannot have by its assumptions."""
    _require_plain(symbol)
    require_defined([value], facts)
    found = sign(value, facts)
    wrong = symbol.is_positive and found != ">"
    wrong = wrong or (symbol.is_nonnegative and found not in SHOWN_BY[">="])
    wrong = wrong or (symbol.is_integer and not _is_whole(value)) or not is_real(value)
    if isinstance(symbol, Ratio):
        wrong = wrong or sign(1 - value, facts) != ">"
    if wrong:
        raise ProofError(f"{symbol} cannot be {value}")


def _require_plain(symbol: sp.Symbol) -> None:
    """Refuse a symbol with assumptions, such as being even, that no step checks."""
    checked = ("real", "nonnegative", "positive", "integer")
    kinds = {name: True for name in checked if getattr(symbol, f"is_{name}")}
    if symbol.assumptions0 != sp.Symbol("plain", **kinds).assumptions0:
        raise ProofError(f"more is assumed of {symbol} than the steps check")


def take(every: Line, value: Any, why: str = "", inside: Sequence[Line] = ()) -> Line:
    """Take one relation of those that hold for every index.

    Without `inside` the line may rest on the assumption that the value is not above the range;
    `generalise` and `induction` discharge that.
    """
    claim, value = every.every, sp.sympify(value)
    if not inside and sign(claim.high - value) == "":
        inside = [assume(ge(claim.high, value), f"{value} is in range")]
    _require_range(value - claim.low, inside)
    _require_range(claim.high - value, inside)
    if not value.is_integer or value.free_symbols & claim.relation.bound_symbols:
        raise ProofError(f"{value} is no index here")
    relation = claim.relation.subs({claim.index: value})
    plain = f"for any {value} in range" if value == claim.index else f"for {claim.index} = {value}"
    return _line(relation, why or plain, [every, *inside])


def _require_range(distance: sp.Expr, inside: Sequence[Line]) -> None:
    """Refuse an index that is not in range by itself or by one line of `inside`."""
    rests = [distance, *(distance - line.relation.gap for line in inside)]
    if not any(sign(rest) in SHOWN_BY[">="] for rest in rests):
        raise ProofError(f"it is not known whether {distance} >= 0")


def generalise(line: Line, index: sp.Symbol, low: Any, high: Any, why: str = "") -> Line:
    """Generalise a line to every index from `low` to `high`, the range being discharged."""
    claim = Every(line.relation, index, low, high)
    low, high = claim.low, claim.high
    rest = {one for one in line.given if not _is_range(one, (index - low, high - index))}
    if any(index in one.free_symbols for one in rest):
        raise ProofError(f"the line rests on a hypothesis about {index}")
    _require_plain(index)
    if index in low.free_symbols | high.free_symbols or index in line.relation.bound_symbols:
        raise ProofError(f"{index} is bound twice")
    if not index.is_integer or not (low.is_integer and high.is_integer):
        raise ProofError(f"{index} runs over whole numbers only")
    wanted = ">" if index.is_positive else ">=" if index.is_nonnegative else ""
    if wanted and sign(low) not in SHOWN_BY[wanted]:
        raise ProofError(f"{index} cannot be {low}")
    return _line(claim, why or f"for {index} = {low}, ..., {high}", [line], rest)


def _is_range(claim: Proposition, distances: Sequence[sp.Expr]) -> bool:
    """Return whether a claim says that one of the distances from a bound is not negative."""
    return isinstance(claim, Relation) and claim.kind == ">=" and claim.gap in distances


# ------------------------------------------------------------------ equality and sign


def identity(claim: Relation, why: str, by: By | None = None, signs: Sequence[Line] = ()) -> Line:
    """Show an equation: left minus right, less multiples of equations, reduces to 0."""
    by = _relations(by)
    if claim.sign != "=" or any(line.relation.sign != "=" for line in by):
        raise ProofError(f"{claim} is not an equation, or does not follow from equations only")
    require_defined([*claim.sides, *by.values()], _facts(signs))
    rest = claim.gap - sum(times * line.relation.gap for line, times in by.items())
    if not is_zero(rest):
        raise ProofError(f"{claim}: the difference does not reduce to 0")
    return _line(claim, why, _with_signs(signs, by), rule="identity")


def positive(claim: Relation, why: str, by: By | None = None, signs: Sequence[Line] = ()) -> Line:
    """Show an inequality: its gap is a sum of multiples of gaps and of what has their sign.

    Inequalities are multiplied by what is not negative, equations by anything.
    """
    by, facts = _relations(by), _facts(signs)
    if claim.kind == "=":
        raise ProofError(f"{claim} is not an inequality")
    require_defined([*claim.sides, *by.values()], facts)
    rest, strict = claim.gap, False
    for line, times in by.items():
        rest -= times * line.relation.gap
        if line.relation.kind == "=":
            continue
        found = sign(times, facts)
        if found not in SHOWN_BY[">="]:
            raise ProofError(f"{claim}: it is not known whether {times} >= 0")
        strict = strict or (found == ">" and line.relation.kind == ">")
    found = sign(rest, facts)
    if found not in SHOWN_BY[">=" if strict else claim.kind]:
        raise ProofError(f"{claim}: the sign of {sp.factor(rest)} is {found or 'not known'}")
    return _line(claim, why, _with_signs(signs, by), rule="positive")


def _relations(by: By | None) -> dict[Line, sp.Expr]:
    """Return `by` with one relation for each line, that of its own index where it has one."""
    lines = {line: sp.sympify(times) for line, times in (by or {}).items()}
    return {
        take(line, line.claim.index) if isinstance(line.claim, Every) else line: times
        for line, times in lines.items()
    }


def show(
    claim: Relation | Every, why: str, by: By | None = None, signs: Sequence[Line] = ()
) -> Line:
    """Show a relation by `compute` for exact numbers, else by `identity` or `positive`.

    A relation for every index of a range is shown for one index.
    """
    if isinstance(claim, Every):
        one = show(claim.relation, why, by, signs)
        return generalise(one, claim.index, claim.low, claim.high)
    if not by and all(side.doit().is_number for side in claim.sides):
        return compute(claim, why)
    return (identity if claim.kind == "=" else positive)(claim, why, by, signs)


def iff(claim: Iff, why: str, times: Any = 1, signs: Sequence[Line] = ()) -> Line:
    """Show that two relations hold together: one gap times what is positive is the other.

    For equations the factor may also be negative.
    """
    first, second = claim.first, claim.second
    facts, times = _facts(signs), sp.sympify(times)
    require_defined([*claim.sides, times], facts)
    found = sign(times, facts)
    if first.kind != second.kind:
        raise ProofError(f"{first} and {second} are not of one kind")
    if found != ">" and not (found == "<" and first.kind == "="):
        raise ProofError(f"it is not known whether {times} > 0")
    if not is_zero(first.gap * times - second.gap):
        raise ProofError(f"{first} times {times} is not {second}")
    return _line(claim, why, _with_signs(signs), rule="iff")


def solves(equation: Relation, unknown: sp.Symbol, solution: Any, why: str) -> Line:
    """Show that an equation holds for one value of an unknown and no other; it is linear in it."""
    slope = sp.factor(sp.diff(equation.gap, unknown))
    if unknown in slope.free_symbols:
        raise ProofError(f"{equation} is not linear in {unknown}")
    return iff(Iff(equation, eq(unknown, solution)), why, 1 / slope)


def follows(equivalence: Line, known: Line, why: str) -> Line:
    """Pass from one side of an equivalence to the other, or from its negation."""
    claim = equivalence.claim
    if not isinstance(claim, Iff):
        raise ProofError(f"{claim} is no equivalence")
    sides = [(claim.first, claim.second), (claim.second, claim.first)]
    if claim.first.sign != "=":
        sides += [(one.negated, two.negated) for one, two in sides]
    for one, two in sides:
        if shows(known.claim, one):
            return _line(two, why, [equivalence, known])
    raise ProofError(f"{known.claim} is neither side of {claim}, nor its negation")


def chain(why: str, *lines: Line) -> Line:
    """Join equivalences, each of which shares its second side with the first side of the next."""
    if not all(isinstance(line.claim, Iff) for line in lines):
        raise ProofError("only equivalences can be joined")
    for line, after in pairwise(lines):
        one, two = line.claim.second, after.claim.first
        if one.kind != two.kind or not shows(one, two):
            raise ProofError(f"{one} is not {two}")
    return _line(Iff(lines[0].claim.first, lines[-1].claim.second), why, lines)


# ------------------------------------------------------------------ whole numbers and sums


def induction(claim: Relation | Every, index: sp.Symbol, base: Line, step: Line, why: str) -> Line:
    """Show a claim for every whole `index`: for the first, and for one more where it holds.

    The first index is 1 for a positive symbol and 0 for one that is not negative. The step rests
    on the claim itself. If it also rests on ``bound >= index + 1``, the result rests on
    ``bound >= index``: the claim up to a bound. A claim for every index of a range is such a one.
    """
    if isinstance(claim, Every):
        line = induction(claim.relation, index, base, step, why)
        return generalise(line, claim.index, claim.low, claim.high)
    _require_plain(index)
    start = sp.Integer(1 if index.is_positive else 0)
    if not index.is_integer or not index.is_nonnegative or index in claim.bound_symbols:
        raise ProofError(f"{index} does not count from 0 or 1")
    if not shows(base.claim, claim.subs({index: start})):
        raise ProofError(f"{base.claim} is not the first case of {claim}")
    if not shows(step.claim, claim.subs({index: index + 1})):
        raise ProofError(f"{step.claim} is not {claim} for one more")
    rest = set()
    for one in (base.given | step.given) - {claim}:
        if index in one.free_symbols:
            bound = one.gap + index + 1 if isinstance(one, Relation) else index
            if index in bound.free_symbols or not _is_range(one, [bound - index - 1]):
                raise ProofError(f"the induction rests on {one}, which depends on {index}")
            one = ge(bound, index)
        rest.add(one)
    if any(index in one.free_symbols for one in base.given):
        raise ProofError(f"the first case rests on a hypothesis about {index}")
    return _line(claim, why, [base, step], rest)


def show_inductively(
    claim: Relation | Every,
    index: sp.Symbol,
    why: str,
    by: By | None = None,
    times: Any = 1,
    first: By | None = None,
    signs: Sequence[Line] = (),
) -> Line:
    """Show a claim by induction where the first case and the step are plain algebra.

    The first case rests on the lines `first`; the step on the lines `by` and on the claim for one
    less, which is multiplied by `times`.
    """
    one = claim.relation if isinstance(claim, Every) else claim
    start = sp.Integer(1 if index.is_positive else 0)
    base = show(one.subs({index: start}), f"{why}: it holds for {start}", first, signs)
    before = assume(one, f"{why}: assume it for {index}")
    after = one.subs({index: index + 1})
    by = {before: times, **(by or {})}
    step = show(after, f"{why}: then it holds for {index} + 1", by, signs)
    return induction(claim, index, base, step, why)


def add_up(
    each: Line,
    why: str,
    low: Any = None,
    high: Any = None,
    inside: Sequence[Line] = (),
    weight: Any = None,
) -> Line:
    """Add up relations that hold for every index, or for those from `low` to `high`.

    The sum is strict only if it surely has a term; a sum without a term is 0. `inside` shows
    that the smaller range is in the range, and not shorter than empty. With a `weight`, each
    relation is multiplied by it first.
    """
    claim = each.every
    if weight is not None:
        left, right = (weight * side for side in claim.relation.sides)
        weighed = Every(Relation(left, claim.relation.sign, right), *claim.span)
        each, why = show(weighed, why, {each: weight}), "all of them added"
    relation, index, first, last = each.every.relation, *claim.span
    low = first if low is None else sp.sympify(low)
    high = last if high is None else sp.sympify(high)
    for distance in (low - first, last - high, high - low + 1):
        _require_range(distance, inside)
    if index in low.free_symbols | high.free_symbols:
        # the bounds depend on the index of what is added: the sum gets another one
        counter = sp.Symbol("h", **index.assumptions0)
        if counter in relation.free_symbols | relation.bound_symbols:
            raise ProofError(f"{counter} has two meanings in {relation}")
        relation, index = relation.subs({index: counter}), counter
    strict = relation.kind == ">" and sign(high - low + 1) == ">"
    kept = relation.sign if relation.kind != ">" or strict else relation.sign + "="
    left, right = (sp.Sum(side, (index, low, high)) for side in relation.sides)
    return _line(Relation(left, kept, right), why, [each, *inside])


def ceiling(count: sp.Expr, real: sp.Expr, why: str, signs: Sequence[Line] = ()) -> Line:
    """Show, for a whole count, that it is at least a number iff it is at least its ceiling."""
    _require_real(real, signs)
    if not _is_whole(count):
        raise ProofError(f"{count} is not whole")
    return _line(Iff(ge(count, real), ge(count, sp.ceiling(real))), why, _with_signs(signs))


def rounding(rounded: sp.Expr, signs: Sequence[Line] = ()) -> tuple[Line, Line]:
    """Show the definition of a ceiling or floor: on which side of the number, and how near."""
    if not isinstance(rounded, sp.ceiling | sp.floor):
        raise ProofError(f"{rounded} is neither a ceiling nor a floor")
    (real,) = rounded.args
    _require_real(real, signs)
    up, by = isinstance(rounded, sp.ceiling), _with_signs(signs)
    side, near = (ge, lt(rounded, real + 1)) if up else (le, gt(rounded, real - 1))
    why = f"the definition of the {'ceiling' if up else 'floor'}"
    return _line(side(rounded, real), why, by), _line(near, why, by)


def _require_real(value: sp.Expr, signs: Sequence[Line]) -> None:
    require_defined([value], _facts(signs))
    if not is_real(value):
        raise ProofError(f"{value} is not real")


def _is_whole(value: sp.Expr) -> bool:
    """Return whether an expression is a whole number; ceilings and floors of what is real are."""
    rounded = {one: sp.Dummy(integer=True) for one in value.atoms(sp.ceiling, sp.floor)}
    return bool(value.xreplace(rounded).is_integer)


def sharpen(claim: Relation, why: str, by: Line) -> Line:
    """Sharpen ``a > b - 1`` to ``a >= b``, or ``a > b`` to ``a >= b + 1``, for whole a and b."""
    known = by.relation
    if not all(_is_whole(side) for side in claim.sides) or claim.kind != ">=":
        raise ProofError(f"{claim} is not about whole numbers")
    if known.kind != ">" or not is_zero(claim.gap + 1 - known.gap):
        raise ProofError(f"{claim} does not follow from {known}")
    return _line(claim, why, [by])


# ------------------------------------------------------------------ maxima, contradiction


def extreme(claim: Relation, why: str, by: Sequence[Line] = ()) -> Line:
    """Show what follows from the definition of a maximum or minimum.

    A maximum is at least each of its parts; it is at most what all parts are at most; it is the
    part that is at least all others. Minima in the same way. `by` holds what must be known.
    """
    known = _facts(by)
    require_defined(claim.sides, known)
    kind = ">" if claim.kind == ">" else ">="

    def is_above(large: sp.Expr, small: sp.Expr) -> bool:
        if isinstance(small, sp.Max):
            return all(is_above(large, part) for part in small.args)
        if isinstance(large, sp.Min):
            return all(is_above(part, small) for part in large.args)
        wanted = Relation(large, kind, small)
        if sign(wanted.gap) in SHOWN_BY[kind] or any(shows(one, wanted) for one in known):
            return True
        if isinstance(large, sp.Max):
            return any(is_above(part, small) for part in large.args)
        return isinstance(small, sp.Min) and any(is_above(large, part) for part in small.args)

    is_part = True
    large, small = claim.sides if claim.sign in (">", ">=") else reversed(claim.sides)
    if claim.sign == "=":
        extremum, part = claim.sides
        is_part = isinstance(extremum, sp.Max | sp.Min) and part in extremum.args
        large, small = (part, extremum) if isinstance(extremum, sp.Max) else (extremum, part)
    if not (is_part and is_above(large, small)):
        raise ProofError(f"{claim} does not follow from the definition of a maximum or minimum")
    return _line(claim, why, by)


def squeeze(claim: Relation, lower: Line, upper: Line, why: str) -> Line:
    """Show an equality because each side is at most the other."""
    first, second = lower.relation, upper.relation
    if claim.sign != "=" or "=" in (first.kind, second.kind) or not is_zero(first.gap + second.gap):
        raise ProofError(f"{first} and {second} are not opposite")
    if not (is_zero(first.gap - claim.gap) or is_zero(second.gap - claim.gap)):
        raise ProofError(f"{first} and {second} are not about {claim}")
    return _line(claim, why, [lower, upper])


def absurd(claim: Relation, false: Line, why: str) -> Line:
    """Show a claim because its negation leads to what is false, such as 0 > 0."""
    found = false.relation
    opposite = {"<": (">", ">="), "<=": (">",), "=": (">",)}.get(sign(found.gap), ())
    if found.kind not in opposite:
        raise ProofError(f"{found} is not false")
    return _line(claim, why, [false], false.given - {claim.negated})


# ------------------------------------------------------------------ real numbers


def logarithm(claim: Relation, why: str, signs: Sequence[Line] = ()) -> Line:
    """Show that two positive sides compare as their logarithms do."""
    for side in claim.sides:
        if sign(side, _facts(signs)) != ">":
            raise ProofError(f"it is not known whether {side} > 0")
    left, right = (sp.expand_log(sp.log(side)) for side in claim.sides)
    return _line(Iff(claim, Relation(left, claim.sign, right)), why, _with_signs(signs))


def exponential(power: sp.Expr) -> Line:
    """Show b^x >= 1 + z + z^2/2 with z = x ln b >= 0, the first terms of the series."""
    base, exponent = power.as_base_exp()
    size = exponent * sp.log(base)
    require_defined([power, size])
    if not is_real(power) or sign(size) not in SHOWN_BY[">="]:
        raise ProofError(f"it is not known whether {size} >= 0")
    return _line(ge(power, 1 + size + size**2 / 2), "the first terms of the exponential series")


def _is_smooth(expression: sp.Expr, variable: sp.Symbol) -> bool:
    """Return whether an expression is built so that it has a derivative for every real number."""
    if variable not in expression.free_symbols or expression == variable:
        return True
    if expression.is_Add or expression.is_Mul:
        return all(_is_smooth(part, variable) for part in expression.args)
    if isinstance(expression, sp.Pow | sp.exp):
        base, exponent = expression.as_base_exp()
        if variable not in base.free_symbols:
            return bool(base.is_positive) and _is_smooth(exponent, variable)
        return bool(exponent.is_Integer and exponent > 0) and _is_smooth(base, variable)
    return False


def isolate_zero(
    function: sp.Expr, variable: sp.Symbol, zero: sp.Expr, by: Sequence[Line], why: str
) -> tuple[Line, Line]:
    """Show that a function is positive exactly above its zero, and is 0 there alone.

    The function is differentiable for every value of the variable, a positive real number. `by`
    shows that its derivative is positive, and that it is 0 at `zero`.
    """
    _require_kind(variable, zero, ())
    if not variable.is_positive or variable.is_integer or not _is_smooth(function, variable):
        raise ProofError(f"{function} is not differentiable for every {variable} > 0")
    wanted = gt(sp.diff(function, variable), 0), eq(function.subs(variable, zero), 0)
    for line, claim in zip(by, wanted, strict=True):
        if not shows(line.claim, claim):
            raise ProofError(f"{line.claim} does not say that {claim}")
    if any(variable in one.free_symbols for one in by[0].given):
        raise ProofError(f"the derivative rests on a hypothesis about {variable}")
    above = Iff(gt(function, 0), gt(variable, zero))
    only = Iff(eq(function, 0), eq(variable, zero))
    return _line(above, why, by), _line(only, why, by)


# ------------------------------------------------------------------ exact numbers


def exact_function(name: str, function: Any) -> Any:
    """Return a SymPy function of exact numbers that is shown by its name and computed by Python.

    Where Python has no value, such as a share of node 0, a claim about it is refused.
    """

    def doit(self: Any, **_: Any) -> sp.Expr:
        try:
            return sp.sympify(function(*(argument.doit() for argument in self.args)))
        except (LookupError, TypeError, ValueError, ZeroDivisionError):
            raise ProofError(f"{self} has no value") from None

    return type(name, (sp.Function,), {"doit": doit, "is_extended_real": True})


def compute(claim: Relation, why: str) -> Line:
    """Show a relation of exact numbers, by fractions or SymPy's bounds of roots and logarithms.

    The reason ends with the numbers that an inequality compares, where it does not show them.
    """
    numbers = Relation(claim.left.doit(), claim.sign, claim.right.doit())
    if not all(side.is_number and side.is_real for side in numbers.sides) or any(
        side.atoms(sp.Float) for side in numbers.sides
    ):
        raise ProofError(f"{claim} is not about exact numbers")
    gap = sp.expand(numbers.gap)
    if not {"=": gap == 0, ">": gap.is_positive, ">=": gap.is_nonnegative}[claim.kind]:
        raise ProofError(f"{claim} is false")
    is_shown = claim.sign == "=" or numbers == claim
    return _line(claim, why if is_shown else f"{why}: {numbers}")

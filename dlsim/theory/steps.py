"""The steps of a derivation: each is a function that returns the line to print, or raises.

A `Line` holds a claim and the hypotheses on which it rests (`given`). A step makes a line from
earlier lines and collects their hypotheses, so that the last line of a proof names everything that
was assumed. Signs and equalities are decided in `dlsim.theory.algebra`, never by trying numbers.

The arguments of steps: `claim` is what is shown and `why` one sentence for the reader. `by` maps
lines to what each is multiplied by; a line for every index stands there for its relation. `signs`
and `inside` are inequalities that give the signs of factors, or that an index is in range. A step
that does not follow raises `ProofError`, an argument of a wrong kind `InputError`.

At every point at which the hypotheses of a line are defined and hold, its claim is defined and
holds. What `assume` makes, or a `Line` that is made by hand, is taken at its word.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.errors import InputError
from dlsim.theory import expressions
from dlsim.theory.algebra import SHOWN_BY, is_zero, sign
from dlsim.theory.defined import (
    is_whole,
    require_defined,
    require_kind,
    require_range,
    require_ranges,
)
from dlsim.theory.expressions import exact_function as exact_function
from dlsim.theory.expressions import expression_of, is_smooth, require_plain
from dlsim.theory.relations import Every, Iff, ProofError, Proposition, Relation, eq, ge, gt, le, lt

#: What a line can claim, and no class derived from it.
_CLAIMS = (Relation, Iff, Every)
_MAKERS = "eq, gt, ge, lt, le, Iff or Every"


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

    def __post_init__(self) -> None:
        if type(self.claim) not in _CLAIMS:
            raise InputError(
                f"{self.claim!r} is no claim: make it by eq, gt, ge, lt, le, Iff, Every"
            )

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

# ------------------------------------------------------------------ the arguments of steps


def _read_line(value: Any) -> Line:
    if type(value) is not Line:
        raise InputError(f"{value!r} is no line: a step returns one")
    return value


def _read_claim(value: Any) -> Any:
    if type(value) not in _CLAIMS:
        raise InputError(f"{value!r} is no claim: make one by {_MAKERS}")
    for side in value.sides:
        expressions.require_known(side)
    return value


def _read_expression(value: Any) -> Any:
    """Return an expression; what is left out remains so."""
    if value is not None:
        value = expression_of(value)
        expressions.require_known(value)
    return value


def _read_symbol(value: Any) -> Any:
    if not expressions.is_symbol(value):
        raise InputError(f"{value!r} is no symbol: make it by sympy.symbols")
    return value


def _read_values(value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{value!r} is no mapping of symbols to their values")
    return {old: _read_expression(expression_of(new)) for old, new in value.items()}


def _read_lines(value: Any) -> Any:
    """Read lines once and for all, so that none is lost: one, several, or lines times what."""
    if value is None or type(value) is Line:
        return value
    if isinstance(value, Mapping):
        pairs = list(value.items())
        return {_read_line(line): _read_expression(expression_of(times)) for line, times in pairs}
    if not isinstance(value, Iterable):
        raise InputError(f"{value!r} holds no lines: give a list of lines")
    return tuple(map(_read_line, value))


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise InputError(f"{value!r} is no text: give the reason in words")
    return value


#: How each argument of a step is read, by its name.
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("claim", "hypothesis", "equation"), _read_claim),
    **dict.fromkeys("line known every base step each equivalence lower upper false".split(),
                    _read_line),
    **dict.fromkeys("value low high weight times solution zero function real count rounded "
                    "power".split(), _read_expression),
    **dict.fromkeys(("index", "unknown", "variable"), _read_symbol),
    **dict.fromkeys(("by", "signs", "inside", "lines", "first"), _read_lines),
    "values": _read_values,
    "why": _read_text,
}  # fmt: skip


def _shorten(value: Any) -> str:
    """Return the beginning of a value as text, if it has one."""
    try:
        return str(value)[:200]
    except Exception:  # too deep to print
        return type(value).__name__


_Step = TypeVar("_Step", bound=Callable[..., Any])


def _step(function: _Step) -> _Step:
    """Make a function a step: its arguments are read, and what SymPy cannot do is no proof."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        try:
            for name, value in call.arguments.items():
                call.arguments[name] = _READ[name](value)
            return function(*call.args, **call.kwargs)
        except (ProofError, InputError):
            raise
        except Exception as error:
            shown = ", ".join(map(_shorten, call.arguments.values()))
            raise ProofError(f"{function.__name__} cannot decide {shown}: {error!r}") from error

    return step  # type: ignore[return-value]


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
    if type(found) is not type(wanted) or type(found) not in _CLAIMS:
        return False
    if not all(_passes(expressions.require_known, side) for side in wanted.sides):
        return False
    if found == wanted:
        return True
    if isinstance(found, Relation) and isinstance(wanted, Relation):
        if found.kind not in SHOWN_BY[wanted.kind]:
            return False
        if not _passes(require_defined, wanted.sides, (), [found]):
            return False
        difference = found.gap - wanted.gap
        return is_zero(difference) or (found.kind == "=" and is_zero(found.gap + wanted.gap))
    if isinstance(found, Iff) and isinstance(wanted, Iff):
        pairs = ((found.first, wanted.first), (found.second, wanted.second))
        return all(one.kind == two.kind and shows(one, two) for one, two in pairs)
    if isinstance(found, Every) and isinstance(wanted, Every):
        if wanted.index != found.index and wanted.index in found.free_symbols | found.bound_symbols:
            return False
        ends = wanted.low, wanted.high
        if not (
            _passes(require_defined, ends, (), [found]) and _passes(require_range, *wanted.span)
        ):
            return False
        same_range = is_zero(found.low - wanted.low) and is_zero(found.high - wanted.high)
        renamed = found.relation.subs({found.index: wanted.index})
        return same_range and shows(renamed, wanted.relation)
    return False


def _passes(check: Callable[..., None], *args: Any) -> bool:
    """Return whether a check refuses nothing."""
    try:
        check(*args)
    except ProofError:
        return False
    return True


# ------------------------------------------------------------------ hypotheses


@_step
def assume(hypothesis: Proposition, why: str) -> Line:
    """Take a hypothesis, or an assumption that a later step discharges."""
    for side in hypothesis.sides:
        require_ranges(side)
    return Line(hypothesis, why, (), frozenset([hypothesis]))


@_step
def substitute(line: Line, values: Mapping[Any, Any], why: str, signs: Sequence[Line] = ()) -> Line:
    """Put values in for symbols, in a line and in the hypotheses on which it rests.

    A value must be what the symbol stands for, and contain no index that is bound.
    """
    claims, facts = (line.claim, *line.given), _facts(signs)
    for old, value in values.items():
        if not expressions.is_symbol(old):
            raise ProofError(f"{old} is not a symbol")
        require_defined([value], facts)
        require_kind(old, value, facts)
        for claim in claims:
            # another value may bring in what is replaced here
            replaced = any(part.has(old) for part in (*claim.sides, *values.values()))
            if replaced and (value.free_symbols | {old}) & claim.bound_symbols:
                raise ProofError(f"{old} -> {value} meets an index that is bound in {claim}")
    mapped = line.claim.subs(values)
    require_defined(mapped.sides, facts)
    known = {claim.subs(values) for claim in line.given}
    # what says of an expression that it is not below itself, as n >= n, is no hypothesis
    known = {claim for claim in known if not _says_nothing(claim)}
    return _line(mapped, why, [line, *signs], known.union(*(one.given for one in signs)))


def _says_nothing(claim: Proposition) -> bool:
    """Return whether a claim is that an expression, which is defined, is not below itself."""
    if not isinstance(claim, Relation) or claim != ge(claim.left, claim.left):
        return False
    return _passes(require_defined, claim.sides)


@_step
def discharge(line: Line, known: Line, why: str) -> Line:
    """Replace a hypothesis of a line by what shows it."""
    used = {one for one in line.given if shows(known.claim, one)}
    if not used:
        raise ProofError(f"the line does not rest on {known.claim}")
    return _line(line.claim, why, [line, known], (line.given - used) | known.given)


@_step
def take(every: Line, value: Any, why: str = "", inside: Sequence[Line] = ()) -> Line:
    """Take one relation of those that hold for every index.

    Without `inside` the line may rest on the assumption that the value is not above the range;
    `generalise` and `induction` discharge that.
    """
    claim = every.every
    require_defined([value])
    if not inside and sign(claim.high - value) == "":
        inside = [assume(ge(claim.high, value), f"{value} is in range")]
    _require_range(value - claim.low, inside)
    _require_range(claim.high - value, inside)
    if not is_whole(value) or value.free_symbols & claim.relation.bound_symbols:
        raise ProofError(f"{value} is no index here")
    relation = claim.relation.subs({claim.index: value})
    plain = f"for any {value} in range" if value == claim.index else f"for {claim.index} = {value}"
    return _line(relation, why or plain, [every, *inside])


def _require_range(distance: sp.Expr, inside: Sequence[Line]) -> None:
    """Refuse an index that is not in range by itself or by one line of `inside`."""
    rests = [distance, *(distance - line.relation.gap for line in inside)]
    if not any(sign(rest) in SHOWN_BY[">="] for rest in rests):
        raise ProofError(f"it is not known whether {distance} >= 0")


@_step
def generalise(line: Line, index: sp.Symbol, low: Any, high: Any, why: str = "") -> Line:
    """Generalise a line to every index from `low` to `high`, the range being discharged."""
    claim = Every(line.relation, index, low, high)
    low, high = claim.low, claim.high
    rest = {one for one in line.given if not _is_range(one, (index - low, high - index))}
    if any(index in one.free_symbols for one in rest):
        raise ProofError(f"the line rests on a hypothesis about {index}")
    if index in low.free_symbols | high.free_symbols or index in line.relation.bound_symbols:
        raise ProofError(f"{index} is bound twice")
    require_defined([low, high])
    require_range(index, low, high)
    if not index.is_integer:
        raise ProofError(f"{index} is not said to be whole")
    return _line(claim, why or f"for {index} = {low}, ..., {high}", [line], rest)


def _is_range(claim: Proposition, distances: Sequence[sp.Expr]) -> bool:
    """Return whether a claim says that one of the distances from a bound is not negative."""
    return isinstance(claim, Relation) and claim.kind == ">=" and claim.gap in distances


# ------------------------------------------------------------------ equality and sign


@_step
def identity(claim: Relation, why: str, by: By | None = None, signs: Sequence[Line] = ()) -> Line:
    """Show an equation: left minus right, less multiples of equations, reduces to 0."""
    by = _relations(by)
    _require_relation(claim)
    if claim.sign != "=" or any(line.relation.sign != "=" for line in by):
        raise ProofError(f"{claim} is not an equation, or does not follow from equations only")
    require_defined([*claim.sides, *by.values()], _facts(signs))
    rest = claim.gap - sum(times * line.relation.gap for line, times in by.items())
    if not is_zero(rest):
        raise ProofError(f"{claim}: the difference does not reduce to 0")
    return _line(claim, why, _with_signs(signs, by), rule="identity")


@_step
def positive(claim: Relation, why: str, by: By | None = None, signs: Sequence[Line] = ()) -> Line:
    """Show an inequality: its gap is a sum of multiples of gaps and of what has their sign.

    Inequalities are multiplied by what is not negative, equations by anything.
    """
    by, facts = _relations(by), _facts(signs)
    _require_relation(claim)
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
    if by is not None and not isinstance(by, Mapping):
        raise InputError(f"{by!r} does not say what each line is multiplied by")
    return {
        take(line, line.claim.index) if isinstance(line.claim, Every) else line: times
        for line, times in (by or {}).items()
    }


def _require_relation(claim: Proposition) -> None:
    if not isinstance(claim, Relation):
        raise InputError(f"{claim} is not one relation")


@_step
def show(
    claim: Relation | Every, why: str, by: By | None = None, signs: Sequence[Line] = ()
) -> Line:
    """Show a relation by `compute` for exact numbers, else by `identity` or `positive`.

    A relation for every index of a range is shown for one index.
    """
    if isinstance(claim, Every):
        one = show(claim.relation, why, by, signs)
        return generalise(one, claim.index, claim.low, claim.high)
    _require_relation(claim)
    if not by and not any(side.free_symbols or side.has(AppliedUndef) for side in claim.sides):
        return compute(claim, why)
    return (identity if claim.kind == "=" else positive)(claim, why, by, signs)


@_step
def iff(claim: Iff, why: str, times: Any = 1, signs: Sequence[Line] = ()) -> Line:
    """Show that two relations hold together: one gap times what is positive is the other.

    For equations the factor may also be negative.
    """
    if not isinstance(claim, Iff):
        raise InputError(f"{claim} is no equivalence")
    first, second = claim.first, claim.second
    facts = _facts(signs)
    require_defined([*claim.sides, times], facts)
    found = sign(times, facts)
    if first.kind != second.kind:
        raise ProofError(f"{first} and {second} are not of one kind")
    if found != ">" and not (found == "<" and first.kind == "="):
        raise ProofError(f"it is not known whether {times} > 0")
    if not is_zero(first.gap * times - second.gap):
        raise ProofError(f"{first} times {times} is not {second}")
    return _line(claim, why, _with_signs(signs), rule="iff")


@_step
def solves(equation: Relation, unknown: sp.Symbol, solution: Any, why: str) -> Line:
    """Show that an equation holds for one value of an unknown and no other; it is linear in it."""
    _require_relation(equation)
    slope = sp.factor(expressions.put_in(sp.Derivative(equation.gap, unknown)))
    if unknown in slope.free_symbols:
        raise ProofError(f"{equation} is not linear in {unknown}")
    return iff(Iff(equation, eq(unknown, solution)), why, 1 / slope)


@_step
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


@_step
def chain(why: str, *lines: Line) -> Line:
    """Join equivalences, each of which shares its second side with the first side of the next."""
    if not lines or not all(isinstance(line.claim, Iff) for line in lines):
        raise ProofError("only equivalences can be joined")
    for line, after in pairwise(lines):
        one, two = line.claim.second, after.claim.first
        if one.kind != two.kind or not shows(one, two):
            raise ProofError(f"{one} is not {two}")
    return _line(Iff(lines[0].claim.first, lines[-1].claim.second), why, lines)


# ------------------------------------------------------------------ whole numbers and sums


@_step
def induction(claim: Relation | Every, index: sp.Symbol, base: Line, step: Line, why: str) -> Line:
    """Show a claim for every whole `index`: for the first, and for one more where it holds.

    The first index is 1 for a positive symbol and 0 for one that is not negative. The step rests
    on the claim itself. If it also rests on ``bound >= index + 1``, the result rests on
    ``bound >= index``: the claim up to a bound. A claim for every index of a range is such a one.
    """
    if isinstance(claim, Every):
        line = induction(claim.relation, index, base, step, why)
        return generalise(line, claim.index, claim.low, claim.high)
    require_plain(index)
    start = sp.Integer(1 if index.is_positive else 0)
    if not index.is_integer or not index.is_nonnegative or index in claim.bound_symbols:
        raise ProofError(f"{index} does not count from 0 or 1")
    if not shows(base.claim, claim.subs({index: start})):
        raise ProofError(f"{base.claim} is not the first case of {claim}")
    if not shows(step.claim, claim.subs({index: index + 1})):
        raise ProofError(f"{step.claim} is not {claim} for one more")
    if any(index in one.free_symbols for one in base.given):
        raise ProofError(f"the first case rests on a hypothesis about {index}")
    require_defined(claim.sides, (), [base.claim])
    rest = set()
    for one in base.given | (step.given - {claim}):  # the first case does not rest on the claim
        if index in one.free_symbols:
            bound = one.gap + index + 1 if isinstance(one, Relation) else index
            if index in bound.free_symbols or not _is_range(one, [bound - index - 1]):
                raise ProofError(f"the induction rests on {one}, which depends on {index}")
            one = ge(bound, index)
        rest.add(one)
    return _line(claim, why, [base, step], rest)


@_step
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
    _require_relation(one)
    start = sp.Integer(1 if index.is_positive else 0)
    base = show(one.subs({index: start}), f"{why}: it holds for {start}", first, signs)
    before = assume(one, f"{why}: assume it for {index}")
    after = one.subs({index: index + 1})
    by = {before: times, **(by or {})}
    step = show(after, f"{why}: then it holds for {index} + 1", by, signs)
    return induction(claim, index, base, step, why)


@_step
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
    low, high = first if low is None else low, last if high is None else high
    require_defined([low, high])
    require_range(index, low, high)
    for distance in (low - first, last - high, high - low + 1):
        _require_range(distance, inside)
    if index in low.free_symbols | high.free_symbols:
        # the bounds depend on the index of what is added: the sum gets another one
        counter = sp.Dummy("h", **index.assumptions0)
        relation, index = relation.subs({index: counter}), counter
    strict = relation.kind == ">" and sign(high - low + 1) == ">"
    kept = relation.sign if relation.kind != ">" or strict else relation.sign + "="
    left, right = (sp.Sum(side, (index, low, high)) for side in relation.sides)
    return _line(Relation(left, kept, right), why, [each, *inside])


@_step
def ceiling(count: sp.Expr, real: sp.Expr, why: str, signs: Sequence[Line] = ()) -> Line:
    """Show, for a whole count, that it is at least a number iff it is at least its ceiling."""
    require_defined([count, real], _facts(signs))
    if not is_whole(count):
        raise ProofError(f"{count} is not whole")
    return _line(Iff(ge(count, real), ge(count, sp.ceiling(real))), why, _with_signs(signs))


@_step
def rounding(rounded: sp.Expr, signs: Sequence[Line] = ()) -> tuple[Line, Line]:
    """Show the definition of a ceiling or floor: on which side of the number, and how near."""
    if not isinstance(rounded, sp.ceiling | sp.floor):
        raise ProofError(f"{rounded} is neither a ceiling nor a floor")
    (real,) = rounded.args
    require_defined([real], _facts(signs))
    up, by = isinstance(rounded, sp.ceiling), _with_signs(signs)
    side, near = (ge, lt(rounded, real + 1)) if up else (le, gt(rounded, real - 1))
    why = f"the definition of the {'ceiling' if up else 'floor'}"
    return _line(side(rounded, real), why, by), _line(near, why, by)


@_step
def sharpen(claim: Relation, why: str, by: Line) -> Line:
    """Sharpen ``a > b - 1`` to ``a >= b``, or ``a > b`` to ``a >= b + 1``, for whole a and b."""
    known = _read_line(by).relation
    _require_relation(claim)
    require_defined(claim.sides, (), [known])
    if not all(is_whole(side) for side in claim.sides) or claim.kind != ">=":
        raise ProofError(f"{claim} is not about whole numbers")
    if known.kind != ">" or not is_zero(claim.gap + 1 - known.gap):
        raise ProofError(f"{claim} does not follow from {known}")
    return _line(claim, why, [by])


# ------------------------------------------------------------------ maxima, contradiction


@_step
def extreme(claim: Relation, why: str, by: Sequence[Line] = ()) -> Line:
    """Show what follows from the definition of a maximum or minimum.

    A maximum is at least each of its parts; it is at most what all parts are at most; it is the
    part that is at least all others. Minima in the same way. `by` holds what must be known.
    """
    known = _facts(by)
    _require_relation(claim)
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


@_step
def squeeze(claim: Relation, lower: Line, upper: Line, why: str) -> Line:
    """Show an equality because each side is at most the other."""
    first, second = lower.relation, upper.relation
    _require_relation(claim)
    require_defined(claim.sides, (), [first, second])
    if claim.sign != "=" or "=" in (first.kind, second.kind) or not is_zero(first.gap + second.gap):
        raise ProofError(f"{first} and {second} are not opposite")
    if not (is_zero(first.gap - claim.gap) or is_zero(second.gap - claim.gap)):
        raise ProofError(f"{first} and {second} are not about {claim}")
    return _line(claim, why, [lower, upper])


@_step
def absurd(claim: Relation, false: Line, why: str) -> Line:
    """Show a claim because its negation leads to what is false, such as 0 > 0."""
    found = false.relation
    _require_relation(claim)
    require_defined(claim.sides)
    opposite = {"<": (">", ">="), "<=": (">",), "=": (">",)}.get(sign(found.gap), ())
    if found.kind not in opposite:
        raise ProofError(f"{found} is not false")
    return _line(claim, why, [false], false.given - {claim.negated})


# ------------------------------------------------------------------ real numbers


@_step
def logarithm(claim: Relation, why: str, signs: Sequence[Line] = ()) -> Line:
    """Show that two positive sides compare as their logarithms do."""
    _require_relation(claim)
    require_defined(claim.sides, _facts(signs))
    for side in claim.sides:
        if sign(side, _facts(signs)) != ">":
            raise ProofError(f"it is not known whether {side} > 0")
    left, right = (sp.expand_log(sp.log(side)) for side in claim.sides)
    return _line(Iff(claim, Relation(left, claim.sign, right)), why, _with_signs(signs))


@_step
def exponential(power: sp.Expr) -> Line:
    """Show b^x >= 1 + z + z^2/2 with z = x ln b >= 0, the first terms of the series."""
    base, exponent = power.as_base_exp()
    size = exponent * sp.log(base)
    require_defined([power, size])
    if sign(size) not in SHOWN_BY[">="]:
        raise ProofError(f"it is not known whether {size} >= 0")
    return _line(ge(power, 1 + size + size**2 / 2), "the first terms of the exponential series")


@_step
def isolate_zero(
    function: sp.Expr, variable: sp.Symbol, zero: sp.Expr, by: Sequence[Line], why: str
) -> tuple[Line, Line]:
    """Show that a function is positive exactly above its zero, and is 0 there alone.

    The function is differentiable for every value of the variable, a positive real number. `by`
    shows that its derivative is positive, and that it is 0 at `zero`.
    """
    require_defined([function, zero])
    require_kind(variable, zero, ())
    whole = not variable.is_positive or variable.is_integer
    if whole or not is_smooth(function, variable, everywhere=True):
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


@_step
def compute(claim: Relation, why: str) -> Line:
    """Show a relation of exact numbers, by fractions or SymPy's bounds of roots and logarithms.

    The reason ends with the numbers that an inequality compares, where it does not show them.
    """
    _require_relation(claim)
    require_defined(claim.sides)
    numbers = Relation(
        expressions.number_of(claim.left), claim.sign, expressions.number_of(claim.right)
    )
    if not all(side.is_number and side.is_real for side in numbers.sides):
        raise ProofError(f"{claim} is not about exact numbers")
    gap = sp.expand(numbers.gap)
    if not {"=": gap == 0, ">": gap.is_positive, ">=": gap.is_nonnegative}[claim.kind]:
        raise ProofError(f"{claim} is false")
    is_shown = claim.sign == "=" or numbers == claim
    return _line(claim, why if is_shown else f"{why}: {numbers}")

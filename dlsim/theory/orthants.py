"""Certificates of inequalities: no coefficient is negative where no letter is.

What the hypotheses allow is written in new letters that may be any numbers >= 0: x >= a is
a + s, 0 < x < a is a/(1 + s), an equation is solved; e^m is 1 + m + m^2/2 + m^3 R, and (1 + d)^m
for a count m is 1 + m d + d^2 R, R >= 0 (Bernoulli). A polynomial in them without a negative
coefficient is nowhere negative. Numbers are fractions of Python's; SymPy's trees are only read.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import count, product
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.theory.claim import Goal, Iff, Relation
from dlsim.theory.residues import Reader

#: Letters and their exponents; a letter's first character says what it may be: any real (~),
#: >= 0 (0), above 0 (+), a count from 0 on (#), or a remainder R >= 0 (*).
Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]
#: Whole numbers are tried up to this one, or one less; so are indices of hypotheses.
MOST = 3
#: Ways that are tried to solve the hypotheses of a goal for one choice of whole numbers.
WAYS = 140
#: Products of polynomials longer than this are given up.
TERMS = 1_000


class NoCertificateError(Exception):
    """What an expression holds that is no polynomial here."""


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    result = dict(a)
    for monomial, factor in b.items():
        result[monomial] = result.get(monomial, Fraction(0)) + factor
        if not result[monomial]:
            del result[monomial]
    return result


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    if len(a) * len(b) > TERMS:
        raise NoCertificateError("too many terms")
    for one, factor in a.items():
        for two, other in b.items():
            powers = dict(one)
            for letter, power in two:
                powers[letter] = powers.get(letter, 0) + power
            monomial = tuple(sorted(powers.items()))
            result[monomial] = result.get(monomial, Fraction(0)) + factor * other
    return {monomial: factor for monomial, factor in result.items() if factor}


def sign(of: Polynomial) -> tuple[int, bool] | None:
    """Return -1, 0 or 1 and whether it is never 0; None if the coefficients do not tell."""
    signs = {factor > 0 for factor in of.values()}
    odd = any(letter[0] == "~" and power % 2 for monomial in of for letter, power in monomial)
    if len(signs) > 1 or odd:
        return None
    never = any(all(letter[0] == "+" for letter, _ in monomial) for monomial in of)
    return (0 if not signs else 1 if True in signs else -1), never


class Ratio:
    """A polynomial over a product of powers of others."""

    def __init__(self, over: Polynomial, under: Mapping[Any, int] | None = None) -> None:
        self.over, self.under = over, dict(under or {})

    def _with(self, under: Mapping[Any, int]) -> Polynomial:
        """Return what stands over a common denominator."""
        over = self.over
        for factor, power in under.items():
            for _ in range(power - self.under.get(factor, 0)):
                over = _product(over, dict(factor))
        return over

    def __add__(self, other: Any) -> "Ratio":
        other = ratio(other)
        under = {f: max(self.under.get(f, 0), other.under.get(f, 0))
                 for f in (*self.under, *other.under)}  # fmt: skip
        return Ratio(_sum(self._with(under), other._with(under)), under)

    def __mul__(self, other: Any) -> "Ratio":
        other = ratio(other)
        under = dict(self.under)
        for factor, power in other.under.items():
            under[factor] = under.get(factor, 0) + power
        return Ratio(_product(self.over, other.over), under)

    def __pow__(self, power: int) -> "Ratio":
        result = ratio(1)
        for _ in range(abs(power)):
            result = result * self
        if power >= 0:
            return result
        if not result.over:
            raise ZeroDivisionError
        over = ratio(1)._with(result.under)
        if set(result.over) == {()}:
            return Ratio(over) * (1 / result.over[()])
        return Ratio(over, {frozenset(result.over.items()): 1})

    __radd__, __rmul__ = __add__, __mul__

    def sign(self) -> tuple[int, bool] | None:
        """Return the sign, as of a polynomial; None too if a denominator may be 0."""
        found = sign(self.over)
        for factor, power in self.under.items():
            below = sign(dict(factor))
            if found is None or below is None or not below[1]:
                return None
            found = found[0] * below[0] ** power, found[1]
        return found

    def at(self, letter: str, value: "Ratio") -> "Ratio":
        """Return the ratio with a value for a letter."""
        result = _at(self.over, letter, value)
        for factor, power in self.under.items():
            result = result * _at(dict(factor), letter, value) ** -power
        return result


def ratio(value: Any) -> Ratio:
    """Return a number, or a ratio itself, as a ratio."""
    if isinstance(value, Ratio):
        return value
    return Ratio({(): Fraction(value)} if value else {})


def letter_(name: str) -> Ratio:
    """Return a letter as a ratio."""
    return Ratio({((name, 1),): Fraction(1)})


def _by_power(of: Polynomial, letter: str) -> dict[int, Polynomial]:
    """Return the coefficients of the powers of a letter."""
    parts: dict[int, Polynomial] = {}
    for monomial, factor in of.items():
        rest = tuple(pair for pair in monomial if pair[0] != letter)
        parts.setdefault(dict(monomial).get(letter, 0), {})[rest] = factor
    return parts


def _at(of: Polynomial, letter: str, value: Ratio) -> Ratio:
    result = ratio(0)
    for power, part in _by_power(of, letter).items():
        result = result + Ratio(part) * value**power
    return result


# ------------------------------------------------------------------ reading


class _CaseError(Exception):
    """A maximum or minimum of which it must be said which part it is."""


class _Orthant(Reader):
    """Reads trees as ratios; letters have the values found for them so far."""

    def __init__(self, values: dict[Any, Ratio], whole: Mapping[Any, int], cases: Any) -> None:
        super().__init__()
        self.values, self.numbers, self.cases = values, whole, cases

    def fraction(self, over: int, under: int) -> Any:
        """Return a number as it is."""
        return Fraction(over, under) if under != 1 else over

    def _key(self, what: Any) -> Any:
        if what.is_Symbol:
            return what.name
        index = [self.whole(arg) if arg.is_integer else arg for arg in what.args]
        if None in index:
            raise NoCertificateError(f"term {what}")
        return (what.func.__name__, *index)

    def count(self, what: Any) -> Any:
        """Return the whole number that is tried for a letter or term, None if it stays one."""
        if what.is_Symbol:
            return self.numbers.get(what.name)
        return 1 + sum(map(ord, str(self._key(what)))) % 2 if self.numbers else None

    def other(self, expr: Any) -> Any:
        """Return what a letter or term stands for, or the part that a maximum is."""
        if isinstance(expr, sp.Max | sp.Min):
            case = (expr, tuple(sorted((i.name, n) for i, n in self.bound.items())))
            if case not in self.cases:
                raise _CaseError(case, dict(self.bound))
            return self.value(expr.args[self.cases[case]])
        if not isinstance(expr, sp.Symbol | AppliedUndef) or hasattr(expr.func, "computes"):
            raise NoCertificateError(expr.func.__name__)
        key = self._key(expr)
        kind = "+" if expr.is_positive else "0" if expr.is_nonnegative else "~"
        if expr.is_integer:
            if not expr.is_nonnegative:
                raise NoCertificateError("integer of any sign")
            return self.values.setdefault(key, letter_(f"#{key}")) + int(bool(expr.is_positive))
        return self.values.setdefault(key, letter_(f"{kind}{key}"))

    def power(self, base: Any, exponent: Any) -> Any:
        """Return a whole power; e's, or one with a count in its exponent, by its series."""
        number = self.whole(exponent)
        below = None if base is sp.E else ratio(self.value(base))
        if number is not None and below is not None:
            return below**number
        power, result = ratio(self.value(exponent)), ratio(1)
        if power.under:
            raise NoCertificateError("an exponent that is a fraction")
        for monomial, times in power.over.items():
            if times.denominator != 1:
                raise NoCertificateError("root")
            result = result * self._series(below, monomial) ** int(times)
        return result

    def _series(self, base: Ratio | None, monomial: Monomial) -> Ratio:
        """Return a power with a remainder that is a letter >= 0."""
        exponent = Ratio({monomial: Fraction(1)})
        found = sign(exponent.over)
        if base is None and not monomial:
            return letter_("+exp(1)")
        if base is None:
            if found is None:
                raise NoCertificateError("e to what may be negative")
            rest = letter_(f"*e{monomial}")
            return 1 + exponent + exponent**2 * Fraction(1, 2) + exponent**3 * rest
        if not monomial:
            return base
        if any(name[0] != "#" for name, _ in monomial):
            raise NoCertificateError("power that is no count")
        for flip in (1, -1):
            more = base**flip + -1
            if (known := more.sign()) and known[0] >= 0:
                rest = letter_(f"*{sorted(base.over.items())}{monomial}")
                return (1 + exponent * more + more**2 * rest) ** flip
        raise NoCertificateError("power of what may be below or above 1")


# ------------------------------------------------------------------ searching


def _fresh(kind: str, numbers: Iterator[int] = count()) -> Ratio:  # noqa: B008
    return letter_(f"{kind}({next(numbers)})")


#: Cases, each with values for letters.
Way = list[list[tuple[str, Ratio]]]


def _ways(gap: Polynomial, op: str) -> Iterator[tuple[Way, bool]]:
    """Yield ways to say that a polynomial is = 0, >= 0 or > 0, and whether each says no less."""
    while positive := [x for x, _ in next(iter(gap)) if x[0] == "+" and _divides(x, gap)]:
        gap = _divided(gap, positive[0])
    letters = sorted(
        {x for m in gap for x, _ in m if x[0] not in "#*"}, key=lambda x: (x[0] != "~", x)
    )
    lone = all(len(m) == 1 and m[0][1] == 1 and m[0][0] in letters for m in gap)
    if op != ">" and lone and sign(gap) == (-1, False):
        yield [[(m[0][0], ratio(0)) for m in gap]], True
    common = [x for x in letters if _divides(x, gap)]
    if op == "=" and common:
        rest = _divided(gap, common[0])
        known = sign(rest)  # it may be 0, as far as its coefficients tell
        for others, same in [([], True)] if known and known[1] else _ways(rest, op):
            yield [[(common[0], ratio(0))], *others], same
        return
    for letter in letters:
        parts = _by_power(gap, letter)
        slope, rest_ = sign(parts.get(1, {})), Ratio(parts.get(0, {}))
        if max(parts) > 1 or slope is None or not slope[1]:
            continue
        over, real, below = Ratio(parts[1]) ** -1, letter[0] == "~", sign(rest_.over)
        more = _fresh("+" if op == ">" else "0")
        if op == "=":
            value = rest_ * over * -1
            same = (
                real or value.sign() == (1, True) or (letter[0] == "0" and value.sign() is not None)
            )
            yield [[(letter, value)]], same
        elif slope[0] < 0 and not real and below and below[0] > 0:
            case = [(letter, rest_ * over * (more + 1) ** -1 * -1)]
            yield ([case] if letter[0] == "+" else [case, [(letter, ratio(0))]]), True
        elif real or below is None or below[0] * slope[0] <= 0:
            yield [[(letter, (more + rest_ * -1) * over)]], real


def _divides(letter: str, gap: Polynomial) -> bool:
    return all(letter in dict(monomial) for monomial in gap)


def _divided(gap: Polynomial, letter: str) -> Polynomial:
    return {
        tuple((x, p - (x == letter)) for x, p in m if (x, p) != (letter, 1)): f
        for m, f in gap.items()
    }


class _Search:
    """Looks for a certificate of one relation under hypotheses, in a limited number of ways."""

    def __init__(self, wanted: Relation, numbers: Mapping[Any, int]) -> None:
        self.wanted, self.numbers, self.left = wanted, numbers, WAYS
        self.refuted = self.met = False

    def certain(
        self, given: list[Any], values: dict[Any, Ratio], cases: Any, exact: bool = True
    ) -> bool:
        """Tell whether the relation holds wherever the hypotheses do."""
        self.left -= 1
        if self.left < 0 or self.refuted:
            return False
        reader = _Orthant(values, self.numbers, cases)
        try:
            for i, (premise, bound) in enumerate(given):
                reader.bound = dict(bound)
                gap = ratio(reader.value(premise.gap))
                self.left -= len(gap.over) // 20
                known, under = gap.sign(), Ratio({(): Fraction(1)}, gap.under).sign()
                if known and _never(known, premise.sign):
                    return True
                if known and _such(known, premise.sign):
                    continue
                rest = given[i + 1 :]
                ways: Iterator[tuple[Way, bool]] = iter(())
                if under and gap.over:
                    ways = _ways((Ratio(gap.over) * under[0]).over, premise.sign)
                return any(
                    all(self.certain(rest, _moved(values, c), cases, exact and same) for c in way)
                    for way, same in ways
                ) or self.certain(rest, values, cases, False)  # fmt: skip
            reader.bound = {}
            gap = ratio(reader.value(self.wanted.gap))
        except (NoCertificateError, ZeroDivisionError, ValueError):
            return False
        except _CaseError as error:
            (expr, _), bound = case, _ = error.args
            outward = 1 if isinstance(expr, sp.Max) else -1
            return all(
                self.certain(
                    [*((Relation(outward * (part - other), ">=", sp.S.Zero), bound)
                       for other in expr.args if other != part), *given],
                    dict(values), {**cases, case: i}, exact,
                )
                for i, part in enumerate(expr.args)
            )  # fmt: skip
        known = gap.sign()
        if known is None or not _such(known, self.wanted.sign):
            self.refuted = exact and self._fails(gap)
            return False
        self.met = True
        return True

    def _fails(self, gap: Ratio) -> bool:
        """Tell whether the relation fails at one of some points that the hypotheses allow."""
        letters = sorted({x for p in (gap.over, *map(dict, gap.under)) for m in p for x, _ in m})
        if any(x[0] == "*" for x in letters):
            return False
        for seed in range(20):
            pick, there = random.Random(seed), gap
            for x in letters:
                there = there.at(x, ratio(Fraction(pick.randint(1, 40), 1 if x[0] == "#" else 10)))
            if (known := there.sign()) and not _such(known, self.wanted.sign):
                return True
        return False


def _moved(values: dict[Any, Ratio], case: Iterable[tuple[str, Ratio]]) -> dict[Any, Ratio]:
    """Return what letters stand for where some of theirs have values."""
    for letter, value in case:
        values = {key: known.at(letter, value) for key, known in values.items()}
    return dict(values)


def _never(known: tuple[int, bool], op: str) -> bool:
    """Tell whether nothing that has a sign is = 0, >= 0 or > 0."""
    return known[0] <= 0 if op == ">" else known[1] and (known[0] < 0 or op == "=")


def _such(known: tuple[int, bool], op: str) -> bool:
    """Tell whether what has a sign is = 0, >= 0 or > 0."""
    if op == "=":
        return known[0] == 0
    return known[0] >= 0 and (op == ">=" or known == (1, True))


def _claims(goal: Goal) -> Iterator[tuple[Relation, tuple[Relation, ...]]]:
    """Yield what must hold under which hypotheses; an equivalence is two such."""
    if not isinstance(goal.claim, Iff):
        yield goal.claim, goal.given
        return
    a, b = goal.claim
    yield b, (*goal.given, a)
    yield (a, (*goal.given, b)) if a.sign == "=" else (b.negated, (*goal.given, a.negated))


def _everywhere(given: Iterable[Relation], most: int) -> Iterator[tuple[Relation, Any]]:
    """Yield hypotheses, those about whole sequences at each small index."""
    for premise in given:
        indices = sorted(premise.bound, key=str)
        ranges = (range(1 if i.is_positive else 0, max(most, 2) + 1) for i in indices)
        for numbers in product(*ranges):
            yield premise, dict(zip(indices, numbers, strict=True))


def certified(goal: Goal) -> str:
    """Return "certified", "for small counts", "DISAGREES", or "" for no certificate."""
    letters = set().union(*(claim.free for claim in (goal.claim, *goal.given)))
    whole = sorted((x for x in letters if x.is_integer), key=str)
    counts = (
        product(*(range(1 if x.is_positive else 0, most + 1) for x in whole))
        for most in (MOST, MOST - 1)
    )
    choices: list[Iterable[tuple[int, ...]]] = [[()], *(counts if whole else ())]
    for tried in choices:
        met = False
        for numbers in tried:
            word = _certified(goal, whole, numbers)
            met |= word == "certified"
            if word not in ("certified", "void"):
                break
        if word == "DISAGREES" and (tried != [()] or not whole):
            return word
        if word in ("certified", "void") and met:
            return "certified" if tried == [()] else "for small counts"
    return ""


def _certified(goal: Goal, whole: list[Any], numbers: tuple[int, ...]) -> str:
    known = {x.name: number for x, number in zip(whole, numbers, strict=False)}
    met = False
    for wanted, given in _claims(goal):
        places = list(_everywhere(given, max(numbers, default=MOST)))
        searches = [_Search(wanted, known) for _ in range(2)]
        # what is asked for last may be the one to begin with
        if not any(
            s.certain(h, {}, {}) for s, h in zip(searches, (places, places[::-1]), strict=True)
        ):
            return "DISAGREES" if any(s.refuted for s in searches) else ""
        met |= any(s.met for s in searches)
    return "certified" if met else "void"

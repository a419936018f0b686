"""Attacks on the derivations: changed goals and changed steps are refused, or they are true.

A mutant differs from a goal, or from an argument of a step, in one place: a sign, a number, an
index, a term or factor less, a hypothesis less. What is accepted all the same is tried in Fractions
at random points, most of them at a boundary; where the hypotheses hold, so must the claim.
"""

import inspect
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim import theory
from dlsim.theory import ProofError, steps
from dlsim.theory.relations import Every, Iff, Proposition
from dlsim.theory.steps import Line, shows
from dlsim.theory.symbols import Ratio
from tests.helpers.scale import SCALE, scale_count, some_of

STATEMENTS = {one.key: one for one in theory.statements()}
GOAL_MUTANTS, STEP_MUTANTS, POINTS = scale_count(20), scale_count(2000), 200
#: What takes no claim and shows nothing.
NO_STEPS = ("shows", "exact_function")


class NoValueError(Exception):
    """A claim that has no exact value at a point, or none at all."""


class Point:
    """Random values of symbols, and of sequences at each of their indices."""

    def __init__(self, draw):
        self.draw, self.values = draw, {}

    def choose(self, symbol):
        if isinstance(symbol, Ratio):
            return self.draw.choice([Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)])
        choices = [Fraction(0), Fraction(1), Fraction(2), Fraction(3)]
        if not symbol.is_integer:
            choices.append(Fraction(1, 2))
        if not symbol.is_nonnegative:
            choices.append(Fraction(-1))
        return self.draw.choice(choices[1:] if symbol.is_positive else choices)

    def value(self, part):
        """Compute an expression."""
        if part.is_Rational:
            return Fraction(int(part.p), int(part.q))
        if part.is_Symbol or isinstance(part, AppliedUndef):
            place = (part.func, *map(self.value, part.args)) if part.args else part
            if place not in self.values:
                self.values[place] = self.choose(part)
            return self.values[place]
        if isinstance(part, sp.Derivative | sp.Subs):
            return self.value(part.doit())
        if isinstance(part, sp.Sum):
            ((index, low, high),) = part.limits
            return sum(self.over(index, low, high, lambda: self.value(part.function)), Fraction(0))
        values = [self.value(argument) for argument in part.args]
        if part.is_Pow and values[1].denominator == 1:
            return values[0] ** int(values[1])
        functions = {
            sp.Add: lambda: sum(values), sp.Mul: lambda: math.prod(values),
            sp.Max: lambda: max(values), sp.Min: lambda: min(values),
            sp.floor: lambda: Fraction(math.floor(values[0])),
            sp.ceiling: lambda: Fraction(math.ceil(values[0])),
        }  # fmt: skip
        if part.func not in functions:
            raise NoValueError
        return functions[part.func]()

    def over(self, index, low, high, function):
        """Compute a function for each index of a range."""
        first, last = self.value(low), self.value(high)
        if last < first - 1:
            raise NoValueError
        before, found = self.values.get(index), []
        for count in range(int(first), int(last) + 1):
            self.values[index] = Fraction(count)
            found.append(function())
        self.values.pop(index, None)
        if before is not None:
            self.values[index] = before
        return found

    def holds(self, claim):
        if isinstance(claim, Iff):
            return self.holds(claim.first) == self.holds(claim.second)
        if isinstance(claim, Every):
            inside = claim.relation
            return all(self.over(claim.index, claim.low, claim.high, lambda: self.holds(inside)))
        gap = self.value(claim.left) - self.value(claim.right)
        return {"=": gap == 0, ">": gap > 0, ">=": gap >= 0, "<": gap < 0, "<=": gap <= 0}[
            claim.sign
        ]


def counterexample(claim, hypotheses, draw):
    """A point at which the hypotheses hold and the claim does not."""
    for _ in range(POINTS):
        point = Point(draw)
        try:
            if all(map(point.holds, hypotheses)) and not point.holds(claim):
                return point.values
        except (NoValueError, ZeroDivisionError):
            continue
    return None


# ------------------------------------------------------------------ mutants


def parts_of(expression, path=()):
    yield path, expression
    for place, part in enumerate(expression.args):
        yield from parts_of(part, (*path, place))


def put(expression, path, new):
    if not path:
        return new
    parts = list(expression.args)
    parts[path[0]] = put(parts[path[0]], path[1:], new)
    return expression.func(*parts)


def mutate_expression(expression, draw):
    """Change a number or index by 1, a symbol to its double, or leave out a term or factor."""
    path, part = draw.choice(list(parts_of(expression)))
    if part.is_Integer or (part.is_Symbol and part.is_integer):
        new = part + draw.choice([1, -1])
    elif part.is_Symbol:
        new = 2 * part
    elif part.is_Add or part.is_Mul:
        rest = list(part.args)
        left_out = rest.pop(draw.randrange(len(rest)))
        new = part.func(*rest, -left_out if part.is_Add and draw.random() < 0.5 else part.identity)
    else:
        return None
    return put(expression, path, new)


def mutate_claim(claim, draw):
    if isinstance(claim, Iff):
        side = draw.choice(["first", "second"])
        new = mutate_claim(getattr(claim, side), draw)
        return None if new is None else replace(claim, **{side: new})
    if isinstance(claim, Every):
        if draw.random() < 0.5:
            end = draw.choice(["low", "high"])
            return replace(claim, **{end: getattr(claim, end) + draw.choice([-1, 1])})
        new = mutate_claim(claim.relation, draw)
        return None if new is None else replace(claim, relation=new)
    if draw.random() < 0.3:
        return replace(claim, sign=draw.choice(["=", ">", ">=", "<", "<="]))
    side = draw.choice(["left", "right"])
    new = mutate_expression(getattr(claim, side), draw)
    return None if new is None else replace(claim, **{side: new})


def mutate(value, draw):
    """Return a changed argument of a step; a changed line rests on what it claims."""
    if isinstance(value, Line):
        claim = mutate_claim(value.claim, draw)
        kept = value.given - {value.claim}
        return None if claim is None else Line(claim, value.why, (), kept | {claim})
    if isinstance(value, Proposition):
        return mutate_claim(value, draw)
    if isinstance(value, sp.Expr):
        return mutate_expression(value, draw)
    if isinstance(value, dict) and value:
        place = draw.choice(list(value))
        rest = {one: times for one, times in value.items() if one is not place}
        if draw.random() < 0.5:
            return rest
        return {**rest, place: mutate_expression(sp.sympify(value[place]), draw) or 0}
    if isinstance(value, list | tuple) and value:
        place = draw.randrange(len(value))
        return [*value[:place], *value[place + 1 :]]
    return None


def attempt(change, value, draw):
    """Change a value at random; return None where the change gives no expression."""
    try:
        return change(value, draw)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("key", some_of(STATEMENTS, SCALE))
def test_changed_goals_are_refused_or_true(key):
    one, draw = STATEMENTS[key], random.Random(key)
    for _ in range(GOAL_MUTANTS):
        place = draw.randrange(len(one.goals))
        changed = attempt(mutate_claim, one.goals[place], draw)
        if changed is None:
            continue
        try:
            one.prove([*one.goals[:place], changed, *one.goals[place + 1 :]])
        except ProofError:
            continue
        if not shows(one.goals[place], changed):
            assert counterexample(changed, one.hypotheses, draw) is None, changed


@pytest.fixture(scope="module")
def calls():
    """All calls of steps in all derivations."""
    found, patch = [], pytest.MonkeyPatch()
    names = [
        name
        for name, step in inspect.getmembers(steps, inspect.isfunction)
        if step.__module__ == steps.__name__ and name[0] != "_" and name not in NO_STEPS
    ]
    originals = {name: getattr(steps, name) for name in names}

    def recorded(name):
        def step(*args, **kwargs):
            found.append((originals[name], args, kwargs))
            return originals[name](*args, **kwargs)

        return step

    modules = [inspect.getmodule(one.derive) for one in STATEMENTS.values()]
    for module in (*modules, steps):
        for name in names:
            if getattr(module, name, None) is originals[name]:
                patch.setattr(module, name, recorded(name))
    theory.prove()
    patch.undo()
    return found


def test_changed_steps_are_refused_or_true(calls):
    draw, accepted, tried = random.Random(1), 0, 0
    while tried < STEP_MUTANTS:
        step, args, kwargs = draw.choice(calls)
        call = inspect.signature(step).bind(*args, **kwargs)
        name = draw.choice(list(call.arguments))
        changed = attempt(mutate, call.arguments[name], draw)
        if changed is None:
            continue
        tried += 1
        try:
            call.arguments[name] = changed
            shown = step(*call.args, **call.kwargs)
        except (ProofError, LookupError, TypeError, ValueError):
            continue
        for line in shown if isinstance(shown, tuple) else [shown]:
            accepted += 1
            found = counterexample(line.claim, line.given, draw)
            assert found is None, (step.__name__, name, line.claim, line.given, found)
    assert accepted > 30

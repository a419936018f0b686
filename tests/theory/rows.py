"""Rows of tables of claims, and the names in which they are written.

A row is Python in the names of `NAMES`, where every step gives its reason by itself. Behind ``#``
stands a remark, and behind ``rests on`` are the hypotheses of what a step returns. A row that is
indented more goes on with the one above.
"""

import functools
import inspect
import re
from textwrap import dedent

import sympy as sp

from dlsim.errors import InputError
from dlsim.theory import algebra, relations, steps, symbols
from dlsim.theory.defined import require_defined
from dlsim.theory.relations import Every, Iff, ProofError, Relation, eq, ge, gt, le
from dlsim.theory.statements import Statement
from dlsim.theory.steps import Line
from dlsim.theory.symbols import k, m, n

a, b, c, y = sp.symbols("a b c y", real=True)
p, q, x, x0 = sp.symbols("p q x x0", positive=True)
z = sp.Symbol("z", nonnegative=True)
N = sp.Symbol("N", integer=True, nonnegative=True)
h, prime = sp.symbols("h i'", integer=True, positive=True)
whole = sp.Symbol("I", integer=True)
even = sp.Symbol("e", integer=True, positive=True, even=True)
anything, infinite = sp.Symbol("c"), sp.Symbol("c", extended_real=True)
f, g = sp.Function("f", real=True), sp.Function("g", positive=True)
HALF, THIRD = sp.Rational(1, 2), sp.Rational(1, 3)
order = sp.symbols("A B", commutative=False)
at = symbols.at_point

# ------------------------------------------------------------------ reading and calling rows


def rows(table):
    """The rows of a table, without remarks."""
    plain = re.sub("  # .*", "", dedent(table).strip()).replace("\n    ", " ")
    return [row.strip() for row in plain.replace("\n\n", "\n").split("\n")]


@functools.cache
def compiled(text):
    return compile(text, "a row", "eval")


def read(text, values):
    """What is written in the names of rows and those of some values."""
    return eval(compiled(text), NAMES, values)


def values_of(form, row):
    """What a row of values stands for, by the names in its form: ``left = right``, or one name."""
    names = re.findall(r"\w+", form)
    texts = row.rsplit(f" {form.split()[1]} ", 1) if names[1:] else [row]
    return {name: read(text, {}) for name, text in zip(names, texts, strict=bool(names))}


def tried(call, form="", row=""):
    """What a call shows of the values in a row, and on which hypotheses; None where refused."""
    CALLED.clear()
    try:
        shown = read(call, values_of(form, row))
    except (ProofError, InputError):
        return None, set()
    lines = shown if isinstance(shown, tuple) else (shown,)
    return shown or None, set().union(*(getattr(line, "given", ()) for line in lines))


# ------------------------------------------------------------------ the steps, and what makes lines

#: The steps that were called with what, in order: arguments come before the step that takes them.
CALLED = []


def by_itself(step):
    """The step, with a reason where it takes one and none is given."""
    parameters = list(inspect.signature(step).parameters)
    place = parameters.index("why") if "why" in parameters else None

    @functools.wraps(step)
    def call(*arguments, **options):
        CALLED.append((call, arguments))
        if place is not None and "why" not in options:
            arguments = (*arguments[:place], "a reason", *arguments[place:])
        return step(*arguments, **options)

    return call


def is_zero(left, right):
    require_defined(eq(left, right).sides)
    return algebra.is_zero(eq(left, right).gap)


def is_above(left, right):
    require_defined(gt(left, right).sides)
    return algebra.sign(gt(left, right).gap) == ">"


def prove(goal, line, goals=None):
    """Prove a statement whose derivation is one line."""
    one = Statement("key", "words", (goal,), (), lambda _: [line], "ours", "", "M 1", (), "")
    return one.prove(goals).shown[0]


ALL_STEPS = [
    step
    for name, step in inspect.getmembers(steps, inspect.isfunction)
    if step.__module__ == steps.__name__ and name[0] != "_"
]
ALL_STEPS += [is_zero, is_above, prove, steps.exact_function]
#: Steps by name; that for ceilings has another one than SymPy's function.
STEPS = {step.__name__: by_itself(step) for step in ALL_STEPS}
STEPS["round_up"] = STEPS.pop("ceiling")
assume, positive, show = (STEPS[name] for name in ("assume", "positive", "show"))


def strict(line, *known):
    """The line, if it is strict on nothing but what is known."""
    if line.claim.sign != ">":
        raise ProofError("it is not strict")
    return Line(line.claim, "", (), line.given - {one.claim for one in known})


def with_caught_index(line):
    """The line, if the index of its sum stands in the last index, too."""
    ((index, _, high),) = line.claim.left.limits
    if index not in high.free_symbols:
        raise ProofError("the index is another one")
    return line


def add_under(claim, *more):
    """A claim that rests on itself and on other hypotheses."""
    step = STEPS["identity" if claim.sign == "=" else "positive"]
    return step(claim, {assume(claim): 1, **{assume(one): 0 for one in more}})


def next_case(claim):
    """The next case under the claim, and under a hypothesis about every step that is false."""
    return add_under(claim.subs({n: n + 1}), claim, ge(0, 1))


def above_zero(sequence, last):
    """A line that says that a sequence is positive; where it need not be, that is assumed."""
    every = Every(gt(sequence(k), 0), k, 1, last)
    return show(every) if sequence is g else assume(every)


def rising(function, zero):
    """The hypotheses that a function of x rises, and that it is 0 somewhere."""
    slope = assume(gt(sp.Derivative(function, x).doit(), 0))
    return [slope, assume(eq(function.subs(x, zero), 0))]


def raw(kind, *parts):
    """An expression that SymPy does not evaluate."""
    return kind(*parts, evaluate=False)


def nested(start):
    """f(f(...f(start)...)), which is deeper than Python's stack."""
    for _ in range(400):
        start = f(start)
    return start


# ------------------------------------------------------------------ what lies, or hides something


class Once:
    """A collection that shows what it holds once and then hides it."""

    shown = False

    def pass_on(self, items):
        self.shown, hidden = True, self.shown
        return iter(() if hidden else list(items))


class OnceMapping(Once, dict):
    def items(self):
        return self.pass_on(dict.items(self))


class OnceList(Once, list):
    def __iter__(self):
        return self.pass_on(list.__iter__(self))


class EqualToAll:
    """What equals anything else."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class LyingClaim(EqualToAll):
    sides = (sp.Integer(1),)


class LyingExpression(EqualToAll, sp.Expr):
    pass


class LyingRelation(EqualToAll, Relation):
    """A relation that claims one thing and prints another."""

    gap, kind = sp.Integer(1), ">"


class LyingLine(Line):
    """A line whose relation is not its claim."""

    relation = gt(0, 1)


class LyingSign(str):
    """A sign that is any other one."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("=")


class Positive:
    """What says of itself that it is positive, real, and the number 5."""

    is_positive = is_nonnegative = is_extended_real = is_real = True

    def doit(self, **_):
        return sp.Integer(5)


class PositiveSymbol(Positive, sp.Symbol):
    pass


class PositiveNumber(Positive, sp.Integer):
    pass


class PositiveSum(Positive, sp.Sum):
    pass


class PositiveFunction(Positive, sp.Function):
    @classmethod
    def eval(cls, value):
        return None


def told(name, answer):
    """A sequence that is told what to answer after it was made."""
    function = sp.Function("told", real=True)
    setattr(function, name, answer)
    return function(1)


def python(function):
    """A value of a function that Python computes."""
    return steps.exact_function("h", function)(1)


def changing(*values):
    """A function of Python that returns other values when asked again."""
    waiting = [sp.sympify(one) for one in values]
    return python(lambda _: waiting.pop(0) if waiting[1:] else waiting[0])


def endless(value):
    return endless(value)


r, alpha, beta = symbols.r, symbols.alpha, symbols.beta
square = steps.exact_function("square", lambda value: value**2)
#: Lines that rows start from.
surely, zero = positive(gt(1, 0)), positive(ge(0, 0))
more, weak, same = assume(gt(a, b)), assume(ge(a, b)), assume(eq(a, b))
larger, lying, false = assume(gt(p, q)), LyingRelation(0, ">", 1), LyingLine(gt(1, 0), "")
both = STEPS["iff"](Iff(gt(a, b), gt(2 * a, 2 * b)), 2)
each, above, to_p = above_zero(f, n), above_zero(r, n), above_zero(r, p)
counted = show(Every(gt(symbols.j, 0), symbols.j, 1, n))
#: Of inductions: a first case, the next one, and what a sequence is known to do.
power = gt(symbols.geometric(n), n * beta**n)
first_power = positive(power.subs({n: 1}))
next_power = positive(power.subs({n: n + 1}), {assume(power): 1})
climbs = assume(Every(ge(r(k + 1), r(k)), k, 1, m - 1))
first_climb = positive(ge(r(1), r(1)))
next_climb = positive(ge(r(k + 1), r(1)), {STEPS["take"](climbs, k): 1, assume(ge(r(k), r(1))): 1})
rises_once = positive(ge(r(n + 1), 0), {assume(ge(r(n), 0)): 1, assume(ge(r(n + 1), r(n))): 1})
doubles, start = assume(Every(eq(r(k + 1), p * r(k)), k, 1, n - 1)), assume(eq(r(1), a))
powers = Every(eq(r(k), p ** (k - 1) * a), k, 1, n)
falls = assume(Every(le(c * r(k + 1), c * r(k)), k, 1, n - 1))
NAMES = {**vars(sp), **vars(relations), **vars(symbols), **globals(), **STEPS}

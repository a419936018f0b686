"""Paper M: the rules of sections 4 to 6 (equal finish, order by DC, all ten nodes)."""

from fractions import Fraction
from itertools import permutations

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import computed, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import SC, L, b, j, m, n, p, phi, positive, q, sigma, w, y
from dlsim.theory.words import (
    B,
    Cms,
    T,
    alpha,
    below_one,
    finishes,
    powers_below_one,
    smooth_powers,
)

real = positive("n")
Y, _E, end = sequence("y"), sp.Symbol(r"\mathcal{E}"), sp.Symbol("M", real=True)
_weight = b ** (n - j) * (1 - b) / (1 - b**n)
_whole = eq(total(alpha, n), 1)


@statement(
    "OPR",
    {"equal weights": {Y(j): 1 / n}, "weights reversed": {Y(j): b**j * (1 - b) / (1 - b**n)},
     "no set-up": {_E: SC + sigma * w * B(n)}},
    [gt(Y(j), 0), under(eq(end - _E, total(lambda i: Y(i) * (end - T(i)), n)), _whole),
     under(ge(end, _E), _whole, ge(end, T(j), over=j))], [below_one],
    {_E: phi * sigma * w + SC + sigma * w * B(n), Y(j): _weight,
     T(j): finishes(j, st=phi * sigma * w)},
    witness={n: 1, b: sp.Rational(1, 2), phi: 0, SC: 0, sigma: 1, w: 1, end: 2,
     alpha: lambda k: 2 ** (1 - k)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    weight = d.show(
        0, "each weight is positive", p * b ** (n - j) / q, {p: 1 - b, q: 1 - b**n}
    ).left
    whole = d.given(1, "the whole load", goal=1)
    back = b**-m
    even = eq(total(lambda i: b**-i, m), (back - 1) / (1 - b))
    d.recur(even, m, "the weights add up")
    sends = (m * back - b * (back - 1) / (1 - b)) / (1 - b)
    setups = phi * sigma * w * sends + SC * (back - 1) / (1 - b)
    line = finishes(j, st=phi * sigma * w)
    mean = eq(
        total(lambda i: b**-i * line.subs(j, i), m), setups + sigma * w * back * total(alpha, m)
    )
    d.recur(mean, m, r"summation by parts: every share has the same coefficient, by induction")
    d.at(even, {m: n})
    d.at(mean, {m: n})
    even, mean = (x.map(lambda side: side.subs(m, n)) for x in (even, mean))
    scale = b**n * (1 - b) / (1 - b**n)
    by = {even: -scale * end, mean: scale, whole: sigma * Cms / (1 - b**n)}
    d.show(
        1, r"so the weighted mean of the finishing times is $\mathcal{E}$ for every split", by=by
    )
    late = d.given(2, "no node ends after $M$, whatever gaps the link was idle", goal=2)
    term = d.nonnegative(weight * late.gap, p * y, "no term is negative", {p: weight, y: late})
    sums = d.adds(ge(term, 0), j, n, "nor their sum: the latest is not before the mean")
    d.show(2, "the mean is no later than the latest", y, {y: sums}, {d[1]: 1})


def _plan(order: tuple[int, ...], size: list[int], due: list[int]) -> Fraction | None:
    """Return the cost of paper M's test (lines 5-26) on two unit nodes, order fixed."""

    def time(task: int, nodes: int) -> Fraction:
        return Fraction(2 * size[task]) if nodes == 1 else Fraction(4 * size[task], 3)

    free, waiting, cost = [Fraction(0)] * 2, list(order), Fraction(0)
    for _ in range(9):
        now = min(free) if cost else Fraction(0)
        for task in list(waiting):
            fits = [m for m in (1, 2) if now + time(task, m) <= due[task]]
            if not fits:
                return None
            idle = [node for node in (0, 1) if free[node] <= now]
            if len(idle) >= fits[0]:
                waiting.remove(task)
                cost += fits[0] * time(task, fits[0])
                for node in idle[: fits[0]]:
                    free[node] = now + time(task, fits[0])
        if not waiting:
            return cost
        later = [f for f in free if f > now]
        free = [max(f, min(later)) for f in free]
    return None


_SIZE, _DUE = (3, 6, 6), (17, 32, 19)
cost = computed("cost", lambda order: _plan(tuple(k - 1 for k in order), list(_SIZE), list(_DUE)))
rise = computed("DC", lambda task: Fraction(8, 3) * _SIZE[task - 1] - 2 * _SIZE[task - 1])
least = computed("least cost of", lambda tasks: min(
    c for order in permutations(range(tasks)) if (c := _plan(order, list(_SIZE),
        list(_DUE))) is not None
))  # fmt: skip


@statement(
    "5.sum",
    {"another cost": {3: eq(cost((2, 3, 1)), 30)}, "DC order is best": {4: eq(least(3), 32)}},
    [*(eq(rise(task), value) for task, value in ((1, 2), (2, 4), (3, 4))), eq(cost((2, 3, 1)), 32),
     eq(least(3), 30)], refutes=le(cost((2, 3, 1)), cost((1, 2, 3))),
)  # fmt: skip
def _(d: Derivation) -> None:
    for goal in (0, 1, 2):
        d.compute(
            goal, r"$n^{min} = 1$ at time 0: $DC = \frac83\sigma-2\sigma$; MCDF's order is 2, 3, 1"
        )
    d.compute(3, "the cost of that order, in exact arithmetic")
    d.compute(4, "all six orders enumerated")
    d.compute(5, "another order costs less")


def _table(setup: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return B(n) and the n-th share for n = 1..10 on the nodes of paper M's Figure 8."""
    half, c = Fraction(1, 2), Fraction(setup, 100 * 20)
    value = [(half + m * c) / (1 - half**m) - c / half for m in range(1, 11)]
    return value, [v * half ** (m - 1) - c * (1 - half ** (m - 1)) / half for m,
        v in enumerate(value, 1)]  # fmt: skip


def _excess(setup: int) -> int:
    value, shares = _table(setup)
    times = [2 * setup + 100 * 20 * v for v in value]
    return round(1000 * (times[9] / times[sum(x > 0 for x in shares) - 1] - 1))


most = computed("N*", lambda setup: sum(x > 0 for x in _table(setup)[1]))
fastest = computed("fastest", lambda setup: 1 + min(range(10), key=_table(setup)[0].__getitem__))
tenth = computed("alpha_{10}", lambda setup: _table(setup)[1][9])
excess = computed("excess", _excess)
#: alpha_10 > 0 iff the size is above ST / 20 times the bracket of statement `last` times 4.
size = computed("size", lambda setup: Fraction(setup, 20) * (2**9 - 1 - Fraction(9, 2)) * 4)


@statement(
    "N*", {"N* = 10": {0: eq(most(5), 10)}, "another excess": {3: eq(excess(5), 9)}},
    [claim for st, nodes, tenths, whole in zip(
        (5, 10, 15, 20), (7, 6, 6, 5), (8, 23, 40, 58), (507, 1014, 1520, 2027), strict=True)
     for claim in (eq(most(st), nodes), eq(fastest(st), nodes), lt(tenth(st), 0),
                   eq(excess(st), tenths), lt(size(st), whole), ge(size(st), whole - 1))],
)  # fmt: skip
def _(d: Derivation) -> None:
    reasons = (
        "the last n with a positive n-th share", "is the fastest",
        "with all 10 nodes the formula is no schedule", "and overstates the best, in tenths of a %",
        "10 nodes need at least this whole size", "and no smaller one",
    )  # fmt: skip
    for goal in range(len(d.goals)):
        d.compute(goal, reasons[goal % 6])


_least, _load, _interval, batch = positive(r"\bar{\mathcal{E}} SystemLoad interval batch")
W = sequence("W")


@statement(
    "M.n+1",
    {"batch of one": {batch: 1},
     "they agree for a cost linear in n": {W(real): real}},
    [eq(batch * _least / _interval, sp.Rational(11, 2) * _load),
     differ(sp.Derivative(W(real), real), W(real + 1) - W(real))],
    where={W(real): real * B(real, 0).subs(b, sp.exp(-L)), _interval: _least / _load,
           batch: sp.Rational(sum(range(1, 11)), 10)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, r"mean batch, $(1+\dots+10)/10$, times $\bar{\mathcal{E}}$ over the interval")
    smooth_powers(d, real, real + 1)
    d.show(1, r"the derivative of $W$ is not the difference that $DC_i$ is defined as")

"""Paper M: the rules of sections 4 to 6 (equal finish, order by DC, all ten nodes)."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import computed, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import powers_below_one, smooth_powers
from dlsim.theory.letters import SC, L, b, j, n, p, phi, positive, q, sigma, w, y
from dlsim.theory.words import B, Cms, T, alpha, below_one, finishes, share

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
    form, given = p * b ** (n - j) / q, {p: 1 - b, q: 1 - b**n}
    weight = d.show(0, "each weight is positive", form, given).left
    whole = d.given(1, "the whole load", goal=1)
    back = b**-n
    even = eq(total(lambda i: b**-i, n), (back - 1) / (1 - b))
    d.recur(even, n, "the weights add up")
    sends = (n * back - b * (back - 1) / (1 - b)) / (1 - b)
    setups = phi * sigma * w * sends + SC * (back - 1) / (1 - b)
    line = finishes(j, st=phi * sigma * w)
    ends = total(lambda i: b**-i * line.subs(j, i), n)
    mean = eq(ends, setups + sigma * w * back * total(alpha, n))
    d.recur(mean, n, r"summation by parts: every share has the same coefficient, by induction")
    scale = b**n * (1 - b) / (1 - b**n)
    why = r"so the weighted mean of the finishing times is $\mathcal{E}$ for every split"
    d.show(1, why, by={even: -scale * end, mean: scale, whole: sigma * Cms / (1 - b**n)})
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
rise = sequence("DC")
least = computed("least cost of", lambda tasks: min(
    c for order in permutations(range(tasks)) if (c := _plan(order, list(_SIZE),
        list(_DUE))) is not None
))  # fmt: skip


@statement(
    "5.sum",
    {"another cost": {2: eq(cost((2, 3, 1)), 30)}, "DC order is best": {3: eq(least(3), 32)}},
    [eq(rise(3), 2), eq(rise(6), 4), eq(cost((2, 3, 1)), 32), eq(least(3), 30)],
    refutes=le(cost((2, 3, 1)), cost((1, 2, 3))),
    where={rise(sigma): sp.Rational(8, 3) * sigma - 2 * sigma},
)  # fmt: skip
def _(d: Derivation) -> None:
    for goal in (0, 1):
        d.compute(goal, r"$n^{min} = 1$ at time 0, task by size: MCDF's order is 2, 3, 1")
    d.compute(2, "the cost of that order, in exact arithmetic")
    d.compute(3, "all six orders enumerated")
    d.compute(4, "another order costs less")


first, nth, excess, size = map(sequence, (r"\mathcal{B}", r"\alpha^{(n)}", "excess", "size"))
_half, set_up = sp.Rational(1, 2), positive("ST")


def _first(count: Any) -> Any:
    return B(count, set_up / 2000).subs(b, _half)


def _time(count: Any) -> Any:
    return 2 * set_up + 2000 * _first(count)


@statement(
    "N*", {"N* = 10": {1: gt(nth(8, 5), 0)}, "another excess": {5: lt(excess(7, 5), 7)}},
    [claim for st, nodes, tenths, whole in zip(
        (5, 10, 15, 20), (7, 6, 6, 5), (8, 23, 40, 58), (507, 1014, 1520, 2027), strict=True)
     for claim in (gt(nth(nodes, st), 0), le(nth(nodes + 1, st), 0), lt(nth(10, st), 0),
                   eq(sp.Min(*(first(m, st) for m in range(1, 11))), first(nodes, st)),
                   gt(excess(nodes, st), tenths - _half), lt(excess(nodes, st), tenths + _half),
                   eq(sp.floor(size(st)) + 1, whole))],
    where={first(n, set_up): _first(n), excess(n, set_up): 1000 * (_time(10) / _time(n) - 1),
           nth(n, set_up): share(n, _first(n), set_up / 2000).subs(b, _half),
           size(set_up): set_up / 20 * (2**9 - 1 - sp.Rational(9, 2)) * 4},
)  # fmt: skip
def _(d: Derivation) -> None:
    reasons = (
        "a positive n-th share", "the last, as the bracket of statement last rises",
        "with all 10 nodes the formula is no schedule", "this many are the fastest",
        "and the formula overstates their time, in tenths of a %", "to the nearest",
        "10 nodes need more than this bracket: at least this whole size",
    )  # fmt: skip
    for goal in range(len(d.goals)):
        d.compute(goal, reasons[goal % 7])


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

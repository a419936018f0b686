"""Paper M: the rules of sections 4 to 6 (equal finish, order by DC, all ten nodes)."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import SC, L, b, i, j, n, p, phi, positive, q, sigma, w
from dlsim.theory.words import B, Cms, Cps, G, powers_below_one, share

real = positive("n")


@statement("OPR", {"equal weights": {"ratio": 1}, "weights reversed": {"ratio": 1 / b}})
def _(d: Derivation, ratio: Any = b) -> None:
    powers_below_one(d)
    weight = ratio ** (n - j) * (1 - b) / (1 - b**n)
    tail = (1 - b ** (n - j + 1)) / (1 - b**n)
    parts = {p: 1 - b, q: 1 - b**n}
    d.positive(weight, p * b ** (n - j) / q, "each weight is positive", parts, "y_j")
    d.equal(tail.subs(j, n), weight.subs(j, n), r"$Y_j = y_j + \dots + y_n$: the last", "Y_n")
    d.equal(tail - tail.subs(j, j + 1), weight, "and one before", "Y_j - Y_{j+1}")
    d.equal(tail.subs(j, 1), 1, "the weights sum to 1", "Y_1")
    before, now, upto = sp.symbols("A_{j-1} a_j Y_{j+1}")
    own = sp.Symbol("y_j")
    why = r"summation by parts: $\sum_j y_j A_j = \sum_j a_j Y_j$, by induction on $j$"
    left = now * (upto + own) - (before + now) * upto + before * (upto + own)
    d.equal(left, own * (before + now), why)
    d.equal(
        sigma * (Cms * tail + Cps * weight),
        sigma * Cms / (1 - b**n),
        r"in $\sum_j y_j T_j$ every share has the same coefficient, "
        r"$T_j = j\,ST + SC + \sigma(C_{ms}A_j + C_{ps}a_j)$",
        r"\sigma(C_{ms}Y_j + C_{ps}y_j)",
    )
    sums = d.induct(i - b * G(i), 1 - b**i, i, r"$\sum_j j y_j = \sum_i Y_i$: its numerator")
    setups = phi * sigma * w * sums.subs(i, n) / (1 - b**n)
    d.equal(
        setups + SC + sigma * Cms / (1 - b**n),
        phi * sigma * w + SC + sigma * w * B(n),
        r"so the weighted mean of the finishing times is $\mathcal{E}(n)$ for every split: the "
        r"latest is no earlier, and equal only if all are",
        r"\sum_j y_j T_j",
    )
    idle, mine = sp.Symbol("g_j", nonnegative=True), positive("y_j")
    why = r"a link idle for $g_j$ before the end of send $j$ raises $T_j$, and so the mean"
    d.nonnegative(mine * (now + idle) - mine * now, mine * idle, why, show=r"y_j(T_j+g_j)-y_jT_j")


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


@statement("5.sum", {"loose deadlines": {"due": (32, 32, 32)}, "DC order is best": {"best": 32}})
def _(d: Derivation, due: tuple[int, ...] = (17, 32, 19), best: int = 30) -> None:
    size = [3, 6, 6]
    costs = {order: _plan(order, size, list(due)) for order in permutations(range(3))}
    found = [c for c in costs.values() if c is not None]
    # n_min = 1 for all at time 0: DC = 2 (4/3 sigma) - 2 sigma = 2 sigma / 3
    by_dc = tuple(sorted(range(3), key=lambda task: -Fraction(2 * size[task], 3)))
    d.exact(
        [Fraction(2 * x, 3) for x in size] == [2, 4, 4] and by_dc == (1, 2, 0),
        "DC = 2, 4, 4",
        r"$n^{min} = 1$ for each at time 0 and $DC = \frac{8}{3}\sigma - 2\sigma$: "
        "MCDF's order is 2, 3, 1",
    )
    why = "all six orders enumerated in exact arithmetic; the first costs 32, another one 30"
    holds = costs[by_dc] == 32 and costs[(0, 1, 2)] == best == min(found)
    d.refute(holds, r"\text{cost}(2,3,1) = 32 > 30 = \text{cost}(1,2,3)", why)


@statement("N*", {"N* = 10": {"best": (10, 10, 10, 10)}, "other sizes": {"size": 600}})
def _(d: Derivation, best: tuple[int, ...] = (7, 6, 6, 5), size: int = 100) -> None:
    half, excess = Fraction(1, 2), (8, 23, 40, 58)
    for setup, nodes, tenths, least in zip(
        (5, 10, 15, 20), best, excess, (507, 1014, 1520, 2027), strict=True
    ):
        c = Fraction(setup, size * 20)
        value = [B(sp.Integer(m)).subs({b: half, phi: c}) for m in range(1, 11)]
        shares = [share(m, value[m - 1]).subs({b: half, phi: c}) for m in range(1, 11)]
        d.exact(
            max(m for m in range(1, 11) if shares[m - 1] > 0) == nodes
            and min(range(1, 11), key=lambda m: value[m - 1]) == nodes,
            rf"N^* = {nodes}",
            f"ST = {setup}: the last n with a positive n-th share is the fastest",
        )
        times = [2 * setup + size * 20 * v for v in value]
        ratio = times[9] / times[nodes - 1] - 1
        d.exact(
            shares[9] < 0 and round(1000 * ratio) == tenths,
            rf"\alpha_{{10}} = {float(shares[9]):.3g} < 0,\ "
            rf"\mathcal{{E}}(10)/\mathcal{{E}}({nodes}) - 1 = {float(100 * ratio):.1f}\,\%",
            "with all 10 nodes the formula is no schedule",
        )
        bracket = 2**9 - 1 - Fraction(9, 2)
        bound = Fraction(setup, 20) * bracket * 4
        why = f"so 10 nodes need a whole size of at least {least}"
        d.exact(
            least - 1 <= bound < least, rf"\alpha_{{10}} > 0 \iff \sigma > {float(bound):.1f}", why
        )


@statement("M.n+1", {"batch of one": {"most": 1}, "they agree for a cost linear in n": {"E": 1}})
def _(d: Derivation, most: int = 10, E: Any = None) -> None:
    least, load = sp.Symbol(r"\bar{\mathcal{E}}", positive=True), sp.Symbol("L", positive=True)
    mean = sp.Rational(sum(range(1, most + 1)), most)
    why = r"mean batch, $(1+\dots+10)/10$, times $\bar{\mathcal{E}}$ over the interval"
    d.equal(mean * least / (least / load), sp.Rational(11, 2) * load, why, r"\text{load}")
    cost = real * (B(real, 0).subs(b, sp.exp(-L)) if E is None else E)
    why = r"the derivative of $W$ is not the difference that $DC_i$ is defined as"
    d.correct(sp.diff(cost, real), cost.subs(real, real + 1) - cost, why)

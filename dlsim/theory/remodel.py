r"""The remodel of paper I's reference [6], and the true single-round optimum.

In [6] a node that is free early is taken for a slower one that is free with the others:
:math:`\chi_i = \chi E/(E + r_n - r_i)`, with E the time of paper M's equal nodes.
"""

from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import Delta, chi, j, m, n, p, positive, q, r, sigma, tau, x, y, z

E, P, slow, slower = positive(r"E P chi_i chi_i'")
early = sequence("p", nonnegative=True)
alpha, cost, T = sequence("alpha", real=True), sequence("chi", positive=True), sequence("T")
Ehat = sp.Symbol(r"\hat{E}")


def beta_of(cost: Any) -> Any:
    """Return beta of a node of the remodel."""
    return cost / (tau + cost)


def cost_of(k: Any) -> Any:
    """Return chi_k of the remodel."""
    return chi * E / (E + early(k))


class Past(AppliedUndef):
    """The product of the first k nodes' betas, by its recursion."""

    nargs = 1
    is_positive = True

    def _latex(self, printer: Any, exp: Any = None) -> str:
        return f"P_{{{printer._print(self.args[0])}}}" + (f"^{{{exp}}}" if exp else "")

    @classmethod
    def unfolded(cls, count: int) -> Any:
        """Return the product itself."""
        return sp.Mul(*(beta_of(cost_of(sp.Integer(i))) for i in range(1, count + 1)))

    @classmethod
    def eval(cls, k: Any) -> Any:
        """Return P_0 = 1 and P_{k+1} = P_k beta_{k+1}; any other index stays."""
        if k == 0:
            return sp.Integer(1)
        if k == 1 or (k.is_Add and k.as_coeff_Add()[0] == 1):
            return cls(k - 1) * beta_of(cost_of(k))
        return None


Pn = Past(n)
_finish = sigma * tau * total(alpha, j) + sigma * cost_of(j) * alpha(j)
_whole = eq(total(alpha, n), 1)


@statement(
    "6.rec",
    {"indices exchanged": {
         0: Iff(eq(T(j + 1), T(j)), eq(alpha(j + 1), alpha(j) * cost(j + 1) / (tau + cost(j))))},
     "chi of the first": {1: eq(T(n), sigma * tau + alpha(n) * sigma * cost_of(1))}},
    [Iff(eq(T(j + 1), T(j)), eq(alpha(j + 1), alpha(j) * cost(j) / (tau + cost(j + 1)))),
     under(eq(T(n), sigma * tau + alpha(n) * sigma * chi), _whole, eq(early(n), 0))],
    where={T(j): sigma * tau * total(alpha, j) + sigma * cost(j) * alpha(j), cost(j): cost_of(j)},
    witness={n: 1, alpha: lambda k: sp.S.One, early: lambda k: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "line $i+1$ minus line $i$", sigma * (tau + cost_of(j + 1)))
    whole, last = (
        d.given(0, "all data sent", goal=1),
        d.given(1, "the last node is not early", goal=1),
    )
    by = {whole: sigma * tau, last: -sigma * chi * alpha(n) / (E + early(n))}
    d.show(1, "the last line", by=by)


def _proper(d: Derivation) -> Any:
    r"""Show 1 - P > 0, the product taken node by node."""

    def fall(k: Any) -> Any:
        return Past(k - 1) * tau / (tau + cost_of(k))

    why = r"by induction: $P_0 = 1$ and $P_{i+1} = P_i\beta_{i+1}$ with $\beta_{i+1} < 1$"
    return d.grows(1 - Pn, n, fall(sp.Integer(1)), fall(n + 1), why)


def _part(k: Any) -> Any:
    """Return share k of the closed form."""
    return (1 - beta_of(cost_of(k))) * Past(k - 1) / (1 - Pn)


@statement(
    "6.closed",
    {"P_i for P_{i-1}": {alpha(j): (1 - beta_of(cost_of(j))) * Past(j) / (1 - Pn)},
     "1+P": {1: eq(total(_part, n), (1 + Pn) / (1 - Pn))}},
    [eq(alpha(j + 2), alpha(j + 1) * cost_of(j + 1) / (tau + cost_of(j + 2))),
     eq(total(alpha, n), 1), eq(sigma * (tau + cost_of(1)) * alpha(1), sigma * tau / (1 - Pn))],
    where={alpha(j): _part(j)},
)  # fmt: skip
def _(d: Derivation) -> None:
    _proper(d)
    d.show(0, "it satisfies the recurrence")
    term = (1 - beta_of(cost_of(m))) * Past(m - 1)
    sums = d.induct(1 - Past(m), term, m, r"$P_{i-1}-P_i$, added up")
    everyone = d.at(sums, {m: n})
    d.show(1, "so the shares sum to 1", by={everyone: 1 / (1 - Pn)})
    d.show(2, "the first node's finish")


others, _betas = positive("O"), sequence("beta")


@statement(
    "6.mono", {"decreasing": {0: gt(others * beta_of(slow), others * beta_of(slower))}},
    [under(gt(others * beta_of(slower), others * beta_of(slow)), gt(slower, slow)),
     under(
         gt(sigma * tau / (1 - others * beta_of(slower)),
             sigma * tau / (1 - others * beta_of(slow))), gt(slower, slow), ge(1, others)),
     gt(1, Pn), eq(Past(n + 1), Past(n) * _betas(n + 1))],
    where={_betas(n): beta_of(cost_of(n))}, witness={slow: 1, slower: 2, others: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    more = d.given(0, "one node is slower")
    form = others * tau * p / ((tau + slow) * (tau + slower))
    rise = d.show(
        0, r"then $P$, a product in any order, is larger ($O$: the other nodes')", form, {p: more}
    )
    part = d.given(1, r"where $O \le 1$", goal=1)
    below = [d.positive(1 - others * beta_of(c), (y * c + tau) / (tau + c), "$P < 1$", {y: part})
             for c in (slower, slow)]  # fmt: skip
    form = sigma * tau * p / (q * r)
    d.show(1, r"and so is $\hat E$", form, {p: rise, q: below[0], r: below[1]})
    _proper(d)
    d.show(3, "$P$ is the product of the nodes' betas")


_beta = beta_of(chi)
_gone = eq(early(j), 0, over=j)


@statement(
    "6.EhatE", {"reversed": {1: gt(Ehat, E)}},
    [ge(_beta**n, Pn), le(Ehat, sigma * tau / (1 - _beta**n)), under(eq(Pn, _beta**n), _gone)],
    where={Ehat: sigma * tau / (1 - Pn)}, witness={early: lambda k: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    whole = d.grows(
        1 - _beta**n, n, tau / (tau + chi), _beta**n * tau / (tau + chi), r"$\beta^n < 1$"
    )

    def ratio(k: Any) -> Any:
        return tau / (tau * (E + early(k)) + chi * E)

    def loss(k: Any) -> Any:
        return Past(k - 1) / _beta ** (k - 1) * ratio(k) * early(k)

    why = r"by induction: $1-\beta_i/\beta \ge 0$, because $\chi_i \le \chi$"
    first, step = loss(sp.Integer(1)), loss(n + 1)
    gap = d.grows(1 - Pn / _beta**n, n, first, step, why, strict=False)
    less = d.show(0, r"so $P \le \beta^n$", _beta**n * y, {y: gap})
    form = sigma * tau * y / (p * q)
    d.show(1, r"$\hat E \le E$", form, {q: whole, p: below, y: less})
    none = d.given(0, "all nodes are free together", goal=2)
    start, later = d.at(none, {j: 1}), d.at(none, {j: n + 1})
    by, base = {later: -Past(n) * _beta * ratio(n + 1)}, {start: -_beta * ratio(1)}
    d.recur(2, n, r"then $\chi_i = \chi$: paper M", by=by, base=base, factor=_beta)


late, lead = sp.symbols("r_n p_j", real=True)
before = sp.Symbol("A_{j-1}", nonnegative=True)
k = sp.Symbol("k", integer=True, nonnegative=True)
_share = (1 - beta_of(cost_of(k + 1))) * Past(k) / (1 - Pn)
_upto = (1 - Past(k + 1)) / (1 - Pn)


@statement(
    "6.safe", {"an estimate without r_n": {Ehat: sigma * tau / (1 + Pn)}},
    [under(le(late - lead + sigma * tau * (_upto - before) + _share * sigma * chi, late + Ehat),
         ge(lead, early(k + 1)), eq(E, sigma * tau / (1 - _beta**n)))],
    where={Ehat: sigma * tau / (1 - Pn)},
    witness={lead: 1, early: lambda i: sp.S.Zero, n: 1, sigma: 1, tau: 1, chi: 1, E: 2},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    sorted_ = d.given(0, r"$r_j \le r_i$, because $j \le i$, the node's index $i = k+1$")
    equal = d.given(1, "paper M's time")
    d.grows(1 - _beta**n, n, tau / (tau + chi), _beta**n * tau / (tau + chi), r"$\beta^n < 1$")
    shorter = d.lemma("6.EhatE", r"$\hat E \le E$", 1)
    d.grows(1 - Past(k), k, 0, Past(k) * tau / (tau + cost_of(k + 1)), r"$P_k \le 1$", strict=False)
    d.at(ge(1 - Past(k), 0), {k: k + 1})
    part = _share * sigma * cost_of(k + 1)
    why = r"the node's computing is part of $\hat E = \sigma\tau A_i + \alpha_i\sigma\chi_i$"
    rest = E - part
    form = z + sigma * tau * y / p
    d.nonnegative(rest, form, why, {z: shorter, y: 1 - Past(k + 1), p: below}, by={equal: 1})
    form = y + early(k + 1) * z / E + sigma * tau * before
    d.show(0, "part by part", form, {y: sorted_, z: rest})


@statement(
    "6.nmin", {"sign": {0: Iff(le(Ehat, Delta), le(Pn, 1 + sigma * tau / Delta))}},
    [Iff(le(Ehat, Delta), le(Pn, 1 - sigma * tau / Delta))], where={Ehat: sigma * tau / (1 - Pn)},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    d.show(0, r"times $\Delta/(1-P) > 0$", Delta / p, {p: below})


end, after, head = sp.symbols("e e' r_h", real=True)
start, rho, load, length = (sequence(name, real=True) for name in ("s", "r", "x", "m"))
weight, beta = sequence("w", positive=True), chi / (tau + chi)
slot, free = sp.symbols("s_1 s_2", real=True), sp.symbols("r_a r_b", real=True)
_bound = eq(start(j + 1), start(j) + (end - start(j)) / (tau + chi) * tau, over=j)
_runs = ge(after, rho(j) + load(j) * tau / weight(j), over=j)


@statement(
    "opt.blk",
    {"chi for tau": {
         0: eq(total(lambda i: (end - start(i)) / (tau + chi), m),
             (end - start(1)) * (1 - beta**m) / chi)},
     "m+1": {2: eq(end, start(1) + sigma * tau / (1 - beta ** (m + 1)))}},
    [under(
         eq(total(lambda i: (end - start(i)) / (tau + chi), m),
             (end - start(1)) * (1 - beta**m) / tau), _bound),
     under(ge(after * total(weight, n), sigma * tau + total(lambda i: rho(i) * weight(i), n)),
         _runs, eq(total(load, n), sigma)),
     under(eq(end, head + sigma * tau / (1 - beta**m)),
         eq((end - head) * (1 - beta**m) / tau, sigma)),
     under(eq(end, (total(rho, n) + sigma * (tau + chi)) / n),
         eq(total(lambda i: (end - rho(i)) * (1 - beta) / tau, n), sigma)),
     under(ge(slot[0], free[0]), ge(slot[0], free[1]), ge(free[1], free[0])),
     under(ge(slot[1], free[1]), ge(slot[0], free[1]), ge(slot[1], slot[0]))],
    witness={n: 1, m: 1, sigma: 1, tau: 1, chi: 1, end: 2, head: 0, after: 2,
     **dict.fromkeys((*slot, *free), 0), weight: lambda i: sp.S.One, rho: lambda i: sp.S.Zero,
     load: lambda i: sp.S.One, start: lambda i: sp.Integer(2)},
)  # fmt: skip
def _(d: Derivation) -> None:
    send = d.given(0, "the next node starts when its send can")
    left = eq(end - start(j), beta ** (j - 1) * (end - start(1)))
    d.recur(left, j, r"so $e-s_{i+1} = \beta(e-s_i)$", by={send: -1}, factor=beta)
    later = d.at(left, {j: m + 1})
    d.grows(1 - beta**m, m, tau / (tau + chi), beta**m * tau / (tau + chi), r"$\beta^m < 1$")
    d.recur(0, m, "data carried by a run", by={later: 1 / (tau + chi)})
    bound = d.given(0, "no run ends before equal nodes free at its head (OPR)", goal=1)
    whole = d.given(1, r"all runs together carry $\sigma$", goal=1)
    room = d.nonnegative(
        (after - rho(j)) * weight(j) - load(j) * tau, weight(j) * y, "so", {y: bound}
    )
    sums = d.adds(ge(room, 0), j, n, "added up, for ANY cut into runs")
    d.show(1, r"$e' \ge (\sigma\tau+\sum r_hw_h)/\sum w_h$", y, {y: sums}, {whole: tau})
    one = d.given(0, "one run", goal=2)
    d.show(2, "is paper M from $r_h$", by={one: tau / (1 - beta**m)})
    all_ = d.given(0, "runs of one node", goal=3)
    d.show(3, "are paper I (3)", by={all_: (tau + chi) / n})
    why = "a node $b$ free later was served first: the earlier one, $a$, may take its place"
    ready, order = d.hypotheses({0: "$b$ is served first", 1: "though $a$ is free first"}, 4)
    d.show(4, why, y + z, {y: ready, z: order})
    later = d.given(1, "and the other place is later", goal=5)
    d.show(5, "which $b$ may take: every send stays where it was", y + z, {y: ready, z: later})


room, other, moved = (sequence(name, real=True) for name in ("x", "y", "z"))
cut, rate = sequence("theta", nonnegative=True), sequence("a", real=True)
_least = eq(room(j + 1), sp.Min(end - rho(j + 1), beta * room(j)), over=j)
_share_of = ge(1, cut(j), over=j)


def _cut(seq: Any, at: Any) -> tuple[Any, Any]:
    """Return how a sequence follows a cut: a release decides where theta is 1, the link where 0."""
    step = cut(j) * (at - rho(j + 1)) + (1 - cut(j)) * beta * seq(j)
    return eq(seq(1), at - rho(1)), eq(seq(j + 1), step, over=j)


_slope = eq(rate(1), 1), eq(rate(j + 1), cut(j) + (1 - cut(j)) * beta * rate(j), over=j)
_full = sigma * (tau + chi)
#: The fill and a cut to one end; a cut to two ends, and its slope.
_fill = (_least, eq(room(1), end - rho(1)), *_cut(other, end), _share_of)
_twice = (*_cut(other, end), *_cut(moved, after), *_slope)


@statement(
    "opt.att", {"falling load": {3: lt(rate(j), 0)}},
    [under(le(room(j), other(j)), *_fill), under(le(total(room, n), total(other, n)), *_fill),
     under(eq(other(j) - moved(j), rate(j) * (end - after)), *_twice),
     under(gt(rate(j), 0), *_slope, _share_of),
     under(ge(total(other, n), total(moved, n)), *_twice, _share_of, ge(end, after)),
     under(eq(total(room, n), _full), ge(total(other, n), total(room, n)),
         eq(total(other, n), _full), ge(total(room, n), total(moved, n)),
         eq(total(moved, n), _full))],
    witness=(
        {end: 0, after: 0, **dict.fromkeys((rho, room, other, moved), lambda i: sp.S.Zero),
         **dict.fromkeys((cut, rate), lambda i: sp.S.One)},
        {n: 1, tau: 1, chi: 1, sigma: sp.Rational(1, 2),
         **dict.fromkeys((room, other, moved), lambda i: sp.S.One)}),
)  # fmt: skip
def _(d: Derivation) -> None:
    least, first, other_1, other_ = d.hypotheses({
        0: r"filling all nodes up to $e$ leaves $x_{i+1} = e - s_{i+1}$ to the next",
        1: "the first node", 2: "any cut into runs: the first node",
        3: "a release decides where the cut is, the link elsewhere",
    })  # fmt: skip
    part = d.given(4, r"$\theta_i$ is 0 or 1")
    d.show(le(room(1), other(1)), "they begin alike", 0, by={other_1: 1, first: -1})
    before = d.assume(d[0], "assume the fill leaves no more room than the cut")
    lowest = least.right
    ends = [d.extreme(le(lowest, each), "a minimum is below its parts") for each in lowest.args]
    freed, linked = ends if ends[0].right == end - rho(j + 1) else ends[::-1]
    c = sp.Symbol("c", nonnegative=True)
    form = cut(j) * y + c * (z + beta * x)
    given = {y: freed, z: linked, x: before, c: part}
    d.show(
        d[0].map(lambda side: side.subs(j, j + 1)),
        "nor after one more node",
        form,
        given,
        {other_: 1, least: -1},
    )
    d.inductive(0, j, "so at every node")
    d.adds(d[0], j, n, "the fill carries the least of all cuts' loads, that of its own cut")
    moved_1, moved_, rate_1, rate_ = d.hypotheses({
        2: "the same cut at another end", 3: "node by node",
        4: "its slope: 1 at a release", 5: "less by the link",
    }, goal=2)  # fmt: skip
    change = end - after
    base, by = {other_1: 1, moved_1: -1, rate_1: -change}, {other_: 1, moved_: -1, rate_: -change}
    d.recur(2, j, "a cut's room is affine in $e$", by=by, base=base, factor=(1 - cut(j)) * beta)
    most = ge(1, rate(j))
    d.show(ge(1, rate(1)), "the slope begins at 1", 0, by={rate_1: -1})
    d.assume(most, "assume it is at most 1")
    form = c * (tau / (tau + chi) + beta * x)
    d.show(ge(1, rate(j + 1)), "then the next is", form, {c: part, x: most}, {rate_: -1})
    d.inductive(most, j, "so all are")
    d.show(gt(rate(1), 0), "it begins above 0", 1, by={rate_1: 1})
    up = d.assume(d[3], "assume it is positive")
    form = beta * p + cut(j) * (tau / (tau + chi) + beta * x)
    d.show(gt(rate(j + 1), 0), "then the next is", form, {p: up, x: most}, {rate_: 1})
    d.inductive(3, j, "so the load of every cut increases with $e$ and has one root")
    rise = d.given(7, r"$e$, the largest root, is at least that of the fill's own cut", goal=4)
    more = d.nonnegative(other(j) - moved(j), p * y, "so", {p: d[3], y: rise}, by={d[2]: 1})
    d.adds(ge(more, 0), j, n, "a cut carries at least as much at the largest root as at its own")
    most_, full, least_, own = d.hypotheses({
        0: "the cut with the largest root carries no less than the fill", 1: r"namely $\sigma$",
        2: "the fill no less than its own cut at that cut's root", 3: r"again $\sigma$",
    }, goal=5)  # fmt: skip
    d.show(ge(_full, total(room, n)), "no more", y, {y: most_}, {full: -1})
    d.show(ge(total(room, n), _full), "and no less", y, {y: least_}, {own: 1})
    d.meet(5, r"so at the largest root the fill carries exactly $\sigma$: it attains the bound")

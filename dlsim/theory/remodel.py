r"""The remodel of paper I's reference [6], and the true single-round optimum.

In [6] a node that is free early is taken for a slower one that is free with the others:
:math:`\chi_i = \chi E/(E + r_n - r_i)`, with E the time of paper M's equal nodes.
"""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, eq, ge, gt, le, lt, recursive, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import Delta, chi, counts, j, m, n, p, positive, q, r, sigma, tau, x, y, z

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


#: The product of the first k nodes' betas.
Past = recursive("P", lambda: 1, lambda k, past: past * beta_of(cost_of(k + 1)), 0, positive=True)
Pn = Past(n)
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
    whole, last = d.hypotheses({0: "all data sent", 1: "the last node is not early"}, goal=1)
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
    sums = d.induct(1 - Pn, (1 - beta_of(cost_of(n))) * Past(n - 1), n, r"$P_{i-1}-P_i$, added up")
    d.show(1, "so the shares sum to 1", by={sums: 1 / (1 - Pn)})
    d.show(2, "the first node's finish")


others, _betas = positive("O"), sequence("beta")
k = sp.Symbol("k", integer=True, nonnegative=True)
#: How often node j stands at place i of an order: once, at one of the places.
stands = sequence("pi", nonnegative=True)
_once = eq(total(lambda place: stands(place, j), n, "i"), 1, over=j)


def _log(node: Any) -> Any:
    return sp.log(_betas(node))


def _nodes(upto: Any, log: Any) -> Any:
    """Return the sum of the logarithms of the first betas, place by place."""
    return total(lambda place: total(lambda node: stands(place, node) * log(node), upto), n, "i")


@statement(
    "6.mono", {"decreasing": {0: gt(others * beta_of(slow), others * beta_of(slower))}},
    [under(gt(others * beta_of(slower), others * beta_of(slow)), gt(slower, slow)),
     under(
         gt(sigma * tau / (1 - others * beta_of(slower)),
             sigma * tau / (1 - others * beta_of(slow))), gt(slower, slow), ge(1, others)),
     gt(1, Pn), eq(sp.exp(total(_log, n)), Pn), under(eq(sp.exp(_nodes(n, _log)), Pn), _once)],
    where={_betas(j): beta_of(cost_of(j))},
    witness={slow: 1, slower: 2, others: 1, n: 1, stands: lambda i, k: sp.S.One},
)  # fmt: skip
def _(d: Derivation) -> None:
    more = d.given(0, "one node is slower")
    form = others * tau * p / ((tau + slow) * (tau + slower))
    rise = d.show(0, r"then $P$ is larger ($O$: the other nodes')", form, {p: more})
    part = d.given(1, r"where $O \le 1$", goal=1)
    below = [d.positive(1 - others * beta_of(c), (y * c + tau) / (tau + c), "$P < 1$", {y: part})
             for c in (slower, slow)]  # fmt: skip
    form = sigma * tau * p / (q * r)
    d.show(1, r"and so is $\hat E$", form, {p: rise, q: below[0], r: below[1]})
    _proper(d)
    why = "$P$ is the product of the nodes' betas"
    product = d.recur(3, n, why, factor=beta_of(cost_of(n + 1)))
    once = d.given(0, "in any order of the nodes each stands in one place", goal=4)
    first, following = d.at(once, {j: 1}), d.at(once, {j: m + 1})

    def log(node: Any) -> Any:
        return sp.log(beta_of(cost_of(node)))

    sums = eq(_nodes(m, log), total(log, m))
    base, by = {first: log(1)}, {following: log(m + 1)}
    d.recur(sums, m, "so its logarithms, place by place, add up to the nodes'", by=by, base=base)
    ordered, logs = d.at(sums, {m: n})[:3:2]
    d.exponentials(ordered, logs, "equal exponents, equal powers")
    same = d.apply(Iff(eq(*map(sp.exp, (ordered, logs))), eq(ordered, logs)), "so their product")
    d.show(4, "is $P$ in any order", by={same: 1, product: 1})


_beta = beta_of(chi)


def _fall(d: Derivation, count: Any) -> Any:
    less = tau / (tau + chi)
    return d.grows(1 - _beta**count, count, less, _beta**count * less, r"powers of $\beta < 1$")


_gone = eq(early(j), 0, over=j)


@statement(
    "6.EhatE", {"reversed": {1: gt(Ehat, E)}},
    [ge(_beta**n, Pn), le(Ehat, sigma * tau / (1 - _beta**n)), under(eq(Pn, _beta**n), _gone)],
    where={Ehat: sigma * tau / (1 - Pn)}, witness={early: lambda k: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    whole = _fall(d, n)

    def ratio(k: Any) -> Any:
        return tau / (tau * (E + early(k)) + chi * E)

    def loss(k: Any) -> Any:
        return Past(k - 1) / _beta ** (k - 1) * ratio(k) * early(k)

    why = r"by induction: $1-\beta_i/\beta \ge 0$, because $\chi_i \le \chi$"
    first, step = loss(sp.Integer(1)), loss(n + 1)
    gap = d.grows(1 - Pn / _beta**n, n, first, step, why, strict=False)
    less = d.show(0, r"so $P \le \beta^n$", _beta**n * y, {y: gap})
    d.show(1, r"$\hat E \le E$", sigma * tau * y / (p * q), {q: whole, p: below, y: less})
    none = d.given(0, "all nodes are free together", goal=2)
    start, later = d.at(none, {j: 1}), d.at(none, {j: n + 1})
    by, base = {later: -Past(n) * _beta * ratio(n + 1)}, {start: -_beta * ratio(1)}
    d.recur(2, n, r"then $\chi_i = \chi$: paper M", by=by, base=base, factor=_beta)


late = sp.Symbol("r_n", real=True)
begin = sequence("s", real=True)
#: One link: node i starts as soon as it is free (r_i = r_n - p_i) and the sends before are over.
_sends = (
    ge(early(j), early(j + 1), over=j), eq(begin(1), late - early(1)),
    le(begin(j + 1), sp.Max(late - early(j + 1), begin(j) + sigma * tau * alpha(j)), over=j),
)  # fmt: skip
_latest = late - early(k + 1) + sigma * tau * (1 - Past(k)) / (1 - Pn)


@statement(
    "6.safe",
    {"an estimate without r_n": {Ehat: sigma * tau / (1 + Pn)},
     "no node waits for the link": {0: le(begin(k + 1), late - early(k + 1))}},
    [under(le(begin(k + 1), _latest), *_sends),
     under(le(begin(k + 1) + alpha(k + 1) * sigma * (tau + chi), late + Ehat), *_sends,
         eq(E, sigma * tau / (1 - _beta**n)))],
    where={alpha(j): _part(j), Ehat: sigma * tau / (1 - Pn)},
    witness={early: lambda i: sp.S.Zero, n: 1, sigma: 1, tau: 1, chi: 1, E: 2, late: 0,
     begin: lambda i: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    sorted_, first, following = d.hypotheses({
        0: r"releases are sorted: $p_i \ge p_{i+1}$", 1: "the first node starts when it is free",
        2: "the others, at the latest, when free and the link is",
    })  # fmt: skip
    d.grows(1 - Past(k), k, 0, Past(k) * tau / (tau + cost_of(k + 1)), r"$P_k \le 1$", strict=False)
    d.at(ge(1 - Past(k), 0), {k: k + 1})
    order, start = d.at(sorted_, {j: k + 1}), d.at(following, {j: k + 1})
    d.show(d[0].map(lambda side: side.subs(k, 0)), "at the first node", 0, by={first: -1})
    before = d.assume(d[0], "assume it of a node")
    bound = d[0].right.subs(k, k + 1)
    free, linked = late - early(k + 2), begin(k + 1) + sigma * tau * _part(k + 1)
    form = sigma * tau * y / p
    d.show(ge(bound, free), "the next is free", form, {y: 1 - Past(k + 1), p: below})
    d.show(ge(bound, linked), "and the link is", y + z, {y: before, z: order})
    latest = d.extreme(le(sp.Max(free, linked), bound), "so it starts no later")
    d.show(le(begin(k + 2), bound), "than this", y + z, {y: latest, z: start})
    d.inductive(0, k, "for every node $i = k+1$")
    equal = d.given(3, "paper M's time", goal=1)
    _fall(d, n)
    shorter = d.lemma("6.EhatE", r"$\hat E \le E$", 1)
    why = r"the node's computing is part of $\hat E = \sigma\tau A_i + \alpha_i\sigma\chi_i$"
    rest = E - _part(k + 1) * sigma * cost_of(k + 1)
    form = z + sigma * tau * y / p
    d.nonnegative(rest, form, why, {z: shorter, y: 1 - Past(k + 1), p: below}, by={equal: 1})
    d.show(1, "part by part", y + early(k + 1) * z / E, {y: d[0], z: rest})


@statement(
    "6.nmin", {"sign": {0: Iff(le(Ehat, Delta), le(Pn, 1 + sigma * tau / Delta))}},
    [Iff(le(Ehat, Delta), le(Pn, 1 - sigma * tau / Delta))], where={Ehat: sigma * tau / (1 - Pn)},
)  # fmt: skip
def _(d: Derivation) -> None:
    below = _proper(d)
    d.show(0, r"times $\Delta/(1-P) > 0$", Delta / p, {p: below})


end, after, head = sp.symbols("e e' r_h", real=True)
start, rho, load = (sequence(name, real=True) for name in ("s", "r", "x"))
run, length = counts("h"), sequence("m", integer=True, positive=True)
beta = chi / (tau + chi)
slot, free = sp.symbols("s_1 s_2", real=True), sp.symbols("r_a r_b", real=True)
_bound = eq(start(j + 1), start(j) + (end - start(j)) / (tau + chi) * tau, over=j)


def _of_run(upto: Any) -> Any:
    """Return the load that the first nodes of run h have."""
    return total(lambda i: load(run, i), upto)


_late = ge(after, rho(run) + tau * _of_run(j) + chi * load(run, j), over=(run, j))
_all = eq(total(lambda i: _of_run(length(run)).subs(run, i), n, "i"), sigma)


def _weighed(term: Any) -> Any:
    """Return the sum over all runs, weighed by w_h = 1 - beta^m_h."""
    return total(lambda i: term(i) * (1 - beta ** length(i)), n)


_carried = eq(_weighed(lambda i: (end - rho(i)) / tau), sigma)


@statement(
    "opt.blk",
    {"chi for tau": {
         0: eq(total(lambda i: (end - start(i)) / (tau + chi), m),
             (end - start(1)) * (1 - beta**m) / chi)},
     "m+1": {2: eq(end, start(1) + sigma * tau / (1 - beta ** (m + 1)))}},
    [under(
         eq(total(lambda i: (end - start(i)) / (tau + chi), m),
             (end - start(1)) * (1 - beta**m) / tau), _bound),
     under(ge(after * _weighed(lambda i: 1), sigma * tau + _weighed(rho)), _late, _all),
     under(eq(end * _weighed(lambda i: 1), sigma * tau + _weighed(rho)), _carried),
     under(eq(end, head + sigma * tau / (1 - beta**m)),
         eq((end - head) * (1 - beta**m) / tau, sigma)),
     under(eq(end, (total(rho, n) + sigma * (tau + chi)) / n),
         eq(total(lambda i: (end - rho(i)) * (1 - beta) / tau, n), sigma)),
     under(ge(slot[0], free[0]), ge(slot[0], free[1]), ge(free[1], free[0])),
     under(ge(slot[1], free[1]), ge(slot[0], free[1]), ge(slot[1], slot[0]))],
    witness={n: 1, m: 1, sigma: 1, tau: 1, chi: 1, end: 2, head: 0, after: 2,
     **dict.fromkeys((*slot, *free), 0), length: lambda i: sp.S.One, rho: lambda i: sp.S.Zero,
     load: lambda i, k: 2 ** (1 - k), start: lambda i: sp.Integer(2)},
)  # fmt: skip
def _(d: Derivation) -> None:
    send = d.given(0, "the next node starts when its send can")
    left = eq(end - start(j), beta ** (j - 1) * (end - start(1)))
    d.recur(left, j, r"so $e-s_{i+1} = \beta(e-s_i)$", by={send: -1}, factor=beta)
    later = d.at(left, {j: m + 1})
    _fall(d, m)
    d.recur(0, m, "data carried by a run", by={later: 1 / (tau + chi)})
    late = d.given(0, "a run's sends come one after the other, from its head's release on", goal=1)
    whole = d.given(1, r"all runs together carry $\sigma$", goal=1)
    powers = eq(total(lambda i: beta**-i, m), (beta**-m - 1) * (tau + chi) / tau)
    d.recur(powers, m, "the weights of OPR add up")
    sends = total(lambda i: beta**-i * (tau * _of_run(i) + chi * load(run, i)), m, "i")
    mean = eq(sends, (tau + chi) * beta**-m * _of_run(m))
    d.recur(mean, m, "every node's load has the same coefficient in their mean, by induction")
    term = d.nonnegative(beta**-j * late.gap, y * beta**-j, "no node is later", {y: late})
    lag = d.adds(ge(term, 0), j, m, "nor is the mean")
    scale = tau * beta**m / (tau + chi)
    bound = (after - rho(run)) * (1 - beta**m) - tau * _of_run(m)
    why = "no run ends before equal nodes that are free at its head"
    by = {powers: -scale * (after - rho(run)), mean: scale}
    d.nonnegative(bound, scale * y, why, {y: lag}, by=by)
    each = d.at(ge(bound, 0), {m: length(run)})
    sums = d.adds(each, run, n, "added up, for ANY cut into runs")
    d.show(1, r"$e' \ge (\sigma\tau+\sum r_hw_h)/\sum w_h$", y, {y: sums}, {whole: tau})
    carried = d.given(0, r"runs that all end at $e$ carry $\sigma$", goal=2)
    d.show(2, "at the least such time", by={carried: tau})
    one = d.given(0, "one run", goal=3)
    d.show(3, "is paper M from $r_h$", by={one: tau / (1 - beta**m)})
    all_ = d.given(0, "runs of one node", goal=4)
    d.show(4, "are paper I (3)", by={all_: (tau + chi) / n})
    why = "a node $b$ free later was served first: the earlier one, $a$, may take its place"
    ready, order = d.hypotheses({0: "$b$ is served first", 1: "though $a$ is free first"}, 5)
    d.show(5, why, y + z, {y: ready, z: order})
    later = d.given(1, "and the other place is later", goal=6)
    d.show(6, "which $b$ may take: every send stays where it was", y + z, {y: ready, z: later})


cut, latest = sequence("theta", nonnegative=True), sp.Symbol("R", real=True)
#: The time left to node j of a fill up to an end, of a cut, and the slope of a cut's.
room = recursive(
    "x", lambda at: at - rho(1), lambda j, x, at: sp.Min(at - rho(j + 1), beta * x), real=True
)
other = recursive(
    "y", lambda at: at - rho(1),
    lambda j, y, at: cut(j) * (at - rho(j + 1)) + (1 - cut(j)) * beta * y, real=True,
)  # fmt: skip
rate = recursive("a", lambda: 1, lambda j, a: cut(j) + (1 - cut(j)) * beta * a, real=True)
_zero_or_one, _released = ge(1, cut(j), over=j), ge(latest, rho(j), over=j)
_full, after_first = sigma * (tau + chi), positive("xi")
sooner, later = sp.symbols("u v", nonnegative=True)
_best = rho(1) + after_first


def _filled(at: Any, by: Any = room) -> Any:
    """Return what the fill (or a cut) up to an end carries, times the cost of a unit."""
    return total(lambda i: by(i, at), n)


def _fills(d: Derivation) -> None:
    r"""Give a derivation the end at which the fill carries all, :math:`r_1 + \xi`."""
    low, high = room(j, rho(1)), room(j, latest + 2 * _full)
    before = d.assume(le(low, 0), "assume a node has no room at the first release")
    linked = d.extreme(le(low.subs(j, j + 1), beta * low), "a minimum is below its parts")
    d.show(le(low.subs(j, j + 1), 0), "nor has the next", z + beta * x, {z: linked, x: before})
    d.inductive(le(low, 0), j, "so none has")
    none = d.adds(le(low, 0), j, n, "nor all together")
    curve, length = _filled(rho(1) + sooner) - _full, latest - rho(1) + 2 * _full
    d.show(gt(-curve.subs(sooner, 0), 0), "there the fill carries less", y + _full, {y: none})
    free = d.given(0, "all nodes are free by $R$", goal=5)
    one, following = d.at(free, {j: 1}), d.at(free, {j: j + 1})
    d.show(ge(high.subs(j, 1), 0), r"at $R + 2\sigma(\tau+\chi)$", y + 2 * _full, {y: one})
    some = d.assume(ge(high, 0), "assume a node has room")
    d.show(ge(latest + 2 * _full, rho(j + 1)), "the next is free", y + 2 * _full, {y: following})
    d.show(ge(beta * high, 0), "and the link is", beta * y, {y: some})
    d.extreme(ge(high.subs(j, j + 1), 0), "so it has room")
    d.inductive(ge(high, 0), j, "so all have")
    more = d.at(ge(high, 0), {j: n + 1})
    rest = total(lambda i: high.subs(j, i), n) - high.subs(j, 1)
    d.grows(rest, n, 0, y, "and add to the first one's", {y: more}, strict=False)
    form = y + z + _full
    d.show(gt(curve.subs(sooner, length), 0), "there it carries more", form, {y: rest, z: one})
    d.show(gt(length, 0), "later", z + 2 * _full, {z: one})
    longer = d.assume(ge(later, sooner), "of two ends")
    mine, its = (room(j, rho(1) + at) for at in (sooner, later))
    slow = ge(later - sooner - (its - mine), 0)
    before = d.assume(slow, "assume a node's room grows no faster than the end")
    least = its.subs(j, j + 1)
    d.extreme(le(least, rho(1) + later - rho(j + 1)), "the next has no more than this")
    linked = d.extreme(le(least, beta * its), "or this")
    moved = least - (later - sooner)
    form = z + beta * x + tau / (tau + chi) * y
    d.show(ge(beta * mine, moved), "for either reason", form, {z: linked, x: before, y: longer})
    d.extreme(ge(mine.subs(j, j + 1), moved), "than what it had less what is lost")
    d.inductive(slow, j, "and so for all")
    d.adds(slow, j, n, "what the fill carries $n$ times as fast at most: it does not jump")
    d.reaches(curve, sooner, (0, length), after_first, later, n, r"it reaches $\sigma$ in between")


@statement(
    "opt.att",
    {"falling load": {3: lt(rate(j), 0)}, "an earlier end": {5: lt(_filled(_best), _full)}},
    [under(le(room(j, end), other(j, end)), _zero_or_one),
     under(le(_filled(end), _filled(end, other)), _zero_or_one),
     eq(other(j, end) - other(j, after), rate(j) * (end - after)),
     under(gt(rate(j), 0), _zero_or_one),
     under(Iff(eq(_filled(after, other), _full),
         eq(after, end - (_filled(end, other) - _full) / total(rate, n))), _zero_or_one),
     under(eq(_filled(_best), _full), _released),
     under(ge(_best, after), _released, _zero_or_one, eq(_filled(after, other), _full)),
     eq((room(j + 1, end) - (end - rho(j + 1))) * (room(j + 1, end) - beta * room(j, end)), 0)],
    exists={after_first: (n, sigma, tau, chi, latest, rho)},
    witness={n: 1, tau: 1, chi: 1, sigma: 1, after: 2, latest: 0, rho: lambda i: sp.S.Zero,
     cut: lambda i: sp.S.One},
)  # fmt: skip
def _(d: Derivation) -> None:
    part = d.given(0, r"$\theta_j$ is 1 where a release decides, 0 where the link does")
    before = d.assume(d[0], "assume the fill leaves no more room than the cut")
    lowest = room(j + 1, end)
    freed, linked = (
        d.extreme(le(lowest, each), "a minimum is below its parts")
        for each in (end - rho(j + 1), beta * room(j, end))
    )
    c = sp.Symbol("c", nonnegative=True)
    form, given = cut(j) * y + c * (z + beta * x), {y: freed, z: linked, x: before, c: part}
    d.show(d[0].map(lambda side: side.subs(j, j + 1)), "nor after one more node", form, given)
    d.inductive(0, j, "so at every node")
    d.adds(d[0], j, n, "the fill carries no more than any cut")
    d.recur(2, j, "a cut's room is affine in $e$", factor=(1 - cut(j)) * beta)
    most = ge(1, rate(j))
    d.assume(most, "its slope begins at 1; assume it is at most 1")
    form = c * (tau / (tau + chi) + beta * x)
    d.show(ge(1, rate(j + 1)), "then the next is", form, {c: part, x: most})
    d.inductive(most, j, "so all are")
    up = d.assume(d[3], "and it begins above 0; assume it is positive")
    form = beta * p + cut(j) * (tau / (tau + chi) + beta * x)
    d.show(gt(rate(j + 1), 0), "then the next is", form, {p: up, x: most})
    d.inductive(3, j, "so the load of every cut increases with $e$")
    slope = d.adds(d[3], j, n, "that is all its nodes together")
    lines = eq(_filled(end, other) - _filled(after, other), total(rate, n) * (end - after))
    d.recur(lines, n, "and is affine", by={d.at(d[2], {j: n + 1}): 1})
    d.show(4, "so it has one root", p, {p: slope}, {lines: -1})
    _fills(d)
    carries = d.given(2, r"any cut that carries $\sigma$", goal=6)
    d.at(d[1], {end: _best})
    there, form = d.at(lines, {end: _best}), y / p
    given = {y: _filled(_best, other) - _filled(_best), p: slope}
    scale = 1 / total(rate, n)
    d.show(6, "ends no later", form, given, {d[5]: scale, carries: -scale, there: -scale})
    first, second = end - rho(j + 1), beta * room(j, end)
    for case, on in ((ge(second, first), first), (gt(first, second), second)):
        d.assume(case, "where the release or the link decides")
        least = d.extreme(eq(room(j + 1, end), on), "is the smaller")
        d.show(7, "so one factor is 0", by={least: room(j + 1, end) - (first + second - on)})
    d.either(7, ge(second, first), r"so at any end the fill is a cut, and at $r_1+\xi$ the last")

r"""The remodel of paper I's reference [6], and the true single-round optimum.

In [6] a node that is free early is taken for a slower one that is free with the others:
:math:`\chi_i = \chi E/(E + r_n - r_i)`, with E the time of paper M's equal nodes.
"""

from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import Delta, R, b, chi, i, m, n, p, positive, q, sigma, tau, y, z
from dlsim.theory.words import powers_below_one

E, P, slow, slower = positive(r"E P chi_i \chi_{i+1}")
wait = sp.Symbol("p_i", nonnegative=True)
modelled = chi * E / (E + wait)


def beta_of(cost: Any) -> Any:
    """Return beta of a node of the remodel."""
    return cost / (tau + cost)


class Past(AppliedUndef):
    """The product of the first k nodes' betas, by its recursion."""

    nargs = 1
    is_positive = True

    @classmethod
    def eval(cls, k: Any) -> Any:
        """Return P_0 = 1 and P_{k+1} = P_k beta_{k+1}; any other index stays."""
        if k == 0:
            return sp.Integer(1)
        if k == 1 or (k.is_Add and k.as_coeff_Add()[0] == 1):
            return cls(k - 1) * beta_of(cost_of(k))
        return None


early = sp.Function("p", nonnegative=True)
Pn = Past(n)


def cost_of(k: Any) -> Any:
    """Return chi_k of the remodel."""
    return modelled.subs(wait, early(k))


def _proper(d: Derivation) -> Any:
    r"""Show 1 - P > 0, the product taken node by node."""

    def fall(k: Any) -> Any:
        return Past(k - 1) * tau / (tau + cost_of(k))

    why = r"by induction: $P_0 = 1$ and $P_{i+1} = P_i\beta_{i+1}$ with $\beta_{i+1} < 1$"
    return d.grows(1 - Pn, n, fall(sp.Integer(1)), fall(n + 1), why)


@statement("6.rec", {"indices exchanged": {"swap": True}, "chi of the first": {"last": 1}})
def _(d: Derivation, swap: bool = False, last: int = 0) -> None:
    before, now, after = sp.symbols("A_i a_i a_{i+1}")
    line = sigma * tau * before + sigma * slow * now
    following = sigma * tau * (before + after) + sigma * slower * after
    ratio = slower / (tau + slow) if swap else slow / (tau + slower)
    why = "line $i+1$ minus line $i$"
    d.equal(following - line, sigma * (tau + slower) * (after - now * ratio), why)
    d.equal(modelled.subs(wait, last), chi, r"the last node has $p_n = 0$", r"\chi_n")
    left = (sigma * tau * before + sigma * slow * now).subs({before: 1, slow: chi})
    d.equal(left, sigma * tau + sigma * chi * now, "its line, with all data sent", r"\hat E")


@statement("6.closed", {"P_i for P_{i-1}": {"lag": 0}, "1+P": {"sign": -1}})
def _(d: Derivation, lag: int = 1, sign: int = 1) -> None:
    past = positive("P_{i-1}")
    here, there = beta_of(slow), beta_of(slower)
    prefix = past if lag else past * here
    share = (1 - here) * prefix / (1 - sign * P)
    following = (1 - there) * past * here / (1 - P)
    why = "it satisfies the recurrence"
    d.equal(following, (1 - here) * past / (1 - P) * slow / (tau + slower), why, r"\alpha_{i+1}")
    d.equal(share * (1 - P), past - past * here, r"$P_{i-1}-P_i$", r"(1-P)\,\alpha_i")
    term = (1 - beta_of(cost_of(n))) * Past(n - 1)
    d.induct(1 - Pn, term, n, r"their sum is $1-P$, so the shares sum to 1")
    first = (1 - here) / (1 - P)
    why = "the first node's finish"
    left = sigma * (tau + slow) * first
    d.equal(left, sigma * tau / (1 - P), why, r"\hat E = \sigma(\tau+\chi_1)\alpha_1")


@statement("6.mono", {"decreasing": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    below = _proper(d)
    slope = sp.diff(sigma * tau / (1 - P), P).subs(P, Pn)
    form = sigma * tau / p**2
    d.positive(sign * slope, form, "in P", {p: below}, r"\partial\hat E/\partial P")
    why = r"in each $\beta_i$"
    left = sp.diff(beta_of(slow), slow)
    d.positive(left, tau / (tau + slow) ** 2, why, show=r"\partial\beta_i/\partial\chi_i")
    why = "commutes"
    d.equal(
        beta_of(slow) * beta_of(slower), beta_of(slower) * beta_of(slow), why, r"\beta_i\beta_{i+1}"
    )


def estimate_below(d: Derivation, sign: int = 1) -> Any:
    r"""Show that the estimate is at most paper M's E."""
    beta = beta_of(chi)
    below = _proper(d)
    d.positive(1 - beta, tau / (tau + chi), r"$\beta < 1$")
    why = r"$\beta^n < 1$"
    whole = d.grows(1 - beta**n, n, tau / (tau + chi), beta**n * tau / (tau + chi), why)

    def loss(k: Any) -> Any:
        ratio = tau * early(k) / (tau * (E + early(k)) + chi * E)
        return Past(k - 1) / beta ** (k - 1) * ratio

    why = r"by induction: $1-\beta_i/\beta \ge 0$, because $\chi_i \le \chi$"
    first, step = loss(sp.Integer(1)), loss(n + 1)
    ratio = d.grows(1 - Pn / beta**n, n, first, step, why, strict=False)
    gap = d.nonnegative(beta**n - Pn, beta**n * y, r"so $P \le \beta^n$", {y: ratio})
    difference = sigma * tau / (1 - beta**n) - sigma * tau / (1 - Pn)
    parts = {q: whole, p: below, y: gap}
    form = sigma * tau * y / (p * q)
    return d.nonnegative(sign * difference, form, r"$\hat E \le E$", parts, r"E-\hat E")


@statement("6.EhatE", {"reversed": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    estimate_below(d, sign)
    d.equal(modelled.subs(wait, 0), chi, r"equal releases: $p_i = 0$", r"\chi_i")


@statement("6.safe", {"chi_i twice": {"factor": 2}, "early node later": {"sign": -1}})
def _(d: Derivation, factor: int = 1, sign: int = 1) -> None:
    share = positive("alpha_i")
    before = sp.Symbol("A_{j-1}", nonnegative=True)
    upto = positive("A_i")
    late = sp.Symbol("r_n", real=True)
    lead = sp.Symbol("p_j", nonnegative=True)
    estimate = late + sigma * tau * upto + share * sigma * modelled
    real = (late - lead) + sigma * tau * (upto - before) + share * sigma * chi
    slack = d.equal(
        estimate - real,
        lead - factor * wait * share * sigma * modelled / E + sigma * tau * before,
        r"estimate minus real finish, since $\chi_i-\chi = -\chi_i p_i/E$",
        r"r_n+\hat E - \text{finish}_i",
    )
    part = sigma * tau * upto + share * sigma * modelled
    d.lemma("6.EhatE", r"$\hat E \le E$, $\hat E$ by equal finish", E - part, strict=False)
    why = r"its computing is part of that"
    d.nonnegative(E - share * sigma * modelled, y + sigma * tau * upto, why, {y: E - part})
    d.assume(lead - wait, r"$r_j \le r_i$, because $j \le i$", strict=False)
    form = y + wait * z / E + sigma * tau * before
    parts = {y: lead - wait, z: E - share * sigma * modelled}
    d.nonnegative(sign * slack, form, "part by part", parts, "slack")


@statement("6.nmin", {"sign": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    below = _proper(d)
    gamma = 1 - sign * sigma * tau / Delta
    why = r"both sides have one sign: $(1-P)/\Delta > 0$"
    left = (Delta - sigma * tau / (1 - Pn)) * (1 - Pn) / Delta
    d.equal(left, gamma - Pn, why, r"(\Delta-\hat E)(1-P)/\Delta")
    d.positive((1 - Pn) / Delta, p / Delta, "the factor", {p: below})


@statement("opt.blk", {"chi for tau": {"send": chi}, "m+1": {"power": m + 1}})
def _(d: Derivation, send: Any = tau, power: Any = m) -> None:
    beta = chi / (tau + chi)
    end, start, head = sp.symbols("e s_i r_h", real=True)
    chunk = (end - start) / (tau + chi)
    why = "the next node starts when its send can"
    d.equal(end - (start + chunk * send), beta * (end - start), why, "e-s_{i+1}")
    carried = (end - head) * (1 - b**i) / tau
    term = (end - head) * b ** (i - 1) * (1 - b) / tau
    why = r"data of the $i$-th node of the run: $(e-s_i)/(\tau+\chi)$, $1-\beta = \tau/(\tau+\chi)$"
    d.equal((end - head) * beta ** (i - 1) / (tau + chi), term.subs(b, beta), why)
    d.induct(carried, term, i, "data carried by the run")
    total, weights = sp.symbols("S_rw S_w", positive=True)
    solved = sp.solve((end * weights - total) / tau - sigma, end)[0]
    why = r"all runs together carry $\sigma$, $S_{rw} = \sum r_hw_h$, $S_w = \sum w_h$"
    whole = d.equal(solved, (sigma * send + total) / weights, why, "e")
    single = {total: head * (1 - b**power), weights: 1 - b**m}
    d.equal(whole.subs(single), head + sigma * tau / (1 - b**m), "one run: paper M from $r_h$", "e")
    apart = {total: R * (1 - beta), weights: n * (1 - beta)}
    d.equal(whole.subs(apart), (R + sigma * (tau + chi)) / n, "runs of one: paper I (3)", "e")
    load = positive("x")
    ended = head + load * tau / (1 - b**m)
    d.lemma("OPR", r"$m$ nodes free at $r_h$ need at least $x\tau/(1-\beta^m)$ for a load $x$")
    d.equal(
        (ended - head) * (1 - b**m) / tau,
        load,
        r"so for ANY cut into runs, added up: $\sigma \le \sum(e'-r_h)w_h/\tau$ and "
        r"$e' \ge (\sigma\tau+\sum r_hw_h)/\sum w_h$",
        r"(r_h+x\tau/(1-\beta^m)-r_h)(1-\beta^m)/\tau",
    )
    first, gap, wait1 = sp.symbols("r_a g h", nonnegative=True)
    served, then = first + gap + wait1, first + gap + wait1 + z
    why = r"a node free at $r_a+g$ was served before one free at $r_a$: the earlier one may take "
    d.nonnegative(served - first, gap + wait1, why + "its place", show="s_a - r_a")
    why = r"and it the later place: exchanging the two leaves every send where it was, so "
    d.nonnegative(
        then - (first + gap), wait1 + z, why + "release order is best", show="s_b-(r_a+g)"
    )


@statement("opt.att", {"falling load": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    room = positive("x_i")
    beta = chi / (tau + chi)
    why = r"$x_i = e-s_i$: where the link decides, room is left for the next node"
    d.positive(room - room / (tau + chi) * tau, beta * room, why, show="e-s_{i+1}")
    end, late = sp.symbols("e r_{i+1}", real=True)
    d.assume(end - late, r"and where the release decides, because $e > r_n$")
    head = sp.Symbol("r_h", real=True)
    powers_below_one(d)
    slope = sp.diff((end - head) * (1 - b**m) / tau, end)
    d.at(1 - b**n, {n: m})
    d.positive(sign * slope, p / tau, r"each run's load rises with $e$", {p: 1 - b**m})
    d.lemma("opt.blk", r"a schedule attains the bound of the cut that its own runs make")
    d.argue(
        "Start times are maxima of continuous functions of e, so the load carried is continuous "
        "and increasing, from its value at r_n to infinity, and takes the value sigma once. Gap: "
        "continuity across changes of the cut and the intermediate value theorem are used in words."
    )

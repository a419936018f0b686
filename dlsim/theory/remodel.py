r"""The remodel of paper I's reference [6], and the true single-round optimum.

In [6] a node that is free early is taken for a slower one that is free with the others:
:math:`\chi_i = \chi E/(E + r_n - r_i)`, with E the time of paper M's equal nodes.
"""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.words import (
    Delta,
    R,
    b,
    chi,
    i,
    m,
    n,
    p,
    positive,
    powers_below_one,
    q,
    sigma,
    tau,
    y,
    z,
)

E, P, slow, slower = positive(r"E P chi_i \chi_{i+1}")
wait = sp.Symbol("p_i", nonnegative=True)
GIVEN_6 = (
    r"$\sigma,\tau,\chi,E > 0$; $p_i = r_n-r_i \ge 0$; $\chi_i = \chi E/(E+p_i)$, "
    r"$\beta_i = \chi_i/(\tau+\chi_i)$, $P_i = \beta_1\cdots\beta_i$, $P = P_n$"
)
modelled = chi * E / (E + wait)


def beta_of(cost: Any) -> Any:
    """Return beta of a node of the remodel.

    Parameters
    ----------
    cost : sympy expression
        Its time to compute a unit.

    Returns
    -------
    sympy expression
        cost / (tau + cost).
    """
    return cost / (tau + cost)


def _proper(d: Derivation) -> None:
    r"""Show P < 1."""
    past = positive("P_i")
    rest = sp.Symbol("Q_i", nonnegative=True)
    d.positive(1 - beta_of(slow), tau / (tau + slow), r"$\beta_i < 1$", show=r"1-\beta_i")
    step = 1 - (1 - rest) * beta_of(slow)
    form = rest * beta_of(slow) + tau / (tau + slow)
    d.positive(step, form, r"so $1-P_{i+1} > 0$ from $Q_i = 1-P_i \ge 0$, $Q_0 = 0$")
    d.equal(past, past, r"and $P = P_n$", "P_n")
    d.assume(1 - P, r"so $P < 1$")


@statement(
    "6.rec",
    "I [6], the remodel",
    r"Equal finish of the remodelled nodes: $\alpha_{i+1} = \alpha_i\chi_i/(\tau+\chi_{i+1})$; "
    r"then $\hat E = \sigma\tau + \alpha_n\sigma\chi$",
    {"indices exchanged": {"swap": True}, "chi of the first": {"last": 1}},
    given=GIVEN_6,
)
def _(d: Derivation, swap: bool = False, last: int = 0) -> None:
    before, now, after = sp.symbols("A_i a_i a_{i+1}")
    line = sigma * tau * before + sigma * slow * now
    following = sigma * tau * (before + after) + sigma * slower * after
    ratio = slower / (tau + slow) if swap else slow / (tau + slower)
    d.equal(
        following - line,
        sigma * (tau + slower) * (after - now * ratio),
        "line $i+1$ minus line $i$",
    )
    d.equal(modelled.subs(wait, last), chi, r"the last node has $p_n = 0$", r"\chi_n")
    d.equal(
        (sigma * tau * before + sigma * slow * now).subs({before: 1, slow: chi}),
        sigma * tau + sigma * chi * now,
        "its line, with all data sent",
        r"\hat E",
    )


@statement(
    "6.closed",
    "I [6] (closed form, beyond the papers)",
    r"$\alpha_i = (1-\beta_i)P_{i-1}/(1-P)$ and $\hat E = \sigma\tau/(1-P)$",
    {"P_i for P_{i-1}": {"lag": 0}, "1+P": {"sign": -1}},
    given=GIVEN_6,
)
def _(d: Derivation, lag: int = 1, sign: int = 1) -> None:
    past = positive("P_{i-1}")
    here, there = beta_of(slow), beta_of(slower)
    prefix = past if lag else past * here
    share = (1 - here) * prefix / (1 - sign * P)
    following = (1 - there) * past * here / (1 - P)
    d.equal(
        following,
        (1 - here) * past / (1 - P) * slow / (tau + slower),
        "it satisfies the recurrence",
        r"\alpha_{i+1}",
    )
    d.equal(
        share * (1 - P),
        past - past * here,
        r"its sum telescopes: $\sum_{i \le n} (P_{i-1}-P_i) = 1-P$, so the shares sum to 1",
        r"(1-P)\,\alpha_i",
    )
    first = (1 - here) / (1 - P)
    d.equal(
        sigma * (tau + slow) * first,
        sigma * tau / (1 - P),
        "the first node's finish",
        r"\hat E = \sigma(\tau+\chi_1)\alpha_1",
    )


@statement(
    "6.mono",
    "I [6] (beyond the papers)",
    r"$\hat E$ depends on the nodes only through $P$: their order is irrelevant, and it "
    r"increases in every $\chi_i$",
    {"decreasing": {"sign": -1}},
    given=GIVEN_6,
)
def _(d: Derivation, sign: int = 1) -> None:
    _proper(d)
    estimate = sigma * tau / (1 - P)
    form = sigma * tau / p**2
    d.positive(sign * sp.diff(estimate, P), form, "in P", {p: 1 - P}, r"\partial\hat E/\partial P")
    d.positive(
        sp.diff(beta_of(slow), slow),
        tau / (tau + slow) ** 2,
        r"in each $\beta_i$",
        show=r"\partial\beta_i/\partial\chi_i",
    )
    d.equal(
        beta_of(slow) * beta_of(slower),
        beta_of(slower) * beta_of(slow),
        "commutes",
        r"\beta_i\beta_{i+1}",
    )


def estimate_below(d: Derivation, sign: int = 1) -> Any:
    r"""Show that the estimate is at most paper M's E.

    Parameters
    ----------
    d : Derivation
        Where the steps go.
    sign : int
        1, or -1 for the reversed claim.

    Returns
    -------
    sympy expression
        E - Ehat, in terms of P and beta^n; now a fact.
    """
    powers_below_one(d)
    _proper(d)
    d.nonnegative(chi - modelled, chi * wait / (E + wait), r"$\chi_i \le \chi$")
    plain = tau * wait * chi / ((tau + chi) * (tau * (E + wait) + chi * E))
    gap = beta_of(chi) - beta_of(modelled)
    d.nonnegative(gap, plain, r"so $\beta_i \le \beta$", show=r"\beta-\beta_i")
    past, excess = positive("P_i"), sp.Symbol("D_i", nonnegative=True)
    step = beta_of(chi) * (past + excess) - past * beta_of(modelled)
    form, why = beta_of(chi) * excess + past * y, r"$\beta^{i+1}-P_{i+1}$ from $D_i = \beta^i-P_i$"
    d.inherits(b**n - P, 0, step, form, why, {y: gap})
    difference = sigma * tau / (1 - b**n) - sigma * tau / (1 - P)
    parts = {q: 1 - b**n, p: 1 - P, y: b**n - P}
    form = sigma * tau * y / (p * q)
    return d.nonnegative(sign * difference, form, r"$\hat E \le E$", parts, r"E-\hat E")


@statement(
    "6.EhatE",
    "I [6]",
    r"$\hat E \le E$, with equality iff all $r_i$ are equal (then it is paper M)",
    {"reversed": {"sign": -1}},
    given=GIVEN_6 + r"; $E = \sigma\tau/(1-\beta^n)$",
)
def _(d: Derivation, sign: int = 1) -> None:
    estimate_below(d, sign)
    d.equal(modelled.subs(wait, 0), chi, r"equal releases: $p_i = 0$", r"\chi_i")
    d.equal(
        sp.diff(modelled, wait),
        -chi * E / (E + wait) ** 2,
        r"and $\chi_i < \chi$ strictly once $p_i > 0$, as this slope is negative",
        r"\partial\chi_i/\partial p_i",
    )


@statement(
    "6.safe",
    "I [6], real finish against the estimate",
    r"Node $i$ really ends by $r_n+\hat E$: along any prefix $j \le i$ the slack is "
    r"$(r_n-r_j)-(r_n-r_i)\frac{\alpha_i\sigma\chi_i}{E}+\sigma\tau\sum_{k<j}\alpha_k \ge 0$",
    {"chi_i twice": {"factor": 2}, "early node later": {"sign": -1}},
    given=GIVEN_6 + r"; $s_i = \max_j (r_j + \sigma\tau\sum_{j\le k<i}\alpha_k)$",
)
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
    d.lemma("6.EhatE", r"$\hat E \le E$, and node $i$ ends at $\hat E$", E - part, strict=False)
    d.nonnegative(
        E - share * sigma * modelled,
        y + sigma * tau * upto,
        r"its computing is part of that",
        {y: E - part},
    )
    d.assume(lead - wait, r"$r_j \le r_i$, because $j \le i$", strict=False)
    form = y + wait * z / E + sigma * tau * before
    parts = {y: lead - wait, z: E - share * sigma * modelled}
    d.nonnegative(sign * slack, form, "part by part", parts, "slack")


@statement(
    "6.nmin",
    "I [6], admission",
    r"$r_n+\hat E \le A+D$ iff $\prod_{i\le n}\beta_i \le 1-\sigma\tau/(A+D-r_n)$",
    {"sign": {"sign": -1}},
    given=GIVEN_6 + r"; $\Delta = A+D-r_n > 0$",
)
def _(d: Derivation, sign: int = 1) -> None:
    _proper(d)
    gamma = 1 - sign * sigma * tau / Delta
    d.equal(
        (Delta - sigma * tau / (1 - P)) * (1 - P) / Delta,
        gamma - P,
        r"both sides have one sign: $(1-P)/\Delta > 0$",
        r"(\Delta-\hat E)(1-P)/\Delta",
    )
    d.positive((1 - P) / Delta, p / Delta, "the factor", {p: 1 - P})


@statement(
    "opt.blk",
    "beyond the papers: the true single-round optimum",
    r"In release order, a run of $m$ nodes bound to the link after a head free at $r_h$ "
    r"carries $(e-r_h)(1-\beta^m)/\tau$; $e = (\sigma\tau+\sum r_h w_h)/\sum w_h$, "
    r"$w_h = 1-\beta^{m_h}$. Every cut into runs bounds $e$ from below: the best cut is optimal",
    {"chi for tau": {"send": chi}, "m+1": {"power": m + 1}},
    given=r"$\sigma,\tau,\chi > 0$, $\beta=\chi/(\tau+\chi)$; every node takes part",
)
def _(d: Derivation, send: Any = tau, power: Any = m) -> None:
    beta = chi / (tau + chi)
    end, start, head = sp.symbols("e s_i r_h", real=True)
    chunk = (end - start) / (tau + chi)
    d.equal(
        end - (start + chunk * send),
        beta * (end - start),
        "the next node starts when its send can",
        "e-s_{i+1}",
    )
    carried = (end - head) * (1 - b**i) / tau
    term = (end - head) * b ** (i - 1) * (1 - b) / tau
    d.equal(
        (end - head) * beta ** (i - 1) / (tau + chi),
        term.subs(b, beta),
        r"data of the $i$-th node of the run: $(e-s_i)/(\tau+\chi)$, $1-\beta = \tau/(\tau+\chi)$",
    )
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


@statement(
    "opt.att",
    "beyond the papers: the optimum is attained",
    r"Filling every node up to one instant $e > r_n$, in release order, carries a load that "
    r"rises continuously with $e$: for the right $e$ it is $\sigma$, and its own cut into runs "
    r"attains the bound of opt.blk",
    {"falling load": {"sign": -1}},
    status="argued",
    gap="continuity and the intermediate value theorem are used in words",
    given=r"$\sigma,\tau,\chi > 0$, $\beta=\chi/(\tau+\chi)$; $\sigma$ so large that $e > r_n$",
)
def _(d: Derivation, sign: int = 1) -> None:
    room = positive("x_i")
    beta = chi / (tau + chi)
    d.positive(
        room - room / (tau + chi) * tau,
        beta * room,
        r"$x_i = e-s_i$: where the link decides, room is left for the next node",
        show="e-s_{i+1}",
    )
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

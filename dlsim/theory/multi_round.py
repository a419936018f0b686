"""Several rounds on equal nodes that never wait (UMR style): chunks and makespan.

Every node gets one chunk of size c_j in round j = 0..M-1; a round is sent while the one
before is computed. Derived here; the papers only announce it as future work.
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, Relation, computed, eq, ge, gt, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import bernoulli, powers_below_one
from dlsim.theory.letters import SC, ST, b, chi, counts, n, p, positive, q, sigma, tau, w, x, y
from dlsim.theory.words import Cms, Cps, below_one

N, M = counts("N M")
rnd = sp.Symbol("j", integer=True, nonnegative=True)
eta, kappa, theta_, c0 = sp.symbols("eta kappa theta c_0", real=True)
theta = positive("theta")
eps = positive("epsilon")
c, end, ready = sequence("c", nonnegative=True), sequence("D"), sequence("S")
_balance = eq(N * (ST + tau * c(rnd + 1)), SC + chi * c(rnd), over=rnd)


@statement(
    "U.rec",
    {"theta upside down": {theta_: N * tau / chi}, "ST for -ST": {kappa: (SC / N + ST) / tau}},
    [Iff(_balance._replace(over=None), eq(c(rnd + 1), theta_ * c(rnd) + kappa))],
    where={theta_: chi / (N * tau), kappa: (SC / N - ST) / tau},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "solved for the next chunk", N * tau)


_grows = eq(c(rnd + 1), theta * c(rnd) + kappa, over=rnd)
_fixed = eq((1 - theta) * eta, kappa)


@statement(
    "U.cj",
    {"j+1 for j": {0: eq(c(rnd), theta ** (rnd + 1) * (c(0) - eta) + eta)},
     "sign of eta": {0: eq(c(rnd), theta**rnd * (c(0) + eta) - eta)}},
    [under(eq(c(rnd), theta**rnd * (c(0) - eta) + eta), _grows, _fixed),
     under(eq(c(rnd), c(0) + rnd * kappa), eq(c(rnd + 1), c(rnd) + kappa, over=rnd))],
    witness={kappa: 0, eta: 0, theta: 1, c: lambda k: sp.S.One},
)  # fmt: skip
def _(d: Derivation) -> None:
    whys = {0: "the recurrence", 1: r"$\eta = \kappa/(1-\theta)$, $\theta \ne 1$"}
    step, fixed = d.hypotheses(whys)
    d.recur(0, rnd, "solved, from its first value", by={step: 1, fixed: -1}, factor=theta)
    even = d.given(0, r"$\theta = 1$ has its own branch", goal=1)
    d.recur(1, rnd, "solved", by={even: 1})


_first = eta + (sigma / N - M * eta) * (1 - theta) / (1 - theta**M)
_chunk = theta ** (n - 1) * (c0 - eta) + eta
_even = c0 + (n - 1) * kappa


def _carried(chunk: Any) -> Any:
    return eq(N * total(lambda i: chunk.subs(n, i), M), sigma)


@statement(
    "U.sum",
    {"M+1 rounds": {0: eq(c0, _first + eta)},
     "eta once": {2: eq(c0, sigma / (N * M) - kappa * M / 2)}},
    [under(eq(c0, _first), _carried(_chunk), lt(theta, 1)),
     under(eq(c0, _first), _carried(_chunk), gt(theta, 1)),
     under(eq(c0, sigma / (N * M) - kappa * (M - 1) / 2), _carried(_even))],
    witness=tuple(
        {M: 1, N: 1, c0: sigma, eta: 0, kappa: 0, theta: v} for v in (sp.Rational(1, 2), 2)),
)  # fmt: skip
def _(d: Derivation) -> None:
    closed = (c0 - eta) * (1 - theta**M) + (1 - theta) * M * eta
    sums = eq((1 - theta) * total(lambda i: _chunk.subs(n, i), M), closed)
    d.recur(sums, M, r"sum of the chunks, times $1-\theta$")
    carried = d.given(0, r"$M$ rounds carry $\sigma$")
    for goal, sign in ((0, 1), (1, -1)):
        side = d.given(1, "on one side of 1", goal=goal)
        d.grows(sign * (1 - theta**M), M, p, theta**M * p, "and so its powers", {p: side})
        scale = 1 / (1 - theta**M)
        d.show(goal, "solved for the first", by={sums: -scale, carried: (1 - theta) * scale / N})
        d.leave(side)
    flat = eq(total(lambda i: _even.subs(n, i), M), M * c0 + kappa * M * (M - 1) / 2)
    d.recur(flat, M, r"the same for $\theta = 1$")
    carried = d.given(0, r"which carry $\sigma$", goal=2)
    d.show(2, "solved", by={flat: -1 / M, carried: 1 / (N * M)})


def chunks_of(nodes: int, rounds: int, *costs: int) -> list[Fraction]:
    """Return the chunks of 60 units by the closed form, exactly; costs are ST, SC, tau, chi."""
    st, sc, send, compute = map(Fraction, costs)
    ratio, step = compute / (nodes * send), (sc / nodes - st) / send
    if ratio == 1:
        first = Fraction(60, nodes * rounds) - step * (rounds - 1) / 2
    else:
        fixed = step / (1 - ratio)
        first = fixed + (Fraction(60, nodes) - rounds * fixed) * (1 - ratio) / (1 - ratio**rounds)
    chunks = [first]
    while len(chunks) < rounds:
        chunks.append(ratio * chunks[-1] + step)
    return chunks


def _simulated(nodes: int, rounds: int, *costs: int) -> Fraction:
    """Return when all is computed, event by event: one link, rounds in order; -1 if impossible."""
    chunks, (st, sc, send, compute) = chunks_of(nodes, rounds, *costs), map(Fraction, costs)
    link, done = Fraction(0), [Fraction(0)] * nodes
    for chunk in chunks:
        for node in range(nodes):
            link += st + send * chunk
            done[node] = max(done[node], link) + sc + compute * chunk
    return max(done) if min(chunks) > 0 else Fraction(-1)


def _formula(nodes: int, rounds: int, *costs: int) -> Fraction:
    """Return the makespan that U.mk states."""
    first, (st, sc, send, compute) = chunks_of(nodes, rounds, *costs)[0], costs
    return nodes * (st + send * first) + rounds * sc + compute * Fraction(60, nodes)


makespan, formula = computed("makespan", _simulated), computed("formula", _formula)
_cases = [(3, 4, 1, 2, 1, 9), (4, 3, 0, 0, 2, 4), (2, 5, 1, 3, 1, 2), (2, 3, 1, 1, 2, 1)]
done, i = sequence("d", real=True), counts("i")


def _sent(upto: Any) -> Any:
    """Return when the round after the first `upto` is sent."""
    return N * ((upto + 1) * ST + tau * total(lambda i: c(i - 1), upto + 1))


_computed = N * (ST + tau * c(0)) + rnd * SC + chi * total(lambda i: c(i - 1), rnd)


@statement(
    "U.mk",
    {"SC once": {end(rnd): _computed - rnd * SC + SC},
     "another case": {4: eq(makespan(*_cases[0]), 0)}},
    [under(eq(end(rnd), ready(rnd)), _balance),
     under(eq(end(M), N * (ST + tau * c(0)) + M * SC + chi * sigma / N),
         eq(N * total(lambda i: c(i - 1), M), sigma)),
     under(ge(end(rnd), done(rnd)), _balance, ge(N, i), ge(N * (ST + tau * c(0)), done(0)),
         eq(done(rnd + 1),
             sp.Max(done(rnd), ready(rnd) - (N - i) * (ST + tau * c(rnd))) + SC + chi * c(rnd),
             over=rnd)), *(eq(makespan(*case), formula(*case)) for case in _cases)],
    where={end(rnd): _computed, ready(rnd): _sent(rnd)},
    witness={N: 1, i: 1, M: 1, ST: 0, SC: 0, tau: 1, chi: 1, sigma: 1, c: lambda k: sp.S.One,
     done: lambda k: k + 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    balance = d.given(0, "computing a chunk takes as long as sending the next round")
    why = "node $N$ ends its $j$ chunks when the next arrives: it never waits"
    d.recur(0, rnd, why, by={balance: -1})
    carried = d.given(0, r"all rounds carry $\sigma$", goal=1)
    d.show(1, "node $N$ starts after $N$ sends and computes without a pause", by={carried: chi / N})
    early, begun, step = d.hypotheses({
        1: "node $i$ of $N$", 2: "its first chunk comes no later than node $N$'s",
        3: "it computes when it can",
    }, goal=2)  # fmt: skip
    goal = d[2]
    d.nonnegative(goal.gap.subs(rnd, 0), y, "at first", {y: begun})
    before = d.assume(goal, "assume it ends its chunks no later than node $N$")
    start = next(iter(d.goals[2].given[3].right.atoms(sp.Max)))
    bound = d[0].right
    waiting = next(a for a in start.args if a != done(rnd))
    d.show(ge(bound, done(rnd)), "then it is ready when node $N$ is", y, {y: before}, {d[0]: -1})
    d.show(ge(bound, waiting), "and has its chunk no later", y * (ST + tau * c(rnd)), {y: early})
    no_later = Relation(start, "<=", bound)
    d.extreme(no_later, "so it starts no later")
    after = goal.map(lambda side: side.subs(rnd, rnd + 1))
    d.show(after, "and ends no later", y, {y: no_later}, {step: -1, d[0]: 1})
    d.inductive(2, rnd, "for every round")
    for case in range(3, 7):
        d.compute(case, "event by event: N, M, ST, SC, tau, chi")


@statement(
    "U.M1",
    {"chunks of sigma": {
         0: eq(N * (ST + tau * sigma) + SC + chi * sigma,
             N * ST + tau * sigma + SC + chi * sigma / N)},
     "better than OPR": {1: gt(sigma * Cms / (1 - b**n), sigma * Cms + sigma * Cps / n)}},
    [eq(N * (ST + tau * sigma / N) + SC + chi * sigma / N,
         N * ST + tau * sigma + SC + chi * sigma / N),
     under(ge(sigma * Cms + sigma * Cps / n, sigma * Cms / (1 - b**n)), below_one)],
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, r"U.mk with $M = 1$, $c_0 = \sigma/N$")
    powers_below_one(d)
    slow = bernoulli(d)
    why = r"one round against paper M's $\mathcal{E}$, $\tau = C_{ms}$, $\chi = C_{ps}$, no set-up"
    d.show(1, why, sigma * w * b * y / (n * q), {q: 1 - b**n, y: slow})


@statement(
    "U.inf", {"limits exchanged": {end(n): chi * sigma / N}},
    [under(gt(end(n), chi * sigma / N), gt(theta, 1)),
     under(ge(chi * sigma / N + tau * sigma / n, end(n)), gt(theta, 1)),
     under(gt(end(n), tau * sigma), lt(theta, 1)),
     under(ge(tau * sigma + tau * sigma * theta / n, end(n)), lt(theta, 1)),
     under(lt(end(n), chi * sigma / N + eps), gt(theta, 1), gt(n * eps, tau * sigma)),
     under(lt(end(n), tau * sigma + eps), lt(theta, 1), gt(n * eps, tau * sigma))],
    where={end(n): N * tau * c0 + chi * sigma / N, c0: sigma / N * (1 - theta) / (1 - theta**n),
     chi: theta * N * tau}, witness=({theta: 2, eps: 1}, {theta: sp.Rational(1, 2), eps: 1}),
)  # fmt: skip
def _(d: Derivation) -> None:
    side = d.given(0, r"$\theta > 1$: chunks grow")
    over = d.grows(theta**n - 1, n, p, theta**n * p, "and so its powers", {p: side})
    d.show(0, r"above the computing alone", tau * sigma * p / q, {p: side, q: over})
    fast, why = theta**n - 1 - n * (theta - 1), "Bernoulli's inequality, by induction"
    d.grows(fast, n, 0, p * q, why, {p: side, q: over}, strict=False)
    why = r"and tends to it like $1/M$, $M = n$ rounds"
    d.show(1, why, tau * sigma * y / (n * q), {q: over, y: fast})
    many = d.given(1, r"by less than any $\epsilon$, with enough rounds", goal=4)
    d.show(4, "so this is the limit", y + p / n, {y: d[1], p: many})
    d.leave(side)
    side = d.given(0, r"$\theta < 1$: chunks shrink", goal=2)
    less = d.grows(1 - theta**n, n, p, theta**n * p, "and so do its powers", {p: side})
    why = r"above the sending alone"
    d.show(2, why, tau * sigma * p * theta**n / q, {p: side, q: less})
    slow = bernoulli(d, ratio=theta)
    d.show(3, "and tends to it", tau * sigma * theta * y / (n * q), {q: less, y: slow})
    form = y + p / n + tau * sigma * x / n
    d.show(5, r"with enough rounds by less than any $\epsilon$", form, {y: d[3], p: many, x: side})

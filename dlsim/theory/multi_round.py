"""Several rounds on equal nodes that never wait (UMR): chunks and makespan.

Each node gets one chunk of size c_j in round j = 0..M-1; a round is sent while the one before is
computed. Papers M and I announce it as future work; the engine runs it. tau, chi are the costs of
sending and computing a unit, w = tau + chi.
"""

from typing import Any

import sympy as sp

from dlsim.theory.relations import Every, Iff, eq, ge, le
from dlsim.theory.statements import statement
from dlsim.theory.steps import (
    Line,
    assume,
    extreme,
    generalise,
    identity,
    iff,
    induction,
    positive,
    sums,
    take,
)
from dlsim.theory.symbols import SC, chi, sigma, tau, total, w

N, M = sp.symbols("N M", integer=True, positive=True)
#: The number of a round.
h = sp.Symbol("j", integer=True, nonnegative=True)
ST = sp.Symbol("ST", nonnegative=True)
theta = sp.Symbol("theta", positive=True)
eta, kappa = sp.symbols("eta kappa", real=True)
c = sp.Function("c", real=True)
_balance = eq(N * (ST + tau * c(h + 1)), SC + chi * c(h))
_three = {M: 3, N: 2, ST: sp.Rational(1, 2), SC: 1}


@statement(
    "U.rec",
    "several rounds (announced in M 5, I 6): the recurrence",
    goals=[Iff(_balance, eq(c(h + 1), chi / (N * tau) * c(h) + (SC / N - ST) / tau))],
    status="ours",
)
def recurrence(both: Any) -> list[Line]:
    """No node waits iff c_(j+1) = chi/(N tau) c_j + (SC/N - ST)/tau."""
    return [iff(both.first, both.second, "solved for the next chunk", 1 / (N * tau))]


_GROWS = Every(eq(c(h + 1), theta * c(h) + kappa), h, 0, M - 2)
_FIXED = eq((1 - theta) * eta, kappa)
_SOLVED = Every(eq(c(h), theta**h * (c(0) - eta) + eta), h, 0, M - 1)
_EVEN = Every(eq(c(h), c(0) + h * kappa), h, 0, M - 1)


def _rounds_by_recurrence(claim: Every, rule: Any, factor: Any, extra: Any) -> Line:
    """Solve the recurrence of the chunks for j = 0..M-1."""
    room = assume(ge(M - 1, h + 1), "a round follows")
    step = take(assume(rule, "the recurrence"), h, "for the next round", [room])
    before = assume(claim.relation, "assume it")
    by = {step: 1, before: factor, **extra}
    after = identity(claim.relation.subs({h: h + 1}), "the next chunk", by)
    base = identity(claim.relation.subs({h: sp.S.Zero}), "the first chunk")
    return generalise(
        induction(claim.relation, h, base, after, "by induction"), h, 0, M - 1, "for all rounds"
    )


@statement(
    "U.cj",
    "several rounds: the chunks",
    goals=[_SOLVED],
    hypotheses=[_GROWS, _FIXED],
    witness={
        **_three,
        theta: 2,
        eta: -1,
        kappa: 1,
        c: lambda index: 2 ** sp.Integer(index + 1) - 1,
    },
    status="ours",
)
def chunks(claim: Any, rule: Any, fixed: Any) -> list[Line]:
    """c_j = theta^j (c_0 - eta) + eta with eta = kappa/(1 - theta), if theta is not 1."""
    return [_rounds_by_recurrence(claim, rule, theta, {assume(fixed, "the fixed point"): -1})]


@statement(
    "U.cj1",
    "several rounds: the chunks where theta = 1",
    goals=[_EVEN],
    hypotheses=[Every(eq(c(h + 1), c(h) + kappa), h, 0, M - 2)],
    witness={**_three, kappa: 1, c: lambda index: sp.Integer(index + 1)},
    status="ours",
)
def chunks_by_steps(claim: Any, rule: Any) -> list[Line]:
    """c_j = c_0 + j kappa, if theta = 1."""
    return [_rounds_by_recurrence(claim, rule, 1, {})]


_c0 = sp.Symbol("c_0", real=True)
_load = eq(N * total(lambda index: theta**index * (_c0 - eta) + eta, M - 1, 0), sigma)
_even_load = eq(N * total(lambda index: _c0 + index * kappa, M - 1, 0), sigma)


@statement(
    "U.sum",
    "several rounds: the first chunk",
    goals=[eq((1 - theta**M) * (_c0 - eta), (1 - theta) * (sigma / N - M * eta))],
    hypotheses=[_load],
    witness={**_three, theta: 2, eta: 0, _c0: 1, sigma: 14},
    status="ours",
)
def first_chunk(claim: Any, load: Any) -> list[Line]:
    """c_0 = eta + (sigma/N - M eta)(1 - theta)/(1 - theta^M)."""
    terms = (1 - theta) * total(lambda index: theta**index * (_c0 - eta) + eta, M - 1, 0)
    closed = (1 - theta**M) * (_c0 - eta) + (1 - theta) * M * eta
    added = sums(eq(terms, closed), M, "the sum of the chunks, times 1 - theta")
    carried = assume(load, "the rounds carry the load")
    return [identity(claim, "solved for the first", {added: -1, carried: (1 - theta) / N})]


@statement(
    "U.sum1",
    "several rounds: the first chunk where theta = 1",
    goals=[eq(_c0, sigma / (N * M) - kappa * (M - 1) / 2)],
    hypotheses=[_even_load],
    witness={**_three, kappa: 1, _c0: 1, sigma: 12},
    status="ours",
)
def first_chunk_by_steps(claim: Any, load: Any) -> list[Line]:
    """c_0 = sigma/(N M) - kappa (M - 1)/2, if theta = 1."""
    terms = total(lambda index: _c0 + index * kappa, M - 1, 0)
    added = sums(eq(terms, M * _c0 + kappa * M * (M - 1) / 2), M, "the sum of the chunks")
    carried = assume(load, "the rounds carry the load")
    return [identity(claim, "solved", {added: -1 / M, carried: 1 / (N * M)})]


D, d = sp.Function("D", real=True), sp.Function("d", real=True)
_i = sp.Symbol("i", integer=True, positive=True)
#: When round j is sent.
_sent = N * ((h + 1) * ST + tau * total(c, h, 0))
_BALANCE = Every(_balance, h, 0, M - 2)
_SOME = Every(ge(c(h), 0), h, 0, M - 1)
_FIRST = eq(D(0), N * (ST + tau * c(0)))
_LAST_NODE = Every(eq(D(h + 1), sp.Max(D(h), _sent) + SC + chi * c(h)), h, 0, M - 1)
_OTHER_FIRST = le(d(0), D(0))
_received = _sent - (N - _i) * (ST + tau * c(h))
_OTHER = Every(eq(d(h + 1), sp.Max(d(h), _received) + SC + chi * c(h)), h, 0, M - 1)
_LOAD = eq(N * total(c, M - 1, 0), sigma)
# N = 2, M = 3, ST = SC = 0, tau = 2, chi = 2: theta = 1/2, chunks 4, 2, 1 shrink
_shrinking = {
    M: 3,
    N: 2,
    _i: 1,
    ST: 0,
    SC: 0,
    sigma: 14,
    w: 4,
    c: lambda index: sp.Rational(4, 2 ** int(index)),
    D: lambda index: sp.Integer((16, 24, 28, 30)[int(index)]),
    d: lambda index: sp.Integer((8, 16, 24, 28)[int(index)]),
}


@statement(
    "U.mk",
    "several rounds: the makespan",
    goals=[eq(D(M), N * (ST + tau * c(0)) + M * SC + chi * sigma / N), le(d(M), D(M))],
    hypotheses=[_BALANCE, _SOME, _FIRST, _LAST_NODE, _OTHER_FIRST, _OTHER, _LOAD, ge(N, _i)],
    witness=_shrinking,
    status="ours",
)
def makespan(time: Any, others: Any, *hypotheses: Any) -> list[Line]:
    """All nodes end by N (ST + tau c_0) + M SC + chi sigma/N; chunks may shrink."""
    balance, some, first, last_node, other_first, other, load, inside = hypotheses
    never_waits, ends = _last_node(balance, first, last_node)
    carried = assume(load, "all rounds carry the load")
    end = take(ends, M, "after all rounds")
    makespan_ = identity(time, "the makespan", {end: 1, carried: chi / N})
    in_round = assume(ge(M, h + 1), "the round is one of them")
    own = take(assume(last_node, "node N computes when it can"), h, "in this round", [in_round])
    rule = take(assume(other, "node i computes when it can"), h, "in this round", [in_round])
    here = le(d(h), D(h))
    busy = take(never_waits, h, "node N does not wait", [in_round])
    before = assume(here, "assume that node i is not behind node N")
    one_of = assume(inside, "i is at most N")
    chunk = take(assume(some, "no chunk is negative"), h, "in this round", [in_round])
    sent = positive(
        ge(D(h), _received),
        "its chunk is there no later than node N's",
        {busy: 1, one_of: ST, chunk: (N - _i) * tau},
        [one_of],
    )
    latest = extreme(le(sp.Max(d(h), _received), D(h)), "so it starts no later", [before, sent])
    wait = extreme(
        eq(sp.Max(D(h), _sent), _sent),
        "node N starts when its chunk is there",
        [positive(ge(_sent, D(h)), "as it never waits", {busy: -1})],
    )
    step = positive(
        here.subs({h: h + 1}), "and ends no later", {latest: 1, rule: -1, own: 1, wait: 1, busy: -1}
    )
    base = assume(other_first, "node i has its first chunk no later")
    all_ = induction(here, h, base, step, "in every round")
    return [makespan_, take(generalise(all_, h, 0, M, "for all rounds"), M, "after all of them")]


def _last_node(balance: Any, first: Any, last_node: Any) -> tuple[Line, Line]:
    """Show that node N never waits, and when it ends its first j chunks."""
    rule, begin = (
        assume(balance, "computing a chunk takes as long as sending a round"),
        assume(first, "its first chunk"),
    )
    follows = assume(ge(M - 1, h + 1), "a round follows")
    step = take(assume(last_node, "node N computes when it can"), h, "in this round", [follows])
    even = take(rule, h, "in this round", [follows])
    here = eq(D(h), _sent)
    before = assume(here, "assume that a chunk comes when node N ends the one before")
    ready = positive(ge(_sent, D(h)), "then both are ready", {before: -1})
    link = extreme(eq(sp.Max(D(h), _sent), _sent), "at once", [ready])
    after = identity(
        here.subs({h: h + 1}), "and so is the next chunk", {step: 1, link: 1, even: -1}
    )
    base = identity(here.subs({h: sp.S.Zero}), "the first chunk", {begin: 1})
    never = generalise(
        induction(here, h, base, after, "by induction"), h, 0, M - 1, "node N never waits"
    )
    in_round = assume(ge(M, h + 1), "the round is one of them")
    step = take(assume(last_node, "node N computes when it can"), h, "in this round", [in_round])
    busy = take(never, h, "it does not wait", [in_round])
    ready = positive(ge(D(h), _sent), "so its chunk is there", {busy: 1})
    link = extreme(eq(sp.Max(D(h), _sent), D(h)), "and it goes on", [ready])
    claim = eq(D(h), N * (ST + tau * c(0)) + h * SC + chi * total(c, h - 1, 0))
    by = {step: 1, link: 1, assume(claim, "assume it"): 1}
    after = identity(claim.subs({h: h + 1}), "one chunk more", by)
    base = identity(claim.subs({h: sp.S.Zero}), "no chunk", {begin: 1})
    ends = generalise(induction(claim, h, base, after, "by induction"), h, 0, M, "for all rounds")
    return never, ends

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
    identity,
    iff,
    induction_in_range,
    positive,
    sums,
    take,
    take_in_range,
)
from dlsim.theory.symbols import SC, chi, sigma, tau, total, w

N, M = sp.symbols("N M", integer=True, positive=True)
#: The number of a round.
h = sp.Symbol("j", integer=True, nonnegative=True)
send_setup = sp.Symbol("ST", nonnegative=True)
theta = sp.Symbol("theta", positive=True)
eta, kappa, _c0 = sp.symbols("eta kappa c_0", real=True)
c = sp.Function("c", real=True)
_balance = eq(N * (send_setup + tau * c(h + 1)), SC + chi * c(h))
_three = {M: 3, N: 2, send_setup: sp.Rational(1, 2), SC: 1}


@statement(
    "U.rec",
    goals=[Iff(_balance, eq(c(h + 1), chi / (N * tau) * c(h) + (SC / N - send_setup) / tau))],
)
def show_recurrence(both: Any) -> list[Line]:
    """No node waits iff c_(j+1) = chi/(N tau) c_j + (SC/N - ST)/tau."""
    return [iff(both.first, both.second, "solved for the next chunk", 1 / (N * tau))]


_RECURRENCE, _EVEN_RECURRENCE = (
    assume(Every(eq(c(h + 1), factor * c(h) + kappa), h, 0, M - 2), "the recurrence")
    for factor in (theta, 1)
)
_FIXED = assume(eq((1 - theta) * eta, kappa), "eta is the fixed point")


def solve_recurrence(claim: Every, rule: Line, factor: Any, extra: Any) -> Line:
    """Solve the recurrence of the chunks for j = 0..M-1."""
    here = claim.relation
    by = {take_in_range(rule, h, "for the next round"): 1, assume(here, "assume it"): factor}
    after = identity(here.subs({h: h + 1}), "the next chunk", {**by, **extra})
    base = identity(here.subs({h: sp.S.Zero}), "the first chunk")
    return induction_in_range(claim, base, after, "by induction")


@statement(
    "U.cj",
    goals=[Every(eq(c(h), theta**h * (c(0) - eta) + eta), h, 0, M - 1)],
    hypotheses=[_RECURRENCE, _FIXED],
    witness={
        **_three,
        theta: 2,
        eta: -1,
        kappa: 1,
        c: lambda index: 2 ** sp.Integer(index + 1) - 1,
    },
)
def show_chunks(claim: Any) -> list[Line]:
    """c_j = theta^j (c_0 - eta) + eta with eta = kappa/(1 - theta), if theta is not 1."""
    return [solve_recurrence(claim, _RECURRENCE, theta, {_FIXED: -1})]


@statement(
    "U.cj1",
    goals=[Every(eq(c(h), c(0) + h * kappa), h, 0, M - 1)],
    hypotheses=[_EVEN_RECURRENCE],
    witness={**_three, kappa: 1, c: lambda index: sp.Integer(index + 1)},
)
def show_chunks_by_steps(claim: Any) -> list[Line]:
    """c_j = c_0 + j kappa, if theta = 1."""
    return [solve_recurrence(claim, _EVEN_RECURRENCE, 1, {})]


def _load_of(chunk: Any) -> tuple[sp.Expr, Line]:
    """Return the sum of the chunks, and that N times the sum is the load."""
    terms = total(chunk, M - 1, 0)
    return terms, assume(eq(N * terms, sigma), "the rounds carry the load")


_TERMS, _CARRIED = _load_of(lambda index: theta**index * (_c0 - eta) + eta)
_EVEN_TERMS, _EVEN_CARRIED = _load_of(lambda index: _c0 + index * kappa)


@statement(
    "U.sum",
    goals=[eq((1 - theta**M) * (_c0 - eta), (1 - theta) * (sigma / N - M * eta))],
    hypotheses=[_CARRIED],
    witness={**_three, theta: 2, eta: 0, _c0: 1, sigma: 14},
)
def show_first_chunk(claim: Any) -> list[Line]:
    """c_0 = eta + (sigma/N - M eta)(1 - theta)/(1 - theta^M)."""
    closed = (1 - theta**M) * (_c0 - eta) + (1 - theta) * M * eta
    added = sums(eq((1 - theta) * _TERMS, closed), M, "the sum of the chunks, times 1 - theta")
    by = {added: -1, _CARRIED: (1 - theta) / N}
    return [identity(claim, "solved for the first chunk", by)]


@statement(
    "U.sum1",
    goals=[eq(_c0, sigma / (N * M) - kappa * (M - 1) / 2)],
    hypotheses=[_EVEN_CARRIED],
    witness={**_three, kappa: 1, _c0: 1, sigma: 12},
)
def show_first_chunk_by_steps(claim: Any) -> list[Line]:
    """c_0 = sigma/(N M) - kappa (M - 1)/2, if theta = 1."""
    closed = M * _c0 + kappa * M * (M - 1) / 2
    added = sums(eq(_EVEN_TERMS, closed), M, "the sum of the chunks")
    by = {added: -1 / M, _EVEN_CARRIED: 1 / (N * M)}
    return [identity(claim, "solved for the first chunk", by)]


D, d = sp.Function("D", real=True), sp.Function("d", real=True)
_i = sp.Symbol("i", integer=True, positive=True)
#: When round j is sent, and when node i has its chunk of it.
_sent = N * ((h + 1) * send_setup + tau * total(c, h, 0))
_received = _sent - (N - _i) * (send_setup + tau * c(h))


def _ends(end: Any, ready: Any, why: str) -> Line:
    """Assume that a node computes a chunk when the chunk is there and the one before is done."""
    after = sp.Max(end(h), ready) + SC + chi * c(h)
    return assume(Every(eq(end(h + 1), after), h, 0, M - 1), why)


_BALANCE = assume(
    Every(_balance, h, 0, M - 2), "computing a chunk takes as long as sending a round"
)
_NOT_NEGATIVE = assume(Every(ge(c(h), 0), h, 0, M - 1), "no chunk is negative")
_FIRST = assume(eq(D(0), N * (send_setup + tau * c(0))), "when node N has its first chunk")
_LAST_NODE = _ends(D, _sent, "node N computes a chunk as soon as it can")
_OTHER_FIRST = assume(le(d(0), D(0)), "node i has its first chunk no later")
_OTHER = _ends(d, _received, "node i computes a chunk as soon as it can")
_LOAD = assume(eq(N * total(c, M - 1, 0), sigma), "all rounds carry the load")
_INSIDE = assume(ge(N, _i), "i is at most N")
# N = 2, M = 3, ST = SC = 0, tau = 2, chi = 2: theta = 1/2, chunks 4, 2, 1 shrink
_shrinking = {
    M: 3,
    N: 2,
    _i: 1,
    send_setup: 0,
    SC: 0,
    sigma: 14,
    w: 4,
    c: lambda index: sp.Rational(4, 2 ** int(index)),
    D: lambda index: sp.Integer((16, 24, 28, 30)[int(index)]),
    d: lambda index: sp.Integer((8, 16, 24, 28)[int(index)]),
}


def show_no_wait() -> Line:
    """Show that node N ends a chunk exactly when the next one is there."""
    here = eq(D(h), _sent)
    before = assume(here, "assume that a chunk is there when node N ends the one before")
    ready = positive(ge(_sent, D(h)), "then both are ready", {before: -1})
    link = extreme(eq(sp.Max(D(h), _sent), _sent), "and it starts at once", [ready])
    follows = [assume(ge(M - 1, h + 1), "a round follows")]
    step, even = (take(line, h, "in round j", follows) for line in (_LAST_NODE, _BALANCE))
    by = {step: 1, link: 1, even: -1}
    after = identity(here.subs({h: h + 1}), "and the next chunk is there in time", by)
    base = identity(here.subs({h: sp.S.Zero}), "the first chunk", {_FIRST: 1})
    return induction_in_range(Every(here, h, 0, M - 1), base, after, "node N never waits")


def show_ends_of_chunks(never_waits: Line) -> Line:
    """Show when node N ends its first j chunks."""
    busy = take_in_range(never_waits, h, "node N does not wait")
    ready = positive(ge(D(h), _sent), "so its chunk is there", {busy: 1})
    link = extreme(eq(sp.Max(D(h), _sent), D(h)), "and it goes on", [ready])
    claim = eq(D(h), N * (send_setup + tau * c(0)) + h * SC + chi * total(c, h - 1, 0))
    step = take_in_range(_LAST_NODE, h, "in round j")
    by = {step: 1, link: 1, assume(claim, "assume it"): 1}
    after = identity(claim.subs({h: h + 1}), "one chunk more", by)
    base = identity(claim.subs({h: sp.S.Zero}), "no chunk", {_FIRST: 1})
    return induction_in_range(Every(claim, h, 0, M), base, after, "by induction")


@statement(
    "U.mk",
    goals=[eq(D(M), N * (send_setup + tau * c(0)) + M * SC + chi * sigma / N), le(d(M), D(M))],
    hypotheses=[_BALANCE, _NOT_NEGATIVE, _FIRST, _LAST_NODE, _OTHER_FIRST, _OTHER, _LOAD, _INSIDE],
    witness=_shrinking,
)
def show_makespan(time: Any, others: Any) -> list[Line]:
    """All nodes end by N (ST + tau c_0) + M SC + chi sigma/N; chunks may shrink."""
    never_waits = show_no_wait()
    end = take(show_ends_of_chunks(never_waits), M, "after all rounds")
    makespan_ = identity(time, "the makespan", {end: 1, _LOAD: chi / N})
    own, rule, chunk = (
        take_in_range(line, h, "in round j") for line in (_LAST_NODE, _OTHER, _NOT_NEGATIVE)
    )
    busy = take_in_range(never_waits, h, "node N does not wait")
    here = le(d(h), D(h))
    before = assume(here, "assume that node i is not behind node N")
    by = {busy: 1, _INSIDE: send_setup, chunk: (N - _i) * tau}
    sent = positive(ge(D(h), _received), "its chunk is there no later than node N's", by, [_INSIDE])
    latest = extreme(le(sp.Max(d(h), _received), D(h)), "so it starts no later", [before, sent])
    ready = positive(ge(_sent, D(h)), "node N never waits", {busy: -1})
    wait = extreme(eq(sp.Max(D(h), _sent), _sent), "and starts when its chunk is there", [ready])
    by = {latest: 1, rule: -1, own: 1, wait: 1, busy: -1}
    step = positive(here.subs({h: h + 1}), "so node i ends no later", by)
    all_ = induction_in_range(Every(here, h, 0, M), _OTHER_FIRST, step, "in every round")
    return [makespan_, take(all_, M, "after all rounds")]

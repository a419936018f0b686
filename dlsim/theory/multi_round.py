"""Several rounds on equal nodes that never wait (UMR): chunks and makespan.

Each node gets one chunk of size c_j in round j = 0..M-1; a round is sent while the one before is
computed. Papers M and I announce it as future work; the engine runs it. tau, chi are the costs of
sending and computing a unit, w = tau + chi.
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.relations import Every, Iff, eq, ge, le
from dlsim.theory.statements import one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, extreme, identity, positive, show, take
from dlsim.theory.symbols import SC, chi, sigma, tau, total

N, M = sp.symbols("N M", integer=True, positive=True)
#: The number of a round.
h = sp.Symbol("j", integer=True, nonnegative=True)
send_setup = sp.Symbol("ST", nonnegative=True)
theta = sp.Symbol("theta", positive=True)
kappa = sp.Symbol("kappa", real=True)
c, powers = (sp.Function(name, real=True) for name in "cG")
_balance = eq(N * (send_setup + tau * c(h + 1)), SC + chi * c(h))

_NEXT_CHUNK = eq(c(h + 1), chi / (N * tau) * c(h) + (SC / N - send_setup) / tau)
one_step_statement(
    "U.rec",
    "No node waits iff c_(j+1) = chi/(N tau) c_j + (SC/N - ST)/tau.",
    {Iff(_balance, _NEXT_CHUNK): ("solved for the next chunk", 1 / (N * tau))},
)

_RECURRENCE = assume(Every(eq(c(h + 1), theta * c(h) + kappa), h, 0, M - 2), "the recurrence")
_NO_POWER = assume(eq(powers(0), 0), "G_0 has no term")
_NEXT_POWER = Every(eq(powers(h + 1), theta * powers(h) + 1), h, 0, M - 2)
_POWERS = assume(_NEXT_POWER, "G_j = 1 + theta + ... + theta^(j-1)")
_CHUNKS = Every(eq(c(h), theta**h * c(0) + kappa * powers(h)), h, 0, M - 1)


@statement("U.cj", [_RECURRENCE, _NO_POWER, _POWERS])
def show_chunks(claim: Any = _CHUNKS) -> list[Line]:
    """c_j = theta^j c_0 + kappa (1 + theta + ... + theta^(j-1)), also if theta = 1."""
    by, first = {_RECURRENCE: 1, _POWERS: -kappa}, {_NO_POWER: -kappa}
    return [steps.show_inductively(claim, h, "by induction", by, times=theta, first=first)]


_LOAD = assume(eq(N * total(c, M - 1, 0), sigma), "all rounds carry the load")
_ALL_CHUNKS = assume(_CHUNKS, "the chunks of U.cj")
_FIRST_CHUNK = eq(
    c(0) * total(lambda index: theta**index, M - 1, 0), sigma / N - kappa * total(powers, M - 1, 0)
)
_ADDED = add_up(_ALL_CHUNKS, "added over all rounds")
one_step_statement(
    "U.sum",
    "c_0 = (sigma/N - kappa (G_0 + ... + G_(M-1)))/(1 + theta + ... + theta^(M-1)).",
    {_FIRST_CHUNK: ("solved for the first chunk", {_LOAD: 1 / N, _ADDED: -1})},
    [_LOAD, _ALL_CHUNKS],
)

D, d = sp.Function("D", real=True), sp.Function("d", real=True)
_i = sp.Symbol("i", integer=True, positive=True)
#: When round j is sent, and when node i has its chunk of it.
_sent = N * ((h + 1) * send_setup + tau * total(c, h, 0))
_received = _sent - (N - _i) * (send_setup + tau * c(h))


def _ends(end: Any, ready: Any, why: str) -> Line:
    """Assume that a node computes a chunk when the chunk is there and the one before is done."""
    after = sp.Max(end(h), ready) + SC + chi * c(h)
    return assume(Every(eq(end(h + 1), after), h, 0, M - 1), why)


_BALANCE = assume(Every(_balance, h, 0, M - 2), "a chunk is computed while a round is sent")
_NOT_NEGATIVE = assume(Every(ge(c(h), 0), h, 0, M - 1), "no chunk is negative")
_FIRST = assume(eq(D(0), N * (send_setup + tau * c(0))), "when node N has its first chunk")
_LAST_NODE = _ends(D, _sent, "node N computes a chunk as soon as it can")
_OTHER_FIRST = assume(le(d(0), D(0)), "node i has its first chunk no later")
_OTHER = _ends(d, _received, "node i computes a chunk as soon as it can")
_INSIDE = assume(ge(N, _i), "i is at most N")


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
    return steps.induction(Every(here, h, 0, M - 1), h, base, after, "node N never waits")


def show_pace(never_waits: Line) -> Line:
    """Show that node N computes one chunk after another."""
    busy = take(never_waits, h, "node N does not wait")
    ready = positive(ge(D(h), _sent), "so its chunk is there", {busy: 1})
    link = extreme(eq(sp.Max(D(h), _sent), D(h)), "and it goes on", [ready])
    pace = Every(eq(D(h + 1), D(h) + SC + chi * c(h)), h, 0, M - 1)
    return show(pace, "one chunk after another", {_LAST_NODE: 1, link: 1})


@statement(
    "U.mk", [_BALANCE, _NOT_NEGATIVE, _FIRST, _LAST_NODE, _OTHER_FIRST, _OTHER, _LOAD, _INSIDE]
)
def show_makespan(
    time: Any = eq(D(M), N * (send_setup + tau * c(0)) + M * SC + chi * sigma / N),
    others: Any = le(d(M), D(M)),
) -> list[Line]:
    """All nodes end by N (ST + tau c_0) + M SC + chi sigma/N; chunks may shrink."""
    never_waits = show_no_wait()
    pace = show_pace(never_waits)
    end = eq(D(h), N * (send_setup + tau * c(0)) + h * SC + chi * total(c, h - 1, 0))
    why = "when node N ends its first j chunks"
    ends = steps.show_inductively(Every(end, h, 0, M), h, why, {pace: 1}, first={_FIRST: 1})
    makespan = {take(ends, M, "after all rounds"): 1, _LOAD: chi / N}
    here = le(d(h), D(h))
    before = assume(here, "assume that node i is not behind node N")
    by = {never_waits: 1, _NOT_NEGATIVE: (N - _i) * tau}
    sent = positive(ge(D(h), _received), "its chunk is there no later than node N's", by, [_INSIDE])
    latest = extreme(le(sp.Max(d(h), _received), D(h)), "so it starts no later", [before, sent])
    by = {latest: 1, _OTHER: -1, pace: 1}
    step = positive(here.subs({h: h + 1}), "so node i ends no later", by)
    all_rounds = steps.induction(Every(here, h, 0, M), h, _OTHER_FIRST, step, "in every round")
    return [identity(time, "the makespan", makespan), take(all_rounds, M, "after all rounds")]

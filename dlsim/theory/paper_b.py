"""Paper B: the equations of its scheduler, its corrections and fallbacks.

Takefusa, Casanova, Matsuoka and Berman, "A Study of Deadline Scheduling for Client-Server Systems
on the Computational Grid".
"""

from typing import Any

import sympy as sp

from dlsim.theory.relations import Every, Iff, eq, ge, gt, le, lt
from dlsim.theory.statements import one_step_statement, statement
from dlsim.theory.steps import (
    Line,
    assume,
    extreme,
    positive,
    sharpen,
    show,
    show_inductively,
    take,
)
from dlsim.theory.symbols import at_point, j, n

now, deadline = sp.symbols("now T_deadline", real=True)
target, wider = sp.symbols("T_target T_target'", real=True)
optimism = sp.Symbol("Opt", positive=True)
server_time, send, execute, receive = sp.symbols("T_S T_send ET_exec ET_recv", positive=True)
W_send, W_recv, W_s = sp.symbols("W_send W_recv W_s", nonnegative=True)
P_send, P_recv, P_serv, more = sp.symbols("P_send P_recv P_serv d", positive=True)


def estimate(work: Any, server_speed: Any) -> sp.Expr:
    """Return the processing time of a job on a server (paper B, 2)."""
    return W_send / P_send + W_recv / P_recv + work / server_speed


_IN_TARGET = assume(
    le(server_time, (deadline - now) * optimism), "T_S <= T_target = (T_deadline - now) Opt"
)
_OPT = assume(le(optimism, 1), "Opt is at most 1")
_DIVIDED = {_IN_TARGET: 1 / optimism, _OPT: server_time / optimism}
_MORE_WORK = lt(estimate(W_s, P_serv), estimate(W_s + more, P_serv))
_COMPUTING = estimate(W_s, P_serv).subs({W_send: 0, W_recv: 0})


def _seconds(gops: Any) -> sp.Expr:
    """Return the computing time by (2) at 300 Mops/s."""
    return at_point(_COMPUTING, {W_s: gops, P_serv: sp.Rational(3, 10)})


_MORE_SPEED = ge(estimate(W_s, P_serv), estimate(W_s, P_serv + more))
one_step_statement(
    "B.1-3",
    "A server whose predicted time is within T_target meets the deadline, as Opt <= 1.",
    {
        ge(deadline, now + server_time): ("divided by Opt", _DIVIDED),
        _MORE_WORK: "(2) rises with the work of the job",
        _MORE_SPEED: "and falls with the speed of the server",
        eq(_seconds(sp.Rational(3, 2)), 5): "1.5 Gops at 300 Mops/s take 5 seconds",
        eq(_seconds(90), 5 * 60): "5 minutes are 90 Gops",
        eq(_seconds(1080), 60 * 60): "and 60 minutes 1080",
    },
    [_IN_TARGET, _OPT],
)

#: Predicted times of the servers, and the numbers of those that rule (4) takes.
server = sp.Function("T", positive=True)
taken, taken_wider = sp.symbols("c c'", integer=True, positive=True)
further = sp.Symbol("m", integer=True, nonnegative=True)
_IN_TIME = assume(Every(ge(target, server(j)), j, 1, n), "servers 1 to n are in time")
_SMALLEST = assume(
    Every(ge(target - server(j), target - server(taken)), j, 1, n), "(4): c has the smallest Diff"
)
_IS_SERVER = assume(ge(n, taken), "c is one of them")
_RAISED = assume(ge(wider, target), "a larger Opt raises the target")
_SMALLEST_WIDER = assume(
    Every(ge(wider - server(j), wider - server(taken_wider)), j, 1, n + further),
    "(4): then c' has the smallest Diff, also among m servers more",
)


@statement("B.4", [_IN_TIME, _SMALLEST, _IS_SERVER, _RAISED, _SMALLEST_WIDER])
def show_slowest_in_time(
    slowest: Any = Every(ge(server(taken), server(j)), j, 1, n),
    still: Any = Every(ge(wider, server(j)), j, 1, n),
    slower: Any = ge(server(taken_wider), server(taken)),
) -> list[Line]:
    """Rule (4) takes the slowest of any number of servers in time; a larger Opt no faster one."""
    here = take(_SMALLEST_WIDER, taken, "for server c", [_IS_SERVER])
    return [
        show(slowest, "the smallest Diff belongs to the largest time", {_SMALLEST: 1}),
        show(still, "a server in time stays in time", {_IN_TIME: 1, _RAISED: 1}),
        positive(slower, "so the chosen time does not fall", {here: 1}),
    ]


def distance(time: Any) -> sp.Expr:
    """Return |Diff| of a server with this time."""
    return sp.Max(time - target, target - time)


_LATE = assume(Every(ge(server(j), target), j, 1, n), "all n servers are late")
_NEAREST = assume(
    Every(ge(distance(server(j)), distance(server(taken))), j, 1, n), "c has the smallest |Diff|"
)


@statement("B.4late", [_LATE, _NEAREST])
def show_fastest_if_late(fastest: Any = Every(ge(server(j), server(taken)), j, 1, n)) -> list[Line]:
    """If none of any number of servers is in time, the smallest |Diff| is that of the fastest."""
    late = positive(ge(server(j) - target, target - server(j)), "as j is late", {_LATE: 2})
    beyond = extreme(eq(distance(server(j)), server(j) - target), "so this is its |Diff|", [late])
    part = extreme(ge(distance(server(taken)), server(taken) - target), "c's is no smaller")
    by = {_NEAREST: 1, beyond: -1, part: 1}
    return [show(fastest, "so c is not slower", by)]


jobs = sp.Symbol("numjobs", integer=True, positive=True)
measured_load = sp.Symbol("Load", nonnegative=True)
pload, server_speed, length = sp.symbols("pload P W", positive=True)
_corrected_load = measured_load + jobs * pload
_time, _corrected_time = (
    length * (1 + load) / server_speed for load in (measured_load, _corrected_load)
)
one_step_statement(
    "B.5",
    "The corrected load is above the measured one, and so is the time predicted from it.",
    {
        gt(_corrected_load, measured_load): "numjobs and pload are positive",
        gt(_corrected_time, _time): "a server shared by 1 + Load jobs gives each an equal part",
    },
)

_left, _takes = deadline - now, send + execute + receive
one_step_statement(
    "B.6",
    "A request falls back exactly if its expected end is after its deadline.",
    {Iff(lt(_left, _takes), gt(now + _takes, deadline)): "with T_until_deadline of (1)"},
)


#: Fallbacks that a request has gone through after h of them.
gone_through = sp.Function("N_fallbacks", integer=True, nonnegative=True)
h, most = sp.symbols("h N_max", integer=True, nonnegative=True)
fallbacks = sp.Symbol("F", integer=True, positive=True)
_NONE = assume(eq(gone_through(0), 0), "a new request has gone through none")
_COUNTED = assume(
    Every(eq(gone_through(h + 1), gone_through(h) + 1), h, 0, fallbacks + most - 1),
    "each one is counted",
)
_STRICT = assume(
    Every(lt(gone_through(h), most), h, 0, fallbacks - 1), "F fallbacks are allowed by the sign <"
)


@statement("B.7", [_NONE, _COUNTED, _STRICT])
def show_number_of_fallbacks(
    limit: Any = ge(most, fallbacks), printed: Any = le(gone_through(most), most)
) -> list[Line]:
    """With N_fallbacks < N_max a request falls back at most N_max times; as printed, once more."""
    each = Every(eq(gone_through(h), h), h, 0, fallbacks + most)
    counts = show_inductively(each, h, "the count", {_COUNTED: 1}, first={_NONE: 1})
    last = {take(_STRICT, fallbacks - 1, "the last one"): 1, take(counts, fallbacks - 1): 1}
    below = positive(gt(most, fallbacks - 1), "allowed after F - 1 of them", last)
    why = "after N_max of them, <= allows another"
    return [
        sharpen(limit, "both are whole", below),
        positive(printed, why, {take(counts, most, "after N_max fallbacks"): -1}),
    ]

"""Paper B: the equations of its scheduler, its corrections and fallbacks.

Takefusa, Casanova, Matsuoka and Berman, "A Study of Deadline Scheduling for Client-Server Systems
on the Computational Grid".
"""

from typing import Any

import sympy as sp

from dlsim.theory.relations import Iff, eq, ge, gt, le, lt
from dlsim.theory.statements import one_step_statement
from dlsim.theory.steps import assume, exact_function, positive

now, deadline = sp.symbols("now T_deadline", real=True)
target, wider, fast, slow = sp.symbols("T_target T_target' T_1 T_2", real=True)
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
_MORE_SPEED = ge(estimate(W_s, P_serv), estimate(W_s, P_serv + more))
one_step_statement(
    "B.1-3",
    "A server whose predicted time is within T_target meets the deadline, as Opt <= 1.",
    {
        ge(deadline, now + server_time): ("divided by Opt", _DIVIDED),
        _MORE_WORK: "(2) rises with the work of the job",
        _MORE_SPEED: "and falls with the speed of the server",
    },
    [_IN_TARGET, _OPT],
)

_SLOWER = assume(ge(slow, fast), "T_2 >= T_1")
_BOTH_IN_TIME = assume(ge(target, slow), "both servers are in time")
_BOTH_LATE = assume(ge(fast, target), "both servers are late")
_RAISED = assume(ge(wider, target), "a larger Opt raises the target")
_BOTH = 2 * target - slow - fast
_NOT_LATE, _LATE = (
    positive(ge(both, 0), why, {line: 2, _SLOWER: 1})
    for both, why, line in (
        (_BOTH, "both differences are not negative", _BOTH_IN_TIME),
        (-_BOTH, "both are later than the target", _BOTH_LATE),
    )
)
_CLOSER = le((target - slow) ** 2, (target - fast) ** 2)
_WHY = "the slower server has the smaller Diff, here squared"
one_step_statement(
    "B.4",
    "Of servers in time the rule of the smallest Diff takes the slowest, also for a larger Opt.",
    {
        _CLOSER: (_WHY, {_SLOWER: _BOTH}, [_NOT_LATE]),
        ge(wider, slow): ("so the chosen time does not fall", {_RAISED: 1, _BOTH_IN_TIME: 1}),
    },
    [_SLOWER, _BOTH_IN_TIME, _RAISED],
)
_WHY = "the faster server has the smaller |Diff|, here squared"
one_step_statement(
    "B.4late",
    "If no server is in time, the rule of the smallest |Diff| takes the fastest.",
    {le((fast - target) ** 2, (slow - target) ** 2): (_WHY, {_SLOWER: -_BOTH}, [_LATE])},
    [_SLOWER, _BOTH_LATE],
)

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


def _count_fallbacks(limit: Any, printed: bool) -> int:
    """Return how often a request that is always late falls back by rule (7)."""
    done = 0
    while done <= limit if printed else done < limit:
        done += 1
    return done


_strict = exact_function("strict", lambda limit: _count_fallbacks(limit, printed=False))
_printed = exact_function("printed", lambda limit: _count_fallbacks(limit, printed=True))
_WHY = "a request that is late everywhere, by the strict rule"
one_step_statement(
    "B.7",
    "With N_fallbacks < N_max a request falls back at most N_max times.",
    {
        **{eq(_strict(limit), limit): _WHY for limit in range(6)},
        eq(_printed(0), 1): "and by the printed one",
    },
)

_seconds = exact_function("seconds", lambda gops: 1000 * gops / sp.Integer(300))
one_step_statement(
    "B.Gops",
    "Jobs of 1.5 to 1080 Gops take 5 seconds to 60 minutes at 300 Mops/s.",
    {
        eq(_seconds(sp.Rational(3, 2)), 5): "the printed lower end",
        eq(_seconds(90), 300): "what 5 minutes need",
        eq(_seconds(1080), 3600): "the upper end",
    },
)

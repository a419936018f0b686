"""Paper B: the equations of its scheduler, its corrections and fallbacks.

Takefusa, Casanova, Matsuoka and Berman, "A Study of Deadline Scheduling for Client-Server Systems
on the Computational Grid".
"""

from itertools import product
from typing import Any

import sympy as sp

from dlsim.theory.relations import Iff, eq, ge, gt, le, lt
from dlsim.theory.statements import one_step_statement, statement
from dlsim.theory.steps import Line, assume, compute, exact_function, positive

now, deadline = sp.symbols("now T_deadline", real=True)
target, wider, fast, slow = sp.symbols("T_target T_target' T_1 T_2", real=True)
optimism = sp.Symbol("Opt", positive=True)
server_time, send, execute, receive = sp.symbols("T_S T_send ET_exec ET_recv", positive=True)
W_send, W_recv, W_s = sp.symbols("W_send W_recv W_s", nonnegative=True)
P_send, P_recv, P_serv, more = sp.symbols("P_send P_recv P_serv d", positive=True)


def estimate(input_: Any, output: Any, work: Any, to: Any, back: Any, server_speed: Any) -> sp.Expr:
    """Return the processing time of a job on a server (paper B, 2)."""
    return input_ / to + output / back + work / server_speed


_IN_TARGET = assume(
    le(server_time, (deadline - now) * optimism), "T_S <= T_target = (T_deadline - now) Opt"
)
_OPT = assume(le(optimism, 1), "Opt is at most 1")

one_step_statement(
    "B.1-3",
    "A server whose predicted time is within T_target meets the deadline, as Opt <= 1.",
    {
        ge(deadline, now + server_time): (
            "divided by Opt",
            {_IN_TARGET: 1 / optimism, _OPT: server_time / optimism},
        ),
        lt(
            estimate(W_send, W_recv, W_s, P_send, P_recv, P_serv),
            estimate(W_send, W_recv, W_s + more, P_send, P_recv, P_serv),
        ): "(2) rises with the work of the job",
        ge(
            estimate(W_send, W_recv, W_s, P_send, P_recv, P_serv),
            estimate(W_send, W_recv, W_s, P_send, P_recv, P_serv + more),
        ): "and falls with the speed of the server",
    },
    [_IN_TARGET, _OPT],
)


def by_difference(times: tuple[int, ...], limit: int) -> int:
    """Return the server chosen by rule (4), the lowest index first."""
    pool = [index for index, one in enumerate(times) if limit - one >= 0] or range(len(times))
    return min(pool, key=lambda index: abs(limit - times[index]))


def slowest_in_time(times: tuple[int, ...], limit: int) -> int:
    """Return the slowest server that is in time, otherwise the fastest of all."""
    in_time = [one for one in times if one <= limit]
    return times.index(max(in_time) if in_time else min(times))


def count_differences(most: Any) -> int:
    """Count where the two differ: four servers, all times up to `most`, all targets."""
    grid = product(range(1, int(most) + 1), repeat=4)
    cases = ((times, limit) for times in grid for limit in range(int(most) + 2))
    return sum(by_difference(*case) != slowest_in_time(*case) for case in cases)


_differences = exact_function("differences", count_differences)

_SLOWER = assume(ge(slow, fast), "T_2 >= T_1")
_BOTH_IN_TIME = assume(ge(target, slow), "both servers are in time")
_BOTH_LATE = assume(ge(fast, target), "both servers are late")
_RAISED = assume(ge(wider, target), "a larger Opt raises the target")


@statement("B.4", [_SLOWER, _BOTH_IN_TIME, _RAISED])
def show_smallest_difference(
    closer: Any = le((target - slow) ** 2, (target - fast) ** 2),
    still: Any = ge(wider, slow),
    none: Any = eq(_differences(4), 0),
) -> list[Line]:
    """Of servers in time the rule of the smallest Diff takes the slowest, also for a larger Opt."""
    times = 2 * target - slow - fast
    why = "both differences are not negative"
    sum_ = positive(ge(times, 0), why, {_BOTH_IN_TIME: 2, _SLOWER: 1})
    square = "the slower server has the smaller Diff, here squared"
    why = "all times 1 to 4 on four servers, all targets: the rule against its reading"
    return [
        positive(closer, square, {_SLOWER: times}, [sum_]),
        positive(still, "so the chosen time does not fall", {_RAISED: 1, _BOTH_IN_TIME: 1}),
        compute(none, why),
    ]


@statement("B.4late", [_SLOWER, _BOTH_LATE])
def show_fastest_when_late(
    closer: Any = le((fast - target) ** 2, (slow - target) ** 2),
) -> list[Line]:
    """If no server is in time, the rule of the smallest |Diff| takes the fastest."""
    times = slow + fast - 2 * target
    sum_ = positive(ge(times, 0), "both are later than the target", {_BOTH_LATE: 2, _SLOWER: 1})
    why = "the faster server has the smaller |Diff|, here squared"
    return [positive(closer, why, {_SLOWER: times}, [sum_])]


jobs = sp.Symbol("numjobs", integer=True, positive=True)
measured_load = sp.Symbol("Load", nonnegative=True)
pload, server_speed, length = sp.symbols("pload P W", positive=True)

_corrected_load = measured_load + jobs * pload


def _time_under(server_load: Any) -> sp.Expr:
    return length * (1 + server_load) / server_speed


one_step_statement(
    "B.5",
    "The corrected load is above the measured one, and so is the time predicted from it.",
    {
        gt(_corrected_load, measured_load): "numjobs and pload are positive",
        gt(
            length * (1 + _corrected_load) / server_speed,
            length * (1 + measured_load) / server_speed,
        ): ("a server shared by 1 + Load jobs gives each an equal part"),
    },
)

one_step_statement(
    "B.6",
    "A request falls back exactly if its expected end is after its deadline.",
    {
        Iff(
            lt(deadline - now, send + execute + receive),
            gt(now + send + execute + receive, deadline),
        ): "with T_until_deadline of (1)"
    },
)


def count_fallbacks(limit: Any, printed: bool) -> int:
    """Return how often a request that is always late falls back by rule (7)."""
    done = 0
    while done <= limit if printed else done < limit:
        done += 1
    return done


_strict = exact_function("strict", lambda limit: count_fallbacks(limit, printed=False))
_printed = exact_function("printed", lambda limit: count_fallbacks(limit, printed=True))

one_step_statement(
    "B.7",
    "With N_fallbacks < N_max a request falls back at most N_max times.",
    {
        **{
            eq(_strict(limit), limit): "a request that is late everywhere, by the strict rule"
            for limit in range(6)
        },
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

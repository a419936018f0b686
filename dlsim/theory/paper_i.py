"""Paper I: nodes that become free one after another, its theorems, constraints and their gaps.

Lin, Lu, Deogun and Goddard, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing
Inserted Idle Time". Its tau, chi are paper M's Cms, Cps: tau = (1-beta) w, chi = beta w.
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.paper_m import LOAD, WHOLE_LOAD, recurrence
from dlsim.theory.relations import Every, Iff, eq, ge, gt, lt
from dlsim.theory.statements import lemma, one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, extreme, identity, positive, show, take
from dlsim.theory.symbols import alpha, at_point, j, n, r, s, sigma, tau, time_formula, total, w

#: The instant at which all nodes end, and the work of the load, sigma (tau + chi).
end = sp.Symbol("e", real=True)
total_work = sigma * w
#: The end and the shares of (3) and (4).
optimal_end = (total(r, n) + total_work) / n
_waits = total(lambda index: r(n) - r(index), n)
_ALL_END = Every(eq(r(j) + alpha(j) * total_work, end), j, 1, n)
ALL_END = assume(_ALL_END, "every node starts when it is free, and all nodes end at e")
SORTED = assume(Every(ge(r(j + 1), r(j)), j, 1, n - 1), "releases are sorted")
#: The missing condition.
LAST_SHARE = assume(lt(_waits, total_work), "the last share is positive")


def best_share(index: Any) -> sp.Expr:
    """Return the share of node `index` by (3) and (4)."""
    return (optimal_end - r(index)) / total_work


#: (3) and (4) as printed, with p_i = r_n - r_i.
_LONGEST = r(n) - r(1)
_FIRST_SHARE = 1 / n + ((n - 1) * _LONGEST - (_waits - _LONGEST)) / (n * total_work)
_SHARE = alpha(1) - (_LONGEST - (r(n) - r(j))) / total_work


@statement("1.3-4", [ALL_END, LOAD])
def show_equal_finish(
    time: Any = eq(end, optimal_end),
    shares: Any = Every(eq(alpha(j), (end - r(j)) / total_work), j, 1, n),
    third: Any = eq(alpha(1), _FIRST_SHARE),
    fourth: Any = Every(eq(alpha(j), _SHARE), j, 1, n),
) -> list[Line]:
    """If every node starts when it is free and all end together, (3) and (4) hold."""
    first = take(ALL_END, 1)
    by = {add_up(ALL_END, "added over all nodes"): -1 / n, LOAD: total_work / n}
    when = identity(time, "as the shares add up to 1", by)
    by_end = {first: 1 / total_work, when: 1 / total_work}
    return [
        when,
        show(shares, "solved for the share", {ALL_END: 1 / total_work}),
        identity(third, "(3), with p_i = r_n - r_i", by_end),
        show(fourth, "(4)", {ALL_END: 1 / total_work, first: -1 / total_work}),
    ]


_MORE = sp.Symbol("m", integer=True, nonnegative=True)


def show_last_is_latest(rises: Line) -> Line:
    """Show that no node is free after the last, if none is free after the next."""
    here = ge(r(j + _MORE), r(j))
    room = [assume(ge(n - j, _MORE + 1), "so many nodes follow")]
    gap = take(rises, j + _MORE, "from one node to the next", room)
    line = steps.show_inductively(here, _MORE, "no later node is free earlier", {gap: 1})
    in_range = [assume(ge(n, j), "j is in range")]
    last = steps.substitute(line, {_MORE: n - j}, "up to the last node", in_range)
    return steps.generalise(last, j, 1, n, "the last node is free last")


_NODE = assume(ge(n, j), "j is one of the nodes")


@statement("1.pos", [SORTED, _NODE])
def show_last_share(
    condition: Any = Iff(gt(best_share(n), 0), LAST_SHARE.claim),
    free: Any = Iff(gt(best_share(n), 0), gt(optimal_end, r(n))),
    order: Any = ge(best_share(j), best_share(n)),
) -> list[Line]:
    """The last share is the smallest; it is positive iff sum (r_n - r_i) < sigma (tau + chi)."""
    later = {show_last_is_latest(SORTED): 1 / total_work}
    return [
        steps.iff(condition, "times n sigma (tau + chi)", n * total_work),
        steps.iff(free, "times sigma (tau + chi): node n is free before the end", total_work),
        positive(order, "a node that is free later has a smaller share", later),
    ]


_other = sp.Function("x", real=True)
_earlier = sp.Symbol("e'", real=True)
_capacity = sp.Max(_earlier - r(j), 0)
OTHER_LOAD = assume(eq(total(_other, n), 1), "the shares of the other schedule are the load")
_FITS = Every(ge(_capacity, _other(j) * total_work), j, 1, n)
FITS = assume(_FITS, "in tau + chi a node receives and computes a unit")


_first, _second = sp.symbols("r_1 r_2", real=True)
_work = sp.Symbol("W", positive=True)
_PROMISED = (_first + _second + _work) / 2
#: Two nodes and a load with sigma = tau = chi = 1; W is sigma (tau + chi).
_TWO: dict[sp.Symbol, object] = {_first: 0, _second: 5, _work: 2}


@statement("1.opt", [OTHER_LOAD, FITS, SORTED, LAST_SHARE])
def show_optimal(
    goal: Any = ge(_earlier, optimal_end),
    negative: Any = lt(at_point((_PROMISED - _second) / _work, _TWO), 0),
    earlier: Any = lt(at_point(_first + _work, _TWO), at_point(_PROMISED, _TWO)),
) -> list[Line]:
    """If the last share is positive, no schedule ends before e of (3)."""
    by = {show_last_is_latest(SORTED): 1, LAST_SHARE: 1 / n}
    before = positive(gt(optimal_end - r(j), 0), "node j is free before e", by)
    early = assume(lt(_earlier, optimal_end), "suppose that another schedule ends earlier, at e'")
    sooner = positive(gt(optimal_end - r(j), _earlier - r(j)), "so it has less time", {early: 1})
    lost = gt(optimal_end - r(j), _capacity)
    less = extreme(lost, "so each node can do less than until e", [before, sooner])
    strict = Every(gt(optimal_end - r(j), _other(j) * total_work), j, 1, n)
    each = show(strict, "so its share is smaller", {less: 1, FITS: 1})
    added = add_up(each, "so all shares together are less than the load")
    false = positive(gt(0, 0), "which they are", {added: 1, OTHER_LOAD: total_work})
    return [
        steps.absurd(goal, false, "so no schedule ends earlier"),
        steps.compute(negative, "but it may be negative: two nodes, sigma = tau = chi = 1"),
        steps.compute(earlier, "and node 1 alone ends before the end that (3) and (4) promise"),
    ]


_READY = s(j) + alpha(j) * sigma * tau
_NEXT_START = sp.Max(r(j + 1), _READY)
START_RULE = "a node starts when it and the link are free"
STARTS = assume(Every(eq(s(j + 1), _NEXT_START), j, 1, n - 1), START_RULE)
FIRST_START = assume(eq(s(1), r(1)), "the first node starts when it is free")
_GAP = r(j + 1) - r(j)
CONSTRAINT_1 = assume(Every(ge(_GAP, sigma * tau), j, 1, n - 1), "Constraint 1")
CONSTRAINT_2 = assume(Every(ge(_GAP, alpha(j) * sigma * tau), j, 1, n - 1), "Constraint 2")
POSITIVE = assume(Every(gt(alpha(j), 0), j, 1, n), "all shares are positive")


def show_no_idle_time(goal: Every) -> Line:
    """Show that every node starts when it is free, if no gap is shorter than the send before."""
    assumed = assume(goal.relation, "assume that a node starts when it is free")
    by = {CONSTRAINT_2: 1, assumed: -1}
    sent = positive(ge(r(j + 1), _READY), "its send is over before the next node is free", by)
    release = extreme(eq(_NEXT_START, r(j + 1)), "so the release decides", [sent])
    by = {STARTS: 1, release: 1}
    step = identity(goal.relation.subs({j: j + 1}), "the next node starts when it is free", by)
    return steps.induction(goal, j, FIRST_START, step, "no inserted idle time")


_TOGETHER = assume(Every(eq(r(j), r(1)), j, 1, n), "all nodes are free together")
_NOT_NEGATIVE = assume(Every(ge(alpha(j), 0), j, 1, n), "no share is negative")


@statement("1.s", [_TOGETHER, FIRST_START, STARTS, _NOT_NEGATIVE])
def show_worst_case_starts(
    goal: Any = Every(eq(s(j), r(1) + sigma * tau * total(alpha, j - 1)), j, 1, n),
) -> list[Line]:
    """If all nodes are free together, s_n = r_n + (alpha_1 + ... + alpha_(n-1)) sigma tau."""
    here = goal.relation
    room = assume(ge(n, j + 1), "a node follows")
    next_free = take(_TOGETHER, j + 1, "for the next node", [room])
    sent = add_up(_NOT_NEGATIVE, "so their sum is not negative", 1, j, [room])
    start = take(STARTS, j, "for the next node", [room])
    assumed = assume(here, "assume it of a node")
    by = {assumed: 1, next_free: -1, sent: sigma * tau}
    busy = positive(ge(_READY, r(j + 1)), "the link is free later than the next node", by)
    link = extreme(eq(_NEXT_START, _READY), "so the link decides", [busy])
    by = {start: 1, link: 1, assumed: 1}
    after = identity(here.subs({j: j + 1}), "and the next node starts one send later", by)
    base = identity(here.subs({j: 1}), "the first node", {FIRST_START: 1})
    return [steps.induction(goal, j, base, after, "by induction")]


_ALL_END_AT_ONCE = assume(Every(eq(s(j) + alpha(j) * total_work, end), j, 1, n), "(1)")
_INSTANT = [_TOGETHER, FIRST_START, STARTS, _NOT_NEGATIVE, _ALL_END_AT_ONCE, LOAD]


@statement("1.1", _INSTANT)
def show_completion_is_start_and_duration(
    shares: Any = recurrence(0), time: Any = eq(end, r(1) + time_formula(n, 0, 0))
) -> list[Line]:
    """If all nodes are free together, at r, the completion (1) is r and paper M's E(n)."""
    (starts,) = lemma("1.s")
    room = [assume(ge(n, j + 1), "a node follows")]
    ends = [take(_ALL_END_AT_ONCE, node, "(1)", room) for node in (j, j + 1)]
    begins = [take(starts, node, "its start", room) for node in (j, j + 1)]
    scale = 1 / total_work
    by = dict(zip([*ends, *begins], [-scale, scale, scale, -scale], strict=True))
    step = identity(shares.relation, "(1) for a node and the next", by)
    each = steps.generalise(step, j, 1, n - 1, "for all nodes")
    _, of_n, _ = lemma("4.1-4.4")
    first = steps.discharge(of_n, each, "so the first share is that of paper M")
    by = {take(_ALL_END_AT_ONCE, 1): -1, FIRST_START: 1, first: total_work}
    return [each, identity(time, "the end of the first node", by)]


_SAME_RELEASE = assume(eq(r(1), r(2)), "both nodes are free together")
_SENT = s(1) + alpha(1) * sigma * tau
_SECOND_START = assume(eq(s(2), sp.Max(r(2), _SENT)), START_RULE)
_SOME_SHARE = assume(gt(alpha(1), 0), "the first node has a share")


@statement("1.T2", [_SAME_RELEASE, FIRST_START, _SECOND_START, _SOME_SHARE])
def show_idle_time_remains(goal: Any = gt(s(2), r(2))) -> list[Line]:
    """If two nodes are free together, the second waits for the link, whatever the shares."""
    by = {_SOME_SHARE: sigma * tau, FIRST_START: 1, _SAME_RELEASE: 1}
    later = positive(gt(_SENT, r(2)), "its send ends after the second node is free", by)
    link = extreme(eq(sp.Max(r(2), _SENT), _SENT), "so the second node waits", [later])
    by = {_SECOND_START: 1, link: 1, later: 1}
    return [positive(goal, "and starts later than it is free", by)]


def show_constraint_2(shares: Line, load: Line) -> Line:
    """Show that Constraint 1 implies Constraint 2 for positive shares that add up to 1."""
    room = assume(ge(n - 1, j), "a node follows")
    before = add_up(shares, "the shares before node j are not negative", 1, j - 1, [room])
    after = add_up(shares, "nor are those after it", j + 1, n, [room])
    most = positive(ge(1, alpha(j)), "so no share exceeds 1", {before: 1, after: 1, load: -1})
    by = {take(CONSTRAINT_1, j, "for the next node", [room]): 1, most: sigma * tau}
    return show(CONSTRAINT_2.claim, "hence Constraint 2", by)


@statement("1.C1C2", [CONSTRAINT_1, POSITIVE, LOAD])
def show_constraint_2_is_weaker(goal: Any = CONSTRAINT_2.claim) -> list[Line]:
    """If all shares are positive, Constraint 1 implies Constraint 2."""
    return [show_constraint_2(POSITIVE, LOAD)]


@statement("1.C1n", [CONSTRAINT_1, LAST_SHARE])
def show_reach_of_constraint_1(goal: Any = gt(w, n * (n - 1) * tau / 2)) -> list[Line]:
    """Constraint 1 with positive shares needs n (n-1) tau/2 < tau + chi."""
    apart = ge(j * r(j) - total(r, j), sigma * tau * j * (j - 1) / 2)
    why = "all nodes before a gap wait for it"
    waited = steps.show_inductively(Every(apart, j, 1, n), j, why, {CONSTRAINT_1: j})
    return [positive(goal, "both together", {take(waited, n): 1 / sigma, LAST_SHARE: 1 / sigma})]


BY_4 = assume(Every(eq(alpha(j), best_share(j)), j, 1, n), "the shares are those of (3) and (4)")
_NO_IDLE_TIME = Every(eq(s(j), r(j)), j, 1, n)
_COMMON_END = Every(eq(s(j) + alpha(j) * total_work, optimal_end), j, 1, n)
_NO_EARLIER_END = ge(_earlier, optimal_end)
_SCHEDULE = [BY_4, FIRST_START, STARTS, LAST_SHARE, OTHER_LOAD, FITS]


def show_common_end(goal: Every, no_idle_time: Line) -> Line:
    """Show that all nodes end at e, if every node starts when it is free."""
    return show(goal, "all nodes end together", {no_idle_time: 1, BY_4: total_work})


@statement("1.T3", [CONSTRAINT_1, *_SCHEDULE])
def show_theorem_3(
    no_idle_time: Any = _NO_IDLE_TIME, ends: Any = _COMMON_END, best: Any = _NO_EARLIER_END
) -> list[Line]:
    """With Constraint 1 and positive shares, (3) and (4) leave no idle time and are optimal."""
    sorted_ = show(SORTED.claim, "so it is free later", {CONSTRAINT_1: 1})
    latest = show_last_is_latest(sorted_)
    by = {BY_4: 1, latest: 1 / total_work, LAST_SHARE: 1 / (n * total_work)}
    shares = show(POSITIVE.claim, "so its share is positive, too", by)
    load = identity(WHOLE_LOAD, "they are the whole load", {add_up(BY_4, "added"): 1})
    constraint_2 = show_constraint_2(shares, load)
    line = steps.discharge(show_no_idle_time(no_idle_time), constraint_2, "Constraint 2 was shown")
    optimal_, *_ = lemma("1.opt")
    return [
        line,
        show_common_end(ends, line),
        steps.discharge(optimal_, sorted_, "Theorem 1, as releases are sorted"),
    ]


@statement("1.C2", [CONSTRAINT_2, SORTED, *_SCHEDULE])
def show_corollary_1(
    no_idle_time: Any = _NO_IDLE_TIME, ends: Any = _COMMON_END, best: Any = _NO_EARLIER_END
) -> list[Line]:
    """With Constraint 2 and positive shares, (3) and (4) leave no idle time and are optimal."""
    line = show_no_idle_time(no_idle_time)
    return [line, show_common_end(ends, line), lemma("1.opt")[0]]


def _example(work: Fraction, *releases: int) -> tuple[Any, ...]:
    """Return release times and shares by (3) and (4), by node, for work sigma (tau + chi)."""
    last = (sum(releases) + work) / len(releases)
    release = dict(enumerate(releases, start=1))
    shares = {node: (last - time) / work for node, time in release.items()}
    tables: dict[str, dict[int, Any]] = {"r": release, "alpha": shares}
    return tuple(steps.exact_function(name, one.__getitem__) for name, one in tables.items())


_r_2, _alpha_2 = _example(Fraction(2), 0, 5)
_r_3, _alpha_3 = _example(Fraction(11, 10), 0, 1, 9)

one_step_statement(
    "1.T3cex",
    "As printed Theorem 3 and Corollary 1 fail: sigma = tau = chi = 1, r = (0, 5).",
    {
        ge(_r_2(2) - _r_2(1), 1): "Constraint 1 holds: r_2 - r_1 >= sigma tau",
        ge(_r_2(2) - _r_2(1), _alpha_2(1)): "Constraint 2 holds: r_2 - r_1 >= alpha_1 sigma tau",
        eq(_alpha_2(1), sp.Rational(7, 4)): "the first share",
        lt(_alpha_2(2), 0): "the second share is negative, so there is no such schedule",
    },
)

one_step_statement(
    "1.C1C2cex",
    "Constraint 1 may hold without Constraint 2: sigma = tau = 1, chi = 1/10, r = (0, 1, 9).",
    {
        ge(_r_3(2) - _r_3(1), 1): "Constraint 1 holds between nodes 1 and 2",
        ge(_r_3(3) - _r_3(2), 1): "and between nodes 2 and 3",
        eq(_alpha_3(1), sp.Rational(37, 11)): "the first share exceeds 1: the third is negative",
        lt(_r_3(2) - _r_3(1), _alpha_3(1)): "but r_2 - r_1 < alpha_1 sigma tau",
    },
)

_rate, _time, _span, _tasks, _load = sp.symbols("lambda E T tasks SystemLoad", positive=True)
_baseline = steps.exact_function("load", lambda nodes: 2 / (1 - Fraction(100, 101) ** int(nodes)))

_AT_16 = "E/chi with N = 16, tau = 1, chi = 100, size 200: the same for every lambda"
one_step_statement(
    "SysLoad",
    "The system load is total tasks times E over the time, that is lambda E.",
    {
        eq(at_point(_tasks * _time / _span, {_tasks: _rate * _span}), _rate * _time): (
            "lambda T tasks arrive in a time T"
        ),
        Iff(eq(_load, _rate * _time), eq(1 / _rate, _time / _load)): (
            "solved for the mean interval",
            1 / (_rate * _load),
        ),
        gt(_baseline(16), sp.Rational(1358, 100)): _AT_16,
        lt(_baseline(16), sp.Rational(1360, 100)): _AT_16,
    },
)

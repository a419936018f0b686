"""Paper I: nodes that become free one after another, its theorems, constraints and their gaps.

Lin, Lu, Deogun and Goddard, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing
Inserted Idle Time". Its tau, chi are paper M's Cms, Cps: tau = (1-beta) w, chi = beta w.
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory.paper_m import WHOLE_LOAD
from dlsim.theory.relations import Claim, Every, Iff, eq, ge, gt, lt
from dlsim.theory.statements import lemma, statement
from dlsim.theory.steps import (
    Line,
    absurd,
    add_up,
    assume,
    cases,
    compute,
    discharge,
    exact_function,
    extreme,
    generalise,
    identity,
    iff,
    induction,
    positive,
    substitute,
    take,
)
from dlsim.theory.symbols import alpha, beta, j, n, r, s, sigma, tau, total, w

#: The instant at which all nodes end, and the work of the load, sigma (tau + chi).
end = sp.Symbol("e", real=True)
work = sigma * w
#: The end and the shares of (3) and (4).
optimum = (total(r, n) + work) / n
ENDS = Every(eq(r(j) + alpha(j) * work, end), j, 1, n)
SORTED = Every(ge(r(j + 1), r(j)), j, 1, n - 1)
waits = total(lambda index: r(n) - r(index), n)
#: The missing condition: the last share is positive.
ROOM = lt(waits, work)
_nodes = {r: lambda index: sp.Rational(index), n: 3}


def best_share(index: Any) -> sp.Expr:
    """Return the share of node `index` by (3) and (4)."""
    return (optimum - r(index)) / work


@statement(
    "1.3-4",
    "I (2), (3), (4)",
    goals=[
        eq(end, optimum),
        Every(eq(alpha(j), (end - r(j)) / work), j, 1, n),
        eq(alpha(1), 1 / n + ((n - 1) * (r(n) - r(1)) - (waits - (r(n) - r(1)))) / (n * work)),
        Every(eq(alpha(j), alpha(1) - ((r(n) - r(1)) - (r(n) - r(j))) / work), j, 1, n),
    ],
    hypotheses=[ENDS, WHOLE_LOAD],
    witness={**_nodes, end: 4, alpha: lambda index: sp.Rational(4 - index) / 6},
)
def equal_finish(
    time: Any, shares: Any, third: Any, fourth: Any, ends: Any, load: Any
) -> list[Line]:
    """If every node starts when it is free and all end together, (3) and (4) hold."""
    all_end = assume(ends, "every node starts when it is free, and all end at e")
    whole = assume(load, "the whole load")
    inside = [assume(ge(n, j), "node j is one of them")]
    each = take(all_end, j, "of node j", inside)
    first = take(all_end, 1, "of the first node")
    added = add_up(all_end, "all nodes added")
    when = identity(time, "as the shares add up to 1", {added: -1 / n, whole: work / n})
    by = {first: 1 / work, when: 1 / work}
    from_first = {each: 1 / work, first: -1 / work}
    return [
        when,
        generalise(identity(shares.relation, "solved", {each: 1 / work}), j, 1, n, "for all nodes"),
        identity(third, "(3), with p_i = r_n - r_i", by),
        generalise(identity(fourth.relation, "(4)", from_first), j, 1, n, "for all nodes"),
    ]


@statement(
    "1.pos",
    "I Theorem 3 and Corollary 1, the missing condition",
    goals=[
        Iff(gt(best_share(n), 0), ROOM),
        Iff(gt(best_share(n), 0), gt(optimum, r(n))),
        ge(best_share(j), best_share(n)),
    ],
    hypotheses=[SORTED, ge(n, j)],
    witness=_nodes,
    status="corrected",
    gap="the last share must be positive: the waits add up to less than sigma (tau + chi)",
    errata=[13],
)
def last_share(condition: Any, free: Any, order: Any, sorted_: Any, inside: Any) -> list[Line]:
    """The last share is the smallest; it is positive iff sum (r_n - r_i) < sigma (tau + chi)."""
    latest = last_is_latest(assume(sorted_, "releases are sorted"))
    later = take(latest, j, "nor is node j", [assume(inside, "which is one of them")])
    return [
        iff(condition.first, condition.second, "times n sigma (tau + chi)", n * work),
        iff(
            free.first,
            free.second,
            "times sigma (tau + chi): the last node is free before the end",
            work,
        ),
        positive(order, "a node that is free later has a smaller share", {later: 1 / work}),
    ]


_more = sp.Symbol("m", integer=True, nonnegative=True)


def last_is_latest(gaps: Line) -> Line:
    """Show that no node is free after the last, if none is free after the next."""
    here = ge(r(j + _more), r(j))
    room = assume(ge(n - j, _more + 1), "so many nodes follow")
    gap = take(gaps, j + _more, "from one node to the next", [room])
    base = positive(here.subs({_more: 0}), "a node and itself")
    step = positive(
        here.subs({_more: _more + 1}), "one more", {assume(here, "assume it"): 1, gap: 1}
    )
    line = induction(here, _more, base, step, "by induction")
    inside = [assume(ge(n, j), "node j is one of them")]
    return generalise(
        substitute(line, {_more: n - j}, "up to the last", inside), j, 1, n, "no node is free later"
    )


_other = sp.Function("x", real=True)
_earlier = sp.Symbol("e'", real=True)
_capacity = sp.Max(_earlier - r(j), 0)
FITS = Every(ge(_capacity, _other(j) * work), j, 1, n)


@statement(
    "1.opt",
    "I Theorem 1",
    goals=[ge(_earlier, optimum)],
    hypotheses=[eq(total(_other, n), 1), FITS, SORTED, ROOM],
    witness={**_nodes, _earlier: 9, _other: lambda index: sp.Rational(1, 3), sigma: 4},
)
def optimal(goal: Any, load: Any, fits: Any, sorted_: Any, room: Any) -> list[Line]:
    """No schedule ends before e of (3), at which all nodes end without inserted idle time."""
    inside = [assume(ge(n, j), "node j is one of them")]
    latest = last_is_latest(assume(sorted_, "releases are sorted"))
    last = take(latest, j, "nor is node j", inside)
    short = assume(room, "the last share is positive")
    before = positive(gt(optimum, r(j)), "so node j is free before e", {last: 1, short: 1 / n})
    early = assume(lt(_earlier, optimum), "suppose another schedule ended earlier, at e'")
    lost = gt(optimum - r(j), _capacity)
    later = assume(ge(_earlier, r(j)), "a node that is free by e'")
    works = extreme(eq(_capacity, _earlier - r(j)), "can work until e'", [later])
    one = positive(lost, "which is less than until e", {works: -1, early: 1})
    not_free = assume(later.claim.negated, "any other node")
    least = positive(ge(0, _earlier - r(j)), "is not free by e'", {not_free: 1})
    none = extreme(eq(_capacity, 0), "and does not work", [least])
    two = positive(lost, "which is less than until e", {none: -1, before: 1})
    less = cases(lost, one, two, later.claim, "so each node can do less than until e")
    each = take(
        assume(fits, "in tau + chi a node receives and computes a unit"), j, "of node j", inside
    )
    strict = positive(
        gt(optimum - r(j), _other(j) * work), "so its share is smaller", {less: 1, each: 1}
    )
    added = add_up(
        generalise(strict, j, 1, n, "for all nodes"), "and all of them are less than the load"
    )
    whole = assume(load, "which they carry")
    false = positive(gt(0, 0), "0 > 0", {added: 1, whole: work})
    return [absurd(goal, false, "so no schedule ends earlier")]


_STARTS = Every(eq(s(j + 1), sp.Max(r(j + 1), s(j) + alpha(j) * sigma * tau)), j, 1, n - 1)
_FIRST = eq(s(1), r(1))
_CONSTRAINT_1 = Every(ge(r(j + 1) - r(j), sigma * tau), j, 1, n - 1)
_CONSTRAINT_2 = Every(ge(r(j + 1) - r(j), alpha(j) * sigma * tau), j, 1, n - 1)
_POSITIVE = Every(gt(alpha(j), 0), j, 1, n)
_NO_IDLE_TIME = Every(eq(s(j), r(j)), j, 1, n)
_apart = {r: lambda index: sp.Integer(2 * index), s: lambda index: sp.Integer(2 * index), sigma: 1}


def _no_idle_time(goal: Every, gap: Any, first: Any, starts: Any) -> Line:
    """Show that every node starts when it is free, if no gap is shorter than the send before."""
    room = assume(ge(n, j + 1), "a node follows")
    free = take(assume(gap, "Constraint 2"), j, "of the next node", [room])
    start = take(
        assume(starts, "a node starts when it is free and the link is"), j, "of the next", [room]
    )
    here = goal.relation
    assumed = assume(here, "assume that a node starts when it is free")
    ready = ge(r(j + 1), s(j) + alpha(j) * sigma * tau)
    sent = positive(ready, "then its send is over before the next is free", {free: 1, assumed: -1})
    release = extreme(eq(sp.Max(*ready.sides), r(j + 1)), "so the release decides", [sent])
    step = identity(
        here.subs({j: j + 1}), "and the next starts when it is free", {start: 1, release: 1}
    )
    base = assume(first, "the first node starts when it is free")
    return generalise(
        induction(here, j, base, step, "no inserted idle time"), j, 1, n, "at any node"
    )


@statement(
    "1.s",
    "I 4.4, start times in the worst case",
    goals=[Every(eq(s(j), r(1) + sigma * tau * total(alpha, j - 1)), j, 1, n)],
    hypotheses=[Every(eq(r(j), r(1)), j, 1, n), _FIRST, _STARTS, Every(ge(alpha(j), 0), j, 1, n)],
    witness={
        r: lambda _: sp.Integer(2),
        alpha: lambda _: sp.Rational(1, 3),
        s: lambda index: 2 + sp.Rational(index - 1),
        w: 2,
        sigma: 3,
    },
)
def worst_case_starts(goal: Any, same: Any, first: Any, starts: Any, shares: Any) -> list[Line]:
    """If all nodes are free together, s_n = r_n + (alpha_1 + ... + alpha_(n-1)) sigma tau."""
    room = assume(ge(n, j + 1), "a node follows")
    here = goal.relation
    all_free = assume(same, "all nodes are free together")
    next_free = take(all_free, j + 1, "the next node", [room])
    sent = add_up(assume(shares, "no share is negative"), "nor is their sum", 1, j, [room])
    start = take(
        assume(starts, "a node starts when it is free and the link is"), j, "of the next", [room]
    )
    assumed = assume(here, "assume it")
    ready = s(j) + alpha(j) * sigma * tau
    busy = positive(
        ge(ready, r(j + 1)),
        "the link is free later than the node",
        {assumed: 1, next_free: -1, sent: sigma * tau},
    )
    link = extreme(eq(sp.Max(r(j + 1), ready), ready), "so the link decides", [busy])
    after = identity(here.subs({j: j + 1}), "and one send more", {start: 1, link: 1, assumed: 1})
    base = identity(
        here.subs({j: 1}), "the first node", {assume(first, "it starts when it is free"): 1}
    )
    return [generalise(induction(here, j, base, after, "by induction"), j, 1, n, "for all nodes")]


@statement(
    "1.T2",
    "I Theorem 2",
    goals=[gt(s(2), r(2))],
    hypotheses=[
        eq(r(1), r(2)),
        eq(s(1), r(1)),
        eq(s(2), sp.Max(r(2), s(1) + alpha(1) * sigma * tau)),
        gt(alpha(1), 0),
    ],
    witness={
        r: lambda _: sp.Integer(2),
        s: lambda index: sp.Integer(1 + index),
        alpha: lambda _: sp.Rational(1, 3),
    },
)
def idle_time_remains(goal: Any, same: Any, first: Any, second: Any, some: Any) -> list[Line]:
    """If two nodes are free together, the second waits for the link, whatever the shares."""
    equal, begin = assume(same, "both are free together"), assume(first, "the first starts at once")
    share = assume(some, "with some share")
    ready = s(1) + alpha(1) * sigma * tau
    why = "its send is over only after that"
    later = positive(gt(ready, r(2)), why, {share: sigma * tau, begin: 1, equal: 1})
    link = extreme(eq(sp.Max(r(2), ready), ready), "so the second waits for the link", [later])
    start = assume(second, "the second starts when it is free and the link is")
    return [positive(goal, "and starts later than it is free", {start: 1, link: 1, later: 1})]


@statement(
    "1.C1C2",
    "I 4.4, Constraints 1 and 2",
    goals=[_CONSTRAINT_2],
    hypotheses=[_CONSTRAINT_1, _POSITIVE, WHOLE_LOAD],
    witness={**_apart, alpha: lambda _: sp.Rational(1, 3), w: 2},
    status="corrected",
    gap="all shares must be positive",
    errata=[14, 16],
)
def constraint_2_is_weaker(goal: Any, first: Any, shares: Any, load: Any) -> list[Line]:
    """If all shares are positive, Constraint 1 implies Constraint 2."""
    room = assume(ge(n - 1, j), "a node follows")
    gap = take(assume(first, "Constraint 1"), j, "of the next node", [room])
    most = at_most_all(
        assume(shares, "all shares are positive"), assume(load, "they add up to 1"), room
    )
    short = positive(goal.relation, "hence Constraint 2", {gap: 1, most: sigma * tau})
    return [generalise(short, j, 1, n - 1, "for all nodes but the last")]


def at_most_all(shares: Line, load: Line, room: Line) -> Line:
    """Show that share j, of shares that are positive and add up to 1, is at most 1."""
    before = add_up(shares, "the shares before node j are not negative", 1, j - 1, [room])
    after = add_up(shares, "nor are those after it", j + 1, n, [room])
    return positive(ge(1, alpha(j)), "so no share exceeds 1", {before: 1, after: 1, load: -1})


@statement(
    "1.C1n",
    "I 4.4, the reach of Constraint 1",
    goals=[gt(w, n * (n - 1) * tau / 2)],
    hypotheses=[_CONSTRAINT_1, ROOM],
    witness={r: lambda index: sp.Integer(index), beta: sp.Rational(9, 10), sigma: 2},
    status="ours",
    errata=[15],
)
def reach_of_constraint_1(goal: Any, first: Any, room: Any) -> list[Line]:
    """Constraint 1 with positive shares needs n (n-1) tau/2 < tau + chi."""
    inside = [assume(ge(n, j + 1), "a node follows")]
    gap = take(assume(first, "Constraint 1"), j, "of the next node", inside)
    apart = ge(j * r(j) - total(r, j), sigma * tau * j * (j - 1) / 2)
    base = positive(apart.subs({j: 1}), "one node does not wait")
    step = positive(
        apart.subs({j: j + 1}), "one node more", {assume(apart, "assume it"): 1, gap: j}
    )
    waited = induction(apart, j, base, step, "each gap is waited for by all nodes before it")
    whole = generalise(waited, j, 1, n, "up to all nodes")
    all_ = take(whole, n, "that is, of n nodes")
    fits = assume(room, "the last share is positive")
    return [positive(goal, "together", {all_: 1 / sigma, fits: 1 / sigma})]


_BY_4 = Every(eq(alpha(j), best_share(j)), j, 1, n)
_ALL_END = Every(eq(s(j) + alpha(j) * work, optimum), j, 1, n)
_OPTIMAL: list[Claim] = [_NO_IDLE_TIME, _ALL_END, ge(_earlier, optimum)]
_SCHEDULE: list[Claim] = [_BY_4, _FIRST, _STARTS, ROOM, eq(total(_other, n), 1), FITS]
_at_constraint_1 = {
    **_apart,
    w: 14,
    beta: sp.Rational(13, 14),
    alpha: lambda index: (sp.Rational(26, 3) - 2 * index) / 14,
    _other: lambda _: sp.Rational(1, 3),
    _earlier: 30,
}


def _ends_and_optimum(ends: Any, no_idle: Line, by_4: Any) -> list[Line]:
    """Show that all nodes end at e, and take from Theorem 1 that none can end earlier."""
    inside = [assume(ge(n, j), "node j is one of them")]
    start = take(no_idle, j, "node j starts when it is free", inside)
    share = take(assume(by_4, "the shares of (3) and (4)"), j, "of node j", inside)
    end_of_node = identity(ends.relation, "its end", {start: 1, share: work})
    (best,) = lemma("1.opt")
    return [no_idle, generalise(end_of_node, j, 1, n, "all nodes end together"), best]


@statement(
    "1.T3",
    "I Theorem 3",
    goals=_OPTIMAL,
    hypotheses=[_CONSTRAINT_1, *_SCHEDULE],
    witness=_at_constraint_1,
    status="corrected",
    gap="the waits must add up to less than sigma (tau + chi)",
    errata=[13],
)
def theorem_3(*claims: Any) -> list[Line]:
    """With Constraint 1 and positive shares, (3) and (4) leave no idle time and are optimal."""
    no_idle, ends, _, first, by_4, begin, starts, room, *_ = claims
    follow = assume(ge(n, j + 1), "a node follows")
    gap = take(assume(first, "Constraint 1"), j, "of the next node", [follow])
    later = positive(ge(r(j + 1), r(j)), "releases are sorted", {gap: 1})
    sorted_ = generalise(discharge_range(later), j, 1, n - 1, "all of them")
    inside = [assume(ge(n, j), "node j is one of them")]
    latest = take(last_is_latest(sorted_), j, "no node is free after the last", inside)
    share = take(assume(by_4, "the shares of (3) and (4)"), j, "of node j", inside)
    fits = assume(room, "the last share is positive")
    some = positive(
        gt(alpha(j), 0), "and so are all", {share: 1, latest: 1 / work, fits: 1 / (n * work)}
    )
    shares = generalise(some, j, 1, n, "of all nodes")
    load = identity(
        WHOLE_LOAD, "they add up to 1", {add_up(assume(by_4, "(3) and (4)"), "added"): 1}
    )
    most = at_most_all(shares, load, follow)
    short = positive(
        ge(r(j + 1) - r(j), alpha(j) * sigma * tau),
        "so Constraint 2 holds",
        {gap: 1, most: sigma * tau},
    )
    constraint_2 = generalise(discharge_range(short), j, 1, n - 1, "for all nodes but the last")
    line = discharge(
        _no_idle_time(no_idle, _CONSTRAINT_2, begin, starts), constraint_2, "Constraint 2 was shown"
    )
    none, together, best = _ends_and_optimum(ends, line, by_4)
    return [none, together, discharge(best, sorted_, "Theorem 1, as releases are sorted")]


def discharge_range(line: Line) -> Line:
    """Write "a node follows" as a range of indices, j = 1..n-1."""
    last = assume(ge(n - 1, j), "j is at most n - 1")
    return discharge(
        line, positive(ge(n, j + 1), "so a node follows", {last: 1}), "with this range"
    )


@statement(
    "1.C2",
    "I Corollary 1",
    goals=_OPTIMAL,
    hypotheses=[_CONSTRAINT_2, SORTED, *_SCHEDULE],
    witness=_at_constraint_1,
    status="corrected",
    gap="the last share must be positive; Constraint 2 is for i = 2..n, as r_0 does not exist",
    errata=[13, 16],
)
def corollary_1(*claims: Any) -> list[Line]:
    """With Constraint 2 and positive shares, (3) and (4) leave no idle time and are optimal."""
    no_idle, ends, _, second, _, by_4, begin, starts, *_ = claims
    return _ends_and_optimum(ends, _no_idle_time(no_idle, second, begin, starts), by_4)


def _shares_of(releases: tuple[int, ...], compute_cost: Fraction) -> list[Fraction]:
    """Return the shares of (3) and (4) for a load of size 1 and tau = 1, in exact numbers."""
    load = 1 + compute_cost
    last = (sum(releases) + load) / Fraction(len(releases))
    return [(last - release) / load for release in releases]


_share_1 = exact_function("alpha", lambda node: _shares_of((0, 5), Fraction(1))[int(node) - 1])
_share_2 = exact_function(
    "alpha", lambda node: _shares_of((0, 1, 9), Fraction(1, 10))[int(node) - 1]
)


@statement(
    "1.T3cex",
    "I Theorem 3, Corollary 1",
    goals=[
        ge(5 - 0, 1),
        ge(5 - 0, _share_1(1)),
        eq(_share_1(1), sp.Rational(7, 4)),
        lt(_share_1(2), 0),
    ],
    status="refuted",
    gap="the last share may be negative",
    errata=[13],
)
def theorem_3_fails(first: Any, second: Any, large: Any, negative: Any) -> list[Line]:
    """As printed Theorem 3 and Corollary 1 fail: sigma = tau = chi = 1, r = (0, 5)."""
    return [
        compute(first, "Constraint 1 holds: r_2 - r_1 >= sigma tau"),
        compute(second, "Constraint 2 holds: r_2 - r_1 >= alpha_1 sigma tau"),
        compute(large, "the first share"),
        compute(negative, "the second share is negative, so there is no such schedule"),
    ]


@statement(
    "1.C1C2cex",
    'I 4.4, "weaker"',
    goals=[
        ge(1 - 0, 1),
        ge(9 - 1, 1),
        eq(_share_2(1), sp.Rational(37, 11)),
        lt(1 - 0, _share_2(1)),
    ],
    status="refuted",
    gap="a share may exceed 1 where another is negative",
    errata=[14],
)
def constraint_2_is_not_weaker(first: Any, second: Any, large: Any, fails: Any) -> list[Line]:
    """Constraint 1 may hold without Constraint 2: sigma = tau = 1, chi = 1/10, r = (0, 1, 9)."""
    return [
        compute(first, "Constraint 1 holds between nodes 1 and 2"),
        compute(second, "and between nodes 2 and 3"),
        compute(large, "the first share is above 1, since the third is negative"),
        compute(fails, "Constraint 2 does not hold: r_2 - r_1 < alpha_1 sigma tau"),
    ]


_rate, _time, _span, _unit, _load = sp.symbols("lambda E T chi SystemLoad", positive=True)
_baseline = exact_function("load", lambda nodes: 2 / (1 - Fraction(100, 101) ** int(nodes)))


@statement(
    "SysLoad",
    "I 5.1, SystemLoad",
    goals=[
        eq(_rate * _span * _time / _span, _rate * _time),
        Iff(eq(_load, _rate * _time), eq(1 / _rate, _time / _load)),
        gt(_baseline(16), sp.Rational(1358, 100)),
        lt(_baseline(16), sp.Rational(1360, 100)),
    ],
    status="corrected",
    gap="SystemLoad is lambda E and 1/lambda is E/SystemLoad; E/chi is 13.59 whatever lambda is",
    errata=[18, 19],
)
def system_load(load: Any, interval: Any, low: Any, high: Any) -> list[Line]:
    """The system load is total tasks times E over the time, that is lambda E."""
    why = "E/chi with N = 16, tau = 1, chi = 100, size 200: the same for every lambda"
    return [
        identity(load, "lambda T tasks arrive in a time T"),
        iff(interval.first, interval.second, "solved for the mean interval", 1 / (_rate * _load)),
        compute(low, why),
        compute(high, why),
    ]

"""Paper M, section 4: one load on n equal nodes, without and with set-up costs.

Lin, Lu, Deogun and Goddard, "Real-Time Divisible Load Scheduling for Cluster Computing"
(UNL-CSE-2005-0014).
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.relations import Every, Iff, Relation, eq, ge, gt, le, lt
from dlsim.theory.statements import lemma, one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, chain, identity, iff, positive
from dlsim.theory.symbols import (
    SC,
    ST,
    Cms,
    Cps,
    Delta,
    alpha,
    alpha_1,
    at_point,
    beta,
    first_share,
    geometric,
    j,
    m,
    n,
    phi,
    share,
    sigma,
    time_formula,
    total,
    w,
)

_cms, _cps = sp.symbols("Cms Cps", positive=True)


def finish(index: Any, sends: Any, setup: Any = 0, start: Any = 0) -> sp.Expr:
    """Return when node `index` ends, if `sends` set-ups of a send come before (4.1)-(4.10)."""
    sent = sends * setup + sigma * Cms * total(alpha, index)
    return sent + start + sigma * Cps * alpha(index)


WHOLE_LOAD = eq(total(alpha, n), 1)
LOAD = assume(WHOLE_LOAD, "the shares are the whole load")


def recurrence(setup: Any) -> Every:
    """Return that each share is beta times the one before, less `setup`."""
    return Every(eq(alpha(j + 1), beta * alpha(j) - setup), j, 1, n - 1)


NEXT_SHARE, NEXT_SHARE_WITH_SETUP = (
    assume(recurrence(setup), "each share follows from the one before") for setup in (0, phi)
)


def sum_of_shares(count: sp.Symbol, first: Any, setup: Any) -> Line:
    """Show the sum of so many shares, by the first one."""
    closed = first * geometric(count) - setup * (count - geometric(count)) / (1 - beta)
    terms = total(lambda index: share(index, first, setup), count)
    return steps.show_inductively(eq(terms, closed), count, "the sum of the shares")


def sum_to_1(claim: Relation, why: str, shares: Line, setup: Any) -> Line:
    """Show the first share by all shares added, which are the load."""
    scale = 1 / geometric(n)
    added, closed = add_up(shares, "all shares added"), sum_of_shares(n, alpha(1), setup)
    return identity(claim, why, {LOAD: scale, added: -scale, closed: -scale})


_EQUAL_FINISH = (
    "line j less line j+1 is sigma w (alpha_(j+1) - beta alpha_j) with the sign changed",
    -1 / (sigma * w),
)
one_step_statement(
    "4.5",
    "Two nodes end together if and only if the later share is beta times the one before.",
    {
        eq(at_point(_cps / (_cms + _cps), {_cms: Cms, _cps: Cps}), beta): (
            "Cps/(Cms + Cps), with w = Cms + Cps"
        ),
        Iff(eq(finish(1, 0), finish(2, 0)), eq(alpha(2), beta * alpha(1))): _EQUAL_FINISH,
        Iff(eq(finish(j, 0), finish(j + 1, 0)), eq(alpha(j + 1), beta * alpha(j))): _EQUAL_FINISH,
    },
)


@statement("4.1-4.4", [NEXT_SHARE, LOAD])
def show_shares_without_setup(
    solved: Any = Every(eq(alpha(j), beta ** (j - 1) * alpha(1)), j, 1, n),
    first: Any = eq(alpha(1), (1 - beta) / (1 - beta**n)),
    most: Any = le(alpha(1), 1),
) -> list[Line]:
    """The shares are alpha_j = beta^(j-1) alpha_1 and alpha_1 = (1 - beta)/(1 - beta^n)."""
    shares = steps.show_inductively(solved, j, "by induction", {NEXT_SHARE: 1}, times=beta)
    first_of_n = sum_to_1(first, "their sum is 1", shares, 0)
    why = "where n = 1 a single node takes all"
    return [shares, first_of_n, positive(most, why, {first_of_n: -1})]


def ends_of_nodes(setup: Any, start: Any) -> Relation:
    """Return that node j of n ends at E, with the shares written out."""
    first = first_share(n, setup)
    sent = total(lambda index: share(index, first, setup), j)
    time = setup * sigma * w
    end = j * time + start + sigma * Cms * sent + sigma * Cps * share(j, first, setup)
    return eq(end, time_formula(n, setup, start))


def show_ends(claim: Relation, setup: Any) -> Line:
    """Show that node j of n ends at E: the sends by induction, then one identity."""
    sent = sum_of_shares(j, first_share(n, setup), setup)
    return identity(claim, "every node ends at E", {sent: sigma * Cms})


@statement("E(n)")
def show_ends_without_setup(claim: Any = ends_of_nodes(0, 0)) -> list[Line]:
    """Without set-up cost every node ends at E = (1 - beta)/(1 - beta^n) sigma (Cms + Cps)."""
    return [show_ends(claim, 0)]


BARE = time_formula(n, 0, 0)
GAMMA = 1 - sigma * Cms / Delta
MEETS = Iff(le(BARE, Delta), le(beta**n, GAMMA))

one_step_statement(
    "4.6g",
    "E(n) <= Delta = A + D - s if and only if beta^n <= gamma = 1 - sigma Cms/Delta.",
    {
        eq((1 - beta) * sigma * (Cms + Cps), sigma * Cms): "with beta = Cps/(Cms + Cps)",
        MEETS: ("times (1 - beta^n)/Delta, which is positive", (1 - beta**n) / Delta),
    },
)

REAL_N_MIN = sp.log(GAMMA) / sp.log(beta)
POSSIBLE = assume(gt(GAMMA, 0), "gamma > 0: the load can be sent before the deadline")


@statement("n_min", [POSSIBLE])
def show_fewest_nodes(
    meets: Any = Iff(le(BARE, Delta), ge(n, sp.ceiling(REAL_N_MIN))),
    least: Any = ge(sp.ceiling(REAL_N_MIN), 1),
) -> list[Line]:
    """The fewest nodes that meet a deadline are n_min = ceiling(ln gamma/ln beta), at least 1."""
    _, powers = lemma("4.6g")
    facts, by_log = [POSSIBLE], -1 / sp.log(beta)
    logs = steps.logarithm(le(beta**n, GAMMA), "the logarithm increases", facts)
    solved = Iff(logs.claim.second, ge(n, REAL_N_MIN))
    divided = iff(solved, "divided by ln beta < 0", by_log, facts)
    counts = steps.ceiling(n, REAL_N_MIN, "n is a whole number", facts)
    below = positive(lt(GAMMA, 1), "gamma < 1, since it takes time to send")
    same = steps.logarithm(below.claim, "the logarithm increases", facts)
    negative = steps.follows(same, below, "so ln gamma < 0")
    ratio = positive(gt(REAL_N_MIN, 0), "a quotient of negatives", {negative: by_log}, facts)
    up, _ = steps.rounding(sp.ceiling(REAL_N_MIN), facts)
    above = gt(sp.ceiling(REAL_N_MIN), 0)
    above_zero = positive(above, "so the ceiling is positive", {up: 1, ratio: 1}, facts)
    why = "so n_min is the least whole number that meets the deadline"
    return [
        chain(why, powers, logs, divided, counts),
        steps.sharpen(least, "and at least 1", above_zero),
    ]


IMPOSSIBLE = assume(le(GAMMA, 0), "gamma is not positive")

one_step_statement(
    "4.6inf",
    "No number of nodes is faster than sending; if gamma <= 0 none meets the deadline.",
    {
        gt(BARE, sigma * Cms): "beta^n > 0",
        gt(BARE, Delta): ("so the load cannot even be sent in time", {IMPOSSIBLE: Delta}),
    },
    [IMPOSSIBLE],
)

one_step_statement(
    "4.7-4.10",
    "With set-up cost two nodes end together if and only if alpha_(j+1) = beta alpha_j - phi.",
    {
        Iff(
            eq(finish(j, j, ST, SC), finish(j + 1, j + 1, ST, SC)),
            eq(alpha(j + 1), beta * alpha(j) - phi),
        ): ("line j less line j+1", -1 / (sigma * w)),
        Iff(
            eq(finish(n, n, ST, SC), finish(n + 1, n, ST, SC)), eq(alpha(n + 1), beta * alpha(n))
        ): ("with the printed last line", -1 / (sigma * w)),
    },
)


@statement("4.11r", [NEXT_SHARE_WITH_SETUP])
def show_shares_with_setup(
    solved: Any = Every(eq(alpha(j), share(j, alpha(1))), j, 1, n),
    powers: Any = eq(total(lambda power: beta**power * phi, j - 2, 0), geometric(j - 1) * phi),
) -> list[Line]:
    """The shares are alpha_j = alpha_1 beta^(j-1) - phi (1 - beta^(j-1))/(1 - beta)."""
    by = {NEXT_SHARE_WITH_SETUP: 1}
    shares = steps.show_inductively(solved, j, "by induction", by, times=beta)
    return [shares, steps.show_inductively(powers, j, "the printed sum of powers")]


CLOSED = alpha_1 * geometric(n) - phi * (n - geometric(n)) / (1 - beta)


@statement("4.12", [NEXT_SHARE_WITH_SETUP, LOAD])
def show_first_share_with_setup(
    first: Any = eq(alpha(1), first_share(n)),
    only: Any = Iff(eq(CLOSED, 1), eq(alpha_1, first_share(n))),
) -> list[Line]:
    """The shares add up to 1 for alpha_1 = B(n), and for no other first share."""
    shares, _ = lemma("4.11r")
    why = "the sum is linear in alpha_1 with slope G_n > 0"
    return [
        sum_to_1(first, "solved for the first share", shares, phi),
        steps.solves(only.first, alpha_1, first_share(n), why),
    ]


@statement("4.12G")
def show_first_share_by_sums(
    claim: Any = eq(first_share(n), (1 + phi * total(geometric, n - 1)) / geometric(n)),
) -> list[Line]:
    """B(n) = (1 + phi (G_1 + ... + G_(n-1)))/G_n, in which no digits cancel."""
    added = eq(total(geometric, n - 1), (n - geometric(n)) / (1 - beta))
    closed = steps.show_inductively(added, n, "the sum of the G_i")
    return [identity(claim, "this sum put into (4.12)", {closed: -phi / geometric(n)})]


@statement("4.12fin")
def show_ends_with_setup(claim: Any = ends_of_nodes(phi, SC)) -> list[Line]:
    """With set-up cost every node ends at E = ST + SC + sigma (Cms + Cps) B(n)."""
    return [show_ends(claim, phi)]


_WITHOUT_SETUP = at_point(time_formula(n), {phi: 0, SC: 0})

one_step_statement(
    "4.13->4.6",
    "With ST = SC = 0, and so phi = 0, constraint (4.13) is constraint (4.6).",
    {
        eq(_WITHOUT_SETUP, sigma * w * (1 - beta) / (1 - beta**n)): "(4.13) without set-up costs",
        eq(at_point(share(j, alpha_1), {phi: 0}), beta ** (j - 1) * alpha_1): (
            "and the shares of 4.2 are those of 4.1"
        ),
    },
)

_BUDGET = sp.Rational(219, 400)


def _example(count: Any) -> sp.Expr:
    return at_point(first_share(n), {n: count, beta: sp.Rational(1, 2), phi: sp.Rational(1, 100)})


_MORE_THAN_POWERS = steps.show_inductively(
    ge(n, geometric(n)), n, "n >= 1 + beta + ... + beta^(n-1)"
)
one_step_statement(
    "4.13",
    "A real number of nodes may meet a deadline that no whole one meets.",
    {
        gt(time_formula(n), ST + SC + sigma * Cms): (
            "B(n) > 1 - beta, so no number of nodes gets below this",
            {_MORE_THAN_POWERS: sigma * w * phi / (1 - beta**n)},
        ),
        lt(_example(sp.Rational(21, 4)), _BUDGET): "21/4 nodes would meet the budget",
        **{gt(_example(count), _BUDGET): "but this whole number does not" for count in range(1, 7)},
        gt(_example(m + 6), _BUDGET): "nor does any larger one",
    },
)

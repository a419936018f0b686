"""What bounds every schedule; `dlsim.realtime.bound` computes with these statements.

They are ours: the papers compare heuristics with each other only.
"""

from typing import Any

import sympy as sp

from dlsim.theory.paper_m import WHOLE_LOAD
from dlsim.theory.relations import Every, eq, ge, gt
from dlsim.theory.statements import lemma, statement
from dlsim.theory.steps import Line, add_up, assume, identity, induction, positive, substitute, sums
from dlsim.theory.symbols import SC, ST, alpha, cost, j, k, m, n, sigma, total, w

K = sp.Symbol("K", integer=True, positive=True)
#: Price, free node time and used node time of an interval.
price, free, used = (sp.Function(name, nonnegative=True) for name in "ufx")
worth, least, beyond = sp.symbols("V m Z", nonnegative=True)
need = sp.Symbol("P", positive=True)
part = sp.Symbol("a", nonnegative=True)


@statement(
    "Y.price",
    "the bound on what any schedule admits: one task",
    goals=[ge(beyond + total(lambda i: price(i) * used(i), K), worth * part)],
    hypotheses=[
        ge(1, part),
        ge(beyond, worth - need * least),
        Every(ge((price(k) - least) * used(k), 0), k, 1, K),
        ge(total(used, K), need * part),
    ],
    witness={
        K: 3,
        part: 1,
        beyond: 2,
        worth: 5,
        need: 3,
        least: 1,
        price: lambda _: sp.Integer(1),
        used: lambda _: sp.Integer(1),
    },
    status="ours",
)
def price_of_a_task(goal: Any, some: Any, over: Any, dear: Any, enough: Any) -> list[Line]:
    """A task is worth no more than the node time that it uses, at any prices, and a rest."""
    paid = add_up(
        assume(dear, "where a task uses nodes, they cost at least m"), "added over all intervals"
    )
    by = {
        assume(some, "a task is admitted at most once"): beyond,
        assume(over, "what it is worth beyond the cheapest node time it needs"): part,
        paid: 1,
        assume(enough, "it gets the node time that it needs"): least,
    }
    return [positive(goal, "so it pays for what it is worth", by)]


gain, rest, held = (sp.Function(name, nonnegative=True) for name in "vzF")


@statement(
    "Y.sum",
    "the bound on what any schedule admits: all tasks",
    goals=[ge(held(1) + total(rest, n), total(gain, n))],
    hypotheses=[Every(ge(rest(j) + held(j) - held(j + 1), gain(j)), j, 1, n)],
    witness={
        held: lambda i: 9 - sp.Integer(i),
        rest: lambda _: sp.Integer(1),
        gain: lambda _: sp.Integer(2),
    },
    status="ours",
)
def prices_of_all(goal: Any, each: Any) -> list[Line]:
    """All admitted tasks are worth at most the free node time at these prices, and the rests."""
    added = add_up(
        assume(each, "each task by Y.price; F_j is what is free before task j"), "all tasks added"
    )
    change = total(lambda i: held(i) - held(i + 1), n)
    cancel = sums(eq(change, held(1) - held(n + 1)), n, "the values before and after cancel")
    return [positive(goal, "and what is left at the end is not negative", {added: 1, cancel: -1})]


@statement(
    "Y.floor",
    "the least node time of a task",
    goals=[
        eq(total(lambda i: ST + SC + alpha(i) * sigma * w, n), sigma * w + n * (ST + SC)),
        gt(cost(n + m), cost(n)),
    ],
    hypotheses=[WHOLE_LOAD],
    witness={alpha: lambda _: sp.Rational(1, 3)},
    status="ours",
)
def least_node_time(time: Any, more: Any, load: Any) -> list[Line]:
    """A task needs node time sigma w + n (ST + SC); n E(n) if its nodes are kept together."""
    carried = assume(load, "the whole load, in one round")
    (step,) = lemma("5.3")
    first = substitute(step, {k: n}, "one node more costs more")
    further = substitute(step, {k: n + m}, "and so on")
    second = positive(more.subs({m: m + 1}), "one more", {further: 1, assume(more, "assume it"): 1})
    return [
        identity(time, "each node sends and computes its share", {carried: sigma * w}),
        induction(more, m, first, second, "any number of nodes more"),
    ]

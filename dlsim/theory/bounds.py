"""What bounds every schedule; `dlsim.realtime.bound` computes with these statements.

They are ours: the papers compare heuristics with each other only.
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.paper_m import LOAD
from dlsim.theory.relations import Every, eq, ge, gt
from dlsim.theory.statements import lemma, one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, identity, positive, substitute
from dlsim.theory.symbols import SC, ST, alpha, cost, j, k, m, n, sigma, total, w

K = sp.Symbol("K", integer=True, positive=True)
#: Price, free node time and used node time of an interval.
price, used = (sp.Function(name, nonnegative=True) for name in "ux")
worth, least, beyond = sp.symbols("V m Z", nonnegative=True)
need = sp.Symbol("P", positive=True)
part = sp.Symbol("a", nonnegative=True)
_ONCE = assume(ge(1, part), "a task is admitted at most once")
_BEYOND = assume(ge(beyond, worth - need * least), "Z is its worth beyond its cheapest node time")
_PRICE = assume(
    Every(ge((price(k) - least) * used(k), 0), k, 1, K), "used nodes have a price of at least m"
)
_ENOUGH = assume(ge(total(used, K), need * part), "it gets the node time that it needs")

_PAID = add_up(_PRICE, "added over all intervals")
one_step_statement(
    "Y.price",
    "A task is worth no more than the node time that it uses, at any prices, and a rest.",
    {
        ge(beyond + total(lambda i: price(i) * used(i), K), worth * part): (
            "so it pays for what it is worth",
            {_ONCE: beyond, _BEYOND: part, _PAID: 1, _ENOUGH: least},
        )
    },
    [_ONCE, _BEYOND, _PRICE, _ENOUGH],
)

#: Worth and rest of task j, and F_j, the worth of the node time that is free before it.
gain, rest, held = (sp.Function(name, nonnegative=True) for name in "vzF")
_EACH = assume(
    Every(ge(rest(j) + held(j) - held(j + 1), gain(j)), j, 1, n), "Y.price for each task"
)


@statement("Y.sum", [_EACH])
def show_prices_of_all(goal: Any = ge(held(1) + total(rest, n), total(gain, n))) -> list[Line]:
    """All admitted tasks are worth at most the free node time at these prices, and the rests."""
    both_ends = eq(total(lambda i: held(i) - held(i + 1), n), held(1) - held(n + 1))
    cancel = steps.show_inductively(both_ends, n, "the values before and after cancel")
    by = {add_up(_EACH, "added over all tasks"): 1, cancel: -1}
    return [positive(goal, "and what is left at the end is not negative", by)]


@statement("Y.floor", [LOAD])
def show_least_node_time(
    time: Any = eq(total(lambda i: ST + SC + alpha(i) * sigma * w, n), sigma * w + n * (ST + SC)),
    more: Any = gt(cost(n + m), cost(n)),
) -> list[Line]:
    """A task needs node time sigma w + n (ST + SC); n E(n) if its nodes are kept together."""
    (step,) = lemma("5.3")
    first = substitute(step, {k: n}, "one node more costs more")
    further = substitute(step, {k: n + m}, "and so does one node more than that")
    any_more = steps.show_inductively(
        more, m, "any number of nodes more", {further: 1}, first={first: 1}
    )
    return [identity(time, "each node sends and computes its share", {LOAD: sigma * w}), any_more]

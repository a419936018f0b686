"""Functions of a user (an order, a number of nodes, a partition) as the core calls them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.execution_times import TimeTable
from dlsim.realtime.model import RULES, Policy, StateView, TaskView
from dlsim.validate import Floats


class UserRules(NamedTuple):
    """Functions of a user as the core calls them, and the first error of one of them."""

    rules: Any  # by RULES, the function or None; an array of 0 without any function
    error_record: (
        Floats  # place in RULES + 1, task, time or size, number of nodes, what was returned
    )


#: Exceptions that functions of a user have raised, until they are raised again.
RAISED: list[BaseException] = []


def _views(rules: Any, table: TimeTable, idle: int, waiting: int) -> StateView:
    """Return the view of the cluster that a user's function gets."""
    return StateView(
        int(idle),
        int(waiting),
        rules.nodes,
        rules.cms,
        rules.cps,
        rules.st,
        rules.sc,
        table.time_per_unit,
        table.setup_time,
        table.dc_slope,
        table.dc_offset,
    )


def _ask(function: Callable[..., Any], *given: Any) -> Floats:
    """Call a user's function; store an exception, which is raised later together with its task."""
    try:
        return np.array(function(*given), dtype=np.float64, ndmin=1).ravel()
    except BaseException as error:
        RAISED.append(error)
        return np.full(1, np.nan)


def _as_rule(kind: str, function: Callable[..., Any]) -> Callable[..., float]:
    """Return a user's function in the form that the core calls; it returns NaN if it fails."""

    def ask(
        row: int,
        n: int,
        t: float,
        fewest: int,
        idle: int,
        waiting: int,
        tasks: Any,
        rules: Any,
        table: TimeTable,
    ) -> float:
        one = tasks[row]
        arrival, sigma, due = float(one.arrival), float(one.sigma), float(one.due)
        task = TaskView(arrival, sigma, due - arrival, due, int(one.requested), fewest)
        state = _views(rules, table, idle, waiting)
        found = _ask(function, task, *([int(n)] if kind == "order" else []), float(t), state)
        if len(found) != 1:
            RAISED.append(ValueError("can only convert an array of size 1 to a number"))
            return math.nan
        return float(found[0])

    def share(
        sigma: float, release: Floats, n: int, rules: Any, table: TimeTable, out: Floats, base: int
    ) -> float:
        found = _ask(function, float(sigma), release[:n].copy(), _views(rules, table, n, 0))
        if len(found) != n:
            return math.nan
        out[base : base + n, 0] = found
        return math.fsum(found) if found.min() > 0 else math.nan

    return share if kind == "partition" else ask


def wrap_user_rules(policy: Policy) -> UserRules:
    """Return the functions of a policy as the uncompiled core calls them; for none, zeros."""
    if not policy.has_user_rules:
        return UserRules(np.zeros(len(RULES), dtype=np.int64), np.zeros(5))
    RAISED.clear()
    own = (policy.is_timed and policy.order_key, policy.nodes, policy.partition)
    rules = [
        _as_rule(kind, one) if callable(one) else None for kind, one in zip(RULES, own, strict=True)
    ]
    return UserRules(rules, np.zeros(5))


def raise_rule_error(own: UserRules, policy: Policy, labels: Any, release: Floats) -> None:
    """Raise InputError for the first error of a user's function, if there was one."""
    if not own.error_record[0]:
        return
    kind = list(RULES)[int(own.error_record[0]) - 1]
    function, (names, returns) = getattr(policy, kind), RULES[kind]
    if kind == "order":
        function = policy.order_key
    name, task = getattr(function, "__name__", kind), labels[int(own.error_record[1])]
    n, found = int(own.error_record[3]), own.error_record[4]
    if RAISED and not isinstance(RAISED[0], Exception):
        raise RAISED[0]
    got: Any = f"{found:g}"
    if RAISED:
        got = f"{type(RAISED[0]).__name__}: {RAISED[0]}"
    elif kind == "partition":
        got = f"shares with the sum {found:g}" if found == found else "something else"
        got += f" for {n} nodes released at {np.round(release[:n], 6).tolist()[:8]}"
    where = f"for task {task!r}" + (f" at {own.error_record[2]:g}" if kind != "partition" else "")
    raise InputError(
        f"{kind} function {name}({', '.join(names)}) must return {returns}; {where} it gave {got}"
    ) from (RAISED[0] if RAISED else None)


def label_policies(given: Any, known: Sequence[str]) -> dict[str, Policy]:
    """Return a user's policies by their labels, which stand for those of `known` or beside them.

    Given are policies, names of them, or ``LABEL=policy``, or a mapping of labels to these.
    """
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise InputError(f"policies must be a list or a mapping of labels, got {given!r}")
    rows = given.items() if isinstance(given, Mapping) else ((None, one) for one in given)
    chosen: dict[str, Policy] = {}
    for label, one in rows:
        if label is None and isinstance(one, str) and "=" in one:
            label, _, one = one.partition("=")
        name, policy = model.find_policy(one)
        label = label or name
        if not isinstance(label, str) or label in chosen:
            raise InputError(f"policy {label!r} must have a label of its own; name it LABEL=policy")
        if label in known and policy.admission != model.POLICIES[label].admission:
            raise InputError(
                f"policy {name} cannot stand for {label}: one has admission control, one has not; "
                "choose another label"
            )
        chosen[label] = policy
    return chosen

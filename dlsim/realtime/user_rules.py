"""Functions of a user (an order, a number of nodes, a partition) as the core calls them."""

import math
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import InputError
from dlsim.realtime.formulas import TimeTable
from dlsim.realtime.model import RULES, Policy, StateView, TaskView
from dlsim.validate import Floats, unwrap_scalar

#: By how much the sum of a user's shares may miss 1.
SHARES_TOL = 1e-9


class UserFunction(NamedTuple):
    """A function of a user, and the labels of the tasks that it is asked about."""

    kind: str  # of RULES
    function: Callable[..., Any]
    labels: Any

    def call(self, row: int, at: float | Floats, *given: Any) -> tuple[Any, Floats]:
        """Call the function; return what it gave, and that as floats."""
        try:
            found = self.function(*given)
        except Exception as error:
            raise InputError(
                f"{self._signature()}, called {self._occasion(row, at)}, raised "
                f"{type(error).__name__}: {error}"
            ) from error
        try:
            return found, np.array(found, dtype=np.float64, ndmin=1).ravel()
        except Exception as error:
            raise self.refusal(row, at, reprlib.repr(found)) from error

    def refusal(self, row: int, at: float | Floats, got: str) -> InputError:
        """Return the error for a value that the function must not return."""
        rule = f"{self._signature()} must return {RULES[self.kind][1]}"
        return InputError(f"{rule}; {self._occasion(row, at)} it gave {got}")

    def _signature(self) -> str:
        name = getattr(self.function, "__name__", self.kind)
        return f"{self.kind} function {name}({', '.join(RULES[self.kind][0])})"

    def _occasion(self, row: int, at: float | Floats) -> str:
        """Name the task, and the instant or the release times of its nodes."""
        if isinstance(at, float):
            where = f"at {at:g}"
        else:
            where = f"on {len(at)} nodes released at {np.round(at[:8], 6).tolist()}"
        return f"for task {unwrap_scalar(self.labels[row])!r} {where}"


def _state_view(rules: Any, table: TimeTable, idle: int, waiting: int) -> StateView:
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


def _number_rule(user: UserFunction) -> Callable[..., float]:
    """Return a user's order or number of nodes in the form that the core calls."""

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
        nodes = [int(n)] if user.kind == "order" else []
        now, state = float(t), _state_view(rules, table, idle, waiting)
        given, found = user.call(row, now, task, *nodes, now, state)
        value = float(found[0]) if len(found) == 1 else math.nan
        is_valid = not math.isnan(value)
        if user.kind == "nodes":
            is_valid = 0 <= value <= rules.nodes and value == math.floor(value)
        if not is_valid:
            raise user.refusal(row, now, reprlib.repr(unwrap_scalar(given)))
        return value

    return ask


def _share_rule(user: UserFunction) -> Callable[..., Floats]:
    """Return a user's partition in the form that the core calls."""

    def share(
        row: int, sigma: float, release: Floats, n: int, rules: Any, table: TimeTable
    ) -> Floats:
        released = release[:n].copy()
        state = _state_view(rules, table, n, 0)
        given, found = user.call(row, released, float(sigma), released, state)
        if len(found) != n or not found.min() > 0:
            raise user.refusal(row, released, reprlib.repr(given))
        total = math.fsum(found)
        if not abs(total - 1) <= SHARES_TOL:
            raise user.refusal(row, released, f"shares with the sum {total:g}")
        return found / total

    return share


def wrap_user_rules(policy: Policy, labels: Any) -> list[Callable[..., Any] | None]:
    """Return the functions of a policy as the uncompiled core calls them, by the places of RULES.

    They raise InputError, with the label of the task, where a user's function raises an exception
    or returns what it must not.
    """
    functions = (policy.is_timed and policy.order_key, policy.nodes, policy.partition)
    wrappers = (_number_rule, _number_rule, _share_rule)
    return [
        wrap(UserFunction(kind, function, labels)) if callable(function) else None
        for kind, function, wrap in zip(RULES, functions, wrappers, strict=True)
    ]

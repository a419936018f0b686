"""A policy under a reading as the core takes it, and the split of one load (papers M and I)."""

import functools
import math
import reprlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dlsim.compiled import CORES, time_offset, zero_recarray
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.core import nodes as node_rules
from dlsim.realtime.core import orders, splits
from dlsim.realtime.formulas import SIZE, TimeTable, time_table
from dlsim.realtime.model import MOST_ROUNDS, RULES, SPLIT_KINDS, Cluster, Policy, Reading, TaskView
from dlsim.user_code import UserFunction
from dlsim.validate import Floats, instance, number, unwrap_scalar

#: By how much the sum of a user's shares may miss 1.
SHARES_TOL = 1e-9


def core_for(policy: Policy, engine: str, tasks: int) -> AbstractContextManager[SimpleNamespace]:
    """Return the modules of the core, compiled or not, for a run of `tasks` tasks."""
    return CORES["realtime"].at_speed(engine, tasks, policy.has_user_rules)


# --- functions of a user, as the core calls them


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
        now, state = float(t), model.state_view(rules, table, idle, waiting)
        at_instant = functools.partial("at {:g}".format, now)
        given, found = user.call(row, at_instant, task, *nodes, now, state)
        value = float(found[0]) if len(found) == 1 else math.nan
        is_valid = not math.isnan(value)
        if user.kind == "nodes":
            is_valid = 0 <= value <= rules.nodes and value == math.floor(value)
        if not is_valid:
            raise user.refusal(row, at_instant, reprlib.repr(unwrap_scalar(given)))
        return value

    return ask


def _say_releases(released: Floats) -> str:
    """Name the release times of the nodes of a task, the first eight of them."""
    return f"on {len(released)} nodes released at {np.round(released[:8], 6).tolist()}"


def _share_rule(user: UserFunction) -> Callable[..., Floats]:
    """Return a user's partition in the form that the core calls."""

    def share(
        row: int, sigma: float, release: Floats, n: int, rules: Any, table: TimeTable
    ) -> Floats:
        released = release[:n].copy()
        state = model.state_view(rules, table, n, 0)
        on_nodes = functools.partial(_say_releases, released)
        given, found = user.call(row, on_nodes, float(sigma), released, state)
        if len(found) != n or not found.min() > 0:
            raise user.refusal(row, on_nodes, reprlib.repr(given))
        total = math.fsum(found)
        if not abs(total - 1) <= SHARES_TOL:
            raise user.refusal(row, on_nodes, f"shares with the sum {total:g}")
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
        wrap(UserFunction(kind, *RULES[kind], function, "task", labels))
        if callable(function)
        else None
        for kind, function, wrap in zip(RULES, functions, wrappers, strict=True)
    ]


# --- the rules of a run


class Rules:
    """A policy under a reading on a cluster, by the names of `core.state.RULE_RECORD`.

    Each flag is computed once, at its first use. `labels` are those of the tasks; errors of a
    user's functions name them.
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        reading: Reading,
        negotiate: float = 0.0,
        offers: bool = False,
        labels: Any = (),
    ) -> None:
        self.policy, self.reading = policy, reading
        self.switches = reading.rules()
        settled_here = ("strict", "frozen")
        vars(self).update({k: v for k, v in self.switches.items() if k not in settled_here})
        costs = (cluster.cms, cluster.cps, cluster.st, cluster.sc)
        self.cms, self.cps, self.st, self.sc = (float(cost) for cost in costs)
        self.send_part = self.cms / (self.cms + self.cps)
        self.nodes = int(cluster.nodes)
        self.negotiate, self.offers = float(negotiate), offers
        self.rounds = 0 if policy.rounds == "best" else int(policy.rounds)
        self.has_user_rules = policy.has_user_rules
        self.all_nodes = policy.nodes == "all"
        self.user = wrap_user_rules(policy, labels)

    # --- codes of the core

    @functools.cached_property
    def order(self) -> int:
        """The code of the order in `dlsim.realtime.core.orders`."""
        if self.policy.order_key is not None:
            return orders.USER_ORDER if self.policy.is_timed else orders.STATIC_ORDER
        return model.CORE_ORDERS[model.ORDERS[str(self.policy.order)].key]

    @functools.cached_property
    def node_rule(self) -> int:
        """The code of the rule for nodes in `dlsim.realtime.core.nodes`."""
        if callable(self.policy.nodes):
            return node_rules.USER_NODES
        code = model.NODE_RULES[self.policy.nodes].code
        if code != node_rules.FEWEST:
            return code
        if callable(self.policy.partition):
            return node_rules.FEWEST_BY_SHARES
        return model.PARTITIONS[self.policy.partition].fewest

    @functools.cached_property
    def partition(self) -> int:
        """The code of the partition in `dlsim.realtime.core.splits`."""
        if callable(self.policy.partition):
            return splits.BY_USER
        return model.PARTITIONS[self.policy.partition].code

    # --- the order of service

    @functools.cached_property
    def may_pass(self) -> bool:
        """Whether a task that fits may pass one that does not."""
        return self.policy.overtake or self.reading.backfill == "on"

    @functools.cached_property
    def strict(self) -> bool:
        """Whether a task that does not fit is waited for."""
        return self.switches["strict"] or self.all_nodes or not self.may_pass

    @functools.cached_property
    def in_line(self) -> bool:
        """Whether tasks are planned one behind another, not all at every instant."""
        has_line = self.has_user_rules or self.policy.nodes in ("all", "fragment")
        is_single_start = not self.strict and self.policy.partition == "opr"
        return has_line or not (self.policy.order == "dc" or is_single_start)

    @functools.cached_property
    def tested_in_line(self) -> bool:
        """Whether a newcomer is tested from its place in the line on."""
        return self.in_line and self.strict and not self.has_user_rules

    @functools.cached_property
    def ranks_change(self) -> bool:
        """Whether ranks change with time."""
        return self.order in (orders.MCDF_ORDER, orders.USER_ORDER)

    # --- the number of nodes

    @functools.cached_property
    def frozen(self) -> bool:
        """Whether n_min at the arrival is kept."""
        return self.switches["frozen"] and not self.all_nodes

    @functools.cached_property
    def nodes_at_arrival(self) -> bool:
        """Whether the number of nodes is known at the arrival, whatever the plan."""
        return self.node_rule in (node_rules.EVERY_NODE, node_rules.REQUESTED)

    @functools.cached_property
    def fixed_nodes(self) -> bool:
        """Whether a task keeps the number of nodes of its arrival."""
        return self.nodes_at_arrival or self.frozen

    @functools.cached_property
    def n_min_at_arrival(self) -> bool:
        """Whether a rule asks for n_min at the arrival."""
        by_policy: bool = self.switches["by_policy"]
        return self.fixed_nodes or self.ranks_change or self.in_rounds or by_policy

    @functools.cached_property
    def asks_user(self) -> bool:
        """Whether a user's function decides the number of nodes."""
        return self.node_rule in (node_rules.USER_NODES, node_rules.FEWEST_BY_SHARES)

    # --- the split of a load

    @functools.cached_property
    def in_rounds(self) -> bool:
        """Whether a node gets several chunks of a task."""
        return self.policy.partition in model.IN_ROUNDS

    @functools.cached_property
    def from_one_instant(self) -> bool:
        """Whether all nodes of a task start together."""
        return self.policy.partition in model.STARTS_TOGETHER

    @functools.cached_property
    def ends_by_chunks(self) -> bool:
        """Whether the estimate of a task is the end of its chunks."""
        pieces_share_link = self.partition == splits.BY_PIECES and self.switches["shared"]
        asks = self.node_rule == node_rules.USER_NODES or self.partition == splits.BY_USER
        return asks or pieces_share_link


# --- one load


class LoadSplit(NamedTuple):
    """How one load is split.

    Attributes
    ----------
    kind : str
        What it was split by, one of `dlsim.realtime.model.SPLIT_KINDS`: under partitions I
        and II "equal finish" where the constraint holds, else "remodel".
    release : ndarray of float, shape (n,)
        Release times of the nodes that serve, ascending.
    alpha, send_start, send_end, compute_end : ndarray of float, shape (n,) or (rounds, n)
        Shares and times as they really happen.
    estimate, completion : float
        Completion as planned, and the last `compute_end`; never after it.
    """

    kind: str
    release: Floats
    alpha: Floats
    send_start: Floats
    send_end: Floats
    compute_end: Floats
    estimate: float
    completion: float


def split_load(
    sigma: float,
    release: Sequence[float],
    cluster: Cluster,
    partition: str | Callable[..., Any] = "exact",
    rounds: int | str = 1,
) -> LoadSplit:
    """Split one load over nodes that become free at given times.

    Parameters
    ----------
    sigma : float
        Data size.
    release : sequence of float, shape (n,)
        When each node is released, in any order; 1 <= n <= N.
    cluster : Cluster
        Costs of the cluster.
    partition : str or callable
        One of `PARTITIONS`; ``exact-n`` is ``exact`` here, the nodes being given. Or a function, as
        for a `Policy`.
    rounds : int or "best"
        Of the multi-round partitions.

    Returns
    -------
    LoadSplit
        Shares and times by node, in order of release.

    Raises
    ------
    InputError
        For a size that is not positive, times that are not finite, more nodes than N, a
        partition that the cluster has no use for, or one that gives a share that is not
        positive.

    References
    ----------
    Paper I, eqs. (2)-(4) and Constraints 1, 2; [6] for the remodel.

    Examples
    --------
    Two of three nodes are enough: the third would be released after the load is done.

    >>> s = split_load(14, [0, 21, 90], Cluster(nodes=3, cms=1, cps=3), "exact")
    >>> s.alpha.round(9).tolist(), round(s.completion, 9)
    ([0.6875, 0.3125], 38.5)
    """
    instance("cluster", cluster, Cluster)
    nodes = "user" if partition == "pieces" else "min"
    policy = Policy("fifo", nodes, partition, rounds)
    sigma = number("sigma", sigma, above=True, rule=SIZE)
    model.check_partition(partition, rounds, cluster)
    times = model.release_times(release, cluster)
    rules = Rules(cluster, policy, Reading(), labels=["the load"])
    with core_for(policy, "auto", 1) as core:
        task = zero_recarray(1, core.state.TASK)
        entry = zero_recarray(1, core.state.ENTRY)[0]
        table = time_table(cluster, partition)
        s = core.state.fresh_state(task, rules, table, 0.0, len(times))
        chunks = np.empty((len(times) * MOST_ROUNDS, 4))
        s = s._replace(release=np.empty(len(times)), chunks=chunks)
        task["sigma"], task["n_star"] = float(sigma), len(times)
        if cluster.cps == 0 and partition in ("exact", "exact-n"):  # computing is free
            times = times[:1]
        origin = time_offset(times)
        releases, sizes = np.unique(times - origin, return_counts=True)
        groups, pool = len(releases), s.chosen.releases
        pool["time"][:groups], pool["nodes"][:groups] = releases, sizes
        s.chosen.size.groups = groups
        kind, m, _, end, n, s.chosen.size.groups = core.splits.choose_split(
            0, len(times), s.chosen, s
        )
        core.nodes.fill_releases(s.chosen, s.release)
        entry.nodes, entry.kind, entry.rounds, entry.end = n, kind, m, end
        completion, _ = core.chunks.compute_chunks(entry, chunks, s)
    rows = chunks[: m * n].reshape((m, n, 4) if m > 1 else (n, 4))
    estimate = completion if SPLIT_KINDS[kind] in ("rounds from releases", "own") else end
    share = rows[..., 0].copy()
    if share.min() <= 0:
        raise InputError(
            f"partition {partition!r} gives a node the share {share.min():.3g}, and shares must be "
            "positive: give fewer release times, or use partition 'exact', which leaves nodes out"
        )
    sent, received, done = (origin + rows[..., k] for k in (1, 2, 3))
    ends = float(origin + estimate), float(origin + completion)
    return LoadSplit(SPLIT_KINDS[kind], origin + s.release[:n], share, sent, received, done, *ends)

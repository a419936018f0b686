"""The model of real-time divisible loads: cluster, policy, reading.

Sources: paper M (mcdf), X. Lin, Y. Lu, J. Deogun, S. Goddard, "Real-Time Divisible
Load Scheduling for Cluster Computing", UNL-CSE 2005-0014; paper I (inserted idle
times), the same authors, "Enhancing Real-time Scheduling of Divisible Loads by
Utilizing Inserted Idle Time", and what it takes from its reference [6].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.realtime.core import nodes as node_rules
from dlsim.realtime.core import orders, splits
from dlsim.realtime.core.formulas import MOST_ROUNDS
from dlsim.record import NamedRecord, require_names
from dlsim.user_code import count_parameters, resolve_user_code
from dlsim.validate import (
    MAX_MAGNITUDE,
    Floats,
    column,
    flag,
    number,
    one_of,
    require_table,
    to_floats,
    unwrap_scalar,
    whole,
)

#: Row numbers, or places in an array.
Indices = NDArray[np.int64]
#: Kinds of rules that a user may write, with their parameters and the values they must return.
RULES = {
    "order": (("task", "n", "t", "state"), "a number, not NaN"),
    "nodes": (("task", "t", "state"), "a whole number of nodes in 0..N, 0 to refuse the task"),
    "partition": (("sigma", "release", "state"), "a positive share per node, with the sum 1"),
}


def check_rule(kind: str, function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as such a rule."""
    (names, returns), count = RULES[kind], count_parameters(function)
    counts = (len(names), 1) if kind == "order" else (len(names),)
    what = f"{kind} function {getattr(function, '__name__', kind)} must"
    if count not in counts:
        table = "(tasks) with one key per task, or " if kind == "order" else ""
        raise InputError(
            f"{what} take {table}({', '.join(names)}) and return {returns};"
            f" it takes {count if count >= 0 else 'an unknown number of'} arguments"
        )
    if count > 1 and not pd.api.types.is_hashable(function):  # compiled once, and found again
        raise InputError(f"{what} be hashable, got {function!r}; freeze its dataclass, or wrap it")


@dataclass(frozen=True)
class Order(NamedRecord):
    """An order in which tasks are served, the smallest key first.

    Parameters
    ----------
    key : callable
        ``key(tasks)``, one key per task, or ``key(task, n, t, state)``, the key of a task that
        would run on n nodes from t on; see `Policy`.
    when : {"once", "instant"}
        Whether the key is asked of the whole table, or at every instant at which nodes get free.
    name, text : str
        The word of a `Policy`, and what it means, in a few words.

    Raises
    ------
    InputError
        For an order without a key, name or text, or a key that cannot be asked when `when` says.
    """

    key: Callable[..., Any]
    when: str = "once"

    def __post_init__(self) -> None:
        """Raise InputError if the fields do not describe an order."""
        self.settle_words(str, str)  # both must be given
        one_of("when", self.when, ("once", "instant"))
        if not callable(self.key):
            raise InputError(f"order {self.name!r} needs a key, a function; got {self.key!r}")
        check_rule("order", self.key)
        if (count_parameters(self.key) == 1) != (self.when == "once"):
            arguments = "(tasks)" if self.when == "once" else "(task, n, t, state)"
            raise InputError(f"order {self.name!r}, asked {self.when!r}, needs a key{arguments}")

    @property
    def code(self) -> int | None:
        """The code of the order in the core, None where the key function is called."""
        return CORE_ORDERS.get(self.key)


def arrival_place(tasks: pd.DataFrame) -> NDArray[np.int64]:
    """Return the place of every task in the order of arrival, by which tables are sorted."""
    return np.arange(len(tasks))


def absolute_deadline(tasks: pd.DataFrame) -> pd.Series:
    """Return the absolute deadline of every task."""
    return tasks["arrival"] + tasks["deadline"]


def mcdf_order_key(task: "TaskView", n: int, t: float, state: "StateView") -> float:
    """Return the key of MCDF's order: the negated cost derivative W(n + 1) - W(n) of a task.

    The core does not call this function: it ranks by `dlsim.realtime.core.orders.mcdf_rank`
    (see `CORE_ORDERS`).
    """
    return float(-(state.dc_offset[n] + task.sigma * state.dc_slope[n]))


@dataclass(frozen=True)
class NodeRule(NamedRecord):
    """A rule for the number of nodes of a task, by the word of a `Policy` and in a few words."""

    code: int  # in `dlsim.realtime.core.nodes`

    def __post_init__(self) -> None:
        """Refuse a blank word, and what the core does not handle."""
        self.settle_words(str, str)
        one_of(f"code of nodes {self.name!r}", self.code, node_rules.NODE_RULE_CODES)


@dataclass(frozen=True)
class Partition(NamedRecord):
    """A way to split a load over nodes, by the word of a `Policy` and in a few words."""

    code: int  # in `dlsim.realtime.core.splits`
    fewest: int = node_rules.FEWEST  # how the fewest nodes are found, in `core.nodes`
    has_setups: bool = True  # whether it is defined on clusters with set-up times
    is_in_rounds: bool = False  # whether it sends to a node several times
    starts_together: bool = False  # whether all nodes of a task start at one instant

    def __post_init__(self) -> None:
        """Refuse a blank word, and what the core does not handle."""
        self.settle_words(str, str)
        one_of(f"code of partition {self.name!r}", self.code, splits.PARTITION_CODES)
        one_of(f"fewest of partition {self.name!r}", self.fewest, node_rules.NODE_RULE_CODES)


def index_by_name(kind: str, *records: Any) -> dict[str, Any]:
    """Return records by their names, or refuse two of one name."""
    by_name = {record.name: record for record in records}
    if len(by_name) < len(records):
        raise InputError(f"every {kind} must have a name of its own, got {records}")
    return by_name


#: Orders by the word of a `Policy`.
ORDERS: dict[str, Order] = index_by_name(
    "order",
    Order(arrival_place, name="fifo", text="by arrival"),
    Order(absolute_deadline, name="edf", text="by deadline"),
    Order(mcdf_order_key, "instant", name="dc", text="by the slope of the cost"),
)
#: Orders that the core computes itself (`dlsim.realtime.core.orders`), by their keys. The core
#: calls every other key.
CORE_ORDERS: dict[Callable[..., Any], int] = {
    arrival_place: orders.STATIC_ORDER,
    absolute_deadline: orders.DEADLINE_ORDER,
    mcdf_order_key: orders.MCDF_ORDER,
}
#: Rules for the number of nodes by the word of a `Policy`.
NODE_RULES: dict[str, NodeRule] = index_by_name(
    "rule for nodes",
    NodeRule(node_rules.FEWEST, name="min", text="the fewest nodes"),
    NodeRule(node_rules.EVERY_NODE, name="all", text="all nodes"),
    NodeRule(node_rules.FRAGMENT, name="fragment", text="the fewest nodes, and idle ones,"),
    NodeRule(node_rules.REQUESTED, name="user", text="as many nodes as the user asks"),
)
#: Partitions by the word of a `Policy`.
PARTITIONS: dict[str, Partition] = index_by_name(
    "partition",
    Partition(splits.BY_OPR, starts_together=True, name="opr", text="that start together"),
    Partition(
        splits.BY_EQUAL,
        starts_together=True,
        name="equal",
        text="that start together with equal shares",
    ),
    Partition(splits.BY_PIECES, name="pieces", text="each with a piece of its own"),
    Partition(
        splits.BY_DLT, has_setups=False, name="dlt", text="as they come free, split by the remodel"
    ),
    Partition(
        splits.BY_I,
        has_setups=False,
        name="I",
        text="as they come free, split by Constraint 1 where it holds",
    ),
    Partition(
        splits.BY_II,
        has_setups=False,
        name="II",
        text="as they come free, split by Constraint 2 where it holds",
    ),
    Partition(
        splits.BY_EXACT,
        has_setups=False,
        name="exact",
        text="as they come free, split by the true optimum",
    ),
    Partition(
        splits.BY_EXACT_N,
        node_rules.FEWEST_BY_OPTIMUM,
        has_setups=False,
        name="exact-n",
        text="that the true optimum needs as they come free",
    ),
    Partition(
        splits.BY_UMR,
        node_rules.FEWEST_IN_ROUNDS,
        is_in_rounds=True,
        starts_together=True,
        name="umr",
        text="that start together, in several rounds",
    ),
    Partition(
        splits.BY_UMR_IIT,
        node_rules.FEWEST_IN_ROUNDS,
        is_in_rounds=True,
        name="umr-iit",
        text="as they come free, in several rounds",
    ),
)
#: Partitions that serve nodes from different release times and know no set-up times.
WITHOUT_SETUP = tuple(one.name for one in PARTITIONS.values() if not one.has_setups)
#: Partitions on nodes that start at one instant.
STARTS_TOGETHER = tuple(one.name for one in PARTITIONS.values() if one.starts_together)
#: Partitions in several rounds.
IN_ROUNDS = tuple(one.name for one in PARTITIONS.values() if one.is_in_rounds)

#: Most nodes of a cluster: the table of E(n) then takes half a gigabyte.
MAX_CLUSTER_NODES = 10_000_000
#: What a load was split by, after a constraint was tested; codes in `core.splits`.
SPLIT_KINDS = (
    "opr", "equal", "pieces", "remodel", "equal finish", "optimum", "rounds",
    "rounds from releases", "own",
)  # fmt: skip


def allowed_rounds(partition: str | Callable[..., Any], rounds: int | str) -> int | str:
    """Return the number of rounds of a partition, or refuse it.

    A partition in rounds allows "best" or 1..MOST_ROUNDS, every other partition 1.
    """
    if partition not in IN_ROUNDS:
        return whole("rounds", rounds, 1, 1, f"1 for partition {partition!r}")
    if isinstance(rounds, str) and rounds == "best":
        return rounds
    return whole("rounds", rounds, 1, MOST_ROUNDS, f"'best' or a whole number in 1..{MOST_ROUNDS}")


@dataclass(frozen=True)
class Cluster:
    r"""A head node that sends to N equal nodes, one after another (paper M, section 3).

    Parameters
    ----------
    nodes : int
        Number of processing nodes N, at most `MAX_CLUSTER_NODES`.
    cms, cps : float
        Time to transmit and to compute one unit of data (:math:`C_{ms}, C_{ps}`).
    st, sc : float
        Set-up time of a transmission and of a computation (ST, SC).

    Raises
    ------
    InputError
        For nodes < 1 or beyond `MAX_CLUSTER_NODES`, a negative or non-finite cost, or
        cms = cps = 0.
    """

    nodes: int = 16
    cms: float = 1.0
    cps: float = 100.0
    st: float = 0.0
    sc: float = 0.0

    def __post_init__(self) -> None:
        """Raise InputError if the fields do not describe a cluster."""
        rule = f"a whole number of at least 1 and at most {MAX_CLUSTER_NODES}: memory grows with N"
        object.__setattr__(self, "nodes", whole("nodes", self.nodes, 1, MAX_CLUSTER_NODES, rule))
        for name in ("cms", "cps", "st", "sc"):
            cost = number(name, getattr(self, name), rule="a finite time of at least 0")
            object.__setattr__(self, name, cost)
        if self.cms + self.cps <= 0:
            raise InputError("cms + cps must be positive, got 0: give the unit load a cost")


def check_partition(
    partition: str | Callable[..., Any], rounds: int | str, cluster: Cluster
) -> None:
    """Refuse a partition on a cluster for which it is not defined."""
    what = f"partition {partition!r}"
    if partition in WITHOUT_SETUP and (cluster.st > 0 or cluster.sc > 0):
        got = f"st={cluster.st}, sc={cluster.sc}"
        need = f"{what} knows no set-up times (paper I, section 3); got {got}"
        raise InputError(f"{need}: use st=0, sc=0, or partition 'opr'")
    if partition in IN_ROUNDS and cluster.cms == 0:
        raise InputError(f"{what} needs cms > 0, got 0: without transmission one round does")
    if partition in IN_ROUNDS and rounds == "best" and cluster.st == 0 and cluster.sc == 0:
        need = "rounds='best' needs set-up times: with st = sc = 0 more rounds are always faster"
        raise InputError(f"{need}; give a number of rounds")


#: What a table of tasks says of each: instant, data size, time until its deadline.
TASK_COLUMNS = ("arrival", "sigma", "deadline")


def task_columns(
    tasks: pd.DataFrame, names: Sequence[str] = TASK_COLUMNS, *, unique: bool = True
) -> list[NDArray[np.float64]]:
    """Return columns of a table of tasks, whose labels are `unique`, or refuse it."""
    try:
        labels = require_table("tasks", tasks, names, unique=unique).index
        if unique and labels.dtype.kind == "O":
            labels.get_indexer(labels[:1])
    except (TypeError, pd.errors.InvalidIndexError) as error:
        why = f"labels of tasks must be hashable, and no intervals that overlap ({error})"
        raise InputError(f"{why}; use tasks.reset_index(drop=True)") from error
    if tasks.attrs:
        tasks = pd.DataFrame(tasks)  # without those, which every column taken would copy deeply
    known: Any = {"row": "task", "labels": labels}
    return [column(name, tasks[name], above=name != "arrival", **known) for name in names]


def sorted_columns(tasks: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Return them of tasks in the order of arrival, or refuse another order."""
    columns = task_columns(tasks)
    back = np.diff(columns[0]) < 0
    if back.any():
        task = unwrap_scalar(tasks.index[int(np.argmax(back)) + 1])
        raise InputError(
            f"arrivals must not decrease, but task {task!r} arrives before the one above it; "
            "use tasks.sort_values('arrival', kind='stable')"
        )
    return columns


class TaskTable(NamedTuple):
    """The tasks as submitted: columns, ranks of a static order, requested nodes, labels."""

    arrival: Floats
    sigma: Floats
    deadline: Floats
    key: Floats
    requested: NDArray[np.int64]
    labels: pd.Index

    @property
    def owners(self) -> Indices:
        """The row of the task that each of its pieces belongs to (``split="piece"``)."""
        return np.repeat(np.arange(len(self.requested)), self.requested)


def release_times(release: Any, cluster: Cluster) -> NDArray[np.float64]:
    """Return the release times of nodes in ascending order; raise InputError for invalid ones."""
    times = to_floats(release)
    if times.ndim != 1 or not 1 <= len(times) <= cluster.nodes or not np.isfinite(times).all():
        raise InputError(
            f"release must hold 1..{cluster.nodes} finite times, one per node; got {release!r}"
        )
    return np.sort(column("release", times, -MAX_MAGNITUDE))


class TaskView(NamedTuple):
    """A task as the functions of a user see it.

    Attributes
    ----------
    arrival, sigma, deadline, due : float
        Arrival, data size, relative and absolute deadline; instants on the engine's clock, which
        begins by the first arrival where that is far from 0.
    user_nodes : int
        Nodes that its user asks for, or 0.
    n_min : int
        Fewest nodes with which it would be in time if all started now; 0 for none.
    """

    arrival: float
    sigma: float
    deadline: float
    due: float
    user_nodes: int
    n_min: int


class StateView(NamedTuple):
    """The cluster as the functions of a user see it.

    Attributes
    ----------
    idle, waiting : int
        Nodes that are idle, and tasks that are still to be placed, at this instant of the plan.
    nodes : int
        Nodes of the cluster, N.
    cms, cps, st, sc : float
        Its costs.
    time_per_unit, setup_time : ndarray of float, shape (N + 2,)
        E(sigma, n) is ``setup_time[n] + sigma * time_per_unit[n]``.
    dc_slope, dc_offset : ndarray of float, shape (N + 2,)
        The cost derivative W(n + 1) - W(n) is ``dc_offset[n] + sigma * dc_slope[n]`` (paper M).
    """

    idle: int
    waiting: int
    nodes: int
    cms: float
    cps: float
    st: float
    sc: float
    time_per_unit: NDArray[np.float64]
    setup_time: NDArray[np.float64]
    dc_slope: NDArray[np.float64]
    dc_offset: NDArray[np.float64]


def state_view(costs: Any, table: Any, idle: int, waiting: int) -> StateView:
    """Return the view of a cluster by its costs and its `dlsim.realtime.formulas.TimeTable`."""
    numbers = costs.nodes, costs.cms, costs.cps, costs.st, costs.sc
    times = table.time_per_unit, table.setup_time, table.dc_slope, table.dc_offset
    return StateView(int(idle), int(waiting), *numbers, *times)


@dataclass(frozen=True)
class Policy(NamedRecord):
    """What an algorithm decides, as data.

    Parameters
    ----------
    order : {"fifo", "edf", "dc"} or callable
        Which task is served first: by arrival, absolute deadline or decreasing cost derivative; or
        a function of the task table that returns one static key per task, smallest first; or
        ``order(task, n, t, state)``, the key of a task that would run on n nodes from t on, asked
        at every instant t at which nodes get free (Notes).
    nodes : {"min", "all", "fragment", "user"} or callable
        The fewest nodes that meet the deadline; all of them; the fewest and whatever
        else is idle then, up to N* ([9] of paper I); the task's own ``user_nodes``; or
        ``nodes(task, t, state)``, how many it takes from t on (N* where more would have shares
        that are not positive), 0 for a task that is refused.
    partition : str or callable
        How a load is split. On nodes that start together: ``opr``, the optimal
        partitioning rule (paper M); ``equal`` shares; ``umr``, several rounds. On nodes
        as they are released: ``pieces``, equal shares as tasks of their own (User
        Split); ``dlt``, the remodel of [6]; ``I`` and ``II``, equal finish under
        Constraint 1 or 2 of paper I, else the remodel; ``exact``, the true single-round
        optimum on the nodes that the deadline asks for; ``exact-n``, on the fewest
        nodes whose optimum meets it; ``umr-iit``, several rounds; or
        ``partition(sigma, release, state)``, the shares of the nodes by their release.
    rounds : int or "best"
        Rounds of ``umr`` and ``umr-iit``; 1 otherwise.
    admission : bool
        Whether a task that would break a deadline is refused.
    overtake : bool
        Whether a task that fits now may pass one that does not.
    name, text : str, optional
        Its name in legends and tables, and one sentence that says what it does; by default they
        are made from its rules.

    Raises
    ------
    InputError
        For an unknown option, an `admission` or `overtake` that is not a bool, a name or text that
        is blank, or a combination that no engine can run.

    Notes
    -----
    Functions of a user are called with a `TaskView` and a `StateView` by the uncompiled engine, so
    that any Python code works. With one of them all tasks that wait are planned anew at
    each arrival, from instant to instant as nodes get free: all are counted and ordered, and a task
    that fits starts, until one does not (`overtake`: past those that do not). A newcomer is refused
    where a task would be late. No offers are made: it is not known at which deadline such a
    function changes its mind.

    Examples
    --------
    >>> def least_laxity(task, n, t, state):
    ...     return task.due - t - (state.setup_time[n] + task.sigma * state.time_per_unit[n])
    >>> Policy(least_laxity, "min", overtake=True).name
    'least_laxity-min-opr-overtake'
    """

    remedy: ClassVar[str] = "give a Policy(order, nodes), one of whose rules is your function"

    order: str | Callable[..., Any]
    nodes: str | Callable[..., Any]
    partition: str | Callable[..., Any] = "opr"
    rounds: int | str = 1
    admission: bool = True
    overtake: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a policy that no engine can run."""
        for kind, known in (("order", ORDERS), ("nodes", NODE_RULES), ("partition", PARTITIONS)):
            rule = resolve_user_code(kind, getattr(self, kind))
            vars(self)[kind] = rule
            if callable(rule):
                check_rule(kind, rule)
            else:
                one_of(kind, rule, known)
        for name in ("admission", "overtake"):
            flag(name, getattr(self, name))
        vars(self)["rounds"] = allowed_rounds(self.partition, self.rounds)
        for is_met, words in _INCOMPATIBLE:
            if is_met(self):
                raise InputError(words.format(policy=self))
        self.settle_words(self._derive_name, self._derive_text)

    @property
    def is_timed(self) -> bool:
        """Whether the key function is called at every instant, not once for the whole table."""
        return self.order_key is not None and count_parameters(self.order_key) != 1

    @property
    def order_key(self) -> Callable[..., Any] | None:
        """The function that ranks tasks, None for an order that the core computes."""
        if callable(self.order):
            return self.order
        return ORDERS[self.order].key if ORDERS[self.order].code is None else None

    @property
    def has_user_rules(self) -> bool:
        """Whether a function of a user is called while tasks are planned."""
        return self.is_timed or callable(self.nodes) or callable(self.partition)

    def _derive_name(self) -> str:
        """Return the rules in the order of the fields; what is usual is left out."""
        rules = (self.order, self.nodes, self.partition)
        names = [getattr(rule, "__name__", str(rule)) for rule in rules]
        names += [f"{self.rounds}-rounds"] * (self.rounds != 1)
        names += ["overtake"] * self.overtake + ["no-admission"] * (not self.admission)
        return "-".join(names)

    def _derive_text(self) -> str:
        """Return a sentence made of the texts of the rules."""
        order = "by an order of its own"
        if not callable(self.order):
            order = ORDERS[self.order].text
        nodes, split = "as many nodes as it finds", "with shares of its own"
        if not callable(self.nodes):
            nodes = NODE_RULES[self.nodes].text
        if not callable(self.partition):
            split = PARTITIONS[self.partition].text
        passes = "; a task that fits may pass" * self.overtake
        ends = "; no task is refused" * (not self.admission)
        return f"Tasks run {order}, each on {nodes} {split}{passes}{ends}."


#: Partitions that are not defined on all nodes.
_NEVER_ON_ALL = tuple(name for name in PARTITIONS if name not in ("opr", "exact", "exact-n"))
#: Combinations of options that have no meaning, each with what the error says of the `policy`.
_INCOMPATIBLE: tuple[tuple[Callable[[Policy], bool], str], ...] = (
    (
        lambda p: not p.admission and p.nodes != "all",
        "nodes={policy.nodes!r} needs a deadline that can be met; without admission control use "
        "nodes='all'",
    ),
    (
        lambda p: not p.admission and p.partition != "opr",
        "partition={policy.partition!r} needs admission control; use partition='opr'",
    ),
    (
        lambda p: not p.admission and p.is_timed,
        "an order that changes with time needs admission control; use order(tasks)",
    ),
    (
        lambda p: callable(p.nodes) and p.partition in ("exact-n", "pieces"),
        "partition={policy.partition!r} chooses the number of nodes; use nodes='min' or 'user'",
    ),
    (
        lambda p: callable(p.partition) and p.nodes in ("user", "fragment"),
        "a user's partition needs nodes='min', 'all' or a function",
    ),
    (
        lambda p: p.order == "dc" and p.nodes != "min",
        "order='dc' ranks by the fewest nodes n_min; use nodes='min'",
    ),
    (
        lambda p: p.order == "dc" and p.partition != "opr",
        "order='dc' ranks by the cost of the optimal partitioning rule; use partition='opr'",
    ),
    (
        lambda p: p.nodes == "all" and p.partition in _NEVER_ON_ALL,
        "nodes='all' needs partition='opr' or 'exact', got {policy.partition!r}",
    ),
    (
        lambda p: p.partition == "exact-n" and p.nodes != "min",
        "partition={policy.partition!r} chooses the number of nodes itself; use nodes='min'",
    ),
    (
        lambda p: (p.partition == "pieces") != (p.nodes == "user"),
        "nodes='user' and partition='pieces' (User Split) belong together; got "
        "nodes={policy.nodes!r}, partition={policy.partition!r}",
    ),
    (
        lambda p: p.nodes == "fragment" and p.partition not in ("opr", "exact"),
        "nodes='fragment' needs partition='opr' or 'exact', got {policy.partition!r}",
    ),
)


#: Policies of paper I by the part of the legend that follows FIFO or EDF, with what a task runs on;
#: EXACT, EXACT-N and UMR-MN go beyond the paper.
_PAPER_I_ROWS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "OPR-MN": ("the fewest nodes, which start together", ("min", "opr")),
    "DLT": ("the fewest nodes, used as they come free by the remodel", ("min", "dlt")),
    "I": (
        "the fewest nodes as they come free; all end together where Constraint 1 holds",
        ("min", "I"),
    ),
    "II": (
        "the fewest nodes as they come free; all end together where Constraint 2 holds",
        ("min", "II"),
    ),
    "EQ-MN": ("the fewest nodes, which start together with equal shares", ("min", "equal")),
    "OPR-FRAG": ("the fewest nodes and those that are idle anyway", ("fragment", "opr")),
    "US": ("as many nodes as its user asks, a piece on each (User Split)", ("user", "pieces")),
    "EXACT": ("the fewest nodes as they come free, split by the true optimum", ("min", "exact")),
    "EXACT-N": (
        "the fewest nodes whose true optimum meets the deadline, as they come free",
        ("min", "exact-n"),
    ),
    "UMR-MN": ("the fewest nodes, which start together, in four rounds", ("min", "umr", 4)),
    "UMR-IIT": ("the fewest nodes as they come free, in four rounds", ("min", "umr-iit", 4)),
}


def _paper_i_policy(order: str, suffix: str) -> Policy:
    """Return a policy of paper I under its name in the legends, such as EDF-DLT or EDDO-II."""
    plain, constrained = {"fifo": ("FIFO", "FIDO"), "edf": ("EDF", "EDDO")}[order]
    text, rules = _PAPER_I_ROWS[suffix]
    return Policy(
        order,
        *rules,
        name=f"{constrained if suffix in ('I', 'II') else plain}-{suffix}",
        text=f"Tasks are served {ORDERS[order].text}, each on {text}.",
    )


#: The papers' algorithms by the names of their legends.
POLICIES: dict[str, Policy] = index_by_name(
    "policy",
    Policy(
        "dc",
        "min",
        overtake=True,
        name="MCDF",
        text="The task whose cost would rise most with one more node comes first; each runs on the "
        "fewest nodes, and a task that fits may pass.",
    ),
    Policy(
        "fifo",
        "min",
        overtake=True,
        name="FIFOMN",
        text="Tasks are served by arrival, each on the fewest nodes; a task that fits may pass.",
    ),
    Policy(
        "edf",
        "min",
        overtake=True,
        name="EDFMN",
        text="Tasks are served by deadline, each on the fewest nodes; a task that fits may pass.",
    ),
    Policy("fifo", "all", name="FIFOAN", text="Tasks are served by arrival, each on all nodes."),
    Policy("edf", "all", name="EDFAN", text="Tasks are served by deadline, each on all nodes."),
    Policy(
        "fifo",
        "all",
        admission=False,
        name="FIFOANNA",
        text="Tasks are served by arrival, each on all nodes; no task is refused.",
    ),
    Policy(
        "edf",
        "all",
        admission=False,
        name="EDFANNA",
        text="Tasks are served by deadline, each on all nodes; no task is refused.",
    ),
    *(_paper_i_policy(order, suffix) for suffix in _PAPER_I_ROWS for order in ("fifo", "edf")),
)
require_names(POLICIES)


@dataclass(frozen=True)
class Reading(BaseReading):
    """How the ambiguous sentences of papers M and I are understood; every default is named.

    Parameters
    ----------
    an_nodes : {"all", "best"}
        All-nodes policies use E(N) even where shares turn negative, or E(min(N, N*)).
    mn_order : {"skip", "strict"}
        Whether a task that does not fit may be passed by the next one (section 5, l.13).
    mn_count : {"at_start", "frozen"}
        n_min at the start instant t_k, or once at arrival.
    dc_at_N : {"formula", "inf"}
        Cost derivative where n_min = N: W(N+1) - W(N), or infinite.
    order_when : {"each_tk", "once"}
        Sort at every t_k (l.12), or once per test.
    link : {"per_task", "shared"}
        The head node's link is serial within a task, or across all tasks.
    batch_order : {"index", "policy"}
        Order in which tasks of one arrival instant are tested.
    batch_commit : {"replan", "commit"}
        Dispatch after the whole batch, or after each admitted member.
    same_time : {"dispatch", "test"}
        What comes first when a planned start and an arrival coincide.
    late : {"run", "drop"}
        Without admission control: late tasks still run, or are dropped at their turn.
    release : {"estimate", "finish"}
        Paper I: all nodes of a task are free again at its estimated completion, or each
        at its own finish.
    commit : {"first", "last"}
        A task can be planned anew until its first node starts, s_1, or until its last
        node is released, r_n, and those ahead of it are fixed.
    backfill : {"off", "on"}
        Whether a task that fits may pass a waiting task also under the policies that serve
        in line (sections 1 and 4.2 of paper I).
    split : {"all", "piece"}
        User Split: all pieces of a task are admitted or none, or each for itself.
    scope : {"chosen", "all"}
        `Schedule.counts`: inserted idle times among the chosen n nodes, or all N.
    ties : {"fail", "skip"}
        `Schedule.counts`: equal release times break a constraint, or are not asked.
    count_single : {"no", "yes"}
        `Schedule.counts`: whether a task on one node counts.
    """

    an_nodes: str = switch(
        ("all", "best"),
        label="policies on all nodes: use all, or the best number",
        reads="core.splits:receiving_nodes",
        rule="best",
        papers="M",
        touches=lambda policy: policy.nodes == "all",
    )
    mn_order: str = switch(
        ("skip", "strict"),
        label="a task that does not fit now: skip it, or wait for it",
        reads="core.admission:place_pending",
        rule="strict",
        papers="M",
        touches=lambda policy: policy.overtake,
    )
    mn_count: str = switch(
        ("at_start", "frozen"),
        label="fewest nodes: computed at each start, or once at arrival",
        reads="core.loop:note_deadlines_alone",
        rule="frozen",
        papers="MI",
        touches=lambda policy: policy.nodes not in ("all", "user"),
    )
    dc_at_N: str = switch(
        ("formula", "inf"),
        label="slope of the cost at n = N (MCDF): by the formula, or infinite",
        reads="core.orders:mcdf_rank",
        rule="infinite_top",
        papers="M",
        touches=lambda policy: policy.order == "dc",
    )
    order_when: str = switch(
        ("each_tk", "once"),
        label="tasks are sorted: at each start, or once per test",
        reads="core.admission:schedulability_test",
        rule="once",
        papers="M",
        touches=lambda policy: policy.order == "dc" or policy.is_timed,
    )
    link: str = switch(
        ("per_task", "shared"),
        label="tasks send: each over a link of its own, or all over one",
        reads="core.chunks:fill_sends",
        rule="shared",
        papers="MI",
    )
    batch_order: str = switch(
        ("index", "policy"),
        label="tasks that arrive together are tested: as listed, or as the policy orders",
        reads="core.loop:sort_batch",
        rule="by_policy",
        papers="M",
        touches=lambda policy: policy.order != "fifo",
    )
    batch_commit: str = switch(
        ("replan", "commit"),
        label="tasks that arrive together: planned together, or one by one",
        reads="core.loop:run_admission",
        rule="commit",
        papers="M",
        touches=lambda policy: policy.order != "fifo",
    )
    same_time: str = switch(
        ("dispatch", "test"),
        label="at one instant comes first: the start, or the admission test",
        reads="core.loop:run_admission",
        rule="test_first",
        papers="MI",
    )
    late: str = switch(
        ("run", "drop"),
        label="late tasks, if none is refused: run, or are dropped",
        reads="simulate:run_policy",
        papers="M",
        touches=lambda policy: not policy.admission,
    )
    release: str = switch(
        ("estimate", "finish"),
        label="nodes are free again: at the task's estimated end, or each at its own",
        reads="core.splits:ends_node_by_node",
        rule="finish",
        papers="I",
        touches=lambda policy: policy.partition != "opr",
    )
    commit: str = switch(
        ("first", "last"),
        label="a plan is fixed when: its first node starts, or its last one is free",
        reads="core.loop:dispatch",
        rule="last",
        papers="I",
        touches=lambda policy: policy.partition not in ("opr", "equal", "umr"),
    )
    backfill: str = switch(
        ("off", "on"),
        label="a small task may pass a waiting one",
        reads="split:Rules.may_pass",
        papers="I",
    )
    split: str = switch(
        ("all", "piece"),
        label="pieces of a user's task are accepted: all or none, or one by one",
        reads="simulate:simulate",
        papers="I",
        touches=lambda policy: policy.partition == "pieces",
    )
    scope: str = switch(
        ("chosen", "all"),
        label="inserted idle times are counted: among the chosen nodes, or all",
        reads="core.idle_times:find_iit_flags",
        rule="every",
        papers="I",
    )
    ties: str = switch(
        ("fail", "skip"),
        label="equal release times: break a constraint, or are not asked",
        reads="core.idle_times:find_iit_flags",
        rule="skip_ties",
        papers="I",
    )
    count_single: str = switch(
        ("no", "yes"),
        label="a task on one node: does not count, or counts",
        reads="core.idle_times:find_iit_flags",
        rule="single",
        papers="I",
    )


#: Every switch of `Reading` with its options, the default first; those that paper M leaves open.
SWITCHES, SWITCHES_M = Reading.switches(), Reading.switches("M")


def describe_run(name: str, reading: Reading) -> str:
    """Name the policy and the reading of a run, for a message about a broken rule."""
    return f"{name}, reading {reading.changes()}"

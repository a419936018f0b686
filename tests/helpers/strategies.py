"""Small random instances of the real-time engine, for seeded and for Hypothesis tests.

Every number is a dyadic fraction, so that a float holds it exactly, but for what is made to
meet a tie (deadlines that are exactly E(n), say): there the twin gets the Fraction and the
engine the nearest float.
"""

import functools
import itertools
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from gmpy2 import mpq as Fraction
from hypothesis import strategies as st

from dlsim.realtime import POLICIES, SWITCHES, Cluster, Policy, Reading, Schedule, simulate
from dlsim.realtime.model import ORDERS, SWITCHES_M
from tests.twins import inserted, splits
from tests.twins import realtime as twin

#: Orders that the twins rank by themselves; every other one is a key per task for them.
ORDERS_OF_TWINS = ("fifo", "edf", "dc")


#: Columns of the tables that only an order of one's own reads.
OWN_COLUMNS = ("user_key",)
#: `dlsim.realtime.simulate` of such tables.
simulate_with_keys = functools.partial(simulate, ignore=OWN_COLUMNS)


def by_user_key(tasks: pd.DataFrame) -> pd.Series:
    """Return the column `user_key` as a static order."""
    return tasks["user_key"]


def is_planned_in_line(row: Policy) -> bool:
    """Tell whether tasks are planned one behind another on the nodes that they need (paper I)."""
    on_all = row.nodes == "all" and row.partition == "opr"
    return row.admission and not (row.overtake or row.order == "dc" or on_all)


#: The package's policies of paper M's kind: tasks pass, or take all nodes.
PAPER_M = [name for name, row in POLICIES.items() if not is_planned_in_line(row)]
#: They, and every other row that `Policy` allows for paper M's partition.
ROWS: dict[str, Policy] = {
    **{name: POLICIES[name] for name in PAPER_M},
    "dc in line": Policy("dc", "min"),
    "edf in line": Policy("edf", "min"),
    "fifo in line": Policy("fifo", "min"),
    "user": Policy(by_user_key, "min", overtake=True),
    "user in line": Policy(by_user_key, "min"),
    "user all": Policy(by_user_key, "all"),
    "user all, no admission": Policy(by_user_key, "all", admission=False),
}

#: Paper I's policies, what the package adds to them, and the same in a user's order.
ROWS_I: dict[str, Policy] = {
    **{name: row for name, row in POLICIES.items() if name not in PAPER_M},
    "user DLT": Policy(by_user_key, "min", "dlt"),
    "user II": Policy(by_user_key, "min", "II"),
    "user EXACT-N": Policy(by_user_key, "min", "exact-n"),
    "user US": Policy(by_user_key, "user", "pieces"),
    "EDF exact, all": Policy("edf", "all", "exact"),
    "FIFO exact, idle": Policy("fifo", "fragment", "exact"),
    "EDF-UMR-MN best": Policy("edf", "min", "umr", rounds="best"),
    "FIFO-UMR-IIT best": Policy("fifo", "min", "umr-iit", rounds="best"),
    "EDF-UMR-IIT 2": Policy("edf", "min", "umr-iit", rounds=2),
}
ALL_ROWS = ROWS | ROWS_I

#: The rows whose tasks are planned one behind another: paper I's twin answers for them.
IN_LINE = [*ROWS_I, "edf in line", "fifo in line", "user in line"]
#: Partitions that know no set-up time, and those that need a link.
BARE = ("dlt", "I", "II", "exact", "exact-n")
LINKED = ("umr", "umr-iit")


def order_of(row: Policy) -> str:
    """Return the twins' name of an order."""
    return row.order if row.order in ORDERS_OF_TWINS else "user"


@functools.cache
def costs_of(*costs: Fraction) -> twin.Costs:
    """Return a cluster as the twin takes it, with all times that were found for it."""
    return twin.Costs(*costs)


class Instance(NamedTuple):
    """A cluster, rows of (arrival, sigma, deadline), and one key per task for user orders."""

    nodes: int
    cms: Fraction
    cps: Fraction
    st: Fraction
    sc: Fraction
    rows: list[tuple[Fraction, Fraction, Fraction]]
    keys: list[int]

    @property
    def cluster(self) -> Cluster:
        """The cluster as dlsim takes it."""
        return Cluster(self.nodes, *(float(x) for x in self[1:5]))

    @property
    def costs(self) -> twin.Costs:
        """The cluster as the twin takes it."""
        return costs_of(*self[:5])

    @property
    def table(self) -> pd.DataFrame:
        """The tasks as dlsim takes them."""
        floats = np.array([[float(x) for x in row] for row in self.rows])
        columns = dict(zip(("arrival", "sigma", "deadline"), floats.T, strict=True))
        return pd.DataFrame(columns | {"user_key": self.keys, "user_nodes": self.user_nodes})

    @property
    def user_nodes(self) -> list[int]:
        """A number of nodes per task, for user splits."""
        return [1 + (key + i) % self.nodes for i, key in enumerate(self.keys)]

    def keys_of(self, policy: str) -> list[int] | list[Fraction]:
        """A key per task, as a policy of the registry ranks them, or else the user's."""
        order = ALL_ROWS[policy].order
        if callable(order) or order in ORDERS_OF_TWINS:
            return self.keys
        return [Fraction(float(key)) for key in ORDERS[order].key(self.table)]

    def fit(self, policy: str) -> "Instance":
        """Drop the costs that a policy does not know; give it those it needs."""
        partition = ALL_ROWS[policy].partition
        cms = self.cms or Fraction(1) if partition in LINKED else self.cms
        if partition in BARE:
            return self._replace(cms=cms, st=Fraction(0), sc=Fraction(0))
        if ALL_ROWS[policy].rounds == "best" and self.st + self.sc == 0:
            return self._replace(cms=cms, st=Fraction(1, 2))
        return self._replace(cms=cms)

    def simulate(
        self, policy: str, reading: dict[str, str] | None = None, negotiate: float = 0.0
    ) -> Schedule:
        """Run the engine."""
        reading_ = Reading.from_switches(reading or {})
        given = self.table, self.cluster, ALL_ROWS[policy], reading_
        return simulate_with_keys(*given, negotiate=negotiate)

    def exact(
        self,
        policy: str,
        reading: dict[str, str] | None = None,
        negotiate: float = 0.0,
        offers: bool = False,
    ) -> list[twin.Record]:
        """Run the twin: paper I's where tasks are planned in line, unless offers are asked."""
        row = ALL_ROWS[policy]
        if policy in IN_LINE and not (negotiate or offers):
            tasks = inserted.table(self.rows, self.keys_of(policy), self.user_nodes)
            return inserted.simulate(self.planner(policy, reading), tasks)
        return twin.simulate(
            self.rows,
            *self[:5],
            order=order_of(row),
            node_rule=row.nodes,
            overtake=row.overtake,
            admission=row.admission,
            reading={k: v for k, v in (reading or {}).items() if k in twin.DEFAULTS},
            keys=self.keys_of(policy),
            negotiate=negotiate or None,
            offers=offers,
        )

    def planner(self, policy: str, reading: dict[str, str] | None = None) -> inserted.Twin:
        """Return paper I's twin, empty."""
        row, reading = ALL_ROWS[policy], reading or {}
        known = {k: v for k, v in reading.items() if k in inserted.DEFAULTS}
        return inserted.Twin(self.costs, order_of(row), row.nodes, row.partition, row.rounds, known)


# --- how an instance is drawn: one recipe over any source of choices -------------------

Pick = Callable[[Any], Any]


def draw_instance(pick: Pick, whole: Callable[[int, int], int], most: int) -> Instance:
    """Draw an instance; `pick` chooses from a list, `whole` an integer from a range."""
    nodes = whole(1, 8)
    cms = Fraction(pick([1, 2, 3, 10, Fraction(1, 2), 0]))
    cps = Fraction(pick([1, 2, 5, 20, Fraction(3, 2), 0] if cms else [1, 2, 5, 20]))
    start_up = Fraction(pick([0, 0, 0, 1, 2, Fraction(1, 2), 5, 20]))
    set_up = Fraction(pick([0, 0, 1, 2, Fraction(1, 4)]))
    costs = twin.Costs(nodes, cms, cps, start_up, set_up)
    now, rows = Fraction(whole(0, 3)), []
    gap, slack, coarse = pick([1, 4, 20, 60]), pick([1, 2, 5, 20]), pick([1, 4])
    for _ in range(whole(1, most)):
        kind = pick(["batch", "later", "later", "meet"])
        if kind == "later":
            now += Fraction(whole(0, 4 * gap), coarse)
        elif kind == "meet" and rows:  # arrive when the task before could complete
            end = now + costs.E(rows[-1][1], pick([1, nodes]))
            now = end if Fraction(float(end)) == end else now
        sigma = Fraction(whole(1, 80), pick([1, 4, 4]))
        rows.append((now, sigma, _deadline(costs, sigma, slack, pick, whole)))
    return Instance(nodes, cms, cps, start_up, set_up, rows, [whole(0, 4) for _ in rows])


def _deadline(
    costs: twin.Costs, sigma: Fraction, slack: int, pick: Pick, whole: Callable[[int, int], int]
) -> Fraction:
    """Draw exactly E(n), E(n) and some slack, E(n) behind another task, or anything."""
    least = costs.E(sigma, whole(1, costs.nodes))
    kind = pick(["exact", "slack", "behind", "any", "any"])
    if kind == "exact":
        return least
    if kind == "slack":
        return least + Fraction(whole(0, 80), 4)
    if kind == "behind":
        return least + costs.E(Fraction(whole(1, 20)), whole(1, costs.nodes))
    return Fraction(whole(1, int(4 * slack * costs.E(sigma, 1)) + 1), 4)


def seeded(seed: object, most: int = 12) -> tuple[random.Random, Instance]:
    """Draw an instance from a seed, with the generator for more draws."""
    source = random.Random(repr(seed))
    return source, draw_instance(source.choice, source.randint, most)


def seeded_for(
    policy: str, seed: object, reading: dict[str, str] | None = None, most: int = 7
) -> tuple[random.Random, Instance, dict[str, str]]:
    """Draw an instance of paper I's kind, task by task: most meet a state with ties in it.

    Returns the generator for more draws, the instance, and the reading (drawn if None).
    """
    source = random.Random(repr((policy, seed)))
    reading = any_reading(source.choice, SWITCHES) if reading is None else reading
    nodes, cms = source.randint(2, 6), source.choice([1, 1, 2, Fraction(1, 2), 0])
    cps = source.choice([1, 3, 5, 10, 20, Fraction(3, 2), 0] if cms else [1, 3, 10])
    start_up, set_up = source.choice([0, 0, 1, Fraction(1, 4)]), source.choice([0, 0, 1, 2])
    costs = (Fraction(x) for x in (cms, cps, start_up, set_up))
    instance = Instance(nodes, *costs, [], []).fit(policy)
    before, since = instance.planner(policy, reading | {"backfill": "off"}), 0
    now = Fraction(source.randint(0, 8), 4)
    for i in range(source.randint(2, most)):
        row = (now, Fraction(source.randint(1, 40), source.choice([1, 4])), Fraction(10**6))
        instance = instance._replace(
            rows=[*instance.rows, row], keys=[*instance.keys, source.randint(0, 4)]
        )
        tasks = inserted.table(instance.rows, instance.keys_of(policy), instance.user_nodes)
        if now > tasks[since].arrival:  # nothing changes any more for the tasks before
            before.arrive(tasks[since:i])
            since = i
        last, r = met(source, instance, policy, before.copy(), tasks[since:])
        instance = instance._replace(rows=[*instance.rows[:-1], last])
        now += source.choice([0, 0, Fraction(source.randint(0, 60), 4)])
        later = [t for t in r if t > now and Fraction(float(t)) == t]
        if later and source.random() < 0.2:  # arrive when a node gets free
            now = source.choice(later)
    return source, instance, reading


Row = tuple[Fraction, Fraction, Fraction]


def met(
    source: random.Random,
    instance: Instance,
    policy: str,
    planner: inserted.Twin,
    tasks: list[inserted.Task],
) -> tuple[Row, list[Fraction]]:
    """Fit the last task to the state it finds; return it and the instants r_1..r_N there.

    The planner knows the tasks before these, which come at one instant.
    Its deadline is often exactly what some n can meet, its size sometimes such that a gap
    between two release times is exactly sigma tau.
    """
    row, (arrival, sigma, _) = ALL_ROWS[policy], instance.rows[-1]
    planner.arrive(tasks)
    found = [p for p in planner.counted["arrival"] if p.task is tasks[-1]]
    r = list(found[-1].seen[1]) if found else [arrival]
    gaps = [b - a for a, b in itertools.pairwise(r) if b > a]
    if gaps and instance.cms and source.random() < 0.3:
        sigma = source.choice(gaps) / instance.cms
    uneven = [n for n in range(2, len(r) + 1) if r[n - 1] > r[0]]
    n = source.choice(uneven if uneven and source.random() < 0.7 else range(1, len(r) + 1))
    due = r[n - 1] + planner.time(sigma, n)
    if row.partition in ("exact", "exact-n"):
        due = source.choice([due, splits.optimum(instance.costs, sigma, r[:n])])
    kind = source.choice(["tie", "tie", "short", "slack", "loose"])
    if kind == "short":
        due -= Fraction(1, 1024)
    elif kind != "tie":
        most = {"slack": 40, "loose": 400}[kind]
        due = Fraction(math.ceil(4 * due) + source.randint(0, most), 4)
    if due <= arrival:
        due = arrival + _deadline(instance.costs, sigma, 2, source.choice, source.randint)
    return (arrival, sigma, due - arrival), r


def any_reading(pick: Pick, switches: dict[str, tuple[str, ...]] = SWITCHES_M) -> dict[str, str]:
    """Draw a value for every switch (by default paper M's); often the default reading.

    A value follows from one draw and the name of its switch: one more switch moves no other.
    """
    if pick([True, False, False]):
        return {}
    draw = pick(range(10**9))
    return {
        name: random.Random(f"{draw} {name}").choice(options) for name, options in switches.items()
    }


@st.composite
def instances(draw: Any, most: int = 8) -> Instance:
    """Hypothesis: a small instance."""
    return draw_instance(
        lambda options: draw(st.sampled_from(options)),
        lambda low, high: draw(st.integers(low, high)),
        most,
    )


policies = st.sampled_from(list(ALL_ROWS))
readings = st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in SWITCHES.items()})


# --- comparison ------------------------------------------------------------------------


def close(exact: object, value: float) -> bool:
    """Tell whether a time agrees to 1e-9, relative; None and nan are one."""
    if exact is None:
        return math.isnan(value)
    return abs(float(exact) - value) <= 1e-9 * max(1.0, abs(value))


def differences(records: list[twin.Record], s: Schedule) -> list[str]:
    """List what differs between the twin's records and the engine's table."""
    found = []
    columns = [s.tasks[name].tolist() for name in (*DECIDED, *TIMES, "estimate")]
    for label, task, *row in zip(s.tasks.index, records, *columns, strict=True):
        *times, estimate = row[len(DECIDED) :]
        same = [getattr(task, name) for name in DECIDED] == row[: len(DECIDED)]
        same = same and all(close(getattr(task, t), x) for t, x in zip(TIMES, times, strict=True))
        if not (same and close(getattr(task, "estimate", task.completion), estimate)):
            shown = s.tasks.loc[label].to_dict()
            found.append(f"task {label}: twin {told(task)}, engine {shown}")
    return found


DECIDED = ("admitted", "nodes", "missed")
TIMES = ("start", "completion", "deadline")


def told(task: twin.Record) -> str:
    """Print a record with floats."""
    times = [*TIMES, "estimate"]
    shown = {t: getattr(task, t, None) for t in times}
    floats = {k: None if v is None else float(v) for k, v in shown.items()}
    return f"admitted={task.admitted} nodes={task.nodes} missed={task.missed} {floats}"


def chunk_differences(records: inserted.Records, s: Schedule) -> list[str]:
    """List the tasks whose sends and computations are not the twin's."""
    columns = ["alpha", "send_start", "send_end", "compute_end"]
    by_task: dict[object, list[list[float]]] = {}
    # lists, for a frame of every task would take longer than the engine
    for label, *row in zip(*(s.chunks[c].tolist() for c in ("task", *columns)), strict=True):
        by_task.setdefault(label, []).append(row)
    found = []
    for label, task in zip(s.tasks.index, records, strict=True):
        rows = by_task.get(label, [])
        wanted = [[getattr(c, name) for name in columns] for c in task.chunks]
        good = len(rows) == len(wanted) and all(
            close(x, y)
            for a, b in zip(wanted, rows, strict=True)
            for x, y in zip(a, b, strict=True)
        )
        if not good:
            shown = [[float(x) for x in row] for row in wanted]
            found.append(f"task {label}: twin {shown}, engine {rows}")
    return found

"""Small random instances of the real-time engine, for seeded and for Hypothesis tests.

Every number is a dyadic fraction, so that a float holds it exactly, but for deadlines that
are exactly E(n): there the twin gets the Fraction and the engine the nearest float.
"""

import math
import os
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pandas as pd
from hypothesis import strategies as st

from dlsim.realtime import POLICIES, SWITCHES, Cluster, Policy, Reading, Schedule, simulate
from tests.twins import realtime as twin

#: Multiplies the number of random instances of every differential test.
SCALE = float(os.environ.get("DLSIM_TEST_SCALE", "1"))


def by_user_key(tasks: pd.DataFrame) -> pd.Series:
    """Return the column `user_key` as a static order."""
    return tasks["user_key"]


#: The papers' policies and every other row that `Policy` allows.
ROWS: dict[str, Policy] = {
    **POLICIES,
    "dc in line": Policy("dc", "min"),
    "edf in line": Policy("edf", "min"),
    "fifo in line": Policy("fifo", "min"),
    "user": Policy(by_user_key, "min", overtake=True),
    "user in line": Policy(by_user_key, "min"),
    "user all": Policy(by_user_key, "all"),
    "user all, no admission": Policy(by_user_key, "all", admission=False),
}


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
        return twin.Costs(*self[:5])

    @property
    def table(self) -> pd.DataFrame:
        """The tasks as dlsim takes them."""
        rows = [[float(x) for x in row] for row in self.rows]
        table = pd.DataFrame(rows, columns=["arrival", "sigma", "deadline"], dtype=float)
        return table.assign(user_key=self.keys)

    def simulate(
        self, policy: str, reading: dict[str, str] | None = None, negotiate: float = 0.0
    ) -> Schedule:
        """Run the engine."""
        reading_ = Reading.of(reading or {})
        return simulate(self.table, self.cluster, ROWS[policy], reading_, negotiate)

    def exact(
        self,
        policy: str,
        reading: dict[str, str] | None = None,
        negotiate: float = 0.0,
        offers: bool = False,
    ) -> list[twin.Record]:
        """Run the twin."""
        row = ROWS[policy]
        return twin.simulate(
            self.rows,
            *self[:5],
            order=row.order if isinstance(row.order, str) else "user",
            node_rule=row.nodes,
            overtake=row.overtake,
            admission=row.admission,
            reading=reading,
            keys=self.keys,
            negotiate=negotiate or None,
            offers=offers,
        )


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


def any_reading(pick: Pick) -> dict[str, str]:
    """Draw a value for every switch; often the default reading."""
    if pick([True, False, False]):
        return {}
    return {name: pick(list(options)) for name, options in SWITCHES.items()}


@st.composite
def instances(draw: Any, most: int = 8) -> Instance:
    """Hypothesis: a small instance."""
    return draw_instance(
        lambda options: draw(st.sampled_from(options)),
        lambda low, high: draw(st.integers(low, high)),
        most,
    )


policies = st.sampled_from(list(ROWS))
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
    for task, row in zip(records, s.tasks.itertuples(), strict=True):
        same = (task.admitted, task.nodes, task.missed) == (row.admitted, row.nodes, row.missed)
        times = ("start", "completion", "deadline")
        if not (same and all(close(getattr(task, t), getattr(row, t)) for t in times)):
            found.append(f"task {row.Index}: twin {task}, engine {row}")
    return found

"""Properties of the real-time engine that need no twin, and a stateful comparison with it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dlsim.realtime import Cluster, Reading, Schedule, simulate
from tests.helpers.scale import LONG, scale_count
from tests.helpers.strategies import (
    ALL_ROWS,
    OWN_COLUMNS,
    ROWS_I,
    Instance,
    differences,
    instances,
    policies,
    readings,
    simulate_with_keys,
)

#: One source of examples per test: a failure reappears on every machine.
EXAMPLES = settings(deadline=None, derandomize=True, max_examples=scale_count(200, LONG, least=1))

#: The exact twin tries 64 numbers of rounds, with ever longer denominators, for "best".
quick = policies.filter(lambda name: ALL_ROWS[name].rounds != "best")
admitting = policies.filter(lambda name: ALL_ROWS[name].admission)


def is_fifo(policy: str) -> bool:
    """Tell whether a policy serves in the order of arrival."""
    return ALL_ROWS[policy].order == "fifo"


DECISIONS = ["admitted", "nodes", "missed"]
TIMES = ["start", "estimate", "completion"]


def run(instance: Instance, policy: str, reading: dict[str, str], table: pd.DataFrame) -> Schedule:
    """Simulate another table on the instance's cluster."""
    given = table, instance.cluster, ALL_ROWS[policy], Reading.from_switches(reading)
    return simulate(*given, ignore=[*OWN_COLUMNS, "owner"])


def assert_same(left: pd.DataFrame, right: pd.DataFrame, factor: float = 1.0) -> None:
    """Hold decisions equal, and times equal to 1e-9 after scaling the left ones."""
    pd.testing.assert_frame_equal(left[DECISIONS], right[DECISIONS])
    np.testing.assert_allclose(left[TIMES] * factor, right[TIMES], rtol=1e-9, atol=1e-12)


@EXAMPLES
@given(instances(), policies, readings, st.sampled_from([0.0, 1.5, 4.0]))
def test_every_schedule_is_valid(instance, policy, reading, negotiate):
    instance = instance.fit(policy)
    if not ALL_ROWS[policy].admission or policy in ROWS_I:
        negotiate = 0.0
    s = instance.simulate(policy, reading, negotiate)
    s.check()
    refused = ~s.tasks["admitted"]
    if s.parts is not None:  # a task is refused by fractions, its pieces as a whole
        refused = (~s.parts.tasks["admitted"]).groupby(s.submitted.owners).mean()
    assert s.reject_ratio == pytest.approx(refused.mean(), rel=1e-12)
    given_, agreed = instance.table["deadline"], s.tasks["deadline"]
    moved = agreed != given_
    assert s.tasks["admitted"][moved].all()
    assert (agreed[moved] <= negotiate * given_[moved] * (1 + 1e-9)).all()


@EXAMPLES
@given(instances(), policies, readings)
def test_a_run_repeats_itself(instance, policy, reading):
    instance = instance.fit(policy)
    first, second = (instance.simulate(policy, reading) for _ in range(2))
    pd.testing.assert_frame_equal(first.tasks, second.tasks)
    pd.testing.assert_frame_equal(first.chunks, second.chunks)


@EXAMPLES
@given(instances(), admitting, readings)
def test_a_refused_task_leaves_no_trace(instance, policy, reading):
    """Re-planning without a new task changes nothing, so the refused may as well not come."""
    instance = instance.fit(policy)
    if reading.get("batch_commit") == "commit" and reading.get("same_time") == "test":
        del reading["same_time"]  # there a refusal still commits the starts of this instant
    whole = instance.simulate(policy, reading)
    stayed = whole.tasks["admitted"]
    alone = run(instance, policy, reading, instance.table[stayed])
    assert_same(whole.tasks[stayed], alone.tasks)


@EXAMPLES
@given(instances(), admitting, st.integers(0, 8), st.integers(1, 40))
def test_a_hopeless_newcomer_changes_nothing(instance, policy, place, sigma):
    instance = instance.fit(policy)
    table, place = instance.table, min(place, len(instance.rows))
    now = instance.rows[min(place, len(instance.rows) - 1)][0]
    planner, size = instance.planner(policy), Fraction(sigma)
    budget = min(planner.time(size, n) for n in range(1, instance.nodes + 1)) * Fraction(99, 100)
    newcomer = pd.DataFrame(
        [[float(now), float(sigma), float(budget), 0, 1]], columns=table.columns, index=[-1]
    )
    more = pd.concat([table.iloc[:place], newcomer, table.iloc[place:]])
    crowded = run(instance, policy, {}, more)
    assert not crowded.tasks["admitted"].loc[-1]
    assert_same(run(instance, policy, {}, table).tasks, crowded.tasks.drop(index=-1))


@EXAMPLES
@given(instances(), st.sampled_from(["FIFO", "EDF", "user"]), readings)
def test_on_one_node_the_fewest_are_all(instance, order, reading):
    one = instance._replace(nodes=1)
    few, whole = ("user", "user all") if order == "user" else (f"{order}MN", f"{order}AN")
    assert_same(one.simulate(few, reading).tasks, one.simulate(whole, reading).tasks)


@EXAMPLES
@given(instances(), policies, readings, st.sampled_from([2.0, 1024.0, 2.0**-10, 3.0, 1 / 7, 1e5]))
def test_the_unit_of_time_does_not_matter(instance, policy, reading, factor):
    instance = instance.fit(policy)
    c = instance.cluster
    scaled = Cluster(c.nodes, c.cms * factor, c.cps * factor, c.st * factor, c.sc * factor)
    table = instance.table
    times = ["arrival", "deadline"]
    s = simulate_with_keys(
        table.assign(**{t: table[t] * factor for t in times}),
        scaled,
        ALL_ROWS[policy],
        Reading.from_switches(reading),
    )
    assert_same(instance.simulate(policy, reading).tasks, s.tasks, factor)


@EXAMPLES
@given(instances(), policies, readings, st.randoms(use_true_random=False))
def test_labels_and_columns_do_not_matter(instance, policy, reading, source):
    instance = instance.fit(policy)
    labels = [f"job {i}" for i in range(len(instance.rows))]
    source.shuffle(labels)
    table = instance.table.set_axis(labels).assign(owner="me")[
        ["owner", "deadline", "user_nodes", "user_key", "sigma", "arrival"]
    ]
    s = run(instance, policy, reading, table)
    assert s.tasks.index.tolist() == labels
    assert_same(instance.simulate(policy, reading).tasks.set_axis(labels), s.tasks)


@EXAMPLES
@given(instances(), policies.filter(is_fifo), readings)
def test_fifo_does_not_mind_when_a_batch_is_committed(instance, policy, reading):
    instance = instance.fit(policy)
    commit, replan = (
        instance.simulate(policy, reading | {"batch_commit": value}).tasks
        for value in ("commit", "replan")
    )
    assert_same(commit, replan)


@EXAMPLES
@given(instances(), policies, readings, st.integers(0, 7))
def test_the_future_does_not_touch_the_past(instance, policy, reading, at):
    """Cut before an arrival: the same tasks are admitted, and what had started is the same."""
    for switch in ("commit", "split"):  # there a start does not fix the whole task
        reading.pop(switch, None)
    instance = instance.fit(policy)
    arrivals = sorted({row[0] for row in instance.rows})
    cut = float(arrivals[min(at, len(arrivals) - 1)])
    table = instance.table
    before = run(instance, policy, reading, table[table["arrival"] < cut]).tasks
    whole = instance.simulate(policy, reading).tasks.loc[before.index]
    assert (before["admitted"] == whole["admitted"]).all()
    started = whole["start"] < cut * (1 - 1e-9)
    assert (started == (before["start"] < cut * (1 - 1e-9))).all()
    assert_same(before[started], whole[started])


@EXAMPLES
@given(instances(), policies.filter(is_fifo).filter(lambda name: name != "FIFOMN"))
def test_in_line_no_task_moves_for_those_behind(instance, policy):
    instance = instance.fit(policy)
    whole = instance.simulate(policy).tasks
    first = run(instance, policy, {}, instance.table.iloc[: len(instance.rows) // 2]).tasks
    assert_same(first, whole.loc[first.index])


class Office(RuleBasedStateMachine):
    """Tasks arrive, time passes, clients ask: the engine on the growing table is the twin."""

    @initialize(instance=instances(most=1), policy=quick, reading=readings)
    def open(self, instance: Instance, policy: str, reading: dict[str, str]) -> None:
        """Open with one task."""
        self.instance, self.policy, self.reading = instance.fit(policy), policy, reading
        self.now, self.before = instance.rows[-1][0], None

    @rule(
        sigma=st.integers(1, 40),
        kind=st.sampled_from(["least", "behind", "loose"]),
        slack=st.integers(0, 200),
        key=st.integers(0, 4),
        data=st.data(),
    )
    def arrive(self, sigma: int, kind: str, slack: int, key: int, data: st.DataObject) -> None:
        """One more task at this instant."""
        costs, size = self.instance.costs, Fraction(sigma, 2)
        deadline = costs.E(size, data.draw(st.integers(1, self.instance.nodes)))
        if kind == "behind":
            deadline += costs.E(Fraction(slack + 1, 4), self.instance.nodes)
        if kind == "loose":
            deadline += Fraction(slack, 4)
        rows = [*self.instance.rows, (self.now, size, deadline)]
        self.instance = self.instance._replace(rows=rows, keys=[*self.instance.keys, key])

    @rule(quarters=st.integers(1, 400))
    def advance(self, quarters: int) -> None:
        """Let time pass."""
        self.now += Fraction(quarters, 4)

    @precondition(lambda self: len(self.instance.rows) > 1 and self.negotiates())
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """Ask for an offer; a task that accepts it is admitted."""
        s = self.instance.simulate(self.policy, self.reading)
        refused = s.tasks.index[~s.tasks["admitted"]]
        if not len(refused):
            return
        task = data.draw(st.sampled_from(refused.tolist()))
        offer = s.offer(task)
        exact = self.instance.exact(self.policy, self.reading, offers=True)[task].offer
        assert (offer is None) == (exact is None)
        if offer is not None:
            assert offer.deadline == pytest.approx(float(exact.deadline), rel=1e-9)
            assert offer.nodes == exact.nodes
            assert offer.completion <= (self.instance.rows[task][0] + exact.deadline) * (1 + 1e-9)

    def negotiates(self) -> bool:
        """Tell whether the twin knows offers: paper M's does."""
        return self.policy not in ROWS_I and self.reading.get("backfill") != "on"

    def stays(self) -> bool:
        """Tell whether a task that has begun is fixed, and no piece of it is placed anew."""
        moves = {"batch_order": "policy", "commit": "last", "split": "piece"}
        return all(self.reading.get(name) != value for name, value in moves.items())

    @invariant()
    def agrees(self) -> None:
        """Every decision is the twin's; what was decided or dispatched stays."""
        if not hasattr(self, "instance"):
            return
        s = self.instance.simulate(self.policy, self.reading)
        assert differences(self.instance.exact(self.policy, self.reading), s) == []
        s.check()
        if self.before is not None:
            now, tasks = self.before
            later = s.tasks.loc[tasks.index]
            past = tasks["start"] < now * (1 - 1e-9)
            if self.reading.get("batch_order") != "policy":
                assert (tasks["admitted"] == later["admitted"]).all()
            if self.stays():
                assert_same(tasks[past], later[past])
        self.before = float(self.now), s.tasks


Office.TestCase.settings = settings(
    deadline=None,
    derandomize=True,
    max_examples=scale_count(20, LONG, least=1),
    stateful_step_count=15,
)
TestOffice = Office.TestCase

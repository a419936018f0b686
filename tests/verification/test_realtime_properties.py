"""Properties of the real-time engine that need no twin, and a stateful comparison with it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dlsim.realtime import Reading, Schedule, simulate
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
)

#: One source of examples per test: a failure reappears on every machine.
EXAMPLES = settings(deadline=None, derandomize=True, max_examples=scale_count(200, LONG, least=1))

#: The exact twin tries 64 numbers of rounds, with ever longer denominators, for "best".
quick = policies.filter(lambda name: ALL_ROWS[name].rounds != "best")
admitting = policies.filter(lambda name: ALL_ROWS[name].admission)


DECISIONS = ["admitted", "nodes", "missed"]
TIMES = ["start", "estimate", "completion"]


def run(instance: Instance, policy: str, reading: dict[str, str], table: pd.DataFrame) -> Schedule:
    """Simulate another table on the instance's cluster."""
    given = table, instance.cluster, ALL_ROWS[policy], Reading.from_switches(reading)
    return simulate(*given, ignore=OWN_COLUMNS)


def assert_same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    """Hold decisions equal, and times equal to 1e-9."""
    pd.testing.assert_frame_equal(left[DECISIONS], right[DECISIONS])
    np.testing.assert_allclose(left[TIMES], right[TIMES], rtol=1e-9, atol=1e-12)


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

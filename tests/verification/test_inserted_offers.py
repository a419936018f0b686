"""Offers of paper I's policies: the smallest deadline at which a refused task is admitted."""

import pandas as pd
import pytest

from dlsim.realtime import Reading
from tests.helpers.scale import ENOUGH, scale_count
from tests.helpers.strategies import ALL_ROWS, ROWS_I, Instance, seeded_for, simulate_with_keys

#: Deadlines below and at an offer, as parts of it; the offer is exact to the tolerance.
BELOW = [0.05, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9]


def outcome(instance: Instance, policy: str, reading: dict[str, str], deadlines: pd.Series):
    """Simulate the instance with other deadlines."""
    table = instance.table.assign(deadline=deadlines)
    return simulate_with_keys(
        table, instance.cluster, ALL_ROWS[policy], Reading.from_switches(reading)
    )


def refused(policy: str, reading: dict[str, str], count: int):
    """Yield random instances, the schedule, and one task each that was refused."""
    for k in range(scale_count(count, ENOUGH)):
        source, instance, drawn = seeded_for(policy, ("offers", k), reading or None)
        # pieces get no offers; and a deadline may not change which task is tested first
        drawn = drawn | {"split": "all", "batch_order": "index"}
        s = instance.simulate(policy, drawn)
        away = s.tasks.index[~s.tasks["admitted"]].tolist()
        if away:
            yield instance, drawn, s, source.choice(away)


@pytest.mark.parametrize("policy", ROWS_I)
def test_the_offer_is_admitted_and_nothing_below_it_is(policy):
    made = 0
    for instance, reading, s, task in refused(policy, {}, 12):
        offer, asked = s.offer(task), instance.table["deadline"]
        where = (policy, reading, task, instance, offer)
        if offer is None:
            for factor in (1.5, 3, 10, 1e3):
                longer = asked.where(asked.index != task, asked[task] * factor)
                # a longer deadline moves the task back in its line, never into the plan
                assert not outcome(instance, policy, reading, longer).tasks["admitted"][task], where
            continue
        made += 1
        assert offer.deadline != asked[task], where  # smaller where n is counted on arrival
        agreed = asked.where(asked.index != task, offer.deadline)
        row = outcome(instance, policy, reading, agreed).tasks.loc[task]
        assert row["admitted"], where
        for part in BELOW:
            less = asked.where(asked.index != task, offer.deadline * part)
            assert not outcome(instance, policy, reading, less).tasks["admitted"][task], where
    assert made > 0


@pytest.mark.parametrize("policy", ROWS_I)
def test_negotiation_admits_every_task_that_accepts(policy):
    """A refused task whose offer is within the factor is admitted at just that deadline."""
    agreed = 0
    for instance, reading, s, _ in refused(policy, {}, 10):
        talks = instance.simulate(policy, reading, negotiate=4.0)
        talks.check()
        first = s.tasks.index[~s.tasks["admitted"]][0]
        offer, row = s.offer(first), talks.tasks.loc[first]
        within = offer is not None and offer.deadline <= 4 * s.tasks.loc[first, "deadline"]
        assert row["admitted"] == within, (policy, reading, instance)
        if within:
            assert row["deadline"] == pytest.approx(offer.deadline, rel=1e-12)
            agreed += 1
    assert agreed > 0

"""All nodes or a rule that follows the leader: the engine against twins in exact arithmetic."""

import pytest
from gmpy2 import mpq as Fraction

from dlsim.errors import InputError
from dlsim.realtime import Cluster, Policy, Reading, simulate, workload
from tests.scale import SCALE
from tests.strategies import ALL_ROWS, SWITCHES, any_reading, seeded
from tests.twins import splits

LEADER = Policy("fifo", "leader", "exact")
BEYOND = {
    f"{order} {nodes}": Policy(order, nodes, "exact")
    for order in ("fifo", "edf")
    for nodes in ("all", "fragment")
}


@pytest.fixture
def beyond(monkeypatch):
    for name, row in BEYOND.items():
        monkeypatch.setitem(ALL_ROWS, name, row)


@pytest.mark.parametrize("name", BEYOND)
def test_all_nodes_and_fragments_are_split_by_the_optimum(name, beyond):
    """Under every reading; what they leave is checked from the model's definition."""
    for seed in range(round(30 * SCALE)):
        source, instance = seeded((name, seed))
        instance.fit(name).simulate(name, any_reading(source.choice, SWITCHES)).check()


def end_on(instance, sigma, release):
    """Return when nodes released at these times are done, and how many of them serve."""
    end = splits.optimum(instance.costs, sigma, release)
    return end, sum(time < end for time in release)


def followed(instance):
    """Say who is admitted, and when each ends, by the rule's definition."""
    count = instance.nodes
    first = int(count * instance.costs.E(1, count) <= Fraction(5, 4) * instance.costs.E(1, 1))
    free, refused, ends = [[Fraction(0)] * count for _ in range(4)], [0, 0, 0], []
    for arrival, sigma, deadline in instance.rows:
        now, limit = Fraction(arrival), Fraction(arrival) + Fraction(deadline)
        lead = refused.index(min(refused))
        if refused[first] == refused[lead]:
            lead = first
        for place, rule in enumerate((0, 1, 2, lead)):
            release = [max(now, time) for time in free[place]]
            few = [n for n in range(1, count + 1) if end_on(instance, sigma, release[:n])[0]
                   <= limit]  # fmt: skip
            if not few:
                if place < 3:
                    refused[place] += 1
                else:
                    ends.append(None)
                continue
            idle = sum(time <= now for time in free[place])
            end, used = end_on(instance, sigma, release[: (few[0], count, max(few[0], idle))[rule]])
            free[place] = sorted([*free[place][used:], *[end] * used])
            if place == 3:
                ends.append(end)
    return ends


def test_the_leader_is_followed():
    for seed in range(round(150 * SCALE)):
        _, instance = seeded(("leader", seed))
        instance = instance._replace(st=Fraction(0), sc=Fraction(0), cps=instance.cps or 1)
        s = simulate(instance.table, instance.cluster, LEADER)
        s.check()
        ends = followed(instance)
        assert s.tasks["admitted"].tolist() == [end is not None for end in ends]
        found = s.tasks["completion"].dropna().tolist()
        assert found == pytest.approx([float(end) for end in ends if end is not None], rel=1e-9)


def test_on_one_node_every_rule_is_one():
    cluster = Cluster(1, 2, 20)
    tasks = workload.dcratio(cluster, 1.0, 100_000, seed=5, mean=50)
    one, other = (simulate(tasks, cluster, name).tasks for name in (LEADER, "FIFO-EXACT-N"))
    assert one["admitted"].equals(other["admitted"])


@pytest.mark.parametrize("reading", ["link=shared", "release=finish", "backfill=on"])
def test_it_is_refused_where_it_is_not_defined(reading):
    tasks = workload.dcratio(Cluster(2, 1, 9), 1.0, 1_000, seed=5, mean=5)
    with pytest.raises(InputError, match=reading.replace("=", ".*")):
        simulate(tasks, Cluster(2, 1, 9), LEADER, Reading.of(dict([reading.split("=")])))
    with pytest.raises(InputError, match="no offers"):
        simulate(tasks, Cluster(2, 1, 9), LEADER, negotiate=2.0)

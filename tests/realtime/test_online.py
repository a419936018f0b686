"""The test at one instant decides what the simulation decides, on nodes as busy as it left them."""

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import POLICIES, Cluster, Policy, Reading, simulate
from dlsim.realtime.simulate import plan_at_instant, require_online

PROMISING = [
    name for name, policy in POLICIES.items()
    if policy.admission and policy.nodes != "user" and policy.partition not in ("umr", "umr-iit")
]  # fmt: skip


def stream(seed, count):
    source = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "arrival": np.cumsum(source.exponential(700, count)),
            "sigma": source.exponential(200, count) + 1,
            "deadline": source.uniform(1500, 9000, count),
        }
    )


@pytest.mark.parametrize("link", ["per_task", "shared"])
@pytest.mark.parametrize("policy", PROMISING)
def test_an_instant_decides_as_the_simulation_does(policy, link):
    cluster, reading, tasks = Cluster(8, 1, 100), Reading(link=link), stream(7, 16)
    s = simulate(tasks, cluster, policy, reading)
    until = s.tasks["estimate"]
    arrival, sigma = tasks["arrival"].to_numpy(), tasks["sigma"].to_numpy()
    due = arrival + tasks["deadline"].to_numpy()
    for i, now in enumerate(arrival):
        known = s.tasks.iloc[:i]
        known = known[known["admitted"]]
        begun = known[known["start"] < now].index
        chunks = s.chunks[s.chunks["task"].isin(begun)]
        busy = chunks["task"].map(until).groupby(chunks["node"]).max()
        release = busy.reindex(range(8), fill_value=now).to_numpy() - now
        sent = chunks["send_end"].max() - now if len(chunks) and link == "shared" else 0.0
        waiting = known[known["start"] >= now].sort_values("start", kind="stable").index.tolist()
        ids = [*waiting, i]
        found = plan_at_instant(
            sigma[ids], due[ids] - now, release, cluster, POLICIES[policy], reading, sent
        )
        assert found.admitted[:-1].all()
        assert found.admitted[-1] == s.tasks["admitted"].iloc[i]
        if POLICIES[policy].order == "fifo" and not POLICIES[policy].overtake:  # never put back
            np.testing.assert_allclose(now + found.estimate[:-1], until[waiting], rtol=1e-9)
        if not found.admitted[-1]:
            offer = s.offer(i)
            deadline = np.nan if offer is None else offer.deadline
            np.testing.assert_allclose(found.offer[-1], deadline, rtol=1e-9)


def test_busy_nodes_and_a_busy_link_by_hand():
    cluster, policy = Cluster(2, 1, 1), POLICIES["EDF-OPR-MN"]
    found = plan_at_instant([6.0], [10.0], [4.0, -3.0], cluster, policy, Reading())
    assert found.admitted[0] is np.False_  # both from 4 on: 4 + 6 * 2 / 1.5 = 12; one: 0 + 12
    assert found.offer[0] == 12
    found = plan_at_instant([6.0], [12.0], [4.0, 0.0], cluster, policy, Reading())
    assert (found.nodes[0], found.start[0], found.estimate[0]) == (1, 0, 12)
    found = plan_at_instant([6.0], [20.0], [0.0, 0.0], cluster, policy, Reading(link="shared"), 3.0)
    assert (found.start[0], found.estimate[0]) == (3, 15)


@pytest.mark.parametrize("policy", [POLICIES["FIFOANNA"], POLICIES["FIFO-US"],
                                    Policy(lambda tasks: tasks["sigma"], "min")])  # fmt: skip
def test_what_makes_no_promise_is_refused(policy):
    with pytest.raises(InputError, match="a promise needs admission control"):
        require_online(policy, Cluster())

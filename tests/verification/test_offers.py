"""An offer is kept, and no shorter deadline would be admitted."""

from dlsim.realtime import Cluster, simulate, workload


def test_offers_are_kept_and_nothing_shorter_would_be():
    cluster = Cluster(16, 1, 100)
    tasks = workload.dcratio(cluster, 1.2, 300_000, seed=5)
    s = simulate(tasks, cluster, "EDF-DLT")
    refused = s.tasks.index[~s.tasks["admitted"]]
    some = refused[:: max(1, len(refused) // 6)]
    assert len(some) > 3
    for task in some:
        offer = s.offer(task)
        for factor, admitted in ((1.0, True), (0.999, False)):
            asked = tasks["deadline"].where(tasks.index != task, offer.deadline * factor)
            again = simulate(tasks.assign(deadline=asked), cluster, "EDF-DLT")
            assert again.tasks.loc[task, "admitted"] == admitted

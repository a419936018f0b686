"""The bound of ten thousand tasks is computed within a minute."""

import time

from dlsim.realtime import Cluster, workload
from dlsim.realtime.bound import clairvoyant_bound


def test_ten_thousand_tasks_take_a_minute_at_most():
    cluster = Cluster(16, 1, 100)
    tasks = workload.dcratio(cluster, 1.0, 28_000_000, seed=0, mean=200)
    assert len(tasks) >= 10_000
    begun = time.process_time()
    clairvoyant_bound(tasks, cluster)
    assert time.process_time() - begun < 60

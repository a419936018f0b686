"""Loads on a Dask cluster whose workers, or whose head, are killed at any moment."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.live import Head, loads
from tests import cluster_work as work

#: A head that measures, or promises a load and finishes it, or what its log tells of it.
HEAD = """
import sys
from dlsim.live import Head, loads
from tests import cluster_work as work
address, path, log = sys.argv[1:]
with Head(address, policy="EDFAN", log=log) as head:
    load = loads.lines(path)
    if not head.knows(work.numbers, load):
        head.calibrate(work.numbers, load, (0.02, 0.05), 1)
    else:
        if not head.jobs:
            head.submit(work.numbers, load, 600, work.add)
        promise = head.jobs[0].promise
        print(promise.finish / promise.margin, flush=True)
        print(*head.jobs[0].result(300), flush=True)
"""


def head_kills(path, moments, source):
    """Kill -9 a head at parts of the time its load takes; its command again finishes the load."""
    from distributed import LocalCluster  # an extra; what collects doctests comes without it

    log = path.with_name("head.sqlite")
    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs="ERROR"
    ) as cluster:
        command = [sys.executable, "-c", HEAD, cluster.scheduler_address, str(path), str(log)]
        subprocess.run(command, check=True)
        measured = log.read_bytes()
        for moment in moments:
            log.write_bytes(measured)
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
                seconds = float(first.stdout.readline())
                time.sleep(moment * seconds)
                first.kill()
            again = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            yield moment, again.stdout.splitlines()[-1].split()


def worker_kills(path, moments, source):
    """Kill -9 one of three workers at parts of the time a load takes."""
    load, costs = loads.lines(path), {}
    for moment in moments:
        with Head(workers=3, policy="EDFAN") as head:
            if not costs:
                head.calibrate(work.numbers, load, (0.02, 0.05), 1)
            costs = head.costs | costs
            head.costs.update(costs)
            job = head.submit(work.numbers, load, 600, work.add)
            pids = sorted(head._client.run(os.getpid).values())
            time.sleep(moment * job.promise.finish / job.promise.margin)
            os.kill(int(source.choice(pids)), signal.SIGKILL)
            yield moment, job.result(300)


KILLS = {"worker": worker_kills, "head": head_kills}


def kills(count=20, lines=30_000, seed=11):
    """Kill workers, then heads, at so many moments each; tabulate what became of each load.

    A load is lines with a number each: a result must hold every number once. A moment is a part
    of the time that the load was expected to take.
    """
    rows, source = [], np.random.default_rng(seed)
    moments = np.linspace(0.02, 0.98, count).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.txt"
        path.write_text("".join(f"{k}\n" for k in range(lines)))
        for who, kill in KILLS.items():
            for moment, result in kill(path, moments, source):
                found = np.array(result, dtype=int)
                seen = np.bincount(found, minlength=lines)
                lost, twice = int((seen == 0).sum()), int((seen > 1).sum())
                rows.append((who, moment, found.tolist() == list(range(lines)), lost, twice))
                print(*rows[-1], flush=True)
    return pd.DataFrame(rows, columns=["who", "moment", "right", "lost", "twice"])

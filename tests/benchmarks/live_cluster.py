"""How well promises hold on real workers: the tables under data/live, and how they were made.

``python -m tests.benchmarks.live_cluster data/live`` measures on eight worker processes here, each
held to a tenth of a core by pausing (`tests.cluster_work`), so that two cores carry them; and on
two that are not held.
`kills` writes what becomes of loads whose workers, or whose head, are killed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.files import write_csv
from dlsim.live import Head, loads
from dlsim.live.head import _run
from dlsim.realtime import workload
from tests import cluster_work as work
from tests.benchmarks.realtime import promises

WORKERS, POLICIES = 8, ("EDF-OPR-MN", "EDF-DLT", "EDF-EXACT-N", "EDFAN")
#: What is computed: the function, what adds two results up, and the seconds of one unit on a core.
LINE = '10.0.{}.{} - - [23/Nov/2026:10:00:00 +0000] "GET /page/{} HTTP/1.1" {} {}\n'


def inputs(folder):
    """A text, a web server's log and a film, each several seconds of a whole core."""
    source = np.random.default_rng(2026)
    text, log = Path(folder) / "text.txt", Path(folder) / "log.txt"
    lengths = source.integers(2, 11, (1_200_000, 10))
    text.write_text("\n".join(" ".join("w" * n for n in row) for row in lengths.tolist()))
    rows = zip(*(source.integers(0, 255, 600_000).tolist() for _ in range(2)),
               source.integers(0, 999, 600_000).tolist(),
               source.choice([200, 304, 404, 500], 600_000).tolist(),
               source.integers(100, 99_999, 600_000).tolist(), strict=True)  # fmt: skip
    log.write_text("".join(LINE.format(*row) for row in rows))
    film = source.integers(0, 256, (9_000, 64, 64), dtype=np.uint8)
    return {
        "words of a text": (work.held_vocabulary, work.add, loads.lines(text)),
        "traffic in a log": (work.held_traffic, work.add, loads.lines(log)),
        "frames of a film": (work.held_peaks, work.stack, loads.items(film)),
    }


def stream(head, function, load, count, seconds, seed):
    """Loads by paper I's law (load .8, DCRatio 3) whose mean takes so long on all nodes."""
    cluster = head.cluster(function)
    units = seconds * cluster.nodes / (cluster.cps + cluster.cms)
    tasks = workload.dcratio(cluster, 0.8, 8 * seconds * count, seed, mean=units, dc_ratio=3.0)
    tasks = tasks[tasks["sigma"] <= load.size].head(count).reset_index(drop=True)
    return tasks[["arrival", "sigma", "deadline"]]


def replayed(
    name, function, combine, load, policy, count, workers=WORKERS, seconds=2.0, seed=7
):  # fmt: skip
    """One stream of loads on some workers: a row per load, the chunks, the measurements."""
    with Head(workers=workers, policy=policy) as head:
        head.calibrate(function, load, (0.005, 0.01, 0.02, 0.03), 2)
        tasks = stream(head, function, load, count, seconds, seed)
        found = head.replay(function, load, tasks, combine)
        chunks = pd.concat(
            job.chunks.assign(load=job.number, came=job.arrival) for job in head.jobs if job.sent
        )
        samples = head.costs[next(iter(head.costs))].table()
    who = {"function": name, "policy": policy}
    return found.assign(**who), chunks.assign(**who), samples.assign(**who)


def against_dask(name, function, combine, load):
    """Makespan of one load: promised and divided once, and Dask's own way, 10 x N pieces."""
    with Head(workers=WORKERS) as head:
        head.calibrate(function, load, (0.005, 0.01, 0.02, 0.03), 2)
        part = load.cut([0.5, 0.5])[0].load
        rows = []
        for _ in range(3):
            job = head.submit(function, part, 3600.0, combine)
            tight = head.submit(function, part, 0.001, combine)
            head.wait()
            job = head.submit(function, part, 1.05 * tight.promise.offer, combine)
            job.result()
            ours = job.end - job.arrival
            start = time.time()
            pieces = [p for p in part.cut([1.0] * 10 * WORKERS) if p]
            data = head._client.scatter([p.data for p in pieces], hash=False)
            done = head._client.map(partial(_run, function, pieces[0].read), data, pure=False)
            head._client.gather(done)
            rows.append((name, ours, time.time() - start))
    return pd.DataFrame(rows, columns=["function", "divided", "mapped"])


def repeated(name, function, load, count=12):
    """Seconds of CPU for the same piece, alone, again and again: how steady the machine is."""
    piece = load.cut([0.05, 0.95])[0]
    data, rows = piece.read(piece.data), []
    for _ in range(count):
        before = time.thread_time()
        function(data)
        rows.append((name, time.thread_time() - before))
    return pd.DataFrame(rows, columns=["function", "seconds"])


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


def kills(out, count=20, lines=30_000, seed=11):
    """Kill workers, then heads, at so many moments each; write what became of each load.

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
    table = pd.DataFrame(rows, columns=["who", "moment", "right", "lost", "twice"])
    write_csv(out, table)
    return table


def main(out, count=34):
    """Measure everything and write the tables."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    rows, chunks, samples, races, repeats = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        given = inputs(folder)
        first = next(iter(given))
        runs = [(name, given[name], POLICIES[0]) for name in given]
        runs += [(first, given[first], policy) for policy in POLICIES[1:]]
        whole = work.vocabulary, *given[first][1:]
        runs.append((f"{first}, two whole cores", whole, POLICIES[0], 2, 0.5))
        for name, what, policy, *held in runs:
            table, sent, measured = replayed(name, *what, policy, count, *held)
            print(name, policy, _line(table), flush=True)
            rows.append(table)
            chunks.append(sent)
            samples.append(measured)
        for name, (function, _, load) in given.items():
            repeats.append(repeated(name, function, load))
        for name in given:
            races.append(against_dask(name, *given[name]))
            print(races[-1].to_string(), flush=True)
    write_csv(out / "loads.csv", pd.concat(rows).reset_index(names="load"))
    write_csv(out / "chunks.csv", pd.concat(chunks).reset_index(drop=True))
    write_csv(out / "samples.csv", pd.concat(samples).reset_index(drop=True))
    write_csv(out / "races.csv", pd.concat(races).reset_index(drop=True))
    write_csv(out / "repeats.csv", pd.concat(repeats).reset_index(drop=True))
    write_csv(out / "decisions.csv", pd.DataFrame(promises()))
    kills(out / "kills.csv")


def _line(table):
    done = table[table["promised"]]
    error = abs(done["completion"] - done["expected"]) / (done["expected"] - done["arrival"])
    return (f"{len(done)} of {len(table)} promised, {done['kept'].mean():.3f} kept, simulated "
            f"{table['simulated'].sum()}; error median {error.median():.3f} 95 % "
            f"{error.quantile(0.95):.3f}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

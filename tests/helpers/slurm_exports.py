"""Exports of Slurm's accounting, made by scripts that know the jobs in them.

Each function returns the text of an export, the usable jobs as they should be read, and how many
lines are left out by reason.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

LINES = 200
#: A Saturday evening; summer time begins in the night at 01:00 UTC.
BEGIN = int(datetime(2024, 3, 30, 22, tzinfo=UTC).timestamp())
HEADER = (
    "JobID|User|Group|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes"
    "|AllocTRES"
)
STEP, RUNNING = "step of a job", "still running"
WAITING = "not started (waiting, or cancelled before)"
AGAIN, BROKEN = "line that comes again", "line without the {} fields of its header"


def in_zone(seconds, zone="Europe/Berlin"):
    return datetime.fromtimestamp(seconds, ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S%z")


def clock(seconds):
    """Return a duration as sacct writes Elapsed and Timelimit."""
    days, rest = divmod(seconds, 86400)
    hours, minutes = divmod(rest // 60, 60)
    return f"{days}-" * (days > 0) + f"{hours:02d}:{minutes:02d}:{rest % 60:02d}"


def draw_jobs(rng):
    """Yield jobs without end, by submission, from `BEGIN` on."""
    submit = BEGIN
    while True:
        submit += int(rng.integers(0, 1200))
        run_time = int(rng.integers(1, 200_000))
        gpus = int(rng.choice([0, 0, 1, 4]))
        yield {
            "submit": submit, "wait": int(rng.integers(0, 5000)), "run_time": run_time,
            "processors": int(rng.integers(1, 129)), "gpus": gpus, "nodes": int(rng.integers(1, 5)),
            "minutes": run_time // 60 + int(rng.integers(1, 600)),
            "user": str(rng.choice(["ann", "bob", "o'neil", "domänen-nutzer", '"x"'])),
            "group": str(rng.choice(["g1", "g 2"])), "queue": "gpu" if gpus else "batch",
        }  # fmt: skip


def clean(jobs, count="processors"):
    """Return the table that should be read of the jobs, whose submit times may be out of order."""
    table = pd.DataFrame(jobs)
    table["processors"] = table[count]
    table["estimate"] = 60.0 * table["minutes"]
    table = table[table["processors"] > 0].sort_values("submit", kind="stable")
    table["submit"] -= table["submit"].iloc[0]
    columns = "submit wait run_time processors estimate user group queue".split()
    kinds = {**dict.fromkeys(("submit", "wait", "run_time"), float), "processors": np.int64}
    return table[columns].astype(kinds).reset_index(drop=True)


def with_steps(seed):
    """Make an export without -X, with times of Berlin and their offset, and durations in words."""
    rng, used, skipped = np.random.default_rng(seed), [], {STEP: 0, RUNNING: 0}
    lines = ["JobIDRaw|JobName|User|Group|Partition|Submit|Start|End|Elapsed|Timelimit|NCPUS|State"]
    jobs = draw_jobs(rng)
    while len(lines) <= LINES:
        job, number = next(jobs), 1000 + len(lines)
        start, runs = job["submit"] + job["wait"], rng.random() < 0.1
        end = "Unknown" if runs else in_zone(start + job["run_time"])
        limit = clock(60 * job["minutes"])
        if rng.random() < 0.2:
            limit, job["minutes"] = str(rng.choice(["UNLIMITED", "Partition_Limit", ""])), np.nan
        skipped[RUNNING] += runs
        if not runs:
            used.append(job)
        rest = f"{in_zone(job['submit'])}|{in_zone(start)}|{end}|{clock(job['run_time'])}"
        state = "RUNNING" if runs else "COMPLETED"
        lines.append(
            f"{number}|sim|{job['user']}|{job['group']}|{job['queue']}|{rest}|{limit}|"
            f"{job['processors']}|{state}"
        )
        for step in ("batch", "extern", "0", "1")[: int(rng.integers(0, 5))]:
            skipped[STEP] += 1
            lines.append(f"{number}.{step}|sim||||{rest}||{job['processors']}|{state}")
    return "\n".join(lines) + "\n", used, skipped


def put_together(seed):
    """Make two monthly exports in one file: epoch seconds, GPUs, bars at the ends, broken lines."""
    rng, used = np.random.default_rng(seed), []
    header = "JobID|User|Partition|Group|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|"
    lines, skipped = ["sacct: warning: something", header], {AGAIN: 0, BROKEN.format(11): 0}
    skipped["no gpus"] = 0
    for number, job in zip(range(LINES), draw_jobs(rng)):  # noqa: B905
        start, first = job["submit"] + job["wait"], int(rng.integers(0, job["gpus"] + 1))
        types = f"gres/gpu:a100={first},gres/gpu:v100={job['gpus'] - first}"
        gpus = f",gres/gpu={job['gpus']}" if number % 2 else f",{types}"
        gpus = gpus if job["gpus"] else ""
        limit = "UNLIMITED" if number % 7 == 0 else job["minutes"]
        if number % 7 == 0:
            job["minutes"] = np.nan
        line = (
            f"{number}|{job['user']}|{job['queue']}|{job['group']}|{job['submit']}|{start}|"
            f"{start + job['run_time']}|{job['run_time']}|{limit}|"
            f"billing=9,cpu={job['processors']}{gpus},mem=1G,node={job['nodes']}|"
        )
        if number % 13 == 5:  # a bar in a name
            skipped[BROKEN.format(11)] += 1
            line = line.replace("|", "|my|job|", 1)
        else:
            used.append(job)
            skipped["no gpus"] += not job["gpus"]
        lines.append(line)
        if number == LINES // 2:  # the last ten jobs stand in both months
            lines += [header, *lines[-10:]]
            skipped[BROKEN.format(11)] += sum("|my|job|" in line for line in lines[-10:])
            skipped[AGAIN] += sum("|my|job|" not in line for line in lines[-10:])
    return "\n".join(lines) + "\n", used, skipped


#: A made-up cluster: nodes, processors and GPUs of each; its first day, and the days without jobs.
NODES, CORES, GPUS = 200, 64, 4
FIRST_DAY, MAINTENANCE = int(datetime(2025, 3, 20, tzinfo=UTC).timestamp()), (9, 11)


def whole_cluster(seed, count=600):
    """Make an export of 20 days with all that a real one has: what is in it, and what is no job.

    Arrays, steps, running and pending jobs, requeued ones, times of two zones (one of which changes
    to summer time), two days of maintenance, and a job of the year before. Returns text, the jobs
    but for the old one, and how many lines are left out by reason.
    """
    rng, used = np.random.default_rng(seed), []
    skipped = {STEP: 0, RUNNING: 0, WAITING: 0}
    lines = [HEADER]

    def draw(submit):
        nodes = 2 ** int(rng.integers(0, 8))
        minutes = int(rng.integers(10, 900))
        return {
            "submit": submit, "wait": int(rng.integers(0, 3600)),
            "run_time": int(rng.integers(60, 60 * minutes)), "nodes": nodes,
            "processors": nodes * CORES if nodes > 1 else int(rng.integers(1, CORES + 1)),
            "gpus": nodes * GPUS * int(rng.integers(0, 2)), "minutes": minutes,
            "user": str(rng.choice(["ann", "bob", "eve", "o'neil"])), "group": "g",
            "queue": str(rng.choice(["batch", "long"])),
        }  # fmt: skip

    def write(job, identity, state="COMPLETED", runs=False, waits=False):
        zone = str(rng.choice(["Europe/Berlin", "America/New_York"]))
        start = job["submit"] + job["wait"]
        begin = "Unknown" if waits else in_zone(start, zone)
        end = "Unknown" if runs or waits else in_zone(start + job["run_time"], zone)
        gpus = f",gres/gpu:a100={job['gpus']},gres/gpu={job['gpus']}" if job["gpus"] else ""
        resources = f"billing=1,cpu={job['processors']}{gpus},mem=1G,node={job['nodes']}"
        times = f"{in_zone(job['submit'], zone)}|{begin}|{end}|{job['run_time'] * (not waits)}"
        sizes = f"{job['processors']}|{job['nodes']}|{'' if waits else resources}"
        lines.append(
            f"{identity}|{job['user']}|{job['group']}|{job['queue']}|{state}|{times}|"
            f"{job['minutes']}|{sizes}"
        )
        for step in ("batch", "extern", "0")[: int(rng.integers(0, 4)) * (not waits)]:
            skipped[STEP] += 1
            lines.append(
                f"{identity}.{step}||||{state}|{times}||{job['processors']}|{job['nodes']}|"
                f"{resources}"
            )

    write(draw(FIRST_DAY - 300 * 86400), 1)  # the job of the year before
    submits = np.sort(rng.integers(0, 20 * 86400, count))
    away = (submits // 86400 >= MAINTENANCE[0]) & (submits // 86400 < MAINTENANCE[1])
    for number, submit in enumerate(submits[~away].tolist()):
        job = draw(FIRST_DAY + submit)
        identity = f"9000_{number}" if number % 4 == 0 else str(1000 + number)
        if number % 29 == 7:
            skipped[RUNNING] += 1
            write(job, identity, "RUNNING", runs=True)
        elif number % 31 == 5:
            skipped[WAITING] += 1
            write(job, f"{identity}_[1-9%2]", "PENDING", waits=True)
        else:
            used.append(job)
            state = str(rng.choice(["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 7"]))
            write(job, identity, "REQUEUED" if number % 23 == 3 else state)
            if number % 23 == 3:  # it is submitted again, under its number
                again = draw(job["submit"] + job["wait"] + job["run_time"])
                used.append(again)
                write(again, identity)
    return "\n".join(lines) + "\n", used, skipped

"""How long 65-your-log takes on logs of many jobs, and EASY alone on jobs that come at once.

The logs are made up. Each page runs in a process of its own without worker processes, so that its
CPU seconds and its largest memory are those of all that it does.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.files import shared_folder
from tests.verification.benchmarks.parts import Part, at_most, run_dlsim, timed
from tests.verification.executed import names_of_cell

#: Processors of the made-up machine, and the loads of its logs.
PROCESSORS, LOADS = 1024, (0.9, 1.1)
DAY = 86400


def made_up(jobs, load, seed=0, processors=PROCESSORS):
    """Return a log by submission: lognormal run times, powers of two, more jobs by day."""
    rng = np.random.default_rng(seed)
    run_time = np.ceil(np.exp(rng.normal(np.log(1800), 1.5, jobs)).clip(10, 2 * DAY))
    width = np.minimum(2 ** rng.integers(0, 9, jobs), processors // 2)
    span = (run_time * width).sum() / (load * processors)
    day, hour = np.divmod(np.sort(rng.uniform(0, span, jobs)) / DAY, 1)
    submit = DAY * (day + hour - 0.08 * np.sin(2 * np.pi * hour))
    estimate = np.minimum(run_time * np.exp(rng.exponential(1.0, jobs)), 4 * DAY)
    times = {"submit": submit, "run_time": run_time, "estimate": np.fmax(estimate, run_time)}
    users = [f"u{number}" for number in rng.zipf(1.6, jobs) % 97]
    table = pd.DataFrame(times).round().astype(int).assign(processors=width, user=users)
    return table.sort_values("submit", kind="stable", ignore_index=True)


def easy(seed=0, tasks=10_000, jobs=20_000):
    """CPU seconds of EASY for a log, and for its jobs submitted at once."""
    cell = names_of_cell(shared_folder("notebooks") / "65-your-log.ipynb", "log-12b")
    cell |= {"np": np, **names_of_cell(shared_folder("notebooks") / "65-your-log.ipynb", "log-03b")}
    for load in LOADS:
        log = made_up(jobs, load, seed)
        for name, table in (("as submitted", log), ("at once", log.assign(submit=0))):
            seconds, _ = timed(partial(cell["start_rigid"], table, PROCESSORS, True))
            yield {"jobs": jobs, "load": load, "submitted": name, "cpu_seconds": seconds}


def page(seed=0, tasks=10_000, jobs=3_000):
    """CPU seconds and memory of the whole page at both loads."""
    for load in LOADS:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log.csv"
            made_up(jobs, load, seed).to_csv(log, index=False)
            given = {"log": log, "nodes": PROCESSORS, "jobs": 1}
            words = [word for name, value in given.items() for word in ("-p", name, value)]
            words += ["--cell-seconds", 0, "--out", f"{folder}/out"]
            measured = run_dlsim("run", "65-your-log", *words, DLSIM_CACHE=f"{folder}/cache")
            yield {"jobs": jobs, "load": load, **measured}


HUNDRED_THOUSAND, MILLION = 100_000, 1_000_000
PARTS = {
    "easy": Part("EASY on 20,000 jobs, as they come and at once", easy),
    "page": Part("the page of 65-your-log for 3,000 jobs", page),
    "easy.100000": Part(
        "EASY on 100,000 jobs, as they come and at once", partial(easy, jobs=HUNDRED_THOUSAND),
        long=True, floors=(at_most("cpu_seconds", 60, submitted="at once"),),
    ),
    "page.100000": Part(
        "the page of 65-your-log for 100,000 jobs", partial(page, jobs=HUNDRED_THOUSAND),
        long=True, floors=(at_most("cpu_seconds", 90),),
    ),
    "page.million": Part(
        "the page of 65-your-log for a million jobs", partial(page, jobs=MILLION),
        long=True, floors=(at_most("peak_MB", 2048, load=0.9), at_most("cpu_seconds", 900)),
    ),
}  # fmt: skip

"""A live run: the policy of the simulations schedules real kernels on this machine's devices."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes

from dlsim.cpugpu import backends, live
from dlsim.cpugpu.crew import CREWS
from dlsim.cpugpu.kernels import kernel_named
from dlsim.papers.cpu_gpu.diagrams import bar, records, rows_of
from dlsim.papers.cpu_gpu.study import Study
from dlsim.study.experiment import keep
from dlsim.study.gantt import task_colors
from dlsim.study.style import axes_of

#: What is run, in this order.
QUEUE = ("mandelbrot", "n-body", "black-scholes", "matmul") * 3


class Session(NamedTuple):
    """What a live run did, and where."""

    run: live.LiveRun
    devices: tuple[live.Slot, ...]
    said: str


def record(
    queue: Sequence[str] = QUEUE, factor: float = 1.0, policy: str = "history", gpu: str = "auto",
    cpu: str = "numpy", crew: str = "threads",
) -> Session:  # fmt: skip
    """Run kernels on the real devices of this machine under a policy, from an empty history."""
    devices = live.slots(gpu, cpu)
    kernels = [kernel_named(name) for name in queue]
    jobs = [live.LiveJob(k, max(k.tiny, round(factor * k.size))) for k in kernels]
    with CREWS[crew]([slot.name for slot in devices]) as workers:
        run = live.run_live(jobs, workers, devices, policy)
    return Session(run, devices, _said(devices))


def _said(devices: Sequence[live.Slot]) -> str:
    played = "; ".join(f"{slot.name}: {slot.note}" for slot in devices)
    if devices[0].backend == "threads" and backends.best_gpu() == "threads":
        played += (
            ". Neither a CUDA device nor an OpenCL platform is here (extra opencl), so that run is"
            " skipped and all CPU threads play the GPU"
        )
    return played + "."


def fig_live(study: Study, session: Session, ax: Axes | None = None) -> Axes:
    """A live run as a timing diagram, each bar with its kernel and rule."""
    ax, jobs = axes_of(ax, (9.6, 2.4)), session.run.jobs
    names = [slot.name for slot in session.devices]
    colors = task_colors(list(jobs["app"]))
    for row in records(jobs):
        text = f"{str(row.app).partition('[')[0]}\n{row.rule}"
        wide = row.end - row.start > 0.06 * session.run.makespan
        bar(ax, names.index(row.device), row.start, row.end, colors[row.app], text if wide else "")
    rows_of(ax, [f"{slot.name}\n{slot.backend}" for slot in session.devices])
    ax.set(
        xlabel="seconds",
        title=f"{len(jobs)} real kernels, last end after {session.run.makespan:.2f} s",
    )
    return keep(study, "live", ax)


def learned(session: Session) -> pd.DataFrame:
    """Return what a live run taught: mean time, deviation and count by kernel and class."""
    table = session.run.history.table()
    agrees = session.run.jobs.groupby("app")["agrees"].all()
    return table.assign(agrees=table["app"].map(agrees))


def audited(session: Session) -> str:
    """Compute every decision of a live run again from its log, by the pure policy."""
    count, other = len(list(session.run.log.entries())), len(session.run.log.audit())
    return f"{count} decisions logged; computed again from the log, {count - other} are the same"

"""Tell what a long computation is at: nothing for two seconds, then a line or a bar."""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Environment variable that names the file in which the sweeps of a notebook report.
PROGRESS_VARIABLE = "DLSIM_PROGRESS"
#: Seconds of silence at first, and the most between two lines; the least between two reports.
SILENT_SECONDS, MAX_LINE_INTERVAL, MIN_REPORT_INTERVAL = 2.0, 30.0, 0.2
_now = ["starting"]


def set_status(what: str) -> None:
    """Say what is done from now on; it is shown only if the run takes long."""
    _now[0] = what


@contextmanager
def stderr_progress(name: str) -> Iterator[None]:
    """Write what a run is at to stderr after two seconds, and then ever less often."""
    begun, over = time.monotonic(), threading.Event()

    def tell() -> None:
        wait = SILENT_SECONDS
        while not over.wait(wait):
            seconds = time.monotonic() - begun
            print(f"{name}: {seconds:.0f} s, {_now[0]} ...", file=sys.stderr, flush=True)
            wait = min(2 * wait, MAX_LINE_INTERVAL)

    set_status("starting")
    teller = threading.Thread(target=tell, name="dlsim-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def progress_bar(
    label: str, total: int, before: int = 0, report: Callable[[int], object] | None = None
) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how much of a total is done, and shows it but in a worker.

    Where there is a function to `report` to, it is told now and then in place of the bar.
    """
    bar, is_worker = None, multiprocessing.parent_process() is not None
    due = time.monotonic() + (0.0 if report else SILENT_SECONDS)

    def tell(done: int) -> None:
        nonlocal bar, due
        is_due = time.monotonic() >= due
        if report and (is_due or done == total):
            report(done)
            due = time.monotonic() + MIN_REPORT_INTERVAL
        elif not report and not is_worker and is_due and bar is None:
            from tqdm.auto import tqdm  # not at the top: most computations are short

            bar = tqdm(total=total, initial=before, desc=label, disable=None, leave=False)
        if bar is not None:
            bar.update(done - bar.n)

    tell(before)
    try:
        yield tell
    finally:
        if bar is not None:
            bar.close()

"""Progress of long computations: nothing for two seconds, then a line or a bar."""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Environment variable that names the file in which the sweeps of a notebook report.
PROGRESS_VARIABLE = "DLSIM_PROGRESS"
#: Seconds before the first line, the most between two lines, the least between two reports.
SILENT_SECONDS, MAX_LINE_INTERVAL, MIN_REPORT_INTERVAL = 2.0, 30.0, 0.2
_status = ["starting"]
#: Moves the bar of `shared_bar` by so many units; holds one function at most.
_move_shared_bar: list[Callable[[int], None]] = []


def set_status(what: str) -> None:
    """Set what `stderr_progress` shows as the current step."""
    _status[0] = what


@contextmanager
def stderr_progress(name: str) -> Iterator[None]:
    """Write the current step to standard error after two seconds, then less and less often."""
    begun, over = time.monotonic(), threading.Event()

    def write_lines() -> None:
        wait = SILENT_SECONDS
        while not over.wait(wait):
            seconds = time.monotonic() - begun
            print(f"{name}: {seconds:.0f} s, {_status[0]} ...", file=sys.stderr, flush=True)
            wait = min(2 * wait, MAX_LINE_INTERVAL)

    set_status("starting")
    writer = threading.Thread(target=write_lines, name="dlsim-progress", daemon=True)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


@contextmanager
def progress_bar(
    label: str, total: int, before: int = 0, report: Callable[[int], object] | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function of the units done so far, which shows a bar after two seconds.

    A worker process shows no bar. If there is a function `report`, it gets the units done from
    time to time, in place of the bar. Within `shared_bar`, the units move that bar only.
    """
    if _move_shared_bar:
        yield _mover(before)
        return
    bar, is_worker = None, multiprocessing.parent_process() is not None
    due = time.monotonic() + (0.0 if report else SILENT_SECONDS)

    def set_done(done: int) -> None:
        nonlocal bar, due
        is_due = time.monotonic() >= due
        if report and (is_due or done == total):
            report(done)
            due = time.monotonic() + MIN_REPORT_INTERVAL
        elif not report and not is_worker and is_due and bar is None:
            from tqdm.auto import tqdm  # imported late: most computations are short

            bar = tqdm(total=total, initial=before, desc=label, disable=None, leave=False)
        if bar is not None:
            bar.update(done - bar.n)

    set_done(before)
    try:
        yield set_done
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def shared_bar(
    label: str, total: int, report: Callable[[int], object] | None = None
) -> Iterator[Callable[[int], None]]:
    """Show one bar for all computations within, of `total` units at most.

    Yields a function that moves the bar by some units, for what has no bar of its own.
    """
    done = 0
    with progress_bar(label, total, 0, report) as set_done:

        def move(units: int) -> None:
            nonlocal done
            done = min(done + units, total)
            set_done(done)

        _move_shared_bar.append(move)
        try:
            yield move
        finally:
            _move_shared_bar.clear()
        set_done(total)


def _mover(before: int) -> Callable[[int], None]:
    """Return a function of the units done of a part, which moves the shared bar by what is new."""
    last = before

    def set_done(done: int) -> None:
        nonlocal last
        _move_shared_bar[0](done - last)
        last = done

    return set_done

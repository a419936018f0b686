"""Progress of long computations: nothing for two seconds, then a line or a bar."""

import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

#: Environment variable that names the file in which the sweeps of a notebook report.
PROGRESS_VARIABLE = "DLSIM_PROGRESS"
#: Seconds before the first line, the most between two lines, the least between two reports.
SILENT_SECONDS, MAX_LINE_INTERVAL, MIN_REPORT_INTERVAL = 2.0, 30.0, 0.2
#: How a bar that moves with the time ends.
TIMED_FORMAT = "{l_bar}{bar}| {n:.0f} of about {total:.0f} s"
#: Letters of a bar in a notebook.
NOTEBOOK_LETTERS = 64
_status = ["starting"]
#: Moves the bar of `shared_bar` by so many units; holds one function at most.
_move_shared_bar: list[Callable[[int], None]] = []
#: Labels that a file or a pipe was told.
_told: set[str] = set()


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

    A worker process and the run of a notebook show no bar. If there is a function `report`, it
    gets the units done from time to time, in place of the bar. Within `shared_bar`, the units move
    that bar only.
    """
    if _move_shared_bar:
        yield _mover(before)
        return
    bar: Any = None
    is_worker = multiprocessing.parent_process() is not None
    shows_bar = not (report or is_worker or os.environ.get(PROGRESS_VARIABLE))
    due = time.monotonic() + (0.0 if report else SILENT_SECONDS)

    def set_done(done: int) -> None:
        nonlocal bar, due
        is_due = time.monotonic() >= due
        if report and (is_due or done == total):
            report(done)
            due = time.monotonic() + MIN_REPORT_INTERVAL
        elif shows_bar and is_due and bar is None:
            bar = at_end.enter_context(_shown_bar(total=total, initial=before, desc=label))
        if bar is not None:
            bar.update(done - bar.n)

    with ExitStack() as at_end:
        set_done(before)
        yield set_done


@contextmanager
def shared_bar(
    label: str, total: int, report: Callable[[int], object] | None = None
) -> Iterator[None]:
    """Show one bar for all computations within, of `total` units at most."""
    done = 0
    with progress_bar(label, total, 0, report) as set_done:

        def move(units: int) -> None:
            nonlocal done
            done = min(done + units, total)
            set_done(done)

        _move_shared_bar.append(move)
        try:
            yield
        finally:
            _move_shared_bar.clear()
        set_done(total)


@contextmanager
def timed_bar(label: str, seconds: float) -> Iterator[None]:
    """Show a bar that moves with the time, for what takes about so many seconds.

    Nothing is shown for two seconds, and nothing in a worker process. The run of a notebook
    reports in place of the bar; a file or a pipe gets one line.
    """
    if multiprocessing.parent_process() is not None:
        yield
        return
    over = threading.Event()
    mover = threading.Thread(target=_move_with_time, args=(label, seconds, over), daemon=True)
    mover.start()
    try:
        yield
    finally:
        over.set()
        mover.join()


def _move_with_time(label: str, seconds: float, over: threading.Event) -> None:
    """Move a bar until the event comes, or tell it in another way."""
    begun = time.monotonic()
    if over.wait(SILENT_SECONDS):
        return
    if report := reporter(label, seconds):
        while not over.wait(MIN_REPORT_INTERVAL):
            report(min(time.monotonic() - begun, seconds))
        return
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not is_terminal and not is_in_notebook():
        if sys.stderr is not None and label not in _told:
            _told.add(label)
            print(f"{label}: about {seconds:g} s ...", file=sys.stderr, flush=True)
        return
    with _shown_bar(total=seconds, desc=label, bar_format=TIMED_FORMAT) as bar:
        while not over.wait(MIN_REPORT_INTERVAL):
            bar.update(min(time.monotonic() - begun, seconds) - bar.n)


@contextmanager
def _shown_bar(**look: Any) -> Iterator[Any]:
    """Show a bar of tqdm in a notebook or a terminal; nothing of it is left in the end."""
    from tqdm import tqdm  # imported late: most computations are short

    if not is_in_notebook():
        with tqdm(**look, disable=None, leave=False) as bar:
            yield bar
        return
    from IPython.display import display

    # text, not a widget: a browser reports an error where one is gone before it has been drawn
    text_bar: Any = tqdm(**look, gui=True, ncols=NOTEBOOK_LETTERS)
    place = display({"text/plain": str(text_bar)}, raw=True, display_id=True)
    text_bar.display = lambda: place.update({"text/plain": str(text_bar)}, raw=True)
    try:
        yield text_bar
    finally:
        text_bar.close()
        # a notebook that is saved keeps no bar that has stopped
        place.update({"text/plain": ""}, raw=True)


def running_shell() -> Any:
    """Return the shell of IPython in which this process runs; None outside one."""
    ipython = sys.modules.get("IPython")  # outside one it need not be imported
    return ipython and ipython.get_ipython()


def is_in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    return hasattr(running_shell(), "kernel")


def reporter(label: str, total: float) -> Callable[[float], object] | None:
    """Return the function that tells the run of a notebook how far it is; None outside one."""
    place = os.environ.get(PROGRESS_VARIABLE, "")

    def report(done: float) -> None:
        with suppress(OSError):
            Path(place).write_text(json.dumps({"label": label, "done": done, "total": total}))

    return report if place else None


def _mover(before: int) -> Callable[[int], None]:
    """Return a function of the units done of a part, which moves the shared bar by what is new."""
    last = before

    def set_done(done: int) -> None:
        nonlocal last
        _move_shared_bar[0](done - last)
        last = done

    return set_done

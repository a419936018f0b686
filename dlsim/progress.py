"""Tell what a long computation is at: nothing for two seconds, then a line or a bar."""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds of silence at first, and the most between two lines.
PATIENCE, LONGEST = 2.0, 30.0
_now = ["starting"]


def step(what: str) -> None:
    """Say what is done from now on; it is shown only if the run takes long."""
    _now[0] = what


@contextmanager
def told(name: str) -> Iterator[None]:
    """Write what a run is at to stderr after two seconds, and then ever less often."""
    begun, over = time.monotonic(), threading.Event()

    def tell() -> None:
        wait = PATIENCE
        while not over.wait(wait):
            seconds = time.monotonic() - begun
            print(f"{name}: {seconds:.0f} s, {_now[0]} ...", file=sys.stderr, flush=True)
            wait = min(2 * wait, LONGEST)

    step("starting")
    teller = threading.Thread(target=tell, name="dlsim-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def shown(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how much of a total is done, and shows it but in a worker."""
    begin, bar, is_worker = time.monotonic(), None, multiprocessing.parent_process() is not None

    def tell(done: int) -> None:
        nonlocal bar
        if bar is None and not is_worker and time.monotonic() - begin >= PATIENCE:
            from tqdm.auto import tqdm  # not at the top: most computations are short

            bar = tqdm(total=total, desc=label, disable=None, leave=False)
        if bar is not None:
            bar.update(done - bar.n)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.close()

"""How far a long computation has come: nothing for two seconds, then a bar on a terminal."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds that a computation takes without a word.
SECONDS = 2.0


@contextmanager
def shown(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how much of a total is done, and shows it.

    A worker process shows nothing: the sweep that it works for does.
    """
    begin, bar, is_worker = time.monotonic(), None, multiprocessing.parent_process() is not None

    def tell(done: int) -> None:
        nonlocal bar
        if bar is None and not is_worker and time.monotonic() - begin >= SECONDS:
            from tqdm.auto import tqdm  # not at the top: most computations are short

            bar = tqdm(total=total, desc=label, disable=None, leave=False)
        if bar is not None:
            bar.update(done - bar.n)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.close()

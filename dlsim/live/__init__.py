"""A real divisible load on a real cluster, by a deadline (papers M and I, run on Dask).

>>> from dlsim.live import Head, loads
>>> with Head(workers=2) as head:  # doctest: +SKIP
...     head.calibrate(count_words, loads.lines("corpus.txt"))
...     job = head.submit(count_words, loads.lines("corpus.txt"), deadline=90, combine=add)
...     job.promise.admitted, job.result()
"""

from dlsim.live import loads
from dlsim.live.head import Head
from dlsim.live.job import Job, LoadFailedError, Promise

__all__ = ["Head", "Job", "LoadFailedError", "Promise", "loads"]

"""A divisible load on a Dask cluster, done by a promised time (papers M and I).

>>> from dask.distributed import Client  # doctest: +SKIP
>>> from dlsim.live import Head, lines
>>> head = Head(Client())  # doctest: +SKIP
>>> job = head.submit(count_words, lines("big.txt"), combine=sum, deadline="90s")  # doctest: +SKIP
>>> job  # doctest: +SKIP
load 0 (count_words): promised: done by 71 s (95 %), 2 workers
>>> job.result()  # doctest: +SKIP
"""

from dlsim.live.head import Head
from dlsim.live.job import Job, LoadFailedError, Promise
from dlsim.live.loads import lines, records

__all__ = ["Head", "Job", "LoadFailedError", "Promise", "lines", "records"]

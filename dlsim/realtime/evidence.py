"""What a check may read of a schedule."""

from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.partition import span_of, table_for

Rule = tuple[str, pd.Index, Any]


class Tasks(Protocol):
    """Tasks as they came: columns, the rank of a static order, nodes asked for, labels."""

    @property
    def arrival(self) -> NDArray[np.float64]: ...
    @property
    def sigma(self) -> NDArray[np.float64]: ...
    @property
    def deadline(self) -> NDArray[np.float64]: ...
    @property
    def key(self) -> NDArray[np.float64]: ...
    @property
    def wanted(self) -> NDArray[np.int64]: ...
    @property
    def labels(self) -> pd.Index: ...


class Result(Protocol):
    """What a check may read of a schedule; the meanings stand in `dlsim.realtime.Schedule`."""

    @property
    def tasks(self) -> pd.DataFrame: ...
    @property
    def chunks(self) -> pd.DataFrame: ...
    @property
    def kinds(self) -> pd.Series: ...
    @property
    def runs(self) -> pd.DataFrame | None: ...
    @property
    def given(self) -> Tasks | None: ...
    @property
    def parts(self) -> "Result | None": ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def name(self) -> str: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def negotiate(self) -> float: ...
    @property
    def is_physical(self) -> bool: ...


def scale_of(s: Result) -> float:
    """Return the duration that tells two instants of a schedule apart."""
    return span_of(s.tasks["sigma"].to_numpy(), table_for(s.cluster, s.policy.partition))

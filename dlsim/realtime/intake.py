"""What `dlsim.realtime.simulate` takes in: tasks as columns, or refuses."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import column, label, table
from dlsim.realtime.evidence import Given
from dlsim.realtime.model import Cluster, Policy
from dlsim.realtime.partition import Floats

REQUIRED = ("arrival", "sigma", "deadline")


def _wanted(tasks: pd.DataFrame, policy: Policy, cluster: Cluster) -> NDArray[np.int64]:
    """Return the nodes that users ask for, 0 under policies that do not let them."""
    if policy.nodes != "user":
        return np.zeros(len(tasks), dtype=np.int64)
    if "user_nodes" not in tasks.columns:
        raise InputError(
            "nodes='user' (User Split) needs a column user_nodes; "
            "workload.user_split(tasks, cluster) draws one"
        )
    wanted = tasks["user_nodes"]
    return column(
        "user_nodes", wanted, 1, cluster.nodes, is_whole=True, row="task", labels=tasks.index
    )


def checked(tasks: pd.DataFrame, policy: Policy, cluster: Cluster) -> Given:
    """Return the columns that are simulated, or refuse the table."""
    labels = table("tasks", tasks, REQUIRED).index
    arrival = column(
        "arrival", tasks["arrival"], rule="finite and at least 0", row="task", labels=labels
    )
    sigma, deadline = (
        column(name, tasks[name], above=True, rule="finite and above 0", row="task", labels=labels)
        for name in REQUIRED[1:]
    )
    back = arrival[1:] < arrival[:-1]
    if back.any():
        task = label(tasks.index[int(np.argmax(back)) + 1])
        raise InputError(
            f"arrivals must not decrease, but task {task!r} arrives before the one above it; "
            "use tasks.sort_values('arrival', kind='stable')"
        )
    wanted = _wanted(tasks, policy, cluster)
    return Given(arrival, sigma, deadline, _keys(tasks, policy), wanted, tasks.index)


def _keys(tasks: pd.DataFrame, policy: Policy) -> Floats:
    if not callable(policy.order):
        return np.arange(len(tasks), dtype=np.float64)
    rule = (
        f"order function {getattr(policy.order, '__name__', 'order')} must return one number "
        f"per task, shape ({len(tasks)},) without NaN"
    )
    try:
        keys = np.array(policy.order(tasks))
        keys = keys if keys.dtype.kind in "cmMSU" else keys.astype(np.float64)
    except Exception as error:  # whatever a user's function raises
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error
    if keys.dtype != np.float64 or keys.shape != (len(tasks),) or np.isnan(keys).any():
        raise InputError(f"{rule}; got {keys.dtype} of shape {keys.shape}")
    # compared exactly: two infinite keys are a tie
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)


def cut(tasks: pd.DataFrame, given: Given) -> pd.DataFrame:
    """Cut tasks into ``user_nodes`` equal pieces for one node each, counted from 0 (User Split)."""
    rows = tasks.iloc[given.owners].reset_index(drop=True)
    return rows.assign(sigma=rows["sigma"] / rows["user_nodes"], user_nodes=1)

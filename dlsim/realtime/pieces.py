"""User Split with pieces that are admitted one by one (reading ``split="piece"``).

Every task is cut beforehand into ``user_nodes`` equal pieces, each a task of its own on one
node, with the arrival and the deadline of the whole.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dlsim.realtime.engine import Schedule, _Given


def owners(wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the task that each piece belongs to.

    Parameters
    ----------
    wanted : ndarray of int, shape (m,)
        Pieces of each task.

    Returns
    -------
    ndarray of int
        One entry per piece.
    """
    return np.repeat(np.arange(len(wanted)), wanted)


def cut(tasks: pd.DataFrame) -> pd.DataFrame:
    """Cut tasks into their pieces.

    Parameters
    ----------
    tasks : DataFrame
        With user_nodes.

    Returns
    -------
    DataFrame
        A row per piece, counted from 0, with its part of sigma and user_nodes = 1.
    """
    wanted = tasks["user_nodes"].to_numpy(dtype=np.int64)
    rows = tasks.iloc[owners(wanted)].reset_index(drop=True)
    return rows.assign(sigma=rows["sigma"] / rows["user_nodes"], user_nodes=1)


def join(inner: "Schedule", given: "_Given", owner: NDArray[np.int64]) -> pd.DataFrame:
    """Gather the schedule of the pieces by task."""
    by = inner.tasks.groupby(owner)
    nodes = by["nodes"].sum().to_numpy()
    return pd.DataFrame(
        {
            "arrival": given.arrival,
            "sigma": given.sigma,
            "deadline": given.deadline,
            "admitted": nodes > 0,
            "start": by["start"].min().to_numpy(),
            "nodes": nodes,
            "estimate": by["estimate"].max().to_numpy(),
            "completion": by["completion"].max().to_numpy(),
            "missed": by["missed"].any().to_numpy(),
        },
        index=given.labels,
    )


def chunks_of(s: "Schedule") -> pd.DataFrame:
    """Return the chunks of the pieces under the names of their tasks."""
    assert s.parts is not None
    assert s.given is not None
    chunks, owner = s.parts.chunks.copy(), owners(s.given.wanted)
    rows = owner[chunks["task"].to_numpy()]
    chunks["alpha"] /= s.given.wanted[rows]
    chunks["task"] = s.given.labels.to_numpy()[rows]
    return chunks


def refused_part(s: "Schedule") -> NDArray[np.float64]:
    """Return the refused part of every task, in pieces."""
    assert s.given is not None
    return np.asarray(1 - s.tasks["nodes"].to_numpy() / s.given.wanted)

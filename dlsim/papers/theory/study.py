"""One load on one cluster, and where the pictures of the theory go."""

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.realtime import Cluster
from dlsim.realtime.partition import (
    fastest_nodes,
    shares,
)
from dlsim.study.report import Results
from dlsim.study.study import keep, need_common

KEY = "theory"
#: Vertices of the graphs of `table_reduction`, and loads of `table_deadlines`.
SCALES = {"quick": (4, 2_000), "paper": (6, 40_000)}


@dataclass(frozen=True)
class Study:
    """One load on one cluster, and where its pictures go.

    Parameters
    ----------
    scale : {"quick", "paper"}
        Size of the enumerations.
    seed : int
        Root of the random loads of `table_deadlines`.
    runs : int
        Number of random loads; 0 = what the scale says.
    out : str
        Where results go; "" = results/theory.
    nodes, cms, cps, st, sc : int, float, float, float, float
        The cluster of the curves.
    sigma, budget : float
        Size of the load, and the time it is given.

    Raises
    ------
    InputError
        For an unknown scale or a number out of range.
    """

    scale: str = "quick"
    seed: int = 0
    runs: int = 0
    out: str = ""
    nodes: int = 12
    cms: float = 10.0
    cps: float = 10.0
    st: float = 20.0
    sc: float = 20.0
    sigma: float = 100.0
    budget: float = 1200.0

    SCALES = SCALES

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn before anything is."""
        need_common(self)
        fastest_nodes(self.sigma, self.cluster)

    @functools.cached_property
    def cluster(self) -> Cluster:
        """The cluster with set-up costs."""
        return Cluster(self.nodes, self.cms, self.cps, self.st, self.sc)

    @functools.cached_property
    def bare(self) -> Cluster:
        """The same cluster without them."""
        return Cluster(self.nodes, self.cms, self.cps)

    @functools.cached_property
    def results(self) -> Results:
        """Where tables and figures are written."""
        return Results(self.out, KEY)

    def keep(self, name: str, ax: Axes, table: pd.DataFrame | None = None) -> Axes:
        """Write a picture and the numbers behind it."""
        return keep(self, name, ax, table)


def split(sigma: float, n: int, cluster: Cluster) -> pd.DataFrame:
    """Lay out one load on n equal nodes: sends in turn, a common end (paper M, section 4)."""
    alpha = shares(sigma, n, cluster)
    sent = np.cumsum(cluster.st + alpha * sigma * cluster.cms)
    return pd.DataFrame(
        {
            "task": 0,
            "node": np.arange(1, n + 1),
            "alpha": alpha,
            "send_start": np.r_[0.0, sent[:-1]],
            "send_end": sent,
            "compute_end": sent + cluster.sc + alpha * sigma * cluster.cps,
        }
    )

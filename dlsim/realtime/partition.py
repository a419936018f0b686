r"""How a divisible load is split so that all its nodes finish together (OPR).

With :math:`\beta = C_{ps}/(C_{ms}+C_{ps})` and :math:`G_n = 1 + \beta + \dots +
\beta^{n-1}` the execution time of paper M, eq. (4.13), is affine in the data size,

.. math:: \mathcal{E}(\sigma, n) = f_n + u_n \sigma, \qquad
          u_n = \frac{C_{ms}+C_{ps}}{G_n}, \qquad
          f_n = ST + SC + ST\,\frac{G_1 + \dots + G_{n-1}}{G_n},

which is (4.12) without its cancellation. All n shares are positive iff
:math:`\sigma > \ell_n`, and the largest such n, written N*, is the fastest.
A `Table` holds u, f and l for n = 0..N+1; every engine reads E(n) from it.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.given import MOST, instance, number, whole
from dlsim.kernel import latest_finish
from dlsim.realtime.core.partition import (
    cost_coefficients,
    derivative_coefficients,
    duration,
    fastest,
    fewest,
    growth_sums,
)
from dlsim.realtime.model import Cluster

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Coefficients of the execution time, one entry per number of nodes 0..N+1."""

    unit: Floats
    fixed: Floats
    least: Floats
    slope: Floats
    rise: Floats
    lead: Floats


def growth_closed(n: Any, cms: Any, cps: Any, m: Any = np) -> Any:
    r"""Return :math:`G_n = (1 - \beta^n)/(1 - \beta)`: 1 ulp where the recursion loses n/4."""
    return -m.expm1(-n * m.log1p(cms / cps)) * ((cms + cps) / cms)


@functools.lru_cache(maxsize=256)
def table_of(cluster: Cluster) -> Table:
    """Tabulate the execution time of a cluster for every number of nodes."""
    size = cluster.nodes + 2
    cms, cps, n = float(cluster.cms), float(cluster.cps), np.arange(size)
    unit, fixed, least = np.zeros(size), np.zeros(size), np.zeros(size)
    if cms > 0 and cps > 0:
        growth = growth_closed(n, cms, cps)
    else:
        growth = np.zeros(size)
        growth_sums(cms, cps, growth)
    if cluster.st > 0 and cps > 0:
        with np.errstate(over="ignore"):
            cost_coefficients(growth, cms, cps, cluster.st, cluster.sc, unit, fixed, least)
    else:
        unit[1:] = (cms + cps) / growth[1:]
        fixed[1:] = cluster.st + cluster.sc
        if cps == 0:  # one node computes for free: a second only adds a set-up
            fixed[1:] += cluster.st * (n[1:] - 1)
            least[2:] = np.inf
    slope, rise = np.zeros(size), np.zeros(size)
    derivative_coefficients(growth, cms, cps, cluster.st, cluster.sc, slope, rise)
    lead = np.zeros(size)
    lead[2:] = cluster.st * np.cumsum(growth[1:-1]) / growth[2:]
    return _read_only(unit, fixed, least, slope, rise, lead)


def _read_only(*columns: Floats) -> Table:
    for array in columns:
        array.flags.writeable = False
    return Table(*columns)


@functools.lru_cache(maxsize=256)
def table_for(cluster: Cluster, partition: str) -> Table:
    r"""Tabulate the execution time on nodes that start together, for one partition.

    .. math:: \mathcal{E}_{eq} = n ST + SC + \sigma C_{ms} + \sigma C_{ps}/n, \qquad
              \mathcal{E}_{piece} = ST + SC + \sigma (C_{ms} + C_{ps})/n
    """
    table = table_of(cluster)
    if partition not in ("equal", "pieces"):
        return table
    n = np.maximum(1, np.arange(cluster.nodes + 2, dtype=float))
    blank = np.zeros(len(n))
    if partition == "pieces":
        unit, fixed, least = (cluster.cms + cluster.cps) / n, blank + cluster.st + cluster.sc, blank
    else:
        unit, fixed = cluster.cms + cluster.cps / n, n * cluster.st + cluster.sc
        gain = n * (n - 1) * cluster.st
        with np.errstate(divide="ignore", over="ignore"):
            least = np.where(gain > 0, gain / cluster.cps if cluster.cps > 0 else np.inf, 0.0)
    return _read_only(unit, fixed, least, blank, blank, blank)


def span_of(sigma: Floats, table: Table) -> float:
    """Return the scale at which two instants are one: the time of the least load on one node."""
    return float(table.fixed[1] + sigma.min() * table.unit[1]) if len(sigma) else 0.0


def has_positive_shares(tasks: pd.DataFrame, cluster: Cluster) -> NDArray[np.bool_]:
    """Tell per task that ran whether the optimal partitioning rule gives it positive shares."""
    least = table_of(cluster).least[tasks["nodes"].to_numpy()]
    return np.asarray((tasks["sigma"].to_numpy() > least) | (tasks["nodes"].to_numpy() == 0))


def _checked(sigma: float, n: int, cluster: Cluster) -> tuple[float, int]:
    """Return size and count as plain numbers, or refuse them."""
    instance("cluster", cluster, Cluster)
    size = float(number("sigma", sigma, above=True, rule="a finite size above 0"))
    return size, whole("n", n, 1, cluster.nodes)


def execution_time(sigma: float, n: int, cluster: Cluster) -> float:
    r"""Execution time of a divisible load on n equal nodes that finish together.

    .. math:: \mathcal{E} = ST + SC + \sigma (C_{ms} + C_{ps})\,\mathcal{B}(n)

    Parameters
    ----------
    sigma : float
        Data size.
    n : int
        Number of nodes, 1..N.
    cluster : Cluster
        Nodes and costs.

    Returns
    -------
    float
        E(sigma, n). For n > N* it is the value of the formula, not of a schedule.

    Raises
    ------
    InputError
        For a size that is not positive or an n outside 1..N.

    References
    ----------
    Paper M, eqs. (4.12), (4.13).

    Examples
    --------
    >>> round(execution_time(30, 2, Cluster(nodes=4, cms=1, cps=20, st=50, sc=101)), 2)
    499.29
    """
    sigma, n = _checked(sigma, n, cluster)
    table = table_of(cluster)
    return float(duration(sigma, n, table.unit, table.fixed))


def shares(sigma: float, n: int, cluster: Cluster) -> Floats:
    r"""Load shares of the optimal partitioning rule, in order of transmission.

    .. math:: \alpha_1 = \mathcal{B}(n), \qquad \alpha_{j+1} = \beta \alpha_j - \phi,
              \qquad \phi = \frac{ST}{\sigma (C_{ms} + C_{ps})}

    Parameters and refusals are those of `execution_time`.

    Returns
    -------
    ndarray of float, shape (n,)
        Shares that sum to 1; some are negative where n > N* (no schedule).

    References
    ----------
    Paper M, eqs. (4.5), (4.11), (4.12).
    """
    sigma, n = _checked(sigma, n, cluster)
    table, w = table_of(cluster), cluster.cms + cluster.cps
    beta, phi = cluster.cps / w, cluster.st / (sigma * w)
    alpha = np.empty(n)
    alpha[0] = (table.lead[n] + sigma * table.unit[n]) / (sigma * w)
    for j in range(1, n):
        alpha[j] = beta * alpha[j - 1] - phi
    return alpha


def fastest_nodes(sigma: float, cluster: Cluster) -> int:
    """Number of nodes min(N, N*) on which a load of size sigma finishes first.

    N without transmission set-up; possibly fewer with it (paper M, Theorem 5.2).
    """
    sigma, _ = _checked(sigma, 1, cluster)
    return int(fastest(sigma, table_of(cluster).least, cluster.nodes))


def fewest_nodes(sigma: float, budget: float, cluster: Cluster, start: float = 0.0) -> int:
    """Fewest nodes n_min with which a load started now meets its deadline.

    Parameters
    ----------
    sigma, cluster
        As in `execution_time`.
    budget : float
        Absolute deadline minus start.
    start : float
        Absolute start; the tolerance of `dlsim.kernel` is relative to absolute times.

    Returns
    -------
    int
        n_min, or 0 where no number of nodes of this cluster meets the deadline: a
        normal answer, which paper M leaves out (gamma <= 0; too short a budget).

    Raises
    ------
    InputError
        For a size that is not positive, a budget that is no number, or a start that is
        not finite.

    References
    ----------
    Paper M, n_min after (4.6) and the constraint (4.13).
    """
    sigma, _ = _checked(sigma, 1, cluster)
    start = number("start", start, -MOST, rule="a finite time")
    budget = number("budget", budget, -np.inf, np.inf, rule="a time, or inf for no deadline")
    table = table_of(cluster)
    top = fastest(sigma, table.least, cluster.nodes)
    limit = latest_finish(float(start + budget), float(budget))
    return int(fewest(float(start), limit, sigma, 1, top, table.unit, table.fixed))


def total_cost(sigma: float, n: int, cluster: Cluster) -> float:
    """Cost W(n) = n E(n): node time that a load occupies (paper M, section 5).

    Parameters and refusals are those of `execution_time`.
    """
    return n * execution_time(sigma, n, cluster)


def least_times(sigma: Any, cluster: Cluster) -> Floats:
    """Minimum execution times E(min(N, N*)) of many loads at once."""
    table, sizes = table_of(cluster), np.asarray(sigma, dtype=float)
    top = np.searchsorted(table.least[2 : cluster.nodes + 1], sizes, side="left") + 1
    return np.asarray(table.fixed[top] + sizes * table.unit[top])

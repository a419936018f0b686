r"""How a divisible load is split so that all its nodes finish together (OPR).

With :math:`\beta = C_{ps}/(C_{ms}+C_{ps})` and :math:`G_n = 1 + \beta + \dots +
\beta^{n-1}` the execution time of paper M, eq. (4.13), is affine in the data size,

.. math:: \mathcal{E}(\sigma, n) = f_n + u_n \sigma, \qquad
          u_n = \frac{C_{ms}+C_{ps}}{G_n}, \qquad
          f_n = ST + SC + ST\,\frac{G_1 + \dots + G_{n-1}}{G_n},

which is (4.12) without its cancellation. All n shares are positive iff
:math:`\sigma > \ell_n`, and the largest such n, written N*, is the fastest.
A `TimeTable` holds u, f and l for n = 0..N+1; every engine reads E(n) from it.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import CORES
from dlsim.realtime.model import Cluster
from dlsim.user_code import calling_user_code
from dlsim.validate import MAX_MAGNITUDE, Floats, column, instance, number, whole

#: The rule of a data size.
SIZE = "a finite size above 0"
#: Tables of more entries than that are filled by the compiled formulas.
SMALL_TABLE = 10_000


def formulas_for(size: int) -> Any:
    """Return the formulas of the core, for arrays of this size."""
    core = CORES["realtime"]
    return (core.python if size <= SMALL_TABLE else core.compiled).formulas


class TimeTable(NamedTuple):
    """Coefficients of the execution time, one entry per number of nodes 0..N+1.

    Attributes
    ----------
    time_per_unit, setup_time : ndarray of float
        u_n and f_n: E(sigma, n) is ``setup_time[n] + sigma * time_per_unit[n]``.
    min_size : ndarray of float
        l_n: all n shares are positive for larger loads.
    dc_slope, dc_offset : ndarray of float
        The cost derivative W(n + 1) - W(n) is ``dc_offset[n] + sigma * dc_slope[n]``.
    first_share_offset : ndarray of float
        The first share is ``first_share_offset[n] + sigma * time_per_unit[n]`` over
        sigma (Cms + Cps).
    """

    time_per_unit: Floats
    setup_time: Floats
    min_size: Floats
    dc_slope: Floats
    dc_offset: Floats
    first_share_offset: Floats


def growth_closed(n: Any, cms: Any, cps: Any, functions: Any = np) -> Any:
    r"""Return :math:`G_n = (1 - \beta^n)/(1 - \beta)`: 1 ulp where the recursion loses n/4."""
    return -functions.expm1(-n * functions.log1p(cms / cps)) * ((cms + cps) / cms)


@functools.lru_cache(maxsize=256)
def opr_table(cluster: Cluster) -> TimeTable:
    """Tabulate the execution time of a cluster for every number of nodes."""
    size = cluster.nodes + 2
    cms, cps, st, sc = map(float, (cluster.cms, cluster.cps, cluster.st, cluster.sc))
    n, core = np.arange(size), formulas_for(size)
    unit, fixed, least = np.zeros(size), np.zeros(size), np.zeros(size)
    if cms > 0 and cps > 0:
        growth = growth_closed(n, cms, cps)
    else:
        growth = np.zeros(size)
        core.growth_sums(cms, cps, growth)
    if st > 0 and cps > 0:
        with np.errstate(over="ignore"):
            core.cost_coefficients(growth, cms, cps, st, sc, unit, fixed, least)
    else:
        unit[1:] = (cms + cps) / growth[1:]
        fixed[1:] = st + sc
        if cps == 0:  # one node computes for free: a second only adds a set-up
            fixed[1:] += st * (n[1:] - 1)
            least[2:] = np.inf
    slope, rise = np.zeros(size), np.zeros(size)
    with np.errstate(over="ignore", invalid="ignore"):
        core.derivative_coefficients(growth, cms, cps, st, sc, slope, rise)
    lead = np.zeros(size)
    lead[2:] = st * np.cumsum(growth[1:-1]) / growth[2:]
    return _read_only(unit, fixed, least, slope, rise, lead)


def _read_only(*columns: Floats) -> TimeTable:
    for array in columns:
        array.flags.writeable = False
    return TimeTable(*columns)


@functools.lru_cache(maxsize=256)
def time_table(cluster: Cluster, partition: str | Callable[..., Any]) -> TimeTable:
    r"""Tabulate the execution time on nodes that start together, for one partition.

    .. math:: \mathcal{E}_{eq} = n ST + SC + \sigma C_{ms} + \sigma C_{ps}/n, \qquad
              \mathcal{E}_{piece} = ST + SC + \sigma (C_{ms} + C_{ps})/n
    """
    table = opr_table(cluster)
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


def span_of(sigma: Floats, table: TimeTable) -> float:
    """Return the scale at which two instants are one: the time of the least load on one node."""
    return float(table.setup_time[1] + sigma.min() * table.time_per_unit[1]) if len(sigma) else 0.0


def _check_size_and_count(sigma: float, n: int, cluster: Cluster) -> tuple[float, int]:
    """Return size and count as plain numbers, or refuse them."""
    instance("cluster", cluster, Cluster)
    size = number("sigma", sigma, above=True, rule=SIZE)
    return float(size), whole("n", n, 1, cluster.nodes)


def _as_floats(name: str, value: Any, *ends: float, **how: Any) -> Any:
    """Return an array of numbers or, at a third of the time, a number."""
    many = hasattr(value, "__len__")
    return column(name, value, *ends, **how) if many else float(number(name, value, *ends, **how))


def execution_time(sigma: Any, n: Any, cluster: Cluster) -> Any:
    r"""Return the execution time of a divisible load on n equal nodes that finish together.

    .. math:: \mathcal{E} = ST + SC + \sigma (C_{ms} + C_{ps})\,\mathcal{B}(n)

    Parameters
    ----------
    sigma : float or array_like
        Data size; arrays of sizes and counts broadcast.
    n : int or array_like
        Number of nodes, 1..N.
    cluster : Cluster
        Nodes and costs.

    Returns
    -------
    float or ndarray
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
    instance("cluster", cluster, Cluster)
    size, most = _as_floats("sigma", sigma, above=True, rule=SIZE), cluster.nodes
    many = hasattr(n, "__len__")
    count = column("n", n, 1, most, is_whole=True) if many else whole("n", n, 1, most)
    with calling_user_code("sigma and n must be numbers or arrays that broadcast"):
        np.broadcast_shapes(np.shape(size), np.shape(count))
    table = opr_table(cluster)
    found = table.setup_time[count] + size * table.time_per_unit[count]
    return found if np.ndim(found) else float(found)


def shares(sigma: float, n: int, cluster: Cluster) -> Floats:
    r"""Return the load shares of the optimal partitioning rule, in order of transmission.

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
    sigma, n = _check_size_and_count(sigma, n, cluster)
    table, w = opr_table(cluster), cluster.cms + cluster.cps
    beta, phi = cluster.cps / w, cluster.st / (sigma * w)
    alpha = np.empty(n)
    alpha[0] = (table.first_share_offset[n] + sigma * table.time_per_unit[n]) / (sigma * w)
    for j in range(1, n):
        alpha[j] = beta * alpha[j - 1] - phi
    return alpha


def fastest_nodes(sigma: float, cluster: Cluster) -> int:
    """Return the number of nodes min(N, N*) on which a load of size sigma finishes first.

    It is N without transmission set-up, and possibly fewer with it (paper M, Theorem 5.2).
    """
    sigma, _ = _check_size_and_count(sigma, 1, cluster)
    return int(formulas_for(1).n_star_of(sigma, opr_table(cluster).min_size, cluster.nodes))


def fewest_nodes(sigma: Any, budget: Any, cluster: Cluster, start: Any = 0.0) -> Any:
    """Return the fewest nodes n_min with which a load started now meets its deadline.

    Parameters
    ----------
    sigma, cluster
        As in `execution_time`.
    budget : float or array_like
        Absolute deadline minus start; arrays of it and of sizes broadcast.
    start : float or array_like
        Absolute start; the tolerance of `dlsim.compiled` is relative to absolute times.

    Returns
    -------
    int or ndarray of int
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
    instance("cluster", cluster, Cluster)
    sizes = _as_floats("sigma", sigma, above=True, rule=SIZE)
    begin = _as_floats("start", start, -MAX_MAGNITUDE, rule="a finite time")
    rule = "a time, or inf for no deadline"
    left = _as_floats("budget", budget, -np.inf, np.inf, rule=rule)
    with calling_user_code("sigma, budget and start must be numbers or arrays that broadcast"):
        each = np.broadcast_arrays(sizes, left, begin)
    found, table = np.empty(each[0].shape, dtype=np.int64), opr_table(cluster)
    sizes, left, begin = (np.array(x, order="C").ravel() for x in each)
    fill_n_min = formulas_for(len(sizes)).fill_n_min
    with np.errstate(invalid="ignore"):
        fill_n_min(
            sizes,
            left,
            begin,
            table.min_size,
            table.time_per_unit,
            table.setup_time,
            found.reshape(-1),
        )
    return found if found.ndim else int(found)


def total_cost(sigma: Any, n: Any, cluster: Cluster) -> Any:
    """Return the cost W(n) = n E(n), the node time that a load occupies (paper M, section 5).

    Parameters and refusals are those of `execution_time`.
    """
    time = execution_time(sigma, n, cluster)
    return (n if np.ndim(n) == 0 else np.asarray(n)) * time


def fastest_counts(sigma: Any, table: TimeTable) -> NDArray[np.int64]:
    """Return min(N, N*) of many loads at once."""
    return np.asarray(np.searchsorted(table.min_size[2:-1], sigma) + 1)


def least_times(sigma: Any, cluster: Cluster) -> Floats:
    """Return the minimum execution times E(min(N, N*)) of many loads at once."""
    table, sizes = opr_table(cluster), np.asarray(sigma, dtype=float)
    top = fastest_counts(sizes, table)
    return np.asarray(table.setup_time[top] + sizes * table.time_per_unit[top])

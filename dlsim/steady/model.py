"""The words of steady-state scheduling: platform, allocation.

Source: paper S (steady-state), L. Marchal, Y. Yang, H. Casanova, Y. Robert,
"Steady-State Scheduling of Multiple Divisible Load Applications on Wide-Area
Distributed Computing Platforms". The paper's alpha[k, l] is `work` here and its
beta[k, l] is `connections`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dlsim.errors import InputError, ScheduleError

Floats = NDArray[np.float64]
#: Slack of every check of (6), relative to the size of its row.
SLACK = 1e-6


def _vector(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(f"{name} must be a list of finite numbers of at least 0, got {values!r}")
    if size is not None and len(array) != size:
        raise InputError(f"{name} must have {size} entries, got {len(array)}")
    return array


@dataclass(frozen=True, eq=False)
class Platform:
    r"""Clusters behind routers, backbone links, and the applications they hold.

    Parameters
    ----------
    speed, gateway : array_like of float, shape (K,)
        Speed :math:`s_k` of each cluster and bandwidth :math:`g_k` of its own link.
    links : DataFrame
        Columns bandwidth and max_connect, one row per backbone link; per connection.
    routes : mapping of (int, int) to sequence
        Labels of the links from cluster k to cluster l, in order; an empty route joins two
        clusters on one router, a missing one cannot be used.
    priority, work, data : array_like of float, shape (A,)
        :math:`\pi`, :math:`w` (work per load unit) and :math:`\delta` (data per load unit).
    origin : sequence of int, optional
        The cluster that holds each application; 0..K-1 by default.

    Raises
    ------
    InputError
        For a wrong length, a negative number, or a route over an unknown cluster or link.
    """

    speed: Any
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[tuple[int, int], Sequence[Any]]
    priority: Any
    work: Any
    data: Any
    origin: Any = None

    def __post_init__(self) -> None:
        """Refuse what is not a platform."""
        speed = _vector("speed", self.speed)
        priority = _vector("priority", self.priority)
        sized = {
            "speed": speed,
            "gateway": _vector("gateway", self.gateway, len(speed)),
            "priority": priority,
            "work": _vector("work", self.work, len(priority)),
            "data": _vector("data", self.data, len(priority)),
        }
        homes = range(len(priority)) if self.origin is None else self.origin
        sized["origin"] = np.asarray(list(homes), dtype=int)
        for name, value in sized.items():
            object.__setattr__(self, name, value)
        self._check_places()

    def _check_places(self) -> None:
        clusters = range(len(self.speed))
        if len(self.origin) != len(self.priority) or not set(self.origin) <= set(clusters):
            raise InputError(
                f"origin must name one of {len(clusters)} clusters for each of "
                f"{len(self.priority)} applications, got {list(self.origin)}"
            )
        if not {"bandwidth", "max_connect"} <= set(self.links.columns):
            raise InputError(
                "links needs the columns bandwidth and max_connect; it has "
                + ", ".join(map(str, self.links.columns))
            )
        for (k, to), route in self.routes.items():
            unknown = [link for link in route if link not in self.links.index]
            if k not in clusters or to not in clusters or k == to or unknown:
                raise InputError(
                    f"route {k} -> {to} must join two clusters over known links; "
                    f"got {unknown[0] if unknown else (k, to)!r}"
                )

    @property
    def clusters(self) -> int:
        """Return the number of clusters K."""
        return len(self.speed)

    def connection_bandwidth(self, k: int, to: int) -> float:
        r"""Return the bandwidth of one connection, the least of its route.

        Parameters
        ----------
        k, to : int
            Clusters.

        Returns
        -------
        float
            :math:`g_{k,l}`; infinite on an empty route, 0 without a route.
        """
        if (k, to) not in self.routes:
            return 0.0
        route = list(self.routes[k, to])
        return float(self.links.loc[route, "bandwidth"].min()) if route else np.inf


@dataclass(frozen=True, eq=False)
class Allocation:
    """How much of each application every cluster computes per period.

    Parameters
    ----------
    platform : Platform
        What it is an allocation of.
    work : ndarray of float, shape (A, K)
        Load units per time (the paper's alpha).
    connections : ndarray, shape (K, K)
        Connections opened from k to l (the paper's beta).
    """

    platform: Platform
    work: Floats
    connections: Any

    @property
    def objective(self) -> float:
        """Return min over applications of positive priority of their work / priority (5)."""
        p = self.platform
        wanted = p.priority > 0
        return float((self.work.sum(axis=1)[wanted] / p.priority[wanted]).min(initial=np.inf))

    def check(self) -> None:
        """Check every constraint of (6), from the model's definition alone.

        Raises
        ------
        ScheduleError
            Naming the first constraint that does not hold.
        """
        p = self.platform
        if self.work.shape != (len(p.priority), p.clusters):
            raise ScheduleError(f"work must have the shape (A, K), got {self.work.shape}")
        for name, used, limit in self._rows():
            if used > limit + SLACK * max(1.0, abs(limit)):
                raise ScheduleError(f"{name}: {used:g} exceeds {limit:g}")
        if (self.work < -SLACK).any() or (np.asarray(self.connections) < 0).any():
            raise ScheduleError("(6f), (6g): work and connections must be at least 0")

    def _rows(self) -> "list[tuple[str, float, float]]":
        """Return (name, used, limit) of every row of (6b) to (6e)."""
        p, rows = self.platform, []
        for k in range(p.clusters):
            mine, others = p.origin == k, p.origin != k
            away = np.arange(p.clusters) != k
            sent = (self.work[mine][:, away] * p.data[mine, None]).sum()
            received = (self.work[others, k] * p.data[others]).sum()
            rows.append((f"(6b) speed of cluster {k}", self.work[:, k] @ p.work, p.speed[k]))
            rows.append((f"(6c) gateway of cluster {k}", sent + received, p.gateway[k]))
            for to in np.flatnonzero(away):
                moved = (self.work[mine, to] * p.data[mine]).sum()
                one = p.connection_bandwidth(k, int(to))
                limit = np.inf if np.isinf(one) else self.connections[k, to] * one
                rows.append((f"(6e) route {k} -> {to}", moved, limit))
        for link, cap in p.links["max_connect"].items():
            used = sum(self.connections[kl] for kl, route in p.routes.items() if link in route)
            rows.append((f"(6d) link {link}", used, float(cap)))
        return rows

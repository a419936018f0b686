"""The variables and rows that all forms of program (6) share, scaled to numbers near 1.

A cell is the work of one application on one cluster, where that can be positive and counts, in
units of the most that it could be alone. The objective is measured in `LpRows.objective_unit`, and
every row but those of the links is divided by its limit. Whatever the platform's units, the numbers
that matter are then near 1, and a solver may drop the smallest.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from dlsim.steady.model import Floats, Ints, Platform

#: A cell that could add more than this many objective units to its application's value is capped
#: at as many, and measured in that amount.
MAX_CELL_WORTH = 1e3


def most_work(platform: Platform) -> Floats:
    """Return the most work of each application that each cluster could do alone, shape (A, K)."""
    tables, origin, data = platform.tables, platform.origin, platform.data[:, None]
    routed = tuple(tables.pairs.T)
    bandwidth = tables.bandwidth[routed]
    connections = np.where(bandwidth > 0, tables.min_over_links(tables.capacity), 0.0)
    flow = tables.bandwidth.copy()
    flow[routed] = connections * np.maximum(bandwidth, 1e-300)  # not inf * 0
    has_route = (tables.route >= 0) | np.isinf(tables.bandwidth)
    gateways = np.minimum(platform.gateway[origin][:, None], platform.gateway)
    sent = np.minimum(flow[origin], gateways)
    without_data = np.where(has_route[origin], np.inf, 0.0)
    moved = np.divide(sent, data, out=without_data, where=data > 0)
    moved[np.arange(platform.applications), origin] = np.inf
    computed = np.broadcast_to(platform.speed, moved.shape) / platform.work[:, None]
    for cap in platform.limits.shares:
        capped = np.isin(origin, cap.origins)
        most = cap.share * platform.speed[cap.cluster] / platform.work[capped]
        computed[capped, cap.cluster] = np.minimum(computed[capped, cap.cluster], most)
    return np.where(platform.inverse_priority > 0, np.minimum(moved, computed), 0.0)


@dataclass(frozen=True, eq=False)
class LpRows:
    """Cells and rows of (6) without its connections.

    Attributes
    ----------
    app, cluster : ndarray of int, shape (C,)
        Application and cluster of each cell.
    route : ndarray of int, shape (C,)
        Number of the route that carries its data, -1 for none.
    unit : ndarray of float, shape (C,)
        Load units of a cell of 1.
    per_unit : ndarray of float, shape (C,)
        Connections that a cell of 1 fills.
    is_capped : ndarray of bool, shape (C,)
        Whether the unit is the cap of `MAX_CELL_WORTH`; the cell is then at most 1.
    max_alone : ndarray of float, shape (A,)
        Value of each application with one unit of each of its cells.
    objective_unit : float
        Unit of the objective, near its optimum.
    """

    platform: Platform
    app: Any
    cluster: Any
    route: Any
    unit: Floats
    per_unit: Floats
    is_capped: Any
    max_alone: Floats
    objective_unit: float

    @classmethod
    def from_platform(cls, platform: Platform) -> Self:
        """Return the cells of a platform and their units."""
        most, counted, value = most_work(platform), platform.is_counted, platform.inverse_priority
        app, cluster = (index.astype(np.int32) for index in np.nonzero(most))
        # the objective is at most the value of all speeds together, and of each application alone
        least_priority = np.min(np.where(value > 0, platform.priorities, np.inf), axis=1)
        together = platform.speed.sum() / (platform.work[counted] @ least_priority[counted])
        alone = (most * value).sum(axis=1)[counted].min()
        objective_unit = float(min(together, alone) or together or 1.0)
        cap = np.divide(
            MAX_CELL_WORTH * objective_unit, value, out=np.zeros(most.shape), where=value > 0
        )
        largest = np.minimum(most, cap)
        unit = largest[app, cluster]
        max_alone = (largest * value).sum(axis=1)
        origin, data = platform.origin[app], platform.data[app]
        route = np.where(data > 0, platform.tables.route[origin, cluster], -1)
        bandwidth = np.where(route >= 0, platform.tables.bandwidth[origin, cluster], np.inf)
        return cls(
            platform,
            app,
            cluster,
            route,
            unit,
            per_unit=unit * data / bandwidth,
            is_capped=most[app, cluster] / unit > 1,
            max_alone=np.where(max_alone > 0, max_alone, objective_unit),
            objective_unit=objective_unit,
        )

    def matrix(self, cells: Ints, with_links: bool = False) -> csr_array:
        """Return the rows of x_0 and some cells: fairness, speeds, shares, gateways, links.

        The row of fairness of an application is divided by its `max_alone`.
        """
        platform, column = self.platform, 1 + np.arange(len(cells))
        app, cluster, unit = self.app[cells], self.cluster[cells], self.unit[cells]
        origin = platform.origin[app]
        counted, place = np.flatnonzero(platform.is_counted), np.cumsum(platform.is_counted) - 1
        fair_row = np.append(np.arange(len(counted)), place[app])
        fair_column = np.append(np.zeros(len(counted), dtype=np.int64), column)
        gain = -unit * platform.inverse_priority[app, cluster] / self.max_alone[app]
        fair = np.append(self.objective_unit / self.max_alone[counted], gain)
        cost = unit * platform.work[app] / platform.speed[cluster]
        blocks = [  # number of rows; row, column, value of every entry
            (len(counted), fair_row, fair_column, fair),
            (platform.clusters, cluster, column, cost),
        ]
        for cap in platform.limits.shares:
            capped = np.flatnonzero((cluster == cap.cluster) & np.isin(origin, cap.origins))
            blocks.append((1, 0 * capped, column[capped], cost[capped] / cap.share))
        away = (origin != cluster) & (platform.data[app] > 0)
        ends = np.concatenate([origin[away], cluster[away]])
        load = np.tile(unit[away] * platform.data[app][away], 2) / platform.gateway[ends]
        blocks.append((platform.clusters, ends, np.tile(column[away], 2), load))
        if with_links:
            routed = np.flatnonzero(self.route[cells] >= 0)
            at, link = platform.tables.links_on_routes(self.route[cells[routed]])
            bound = np.isfinite(platform.tables.capacity[link])
            cell, link = routed[at[bound]], link[bound]
            blocks.append(
                (len(platform.tables.capacity), link, column[cell], self.per_unit[cells[cell]])
            )
        sizes, rows, columns, values = zip(*blocks, strict=True)
        begin = np.cumsum([0, *sizes])
        row = np.concatenate([some + at for some, at in zip(rows, begin, strict=False)])
        entries = np.concatenate(values), (row, np.concatenate(columns))
        return csr_array(entries, shape=(begin[-1], 1 + len(cells)))

    @property
    def limit(self) -> Floats:
        """Return the limits of all rows but those of the links."""
        platform, fair = self.platform, int(self.platform.is_counted.sum())
        return np.repeat([0.0, 1.0], [fair, 2 * platform.clusters + len(platform.limits.shares)])

    def price_columns(self, duals: Floats) -> Floats:
        """Return the price of every cell, the duals of all rows times its column."""
        platform, n = self.platform, self.platform.clusters
        counted, caps = np.flatnonzero(platform.is_counted), platform.limits.shares
        ends = np.cumsum([len(counted), n, len(caps), n])
        fair, speed, share, gateway, link = np.split(duals, ends)
        earned, origin = np.zeros(platform.applications), platform.origin[self.app]
        earned[counted] = fair / self.max_alone[counted]
        cost = self.unit * platform.work[self.app] / platform.speed[self.cluster]
        gain = self.unit * platform.inverse_priority[self.app, self.cluster] * earned[self.app]
        paid = cost * speed[self.cluster] - gain
        for cap, dual in zip(caps, share, strict=True):
            capped = (self.cluster == cap.cluster) & np.isin(origin, cap.origins)
            paid[capped] += cost[capped] / cap.share * dual
        away = (origin != self.cluster) * self.unit * platform.data[self.app]
        through = np.divide(gateway, platform.gateway, out=np.zeros(n), where=platform.gateway > 0)
        paid += away * (through[origin] + through[self.cluster])
        routed = self.route >= 0
        paid[routed] += (
            self.per_unit[routed] * platform.tables.sum_over_links(link)[self.route[routed]]
        )
        return paid

    def work(self, amounts: Floats) -> Floats:
        """Return the work of the cells per application and cluster, shape (A, K)."""
        work = np.zeros((self.platform.applications, self.platform.clusters))
        work[self.app, self.cluster] = np.maximum(amounts, 0.0) * self.unit
        return work

"""The mixed linear program (6) of paper S, and its rational relaxation."""

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array

from dlsim.errors import StudyError
from dlsim.steady.model import Allocation, Platform

#: A solver's connection within this of an integer is that integer.
WHOLE = 1e-6

Row = dict[int, float]


class _Rows:
    """Constraint rows `coefficients . x <= limit`, gathered one by one."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.limits: list[float] = []

    def add(self, row: Row, limit: float) -> None:
        self.rows.append(row)
        self.limits.append(limit)

    def matrix(self, columns: int) -> LinearConstraint:
        cells = [(i, j, v) for i, row in enumerate(self.rows) for j, v in row.items()]
        i, j, v = zip(*cells, strict=True)
        shape = (len(self.rows), columns)
        return LinearConstraint(coo_array((v, (i, j)), shape=shape), ub=self.limits)


def _constraints(p: Platform) -> tuple[_Rows, dict[tuple[int, int], int], int]:
    """Return the rows, the column of each connection, and the number of columns.

    Columns: t, then work[a, l] row by row, then one per route that has links.
    """
    apps, clusters = len(p.priority), p.clusters
    routes = [pair for pair, route in p.routes.items() if route]
    column = {pair: 1 + apps * clusters + i for i, pair in enumerate(routes)}
    rows = _Rows()

    def work(a: int, to: int) -> int:
        return 1 + a * clusters + to

    for a in map(int, np.flatnonzero(p.priority > 0)):
        rows.add({0: p.priority[a]} | {work(a, k): -1.0 for k in range(clusters)}, 0.0)
    for k in range(clusters):
        rows.add({work(a, k): p.work[a] for a in range(apps)}, p.speed[k])
        traffic = {
            work(a, to): p.data[a]
            for a in range(apps)
            for to in range(clusters)
            if (p.origin[a] == k) != (to == k)
        }
        rows.add(traffic, p.gateway[k])
    for link, cap in p.links["max_connect"].items():
        used: Row = {column[pair]: 1.0 for pair in routes if link in p.routes[pair]}
        if used:
            rows.add(used, float(cap))
    for (k, to), j in column.items():
        moved = {work(a, to): p.data[a] for a in map(int, np.flatnonzero(p.origin == k))}
        rows.add({**moved, j: -p.connection_bandwidth(k, to)}, 0.0)
    return rows, column, 1 + apps * clusters + len(routes)


def solve_program(platform: Platform, integer: bool = True) -> Allocation:
    """Solve (6) exactly: the best allocation, with whole connections or real ones.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    integer : bool
        Whether connections are whole numbers (the mixed program) or real (its bound).

    Returns
    -------
    Allocation
        Checked against (6).

    Raises
    ------
    StudyError
        If the solver does not prove an optimum.
    ScheduleError
        If its answer breaks a constraint.
    """
    p = platform
    rows, column, columns = _constraints(p)
    reachable = np.array(
        [[(k == to) or (k, to) in p.routes for to in range(p.clusters)] for k in p.origin]
    )
    upper = np.full(columns, np.inf)
    upper[1 : 1 + reachable.size][~reachable.ravel()] = 0.0
    kinds = np.zeros(columns)
    kinds[list(column.values())] = float(integer)
    goal = np.zeros(columns)
    goal[0] = -1.0
    answer = milp(
        goal,
        constraints=rows.matrix(columns),
        bounds=(np.zeros(columns), upper),
        integrality=kinds,
    )
    if not answer.success:
        raise StudyError(f"the program (6) was not solved to optimality: {answer.message}")
    connections = np.zeros((p.clusters, p.clusters))
    for pair, j in column.items():
        near = np.rint(answer.x[j])
        connections[pair] = near if abs(answer.x[j] - near) <= WHOLE else answer.x[j]
    work = np.maximum(answer.x[1 : 1 + reachable.size].reshape(reachable.shape), 0.0)
    allocation = Allocation(p, work, connections)
    allocation.check()
    return allocation

"""The rational relaxation of (6) with the connections eliminated, and its certified bound.

In the relaxation a route needs exactly work * data / g connections, so that the links
limit the work directly: 3K + b rows instead of K^2.
"""

import copy
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csr_array, hstack

from dlsim.errors import InputError, StudyError
from dlsim.steady.lp_rows import LpRows
from dlsim.steady.model import Floats, Ints, Platform, to_nonnegative_array
from dlsim.validate import instance

#: By how much a solution may exceed a limit, in the rows' own units (near 1).
FEASIBILITY_TOLERANCE = 1e-9
#: A dual of at least this part of the largest is positive.
POSITIVE_DUAL_PART = 1e-6
#: Cells below this, in their units, count as 0.
ZERO_CELL = 1e-13

#: Options of every linear program, fixed because the optimum found depends on them.
SIMPLEX: dict[str, Any] = {
    "output_flag": False,
    "presolve": "off",
    "solver": "simplex",
    "simplex_strategy": 1,
    "threads": 1,
    "random_seed": 0,
    "small_matrix_value": 1e-12,
    "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE,
    "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE,
}
_LOOSER = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
#: Options tried from scratch, one after another, where those prove no optimum.
SOLVER_RETRIES: tuple[dict[str, Any], ...] = (
    {},
    {"simplex_strategy": 4},
    {"presolve": "on"},
    *(dict.fromkeys(_LOOSER, factor * FEASIBILITY_TOLERANCE) for factor in (10, 100)),
)
#: The status of a cell of 0 that is not in the basis.
AT_ZERO = highspy.HighsBasisStatus.kLower
#: Columns added in a round to a program of `narrow`, of each application and on each cluster.
COLUMNS_PER_ROUND = 3
#: A proven bound this near to the solver's optimum, in objective units, is not improved further.
BOUND_TOLERANCE = 1e-6


class _SilentHighs(highspy.Highs):
    """HiGHS without its header, which version 1.16 prints at the first call after the options."""

    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def make_solver(
    matrix: csr_array, limit: Floats, is_capped: Any, options: dict[str, Any] = SIMPLEX
) -> Any:
    """Load `max x_0, matrix @ x <= limit, x >= 0` into a new HiGHS model.

    After x_0 come the cells, of which none is worth more than `MAX_CELL_WORTH` objective units.
    """
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.eye(1, columns).ravel()
    lp.col_lower_, most = np.zeros(columns), np.full(columns, np.inf)
    most[1 + np.flatnonzero(is_capped)] = 1.0
    lp.col_upper_ = most
    lp.row_lower_, lp.row_upper_ = np.full(rows, -np.inf), limit
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    solver = _SilentHighs()
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    return solver


def run_to_optimality(solver: Any) -> Any:
    """Run a solver to proven optimality; if it fails, again from scratch with other options."""
    for options in ({}, *SOLVER_RETRIES):
        with _options(solver, options):
            solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return solver.getSolution()
        solver.clearSolver()
    reason = solver.modelStatusToString(status)
    raise StudyError(f"the program (6) was not solved to optimality: {reason}")


@contextmanager
def _options(solver: Any, options: dict[str, Any]) -> Iterator[None]:
    for name, value in options.items():
        solver.setOptionValue(name, value)
    try:
        yield
    finally:
        for name in options:
            solver.setOptionValue(name, SIMPLEX[name])


class ReducedProgram:
    """The relaxed program (6), which is solved again from its last basis after changes.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    connections : array_like of int, shape (K, K), optional
        Connections to be kept: every route is then fixed at once, and only work is free.

    Attributes
    ----------
    objective : float
        Of the last `solve`; nan before.
    connections_used : ndarray of float, shape (R,)
        Connections that each route of ``platform.tables.pairs`` fills after the last
        `solve`, work * data / g; for fixed routes too.
    capacity_left : ndarray of float, shape (L',)
        Capacity of each link (and limited pair) that no fixed route has reserved.
    fixed : ndarray of bool, shape (R,)
        Which routes are fixed.

    Notes
    -----
    The objective is 0 where no work of an application that counts is possible anywhere. Every cell
    is a column of the program. A program of `narrow` starts from the same vertex, and a cell
    becomes a column when it would improve the objective; once routes are fixed the optimum is the
    same, possibly at another of its vertices.
    """

    def __init__(
        self, platform: Platform, connections: Any = None, cells: Ints | None = None
    ) -> None:
        self.platform = instance("platform", platform, Platform)
        self.rows = rows = LpRows.from_platform(platform)
        tables = platform.tables
        self.capacity_left = tables.capacity.copy()
        self.fixed = np.zeros(len(tables.pairs), dtype=bool)
        self.connections_used: Floats = np.zeros(len(tables.pairs))
        self.objective = np.nan
        self._amounts = np.zeros(len(rows.app))
        self._free = np.ones(int(platform.is_counted.sum()), dtype=bool)
        routed = np.flatnonzero(rows.route >= 0)
        self._by_route = routed[np.argsort(rows.route[routed], kind="stable")]
        numbers = np.arange(len(tables.pairs) + 1)
        self._first_of_route = np.searchsorted(rows.route[self._by_route], numbers)
        self._upper = np.where(rows.is_capped, 1.0, np.inf)
        self._with_links = connections is None
        self._first_link = len(rows.limit)
        self.limit = np.append(rows.limit, tables.capacity)
        self.cells = cells = np.arange(len(rows.app)) if cells is None else cells
        self.matrix = self._columns(cells)
        self._column = np.full(len(rows.app), -1)
        self._column[cells] = 1 + np.arange(len(cells))
        self._solver = make_solver(self.matrix, self.limit, rows.is_capped[cells])
        if connections is not None:
            self._fix_connections(connections)

    def _columns(self, cells: Ints) -> csr_array:
        """Return the columns of x_0 and some cells; links do not bind where routes are fixed."""
        matrix = self.rows.matrix(cells, self._with_links)
        if not self._with_links:
            matrix.resize(len(self.limit), matrix.shape[1])
        return matrix

    def _add_columns(self, cells: Ints) -> None:
        some = self._columns(cells).tocsc()[:, 1:]
        count, zeros = len(cells), np.zeros(len(cells))
        starts, rows, values = some.indptr[:-1], some.indices, some.data
        self._solver.addCols(
            count, zeros, zeros, self._upper[cells], some.nnz, starts, rows, values
        )
        self._column[cells] = 1 + len(self.cells) + np.arange(len(cells))
        self.cells = np.append(self.cells, cells)
        self.matrix = hstack([self.matrix, some], format="csr")

    def _fix_connections(self, connections: Any) -> None:
        platform = self.platform
        kept = to_nonnegative_array(
            "connections", connections, (platform.clusters, platform.clusters)
        )
        if (kept != np.floor(kept)).any():
            raise InputError("connections must be whole numbers of at least 0, to be kept")
        if (lost := np.argwhere((kept > 0) & (platform.tables.route < 0))).size:
            k, to = lost[0]
            raise InputError(f"connections {k} -> {to} must have a route with a link to be kept")
        wanted = kept[tuple(platform.tables.pairs.T)]
        routes = np.unique(self.rows.route)
        for route in routes[routes >= 0].tolist():
            self._limit_route(route, float(wanted[route]))
        self.fixed[:] = True
        self.capacity_left -= platform.tables.load_on_links(wanted)

    def _limit_route(self, route: int, value: float) -> None:
        """Limit the data of a route to that of `value` connections."""
        cells = self._cells(route)
        if not value:
            self._upper[cells] = 0.0
            cells = cells[self._column[cells] >= 0]
        elif (self._column[cells] < 0).any():
            self._add_columns(cells[self._column[cells] < 0])
        at = self._column[cells]
        if len(cells) == 1:
            most = min(float(self._upper[cells[0]]), value / self.rows.per_unit[cells[0]])
            self._solver.changeColBounds(int(at[0]), 0.0, most)
        elif len(cells):
            each = self.rows.per_unit[cells]
            self._solver.addRow(-np.inf, value, len(cells), at.astype(np.int32), each)

    def _cells(self, route: int) -> Any:
        first, end = self._first_of_route[route : route + 2]
        return self._by_route[first:end]

    def fix_route(self, route: int, value: int) -> None:
        """Fix the connections of a route, and reserve them on its links."""
        links = self.platform.tables.links_of(route)
        most = self.capacity_left[links].min()
        if self.fixed[route] or not 0 <= value <= most or value != int(value):
            rule = f"must be fixed once, to a whole number from 0 to {most:g}"
            raise InputError(f"route {route} {rule}; got {value!r}")
        self.fixed[route] = True
        self.capacity_left[links] -= value
        self._limit_route(route, float(value))
        solver, at = self._solver, self._column[self._cells(route)]
        for link in map(int, links):
            if np.isfinite(self.capacity_left[link]):
                row = self._first_link + link
                for column in at[at >= 0].tolist():
                    solver.changeCoeff(row, column, 0.0)
                if value:
                    solver.changeRowBounds(row, -np.inf, self.capacity_left[link])

    def solve(self, least_connections: bool = False) -> float:
        """Solve from the last basis and return the objective.

        With `least_connections` a second stage looks for the fewest connections on free routes
        among the optima; where it is not solved the optimum of the first stage stays.
        """
        values = self._run_with_columns(np.zeros(len(self.rows.app)))
        self.objective = float(max(values[0], 0.0) * self.rows.objective_unit)
        if least_connections:
            least = -self.rows.per_unit * ~np.append(self.fixed, True)[self.rows.route]
            values = self._second_stage(values, least)
        self._store_solution(values[1:])
        return self.objective

    def move_to_random_optimum(self, rng: np.random.Generator) -> None:
        """Move to the optimum of the last `solve` that is best for a random second objective.

        The weight of each cell, in its unit, is a standard normal number.
        """
        weights = rng.standard_normal(len(self._amounts))
        here = np.append(self.objective / self.rows.objective_unit, self._amounts[self.cells])
        with _options(self._solver, {"simplex_strategy": 4}):  # the last optimum stays feasible
            values = self._second_stage(here, weights)
        self._store_solution(values[1:])

    def _store_solution(self, amounts: Floats) -> None:
        self._amounts = np.zeros(len(self.rows.app))
        self._amounts[self.cells[: len(amounts)]] = np.where(amounts > ZERO_CELL, amounts, 0.0)
        routed = self.rows.route >= 0
        filled = (self._amounts * self.rows.per_unit)[routed]
        usage = np.bincount(self.rows.route[routed], filled, minlength=len(self.fixed))
        self.connections_used = usage.astype(float)

    def _run_with_columns(self, weights: Floats) -> Floats:
        """Solve with some weights of the cells, and add columns as long as one would help."""
        while True:
            values = np.array(run_to_optimality(self._solver).col_value)
            if len(self.cells) == len(self.rows.app):
                return values
            gain = weights - self.rows.price_columns(self.duals())
            outside = (self._column < 0) & (self._upper > 0) & (gain > FEASIBILITY_TOLERANCE)
            if not outside.any():
                return values
            found = np.flatnonzero(outside)
            # the most helpful ones, a few of each application and on each cluster
            kinds = (self.rows.app[found], self.rows.cluster[found])
            chosen = np.concatenate([_largest_of_each(kind, gain[found]) for kind in kinds])
            self._add_columns(found[np.unique(chosen)])
            some = slice(len(values) - 1, None)
            for cell, value in zip(self.cells[some], weights[self.cells[some]], strict=True):
                self._solver.changeColCost(int(self._column[cell]), float(value))

    def _second_stage(self, first: Floats, weights: Floats) -> Floats:
        """Return the optimum that is best for some weights of the cells, the first on failure."""
        solver, best = self._solver, float(first[0])
        self._set_costs(0.0, weights)
        try:
            # with rounding errors the program may be infeasible at the optimum itself
            for least in (best, best * (1 - FEASIBILITY_TOLERANCE)):
                solver.changeColBounds(0, least, np.inf)
                with suppress(StudyError):
                    return self._run_with_columns(weights)
            return first
        finally:
            solver.changeColBounds(0, 0.0, np.inf)
            self._set_costs(1.0, np.zeros(len(weights)))

    def _set_costs(self, first: float, weights: Floats) -> None:
        """Set the weights of x_0 and of the cells in the objective."""
        costs = np.append(first, weights[self.cells])
        self._solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def freeze_at_optimum(self) -> int:
        """Fix the value of every application that no optimum of the last `solve` can raise.

        Returns the number of applications fixed now, at least 1 while any is free. The objective of
        the next `solve` is the least value of the others.
        """
        solution = self._solver.getSolution()
        duals = np.array(solution.row_dual)[: len(self._free)] * self._free
        chosen = np.flatnonzero(self._free & (duals >= POSITIVE_DUAL_PART * duals.max()))
        level = solution.col_value[0]
        kept = level * (1 - FEASIBILITY_TOLERANCE)  # rounding must not leave the next program empty
        for row in map(int, chosen):
            # the row reads c x_0 - value <= 0; without x_0 it reads -value <= -c level
            self._solver.changeCoeff(row, 0, 0.0)
            self._solver.changeRowBounds(row, -np.inf, -kept * self.matrix[row, 0])
            self._free[row] = False
        if not self._free.any():
            self._solver.changeColBounds(0, level, level)
        return len(chosen)

    @property
    def work(self) -> Floats:
        """Return the work of the last `solve`, shape (A, K), within the solver's tolerance."""
        return self.rows.work(self._amounts)

    @property
    def connections(self) -> Floats:
        """Return the connections that the last `solve` fills, shape (K, K), as real numbers."""
        return self.platform.tables.to_matrix(self.connections_used)

    def duals(self) -> Floats:
        """Return the duals of the last `solve`, at least 0, in the order of the rows."""
        return np.maximum(np.array(self._solver.getSolution().row_dual), 0.0)[: len(self.limit)]

    def narrow(self) -> "ReducedProgram":
        """Return this solved program with few columns, at the same vertex and its basis.

        The columns are the home cells and those of the basis. Other cells become columns when they
        would help, which most never do. No route may be fixed before.
        """
        basis = self._solver.getBasis()
        is_kept = np.array([status != AT_ZERO for status in basis.col_status[1:]], dtype=bool)
        is_kept |= self._amounts[self.cells] > 0  # in case there is no basis
        at_home = np.flatnonzero(self.platform.origin[self.rows.app] == self.rows.cluster)
        cells = np.union1d(at_home, self.cells[is_kept])
        narrow = type(self)(self.platform, cells=cells)
        if basis.valid:
            columns = [0, *self._column[cells].tolist()]
            basis.col_status = [basis.col_status[column] for column in columns]
            narrow._solver.setBasis(basis)
        narrow.objective, narrow._amounts = self.objective, self._amounts
        narrow.connections_used = self.connections_used
        return narrow

    def prove(self, duals: Floats) -> float:
        """Return the bound, in objective units, that duals prove for a program of all cells."""
        return certify_bound(self.matrix, self.limit, duals, len(self._free))


def _largest_of_each(kind: Ints, value: Floats) -> Any:
    """Return the positions of the `COLUMNS_PER_ROUND` largest values of each kind."""
    order = np.lexsort((-value, kind))
    rank = np.arange(len(order)) - np.searchsorted(kind[order], kind[order])
    return order[rank < COLUMNS_PER_ROUND]


def certify_bound(matrix: csr_array, limit: Floats, duals: Floats, fair: int) -> float:
    r"""Return an upper bound of ``max x_0, matrix @ x <= limit, x >= 0`` by weak duality.

    Any :math:`\lambda \ge 0` with :math:`A^T\lambda \ge c` proves :math:`x_0 \le b^T\lambda`. The
    duals of a solver satisfy this only within its tolerance. Here they are scaled until the first
    column satisfies it; then for every other column that does not, the dual of the row that binds
    it most is raised. The rounding errors of all sums are counted against the bound, so that it
    holds whatever the solver returned. `fair` is the number of rows of fairness.
    """
    slack = 8.0 * (matrix.shape[0] + 8) * np.finfo(float).eps
    binding = np.isfinite(limit)
    multipliers = np.where(binding, duals, 0.0)
    first = matrix[:fair, [0]].toarray().ravel()
    if not first @ multipliers[:fair] > 0:
        multipliers[:fair] = 1.0
    multipliers *= (1 + slack) / (first @ multipliers[:fair])
    gained, paid = matrix[:fair].tocsc()[:, 1:], matrix[fair:].tocsc()[:, 1:]
    gain = -(gained.T @ multipliers[:fair]) * (1 + slack)
    missing = gain - (paid.T @ multipliers[fair:]) * (1 - slack)
    with np.errstate(divide="ignore"):
        tight = np.divide(paid.data, limit[fair:][paid.indices])
    for j in np.flatnonzero(missing > 0):
        cells = slice(paid.indptr[j], paid.indptr[j + 1])
        best = np.argmax(tight[cells])
        row = fair + paid.indices[cells][best]
        raised = missing[j] / paid.data[cells][best] * (1 + slack)
        multipliers[row] += raised
    return float((multipliers[binding] @ limit[binding]) * (1 + slack))


#: Of each platform the solved programs, by whether with the fewest connections; its proven bound.
_SOLVED: "weakref.WeakKeyDictionary[Platform, dict[bool, ReducedProgram]]"
_SOLVED = weakref.WeakKeyDictionary()
_BOUNDS: "weakref.WeakKeyDictionary[Platform, float]" = weakref.WeakKeyDictionary()


def relaxed_program(platform: Platform, least_connections: bool = False) -> ReducedProgram:
    """Return the solved program of a platform, which all methods share and must not change.

    The relaxation has many optimal vertices. This is the one at which the dual simplex method of
    HiGHS ends on the program of all cells, from its first basis and with the options `SIMPLEX` (and
    `SOLVER_RETRIES`, where they prove no optimum); with `least_connections`, the one at which the
    second stage of `ReducedProgram.solve` ends from there. It depends on the version of HiGHS, and
    not on what was solved before. LP returns this vertex, LPR rounds it down, LPRG fills what LPR
    leaves, and LPRR rounds its routes one after another: `ReducedProgram.narrow` continues from it.
    """
    solved = _SOLVED.setdefault(instance("platform", platform, Platform), {})
    if least_connections not in solved:
        program = ReducedProgram(copy.copy(platform))  # no value of the table refers to its key
        program.solve(least_connections)
        solved[least_connections] = program
    return solved[least_connections]


def bound(platform: Platform) -> float:
    """Return a proven upper bound of the objective, the relaxed optimum of (6).

    Parameters
    ----------
    platform : Platform
        What to schedule on.

    Returns
    -------
    float
        At least the optimum of (6) with real connections: certified by a dual solution
        whose feasibility is checked here (`certify_bound`), about 1e-9 above the optimum;
        on platforms whose numbers span many decades sometimes 1e-6 to 1e-5.

    Raises
    ------
    InputError
        For what is no platform.
    StudyError
        If the solver proves no optimum.
    """
    program = relaxed_program(platform)
    if platform in _BOUNDS:
        return _BOUNDS[platform]
    can = np.isin(np.flatnonzero(platform.is_counted), program.rows.app)
    # 0 is the bound where no work of an application that counts is possible
    scale, proved = (
        program.rows.objective_unit,
        program.prove(program.duals()) if can.all() else 0.0,
    )
    for options in SOLVER_RETRIES:  # other options may return duals that prove a better bound
        if proved * scale <= program.objective + BOUND_TOLERANCE * scale:
            break
        program = ReducedProgram(platform)
        try:
            with _options(program._solver, options):
                program.solve()
        except StudyError:
            break
        proved = min(proved, program.prove(program.duals()))
    return _BOUNDS.setdefault(platform, float(proved * scale))

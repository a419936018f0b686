"""The mixed linear program (6) of paper S in full, its relaxation, and fairness beyond it."""

from typing import Any

import highspy
import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from dlsim.errors import InputError, StudyError
from dlsim.steady.lp_rows import LpRows
from dlsim.steady.model import Floats, Platform
from dlsim.steady.relaxation import (
    FEASIBILITY_TOLERANCE,
    ReducedProgram,
    bound,
    make_solver,
    run_to_optimality,
)
from dlsim.steady.result import Allocation, least_connections, scale_to_feasible
from dlsim.validate import instance, whole

#: A solver's connections this near to the least that carry the work are set to these.
SAME_CONNECTIONS = 1e-6
#: Most nodes of the search tree of the mixed program; unlike a time limit it is reproducible.
MOST_SEARCH_NODES = 100_000

#: Relative margin that is added to the solver's bound of the mixed program.
SEARCH_BOUND_MARGIN = 1e-9

_MIXED: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "small_matrix_value": 1e-12,
    "mip_rel_gap": 1e-7,
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": FEASIBILITY_TOLERANCE * 10,
    "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE * 10,
    "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE * 10,
}


def build_full_rows(rows: LpRows) -> tuple[csr_array, Floats]:
    """Return matrix and limits of (6) in full.

    The columns are x_0, the cells of `rows`, and the connections of each numbered route.
    """
    tables, n = rows.platform.tables, len(rows.app)
    routes = len(tables.pairs)
    first = rows.matrix(np.arange(n))
    first.resize(first.shape[0], 1 + n + routes)
    routed = np.flatnonzero(rows.route >= 0)
    at = np.concatenate([rows.route[routed], np.arange(routes)])
    column = np.concatenate([1 + routed, 1 + n + np.arange(routes)])
    value = np.concatenate([rows.per_unit[routed], -np.ones(routes)])
    carried = coo_array((value, (at, column)), shape=(routes, 1 + n + routes))
    user = 1 + n + np.repeat(np.arange(routes), np.diff(tables.start))
    shape = (len(tables.capacity), 1 + n + routes)
    opened = coo_array((np.ones(len(user)), (tables.link, user)), shape=shape)
    matrix = vstack([first, carried, opened], format="csr")
    return matrix, np.concatenate([rows.limit, np.zeros(routes), tables.capacity])


def build_single_use_rows(rows: LpRows) -> csr_array:
    """Return the rows ``cell <= connections`` of the cells that need less than one connection.

    A cell is at most 1, so these rows exclude no whole-number solution. Without them a solver for
    which 1e-8 connections are 0 sends a load of little data over a route without connections.
    """
    n, routes = len(rows.app), len(rows.platform.tables.pairs)
    light = np.flatnonzero((rows.route >= 0) & (rows.per_unit < 1))
    row = np.arange(len(light))
    entries = np.concatenate([np.ones(len(light)), -np.ones(len(light))])
    column = np.concatenate([1 + light, 1 + n + rows.route[light]])
    return coo_array((entries, (np.tile(row, 2), column)), shape=(len(light), 1 + n + routes))


def solve_program(
    platform: Platform,
    integer: bool = True,
    start: Allocation | None = None,
    most_nodes: int = MOST_SEARCH_NODES,
) -> Allocation:
    """Solve (6) in full: the best allocation, with whole connections or real ones.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    integer : bool
        Whether connections are whole numbers (the mixed program) or real (its bound).
    start : Allocation, optional
        A valid allocation to begin the search from; where it meets the bound of the
        relaxed program it is proved optimal without a search. The relaxed program needs none.
    most_nodes : int
        Most nodes of the search; the best allocation found until then is returned with its `gap`.

    Returns
    -------
    Allocation
        Checked against (6). For the mixed program `upper` is the bound proved, and the work is
        the best for its connections, or that of `start` where this is no worse.

    Raises
    ------
    InputError
        For what is no platform or start, or a limit that is no whole number of at least 0.
    StudyError
        If the solver finds no optimum, or nothing within `most_nodes`.
    ScheduleError
        If its answer, or `start`, breaks a constraint.
    """
    instance("platform", platform, Platform)
    if start is not None:
        instance("start", start, Allocation)
    most_nodes = whole("most_nodes", most_nodes, 0)
    rows = LpRows.from_platform(platform)
    matrix, limit = build_full_rows(rows)
    if integer:
        light = build_single_use_rows(rows)
        matrix = vstack([matrix, light], format="csr")
        limit = np.append(limit, np.zeros(light.shape[0]))
        return _solve_mixed(rows, matrix, limit, start, most_nodes)
    values = np.array(run_to_optimality(make_solver(matrix, limit, rows.is_capped)).col_value)
    _, amounts, opened = np.split(values, [1, 1 + len(rows.app)])
    work = scale_to_feasible(platform, rows.work(amounts))
    connections = platform.tables.to_matrix(np.maximum(opened, 0.0))
    least = least_connections(platform, work)  # the solver's may be too few by rounding errors
    opened = np.where(np.abs(connections - least) <= SAME_CONNECTIONS, least, connections)
    return _build_checked(platform, work, opened, is_relaxed=True)


def _build_checked(platform: Platform, work: Floats, connections: Any, **more: Any) -> Allocation:
    allocation = Allocation(platform, work, connections, **more)
    allocation.check()
    return allocation


def _solve_mixed(
    rows: LpRows, matrix: csr_array, limit: Floats, start: Allocation | None, most_nodes: int
) -> Allocation:
    platform, n = rows.platform, len(rows.app)
    top = bound(platform)
    if start is not None:
        proved = Allocation(platform, start.work, start.connections, upper=top)
        proved.check()
        if proved.is_proved:
            return proved
    solver = make_solver(matrix, limit, rows.is_capped, _MIXED | {"mip_max_nodes": most_nodes})
    routes = np.arange(1 + n, matrix.shape[1], dtype=np.int32)
    kinds = np.full(len(routes), highspy.HighsVarType.kInteger)
    solver.changeColsIntegrality(len(routes), routes, kinds)
    if start is not None:
        amounts = start.work[rows.app, rows.cluster] / rows.unit
        opened = np.asarray(start.connections, dtype=float)[tuple(platform.tables.pairs.T)]
        solution = highspy.HighsSolution()
        solution.col_value = [start.objective / rows.objective_unit, *amounts, *opened]
        solver.setSolution(solution)
    solver.run()
    status, found = solver.getModelStatus(), solver.getInfo()
    if found.primal_solution_status != 2:
        raise StudyError(
            f"the mixed program (6) was not solved: {solver.modelStatusToString(status)}; "
            f"raise most_nodes above {most_nodes}, or give a start"
        )
    values = np.array(solver.getSolution().col_value)[1 + n :]
    best = polish(platform, platform.tables.to_matrix(np.rint(values).astype(np.int64)))
    if start is not None and start.objective > best.objective:
        best = start
    upper = top
    if len(routes):
        searched = found.mip_dual_bound * rows.objective_unit * (1 + SEARCH_BOUND_MARGIN)
        upper = min(top, searched)
    return _build_checked(platform, best.work, best.connections, upper=upper)


def polish(platform: Platform, connections: Any) -> Allocation:
    """Return the best work for given whole connections: one linear program.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    connections : array_like of int, shape (K, K)
        Of any heuristic, kept as they are: whole numbers of at least 0.

    Returns
    -------
    Allocation
        Checked as that of `solve_program`, whose refusals apply.
    """
    if connections is None:
        raise InputError("connections must be a table of whole numbers, got None")
    program = ReducedProgram(platform, connections)
    program.solve()
    work = scale_to_feasible(platform, program.work, connections)
    return _build_checked(platform, work, np.array(connections, dtype=np.int64))


def max_min_fair(platform: Platform, connections: Any = None) -> Allocation:
    r"""Maximise the least value, then the next above it, and so on (max-min fairness).

    The paper cites max-min fairness but maximises the minimum only. Here the values
    :math:`\sum_l \alpha_{k,l}/\pi_{k,l}`, sorted upwards, are lexicographically as large
    as they can be. Each round maximises the least value of the applications still free
    and holds those whose row has a positive dual: no optimum can raise them.

    Parameters
    ----------
    platform, connections
        As in `polish`; without connections these are real numbers as in the relaxed program.

    Returns
    -------
    Allocation
        Checked as that of `solve_program`, whose refusals apply.

    Notes
    -----
    On each cluster an application gets at most what is worth 1000 times the bound of the
    least value (`MAX_CELL_WORTH`): beyond that, floats cannot hold both in one program. Where
    priorities span so many decades that a round cannot be solved, the levels that were
    reached before it stay: the least value is then still optimal.
    """
    program = ReducedProgram(platform, connections)
    free = int(platform.is_counted.sum())
    program.solve()
    while free := free - program.freeze_at_optimum():
        try:
            program.solve()
        except StudyError:
            break
    work = scale_to_feasible(platform, program.work, connections)
    if connections is not None:
        return _build_checked(platform, work, np.array(connections, dtype=np.int64))
    opened = least_connections(platform, work)
    return _build_checked(platform, work, opened, is_relaxed=True, upper=bound(platform))

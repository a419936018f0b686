"""Heuristics of paper S, section 5.2, which round the relaxed program.

LPR rounds the connections down (`round_down`), LPRG allocates what LPR leaves by greedy steps
(`dlsim.steady.greedy`), LPRR rounds one route after another at random (`round_randomly`; it draws
the connections of one route in `draw_whole_connections`). All three start from one optimal vertex,
that of `relaxed_program`. Beyond the paper, LPRR may round several routes between two solutions.
"""

import numpy as np

from dlsim.steady.greedy import WorkAndConnections, fill_greedily
from dlsim.steady.model import Floats, Ints, Platform, SolveOptions
from dlsim.steady.relaxation import ReducedProgram, relaxed_program
from dlsim.steady.result import Allocation, scale_to_feasible
from dlsim.validate import random_generator

#: A relaxed connection this close to a whole number is that number.
WHOLE_TOLERANCE = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
FIT_TOLERANCE = 1e-9


def split_connections(usage: Floats) -> tuple[Floats, Floats]:
    """Split relaxed connections into whole numbers and the fractions that are left."""
    nearest = np.rint(usage)
    snapped = np.where(np.abs(usage - nearest) <= WHOLE_TOLERANCE, nearest, usage)
    whole_part = np.floor(snapped)
    return whole_part, snapped - whole_part


def round_connections_down(platform: Platform, work: Floats, usage: Floats) -> WorkAndConnections:
    r"""Round relaxed connections down (LPR, section 5.2.1).

    .. math:: \hat\beta = \lfloor\tilde\beta\rfloor,\quad
        \hat\alpha = \min\{\tilde\alpha, \hat\beta g / \delta\}
    """
    opened, _ = split_connections(usage)
    kept = np.ones((platform.clusters, platform.clusters))
    part = np.divide(opened, usage, out=np.ones(len(usage)), where=usage > opened)
    kept[tuple(platform.tables.pairs.T)] = part
    kept_of_work = np.where(platform.data[:, None] > 0, kept[platform.origin], 1.0)
    return work * kept_of_work, platform.tables.to_matrix(opened.astype(np.int64))


def round_down(platform: Platform, program: ReducedProgram) -> WorkAndConnections:
    """Return the optimum of a solved program with its connections rounded down (LPR)."""
    work, connections = round_connections_down(platform, program.work, program.connections_used)
    return scale_to_feasible(platform, work, connections), connections


class RandomisedRounding:
    """A relaxed solution in which routes are fixed one after another (LPRR).

    The first solution is that of `relaxed_program`, at every size of platform. Every further
    program is solved from the basis of the last one, and has few columns (`ReducedProgram.narrow`).
    With `least_connections` a further solution may be another optimum with as few connections: the
    fewest connections do not make it unique.
    `order` holds route, relaxed connections and whole connections, as they were fixed; the values
    fixed since the last solution leave it an optimum if `is_optimal`.
    """

    def __init__(self, platform: Platform, least_connections: bool) -> None:
        self.platform, self.least_connections = platform, least_connections
        self.program = relaxed_program(platform, least_connections).narrow()
        self.order: list[tuple[int, float, int]] = []
        self._fixed_values = np.zeros(len(self.program.fixed), dtype=np.int64)
        self._refresh()

    @property
    def work(self) -> Floats:
        """Return the work of the last solution."""
        return self.program.work

    @property
    def connections(self) -> Ints:
        """Return the connections fixed, shape (K, K)."""
        return self.platform.tables.to_matrix(self._fixed_values)

    def solve(self) -> None:
        """Solve the program again."""
        self.program.solve(self.least_connections)
        self._refresh()

    def _refresh(self) -> None:
        free_usage = np.where(self.program.fixed, 0.0, self.program.connections_used)
        self._free_load = self.platform.tables.load_on_links(free_usage)
        self.is_optimal = True

    def free_routes(self, used_above: float) -> Ints:
        """Return the routes that are not fixed and use more of a connection."""
        return np.flatnonzero(~self.program.fixed & (self.program.connections_used > used_above))

    def fix_route(self, route: int, wanted: int) -> None:
        """Fix a route to the connections wanted, or to as many as its links have left."""
        links = self.platform.tables.links_of(route)
        used = float(self.program.connections_used[route])
        value = int(min(wanted, self.program.capacity_left[links].min()))
        self.program.fix_route(route, value)
        self._free_load[links] = self._free_load[links] - used
        fits = (self._free_load[links] <= self.program.capacity_left[links] + FIT_TOLERANCE).all()
        # fixing a value only excludes solutions: one that is not excluded stays optimal
        self.is_optimal &= bool(fits) and used <= value + FIT_TOLERANCE
        self._fixed_values[route] = value
        self.order.append((route, used, value))


def draw_whole_connections(usage: float, rng: np.random.Generator) -> int:
    r"""Return the whole connections of one route: the rounding of LPRR (section 5.2.3).

    Relaxed connections are rounded up with the probability of their fraction, else down:
    :math:`\hat\beta = \lfloor\tilde\beta\rfloor + 1` with probability
    :math:`\tilde\beta - \lfloor\tilde\beta\rfloor`. One number is drawn.
    """
    whole_part, fraction = split_connections(np.asarray(usage))
    return int(whole_part) + int(rng.random() < fraction)


def round_randomly(
    platform: Platform, rng: np.random.Generator, batch: int = 1, least_connections: bool = False
) -> RandomisedRounding:
    """Round the relaxed program route by route, at random (LPRR, section 5.2.3).

    One route after another is drawn from those that are not fixed and use connections, and is
    fixed at the number of `draw_whole_connections`, as far as its links have connections left.
    Rounding ends when no route that is not fixed uses any connection; those routes get none. The
    program is solved again only where the values fixed since its last solution exclude it.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    rng : Generator
        Draws the routes and the rounding.
    batch : int
        Most routes that are fixed between two solutions; 1 in the paper.
    least_connections : bool
        Whether each solution is an optimum with the fewest connections.
    """
    rounding = RandomisedRounding(platform, least_connections)
    while True:
        candidates = rounding.free_routes(WHOLE_TOLERANCE)
        if not len(candidates):
            tiny = rounding.free_routes(0.0)
            if not len(tiny):
                return rounding
            for route in map(int, tiny):
                rounding.fix_route(route, 0)
        for _ in range(min(batch, len(candidates))):
            place = int(rng.integers(len(candidates)))
            route = int(candidates[place])
            candidates = np.delete(candidates, place)
            usage = float(rounding.program.connections_used[route])
            rounding.fix_route(route, draw_whole_connections(usage, rng))
        if not rounding.is_optimal:
            rounding.solve()


def find_lpr(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPR (5.2.1)."""
    program = relaxed_program(platform, options.needs_least_connections)
    return Allocation(platform, *round_down(platform, program))


def find_lprg(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPRG (5.2.2)."""
    lpr = find_lpr(platform, options)
    start = lpr.work, lpr.connections
    return Allocation(platform, *fill_greedily(platform, options.reading, start, options.engine))


def find_lprr(platform: Platform, options: SolveOptions, batch: int = 1) -> Allocation:
    """Return the allocation of heuristic LPRR (5.2.3); `batch` is that of `round_randomly`."""
    rng = random_generator(options.seed, 0)
    rounding = round_randomly(platform, rng, batch, options.needs_least_connections)
    work = scale_to_feasible(platform, rounding.work, rounding.connections)
    return Allocation(platform, work, rounding.connections)

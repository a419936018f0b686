r"""What no scheduler of paper B can beat, and what one with perfect foresight reaches.

A request i on server j is in time only if its work :math:`p_{ij}` fits between the instant
:math:`r_{ij}` at which its input can be there and the last one :math:`q_{ij}` from which its result
still comes back in time. On a server that runs one job at a time, jobs whose windows lie in or
across :math:`[a, b]` take at least :math:`\max(0, \min(b-a, p - (a-r)^+ - (q-b)^+))` of it each,
together at most b - a. Choosing x to maximise :math:`\sum_{ij} (1 - v (c_j - c_{min})) x_{ij}`
bounds the requests in time plus v times what is saved, whatever the scheduler knows and however
often requests fall back; every price v gives one line below which no point of failure against
cost can lie.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import highspy
import numpy as np
from scipy.sparse import coo_array, csr_array

from dlsim.bricks.environment import Environment
from dlsim.bricks.view import View
from dlsim.compiled import TOL
from dlsim.errors import InputError, StudyError
from dlsim.given import Floats, column, instance, positive

__all__ = ["Frontier", "follow", "foresee", "frontier"]

#: Prices of a Mops/s at which the program is solved, and seconds of an interval of its time.
PRICES, STEP = (0.002, 0.004), 3600.0
#: Steps that intervals last, each begun a quarter of its length after the one before.
LENGTHS = (2, 4)
#: When a link's last throughput has been held for ever; what a path without links lets through.
FOREVER, AT_ONCE = 1e9, 1e15
#: By how much sums over a trace may be wrong, relative.
MARGIN = 1e-9
#: Most intervals of one length; where there would be more, all are longer.
MOST_INTERVALS = 500
_QUIET = {"output_flag": False, "threads": 1, "solver": "ipm", "run_crossover": "off"}


class Windows(NamedTuple):
    """Of every request on every server: input there, last end of service, seconds of service."""

    arrives: Floats
    latest: Floats
    span: Floats


def windows(env: Environment) -> Windows:
    """Return what the network and the deadlines alone allow, shape (requests, servers)."""
    r, top, edges = env.requests, env.topology, np.arange(env.open_rates.shape[1]) * env.step
    edges = np.append(edges, FOREVER)
    home = env.clients["domain"].to_numpy()[r["client"].to_numpy()]
    place, speed = (env.servers[name].to_numpy() for name in ("domain", "performance"))
    time, send, recv, due = (r[k].to_numpy() for k in ("time", "send", "recv", "deadline"))
    due = due + TOL * np.abs(due - time)

    def carried(source: int, target: int) -> Floats:
        """Data that a path has let through by the end of every step."""
        rate = env.open_rates[top.of(source * top.domains + target)].min(axis=0, initial=AT_ONCE)
        return np.append(0.0, np.cumsum(rate * np.diff(edges)))

    arrives = np.empty((len(r), len(speed)))
    latest = np.empty_like(arrives)
    for here in np.unique(home):
        rows = np.flatnonzero(home == here)
        for there in np.unique(place):
            block = np.ix_(rows, np.flatnonzero(place == there))
            out, back = carried(here, there), carried(there, here)
            # rounding, and links that stand still, never make a window narrower
            got = (np.interp(time[rows], edges, out) + send[rows]) * (1 - MARGIN)
            arrives[block] = np.interp(got, out, edges)[:, None]
            left = np.interp(due[rows], edges, back) * (1 + MARGIN) - recv[rows]
            latest[block] = np.where(left < 0, -np.inf, np.interp(left, back, edges))[:, None]
    return Windows(arrives, latest, r["work"].to_numpy()[:, None] / speed)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Lines below which no scheduler's failure rate against mean cost can lie.

    Attributes
    ----------
    prices, values : ndarray of float
        Of every line its price v, and the proved most of requests in time less v times their cost
        above the cheapest server's; first, at price 0, of requests that fit somewhere.
    requests, cheapest : int, float
        How many requests, and the Mops/s of the cheapest server.
    shares : ndarray of float, shape (requests, servers)
        What the program chose at the lowest price.
    """

    prices: Floats
    values: Floats
    requests: int
    cheapest: float
    shares: Floats

    @property
    def lines(self) -> dict[float, float]:
        """Return the failure rate that every line has at cost 0, by its price.

        At one price these may be averaged over environments: a mean failure rate and a mean cost
        over all of them lie above the mean line.
        """
        heights = 1 - self.values / max(self.requests, 1) + self.prices * self.cheapest
        return dict(zip(self.prices.tolist(), heights.tolist(), strict=True))

    def at(self, cost: Any) -> Floats:
        """Return the least failure rate at a mean cost (scalar or array), as whole requests."""
        spare = self.requests * (np.asarray(cost, dtype=float)[..., None] - self.cheapest)
        most = (self.values + self.prices * spare).min(axis=-1)
        missed = np.ceil(self.requests - most - 1e-6)
        return np.clip(missed, 0, self.requests) / max(self.requests, 1)


def _program(w: Windows, pairs: Any, step: float) -> tuple[csr_array, Floats]:
    """Return rows and limits: a request once, then servers over intervals that could be full."""
    i, j = pairs
    requests, servers = w.span.shape
    r, q, p = (one[pairs] for one in w)
    entries, limits, base = [(i, np.arange(len(i)), np.ones(len(i)))], [np.ones(requests)], requests
    begin, end = r.min(initial=FOREVER), q.max(initial=0.0)
    step = max(step, (end - begin) / MOST_INTERVALS)
    for length in LENGTHS:
        size = length * step
        for a in np.arange(begin, end, max(1, length // 4) * step):
            must = p - np.maximum(0.0, a - r) - np.maximum(0.0, q - a - size)
            must = np.minimum(must, size)
            some = np.flatnonzero(must > 0)
            entries.append((base + j[some], some, must[some]))
            limits.append(np.full(servers, size))
            base += servers
    at, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = coo_array((value, (at, column)), shape=(base, len(i))).tocsr()
    limit = np.concatenate(limits)
    binding = matrix.sum(axis=1) > limit
    binding[:requests] = True
    return matrix[binding], limit[binding]


def _solved(matrix: csr_array, limit: Floats, gain: Floats) -> tuple[Floats, Floats]:
    """Maximise a gain over the program; return the point and the prices of its rows."""
    lp, solver = highspy.HighsLp(), highspy.Highs()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_, lp.col_cost_ = highspy.ObjSense.kMaximize, gain
    lp.col_lower_, lp.col_upper_ = np.zeros(len(gain)), np.full(len(gain), np.inf)
    lp.row_lower_, lp.row_upper_ = np.full(len(limit), -np.inf), limit
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    for name, value in _QUIET.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    found = solver.getSolution()
    if not found.dual_valid:
        raise StudyError(f"the bound was not solved: {solver.getModelStatus()}")
    return np.array(found.col_value), np.abs(np.array(found.row_dual))


def proved(matrix: csr_array, limit: Floats, gain: Floats, row: Any, prices: Floats) -> float:
    """Return what no choice can exceed, by weak duality alone: right for any prices of rows >= 0.

    The first rows are those of the requests, whose prices are set anew to what they must be.
    """
    requests = int(row.max(initial=-1)) + 1
    left, paid = gain - prices[requests:] @ matrix[requests:], np.zeros(requests)
    np.maximum.at(paid, row, left)
    return float(paid.sum() + prices[requests:] @ limit[requests:])


def frontier(env: Environment, prices: Any = PRICES, step: float = STEP) -> Frontier:
    """Bound the failure rate of every scheduler at every cost, in a fluid network.

    Parameters
    ----------
    env : Environment
        What is scheduled on; all of its future is known here.
    prices : sequence of float
        Requests in time that a Mops/s of mean cost is worth, each above 0: a line each.
    step : float
        Seconds; intervals in which servers can be full last 2 or 4 of them. Shorter ones make
        the bound no worse and dearer.

    Returns
    -------
    Frontier
        Proved by prices of time on every server; the solver is not trusted.

    Raises
    ------
    InputError
        For what is no environment, or a price or step that is not above 0.
    """
    instance("env", env, Environment)
    rates = column("prices", prices, above=True)
    if rates.ndim != 1 or not rates.size:
        raise InputError(f"prices must be one number or more in a list, got {prices!r}")
    (step,) = positive(step=step)
    w, speed = windows(env), env.servers["performance"].to_numpy()
    requests, dear = len(w.span), speed - speed.min()
    pairs = np.nonzero(w.arrives + w.span <= w.latest + MARGIN * w.span)
    matrix, limit = _program(w, pairs, step)
    values, shares = [float(len(np.unique(pairs[0])))], np.zeros(w.span.shape)
    for v in rates.tolist():
        gain = 1.0 - v * dear[pairs[1]]
        x, duals = _solved(matrix, limit, gain) if len(gain) else (gain, limit)
        values.append(proved(matrix, limit, gain, pairs[0], duals) if len(gain) else 0.0)
        if v == rates.min():
            shares[pairs] = x
    return Frontier(np.append(0.0, rates), np.array(values), requests, float(speed.min()), shares)


def foresee(env: Environment, shares: Floats) -> Any:
    """Choose a server for every request, knowing all of them: the shortest work first.

    Servers are tried from the largest share of the bound's program on, then by price; one is
    taken where the request and all that were placed there before end in time. A request for which
    there is none goes to the cheapest server where it makes nobody late.

    Parameters
    ----------
    env : Environment
        As of `frontier`.
    shares : ndarray of float, shape (requests, servers)
        `Frontier.shares`, or zeros for prices alone.

    Returns
    -------
    ndarray of int, shape (requests,)
        A row of the servers for each, for `follow`.

    Raises
    ------
    InputError
        For what is no environment, or shares of another shape.
    """
    instance("env", env, Environment)
    w, speed = windows(env), env.servers["performance"].to_numpy()
    if np.shape(shares) != w.span.shape:
        raise InputError(f"shares must be of shape {w.span.shape}, got {np.shape(shares)}")
    span = w.span / (1 - min(env.server_load, 0.99))  # other users take their part
    queues: list[list[tuple[float, int]]] = [[] for _ in speed]
    by_price, late = np.argsort(speed, kind="stable"), set[int]()

    def fits(server: int, row: int) -> bool:
        free = 0.0
        for arrives, other in sorted([*queues[server], (w.arrives[row, server], row)]):
            free = max(free, arrives) + span[other, server]
            if free > w.latest[other, server] and other not in late:
                return False
        return True

    plan = np.zeros(len(span), dtype=np.int64)
    for row in np.argsort(env.requests["work"].to_numpy(), kind="stable").tolist():
        order = by_price[np.argsort(-shares[row, by_price].round(2), kind="stable")]
        found = next((k for k in order.tolist() if fits(k, row)), -1)
        if found < 0:
            late.add(row)
            found = next((k for k in by_price.tolist() if fits(k, row)), int(by_price[0]))
        plan[row] = found
        queues[found].append((w.arrives[row, found], row))
    return plan


def follow(plan: Any) -> Any:
    """Return an algorithm for `dlsim.bricks.Scheduler` that sends every request where a plan says.

    Parameters
    ----------
    plan : array_like of int
        A row of the servers for every request, in their order.
    """
    servers = np.asarray(plan).tolist()

    def choose(view: View) -> int:
        return int(servers[view.row])

    choose.__name__ = "clairvoyant"
    return choose

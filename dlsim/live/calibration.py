r"""Measured costs of a function on this cluster, and the margin of a promise.

A piece of x units occupies a worker for

.. math:: t = SC + C_{ps}\,x

seconds (paper M, section 3; the cost of sending is included), fitted to measured pieces by least
squares of relative errors. The promised end is the expected time multiplied by a margin: a quantile
(95 % by default) of the next ratio of real to expected time, predicted from the ratios of earlier
loads.
"""

import hashlib
import heapq
import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import InputError
from dlsim.files import StrPath, read_json, write_text
from dlsim.validate import Floats

#: Number of latest pieces per worker, and of latest loads, that are kept.
PIECES_KEPT_PER_WORKER, LOADS_KEPT = 30, 39
#: Bounds of the prior spread of a load's ratio, and the number of loads that the prior counts for.
SPREAD_FLOOR, SPREAD_CAP, PRIOR_LOADS = 0.1, 0.5, 2.0
#: Number of loads that the prior mean of the ratio, 1, counts for.
PRIOR_MEAN_LOADS = 1.0
#: The logarithm of a margin is at most this many times that of the largest ratio, or the prior's.
OUTLIER_BOUND = 1.25
#: Number of simulated loads behind an expected time.
SIMULATED_LOADS = 100
#: Least seconds per unit, for measured times that do not grow with the units.
MIN_SECONDS_PER_UNIT = 1e-15
#: Relative errors beyond this count as outliers.
OUTLIER = 0.1
#: Key of the ratios of first loads. Their expected times come from a sample, so these ratios show
#: how reliable samples are, for any function.
FIRST_LOADS = "first loads of functions"
#: Version of the format of the file of costs.
FILE_VERSION = 1


class Fit(NamedTuple):
    """A line through measured times: seconds of start-up per piece, and seconds per unit."""

    start_up: float
    per_unit: float

    def time(self, units: Floats | float) -> Any:
        """Return the fitted seconds of a piece with this number of units."""
        return self.start_up + self.per_unit * units


def fit_times(units: Floats, seconds: Floats, has_start_up: bool = True) -> Fit:
    """Fit start-up and seconds per unit, both at least 0; the sum over all pieces is exact.

    Relative errors are minimised with little weight on outliers (`scipy.optimize.least_squares`,
    soft L1).

    >>> fit_times(np.array([2.0, 4.0]), np.array([1.0, 2.0]), has_start_up=False)
    Fit(start_up=0.0, per_unit=0.5)
    """
    from scipy.optimize import least_squares

    mean = max(float(seconds.sum() / units.sum()), MIN_SECONDS_PER_UNIT)
    if not has_start_up or len(np.unique(units)) == 1:
        return Fit(0.0, mean)
    logs = np.log(np.maximum(seconds, 1e-9))
    smallest = max(float(seconds.min()), 1e-9)

    def errors(parameters: Floats) -> Floats:
        return np.log(parameters[0] * smallest + parameters[1] * mean * units + 1e-12) - logs

    found = least_squares(errors, [0.1, 1.0], bounds=(0, np.inf), loss="soft_l1", f_scale=OUTLIER)
    start_up, per_unit = found.x[0] * smallest, found.x[1] * mean
    scale = seconds.sum() / (start_up * len(units) + per_unit * units.sum())
    return Fit(float(scale * start_up), max(float(scale * per_unit), MIN_SECONDS_PER_UNIT))


class Measurement(NamedTuple):
    """A measured piece: units, seconds that it occupied a worker, and seconds of computing."""

    units: float
    occupied: float
    computing: float


@dataclass(eq=False)
class MeasuredCosts:
    """Measured costs of one function on one cluster.

    Attributes
    ----------
    pieces : deque of Measurement
        The latest measured pieces.
    ratios : deque of float
        Real over expected time from start to end, of the latest loads.
    """

    pieces: deque[Measurement] = field(default_factory=deque)
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=LOADS_KEPT))
    _fits: dict[tuple[str, bool], Fit] = field(default_factory=dict, repr=False)

    def add_piece(self, measurement: Measurement, workers: int) -> None:
        """Add a measured piece, and drop the oldest beyond the limit for this number of workers."""
        self.pieces.append(measurement)
        while len(self.pieces) > PIECES_KEPT_PER_WORKER * workers:
            self.pieces.popleft()
        self._fits.clear()

    def forget_first(self, count: int) -> None:
        """Drop the first pieces, which were slowed by the start of the workers."""
        for _ in range(count):
            self.pieces.popleft()
        self._fits.clear()

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        units, occupied, computing = np.array(self.pieces, dtype=float).T
        return units, occupied, computing

    def fit(self, has_start_up: bool = True) -> Fit:
        """Return the fitted time that pieces occupy a worker."""
        if ("occupied", has_start_up) not in self._fits:
            units, occupied, _ = self._columns()
            self._fits["occupied", has_start_up] = fit_times(units, occupied, has_start_up)
        return self._fits["occupied", has_start_up]

    def fit_sending(self, has_start_up: bool = True) -> Fit:
        """Return the fitted time that pieces occupy a worker without computing."""
        if ("sending", has_start_up) not in self._fits:
            units, occupied, computing = self._columns()
            sending = np.maximum(occupied - computing, 0.0)
            self._fits["sending", has_start_up] = fit_times(units, sending, has_start_up)
        return self._fits["sending", has_start_up]

    def simulate(self, sizes: Sequence[float], workers: int) -> tuple[float, float]:
        """Simulate a load whose pieces idle workers pull, with resampled measured ratios.

        Parameters
        ----------
        sizes : sequence of float
            Units of the pieces, in the order in which they are pulled.
        workers : int
            Number of workers.

        Returns
        -------
        float
            Mean seconds from the start of the load to the end of the last piece.
        float
            Their relative standard deviation, including the uncertainty of the fit.
        """
        units, occupied, _ = self._columns()
        fitted = self.fit().time(units)
        source = np.random.default_rng(np.random.SeedSequence(0))
        seconds = self.fit().time(np.array(sizes, dtype=float))
        # weights by fitted time: every second of work is equally likely to be drawn
        weights = fitted / fitted.sum()
        ratios = source.choice(occupied / fitted, (SIMULATED_LOADS, len(seconds)), p=weights)
        makespans = np.array([_pull(times, workers) for times in (ratios * seconds).tolist()])
        of_fit = float(ratios.std()) / math.sqrt(len(units))
        of_load = float(makespans.std() / makespans.mean())
        spread = math.hypot(SPREAD_FLOOR, of_fit, of_load)
        return float(makespans.mean()), min(spread, SPREAD_CAP)


def margin(ratios: Sequence[float], quantile: float, spread: float) -> float:
    """Return the factor on the expected time that the next load meets with probability `quantile`.

    With enough loads it is an order statistic of the latest ratios, which is exact for exchangeable
    ratios (V. Vovk and others, Algorithmic Learning in a Random World, 2005). With fewer loads the
    ratios are assumed lognormal with unknown mean and variance, and a prior variance from `spread`:
    the factor follows from a quantile of Student's t (A. Gelman and others, Bayesian Data Analysis,
    3rd edition, section 3.3), bounded by `OUTLIER_BOUND`. A late load widens the margin.
    """
    place = math.ceil(quantile * (len(ratios) + 1))
    if place <= len(ratios):
        return max(1.0, sorted(ratios)[place - 1])
    prior = _predicted_log(np.zeros(0), quantile, spread)
    logs = np.log(ratios) if ratios else np.zeros(0)
    bound = OUTLIER_BOUND * max(prior, logs.max(initial=0.0))
    return max(1.0, math.exp(min(bound, _predicted_log(logs, quantile, spread))))


def _predicted_log(logs: Floats, quantile: float, spread: float) -> float:
    """Return the predicted quantile of the logarithm of the next ratio."""
    from scipy.special import stdtrit

    count, degrees = PRIOR_MEAN_LOADS + len(logs), PRIOR_LOADS + len(logs)
    mean = logs.sum() / count
    squares = ((logs - mean) ** 2).sum() + PRIOR_MEAN_LOADS * mean**2
    variance = (PRIOR_LOADS * spread**2 + squares) / degrees
    return float(mean + stdtrit(degrees, quantile) * math.sqrt(variance * (1 + 1 / count)))


def _pull(times: Sequence[float], workers: int) -> float:
    """Return the end of the last piece if every idle worker takes the next piece."""
    ends = [0.0] * workers
    for seconds in times:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def function_key(function: Callable[..., Any]) -> str:
    """Return the key of a function's costs: its name and a digest of its code."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    digest = hashlib.sha256()
    _hash_code(getattr(function, "__code__", None), digest.update)
    return f"{kind.__module__}.{kind.__qualname__} {digest.hexdigest()[:8]}"


def _hash_code(code: Any, update: Callable[[bytes], object]) -> None:
    """Hash the instructions and constants of a function and of the functions within it."""
    if code is None:
        return
    update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _hash_code(constant, update)
        elif isinstance(constant, frozenset):  # its order differs between processes
            update(repr(sorted(map(repr, constant))).encode())
        else:
            update(repr(constant).encode())


def read_costs(path: StrPath) -> defaultdict[str, MeasuredCosts]:
    """Read the costs of functions from a JSON file; raise InputError if it holds none."""
    found: defaultdict[str, MeasuredCosts] = defaultdict(MeasuredCosts)
    document = read_json(path)
    try:
        if document["version"] != FILE_VERSION:
            raise ValueError(f"version {document['version']} instead of {FILE_VERSION}")
        for key, row in document["functions"].items():
            pieces = np.array(row["pieces"], dtype=float).reshape(-1, 3)
            ratios = np.array(row["ratios"], dtype=float).reshape(-1)
            if not (np.isfinite(pieces).all() and np.isfinite(ratios).all()):
                raise ValueError(f"{key}: a number is not finite")
            if (pieces[:, :2] <= 0).any() or (pieces[:, 2] < 0).any() or (ratios <= 0).any():
                raise ValueError(f"{key}: a number is not positive")
            found[key].pieces.extend(Measurement(*piece) for piece in pieces.tolist())
            found[key].ratios.extend(ratios.tolist())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path} holds no costs of a head ({type(error).__name__}: {error}); delete it, then "
            "functions are measured again"
        ) from error
    return found


def write_costs(path: StrPath, costs: dict[str, MeasuredCosts]) -> None:
    """Write the costs of functions to a JSON file."""
    functions = {
        key: {"pieces": [list(piece) for piece in one.pieces], "ratios": list(one.ratios)}
        for key, one in costs.items()
        if one.pieces or one.ratios
    }
    write_text(path, json.dumps({"version": FILE_VERSION, "functions": functions}) + "\n")

r"""Measured costs of a function on this cluster, and the margin of a promise.

A piece of x units occupies a worker for

.. math:: t = SC + C_{ps}\,x

seconds (paper M, section 3; the cost of sending is included), fitted to measured pieces by least
squares of relative errors that give outliers less weight. A promise counts on the expected time of
every load multiplied by its `margin`.
"""

import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri, stdtrit

from dlsim.errors import InputError
from dlsim.files import StrPath, read_json, write_text
from dlsim.study.fingerprint import fingerprint
from dlsim.validate import Floats

#: Number of latest pieces per worker, and of latest loads, that are kept.
PIECES_KEPT_PER_WORKER, LOADS_KEPT = 30, 39
#: The widest law of ratios for which a promise holds while few loads are known: lognormal, with
#: this median and this standard deviation of its logarithm.
WIDEST_MEDIAN, WIDEST_SPREAD = 1.4, 0.8
#: The part of a promise's risk that is spent on the cap of the margin, from two known loads on.
CAP_RISK = 0.2
#: The cap of a margin is at least the largest ratio to this power.
CAP_POWER = 1.25
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
    """Fit start-up and seconds per unit, both at least 0, to times with outliers; sums are exact.

    >>> fit_times(np.array([2.0, 4.0]), np.array([1.0, 2.0]), has_start_up=False)
    Fit(start_up=0.0, per_unit=0.5)
    """
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
    """The latest measured pieces of a function, and real over expected times of its latest loads.

    `is_confirmed` is whether a second sample led to a refusal like the first, and no load was
    computed since.
    """

    pieces: deque[Measurement] = field(default_factory=deque)
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=LOADS_KEPT))
    is_confirmed: bool = False
    _fits: dict[tuple[bool, bool], Fit] = field(default_factory=dict, repr=False)

    def add_piece(self, measurement: Measurement, workers: int) -> None:
        """Add a measured piece, and drop the oldest beyond the limit for this number of workers."""
        self.pieces.append(measurement)
        self.forget_first(len(self.pieces) - PIECES_KEPT_PER_WORKER * workers)

    def forget_first(self, count: int) -> None:
        """Drop the first pieces."""
        for _ in range(count):
            self.pieces.popleft()
        self._fits.clear()

    def fit(self, has_start_up: bool = True, is_sending: bool = False) -> Fit:
        """Return the fitted time that pieces occupy a worker, or do so without computing."""
        if (has_start_up, is_sending) not in self._fits:
            units, occupied, computing = np.array(self.pieces, dtype=float).T
            seconds = np.maximum(occupied - computing, 0.0) if is_sending else occupied
            self._fits[has_start_up, is_sending] = fit_times(units, seconds, has_start_up)
        return self._fits[has_start_up, is_sending]

    def computing_per_unit(self) -> float:
        """Return the mean seconds of computing per unit, without sending and loading of code."""
        units, _, computing = np.array(self.pieces, dtype=float).sum(axis=0)
        return max(float(computing / units), MIN_SECONDS_PER_UNIT)

    def mean_seconds(self, sizes: Sequence[float], workers: int) -> float:
        """Return the mean seconds of simulated loads whose pieces idle workers pull in order."""
        units, occupied, _ = np.array(self.pieces, dtype=float).T
        fit = self.fit()
        fitted = fit.time(units)
        # ratios to fitted times, drawn so that every second of work is equally likely
        ratios = np.random.default_rng(0).choice(
            occupied / fitted, (SIMULATED_LOADS, len(sizes)), p=fitted / fitted.sum()
        )
        seconds = ratios * fit.time(np.array(sizes, dtype=float))
        loads, ends = np.arange(SIMULATED_LOADS), np.zeros((SIMULATED_LOADS, workers))
        for times in seconds.T:
            ends[loads, ends.argmin(axis=1)] += times
        return float(ends.max(axis=1).mean())


def margin(ratios: Sequence[float], quantile: float) -> float:
    r"""Return the factor on the expected time that the next load meets with this probability.

    From k >= q / (1 - q) known ratios on (19 for q = .95), the margin is the order statistic of
    place :math:`\lceil q (k + 1) \rceil`, exact for any law of exchangeable ratios (V. Vovk and
    others, Algorithmic Learning in a Random World, 2005). From k = 2 on, it is the upper end of
    Student's prediction interval for lognormal ratios, whose logarithms have mean m and standard
    deviation s (G. J. Hahn and W. Q. Meeker, Statistical Intervals, 1991, section 4.7), with a
    cap c, as a few ratios that vary much make the interval endless:

    .. math:: \min(\exp(m + t_{k-1} s \sqrt{1 + 1/k}), c).

    A fifth of the risk 1 - q is that of the widest law beyond the cap, four fifths that of the
    interval. No ratio or one shows no variance; then the margin is the quantile of the widest law.
    A ratio beyond that law raises the cap. No margin is less than 1.
    """
    count, risk = len(ratios), 1 - quantile
    place = math.ceil(quantile * (count + 1))
    if place <= count:
        return max(1.0, sorted(ratios)[place - 1])
    logs = np.log(ratios) if count else np.zeros(0)
    cap_risk = risk if count < 2 else CAP_RISK * risk
    cap = math.log(WIDEST_MEDIAN) + WIDEST_SPREAD * ndtri(1 - cap_risk)
    upper = max(cap, CAP_POWER * logs.max(initial=0.0))
    if count >= 2:
        deviation = logs.std(ddof=1) * math.sqrt(1 + 1 / count)
        student = stdtrit(count - 1, 1 - (1 - CAP_RISK) * risk)
        upper = min(upper, logs.mean() + student * deviation)
    return max(1.0, math.exp(upper))


def function_key(function: Callable[..., Any]) -> str:
    """Return the key of a function's costs: its name and a digest of its code."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    digest, _ = fingerprint(getattr(function, "__code__", None))
    return f"{kind.__module__}.{kind.__qualname__} {digest[:8]}"


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
            positive = np.append(pieces[:, :2], ratios)
            if not (np.isfinite(positive).all() and (positive > 0).all()):
                raise ValueError(f"{key}: a number is not positive and finite")
            if not (np.isfinite(pieces[:, 2]).all() and (pieces[:, 2] >= 0).all()):
                raise ValueError(f"{key}: a time of computing is negative or not finite")
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

r"""What sending to a worker and computing there cost, fitted to what was measured.

.. math:: t_{send} = ST + C_{ms}\,x, \qquad t_{compute} = SC + C_{ps}\,x

for x units (paper M, section 3), by least squares of relative errors, no cost being negative;
where a partition knows no set-up times, a unit costs what all measured units did on average.
A promise is not made of a mean: the `margin` is the quantile of measured over fitted times.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.given import Floats
from dlsim.realtime import Cluster
from dlsim.realtime.model import WITHOUT_SETUP

#: Most chunks and loads that are remembered: older ones say little of a cluster of today.
MOST_SAMPLES, MOST_LOADS = 2_000, 200
#: From so many loads on, their own times over what was expected say how wide the margin is.
ENOUGH_LOADS = 20
#: Seconds of a unit where measured times do not grow with the units: a model needs some.
_LEAST = 1e-15
#: How often a fit is weighed anew by itself.
_ROUNDS = 5
#: Resamples behind an interval, and the level at which workers are called unequal.
_RESAMPLES, _UNEQUAL = 400, 0.01


class Fit(NamedTuple):
    """A line through measured times."""

    setup: float
    unit: float

    def time(self, units: Floats | float) -> Floats | float:
        """Return the fitted time of so many units."""
        return self.setup + self.unit * units


def fitted(units: Floats, seconds: Floats, has_setup: bool = True) -> Fit:
    """Fit set-up and unit time with the least relative errors; neither is negative.

    >>> fitted(np.array([2.0, 4.0]), np.array([1.0, 2.0]), has_setup=False)
    Fit(setup=0.0, unit=0.5)
    """
    from scipy.optimize import nnls

    if not has_setup or len(np.unique(units)) == 1:
        return Fit(0.0, max(float(seconds.sum() / units.sum()), _LEAST))
    weight = 1 / np.maximum(seconds, 1e-9)
    for _ in range(_ROUNDS):  # relative to the fit, else noise pulls it down
        columns = np.column_stack([weight, units * weight])
        setup, unit = nnls(columns, seconds * weight)[0].round(15).tolist()
        weight = 1 / np.maximum(setup + unit * units, 1e-9)
    return Fit(setup, max(unit, _LEAST))


class Sample(NamedTuple):
    """One chunk as it was: times in seconds, as the head saw them."""

    worker: str
    units: float
    send: float
    compute: float


@dataclass(eq=False)
class Costs:
    """What is known of one function on one cluster: the latest chunks (`samples`) and loads.

    Of a load `ratios` has the real over the expected time from dispatch to completion.
    """

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_LOADS))
    _seen: int = 0
    _told: dict[Any, Any] = field(default_factory=dict, repr=False)

    def add(self, sample: Sample) -> None:
        """Remember a chunk; what is told of all is found anew for every twentieth part more."""
        self.samples.append(sample)
        self._seen += 1
        if self._seen >= 1.05 * self._told.get("seen", 0):
            self._told = {"seen": self._seen}

    def _once(self, key: Any, find: Callable[[], Any]) -> Any:
        if key not in self._told:
            self._told[key] = find()
        return self._told[key]

    def table(self) -> pd.DataFrame:
        """Return the samples with their fitted times."""
        table = pd.DataFrame(self.samples, columns=list(Sample._fields))
        for name, fit in zip(("send", "compute"), self.fits(), strict=True):
            table[f"{name}_fitted"] = fit.time(table["units"].to_numpy())
        return table

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        if not self.samples:
            raise InputError("nothing is measured of this function here; calibrate it first")
        units, send, compute = np.array([one[1:] for one in self.samples], dtype=float).T
        return units, send, compute

    def fits(self, has_setup: bool = True) -> tuple[Fit, Fit]:
        """Fit sending and computing."""

        def find() -> tuple[Fit, Fit]:
            units, send, compute = self._columns()
            return fitted(units, send, has_setup), fitted(units, compute, has_setup)

        return self._once(("fits", has_setup), find)

    def computing(self, units: float) -> float:
        """Return the fitted time of computing so many units."""
        return float(self.fits()[1].time(units))

    def worst(self) -> float:
        """Return the greatest measured over fitted time of computing."""
        units, _, compute = self._columns()
        return float(self._once("worst", lambda: (compute / self.fits()[1].time(units)).max()))

    def slowest(self) -> tuple[float, float]:
        """Return how much slower the slowest worker computes than the fit, and the p-value.

        1 unless a rank test (Kruskal and Wallis) of measured over fitted times finds the workers
        unequal.
        """
        return self._once("slowest", self._slowest)

    def _slowest(self) -> tuple[float, float]:
        units, _, compute = self._columns()
        ratio = pd.Series(compute / self.fits()[1].time(units))
        groups = [
            part.to_numpy() for _, part in ratio.groupby([one.worker for one in self.samples])
        ]
        if len(groups) < 2 or min(map(len, groups)) < 3 or ratio.nunique() == 1:
            return 1.0, 1.0
        from scipy.stats import kruskal

        p = float(kruskal(*groups).pvalue)
        return (max(1.0, *(float(np.median(part)) for part in groups)) if p < _UNEQUAL else 1.0), p

    def cluster(self, nodes: int, partition: str) -> Cluster:
        """Return the cluster that was measured, as slow as its slowest worker."""
        send, compute = self.fits(partition not in WITHOUT_SETUP)
        slow, _ = self.slowest()
        return Cluster(nodes, send.unit, compute.unit * slow, send.setup, compute.setup * slow)

    def margin(self, nodes: int, partition: str, quantile: float) -> float:
        """Return the factor under which a load stays with a probability, at least 1.

        Of the latest loads, once there are enough; before that of a chunk at the level that the
        latest of N chunks needs, as if they were independent.
        """
        key = "margin", nodes, partition, quantile, len(self.ratios)
        return float(self._once(key, lambda: self._margin(nodes, partition, quantile)))

    def _margin(self, nodes: int, partition: str, quantile: float) -> float:
        if len(self.ratios) >= ENOUGH_LOADS:
            return max(1.0, _quantile(np.array(self.ratios), quantile))
        units, send, compute = self._columns()
        fits = self.fits(partition not in WITHOUT_SETUP)
        expected = fits[0].time(units) + fits[1].time(units) * self.slowest()[0]
        return max(1.0, _quantile((send + compute) / expected, quantile ** (1 / nodes)))

    def summary(self) -> pd.DataFrame:
        """Return ST, Cms, SC, Cps, each with its 95 % interval, and what of its times is left."""
        units, *times = self._columns()
        source, rows = np.random.default_rng(np.random.SeedSequence(0)), []
        picks = source.integers(0, len(units), (_RESAMPLES, len(units)))
        names = (("ST", "Cms"), ("SC", "Cps"))
        for pair, seconds, fit in zip(names, times, self.fits(), strict=True):
            again = np.array([fitted(units[pick], seconds[pick]) for pick in picks])
            low, high = np.quantile(again, [0.025, 0.975], axis=0)
            spread = np.quantile(seconds / fit.time(units), [0.05, 0.5, 0.95])
            for k, name in enumerate(pair):
                rows.append((name, fit[k], low[k], high[k], *spread))
        columns = ["cost", "value", "low", "high", "ratio_5%", "ratio_50%", "ratio_95%"]
        return pd.DataFrame(rows, columns=columns).set_index("cost")


def _quantile(values: Floats, level: float) -> float:
    """Return the value that the next one does not exceed with a probability, the greatest known."""
    place = min(len(values), int(np.ceil(level * (len(values) + 1))))
    return float(np.sort(values)[place - 1])

"""What run times of some sizes tell of another size, and how surely.

After StarPU's performance models (C. Augonnet, S. Thibault, R. Namyst, "Automatic calibration
of performance models on heterogeneous multicore architectures", HPPC 2009): per kernel and
kind of device, run times are a + b size or a power of the size, whichever leaves the smaller
residuals; nothing is predicted from too few samples, and what turns out wrong is forgotten.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu.history import History, Record, Runs

#: Sizes that have to be known before another one is predicted, as of a line and its residual.
LEAST_SIZES = 3
#: Relative residual beyond which no law is believed; what any prediction is unsure by, at least.
BAD, NOISE = 0.25, 0.05
#: Half an interval, in residuals; an interval whose ends differ by more says nothing.
WIDTH, WIDEST = 2.0, 4.0
#: A prediction so wrong, so many times in a row, is forgotten with all it came from.
WRONG, MOST_WRONG = 0.5, 3


class Law(NamedTuple):
    """time = a + b size^power, with its relative residual; from sizes with a mean logarithm."""

    a: float
    b: float
    power: float
    residual: float
    sizes: int
    middle: float
    spread: float

    def time(self, size: float) -> float:
        """Return the expected time of a size."""
        return self.a + self.b * size**self.power

    def interval(self, size: float) -> tuple[float, float]:
        """Return what the time of a size is between; wide far from the sizes it came from."""
        away = (math.log(size) - self.middle) ** 2 / self.spread
        half = WIDTH * max(self.residual, NOISE / WIDTH) * math.sqrt(1 + 1 / self.sizes + away)
        return self.time(size) / (1 + half), self.time(size) * (1 + half)


def fit(sizes: Sequence[float], times: Sequence[float], weights: Sequence[float]) -> Law:
    """Fit a line (least relative squares, a and b not negative) and a power law; take the better.

    Needs `LEAST_SIZES` different sizes; weights are the numbers of runs.
    """
    s, t, w = (np.asarray(x, float) for x in (sizes, times, weights))
    logs = np.log(s)
    middle = float(np.average(logs, weights=w))
    spread = float(np.sum(w * (logs - middle) ** 2) / w.mean())
    laws = [(a, b, 1.0) for a, b in _lines(s, t, w)]
    power, level = np.polyfit(logs, np.log(t), 1, w=np.sqrt(w)).tolist()
    laws.append((0.0, math.exp(level), power))
    found = []
    for a, b, p in laws:
        errors = t / (a + b * s**p) - 1
        residual = math.sqrt(float(np.sum(w * errors**2) / w.mean()) / max(1, len(s) - 2))
        found.append(Law(a, b, p, residual, len(s), middle, spread))
    return min(found, key=lambda law: law.residual)


def fit_line(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """Return a and b > 0 of the line a + b size of least relative squares, a not negative."""
    return _lines(np.asarray(sizes, float), np.asarray(times, float), np.ones(len(sizes)))[0]


def _lines(s: Any, t: Any, w: Any) -> list[tuple[float, float]]:
    """Return the best line in relative error, and those through 0 and level if it falls or dips."""
    b, a = np.polyfit(s, t, 1, w=np.sqrt(w) / t).tolist()
    if a >= 0 and b > 0:
        return [(a, b)]
    through = float(np.sum(w * s / t) / np.sum(w * (s / t) ** 2))
    return [(0.0, through), (float(np.sum(w / t) / np.sum(w / t**2)), 0.0)]


def _split(app: str) -> tuple[str, float]:
    """Return name and size of an application as a history knows it; NaN for one without."""
    name, _, size = app.removesuffix("]").rpartition("[")
    with suppress(ValueError):
        if name and 0 < float(size) < math.inf:
            return name, float(size)
    return app, math.nan


class Sizes:
    """A history that knows, by the law of its kernel, sizes that were never measured."""

    def __init__(self, history: History, least: int = 1) -> None:
        self.history, self._least = history, least
        self._known: dict[tuple[str, str], dict[float, str]] = {}
        self._laws: dict[tuple[str, str], Law | None] = {}
        self._wrong: dict[tuple[str, str], list[str]] = {}
        for (app, cls), record in history.records().items():
            if record.count:
                self._note(app, cls)

    def _note(self, app: str, cls: str) -> None:
        name, size = _split(app)
        if size == size:
            self._known.setdefault((name, cls), {})[size] = app
            self._laws.pop((name, cls), None)

    def measured(self, app: str, cls: str, seconds: float) -> None:
        """Take notice of a run that entered the history.

        One that is far from its law is set aside; `MOST_WRONG` in a row are the new truth.
        """
        name, size = _split(app)
        law = self.law(name, cls) if size == size else None
        wrong = self._wrong.setdefault((name, cls), [])
        if law is not None and abs(seconds - law.time(size)) > WRONG * law.time(size):
            wrong.append(app)
            if len(wrong) < MOST_WRONG:
                return
            self._known[name, cls] = {_split(one)[1]: one for one in wrong}
        wrong.clear()
        self._note(app, cls)

    def law(self, name: str, cls: str) -> Law | None:
        """Return the law of a kernel on a class; None from too few sizes, or where none fits."""
        if (name, cls) not in self._laws:
            known = self._known.get((name, cls), {})
            records = [self.history.record(app, cls) for app in known.values()]
            law = None
            if len(known) >= LEAST_SIZES:
                law = fit(list(known), [r.mean for r in records], [r.count for r in records])
            self._laws[name, cls] = law if law and law.residual <= BAD else None
        return self._laws[name, cls]

    def interval(self, app: str, cls: str) -> tuple[float, float, float] | None:
        """Return the expected time of an application that was never measured, and its interval.

        By the law of its kernel; where that is bad, by the sizes of the same power of two.
        """
        name, size = _split(app)
        known = self._known.get((name, cls), {})
        if size != size or len(known) < LEAST_SIZES:
            return None
        if law := self.law(name, cls):
            low, high = law.interval(size)
            return (law.time(size), low, high) if 0 < high < WIDEST * low else None
        alike = [self.history.record(known[other], cls).mean for other in known
                 if math.frexp(other)[1] == math.frexp(size)[1]]  # fmt: skip
        return (math.fsum(alike) / len(alike), min(alike), max(alike)) if alike else None

    def record(self, app: str, cls: str) -> Record:
        """Return what is known of an application on a class.

        A size that was never measured there is expected to take what its law says. Rule 2
        tries it nevertheless where the interval meets that of the other class.
        """
        own = self.history.record(app, cls)
        if own.count >= self._least or not (here := self.interval(app, cls)):
            return own
        other = "cpu" if cls == "gpu" else "gpu"
        exact = self.history.record(app, other)
        there = (exact.mean,) * 3 if exact.count else self.interval(app, other)
        is_told = there and (here[2] < there[1] or there[2] < here[1])
        assigned = max(self._least, own.assigned) if is_told else own.assigned
        time, deviation = here[0], (here[2] - here[1]) / (2 * WIDTH)
        return Record(assigned, 0, 1, time, deviation**2, time, Runs([time]))

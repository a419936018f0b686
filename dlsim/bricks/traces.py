"""Throughput over time: self-similar traces, drawn or read from files.

A trace is a row of values; value i holds from i * step to (i + 1) * step seconds, and
the last value is held after the end, so that a run may outlast its traces. Traces are
drawn as fractional Gaussian noise around a mean, by one of two methods:

- ``"davies-harte"``: exact. A circulant matrix that holds the wanted covariance is
  diagonal in Fourier space; its square root colours white noise.
- ``"paxson"``: the approximate synthesis the paper used ([29]), kept for fidelity. It
  omits frequency 0, so that every trace has its mean fixed, lacks about
  :math:`n^{2H-2}` of the variance, and is circular: its end fits its beginning.

References
----------
A. Takefusa, S. Matsuoka, H. Casanova, F. Berman, "A Study of Deadline Scheduling for
Client-Server Systems on the Computational Grid", HPDC 2001 (paper B), sections 2.1, 4.1.
V. Paxson, "Fast, Approximate Synthesis of Fractional Gaussian Noise for Generating
Self-Similar Network Traffic", Computer Communication Review 27(5), 1997.
R. B. Davies, D. S. Harte, "Tests for Hurst effect", Biometrika 74(1), 1987.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len
from scipy.optimize import minimize_scalar
from scipy.special import gamma, zeta

from dlsim import files, given
from dlsim.bricks.model import SECONDS
from dlsim.errors import InputError
from dlsim.given import Floats, Seed, column, floats, generator, number, option, whole

#: Most values of all traces together: 4 GiB.
MOST_VALUES = 2**29
#: Terms of Paxson's approximation on either side of frequency 0.
_TERMS = 3
#: Columns of a trace file; time in seconds, throughput in Mbit/s (or the unit of the user).
COLUMNS = {"link": "text", "time": "number", "throughput": "nonnegative"}
#: Arrays of an NPZ file and their types: real numbers and texts.
ARRAYS = {"values": "fiu", "step": "fiu", "names": "U"}
#: Most links of an NPZ file: a name takes far more memory than it declares.
MOST_LINKS = 2**20
#: How far from regular, in steps, time stamps may be.
_JITTER = 1e-6


class Drawn(NamedTuple):
    """Traces, time along the last axis, and the share of their values that was below 0."""

    values: Floats
    clipped: float


def autocovariance(H: float, lags: ArrayLike) -> Floats:
    r"""Covariance of fractional Gaussian noise of variance 1, in steps of distance k.

    .. math:: \gamma(k) = \tfrac12 \left(|k+1|^{2H} - 2|k|^{2H} + |k-1|^{2H}\right)

    >>> autocovariance(0.5, [0, 1, 2]).tolist()
    [1.0, 0.0, 0.0]
    """
    k, h = np.abs(np.asarray(lags, dtype=float)), 2 * H
    return np.asarray(0.5 * ((k + 1) ** h - 2 * k**h + np.abs(k - 1) ** h))


def _scale(frequency: Floats, H: float) -> Floats:
    # 1 - cos(x) = 2 sin(x / 2)^2 keeps its digits near 0
    return np.asarray(4 * math.sin(math.pi * H) * gamma(2 * H + 1) * np.sin(frequency / 2) ** 2)


def spectrum(frequency: ArrayLike, H: float) -> Floats:
    r"""Spectral density of fractional Gaussian noise of variance 1 at frequencies in (0, pi].

    .. math:: f(\lambda) = 2 \sin(\pi H)\, \Gamma(2H+1)\, (1 - \cos\lambda)
              \sum_{j=-\infty}^{\infty} |2\pi j + \lambda|^{-2H-1}

    so that its mean over :math:`(-\pi, \pi)` is 1. The sum is two Hurwitz zeta functions.
    """
    x, s = np.asarray(frequency, dtype=float), 2 * H + 1
    turn = x / (2 * math.pi)
    series = (zeta(s, turn) + zeta(s, 1 - turn)) / (2 * math.pi) ** s
    return _scale(x, H) * series


def paxson_spectrum(frequency: ArrayLike, H: float) -> Floats:
    r"""Paxson's approximation of `spectrum`, corrected for its bias (fitted for H from 0.5 on).

    With :math:`a_j = 2\pi j + \lambda`, :math:`b_j = 2\pi j - \lambda`, d = -2H - 1:

    .. math:: \tilde B_3 = \sum_{j=1}^{3} (a_j^d + b_j^d)
              + \frac{a_3^{-2H} + b_3^{-2H} + a_4^{-2H} + b_4^{-2H}}{8 \pi H},
    .. math:: \tilde B_3'' = (1.0002 - 0.000134\,\lambda)\,(\tilde B_3 - 2^{-7.65 H - 7.4})

    in place of the sum over j other than 0.
    """
    x, d = np.asarray(frequency, dtype=float), -2 * H - 1
    turns = 2 * math.pi * np.arange(1, _TERMS + 2).reshape(-1, *[1] * x.ndim)
    a, b = turns + x, turns - x
    total = (a[:_TERMS] ** d + b[:_TERMS] ** d).sum(axis=0)
    last = slice(_TERMS - 1, _TERMS + 1)
    total = total + (a[last] ** (d + 1) + b[last] ** (d + 1)).sum(axis=0) / (8 * math.pi * H)
    total = (1.0002 - 0.000134 * x) * (total - 2 ** (-7.65 * H - 7.4))
    return _scale(x, H) * (x**d + total)


def circulant_roots(n: int, H: float) -> Floats:
    r"""Square roots of the m + 1 eigenvalues (frequencies 0 to pi) of the covariance's circulant.

    The first row of the circulant is :math:`\gamma(0), \dots, \gamma(m), \dots,
    \gamma(1)` with m of at least n. All eigenvalues are at least 0 for every H.
    """
    half = autocovariance(H, np.arange(next_fast_len(n, real=True) + 1))
    eigenvalues = np.fft.hfft(half, 2 * (len(half) - 1))[: len(half)]
    return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0)))


def colour(white: Floats, roots: Floats) -> Floats:
    """Give rows of 2 m white noise the covariance of `circulant_roots`, any m + 1 in a row."""
    return np.fft.irfft(np.fft.rfft(white) * roots, white.shape[-1])


def _davies_harte(n: int, H: float) -> Callable[[Generator], Floats]:
    roots = circulant_roots(n, H)
    return lambda stream: colour(stream.standard_normal(2 * (len(roots) - 1)), roots)[:n]


def _paxson(n: int, H: float) -> Callable[[Generator], Floats]:
    half = (n + 1) // 2
    density = paxson_spectrum(np.arange(1, half + 1) * math.pi / half, H)

    def synthesis(stream: Generator) -> Floats:
        size = np.sqrt(density * stream.standard_exponential(half))
        phase = 2 * math.pi * stream.random(half)
        phase[-1] = 0.0
        waves = np.concatenate([[0.0], size * np.exp(1j * phase)])
        return np.fft.irfft(waves, 2 * half)[:n] * math.sqrt(2 * half)

    return synthesis


#: The methods: length and H to a function from a generator to one noise.
METHODS = {"davies-harte": _davies_harte, "paxson": _paxson}


def _noises(n: int, H: float, seed: Seed, count: int, method: str) -> Iterator[Floats]:
    H = float(number("H", H, 0, 1, above=True, below=True, rule="above 0 and below 1"))
    option("method", method, METHODS)
    what, remedy = f"{count} traces of {n} steps", "choose a longer trace step or a shorter run"
    if not n * count <= MOST_VALUES:
        raise InputError(f"{what} are more than {MOST_VALUES} values; {remedy}")
    given.need_memory(what, 8 * n * count, remedy)
    make = METHODS[method](n, H)
    return (make(generator(seed, number)) for number in range(count))


def noise(
    n: int, H: float = 0.8, seed: Seed = 0, count: int = 1, method: str = "davies-harte"
) -> Floats:
    """Draw fractional Gaussian noise of mean 0 and variance 1.

    Parameters
    ----------
    n, count : int
        Length of a row; number of independent rows.
    H : float
        Hurst parameter in (0, 1); 0.5 is white noise.
    seed : int or numpy.random.SeedSequence
        Each row has a seed of its own: more rows leave the former ones as they are.
    method : {"davies-harte", "paxson"}
        Module docstring. With ``"paxson"`` an odd `n` is the beginning of n + 1 values,
        and its sample mean is 0 only up to the value left out.
    """
    n, count = whole("steps", n, 1, MOST_VALUES), whole("count", count, 0)
    return np.array([*_noises(n, H, seed, count, method)]).reshape(count, n)


def draw(
    mean: ArrayLike, steps: int, seed: Seed = 0, *, H: float = 0.8, std: float = 0.1,
    method: str = "davies-harte",
) -> Drawn:  # fmt: skip
    """Draw self-similar traces around their means.

    Negative values are raised to 0. A last value that was raised becomes the last one
    of its trace above 0 (or the mean, where there is none): it is held after the end
    of the trace, where a 0 would stop a transfer for ever.

    Parameters
    ----------
    mean : array_like of float
        Average throughput of each trace, above 0.
    steps : int
        Values per trace.
    seed, H, method
        As in `noise`; the paper gives no H.
    std : float
        Standard deviation over the mean (paper B, section 4.1: 10 %).

    Examples
    --------
    >>> values, clipped = draw([[50.0, 500.0]], steps=1000, seed=1)
    >>> values.shape, clipped
    ((1, 2, 1000), 0.0)
    """
    means = column("mean throughput", mean, above=True)
    std = float(number("std", std, rule="a finite share of the mean of at least 0"))
    steps = whole("steps", steps, 1, MOST_VALUES)
    rows = _noises(steps, H, seed, means.size, method)
    values, clipped = np.empty((means.size, steps)), 0
    for row, average in zip(values, means.flat, strict=True):
        row[:] = average + average * std * next(rows) if std else average
        below = row < 0
        clipped += int(below.sum())
        row[below] = 0.0
        if not row[-1] > 0:
            positive = row[row > 0]
            row[-1] = positive[-1] if positive.size else average
    share = clipped / values.size if values.size else 0.0
    return Drawn(values.reshape(*means.shape, steps), share)


def whittle(values: ArrayLike) -> float:
    r"""Estimate the Hurst parameter of a trace of at least 16 values that vary.

    The H that minimises, over the Fourier frequencies between 0 and pi,

    .. math:: \log \overline{I / f_H} + \overline{\log f_H}

    with the periodogram I and the density f of `spectrum`. Mean and variance do not
    matter. Its standard error is about :math:`0.6 / \sqrt{n}` near H = 0.8.

    Sources: P. Whittle, "Estimation and information in stationary time series", 1953; J. Beran,
    "Statistics for Long-Memory Processes", 1994, section 6.1.
    """
    x = floats(values)
    if x.ndim != 1 or len(x) < 16 or not np.isfinite(x).all() or np.ptp(x) == 0:
        rule = "one row of at least 16 finite values that vary: leave out gaps, or take more of it"
        some = f"{np.isfinite(x).sum()} finite, {len(np.unique(x))} different"
        raise InputError(f"whittle takes {rule}; got shape {x.shape}, {some}")
    power = np.abs(np.fft.rfft(x - x.mean())[1 : (len(x) + 1) // 2]) ** 2
    frequency = 2 * math.pi * np.arange(1, len(power) + 1) / len(x)

    def objective(H: float) -> float:
        density = spectrum(frequency, H)
        return math.log(np.mean(power / density)) + float(np.mean(np.log(density)))

    return float(minimize_scalar(objective, bounds=(0.01, 0.99), method="bounded").x)


def numbers(name: str, values: Any) -> Floats:
    """Return numbers of at least 0 as an array, the same one where it is one of floats."""
    found = values if isinstance(values, np.ndarray) and values.dtype == float else floats(values)
    if not ((found >= 0) & given.in_range(found)).all():  # `column` names the first
        column(name, values)
    return found


def curves(name: str, values: Any, dimensions: tuple[int, ...]) -> Floats:
    """Return numbers over time, which runs along the last axis."""
    found = np.ascontiguousarray(numbers(name, values))
    if found.ndim not in dimensions or found.shape[-1] == 0:
        shape = " or ".join(f"{n} dimensions" for n in dimensions)
        raise InputError(f"{name} must be an array of {shape} with at least one step")
    return found


def refuse_end(rates: Floats) -> None:
    """Refuse links over which a transfer might never end, shape (links, steps)."""
    stuck = rates[:, -1] == 0
    if stuck.any():
        raise InputError(
            f"traces: link {int(np.argmax(stuck))} ends with throughput zero, which is held "
            "for ever; give its last step a positive value"
        )


@dataclass(frozen=True, eq=False)
class Traces:
    """Traces of named links, all with one step."""

    values: Floats
    step: float
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no table of traces."""
        number("step", self.step, **SECONDS)
        values = vars(self)["values"] = curves("traces", self.values, (2,))
        refuse_end(values)
        if len(self.names) != len(values):
            got = f"{len(self.names)} names, values of shape {values.shape}"
            raise InputError(f"traces need one name per row: {got}")
        if len(set(self.names)) != len(self.names):
            raise InputError("traces need a different name for every row")


def write_traces(path: files.StrPath, traces: Traces) -> None:
    """Write traces to a file, whole or not at all; `read_traces` reads the same back."""
    given.instance("traces", traces, Traces)
    suffix, (links, steps) = Path(path).suffix.lower(), traces.values.shape
    if suffix == ".csv":
        names = np.repeat(np.array(traces.names, dtype=object), steps)
        times = np.tile(np.arange(steps) * float(traces.step), links)
        columns = dict(zip(COLUMNS, (names, times, traces.values.ravel()), strict=True))
        files.write_csv(path, pd.DataFrame(columns))
    elif suffix == ".npz":
        stream, step = BytesIO(), np.float64(traces.step)
        np.savez_compressed(stream, values=traces.values, step=step, names=np.array(traces.names))
        files.write_bytes(path, stream.getvalue())
    else:
        what = f"a trace file ends in .csv or .npz, not {suffix!r}; rename it"
        raise InputError(f"{os.fspath(path)}: {what}")


def _read_npz(path: files.StrPath, limit: int) -> Traces:
    arrays = files.read_arrays(path, ARRAYS, limit)
    values, step, names = (arrays[name] for name in ARRAYS)
    if step.size != 1 or values.ndim != 2 or names.shape != values.shape[:1] or not values.size:
        raise InputError(
            f"{os.fspath(path)}: values must be a table of links and steps, step one number and "
            f"names one text per link; got shapes {values.shape}, {step.shape}, {names.shape}"
        )
    if values.size * 8 > limit or names.size > MOST_LINKS:
        raise InputError(
            f"{os.fspath(path)}: {names.size} links of {values.shape[1]} steps, more than "
            f"{MOST_LINKS} links or {limit} bytes; split it or raise limit"
        )
    found = values, float(step.reshape(())), tuple(map(str, names))
    return files.placed(os.fspath(path), Traces, *found)


def _refuse(
    path: files.StrPath, line: Any, link: object, what: str, field: str = "time"
) -> InputError:
    return InputError(f"{os.fspath(path)}, line {line}, link {link}, field {field}: {what}")


#: When a link was measured, what was measured, and on which lines it is told.
_Stamps = tuple[Floats, Floats, Any]


def _stamps(path: files.StrPath, table: pd.DataFrame, resample: str) -> dict[str, _Stamps]:
    """Return rising stamps from 0 on, where all links have begun, and values, of every link."""
    if table.empty:
        raise InputError(f"{os.fspath(path)}: holds no value; give a line per link and time")
    found = dict[str, _Stamps]()
    for link, rows in table.groupby("link", sort=False):
        time, lines = rows["time"].to_numpy(), rows.index.to_numpy()
        for at in np.flatnonzero(np.diff(time) <= 0).tolist():
            what = f"{time[at + 1]} comes after {time[at]}; sort the lines by link, time, each once"
            raise _refuse(path, lines[at + 1], link, what)
        if rows["throughput"].iloc[-1] == 0:
            what = "the last value is held after the end, so it must be above 0, got 0; cut it off"
            raise _refuse(path, lines[-1], link, what, "throughput")
        found[str(link)] = time, rows["throughput"].to_numpy(), lines
    start, last = max((time[0], link) for link, (time, _, _) in found.items())
    for link, (time, values, lines) in found.items():
        if time[-1] < start:
            what = f"ends at {time[-1]} s, before link {last} begins at {start}; leave one out"
            raise _refuse(path, lines[-1], link, what)
        first = int(np.searchsorted(time, start, "right")) - 1
        value = np.interp(start, time, values) if resample == "linear" else values[first]
        time = np.concatenate([[start], time[first + 1 :]]) - start
        values = np.concatenate([[value], values[first + 1 :]])
        found[link] = time, values, lines[first:]
    return found


def _common_step(path: files.StrPath, stamps: dict[str, _Stamps]) -> float:
    """Return the step of stamps that are regular and the same for every link."""
    steps = {len(time) for time, _, _ in stamps.values()}
    if max(steps) == 1:
        raise InputError(f"{os.fspath(path)}: one time stamp tells no step; give read_traces one")
    first, _, _ = next(iter(stamps.values()))
    step = float(first[1]) if len(first) > 1 else math.nan
    for link, (time, _, lines) in stamps.items():
        regular = np.abs(time - step * np.arange(len(time))) <= _JITTER * step
        if len(steps) > 1 or not regular.all():
            what = "stamps are not the same regular ones for every link"
            at = lines[int(np.argmin(regular))]
            raise _refuse(path, at, link, f"{what}; give read_traces a step to average over")
    return step


def _averaged(time: Floats, values: Floats, step: float, steps: int, resample: str) -> Floats:
    """Average a curve over each step, so that no Mbit is lost."""
    edges = step * np.arange(steps + 1)
    if resample == "linear":
        reach = np.union1d(edges, time)
        level = np.interp(reach, time, values)
        level = (level[1:] + level[:-1]) / 2
    else:
        reach, level = np.append(time, max(edges[-1], time[-1])), values
    moved = np.concatenate([[0.0], np.cumsum(level * np.diff(reach))])
    averages = np.diff(np.interp(edges, reach, moved)) / step
    averages[edges[:-1] >= time[-1]] = values[-1]
    return np.asarray(averages)


def read_traces(
    path: files.StrPath, step: float | None = None, limit: int | None = None,
    resample: str = "hold",
) -> Traces:  # fmt: skip
    """Read traces from a file, links in the order of their first lines.

    NPZ as `write_traces` leaves it, or CSV (plain or gzip) with the columns link, time in
    seconds and throughput; a value holds until the next time stamp of its link, the last one
    for ever. With `resample` "linear" (default "hold") a value is what was measured at its
    stamp alone, and throughput a straight line between two. Rows of one link are in the order
    of time. Time 0 is when the last link begins; what the others have before is left out. With
    a `step` a CSV file is averaged over steps of so many seconds, so that no data volume is lost;
    else its stamps from time 0 on must be regular and the same for every link. `limit` is the
    most bytes, after decompression and as floats: 256 MiB by default.
    """
    option("resample", resample, ("hold", "linear"))
    with files.opened(path) as stream:
        packed = stream.read(2) == b"PK"
    if packed:
        return _read_npz(path, limit or files.LIMIT)
    table = files.read_csv(path, COLUMNS, limit=limit or files.LIMIT, numbered=True)
    stamps = _stamps(path, table, resample)
    rows = [values for _, values, _ in stamps.values()]
    if step is None:
        step = _common_step(path, stamps)
    else:
        step = float(number("step", step, **SECONDS))
        steps = math.ceil(max(time[-1] for time, _, _ in stamps.values()) / step) + 1
        if steps * len(stamps) > MOST_VALUES:
            raise InputError(f"step {step} s makes {steps} steps a link; choose a longer one")
        rows = [_averaged(*one[:2], step, steps, resample) for one in stamps.values()]
    return files.placed(os.fspath(path), Traces, np.array(rows), step, tuple(stamps))

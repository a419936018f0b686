"""Throughput over time: random self-similar traces, or traces from a table of measured values.

A trace is a row of values; value i holds from i * step to (i + 1) * step seconds, and
the last value holds after the end, so that a run may last longer than its traces. Traces are
drawn as fractional Gaussian noise around a mean, by one of two methods:

- ``"davies-harte"``: exact. A circulant matrix that contains the wanted covariance is
  diagonal in Fourier space; multiplication by its square root gives white noise this covariance.
- ``"paxson"``: the approximate synthesis that the paper used ([29]). It omits frequency 0, so
  that every trace has exactly the given mean, lacks about :math:`n^{2H-2}` of the variance, and
  is circular: it continues from its end to its beginning.

References
----------
A. Takefusa, S. Matsuoka, H. Casanova, F. Berman, "A Study of Deadline Scheduling for
Client-Server Systems on the Computational Grid", HPDC 2001 (paper B), sections 2.1, 4.1.
V. Paxson, "Fast, Approximate Synthesis of Fractional Gaussian Noise for Generating
Self-Similar Network Traffic", Computer Communication Review 27(5), 1997.
R. B. Davies, D. S. Harte, "Tests for Hurst effect", Biometrika 74(1), 1987.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len
from scipy.special import gamma

from dlsim import validate
from dlsim.errors import InputError
from dlsim.validate import Floats, Seed, column, number, one_of, random_generator, to_floats, whole

#: Most values of all traces together (4 GiB).
MOST_VALUES = 2**29
#: Terms of Paxson's approximation on either side of frequency 0.
_TERMS = 3
#: Largest relative difference of two steps between the times of a table.
TIME_JITTER = 1e-6


def autocovariance(H: float, lags: ArrayLike) -> Floats:
    r"""Return the covariance of fractional Gaussian noise of variance 1 at lags k, in steps.

    .. math:: \gamma(k) = \tfrac12 \left(|k+1|^{2H} - 2|k|^{2H} + |k-1|^{2H}\right)

    >>> autocovariance(0.5, [0, 1, 2]).tolist()
    [1.0, 0.0, 0.0]
    """
    k, h = np.abs(np.asarray(lags, dtype=float)), 2 * H
    return np.asarray(0.5 * ((k + 1) ** h - 2 * k**h + np.abs(k - 1) ** h))


def paxson_spectrum(frequency: ArrayLike, H: float) -> Floats:
    r"""Return Paxson's approximation of the spectral density on (0, pi], fitted for H >= 0.5.

    The density of fractional Gaussian noise of variance 1 is

    .. math:: f(\lambda) = 2 \sin(\pi H)\, \Gamma(2H+1)\, (1 - \cos\lambda)
              \sum_{j=-\infty}^{\infty} |2\pi j + \lambda|^{-2H-1}.

    With :math:`a_j = 2\pi j + \lambda`, :math:`b_j = 2\pi j - \lambda`, d = -2H - 1, the terms

    .. math:: \tilde B_3 = \sum_{j=1}^{3} (a_j^d + b_j^d)
              + \frac{a_3^{-2H} + b_3^{-2H} + a_4^{-2H} + b_4^{-2H}}{8 \pi H},
    .. math:: \tilde B_3'' = (1.0002 - 0.000134\,\lambda)\,(\tilde B_3 - 2^{-7.65 H - 7.4})

    replace the sum over all j except 0.
    """
    x, d = np.asarray(frequency, dtype=float), -2 * H - 1
    turns = 2 * math.pi * np.arange(1, _TERMS + 2).reshape(-1, *[1] * x.ndim)
    a, b = turns + x, turns - x
    total = (a[:_TERMS] ** d + b[:_TERMS] ** d).sum(axis=0)
    last = slice(_TERMS - 1, _TERMS + 1)
    total = total + (a[last] ** (d + 1) + b[last] ** (d + 1)).sum(axis=0) / (8 * math.pi * H)
    total = (1.0002 - 0.000134 * x) * (total - 2 ** (-7.65 * H - 7.4))
    # 2 sin(x / 2)^2 = 1 - cos(x) without loss of digits near 0
    scale = 4 * math.sin(math.pi * H) * gamma(2 * H + 1) * np.sin(x / 2) ** 2
    return np.asarray(scale * (x**d + total))


def circulant_roots(n: int, H: float) -> Floats:
    r"""Return the square roots of the m + 1 eigenvalues (frequencies 0 to pi) of the circulant.

    The first row of the circulant is :math:`\gamma(0), \dots, \gamma(m), \dots,
    \gamma(1)` with m >= n. No eigenvalue is negative, for any H.
    """
    half = autocovariance(H, np.arange(next_fast_len(n, real=True) + 1))
    eigenvalues = np.fft.hfft(half, 2 * (len(half) - 1))[: len(half)]
    return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0)))


def colour_noise(white: Floats, roots: Floats) -> Floats:
    """Give rows of white noise, of length 2 m, the covariance of `circulant_roots`."""
    return np.fft.irfft(np.fft.rfft(white) * roots, white.shape[-1])


def _davies_harte(n: int, H: float) -> Callable[[Generator], Floats]:
    roots = circulant_roots(n, H)
    return lambda stream: colour_noise(stream.standard_normal(2 * (len(roots) - 1)), roots)[:n]


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


#: Methods by name: a function of length and H that returns a function from a generator to a row.
NOISE_METHODS = {"davies-harte": _davies_harte, "paxson": _paxson}


def _noise_rows(n: int, H: float, seed: Seed, count: int, method: str) -> Iterator[Floats]:
    """Yield rows of fractional Gaussian noise of mean 0 and variance 1, each of its own seed."""
    H = float(number("H", H, 0, 1, above=True, below=True, rule="above 0 and below 1"))
    one_of("method", method, NOISE_METHODS)
    what, remedy = f"{count} traces of {n} steps", "choose a longer trace step or a shorter run"
    if not n * count <= MOST_VALUES:
        raise InputError(f"{what} are more than {MOST_VALUES} values; {remedy}")
    validate.require_memory(what, 8 * n * count, remedy)
    make = NOISE_METHODS[method](n, H)
    return (make(random_generator(seed, number)) for number in range(count))


def random_traces(
    mean: ArrayLike,
    steps: int,
    seed: Seed = 0,
    *,
    H: float = 0.8,
    std: float = 0.1,
    method: str = "davies-harte",
) -> Floats:
    """Draw self-similar traces around their means, with time along the last axis.

    Negative values are raised to 0. If the last value was raised, the last positive value of the
    trace replaces it (or the mean, if there is none): the last value holds after the end of the
    trace, and with 0 a transfer would never end.

    Parameters
    ----------
    mean : array_like of float
        Average throughput of each trace, above 0.
    steps : int
        Values per trace.
    seed : int or numpy.random.SeedSequence
        Each trace has a seed of its own, so that it does not depend on the number of traces.
    H : float
        Hurst parameter in (0, 1); 0.5 is white noise. The paper gives none.
    std : float
        Standard deviation over the mean (paper B, section 4.1: 10 %).
    method : {"davies-harte", "paxson"}
        See the docstring of the module. With ``"paxson"`` and an odd number of steps, one value
        more is drawn and left out; the sample mean is then not exactly 0.

    Examples
    --------
    >>> random_traces([[50.0, 500.0]], steps=1000, seed=1).shape
    (1, 2, 1000)
    """
    means = column("mean throughput", mean, above=True)
    std = float(number("std", std, rule="a finite share of the mean of at least 0"))
    steps = whole("steps", steps, 1, MOST_VALUES)
    rows = _noise_rows(steps, H, seed, means.size, method)
    values = np.empty((means.size, steps))
    for row, average in zip(values, means.flat, strict=True):
        row[:] = average + average * std * next(rows) if std else average
        row[row < 0] = 0.0
        if not row[-1] > 0:
            positive = row[row > 0]
            row[-1] = positive[-1] if positive.size else average
    return values.reshape(*means.shape, steps)


def nonnegative_numbers(name: str, values: Any) -> Floats:
    """Return numbers of at least 0 as an array; an array of floats is not copied."""
    found = (
        values if isinstance(values, np.ndarray) and values.dtype == float else to_floats(values)
    )
    if not ((found >= 0) & validate.in_range(found)).all():  # `column` names the first bad value
        column(name, values)
    return found


def trace_array(name: str, values: Any, dimensions: tuple[int, ...]) -> Floats:
    """Return traces as an array with time along the last axis."""
    found = np.ascontiguousarray(nonnegative_numbers(name, values))
    if found.ndim not in dimensions or found.shape[-1] == 0:
        shape = " or ".join(f"{n} dimensions" for n in dimensions)
        raise InputError(f"{name} must be an array of {shape} with at least one step")
    return found


def refuse_dead_links(rates: Floats) -> None:
    """Raise InputError if a link ends with throughput 0: a transfer might never end."""
    stuck = rates[:, -1] == 0
    if stuck.any():
        raise InputError(
            f"traces: link {int(np.argmax(stuck))} ends with throughput zero, which is held "
            "for ever; give its last step a positive value"
        )


def from_frame(frame: pd.DataFrame) -> tuple[Floats, float]:
    """Return the values, shape (links, steps), and the step of traces in a table.

    Parameters
    ----------
    frame : DataFrame
        One column per link; the index holds the times of the values in seconds: 0, one step,
        two steps, ...

    Raises
    ------
    InputError
        If a value is not a number of at least 0, or the times are not 0, one step, two steps, ...

    Examples
    --------
    >>> frame = pd.DataFrame({"up": [50.0, 60.0], "down": [70.0, 80.0]}, index=[0, 10])
    >>> values, step = from_frame(frame)
    >>> values.tolist(), step
    ([[50.0, 60.0], [70.0, 80.0]], 10.0)
    """
    validate.instance("traces", frame, pd.DataFrame)
    times = column("times of traces", frame.index)
    if len(times) < 2:
        raise InputError(f"traces must have two times or more, got {len(times)}")
    step = float(times[1] - times[0])
    is_regular = step > 0 and (np.abs(np.diff(times) - step) <= TIME_JITTER * step).all()
    if times[0] != 0 or not is_regular:
        rule = "times of traces must be 0, one step, two steps, ..."
        raise InputError(f"{rule}; got {times[:5].tolist()}; average over steps first")
    values = trace_array("traces", frame.to_numpy().T, (2,))
    refuse_dead_links(values)
    return values, step

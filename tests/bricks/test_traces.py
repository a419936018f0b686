"""Self-similar traces: exact covariance and spectrum; tables of measured ones."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence
from scipy.integrate import quad
from scipy.linalg import toeplitz
from scipy.special import gamma, zeta

from dlsim.bricks import traces
from tests.helpers.refusals import refuses_each

HURST = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)

# ---------------------------------------------------------------- the law


@pytest.mark.parametrize("H", HURST)
def test_sums_of_the_noise_are_self_similar(H):
    # Var(X_1 + ... + X_n) = n^2H defines fractional Gaussian noise
    for n in (1, 2, 7, 40, 300):
        matrix = toeplitz(traces.autocovariance(H, np.arange(n)))
        assert matrix.sum() == pytest.approx(n ** (2 * H), rel=1e-9)


def spectrum(frequency, H):
    """The spectral density of fractional Gaussian noise, by two Hurwitz zeta functions."""
    turn = frequency / (2 * math.pi)
    series = (zeta(2 * H + 1, turn) + zeta(2 * H + 1, 1 - turn)) / (2 * math.pi) ** (2 * H + 1)
    return 4 * math.sin(math.pi * H) * gamma(2 * H + 1) * np.sin(frequency / 2) ** 2 * series


@pytest.mark.parametrize("H", HURST)
def test_spectrum_is_the_transform_of_the_covariance(H):
    for lag in range(4):
        # lambda = u^8 takes the pole at 0 away
        value, error = quad(
            lambda u, lag=lag: 8 * u**7 * math.cos(lag * u**8) * float(spectrum(u**8, H)),
            0,
            math.pi**0.125,
            epsabs=1e-9,
            limit=200,
        )
        assert error < 1e-6
        assert value / math.pi == pytest.approx(float(traces.autocovariance(H, lag)), abs=1e-6)


def test_paxsons_spectrum_errs_by_less_than_a_thousandth():
    frequency = np.linspace(0.001, math.pi, 500)
    for H in (0.5, 0.6, 0.7, 0.8, 0.9, 0.99):
        ratio = traces.paxson_spectrum(frequency, H) / spectrum(frequency, H)
        assert np.abs(ratio - 1).max() < 1e-3


@pytest.mark.parametrize("H", HURST)
def test_davies_harte_is_exact(H):
    for n in (1, 2, 3, 16, 61):
        roots = traces.circulant_roots(n, H)
        linear = traces.colour_noise(np.eye(2 * (len(roots) - 1)), roots)
        covariance = (linear.T @ linear)[:n, :n]
        wanted = toeplitz(traces.autocovariance(H, np.arange(n)))
        assert np.abs(covariance - wanted).max() < 1e-12, n


def noise(n, H=0.8, seed=0, count=1, method="davies-harte"):
    """Rows of noise of variance 1, read from traces of mean 1 that it moves by 1/128 of it."""
    drawn = traces.random_traces(np.ones(count), n, seed, H=H, std=1 / 128, method=method)
    return (drawn - 1) * 128


def lag_products(rows, lag):
    """Mean product at a lag, with its standard error over independent rows."""
    n = rows.shape[1]
    products = (rows[:, : n - lag] * rows[:, lag:]).mean(axis=1)
    return products.mean(), products.std(ddof=1) / math.sqrt(len(products))


def test_davies_harte_draws_have_the_covariance():
    rows = noise(64, 0.8, seed=11, count=3000)
    for lag in (0, 1, 2, 5, 20, 63):
        mean, error = lag_products(rows, lag)
        assert abs(mean - float(traces.autocovariance(0.8, lag))) < 5 * error
    assert abs(rows.mean()) < 5 * 64 ** (0.8 - 1) / math.sqrt(3000)


def test_paxson_is_circular_and_lacks_the_variance_of_the_mean():
    n, H = 64, 0.9
    rows = noise(n, H, seed=12, count=3000, method="paxson")
    assert np.abs(rows.mean(axis=1)).max() < 1e-12
    variance, error = lag_products(rows, 0)
    assert variance == pytest.approx(1 - n ** (2 * H - 2), abs=0.03)  # 0.565
    around = (rows[:, :1] * rows[:, -1:]).mean()  # the ends are neighbours
    neighbours, _ = lag_products(rows, 1)
    assert around == pytest.approx(neighbours, abs=0.06)
    exact = noise(n, H, seed=12, count=3000)
    assert lag_products(exact, 0)[0] > variance + 20 * error


# ---------------------------------------------------------------- drawing


@pytest.mark.parametrize("method", traces.NOISE_METHODS)
def test_same_seed_same_bytes_and_more_rows_change_none(method):
    first = noise(100, 0.8, seed=5, count=3, method=method)
    assert first.tobytes() == noise(100, 0.8, seed=5, count=3, method=method).tobytes()
    assert np.array_equal(first, noise(100, 0.8, seed=5, count=7, method=method)[:3])
    assert not np.array_equal(first, noise(100, 0.8, seed=6, count=3, method=method))
    sequence = SeedSequence(5, spawn_key=(2,))
    draws = [noise(10, seed=sequence, method=method).tobytes() for _ in range(2)]
    assert draws[0] == draws[1] != noise(10, seed=5, method=method).tobytes()
    assert sequence.n_children_spawned == 0


def test_draw_scales_by_the_mean():
    mean = np.array([[50.0, 100.0], [500.0, 1000.0]])
    values = traces.random_traces(mean, 4000, seed=1, H=0.5, std=0.1)
    assert values.shape == (2, 2, 4000)
    # white noise: standard errors of mean and deviation 0.1 / sqrt(4000), 0.1 / sqrt(8000)
    assert values.mean(axis=-1) / mean == pytest.approx(1.0, abs=5 * 0.1 / 4000**0.5)
    assert values.std(axis=-1) / mean == pytest.approx(0.1, abs=5 * 0.1 / 8000**0.5)
    unit = noise(4000, 0.5, seed=1, count=4).reshape(values.shape)
    assert values == pytest.approx(mean[..., None] * (1 + 0.1 * unit), rel=1e-12)


def test_negative_values_are_raised_and_the_held_end_is_positive():
    values = traces.random_traces(np.full(400, 10.0), 50, seed=2, H=0.5, std=0.5)
    assert values.min() == 0.0
    assert (values[:, -1] > 0).all()
    raw = 10.0 * (1 + 0.5 * noise(50, 0.5, seed=2, count=400))
    assert traces.random_traces([3.0], 5, std=0.0).tolist() == [[3.0] * 5]
    ends = np.flatnonzero(raw[:, -1] < 0)
    assert len(ends)
    for row in ends:
        assert values[row, -1] == pytest.approx(raw[row][raw[row] > 0][-1])
    assert values[:, :-1] == pytest.approx(np.maximum(raw[:, :-1], 0), abs=1e-12)


# ---------------------------------------------------------------- a table of measured traces


def frame(values, times=(0, 5, 10)):
    """Throughput of links a and b at some times."""
    return pd.DataFrame(values, index=list(times), columns=["a", "b"])


def test_a_table_has_a_column_per_link_and_a_row_per_step():
    values, step = traces.from_frame(frame([[1, 4], [2, 5], [3, 6]]))
    assert (values.tolist(), step) == ([[1, 2, 3], [4, 5, 6]], 5.0)
    assert values.dtype == float
    tenths = frame([[1, 2]] * 3, times=(0.0, 0.1, 0.1 + 0.1))
    assert traces.from_frame(tenths)[1] == 0.1


GOOD = [[1, 2], [3, 4], [5, 6]]


test_a_table_that_cannot_be_used_is_refused = refuses_each(
    [
        (lambda table=table: traces.from_frame(table), said)
        for table, said in (
            (np.ones((3, 2)), "traces must be a DataFrame"),
            (frame(GOOD, (0, 5, 11)), "times of traces must be 0, one step, two steps"),
            (frame(GOOD, (1, 6, 11)), "got .1.0, 6.0, 11.0.; average over steps first"),
            (frame(GOOD, (0, 0, 0)), "times of traces"),
            (frame(GOOD, ("0 s", "5 s", "10 s")), "times of traces"),
            (frame(GOOD[:1], (0,)), "two times or more, got 1"),
            (frame([[1, 2], [3, -4], [5, 6]]), r"traces\[1, 1\] must be .* of at least 0"),
            (frame([[1, 2], [3, math.nan], [5, 6]]), r"traces\[1, 1\] must be a finite number"),
            (frame([[1, 2], [3, "x"], [5, 6]]), r"traces\[1, 1\] must be a finite number"),
            (frame([[1, 2], [3, 4], [5, 0]]), "link 1 ends with throughput zero"),
        )
    ]
)

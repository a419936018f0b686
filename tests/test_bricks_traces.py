"""Self-similar traces: exact covariance, spectrum, Hurst parameter, files."""

import gzip
import io
import math
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import SeedSequence
from scipy.integrate import quad
from scipy.linalg import toeplitz

from dlsim.bricks import traces
from dlsim.bricks.traces import Traces, read_traces, write_traces
from dlsim.errors import DlsimError, InputError
from tests.scale import SCALE

HURST = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)

# ---------------------------------------------------------------- the law


@pytest.mark.parametrize("H", HURST)
def test_sums_of_the_noise_are_self_similar(H):
    # Var(X_1 + ... + X_n) = n^2H defines fractional Gaussian noise
    for n in (1, 2, 7, 40, 300):
        matrix = toeplitz(traces.autocovariance(H, np.arange(n)))
        assert matrix.sum() == pytest.approx(n ** (2 * H), rel=1e-9)


@pytest.mark.parametrize("H", HURST)
def test_spectrum_is_the_transform_of_the_covariance(H):
    for lag in range(4):
        # lambda = u^8 takes the pole at 0 away
        value, error = quad(
            lambda u, lag=lag: 8 * u**7 * math.cos(lag * u**8) * float(traces.spectrum(u**8, H)),
            0, math.pi**0.125, epsabs=1e-9, limit=200,
        )  # fmt: skip
        assert error < 1e-6
        assert value / math.pi == pytest.approx(float(traces.autocovariance(H, lag)), abs=1e-6)


def test_paxsons_spectrum_errs_by_less_than_a_thousandth():
    frequency = np.linspace(0.001, math.pi, 500)
    for H in (0.5, 0.6, 0.7, 0.8, 0.9, 0.99):
        ratio = traces.paxson_spectrum(frequency, H) / traces.spectrum(frequency, H)
        assert np.abs(ratio - 1).max() < 1e-3


@pytest.mark.parametrize("H", HURST)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 61])
def test_davies_harte_is_exact(n, H):
    roots = traces.circulant_roots(n, H)
    linear = traces.colour(np.eye(2 * (len(roots) - 1)), roots)
    covariance = (linear.T @ linear)[:n, :n]
    wanted = toeplitz(traces.autocovariance(H, np.arange(n)))
    assert np.abs(covariance - wanted).max() < 1e-12


def lag_products(rows, lag):
    """Mean product at a lag, with its standard error over independent rows."""
    n = rows.shape[1]
    products = (rows[:, : n - lag] * rows[:, lag:]).mean(axis=1)
    return products.mean(), products.std(ddof=1) / math.sqrt(len(products))


@pytest.mark.parametrize("H", [0.5, 0.8])
def test_davies_harte_draws_have_the_covariance(H):
    rows = traces.noise(64, H, seed=11, count=3000)
    for lag in (0, 1, 2, 5, 20, 63):
        mean, error = lag_products(rows, lag)
        assert abs(mean - float(traces.autocovariance(H, lag))) < 5 * error
    assert abs(rows.mean()) < 5 * 64 ** (H - 1) / math.sqrt(3000)


def test_paxson_is_circular_and_lacks_the_variance_of_the_mean():
    n, H = 64, 0.9
    rows = traces.noise(n, H, seed=12, count=3000, method="paxson")
    assert np.abs(rows.mean(axis=1)).max() < 1e-12
    variance, error = lag_products(rows, 0)
    assert variance == pytest.approx(1 - n ** (2 * H - 2), abs=0.03)  # 0.565
    around = (rows[:, :1] * rows[:, -1:]).mean()  # the ends are neighbours
    neighbours, _ = lag_products(rows, 1)
    assert around == pytest.approx(neighbours, abs=0.06)
    exact = traces.noise(n, H, seed=12, count=3000)
    assert lag_products(exact, 0)[0] > variance + 20 * error


@pytest.mark.parametrize("method", traces.METHODS)
@pytest.mark.parametrize("H", [0.5, 0.7, 0.8, 0.9])
def test_whittle_recovers_hurst(method, H):
    count = max(1, round(8 * SCALE))
    rows = traces.noise(2**13, H, seed=21, count=count, method=method)
    found = np.array([traces.whittle(100 + 7 * row) for row in rows])
    # standard error of one estimate at this length: about 0.007; bias below 0.002
    assert np.abs(found - H).max() < 0.03
    assert abs(found.mean() - H) < 0.002 + 4 * 0.007 / math.sqrt(count)


def test_whittle_refuses_what_has_no_hurst_parameter():
    for values in ([1.0] * 50, [1.0, 2.0], np.ones((3, 30)), [*range(30), math.nan], "rising"):
        with pytest.raises(InputError, match=r"vary: .* got shape .* finite, .* different"):
            traces.whittle(values)


# ---------------------------------------------------------------- drawing


@pytest.mark.parametrize("method", traces.METHODS)
def test_same_seed_same_bytes_and_more_rows_change_none(method):
    first = traces.noise(100, 0.8, seed=5, count=3, method=method)
    assert first.tobytes() == traces.noise(100, 0.8, seed=5, count=3, method=method).tobytes()
    assert np.array_equal(first, traces.noise(100, 0.8, seed=5, count=7, method=method)[:3])
    assert not np.array_equal(first, traces.noise(100, 0.8, seed=6, count=3, method=method))
    sequence = SeedSequence(5, spawn_key=(2,))
    draws = [traces.noise(10, seed=sequence, method=method).tobytes() for _ in range(2)]
    assert draws[0] == draws[1] != traces.noise(10, seed=5, method=method).tobytes()
    assert sequence.n_children_spawned == 0


def test_draw_scales_by_the_mean():
    mean = np.array([[50.0, 100.0], [500.0, 1000.0]])
    values, clipped = traces.draw(mean, 4000, seed=1, H=0.5, std=0.1)
    assert clipped == 0.0
    assert values.shape == (2, 2, 4000)
    # white noise: standard errors of mean and deviation 0.1 / sqrt(4000), 0.1 / sqrt(8000)
    assert values.mean(axis=-1) / mean == pytest.approx(1.0, abs=5 * 0.1 / 4000**0.5)
    assert values.std(axis=-1) / mean == pytest.approx(0.1, abs=5 * 0.1 / 8000**0.5)
    unit = traces.noise(4000, 0.5, seed=1, count=4).reshape(values.shape)
    assert values == pytest.approx(mean[..., None] * (1 + 0.1 * unit), rel=1e-12)


def test_clipping_is_counted_and_the_held_end_is_positive():
    values, clipped = traces.draw(np.full(400, 10.0), 50, seed=2, H=0.5, std=0.5)
    share = 0.02275  # of a normal law below -2 standard deviations
    assert abs(clipped - share) < 5 * math.sqrt(share / 20_000)
    assert values.min() == 0.0
    assert (values[:, -1] > 0).all()
    raw = 10.0 * (1 + 0.5 * traces.noise(50, 0.5, seed=2, count=400))
    ends = np.flatnonzero(raw[:, -1] < 0)
    assert len(ends)
    for row in ends:
        assert values[row, -1] == pytest.approx(raw[row][raw[row] > 0][-1])
    assert values[:, :-1] == pytest.approx(np.maximum(raw[:, :-1], 0), abs=1e-12)


def test_a_trace_without_noise_is_its_mean():
    values, clipped = traces.draw([3.0, 7.0], 5, std=0.0)
    assert values.tolist() == [[3.0] * 5, [7.0] * 5]
    assert clipped == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean": [0.0]}, "mean throughput.0. must be a finite number above 0"),
        ({"mean": [math.nan]}, "mean throughput.0. must be a finite number above 0"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"steps": 2**29, "mean": [1.0, 1.0]}, "more than"),
        ({"H": 1.0}, "H must"),
        ({"H": 0.0}, "H must"),
        ({"H": "0.8"}, "H must"),
        ({"std": -0.1}, "std"),
        ({"std": math.inf}, "std"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"method": "fft"}, "method"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        traces.draw(**{"mean": [1.0], "steps": 10, **change})


# ---------------------------------------------------------------- files


def drawn(links=3, steps=20, step=0.1):
    values = traces.draw(np.arange(1.0, links + 1), steps, seed=4).values
    return Traces(values, step, tuple(f"link {k}, \u00fc" for k in range(links)))


def same(a, b):
    return np.array_equal(a.values, b.values) and (a.step, a.names) == (b.step, b.names)


@pytest.mark.parametrize("name", ["t.csv", "t.npz"])
def test_files_read_back_exactly(tmp_path, name):
    written = drawn()
    for copy in ("a", "b"):
        write_traces(tmp_path / copy / name, written)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert same(read_traces(tmp_path / "a" / name), written)


def test_packed_csv_is_read(tmp_path):
    write_traces(tmp_path / "t.csv", drawn())
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    assert same(read_traces(packed), drawn())


def csv(tmp_path, rows, head="link,time,throughput"):
    path = tmp_path / "t.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_irregular_stamps_are_averaged_so_that_no_data_is_lost(tmp_path):
    # 100 Mbit/s for 3 s, 40 for 4 s, then 10: 0-5 s carry 380 Mbit, 5-10 s 80 + 30 Mbit
    path = csv(tmp_path, ["a,2,100", "a,5,40", "a,9,10", "b,2,1"])
    found = read_traces(path, step=5.0)
    assert found.values.tolist() == [[76.0, 22.0, 10.0], [1.0, 1.0, 1.0]]
    with pytest.raises(InputError, match="step to average"):
        read_traces(path)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 50)), min_size=1, max_size=12),
    st.integers(1, 40),
)
def test_averages_carry_what_the_curve_carries(tmp_path_factory, pieces, step):
    stamps = np.cumsum([0, *(length for length, _ in pieces)])
    rates = [rate for _, rate in pieces] + [7]
    rows = [f"a,{t},{rate}" for t, rate in zip(stamps, rates, strict=True)]
    found = read_traces(csv(tmp_path_factory.mktemp("t"), rows), step=float(step))
    steps = found.values.shape[1]
    carried = sum(length * rate for length, rate in pieces) + 7 * (steps * step - stamps[-1])
    assert found.values.sum() * step == pytest.approx(carried)
    assert found.values[0, -1] == 7.0
    assert (steps - 1) * step >= stamps[-1]


def test_averaging_over_the_files_own_step_changes_nothing(tmp_path):
    written = drawn(step=0.25)
    write_traces(tmp_path / "t.csv", written)
    found = read_traces(tmp_path / "t.csv", step=0.25)
    assert found.values == pytest.approx(written.values, rel=1e-12)


BROKEN = {
    "no column": (["a,0,1"], "link,when,throughput", "line 1, field time"),
    "negative": (["a,0,1", "a,1,-1"], None, "line 3, field throughput"),
    "not a number": (["a,0,nan"], None, "line 2, field throughput"),
    "no text": ([",0,1"], None, "line 2, field link"),
    "too few fields": (["a,0"], None, "line 2"),
    "empty": ([], None, "holds no value"),
    "falls": (["a,1,1", "b,9,1", "a,0,1"], None, "line 4, link a, field time: 0.0 comes after 1.0"),
    "same time twice": (["a,0,1", "a,0,2"], None, "line 3, link a, field time: .* each once"),
    "starts later": (["a,0,1", "a,1,1", "b,1,1", "b,2,1"], None, "a step to average over"),
    "starts too late": (["a,0,1", "a,1,1", "b,2,1", "b,3,1"], None, "line 3, link a, .*: ends at"),
    "one stamp": (["a,0,1"], None, "one time stamp"),
    "other stamps": (["a,0,1", "a,1,1", "b,0,1", "b,2,1"], None, "line 5, link b, field time"),
    "fewer stamps": (["a,0,1", "a,1,1", "b,0,1"], None, "field time"),
    "irregular": (["a,0,1", "a,1,1", "a,3,1"], None, "line 4, .*step to average"),
    "zero at the end": (["a,0,1", "a,1,0"], None, "line 3, .*held after the end.* cut it off"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_csv_is_refused(tmp_path, kind):
    rows, head, said = BROKEN[kind]
    path = csv(tmp_path, rows, head or "link,time,throughput")
    with pytest.raises(InputError, match=said) as refused:
        read_traces(path)
    assert str(path) in str(refused.value)


def test_links_that_start_at_different_instants_are_resampled(tmp_path):
    """Clocks of 100 and 104 s: time 0 is 104, when b begins."""
    rows = ["a,100,10", "a,110,30", "a,120,50", "b,104,8", "b,112,16", "b,124,4"]
    path = csv(tmp_path, rows)
    held = read_traces(path, step=8.0)
    # a: 10 until 6, 30 until 16, then 50; b: 8 until 8, 16 until 20, then 4
    assert held.values.tolist() == [[(60 + 60) / 8, 30, 50, 50], [8, 16, (64 + 16) / 8, 4]]
    line = read_traces(path, step=8.0, resample="linear")
    # a: 18 at 0, 50 at 16, 2 a second; b: 8 at 0, 16 at 8, 4 at 20, a second less from 8 on
    assert line.values == pytest.approx(
        np.array([[26, 42, 50, 50], [12, 12, (4 * (8 + 4) / 2 + 16) / 8, 4]])
    )
    with pytest.raises(InputError, match="resample"):
        read_traces(path, step=8.0, resample="nearest")


def test_stamps_alike_once_all_links_have_begun_need_no_step(tmp_path):
    rows = ["a,0,1", "a,5,2", "a,10,3", "b,5,4", "b,10,6"]
    for resample in ("hold", "linear"):
        found = read_traces(csv(tmp_path, rows), resample=resample)
        assert (found.step, found.values.tolist()) == (5.0, [[2, 3], [4, 6]])


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, 1e-300])
def test_a_step_that_is_none_is_refused(tmp_path, step):
    path = csv(tmp_path, ["a,0,1", "a,1000,1"])
    with pytest.raises(InputError, match="step"):
        read_traces(path, step=step)


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


GOOD = {"values": np.ones((1, 2)), "step": np.float64(1), "names": np.array(["a"])}
BAD_ARRAYS = {
    "no names": {k: GOOD[k] for k in ("values", "step")},
    "objects": {**GOOD, "names": np.array([{}], dtype=object)},
    "numbers as names": {**GOOD, "names": np.arange(1)},
    "two steps": {**GOOD, "step": np.ones(2)},
    "negative step": {**GOOD, "step": np.float64(-1)},
    "complex": {**GOOD, "values": np.ones((1, 2), dtype=complex)},
    "nan": {**GOOD, "values": np.array([[math.nan, 1]])},
    "ends in zero": {**GOOD, "values": np.array([[1.0, 0.0]])},
    "one row too many": {**GOOD, "values": np.ones((2, 2))},
    "three dimensions": {**GOOD, "values": np.ones((1, 1, 2))},
    "no dimension": {**GOOD, "values": np.float64(1)},
    "no steps": {**GOOD, "values": np.ones((1, 0))},
    "same name": {**GOOD, "values": np.ones((2, 2)), "names": np.array(["a", "a"])},
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_broken_npz_is_refused(tmp_path, kind):
    path = tmp_path / "t.npz"
    path.write_bytes(npz(**BAD_ARRAYS[kind]))
    with pytest.raises(InputError, match=r"t\.npz"):
        read_traces(path)


def test_npz_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dlsim.files.LIMIT", 10_000)
    path = tmp_path / "t.npz"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", bytes(20_000))
    path.write_bytes(stream.getvalue())
    with pytest.raises(InputError, match="unpacks to"):
        read_traces(path)


def test_damaged_files_are_read_or_refused(tmp_path):
    source, path = np.random.default_rng(8), tmp_path / "t"
    for name in ("t.csv", "t.npz"):
        write_traces(tmp_path / name, drawn())
        whole = (tmp_path / name).read_bytes()
        for _ in range(max(20, round(150 * SCALE))):
            damaged = bytearray(whole[: source.integers(0, len(whole) + 1)])
            for place in source.integers(0, max(1, len(damaged)), source.integers(0, 4)):
                damaged[place : place + 1] = bytes([source.integers(0, 256)])
            path.write_bytes(damaged)
            try:
                found = read_traces(path)
            except DlsimError:
                continue
            assert (found.values[:, -1] > 0).all()


def test_traces_by_hand_are_numbers_per_link_and_step():
    made = Traces([[1, 2], [3, 4]], 10, ("a", "b"))  # type: ignore[arg-type]
    assert made.values.dtype == float
    for values, said in (
        ([["x", 1]], r"traces\[0, 0\] must be a finite number"), ([1, 2], "array of 2 dimensions"),
        ([[1, -1]], r"traces\[0, 1\] must be .* of at least 0"), ([[1, 0]], "link 0 ends with"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            Traces(values, 10, ("a",))  # type: ignore[arg-type]


def test_other_places_and_endings_are_refused(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            read_traces(path)
    with pytest.raises(InputError, match=r"ends in \.csv or \.npz"):
        write_traces(tmp_path / "t.txt", drawn())

"""What is drawn follows the laws of the papers: workloads, Grids and networks, by statistics.

The plain twins of ``tests/realtime/test_workload.py`` and ``tests/realtime/test_dcratio.py`` draw
the same numbers one by one; these tests ask of long workloads what the papers say.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import expon, kstest, norm, truncnorm, uniform

from dlsim.bricks import Environment
from dlsim.realtime import execution_time, workload
from dlsim.steady import topology
from tests.bricks.test_engine import DAY
from tests.helpers.times import least
from tests.realtime.test_dcratio import BASE
from tests.realtime.test_workload import PAPER, within

#: A fixed seed fails a true law once in a thousand tests.
RARE = 1e-3
#: E(Avg sigma, N) of paper I's section 5.2.
TYPICAL = execution_time(200.0, 16, BASE)

# ---------------------------------------------------------------- paper M, section 6.1


@pytest.mark.parametrize(
    ("switches", "factor"),
    [
        ({}, 5.5),  # specs of paper M: "text defines L ... contradict": real load = 5.5 L
        ({"batch": "scaled"}, 1.0),
        ({"batch": "single"}, 1.0),
        ({"size": "abs"}, 5.5),
        ({"size": "clip"}, 5.5),
        ({"interval": "poisson"}, 5.5),
        ({"base": "nominal"}, 5.5 * 1.2876),  # +29 %: mean 128.76 instead of 100
    ],
)
@pytest.mark.parametrize("load", [0.3, 1.0])
def test_realised_load_of_paper_m(switches, factor, load):
    runs = [workload.mcdf(PAPER, load, 2e7, seed, **switches) for seed in range(12)]
    assert within([tasks.attrs["realised_load"] for tasks in runs], factor * load)


def test_laws_of_one_long_workload():
    tasks = workload.mcdf(PAPER, 1.0, 2e7, 11)
    batches = tasks.groupby("arrival")["sigma"].size().to_numpy()
    assert within(batches, 5.5)
    assert np.isin(batches, np.arange(1, 11)).all()
    assert np.bincount(batches)[1:].min() > 0.9 * len(batches) / 10
    assert within(tasks["sigma"], 128.76)  # the positive part of N(100, 100)
    gaps = np.diff(np.unique(tasks["arrival"]), prepend=0.0)
    mean = workload.mean_least_time(PAPER)
    assert within(gaps, mean)
    assert np.std(gaps) == pytest.approx(mean, rel=0.03)  # exponential
    low = least(tasks["sigma"][:5000].to_numpy(), PAPER)
    high = 20.0 * tasks["sigma"].to_numpy()[:5000]
    place = (tasks["deadline"].to_numpy()[:5000] - low) / (high - low)
    assert within(place, 0.5)
    assert place.min() >= 0
    assert place.max() <= 1


# ---------------------------------------------------------------- paper I, section 5.1


def test_arrivals_are_a_poisson_process():
    tasks = workload.dcratio(BASE, 0.8, 3e7, 1)
    gaps = np.diff(tasks["arrival"], prepend=0.0)
    assert len(gaps) > 10_000
    assert tasks["arrival"].between(0, 3e7, inclusive="neither").all()
    assert kstest(gaps, expon(scale=TYPICAL / 0.8).cdf).pvalue > RARE


@pytest.mark.parametrize(
    ("size", "law"),
    [
        ("resample", truncnorm(-1, np.inf, loc=200, scale=200).cdf),
        ("abs", lambda x: norm.cdf(x, 200, 200) - norm.cdf(-x, 200, 200)),
        ("uniform", uniform(0, 400).cdf),
    ],
)
def test_sizes_follow_their_law(size, law):
    sigma = workload.dcratio(BASE, 1.0, 3e7, 2, size=size)["sigma"]
    assert kstest(sigma, law).pvalue > RARE
    assert (sigma > 0).all()


def test_clamped_deadlines_are_uniform_or_the_minimum():
    tasks = workload.dcratio(BASE, 1.0, 3e7, 4)
    small = tasks[tasks["sigma"] <= 200]  # AvgD / 2 = E(200, N)
    low = least(tasks["sigma"].to_numpy(), BASE)
    assert len(small) > 3000
    assert kstest(small["deadline"], uniform(TYPICAL, 2 * TYPICAL).cdf).pvalue > RARE
    raised = np.isclose(tasks["deadline"], low, rtol=1e-12)
    assert (tasks["deadline"] >= low * (1 - 1e-12)).all()
    assert raised[(tasks["sigma"] > 600).to_numpy()].all()  # 3 AvgD / 2 = E(600, N)
    # the specification's 23 %: P(U < E(sigma)) over the positive normal law
    part = quad(lambda x: norm.pdf(x, 200, 200) * min((x - 200) / 400, 1), 200, 2000)[0]
    share = part / norm.cdf(1)
    assert share == pytest.approx(0.23, abs=0.005)
    assert raised.mean() == pytest.approx(share, abs=4 * math.sqrt(share / len(tasks)))


@pytest.mark.parametrize("dc_ratio", [1.0, 2.0, 20.0])
def test_scaled_deadlines_are_uniform_times_the_own_minimum(dc_ratio):
    tasks = workload.dcratio(BASE, 1.0, 1e7, 5, deadline="scaled", dc_ratio=dc_ratio)
    ratio = tasks["deadline"] / least(tasks["sigma"].to_numpy(), BASE)
    free = ratio[ratio > 1 + 1e-12]
    assert (ratio >= 1 - 1e-12).all()
    low = max(1.0, 0.5 * dc_ratio)
    assert kstest(free, uniform(low, 1.5 * dc_ratio - low).cdf).pvalue > RARE
    share = 0.5 if dc_ratio == 1 else 0.0
    assert (len(ratio) - len(free)) / len(ratio) == pytest.approx(share, abs=0.04)


# ---------------------------------------------------------------- papers B and S, Tables 1 and 2


@pytest.fixture(scope="module")
def table1():
    return Environment.random(seed=5, interval=60)


def test_the_drawn_environment_is_that_of_table_1(table1):
    servers, clients, requests = table1.servers, table1.clients, table1.requests
    assert table1.topology.domains == 10
    per_domain = servers["domain"].value_counts() + clients["domain"].value_counts()
    assert set(per_domain) <= set(range(5, 11))
    assert 0 <= len(clients) - len(servers) <= 1
    assert servers["performance"].between(100, 500).all()
    mean = table1.rates.mean(axis=1).reshape(10, 4)
    assert ((mean[:, :2] > 45) & (mean[:, :2] < 110)).all()
    assert ((mean[:, 2:] > 450) & (mean[:, 2:] < 1100)).all()
    assert table1.rates.std(axis=1) / mean.ravel() == pytest.approx(np.full(40, 0.1), abs=0.02)
    assert requests["work"].between(1_500, 1_080_000).all()
    assert requests[["send", "recv"]].stack().between(100, 5000).all()
    usual = requests["work"] / 300 + (requests["send"] + requests["recv"]) / 75
    factor = (requests["due"] - requests["arrival"]) / usual
    assert factor.between(1 - 1e-9, 3 + 1e-9).all()
    assert (table1.horizon, table1.server_load, table1.packet) == (DAY, 0.1, 10.0)
    assert table1.rates.shape[1] * table1.step >= 1.5 * DAY


def test_requests_come_at_the_rate_asked_for():
    # Poisson: within five standard deviations of clients x 24, or of 24 in all
    for seed in range(3):
        env = Environment.random(seed, interval=60, server_load=0)
        expected = 24 * len(env.clients)
        assert abs(len(env.requests) - expected) < 5 * expected**0.5
        one = Environment.random(seed, interval=60, interval_scope="system", server_load=0)
        assert abs(len(one.requests) - 24) < 5 * 24**0.5


def test_background_keeps_servers_busy_for_a_tenth(table1):
    jobs = table1.background
    busy = np.diff(jobs.first) * jobs.sizes[0] / table1.servers["performance"] / (1.5 * DAY)
    assert busy.to_numpy() == pytest.approx(np.full(len(busy), 0.1), rel=0.05)


@pytest.mark.parametrize("table2", ["one", "het"])
def test_table_2(table2):
    p = topology.random(
        40, 0.3, 6, table2, gateway=250, bandwidth=30, max_connect=15, heterogeneity=0.4
    )
    expected = {"speed": 100, "gateway": 250} | (
        dict.fromkeys(("work", "data", "priority"), 1) if table2 == "het" else {}
    )
    for name, mean in expected.items():
        numbers = getattr(p, name) / mean
        assert 0.6 <= numbers.min() < 0.75
        assert 1.25 < numbers.max() <= 1.4
    if table2 == "one":
        assert (p.work == 1).all()
        assert (p.data == 1).all()
        assert (p.priority == 1).all()
    wide = p.links["bandwidth"] / 30
    assert 0.6 <= wide.min() < 0.65
    assert 1.35 < wide.max() <= 1.4
    assert set(p.links["max_connect"]) == set(range(9, 21))
    # 780 pairs, 0.3 of them joined: 5 standard deviations
    assert abs(len(p.links) - 234) < 5 * (780 * 0.3 * 0.7) ** 0.5

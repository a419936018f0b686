"""The bound holds on every schedule, is the linear program's optimum, and proves itself exactly."""

import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from dlsim.realtime import Cluster, clairvoyant_bound, execution_time, workload
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import LONG, scale_count
from tests.helpers.strategies import ALL_ROWS, SWITCHES, any_reading, seeded

ADMITTING = [name for name, row in ALL_ROWS.items() if row.admission]


def program(tasks, cluster, partition, work, link):
    """Solve the linear program over elementary intervals, needs from their definitions."""
    count = range(1, cluster.nodes + 1)
    clock = np.unique([*tasks.arrival, *(tasks.arrival + tasks.deadline)])
    rows, limits, worth = [], [], []
    for a, s, d in tasks[["arrival", "sigma", "deadline"]].to_numpy():
        costs = [(n, execution_time(s, n, cluster)) for n in count]
        some = [(n, e) for n, e in costs if e <= d * (1 + 1e-12)]
        if some:
            least = min(n for n, _ in some)
            plain = s * (cluster.cms + cluster.cps) + least * (cluster.st + cluster.sc)
            busy = min(n * e for n, e in some) if partition == "opr" else plain
            rows.append((a, a + d, busy, s * cluster.cms + least * cluster.st))
            worth.append(s if work else 1.0)
    places = [
        (i, k)
        for i, (a, d, *_) in enumerate(rows)
        for k in range(len(clock) - 1)
        if a <= clock[k] and clock[k + 1] <= d
    ]
    m, half = len(rows), len(places)
    if not m:
        return 0.0
    both = 1 + (link == "shared")
    equal, most = np.zeros((both * m, m + both * half)), np.zeros((both * len(clock), m + 2 * half))
    for what in range(both):
        for q, (i, k) in enumerate(places):
            equal[what * m + i, m + what * half + q] = 1
            most[what * len(clock) + k, m + what * half + q] = 1
        for i, row in enumerate(rows):
            equal[what * m + i, i] = -row[2 + what]
        limits += [*np.diff(clock) * (1 if what else cluster.nodes), 0.0]
    bounds = [(0, 1)] * m + [(0, None)] * (both * half)
    most = most[:, : m + both * half]
    gain = np.append(-np.array(worth), np.zeros(both * half))
    return -linprog(gain, most, limits, equal, np.zeros(both * m), bounds).fun


def instances(seeds, most=9):
    for seed in range(seeds):
        source, instance = seeded(("bound", seed), most)
        for partition in ("opr", "exact"):
            fits = instance if partition == "opr" else instance._replace(st=0, sc=0)
            yield source, fits, partition


@pytest.mark.parametrize("work", [False, True])
def test_the_bound_is_the_optimum_of_the_linear_program(work):
    for _, instance, partition in instances(scale_count(100)):
        known = (instance.table, instance.cluster, partition, work)
        found = clairvoyant_bound(*known)
        assert found.value == pytest.approx(program(*known, "per_task"), rel=1e-7)


def test_with_a_link_it_is_near_the_program_and_never_below():
    far = []
    for _, instance, partition in instances(scale_count(60)):
        known = (instance.table, instance.cluster, partition, False)
        found = clairvoyant_bound(*known, "shared").value
        least = program(*known, "shared")
        assert found >= least * (1 - 1e-9)
        far.append(found / least - 1 if least else 0.0)
    assert np.mean(far) < 0.02


def in_time(s):
    """Return tasks, each as the bound has it, and which of them were served in time."""
    if s.parts is not None:
        return in_time(s.parts)
    return s.tasks, (s.tasks["admitted"] & ~s.tasks["missed"]).to_numpy()


@pytest.mark.parametrize("policy", ALL_ROWS)
def test_no_schedule_of_any_policy_beats_it(policy):
    """Under every reading and partition, with and without set-up, ties and negotiation."""
    for seed in range(scale_count(20, LONG)):
        source, instance = seeded(("beats", policy, seed))
        instance, row = instance.fit(policy), ALL_ROWS[policy]
        reading = any_reading(source.choice, SWITCHES)
        factor = 2.0 if source.random() < 0.3 and policy in ADMITTING else 0.0
        if row.partition == "pieces" and reading.get("split") == "piece":
            factor = 0.0
        s = instance.simulate(policy, reading, factor)
        tasks, good = in_time(s)
        for work in (False, True):
            gained = tasks["sigma"][good].sum() if work else good.sum()
            known = (row.partition, work, s.reading.link)
            assert gained <= clairvoyant_bound(tasks, instance.cluster, *known).value * (1 + 1e-12)


def test_what_it_says_by_hand():
    """Two nodes, one unit each of sending and computing: E(3, 2) = 4 and W = 8, W(3, 1) = 6."""
    cluster = Cluster(nodes=2, cms=1, cps=1)
    tasks = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": [3.0, 3.0], "deadline": [4.0, 12.0]})
    assert clairvoyant_bound(tasks, cluster, "opr").value == pytest.approx(2)
    tight = tasks.assign(deadline=[4.0, 6.0])  # 8 + 6 node time, 12 in [0, 6]: a part of one
    assert clairvoyant_bound(tight, cluster, "opr").value == pytest.approx(2 - 2 / 8)
    assert clairvoyant_bound(tight, cluster, "opr").ratio == 0.5
    assert clairvoyant_bound(tight, cluster, "exact").value == pytest.approx(2)
    # 6 units to send in 6 units of time, and 7 in 6 where one is longer
    assert clairvoyant_bound(tight, cluster, "exact", link="shared").ratio == 0
    longer = tight.assign(sigma=[2.5, 4.5], deadline=[6.0, 6.0])
    assert clairvoyant_bound(longer, cluster, "exact", link="shared").ratio == 0.5
    hopeless = tasks.assign(deadline=3.9)
    assert clairvoyant_bound(hopeless, cluster).ratio == 1
    assert np.isnan(clairvoyant_bound(tasks[:0], cluster).ratio)


@pytest.mark.parametrize("partition", ["opr", "exact"])
@pytest.mark.parametrize("work", [False, True])
def test_prices_prove_the_bound_in_fractions_without_its_code(partition, work):
    """Weak duality (Y.price), needs from E(sigma, n) in Fractions; times since first arrival."""
    source = random.Random(f"{partition}{work}")
    for _ in range(40):
        nodes, cms, cps = source.randint(1, 4), source.choice([1, 2, 8]), source.choice([1, 9, 20])
        w, beta = cms + cps, Fraction(cps, cms + cps)
        unit = [n * w * (1 - beta) / (1 - beta**n) for n in range(1, nodes + 1)]  # W(1, n)
        sigma = [source.randint(1, 9) for _ in range(8)]
        due = [int(s * unit[-1] / nodes * source.randint(3, 12) / 4) + 1 for s in sigma]
        come = [source.randint(5, 60) for _ in sigma]
        tasks = pd.DataFrame({"arrival": come, "sigma": sigma, "deadline": due}, dtype=float)
        found = clairvoyant_bound(tasks, Cluster(nodes, cms, cps), partition, work)
        prices = [
            (Fraction(a) + min(come), Fraction(b) + min(come), Fraction(u))
            for a, b, u in found.prices[["begin", "end", "node"]].to_numpy().tolist()
        ]
        total = sum(nodes * u * (b - a) for a, b, u in prices)
        for a, s, d in zip(come, sigma, due, strict=True):
            need = [s * x for n, x in enumerate(unit, 1) if s * x <= n * d]
            if need:
                least = min((u for x, y, u in prices if x < a + d and y > a), default=0)
                each = min(need) if partition == "opr" else s * w
                total += max(0, (s if work else 1) - each * least)
        assert float(total) == pytest.approx(found.value, rel=1e-6)


def test_order_unit_and_clock_do_not_matter():
    source = random.Random(1)
    cluster = Cluster(8, 2, 20)
    tasks = workload.dcratio(cluster, 1.0, 20_000, seed=3, mean=50)
    known = clairvoyant_bound(tasks, cluster, "opr").value
    mixed = tasks.sample(frac=1, random_state=source.randrange(100))
    assert clairvoyant_bound(mixed, cluster, "opr").value == pytest.approx(known, rel=1e-12)
    later = tasks.assign(arrival=tasks["arrival"] + 2.0**30)
    assert clairvoyant_bound(later, cluster, "opr").value == pytest.approx(known, rel=1e-6)
    fast = tasks.assign(arrival=tasks["arrival"] / 1024, deadline=tasks["deadline"] / 1024)
    other = Cluster(8, 2 / 1024, 20 / 1024)
    assert clairvoyant_bound(fast, other, "opr").value == pytest.approx(known, rel=1e-6)


ONE, TWO = pd.DataFrame({"arrival": [0.0], "sigma": [3.0], "deadline": [4.0]}), Cluster(2, 1, 1)
test_refusals = refuses_each(
    [
        (lambda: clairvoyant_bound(ONE, TWO, "best"), "partition"),
        (lambda: clairvoyant_bound(ONE, TWO, link="none"), "link"),
        (lambda: clairvoyant_bound(ONE, TWO, work=1), "work"),
        (lambda: clairvoyant_bound(ONE[["arrival"]], TWO), "sigma"),
        (lambda: clairvoyant_bound(ONE, Cluster(2, 1, 1, 1, 0)), "set-up"),
        (lambda: clairvoyant_bound(ONE, 2), "Cluster"),
    ]
)

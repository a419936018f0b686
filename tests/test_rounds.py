"""The best sizes of several rounds: against linear programs, in floats and in fractions."""

import random
from fractions import Fraction as Q

import numpy as np
import pytest

from dlsim.realtime import Cluster, split_load
from dlsim.realtime.partition import table_for
from dlsim.realtime.sends import rounds_limit
from tests.scale import ENOUGH, SCALE
from tests.test_sends import least_end
from tests.twins import splits
from tests.twins.realtime import Costs


def drawn(name, count, most=6, many=4):
    """Draw loads, release times far apart and near each other, some of them equal."""
    for seed in range(count):
        rng = np.random.default_rng([len(name), seed])
        n, rounds = int(rng.integers(1, most)), int(rng.integers(1, many + 1))
        c = Cluster(n, float(rng.choice([0.5, 1, 8, 30, 100, 300])), 100.0)
        apart = 200 * (c.cms + c.cps) * rng.choice([0.01, 0.1, 0.3, 0.6])
        release = np.sort(rng.random(n) ** 2) * apart
        if rng.random() < 0.3:
            release = np.round(release, -3)
        yield 200.0, release, c, rounds


def program(sigma, release, c, rounds):
    """Solve for the sizes on the first 1, 2, ... nodes; return the least end."""
    costs = np.full(len(release), c.cms), np.full(len(release), c.cps)
    several = range(1, len(release) + 1)
    return min(least_end([*range(n)] * rounds, sigma, release, *costs) for n in several)


def test_no_sizes_end_sooner():
    empty = count = 0
    for sigma, release, c, rounds in drawn("floats", round(250 * SCALE)):
        s = split_load(sigma, release, c, "rounds-exact", rounds)
        assert s.completion == pytest.approx(program(sigma, release, c, rounds), rel=1e-8)
        assert s.estimate == pytest.approx(s.completion, rel=1e-12)
        assert s.alpha.sum() == pytest.approx(1, rel=1e-12)
        assert s.alpha.min() >= 0
        empty, count = empty + (s.alpha == 0).any(), count + 1
    print(f"{count} loads, {empty} with an empty send")
    assert empty > 0


def test_sizes_are_those_in_exact_arithmetic():
    source, gaps = random.Random("fractions"), 0
    for _ in range(round(120 * ENOUGH)):
        n, rounds = source.randint(1, 4), source.randint(1, 3)
        cms, cps = Q(source.choice([1, 2, 3, 10]), 2), Q(source.choice([1, 2, 5, 20]))
        sigma, reach = Q(source.randint(1, 80), 4), source.choice([8, 40, 200])
        r = sorted(Q(source.randint(0, reach), 4) for _ in range(n))
        chunks, end = splits.best_rounds(Costs(n, cms, cps, Q(0), Q(0)), sigma, r, rounds)
        assert max(c.compute_end for c in chunks) == end  # the program's end is the schedule's
        cluster = Cluster(n, float(cms), float(cps))
        s = split_load(float(sigma), [float(t) for t in r], cluster, "rounds-exact", rounds)
        assert s.completion == pytest.approx(float(end), rel=1e-12)
        for name in ("alpha", "send_start", "send_end", "compute_end"):
            wanted = [float(getattr(c, name)) for c in chunks]
            assert getattr(s, name)[s.alpha > 0] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        gaps += len(chunks) < s.alpha.size
    assert gaps > 0


def test_between_one_round_and_any_number():
    for sigma, release, c, rounds in drawn("between", round(150 * SCALE), 12, 6):
        ends = [
            split_load(sigma, release, c, "rounds-exact", m).completion for m in (1, rounds, 7, 64)
        ]
        one = split_load(sigma, release, c).completion
        assert ends[0] == pytest.approx(one, rel=1e-12)
        # what is less than 1e-12 of the load is no send
        assert ends == pytest.approx(sorted(ends, reverse=True), rel=1e-11)
        assert ends[-1] >= rounds_limit(sigma, release, c)[-1] * (1 - 1e-12)
        fewer = split_load(sigma, release[: max(1, len(release) - 1)], c, "rounds-exact", rounds)
        assert ends[1] <= fewer.completion * (1 + 1e-12)
        if rounds > 1 and (release == release[0]).all():  # no formula of rounds is better
            formula = split_load(sigma, release, c, "umr", rounds).completion
            assert ends[1] <= formula * (1 + 1e-12)


def test_ever_more_rounds_come_near_the_limit_where_all_start_together():
    for cms in (0.5, 3, 40):
        c = Cluster(5, cms, 10)
        limit = rounds_limit(7, [2.0] * 5, c)[-1]
        ends = [split_load(7, [2.0] * 5, c, "rounds-exact", m).completion for m in (1, 4, 64)]
        over = [end - limit for end in ends]
        assert over[0] > 2 * over[1] > 0
        assert 0 <= over[2] < 0.02 * limit
        table = table_for(c, "rounds-exact", 4)
        assert 2 + table.unit[5] * 7 == pytest.approx(limit + over[1], rel=1e-12)
        top = 1 + int(table.unit[1:].argmin())  # beyond it what one more gains is a rounding
        assert (np.diff(table.unit[1 : top + 1]) < 0).all()
        assert (table.least[1:] > 0).tolist() == [n > top for n in range(1, 7)]


def test_two_rounds_by_hand():
    # one node, cms = cps = 1: half is sent by 3; half by 6 and computed by 9, the first by 6
    one = split_load(6, [0], Cluster(1, 1, 1), "rounds-exact", 2)
    assert one.compute_end.ravel().tolist() == pytest.approx([6, 9])
    assert one.alpha.ravel().tolist() == pytest.approx([1 / 2, 1 / 2])
    # who is released after the end is not waited for
    two = split_load(6, [0, 30], Cluster(2, 1, 1), "rounds-exact", 2)
    assert two.release.tolist() == [0]
    assert two.completion == pytest.approx(9)

"""Loads, costs, promises and plans of a live cluster, without a cluster."""

import bz2
import gzip
import json
import lzma
import math
import zipfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dlsim.errors import InputError
from dlsim.live import lines, records
from dlsim.live.calibration import (
    MeasuredCosts,
    Measurement,
    fit_times,
    function_key,
    margin,
    read_costs,
    write_costs,
)
from dlsim.live.job import format_seconds
from dlsim.live.loads import as_load
from dlsim.live.planner import (
    PIECES_AT_ONCE,
    SAMPLE_SHARES,
    Planner,
    cut_ranges,
    decreasing_sizes,
    sample_piece,
    sample_places,
)
from tests import live_work as work
from tests.scale import TRIES_ALL

#: Margin of a function without loads whose pieces took their fitted times.
MARGIN = math.exp(stats.t.ppf(0.95, 2) * 0.1 * math.sqrt(2))

# --- loads ------------------------------------------------------------------


@pytest.fixture
def text_file(tmp_path):
    source = np.random.default_rng(3)
    path = tmp_path / "text.txt"
    path.write_bytes(b"\r\n".join(b"w " * n for n in source.integers(0, 40, 500)))
    return path


@pytest.mark.parametrize("count", [1, 2, 7, 100, 10_000])
def test_lines_are_cut_whole_and_none_is_lost(text_file, count):
    load, content = lines(text_file), text_file.read_bytes()
    pieces = cut_ranges(load, [(0, load.size)], [load.size / count] * count, is_sorted=False)
    parts = [load.piece(piece.start, piece.stop)() for piece in pieces]
    assert "".join(parts).encode() == content
    assert all(part.endswith("\n") for part in parts[:-1])
    assert len(parts) <= content.count(b"\n") + 1


@pytest.mark.parametrize(
    ("name", "compress", "said"),
    [
        ("a.gz", gzip.compress, r"compressed with gzip .* decompress it first: gunzip -k .*a\.gz"),
        ("a.txt", bz2.compress, "compressed with bzip2"),
        ("a.txt", lzma.compress, "compressed with xz"),
        ("a.txt", lambda data: b"\x28\xb5\x2f\xfd" + data, "compressed with zstd"),
        ("a.txt", lambda data: data.decode().encode("utf-16"), "text in UTF-16 .* iconv"),
    ],
)
def test_a_file_that_is_no_plain_text_is_refused_with_the_remedy(tmp_path, name, compress, said):
    path = tmp_path / name
    path.write_bytes(compress(b"a line of text\n" * 4000))
    with pytest.raises(InputError, match=said):
        lines(path)


def test_a_zip_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.txt", "w") as archive:
        archive.writestr("inner.txt", "a line\n")
    with pytest.raises(InputError, match=r"a zip archive .* unpack it first"):
        lines(tmp_path / "a.txt")


def test_a_file_cut_short_after_the_promise_is_noticed(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b\n" * 1000)
    piece = lines(path).piece(2000, 4000)
    path.write_text("a b\n")
    with pytest.raises(InputError, match=r"was changed: it ends at byte 2000 instead of 4000"):
        piece()


def test_records_are_cut_whole(tmp_path):
    path = tmp_path / "numbers.bin"
    numbers = np.arange(1001, dtype="<i8")
    path.write_bytes(numbers.tobytes())
    load = records(path, 8)
    pieces = cut_ranges(load, [(0, load.size)], [load.size / 6] * 6, is_sorted=False)
    parts = [np.frombuffer(load.piece(p.start, p.stop)(), "<i8") for p in pieces]
    assert len(parts) == 6
    np.testing.assert_array_equal(np.concatenate(parts), numbers)
    with pytest.raises(InputError, match="has 8008 bytes, which is no multiple of record_bytes=9"):
        records(path, 9)


def test_sequences_are_sliced_by_position():
    table = pd.DataFrame({"x": range(4)}, index=[0.5, 1.5, 2.5, 3.5])
    assert as_load(table).piece(1, 3)()["x"].tolist() == [1, 2]
    assert as_load(np.arange(6).reshape(3, 2)).piece(1, 3)().tolist() == [[2, 3], [4, 5]]
    assert as_load(range(10)).piece(2, 4)() == range(2, 4)
    assert as_load([]).size == 0


@pytest.mark.parametrize("data", [3, {1, 2}, {1: "one"}, np.array(3.0), iter([1, 2])])
def test_what_cannot_be_sliced_is_no_load(data):
    with pytest.raises(InputError, match=r"a load must be lines\(path\), .* got "):
        as_load(data)


def test_the_name_of_a_file_is_no_load():
    with pytest.raises(InputError, match=r"got the text 'big.txt'; of a file use lines\('big.txt'"):
        as_load("big.txt")


@given(
    units=st.integers(1, 3000), workers=st.integers(1, 9), count=st.integers(1, 90),
    ends=st.lists(st.integers(0, 3000), max_size=8),
)  # fmt: skip
def test_pieces_cover_what_is_left_once(units, workers, count, ends):
    ends = sorted({min(end, units) for end in ends})
    gaps = list(zip(ends[::2], ends[1::2], strict=False))
    load, left = as_load(range(units)), sum(stop - start for start, stop in gaps)
    pieces = cut_ranges(load, gaps, decreasing_sizes(left, count, workers))
    found = sorted(k for piece in pieces for k in range(piece.start, piece.stop))
    assert found == [k for start, stop in gaps for k in range(start, stop)]
    assert all(piece.units > 0 for piece in pieces)
    sizes = [piece.units for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)


@given(units=st.integers(1, 5000), workers=st.integers(1, 9))
def test_a_sample_is_spread_and_takes_a_tenth_at_most(units, workers):
    load, costs = as_load(range(units)), work.exact_costs(per_unit=1e-9)
    rounds = sample_places(load, workers)
    places = sorted(place for places in rounds for place in places)
    assert places[0][0] == 0
    assert places[-1][1] == units
    assert all(a[1] == b[0] for a, b in pairwise(places))
    assert all(len(places) <= workers for places in rounds)
    assert len(rounds[0]) == min(units, workers)
    sampled = 0
    for round_, places in enumerate(rounds):
        for place in places:
            piece = sample_piece(load, place, round_, workers, costs)
            assert place[0] == piece.start < piece.stop <= place[1]
            sampled += piece.units
    # a piece holds a record at least; the head leaves a round out that would make it a tenth
    assert sampled <= sum(max(share * units, workers) for share in SAMPLE_SHARES)


# --- costs ------------------------------------------------------------------


def test_a_fit_finds_start_up_and_unit_and_leaves_outliers():
    source = np.random.default_rng(5)
    units = source.uniform(10, 1000, 200)
    seconds = (0.05 + 1e-3 * units) * source.lognormal(0, 0.03, 200)
    found = fit_times(units, seconds)
    assert found.start_up == pytest.approx(0.05, rel=0.1)
    assert found.per_unit == pytest.approx(1e-3, rel=0.02)
    small = int(np.argmin(units))
    seconds[small] += 3.0  # a worker that was held up by something else
    again = fit_times(units, seconds)
    assert again.start_up == pytest.approx(0.05, rel=0.15)
    # the total is kept, outliers included: a promise is about sums of pieces
    assert again.time(units).sum() == pytest.approx(seconds.sum())


def test_a_fit_has_no_negative_cost():
    assert fit_times(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 4.0])).start_up < 1e-6
    assert fit_times(np.array([5.0]), np.array([10.0])) == (0, 2)
    start_up, per_unit = fit_times(np.array([1.0, 50.0, 900.0]), np.full(3, 0.25))
    assert start_up == pytest.approx(0.25, rel=1e-3)
    assert 0 < per_unit < 1e-6
    assert fit_times(np.array([1.0, 2.0]), np.zeros(2)).per_unit > 0  # a model needs some


def test_the_simulated_load_is_the_list_schedule():
    costs = work.exact_costs(per_unit=2.0)
    # by hand: 6, 4, 4 and 2 s on workers A and B: A 0-6, B 0-4, B 4-8, A 6-8
    seconds, spread = costs.simulate([3, 2, 2, 1], 2)
    assert seconds == pytest.approx(8.0, rel=1e-4)
    assert spread == pytest.approx(0.1, abs=1e-4)
    seconds, _ = costs.simulate([1, 2, 2, 3], 2)  # A 0-2, B 0-4, A 2-6, B 4-10
    assert seconds == pytest.approx(10.0, rel=1e-4)


def test_the_latest_of_many_workers_is_what_counts():
    source, costs = np.random.default_rng(2), MeasuredCosts()
    for _ in range(300):
        seconds = source.lognormal(0, 0.3)
        costs.add_piece(Measurement(1.0, seconds, seconds), 300)
    for workers in (1, 8):
        drawn = source.lognormal(0, 0.3, (20_000, workers)).max(axis=1).mean()
        assert costs.simulate([1.0] * workers, workers)[0] == pytest.approx(drawn, rel=0.1)


def test_without_loads_the_margin_is_the_quantile_of_students_t():
    # the prior alone: two loads' worth of a variance of .1 squared, one of the mean
    assert margin([], 0.95, 0.1) == pytest.approx(MARGIN)


@pytest.mark.parametrize("count", [3, 11, 19, 39])
def test_promises_are_kept_with_the_stated_probability(count):
    source, kept = np.random.default_rng(7), []
    costs = MeasuredCosts()
    for _ in range(2000):
        drawn = source.lognormal(0, 0.1, count + 1)
        costs.ratios.clear()
        costs.ratios.extend(drawn[:-1])
        kept.append(drawn[-1] <= margin(costs.ratios, 0.95, 0.1))
    low, high = stats.binomtest(sum(kept), len(kept)).proportion_ci(0.999)
    assert high >= 0.95
    assert low <= 0.975  # no wider than needed


def test_one_outlier_does_not_make_promises_worthless():
    costs = MeasuredCosts()
    costs.ratios.append(5.0)
    assert 5 < margin(costs.ratios, 0.95, 0.1) < 5**1.3
    costs.ratios.extend([1.0] * 38)  # one of 39 may be late
    assert margin(costs.ratios, 0.95, 0.1) == 1.0


def test_after_a_late_load_the_margin_grows():
    costs = MeasuredCosts()
    costs.ratios.extend([1.0, 0.98, 1.03, 1.01])
    before = margin(costs.ratios, 0.95, 0.05)
    costs.ratios.append(1.2 * before)
    after_late = margin(costs.ratios, 0.95, 0.05)
    assert after_late > 1.1 * before
    costs.ratios.append(1.0)
    assert margin(costs.ratios, 0.95, 0.05) < after_late


def test_old_pieces_are_forgotten():
    costs = MeasuredCosts()
    for k in range(460):
        costs.add_piece(Measurement(1.0, 1.0 + (k >= 400), 1.0), workers=2)
    assert costs.fit().per_unit == 2.0


def test_costs_are_kept_as_numbers(tmp_path):
    costs = {"f 1": work.exact_costs(0.1, 0.3), "g 2": MeasuredCosts()}
    costs["f 1"].ratios.append(1.25)
    path = tmp_path / "costs.json"
    write_costs(path, costs)
    again = read_costs(path)
    assert list(again) == ["f 1"]
    assert again["f 1"].pieces == costs["f 1"].pieces
    assert list(again["f 1"].ratios) == [1.25]


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"version": 2, "functions": {}},
        {"version": 1},
        {"version": 1, "functions": {"f": {"pieces": [[1, 2]], "ratios": []}}},
        {"version": 1, "functions": {"f": {"pieces": [[1, -2, 1]], "ratios": []}}},
        {"version": 1, "functions": {"f": {"pieces": [], "ratios": ["x"]}}},
        {"version": 1, "functions": {"f": {"pieces": [[1, 1e999, 1]], "ratios": []}}},
    ],
)
def test_a_file_that_holds_no_costs_is_refused(tmp_path, document):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"costs\.json"):
        read_costs(path)


def test_a_function_that_was_changed_is_measured_anew():
    def make(number):
        space = {"__name__": "m"}
        exec(f"def f(x):\n    return [y for y in x if y != {number}]", space)
        return space["f"]

    assert function_key(make(1)) == function_key(make(1))
    assert function_key(make(1)) != function_key(make(2))
    assert function_key(work.count_words).startswith("tests.live_work.count_words ")
    assert function_key(len).startswith("builtins.len ")


def test_seconds_are_written_with_their_unit():
    assert [format_seconds(x) for x in (0.00123, 71.4, 999.6, 12345.6)] == [
        "0.00123 s",
        "71.4 s",
        "1e+03 s",
        "12346 s",
    ]


# --- promises ---------------------------------------------------------------


def planner_of(workers, policy="pull"):
    planner = Planner(policy, 0.95)
    planner.workers = workers
    return planner


def submit(planner, units, deadline, now=0.0, number=0):
    job = work.new_job(planner, units, deadline, now, number)
    promise = planner.promise(job, now)
    job.promise = promise
    if promise.admitted:
        planner.admit(job, promise)
    return job


def send_all(planner, now):
    return list(iter(lambda: planner.next_piece(now), None))


def finish(planner, job, piece, now):
    job.on_cluster.remove(piece)
    job.last_event = now
    if not (job.to_send or job.on_cluster):
        planner.remove(job)


def test_a_load_alone_is_promised_on_all_workers_with_the_margin():
    planner = planner_of(4)
    job = submit(planner, 400, 1000)
    assert job.promise.admitted
    assert job.promise.workers == 4
    assert job.promise.expected == pytest.approx(100, rel=0.02)  # 400 s of work on four workers
    assert job.promise.end == pytest.approx(MARGIN * job.promise.expected, rel=1e-3)


def test_a_load_behind_another_waits_for_it_and_is_promised_so():
    planner = planner_of(2)
    first = submit(planner, 100, 1000)
    send_all(planner, 0.0)
    assert first in planner.running
    second = submit(planner, 20, 1000)
    # the first load takes 50 s; then both workers take 10 s for the second
    assert second.promise.expected == pytest.approx(60, rel=0.1)
    assert second.promise.end == pytest.approx(MARGIN * second.promise.expected, rel=1e-6)
    third = submit(planner, 20, 30)
    assert not third.promise.admitted
    assert MARGIN * 50 < third.promise.offer < MARGIN * 90


def test_behind_loads_that_wait_the_fewest_workers_are_planned():
    planner = planner_of(4)
    for _ in range(2):
        submit(planner, 100, 1000)
        send_all(planner, 0.0)
    assert len(planner.waiting) == 1
    third = submit(planner, 100, 1000)
    assert third.promise.workers == 1  # 50 s for the others, then 100 s on one worker
    assert MARGIN * 140 < third.promise.end <= 1000
    urgent = submit(planner, 100, 1.1 * MARGIN * 75)  # the earliest end on four workers is 75 s
    assert urgent.promise.workers > 1


def test_the_offer_to_a_refused_load_is_kept_when_it_comes_again():
    planner = planner_of(3)
    submit(planner, 100, 1000)
    send_all(planner, 0.0)
    refused = submit(planner, 60, 20)
    offer = refused.promise.offer
    assert submit(planner, 60, offer * 0.999, number=2).promise.admitted is False
    again = submit(planner, 60, offer * 1.001, number=3)
    assert again.promise.admitted
    assert again.promise.end <= offer * 1.001


def test_no_promise_without_workers():
    planner = planner_of(2)
    job = work.new_job(planner, 10, 100)
    planner.workers = 0
    assert not planner.promise(job, 0.0).admitted
    assert planner.next_piece(0.0) is None
    assert planner.late_jobs(0.0) == []


def test_pieces_decrease_and_are_fewer_where_start_up_is_dear():
    planner = planner_of(4)
    assert planner.piece_count(work.exact_costs(), 400) == 40
    dear = work.exact_costs(per_unit=0.1, start_up=0.4)  # 100 units: 10 s, a tenth is 1 s
    assert planner.piece_count(dear, 100) == 4  # 2.5 start-ups, but a piece for each worker
    assert planner.piece_count(dear, 1000) == 25


def test_workers_are_kept_busy_with_a_piece_in_hand():
    planner = planner_of(2)
    job = submit(planner, 100, 1000)
    sent = send_all(planner, 0.0)
    assert len(sent) == 2 * PIECES_AT_ONCE
    assert all(owner is job for owner, _ in sent)
    finish(planner, job, sent[0][1], 5.0)
    assert len(send_all(planner, 5.0)) == 1


def test_a_lost_worker_withdraws_what_cannot_be_kept():
    planner = planner_of(2)
    job = submit(planner, 100, 1000)
    send_all(planner, 0.0)
    assert planner.late_jobs(0.0) == []
    planner.set_workers(1)
    ((late, end),) = planner.late_jobs(0.0)
    assert late is job
    assert 80 < end <= 100  # 100 s of work on one worker, half of a piece taken as done
    job.withdrawn = end
    assert planner.late_jobs(0.0) == []  # it is said once


def test_a_withdrawn_load_does_not_block_the_plan():
    planner = planner_of(4)
    submit(planner, 400, 1000)
    send_all(planner, 0.0)
    waiting = submit(planner, 40, 1000)
    planner.set_workers(1)  # neither can be in time any more
    newcomer = submit(planner, 10, 10_000)
    assert newcomer.promise.admitted
    assert waiting.due > waiting.arrival + waiting.promise.end


@pytest.mark.parametrize("policy", ["EDF-DLT", "EDF-OPR-MN", "EDFAN", "EDF-EXACT-N"])
def test_a_policy_of_the_papers_gives_each_worker_one_piece(policy):
    planner = planner_of(3, policy)
    # all workers are needed: 300 s of work, 100 s on three
    job = submit(planner, 300, 1.5 * MARGIN * 100)
    assert job.promise.admitted
    sent = send_all(planner, 0.0)
    assert len(sent) == job.workers == len({piece.start for _, piece in sent})
    assert sum(piece.units for _, piece in sent) == 300


@pytest.mark.parametrize("policy", ["FIFOANNA", "FIFO-US"])
def test_a_policy_that_promises_nothing_is_refused(policy):
    with pytest.raises(InputError, match="a promise needs admission control"):
        Planner(policy, 0.95)


@pytest.mark.parametrize("policy", ["pull", "EDF-DLT"])
@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_each_unit_is_computed_once(seed, policy):
    """Loads come, pieces end in any order, workers come and go."""
    source, now = np.random.default_rng(seed), 0.0
    planner = planner_of(3, policy)
    jobs, done, on_cluster = [], {}, []
    for step in range(2000):
        event = source.integers(4)
        now += source.exponential(1.0)
        if event == 0 and len(jobs) < 8:
            job = submit(planner, int(source.integers(1, 60)), 1e5, now, len(jobs))
            assert job.promise.admitted
            jobs.append(job)
            done[job] = []
        elif event == 1 and source.random() < 0.1:
            planner.set_workers(int(source.integers(1, 6)))
        elif on_cluster:
            job, piece = on_cluster.pop(source.integers(len(on_cluster)))
            done[job] += range(piece.start, piece.stop)
            finish(planner, job, piece, now)
        before = len(on_cluster)
        on_cluster += send_all(planner, now)
        at_once = PIECES_AT_ONCE if policy == "pull" else 1
        assert len(on_cluster) <= max(before, at_once * planner.workers)
        if not on_cluster:
            assert not planner.waiting  # no worker idles beside a load that waits
        if step > 200 and len(jobs) == 8 and not (planner.waiting or planner.running):
            break
    for job in jobs:
        assert sorted(done[job]) == list(range(job.load.size))


# --- what the promise is worth, in simulated time -----------------------------


def play(planner, job, costs, source, factor, now=0.0):
    """Let simulated workers compute a load whose pieces vary; return when it ends."""
    free, ends = [now] * planner.workers, []
    while True:
        for owner, piece in send_all(planner, now):
            seconds = factor * piece.units * source.lognormal(0, 0.05)
            start = max(now, min(free))
            free[free.index(min(free))] = start + seconds
            ends.append((start + seconds, seconds, piece, owner))
        if not ends:
            return now
        ends.sort(key=lambda end: end[0])
        now, seconds, piece, owner = ends.pop(0)
        costs.add_piece(Measurement(piece.units, seconds, seconds), planner.workers)
        finish(planner, owner, piece, now)


@pytest.mark.parametrize(("workers", "spread"), [(2, 0.02), (2, 0.15), (8, 0.05)])
def test_promised_ends_are_kept(workers, spread):
    """Loads differ by a lognormal factor, and pieces within a load by another."""
    source, kept, errors = np.random.default_rng(11), [], []
    for _ in range(8 if TRIES_ALL else 4):  # functions, each new at first
        costs = MeasuredCosts()
        for _ in range(2 * workers):
            seconds = 20 * source.lognormal(0, 0.05)
            costs.add_piece(Measurement(20, seconds, seconds), workers)
        for _ in range(25):
            planner = planner_of(workers)
            job = work.new_job(planner, int(source.integers(400, 800)), 1e6, costs=costs)
            planner.admit(job, planner.promise(job, 0.0))
            end = play(planner, job, costs, source, source.lognormal(0, spread))
            kept.append(end <= job.promise.end)
            errors.append(abs(end / job.promise.expected - 1))
            costs.ratios.append(end / job.planned_seconds)
    _, high = stats.binomtest(sum(kept), len(kept)).proportion_ci(0.99)
    assert high >= 0.95, np.mean(kept)
    assert np.median(errors) < 0.05 + spread

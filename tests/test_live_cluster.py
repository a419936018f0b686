"""Real loads on real worker processes: promised, divided, computed once, combined; and faults."""

import operator
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.given import duration
from dlsim.live import LoadFailedError, loads
from dlsim.live.costs import Costs, Sample, fitted
from dlsim.live.job import Job, Task
from dlsim.live.journal import Journal, function_named, name_of
from dlsim.live.planner import MOST_TRIES, Planner
from dlsim.realtime import Reading
from dlsim.realtime.model import policy_named
from tests import cluster_work as work
from tests.children import until
from tests.scale import LONG, SCALE, deep

# ------------------------------------------------------------------ loads


@pytest.fixture
def corpus(tmp_path):
    source = np.random.default_rng(3)
    text = "\n".join("word " * n for n in source.integers(0, 40, 3000))
    path = tmp_path / "corpus.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize("where", ["head", "shared"])
@pytest.mark.parametrize("shares", [[1], [0.5, 0.5], [0.2, 0.3, 0.5], [1e-9, 1, 1e-9]])
def test_lines_are_cut_whole_and_nothing_is_lost(corpus, where, shares):
    load, text = loads.lines(corpus, where), corpus.read_text()
    pieces = load.cut(shares)
    parts = [piece.read(piece.data) if piece else "" for piece in pieces]
    assert "".join(parts) == text
    assert all(part.endswith("\n") for part in list(filter(None, parts))[:-1])
    longest = max(map(len, text.splitlines(keepends=True)))
    wanted = np.cumsum(shares) / sum(shares) * load.size
    assert (abs(np.cumsum([len(part) for part in parts]) - wanted) <= longest).all()
    for piece in filter(None, pieces):  # a part is a load again
        again = piece.load.cut([1, 2])
        assert "".join(p.read(p.data) for p in again if p) == piece.read(piece.data)


@pytest.mark.parametrize("data", [3, {1, 2}, {1: "one"}, np.array(3.0)])
def test_what_has_no_slices_is_no_load(data):
    with pytest.raises(InputError, match=r"a load must have a length and slices, as .* has not"):
        loads.items(data)


def test_rows_carry_their_header(tmp_path):
    table = pd.DataFrame({"a": range(100), "b": [f"text {k}" for k in range(100)]})
    table.to_csv(tmp_path / "rows.csv", index=False)
    parts = [p.read(p.data) for p in loads.rows(tmp_path / "rows.csv").cut([0.3, 0.3, 0.4])]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), table)


def test_items_are_rounded_by_largest_remainder():
    assert loads.counts(10, [0.55, 0.25, 0.2]) == [6, 2, 2]  # 5.5 2.5 2: of two halves the first
    assert [len(p.data) for p in loads.items(np.arange(7)).cut([1, 1, 1])] == [3, 2, 2]
    with pytest.raises(InputError, match="at least one item"):
        loads.items([])


# ------------------------------------------------------------------ what is measured


def test_costs_are_found_again_and_the_margin_covers_what_comes():
    source, costs = np.random.default_rng(5), Costs()
    for k in range(400):
        units = float(source.uniform(10, 1000))
        noise = source.lognormal(0, 0.05, 2)
        send, compute = (0.01 + 1e-4 * units) * noise[0], (0.05 + 1e-3 * units) * noise[1]
        costs.add(Sample(f"w{k % 4}", units, send, compute))
    cluster = costs.cluster(4, "opr")
    found = [cluster.st, cluster.cms, cluster.sc, cluster.cps]
    np.testing.assert_allclose(found, [0.01, 1e-4, 0.05, 1e-3], rtol=0.05)
    summary = costs.summary()
    assert ((summary["low"] <= summary["value"]) & (summary["value"] <= summary["high"])).all()
    assert costs.slowest()[0] == 1
    margin = costs.margin(1, "opr", 0.95)
    assert 1.05 < margin < 1.15  # the 95th percentile of the noise is 1.085
    assert costs.cluster(4, "dlt").sc == 0  # which knows no set-up
    assert costs.cluster(4, "dlt").cps > cluster.cps


def test_unequal_workers_are_noticed_and_the_slowest_assumed():
    costs, source = Costs(), np.random.default_rng(1)
    for k in range(60):
        slow = 1.5 if k % 3 == 0 else 1
        costs.add(Sample(f"w{k % 3}", 100.0, 0.1, slow * source.uniform(0.95, 1.05)))
    slow, p = costs.slowest()
    assert p < 1e-3
    np.testing.assert_allclose(slow * costs.fits()[1].time(100.0), 1.5, rtol=0.05)


def test_a_fit_has_no_negative_cost():
    assert fitted(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 4.0])).setup == 0
    assert fitted(np.array([5.0]), np.array([10.0])).unit == 2
    setup, unit = fitted(np.array([1.0, 50.0, 900.0]), np.full(3, 0.25))  # all of it set-up
    assert setup == pytest.approx(0.25)
    assert 0 < unit < 1e-9


def test_functions_are_known_by_where_they_can_be_imported():
    assert function_named(name_of(work.words)) is work.words
    assert "#" in name_of(lambda text: text)
    with pytest.raises(InputError, match="cannot be imported"):
        function_named("tests.cluster_work:nothing")


def test_a_script_that_ends_itself_is_no_module(tmp_path, monkeypatch):
    (tmp_path / "ends_itself.py").write_text("raise SystemExit('usage: ends_itself FILE')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"cannot be imported \(SystemExit: usage: ends_itself"):
        function_named("ends_itself:main")


def test_a_log_is_one_heads_and_holds_what_it_can_give_back(corpus, tmp_path):
    first = Journal(tmp_path / "log")
    with pytest.raises(InputError, match="another run writes to it; wait for its end"):
        Journal(tmp_path / "log")
    job = Job(first.next(), work.words, None, loads.lines(corpus), Costs(), 0.0, 60.0)
    job.promise = job.promise._replace(admitted=True)
    first.add_job(job)
    deep_list = []
    for _ in range(200):
        deep_list = [deep_list]
    array = np.arange(3.0)
    for k, result in enumerate([array, {"a": [1, 2.5, None]}, (1, 2), 10**400, deep_list, np.nan]):
        first.add_result(job, (k,), result)
    first.close()
    again = Journal(tmp_path / "log")  # what JSON would change is computed again
    (one,) = again.unfinished.values()
    assert sorted(one.done) == [(0,), (1,)]
    np.testing.assert_array_equal(one.done[0,], array)
    assert one.done[1,] == {"a": [1, 2.5, None]}
    again.write([("result", {"job": 0, "key": 7, "result": {}})])
    again.close()
    for _ in range(2):  # what cannot be read is let go
        with pytest.raises(InputError, match=r"event 4: not of the log of a head \(KeyError"):
            Journal(tmp_path / "log")


def test_a_log_whose_load_changed_is_refused(corpus, tmp_path):
    journal = Journal(tmp_path / "log")
    job = Job(journal.next(), work.words, None, loads.lines(corpus), Costs(), 0.0, 60.0)
    job.promise = job.promise._replace(admitted=True)
    journal.add_job(job)
    journal.close()
    corpus.write_text("another text")
    with pytest.raises(InputError, match="changed since load 0 was promised: put it back"):
        Journal(tmp_path / "log")
    corpus.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        Journal(tmp_path / "log")


@pytest.mark.parametrize(
    "given", ["soon", "-90 s", "0", "1e", "90 parsecs", np.nan, -1, None, True]
)
def test_a_deadline_is_a_time_to_come(given):
    with pytest.raises(InputError, match="deadline must be a time above 0"):
        duration("deadline", given)


def test_a_deadline_has_a_unit():
    given = [90, "90", "90 s", "1.5 min", "1.5min", " 2h", "1d"]
    assert [duration("deadline", one) for one in given] == [90] * 5 + [7200, 86400]


# ------------------------------------------------------------------ what is planned


def planner(policy="EDFAN", workers=3):
    """A planner of workers that take a second for ten units."""
    said = []
    _, rule = policy_named(policy)
    plan = Planner(rule, Reading(link="shared"), 0.95, said.append, lambda job, chunks: None)
    for k in range(30):
        units = 10.0 * (1 + k % 3)
        plan.costs["f"].add(Sample(f"w{k % 2}", units, units / 1000, units / 10))
    for k in range(workers):
        plan.join(f"w{k}")
    return plan, said


def asked(plan, count=200, deadline=1e6, now=0.0):
    """A load of numbers that was promised."""
    load = loads.items(list(range(count)))
    job = Job(0, list, None, load, plan.costs["f"], now, deadline)
    task = Task(job, load, job.due)
    job.promise = plan.promise(task, now)
    plan.waiting.append(task)
    return job


@pytest.mark.parametrize("seed", range(round(20 * LONG)))
def test_whatever_happens_each_item_is_computed_once(seed):
    """Workers come and go, results come late, twice or never, at moments without a clock."""
    source, now = np.random.default_rng(seed), 0.0
    plan, _ = planner()
    jobs, underway, came = [asked(plan, now=now) for _ in range(3)], [], 3
    for _ in range(5000):
        event, calm = source.integers(6), source.random() > 0.15
        if event == 0 or not plan.workers:
            if len(plan.workers) < 4:
                plan.join(f"w{(came := came + 1)}")
        elif event == 1 and not calm:
            assert plan.lose(str(source.choice(list(plan.workers)))) == []
            for chunk in plan.running:
                chunk.tries = 0  # no load is given up here
            for task in plan.waiting:
                task.tries = 0
        elif event == 2:
            plan.step(now)
        elif event == 3 and (found := plan.next(now)):
            chunk, job = found
            underway.append((chunk, job, chunk.piece.data))
            chunk.sent = now
        elif event == 4 and underway:
            chunk, job, data = underway.pop(source.integers(len(underway)))
            if plan.free(chunk, job, now):
                job.done[chunk.key] = data
                job.open -= 1
        now += source.exponential(2.0) * (event == 5)
        if not any(job.open for job in jobs) and not plan.running:
            break
    for job in jobs:
        assert job.open == 0
        assert [k for key in sorted(job.done) for k in job.done[key]] == list(range(200))
    assert not plan.waiting
    assert not plan.to_send


def sent_off(plan, now):
    """The chunks that idle workers get at one moment."""
    for _ in range(10):
        plan.step(now)
    return list(iter(lambda: plan.next(now), None))


def test_a_load_that_is_forgotten_leaves_the_link():
    """What comes after a load that failed is promised what it would be without that load."""
    plan, _ = planner()
    ends = {}
    for fails in (False, True):
        if fails:
            first = asked(plan, 2000)
            plan.step(0.0)
            (chunk, _) = plan.next(0.0)
            assert asked(plan).promise.finish > 2 * ends[False]
            plan.waiting.clear()
            chunk.sent = 0.5
            plan.free(chunk, first, 1.0)
            plan.forget(first)
        ends[fails] = asked(plan, now=1.0).promise.finish
        plan.waiting.clear()
    assert ends[True] == pytest.approx(ends[False])


def test_what_ends_every_worker_is_given_up():
    plan, said = planner()
    job = asked(plan)
    for k in range(MOST_TRIES):
        (chunk, _), *others = sent_off(plan, 1000.0 * k)
        for other, _ in others:
            plan.free(other, job, 1000.0 * k)
        given_up = plan.lose(chunk.worker.address)
        assert given_up == [job] * (k == MOST_TRIES - 1)
        assert "is gone; 1 chunks" in said[-1]
        plan.join(f"another {k}")
    plan.forget(job)
    assert not plan.waiting


def test_without_workers_loads_wait_for_the_first_that_comes():
    plan, _ = planner()
    asked(plan)
    assert len(sent_off(plan, 0.0)) == 3
    for address in list(plan.workers):
        plan.lose(address)
    assert plan.step(1.0) == np.inf
    plan.join("late")
    units = 0
    for now in (1000.0, 2000.0, 3000.0):
        ((chunk, job),) = sent_off(plan, now)
        assert chunk.worker.address == "late"
        units += chunk.piece.units
        plan.free(chunk, job, now)
    assert units == 200
    assert not plan.waiting


def test_what_takes_too_long_is_run_again_elsewhere():
    plan, said = planner(workers=2)
    asked(plan, 4)
    plan.step(0.0)
    chunk, _ = plan.next(0.0)
    chunk.sent = 0.0
    while (found := plan.next(0.0)) is not None:  # the other one is done at once
        plan.free(found[0], found[1], 0.1)
    plan.step(chunk.limit + 0.01)
    assert "straggles on" in said[-1]
    (again,) = plan.to_send
    assert again.key == chunk.key
    assert again.worker is not chunk.worker
    plan.lose(chunk.worker.address)
    assert not plan.waiting  # the second one is on its way
    plan.lose(again.worker.address)
    assert [task.key for task in plan.waiting] == [chunk.key]


# ------------------------------------------------------------------ on a cluster

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def head():
    from dlsim.live import Head

    with Head(workers=3, policy="EDFAN") as one:
        yield one


@pytest.fixture
def address(head):
    """The scheduler of that head's cluster, for a head of one's own; its workers come back."""
    yield head._client.scheduler.address
    until(lambda: len(head._plan.workers) == 3)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "big.txt"
    path.write_text("one two three four five six seven eight nine ten\n" * 4_000)
    return path


def test_a_load_is_promised_divided_and_combined_once(head, big):
    load = loads.lines(big)
    with pytest.raises(InputError, match="was not measured here"):
        head.submit(work.slow_words, load, 60)
    table = head.calibrate(work.slow_words, load, shares=(0.02, 0.3), repeats=1)
    assert 0.7e-5 < table.loc["Cps", "value"] < 3e-5  # a second for 100,000 letters
    job = head.submit(work.slow_words, load, 600, combine=operator.add)
    tight = head.submit(work.slow_words, load, 0.01)
    assert job.promise.admitted
    assert job.promise.finish <= 600
    assert not tight.promise.admitted
    assert tight.promise.offer > 0.4  # 1.96 s of work on three workers
    with pytest.raises(InputError, match="was refused, so there is no result"):
        tight.result()
    assert job.result(120) == 40_000
    chunks = job.chunks
    assert chunks["units"].sum() == load.size
    assert (chunks["send_start"] <= chunks["send_end"]).all()
    assert (chunks["send_end"] <= chunks["compute_end"]).all()
    assert job.end <= job.due
    assert head.table().loc[job.number, "kept"]


def test_a_function_that_raises_ends_its_load_only(head, big):
    load = loads.lines(big)
    for function in (work.breaks, work.slow_words):
        head.costs[name_of(function)].add(Sample("w", 1e5, 0.01, 1.0))
    failing = head.submit(work.breaks, load, 600)
    with pytest.raises(LoadFailedError, match="no such word"):
        failing.result(60)
    assert not head.table().loc[failing.number, "kept"]  # failed in time is not done in time
    fine = head.submit(work.slow_words, loads.items("a b c " * 1000), 600)
    assert sum(fine.result(60)) == 3000


def test_what_can_only_fail_later_is_refused(head, big):
    load = loads.lines(big)
    with pytest.raises(InputError, match="function must be a function, got 'words'"):
        head.submit("words", load, 60)
    with pytest.raises(InputError, match="combine must be a function, got 3"):
        head.submit(work.words, load, 60, 3)
    with pytest.raises(InputError, match=r"load must be one such as loads.items\(...\), got \[1\]"):
        head.calibrate(work.words, [1])

    class Nothing:
        size = 0

        def cut(self, shares):
            return [None] * len(shares)

    with pytest.raises(InputError, match="size of the load must be"):
        head.calibrate(work.words, Nothing())


def test_a_file_cut_short_after_its_promise_ends_its_load_only(head, tmp_path):
    (tmp_path / "short").write_text("a b\n" * 1000)
    load = loads.lines(tmp_path / "short")
    head.costs[name_of(work.words)].add(Sample("w", 1000.0, 0.01, 0.01))
    (tmp_path / "short").write_text("a b\n")
    with pytest.raises(LoadFailedError, match=r"ends at byte 4, not at .*: it was changed"):
        head.submit(work.words, load, 600).result(60)
    assert sum(head.submit(work.words, loads.items("a b " * 100), 600).result(60)) == 200


def test_a_load_of_three_records_is_measured_whole(head):
    load = loads.items(["a b", "c", "d"])  # a tenth of it, and less, is nothing
    until(lambda: not head._plan.running)
    head.calibrate(len, load, repeats=1)
    assert {one.units for one in head.measured(len).samples} == {3.0}
    assert head.submit(len, load, 600, operator.add).result(60) == 3


def test_what_ends_all_that_are_to_measure_it_is_not_measured(head, monkeypatch):
    until(lambda: not head._plan.running)
    monkeypatch.setattr(head, "_measured", lambda *_: None)
    with pytest.raises(LoadFailedError, match="was not measured: every worker that got a piece"):
        head.calibrate(work.unsendable, loads.items("a b " * 100))


@pytest.mark.parametrize(
    ("function", "combine"), [(work.unsendable, None), (work.words, work.breaks_both)]
)
def test_what_cannot_be_sent_or_combined_ends_its_load_only(head, big, function, combine):
    head.costs[name_of(function)].add(Sample("w", 1000.0, 0.01, 1.0))
    # one piece would have nothing to be combined with
    until(lambda: not head._plan.running and len(head._plan.workers) == 3)
    job = head.submit(function, loads.items("a b " * 100), "10 min", combine)
    with pytest.raises(LoadFailedError, match=r"load .* failed"):
        job.result(60)


def test_shared_files_are_measured_apart_and_results_may_be_large(head, big):
    load = loads.lines(big, "shared")
    head.costs[name_of(work.blown_up)].add(Sample("w", 1000.0, 0.01, 0.01))
    with pytest.raises(InputError, match="was not measured here"):
        head.submit(work.blown_up, load, 60)
    until(lambda: not head._plan.running)  # a failed load's pieces may still be at work
    head.calibrate(work.blown_up, load, (0.005, 0.01), 1)
    part = load.cut([0.1, 0.9])[0].load
    result = head.submit(work.blown_up, part, 600, work.joined).result(60)
    assert result.nbytes == 1000 * part.size  # 20 MB
    told = head.table().iloc[-1]
    assert told["Cms"] == head.measured(work.blown_up, load).fits()[0].unit or told["Cps"] > 0


def test_a_closed_head_and_a_scheduler_that_is_not_there(monkeypatch, tmp_path):
    from dlsim.live import Head

    seen, security = [], object()

    def client(address, **options):
        seen.append((address, options["security"]))
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", client)
    for _ in range(2):  # the log is let go
        head = Head("tls://nowhere:1", security=security, log=tmp_path / "log")
        with pytest.raises(InputError, match="no Dask scheduler answers at 'tls://nowhere:1'"):
            head.__enter__()
    assert seen == [("tls://nowhere:1", security)] * 2
    with pytest.raises(InputError, match="the head is closed; use it as a context"):
        head.calibrate(work.words, loads.items("a"))


@deep
def test_workers_and_heads_may_be_killed_at_any_moment():
    from tests.cluster_kills import kills

    table = kills(count=max(2, round(2 * SCALE)), lines=10_000)
    assert table["right"].all()
    assert (table[["lost", "twice"]] == 0).all(axis=None)


@deep
def test_workers_come_and_go_while_a_head_measures_and_the_scheduler_goes(
    big, tmp_path, monkeypatch
):
    from dlsim.live import Head

    monkeypatch.setattr("dlsim.live.head.PATIENCE", 1.0)
    monkeypatch.setattr("dlsim.study.workers.ANSWER_SECONDS", 2)
    log, load = tmp_path / "log", loads.lines(big).cut([0.5, 0.5])[0].load
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "ERROR"}
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        cluster = distributed.LocalCluster(n_workers=2, **options)
        with cluster, Head(cluster.scheduler_address, log=log) as one:
            victim = cluster.workers[0].pid
            threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
            cluster.scale(3)
            one.calibrate(work.slow_words, load, shares=(0.2,), repeats=2)
            until(lambda: len(one._plan.workers) >= 2)
            job = one.submit(work.slow_words, load, "1h", operator.add)
            cluster.close()
            with pytest.raises(LoadFailedError, match="the scheduler is gone"):
                job.result(120)
            with pytest.raises(InputError, match="the head is closed"):
                one.submit(work.slow_words, load, "1h")
    with Head(workers=2, log=log) as again:
        assert [one.number for one in again.jobs] == [job.number]
        assert again.jobs[0].result(120) == 20_000


def test_what_a_killed_worker_had_is_computed_on_the_others(address, big):
    from dlsim.live import Head

    said = []
    with Head(address, policy="EDF-EXACT-N", tell=said.append) as one:
        pids, load = one._client.run(os.getpid), loads.lines(big)
        one.calibrate(work.slow_words, load, shares=(0.02, 0.04), repeats=1)
        job = one.submit(work.slow_words, load, 600, combine=operator.add)
        sent = until(lambda: [chunk for chunk in job.sent if chunk.sent == chunk.sent])
        os.kill(pids[sent[0].worker.address], signal.SIGKILL)
        assert job.result(120) == 40_000
        until(lambda: any("is gone" in text for text in said))


HEAD = """
import sys, time
from dlsim.live import Head, loads
from tests import cluster_work as work
with Head(workers=2, log=sys.argv[2]) as head:
    load = loads.lines(sys.argv[1])
    head.calibrate(work.slow_words, load, shares=(0.02, 0.04), repeats=1)
    for _ in range(2):
        head.submit(work.slow_words, load, 900, combine=work.add)
    begun = time.monotonic()
    while not all(job.sent and job.sent[0].sent > 0 for job in head.jobs):
        time.sleep(0.01)
        assert time.monotonic() < begun + 100
    print("promised, and on its way", flush=True)
    head.wait()
"""


def test_a_killed_head_finishes_what_it_promised(address, big, tmp_path):
    from dlsim.live import Head

    log = tmp_path / "head.sqlite"
    command = [sys.executable, "-c", HEAD, str(big), str(log)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        try:
            assert first.stdout.readline() == "promised, and on its way\n"
        finally:
            os.killpg(first.pid, signal.SIGKILL)
    with Head(address, log=log) as second:
        assert second.knows(work.slow_words)
        assert [job.number for job in second.jobs] == [0, 1]
        assert [job.result(120) for job in second.jobs] == [40_000] * 2
    journal = Journal(log)
    assert not journal.unfinished  # all have an end
    assert sum(kind == "result" for kind, _, _ in journal.rows()) >= 2
    journal.close()


def test_with_a_log_only_what_can_be_found_again_is_taken(address, big, tmp_path):
    from dlsim.live import Head

    with Head(address, log=tmp_path / "log.sqlite") as one:
        one.costs[name_of(work.words)].add(Sample("w", 1e6, 0.1, 0.1))
        one.costs[name_of(len)].add(Sample("w", 1e6, 0.1, 0.1))
        with pytest.raises(InputError, match="cannot be found again after a kill"):
            one.submit(work.words, loads.items("text"), 60)
        local = lambda text: 1  # noqa: E731
        one.costs[name_of(local)].add(Sample("w", 1e6, 0.1, 0.1))
        with pytest.raises(InputError, match="define it in a module"):
            one.submit(local, loads.lines(big), 60)

"""Loads on real Dask workers: promised, divided, combined in order; and what may go wrong."""

import math
import os
import signal
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from dlsim.errors import InputError
from dlsim.live import Head, LoadFailedError, lines
from tests.helpers import live_work as work
from tests.helpers.children import until

#: Seconds after which a test of a starved machine gives up.
LONG = 100
QUIET = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}


@pytest.fixture(scope="module")
def cluster():
    """Two workers in this process, so that tests and workers share an event."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, **QUIET
        ) as one,
        distributed.Client(one, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def head(cluster):
    work.GO.clear()
    with Head(cluster) as one:
        yield one
        work.GO.set()


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one two three four five\n" * 4000)
    return path


def know(head, function, per_unit=0.01):
    """Let a head know a function's costs, so that no load of it is measured first."""
    from dlsim.live.calibration import function_key

    head.costs[function_key(function)].pieces.extend(work.exact_costs(per_unit).pieces)


def test_the_five_lines_of_the_front_page(head, text_file):
    job = head.submit(work.count_words, lines(text_file), combine=sum, deadline="90s")
    assert job.promise.admitted
    assert "promised" in repr(job)
    assert job.result(LONG) == 20_000
    assert job.status == "done"
    assert sum(piece.units for piece in job.pieces) == text_file.stat().st_size
    sampled = sum(piece.units for piece in job.pieces if piece.is_sample)
    assert 0 < sampled < 0.11 * job.load.size
    assert len({piece.start for piece in job.pieces}) == len(job.pieces)
    row = head.table().loc[job.number]
    assert (row["name"], row["status"], row["admitted"]) == ("count_words", "done", True)
    assert repr(job).count("\n") == 0
    assert repr(head) == "head of 2 workers: 0 open loads"


def test_results_come_in_the_order_of_the_load(head):
    job = head.submit(work.list_numbers, list(range(5000)), deadline=60, combine=work.concatenate)
    assert job.result(LONG) == list(range(5000))
    again = head.submit(work.list_numbers, list(range(777)), deadline=60, combine=work.concatenate)
    assert not any(piece.is_sample for piece in again.pieces)  # its function is known
    assert again.result(LONG, progress=True) == list(range(777))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_loads_of_few_records(head, count):
    job = head.submit(work.list_numbers, range(count), deadline=60, combine=work.concatenate)
    assert job.result(LONG) == list(range(count))
    know(head, work.list_numbers)
    again = head.submit(work.list_numbers, range(count), deadline=60)
    assert work.concatenate(again.result(LONG)) == list(range(count))


def test_a_load_without_records_is_promised_or_offered_at_once(head):
    named = "name units deadline admitted promised expected workers offer started ended status kept"
    assert list(head.table()) == named.split()
    done = head.submit(work.list_numbers, [], deadline=60).promise
    late = head.submit(work.list_numbers, [], deadline=1e-9).promise
    assert done.admitted
    assert math.isnan(done.offer)
    assert not late.admitted
    assert math.isnan(late.end + late.expected)
    assert late.offer > 1e-9


def test_what_comes_too_late_is_refused_and_kept_when_offered(head):
    know(head, work.list_numbers)
    job = head.submit(work.list_numbers, range(1000), deadline=3)
    assert job.status == "refused"
    assert job.promise.offer > 4  # ten seconds of work on two workers
    assert "refused; could be promised by" in repr(job)
    with pytest.raises(InputError, match=r"refused; could .* submit it again with a later dead"):
        job.result()
    assert not job.cancel()
    again = head.submit(work.list_numbers, range(1000), deadline=job.promise.offer * 1.01)
    assert again.promise.admitted
    assert again.promise.end <= again.deadline


@pytest.mark.parametrize("is_known", [False, True])
def test_a_function_that_raises_is_told_with_its_traceback(head, is_known):
    if is_known:
        know(head, work.raise_at_seven)
    with pytest.raises(LoadFailedError, match=r"failed: ArithmeticError: seven") as told:
        head.submit(work.raise_at_seven, range(8), deadline=60).result(LONG)
    assert not head.jobs[-1].cancel()
    frames, error = [], told.value.__cause__
    assert isinstance(error, ArithmeticError)
    trace = error.__traceback__
    while trace:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "raise_at_seven" in frames
    assert "failed: ArithmeticError: seven cannot be computed" in repr(head.jobs[-1])
    fine = head.submit(work.list_numbers, range(10), deadline=60, combine=work.concatenate)
    assert fine.result(LONG) == list(range(10))


def test_a_combination_that_raises_ends_its_load_only(head):
    job = head.submit(work.list_numbers, range(9), deadline=60, combine=work.raise_in_combine)
    with pytest.raises(LoadFailedError, match="these do not combine"):
        job.result(LONG)
    assert head.submit(len, range(9), deadline=60, combine=sum).result(LONG) == 9


def test_two_loads_at_once(head):
    know(head, work.wait_for_go)
    first = head.submit(work.wait_for_go, range(400), deadline=600, combine=work.concatenate)
    second = head.submit(work.wait_for_go, range(300), deadline=600, combine=work.concatenate)
    assert (first.status, second.status) == ("running", "waiting")
    assert second.promise.end > first.promise.end
    with pytest.raises(TimeoutError):
        second.result(0.01)
    work.GO.set()
    assert second.result(LONG) == list(range(300))
    assert first.result(LONG) == list(range(400))


def test_a_load_may_be_cancelled_while_it_runs_or_waits(head):
    know(head, work.wait_for_go)
    jobs = [head.submit(work.wait_for_go, range(400), deadline=600) for _ in range(3)]
    assert jobs[2].cancel()
    assert jobs[0].cancel()
    assert not jobs[0].cancel()  # it is cancelled already
    assert [job.status for job in jobs] == ["cancelled", "running", "cancelled"]
    with pytest.raises(CancelledError):
        jobs[0].result(LONG)
    work.GO.set()
    assert work.concatenate(jobs[1].result(LONG)) == list(range(400))
    assert not jobs[1].cancel()


def test_a_new_function_is_measured_once_the_promised_loads_are_done(head):
    import threading

    know(head, work.wait_for_go)
    running = head.submit(work.wait_for_go, range(100), deadline=600)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(head.submit(len, range(100), deadline=600))
    )
    thread.start()
    until(lambda: len(head.jobs) == 2)
    assert not found
    assert not running.future.done()
    work.GO.set()
    thread.join(LONG)
    assert running.future.done()
    assert sum(found[0].result(LONG)) == 100


def test_a_dask_bag_and_delayed_values(head, cluster):
    dask, bag = pytest.importorskip("dask"), pytest.importorskip("dask.bag")
    parts = bag.from_sequence(range(100), npartitions=10).map(lambda x: 2 * x)
    job = head.submit(work.list_numbers, parts, deadline=60, combine=work.concatenate)
    assert job.result(LONG) == list(range(0, 200, 2))
    with pytest.raises(InputError, match=r"are computed; give it without persist\(\)"):
        head.submit(len, cluster.persist(parts), deadline=60)
    parts = [dask.delayed(range)(k) for k in range(6)]
    assert head.submit(sum, parts, deadline=60).result(LONG) == [0, 0, 1, 3, 6, 10]


def test_a_first_load_says_how_far_samples_can_be_trusted(head):
    first = head.submit(work.list_slowly, range(60), deadline=600)
    first.result(LONG)
    known = head.submit(work.list_slowly, range(60), deadline=600)
    known.result(LONG)
    assert first.ratios is not known.ratios
    assert list(first.ratios) == [(first.ended - first.started) / first.planned_seconds]
    another = head.submit(work.list_numbers, range(60), deadline=600)
    assert another.ratios is first.ratios


def test_costs_are_kept_for_the_next_session(cluster, tmp_path):
    path = tmp_path / "costs.json"
    with Head(cluster, costs=path) as head:
        head.submit(work.list_numbers, range(50), deadline=60).result(LONG)
        until(path.exists)
    with Head(cluster, costs=path) as head:
        job = head.submit(work.list_numbers, range(50), deadline=60)
        assert job.result(LONG)
        assert not any(piece.is_sample for piece in job.pieces)


def test_spoiled_costs_that_refuse_a_load_are_measured_again(head):
    know(head, work.list_numbers, per_unit=100.0)  # as if a lost worker had counted
    job = head.submit(work.list_numbers, range(2000), deadline=60, combine=work.concatenate)
    assert job.promise.admitted
    assert any(piece.is_sample for piece in job.pieces)
    assert job.result(LONG) == list(range(2000))


def test_a_hopeless_deadline_is_measured_again_once(head):
    know(head, work.list_slowly)
    sampled = []
    for _ in range(3):
        job = head.submit(work.list_slowly, range(400), deadline=0.01)
        assert job.status == "refused"
        sampled.append(any(piece.is_sample for piece in job.pieces))
    assert sampled == [True, False, False]
    # what was offered after the sample holds for the whole load
    offer = head.jobs[0].promise.offer
    assert head.submit(work.list_slowly, range(400), deadline=1.01 * offer).promise.admitted
    assert head.jobs[-1].cancel()
    know(head, work.list_numbers)
    busy = head.submit(work.list_slowly, range(100), deadline=600)
    refused = head.submit(work.list_numbers, range(400), deadline=0.01)
    assert not refused.pieces  # measuring would hold up the promised load
    assert len(busy.result(LONG)) > 0


def test_what_cannot_be_asked_is_refused(head):
    with pytest.raises(InputError, match="function must be a function, got 'words'"):
        head.submit("words", [1], deadline=60)
    with pytest.raises(InputError, match="combine must be a function, got 3"):
        head.submit(len, [1], deadline=60, combine=3)
    with pytest.raises(InputError, match="deadline must be a time above 0"):
        head.submit(len, [1], deadline="soon")
    with pytest.raises(InputError, match="client must be a Client, got 'tcp://nowhere:1'"):
        Head("tcp://nowhere:1")
    head.close()
    with pytest.raises(InputError, match="the head is closed"):
        head.submit(len, [1], deadline=60)


# --- with clusters of their own ---------------------------------------------


def test_a_worker_that_joins_late_is_used_and_a_cluster_that_goes_ends_its_loads():
    distributed = pytest.importorskip("distributed")
    work.GO.clear()
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, **QUIET
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        head = Head(client)
        know(head, work.wait_for_go)
        job = head.submit(work.wait_for_go, range(500), deadline=600)
        assert job.promise.workers == 1
        assert len(job.on_cluster) == 2
        cluster.scale(2)
        until(lambda: len(job.on_cluster) == 4)  # two pieces in hand for each worker
        work.GO.set()
        assert work.concatenate(job.result(LONG)) == list(range(500))
        know(head, work.list_slowly)
        unfinished = head.submit(work.list_slowly, range(2000), deadline=600)  # 10 s of work
    with pytest.raises(LoadFailedError, match="the cluster is gone"):
        unfinished.result(LONG)
    until(lambda: client.status != "running")
    with pytest.raises(InputError, match="its cluster is gone; make a new Head"):
        head.submit(len, [1, 2], deadline=60)
    head.close()
    client.close()


def test_a_killed_worker_and_a_result_that_cannot_be_sent():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        Head(client) as head,
    ):
        with pytest.raises(LoadFailedError, match="TypeError: Could not serialize") as told:
            head.submit(work.return_generator, range(100), deadline=60)
        assert "\n" not in str(told.value)
        assert "\n" not in repr(head.jobs[-1])
        pids = client.run(os.getpid)
        know(head, work.list_slowly)
        job = head.submit(work.list_slowly, range(300), deadline=600, combine=work.concatenate)
        until(lambda: job.pieces)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        assert job.result(LONG) == list(range(300))
        assert len({piece.start for piece in job.pieces}) == len(job.pieces)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_killed_while_a_function_is_measured_does_not_spoil_its_costs(workers):
    """The piece of the only worker waits until Dask has started it again."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        Head(client) as head,
        ThreadPoolExecutor(1) as pool,
    ):
        pid = next(iter(client.run(os.getpid).values()))
        client.run(work.list_numbers, [])  # the workers have loaded the code
        submitted = pool.submit(head.submit, work.list_slowly, range(6000), deadline=6000)
        # the last round of the sample: two seconds on each worker
        until(lambda: head.jobs and any(piece.units > 60 for piece in head.jobs[0].on_cluster))
        os.kill(pid, signal.SIGKILL)
        job = submitted.result(LONG)
        assert sum(piece.is_sample for piece in job.pieces) >= 3 * workers
        measured = job.costs.pieces
        assert measured
        assert all(piece.occupied < piece.computing + 1 for piece in measured)
        assert 0.01 <= job.costs.fit(has_start_up=False).per_unit < 0.03  # .01 s of sleep each
        assert job.promise.expected < 200 / workers  # 60 s of sleep, shared by the workers
        job.cancel()
        again = head.submit(work.list_slowly, range(200), deadline=20, combine=work.concatenate)
        assert again.promise.admitted
        assert again.result(LONG) == list(range(200))

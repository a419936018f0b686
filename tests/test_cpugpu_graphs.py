"""Task graphs: published and hand-made cases, every schedule of small graphs, real numbers."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from dlsim.cpugpu import Machine, Policy, simulate, workload
from dlsim.cpugpu.graphs import RIVALS, TaskGraph, cholesky, run_graph
from dlsim.errors import InputError, ScheduleError
from tests.scale import SCALE

#: The graph of Topcuoglu, Hariri and Wu (2002), figure 3: times on three processors; who feeds
#: whom, and what that costs between two of them.
TIMES = [
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10), (13, 16, 9), (7, 15, 11),
    (5, 11, 14), (18, 12, 20), (21, 7, 16),
]  # fmt: skip
FEEDS = [
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
]  # fmt: skip
KNOWN = ("history", "mct", "preferred", "round-robin", "rsc", "asjf", "torque-strict")


def graph_of(rows, reads=(), arrival=None):
    """Rows (name, app, cpu, gpu), reads (task, data, move)."""
    tasks = pd.DataFrame(rows, columns=["task", "app", "cpu_time", "gpu_time"]).set_index("task")
    if arrival is not None:
        tasks["arrival"] = arrival
    return TaskGraph(tasks, pd.DataFrame(reads, columns=["task", "data", "move"]))


def ran(graph, machine, policy, **options):
    s = run_graph(graph, machine, policy, **options)
    s.check()
    return s


def drawn(seed, most=6, arrivals=True):
    """Draw a graph with small whole numbers, a machine for it, and some data in the host."""
    source = np.random.default_rng(np.random.SeedSequence(seed))
    n, machine = int(source.integers(1, most + 1)), Machine(*source.integers(1, 3, 2).tolist())
    times = source.integers(1, 9, (n, 2)).astype(float)
    times[source.random((n, 2)) < 0.1] = math.nan
    times[np.isnan(times).all(axis=1)] = 3.0
    rows = [(j, f"a{source.integers(3)}", *times[j]) for j in range(n)]
    reads = [(k, j, float(source.integers(0, 6)))
             for j, k in itertools.combinations(range(n), 2) if source.random() < 0.35]  # fmt: skip
    reads += [(k, f"d{source.integers(2)}", 4.0) for k in range(n) if source.random() < 0.4]
    arrival = source.choice([0.0, 0.0, 5.0], n) if arrivals else np.zeros(n)
    return graph_of(rows, reads, arrival), machine


def least_makespan(graph, machine):
    """Try every order and every device; data move as soon as they are made."""
    tasks, times = graph.tasks.reset_index(), {"cpu": "cpu_time", "gpu": "gpu_time"}
    reads = graph.reads.to_numpy().tolist()
    waits = tasks["task"].isin([task for task, data, _ in reads if data in tasks["task"].tolist()])
    first, best = tasks["arrival"][~waits].min(), math.inf  # of those that wait for nobody
    home = [d if d[:3] == "gpu" else "host" for d in machine.devices]

    def go(placed, free):
        nonlocal best
        if len(placed) == len(tasks):
            best = min(best, max(end for end, _ in placed.values()) - first)
        for row in tasks[~tasks["task"].isin(list(placed))].to_dict("records"):
            needs = [(data, move) for task, data, move in reads if task == row["task"]]
            if any(data in tasks["task"].tolist() and data not in placed for data, _ in needs):
                continue
            for d, name in enumerate(machine.devices):
                start = max(free[d], row["arrival"])
                for data, move in needs:
                    made, where = placed.get(data, (0.0, "host"))
                    start = max(start, made + (move if where != home[d] else 0.0))
                end = start + row[times[name[:3]]]
                if end - first < best:  # not for NaN
                    go({**placed, row["task"]: (end, home[d])}, [*free[:d], end, *free[d + 1 :]])

    go({}, [0.0] * len(home))
    return best


# ------------------------------------------------------------------ published, and by hand


def test_heft_as_published():
    columns = ["gpu0_time", "gpu1_time", "gpu2_time"]
    tasks = pd.DataFrame(TIMES, columns=columns, index=range(1, 11), dtype=float).assign(app="t")
    reads = pd.DataFrame(FEEDS, columns=["data", "task", "move"])
    graph, machine = TaskGraph(tasks, reads), Machine(0, 3)
    ranks = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    assert graph.ranks(machine) == pytest.approx(ranks, abs=1e-3)
    s = ran(graph, machine, "heft")
    assert s.makespan == 80
    assert s.jobs["device"].str[-1].astype(int).tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
    assert s.jobs["start"].tolist() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
    assert s.bound <= min(ran(graph, machine, name).makespan for name in RIVALS)


def test_the_transfer_term_by_hand():
    """Five jobs (8 on the CPU, 4 on the GPU) read one piece, which takes 10 to the GPU."""
    graph = graph_of([(j, "a", 8.0, 4.0) for j in range(5)], [(j, "d", 10.0) for j in range(5)])
    s = ran(graph, Machine(), "dmda")
    assert s.jobs["device"].tolist() == ["cpu0", "gpu0", "cpu0", "gpu0", "gpu0"]
    assert s.jobs["end"].tolist() == [8, 14, 16, 18, 22] == s.jobs["predicted"].tolist()
    assert s.moves == 1  # it stays there
    blind = ran(graph, Machine(), "mct")  # by 4 against 8 it sends four of them to the GPU
    assert blind.jobs["end"].tolist() == [14, 18, 8, 22, 26]
    alone = ran(graph_of([(0, "a", math.nan, 4.0)], [(0, "d", 10.0)]), Machine(), "history")
    assert alone.history.record("a", "gpu").mean == 14  # what it saw of a run: with the wait


def test_the_urgent_goes_first_by_hand():
    """Task u (1) feeds v (10 on the CPU); x, y, z (5) and u want the only GPU."""
    gpu = [(name, name, math.nan, 5.0) for name in "xyz"]
    tail = [("u", "u", math.nan, 1.0), ("v", "v", 10.0, math.nan)]
    graph = graph_of([*gpu, *tail], [("v", "u", 0.0)])
    assert ran(graph, Machine(), "dmda").makespan == 26
    assert ran(graph, Machine(), "dmdas").makespan == 16  # u 0-1
    assert ran(graph, Machine(), "heft").makespan == 16
    late = graph_of([*gpu, *tail], [("v", "u", 0.0)], [0.0, 0.0, 0.0, 1.0, 0.0])
    assert ran(late, Machine(), "dmda").makespan == 26
    s = ran(late, Machine(), "dmdas")  # u arrives at 1 and passes y and z in the queue
    assert s.jobs["start"].tolist() == [0, 6, 11, 5, 6]


def test_bounds_by_hand():
    chain = graph_of([("a", "a", 4.0, 2.0), ("b", "b", 3.0, 5.0)], [("b", "a", 0.0)])
    assert chain.bound(Machine()) == 5 == ran(chain, Machine(), "heft").makespan
    free = graph_of([(j, "a", 40.0, 10.0) for j in range(4)])
    assert free.bound(Machine()) == pytest.approx(32)  # 4 / (1/40 + 1/10)
    fan = graph_of([("a", "a", 2.0, 2.0)] + [(j, "a", 4.0, 4.0) for j in range(4)],
                   [(j, "a", 0.0) for j in range(4)])  # fmt: skip
    assert fan.bound(Machine()) == pytest.approx(10)  # 2, then 16 on two devices
    back = graph_of([(j, "a", 4.0, 4.0) for j in range(4)] + [("b", "b", 2.0, 2.0)],
                    [("b", j, 0.0) for j in range(4)])  # fmt: skip
    assert back.bound(Machine()) == pytest.approx(10)


# ------------------------------------------------------------------ against other computations


@pytest.mark.parametrize("seed", range(int(20 * SCALE)))
def test_no_schedule_beats_the_best_of_all_nor_the_bound(seed):
    graph, machine = drawn(seed, 4)
    best = least_makespan(graph, machine)
    assert graph.bound(machine) <= best * (1 + 1e-12)
    for policy in (*RIVALS, "history", "mct"):
        assert ran(graph, machine, policy).makespan >= best * (1 - 1e-12)


@pytest.mark.parametrize("policy", KNOWN)
@pytest.mark.parametrize("seed", range(int(4 * SCALE)))
def test_tasks_without_data_are_the_jobs_of_simulate(policy, seed):
    table = workload.applications("balanced", 4, seed)
    jobs = workload.draw(table, 12, seed, cv=0.3, batches=2, interval=40.0)
    jobs = jobs[["app", "arrival", "cpu_time", "gpu_time"]]
    alike = ran(TaskGraph(jobs), machine := Machine(2, 1), policy)
    expected = simulate(jobs, machine, policy)
    names = ["device", "start", "end", "rule", "decided"]
    pd.testing.assert_frame_equal(alike.jobs[names], expected.jobs[names], check_names=False)
    pd.testing.assert_frame_equal(alike.history.table(), expected.history.table())


@pytest.mark.parametrize("seed", range(int(30 * SCALE)))
def test_every_policy_keeps_to_the_model(seed):
    graph, machine = drawn([7, seed], 12)
    for policy in (*RIVALS, *KNOWN, Policy("five", steal=True)):
        s = ran(graph, machine, policy)
        assert s.makespan >= s.bound * (1 - 1e-12)


@pytest.mark.parametrize("policy", [*RIVALS, "history"])
def test_cholesky_in_the_order_of_its_schedule_is_right(policy):
    """Run the kernels on real tiles as they start: the factor times its transpose is the matrix."""
    n, b = 5, 3
    graph = cholesky(n)
    assert graph.tasks["app"].value_counts().to_dict() == {
        "gemm": 10, "trsm": 10, "syrk": 10, "potrf": 5,
    }  # fmt: skip
    source = np.random.default_rng(0).standard_normal((n * b, n * b))
    whole = source @ source.T + n * b * np.eye(n * b)
    tile = {(i, j): whole[i * b : (i + 1) * b, j * b : (j + 1) * b].copy()
            for i in range(n) for j in range(i + 1)}  # fmt: skip
    s = ran(graph, Machine(3, 2), policy)
    for name in s.jobs.sort_values(["start", "end"]).index:
        app, i, j, *k = [int(word) if word.isdecimal() else word for word in name.split()]
        if app == "potrf":
            tile[i, j] = np.linalg.cholesky(tile[i, j])
        elif app == "trsm":
            tile[i, j] = np.linalg.solve(tile[j, j], tile[i, j].T).T
        else:
            tile[i, j] -= tile[i, k[0]] @ tile[j, k[0]].T
    factor = np.zeros((n * b, n * b))
    for (i, j), part in tile.items():
        factor[i * b : (i + 1) * b, j * b : (j + 1) * b] = part
    assert factor @ factor.T == pytest.approx(whole)


def test_measured_kernels_take_the_place_of_published_ones(tmp_path):
    path = tmp_path / "kernels.csv"
    path.write_text("app,cpu_time,gpu_time\npotrf,1,\ntrsm,2,1\nsyrk,2,1\ngemm,4,1\n")
    graph = cholesky(3, bandwidth=8 * 960**2, times=workload.from_csv(path))
    assert ran(graph, Machine(), "heft").jobs.query("app == 'potrf'")["device"].unique() == ["cpu0"]
    assert set(graph.reads["move"]) == {1.0}


# ------------------------------------------------------------------ refused


def idle(state, policy, reading):
    """Never decide anything."""


def change(**columns):
    return lambda jobs: jobs.assign(**{name: made(jobs[name]) for name, made in columns.items()})


@pytest.mark.parametrize(("spoil", "rule"), [
    (lambda jobs: jobs.iloc[::-1], "in the table once"),
    (change(device=lambda d: d.str.replace("cpu0", "cpu7")), "a device of the machine"),
    (change(end=lambda t: t + 1), "takes its time"),
    (change(start=lambda t: t - 8, end=lambda t: t - 8), "waits for its data"),
    (change(start=lambda t: t + 3, end=lambda t: t + 3), "idles only without data"),
    (change(start=lambda t: t - [0, 0, 5], end=lambda t: t - [0, 0, 5]), "one task at a time"),
    (change(device=lambda d: "gpu0"), "has a version"),
])  # fmt: skip
def test_a_spoilt_schedule_fails_its_check(spoil, rule):
    rows = [("a", "a", math.nan, 7.0), ("b", "b", 6.0, math.nan), ("c", "c", 2.0, 2.0)]
    graph = graph_of(rows, [("a", "d", 10.0), ("b", "a", 0.0), ("c", "b", 1.0)])
    s = ran(graph, Machine(), "heft")
    object.__setattr__(s, "jobs", spoil(s.jobs))
    with pytest.raises(ScheduleError, match=rule):
        s.check()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: graph_of([("a", "a", 1, 1)], [("b", "a", 0)]), "task 'b' is not in the index"),
    (lambda: graph_of([("a", "a", 1, 1), ("b", "a", 1, 1)], [("a", "b", 0), ("b", "a", 0)]),
     "circle; task 'a' would wait"),
    (lambda: graph_of([("a", "a", 1, 1)], [("a", "d", -1)]), "move of row 0 must be"),
    (lambda: TaskGraph(pd.DataFrame({"cpu_time": [1.0]})), "app not found"),
    (lambda: graph_of([("a", "x", 1, 1), ("b", " ", 1, 1)]), "app must be the name .* got ' '"),
    (lambda: ran(graph_of([("a", "a", math.nan, 1)]), Machine(1, 0), "heft"), "no version for any"),
    (lambda: ran(graph_of([("a", "a", 0, 1)]), Machine(), "heft"), "cpu_time .*positive"),
    (lambda: ran(graph_of([("a", "a", 1, math.nan)]), Machine(), "gpu-only"), "no version for a"),
    (lambda: ran(cholesky(1), Machine(), Policy(idle)), "idle leaves task 'potrf 0 0' waiting"),
    (lambda: ran(cholesky(2), Machine(), "ideal"), "policy of a task graph must be .*dmdas; "),
    (lambda: ran(cholesky(2), Machine(), Policy("ideal")), "policy ideal leaves task"),
    (lambda: ran(cholesky(2), Machine(), "dmdar"), r"did you mean dmda"),
    (lambda: run_graph(pd.DataFrame()), r"graph must be a TaskGraph, got"),
    (lambda: graph_of([("a", "a", 1, 1)], [(["a"], "d", 1)]), "reads must name a task .*hashable"),
    (lambda: graph_of([("a", "a", 1, 1)], [("a", ["d"], 1)]), "reads must name a task .*hashable"),
    (lambda: cholesky(1).bound(5), "machine must be a Machine, got 5"),
    (lambda: cholesky(1).ranks(None), "machine must be a Machine, got None"),
    (lambda: cholesky(0), "tiles must be"),
    (lambda: cholesky(2, times=pd.DataFrame({"cpu_time": [1.0], "gpu_time": 1.0})), "kernel"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_measured_times_may_hold_further_columns():
    times = pd.DataFrame({"cpu_time": 1.0, "gpu_time": 1.0, "app": "x", "host": "h"},
                         index=["potrf", "trsm", "syrk", "gemm"])  # fmt: skip
    assert len(cholesky(2, times=times).tasks) == 4

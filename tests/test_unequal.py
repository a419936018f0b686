"""Admission on nodes of different speed and link: the equal engine, all sets, programs."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from dlsim.errors import InputError, ScheduleError
from dlsim.realtime import Cluster, Reading, simulate, simulate_unequal, workload
from dlsim.realtime.core import unequal as core
from dlsim.realtime.unequal import UnequalSchedule, _Nodes

WAYS = [(order, part) for order in ("edf", "fifo") for part in ("opr", "exact")]
ENGINE = {"opr": "OPR-MN", "exact": "EXACT-N"}


def cluster_of(rng, n):
    """Nodes whose costs differ by up to ten or twenty times, in any order."""
    return pd.DataFrame({"cms": rng.uniform(1, 9, n), "cps": rng.uniform(2, 50, n)})


def queue(rng, m, nodes, often=2.0):
    """Tasks, some in batches, that come faster than they can be done."""
    each = float((nodes["cms"] + nodes["cps"]).mean())
    sigma = rng.uniform(0.5, 6, m)
    gaps = rng.exponential(4 * each / often, m) * (rng.random(m) < 0.7)
    deadline = sigma * each * rng.uniform(0.2, 3, m)
    return pd.DataFrame({"arrival": np.cumsum(gaps), "sigma": sigma, "deadline": deadline})


# ------------------------------------------------------------------ equal nodes


@pytest.mark.parametrize("link", ["per_task", "shared"])
@pytest.mark.parametrize(("order", "part"), WAYS)
def test_equal_nodes_are_decided_as_ever(order, part, link):
    rng = np.random.default_rng([len(order), len(part), len(link)])
    for n in (1, 2, 3, 5, 8):
        c = Cluster(n, float(rng.integers(1, 9)), float(rng.integers(1, 40)))
        tasks = workload.mcdf(c, 0.4, 6000 * (c.cms + c.cps), int(rng.integers(1000)))
        nodes = pd.DataFrame({"cms": [c.cms] * n, "cps": c.cps})
        found = simulate_unequal(tasks, nodes, order, part, link)
        found.check()
        want = simulate(tasks, c, f"{order.upper()}-{ENGINE[part]}", Reading(link=link)).tasks
        assert 0 < want["admitted"].mean() < 1
        for name in ("admitted", "nodes"):
            pd.testing.assert_series_equal(found.tasks[name], want[name])
        for name in ("start", "completion"):
            assert found.tasks[name].to_numpy() == pytest.approx(want[name].to_numpy(), nan_ok=True)
        least = found.tasks["least"]
        assert (least == want["nodes"]).all() if n <= core.FEW else (least <= want["nodes"]).all()


def test_ties_of_whole_numbers_are_those_of_the_engine():
    rng, equal = np.random.default_rng(5), 0
    for _ in range(60):
        c, m = Cluster(int(rng.integers(1, 5)), 1, 1), 12
        some = {"arrival": np.sort(rng.integers(0, 30, m)), "sigma": rng.integers(1, 9, m)}
        tasks = pd.DataFrame({**some, "deadline": rng.integers(2, 40, m)}).astype(float)
        nodes = pd.DataFrame({"cms": [1] * c.nodes, "cps": 1})
        for order, part in WAYS:
            want = simulate(tasks, c, f"{order.upper()}-{ENGINE[part]}").tasks["admitted"]
            pd.testing.assert_series_equal(
                simulate_unequal(tasks, nodes, order, part).tasks["admitted"], want
            )
            equal += want.sum()
    assert equal > 500


# ------------------------------------------------------------------ all sets, all orders


def together(who, sigma, nodes):
    """How long a load takes on nodes free at once: each share the one before, a_b w_b = a_a c_a."""
    shares = [1.0]
    for a, b in pairwise(who):
        shares.append(shares[-1] * nodes.cps[a] / (nodes.cms[b] + nodes.cps[b]))
    return sigma * (nodes.cms[who[0]] + nodes.cps[who[0]]) / sum(shares)


def program(who, release, nodes, end=None, sigma=None):
    """Return sizes in an order: the most data by an end, or the least end of a load, and which."""
    count, rows, limits = len(who), [], []
    for k in range(count):
        for last in range(k, count):
            sizes = [nodes.cms[who[h]] * (k <= h <= last) for h in range(count)]
            sizes[last] += nodes.cps[who[last]]
            rows.append([*sizes, *([-1.0] if end is None else [])])
            limits.append((end or 0.0) - release[who[k]])
    if end is not None:
        found = linprog([-1.0] * count, rows, limits)
        return -found.fun if found.success else 0.0
    found = linprog([0.0] * count + [1.0], rows, limits, [[1.0] * count + [0.0]], [sigma])
    return found.fun, found.x[:count]


def served(part, sigma, limit, floor, release, nodes):
    """Serve a task as documented, by trying everything: start, end, when each node is free."""
    late, n = np.maximum(release, floor), len(nodes)
    if part == "opr":
        for t in np.unique(late):
            free = [k for k in range(n) if late[k] <= t]
            for m in range(1, len(free) + 1):
                ways = [(t + together(w, sigma, nodes), w) for w in permutations(free, m)]
                end, who = min(ways)
                if end <= limit:
                    return t, end, dict.fromkeys(who, end)
        return None
    for m in range(1, n + 1):
        ways = [(*program(w, late, nodes, sigma=sigma), w) for w in permutations(range(n), m)]
        end, sizes, who = min(ways, key=lambda way: way[0])
        if end <= limit:
            link, start, done = -np.inf, np.inf, {}
            for k, size in zip(who, sizes, strict=True):
                begin = max(link, late[k])
                start, link = min(start, begin), begin + size * nodes.cms[k]
                done[k] = link + size * nodes.cps[k]
            return start, end, done
    return None


def twin(tasks, nodes, order, part):
    """Plan everybody who waits anew at each arrival, in order, and keep the plan if all hold."""
    rows = [(t.arrival, t.sigma, t.arrival + t.deadline) for t in tasks.itertuples()]
    free, plan, found = np.full(len(nodes), -np.inf), [], {}

    def run(way, release):
        release = release.copy()
        for k, end in way[2].items():
            release[k] = end
        return release

    for x, (now, *_) in enumerate(rows):
        while plan and plan[0][1][0] <= now and now > rows[x - 1][0]:
            i, found[i] = plan[0]
            free, plan = run(plan.pop(0)[1], free), plan
        some = sorted([x, *(i for i, _ in plan)], key=lambda i: (rows[i][2] * (order == "edf"), i))
        release, floor, new = free, now, []
        for i in some:
            way = served(part, rows[i][1], rows[i][2], floor, release, nodes)
            if way is None:
                break
            new.append((i, way))
            release, floor = run(way, release), max(floor, way[0])
        else:
            plan = new
    return found | dict(plan)


@pytest.mark.parametrize(("order", "part"), WAYS)
def test_small_queues_are_decided_as_by_trying_everything(order, part):
    rng, refused = np.random.default_rng([7, len(order), len(part)]), 0
    for _ in range(2 if part == "exact" else 8):
        nodes = cluster_of(rng, 3 if part == "exact" else 4)
        tasks = queue(rng, 12, nodes)
        found, want = simulate_unequal(tasks, nodes, order, part), twin(tasks, nodes, order, part)
        found.check()
        assert set(found.tasks.index[found.tasks["admitted"]]) == set(want)
        for i, (start, end, done) in want.items():
            assert tuple(found.tasks.loc[i, ["start", "completion"]]) == pytest.approx((start, end))
            chunks = found.chunks[found.chunks["task"] == i].set_index("node")["compute_end"]
            assert chunks.to_dict() == pytest.approx(done)
        refused += len(tasks) - len(want)
        assert (found.tasks["least"] == found.tasks["nodes"]).all()
    assert refused > 3


def nodes_of(nodes, release):
    """The planner's nodes, by link."""
    server = _Nodes(nodes["cms"].to_numpy(), nodes["cps"].to_numpy(), "exact", 1.0)
    server.room.release[:] = release
    return server


def test_what_an_order_carries_is_that_of_a_program():
    rng, least = np.random.default_rng(3), np.inf
    for _ in range(60):
        n = int(rng.integers(1, 7))
        costs = {"cms": np.sort(10 ** rng.uniform(-1, 1, n)), "cps": rng.uniform(1, 40, n)}
        nodes = pd.DataFrame(costs)
        release, who = rng.uniform(0, 60, n), rng.permutation(n)[: int(rng.integers(1, n + 1))]
        end = rng.uniform(release[who].max(), 150)
        c = nodes_of(nodes, release).room
        data = core.carried(who, len(who), end, c)
        assert data == pytest.approx(program(who, release, nodes, end=end), abs=1e-9)
        if data > 0:
            c.who[: len(who)] = who
            until, k = core.soonest(len(who), data, c)
            assert (until, k) == (pytest.approx(end), len(who))
            core.carried(who, len(who), end, c)
            kept, _ = core.lay_out(len(who), end, c)
            assert c.load[:kept].sum() == pytest.approx(data)
            least = min(least, *(c.done[:kept] / end))
    assert least < 0.9  # somebody is not given all it can do


def test_dearest_node_is_sent_to_first_that_computes_for_free():
    nodes = pd.DataFrame({"cms": [0.0, 1.0, 2.0], "cps": [4.0, 0.0, 5.0]})
    tasks = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": [5, 1], "deadline": [4.0, 6.0]})
    for part in ("opr", "exact"):
        s = simulate_unequal(tasks, nodes, "fifo", part)
        s.check()
        # both at once: 4 T and 1 T, no third part; then node 0, from 4 on
        assert s.tasks["completion"].tolist() == pytest.approx([4, 5])
        assert s.tasks["nodes"].tolist() == [2, 1]


def test_many_nodes_are_no_fewer_than_proved_and_seldom_more_than_needed():
    rng, found = np.random.default_rng(11), []
    for _ in range(60):
        nodes = cluster_of(rng, 7).sort_values("cms", ignore_index=True)
        release, sigma = rng.uniform(0, 40, 7), rng.uniform(1, 7)
        limit = rng.uniform(45, 80)
        server = nodes_of(nodes, release)
        tried = (
            any(core.carried(np.array(w), m, limit, server.room) >= sigma for w in some)
            for m, some in ((m, permutations(range(7), m)) for m in range(1, 6))
        )
        fewest = next((m for m, is_enough in enumerate(tried, 1) if is_enough), 6)
        one = server.serve(0, sigma, limit, 0.0, release)
        if one is None:
            assert fewest == 6
            continue
        assert one.least <= fewest <= len(one.who)
        assert one.end <= limit * (1 + 1e-12)
        found.append((one.least, fewest, len(one.who)))
    least, fewest, n = np.array(found).T
    assert set(fewest) >= {1, 2, 3, 4}
    assert (n == fewest)[fewest < 6].mean() > 0.95
    assert (least == fewest)[fewest < 6].mean() > 0.75


# ------------------------------------------------------------------ properties


@pytest.mark.parametrize("link", ["per_task", "shared"])
@pytest.mark.parametrize(("order", "part"), WAYS)
def test_schedules_are_valid_and_do_not_depend_on_clock_or_unit(order, part, link):
    rng = np.random.default_rng(13)
    for n in (2, 4, 9, 40):
        nodes = cluster_of(rng, n)
        tasks = queue(rng, 60 + 5 * n, nodes, 12 * n)
        s = simulate_unequal(tasks, nodes, order, part, link)
        s.check()
        assert 0 < s.reject_ratio < 1
        late = tasks.assign(arrival=tasks["arrival"] + 2.0**30)
        longer = tasks * [2.0**20, 1, 2.0**20]
        for other, costs in ((late, nodes), (longer, nodes * 2.0**20)):
            found = simulate_unequal(other, costs, order, part, link)
            found.check()
            pd.testing.assert_series_equal(found.tasks["nodes"], s.tasks["nodes"])


def test_one_node_more_that_is_never_worth_it_changes_nothing():
    rng = np.random.default_rng(17)
    nodes = cluster_of(rng, 3)
    tasks = queue(rng, 60, nodes)
    useless = pd.concat([nodes, pd.DataFrame({"cms": [1e6], "cps": [1e6]})], ignore_index=True)
    for order, part in WAYS:
        pd.testing.assert_frame_equal(
            simulate_unequal(tasks, useless, order, part).chunks,
            simulate_unequal(tasks, nodes, order, part).chunks,
        )


# ------------------------------------------------------------------ the check


NODES = pd.DataFrame({"cms": [1.0, 2.0, 4.0], "cps": [4.0, 2.0, 8.0]})
#: The first runs on two nodes, the second on the third, the third waits, the fourth is refused.
TASKS = pd.DataFrame(
    {"arrival": [0, 0, 1, 2], "sigma": [4, 2, 3, 9], "deadline": [12, 24, 40, 20]},
    list("abcd"),
    dtype=float,
)


def test_by_hand():
    s = simulate_unequal(TASKS, NODES)
    assert s.tasks["admitted"].tolist() == [True, True, True, False]
    # a: alone 20, 16 or 48; on 0 and 1 (1 + 4 / 4) / 5 per unit of time
    a = s.chunks[s.chunks["task"] == "a"]
    assert a["alpha"].tolist() == pytest.approx([1 / 2, 1 / 2])
    assert a["send_end"].tolist() == pytest.approx([2, 6])
    assert a["compute_end"].tolist() == pytest.approx([10, 10])
    # b: 2 * 12 on node 2; c: 3 * 4 from 10 on on node 1
    assert s.tasks.loc[["b", "c"], "completion"].tolist() == pytest.approx([24, 22])
    assert s.chunks["node"].tolist() == [0, 1, 2, 1]


def broken(table, row, column, value):
    """A schedule with one entry changed."""
    s = simulate_unequal(TASKS, NODES)
    s.check()
    getattr(s, table).loc[row, column] = value
    return s


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "rule"),
    [
        ("tasks", "a", "sigma", 5, "keeps its arrival, size and deadline"),
        ("tasks", "d", "completion", 9.0, "a refused task has no start"),
        ("tasks", "a", "nodes", 0, "an admitted task runs"),
        ("tasks", "c", "start", 0.5, "no task starts before it arrives"),
        ("tasks", "a", "completion", 13, "meets its deadline"),
        ("tasks", "b", "least", 2, "no fewer nodes than it needs"),
        ("tasks", "c", "start", 14.5, "starts on an arrival or when"),
        ("tasks", "b", "start", 10, "the first send starts with the task"),
        ("tasks", "b", "completion", 23.5, "complete when its last node is"),
        ("chunks", 3, "task", "e", "a task in the table"),
        ("chunks", 3, "node", 3, "a node of the cluster"),
        ("chunks", 3, "alpha", np.nan, "share and times are finite"),
        ("chunks", 3, "task", "b", "one chunk per node"),
        ("chunks", 1, "node", 0, "distinct nodes"),
        ("chunks", 1, "alpha", -0.5, "every share is positive"),
        ("chunks", 1, "alpha", 0.4, "shares of a task sum to 1"),
        ("chunks", 1, "send_end", 5, "a send takes"),
        ("chunks", 1, "compute_end", 13, "a node computes"),
    ],
)
def test_the_check_names_the_rule(table, row, column, value, rule):
    s = broken(table, row, column, value)
    with pytest.raises(ScheduleError, match=rule):
        s.check()


def made(rows, deadline=(40, 40), **how):
    """A schedule of two tasks of size 4 by hand: task, node, share, begin of its send."""
    chunks = pd.DataFrame(rows, columns=["task", "node", "alpha", "send_start"])
    cms, cps = (NODES[c].to_numpy()[chunks["node"]] for c in ("cms", "cps"))
    chunks["send_end"] = chunks["send_start"] + 4 * chunks["alpha"] * cms
    chunks["compute_end"] = chunks["send_end"] + 4 * chunks["alpha"] * cps
    given = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": 4.0, "deadline": deadline}, list("ab"))
    by_task = chunks.groupby("task")
    tasks = given.assign(
        start=by_task["send_start"].min(), completion=by_task["compute_end"].max(),
        nodes=by_task.size().reindex(given.index, fill_value=0),
    )  # fmt: skip
    tasks["admitted"], tasks["least"] = tasks["nodes"] > 0, tasks["nodes"].clip(upper=1)
    words = {"order": "edf", "partition": "opr", "link": "per_task"} | how
    return UnequalSchedule(tasks, chunks, NODES, given=given, **words)


ONE = [("a", 1, 1, 0)]
BOTH = [("a", 0, 0.5, 0), ("a", 1, 0.5, 2)]
AFTER = [("b", 1, 1, 10)]


def test_schedules_made_by_hand_may_be_valid():
    made([*BOTH, *AFTER], (12, 30)).check()
    made([*ONE, ("b", 0, 1, 0)]).check()
    made(ONE, (40, 3)).check()


@pytest.mark.parametrize(
    ("s", "rule"),
    [
        (made([("b", 1, 1, 16)]), "finds the cluster idle and can meet its deadline is served"),
        (made([*ONE, ("b", 1, 1, 0)]), "no node serves two chunks at once"),
        (made([*ONE, ("b", 0, 1, 0)], link="shared"), "sends one chunk at a time"),
        (made([("a", 0, 0.5, 0), ("a", 1, 0.5, 3)], (12, 1)), "as soon as node and link are free"),
        (made([("a", 1, 1, 16), ("b", 1, 1, 0)], order="fifo"), "in the order of arrival"),
        (
            made([("a", 1, 1, 1), ("b", 0, 1, 2)], (40, 35)),
            "passes a waiting task of an earlier deadline",
        ),
        (made([*ONE, ("b", 0, 0.5, 0), ("b", 1, 0.5, 16)]), "all nodes of a task are free"),
        (made([("a", 0, 0.25, 0), ("a", 1, 0.75, 1)]), "finish together"),
        (made([("a", 1, 5 / 7, 0), ("a", 0, 2 / 7, 40 / 7)]), "fastest link is sent to first"),
        (made(BOTH, (17, 1)), "no node of a task could have been left out"),
        (made([*BOTH, *AFTER], (12, 25)), "meets its deadline"),
    ],
)
def test_the_check_refuses_what_is_not_the_model(s, rule):
    with pytest.raises(ScheduleError, match=rule):
        s.check()


def test_the_check_compares_with_the_tasks_that_came():
    s = simulate_unequal(TASKS, NODES)
    some = replace(s, tasks=s.tasks.iloc[:3])
    with pytest.raises(ScheduleError, match="is in the table, once and in its place"):
        some.check()
    replace(some, given=None).check()


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": NODES.assign(cms=0, cps=0)}, "cms \\+ cps above 0"),
        ({"nodes": NODES.assign(cps=-1)}, "cps of node 0"),
        ({"nodes": NODES[:0]}, "at least one row"),
        ({"nodes": NODES[["cms"]]}, "nodes need the columns cms, cps"),
        ({"tasks": TASKS[::-1]}, "arrivals must not decrease, but task 'c'"),
        ({"tasks": TASKS.assign(sigma=0)}, "sigma of task 'a'"),
        ({"order": "dc"}, "order must be one of edf, fifo"),
        ({"partition": "dlt"}, "partition must be one of opr, exact"),
        ({"link": "both"}, "link must be one of per_task, shared"),
    ],
)
def test_refusals_say_what_to_do(change, message):
    with pytest.raises(InputError, match=message):
        simulate_unequal(**{"tasks": TASKS, "nodes": NODES} | change)


def test_no_tasks_are_a_schedule_too():
    s = simulate_unequal(TASKS[:0], NODES)
    s.check()
    assert s.tasks.empty
    assert s.chunks.empty

"""Functions of a user: an order that changes with time, a number of nodes, a partition."""

import dataclasses
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numba
import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError, ScheduleError
from dlsim.realtime import Cluster, Policy, Reading, simulate, split_load, workload
from dlsim.realtime.model import SPLIT_KINDS
from tests.helpers import strategies
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import LONG, scale_count
from tests.twins import inserted
from tests.twins.own import Twin


def mcdf(task, n, t, state):
    """The largest cost derivative first: paper M's own order."""
    return -(state.dc_offset[n] + task.sigma * state.dc_slope[n])


def dearest_last(task, n, t, state):
    """MCDF reversed."""
    return state.dc_offset[n] + task.sigma * state.dc_slope[n]


def laxity(task, n, t, state):
    """The time that is left to wait."""
    return task.due - t - (state.setup_time[n] + task.sigma * state.time_per_unit[n])


def one_more(task, t, state):
    """n_min + 1."""
    return min(task.n_min + 1, state.nodes) if task.n_min > 0 else 0


def half_of_idle(task, t, state):
    """Half of the nodes that are idle."""
    return max(1, (state.idle + 1) // 2)


def halves(sigma, release, state):
    """Each node gets half of what the one before gets."""
    shares = 0.5 ** np.arange(len(release))
    return shares / shares.sum()


FUNCTIONS = {
    f.__name__: numba.njit(f) for f in (dearest_last, laxity, one_more, half_of_idle, halves)
}
#: order, nodes, partition, overtake; a function by its name.
ROWS = {
    "MCDF reversed": ("dearest_last", "min", "opr", True),
    "MCDF reversed in line": ("dearest_last", "min", "opr", False),
    "least laxity": ("laxity", "min", "opr", True),
    "least laxity in line": ("laxity", "min", "opr", False),
    "least laxity all": ("laxity", "all", "opr", False),
    "least laxity all exact": ("laxity", "all", "exact", False),
    "least laxity idle": ("laxity", "fragment", "opr", True),
    "least laxity DLT": ("laxity", "min", "dlt", True),
    "least laxity EXACT-N": ("laxity", "min", "exact-n", True),
    "least laxity US": ("laxity", "user", "pieces", True),
    "least laxity UMR": ("laxity", "min", "umr-iit", True),
    "one more": ("edf", "one_more", "opr", True),
    "one more in line": ("fifo", "one_more", "opr", False),
    "one more DLT": ("edf", "one_more", "dlt", True),
    "half of idle": ("laxity", "half_of_idle", "opr", True),
    "halves": ("edf", "min", "halves", True),
    "halves in line": ("fifo", "min", "halves", False),
    "halves all": ("laxity", "all", "halves", False),
    "all at once": ("laxity", "one_more", "halves", True),
}  # fmt: skip
READINGS = {
    name: strategies.SWITCHES[name]
    for name in ("mn_order", "mn_count", "order_when", "link", "batch_order", "batch_commit",
                 "same_time", "release", "commit")
}  # fmt: skip


def policy_of(order, nodes, partition, overtake):
    """Put the functions in."""
    rules = (FUNCTIONS.get(rule, rule) for rule in (order, nodes, partition))
    return Policy(*rules, overtake=overtake)


def met(name, seed):
    """Draw an instance and a reading; return what twin and engine make of it."""
    order, nodes, partition, overtake = ROWS[name]
    source, case = strategies.seeded((name, seed), 9)
    if partition in strategies.BARE:
        case = case._replace(st=0, sc=0)
    if partition == "umr-iit" and not case.cms:
        case = case._replace(cms=strategies.Fraction(1))
    reading = strategies.any_reading(source.choice, READINGS)
    key, count = (rule if rule in FUNCTIONS else None for rule in (order, nodes))
    plain = "fifo" if key else order, "min" if count else nodes, partition, overtake
    twin = Twin(case.costs, *plain, reading, key, count)
    records = twin.run(inserted.table(case.rows, case.keys, case.user_nodes))
    given = case.table, case.cluster, policy_of(*ROWS[name]), Reading.from_switches(reading)
    return records, strategies.simulate_with_keys(*given), (case, reading)


@pytest.mark.parametrize("name", ROWS)
def test_rules_of_ones_own_decide_as_the_plain_twin(name):
    for seed in range(scale_count(40, LONG / 2)):
        records, s, what = met(name, seed)
        found = strategies.differences(records, s)
        assert not found, (seed, what, found)
        s.check()


CLUSTER = Cluster(10, 10, 10)
TASKS = workload.mcdf(CLUSTER, 0.5, 30_000, 1)


def test_paper_ms_order_as_a_function_is_mcdf_njit_or_not():
    usual = simulate(TASKS, CLUSTER, "MCDF")
    for order in (numba.njit(mcdf), mcdf):
        s = simulate(TASKS, CLUSTER, Policy(order, "min", overtake=True))
        pd.testing.assert_frame_equal(s.tasks, usual.tasks)


def test_functions_of_ones_own_are_called_uncompiled_whatever_the_engine():
    policy = policy_of("edf", "one_more", "halves", False)
    usual = simulate(TASKS.head(5), CLUSTER, policy)
    asked = simulate(TASKS.head(5), CLUSTER, policy, engine="python")
    pd.testing.assert_frame_equal(asked.tasks, usual.tasks)
    with pytest.raises(InputError, match="engine must be 'auto' or 'python' for functions"):
        simulate(TASKS.head(5), CLUSTER, policy, engine="compiled")


def test_halves_worked_by_hand():
    """Shares 4/7, 2/7, 1/7 of 14 units: sent 0-80, 80-120, 120-140, and computed as they come."""
    cluster = Cluster(3, cms=10, cps=10)
    for partition in (halves, FUNCTIONS["halves"]):
        split = split_load(14, [0, 21, 90], cluster, partition)
        assert split.kind == "own"
        assert split.send_end.tolist() == pytest.approx([80, 120, 140])
        assert split.compute_end.tolist() == pytest.approx([160, 160, 160])


def test_rules_are_asked_for_nodes_that_are_idle_up_to_the_tolerance_and_for_at_least_one():
    """A node that is released 2**-41 after the second arrival, at 64, is idle then."""
    asked = []

    def order(task, n, t, state):
        asked.append(n)
        return task.due

    def nodes(task, t, state):
        return {64 + 2**-41: 1, 1: state.idle}.get(task.sigma, 0)

    sizes = {"sigma": [64 + 2**-41, 1, 2], "deadline": 200}
    table = pd.DataFrame({"arrival": [0.0, 64, 64], **sizes})
    reading = Reading(mn_count="frozen", batch_order="policy")
    s = simulate(table, Cluster(2, 0, 1), Policy(order, nodes), reading)
    assert s.tasks["nodes"].tolist() == [1, 2, 0]  # 0 nodes: the task is refused
    assert min(asked) == 1


def test_the_check_sees_shares_that_are_not_the_partitions():
    s = simulate(TASKS, CLUSTER, Policy("edf", "min", halves, overtake=True))
    s.check()
    chunks = s.chunks
    task = chunks["task"][chunks["alpha"] < 1].iloc[0]
    rows = chunks.index[chunks["task"] == task]
    chunks.loc[rows, "alpha"] = 1 / len(rows)
    with pytest.raises(ScheduleError, match=f"broken by task {task}"):
        s.check()
    plain = simulate(TASKS.head(5), CLUSTER, "EDF-DLT")  # whose shares nobody of one's own drew
    forged = plain.runs.assign(kind=SPLIT_KINDS.index("own"))
    with pytest.raises(ScheduleError):
        dataclasses.replace(plain, runs=forged).check()


def fails(task, n, t, state):
    return task.nothing


def ones(sigma, release, state):
    return np.ones(len(release) + 1)


@dataclasses.dataclass
class Weighted:
    """A rule with a state of its own, which cannot be hashed."""

    weight: float = 1.0

    def __call__(self, task, n, t, state):
        return self.weight * task.due


def run(**rules):
    return simulate(TASKS, CLUSTER, Policy(**{"order": "edf", "nodes": "min"} | rules))


#: Rules that cannot be used, and what a plain function must not do.
REFUSED = [
    (partial(run, order=Weighted()), "order function order must be hashable, got Weighted"),
    (partial(run, partition=dict), "it takes an unknown number of arguments"),
    (partial(run, order=lambda task, n: 1), r"must take \(tasks\) .*it takes 2 arguments"),
    (partial(run, nodes=lambda task: 1), r"must take \(task, t, state\) .*it takes 1 arguments"),
    (partial(run, partition=lambda sigma: 1), r"must take \(sigma, release, state\)"),
    (partial(run, order=numba.njit(fails)), r"(?s)Unknown attribute 'nothing'"),
    (partial(run, partition=numba.njit(ones)), "a positive share per node, with the sum 1"),
    (partial(run, partition=halves, nodes="fragment"), "nodes='min', 'all' or a function"),
    (partial(run, nodes=one_more, partition="exact-n"), "chooses the number of nodes"),
    (partial(run, order=laxity, nodes="all", admission=False), "needs admission control"),
    (partial(run, order=fails), r"fails\(task, n, t, state\), called for task 0 .* AttributeError"),
    (partial(run, order=lambda task, n, t, state: math.nan), "a number, not NaN; for task 0"),
    (partial(run, order=lambda task, n, t, state: "a"),
     r"order function <lambda>\(task, n, t, state\) must .* gave \'a\'"),
    (partial(run, nodes=lambda task, t, state: [1, 2]), r"it gave \[1, 2\]"),
    (partial(run, nodes=lambda task, t, state: state.nodes + 1), r"nodes in 0\.\.N.* it gave 11"),
    (partial(run, nodes=lambda task, t, state: 1.5), "it gave 1.5"),
    (partial(run, partition=lambda sigma, release, state: [3.0]), "shares with the sum 3"),
    (partial(run, partition=lambda sigma, release, state: 1 / 0), "for task 0 on .* ZeroDivision"),
]  # fmt: skip
test_rules_that_cannot_be_used_are_refused = refuses_each(REFUSED)


def test_threads_get_each_their_own_errors():
    """Two functions fail in the same instant; each run names its own function and exception."""
    together = threading.Barrier(2, timeout=60)

    def left(task, n, t, state):
        together.wait()
        raise LookupError("of the left one")

    def right(task, n, t, state):
        together.wait()
        raise ArithmeticError("of the right one")

    def message_of(function):
        with pytest.raises(InputError) as caught:
            simulate(TASKS, CLUSTER, Policy(function, "min"))
        return str(caught.value), caught.value.__cause__

    with ThreadPoolExecutor(2) as pool:
        (of_left, left_cause), (of_right, right_cause) = pool.map(message_of, (left, right))
    assert "function left(" in of_left
    assert "raised LookupError: of the left one" in of_left
    assert "function right(" in of_right
    assert "raised ArithmeticError: of the right one" in of_right
    assert isinstance(left_cause, LookupError)
    assert isinstance(right_cause, ArithmeticError)


def test_no_offers_are_made_by_functions():
    policy = Policy(laxity, "min", overtake=True)
    with pytest.raises(InputError, match="no offers are made by functions of a user"):
        simulate(TASKS, CLUSTER, policy, negotiate=2)
    s = simulate(TASKS.assign(deadline=1e-3), CLUSTER, policy)
    with pytest.raises(InputError, match="no offers"):
        s.offer(s.tasks.index[0])


def test_an_interrupt_passes_through_a_plain_function():
    def interrupted(task, n, t, state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(TASKS, CLUSTER, Policy(interrupted, "min"))

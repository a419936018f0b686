"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is paper M's section 3 and 4 (the model) or a switch of the recorded reading;
nothing here asks how the planner came to its decisions.
"""

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import ScheduleError
from dlsim.kernel import TOL
from dlsim.realtime.chunks import has_positive_shares, plain, told
from dlsim.realtime.partition import table_of

if TYPE_CHECKING:
    from dlsim.realtime.engine import Schedule

# Two instants within TOL are one, for the engine and here. What is recomputed by another
# route may differ by this part of the duration involved, and by roundings of the clock.
ROUNDING = 1e-9
ULPS = 64

Floats = NDArray[np.float64]
Rule = tuple[str, pd.Index, Any]


def _equal(a: Any, b: Any, span: Any, ulps: int = ULPS) -> NDArray[np.bool_]:
    """Tell whether two instants (or durations) are equal but for rounding."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    clock = ulps * np.finfo(float).eps * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.abs(a - b) <= clock + ROUNDING * np.abs(np.asarray(span, dtype=float)))


def _not_after(a: Any, b: Any) -> NDArray[np.bool_]:
    """Tell whether instant a comes before b or is the same, by the engine's tolerance."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(a <= b + 2 * TOL * np.maximum(1, np.maximum(np.abs(a), np.abs(b))))


def _given_rules(s: "Schedule") -> Iterator[Rule]:
    given, tasks = s.given, s.tasks
    if given is None:
        return
    rows = given.labels.get_indexer(tasks.index)
    once = np.bincount(rows[rows >= 0], minlength=len(given.labels)) == 1
    yield "every task that arrived is in the table, once", given.labels, once
    yield "the table keeps the tasks in their order", tasks.index, rows == np.arange(len(rows))
    arrival, agreed = tasks["arrival"].to_numpy(), tasks["deadline"].to_numpy()
    yield "a task keeps its arrival", tasks.index, arrival == given.arrival
    yield "a task keeps its size", tasks.index, tasks["sigma"].to_numpy() == given.sigma
    most = arrival + s.negotiate * given.deadline
    offered = tasks["admitted"].to_numpy() & (agreed > 0) & _not_after(arrival + agreed, most)
    yield (
        "a deadline is the one asked for or an offer within the factor",
        tasks.index,
        (agreed == given.deadline) | (offered & (s.negotiate > 0)),
    )


def _task_rules(s: "Schedule") -> Iterator[Rule]:
    tasks, refused = s.tasks, ~s.tasks["admitted"].to_numpy()
    ran = tasks["start"].notna().to_numpy()
    index, n = tasks.index, tasks["nodes"].to_numpy()
    due = (tasks["arrival"] + tasks["deadline"]).to_numpy()
    blank = ~ran & (n == 0) & tasks[["estimate", "completion"]].isna().all(axis=1).to_numpy()
    yield (
        "a task that does not run has no start, nodes, estimate or completion",
        index,
        ran | blank,
    )
    yield "a refused task does not run", index, ~refused | blank
    yield "a refused task does not miss", index, ~refused | ~tasks["missed"].to_numpy()
    may_drop = not s.policy.admission and s.reading.late == "drop"
    yield "an admitted task runs", index, refused | ran | (tasks["missed"] & may_drop)
    yield "without admission control nobody is refused", index, ~refused | s.policy.admission
    yield "a task runs on 1..N nodes", index, ~ran | ((n >= 1) & (n <= s.cluster.nodes))
    yield (
        "no task starts before it arrives",
        index,
        ~ran | _not_after(tasks["arrival"], tasks["start"]),
    )
    met = np.asarray(tasks["completion"] <= due + TOL * np.maximum(1, np.abs(due)))
    yield "missed means completion after the deadline", index, refused | (tasks["missed"] == ~met)
    guarded = ran & (s.policy.admission or may_drop)
    yield "a guaranteed task meets its deadline", index, ~guarded | met
    table = table_of(s.cluster)
    span = table.fixed[n] + tasks["sigma"].to_numpy() * table.unit[n]
    ends = tasks["start"] + span
    ends_then = _equal(ends, tasks["completion"], span)
    yield "completion is start + E(sigma, n)", index, ~ran | ends_then
    yield "estimate is the completion", index, ~ran | (tasks["estimate"] == tasks["completion"])
    yield from _count_rules(s, ran, n, due)
    yield from _service_rules(s, ran, due)
    yield from _order_rules(s, s.tasks[ran].sort_values("start", kind="stable"))


def _count_rules(
    s: "Schedule", ran: NDArray[np.bool_], n: NDArray[np.int64], due: Floats
) -> Iterator[Rule]:
    index, table = s.tasks.index, table_of(s.cluster)
    positive = has_positive_shares(s.tasks, s.cluster)
    formula = s.policy.nodes == "all" and s.reading.an_nodes == "all"
    yield "every share is positive", index, positive | formula
    if s.policy.nodes == "all":
        wanted = np.full(len(n), s.cluster.nodes)
        if s.reading.an_nodes == "best":
            wanted = np.searchsorted(table.least[2:-1], s.tasks["sigma"].to_numpy()) + 1
        yield "an all-nodes task runs on all nodes (or N*)", index, ~ran | (n == wanted)
    else:
        fewer = np.maximum(n - 1, 1)
        since = s.tasks["start" if s.reading.mn_count == "at_start" else "arrival"]
        ends = since + (table.fixed[fewer] + s.tasks["sigma"].to_numpy() * table.unit[fewer])
        enough = (n > 1) & np.asarray(ends <= due + TOL * np.maximum(1, np.abs(due)))
        yield "no fewer nodes would have met the deadline", index, ~ran | ~enough


def _link_free(s: "Schedule", tasks: pd.DataFrame) -> Floats:
    """When the last send of each task ends, where tasks share the link; else -inf."""
    if s.reading.link != "shared":
        return np.full(len(tasks), -np.inf)
    sends = tasks["sigma"] * s.cluster.cms + tasks["nodes"] * s.cluster.st
    return np.asarray(tasks["start"] + sends)


def _service_rules(s: "Schedule", ran: NDArray[np.bool_], due: Floats) -> Iterator[Rule]:
    """Nobody is sent away from an idle cluster that could serve him."""
    tasks, table, top = s.tasks, table_of(s.cluster), s.cluster.nodes
    arrival, sigma = tasks["arrival"].to_numpy(), tasks["sigma"].to_numpy()
    if s.policy.nodes == "min" or s.reading.an_nodes == "best":
        n = np.searchsorted(table.least[2:-1], sigma) + 1
    else:
        n = np.full(len(tasks), top)
    budget = max(1.0, s.negotiate) * tasks["deadline"].to_numpy()
    possible = arrival + (table.fixed[n] + sigma * table.unit[n]) <= arrival + budget
    ends = np.where(ran, np.fmax(tasks["completion"], _link_free(s, tasks)), -np.inf)
    busy = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
    before = np.arange(len(tasks))
    if s.reading.batch_order == "policy" or not s.policy.admission:  # any of one instant first
        before = np.searchsorted(arrival, arrival + 2 * TOL * np.maximum(1, arrival), side="right")
    yield (
        "a task that finds the cluster idle and can meet its deadline is served",
        tasks.index,
        ran | ~possible | (busy[before] > arrival),
    )


def _order_rules(s: "Schedule", line: pd.DataFrame) -> Iterator[Rule]:
    """Who starts when; `line` holds the tasks that ran, by start."""
    start, arrival = line["start"].to_numpy(), line["arrival"].to_numpy()
    ends = np.fmax(line["completion"].to_numpy(), _link_free(s, line))
    if s.policy.nodes == "all":
        before = np.concatenate([[-np.inf], ends[:-1]])[: len(line)]
        yield "all-nodes tasks run one after another", line.index, _not_after(before, start)
        prompt = _not_after(start, np.maximum(before, arrival))
        yield "the cluster does not idle while a task waits", line.index, prompt
    else:
        instants = np.sort(np.concatenate([line["completion"], _link_free(s, line)]))
        if s.policy.order == "dc":  # a newcomer may change who leads
            instants = np.sort(np.concatenate([instants, s.tasks["arrival"]]))
        last = np.concatenate([[-np.inf], instants])[
            np.searchsorted(instants, start + TOL * np.maximum(1, start), side="right")
        ]
        prompt = _not_after(start, np.maximum(last, arrival))
        yield "a task starts on arrival or when nodes or the link get free", line.index, prompt
    in_line = s.policy.nodes == "all" or not s.policy.overtake or s.reading.mn_order == "strict"
    if not in_line or s.policy.order == "dc":
        return
    if s.policy.order == "fifo":
        starts = s.tasks["start"].dropna()
        yield (
            "tasks start in the order of arrival",
            starts.index,
            _not_after(starts.cummax(), starts),
        )
    elif s.policy.order == "edf" or s.given is not None:
        yield "nobody passes a waiting task of smaller rank", line.index, _in_turn(s, line)


def _in_turn(s: "Schedule", line: pd.DataFrame) -> NDArray[np.bool_]:
    """Tell per start whether everyone who waited then ranked no lower."""
    rows = s.tasks.index.get_indexer(line.index)
    if s.policy.order == "edf":  # equal deadlines are told apart by nothing but rounding
        rank = (line["arrival"] + line["deadline"]).to_numpy()
        slack = ROUNDING * np.maximum(1, rank)
    else:
        rank, slack = s.given.key[rows], np.zeros(len(rows))  # type: ignore[union-attr]
    known = line["arrival"].to_numpy() + 2 * TOL * np.maximum(1, line["arrival"].to_numpy())
    coming, waiting = list(np.argsort(known, kind="stable")[::-1]), list[Any]()
    start, good = line["start"].to_numpy(), np.ones(len(line), dtype=bool)
    for k, now in enumerate(start):
        while coming and known[coming[-1]] < now:
            i = coming.pop()
            heapq.heappush(waiting, (rank[i], rows[i], start[i]))
        while waiting and waiting[0][2] <= now + 2 * TOL * max(1, now):  # starts too
            heapq.heappop(waiting)
        if waiting:
            good[k] = waiting[0][:2] >= (rank[k] - slack[k], rows[k] if slack[k] == 0 else -1)
    return good


def _chunk_rules(s: "Schedule", chunks: pd.DataFrame) -> Iterator[Rule]:
    c, k = s.cluster, chunks.reset_index(drop=True)
    tasks = s.tasks.loc[pd.Index(chunks["task"].unique())]
    by = k.groupby("task", sort=False)
    sigma = s.tasks["sigma"].reindex(k["task"]).to_numpy()
    index = pd.Index(k["task"])
    yield "the shares of a task sum to 1", tasks.index, _equal(by["alpha"].sum(), 1.0, 1.0)
    yield "a task has one chunk per node", tasks.index, by.size() == tasks["nodes"]
    distinct = by["node"].nunique() == tasks["nodes"]
    yield "a task's chunks go to distinct nodes", tasks.index, distinct
    send = c.st + k["alpha"] * sigma * c.cms
    sent = _equal(k["send_start"] + send, k["send_end"], send)
    yield "a send takes ST + alpha sigma Cms", index, sent
    compute = c.sc + k["alpha"] * sigma * c.cps
    yield (
        "a node computes SC + alpha sigma Cps once it has received",
        index,
        _equal(k["send_end"] + compute, k["compute_end"], compute),
    )
    starts = by["send_start"].min()
    yield "the first send starts with the task", tasks.index, _equal(starts, tasks["start"], 0.0)
    ends, span = tasks["completion"], tasks["completion"] - tasks["start"]
    together = _equal(
        k["compute_end"], ends.reindex(k["task"]), span.reindex(k["task"]), ULPS + c.nodes
    )
    yield "all nodes of a task finish together", index, together
    yield from _exclusion_rules(s, k)


def _exclusion_rules(s: "Schedule", k: pd.DataFrame) -> Iterator[Rule]:
    if not s.is_physical:
        k = k[k["alpha"] > 0]
    spans = (s.tasks["completion"] - s.tasks["start"]).reindex(k["task"]).to_numpy()
    # a node's last instant is a sum over the chunks sent before
    clock = (ULPS + s.cluster.nodes) * np.finfo(float).eps * k["compute_end"].abs()
    first = k.groupby("task")["send_start"].transform("min")
    k = k.assign(slack=ROUNDING * spans + clock, first=first, place=pd.factorize(k["task"])[0])
    by_node = k.sort_values(["node", "send_start"], kind="stable")
    same = by_node["node"].eq(by_node["node"].shift(-1)).to_numpy()
    after = by_node["send_start"].shift(-1).to_numpy()
    free = ~same | _not_after(by_node["compute_end"] - by_node["slack"], after)
    yield "no node serves two chunks at once", pd.Index(by_node["task"]), free
    shared = s.reading.link == "shared"
    by_link = k.sort_values(["first", "place", "send_start"], kind="stable")
    together = (
        np.ones(len(by_link), dtype=bool)
        if shared
        else by_link["task"].eq(by_link["task"].shift(-1)).to_numpy()
    )
    after = by_link["send_start"].shift(-1, fill_value=np.inf).to_numpy()
    free = ~together | _not_after(by_link["send_end"] - by_link["slack"], after)
    yield "the head node sends one chunk at a time", pd.Index(by_link["task"]), free


def check_schedule(s: "Schedule", strict: bool = False) -> None:
    """Raise at the first rule that a schedule breaks.

    Parameters
    ----------
    s : Schedule
        The schedule with its policy and reading.
    strict : bool
        Also refuse non-positive shares under ``an_nodes="all"``.

    Raises
    ------
    ScheduleError
        Naming the rule, the reading and the first task that breaks it.
    """
    if strict and not s.is_physical:
        bad = s.tasks.index[~has_positive_shares(s.tasks, s.cluster)][0]
        raise ScheduleError(
            f"every share is positive: broken by task {plain(bad)!r} "
            f"({told(s.name, s.reading)}), whose n exceeds N*; E(N) is then a formula, "
            "not a schedule (reading an_nodes='best' avoids it)"
        )
    _raise_first(_given_rules(s), s)
    _raise_first(_task_rules(s), s)
    _raise_first(_chunk_rules(s, s.chunks), s)


def _raise_first(rules: Iterator[Rule], s: "Schedule") -> None:
    for rule, index, holds in rules:
        good = np.asarray(holds, dtype=bool)
        if not good.all():
            task = plain(index[int(np.argmin(good))])
            raise ScheduleError(f"{rule}: broken by task {task!r} ({told(s.name, s.reading)})")

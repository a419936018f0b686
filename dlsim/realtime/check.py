"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is the model of papers M (sections 3 and 4) and I (section 3) or a switch of the
recorded reading; nothing here asks how the planner came to its decisions. What holds where
nodes are released one by one is in `dlsim.realtime.check_releases`.
"""

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import ScheduleError
from dlsim.given import label
from dlsim.kernel import TOL, clock_origin
from dlsim.realtime.check_releases import release_rules
from dlsim.realtime.evidence import Result, Rule, scale_of
from dlsim.realtime.model import IN_ROUNDS, under
from dlsim.realtime.partition import Floats, has_positive_shares, table_for
from dlsim.rounding import ROUNDING, ULPS, equal, instant, not_after, overrun


def _given_rules(s: Result) -> Iterator[Rule]:
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
    most = s.negotiate * given.deadline
    offered = tasks["admitted"].to_numpy() & (agreed > 0)
    offered &= agreed <= most + instant(most, arrival + most)
    yield (
        "a deadline is the one asked for or an offer within the factor",
        tasks.index,
        (agreed == given.deadline) | (offered & (s.negotiate > 0)),
    )


def _task_rules(s: Result) -> Iterator[Rule]:
    tasks, refused = s.tasks, ~s.tasks["admitted"].to_numpy()
    ran = tasks["start"].notna().to_numpy()
    index, n = tasks.index, tasks["nodes"].to_numpy()
    arrival, deadline, scale = tasks["arrival"], tasks["deadline"], scale_of(s)
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
        ~ran | not_after(arrival, tasks["start"], scale),
    )
    late, doubt = (
        overrun(tasks["completion"], arrival, deadline),
        instant(deadline, tasks["completion"]),
    )
    told_so = (tasks["missed"] == (late > 0)) | (np.abs(late) <= doubt)
    told_so |= np.isnan(late) & tasks["missed"]
    met = np.asarray(late <= doubt)
    yield "missed means completion after the deadline", index, refused | told_so
    guarded = ran & (s.policy.admission or may_drop)
    yield "a guaranteed task meets its deadline", index, ~guarded | met
    if s.policy.partition in ("opr", "equal"):
        table = table_for(s.cluster, s.policy.partition)
        span = table.fixed[n] + tasks["sigma"].to_numpy() * table.unit[n]
        even = s.policy.partition == "equal"  # n sends in turn, after releases that count as one
        loose = ULPS + even * s.cluster.nodes, even * instant(scale, tasks["estimate"])
        ends_then = equal(tasks["start"] + span, tasks["completion"], span, *loose)
        yield "completion is start + E(sigma, n)", index, ~ran | ends_then
        same = equal(tasks["estimate"], tasks["completion"], span, *loose)
        yield "estimate is the completion", index, ~ran | same
    else:
        span = ROUNDING * (tasks["estimate"] - tasks["start"])
        safe = not_after(tasks["completion"] - span, tasks["estimate"], scale)
        yield "no task is complete after its estimate", index, ~ran | safe
        later = overrun(tasks["estimate"], arrival, deadline)
        promised = np.asarray(later <= instant(deadline, tasks["estimate"]))
        yield "a guaranteed task's estimate meets its deadline", index, ~guarded | promised
    yield from _count_rules(s, ran, n)
    yield from _service_rules(s, ran)
    yield from _order_rules(s, s.tasks[ran].sort_values("start", kind="stable"))


def _count_rules(s: Result, ran: NDArray[np.bool_], n: NDArray[np.int64]) -> Iterator[Rule]:
    index, table = s.tasks.index, table_for(s.cluster, s.policy.partition)
    if s.policy.partition == "opr":
        positive = has_positive_shares(s.tasks, s.cluster)
        formula = s.policy.nodes == "all" and s.reading.an_nodes == "all"
        yield "every share is positive", index, positive | formula
    if s.policy.nodes == "user" and s.given is not None:
        asked = pd.Series(s.given.wanted, s.given.labels).reindex(index).to_numpy()
        yield "a user's task runs on the nodes asked for", index, ~ran | (n == asked)
    elif s.policy.nodes == "all":
        wanted = np.full(len(n), s.cluster.nodes)
        if s.reading.an_nodes == "best":
            wanted = np.searchsorted(table.least[2:-1], s.tasks["sigma"].to_numpy()) + 1
        yield "an all-nodes task runs on all nodes (or N*)", index, ~ran | (n == wanted)
    elif s.policy.nodes == "min" and s.policy.partition in ("opr", "equal"):
        fewer = np.maximum(n - 1, 1)
        since = s.tasks["start" if s.reading.mn_count == "at_start" else "arrival"]
        time = table.fixed[fewer] + s.tasks["sigma"].to_numpy() * table.unit[fewer]
        late = overrun(since, s.tasks["arrival"], s.tasks["deadline"]) + time
        # half of what the engine allows, so that neither's rounding matters
        enough = (n > 1) & (late <= TOL / 2 * s.tasks["deadline"] - _grain(s, since))
        yield "no fewer nodes would have met the deadline", index, ~ran | ~enough


def _grain(s: Result, at: Any) -> Floats:
    """Return what the table rounds off an instant that the engine has on its own clock."""
    origin = clock_origin(s.tasks["arrival"].to_numpy())
    return np.spacing(np.abs(np.asarray(at, dtype=float))) * (origin > 0)


def _link_free(s: Result, tasks: pd.DataFrame) -> Floats:
    """When the last send of each task ends, where tasks share the link; else -inf."""
    if s.reading.link != "shared":
        return np.full(len(tasks), -np.inf)
    if s.policy.partition not in ("opr", "equal"):
        last = s.chunks.groupby("task")["send_end"].max()
        return last.reindex(tasks.index).to_numpy(dtype=float)
    sends = tasks["sigma"] * s.cluster.cms + tasks["nodes"] * s.cluster.st
    return np.asarray(tasks["start"] + sends)


def _service_rules(s: Result, ran: NDArray[np.bool_]) -> Iterator[Rule]:
    """Nobody is sent away from an idle cluster that could serve him."""
    serial = s.policy.partition == "pieces" and s.reading.link == "shared"
    if s.policy.partition in IN_ROUNDS or serial:  # no formula that is not the engine's
        return
    tasks, top = s.tasks, s.cluster.nodes
    table = table_for(s.cluster, s.policy.partition)
    arrival, sigma = tasks["arrival"].to_numpy(), tasks["sigma"].to_numpy()
    if s.policy.nodes == "user" and s.given is not None:
        n = pd.Series(s.given.wanted, s.given.labels).reindex(tasks.index).to_numpy()
    elif s.policy.nodes != "all" or s.reading.an_nodes == "best":
        n = np.searchsorted(table.least[2:-1], sigma) + 1
    else:
        n = np.full(len(tasks), top)
    budget = max(1.0, s.negotiate) * tasks["deadline"].to_numpy()
    possible = table.fixed[n] + sigma * table.unit[n] <= budget
    ends = np.where(ran, np.fmax(tasks["estimate"], _link_free(s, tasks)), -np.inf)
    busy = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
    before = np.arange(len(tasks))
    if s.reading.batch_order == "policy" or not s.policy.admission:  # any of one instant first
        before = np.searchsorted(arrival, arrival + instant(scale_of(s), arrival), side="right")
    yield (
        "a task that finds the cluster idle and can meet its deadline is served",
        tasks.index,
        ran | ~possible | (busy[before] > arrival - _grain(s, arrival)),
    )


def _order_rules(s: Result, line: pd.DataFrame) -> Iterator[Rule]:
    """Who starts when; `line` holds the tasks that ran, by start."""
    start, arrival, scale = line["start"].to_numpy(), line["arrival"].to_numpy(), scale_of(s)
    ends = np.fmax(line["estimate"].to_numpy(), _link_free(s, line))
    early = s.policy.partition not in ("opr", "equal", "umr")
    if s.policy.nodes == "all":
        before = np.concatenate([[-np.inf], ends[:-1]])[: len(line)]
        yield "all-nodes tasks run one after another", line.index, not_after(before, start, scale)
        prompt = not_after(start, np.maximum(before, arrival), scale)
        yield "the cluster does not idle while a task waits", line.index, prompt
    else:
        instants = np.sort(np.concatenate([line["estimate"], _link_free(s, line)]))
        if early or s.reading.release == "finish":
            instants = np.sort(np.concatenate([instants, s.chunks["compute_end"]]))
        if s.policy.order == "dc" or s.reading.commit == "last":  # a newcomer may move starts
            instants = np.sort(np.concatenate([instants, s.tasks["arrival"]]))
        last = np.concatenate([[-np.inf], instants])[
            np.searchsorted(instants, start + instant(scale, start), side="right")
        ]
        prompt = not_after(start, np.maximum(last, arrival), scale)
        yield "a task starts on arrival or when nodes or the link get free", line.index, prompt
    passes = s.policy.overtake or s.reading.backfill == "on"
    in_line = s.policy.nodes == "all" or not passes or s.reading.mn_order == "strict"
    if not in_line or s.policy.order == "dc":
        return
    if s.policy.order == "fifo":
        starts = s.tasks["start"].dropna()
        yield (
            "tasks start in the order of arrival",
            starts.index,
            not_after(starts.cummax(), starts, scale),
        )
    elif s.policy.order == "edf" or s.given is not None:
        yield "nobody passes a waiting task of smaller rank", line.index, _in_turn(s, line)


def _in_turn(s: Result, line: pd.DataFrame) -> NDArray[np.bool_]:
    """Tell per start whether everyone who waited then ranked no lower."""
    rows = s.tasks.index.get_indexer(line.index)
    if s.policy.order == "edf":  # equal deadlines are told apart by nothing but rounding
        rank = (line["arrival"] + line["deadline"]).to_numpy()
        slack = ROUNDING * line["deadline"].to_numpy() + instant(scale_of(s), rank)
    else:
        rank, slack = s.given.key[rows], np.zeros(len(rows))  # type: ignore[union-attr]
    scale, known = scale_of(s), line["arrival"].to_numpy()
    known = known + instant(scale, known)
    coming, waiting = list(np.argsort(known, kind="stable")[::-1]), list[Any]()
    start, good = line["start"].to_numpy(), np.ones(len(line), dtype=bool)
    until = start + instant(scale, start)
    for k, now in enumerate(start):
        while coming and known[coming[-1]] < now:
            i = coming.pop()
            heapq.heappush(waiting, (rank[i], rows[i], start[i]))
        while waiting and waiting[0][2] <= until[k]:  # starts too
            heapq.heappop(waiting)
        if waiting:
            good[k] = waiting[0][:2] >= (rank[k] - slack[k], rows[k] if slack[k] == 0 else -1)
    return good


def _chunk_rules(s: Result, chunks: pd.DataFrame) -> Iterator[Rule]:
    c, k = s.cluster, chunks.reset_index(drop=True)
    tasks = s.tasks.loc[pd.Index(chunks["task"].unique())]
    by = k.groupby("task", sort=False)
    sigma = s.tasks["sigma"].reindex(k["task"]).to_numpy()
    index = pd.Index(k["task"])
    yield "the shares of a task sum to 1", tasks.index, equal(by["alpha"].sum(), 1.0, 1.0)
    rounds = 1 if s.runs is None else s.runs["rounds"].reindex(tasks.index)
    yield "a task has one chunk per node", tasks.index, by.size() == tasks["nodes"] * rounds
    distinct = by["node"].nunique() == tasks["nodes"]
    yield "a task's chunks go to distinct nodes", tasks.index, distinct
    send = c.st + k["alpha"] * sigma * c.cms
    sent = equal(k["send_start"] + send, k["send_end"], send)
    yield "a send takes ST + alpha sigma Cms", index, sent
    compute = c.sc + k["alpha"] * sigma * c.cps
    busy = k.groupby(["task", "node"], sort=False)["compute_end"].shift()
    yield (
        "a node computes SC + alpha sigma Cps once it has received",
        index,
        equal(np.fmax(k["send_end"], busy) + compute, k["compute_end"], compute),
    )
    starts = by["send_start"].min()
    yield "the first send starts with the task", tasks.index, equal(starts, tasks["start"], 0.0)
    if s.policy.partition == "opr":
        ends, span = tasks["completion"], tasks["completion"] - tasks["start"]
        together = equal(
            k["compute_end"], ends.reindex(k["task"]), span.reindex(k["task"]), ULPS + c.nodes
        )
        yield "all nodes of a task finish together", index, together
    else:
        yield from release_rules(s, chunks)
    yield from _exclusion_rules(s, k)


def _exclusion_rules(s: Result, k: pd.DataFrame) -> Iterator[Rule]:
    if not s.is_physical:
        k = k[k["alpha"] > 0]
    spans = (s.tasks["completion"] - s.tasks["start"]).reindex(k["task"]).to_numpy()
    # a node's last instant is a sum over the chunks sent before
    clock = (ULPS + s.cluster.nodes) * np.finfo(float).eps * k["compute_end"].abs()
    first = k.groupby("task")["send_start"].transform("min")
    scale = scale_of(s)
    k = k.assign(slack=ROUNDING * spans + clock, first=first, place=pd.factorize(k["task"])[0])
    by_node = k.sort_values(["node", "send_start"], kind="stable")
    same = by_node["node"].eq(by_node["node"].shift(-1)).to_numpy()
    if s.policy.partition in IN_ROUNDS:  # it receives the next chunk while it computes
        same = same & by_node["task"].ne(by_node["task"].shift(-1)).to_numpy()
    after = by_node["send_start"].shift(-1).to_numpy()
    free = ~same | not_after(by_node["compute_end"] - by_node["slack"], after, scale)
    yield "no node serves two chunks at once", pd.Index(by_node["task"]), free
    shared = s.reading.link == "shared"
    by_link = k.sort_values(["first", "place", "send_start"], kind="stable")
    one = by_link["task"].eq(by_link["task"].shift(-1)).to_numpy()
    together = np.full(len(by_link), shared) | (one & (s.policy.partition != "pieces"))
    after = by_link["send_start"].shift(-1, fill_value=np.inf).to_numpy()
    free = ~together | not_after(by_link["send_end"] - by_link["slack"], after, scale)
    yield "the head node sends one chunk at a time", pd.Index(by_link["task"]), free


def check_schedule(s: Result, strict: bool = False) -> None:
    """Raise at the first rule that a schedule breaks."""
    if s.parts is not None:
        _check_parts(s)
        return
    if strict and not s.is_physical:
        bad = s.tasks.index[~has_positive_shares(s.tasks, s.cluster)][0]
        raise ScheduleError(
            f"every share is positive: broken by task {label(bad)!r} "
            f"({under(s.name, s.reading)}), whose n exceeds N*; E(N) is then a formula, "
            "not a schedule (reading an_nodes='best' avoids it)"
        )
    _raise_first(_given_rules(s), s)
    _raise_first(_task_rules(s), s)
    _raise_first(_chunk_rules(s, s.chunks), s)


def _check_parts(s: Result) -> None:
    """Pieces that are admitted one by one are tasks; their sums are the table's."""
    assert s.parts is not None
    assert s.given is not None
    check_schedule(s.parts)
    _raise_first(_given_rules(s), s)
    alpha = s.chunks.groupby("task")["alpha"].sum().reindex(s.tasks.index).fillna(0.0)
    asked = pd.Series(s.given.wanted, s.given.labels).reindex(s.tasks.index)
    served = equal(alpha, s.tasks["nodes"] / asked, 1.0)
    ends = s.chunks.groupby("task")["compute_end"].max().reindex(s.tasks.index)
    done = equal(ends, s.tasks["completion"], 0.0) | ~s.tasks["admitted"].to_numpy()
    _raise_first(
        iter(
            [
                ("a task's pieces are those that were admitted", s.tasks.index, served),
                ("a task is complete when its last piece is", s.tasks.index, done),
            ]
        ),
        s,
    )


def _raise_first(rules: Iterator[Rule], s: Result) -> None:
    for rule, index, holds in rules:
        good = np.asarray(holds, dtype=bool)
        if not good.all():
            task = label(index[int(np.argmin(good))])
            raise ScheduleError(f"{rule}: broken by task {task!r} ({under(s.name, s.reading)})")

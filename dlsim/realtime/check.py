"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is paper M's section 3 and 4 (the model) or a switch of the recorded reading;
nothing here asks how the planner came to its decisions.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import ScheduleError
from dlsim.kernel import TOL
from dlsim.realtime.chunks import has_positive_shares
from dlsim.realtime.partition import table_of

if TYPE_CHECKING:
    from dlsim.realtime.engine import Schedule

# The engine decides with TOL; what is recomputed here by another route may differ by a
# few roundings of sums over up to N chunks, relative to the times themselves.
ROUNDING = 1e-9

Floats = NDArray[np.float64]
Rule = tuple[str, pd.Index, Any]


def _at_most(a: Any, b: Any, slack: float = ROUNDING) -> NDArray[np.bool_]:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(a <= b + slack * np.maximum(1, np.maximum(np.abs(a), np.abs(b))))


def _equal(a: Any, b: Any) -> NDArray[np.bool_]:
    return _at_most(a, b) & _at_most(b, a)


def _task_rules(s: "Schedule") -> Iterator[Rule]:
    tasks, refused = s.tasks, ~s.tasks["admitted"].to_numpy()
    ran = tasks["start"].notna().to_numpy()
    index, n = tasks.index, tasks["nodes"].to_numpy()
    due = (tasks["arrival"] + tasks["deadline"]).to_numpy()
    blank = ~ran & (n == 0) & tasks["completion"].isna() & ~tasks["missed"]
    yield "a refused task has no start, nodes or completion", index, ~refused | blank
    may_drop = not s.policy.admission and s.reading.late == "drop"
    yield "an admitted task runs", index, refused | ran | (tasks["missed"] & may_drop)
    yield "without admission control nobody is refused", index, ~refused | s.policy.admission
    yield "a task runs on 1..N nodes", index, ~ran | ((n >= 1) & (n <= s.cluster.nodes))
    yield (
        "no task starts before it arrives",
        index,
        ~ran | _at_most(tasks["arrival"], tasks["start"]),
    )
    met = np.asarray(tasks["completion"] <= due + TOL * np.maximum(1, np.abs(due)))
    yield "missed means completion after the deadline", index, refused | (tasks["missed"] == ~met)
    guarded = ran & (s.policy.admission or may_drop)
    yield "a guaranteed task meets its deadline", index, ~guarded | met
    table = table_of(s.cluster)
    span = table.fixed[n] + tasks["sigma"].to_numpy() * table.unit[n]
    ends = tasks["start"] + span
    yield "completion is start + E(sigma, n)", index, ~ran | _equal(ends, tasks["completion"])
    yield from _count_rules(s, ran, n, due)


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
        ends = since + table.fixed[fewer] + s.tasks["sigma"].to_numpy() * table.unit[fewer]
        enough = (n > 1) & np.asarray(ends <= due + TOL * np.maximum(1, np.abs(due)))
        yield "no fewer nodes would have met the deadline", index, ~ran | ~enough


def _chunk_rules(s: "Schedule", chunks: pd.DataFrame) -> Iterator[Rule]:
    c, k = s.cluster, chunks.reset_index(drop=True)
    tasks = s.tasks.loc[pd.Index(chunks["task"].unique())]
    by = k.groupby("task", sort=False)
    sigma = s.tasks["sigma"].reindex(k["task"]).to_numpy()
    index = pd.Index(k["task"])
    yield "the shares of a task sum to 1", tasks.index, _equal(by["alpha"].sum(), 1.0)
    yield "a task has one chunk per node", tasks.index, by.size() == tasks["nodes"]
    distinct = by["node"].nunique() == tasks["nodes"]
    yield "a task's chunks go to distinct nodes", tasks.index, distinct
    send = c.st + k["alpha"] * sigma * c.cms
    yield "a send takes ST + alpha sigma Cms", index, _equal(k["send_start"] + send, k["send_end"])
    compute = c.sc + k["alpha"] * sigma * c.cps
    yield (
        "a node computes SC + alpha sigma Cps once it has received",
        index,
        _equal(k["send_end"] + compute, k["compute_end"]),
    )
    starts = by["send_start"].min()
    yield "the first send starts with the task", tasks.index, _equal(starts, tasks["start"])
    ends = s.tasks["completion"].reindex(k["task"])
    yield "all nodes of a task finish together", index, _equal(k["compute_end"], ends)
    yield from _exclusion_rules(s, k)


def _exclusion_rules(s: "Schedule", k: pd.DataFrame) -> Iterator[Rule]:
    if not s.is_physical:
        k = k[k["alpha"] > 0]
    by_node = k.sort_values(["node", "send_start"], kind="stable")
    same = by_node["node"].eq(by_node["node"].shift(-1)).to_numpy()
    after = by_node["send_start"].shift(-1).to_numpy()
    free = ~same | _at_most(by_node["compute_end"], after)
    yield "no node serves two chunks at once", pd.Index(by_node["task"]), free
    shared = s.reading.link == "shared"
    keys = ["send_start"] if shared else ["task", "send_start"]
    by_link = k.sort_values(keys, kind="stable")
    together = (
        np.ones(len(by_link), dtype=bool)
        if shared
        else by_link["task"].eq(by_link["task"].shift(-1)).to_numpy()
    )
    after = by_link["send_start"].shift(-1, fill_value=np.inf).to_numpy()
    free = ~together | _at_most(by_link["send_end"], after)
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
            f"every share is positive: broken by task {bad!r}, whose n exceeds N*; "
            "E(N) is then a formula, not a schedule (reading an_nodes='best' avoids it)"
        )
    _raise_first(_task_rules(s), s)
    _raise_first(_chunk_rules(s, s.chunks), s)


def _raise_first(rules: Iterator[Rule], s: "Schedule") -> None:
    for rule, index, holds in rules:
        good = np.asarray(holds, dtype=bool)
        if not good.all():
            task = index[int(np.argmin(good))]
            raise ScheduleError(
                f"{rule}: broken by task {task!r} ({s.name}, reading {s.reading.changes()})"
            )

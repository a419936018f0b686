"""Why a task was refused: what it would have needed, and who stood in its way.

Everything is found by asking the engine again. Tasks that had started when the newcomer
came are given to it as arriving at their start: each then starts at once, on as many nodes,
and the state is the one the newcomer met. Whether that worked is checked, and nothing is said
about who is in the way where it did not.
"""

from typing import Any, NamedTuple

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import label
from dlsim.kernel import same_instant
from dlsim.realtime import Offer, Schedule, simulate


class Refusal(NamedTuple):
    """Why one task was refused."""

    offer: Offer | None
    alone: bool | None
    rival: object


def _started(s: Schedule, task: Any) -> pd.DataFrame:
    """Return the tasks that ran when the newcomer came, as if each had arrived at its start."""
    now, table = s.tasks.loc[task, "arrival"], s.tasks
    ran = table["start"].notna() & (table["start"] <= now) & (table.index != task)
    ran &= table["arrival"] < now
    moved = table[ran].sort_values("start", kind="stable")
    due = moved["arrival"] + moved["deadline"]
    return moved.assign(arrival=moved["start"], deadline=due - moved["start"])


def _again(s: Schedule, given: pd.DataFrame, rows: list[pd.DataFrame]) -> Schedule:
    """Run the policy on some of its tasks, with the columns that it was given."""
    tasks = pd.concat(rows)[["arrival", "sigma", "deadline"]]
    if "user_nodes" in given:
        tasks = tasks.join(given["user_nodes"])
    return simulate(tasks, s.cluster, s.policy, s.reading)


def _same_runs(old: pd.DataFrame, new: pd.DataFrame) -> bool:
    """Tell whether tasks run as they did: same start, nodes and estimate."""
    if not new["admitted"].all() or not (new["nodes"] == old["nodes"]).all():
        return False
    return all(
        same_instant(float(a), float(b), float(span))
        for name in ("start", "estimate")
        for a, b, span in zip(old[name], new[name], old["deadline"], strict=True)
    )


def why_refused(s: Schedule, tasks: pd.DataFrame, task: Any) -> Refusal:
    """Explain a refusal."""
    try:
        offer = s.offer(task)
    except InputError:  # pieces of a task that are admitted one by one
        offer = None
    started = _started(s, task)
    table, mine = s.tasks, s.tasks.loc[[task]]
    waits = table["admitted"] & ~table.index.isin(started.index) & (table.index != task)
    waiting = table[waits].sort_values("start", kind="stable")  # as they would start
    waiting = waiting.assign(
        arrival=mine["arrival"].iloc[0],
        deadline=waiting["arrival"] + waiting["deadline"] - mine["arrival"].iloc[0],
    )
    unknown = Refusal(offer, None, None)
    if not s.policy.admission or s.parts is not None or (waiting["deadline"] <= 0).any():
        return unknown
    state = _again(s, tasks, [started, waiting, mine])
    rest = state.tasks.drop(index=task)
    old = table.loc[rest.index]
    if state.tasks.loc[task, "admitted"] or not _same_runs(old, rest):
        return unknown
    for count in range(len(waiting) + 1):
        one = _again(s, tasks, [started, waiting.iloc[:count], mine])
        if not one.tasks.loc[task, "admitted"]:
            rival = waiting.index[count - 1] if count else None
            return Refusal(offer, count > 0, label(rival))
    return unknown

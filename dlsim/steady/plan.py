"""What those do who execute a schedule: one document per schedule, for a program or a person.

period
    The time T_p. In every period each site computes what `work` lists for it, and sends over the
    connections of `connect` what others compute in the next one; what it needs from others came
    in the period before. A schedule is kept until the next one begins.
work
    Who computes what for whom: application, from (its site), at, units (load units per
    period), data (sent for them per period, 0 at home).
connect
    What to keep open: from, to, connections, and the links that they pass. Two sites on one
    router need none.
site, link, application, share, pair
    What the schedule was planned with: name, speed, gateway; name, bandwidth (of a connection),
    max_connect (null: no limit), of the links used; name, origin, priority (or that of each site),
    work and data per unit, units per period; the owners' policies, as in `dlsim.steady.store`.

Numbers are decimals that hold exactly: a reader that takes them as fractions finds every limit
kept.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dlsim.steady.check import exact
from dlsim.steady.outcome import Period
from dlsim.steady.store import plain, rows_of

_ABOUT = (
    "In every period each site computes its rows of work and sends, over the connections of "
    "connect, what others compute in the next; see dlsim.steady.plan"
)


def plan_of(schedule: Period | None, **facts: Any) -> dict[str, Any]:
    """Return a periodic schedule as tables that JSON can hold, facts of any kind before them.

    Without a schedule there is nothing to do.

    >>> from dlsim.files import shared_file
    >>> from dlsim.steady import read_platform, solve
    >>> wan = read_platform(shared_file("data/examples/wan.toml"))
    >>> plan_of(solve(wan, "MILP").periodic())["connect"]
    [{'from': 'cluster 0', 'to': 'cluster 1', 'connections': 2, 'links': ['backbone']}]
    """
    if schedule is None:
        return {"about": _ABOUT, **facts, "work": [], "connect": []}
    p, (sites, apps) = schedule.platform, schedule.platform.names
    opened = np.argwhere(np.asarray(schedule.connections) > 0).tolist()
    used = {label for pair in opened for label in p.routes[tuple(pair)]}
    links = p.links.loc[[label in used for label in p.links.index]]
    most = [None if math.isinf(count) else count for count in links["max_connect"]]
    priority: list[Any] = p.priority.tolist()
    if p.priority.ndim == 2:
        priority = [dict(zip(sites, row, strict=True)) for row in priority]
    pair = [
        {"between": [sites[k], sites[to]], "connections": held} for k, to in opened
        if (k < to or [to, k] not in opened) and (held := p.limits.between(k, to)) < math.inf
    ]  # fmt: skip
    work = [
        {"application": apps[a], "from": sites[p.origin[a]], "at": sites[to], "units": units,
         "data": units * exact(p.data[a].item()) if to != p.origin[a] else 0}
        for (a, to), units in np.ndenumerate(schedule.units) if units
    ]  # fmt: skip
    connect = [
        {"from": sites[k], "to": sites[to], "connections": schedule.connections[k, to],
         "links": p.routes[k, to]}
        for k, to in opened
    ]  # fmt: skip
    share = [
        {"site": sites[cap.cluster], "origins": [sites[k] for k in cap.origins], "share": cap.share}
        for cap in p.limits.shares
    ]
    return plain({
        "about": _ABOUT, **facts, "period": schedule.length, "work": work, "connect": connect,
        "site": rows_of(name=sites, speed=p.speed, gateway=p.gateway),
        "link": rows_of(name=links.index, bandwidth=links["bandwidth"], max_connect=most),
        "application": rows_of(
            name=apps, origin=[sites[k] for k in p.origin], priority=priority, work=p.work,
            data=p.data, units=schedule.units.sum(axis=1),
        ),
        "share": share, "pair": pair,
    })  # fmt: skip


def text_of(plan: Mapping[str, Any]) -> str:
    """Return a document as JSON with a row on every line."""

    def lines(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        return json.dumps(value)

    return "{\n " + ",\n ".join(f"{json.dumps(k)}: {lines(v)}" for k, v in plan.items()) + "\n}\n"

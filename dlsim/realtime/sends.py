r"""How a load ends soonest in any number of rounds, and on nodes that are not equal.

Sends follow one another over one link, without set-up times. Who is sent to after whom being given,
the best sizes are a linear program. **Any number of rounds** on equal nodes: by an instant e each
of the k nodes released first has computed no more than :math:`(e - r_i)/\chi`, and the link has
sent the others no more than :math:`(e - r_{k+1})/\tau`, so that

.. math:: \sigma \leq \sum_{i \leq k} \frac{e - r_i}{\chi} + \frac{e - r_{k+1}}{\tau}
          \quad (k < n), \qquad \sigma \leq \sum_{i \leq n} \frac{e - r_i}{\chi} .

Ever more rounds come as near as one likes to the least e that meets all of these: link time flows
into node time that is not earlier, and the smallest cut is the largest flow. **Unequal nodes** in
one round that are free together are best served in the order of their links, the fastest first,
however fast they compute: of two neighbours a, b the order matters by
:math:`T (\tau_b - \tau_a) / ((\tau_a + \chi_a)(\tau_b + \chi_b))` in what they carry in T, and not
at all in when they leave the link. With release times neither link nor release decides.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import coo_array

from dlsim.errors import InputError
from dlsim.given import MOST, Floats, column, instance, number, option, table, whole
from dlsim.realtime.model import MOST_ROUNDS, Cluster, node_columns, release_times
from dlsim.realtime.partition import SIZE

#: Most unequal nodes of which all orders are tried, and most sends of one linear program.
MOST_UNEQUAL, MOST_SENDS = 5, 20_000
#: Orders of sending to unequal nodes: the best of all, by link, by release.
SEND_ORDERS = ("best", "link", "release")
#: What is less than this part of a load is no send, but a rounding of the program.
ROUNDED = 1e-9


class Sends(NamedTuple):
    """How a load is sent.

    `completion` is when the last node has computed its part, `bound` an instant before which no
    schedule ends; `sends` has node share send_start send_end compute_end, in order of transmission.
    """

    completion: float
    bound: float
    sends: pd.DataFrame


def _best_shares(who: Sequence[int], release: Floats, cms: Floats, cps: Floats) -> Floats:
    """Return the shares by which sends of a unit load to these nodes, in this order, end soonest.

    Variables: when each send begins, from when its data are computed, its size; the completion.
    """
    node, count = np.asarray(who), len(who)
    send, compute, size = np.arange(3 * count).reshape(3, count)
    before, again = dict[int, int](), list[tuple[int, int]]()
    for place, one in enumerate(who):
        if one in before:
            again.append((before[one], place))
        before[one] = place
    old, new = np.array(again, dtype=int).reshape(-1, 2).T
    end = np.full(count, 3 * count)
    later = [  # the first begins, and lasts as long as its size times a cost, before the second
        (send[:-1], size[:-1], cms[node[:-1]], send[1:]),
        (send, size, cms[node], compute),
        (compute[old], size[old], cps[node[old]], compute[new]),
        (compute, size, cps[node], end),
    ]
    first, length, cost, second = (np.concatenate(some) for some in zip(*later, strict=True))
    row, ones = np.arange(len(first)), np.ones(len(first))
    values, columns = np.concatenate([ones, cost, -ones]), np.concatenate([first, length, second])
    shape = len(first), 3 * count + 1
    most = coo_array((values, (np.tile(row, 3), columns)), shape=shape)
    everything = np.zeros((1, shape[1]))
    everything[0, size] = 1
    goal = np.append(np.zeros(3 * count), 1.0)
    least = np.concatenate([release[node], np.zeros(2 * count + 1)])
    bounds = np.column_stack([least, np.full(shape[1], np.inf)])
    found = linprog(goal, most, np.zeros(shape[0]), everything, [1.0], bounds, method="highs")
    if not found.success:
        raise InputError(f"no best sizes of {count} sends were found: {found.message}")
    return np.asarray(found.x[size])


def _sent(
    sigma: float, who: Sequence[int], release: Floats, cms: Floats, cps: Floats, bound: float
) -> Sends:
    """Send the best sizes in this order, as soon as may be."""
    origin = float(release[list(who)].min())
    unit = sigma * float((cms + cps).max())
    shares = _best_shares(who, (release - origin) / unit, cms * sigma / unit, cps * sigma / unit)
    shares[shares < ROUNDED] = 0
    shares /= shares.sum()
    link, done, rows = origin, release.astype(float), []
    for node, share in zip(who, shares.tolist(), strict=True):
        if share > 0:
            start = max(link, release[node])
            link = start + share * sigma * cms[node]
            done[node] = max(done[node], link) + share * sigma * cps[node]
            rows.append((node, share, start, link, done[node]))
    names = ["node", "share", "send_start", "send_end", "compute_end"]
    sends = pd.DataFrame(rows, columns=names)
    return Sends(float(sends["compute_end"].max()), bound, sends)


def rounds_limit(sigma: float, release: Sequence[float] | Floats, cluster: Cluster) -> Floats:
    """Return when a load ends at the soonest, however many rounds it is sent in (no set-up times).

    One limit for the node released first, for the first two, ..., for all n: shape (n,), never
    rising. One round needs until 38.5 here (`split_load`). Two nodes that compute all the time:
    until 31.5.

    >>> rounds_limit(14, [0, 21, 90], Cluster(nodes=3, cms=1, cps=3)).tolist()
    [42.0, 31.5, 31.5]
    """
    instance("cluster", cluster, Cluster)
    if cluster.st > 0 or cluster.sc > 0:
        raise InputError(
            f"without limit to the rounds there must be no set-up times; got st={cluster.st}, "
            f"sc={cluster.sc}: use st=0, sc=0, or partition 'umr' with rounds='best'"
        )
    sigma = float(number("sigma", sigma, above=True, rule=SIZE))
    times = release_times(release, cluster)
    tau, chi, k = cluster.cms, cluster.cps, np.arange(len(times))
    since = times - times[0]
    if chi == 0:  # computing is free: the first node has all of it
        return np.full(len(times), times[0] + sigma * tau)
    sums = np.cumsum(since)
    cut = (sigma * tau * chi + chi * since + tau * (sums - since)) / (chi + k * tau)
    each = np.maximum(np.maximum.accumulate(cut), (sigma * chi + sums) / (k + 1))
    return np.asarray(times[0] + np.minimum.accumulate(each))


def split_in_rounds(
    sigma: float, release: Sequence[float] | Floats, cluster: Cluster, rounds: int = 4
) -> Sends:
    """Split one load over equal nodes, numbered by release, by the best sizes of several rounds.

    After each release there are so many rounds over all nodes that are released by then, those
    released first being sent to first; ``bound`` is `rounds_limit`, whose refusals it shares.

    >>> best = split_in_rounds(14, [0, 21], Cluster(nodes=2, cms=1, cps=3), rounds=8)
    >>> round(best.completion, 2), best.bound
    (31.5, 31.5)
    """
    limits = rounds_limit(sigma, release, cluster)
    rounds = whole("rounds", rounds, 1, MOST_ROUNDS, f"a whole number in 1..{MOST_ROUNDS}")
    times = release_times(release, cluster)
    costs = np.full(len(times), cluster.cms), np.full(len(times), cluster.cps)
    count, best = int(np.argmin(limits)) + 1, None
    while best is None or (count < len(times) and times[count] < best.completion):
        count += best is not None
        phases = np.unique(np.searchsorted(times[:count], times[:count], side="right"))
        who = [node for phase in phases.tolist() for _ in range(rounds) for node in range(phase)]
        if len(who) > MOST_SENDS:
            raise InputError(
                f"a program decides at most {MOST_SENDS} sends, got {len(who)}: give fewer "
                "rounds or release times, or use rounds_limit, which bounds any number"
            )
        best = _sent(sigma, who, times, *costs, float(limits[-1]))
    return best

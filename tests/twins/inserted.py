"""Slow, plain twin of paper I's policies: tasks planned one behind another, in exact arithmetic.

The cluster is a list of N instants, one per node. Every test plans every waiting task anew;
nothing is kept but what was dispatched. It shares no code with dlsim.
"""

from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from math import inf

from gmpy2 import mpq as Fraction

from tests.twins import realtime, splits

#: The switches of paper M that act here, and paper I's own; the default first.
DEFAULTS = {
    "mn_order": "skip",
    "mn_count": "at_start",
    "link": "per_task",
    "batch_order": "index",
    "batch_commit": "replan",
    "same_time": "dispatch",
    "release": "estimate",
    "commit": "first",
    "backfill": "off",
    "split": "all",
    "scope": "chosen",
    "ties": "fail",
    "count_single": "no",
}
RULES = ["arrival", "admitted", "replanned", "dispatched", "rtgrid"]


@dataclass
class Task(realtime.Task):
    """A task with the number of nodes that its user asks for."""

    user_nodes: object = None


@dataclass(frozen=True)
class Record(realtime.Record):
    """A row of the result with what paper I adds; `pieces` are those admitted."""

    estimate: object = None
    chunks: tuple = ()
    pieces: object = None


class Records(realtime.Records):
    """One `Record` per task, and the counting table: rule -> its four counts."""

    counts = None


@dataclass(frozen=True)
class Entry:
    """A planned task: which nodes, what each is sent, when each may serve the next task."""

    task: Task
    nodes: tuple
    chunks: tuple
    estimate: object
    latest: object  # latest instant at which one of its nodes gets free
    seen: tuple  # n as found, and all N instants r_1 <= ... <= r_N

    @property
    def start(self):
        return min(c.send_start for c in self.chunks)

    @property
    def sent(self):
        return max(c.send_end for c in self.chunks)

    def finish(self, place):
        return max(c.compute_end for c in self.chunks if c.place == place)

    @property
    def completion(self):
        return max(c.compute_end for c in self.chunks)


@cache
def known(*_):
    """What every run with these costs and partition may look up: times, and sizes of chunks."""
    return {}, {}


class Twin:
    """One run: `free` holds the N instants.

    Orders are fifo, edf and user, nodes min, fragment, user and, of their true optimum, all.
    """

    def __init__(self, costs, order, nodes, partition, rounds=1, reading=None):
        self.costs, self.order, self.nodes = costs, order, nodes
        self.partition, self.rounds = partition, rounds
        self.reading = DEFAULTS | (reading or {})
        assert set(self.reading) == set(DEFAULTS)
        self.shared = self.reading["link"] == "shared"
        self.backfills = (self.reading["backfill"], self.reading["mn_order"]) == ("on", "skip")
        self.backfills = self.backfills and nodes != "all"
        self.frozen = self.reading["mn_count"] == "frozen"
        self.free = [Fraction(0)] * costs.nodes
        self.link_free = Fraction(0)
        self.waiting = []
        self.done = {}
        self.counted = {rule: [] for rule in RULES}
        self.times, self.rounds_of = known(
            costs.nodes, costs.cms, costs.cps, costs.st, costs.sc, partition, rounds
        )

    def copy(self):
        """Return a twin in the same state, which goes on for itself."""
        other = copy(self)
        other.free, other.waiting, other.done = list(self.free), list(self.waiting), {**self.done}
        other.counted = {rule: list(rows) for rule, rows in self.counted.items()}
        return other

    # --- how many nodes -------------------------------------------------------------------

    def time(self, sigma, n):
        """What n nodes free at one instant are planned to take."""
        if (sigma, n) not in self.times:
            self.times[sigma, n] = self.time_anew(sigma, n)
        return self.times[sigma, n]

    def time_anew(self, sigma, n):
        if self.partition == "equal":
            return splits.equal_time(self.costs, sigma, n)
        if self.partition == "pieces":
            return self.costs.E(sigma / Fraction(n), 1)
        if self.partition in ("umr", "umr-iit"):
            sizes = self.sizes(sigma, n)
            return splits.makespan(self.costs, sigma, n, len(sizes), sizes[0])
        return self.costs.E(sigma, n)

    def sizes(self, sigma, n):
        """Chunk sizes round by round, c_0, c_1, ..."""
        if (sigma, n) not in self.rounds_of:
            rounds = splits.chosen_rounds(self.costs, sigma, n, self.rounds)
            self.rounds_of[sigma, n] = splits.instalments(self.costs, sigma, n, rounds)
        return self.rounds_of[sigma, n]

    def fewest(self, Ti, since):
        """The first n = 1, 2, ... that meets the deadline; `since` tells from when n run."""
        if self.frozen:
            n = self.first_fit(Ti, lambda n: Ti.arrival)
            late = n is None or since(n) + self.time(Ti.sigma, n) > Ti.due
            return None if late else n
        return self.first_fit(Ti, since)

    def first_fit(self, Ti, since):
        for n in range(1, self.costs.nodes + 1):
            if since(n) + self.time(Ti.sigma, n) <= Ti.due:
                return n
        return None

    def fewest_exactly(self, Ti, r):
        """The first n whose true optimum meets the deadline."""
        for n in range(1, len(r) + 1):
            if splits.optimum(self.costs, Ti.sigma, r[:n]) <= Ti.due:
                return n
        return None

    def widened(self, Ti, n, idle):
        """Policy fragment: idle nodes beyond the fewest, while they shorten the task."""
        if self.nodes != "fragment":
            return n
        return max(n, min(idle, self.costs.fastest(Ti.sigma)))

    # --- one task on given nodes --------------------------------------------------------------

    def laid(self, Ti, view, n, seen=()):
        """Lay a task on the first n of the nodes in view."""
        r = [t for t, _ in view[:n]]
        chunks, estimate = self.split(Ti.sigma, r)
        used = len({c.place for c in chunks})
        nodes = tuple(j for _, j in view[:used])
        return Entry(Ti, nodes, tuple(chunks), estimate, r[used - 1], seen)

    def split(self, sigma, r):
        """Chunks and planned completion."""
        costs, n, together = self.costs, len(r), [r[-1]] * len(r)
        if self.partition == "opr":
            shares = costs.shares(sigma, n)
            chunks = splits.sent_in_turn(costs, sigma, shares, together)
            return chunks, r[-1] + costs.E(sigma, n)
        if self.partition == "equal":
            shares = [Fraction(1, n)] * n
            chunks = splits.sent_in_turn(costs, sigma, shares, together)
            return chunks, r[-1] + splits.equal_time(costs, sigma, n)
        if self.partition in ("umr", "umr-iit"):
            sizes = self.sizes(sigma, n)
            at = r if self.partition == "umr-iit" else together
            chunks = splits.sent_in_rounds(costs, sigma, sizes, at)
        elif self.partition == "pieces":
            chunks = splits.in_pieces(costs, sigma, r, self.shared)
        elif self.partition in ("exact", "exact-n"):
            e = splits.optimum(costs, sigma, r)
            shares = [x for x in splits.filled(costs, sigma, r, e) if x > 0]
            return splits.sent_in_turn(costs, sigma, shares, r), e
        else:
            which = {"I": 1, "II": 2}.get(self.partition)
            met = which is not None and splits.is_met(costs, sigma, r, which)
            shares, e = (splits.equal_finish if met else splits.remodel)(costs, sigma, r)
            return splits.sent_in_turn(costs, sigma, shares, r), e
        return chunks, max(c.compute_end for c in chunks)

    def released(self, entry):
        """(node, instant from which it may serve another task)."""
        early = self.reading["release"] == "finish" or self.partition == "pieces"
        for place, j in enumerate(entry.nodes):
            yield j, entry.finish(place) if early else entry.estimate

    def book(self, entry, free, link_free):
        for j, t in self.released(entry):
            free[j] = max(free[j], t)
        return max(link_free, entry.sent)

    def view(self, free, link_free, now):
        """All nodes as (r_j, j), earliest first."""
        floor = max(now, link_free) if self.shared else now
        return sorted((max(t, floor), j) for j, t in enumerate(free))

    # --- the test ---------------------------------------------------------------------------

    def static_key(self, Ti):
        first = {"fifo": Ti.arrival, "edf": Ti.due, "user": Ti.key}[self.order]
        return (first, Ti.index)

    def test(self, T, now):
        """Return the new plan, or None where the newcomer T must be refused."""
        tasks = sorted([p.task for p in self.waiting] + [T], key=self.static_key)
        free, link_free = list(self.free), self.link_free
        if self.backfills:
            return self.backfilled(tasks, free, link_free, now)
        plan = []
        for Ti in tasks:
            entry = self.next_in_line(Ti, self.view(free, link_free, now))
            if entry is None:
                return None
            self.counted["replanned"].append(entry)
            if Ti is T:
                self.counted["arrival"].append(entry)
            if entry.estimate > Ti.due:  # pieces that wait for the link
                return None
            plan.append(entry)
            link_free = self.book(entry, free, link_free)
        return plan

    def next_in_line(self, Ti, view):
        """Plan one task on the state that those before it leave; None where it gets no n."""
        r = [t for t, _ in view]
        n = self.number(Ti, r)
        if n is None:
            return None
        n = self.widened(Ti, n, sum(t <= r[n - 1] for t in r))
        return self.laid(Ti, view, n, seen=(n, tuple(r)))

    def number(self, Ti, r):
        if self.nodes == "user":
            n = Ti.user_nodes
            return None if r[n - 1] + self.time(Ti.sigma, n) > Ti.due else n
        if self.nodes == "all":
            n = len(r) if self.costs.cps else 1  # without computing the first has all of it
            return None if splits.optimum(self.costs, Ti.sigma, r[:n]) > Ti.due else n
        if self.partition == "exact-n" and not self.frozen:
            return self.fewest_exactly(Ti, r)
        return self.fewest(Ti, lambda n: r[n - 1])

    def backfilled(self, tasks, free, link_free, now):
        """At every instant all tasks that fit are planned, in order of rank."""
        plan, left = [], list(tasks)
        t_k = self.view(free, link_free, now)[0][0]
        while True:
            for Ti in list(left):
                idle = [(t, j) for t, j in self.view(free, link_free, now) if t <= t_k]
                n = self.number_at(Ti, t_k, idle)
                if n is None:
                    return None
                if n > len(idle):
                    continue
                entry = self.laid(Ti, idle, self.widened(Ti, n, len(idle)))
                if entry.estimate > Ti.due:
                    return None
                left.remove(Ti)
                plan.append(entry)
                link_free = self.book(entry, free, link_free)
            if not left:
                return plan
            t_k = min(t for t, _ in self.view(free, link_free, now) if t > t_k)

    def number_at(self, Ti, t_k, idle):
        """Nodes needed at t_k, N + 1 for "not yet", None for "never any more"."""
        N = self.costs.nodes
        if self.nodes == "user":
            late = t_k + self.time(Ti.sigma, Ti.user_nodes) > Ti.due
            return None if late else Ti.user_nodes
        if self.partition == "exact-n" and not self.frozen:
            n = self.fewest_exactly(Ti, [t for t, _ in idle])
            never = n is None and (Ti.due <= t_k or len(idle) == N)
            return None if never else n or N + 1
        return self.fewest(Ti, lambda n: t_k)

    # --- the main loop -----------------------------------------------------------------------

    def batch(self, tasks):
        if self.reading["batch_order"] == "index" or self.order == "fifo":
            return tasks
        return sorted(tasks, key=self.static_key)

    def fixed(self, entry):
        return entry.start if self.reading["commit"] == "first" else max(entry.latest, entry.start)

    def dispatch(self, now, inclusive):
        """Fix what has begun (or whose last node is free), nobody before those ahead of him."""
        for entry in list(self.waiting):
            since = self.fixed(entry)
            if not (since < now or (inclusive and since == now)):
                break
            self.link_free = self.book(entry, self.free, self.link_free)
            self.done[entry.task.index] = entry
            self.counted["dispatched"].append(entry)
            self.waiting.remove(entry)

    def arrive(self, tasks):
        """Test all tasks as they come; return the admitted ones, what waits still under way."""
        verdict = {}
        for now, group in groupby(tasks, key=lambda Ti: Ti.arrival):
            self.dispatch(now, self.reading["same_time"] == "dispatch")
            for Ti in self.batch(list(group)):
                plan = self.test(Ti, now)
                verdict[Ti.index] = plan is not None
                if plan is not None:
                    self.waiting = plan
                    mine = [p for p in plan if p.task is Ti]
                    self.counted["admitted"] += mine
                    self.counted["rtgrid"] += mine
                if self.reading["batch_commit"] == "commit":
                    self.dispatch(now, True)
        return verdict

    def run(self, tasks):
        verdict = self.arrive(tasks)
        self.dispatch(inf, False)
        rows = Records(self.record(Ti, verdict[Ti.index]) for Ti in tasks)
        rows.counts = self.counts()
        return rows

    def record(self, Ti, admitted):
        if not admitted:
            return Record(False, None, 0, None, False, Ti.deadline)
        p = self.done[Ti.index]
        end = p.completion
        return Record(
            True, p.start, len(p.nodes), end, end > Ti.due, Ti.deadline, None, p.estimate, p.chunks
        )

    # --- Table 1 ------------------------------------------------------------------------------

    def counts(self):
        pieces = self.nodes == "user" and self.reading["split"] == "piece"
        if pieces or self.backfills:
            return None
        table = {}
        for rule in RULES:
            rows = [self.facts(p, rule) for p in self.counted[rule]]
            table[rule] = [sum(column) for column in zip(*rows, strict=True)] or [0, 0, 0, 0]
        table["rtgrid"][2] = None
        return table

    def facts(self, entry, rule):
        """s_iits, opt_iits, opt_iits_ii, non_positive of one planning."""
        n, everyone = entry.seen
        sigma, r, costs = entry.task.sigma, everyone[:n], self.costs
        last = r[-1] if self.reading["scope"] == "chosen" else everyone[-1]
        iit = everyone[0] != last and (n > 1 or self.reading["count_single"] == "yes")
        skip = self.reading["ties"] == "skip"
        one, two = (iit and splits.constraint(costs, sigma, r, k, skip) for k in (1, 2))
        positive = splits.equal_finish(costs, sigma, r)[0][-1] > 0
        bad = (one or two) and not positive
        one, two = one and positive, two and positive
        if rule == "rtgrid":
            one = iit and sum(t < r[-1] for t in r) == 1
        return iit, one, two, bad


# --- tables --------------------------------------------------------------------------------------


def joined(tasks, pieces):
    """One row per task from those of its pieces."""
    rows = Records()
    for Ti in tasks:
        mine = [row for k, row in pieces if k == Ti.index]
        ran = [row for row in mine if row.admitted]
        if not ran:
            rows.append(replace(mine[0], pieces=0))
            continue
        end = max(row.completion for row in ran)
        chunks = tuple(replace(c, alpha=Fraction(1, len(mine))) for row in ran for c in row.chunks)
        served = min(row.start for row in ran), len(ran), end, end > Ti.due, Ti.deadline
        rows.append(Record(True, *served, None, end, chunks, len(ran)))
    return rows


def table(rows, keys=None, user_nodes=None):
    """The tasks of a table of (arrival, sigma, deadline)."""
    keys, user_nodes = keys or [None] * len(rows), user_nodes or [None] * len(rows)
    columns = zip(rows, keys, user_nodes, strict=True)
    return [Task(i, *map(Fraction, row), key, n) for i, (row, key, n) in enumerate(columns)]


def simulate(twin, tasks):
    """Run a `Twin` on a `table` of tasks; return one `Record` per task."""
    if twin.nodes != "user" or twin.reading["split"] == "all":
        return twin.run(tasks)
    cut = [
        (Ti.index, replace(Ti, sigma=Ti.sigma / Fraction(Ti.user_nodes), user_nodes=1))
        for Ti in tasks
        for _ in range(Ti.user_nodes)
    ]
    parts = [replace(piece, index=k) for k, (_, piece) in enumerate(cut)]
    records = twin.run(parts)
    return joined(tasks, [(k, row) for (k, _), row in zip(cut, records, strict=True)])

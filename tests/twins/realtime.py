"""Slow, plain twin of the real-time engine: paper M's pseudo-code, line by line.

Every number may be an int or a Fraction, every comparison is exact, and each test plans
everything anew. The lists carry the paper's names; `MCDF` and `Schedulability_Test` cite
its line numbers. The other policies are the same test with line 12's key replaced, or the
all-nodes rules, which the paper states in words. It shares no code with dlsim.
"""

from dataclasses import dataclass, field
from itertools import groupby
from math import inf

from gmpy2 import mpq as Fraction

DEFAULTS = {
    "an_nodes": "all",
    "mn_order": "skip",
    "mn_count": "at_start",
    "dc_at_N": "formula",
    "order_when": "each_tk",
    "link": "per_task",
    "batch_order": "index",
    "batch_commit": "replan",
    "same_time": "dispatch",
    "late": "run",
}


@dataclass
class Task:
    index: int
    arrival: Fraction
    sigma: Fraction
    deadline: Fraction
    key: object = None  # of a user's own order

    @property
    def due(self):
        return self.arrival + self.deadline


@dataclass(frozen=True)
class Record:
    """One row of the result; ``nodes`` is 0 and the times None where nothing runs."""

    admitted: bool
    start: object
    nodes: int
    completion: object
    missed: bool
    deadline: object
    offer: object = None


class Records(list):
    """One `Record` per task; `open_ends` counts agreed deadlines just above a tie.

    No rule says how far above, so two of them at one tie have no settled order.
    """

    open_ends = 0


@dataclass(frozen=True)
class Offer:
    """What a refused task could have had; not attained: only deadlines just above a tie."""

    deadline: object
    nodes: int
    cost: object
    start: object
    completion: object
    attained: bool = True


@dataclass(frozen=True)
class Entry:
    """A row of AdmittedTasksList: the task with s_i, n_i and e_i."""

    task: Task
    start: object
    nodes: int
    completion: object


@dataclass
class Costs:
    """Execution times from the share recursion alpha_{j+1} = beta alpha_j - phi (4.11)."""

    nodes: int
    cms: object
    cps: object
    st: object
    sc: object
    known: dict = field(default_factory=dict)

    def shares(self, sigma, n):
        w = Fraction(self.cms) + self.cps
        beta, phi = self.cps / w, Fraction(self.st) / (sigma * w)
        # alpha_j = a_j alpha_1 - b_j; the shares sum to 1
        a, b = [Fraction(1)], [Fraction(0)]
        for _ in range(n - 1):
            a.append(beta * a[-1])
            b.append(beta * b[-1] + phi)
        first = (1 + sum(b)) / sum(a)
        return [x * first - y for x, y in zip(a, b, strict=True)]

    def E(self, sigma, n):
        """Execution time on n nodes: the first one receives alpha_1 and computes it (4.7)."""
        if (sigma, n) not in self.known:
            alpha_1 = self.shares(sigma, n)[0]
            self.known[sigma, n] = self.st + self.sc + sigma * alpha_1 * (self.cms + self.cps)
        return self.known[sigma, n]

    def fastest(self, sigma):
        """N*, the largest n <= N whose last share is positive (theory, erratum 4)."""
        return max(n for n in range(1, self.nodes + 1) if self.shares(sigma, n)[-1] > 0)

    def n_min(self, sigma, start, due):
        """n_i^min(t): the first n = 1, 2, ... that meets the deadline; N + 1 where none does."""
        fits = (n for n in range(1, self.nodes + 1) if start + self.E(sigma, n) <= due)
        return next(fits, self.nodes + 1)

    def W(self, sigma, n):
        return n * self.E(sigma, n)

    def sent(self, entry):
        """End of a task's last send."""
        return entry.start + entry.task.sigma * self.cms + entry.nodes * self.st


class Twin:
    """One run: the cluster's state is NIList, link_free and AdmittedTasksList."""

    def __init__(self, costs, order, node_rule, overtake, reading):
        self.costs, self.order, self.node_rule = costs, order, node_rule
        self.reading = DEFAULTS | (reading or {})
        assert set(self.reading) == set(DEFAULTS)
        self.skip = overtake and self.reading["mn_order"] == "skip"
        self.shared = self.reading["link"] == "shared"
        self.NIList = [0] * costs.nodes
        self.link_free = 0
        self.AdmittedTasksList = []
        self.done = {}  # index -> Entry, dispatched
        self.open_ends = 0
        self.visited = []  # what the last test compared with the new task's deadline

    # --- order -------------------------------------------------------------------

    def static_key(self, Ti):
        if self.order == "fifo":
            return (Ti.arrival, Ti.index)
        if self.order == "edf":
            return (Ti.due, Ti.index)
        return (Ti.key, Ti.index)

    def DC(self, Ti, n):
        N, infinite = self.costs.nodes, self.reading["dc_at_N"] == "inf"
        if infinite and n == N:
            return inf
        return self.costs.W(Ti.sigma, n + 1) - self.costs.W(Ti.sigma, n)

    def ordered(self, tasks, n_min):
        """Line 12, by non-increasing DC_i, or by the policy's own key; ties by index."""
        if self.order == "dc":
            return sorted(tasks, key=lambda Ti: (-self.DC(Ti, n_min[Ti.index]), Ti.index))
        return sorted(tasks, key=self.static_key)

    def batch(self, tasks, now):
        """Order in which the members of NewTasksList are tested (switch batch_order)."""
        if self.reading["batch_order"] == "index" or self.order == "fifo":
            return tasks
        if self.order != "dc":
            return sorted(tasks, key=self.static_key)
        N = self.costs.nodes
        n = {Ti.index: self.costs.n_min(Ti.sigma, now, Ti.due) for Ti in tasks}
        good = [Ti for Ti in tasks if n[Ti.index] <= N]
        return self.ordered(good, n) + [Ti for Ti in tasks if n[Ti.index] > N]

    # --- the main procedure ---------------------------------------------------------

    def dispatch(self, now, inclusive):
        """Lines 3-9, for every start that has passed since the last event."""
        due_now = [p for p in self.AdmittedTasksList if p.start < now]
        if inclusive:
            due_now += [p for p in self.AdmittedTasksList if p.start == now]
        for entry in sorted(due_now, key=lambda p: p.start):
            self.NIList = self.occupied(self.NIList, entry)  # l.6, l.8
            self.link_free = max(self.link_free, self.costs.sent(entry))
            self.done[entry.task.index] = entry
            self.AdmittedTasksList.remove(entry)  # l.7

    def MCDF(self, tasks, negotiate=None, offers=False):
        """Run the paper's main loop; return the records in table order."""
        verdict, asked = {}, {}
        for now, group in groupby(tasks, key=lambda Ti: Ti.arrival):  # l.1-2
            self.dispatch(now, self.reading["same_time"] == "dispatch")  # l.3-9
            NewTasksList = self.batch(list(group), now)
            for Ti in NewTasksList:  # l.10-11
                TempSTList = self.Schedulability_Test(Ti, now)  # l.12
                if TempSTList is None and (offers or negotiate is not None):
                    asked[Ti.index] = offer = self.negotiated(Ti, now)
                    if offer and offer.deadline <= Fraction(negotiate or 0) * Ti.deadline:
                        Ti.deadline = offer.deadline
                        self.open_ends += not offer.attained
                        TempSTList = self.Schedulability_Test(Ti, now)
                verdict[Ti.index] = TempSTList is not None
                if TempSTList is not None:
                    self.AdmittedTasksList = TempSTList  # l.13-14
                if self.reading["batch_commit"] == "commit":
                    self.dispatch(now, True)
        self.dispatch(inf, False)
        rows = Records(record(Ti, verdict[Ti.index], self.done, asked) for Ti in tasks)
        rows.open_ends = self.open_ends
        return rows

    def occupied(self, NIList, entry):
        """Give a task any n nodes idle by its start; the whole cluster to an all-nodes task."""
        if self.node_rule == "all":
            return [entry.completion] * len(NIList)
        idle = [j for j, t_j in enumerate(NIList) if t_j <= entry.start]
        assert len(idle) >= entry.nodes
        taken = set(idle[: entry.nodes])
        return [entry.completion if j in taken else t_j for j, t_j in enumerate(NIList)]

    # --- the test -------------------------------------------------------------------

    def Schedulability_Test(self, T, now):
        """Return TempSTList, or None where the pseudo-code returns false."""
        self.visited = []
        return (self.all_nodes_test if self.node_rule == "all" else self.min_nodes_test)(T, now)

    def min_nodes_test(self, T, now):
        costs, N = self.costs, self.costs.nodes
        UnScheduledTasksList = [p.task for p in self.AdmittedTasksList] + [T]  # l.2
        NIList, link_free = list(self.NIList), self.link_free  # l.3
        TempSTList, rank = [], None  # l.4
        t_k = self.instant(NIList, link_free, now)  # l.5
        while UnScheduledTasksList:  # l.6
            n_min = {}
            for Ti in UnScheduledTasksList:  # l.7
                n_min[Ti.index] = self.count(Ti, t_k)  # l.8
                if Ti is T:
                    self.visited.append(t_k)
            if any(n > N for n in n_min.values()):  # l.9
                return None  # l.10
            if rank is None or self.reading["order_when"] == "each_tk":
                rank = [Ti.index for Ti in self.ordered(UnScheduledTasksList, n_min)]  # l.12
            UnScheduledTasksList.sort(key=lambda Ti: rank.index(Ti.index))
            for Ti in list(UnScheduledTasksList):  # l.13
                AN_k = sum(t_j <= t_k for t_j in NIList)
                if n_min[Ti.index] <= AN_k:  # l.14
                    e_i = t_k + costs.E(Ti.sigma, n_min[Ti.index])  # l.15-16
                    if e_i > Ti.due:  # l.17
                        return None  # l.18
                    UnScheduledTasksList.remove(Ti)  # l.19
                    entry = Entry(Ti, t_k, n_min[Ti.index], e_i)
                    TempSTList.append(entry)  # l.20
                    NIList = self.occupied(NIList, entry)  # l.21
                    link_free = max(link_free, costs.sent(entry))
                    if AN_k == n_min[Ti.index]:  # l.22: no idle node is left
                        break  # l.23
                    if self.shared and link_free > t_k:
                        break
                elif not self.skip:
                    break
            if UnScheduledTasksList:
                t_k = self.instant(NIList, link_free, t_k, strictly=True)  # l.25
        return TempSTList  # l.27

    def instant(self, NIList, link_free, since, strictly=False):
        """The next t_k: a node is idle and, on a shared link, the link is free."""
        floor = link_free if self.shared else since
        times = [max(t_j, floor) for t_j in NIList]
        if strictly:
            return min(t for t in times if t > since)
        return max(since, min(times))

    def count(self, Ti, t_k):
        """n_i^min(t_k); frozen: n_min at arrival, N + 1 once it is too late for it."""
        costs = self.costs
        if self.reading["mn_count"] == "at_start":
            return costs.n_min(Ti.sigma, t_k, Ti.due)
        n = costs.n_min(Ti.sigma, Ti.arrival, Ti.due)
        late = n > costs.nodes or t_k + costs.E(Ti.sigma, n) > Ti.due
        return costs.nodes + 1 if late else n

    def width(self, Ti):
        """Nodes of an all-nodes task (switch an_nodes)."""
        best = self.reading["an_nodes"] == "best"
        return self.costs.fastest(Ti.sigma) if best else self.costs.nodes

    def free(self, NIList, link_free, now):
        """When an all-nodes task can start at the earliest."""
        return max(now, max(NIList), link_free if self.shared else now)

    def whole(self, Ti, start):
        """An all-nodes task started at a time: on the whole cluster, whatever it uses."""
        n = self.width(Ti)
        return Entry(Ti, start, n, start + self.costs.E(Ti.sigma, n))

    def all_nodes_test(self, T, now):
        """One after another; refused if any completion is late."""
        NIList, link_free, TempSTList = list(self.NIList), self.link_free, []
        for Ti in sorted([p.task for p in self.AdmittedTasksList] + [T], key=self.static_key):
            entry = self.whole(Ti, self.free(NIList, link_free, now))
            if Ti is T:
                self.visited.append(entry.start)
            if entry.completion > Ti.due:
                return None
            TempSTList.append(entry)
            NIList = self.occupied(NIList, entry)
            link_free = max(link_free, self.costs.sent(entry))
        return TempSTList

    # --- negotiation ------------------------------------------------------------------

    def breakpoints(self, T):
        """Absolute deadlines at which a comparison of the last test of T changes."""
        if self.node_rule == "all":
            points = {t + self.costs.E(T.sigma, self.width(T)) for t in self.visited}
        else:
            times = [*self.visited, T.arrival]
            counts = range(1, self.costs.nodes + 1)
            points = {t + self.costs.E(T.sigma, n) for t in times for n in counts}
        if self.order == "edf":
            points |= {p.task.due for p in self.AdmittedTasksList}
        return points

    def negotiated(self, T, now):
        """March through the deadlines from 0: between two breakpoints nothing changes."""
        probe = Task(T.index, T.arrival, T.sigma, Fraction(0), T.key)
        while True:
            found = self.tried(probe, now)
            if found:
                return found
            later = [b for b in self.breakpoints(probe) if b > probe.due]
            rivals = [p.task for p in self.AdmittedTasksList if p.task.index > T.index]
            if self.order == "edf" and any(Ti.due == probe.due for Ti in rivals):
                found = self.just_above(probe, now)
                if found:
                    return found
                later = [b for b in self.breakpoints(probe) if b > probe.due]
            if not later:
                return None
            probe.deadline = min(later) - T.arrival

    def tried(self, probe, now, attained=True):
        TempSTList = self.Schedulability_Test(probe, now)
        for p in TempSTList or []:
            if p.task is probe:
                cost = self.costs.W(probe.sigma, p.nodes)
                return Offer(probe.deadline, p.nodes, cost, p.start, p.completion, attained)
        return None

    def just_above(self, probe, now):
        """A tie with a later index resolves only above the tie: no smallest deadline."""
        tie, step = probe.deadline, Fraction(1, 2**40)
        while True:
            probe.deadline = tie + step
            found = self.tried(probe, now, attained=False)
            between = [
                b for b in self.breakpoints(probe) if tie < b - probe.arrival <= probe.deadline
            ]
            if not between:
                break
            step = (min(between) - probe.arrival - tie) / 2
        probe.deadline = tie
        return found

    # --- no admission control ---------------------------------------------------------

    def no_admission(self, tasks):
        """Whenever the cluster is free, the first of those that have arrived starts."""
        coming, waiting, dropped = list(tasks), [], set()
        now = 0
        while coming or waiting:
            now = self.free(self.NIList, self.link_free, now)
            while coming and coming[0].arrival < now:
                waiting.append(coming.pop(0))
            if not waiting:
                now = max(now, coming[0].arrival)
            compete = self.reading["same_time"] == "test" or not waiting
            while compete and coming and coming[0].arrival == now:
                waiting.append(coming.pop(0))
            Ti = min(waiting, key=self.static_key)
            waiting.remove(Ti)
            entry = self.whole(Ti, now)
            if self.reading["late"] == "drop" and entry.completion > Ti.due:
                dropped.add(Ti.index)
                continue
            self.NIList = self.occupied(self.NIList, entry)
            self.link_free = max(self.link_free, self.costs.sent(entry))
            self.done[Ti.index] = entry
        return Records(record(Ti, True, self.done, {}) for Ti in tasks)


def record(Ti, admitted, done, asked):
    entry, offer = done.get(Ti.index), asked.get(Ti.index)
    if entry is None:
        return Record(admitted, None, 0, None, admitted, Ti.deadline, offer)
    missed = entry.completion > Ti.due
    return Record(admitted, entry.start, entry.nodes, entry.completion, missed, Ti.deadline, offer)


def simulate(
    tasks,
    nodes,
    cms,
    cps,
    st=0,
    sc=0,
    *,
    order="dc",
    node_rule="min",
    overtake=True,
    admission=True,
    reading=None,
    keys=None,
    negotiate=None,
    offers=False,
):
    """Simulate a table of (arrival, sigma, deadline) in exact arithmetic.

    `order` is fifo, edf, dc or user (with `keys`); `offers` asks for an `Offer` for every
    refused task; `negotiate` admits a refused task whose offer is at most that many times
    its deadline.
    """
    rows = [
        Task(i, Fraction(a), Fraction(sigma), Fraction(d), keys[i] if keys is not None else None)
        for i, (a, sigma, d) in enumerate(tasks)
    ]
    costs = Costs(nodes, Fraction(cms), Fraction(cps), Fraction(st), Fraction(sc))
    twin = Twin(costs, order, node_rule, overtake, reading)
    if not admission:
        return twin.no_admission(rows)
    return twin.MCDF(rows, negotiate, offers)

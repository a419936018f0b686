"""Slow, plain twin of rules of one's own: all waiting tasks are planned anew, in exact arithmetic.

An order that changes with time, a number of nodes, a partition: each a method of `Rules`, worked
out from the shares of paper M, not from what the engine tells a user's function.
"""

from gmpy2 import mpq as Fraction

from tests.twins import inserted, splits


class Twin(inserted.Twin):
    """Paper I's twin with other rules; `key` and `count` are names of methods, or None."""

    def __init__(self, costs, order, nodes, partition, overtake, reading, key, count, rounds=1):
        reading = dict(reading or {})
        self.once = reading.pop("order_when", "each_tk") == "once"
        super().__init__(costs, order, nodes, partition, rounds, reading)
        self.key = key and getattr(self, key)
        self.rule, self.at_arrival = count and getattr(self, count), {}
        self.strict = self.reading["mn_order"] == "strict" or nodes == "all"
        self.strict = self.strict or not (overtake or self.reading["backfill"] == "on")

    # --- the rules ---------------------------------------------------------------------------

    def dearest_last(self, Ti, n, t):
        """MCDF reversed: the smallest cost derivative first."""
        return self.costs.W(Ti.sigma, n + 1) - self.costs.W(Ti.sigma, n)

    def laxity(self, Ti, n, t):
        return Ti.due - t - self.time(Ti.sigma, n)

    def one_more(self, Ti, t, idle):
        """n_min + 1, but never more than there are."""
        n = self.first_fit(Ti, lambda n: t)
        return None if n is None else min(n + 1, self.costs.nodes)

    def half_of_idle(self, Ti, t, idle):
        """Half of the nodes that are idle, rounded up, whatever the deadline says."""
        return max(1, (idle + 1) // 2)

    def ruled(self, Ti, t, idle):
        """What a rule says, but no more nodes than have positive shares."""
        n, positive = self.rule(Ti, t, idle), self.partition != "halves"
        return min(n, self.costs.fastest(Ti.sigma)) if n and positive else n

    def halves(self, n):
        return [Fraction(2 ** (n - 1 - k), 2**n - 1) for k in range(n)]

    # --- the test ----------------------------------------------------------------------------

    def split(self, sigma, r):
        if self.partition != "halves":
            return super().split(sigma, r)
        chunks = splits.sent_in_turn(self.costs, sigma, self.halves(len(r)), r)
        return chunks, max(c.compute_end for c in chunks)

    def counted_at(self, Ti, t_k, view, idle):
        """Nodes from t_k on, more than are idle for "not yet", None for "never"."""
        if self.frozen and (self.rule or self.partition == "halves") and self.nodes != "all":
            return self.at_arrival[Ti.index]
        if self.rule:
            return self.ruled(Ti, t_k, idle)
        if self.nodes == "all":
            n = self.costs.nodes if self.costs.cps or self.partition != "exact" else 1
            late = self.partition == "opr" and t_k + self.time(Ti.sigma, n) > Ti.due
            return None if late else n
        if self.partition == "halves":
            fits = (n for n in range(1, len(view) + 1) if self.laid(Ti, view, n).estimate <= Ti.due)
            n = next(fits, None)
            never = n is None and (Ti.due <= t_k or idle == self.costs.nodes)
            return None if never else n or self.costs.nodes + 1
        return self.number_at(Ti, t_k, view)

    def at_once(self, Ti, now):
        """The count at arrival: of a partition on nodes that are all idle, or None."""
        if self.rule:
            return self.ruled(Ti, now, sum(t <= now for t in self.free))
        if self.partition == "halves" and self.nodes != "all":
            view = [(now, j) for j in range(self.costs.nodes)]
            fits = (n for n in range(1, len(view) + 1) if self.laid(Ti, view, n).estimate <= Ti.due)
            return next(fits, None)
        return self.costs.nodes if self.nodes == "all" else self.first_fit(Ti, lambda n: now)

    def idle_nodes(self, free, link_free, now, t_k):
        """Nodes that can be sent to at t_k, by release; and how many are idle."""
        view = [(t, j) for t, j in self.view(free, link_free, now) if t <= t_k]
        return view, sum(t <= t_k for t in free)

    def test(self, T, now):
        self.at_arrival[T.index] = self.frozen and self.at_once(T, now)
        free, link_free, plan = list(self.free), self.link_free, []
        left = sorted([p.task for p in self.waiting] + [T], key=lambda Ti: Ti.index)
        if not self.key:
            left.sort(key=self.static_key)
        t_k, unsorted = self.view(free, link_free, now)[0][0], self.key is not None
        while True:
            if unsorted:
                view, idle, ranks = *self.idle_nodes(free, link_free, now, t_k), {}
                for Ti in left:
                    n = self.counted_at(Ti, t_k, view, idle)
                    if n is None:
                        return None
                    n = self.widened(Ti, n, idle) if n <= idle else n
                    ranks[Ti.index] = self.key(Ti, min(n, self.costs.nodes), t_k)
                left.sort(key=lambda Ti: (ranks[Ti.index], Ti.index))
                unsorted = not self.once
            blocked = False
            for Ti in list(left):
                view, idle = self.idle_nodes(free, link_free, now, t_k)
                n = self.counted_at(Ti, t_k, view, idle)
                if n is None:
                    return None
                n = self.widened(Ti, n, idle) if n <= idle else n
                if n > len(view) or blocked:
                    blocked = blocked or self.strict
                    continue
                if self.partition in ("opr", "equal", "umr"):
                    view = [(t_k, j) for _, j in view]
                entry = self.laid(Ti, view, n)
                if entry.estimate > Ti.due:
                    return None
                left.remove(Ti)
                plan.append(entry)
                link_free = self.book(entry, free, link_free)
            if not left:
                return plan
            t_k = min(t for t, _ in self.view(free, link_free, now) if t > t_k)

    def batch(self, tasks):
        if self.reading["batch_order"] == "index" or not self.key:
            return super().batch(tasks)
        now, ranks = tasks[0].arrival, {}
        for Ti in tasks:
            n = self.at_once(Ti, now)
            ranks[Ti.index] = (n is None, 0 if n is None else self.key(Ti, n, now), Ti.index)
        return sorted(tasks, key=lambda Ti: ranks[Ti.index])

    def counts(self):
        return None

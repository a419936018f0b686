"""Peers of the steady-state heuristics, written as most would write them.

`Program` is program (6) in full, with a variable per connection, handed cold to
scipy.optimize.linprog; `greedy` is heuristic G in plain Python with floats. They share no code
with the engine.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

SNAP = 1e-6


@dataclass
class Solution:
    objective: float
    work: np.ndarray  # (A, K)
    connections: dict  # route -> relaxed connections


class Program:
    """Rows `matrix @ x <= limit` of (6); x = t, work row by row, then connections."""

    def __init__(self, p):
        self.p = p
        self.apps, self.clusters = p.work.size, p.speed.size
        self.routes = sorted(route for route, links in p.routes.items() if links)
        self.rows, self.limits, self.cells = 0, [], []
        self._rows()

    def work(self, a, k):
        return 1 + a * self.clusters + k

    def connection(self, i):
        return 1 + self.apps * self.clusters + i

    def add(self, row, limit):
        self.cells += [(self.rows, column, value) for column, value in row.items()]
        self.limits.append(limit)
        self.rows += 1

    def _rows(self):
        p, every = self.p, range(self.clusters)
        priority = np.asarray(p.priority)
        for a in range(self.apps):
            pi = priority[a] if priority.ndim == 2 else np.full(self.clusters, priority[a])
            if (pi > 0).any():
                gain = {self.work(a, k): -1 / pi[k] for k in every if pi[k] > 0}
                self.add({0: 1.0, **gain}, 0.0)
        for k in every:
            self.add({self.work(a, k): p.work[a] for a in range(self.apps)}, p.speed[k])
            self.add(
                {
                    self.work(a, m): p.data[a]
                    for a in range(self.apps)
                    for m in every
                    if m != p.origin[a] and k in (m, p.origin[a])
                },
                p.gateway[k],
            )
        for cap in p.limits.shares:
            held = [a for a in range(self.apps) if p.origin[a] in cap.origins]
            row = {self.work(a, cap.cluster): p.work[a] for a in held}
            self.add(row, cap.share * p.speed[cap.cluster])
        self._network()

    def _network(self):
        p = self.p
        wide, along = p.links["bandwidth"].to_dict(), dict(p.routes)
        self.one = {r: min(wide[link] for link in along[r]) for r in self.routes}
        users = {link: [] for link in p.links.index}
        for r in self.routes:
            for link in along[r]:
                users[link].append(r)
        most = dict(p.links["max_connect"])
        for k, m in self.routes:
            both = (min(k, m), max(k, m))
            limit = p.limits.pair_limit(*both)
            if limit < np.inf:
                most[both] = np.floor(limit)
                users.setdefault(both, []).append((k, m))
        self.most = {link: m for link, m in most.items() if m < np.inf}
        number = {r: i for i, r in enumerate(self.routes)}
        for link in self.most:
            row = {self.connection(number[r]): 1.0 for r in users[link]}
            self.add(row, self.most[link])
        for i, (k, m) in enumerate(self.routes):
            sent = {self.work(a, m): p.data[a] for a in self.held(k)}
            self.add({**sent, self.connection(i): -self.one[k, m]}, 0.0)

    def held(self, k):
        return [a for a in range(self.apps) if self.p.origin[a] == k]

    def bounds(self, fixed):
        p = self.p
        size = 1 + self.apps * self.clusters + len(self.routes)
        bounds = [(0, None)] * size
        for a in range(self.apps):
            for m in range(self.clusters):
                if m != p.origin[a] and (p.origin[a], m) not in p.routes:
                    bounds[self.work(a, m)] = (0, 0)
        for i, route in enumerate(self.routes):
            if route in fixed:
                bounds[self.connection(i)] = (fixed[route], fixed[route])
        return bounds

    def solve(self, fixed):
        """Solve from scratch with some connections fixed."""
        i, j, v = zip(*self.cells, strict=True)
        bounds = self.bounds(fixed)
        matrix = coo_array((v, (i, j)), shape=(self.rows, len(bounds))).tocsr()
        goal = np.zeros(len(bounds))
        goal[0] = -1.0
        answer = linprog(goal, A_ub=matrix, b_ub=self.limits, bounds=bounds, method="highs-ds")
        if answer.status != 0:
            raise RuntimeError(answer.message)
        work = answer.x[1 : 1 + self.apps * self.clusters].reshape(self.apps, self.clusters)
        return Solution(float(answer.x[0]), work, self.used(work))

    def used(self, work):
        return {
            (k, m): sum(work[a, m] * self.p.data[a] for a in self.held(k)) / self.one[k, m]
            for k, m in self.routes
        }


def lprr(p, seed=0, most=None, program=None):
    """LPRR with a cold solution after every route; of at most `most` routes.

    Returns the objective, the number of programs and whether it came to the end.
    """
    rng, program, fixed = np.random.default_rng(seed), program or Program(p), {}
    solution, programs = program.solve(fixed), 1
    while True:
        used = solution.connections
        some = [r for r in program.routes if r not in fixed and used[r] > SNAP]
        if not some or programs == most:
            return solution.objective, programs, not some
        route = some[int(rng.integers(len(some)))]
        near = round(used[route])
        value = near if abs(used[route] - near) <= SNAP else used[route]
        fixed[route] = int(value) + (rng.random() < value - int(value))
        solution = program.solve(fixed)
        programs += 1


def greedy(p):
    """Heuristic G (section 5.1, printed amounts, prose where stuck) in plain Python.

    For one application per cluster, one priority each, no limits.
    """
    clusters = range(len(p.speed))
    s, g = p.speed.tolist(), p.gateway.tolist()
    first_s, first_g = list(s), list(g)
    w, d, pi = p.work.tolist(), p.data.tolist(), p.priority.tolist()
    routes, left = dict(p.routes), p.links["max_connect"].to_dict()
    wide = p.links["bandwidth"].to_dict()
    one = {r: min((wide[x] for x in links), default=np.inf) for r, links in routes.items()}
    alpha = [[0.0] * len(s) for _ in s]
    got, waiting, steps = [0.0] * len(s), {k for k in clusters if pi[k] > 0}, 0

    def carry(k, m):
        if (k, m) not in routes or any(left[link] < 1 for link in routes[k, m]):
            return 0.0
        return min(g[k], one[k, m], g[m]) / d[k]

    while waiting:
        k = min(waiting, key=lambda k: (got[k], -pi[k], k))
        gain = [s[m] / w[k] if m == k else min(carry(k, m), s[m] / w[k]) for m in clusters]
        to = max(clusters, key=lambda m: (gain[m], m == k, -m))
        if gain[to] <= 0:
            waiting.remove(k)
            continue
        amount = gain[to]
        if to == k:
            printed = max((gain[m] for m in clusters if m != k), default=0.0)
            prose = max((min(carry(m, k) * w[m], s[k]) for m in clusters if m != k), default=0.0)
            amount = min(gain[k], printed or prose / w[k] or gain[k])
        s[to] -= amount * w[k]
        s[to] = s[to] if s[to] > 1e-9 * first_s[to] else 0.0
        if to != k:
            for link in routes[k, to]:
                left[link] -= 1
            for end in (k, to):
                g[end] -= amount * d[k]
                g[end] = g[end] if g[end] > 1e-9 * first_g[end] else 0.0
        alpha[k][to] += amount
        got[k] += amount / pi[k]
        steps += 1
    return np.array(alpha), steps

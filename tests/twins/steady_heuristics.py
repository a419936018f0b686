"""Slow, plain twin of paper S's heuristics: section 5, step by step, in Fractions.

It shares no code with dlsim. `greedy` follows the seven steps of section 5.1 and keeps the
paper's names; `round_off` and `randomised` receive the relaxed solutions, which a
solver found, and repeat every rounding on them.
"""

from dataclasses import dataclass, field
from math import floor, inf

from gmpy2 import mpq as Fraction

#: Below this part of what there was at first, nothing is left.
DUST = Fraction(1, 10**9)
#: Two numbers this close, relative, are a tie where they went through floats.
TIE = Fraction(1, 10**12)
#: A relaxed connection this close to a whole number is that number.
SNAP = Fraction(1, 10**6)


@dataclass
class Instance:
    """A platform in plain lists; every number an int or a Fraction."""

    s: list  # speed of each cluster
    g: list  # bandwidth of each cluster's own link
    bw: dict  # link -> bandwidth of a connection
    max_connect: dict  # link -> connections
    L: dict  # (k, l) -> links of the route
    pi: list  # application -> priority on each cluster
    w: list
    delta: list
    origin: list
    caps: list = field(default_factory=list)  # (cluster, origins, share of its speed)
    pairs: list = field(default_factory=list)  # (set of (k, l), connections)

    @property
    def K(self):
        return len(self.s)

    def one(self, k, m):
        """g_{k,m}: bandwidth of one connection; nothing without a route."""
        if (k, m) not in self.L:
            return 0
        return min((self.bw[link] for link in self.L[k, m]), default=inf)


class Residual:
    """What is left of every resource, and what was there at first."""

    def __init__(self, p):
        self.p = p
        self.s, self.g = list(p.s), list(p.g)
        self.links = dict(p.max_connect)
        self.caps = [share * p.s[k] for k, _, share in p.caps]
        self.pairs = [limit for _, limit in p.pairs]
        self.first = list(p.s), list(p.g), list(self.caps)

    def sweep(self):
        for left, first in zip((self.s, self.g, self.caps), self.first, strict=True):
            for i, value in enumerate(left):
                if value <= DUST * first[i]:
                    left[i] = 0

    def room(self, a, m):
        """Units of application a that cluster m can still compute."""
        p, amounts = self.p, [self.s[m]]
        for (k, origins, _), left in zip(p.caps, self.caps, strict=True):
            if k == m and p.origin[a] in origins:
                amounts.append(left)
        return min(amounts) / Fraction(p.w[a])

    def carry(self, a, m):
        """Units of application a that one more connection can take to cluster m."""
        p, k = self.p, self.p.origin[a]
        if (k, m) not in p.L:
            return 0
        if p.L[k, m]:
            if any(self.links[link] < 1 for link in p.L[k, m]):
                return 0
            if any((k, m) in routes and self.pairs[i] < 1 for i, (routes, _) in enumerate(p.pairs)):
                return 0
        least = min(self.g[k], p.one(k, m), self.g[m])
        if least == 0:
            return 0
        return least / Fraction(p.delta[a]) if p.delta[a] else inf

    def spend(self, a, m, amount, connections):
        p, k = self.p, self.p.origin[a]
        self.s[m] -= amount * p.w[a]
        for i, (cluster, origins, _) in enumerate(p.caps):
            if cluster == m and k in origins:
                self.caps[i] -= amount * p.w[a]
        if m != k:
            self.g[k] -= amount * p.delta[a]
            self.g[m] -= amount * p.delta[a]
            self.connect(k, m, connections)

    def connect(self, k, m, connections):
        if not self.p.L.get((k, m)):
            return
        for link in self.p.L[k, m]:
            self.links[link] -= connections
        for i, (routes, _) in enumerate(self.p.pairs):
            if (k, m) in routes:
                self.pairs[i] -= connections


def greedy(p, local_amount="printed", stuck="prose", start=None, counted=True):
    """Heuristic G; from an allocation (alpha, beta) where `start` is one.

    Without `counted` the applications' shares start at 0 although they hold work. A start
    comes out of floats, so that numbers within `TIE` of each other are a tie.
    Returns alpha, beta and the steps (application, cluster, units).
    """
    A, left = len(p.pi), Residual(p)
    # Step 1
    alpha = [[Fraction(0)] * p.K for _ in range(A)]
    beta = [[0] * p.K for _ in range(p.K)]
    if start is not None:
        alpha, beta = [list(row) for row in start[0]], [list(row) for row in start[1]]
        for a in range(A):
            for m in range(p.K):
                left.spend(a, m, alpha[a][m], 0)
        for k, m in p.L:
            left.connect(k, m, beta[k][m])
    got = [Fraction(0)] * A
    if start is not None and counted:
        got = [share(p, a, alpha[a]) for a in range(A)]
    left.sweep()
    tie = 1 + (TIE if start is not None else 0)
    L, steps = [a for a in range(A) if max(p.pi[a]) > 0], []
    # Step 2
    while L:
        # Step 3
        least = min(got[b] for b in L)
        a = min((b for b in L if got[b] <= least * tie), key=lambda b: (-max(p.pi[b]), b))
        k = p.origin[a]
        # Step 4
        benefit = [min(left.room(a, m), inf if m == k else left.carry(a, m)) for m in range(p.K)]
        pay = [b / Fraction(p.pi[a][m]) if p.pi[a][m] else 0 for m, b in enumerate(benefit)]
        to = next(m for m in range(p.K) if pay[m] * tie >= max(pay))
        if pay[to] == 0:
            L.remove(a)
            continue
        to = k if pay[k] * tie >= max(pay) else to
        # Step 5
        alloc = benefit[to]
        if to == k:
            alloc = local(p, left, L, got, a, benefit, local_amount, stuck)
        # Step 6
        left.spend(a, to, alloc, 1)
        left.sweep()
        alpha[a][to] += alloc
        got[a] += alloc / Fraction(p.pi[a][to])
        if to != k and p.L[k, to]:
            beta[k][to] += 1
        steps.append((a, to, alloc))
        # Step 7
    return alpha, beta, steps


def share(p, a, row):
    return sum((x / Fraction(p.pi[a][m]) for m, x in enumerate(row) if p.pi[a][m]), Fraction(0))


def local(p, left, L, got, a, benefit, local_amount, stuck):
    """Step 5 for l = k: as printed, or as the sentence after the formula says it."""
    k = p.origin[a]
    printed = max((benefit[m] for m in range(p.K) if m != k and p.pi[a][m] > 0), default=0)
    others = [b for b in range(len(p.pi)) if p.origin[b] != k]
    prose = max((min(left.carry(b, k), left.room(b, k)) * p.w[b] for b in others), default=0)
    prose = prose / Fraction(p.w[a])
    tried = {"prose": [prose], "printed": [printed] + [prose] * (stuck == "prose")}[local_amount]
    for amount in tried:
        if amount > 0:
            return min(amount, benefit[k])
    # one application per cluster takes all that is left; several at home are filled up to
    # one share, the lowest first
    home = sorted((got[b], p.w[b] * Fraction(p.pi[b][k])) for b in L if p.origin[b] == k)
    water, level, width = benefit[k] * p.w[a], home[0][0], Fraction(0)
    for i, (start, weight) in enumerate(home):
        width += weight
        level = start
        if i + 1 == len(home) or water <= width * (home[i + 1][0] - start):
            break
        water -= width * (home[i + 1][0] - start)
    return (level + water / width - got[a]) * p.pi[a][k]


def snapped(beta):
    near = round(beta)
    return Fraction(near) if abs(beta - near) <= SNAP else beta


def connections_of(p, alpha):
    """The least beta that carries alpha (6e)."""
    beta = [[Fraction(0)] * p.K for _ in range(p.K)]
    for k, m in p.L:
        if p.L[k, m]:
            here = [a for a in range(len(p.pi)) if p.origin[a] == k]
            beta[k][m] = sum(alpha[a][m] * p.delta[a] for a in here) / Fraction(p.one(k, m))
    return beta


def round_off(p, alpha):
    """LPR, section 5.2.1: round every relaxed beta down and keep the alpha it can carry."""
    relaxed = connections_of(p, alpha)
    beta = [[floor(snapped(b)) for b in row] for row in relaxed]
    kept = [list(row) for row in alpha]
    for a, k in enumerate(p.origin):
        for m in range(p.K):
            if m != k and relaxed[k][m] > beta[k][m]:
                kept[a][m] = alpha[a][m] * beta[k][m] / relaxed[k][m]
    return kept, beta


def randomised(p, solve, rng, batch=1):
    """LPRR, section 5.2.3; `solve` returns the relaxed alpha for the connections fixed so far.

    Returns the fixed connections, the last alpha and the values in the order of fixing.
    """
    fixed, order = {}, []
    routes = sorted(route for route, links in p.L.items() if links)
    while True:
        alpha = solve(dict(fixed))  # step 1, and every time again
        beta = connections_of(p, alpha)
        open_ = [r for r in routes if r not in fixed and beta[r[0]][r[1]] > SNAP]
        if not open_:
            tiny = [r for r in routes if r not in fixed and beta[r[0]][r[1]] > 0]
            if not tiny:
                fixed.update({route: 0 for route in routes if route not in fixed})
                return fixed, alpha, order
            fixed.update(dict.fromkeys(tiny, 0))
            order += [(route, 0) for route in tiny]
            continue
        for _ in range(min(batch, len(open_))):
            k, m = open_.pop(int(rng.integers(len(open_))))  # step 2
            b = snapped(beta[k][m])
            v = floor(b) + int(rng.random() < b - floor(b))  # step 3
            fixed[k, m] = min(v, spare(p, fixed, k, m))  # step 4
            order.append(((k, m), fixed[k, m]))


def spare(p, fixed, k, m):
    """Whole connections that the fixed ones leave on the route."""
    left = [
        floor(p.max_connect[link]) - sum(v for route, v in fixed.items() if link in p.L[route])
        for link in p.L[k, m]
    ]
    left += [
        floor(limit) - sum(v for route, v in fixed.items() if route in routes)
        for routes, limit in p.pairs
        if (k, m) in routes
    ]
    return min(left)

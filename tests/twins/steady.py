"""Slow, exact twin of program (6) of paper S: a simplex in Fractions, and trying every
number of connections. It shares no code with dlsim."""

from itertools import product
from math import inf

from gmpy2 import mpq as Fraction


def simplex(goal, rows, limits):
    """Maximise goal . x under rows . x <= limits, x >= 0, with limits >= 0 (Bland's rule)."""
    m, n = len(rows), len(goal)
    table = [
        [*map(Fraction, row), *(Fraction(i == j) for j in range(m)), Fraction(limit)]
        for i, (row, limit) in enumerate(zip(rows, limits, strict=True))
    ]
    cost = [*map(Fraction, goal), *[Fraction(0)] * (m + 1)]
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if cost[j] > 0), None)
        if enter is None:
            break
        ratios = [
            (row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0
        ]
        if not ratios:
            return inf, None
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [x / pivot for x in table[leave]]
        for row in (*(r for i, r in enumerate(table) if i != leave), cost):
            factor = row[enter]
            if factor:
                row[:] = [x - factor * y for x, y in zip(row, table[leave], strict=True)]
        basis[leave] = enter
    x = [Fraction(0)] * n
    for i, j in enumerate(basis):
        if j < n:
            x[j] = table[i][-1]
    return -cost[-1], x


def _limits_of_links(p, routes):
    """(routes over it, most connections) of each link and each limited pair."""
    yield from (
        ([r for r in routes if link in p.L[r]], most) for link, most in p.max_connect.items()
    )
    yield from (([r for r in routes if r in pair], most) for pair, most in p.pairs)


def relaxed(p, connections=None):
    """The optimum of (6) with real connections, or with the given ones, and the work."""
    apps, K = range(len(p.w)), range(p.K)
    cells = [(a, m) for a in apps for m in K if m == p.origin[a] or (p.origin[a], m) in p.L]
    routes = [r for r in p.L if p.L[r]] if connections is None else []
    column = {name: 1 + i for i, name in enumerate([*cells, *(("b", r) for r in routes)])}
    rows, limits = [], []

    def add(terms, limit):
        row = [Fraction(0)] * (1 + len(column))
        for name, value in terms:
            row[column[name] if name else 0] += value
        rows.append(row)
        limits.append(limit)

    for a in apps:
        if any(p.pi[a]):
            gain = [((a, m), -1 / p.pi[a][m]) for b, m in cells if b == a and p.pi[a][m]]
            add([(None, 1), *gain], 0)
    for k in K:
        add([((a, m), p.w[a]) for a, m in cells if m == k], p.s[k])
        add([((a, m), p.delta[a]) for a, m in cells if (p.origin[a] == k) != (m == k)], p.g[k])
    for cluster, origins, share in p.caps:
        held = [(a, m) for a, m in cells if m == cluster and p.origin[a] in origins]
        add([(c, p.w[c[0]]) for c in held], share * p.s[cluster])
    for k, m in (r for r in p.L if p.L[r]):
        moved = [((a, to), p.delta[a]) for a, to in cells if p.origin[a] == k and to == m]
        if connections is None:
            add([*moved, (("b", (k, m)), -p.one(k, m))], 0)
        else:
            add(moved, connections[k, m] * p.one(k, m))
    for users, most in _limits_of_links(p, routes) if connections is None else ():
        add([(("b", r), 1) for r in users], most)
    best, x = simplex([1] + [0] * len(column), rows, limits)
    return best, {cell: x[column[cell]] for cell in cells}


def brute_force(p):
    """The optimum of (6) over all whole connections; more of them never harm."""
    routes = [r for r in p.L if p.L[r]]
    links = list(_limits_of_links(p, routes))
    most = [min(cap for users, cap in links if r in users) for r in routes]
    best = None
    for values in product(*(range(cap + 1) for cap in most)):
        opened = dict(zip(routes, values, strict=True))
        left = [(users, cap - sum(opened[r] for r in users)) for users, cap in links]
        if any(room < 0 for _, room in left):
            continue
        if any(all(room > 0 for users, room in left if r in users) for r in routes):
            continue
        value = relaxed(p, opened)[0]
        best = value if best is None else max(best, value)
    return best

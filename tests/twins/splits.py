"""Slow, plain twin of the ways to split a load over nodes with different free instants.

Every number is a Fraction, every comparison exact. ``r`` is always the list r_1 <= ... <= r_n
of the instants at which the chosen nodes are free; tau is Cms and chi is Cps (paper I). It
shares no code with dlsim.
"""

from dataclasses import dataclass
from itertools import islice

from gmpy2 import mpq as Fraction

MOST_ROUNDS = 64
NEARLY = Fraction(1, 10**9)  # rounds="best" takes the smallest M this close to the minimum


@dataclass(frozen=True)
class Chunk:
    """One send to one node; `place` counts the task's nodes from 0 in order of release."""

    place: int
    alpha: Fraction
    send_start: Fraction
    send_end: Fraction
    compute_end: Fraction


# --- one chunk per node ----------------------------------------------------------------------


def sent_in_turn(costs, sigma, shares, r):
    """The head node serves r_1, r_2, ... in turn; no node is served before it is free."""
    chunks, link = [], r[0]
    for i, alpha in enumerate(shares):
        begin = max(r[i], link)
        link = begin + costs.st + alpha * sigma * costs.cms
        chunks.append(Chunk(i, alpha, begin, link, link + costs.sc + alpha * sigma * costs.cps))
    return chunks


def equal_time(costs, sigma, n):
    """E_eq(n), the time of n equal chunks sent one after another."""
    return n * costs.st + costs.sc + sigma * costs.cms + sigma * costs.cps / Fraction(n)


def remodel(costs, sigma, r):
    """Shares and estimate of [6]: early nodes as if faster, all of them free at r_n."""
    tau, chi, n = costs.cms, costs.cps, len(r)
    E = costs.E(sigma, n)
    chi_i = [chi * E / (E + r[-1] - r_i) for r_i in r]
    ratios = [Fraction(1)]  # alpha_i / alpha_1
    for i in range(1, n):
        ratios.append(ratios[-1] * chi_i[i - 1] / (tau + chi_i[i]))  # X_i
    alpha_1 = 1 / sum(ratios)
    shares = [alpha_1 * x for x in ratios]
    return shares, r[-1] + alpha_1 * sigma * (tau + chi_i[0])


def equal_finish(costs, sigma, r):
    """Eqs. (3) and (4): every node busy from r_i on, all finish together; may be negative."""
    w = sigma * (costs.cms + costs.cps)
    e = (sum(r) + w) / Fraction(len(r))
    return [(e - r_i) / w for r_i in r], e


def constraint(costs, sigma, r, which, skip_ties=False):
    """Constraint 1 or 2 as printed, for i = 2..n."""
    shares, _ = equal_finish(costs, sigma, r)
    for i in range(1, len(r)):
        gap = r[i] - r[i - 1]
        if gap == 0 and skip_ties:
            continue
        if gap < (1 if which == 1 else shares[i - 1]) * sigma * costs.cms:
            return False
    return True


def is_met(costs, sigma, r, which):
    """Whether (3)-(4) may be used: the constraint and a last share above 0 (erratum 13)."""
    return constraint(costs, sigma, r, which) and equal_finish(costs, sigma, r)[0][-1] > 0


def optimum(costs, sigma, r):
    """The true single-round optimum: march through the pieces of load(xi).

    By xi the nodes can process load(xi) when each takes all it can in its turn. That is
    piecewise linear and increasing; from r_1 on, each piece is followed to its end.
    """
    w, xi = costs.cms + costs.cps, r[0]
    while True:

        def beyond(line, xi=xi):  # a line is a + b xi; order of two lines just beyond xi
            return (line[0] + line[1] * xi, line[1])

        load, link, turns = (Fraction(0), Fraction(0)), (r[0], Fraction(0)), []
        for r_i in r:
            free = (r_i, Fraction(0))
            turns.append(crossing(free, link))
            begin = max(free, link, key=beyond)
            room = (-begin[0], 1 - begin[1])
            turns.append(crossing(room, (0, 0)))
            taken = (room[0] / w, room[1] / w) if beyond(room) > (0, 0) else (0, 0)
            load = (load[0] + taken[0], load[1] + taken[1])
            link = (begin[0] + taken[0] * costs.cms, begin[1] + taken[1] * costs.cms)
        turns = [t for t in turns if t is not None and t > xi]
        end = (sigma - load[0]) / load[1]
        if not turns or end <= min(turns):
            return end
        xi = min(turns)


def crossing(line, other):
    """Where two lines meet; None where they are parallel."""
    slope = line[1] - other[1]
    return None if slope == 0 else (other[0] - line[0]) / slope


def filled(costs, sigma, r, e):
    """Shares of the optimum: every node in turn works to e."""
    shares, link = [], r[0]
    for r_i in r:
        begin = max(r_i, link)
        taken = max(Fraction(0), (e - begin) / (costs.cms + costs.cps))
        link = begin + taken * costs.cms
        shares.append(taken / sigma)
    return shares


def in_pieces(costs, sigma, r, shared):
    """User split: a piece of sigma/n per node, each a task of its own for the link."""
    chunks, link = [], r[0]
    for i, r_i in enumerate(r):
        begin = max(r_i, link) if shared else r_i
        link = begin + costs.st + sigma * costs.cms / Fraction(len(r))
        end = link + costs.sc + sigma * costs.cps / Fraction(len(r))
        chunks.append(Chunk(i, Fraction(1, len(r)), begin, link, end))
    return chunks


# --- several rounds ---------------------------------------------------------------------------


def recursion(costs, n):
    """c_j = a_j c_0 + b_j for j = 0, 1, ...: sending round j+1 takes as long as computing j."""
    theta = costs.cps / Fraction(n * costs.cms)
    kappa = (costs.sc / Fraction(n) - costs.st) / Fraction(costs.cms)
    a, b = Fraction(1), Fraction(0)
    while True:
        yield a, b
        a, b = theta * a, theta * b + kappa


def instalments(costs, sigma, n, rounds):
    """c_0..c_{M-1}: n of each make up the load."""
    lines = list(islice(recursion(costs, n), rounds))
    c_0 = (sigma / Fraction(n) - sum(b for _, b in lines)) / sum(a for a, _ in lines)
    return [a * c_0 + b for a, b in lines]


def sent_in_rounds(costs, sigma, sizes, r):
    """Round after round, in order of release within a round; a node computes in turn."""
    link, computed, chunks = r[0], list(r), []
    for c in sizes:
        for i, r_i in enumerate(r):
            begin = max(link, r_i)
            link = begin + costs.st + costs.cms * c
            computed[i] = max(link, computed[i]) + costs.sc + costs.cps * c
            chunks.append(Chunk(i, c / sigma, begin, link, computed[i]))
    return chunks


def chosen_rounds(costs, sigma, n, rounds):
    """How many: `rounds`, lowered until every size is positive; or the best of 1..64."""
    most = MOST_ROUNDS if rounds == "best" else rounds
    times, total_a, total_b = {}, Fraction(0), Fraction(0)
    for m, (a, b) in enumerate(islice(recursion(costs, n), most), 1):
        total_a, total_b = total_a + a, total_b + b
        c_0 = (sigma / Fraction(n) - total_b) / total_a
        if c_0 > 0 and a * c_0 + b > 0:  # sizes rise or fall, so the others lie between
            times[m] = makespan(costs, sigma, n, m, c_0)
    if rounds != "best":
        return max(times)
    return min(m for m, t in times.items() if t <= min(times.values()) * (1 + NEARLY))


def makespan(costs, sigma, n, rounds, c_0):
    """End of the last computation on n nodes free at 0 (tested against `sent_in_rounds`)."""
    first = n * (costs.st + costs.cms * c_0)
    return first + rounds * costs.sc + costs.cps * sigma / Fraction(n)

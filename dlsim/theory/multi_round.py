"""Several rounds on equal nodes that never wait (UMR style): chunks and makespan.

Every node gets one chunk of size c_j in round j = 0..M-1; a round is sent while the one
before is computed. Derived here; the papers only announce it as future work.
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import SC, ST, chi, counts, n, positive, sigma, tau, y, z

N, M, rnd = counts("N M j")
c0, eta, theta, kappa = sp.symbols("c_0 eta theta kappa", real=True)
grow, x = positive("theta y")
_THETA, _KAPPA = chi / (N * tau), (SC / N - ST) / tau


@statement(
    "U.rec",
    {"theta upside down": {"factor": 1 / _THETA}, "ST for -ST": {"extra": (SC / N + ST) / tau}},
)
def _(d: Derivation, factor: Any = _THETA, extra: Any = _KAPPA) -> None:
    now, after = sp.symbols("c_j c_{j+1}")
    balance = SC + chi * now - N * (ST + tau * after)
    solved = sp.solve(balance, after)[0]
    d.equal(solved, factor * now + extra, "solved for the next chunk", "c_{j+1}")


@statement("U.cj", {"j+1 for j": {"shift": 1}, "sign of eta": {"sign": -1}})
def _(d: Derivation, shift: int = 0, sign: int = 1) -> None:
    fixed = sign * kappa / (1 - grow)
    chunk = grow ** (rnd + shift) * (c0 - fixed) + fixed
    f = sp.Function("c")
    solved = sp.rsolve(f(rnd + 1) - grow * f(rnd) - kappa, f(rnd), {f(0): c0})
    d.equal(solved, chunk, "the recurrence solved", "c_j")
    d.equal(chunk.subs(rnd, rnd + 1), grow * chunk + kappa, "and put back", "c_{j+1}")
    even = c0 + rnd * kappa
    d.equal(even.subs(rnd, rnd + 1), even + kappa, r"$\theta = 1$ has its own branch", "c_{j+1}")


@statement("U.sum", {"M+1 rounds": {"rounds": M + 1}, "eta once": {"count": 1}})
def _(d: Derivation, rounds: Any = M, count: Any = M) -> None:
    chunk = grow ** (rnd - 1) * (c0 - eta) + eta
    total = (c0 - eta) * (1 - grow**rnd) / (1 - grow) + rnd * eta
    d.induct(total, chunk, rnd, r"sum of the first $j$ chunks")
    solved = sp.solve(N * total.subs(rnd, M) - sigma, c0)[0]
    closed = eta + (sigma / N - count * eta) * (1 - grow) / (1 - grow**rounds)
    d.equal(solved, closed, r"$M$ rounds carry $\sigma$", "c_0")
    even = rnd * c0 + kappa * rnd * (rnd - 1) / 2
    d.induct(even, c0 + (rnd - 1) * kappa, rnd, r"the same for $\theta = 1$")
    solved = sp.solve(N * even.subs(rnd, M) - sigma, c0)[0]
    d.equal(solved, sigma / (N * M) - kappa * (M - 1) / 2, r"$\theta=1$", "c_0")


def simulate(
    nodes: int, chunks: list[Fraction], st: Fraction, sc: Fraction, send: Fraction,
    compute: Fraction,
) -> Fraction:  # fmt: skip
    """Return when the last chunk is computed: one link, rounds in order, exact."""
    link, done = Fraction(0), [Fraction(0)] * nodes
    for chunk in chunks:
        for node in range(nodes):
            link += st + send * chunk
            done[node] = max(done[node], link) + sc + compute * chunk
    return max(done)


def chunks_of(
    size: Fraction, nodes: int, rounds: int, st: Fraction, sc: Fraction, send: Fraction,
    compute: Fraction,
) -> list[Fraction]:  # fmt: skip
    """Return the chunks of the closed form, exactly."""
    ratio, step = compute / (nodes * send), (sc / nodes - st) / send
    if ratio == 1:
        first = size / (nodes * rounds) - step * (rounds - 1) / 2
    else:
        fixed = step / (1 - ratio)
        first = fixed + (size / nodes - rounds * fixed) * (1 - ratio) / (1 - ratio**rounds)
    chunks = [first]
    while len(chunks) < rounds:
        chunks.append(ratio * chunks[-1] + step)
    return chunks


@statement("U.mk", {"SC once": {"starts": 1}, "first send of one node": {"first": 1}})
def _(d: Derivation, starts: Any = M, first: Any = N) -> None:
    chunk, upto = sp.symbols("c_j C_j", nonnegative=True)
    arrival = N * (ST + tau * c0) + rnd * SC + chi * upto
    sent = N * (rnd * ST + tau * upto) + N * (ST + tau * chunk)
    rest = SC * rnd + chi * upto - N * (rnd * ST + tau * (upto + chunk - c0))
    why = r"node $N$: end of its $j$ chunks minus arrival of the next, $C_j=c_0+\dots+c_{j-1}$"
    d.equal(arrival - sent, rest, why, r"\text{gap}_j")
    following = sp.Symbol("c_{j+1}", nonnegative=True)
    more = rest.subs({rnd: rnd + 1, upto: upto + chunk, chunk: following}, simultaneous=True)
    why = r"this gap changes by the balance of U.rec, which is 0"
    right = SC + chi * chunk - N * (ST + tau * following)
    d.equal(more - rest, right, why, r"\text{gap}_{j+1}-\text{gap}_j")
    why = "and starts at 0: node $N$ never waits, nor does a chunk"
    d.equal(rest.subs({rnd: 0, upto: 0, chunk: c0}), 0, why, r"\text{gap}_0")
    node = counts("i")
    d.assume(N - node, r"node $i$ of $N$", strict=False)
    why = r"node $i$ gets each chunk no later than node $N$, so it ends no later"
    d.nonnegative((N - node) * (ST + tau * chunk), y * (ST + tau * chunk), why, {y: N - node})
    total = sp.Symbol("C_M", nonnegative=True)
    last = first * (ST + tau * c0) + starts * SC + chi * total
    why = r"node $N$ starts after $N$ sends and computes without a pause, $N C_M = \sigma$"
    left = (N * (ST + tau * c0) + M * SC + chi * total).subs(total, sigma / N)
    d.equal(left, last.subs(total, sigma / N), why, r"\text{makespan}")
    cases = [(3, 4, 1, 2, 1, 9), (4, 3, 0, 0, 2, 4), (2, 5, 1, 3, 1, 2), (2, 3, 1, 1, 2, 1)]
    for nodes, rounds, *rest_ in cases:
        st, sc, send, compute = map(Fraction, rest_)
        chunks = chunks_of(Fraction(60), nodes, rounds, st, sc, send, compute)
        closed = nodes * (st + send * chunks[0]) + rounds * sc + compute * Fraction(60, nodes)
        why = f"event by event: N={nodes}, M={rounds}, ST={st}, SC={sc}, tau={send}, chi={compute}"
        holds = min(chunks) > 0 and simulate(nodes, chunks, st, sc, send, compute) == closed
        d.exact(holds, rf"\text{{makespan}} = {sp.latex(sp.Rational(closed))}", why)


@statement("U.M1", {"better than OPR": {"sign": -1}, "chunks of sigma": {"size": sigma}})
def _(d: Derivation, sign: int = 1, size: Any = sigma / N) -> None:
    first = eta + (sigma / N - M * eta) * (1 - grow) / (1 - grow**M)
    d.equal(first.subs(M, 1), size, r"$M = 1$", "c_0")
    left = N * (ST + tau * sigma / N) + SC + chi * sigma / N
    d.equal(left, N * ST + tau * sigma + SC + chi * sigma / N, "put into U.mk")
    # Bernoulli: (1 + x)^n >= 1 + n x
    why = r"Bernoulli's inequality, by induction, $y = \tau/\chi$"
    d.grows((1 + x) ** n - 1 - n * x, n, 0, n * x**2, why, factor=x, strict=False)
    bern = d.at((1 + x) ** n - 1 - n * x, {n: N})
    over = (1 + x) ** N - 1
    d.positive(over, z + N * x, r"so $\beta^{-N}-1 > 0$, $\beta = 1/(1+y)$", {z: bern})
    excess = sigma * tau * (1 + 1 / (x * N)) - sigma * tau / (1 - (1 + x) ** (-N))
    why = r"equal split minus OPR, times $yN(\beta^{-N}-1) > 0$"
    d.equal(excess * (x * N * over), sigma * tau * bern, why)
    d.nonnegative(sign * sigma * tau * bern, sigma * tau * y, "is not negative", {y: bern})


@statement("U.inf", {"limits exchanged": {"swap": True}})
def _(d: Derivation, swap: bool = False) -> None:
    rate, many = positive("a M")
    for sign, limit, name in ((1, chi * sigma / N, ">"), (-1, tau * sigma, "<")):
        ratio = sp.exp(sign * rate)
        c_inf = sp.limit(sigma / N * (1 - ratio) / (1 - sp.exp(sign * rate * many)), many, sp.oo)
        wanted = 0 if sign > 0 else sigma / N * (1 - ratio)
        why = rf"$\theta = e^{{{'' if sign > 0 else '-'}a}} {name} 1$"
        d.equal(c_inf, wanted, why, r"\lim c_0")
        makespan = N * tau * c_inf + (ratio * N * tau) * sigma / N
        end = limit.subs(chi, ratio * N * tau)
        if swap:
            end = (tau * sigma if sign > 0 else chi * sigma / N).subs(chi, ratio * N * tau)
        d.equal(makespan, end, r"with $\chi = \theta N\tau$", r"\lim\text{makespan}")

"""Paper M, section 4: shares, execution time and n_min, without and with set-up costs."""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import SC, ST, Delta, L, a1, a2, b, j, n, p, phi, positive, q, sigma, w
from dlsim.theory.words import B, Cms, Cps, G, powers_below_one, share

_ms, _ps = positive("C_ms C_ps")
_E = r"\mathcal{E}"


@statement("4.5", {"ratio of the other cost": {"beta": _ms / (_ms + _ps)}, "sign": {"sign": -1}})
def _(d: Derivation, beta: Any = _ps / (_ms + _ps), sign: int = 1) -> None:
    first = a1 * sigma * _ms + a1 * sigma * _ps
    second = (a1 + a2) * sigma * _ms + sign * a2 * sigma * _ps
    why = r"the factor $\sigma(C_{ms}+C_{ps})$ is positive"
    d.equal(second - first, sigma * (_ms + _ps) * (a2 - beta * a1), why, r"(4.2)-(4.1)")
    d.equal(sp.solve(second - first, a2)[0], beta * a1, r"solved for $\alpha_2$", r"\alpha_2")
    d.equal((_ms + _ps) * (1 - beta), _ms, r"hence $C_{ms} = (1-\beta) w$", r"w(1-\beta)")
    d.equal((_ms + _ps) * beta, _ps, r"and $C_{ps} = \beta w$, $w = C_{ms} + C_{ps}$", r"w\beta")


@statement("4.1-4.4", {"n+1 for n": {"power": n + 1}, "growing shares": {"ratio": 1 / b}})
def _(d: Derivation, power: Any = n, ratio: Any = b) -> None:
    powers_below_one(d)
    before, now, after = sp.symbols("A_j a_j a_{j+1}")
    line = sigma * Cms * before + sigma * Cps * now
    following = sigma * Cms * (before + after) + sigma * Cps * after
    why = r"with $A_j = \alpha_1 + \dots + \alpha_j$"
    d.equal(
        following - line, sigma * w * (after - ratio * now), why, r"\text{line}_{j+1}-\text{line}_j"
    )
    y_ = sp.Function("alpha")
    solved = sp.rsolve(y_(j + 1) - ratio * y_(j), y_(j), {y_(1): a1})
    shares = d.equal(solved, a1 * ratio ** (j - 1), "the recurrence solved", r"\alpha_j")
    d.equal(shares.subs(j, 1), a1, "its first value", r"\alpha_1\beta^0")
    total = d.induct(a1 * G(j), shares, j, r"sum of the first $j$ shares, by induction on $j$")
    first = (1 - b) / (1 - b**power)
    d.equal(total.subs({j: n, a1: first}), 1, r"the shares sum to 1", r"\sum_{j \le n} \alpha_j")
    d.equal(first.subs(n, 1), 1, r"one node takes all: $0 < \alpha_j \le 1$", r"\alpha_1|_{n=1}")


@statement("E(n)", {"n-1 for n": {"power": n - 1}, "C_ps for C_ms": {"link": Cps}})
def _(d: Derivation, power: Any = n, link: Any = Cms) -> None:
    first = (1 - b) / (1 - b**n)
    d.equal(first * sigma * w, sigma * link / (1 - b**power), r"by $C_{ms} = (1-\beta) w$", _E)
    d.induct(first * G(j), first * b ** (j - 1), j, "data sent to the first $j$ nodes, in shares")
    finish = sigma * link * first * G(j) + sigma * Cps * first * b ** (j - 1)
    why = "node $j$ has its data after $j$ sends, then computes"
    right = sigma * Cms / (1 - b**power)
    d.equal(finish, right, why, r"\sigma C_{ms} \sum_{i \le j} \alpha_i + \alpha_j \sigma C_{ps}")


@statement("4.6g", {"C_ps for C_ms": {"link": Cps}, "sign of the log": {"log": L * n}})
def _(d: Derivation, link: Any = Cms, log: Any = -L * n) -> None:
    powers_below_one(d)
    gamma = 1 - sigma * link / Delta
    d.equal((1 - b) * sigma * w, sigma * link, r"$C_{ms} = (1-\beta)w$", r"\sigma C_{ms}")
    d.equal(1 - (1 - b) * sigma * w / Delta, gamma, "the right side of (4.6)", r"\gamma")
    why = r"$\Delta - \mathcal{E}$ and $\gamma - \beta^n$ have one sign: $(1-\beta^n)/\Delta > 0$"
    d.equal((Delta - sigma * Cms / (1 - b**n)) * (1 - b**n) / Delta, gamma - b**n, why)
    why = (
        r"with $\beta = e^{-L}$, $L > 0$; the logarithm is increasing, and dividing by "
        r"$\ln\beta < 0$ turns the inequality"
    )
    d.equal(sp.expand_log(sp.log(sp.exp(-L) ** n), force=True), log, why, r"\ln \beta^n")


@statement("4.6inf", {"twice the floor": {"floor": 2 * sigma * Cms}, "limit 0": {"floor": 0}})
def _(d: Derivation, floor: Any = sigma * Cms) -> None:
    powers_below_one(d)
    E = sigma * Cms / (1 - b**n)
    given = {p: 1 - b, q: 1 - b**n}
    excess = sigma * p * w * b**n / q
    why = r"above $\sigma C_{ms}$ for every $n$"
    d.positive(E - floor, excess, why, given, r"\mathcal{E}-\sigma C_{ms}")
    real = sp.Symbol("n", positive=True)
    limit = sp.limit(sigma * (1 - sp.exp(-L)) * w / (1 - sp.exp(-L * real)), real, sp.oo)
    why = r"and no higher bound holds"
    d.equal(limit, floor.subs(b, sp.exp(-L)), why, r"\lim_{n\to\infty}\mathcal{E}")
    why = (
        r"$\sigma C_{ms} = 3/2$, $\Delta = 1 > 0$: the printed condition holds, "
        r"$\ln\gamma$ does not exist"
    )
    d.exact((1 - sp.Rational(3, 2) / 1) < 0, r"\gamma = 1 - \tfrac{3/2}{1} = -\tfrac12", why)


@statement("4.7-4.10", {"the misprint": {"last": j - 1}, "SC in phi": {"setup": SC / (sigma * w)}})
def _(d: Derivation, last: Any = j, setup: Any = ST / (sigma * w)) -> None:
    before, now, after = sp.symbols("A_j a_j a_{j+1}")
    line = j * ST + SC + sigma * Cms * before + sigma * Cps * now

    def following(sends: Any) -> Any:
        return sends * ST + SC + sigma * Cms * (before + after) + sigma * Cps * after

    why = r"their difference vanishes iff $\alpha_{j+1} = \beta\alpha_j - \phi$"
    left = following(last + 1) - line
    d.equal(left, sigma * w * (after - (b * now - setup)), why, r"\text{line}_{j+1}-\text{line}_j")
    printed = sp.solve(following(j) - line, after)[0]
    d.equal(printed, b * now, r"the printed last line, $(n-1)ST$, would give", r"\alpha_n")
    d.correct(printed, b * now - ST / (sigma * w), "which contradicts (4.11)")


@statement("4.11r", {"sign": {"sign": -1}, "j for j-1": {"shift": 1}})
def _(d: Derivation, sign: int = 1, shift: int = 0) -> None:
    shares = share(j + shift, a1, sign * phi)
    y_ = sp.Function("alpha")
    solved = sp.rsolve(y_(j + 1) - b * y_(j) + phi, y_(j), {y_(1): a1})
    d.equal(solved, shares, "the recurrence solved", r"\alpha_j")
    d.equal(shares.subs(j, j + 1), b * shares - phi, "and put back", r"\alpha_{j+1}")
    d.equal(shares.subs(j, 1), a1, "with its first value", r"\alpha_1")


def _setup_sum() -> Any:
    return a1 * G(j) - phi * (j - G(j)) / (1 - b)


@statement("4.12", {"n-1 for n": {"count": n - 1}, "no last term": {"tail": 0}})
def _(d: Derivation, count: Any = n, tail: Any = phi / (1 - b)) -> None:
    total = d.induct(_setup_sum(), share(j, a1), j, "sum of the first $j$ shares, by induction")
    solved = sp.solve(total.subs(j, n) - 1, a1)[0]
    printed = (1 - b) / (1 - b**n) + count * phi / (1 - b**n) - tail
    d.equal(solved, printed, "the sum of all $n$ set to 1", r"\alpha_1")


@statement("4.12G", {"sum to n": {"upto": n + 1}, "another start": {"start": 2}})
def _(d: Derivation, upto: Any = n, start: Any = 1) -> None:
    d.equal(G(1), start, "the first", "G_1")
    d.equal(G(n + 1), 1 + b * G(n), "the recursion of the engine", "G_{n+1}")
    d.equal(G(n + 1), G(n) + (1 - (1 - b) * G(n)), "in the form that does not round beta")
    total = d.induct((j + 1 - G(j + 1)) / (1 - b), G(j), j, r"sum of the first $j$")
    below = total.subs(j, upto - 1)
    d.equal((1 + phi * below) / G(n), B(n), r"put together", r"(1 + \phi\sum_{i<n}G_i)/G_n")


@statement("4.12fin", {"(n-1)ST": {"sends": j - 1}, "SC twice": {"starts": 2}})
def _(d: Derivation, sends: Any = j, starts: int = 1) -> None:
    setup = phi * sigma * w
    d.induct(_setup_sum(), share(j, a1), j, "data sent to the first $j$ nodes, in shares")
    finish = sends * setup + starts * SC + sigma * (Cms * _setup_sum() + Cps * share(j, a1))
    d.equal(
        finish.subs(a1, B(n)),
        setup + SC + sigma * w * B(n),
        r"node $j$, for all $j$ and $n$, with $ST = \phi\sigma w$",
        r"j\,ST + \sigma C_{ms}\sum_{i\le j}\alpha_i + SC + \alpha_j\sigma C_{ps}",
    )


@statement("4.13->4.6", {"phi stays": {"setup": phi}})
def _(d: Derivation, setup: Any = 0) -> None:
    without = sigma * w * (1 - b) / (1 - b**n)
    d.equal(sigma * w * B(n, setup), without, r"$\phi = 0$", r"\sigma w\,\mathcal{B}(n)")


@statement("b->1", {"n for n-1": {"count": n}, "limits exchanged": {"ends": (0, 1)}})
def _(d: Derivation, count: Any = n - 1, ends: tuple[int, int] = (1, 0)) -> None:
    beta = sp.Symbol("beta_0", nonnegative=True)
    put = r"4.12G holds for every $\beta$ in $[0,1]$ and is continuous there: put $\beta = {}$"
    values = ((ends[0], j, count / 2), (ends[1], sp.S.One, count))
    for end, growth, extra in values:
        d.equal(growth.subs(j, 1), 1, f"$G_1$ at $\\beta = {end}$", "G_1")
        why = f"$G_{{j+1}} = 1 + \\beta G_j$ at $\\beta = {end}$"
        d.equal(growth.subs(j, j + 1), 1 + (beta * growth).subs(beta, end), why, "G_{j+1}")
        below = j * (j + 1) / 2 if growth == j else j
        d.induct(below, growth, j, "the sum of the first $j$")
        limit = (1 + phi * below.subs(j, n - 1)) / growth.subs(j, n)
        wanted = 1 / growth.subs(j, n) + phi * extra
        d.equal(limit, wanted, put.format(end), r"\mathcal{B}(n)")
    d.argue("Sums and quotients of polynomials in beta, the denominator at least 1: continuous.")

"""The papers' symbols, with what SymPy may assume of them, and the formulas built from them."""

import sympy as sp


class Ratio(sp.Symbol):
    """A symbol for a number strictly between 0 and 1, such as beta = Cps/(Cms + Cps)."""

    def __new__(cls, name: str) -> "Ratio":
        """Return the ratio of that name."""
        return super().__new__(cls, name, positive=True)


beta = Ratio("beta")
#: Numbers of nodes and their indices.
n, j, k, m, i = sp.symbols("n j k m i", integer=True, positive=True)
#: A real number of nodes.
x = sp.Symbol("x", positive=True)
sigma, w, Delta = sp.symbols("sigma w Delta", positive=True)
phi, SC = sp.symbols("phi SC", nonnegative=True)
alpha_1 = sp.Symbol("alpha_1", real=True)
#: Shares of the load by node, release times, start times: sequences of real numbers.
alpha = sp.Function("alpha", real=True)
r = sp.Function("r", real=True)
s = sp.Function("s", real=True)

#: Paper M's costs, with w = Cms + Cps: (4.5), and ST from (4.11).
Cms, Cps = (1 - beta) * w, beta * w
ST = phi * sigma * w
#: Paper I's names of the same costs.
tau, chi = Cms, Cps


#: The indices of sums that `total` makes: from 1 and from 0, one for each depth of nesting.
_INDICES = {
    1: [sp.Dummy(name, integer=True, positive=True) for name in ("i", "h", "g")],
    0: [sp.Dummy(name, integer=True, nonnegative=True) for name in ("i", "h", "g")],
}


def total(term: object, upper: object, lower: object = 1) -> sp.Expr:
    """Return the sum of ``term(i)`` for i from `lower`, 1 or 0, to `upper`.

    The index is no symbol of the caller's, whatever its name.
    """
    indices = _INDICES[lower]  # type: ignore[index]
    probe = sp.Dummy(**indices[0].assumptions0)
    used = sp.sympify(term(probe)).atoms(sp.Symbol)  # type: ignore[operator]
    index = next(one for one in indices if one not in used)
    return sp.Sum(term(index), (index, lower, upper))  # type: ignore[operator]


def at_point(expression: object, values: dict[sp.Symbol, object]) -> sp.Expr:
    """Return an expression with values put in, kept apart, so that a line shows both."""
    return sp.Subs(expression, tuple(values), tuple(values.values()))


def geometric(count: object) -> sp.Expr:
    """Return G_n = 1 + beta + ... + beta^(n-1)."""
    return (1 - beta**count) / (1 - beta)


def first_share(count: object, setup: object = phi) -> sp.Expr:
    """Return B(n), the first of n shares with set-up cost (paper M, 4.12)."""
    power = beta**count
    return (1 - beta) / (1 - power) + count * setup / (1 - power) - setup / (1 - beta)  # type: ignore[operator]


def share(index: object, first: object, setup: object = phi) -> sp.Expr:
    """Return the j-th share, by the formula below (4.11) of paper M."""
    before = beta ** (index - 1)  # type: ignore[operator]
    return first * before - (1 - before) / (1 - beta) * setup


def time_formula(count: object, setup: object = phi, start: object = SC) -> sp.Expr:
    """Return E(n) = ST + SC + sigma (Cms + Cps) B(n) (paper M, below 4.12)."""
    return setup * sigma * w + start + sigma * w * first_share(count, setup)


def cost(count: object) -> sp.Expr:
    """Return W(n) = n E(n) (paper M, section 5)."""
    return count * time_formula(count)

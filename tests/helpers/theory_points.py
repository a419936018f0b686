"""Points at which the hypotheses of each statement hold together, and how a claim is tried there.

Hypotheses that contradict each other would prove anything. A point maps the names of symbols to
numbers and the names of sequences to functions of a whole number.
"""

import sympy as sp
from sympy import Integer, Rational, log
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from dlsim.theory.relations import Every, Iff

#: The values at all points, unless a point below has another.
COMMON = {
    "n": 3, "j": 1, "k": 3, "m": 2, "x": Rational(7, 2), "beta": Rational(1, 2), "w": 2,
    "sigma": 3, "phi": Rational(1, 20), "SC": 1, "Delta": 7,
}  # fmt: skip


def third(_):
    """An equal share of three."""
    return Rational(1, 3)


def one(_):
    """Always 1."""
    return Integer(1)


def first_of_three(first, setup=0):
    """Shares by the recurrence, each half of the one before less the set-up cost."""
    return lambda index: first / 2 ** (index - 1) - 2 * setup * (1 - Rational(1, 2 ** (index - 1)))


def product_of_betas(count):
    """P_i for releases 2, 1 and 0 before the last, beta = 1/2 and E = 24/7."""
    time = Rational(24, 7)
    return sp.prod([time / (2 * time + 3 - node) for node in range(1, int(count) + 1)])


def parity(index):
    """1, 0, 1, ..."""
    return Integer(index) % 2


BY_NODE = {"r": Rational}
REMODEL = {"p": lambda node: Integer(3) - node, "P": product_of_betas, "E": Rational(24, 7)}
APART = {"r": lambda index: Integer(2 * index), "s": lambda index: Integer(2 * index), "sigma": 1}
CONSTRAINT_1 = {
    **APART, "w": 14, "beta": Rational(13, 14), "x": third, "e'": 30,
    "alpha": lambda index: (Rational(26, 3) - 2 * index) / 14,
}  # fmt: skip
#: The point of each statement that has hypotheses.
WITNESSES = {
    "4.1-4.4": {"alpha": first_of_three(Rational(4, 7))},
    "n_min": {},
    "4.6inf": {"Delta": 2},
    "4.11r": {"alpha": first_of_three(1, Rational(1, 20))},
    "4.12": {"alpha_1": 2, "alpha": first_of_three(Rational(9, 14), Rational(1, 20))},
    "ajmono": {"alpha_1": 1},
    "5.2c": {"n^*": 3, "phi": log(2) / (14 - 6 * log(2))},
    "OPR": {"M": 100, "alpha": third},
    "1.1": {
        "r": lambda _: Integer(2), "alpha": first_of_three(Rational(4, 7)), "e": Rational(38, 7),
        "s": lambda index: 2 + Rational(24, 7) * (1 - Rational(2) ** (1 - index)),
    },
    "1.3-4": {**BY_NODE, "e": 4, "alpha": lambda index: Rational(4 - index) / 6},
    "1.pos": BY_NODE,
    "1.opt": {**BY_NODE, "e'": 9, "x": third, "sigma": 4},
    "1.s": {"r": lambda _: Integer(2), "alpha": third, "s": lambda index: 2 + Rational(index - 1)},
    "1.T2": {"r": lambda _: Integer(2), "s": lambda index: Integer(1 + index), "alpha": third},
    "1.C1C2": {**APART, "alpha": third, "w": 2},
    "1.C1n": {"r": Integer, "beta": Rational(9, 10), "sigma": 2},
    "1.T3": CONSTRAINT_1,
    "1.C2": CONSTRAINT_1,
    "6.closed": REMODEL,
    "6.EhatE": REMODEL,
    "6.safe": {**REMODEL, "r_n": 5, "s": lambda index: Integer(2 + index)},
    "6.second": {
        "p": lambda node: Integer(3) - node, "E": 4, "T": Rational(16, 5), "e": 3, "x": 1,
        "sigma": 12,
    },
    "opt.run": {"e'": 20, "rho": 1, "x": lambda _: Integer(2)},
    "opt.blk": {"e'": 20, "r": Integer, "m": lambda _: Integer(2), "x": one},
    "opt.fill": {"x": lambda node: Rational(8, 2 ** int(node))},
    "opt.order": {"s_1": 3, "s_2": 4, "r_a": 1, "r_b": 2},
    "Y.price": {"K": 3, "a": 1, "Z": 2, "V": 5, "P": 3, "m": 1, "u": one, "x": one},
    "Y.sum": {"F": lambda index: 9 - Integer(index), "z": one, "v": lambda _: Integer(2)},
    "Y.floor": {"alpha": third},
    "S.L1": {
        "a": 1, "b": 2, "i_1": 2, "i_2": 1, "B": 2, "u": Integer, "v": lambda edge: edge + 1,
        "alpha": parity, "beta": parity, "x": parity,
    },
    "S.L1size": {"a": lambda edge, vertex: Integer(vertex in (edge, edge + 1))},
    "S.L1NP": {"beta": one, "C": 4, "d": 3, "K": 2, "b": 2, "L": lambda _: Integer(2)},
    "S.LPR": {
        r"\tilde{\alpha}": lambda _: Rational(1, 2), r"\tilde{\beta}": lambda _: Rational(3, 2),
        "s_k": 4, "g_k": 9, "C": 5, "w": one, "d": lambda _: Integer(2),
        "delta": lambda _: Integer(2), "g": lambda _: Integer(3),
    },
    "S.bound": {
        "A": lambda row, column: Integer(1), "z": one, "y": lambda _: Integer(2),
        "b": lambda _: Integer(4), "c": lambda _: Integer(3),
    },
    "S.LPRR": {"v": 1, r"\tilde{\beta}": Rational(3, 2), "C": 3},
    "S.G5": {
        "g_k": 0, "p": 1, "alloc": 0, "bw": one, "g": one, "s": one, "s_k": 4, "delta": 1,
    },
    "S.Tp": {
        "T_p": 6, "u": Integer, "v": Integer, "q": lambda index: 6 / Integer(index), "alpha": one,
        "w": one, "d": one, "s_k": 4, "g_k": 4,
    },
    "B.1-3": {
        "T_S": 1, "T_deadline": 4, "now": 1, "Opt": Rational(1, 2), "W_send": 1, "W_recv": 2,
        "W_s": 3, "P_send": 1, "P_recv": 2, "P_serv": 3, "d": 1,
    },
    "B.4": {"T": Integer, "T_target": 3, "T_target'": 5, "c": 3, "c'": 5},
    "B.4late": {"T": Integer, "T_target": 1, "c": 1},
    "B.7": {"N_fallbacks": Integer, "N_max": 3, "F": 2},
}  # fmt: skip


def point_of(statement, given=None):
    """The point of a statement, by its symbols and sequences; the inner sequences come first."""
    given = given or WITNESSES[statement.key]
    values = {**given, **COMMON} | given
    named = set()
    for claim in (*statement.hypotheses, *statement.goals):
        named |= claim.free_symbols
        named |= {part.func for side in claim.sides for part in side.atoms(AppliedUndef)}
    return {one: value for name, value in values.items() for one in named if str(one) == name}


def holds_at(claim, point):
    """Whether a claim holds at a point, computed exactly where it is rational."""
    if isinstance(claim, Iff):
        return holds_at(claim.first, point) == holds_at(claim.second, point)
    if isinstance(claim, Every):
        low, high = (int(value_at(end, point)) for end in (claim.low, claim.high))
        points = (point | {claim.index: count} for count in range(low, high + 1))
        return all(holds_at(claim.relation, one) for one in points)
    gap = value_at(claim.gap, point)
    if not gap.is_Rational:
        gap = Integer(0) if abs(gap.evalf(40)) < sp.Float("1e-30") else gap.evalf(40)
    return bool({"=": gap == 0, ">": gap > 0, ">=": gap >= 0}[claim.kind])


HELD = {sp.Max: sp.Function("max"), sp.Min: sp.Function("min")}


def value_at(expression, point):
    """Put numbers in: symbols first, so that sums have known bounds, then sequences."""
    symbols = {old: sp.sympify(new) for old, new in point.items() if isinstance(old, sp.Symbol)}
    if not expression.has(ExprWithLimits, AppliedUndef, sp.Derivative, sp.Subs):
        return sp.expand(expression.xreplace(symbols).doit())  # the fast way: nothing is bound
    for extreme, held in HELD.items():  # maxima of what has no value yet
        expression = expression.replace(extreme, held)
    result = expression.subs(symbols, simultaneous=True).doit()
    for old, new in point.items():
        if not isinstance(old, sp.Symbol):
            result = result.replace(old, new)
    for extreme, held in HELD.items():
        result = result.replace(held, extreme)
    return sp.expand(result.doit())

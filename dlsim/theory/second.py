"""A second opinion on every goal, from outside SymPy.

Identities are evaluated at random points of a prime field (`dlsim.theory.residues`), numbers
exactly. Inequalities, equivalences and what rests on hypotheses get a certificate for all numbers
(`dlsim.theory.orthants`) or, where none is found, interval arithmetic (mpmath) in small boxes at
random points. What a function of exact numbers counts is counted here in another way. Limits and
named roots have no such check, and are said to have none. SymPy's trees are only read here.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import sympy as sp
from mpmath import iv
from sympy.core.function import AppliedUndef

from dlsim.theory.book import statements
from dlsim.theory.claim import Goal, Relation, ends, sides
from dlsim.theory.orthants import MOST, certified
from dlsim.theory.residues import Reader, exact, residue
from dlsim.theory.zero import ProofError

#: Random points of an identity; random boxes, and how often one is looked for.
TRIALS, BOXES, TRIES = 8, 20, 400
#: How a goal was checked, and what that is worth.
CHECKED = {
    "residues": f"agree at {TRIALS} points modulo 2^61 - 1 (a false identity of degree d does with "
    f"probability below (d/2^61)^{TRIALS})",
    "certified": "hold for all numbers: solved for their hypotheses, no coefficient is negative",
    "for small counts": f"the same for every choice of whole numbers up to {MOST}, whole terms of "
    "sequences 1 or 2 at random",
    "exact": "are numbers, computed exactly or enclosed", "counted": "are counted in another way",
    "sampled": "hold in small boxes at random",
}  # fmt: skip


class _AbsentError(Exception):
    """What an expression holds that has no value here."""


# ------------------------------------------------------------------ what is counted, otherwise


def _cost(order: tuple[int, ...]) -> Fraction:
    """Return the cost of 5.sum's three tasks in an order, moment by moment."""
    tasks, cost, ends = [((3, 17), (6, 32), (6, 19))[k - 1] for k in order], Fraction(0), [0, 0]
    for now in range(40):
        for size, due in list(tasks):
            lasts = {1: 2 * size, 2: 4 * size // 3}
            nodes = next(n for n in (1, 2, 3) if n == 3 or now + lasts[n] <= due)
            idle = [node for node in (0, 1) if ends[node] <= now]
            if nodes == 3:
                return Fraction(99)
            if len(idle) >= nodes:
                tasks.remove((size, due))
                cost += nodes * lasts[nodes]
                for node in idle[:nodes]:
                    ends[node] = now + lasts[nodes]
    return cost


def _rounds(nodes: int, rounds: int, *costs: int) -> tuple[list[Fraction], Fraction]:
    """Return the chunks of 60 units, and the makespan as the longest chain of waits."""
    st, sc, send, compute = map(Fraction, costs)

    def chunks(first: Fraction) -> list[Fraction]:
        found = [first]
        while len(found) < rounds:
            found.append((sc + compute * found[-1] - nodes * st) / (nodes * send))
        return found

    none, one = (nodes * sum(chunks(Fraction(v)), Fraction(0)) for v in (0, 1))
    c = chunks((60 - none) / (one - none))
    chains = (
        (j * nodes + i) * st + send * (nodes * sum(c[:j]) + i * c[j])
        + (rounds - j) * sc + compute * sum(c[j:])
        for i in range(1, nodes + 1) for j in range(rounds)
    )  # fmt: skip
    return c, max(chains)


def _formula(nodes: int, rounds: int, *costs: int) -> Fraction:
    first, (st, sc, send, compute) = _rounds(nodes, rounds, *costs)[0][0], costs
    return nodes * (st + send * first) + rounds * sc + Fraction(60 * compute, nodes)


def _misses(most: int) -> int:
    """Count where rule (4) of paper B does not take the slowest server in time, or the fastest."""
    found = 0
    for times in product(range(1, most + 1), repeat=4):
        for limit in range(most + 2):
            best = max((t for t in times if t <= limit), default=min(times))
            others = [t for t in times if (t <= limit) == (best <= limit)]
            found += any(abs(limit - t) < abs(limit - best) for t in others)
    return found


#: Other ways to count what the functions of that name count.
_OTHERWISE: Mapping[str, Callable[..., Any]] = {
    "cost": _cost, "makespan": lambda *case: _rounds(*case)[1], "formula": _formula,
    "least cost of": lambda tasks: min(map(_cost, permutations(range(1, tasks + 1)))),
    "strict": lambda limit: limit, "printed rule": lambda limit: limit + 1,
    "differences": _misses, "choices": lambda routes: 0,
}  # fmt: skip


# ------------------------------------------------------------------ intervals


class _Box(Reader):
    """A random box: an interval for every letter and every term of a sequence, by need."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.values: dict[Any, Any] = {}
        self.pick = random.Random(seed)

    def fraction(self, over: int, under: int) -> Any:
        """Return a whole number, or the interval of a fraction."""
        return over if under == 1 else iv.mpf(over) / under

    def _key(self, what: Any) -> Any:
        return what.name if what.is_Symbol else (what.func.__name__, *map(self.value, what.args))

    def count(self, what: Any) -> int:
        """Return a small number."""
        return self.values.setdefault(("whole", self._key(what)), self.pick.randint(1, 6))

    def _letter(self, what: Any) -> Any:
        """Return a small interval, or a number below 0."""
        low = 0.02 if what.is_nonnegative else -2.0
        centre = self.pick.choice((self.pick.uniform(low, 1), self.pick.uniform(low, 4)))
        return iv.mpf([centre, centre * (1 + 2.0**-30)] if centre > 0 else centre)

    def power(self, base: Any, exponent: Any) -> Any:
        """Return a power: e's, a whole one, or by its logarithm."""
        power = self.value(exponent)
        if base is sp.E:
            return iv.exp(iv.mpf(power))
        below = iv.mpf(self.value(base))
        return below**power if isinstance(power, int) else iv.exp(power * iv.log(below))

    def other(self, expr: Any) -> Any:
        """Return the interval of a letter or term, of a logarithm, of what is counted."""
        if isinstance(expr, sp.log):
            return iv.log(iv.mpf(self.value(expr.args[0])))
        if hasattr(expr.func, "computes"):
            if expr.func.__name__ not in _OTHERWISE:
                raise _AbsentError(f"{expr.func.__name__}, which is counted in one way only")
            found = Fraction(_OTHERWISE[expr.func.__name__](*map(exact, expr.args)))
            return self.fraction(found.numerator, found.denominator)
        if not isinstance(expr, sp.Symbol | AppliedUndef):
            raise _AbsentError(expr.func.__name__)
        return self.values.setdefault(self._key(expr), self._letter(expr))

    def sign(self, relation: Relation) -> bool | None:
        """Tell whether a relation certainly holds, certainly fails, or (None) neither."""
        gap = iv.mpf(self.value(relation.left)) - iv.mpf(self.value(relation.right))
        gap = -gap if relation.op[0] == "<" else gap
        if gap.a > 0 or (gap.a >= 0 and relation.sign == ">="):
            return True
        return False if gap.b < 0 or (gap.b <= 0 and relation.sign == ">") else None

    def holds(self, goal: Goal) -> str:
        """Tell whether a goal holds in the whole box, fails, is void there, or is not certain."""
        given = [self.sign(premise) for premise in goal.given]
        if False in given:
            return "void"
        signs = [self.sign(side) for side in sides(goal.claim)]
        if None in signs or None in given:
            return "open"
        return "holds" if signs == [True] or (len(signs) == 2 and len({*signs}) == 1) else "fails"


def _sampled(goal: Goal) -> str:
    found = 0
    for seed in range(TRIES):
        try:
            word = _Box(seed).holds(goal)
        except (ValueError, ZeroDivisionError):
            continue
        if word == "fails":
            return "DISAGREES"
        found += word == "holds"
        if found == BOXES:
            break
    return "sampled" if found else "no box found where the hypotheses hold"


# ------------------------------------------------------------------ the verb


def opinion(goal: Goal, roots: Iterable[Any] = ()) -> str:
    """Return by what a goal was checked, "DISAGREES", or why it cannot be checked."""
    claims = sides(goal.claim)
    terms = set().union(*(end.atoms(AppliedUndef) for end in ends([goal.claim])))
    counted = any(hasattr(term, "computes") for term in terms)
    letters = goal.claim.free or any(not hasattr(term, "computes") for term in terms)
    try:
        if goal.claim.free & set(roots):
            return "a named root"
        if not letters:
            right = _number(claims[0])
            return ("counted" if counted else "exact") if right else "DISAGREES"
        plain = len(claims) == 1 and not goal.given and not claims[0].gap.has(sp.Max, sp.Min)
        if claims[0].op == "!=" or (claims[0].op == "=" and plain):
            return _identity(claims[0])
        if word := certified(goal):
            return word
        if claims[0].op != "=" and not any(p.sign == "=" or p.bound for p in goal.given):
            return _sampled(goal)
    except _AbsentError as absent:
        return f"no interval for {absent}"
    return "no certificate found, and no box has equations in it"


def _identity(claim: Relation) -> str:
    """Evaluate an identity, or its opposite, at random points."""
    gaps = [residue(claim.gap, trial) for trial in range(TRIALS)]
    if None in gaps:
        return "a limit, or what has no value in a prime field"
    return "residues" if (not any(gaps)) == (claim.op == "=") else "DISAGREES"


def _number(claim: Relation) -> bool:
    """Tell whether a relation between numbers holds, an equation as far as they are enclosed."""
    box = _Box()
    if claim.sign != "=":
        return box.sign(claim) is True
    gap = box.value(claim.left) - box.value(claim.right)
    return gap == 0 if isinstance(gap, int) else 0 in gap and gap.delta < 1e-9


def second(keys: str | Iterable[str] = ()) -> tuple[str, int]:
    """Check the goals of statements outside SymPy: a table of text, and how many disagree.

    A goal that its proof does not reach is not asked about: the proofs run first.
    """
    found = statements(keys)
    width = max(len(s.key) for s in found)
    lines, words = [], Counter[str]()
    for statement in found:
        try:
            statement.prove()
            counted = Counter(opinion(goal, statement.exists) for goal in statement.expanded())
            said = ", ".join(f"{count} {word}" for word, count in counted.items())
        except ProofError as error:
            said, counted = f"FAILED {error}", Counter(DISAGREES=1)
        lines.append(f"{statement.key:<{width}}  {said}")
        words += counted
    failed = words["DISAGREES"]
    lines.append(f"{words.total()} goals")
    lines += [f"{words[word]:>5} {word}: {says}" for word, says in CHECKED.items()]
    absent = words.total() - failed - sum(words[word] for word in CHECKED)
    lines.append(f"{absent:>5} have no such check, {failed} disagree")
    return "\n".join(lines), failed

"""A derivation: every step a rule that checks its side conditions and yields one fact.

A fact is a claim with the premises it rests on. A derivation proves its goals if each is
among the facts with no premise beyond the goal's own hypotheses, and if no step is idle.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.theory.claim import Claim, Goal, Iff, Relation, as_claim, differ, eq, ge, gt, sides, tex
from dlsim.theory.residues import PRIME, exact, residue
from dlsim.theory.sound import bound_in, evident, identity, implies, nearing, ordinary, real, sound
from dlsim.theory.zero import ProofError, is_zero


class Step(NamedTuple):
    """One line of a derivation: the rule, the claim, its LaTeX without dollars, why."""

    kind: str
    claim: Claim
    tex: str
    why: str


class Fact(NamedTuple):
    """A claim that was shown, the premises it rests on, and the step (-1: evident)."""

    claim: Claim
    given: tuple[Relation, ...]
    step: int

    def without(self, *cases: Claim) -> "Fact":
        """Return the fact with the premises discharged that one of some claims implies."""
        return self._replace(given=tuple(p for p in self.given if not _among(p, cases)))


def _among(premise: Relation, given: Iterable[Claim]) -> bool:
    """Tell whether some premises say no less than one."""
    return any(implies(known, premise) for known in given)


def _moved(point: Mapping[Any, Any], expr: Any) -> Any:
    """Return an expression at a point."""
    return expr.subs(point, simultaneous=True)


def _counting(n: Any, why: str) -> int:
    """Return where induction over a count starts; refuse what does not count from there."""
    if not (n.is_Symbol and n.is_integer and n.is_nonnegative):
        raise ProofError(f"{why}: {n} does not count from 0 or 1")
    return 1 if n.is_positive else 0


def _half_line(u: Any, why: str) -> None:
    """Refuse a variable of calculus that is not any real number above (or from) 0."""
    if not (u.is_Symbol and u.is_nonnegative) or u.is_integer:
        raise ProofError(f"{why}: {u} does not run through the numbers from 0 on")


def _smooth(expr: Any, u: Any) -> bool:
    """Tell whether an expression is built of what is continuously differentiable in u."""
    if not expr.has(u) or expr.is_Atom:
        return True
    if expr.is_Pow and not (expr.exp.is_Integer and expr.exp > 0):
        return False
    known = expr.is_Add or expr.is_Mul or expr.is_Pow or isinstance(expr, sp.exp)
    return known and all(_smooth(arg, u) for arg in expr.args)


def _all_count(parts: Mapping[str, Any], why: str) -> None:
    """Refuse parts of a sum that add nothing to it, alone or together."""
    for size in range(1, len(parts) + 1):
        for names in combinations(parts, size):
            known = [value for name in names if (value := residue(parts[name])) is not None]
            maybe = len(known) < size or sum(known) % PRIME == 0
            if maybe and identity(sum(parts[name] for name in names)):
                raise ProofError(f"{why}: {' and '.join(names)} adds nothing, it is not used")


class Derivation:
    """Facts from hypotheses to goals; every method adds one step or raises ProofError.

    `d[i]` is the i-th goal's claim; rules take a claim or a goal's number. `why` is always the
    reason. A certificate is a form that is identical to an expression and made of symbols with a
    sign and of letters of `given`, each of which stands for an expression whose sign is a fact;
    `by` adds multiples of known equations. What a goal divides by must be known not to be 0 on the
    goal's own hypotheses.

    Attributes
    ----------
    steps : list of Step
        What was shown so far.
    facts : list of Fact
        Claims with the premises they rest on.
    cited : list of str
        Keys of other statements that a step uses.
    """

    def __init__(
        self, goals: Iterable[Goal] = (), exists: Mapping[Any, Any] | None = None, skip: int = -1,
        bend: tuple[int, Any] | None = None, cite: Callable[[str, int], Goal] | None = None,
    ) -> None:  # fmt: skip
        self.goals = tuple(goals)
        self.steps: list[Step] = []
        self.facts: list[Fact] = []
        self.cited: list[str] = []
        self._uses: list[set[int]] = []
        self._exists = dict(exists or {})
        self._roots: dict[Any, set[Any]] = {}
        self._left: list[Relation] = []
        self._skip, self._bend, self._cite = skip, bend, cite

    def __getitem__(self, claim: Any) -> Any:
        """Return the claim of a goal by its number; a claim is itself."""
        return self.goals[claim].claim if isinstance(claim, int) else claim

    # ------------------------------------------------------------------ what is known

    def _bent(self, form: Any) -> Any:
        """Return a form as written; a test that bends this step gets it bent."""
        form = sp.sympify(form)
        return self._bend[1](form) if self._bend and self._bend[0] == len(self.steps) else form

    def find(self, claim: Claim) -> Fact | None:
        """Return the fact that states a claim, the first with the fewest premises of its own."""
        if evident(claim):
            return Fact(claim, (), -1)
        left = set(self._left)
        found = [f for f in self.facts if left.isdisjoint(f.given) and implies(f.claim, claim)]
        hypotheses = {premise for goal in self.goals for premise in goal.given}
        return min(found, default=None, key=lambda fact: (
            sum(premise not in hypotheses for premise in fact.given), len(fact.given)
        ))  # fmt: skip

    def _on(self, given: Iterable[Relation], claim: Claim) -> Fact | None:
        """Return the first fact that states a claim on some premises alone."""
        for fact in self.facts:
            if implies(fact.claim, claim) and all(_among(p, given) for p in fact.given):
                return fact
        return None

    def leave(self, *premises: Relation) -> None:
        """Set aside what rests on a premise: another case begins."""
        self._left += premises

    def _need(self, claim: Claim, why: str) -> Fact:
        fact = self.find(claim)
        if fact is None:
            raise ProofError(f"{why}: it is not known yet that {claim.tex()}")
        return fact

    def _defined(self, why: str, *exprs: Any, find: Any = None) -> list[Fact]:
        """Return the facts by which no denominator is 0 and each logarithm's argument is above 0.

        What stands in a limit need be defined near its point alone, as `squeeze` asks.
        """
        wanted: list[tuple[Any, bool]] = []
        find = find or self.find
        whole = [sp.sympify(e).replace(sp.Limit, lambda *_: sp.Dummy()) for e in exprs]
        indices = {i for e in whole for terms in e.atoms(sp.Sum) for i in terms.variables}
        for expr in whole:
            slopes = sp.Tuple(*(slope.doit() for slope in expr.atoms(sp.Derivative)))
            for power in expr.atoms(sp.Pow) | slopes.atoms(sp.Pow):
                if not (power.exp.is_nonnegative or power.base.is_nonzero):
                    wanted.append((power.base, False))
            wanted += [(log.args[0], True) for log in expr.atoms(sp.log)]
            for term in expr.atoms(AppliedUndef):
                if hasattr(term, "start") and not (term.args[0] - term.start).is_nonnegative:
                    raise ProofError(f"{why}: {term} has no such term")
        facts = []
        for expr, strict in wanted:
            claims = [gt(expr, 0)] + [gt(-expr, 0)] * (not strict)
            if any(map(evident, claims)):
                continue
            found = next(filter(None, map(find, claims)), None)
            if found is None or any(expr.free_symbols & indices & p.free for p in found.given):
                raise ProofError(f"{why}: divides by {expr}, of which it is not known to be not 0")
            facts.append(found)
        return facts

    def _conclude(
        self, kind: str, claim: Claim, why: str, facts: Iterable[Fact] = (), show: str = "",
        given: Iterable[Relation] | None = None, also: Iterable[Claim | Fact] = (),
    ) -> Any:  # fmt: skip
        """Add a step and its fact; what also follows rests on the same, unless it says on what."""
        facts = list(facts)
        if given is None:
            given = (premise for fact in facts for premise in fact.given)
        given, number = tuple(dict.fromkeys(given)), len(self.steps)
        found = [each if isinstance(each, Fact) else Fact(each, given, number)
                 for each in (claim, *also)]  # fmt: skip
        for fact in found:
            sound(fact.claim, why)
        self.steps.append(Step(kind, claim, show or claim.tex(), why))
        self._uses.append({fact.step for fact in facts if fact.step >= 0})
        if number != self._skip:
            self.facts += [fact._replace(step=number) for fact in found]
        return claim

    def _fresh(self, symbol: Any, facts: Iterable[Fact], why: str) -> None:
        """Refuse a variable of induction or integration that a premise restricts."""
        for premise in {p for fact in facts for p in fact.given}:
            if symbol in premise.free and not evident(premise):
                raise ProofError(f"{why}: {symbol} is not free, {premise.tex()} is assumed")
        self._without_roots(symbol, why)

    def _equation(self, claim: Any, why: str) -> Relation:
        """Return a goal, by its number, or a claim, which must be an equation."""
        claim = self[claim]
        if not isinstance(claim, Relation) or claim.op != "=":
            raise ProofError(f"{why}: {claim.tex()} is no equation")
        return claim

    def _without_roots(self, symbol: Any, why: str) -> None:
        """Refuse a variable on which a named root depends."""
        for root, depends in self._roots.items():
            if symbol == root or symbol in depends:
                raise ProofError(f"{why}: {symbol} is not free, {root} depends on it")

    def _behind(self, value: Any) -> set[Any]:
        """Return an expression's letters and sequences, and what its named roots depend on."""
        terms = {term.func for term in value.atoms(AppliedUndef)}
        own = value.free_symbols.union(*(getattr(term, "behind", {term}) for term in terms))
        return own.union(*(self._roots.get(s, ()) for s in value.free_symbols))

    def _equations(self, by: Mapping[Relation, Any] | None, why: str) -> tuple[Any, list[Fact]]:
        """Return the sum of multiples of known equations, and the facts behind it."""
        parts, facts = {}, []
        for number, (relation, factor) in enumerate((by or {}).items(), start=1):
            facts += [self._need(relation, why), *self._defined(why, factor)]
            if relation.sign != "=":
                raise ProofError(f"{why}: {relation.tex()} is no equation")
            parts[f"{number}. {relation.tex()}"] = factor * relation.gap
        _all_count(parts, why)
        return sum(parts.values(), sp.S.Zero), facts

    def _certificate(
        self, form: Any, given: Mapping[Any, Any] | None, why: str, strict: bool
    ) -> tuple[Any, list[Fact]]:
        """Return a certificate in plain terms, and the facts that its letters stand for."""
        facts, plain = [], {}
        for letter, what in (given or {}).items():
            if letter not in form.free_symbols:
                continue
            if letter.is_integer or not letter.is_nonnegative:
                raise ProofError(f"{why}: the letter {letter} must be a positive or >= 0 real")
            gap = what.gap if isinstance(what, Relation) else sp.sympify(what)
            facts.append(self._need((gt if letter.is_positive else ge)(gap, 0), why))
            plain[letter] = gap
        if not (form.is_positive or (form.is_nonnegative and not strict)):
            raise ProofError(f"{why}: {form} is not made of positive parts")
        taken = bound_in(eq(form, 0))
        for letter, gap in plain.items():
            if taken & {letter, *gap.free_symbols}:
                raise ProofError(f"{why}: {form} would bind what {letter} = {gap} holds")
            _all_count({f"{letter} = {gap}": gap}, why)
        form = form.subs(plain, simultaneous=True)
        return form, facts + self._defined(why, form)

    # ------------------------------------------------------------------ rules

    def assume(self, what: Any, why: str = "") -> Any:
        """Write down a hypothesis; an expression is assumed positive."""
        whole = as_claim(what)
        if isinstance(whole, Iff):
            raise ProofError(f"{why}: an equivalence is no hypothesis")
        if whole.op == "!=":
            raise ProofError(f"{why}: not to be identical is no hypothesis")
        if self._bend and self._bend[0] == len(self.steps):
            whole = whole.map(self._bend[1])
        claim = whole._replace(over=None)
        self._conclude("assumption", claim, why, given=(whole,), show=whole.tex())
        return claim

    def given(self, number: int, why: str = "", goal: int = 0) -> Any:
        """Write down a hypothesis of a goal by its number."""
        return self.assume(self.goals[goal].given[number], why)

    def hypotheses(self, whys: Mapping[int, str], goal: int = 0) -> list[Any]:
        """Write down several hypotheses of a goal by their numbers."""
        return [self.given(number, why, goal) for number, why in whys.items()]

    def equal(self, left: Any, right: Any, why: str, by: Any = None) -> Any:
        """Show an identity, modulo the equations of `by`, and return its right side."""
        claim = eq(left, right)
        combined, facts = self._equations(by, why)
        facts += self._defined(why, left, right)
        if not is_zero(claim.left - self._bent(claim.right) - combined):
            raise ProofError(f"{why}: {left} is not identical to {right}")
        return self._conclude("identity", claim, why, facts).right

    def differ(self, left: Any, right: Any, why: str) -> Any:
        """Show that two expressions are not identical: an exact point tells them apart."""
        facts, right = self._defined(why, left, right), self._bent(right)
        for premise in (p for fact in facts for p in fact.given):
            raise ProofError(f"{why}: it may be that nothing differs where {premise.tex()}")
        if is_zero(sp.sympify(left) - right):
            raise ProofError(f"{why}: {left} is identical to {right}")
        return self._conclude("refutation", differ(left, right), why, facts)

    def positive(self, expr: Any, form: Any, why: str, given: Any = None, by: Any = None) -> Any:
        """Show expr > 0 by certificate and return it."""
        return self.show(gt(expr, 0), why, form, given, by).left

    def nonnegative(self, expr: Any, form: Any, why: str, given: Any = None, by: Any = None) -> Any:
        """Show expr >= 0 by certificate and return it."""
        return self.show(ge(expr, 0), why, form, given, by).left

    def show(
        self, claim: Any, why: str, form: Any = None, given: Any = None, by: Any = None
    ) -> Any:
        """Show a goal (its number) or a claim: an identity, a sign, or an equivalence.

        Of an equivalence the form is the factor, of known sign, between the two gaps.
        """
        claim = self[claim]
        if not isinstance(claim, Iff) and claim.sign == "=":
            self.equal(claim.left, claim.right, why, by=by)
            return claim
        if not isinstance(claim, Iff) and claim.sign == "!=":
            return self.differ(claim.left, claim.right, why)
        first, *second = sides(claim)
        strict = bool(second) or first.sign == ">"
        plain, facts = self._certificate(self._bent(form), given, why, strict)
        combined, more = self._equations(by, why)
        if not second and not is_zero(first.gap - plain - combined):
            raise ProofError(f"{why}: {first.gap} is not identical to {plain}")
        if second and (first.sign != second[0].sign or first.op == "!="):
            raise ProofError(f"{why}: the two sides are not of one kind")
        if second and not is_zero(first.gap - plain * second[0].gap - combined):
            raise ProofError(f"{why}: the sides do not differ by the factor {plain}")
        facts += more + self._defined(why, *(side.gap for side in sides(claim)))
        return self._conclude("equivalence" if second else "sign", claim, why, facts)

    def at(self, what: Any, point: Mapping[Any, Any], why: str = "") -> Any:
        """Use a fact at another point: an instance, once its premises are known there."""
        claim = as_claim(what)
        fact = self.find(claim) or (
            None if isinstance(what, Relation | Iff) else self.find(ge(what, 0))
        )
        if fact is None:
            raise ProofError(f"{claim.tex()} is not known: show it first")
        if not isinstance(claim, Iff) and not isinstance(fact.claim, Iff) and claim.sign == ">":
            claim = claim._replace(op=claim.op if fact.claim.sign == ">" else ">=")
        there = self._instance(Fact(claim, fact.given, fact.step), point, why, "instance")
        return there if isinstance(what, Relation | Iff) else there.left

    def _instance(self, fact: Fact, point: Mapping[Any, Any], why: str, kind: str) -> Any:
        facts = [fact]
        point = {symbol: sp.sympify(value) for symbol, value in point.items()}
        place = ", ".join(f"{s} = {v}" for s, v in point.items())
        if point and any(side.op == "!=" for side in sides(fact.claim)):
            raise ProofError(f"{fact.claim.tex()} need not hold at {place}, only somewhere")
        names = set().union(*(value.free_symbols for value in point.values()))
        whole = (fact.claim, *fact.given)
        taken, fixed = (set().union(*map(bound, whole)) for bound in (bound_in, nearing))
        if names & taken or fixed & set(point) or not all(s.is_Symbol for s in point):
            raise ProofError(f"{place} would change what is bound, or is no letter")
        for symbol, value in point.items():
            facts += self._inside(symbol, value)
        for root, depends in self._roots.items():
            if any(root in c.free for c in whole) and (depends | {root}) & set(point):
                raise ProofError(f"{root} depends on what {place} changes")

        given: list[Relation] = []
        for premise in fact.given:
            changes = {s: v for s, v in point.items() if s in premise.free}
            there = premise.map(partial(_moved, changes))
            if not changes and kind == "instance":
                given.append(premise)
            elif not evident(there):
                if premise.bound & set().union(*map(self._behind, changes.values())):
                    raise ProofError(f"{place}: an index is bound in {premise.tex()}")
                found = self.find(there._replace(over=None))
                if found is None or any(there.bound & p.free for p in found.given):
                    raise ProofError(
                        f"{premise.tex()} is assumed: show {there.tex()} first, for {place}"
                    )
                facts.append(found)
        every = [*given, *(p for found in facts[1:] for p in found.given)]
        claim = fact.claim.map(partial(_moved, point))
        why = why or f"at ${', '.join(f'{tex(s)} = {tex(v)}' for s, v in point.items())}$"
        return self._conclude(kind, claim, why, facts, given=every)

    def _inside(self, symbol: Any, value: Any) -> list[Fact]:
        """Return the facts by which a value lies in the range of a symbol, or refuse it."""
        facts: list[Fact] = []
        if not ordinary(symbol):
            raise ProofError(f"{symbol} has a range that no rule checks")
        fits = not symbol.is_integer or bool(value.is_integer)
        if symbol.is_positive or symbol.is_nonnegative:
            found = self.find((gt if symbol.is_positive else ge)(value, 0))
            facts, fits = [found] if found else [], fits and found is not None
        else:
            facts = self._defined(f"{symbol} = {value}", value)
            fits = fits and (not symbol.is_real or real(value))
        if not fits:
            raise ProofError(f"{value} is outside the range of {symbol}")
        return facts

    def lemma(self, key: str, why: str, goal: int = 0, at: Mapping[Any, Any] | None = None) -> Any:
        """Use another statement's goal at a point, once its hypotheses are known there."""
        if self._cite is None:
            raise ProofError(f"{why}: there is no book to find {key} in")
        claim, given = self._cite(key, goal)
        self.cited.append(key)
        return self._instance(Fact(claim, given, -1), at or {}, f"{why}, by [{key}]", "lemma")

    def apply(self, rule: Iff, why: str, want: Relation | None = None) -> Relation:
        """Use one side of an equivalence, both known, to show the other, `want` if given."""
        fact = self._need(rule, why)
        for have, other in rule.ways:
            if (want is None or want == other) and (found := self.find(have)) is not None:
                self._conclude("deduction", other, why, [fact, found])
                return other
        raise ProofError(f"{why}: neither side of {rule.tex()} is known")

    def chain(self, first: Iff, second: Iff, why: str) -> Iff:
        """Join two equivalences with a common side."""
        facts = [self._need(first, why), self._need(second, why)]
        for a, b in (first, first[::-1]):
            for x, y in second.ways:
                if b.sign == x.sign and implies(b, x):
                    return self._conclude("equivalence", Iff(a, y), why, facts)
        raise ProofError(f"{why}: the two equivalences have no common side")

    def either(self, claim: Any, on: Relation, why: str) -> Any:
        """Show a claim that holds whether an inequality does or its opposite."""
        claim = self[claim]
        used = []
        self.leave(on, on.negated)
        halves = self._defined(why, on.gap)
        for case in (on, on.negated):
            found = [
                f for f in self.facts
                if implies(f.claim, claim) and any(implies(case, p) for p in f.given)
            ]  # fmt: skip
            if not found:
                raise ProofError(f"{why}: not shown where {case.tex()}")
            used.append(found[0].without(case))
        return self._conclude("cases", claim, why, [*used, *halves])

    def recur(
        self, claim: Any, n: Any, why: str, by: Any = None, factor: Any = 1, base: Any = None
    ) -> Any:
        """Show an equation for every count n by induction: gap(n + 1) is factor times gap(n).

        `base` and `by` are the equations that the first value and the step may use.
        """
        claim = self._equation(claim, why)
        first, base_facts = self._equations(base, why)
        combined, facts = self._equations(by, why)
        facts += self._defined(why, claim.gap, claim.gap.subs(n, n + 1), factor)
        start = _counting(n, why)
        self._fresh(n, [*facts, *base_facts], why)
        gap = claim.left - self._bent(claim.right)
        if not is_zero(gap.subs(n, start) - first):
            raise ProofError(f"{why}: the equation is wrong at {n} = {start}")
        if not is_zero(gap.subs(n, n + 1) - factor * gap - combined):
            raise ProofError(f"{why}: the equation does not pass from {n} to {n} + 1")
        return self._conclude("induction", claim, why, [*base_facts, *facts])

    def inductive(self, claim: Any, n: Any, why: str) -> Any:
        """Show a claim for every count n: known of the first, and of n + 1 assuming it of n."""
        claim = self[claim]
        first = _counting(n, why)
        self.leave(claim)
        base = self._need(claim.map(lambda side: side.subs(n, first)), why)
        after = claim.map(lambda side: side.subs(n, n + 1))
        for fact in self.facts:
            if implies(fact.claim, after):
                facts = [base, fact.without(claim)]
                self._fresh(n, facts, why)
                return self._conclude("induction", claim, why, facts)
        raise ProofError(f"{why}: it is not known that {after.tex()} follows from {claim.tex()}")

    def extreme(self, claim: Relation, why: str) -> Relation:
        """Compare a maximum or minimum (the left side) with a part, or with a bound of all parts.

        It equals a part that is at least (at most) every other, is at least (at most) each part,
        and at most (at least) what bounds all of them.
        """
        whole, other = claim.left, claim.right
        if not isinstance(whole, sp.Max | sp.Min):
            raise ProofError(f"{why}: {whole} is no maximum or minimum")
        outward = (lambda a, b: ge(a, b)) if isinstance(whole, sp.Max) else (lambda a, b: ge(b, a))
        wanted: list[Relation] = []
        if claim.op == "=" and other in whole.args:
            wanted = [outward(other, part) for part in whole.args if part != other]
        elif implies(outward(whole, other), claim) and other in whole.args:
            pass
        elif implies(outward(other, whole), claim):
            wanted = [outward(other, part) for part in whole.args]
        else:
            raise ProofError(f"{why}: {claim.tex()} is not about a part or a bound")
        return self._conclude("extreme", claim, why, [self._need(each, why) for each in wanted])

    def absurd(self, claim: Any, positive: Any, why: str, by: Any = None) -> Any:
        """Show an inequality whose opposite makes positive what is zero by known equations."""
        claim = self[claim]
        fact = self._need(gt(positive, 0), why)
        combined, facts = self._equations(by, why)
        if not is_zero(self._bent(positive) - combined):
            raise ProofError(f"{why}: {positive} is not zero")
        found = [each.without(claim.negated) for each in (fact, *facts)]
        return self._conclude("contradiction", claim, why, found)

    def meet(self, claim: Any, why: str) -> Any:
        """Show an equation by two inequalities."""
        claim = self._equation(claim, why)
        facts = [self._need(ge(sign * claim.gap, 0), why) for sign in (1, -1)]
        return self._conclude("equation", claim, why, facts)

    def induct(self, closed: Any, term: Any, n: Any, why: str) -> Any:
        """Show the closed form of a sum from 1 to n by induction; returns the equation."""
        index = sp.Symbol("l", integer=True, positive=True)
        whole = sp.Sum(sp.sympify(term).subs(n, index), (index, 1, n))
        return self.recur(eq(whole, closed), n, why)

    def grows(
        self, expr: Any, n: Any, base: Any, step: Any, why: str, given: Any = None,
        strict: bool = True,
    ) -> Any:  # fmt: skip
        """Show E's sign for every count n by induction: the first E's, and E(n + 1) >= E(n)."""
        expr, step = sp.sympify(expr), self._bent(step)
        plain, facts = self._certificate(sp.sympify(base), given, why, strict)
        rest, more = self._certificate(step, given, why, strict=False)
        facts += more + self._defined(why, expr, expr.subs(n, n + 1))
        start = _counting(n, why)
        self._fresh(n, facts, why)
        if not is_zero(expr.subs(n, start) - plain):
            raise ProofError(f"{why}: the value at {n} = {start} is not {plain}")
        if not is_zero(expr.subs(n, n + 1) - expr - rest):
            raise ProofError(f"{why}: the step is not {rest}")
        return self._conclude("induction", (gt if strict else ge)(expr, 0), why, facts).left

    def adds(self, what: Any, index: Any, n: Any, why: str) -> Any:
        """Show that a sum of terms of one sign from 1 to n has that sign."""
        claim = as_claim(what)
        fact = self._need(claim, why)
        if isinstance(claim, Iff) or claim.op == "!=":
            raise ProofError(f"{why}: only terms of one sign are added up")
        self._fresh(index, [fact], why)
        if _counting(index, why) > _counting(n, why):
            raise ProofError(f"{why}: there may be no terms up to {n}")
        names = (sp.Symbol(name, integer=True, positive=True) for name in "lih")
        inner = next(name for name in names if not claim.gap.has(name))
        whole = sp.Sum(claim.gap.subs(index, inner), (inner, 1, n))
        return self._conclude("induction", Relation(whole, claim.sign, sp.S.Zero), why, [fact])

    def climbs(self, expr: Any, u: Any, slope: Any, why: str, given: Any = None) -> Any:
        """Show E(u) > 0 for all u > 0: E(0) = 0 and E' > 0 (mean value theorem).

        E must be built of `+`, `*`, exp and whole powers, or divide by what has a sign at every
        u >= 0. A `u` that may be 0 gives E >= 0; `slope` certifies the derivative's sign.
        """
        expr = sp.sympify(expr)
        _half_line(u, why)
        strict = bool(u.is_positive)
        plain, facts = self._certificate(self._bent(slope), given, why, strict)
        self._continuous(expr, u, why, facts)
        self._fresh(u, facts, why)
        if not is_zero(expr.subs(u, 0)):
            raise ProofError(f"{why}: the value at {u} = 0 is not 0")
        if not is_zero(sp.diff(expr, u) - plain):
            raise ProofError(f"{why}: the derivative is not {plain}")
        return self._conclude("sign", (gt if strict else ge)(expr, 0), why, facts).left

    def _continuous(self, expr: Any, u: Any, why: str, facts: list[Fact]) -> None:
        """Refuse a jump: every part that holds u is smooth, or 1 over what has a sign at u >= 0."""
        for power in [p for p in expr.atoms(sp.Pow) if p.exp.is_negative and p.has(u)]:
            if u.is_positive and not power.base.subs(u, sp.Dummy(nonnegative=True)).is_positive:
                raise ProofError(f"{why}: {expr} may jump where {power.base} is 0")
            facts += self._defined(why, power)
            if not _smooth(power.base, u):
                raise ProofError(f"{why}: {power.base} may jump")
        rest = expr.replace(lambda e: e.is_Pow and e.exp.is_Integer and e.exp < 0, lambda e: e.base)
        if not _smooth(rest, u):
            raise ProofError(f"{why}: {expr} may jump, or have no slope")

    def crosses(
        self, expr: Any, u: Any, ends: tuple[Any, Any], root: Any, slope: Any, why: str,
        given: Any = None,
    ) -> Any:  # fmt: skip
        """Name the one root between two ends where E < 0 and E > 0, of an E that rises there.

        E is positive exactly above the root, zero exactly there (intermediate value theorem),
        for every u or, where the slope is certified between the ends alone, for those.
        """
        plain, rising = self._certificate(self._bent(slope), given, why, strict=True)
        low, high, facts = self._between(expr, u, ends, why)
        if not _smooth(expr, u):
            raise ProofError(f"{why}: {expr} may jump, or have no slope")
        near = [gt(u, low), gt(high, u)]
        local = [p for fact in rising for p in fact.given if _among(p, near)]
        facts += [fact.without(*near) for fact in rising]
        self._fresh(u, facts, why)
        if not is_zero(sp.diff(expr, u) - plain):
            raise ProofError(f"{why}: the derivative is not {plain}")
        inside = self._named(root, expr, u, (low, high), why)
        steady = [premise for fact in facts for premise in fact.given]
        also: list[Claim | Fact] = [
            Iff(gt(-expr, 0), gt(root, u)), Iff(eq(expr, 0), eq(u, root)),
            *(Fact(c, tuple(steady), -1) for c in inside),
        ]  # fmt: skip
        claim = Iff(gt(expr, 0), gt(u, root))
        return self._conclude("root", claim, why, facts, given=[*steady, *local], also=also)

    def reaches(
        self, expr: Any, u: Any, ends: tuple[Any, Any], root: Any, later: Any, steep: Any, why: str
    ) -> Any:  # fmt: skip
        """Name a place between two ends where E is 0, of an E with E < 0 and E > 0 there.

        That E(later) - E(u) <= steep (later - u) wherever later >= u must be a fact. E need not
        rise: it is 0 at the supremum of the places with E <= 0, as it does not jump upwards, from
        the first place on, which is one that u may take.
        """
        low, high, facts = self._between(expr, u, ends, why)
        steep = self._bent(steep)
        slow = self._need(ge(steep * (later - u) - (expr.subs(u, later) - expr), 0), why)
        taken = expr.free_symbols.union(low.free_symbols, high.free_symbols, steep.free_symbols)
        if later in taken or u in steep.free_symbols or later.assumptions0 != u.assumptions0:
            raise ProofError(f"{why}: {later} and {u} must be any two places")
        facts.append(slow.without(gt(later, u)))
        for place in (u, later):
            self._fresh(place, facts, why)
        facts += self._inside(u, low)
        zero, *inside = self._named(root, expr, u, (low, high), why)
        return self._conclude("root", zero, why, facts, also=inside)

    def _between(
        self, expr: Any, u: Any, ends: tuple[Any, Any], why: str
    ) -> tuple[Any, Any, list[Fact]]:
        """Return two ends, and the facts that E is < 0 at the first and > 0 at the second."""
        low, high = map(sp.sympify, ends)
        _half_line(u, why)
        if u in low.free_symbols | high.free_symbols:
            raise ProofError(f"{why}: the ends move with {u}")
        signs = (gt(-expr.subs(u, low), 0), gt(expr.subs(u, high), 0), gt(high, low), ge(low, 0))
        return low, high, [*(self._need(claim, why) for claim in signs), *self._inside(u, high)]

    def _named(self, root: Any, expr: Any, u: Any, ends: tuple[Any, Any], why: str) -> list[Claim]:
        """Enter a new letter for a place where E is 0, and return what is known of it."""
        low, high = ends
        claims = [c for f in self.facts for c in (f.claim, *f.given)]
        taken = expr.free_symbols.union(*(c.free for c in claims), self._roots)
        if not root.is_positive or root.is_integer or root in taken:
            raise ProofError(f"{why}: {root} must be a new positive real")
        self._roots[root] = {root}.union(*map(self._behind, (expr, low, high))) - {u}
        return [eq(expr.subs(u, root), 0), gt(root, low), gt(high, root)]

    def squeeze(self, claim: Any, bound: Any, why: str) -> Any:
        """Show a limit: f lies within bound times the distance from the point, on one side.

        Both signs of `bound |x - point| - (f - limit)` must be facts, and their only premise on x
        that x lies on that side of the point.
        """
        claim = self._equation(claim, why)
        if not isinstance(claim.left, sp.Limit):
            raise ProofError(f"{why}: {claim.left} is no limit")
        whole, x, point, side = claim.left.args
        distance = point - x if str(side) == "-" else x - point
        off = whole - self._bent(claim.right)
        facts = [self._need(ge(bound * distance + sign * off, 0), why) for sign in (1, -1)]
        self._without_roots(x, why)
        near = x.is_positive and not x.is_integer and str(side) in ("+", "-")
        near = near and (point.is_positive if str(side) == "-" else point.is_nonnegative)
        if claim.right.has(x) or sp.sympify(bound).has(x) or not near:
            raise ProofError(f"{why}: what depends on {x} is no limit or bound, or none is near")
        inside = [gt(distance, 0), gt(x, 0)] + ([gt(1 - x, 0)] if point == 0 else [])
        for premise in {p for fact in facts for p in fact.given if x in p.free}:
            if not _among(premise, inside):
                raise ProofError(f"{why}: {premise.tex()} need not hold near {point}")
        given = [p for fact in facts for p in fact.given if x not in p.free]
        return self._conclude("limit", claim, why, facts, given=given)

    def exponentials(self, a: Any, b: Any, why: str) -> Iff:
        """Use that the exponential function increases: e^a >= e^b iff a >= b, and = iff =.

        Where a is c ln x, e^a is x^c: that x > 0 must be known.
        """
        a, b = sp.sympify(a), sp.sympify(b)
        powers = [sp.exp(exponent).rewrite(sp.Pow) for exponent in (a, b)]
        claim, same = (Iff(op(*powers), op(a, b)) for op in (ge, eq))
        logs = {log: sp.Dummy(real=True) for e in (a, b) for log in e.atoms(sp.log)}
        if not (a.xreplace(logs).is_real and b.xreplace(logs).is_real):
            raise ProofError(f"{why}: the exponents must be real")
        return self._conclude("equivalence", claim, why, self._defined(why, a, b), also=[same])

    def compute(self, claim: Any, why: str) -> Any:
        """Show a relation between exact numbers by computing both sides.

        The functions of `computed` are called. An order between logarithms is SymPy's, which
        computes until the sign is certain.
        """
        claim = self[claim]
        if claim.free:
            raise ProofError(f"{why}: {claim.tex()} is not about numbers")
        bent = claim._replace(right=self._bent(claim.right))
        gap = bent.gap.replace(lambda e: hasattr(e.func, "computes"), _computed)
        signs = {">": gap.is_positive, ">=": gap.is_nonnegative}
        if not (is_zero(gap) if bent.sign == "=" else signs.get(bent.sign)):
            raise ProofError(f"{why}: {bent.tex()} does not hold")
        return self._conclude("exact", claim, why)

    # ------------------------------------------------------------------ the end

    def finish(self) -> None:
        """Check that every goal is a fact on its own hypotheses, and that no step is idle."""
        used: set[int] = set()
        served: set[Relation] = set()
        for goal in self.goals:
            sound(goal.claim, "the goal", goal.given)
            stating = [fact for fact in self.facts if implies(fact.claim, goal.claim)]
            if not stating:
                raise ProofError(f"the goal {goal.claim.tex()} is not among the facts")
            found = self._on(goal.given, goal.claim)
            if found is None:
                rests = next(p for f in stating for p in f.given if not _among(p, goal.given))
                raise ProofError(f"the goal {goal.claim.tex()} rests on {rests.tex()}")
            ends = (end for side in sides(goal.claim) for end in (side.left, side.right))
            known = partial(self._on, goal.given)
            for fact in (found, *self._defined("the goal", *ends, find=known)):
                used.add(fact.step)
                served |= {h for h in goal.given if any(implies(h, p) for p in fact.given)}
            hidden = set(self._roots) & goal.claim.free - set(self._exists)
            if hidden or any(set(self._roots) & h.free for h in goal.given):
                raise ProofError(f"the goal {goal.claim.tex()} does not say that a root is meant")
        for premise in (h for goal in self.goals for h in goal.given if h not in served):
            raise ProofError(f"the hypothesis {premise.tex()} is not used")
        for root, of in self._exists.items():
            if self._roots.get(root, set()) - set(self._roots) - set(of):
                raise ProofError(f"{root} depends on more than the statement says")
        idle = set(range(len(self.steps))) - {self._skip}
        while used:
            number = used.pop()
            if number in idle:
                idle.discard(number)
                used |= self._uses[number]
        if idle:
            number = min(idle)
            raise ProofError(f"step {number + 1} is not used: {self.steps[number].why}")


def _computed(call: Any) -> Any:
    """Call a computed function with exact Python numbers."""
    found = call.func.computes(*map(exact, call.args))
    if not isinstance(found, int | Fraction | sp.Rational):
        raise ProofError(f"{call} is computed as {found!r}, which may be rounded")
    return sp.Rational(found)

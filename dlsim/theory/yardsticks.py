"""What bounds every schedule, and what nobody can promise who does not know the future.

Derived here; the papers compare heuristics with each other only. `dlsim.realtime.bound` computes
with these statements.
"""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import eq, ge, gt, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import powers_below_one
from dlsim.theory.letters import SC, ST, b, counts, j, k, n, p, positive, q, sigma, w, x, y, z
from dlsim.theory.words import G, alpha, below_one, cost

K = counts("K")
price, free, used = (sequence(name, nonnegative=True) for name in ("u", "f", "x"))
gain, beyond, held = (sequence(name, nonnegative=True) for name in ("v", "z", "F"))
worth, least, rest = sp.symbols("V m Z", nonnegative=True)
need = positive("P")
part, paying = sp.symbols("a t", nonnegative=True)


def _held(room: Any) -> Any:
    """Return what free node time is worth at the prices of its intervals."""
    return total(lambda h: price(h) * room(h), K)


@statement(
    "Y.price",
    {"no price": {0: ge(rest, worth * part)},
     "nothing beyond": {1: ge(held(1), total(gain, n))}},
    [under(ge(rest + _held(free) - _held(lambda h: free(h) - used(h)), worth * part), ge(1, part),
         ge(rest, worth - need * least), ge((price(k) - least) * used(k), 0, over=k),
         ge(total(used, K), need * part)),
     under(ge(held(1) + total(beyond, n), total(gain, n)),
         ge(beyond(j) + held(j) - held(j + 1), gain(j), over=j))],
    witness={n: 1, K: 1, part: 1, worth: 1, need: 1, least: 1, rest: 0, price: lambda h: sp.S.One,
     used: lambda h: sp.S.One, gain: lambda h: sp.S.Zero, beyond: lambda h: sp.S.Zero,
     held: lambda h: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    some, over, dear, whole = d.hypotheses({
        0: "a task is admitted, refused, or admitted in part",
        1: "what it is worth beyond the cheapest price $m$ of the node time that it needs",
        2: "where it uses nodes, they cost at least $m$", 3: "it gets the node time that it needs",
    })  # fmt: skip
    paid = d.adds(dear, k, K, "so it pays at least $m$ for all that it uses")
    form = rest * x + part * y + least * z + paying
    given = {x: some, y: over, z: whole, paying: paid}
    d.show(0, "and is worth no more than that and the rest", form, given)
    each = d.given(0, "so for every task", goal=1)
    sums = d.adds(each, j, n, "all tasks added up")
    falls = eq(total(lambda h: held(h) - held(h + 1), n), held(1) - held(n + 1))
    d.recur(falls, n, "the values before and after them cancel")
    why = "so all are worth no more than all node time and the rests"
    d.show(1, why, y + held(n + 1), {y: sums}, {falls: -1})


@statement(
    "Y.floor", {"one set-up": {0: eq(total(lambda h: ST + SC + alpha(h) * sigma * w, n),
         sigma * w + ST + SC)}, "cheaper": {1: gt(cost(n), cost(n + k))}},
    [under(eq(total(lambda h: ST + SC + alpha(h) * sigma * w, n), sigma * w + n * (ST + SC)),
         eq(total(alpha, n), 1)), under(gt(cost(n + k), cost(n)), below_one)],
    witness={n: 1, b: sp.Rational(1, 2), alpha: lambda h: sp.S.One},
)  # fmt: skip
def _(d: Derivation) -> None:
    whole = d.given(0, "the whole load, in one round")
    d.show(0, "each node sends and computes its share, whenever", by={whole: sigma * w})
    powers_below_one(d, n + k, n + k + 1)
    d.lemma("5.3", "one node more costs more", at={k: n})
    step = d.lemma("5.3", "and so on", at={k: n + k})
    before = d.assume(d[1], "assume it of some more")
    d.show(gt(cost(n + k + 1), cost(n)), "then of one more", p + q, {p: step, q: before})
    d.inductive(1, k, "so of any number more")


slack, wait, own, deadline = positive("kappa W E D")
done, other = sp.symbols("h h'", nonnegative=True)
begin, at, end = sp.symbols("s r e", real=True)
_late, _slack = gt(wait + own, deadline), ge(deadline, (1 + slack) * own)
_within = gt(end + (end - begin) / slack, at + deadline)


@statement(
    "Y.work",
    {"half the window": {0: lt(deadline, wait)}, "no tail": {1: gt(end, at + deadline)},
     "no loss": {2: ge((1 + 1 / slack) * done, other)}},
    [under(lt(deadline, wait * (1 + 1 / slack)), _late, _slack),
     under(_within, _late, _slack, ge(at, begin), ge(end, at + wait)),
     under(ge(n / G(n) * (1 + 1 / slack) * done, other), below_one,
         ge(done * w, (end - begin) * G(n)),
         ge(n * (1 + 1 / slack) * (end - begin), other * w))],
    witness={slack: 1, wait: 2, own: 1, deadline: 2, begin: 0, at: 0, end: 2, done: 2, other: 0,
     w: 1, n: 1, b: sp.Rational(1, 2)},
)  # fmt: skip
def _(d: Derivation) -> None:
    late = d.given(0, "refused: behind those who wait it would be late")
    some = d.given(1, r"every deadline leaves slack $\kappa$")
    form = (1 + slack) / slack * p + y / slack
    why = "so its whole window is little longer than the wait"
    short = d.show(0, why, form, {p: late, y: some})
    begun, lasts = d.hypotheses({
        2: "it came while all nodes were busy", 3: "which they are until those are served",
    }, goal=1)  # fmt: skip
    form = z * (1 + 1 / slack) + y / slack + p
    why = r"so it ends at most a $\kappa$-th of the busy period after it"
    d.show(1, why, form, {z: lasts, y: begun, p: short})
    powers_below_one(d)
    ours = d.given(1, r"what is done in it, at $\mathcal{E}$ per task", goal=2)
    theirs = d.given(2, "what could be done on all nodes then and in that while", goal=2)
    form = n * p / q * (1 + 1 / slack) / w * z + y / w
    given = {z: ours, y: theirs, p: 1 - b, q: 1 - b**n}
    d.show(2, "so that is at most so many times as much", form, given)


E = sequence(r"\mathcal{E}")


@statement(
    "Y.count", {"another size": {0: eq(K * E(sigma / K), E(2 * sigma))}},
    [eq(K * E(sigma / K), E(sigma))], [below_one], where={E(sigma): sigma * w / G(n)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    d.show(0, "$K$ tasks one behind the other, in the window of one")

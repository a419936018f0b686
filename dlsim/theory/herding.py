"""Herding under stale load information (paper B): who waits for whom between two probes.

Derived here; the paper only observes that Load Correction gains little.
"""

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import eq, ge, gt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import counts, n, t, u, x, z

rnd = sp.Symbol("j", integer=True, nonnegative=True)
N, R = counts("N R")
free, follow = sequence("d", nonnegative=True), sequence("A")
age, seen, way, often, mean = sp.symbols("X V s lambda F", nonnegative=True)
_ahead = {follow(t): (t**2 + 2 * t) / (2 * (1 + t))}


def _waits(jobs: object) -> sp.Expr:
    """Return what jobs that come together to one queue wait in all, each of length x."""
    return total(lambda i: (i - 1) * x, jobs)


@statement(
    "H.wait",
    {"the first waits too": {1: eq(_waits(n), n * (n + 1) * x / 2)}},
    [under(eq(free(rnd), free(0) + rnd * x), eq(free(rnd + 1), free(rnd) + x, over=rnd)),
     eq(_waits(n), n * (n - 1) * x / 2)],
    witness={free: lambda k: k, x: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    step = d.given(0, "one queue, jobs of one length, all there when the first begins")
    d.recur(0, rnd, "the queue is free again after one job more", by={step: 1})
    d.leave(step)
    d.recur(1, n, "number k waits for k - 1 others: quadratic in the size of the herd")


@statement(
    "H.herd",
    {"the first waits too": {follow(t): (t**2 + 4 * t) / (2 * (1 + t))},
     "no window": {3: ge(often * way, mean)}},
    [gt(follow(t + u), follow(t)), gt(t, follow(t)), gt(follow(t), t / 2),
     under(ge(mean, often * way), ge(seen, age + way), eq(mean, often * (seen - age)))],
    where=_ahead, witness={seen: 2, age: 1, way: 1, often: 1, mean: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    why = "more followers, more ahead: of $1+K$, $K$ Poisson of mean $t$, $E M(M-1) = t^2+2t$"
    d.show(0, why, u / 2 + u / (2 * (1 + t) * (1 + t + u)))
    d.show(1, "fewer than follow the first", t**2 / (2 * (1 + t)))
    d.show(2, "more than half of them", t / (2 * (1 + t)))
    late, many = d.hypotheses({0: "seen once its input is there", 1: "mean followers"}, goal=3)
    d.show(3, "even where the monitor never sleeps", often * z, {z: late}, {many: 1})


@statement(
    "H.corr",
    {"a server less": {0: eq((N - 1) * _waits(R), N * R * (R - 1) * x / 2)}},
    [eq(N * _waits(R), N * R * (R - 1) * x / 2),
     eq(N * R * (N * R - 1) * x / 2 - N * R * (R - 1) * x / 2, N * R**2 * (N - 1) * x / 2)],
)  # fmt: skip
def _(d: Derivation) -> None:
    here = d.lemma("H.wait", "what jobs at one queue wait", 1, {n: R})
    d.show(0, "who counts whom he has sent takes N equal servers in turn, R each", by={here: N})
    d.show(1, "and saves this much of what the herd waits, whenever the probe comes")

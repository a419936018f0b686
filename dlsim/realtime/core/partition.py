r"""How a load is split so that all its nodes finish together (OPR): E(n) and n_min.

With :math:`G_n = 1 + \beta + \dots + \beta^{n-1}` the coefficients u_n, f_n and l_n of
`dlsim.realtime.partition`, whose `Table` holds them.
"""

import numpy as np

from dlsim.kernel import kernel


@kernel
def growth_sums(cms, cps, growth):
    r"""Fill :math:`G_n = 1 + \beta + \dots + \beta^{n-1}` by a recursion of + * / only.

    Valid at cms = 0 and cps = 0, on floats, Fractions and symbols; written with
    x = 1 - beta, which does not round beta near 1 (paper M, between 4.4 and 4.5).
    """
    x = cms / (cms + cps)
    growth[0] = 0 * x
    for n in range(1, len(growth)):
        growth[n] = growth[n - 1] + (1 - x * growth[n - 1])


@kernel
def cost_coefficients(growth, cms, cps, st, sc, unit, fixed, least):
    r"""Fill u_n, f_n and l_n from G_n (paper M, eqs. 4.7-4.12, without cancellation).

    :math:`\ell_n = \frac{ST}{C_{ms}+C_{ps}} \sum_{i<n} \sum_{j \le i} \beta^{-j}` is
    the size at which the n-th share is 0.
    """
    w = cms + cps
    total, power, inner, bracket = 0 * w, 1 + 0 * w, 0 * w, 0 * w
    unit[0] = fixed[0] = least[0] = 0 * w
    for n in range(1, len(growth)):
        unit[n] = w / growth[n]
        fixed[n] = st + sc + st * total / growth[n]
        total = total + growth[n]
        least[n] = st * bracket / w
        power = power * w / cps
        inner = inner + power
        bracket = bracket + inner


@kernel
def derivative_coefficients(growth, cms, cps, st, sc, slope, rise):
    r"""Fill the coefficients of the cost derivative W(n + 1) - W(n) (paper M, Lemma 5.1).

    .. math:: \frac{n+1}{G_{n+1}} - \frac{n}{G_n}
              = \frac{C_{ms}}{C_{ms}+C_{ps}} \frac{1 + 2\beta + \dots + n\beta^{n-1}}{G_n G_{n+1}}

    so that nothing cancels, and equal derivatives are equal numbers.
    """
    w = cms + cps
    total, power, weighted = 0 * w, 1 + 0 * w, 0 * w
    for n in range(1, len(growth) - 1):
        weighted = weighted + n * power
        power = power * cps / w
        slope[n] = cms * weighted / (growth[n] * growth[n + 1])
        before = n * total / growth[n]
        total = total + growth[n]
        rise[n] = st + sc + st * ((n + 1) * total / growth[n + 1] - before)


@kernel
def duration(sigma, n, unit, fixed):
    """Return E(sigma, n), the execution time on n nodes (paper M, 4.13)."""
    return fixed[n] + sigma * unit[n]


@kernel
def fastest(sigma, least, nodes):
    """Return N*, the largest n <= nodes whose shares are all positive: E is smallest there.

    `least` are the thresholds of a `Table`, non-decreasing.
    """
    if sigma > least[nodes]:
        return nodes
    low, high = 1, nodes  # sigma > least[low], not sigma > least[high]
    while high - low > 1:
        middle = (low + high) // 2
        if sigma > least[middle]:
            low = middle
        else:
            high = middle
    return low


@kernel
def fewest(start, limit, sigma, low, top, unit, fixed):
    """Return n_min: the smallest n in low..top with start + E(n) <= limit, or 0.

    Gallops from `low`, a number known not to exceed n_min, because n_min never falls as time
    goes on; E decreases on 1..N*, so the first n that fits is found by bisection. `limit` is
    ``latest_finish(due, budget)``, `top` N*.
    """
    if start + (fixed[low] + sigma * unit[low]) <= limit:
        return low
    if not start + (fixed[top] + sigma * unit[top]) <= limit:
        return 0
    step, high = 1, low + 1
    while high < top and not start + (fixed[high] + sigma * unit[high]) <= limit:
        low = high
        step *= 2
        high = min(top, high + step)
    while high - low > 1:
        middle = (low + high) // 2
        if start + (fixed[middle] + sigma * unit[middle]) <= limit:
            high = middle
        else:
            low = middle
    return high


@kernel
def cost_derivative(sigma, n, nodes, infinite_at_top, slope, rise):
    """Return DC = W(n + 1) - W(n) with W(n) = n E(n) (paper M, section 5)."""
    if infinite_at_top and n == nodes:
        return np.inf
    return rise[n] + sigma * slope[n]

r"""The formulas of one load: execution time, fewest nodes, cost, optimum, rounds.

With :math:`G_n = 1 + \beta + \dots + \beta^{n-1}` the coefficients u_n, f_n and l_n of a
`dlsim.realtime.formulas.TimeTable` give E(n) and n_min of nodes that start together. Release
times come as *pools*: groups (time, nodes) in ascending order, so that the cost follows the number
of groups, not of nodes. With :math:`w = \sigma(\tau + \chi)` (paper I
writes :math:`\tau, \chi` for Cms, Cps), :math:`p_i = r_n - r_i` and :math:`\beta =
\chi/(\tau+\chi)`:

* remodel of [6]: :math:`\chi_i = \chi E/(E + p_i)`, estimate
  :math:`r_n + \sigma\tau/(1 - \prod \beta_i)`, written as :math:`\sigma / H` with
  :math:`H = \sum_i \frac{1}{\tau + \chi_i} \prod_{j<i} \beta_j`, which needs no difference;
* equal finish, eqs. (2)-(4): :math:`e - r_n = (w - \sum p_i)/n`;
* true optimum: a run of m nodes that the link keeps busy from release r carries
  :math:`(e - r)/u_m` with u_m; the runs sum to sigma;
* several rounds (UMR): see `instalment`.
"""

import math

import numpy as np

from dlsim.compiled import TOL, compiled, deadline_with_tolerance, meets_deadline, times_tie

#: Most rounds of a multi-round partition, and the reach of ``rounds="best"``.
MOST_ROUNDS = 64
#: Up to this many nodes, one number after another is tried: faster than a search.
MOST_TRIED = 32
#: Of the rounds that reach the least makespan to within this part, the fewest are taken.
ROUND_GAIN = 1e-9


@compiled
def growth_sums(cms, cps, growth):
    r"""Fill :math:`G_n = 1 + \beta + \dots + \beta^{n-1}` by a recursion of + * / only.

    Valid at cms = 0 and cps = 0, on floats, Fractions and symbols; written with
    x = 1 - beta, which does not round beta near 1 (paper M, between 4.4 and 4.5).
    """
    x = cms / (cms + cps)
    growth[0] = 0 * x
    for n in range(1, len(growth)):
        growth[n] = growth[n - 1] + (1 - x * growth[n - 1])


@compiled
def cost_coefficients(growth, cms, cps, st, sc, time_per_unit, setup_time, min_size):
    r"""Fill u_n, f_n and l_n from G_n (paper M, eqs. 4.7-4.12, without cancellation).

    :math:`\ell_n = \frac{ST}{C_{ms}+C_{ps}} \sum_{i<n} \sum_{j \le i} \beta^{-j}` is
    the size at which the n-th share is 0.
    """
    w = cms + cps
    total, power, inner, bracket = 0 * w, 1 + 0 * w, 0 * w, 0 * w
    time_per_unit[0] = setup_time[0] = min_size[0] = 0 * w
    for n in range(1, len(growth)):
        time_per_unit[n] = w / growth[n]
        setup_time[n] = st + sc + st * total / growth[n]
        total = total + growth[n]
        min_size[n] = st * bracket / w
        power = power * w / cps
        inner = inner + power
        bracket = bracket + inner


@compiled
def derivative_coefficients(growth, cms, cps, st, sc, dc_slope, dc_offset):
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
        dc_slope[n] = cms * weighted / (growth[n] * growth[n + 1])
        before = n * total / growth[n]
        total = total + growth[n]
        dc_offset[n] = st + sc + st * ((n + 1) * total / growth[n + 1] - before)


@compiled
def time_on_nodes(sigma, n, time_per_unit, setup_time):
    """Return E(sigma, n), the execution time on n nodes (paper M, 4.13)."""
    return setup_time[n] + sigma * time_per_unit[n]


@compiled
def n_star_of(sigma, min_size, nodes):
    """Return N*, the largest n <= nodes whose shares are all positive: E is smallest there.

    `min_size` are the thresholds of a `TimeTable`, non-decreasing.
    """
    if sigma > min_size[nodes]:
        return nodes
    low, high = 1, nodes  # sigma > min_size[low], not sigma > min_size[high]
    while high - low > 1:
        middle = (low + high) // 2
        if sigma > min_size[middle]:
            low = middle
        else:
            high = middle
    return low


@compiled
def n_min_of(start, limit, sigma, low, top, time_per_unit, setup_time):
    """Return n_min, the smallest n in low..top with start + E(n) <= limit, or 0.

    Gallops from `low`, a number known not to exceed n_min, because n_min never falls as time
    goes on; E decreases on 1..N*, so the first n that fits is found by bisection. `limit` is
    ``deadline_with_tolerance(due, budget)``, `top` N*.
    """
    if start + (setup_time[low] + sigma * time_per_unit[low]) <= limit:
        return low
    if not start + (setup_time[top] + sigma * time_per_unit[top]) <= limit:
        return 0
    if top <= MOST_TRIED:
        for n in range(low + 1, top):
            if start + (setup_time[n] + sigma * time_per_unit[n]) <= limit:
                return n
        return top
    step, high = 1, low + 1
    while high < top and not start + (setup_time[high] + sigma * time_per_unit[high]) <= limit:
        low = high
        step *= 2
        high = min(top, high + step)
    while high - low > 1:
        middle = (low + high) // 2
        if start + (setup_time[middle] + sigma * time_per_unit[middle]) <= limit:
            high = middle
        else:
            low = middle
    return high


@compiled
def fill_n_min(sigma, budget, start, min_size, time_per_unit, setup_time, out):
    """Write n_min, the fewest nodes that meet the deadline, of many loads."""
    for k in range(len(sigma)):
        top = n_star_of(sigma[k], min_size, len(time_per_unit) - 2)
        limit = deadline_with_tolerance(start[k] + budget[k], budget[k])
        out[k] = n_min_of(start[k], limit, sigma[k], 1, top, time_per_unit, setup_time)


@compiled
def cost_derivative(sigma, n, nodes, infinite_at_top, dc_slope, dc_offset):
    """Return DC = W(n + 1) - W(n) with W(n) = n E(n) (paper M, section 5)."""
    if infinite_at_top and n == nodes:
        return np.inf
    return dc_offset[n] + sigma * dc_slope[n]


@compiled
def remodelled_time(pool, groups, sigma, cms, cps, time):
    r"""Return the estimated execution time of [6], counted from r_n."""
    last = pool[groups - 1].time
    total, passed = 0 * time, 1 + 0 * time
    for k in range(groups):
        chi, m = cps * time / (time + (last - pool[k].time)), pool[k].nodes
        if m == 1 or chi == 0:
            total = total + passed / (cms + chi)
            passed = passed * chi / (cms + chi)
        elif cms == 0:
            total = total + m / chi
        else:
            decay = -m * math.log1p(cms / chi)
            total = total - passed * math.expm1(decay) / cms
            passed = passed * math.exp(decay)
    return sigma / total


@compiled
def idle_sum(pool, groups):
    """Return the sum of p_i = r_n - r_i over the nodes of a pool (paper I, section 4.2)."""
    last = pool[groups - 1].time
    total = 0 * last
    for k in range(groups):
        total += pool[k].nodes * (last - pool[k].time)
    return total


@compiled
def constraint_one(pool, groups, send, skip_ties):
    """Tell whether successive releases lie at least sigma Cms apart (Constraint 1)."""
    for k in range(groups):
        time = pool[k].time
        if pool[k].nodes > 1 and not skip_ties and send > 0:  # however short the send
            return False
        if k > 0 and not meets_deadline(pool[k - 1].time + send, time, send):
            return False
    return True


@compiled
def constraint_two(pool, groups, end, part, skip_ties):
    """Tell whether no send of shares (3)-(4) lasts beyond the next release (Constraint 2)."""
    for k in range(groups):
        sent = pool[k].time + (end - pool[k].time) * part
        if pool[k].nodes > 1 and not skip_ties and (end - pool[k].time) * part > 0:
            return False
        if k + 1 < groups and not meets_deadline(sent, pool[k + 1].time, sent - pool[k].time):
            return False
    return True


@compiled
def load_completed_by(pool, groups, end, part, time_per_unit):
    """Return the most data that nodes can receive and compute by `end`.

    Every node takes all it can, in order of release: what is moved to a later node gains
    less than it loses (Chuprat and Baruah, RTCSA 2008, with another proof).
    """
    total, head, run = 0 * end, pool[0].time, 0
    for k in range(groups):
        time = pool[k].time
        if not time < end:
            break
        if run > 0 and time > head + (end - head) * send_fraction(run, part, time_per_unit):
            total = total + (end - head) / time_per_unit[run]
            head, run = time, 0
        run += pool[k].nodes
    if run > 0:
        total = total + (end - head) / time_per_unit[run]
    return total


@compiled
def send_fraction(run, part, time_per_unit):
    """Return the part of a run's time that its sends take, 1 - beta^m = Cms / u_m."""
    return part * time_per_unit[1] / time_per_unit[run]


@compiled
def optimal_completion(pool, groups, sigma, part, time_per_unit):
    """Return the least completion of a load in one round, and how many nodes serve.

    Only nodes released before the completion serve; what they carry by then is concave
    in it, so Newton's steps from below end at the root (theory: block form of the optimum).
    `part` is Cms / (Cms + Cps), `time_per_unit` that of a `TimeTable`. Return the completion, the
    nodes that receive data, and the entries of the pool that they fill.
    """
    low, high = 1, groups  # group k serves iff those before it carry less than sigma by then
    while low < high:
        middle = (low + high + 1) // 2
        time = pool[middle - 1].time
        if load_completed_by(pool, middle - 1, time, part, time_per_unit) < sigma:
            low = middle
        else:
            high = middle - 1
    if low > 1:  # nothing but a rounding would be left for the last group
        before = load_completed_by(pool, low - 1, pool[low - 1].time, part, time_per_unit)
        alone = pool[low - 1].time + (sigma - before) * time_per_unit[1]
        if times_tie(alone, pool[low - 1].time, sigma * time_per_unit[1]):
            low -= 1
    origin, nodes, waits = pool[0].time, 0, 0 * sigma
    for k in range(low):
        nodes += pool[k].nodes
        waits = waits + pool[k].nodes * (pool[k].time - origin)
    end = max((sigma * time_per_unit[1] + waits) / nodes, pool[low - 1].time - origin)
    most_runs = groups + 1
    while True:
        data, slope, runs = sigma, 0 * sigma, 1
        head, run = 0 * end, 0
        for k in range(low):
            time = pool[k].time - origin
            if run > 0 and time > head + (end - head) * send_fraction(run, part, time_per_unit):
                data = data + head / time_per_unit[run]
                slope = slope + 1 / time_per_unit[run]
                head, run, runs = time, 0, runs + 1
            run += pool[k].nodes
        data = data + head / time_per_unit[run]
        slope = slope + 1 / time_per_unit[run]
        end = max(end, data / slope)
        if runs >= most_runs or runs == 1:
            return origin + end, nodes, low
        most_runs = runs


@compiled
def instalment(round_no, sigma, n, rounds, costs):
    r"""Return the chunk c_j that each node receives in round j = 0..M-1 of UMR.

    .. math:: n \sum_{j<M} c_j = \sigma, \quad c_{j+1} = \theta c_j + \kappa, \quad
              \theta = \frac{\chi}{n \tau}, \quad \kappa = \frac{SC/n - ST}{\tau}

    Solved from the end where the recurrence shrinks errors: c_0 for theta <= 1, else
    c_{M-1} by the inverse recurrence. `costs` has the fields cms, cps, st, sc.
    """
    cms, cps, place = costs.cms, costs.cps, round_no
    ratio, step = cps / (n * cms), (costs.sc / n - costs.st) / cms
    if ratio > 1:
        ratio, step, place = 1 / ratio, -step / ratio, rounds - 1 - round_no
    power, below, total = 1 + 0 * ratio, 0 * ratio, 0 * ratio
    here, there = power, below  # ratio^place and 1 + ratio + ... + ratio^(place-1)
    for k in range(1, rounds):
        below = below + power
        power = power * ratio
        total = total + below
        if k == place:
            here, there = power, below
    return here * ((sigma / n - step * total) / (below + power)) + step * there


@compiled
def first_round_chunk(sigma, n, rounds, costs):
    """Return the chunk c_0 of the first round, 0 if some chunk would not be positive."""
    first = instalment(0, sigma, n, rounds, costs)
    last = instalment(rounds - 1, sigma, n, rounds, costs)
    least = TOL * sigma / n  # chunks grow or shrink throughout; a rounding is no chunk
    return first if first > least and last > least else 0 * first


@compiled
def rounds_time(sigma, n, rounds, costs):
    r"""Return the makespan of UMR on n nodes released together, and its rounds.

    .. math:: n (ST + \tau c_0) + M\,SC + \chi\sigma/n
    """
    cms, cps, st, sc = costs.cms, costs.cps, costs.st, costs.sc
    low, high = (1, MOST_ROUNDS) if rounds == 0 else (rounds, rounds)
    best = np.inf
    while best == np.inf:  # one round always has a positive chunk
        for m in range(low, high + 1):
            chunk = first_round_chunk(sigma, n, m, costs)
            if chunk > 0:
                best = min(best, n * (st + cms * chunk) + m * sc + cps * sigma / n)
        low, high = (low - 1, high - 1) if best == np.inf else (low, high)
    for m in range(low, high + 1):
        chunk = first_round_chunk(sigma, n, m, costs)
        time = n * (st + cms * chunk) + m * sc + cps * sigma / n
        if chunk > 0 and time <= best + ROUND_GAIN * best:
            return time, m
    return best, low

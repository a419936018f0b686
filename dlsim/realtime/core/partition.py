r"""How one load is split: over nodes released together (OPR) or one by one, in rounds.

With :math:`G_n = 1 + \beta + \dots + \beta^{n-1}` the coefficients u_n, f_n and l_n of
`dlsim.realtime.partition`, whose `Table` holds them, give E(n) and n_min of nodes that start
together. Release times come as *pools*: groups (time, nodes) in ascending order, so that the cost
follows the number of groups, not of nodes. With :math:`w = \sigma(\tau + \chi)` (paper I
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

import numpy as np

from dlsim.compiled import TOL, compiled, latest_finish, meets, same_instant

#: Most rounds of a multi-round partition, and the reach of ``rounds="best"``.
MOST_ROUNDS = 64
#: What a load was split by, after a constraint was tested: places in `model.KINDS`.
OPR, EQUAL, PIECES, REMODEL, EVEN, OPTIMUM, ROUNDS, ROUNDS_EARLY, OWN = range(9)

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


@compiled
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


@compiled
def duration(sigma, n, unit, fixed):
    """Return E(sigma, n), the execution time on n nodes (paper M, 4.13)."""
    return fixed[n] + sigma * unit[n]


@compiled
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


@compiled
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


@compiled
def fill_fewest(sigma, budget, start, least, unit, fixed, out):
    """Write the fewest nodes of many loads."""
    for k in range(len(sigma)):
        top = fastest(sigma[k], least, len(unit) - 2)
        limit = latest_finish(start[k] + budget[k], budget[k])
        out[k] = fewest(start[k], limit, sigma[k], 1, top, unit, fixed)


@compiled
def cost_derivative(sigma, n, nodes, infinite_at_top, slope, rise):
    """Return DC = W(n + 1) - W(n) with W(n) = n E(n) (paper M, section 5)."""
    if infinite_at_top and n == nodes:
        return np.inf
    return rise[n] + sigma * slope[n]


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
            decay = -m * np.log1p(cms / chi)
            total = total - passed * np.expm1(decay) / cms
            passed = passed * np.exp(decay)
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
        if k > 0 and not meets(pool[k - 1].time + send, time, send):
            return False
    return True


@compiled
def constraint_two(pool, groups, end, part, skip_ties):
    """Tell whether no send of shares (3)-(4) lasts beyond the next release (Constraint 2)."""
    for k in range(groups):
        sent = pool[k].time + (end - pool[k].time) * part
        if pool[k].nodes > 1 and not skip_ties and (end - pool[k].time) * part > 0:
            return False
        if k + 1 < groups and not meets(sent, pool[k + 1].time, sent - pool[k].time):
            return False
    return True


@compiled
def carried(pool, groups, end, part, unit):
    """Return the most data that nodes can receive and compute by `end`.

    Every node takes all it can, in order of release: what is moved to a later node gains
    less than it loses (Chuprat and Baruah, RTCSA 2008, with another proof).
    """
    total, head, run = 0 * end, pool[0].time, 0
    for k in range(groups):
        time = pool[k].time
        if not time < end:
            break
        if run > 0 and time > head + (end - head) * reach_of(run, part, unit):
            total = total + (end - head) / unit[run]
            head, run = time, 0
        run += pool[k].nodes
    if run > 0:
        total = total + (end - head) / unit[run]
    return total


@compiled
def reach_of(run, part, unit):
    """Return the part of a run's time that its sends take, 1 - beta^m = Cms / u_m."""
    return part * unit[1] / unit[run]


@compiled
def optimum(pool, groups, sigma, part, unit):
    """Return the least completion of a load in one round, and how many nodes serve.

    Only nodes released before the completion serve; what they carry by then is concave
    in it, so Newton's steps from below end at the root (theory: block form of the optimum).
    `part` is Cms / (Cms + Cps), `unit` that of a `Table`. Return the completion, the nodes that
    receive data, and the entries of the pool that they fill.
    """
    low, high = 1, groups  # group k serves iff those before it carry less than sigma by then
    while low < high:
        middle = (low + high + 1) // 2
        time = pool[middle - 1].time
        if carried(pool, middle - 1, time, part, unit) < sigma:
            low = middle
        else:
            high = middle - 1
    if low > 1:  # nothing but a rounding would be left for the last group
        before = carried(pool, low - 1, pool[low - 1].time, part, unit)
        alone = pool[low - 1].time + (sigma - before) * unit[1]
        if same_instant(alone, pool[low - 1].time, sigma * unit[1]):
            low -= 1
    origin, nodes, waits = pool[0].time, 0, 0 * sigma
    for k in range(low):
        nodes += pool[k].nodes
        waits = waits + pool[k].nodes * (pool[k].time - origin)
    end = max((sigma * unit[1] + waits) / nodes, pool[low - 1].time - origin)
    heads = groups + 1
    while True:
        data, slope, count = sigma, 0 * sigma, 0
        head, run = 0 * end, 0
        for k in range(low):
            time = pool[k].time - origin
            if run > 0 and time > head + (end - head) * reach_of(run, part, unit):
                data, slope, count = data + head / unit[run], slope + 1 / unit[run], count + 1
                head, run = time, 0
            run += pool[k].nodes
        data, slope, count = data + head / unit[run], slope + 1 / unit[run], count + 1
        end = max(end, data / slope)
        if count >= heads or count == 1:
            return origin + end, nodes, low
        heads = count


@compiled
def instalment(j, sigma, n, rounds, cms, cps, st, sc):
    r"""Return the chunk c_j that each node receives in round j = 0..M-1 of UMR.

    .. math:: n \sum_{j<M} c_j = \sigma, \quad c_{j+1} = \theta c_j + \kappa, \quad
              \theta = \frac{\chi}{n \tau}, \quad \kappa = \frac{SC/n - ST}{\tau}

    Solved from the end where the recurrence shrinks errors: c_0 for theta <= 1, else
    c_{M-1} by the inverse recurrence.
    """
    ratio, step, place = cps / (n * cms), (sc / n - st) / cms, j
    if ratio > 1:
        ratio, step, place = 1 / ratio, -step / ratio, rounds - 1 - j
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
def first_chunk(sigma, n, rounds, cms, cps, st, sc):
    """Return the chunk c_0 of the first round, 0 if some chunk would not be positive."""
    first = instalment(0, sigma, n, rounds, cms, cps, st, sc)
    last = instalment(rounds - 1, sigma, n, rounds, cms, cps, st, sc)
    least = TOL * sigma / n  # chunks grow or shrink throughout; a rounding is no chunk
    return first if first > least and last > least else 0 * first


@compiled
def rounds_time(sigma, n, rounds, cms, cps, st, sc):
    r"""Return the makespan of UMR on n nodes released together, and its rounds.

    .. math:: n (ST + \tau c_0) + M\,SC + \chi\sigma/n
    """
    low, high = (1, MOST_ROUNDS) if rounds == 0 else (rounds, rounds)
    best = np.inf
    while best == np.inf:  # one round always has a positive chunk
        for m in range(low, high + 1):
            chunk = first_chunk(sigma, n, m, cms, cps, st, sc)
            if chunk > 0:
                best = min(best, n * (st + cms * chunk) + m * sc + cps * sigma / n)
        low, high = (low - 1, high - 1) if best == np.inf else (low, high)
    for m in range(low, high + 1):
        chunk = first_chunk(sigma, n, m, cms, cps, st, sc)
        time = n * (st + cms * chunk) + m * sc + cps * sigma / n
        if chunk > 0 and time <= best + ROUND_GAIN * best:
            return time, m
    return best, low


@compiled
def fewest_in_rounds(start, limit, sigma, low, high, rounds, cms, cps, st, sc):
    """Return the smallest n in low..high whose UMR makespan meets a deadline, or 0.

    The makespan is not monotone in n: every n is tried.
    """
    least = np.inf
    for n in range(low, high + 1):
        time, _ = rounds_time(sigma, n, rounds, cms, cps, st, sc)
        if start + time <= limit:
            return n, least
        least = min(least, time)
    return 0, least


@compiled
def write_fall(time, step, ratio, nodes, span, count, out):
    """Write when nodes end, each `step` before the one before; those of one instant as one."""
    begin, first, out[count].time = time, 0, time
    if same_instant(time, time - (nodes - 1) * step, span):
        out[count].nodes = nodes
        return count + 1
    if not same_instant(time, time - step * ratio ** max(nodes - 2, 0) / 2, span):  # not even two
        for k in range(count, count + nodes):
            out[k].time, out[k].nodes = time, 1
            time, step = time - step, step * ratio
        return count + nodes
    for k in range(1, nodes):
        time, step = time - step, step * ratio
        if not same_instant(time, begin, span):
            out[count].nodes = k - first
            count, begin, first = count + 1, time, k
            out[count].time = time
    out[count].nodes = nodes - first
    return count + 1


@compiled
def ends_in_groups(kind, pool, groups, n, sigma, end, cms, cps, unit, own, span, out):
    r"""Return when a task is computed and when its last send ends, group by group.

    Nodes of one release share geometrically. The remodel's shares x_k of a group, with
    :math:`q = \chi_g/(\tau+\chi_g)`, end earlier and earlier,

    .. math:: f_{k+1} - f_k = x_k \tau \left(1 - \frac{\tau+\chi}{\tau+\chi_g}\right) \leq 0,

    so that the first of each group decides; the optimum ends at once. `end` is the estimate. Where
    the remodel's nodes are each their `own`, write when they end into `out`; return also how many
    places are filled.
    """
    clock, count = pool[0].time, 0
    if kind == OPTIMUM:
        head, run = clock, 0
        for g in range(groups):
            if pool[g].time > clock:
                head, run = pool[g].time, 0
            run += pool[g].nodes
            clock = head + (end - head) * reach_of(run, cms / (cms + cps), unit)
        return end, clock, 0
    time, last, completion = sigma * unit[n], pool[groups - 1].time, clock
    chi = cps * time / (time + (last - clock))
    whole = end - last
    if last - clock > time:  # shares over so long a wait multiply what the clock has rounded
        whole = remodelled_time(pool, groups, sigma, cms, cps, time)
    load = whole / (cms + chi)
    for g in range(groups):
        ahead, m = cps * time / (time + (last - pool[g].time)), pool[g].nodes
        if g > 0:
            load = load * chi / (cms + ahead)
        chi, clock = ahead, max(clock, pool[g].time)
        finish = clock + load * cms + load * cps
        completion = max(completion, finish)
        if own and m == 1:
            out[count].time, out[count].nodes = finish, 1
            count += 1
        elif own:
            step = load * cms * (cps - chi) / (cms + chi)
            count = write_fall(finish, step, chi / (cms + chi), m, span, count, out)
        if m == 1 or chi == 0:  # without computing the first has all of it
            clock, load = clock + load * cms, load * (m == 1)
            continue
        decay = np.log1p(cms / chi)
        clock = clock - load * (cms + chi) * np.expm1(-m * decay)
        load = load * np.exp(-(m - 1) * decay)
    return completion, clock, count


@compiled
def spread(kind, release, n, sigma, rounds, end, costs, unit, lead, shared, out, base):
    """Lay one task out: every send and computation, in order of transmission.

    Shares of one's own stand in `out` already.
    """
    cms, cps, st, sc = costs
    w, last = cms + cps, release[n - 1]
    together = kind == OPR or kind == EQUAL or kind == ROUNDS
    clock = last if together else release[0]
    time = sigma * unit[n]
    load = sigma / n  # equal shares and pieces
    shift, chi = 0 * sigma, cps
    if kind == OPR:
        load = (lead[n] + sigma * unit[n]) / w
    elif kind == EVEN:
        for i in range(n):
            shift += last - release[i]
        shift = (sigma * w - shift) / n
    elif kind == REMODEL:
        total, passed = 0 * sigma, 1 + 0 * sigma
        for i in range(n):
            chi = cps * time / (time + (last - release[i]))
            total += passed / (cms + chi)
            passed *= chi / (cms + chi)
        chi = cps * time / (time + (last - release[0]))
        load = sigma / total / (cms + chi)
    completion = clock
    for j in range(rounds):
        if kind == ROUNDS or kind == ROUNDS_EARLY:
            load = instalment(j, sigma, n, rounds, cms, cps, st, sc)
        for i in range(n):
            row, busy = base + j * n + i, i > 0 and release[i] <= clock
            if kind == PIECES and not shared:
                clock = release[i]
            elif not together:
                clock = max(clock, release[i])
            if kind == OWN:
                load = out[row, 0] * sigma
            elif kind == EVEN:
                load = (shift + (last - release[i])) / w
            elif kind == OPTIMUM:
                # behind another: w x load = end - clock without the difference
                load = load * (cps / w) if busy else (end - clock) / w
            out[row, 0], out[row, 1] = load / sigma, clock
            clock = clock + (st + load * cms)
            begins = clock if j == 0 else max(clock, out[row - n, 3])
            out[row, 2], out[row, 3] = clock, begins + (sc + load * cps)
            completion = max(completion, out[row, 3])
            if kind == OPR:
                load = load * (cps / w) - st / w
            elif kind == REMODEL and i + 1 < n:
                ahead = cps * time / (time + (last - release[i + 1]))
                load, chi = load * chi / (cms + ahead), ahead
    return completion, clock

"""Heuristic G of paper S, section 5.1, step by step.

Every step serves the application with the smallest share: it opens one connection to the
cluster with the best pay-off, or computes some of the application's work at its home.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, compiled

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]

#: Below this part of its first amount, a resource counts as used up.
EXHAUSTED = 1e-9
#: So many steps have the printed size; after each `STEPS_PER_DOUBLING` more it doubles: G ends even
#: where a step is smaller than the rounding error of what is left.
STEPS_OF_PRINTED_SIZE, STEPS_PER_DOUBLING = 2**20, 2**16
#: Entries of `Remaining.counters`.
TURN_COUNT, STEP_COUNT = range(2)
#: More turns than a run can take.
ALL_TURNS = 2**62


class GreedyNetwork(NamedTuple):
    """Applications, clusters, routes and links, which do not change."""

    origin: _Ints  # (A,) home cluster of each application
    priority: _Floats  # (A, K); where it is 0 the work does not count, and none is sent
    largest_priority: _Floats  # (A,)
    work_per_unit: _Floats  # (A,)
    data_per_unit: _Floats  # (A,)
    first_speed_row: _Ints  # (K + 1,) offsets of each cluster's speed rows
    is_limited: _Flags  # (S, A) whether a speed row limits an application
    connection_bandwidth: _Floats  # (K, K) inf on an empty route, 0 without a route
    route_number: _Ints  # (K, K); -1 without a route, and for empty routes
    first_link: _Ints  # (R + 1,) offsets into `route_links`
    route_links: _Ints
    first_route: _Ints  # (L + 1,) offsets into `link_routes`
    link_routes: _Ints  # numbers of the routes over each link
    speed: _Floats  # (S,) the limit of each speed row
    gateway: _Floats  # (K,)


class GreedyRules(NamedTuple):
    """What the reading says about step 5: work at the application's home."""

    as_in_prose: bool  # the amount that the text states, not that of the formula
    takes_rest: bool  # where the formula gives 0: the application's part of all that is left


class Remaining(NamedTuple):
    """The resources left, and the work and connections allocated so far."""

    speed: _Floats  # (S,)
    gateway: _Floats  # (K,)
    connections_left: _Floats  # (L,)
    full_links: _Ints  # (R,) links of each route with less than one connection left
    work: _Floats  # (A, K) load units of each application on each cluster
    connections: _Ints  # (K, K)
    share: _Floats  # (A,) sum of work / priority
    is_active: _Flags  # (A,) the list L of the paper
    benefit: _Floats  # (K,) load units that the selected application could place on each cluster
    counters: _Ints  # (2,) turns and steps so far: a turn takes a step or ends an application


class GreedyTrace(NamedTuple):
    """The first steps, as many as the arrays have room for."""

    application: _Ints
    cluster: _Ints
    amount: _Floats


@compiled
def is_larger(value, other):
    """Tell whether a value is larger than another one by more than the tolerance."""
    return value > other + TOL * abs(other)


@compiled
def limit_by_speed(network, remaining, application, cluster):
    """Return the units of an application that the speed rows of a cluster still allow."""
    least = np.inf
    for row in range(network.first_speed_row[cluster], network.first_speed_row[cluster + 1]):
        if network.is_limited[row, application]:
            least = min(least, remaining.speed[row])
    return least / network.work_per_unit[application] if least > 0 else 0.0


@compiled
def limit_by_connection(network, remaining, application, cluster):
    """Return the units of an application that one more connection can carry to a cluster."""
    home = network.origin[application]
    route = network.route_number[home, cluster]
    if route >= 0 and remaining.full_links[route]:
        return 0.0
    bandwidth = network.connection_bandwidth[home, cluster]
    least = min(remaining.gateway[home], bandwidth, remaining.gateway[cluster])
    if least <= 0:
        return 0.0
    data = network.data_per_unit[application]
    return least / data if data > 0 else np.inf


@compiled
def select_application(network, remaining):
    """Return the active application of the smallest share, -1 if none is active.

    Ties go to the largest priority, then to the first.
    """
    least, selected = np.inf, -1
    for application in range(len(remaining.is_active)):
        if remaining.is_active[application] and remaining.share[application] < least:
            least, selected = remaining.share[application], application
    for application in range(len(remaining.is_active)):
        if not remaining.is_active[application] or application == selected:
            continue
        if is_larger(remaining.share[application], least):
            continue
        priority = network.largest_priority[application]
        selected_priority = network.largest_priority[selected]
        is_first = priority == selected_priority and application < selected
        if priority > selected_priority or is_first:
            selected = application
    return selected


@compiled
def choose_cluster(network, remaining, application):
    """Return the cluster of the best pay-off, -1 if there is none; fill `benefit`.

    The pay-off is benefit / priority. Ties go to the home cluster, then to the first. The second
    value returned is the other cluster that could take most units, -1 if none can take any.
    """
    home, benefit = network.origin[application], remaining.benefit
    best_payoff = most_units = 0.0
    chosen = largest_elsewhere = -1
    for cluster in range(len(network.route_number)):
        benefit[cluster] = 0.0
        priority = network.priority[application, cluster]
        if priority > 0:
            benefit[cluster] = limit_by_speed(network, remaining, application, cluster)
            if cluster != home:
                carried = limit_by_connection(network, remaining, application, cluster)
                benefit[cluster] = min(benefit[cluster], carried)
                if is_larger(benefit[cluster], most_units):
                    most_units, largest_elsewhere = benefit[cluster], cluster
                if is_larger(benefit[cluster] / priority, best_payoff):
                    best_payoff, chosen = benefit[cluster] / priority, cluster
    if benefit[home] > 0:
        home_payoff = benefit[home] / network.priority[application, home]
        if not is_larger(best_payoff, home_payoff):
            chosen = home
    return chosen, largest_elsewhere


@compiled
def largest_guest(network, remaining, application):
    """Return, in units of an application, the most that another one could place at its home."""
    home, most_work = network.origin[application], 0.0
    for guest in range(len(network.origin)):
        if network.origin[guest] != home:
            carried = limit_by_connection(network, remaining, guest, home)
            units = min(carried, limit_by_speed(network, remaining, guest, home))
            work = units * network.work_per_unit[guest]
            if is_larger(work, most_work):
                most_work = work
    return most_work / network.work_per_unit[application]


@compiled
def equal_rest(network, remaining, application):
    """Return the units that bring all applications of one home to equal shares of what is left."""
    home = network.origin[application]
    available = remaining.benefit[home]
    level, lower_level = np.inf, np.inf
    while lower_level < level or level == np.inf:
        level, weight = lower_level, 0.0
        filled = available * network.work_per_unit[application]
        for other in range(len(network.origin)):
            is_here = network.origin[other] == home and remaining.is_active[other]
            if is_here and remaining.share[other] < level:
                other_weight = network.work_per_unit[other] * network.priority[other, home]
                weight += other_weight
                filled += other_weight * remaining.share[other]
        if weight == 0:  # what is left is smaller than the rounding error of the shares
            return available
        lower_level = filled / weight
    amount = (level - remaining.share[application]) * network.priority[application, home]
    return min(available, amount) if amount > 0 else available


@compiled
def local_amount(network, remaining, rules, application, largest_elsewhere):
    """Return the units that an application computes at its home in step 5.

    As printed, the most that one connection could take away; as in the prose, the most that
    another application could bring. Where the printed amount is 0: the amount of the prose, or the
    application's part of all that is left.
    """
    available = remaining.benefit[network.origin[application]]
    if not rules.as_in_prose and largest_elsewhere >= 0:
        return min(remaining.benefit[largest_elsewhere], available)
    if rules.as_in_prose or not rules.takes_rest:
        amount = largest_guest(network, remaining, application)
        if amount > 0:
            return min(amount, available)
    return equal_rest(network, remaining, application)


@compiled
def bundle_connections(network, remaining, application, cluster, most):
    """Return the units that several connections carry to a cluster, and their number.

    They are as many as are left and of use, at most `most`.
    """
    home = network.origin[application]
    route, count = network.route_number[home, cluster], most
    if route < 0:
        return remaining.benefit[cluster], 1
    for place in range(network.first_link[route], network.first_link[route + 1]):
        count = min(count, np.floor(remaining.connections_left[network.route_links[place]]))
    bandwidth = network.connection_bandwidth[home, cluster]
    carried = min(remaining.gateway[home], count * bandwidth, remaining.gateway[cluster])
    data = network.data_per_unit[application]
    amount = min(limit_by_speed(network, remaining, application, cluster), carried / data)
    return amount, int(min(count, np.ceil(amount * data / bandwidth)))


@compiled
def open_connections(network, remaining, home, cluster, count):
    """Open connections, and count the links that are then full on each route over them."""
    route = network.route_number[home, cluster]
    if route < 0:
        return
    remaining.connections[home, cluster] += count
    for place in range(network.first_link[route], network.first_link[route + 1]):
        link = network.route_links[place]
        remaining.connections_left[link] -= count
        if remaining.connections_left[link] < 1:
            for other in range(network.first_route[link], network.first_route[link + 1]):
                remaining.full_links[network.link_routes[other]] += 1


@compiled
def subtract_amount(left, first, index, amount):
    """Subtract an amount from a resource; less than `EXHAUSTED` of its first amount becomes 0."""
    left[index] -= amount
    if left[index] <= EXHAUSTED * first[index]:
        left[index] = 0.0


@compiled
def allocate(network, remaining, application, cluster, amount):
    """Allocate units of an application to a cluster (step 6)."""
    home = network.origin[application]
    for row in range(network.first_speed_row[cluster], network.first_speed_row[cluster + 1]):
        if network.is_limited[row, application]:
            work = amount * network.work_per_unit[application]
            subtract_amount(remaining.speed, network.speed, row, work)
    if cluster != home:
        data = amount * network.data_per_unit[application]
        subtract_amount(remaining.gateway, network.gateway, home, data)
        subtract_amount(remaining.gateway, network.gateway, cluster, data)
    remaining.work[application, cluster] += amount
    remaining.share[application] += amount / network.priority[application, cluster]


@compiled
def step_factor(turns):
    """Return how many times the printed size a step has after so many turns."""
    doublings = max(0, turns - STEPS_OF_PRINTED_SIZE) // STEPS_PER_DOUBLING
    return 2.0 ** min(doublings, 1000)


@compiled
def allocate_greedily(network, remaining, rules, trace, last_turn):
    """Run steps 2 to 7 until no application is active; tell whether none is.

    A run stops after the turn of number `last_turn`, and goes on where it is called again.
    """
    counters = remaining.counters
    while counters[TURN_COUNT] < last_turn:
        counters[TURN_COUNT] += 1
        factor = step_factor(counters[TURN_COUNT])
        application = select_application(network, remaining)
        if application < 0:
            return True
        cluster, largest_elsewhere = choose_cluster(network, remaining, application)
        if cluster < 0:
            remaining.is_active[application] = False
            continue
        home, amount = network.origin[application], remaining.benefit[cluster]
        if cluster == home:
            amount = local_amount(network, remaining, rules, application, largest_elsewhere)
            if factor > 1:
                amount = min(remaining.benefit[home], factor * amount)
        else:
            count = 1
            if factor > 1:
                amount, count = bundle_connections(network, remaining, application, cluster, factor)
            open_connections(network, remaining, home, cluster, count)
        allocate(network, remaining, application, cluster, amount)
        step = counters[STEP_COUNT]
        if step < len(trace.amount):
            trace.application[step], trace.cluster[step] = application, cluster
            trace.amount[step] = amount
        counters[STEP_COUNT] += 1
    return False

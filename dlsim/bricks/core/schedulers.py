"""The rules of paper B, section 3: Greedy, Deadline, Load Correction and Fallback."""

import numpy as np

from dlsim.bricks.core.network import smallest_on_path
from dlsim.bricks.core.state import NONE
from dlsim.compiled import CLOCK_DIVISOR, TOL, compiled, deadline_with_tolerance, meets_deadline

#: Codes of `dlsim.bricks.core.state.Config.algorithm`; another is a user's function.
GREEDY, DEADLINE = range(2)


@compiled(inline=True)
def transfer_seconds(data, throughput):
    """Return the seconds of a transfer: 0 without data, infinite at throughput 0."""
    if data <= 0:
        return 0.0
    if throughput == 0:
        return np.inf
    return data / throughput


@compiled(inline=True)
def apply_link_correction(link, cfg, state):
    """Return the predicted throughput of a link, corrected for transfers if configured.

    The correction divides the throughput among the transfers under way; the paper names it as
    future work (section 6).
    """
    if not cfg.correct_links:
        return state.predicted[link]
    return state.predicted[link] / (1 + cfg.pload * state.links[link].transfers)


@compiled(inline=True)
def predict_transfer(data, pair, start, links, cfg, state):
    """Return the seconds of a transfer over the path of a pair of domains, a term of eq. (2)."""
    smallest = np.inf
    for hop in range(start[pair], start[pair + 1]):
        smallest = min(smallest, apply_link_correction(links[hop], cfg, state))
    return transfer_seconds(data, smallest)


@compiled(inline=True)
def apply_load_correction(server, env, cfg, state):
    """Return the predicted Load of a server, with Load Correction if configured (eq. 5).

    Load Correction adds Pload for every client job that is scheduled on the server and not
    completed.
    """
    load = state.predicted[env.rates.shape[0] + server]
    if cfg.load_correction:
        load += state.scheduled[server] * cfg.pload
    return load


@compiled
def refresh_estimates(row, env, cfg, state):
    """Compute T_Si of every server for a request: send, work and receive times (eq. 2)."""
    home, there = env.client_domain[env.client[row]], NONE
    send_time, recv_time = 0.0, 0.0
    for server in range(env.performance.shape[0]):
        if env.server_domain[server] != there:  # servers are mostly listed by domain
            there = env.server_domain[server]
            pair = home * env.domains + there
            send_time = predict_transfer(
                env.send[row], pair, env.path_start, env.path_links, cfg, state
            )
            recv_time = predict_transfer(
                env.recv[row], pair, env.return_start, env.return_links, cfg, state
            )
        state.send_time[server], state.recv_time[server] = send_time, recv_time
    work = env.work[row]
    for server in range(env.performance.shape[0]):  # a loop of its own: the compiler vectorises it
        transfers = state.send_time[server] + state.recv_time[server]
        slowness = (1 + apply_load_correction(server, env, cfg, state)) / env.performance[server]
        state.estimates[server] = transfers + work * slowness


@compiled
def exclude_rejecting(row, state):
    """Exclude the servers that a request fell back from, unless these are all there are."""
    state.excluded[:] = False
    for k in range(state.requests[row].fallbacks):
        state.excluded[state.rejected_by[row, k]] = True
    if state.excluded.all():
        state.excluded[:] = False


@compiled(inline=True)
def choose_greedy(now, state):
    """Apply Greedy: return the server with the smallest T_Si, the first of equal ones."""
    fastest = np.inf
    for server in range(state.estimates.shape[0]):
        if not state.excluded[server]:
            fastest = min(fastest, state.estimates[server])
    limit = deadline_with_tolerance(now + fastest, fastest)
    for server in range(state.estimates.shape[0]):
        if not state.excluded[server] and now + state.estimates[server] <= limit:
            return server
    return NONE


@compiled(inline=True)
def choose_deadline(now, due, opt, state):
    """Apply Deadline: return the server whose T_Si is nearest below T_target (eq. 1, 3, 4).

    Of equally near ones the first is taken; where none is below the target, that of Greedy.
    """
    target = (due - now) * opt
    limit = deadline_with_tolerance(now + target, abs(target))
    nearest = -np.inf
    for server in range(state.estimates.shape[0]):
        estimate = state.estimates[server]
        if not state.excluded[server] and estimate > nearest and now + estimate <= limit:
            nearest = estimate
    if nearest == -np.inf:
        return choose_greedy(now, state)
    finish = now + nearest
    equal = finish - TOL * (nearest + abs(finish) / CLOCK_DIVISOR)
    for server in range(state.estimates.shape[0]):
        if not state.excluded[server] and equal <= now + state.estimates[server] <= limit:
            return server
    return NONE


@compiled
def choose_server(row, now, env, cfg, state):
    """Return the server that a scheduler picks for a request (section 3.1, step 4)."""
    if cfg.algorithm == GREEDY:
        return choose_greedy(now, state)
    if cfg.algorithm == DEADLINE:
        return choose_deadline(now, env.due[row], cfg.opt, state)
    raise ValueError("no scheduler has this code")


@compiled(inline=True)
def promise_completion(row, now, env, state):
    """Return when a server expects a request to be back: the right side of eq. (6), plus now."""
    server, home = state.requests[row].server, env.client_domain[env.client[row]]
    throughput = smallest_on_path(env.server_domain[server], home, state.predicted, env)
    backlog = max(0.0, state.servers[server].free - now)
    service = backlog + env.work[row] / env.performance[server]
    return now + service + transfer_seconds(env.recv[row], throughput)


@compiled(inline=True)
def accepts_request(row, now, promised, env, cfg, state):
    """Apply Fallback: accept a request that ends in time (eq. 6), or is on its last try (eq. 7)."""
    request = state.requests[row]
    if cfg.send_counts_twice:
        promised += now - request.submitted
    due = env.due[row] + cfg.fallback_slack
    is_in_time = meets_deadline(promised, due, abs(due - env.arrival[row]))
    return is_in_time or request.fallbacks >= cfg.max_fallbacks

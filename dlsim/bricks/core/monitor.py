"""The resource monitor and its database: what is measured, and when.

Source: paper B, section 2 (Figure 1) and section 3.1.
"""

from dlsim.bricks.core.network import visible_entry
from dlsim.bricks.core.predictors import predict
from dlsim.bricks.core.servers import count_arrived_jobs, count_clients_until, pass_ended_jobs
from dlsim.bricks.core.state import (
    ARRIVED,
    BUSY,
    BUSY_BEFORE,
    CLIENTS,
    DONE,
    ENDED,
    EXTERNAL,
    LAST,
    MEAN,
    MOST_PROBES,
    PERFECT,
    PREDICT,
    QUEUE,
    TOO_MANY_PROBES,
    USER,
    UTILISATION,
    WINDOW_PROBES,
)
from dlsim.compiled import CLOCK_DIVISOR, TOL, compiled, deadline_with_tolerance


@compiled(inline=True)
def count_clients(server, bound, state):
    """Return the client jobs in a server's queue or running at an instant."""
    arrived = count_clients_until(server, state.cursors[server, ARRIVED], bound, False, state)
    return arrived - count_clients_until(server, state.cursors[server, ENDED], bound, True, state)


@compiled(inline=True)
def count_jobs(server, bound, time, env, state):
    """Return all jobs in a server's queue or running at an instant."""
    arrived = count_arrived_jobs(server, state.cursors[server, ARRIVED], bound, env, state)
    ended = state.cursors[server, ENDED]
    pass_ended_jobs(server, ended, bound, time, env, state)
    return arrived - ended.count


@compiled(inline=True)
def busy_fraction(server, bound, time, env, cfg, state):
    """Return the share of the last probe interval in which a server was busy."""
    begin = max(-env.origin, time - cfg.probe)
    # an interval begins at the probe before, or, without probes, maybe before the last decision
    before = state.cursors[server, BUSY_BEFORE if cfg.predictor == PERFECT else BUSY]
    busy_before = pass_ended_jobs(server, before, bound - cfg.probe, begin, env, state)
    busy_now = pass_ended_jobs(server, state.cursors[server, BUSY], bound, time, env, state)
    return max(0.0, busy_now - busy_before) / cfg.probe


@compiled(inline=True)
def measure_load(server, time, bound, env, cfg, state):
    """Return what the monitor reports as Load of a server; what has happened by `bound` counts."""
    steps, external = env.load_traces.shape[1], 0.0
    if steps > 0:
        external = env.load_traces[server, visible_entry(env.origin + time, env.step, steps)]
    elif cfg.load == CLIENTS or cfg.load == EXTERNAL:
        external = env.server_load
    if cfg.load == EXTERNAL:
        return external
    if cfg.load == CLIENTS:
        return count_clients(server, bound, state) + external
    if cfg.load == QUEUE:
        return count_jobs(server, bound, time, env, state) + external
    if cfg.load == UTILISATION:
        return busy_fraction(server, bound, time, env, cfg, state) + external
    raise ValueError("no reading of Load has this code")


@compiled(inline=True)
def measure(clock, time, bound, env, cfg, state):
    """Write the throughput of every link and the Load of every server into the database."""
    values, links = state.measured[state.counters[0].probes % WINDOW_PROBES], env.rates.shape[0]
    entry = visible_entry(clock, env.step, env.rates.shape[1])
    for link in range(links):
        values[link] = env.rates[link, entry]
    for server in range(env.performance.shape[0]):
        values[links + server] = measure_load(server, time, bound, env, cfg, state)


@compiled(inline=True)
def is_probe_due(probe, time, env, cfg):
    """Tell whether a probe has been taken by a time."""
    return probe * cfg.probe - env.origin <= deadline_with_tolerance(time, cfg.probe)


@compiled(inline=True)
def first_needed_probe(time, env, cfg):
    """Return the first probe on which a prediction by "last" or "mean" at a time depends."""
    newest = int((env.origin + time) / cfg.probe)
    if not is_probe_due(newest, time, env, cfg):  # the quotient was rounded up
        newest -= 1
    return newest + 1 - (1 if cfg.predictor == LAST else WINDOW_PROBES)


@compiled(inline=True)
def take_probe(env, cfg, state):
    """Take the next probe; what happens at its very instant does not count yet."""
    clock = state.counters[0].probes * cfg.probe
    time = clock - env.origin
    bound = time - TOL * (cfg.probe + abs(time) / CLOCK_DIVISOR)
    measure(clock, time, bound, env, cfg, state)


@compiled
def update_monitor(time, env, cfg, state):
    """Bring measurements and predictions up to a time; say whether the loop has to stop.

    The predictors "last" and "mean" skip probes that no prediction depends on.
    """
    counters = state.counters[0]
    if cfg.predictor == PERFECT:
        measure(env.origin + time, time, deadline_with_tolerance(time, cfg.probe), env, cfg, state)
        predict(counters.probes, cfg, state)
        return DONE
    if env.origin + time > MOST_PROBES * cfg.probe:
        return TOO_MANY_PROBES
    if cfg.predictor == LAST or cfg.predictor == MEAN:
        counters.probes = max(counters.probes, first_needed_probe(time, env, cfg))
    while is_probe_due(counters.probes, time, env, cfg):
        take_probe(env, cfg, state)
        counters.probes += 1
        if cfg.predictor == USER:
            return PREDICT
        predict(counters.probes - 1, cfg, state)
    return DONE

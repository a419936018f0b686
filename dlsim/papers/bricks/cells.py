"""What paper B runs (section 4), one function per experiment, each a cell of a sweep.

Beyond it: what users pay in other economies (section 1 prices a resource by its speed alone,
section 6 names better ones as future work).
"""

import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dlsim.bricks import DRAWN, Environment, Outcome, Reading, Scheduler, run_many, simulate
from dlsim.bricks.herding import expected_failure
from dlsim.bricks.model import SWITCHES as OF_ENGINE
from dlsim.bricks.rivals import best_of, in_time, interpreted, random_feasible
from dlsim.bricks.tuning import server_errors, target_failure
from dlsim.bricks.view import View, best_server
from dlsim.bricks.workload import draw
from dlsim.bricks.yardstick import follow, foresee, frontier
from dlsim.compiled import TOL
from dlsim.errors import InputError
from dlsim.given import Floats, option
from dlsim.study.cells import verified

Row = dict[str, Any]
Given = Mapping[str, Any]
#: Switches of `Scheduler`.
OF_SCHEDULER: dict[str, tuple[Any, ...]] = {"exclude_rejecting": (False, True)}
#: Of the simulator, of `Environment.random`, and of the scheduler; the default first.
SWITCHES: dict[str, tuple[Any, ...]] = {
    **OF_ENGINE, "probe": (60.0, 1.0, 900.0), **DRAWN, **OF_SCHEDULER,
}  # fmt: skip
#: The four versions of Figures 3 and 4: Load Correction, and fallbacks.
VERSIONS = {"x/x": (0, 0), "L/x": (1, 0), "x/F": (0, 1), "L/F": (1, 1)}
#: Nodes of the whole system: domains, and fewest and most nodes of each.
SIZES = {4: (2, (2, 2)), 20: (4, (5, 5)), 75: (10, (5, 10)), 150: (20, (5, 10)), 300: (40, (5, 10))}
#: What section 4.2 blames for the small gain of Load Correction, taken away.
CONDITIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no noise on links": {"trace_std": 0.0},
    "no outside jobs": {"server_load": 0.0},
    "perfect prediction": {"predictor": "perfect"},
    "none of the three": {"trace_std": 0.0, "server_load": 0.0, "predictor": "perfect"},
}
#: Further mechanisms of `Scheduler`: correcting links (the paper's future work), and the
#: threshold of section 3.3.
EXTRAS: dict[str, dict[str, Any]] = {
    "as it is": {}, "links": {"correct_links": True},
    **{f"slack {s:g}": {"fallback_slack": s} for s in (60.0, 300.0, 900.0)},
}  # fmt: skip
#: Seconds of the environments in which background models are compared (claim 12).
BACKGROUND_SECONDS = 7200.0
#: The extraneous model of either resource, and the seconds of environments that are timed: many
#: where little is to be told, few where much is to be computed.
EXTRANEOUS = {
    "servers": ("server_background", "jobs", 86_400.0),
    "links": ("link_background", "data", BACKGROUND_SECONDS),
}


class Kind(NamedTuple):
    """A scheduler of the figures."""

    policy: str
    corrected: int = 0
    fallbacks: int = 0


def deadline(opt: float) -> str:
    """Return the legend of Deadline with an Opt, such as ``"D-0.7"``."""
    return f"D-{opt:g}"


def version(corrected: int, fallbacks: int) -> str:
    """Return the paper's sign for Load Correction and Fallback."""
    return f"{'L' if corrected else 'x'}/{'F' if fallbacks else 'x'}"


#: Speed at which all prices per second are those of the paper, Mops/s.
USUAL = 300.0
#: Price per second of a server as a function of its Mops/s, and of the client jobs there
#: when the request arrives.
ECONOMIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "per second, as speed": lambda performance, load: performance,
    "per second, premium": lambda performance, load: performance * np.sqrt(performance / USUAL),
    "per second, spot": lambda performance, load: performance * (1 + load),
}


def cheapest(economy: str, opt: float) -> Callable[[View], int]:
    """Make the scheduler of a user who pays: the cheapest server that is in time."""
    price = ECONOMIES[economy]

    def choose(view: View) -> int:
        some = in_time(view, opt)
        if not some.size:
            return best_server(view, view.estimates, -np.inf)
        bill = price(view.performance, view.load) / view.performance
        return int(some[np.argmin(bill[some])])

    choose.__name__ = f"cheapest-{economy.rpartition(' ')[2]}"
    return choose


#: Automatic Opt: legend, and the failure rate that is to be attained.
TUNERS: dict[str, Any] = {
    "target 2 %": 0.02, "target 5 %": 0.05, "target 10 %": 0.10, "errors": None,
    "errors, target 5 %": 0.05,
}  # fmt: skip
#: Parts of what `errors` knows, one left out.
PARTS = {
    "without rejections": ("commitments", "results"),
    "without results": ("commitments", "rejections"),
    "without commitments": ("results", "rejections"),
}
#: Schedulers of the literature on stale load information, made for a probe interval.
RIVALS: dict[str, Callable[[float], Callable[[View], int]]] = {
    "random feasible": lambda probe: random_feasible(0.7),
    "best of 2": lambda probe: best_of(2),
    "best of 5": lambda probe: best_of(5),
    "interpreted": lambda probe: interpreted(probe, 0.7),
}
#: Schedulers of users who pay, and the price they look at.
PAYERS = {"cheapest, premium": "per second, premium", "cheapest, spot": "per second, spot"}
#: Schedulers that are billed.
BUYERS = ("Greedy", "D-0.5", "D-0.7", "D-0.9", *PAYERS)


def scheduler_of(kind: Kind, probe: float = 60.0, **more: Any) -> Scheduler:
    """Make a scheduler of its legend; some are told how often the monitor probes."""
    name = kind.policy
    more |= {"load_correction": bool(kind.corrected), "max_fallbacks": int(kind.fallbacks)}
    if name == "Greedy":
        return Scheduler("greedy", **more)
    if name in PAYERS:
        return Scheduler(cheapest(PAYERS[name], 0.7), **more)
    if name in RIVALS:
        return Scheduler(RIVALS[name](probe), **more)
    if name in PARTS:
        return Scheduler(server_errors(1.0, knows=PARTS[name]), **more)
    if name in TUNERS:
        learns, target = name.startswith("errors"), TUNERS[name]
        return Scheduler(server_errors(1.0, target) if learns else target_failure(target), **more)
    try:
        opt = float(name.removeprefix("D-"))
    except ValueError:
        named = ", ".join([*PAYERS, *TUNERS, *RIVALS, *PARTS])
        rule = f"policy must be Greedy, D-<Opt> or one of {named}"
        raise InputError(f"{rule}; got {name!r}") from None
    return Scheduler("deadline", opt=opt, **more)


#: A reading of the paper, sorted by what it concerns.
Switches = namedtuple("Switches", "reading drawn scheduler")


def split_switches(switches: Given) -> Switches:
    """Sort a mixed mapping of switches."""
    for name in switches:
        option("reading switch", name, SWITCHES)
    drawn = {k: tuple(v) if isinstance(v, list) else v for k, v in switches.items() if k in DRAWN}
    own = {k: v for k, v in switches.items() if k in OF_SCHEDULER}
    rest = {k: v for k, v in switches.items() if k not in drawn and k not in own}
    Scheduler(**own)
    return Switches(Reading.of(rest), drawn, own)


def row_of(o: Outcome) -> Row:
    """Sum up a run."""
    due = o.environment.requests["deadline"].to_numpy()
    names = ("fallbacks", "completion", "missed")
    fallbacks, completion, missed = (o.requests[name].to_numpy() for name in names)
    late = (completion - due).clip(min=0) * missed
    return {
        "failure": o.failure_rate, "cost": o.cost, "work_cost": o.work_weighted_cost,
        "tardiness": float(late.mean()) / 60 if len(due) else np.nan, "drain": o.drain / 3600,
        "resubmitted": float(fallbacks.mean()) if len(due) else np.nan, "requests": len(due),
    }  # fmt: skip


#: Environments, and their traces and background, that this process has drawn, the latest last.
_DRAWN: dict[str, Environment] = {}
_PARTS: dict[Any, Any] = {}
#: Most bytes that are kept when another one is drawn.
MOST_BYTES = 2**28


def _kept() -> int:
    """Return how many bytes they take, about."""
    arrays = [getattr(part, "times", part) for part in _PARTS.values()]
    for env in _DRAWN.values():
        arrays += [env.traces, env.background.times, env.link_background.times]
    return sum({id(one): one.nbytes for one in arrays if one is not None}.values())


def drawn(seed: Any, interval: float, options: Given) -> Environment:
    """Draw an environment, or take it, or parts of it, where this process has them still."""
    key = repr((seed.entropy, seed.spawn_key, interval, sorted(options.items())))
    if key not in _DRAWN:
        while _DRAWN | _PARTS and _kept() > MOST_BYTES:
            oldest: dict[Any, Any] = _DRAWN or _PARTS
            del oldest[next(iter(oldest))]
        env = Environment(**draw(seed, interval, _PARTS, **options))
        for other in _DRAWN.values():  # what other users' data leave is dear to compute
            if env.link_background is other.link_background and "open_rates" in vars(other):
                vars(env)["open_rates"] = other.open_rates
        _DRAWN[key] = env
    _DRAWN[key] = _DRAWN.pop(key)
    return _DRAWN[key]


def place_of(
    *, switches: Given, interval: float, options: Given,
    condition: str = "as it is", value: float = 0.0, **_how: Any,
) -> str:  # fmt: skip
    """Name what an environment is drawn by: in this order, what shares one comes in a row."""
    own = split_switches({**switches, **CONDITIONS[condition]}).drawn
    return str((own, interval, sorted(options.items()), value))


def together(
    part: float, *, tasks: Mapping[float, Sequence[tuple[int, Callable[..., Any], Row]]], seed: Any
) -> list[Row]:
    """Run many things under one seed, one after another, so that they share what is drawn."""
    return [
        {"task": number, **row}
        for number, function, how in tasks[part]
        for row in function(**how, seed=seed)
    ]


def run_all(
    env: Environment, schedulers: Iterable[Sequence[Any]], s: Switches, seed: Any
) -> list[Row]:
    """Run schedulers in one environment; the last run of the first replicate is verified."""
    kinds = [Kind(*one) for one in schedulers]
    own = [scheduler_of(kind, s.reading.probe, **s.scheduler) for kind in kinds]
    outcomes = run_many(env, own, s.reading)
    verified(outcomes[-1], seed)
    return [{**kind._asdict(), **row_of(o)} for kind, o in zip(kinds, outcomes, strict=True)]


def compare(
    interval: float, *, schedulers: Sequence[Sequence[Any]], options: Given,
    switches: Given, seed: Any, **mechanism: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers in one environment (Figures 3 to 6)."""
    s = split_switches(switches)
    env = drawn(seed, interval, {**options, **s.drawn})
    return run_all(env, schedulers, s._replace(scheduler={**s.scheduler, **mechanism}), seed)


def vary(parameter: str, value: float, *, options: Given, switches: Given, **how: Any) -> list[Row]:
    """Run schedulers where one parameter differs (what drives failure)."""
    if parameter == "nodes":
        size = dict(zip(("domains", "nodes"), SIZES[int(value)], strict=True))
        return compare(options={**options, **size}, switches=switches, **how)
    return compare(options=options, switches={**switches, parameter: value}, **how)


def under(condition: str, *, switches: Given, **how: Any) -> list[Row]:
    """Run schedulers without what section 4.2 blames (claim 10)."""
    return compare(switches={**switches, **CONDITIONS[condition]}, **how)


def foretold(
    value: float, *, interval: float, opts: Mapping[str, float], options: Given,
    switches: Given, seed: Any,
) -> list[Row]:  # fmt: skip
    """Compute failure rates at a probe interval from what herding is (`expected_failure`)."""
    s = split_switches(switches)
    env, rows = drawn(seed, interval, {**options, **s.drawn}), []
    for name, opt in opts.items():
        corrected = [scheduler_of(Kind(name, 1))]
        [fresh] = run_many(env, corrected, s.reading)
        told = expected_failure(fresh, [value], opt, int(seed.generate_state(1)[0])).iloc[0]
        rows.append({"policy": name, "expected": told["expected"], "alike": told["alike"]})
    return rows


def attainable(
    interval: float, *, schedulers: Sequence[Sequence[Any]], options: Given,
    switches: Given, seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers, and one with perfect foresight, beside what none can beat at their cost."""
    s = split_switches(switches)
    env = drawn(seed, interval, {**options, **s.drawn})
    rows = run_all(env, schedulers, s, seed)
    if s.reading.network != "fluid" or s.reading.cost != "mean":  # the bound speaks of no other
        return [{**row, "least": np.nan} for row in rows]
    bound = frontier(env)
    seer = simulate(env, Scheduler(follow(foresee(env, bound.shares))), s.reading)
    seer.check()
    rows.append({**Kind("clairvoyant")._asdict(), **row_of(seer)})
    lines = {f"line {price:g}": height for price, height in bound.lines.items()}
    return [{**row, "least": float(bound.at(row["cost"])), **lines} for row in rows]


def switched_on(at: float) -> Callable[[View], int]:
    """Make Greedy with Load Correction from an instant on."""

    def choose(view: View) -> int:
        counted = view.work * view.ours / view.performance if view.now >= at else 0.0
        return best_server(view, view.estimates + counted, -np.inf)

    return choose


def queues(o: Outcome, times: Floats) -> Floats:
    """Count the client jobs on every server at some instants, shape (servers, instants)."""
    server, arrived, end = (o.requests[name].to_numpy() for name in ("server", "arrived", "end"))
    rows = [
        [np.searchsorted(np.sort(when[server == k]), times, "right") for when in (arrived, end)]
        for k in range(len(o.environment.servers))
    ]
    came, went = np.moveaxis(np.array(rows), 1, 0)
    return np.asarray(came - went, dtype=float)


def extra(network: str, mechanism: str, *, switches: Given, **how: Any) -> list[Row]:
    """Run schedulers with a further mechanism."""
    return compare(switches={**switches, "network": network}, **EXTRAS[mechanism], **how)


def link_rates(env: Environment) -> Floats:
    """What every link lets through, step by step, in an environment of `BACKGROUND_SECONDS`."""
    return env.open_rates[:, : int(1.5 * BACKGROUND_SECONDS / env.step)]


def background(model: str, *, switches: Given, seed: Any) -> Row:
    """Draw other users' load by one of the two models of section 2.1 (claim 12)."""
    jobs = model == "extraneous"
    env = Environment.random(
        seed, horizon=BACKGROUND_SECONDS, server_background="jobs" if jobs else "trace",
        link_background="data" if jobs else "trace", **switches,
    )  # fmt: skip
    hours = env.traces.shape[-1] * env.step / 3600
    servers, links = 0 if env.load_traces is None else env.load_traces.size, env.traces.size
    if jobs:
        hours = 1.5 * BACKGROUND_SECONDS / 3600
        servers, links = len(env.background.times), len(env.link_background.times)
    rates = link_rates(env)
    varied = rates.std(axis=1) / rates.mean(axis=1)
    return {
        "servers": servers / len(env.servers) / hours,
        "links": links / len(env.rates) / hours,
        # how far coefficients of variation lie apart, over their mean; 0 where none varies
        "spread": float(np.ptp(varied) / varied.mean()) if varied.max() > TOL else 0.0,
    }


def timed(resource: str, *, switches: Given, seed: Any) -> list[Row]:
    """Time a run with other users' load by either model of section 2.1 on one resource."""
    name, model, horizon = EXTRANEOUS[resource]
    rows = []
    for background in ("trace", model):
        models = {"server_background": "trace", "link_background": "trace", name: background}
        env = Environment.random(seed, horizon=horizon, **{**switches, **models})
        seconds = []
        for _ in range(3):  # in the first, things are loaded or compiled once
            fresh, begun = replace(env), time.process_time()
            simulate(fresh, Scheduler())
            seconds.append(time.process_time() - begun)
        kind = "extraneous" if background == model else "trace"
        rows.append({"model": kind, "seconds": min(seconds)})
    return rows


def waiting(o: Outcome) -> Floats:
    """Count the client jobs on its server when each request arrived there."""
    r = o.requests
    count = np.zeros(len(r))
    for rows in r.groupby("server").indices.values():
        here = r.iloc[rows]
        arrived, end = (here[name].to_numpy() for name in ("arrived", "end"))
        before = np.searchsorted(np.sort(arrived), arrived, side="left")
        count[rows] = before - np.searchsorted(np.sort(end), arrived, side="right")
    return np.maximum(count, 0.0)


def bills(o: Outcome) -> dict[str, float]:
    """Price a run in every economy."""
    work = o.environment.requests["work"].to_numpy(dtype=float)
    performance, load = o.requests["cost"].to_numpy(dtype=float), waiting(o)
    paid = {
        name: float((price(performance, load) * work / performance).sum() / work.sum())
        for name, price in ECONOMIES.items()
    }
    return {"speed of the server": o.mean_cost / USUAL, **paid}


def priced(
    interval: float, *, fallbacks: int, options: Given, switches: Given, seed: Any
) -> list[Row]:
    """Bill `BUYERS` in one environment."""
    s = split_switches(switches)
    env = drawn(seed, interval, {**options, **s.drawn})
    own = [scheduler_of(Kind(name, 0, fallbacks)) for name in BUYERS]
    return [
        {"policy": name, "economy": economy, "bill": bill, "failure": o.failure_rate}
        for name, o in zip(BUYERS, run_many(env, own, s.reading), strict=True)
        for economy, bill in bills(o).items()
    ]

"""What paper B runs: one function per experiment, each a cell of a sweep.

Every function draws one environment and runs all schedulers in it, so that schedulers are
compared on the same servers, links, traces, background and requests. Source: paper B
(bricks), section 4.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dlsim.bricks import DRAWN, Environment, Outcome, Reading, Scheduler, simulate, tuning
from dlsim.errors import InputError
from dlsim.kernel import TOL
from dlsim.papers.bricks.switches import OF_SCHEDULER

Row = dict[str, Any]

#: The four versions of Figures 3 and 4: Load Correction, and fallbacks.
VERSIONS = {"x/x": (0, 0), "L/x": (1, 0), "x/F": (0, 1), "L/F": (1, 1)}
#: Nodes of the whole system: domains, and fewest and most nodes of each.
SIZES = {
    4: (2, (2, 2)), 20: (4, (5, 5)), 75: (10, (5, 10)), 150: (20, (5, 10)), 300: (40, (5, 10)),
}  # fmt: skip
#: What section 4.2 blames for the small gain of Load Correction, taken away.
CONDITIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no noise on links": {"trace_std": 0.0},
    "no outside jobs": {"server_load": 0.0},
    "perfect prediction": {"predictor": "perfect"},
    "none of the three": {"trace_std": 0.0, "server_load": 0.0, "predictor": "perfect"},
}
#: Automatic Opt: legend, and how the scheduler is made.
TUNERS: dict[str, Callable[[], Callable[..., int]]] = {
    "target 2 %": lambda: tuning.target_failure(0.02),
    "target 5 %": lambda: tuning.target_failure(0.05),
    "target 10 %": lambda: tuning.target_failure(0.10),
    "errors": lambda: tuning.server_errors(1.0),
    "errors, target 5 %": lambda: tuning.server_errors(1.0, 0.05),
}
#: Failure rates that those with a target are to attain.
TARGETS = {
    "target 2 %": 0.02, "target 5 %": 0.05, "target 10 %": 0.10, "errors, target 5 %": 0.05,
}  # fmt: skip
#: Further mechanisms of `Scheduler`: correcting links (the paper's future work), and the
#: threshold of section 3.3.
EXTRAS: dict[str, dict[str, Any]] = {
    "as it is": {}, "links": {"correct_links": True},
    **{f"slack {s:g}": {"fallback_slack": s} for s in (60.0, 300.0, 900.0)},
}  # fmt: skip
#: Seconds of the environments in which background models are compared (claim 12).
BACKGROUND_SECONDS = 7200.0


class Kind(NamedTuple):
    """A scheduler of the figures."""

    policy: str
    corrected: int = 0
    fallbacks: int = 0


def deadline(opt: float) -> str:
    """Return the legend of Deadline with an Opt.

    Examples
    --------
    >>> deadline(0.7)
    'D-0.7'
    """
    return f"D-{opt:g}"


def version(corrected: int, fallbacks: int) -> str:
    """Return the paper's sign for Load Correction and Fallback."""
    return f"{'L' if corrected else 'x'}/{'F' if fallbacks else 'x'}"


def scheduler_of(kind: Kind, **more: Any) -> Scheduler:
    """Make a scheduler of its legend."""
    common = {
        "load_correction": bool(kind.corrected), "max_fallbacks": int(kind.fallbacks), **more,
    }  # fmt: skip
    if kind.policy == "Greedy":
        return Scheduler("greedy", **common)
    if kind.policy in TUNERS:
        return Scheduler(TUNERS[kind.policy](), **common)
    try:
        opt = float(kind.policy.removeprefix("D-"))
    except ValueError:
        known = ", ".join(TUNERS)
        raise InputError(
            f"policy must be Greedy, D-<Opt> or one of {known}; got {kind.policy!r}"
        ) from None
    return Scheduler("deadline", opt=opt, **common)


class Switches(NamedTuple):
    """A reading of the paper, sorted by what it concerns."""

    reading: Reading
    drawn: dict[str, Any]
    scheduler: dict[str, Any]


def split_switches(switches: Mapping[str, Any]) -> Switches:
    """Sort a mixed mapping of switches."""
    drawn = {k: tuple(v) if isinstance(v, list) else v for k, v in switches.items() if k in DRAWN}
    own = {k: v for k, v in switches.items() if k in OF_SCHEDULER}
    rest = {k: v for k, v in switches.items() if k not in drawn and k not in own}
    known = {*Reading.__dataclass_fields__, *DRAWN, *OF_SCHEDULER}
    if unknown := sorted(set(rest) - known):
        raise InputError(
            f"reading must name switches out of {', '.join(sorted(known))}; got {unknown[0]!r}"
        )
    Scheduler(**own)
    return Switches(Reading.of(rest), drawn, own)


def row_of(o: Outcome) -> Row:
    """Sum up a run."""
    r, due = o.requests, o.environment.requests["deadline"].to_numpy()
    late = (r["completion"].to_numpy() - due).clip(min=0) * r["missed"].to_numpy()
    return {
        "failure": o.failure_rate,
        "cost": o.cost,
        "work_cost": o.work_weighted_cost,
        "tardiness": float(late.mean()) / 60 if len(r) else np.nan,
        "drain": o.drain / 3600,
        "resubmitted": float(r["fallbacks"].mean()),
        "requests": len(r),
    }


def run_all(
    env: Environment, schedulers: Iterable[Sequence[Any]], s: Switches, seed: Any
) -> list[Row]:
    """Run schedulers in one environment; the last run of the first replicate is verified."""
    kinds = [Kind(*one) for one in schedulers]
    rows = []
    for kind in kinds:
        o = simulate(env, scheduler_of(kind, **s.scheduler), s.reading)
        if kind == kinds[-1] and seed.spawn_key[-1:] == (0,):
            o.check()
        rows.append({**kind._asdict(), **row_of(o)})
    return rows


def compare(
    interval: float, *, schedulers: Sequence[Sequence[Any]], options: Mapping[str, Any],
    switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers in one environment (Figures 3 to 6)."""
    s = split_switches(switches)
    env = Environment.random(seed, interval, **{**options, **s.drawn})
    return run_all(env, schedulers, s, seed)


def vary(
    parameter: str, value: float, *, interval: float, schedulers: Sequence[Sequence[Any]],
    options: Mapping[str, Any], switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers where one parameter differs (what drives failure)."""
    if parameter == "nodes":
        domains, nodes = SIZES[int(value)]
        options = {**options, "domains": domains, "nodes": nodes}
    else:
        switches = {**switches, parameter: value}
    return compare(interval, schedulers=schedulers, options=options, switches=switches, seed=seed)


def under(
    condition: str, *, interval: float, schedulers: Sequence[Sequence[Any]],
    options: Mapping[str, Any], switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers without what section 4.2 blames (claim 10)."""
    changed = {**switches, **CONDITIONS[condition]}
    return compare(interval, schedulers=schedulers, options=options, switches=changed, seed=seed)


def extra(
    network: str, mechanism: str, *, interval: float, schedulers: Sequence[Sequence[Any]],
    options: Mapping[str, Any], switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers with a further mechanism."""
    s = split_switches({**switches, "network": network})
    s = s._replace(scheduler={**s.scheduler, **EXTRAS[mechanism]})
    env = Environment.random(seed, interval, **{**options, **s.drawn})
    return run_all(env, schedulers, s, seed)


def _spread(values: Any) -> float:
    """Return how far the coefficients of variation of series lie apart, over their mean.

    Where none varies but for rounding, they do not.
    """
    varied = values.std(axis=1) / values.mean(axis=1)
    return float(np.ptp(varied) / varied.mean()) if varied.max() > TOL else 0.0


def background(model: str, *, switches: Mapping[str, Any], seed: Any) -> Row:
    """Draw other users' load by one of the two models of section 2.1 (claim 12)."""
    jobs = model == "extraneous"
    env = Environment.random(
        seed, horizon=BACKGROUND_SECONDS, server_background="jobs" if jobs else "trace",
        link_background="data" if jobs else "trace", **switches,
    )  # fmt: skip
    hours = env.traces.shape[-1] * env.step / 3600
    if jobs:
        hours = 1.5 * BACKGROUND_SECONDS / 3600
        servers, links = len(env.background.times), len(env.link_background.times)
    else:
        servers = 0 if env.load_traces is None else env.load_traces.size
        links = env.traces.size
    whole = int(1.5 * BACKGROUND_SECONDS / env.step)
    return {
        "servers": servers / len(env.servers) / hours,
        "links": links / len(env.rates) / hours,
        "spread": _spread(env.open_rates[:, :whole]),
    }

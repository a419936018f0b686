"""`explore.grid`: failure rate against cost under Opt, fallbacks and probe interval.

Source: paper B (bricks), section 4. The environments are smaller and shorter than those of
Table 1, so that a picture takes a fraction of a second; every other number is the table's.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlsim.bricks import Environment, Outcome, Reading, Scheduler, run_many, workload
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Slider, new_figure, panel, say, title
from dlsim.given import child
from dlsim.papers.bricks.cells import SWITCHES as OF_PAPER
from dlsim.papers.bricks.cells import Kind, deadline, scheduler_of, split_switches
from dlsim.study.gantt import draw_boxes
from dlsim.study.plot import PERCENT
from dlsim.study.style import INK, style_of

#: What is drawn: hours, domains, nodes of each (half of them servers), environments.
HOURS, DOMAINS, NODES, RUNS = 8.0, 2, (8, 8), 4
#: Opt along the curve.
OPTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Whoever runs at once.
CURVE = ("Greedy", *map(deadline, OPTS))
#: Switches that would take longer than a picture may: packets one by one, steps of a second,
#: data of other users one by one; the probe interval has a slider.
_SLOW = ("network", "trace_step", "link_background", "probe")
SWITCHES = {name: options for name, options in OF_PAPER.items() if name not in _SLOW}
_FALLBACKS = ("fallback_time", "fallback_strict", "exclude_rejecting")


class Setting(NamedTuple):
    """What all points of a picture have in common."""

    interval: float
    seed: int
    fallbacks: int
    corrected: int
    probe: float
    reading: tuple[tuple[str, Any], ...] = ()


@functools.lru_cache(maxsize=24)
def environments(
    interval: float, seed: int, drawn: tuple[tuple[str, Any], ...] = ()
) -> tuple[Environment, ...]:
    """Draw the environments that all schedulers share."""
    size = {"horizon": HOURS * 3600, "domains": DOMAINS, "nodes": NODES}
    seeds = (child(seed, k) for k in range(RUNS))
    envs = tuple(Environment.random(one, interval, **size, **dict(drawn)) for one in seeds)
    if any(env.requests.empty for env in envs):
        none = f"in {HOURS:g} hours with one request in {interval:g} minutes none came"
        rule = "interval must be shorter, or interval_scope 'client'"
        raise InputError(f"{rule}: {none}; take another seed")
    return envs


@functools.lru_cache(maxsize=128)
def _runs(policies: tuple[str, ...], setting: Setting) -> dict[str, list[Outcome]]:
    """Run schedulers in every environment, all of them at once in each."""
    s = split_switches({**dict(setting.reading), "probe": setting.probe})
    kinds = [Kind(policy, setting.corrected, setting.fallbacks) for policy in policies]
    schedulers = [scheduler_of(kind, **s.scheduler) for kind in kinds]
    envs = environments(setting.interval, setting.seed, tuple(sorted(s.drawn.items())))
    found = [run_many(env, schedulers, s.reading) for env in envs]
    return dict(zip(policies, map(list, zip(*found, strict=True)), strict=True))


def outcomes(policy: str, setting: Setting, beside: tuple[str, ...] = CURVE) -> list[Outcome]:
    """Return what became of a scheduler in every environment, run at once with those beside it."""
    return _runs(beside if policy in beside else (policy,), setting)[policy]


def point(policy: str, setting: Setting, beside: tuple[str, ...] = CURVE) -> tuple[float, float]:
    """Return the mean cost of all environments, Mops/s, and the percent of requests failed."""
    runs = outcomes(policy, setting, beside)
    missed = np.concatenate([o.requests["missed"].to_numpy() for o in runs])
    return float(np.mean([o.cost for o in runs])), PERCENT * float(missed.mean())


def per_server(o: Outcome) -> pd.DataFrame:
    """Count what became of the requests on every server, the slowest first."""
    servers, missed = o.environment.servers, o.requests["missed"].astype(bool)
    parts = {
        "met": o.requests["server"][~missed], "missed": o.requests["server"][missed],
        "refused": o.attempts["server"][~o.attempts["accepted"]],
    }  # fmt: skip
    count = pd.DataFrame({name: part.value_counts() for name, part in parts.items()})
    table = servers[["performance"]].join(count.reindex(servers.index).fillna(0).astype(int))
    return table.sort_values("performance", kind="stable")


def _curve(ax: Axes, policy: str, setting: Setting, plain: Setting) -> None:
    curve = np.array([point(deadline(opt), setting) for opt in OPTS])
    name = "Deadline, Opt fixed"
    ax.plot(*curve.T, "o-", color=INK["blue"], ms=4.5, lw=1.4, label=name, zorder=2)
    for opt, (x, y) in zip(OPTS, curve, strict=True):
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 10}
        ax.annotate(f"{opt:g}", (x, y), (4, 5), in_layout=False, **look)
    greedy = style_of("Greedy")
    ax.plot(*point("Greedy", setting), greedy.marker, color=greedy.color, ms=8, label="Greedy")
    here = point(policy, setting)
    before = here if setting == plain else point(policy, plain, ())  # the only one of its kind
    if before != here:
        arrow = {"arrowstyle": "->", "color": "#444444", "lw": 1.1, "shrinkA": 4, "shrinkB": 8}
        ax.annotate("", here, before, zorder=3, arrowprops=arrow)
        bare = "as chosen, but x/x"
        ax.plot(*before, "s", color="white", mec="#444444", ms=6, zorder=3, label=bare)
    ax.plot(*here, "*", color=INK["vermillion"], ms=17, mec="white", zorder=4, label="as chosen")
    ax.set(xlabel="cost, mean Mops/s of the servers used", ylabel="failure rate, %")
    ax.margins(0.12)
    ax.autoscale_view()
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -0.03 * high), high + 0.25 * (high - low))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.legend(ncols=2, loc="upper right")


def _servers(ax: Axes, o: Outcome) -> None:
    table = per_server(o)
    places, base, keys = np.arange(len(table)), np.zeros(len(table)), []
    for name, words, ink, hatch in (
        ("met", "in time", INK["sky"], ""), ("missed", "late", INK["vermillion"], "////"),
        ("refused", "refused (fell back)", "white", "...."),
    ):  # fmt: skip
        ax.bar(places, table[name], 0.72, base, color=ink, edgecolor="#333333", lw=0.6)
        sides = places - 0.36, places + 0.36, base, base + table[name]
        if hatch:
            draw_boxes(ax, *sides, [0.0] * 4, hatch=hatch, edgecolors="#333333", linewidths=0.0)
        keys.append(Patch(fc=ink, hatch=hatch, ec="#333333", lw=0.6, label=words))
        base = base + table[name].to_numpy()
    ax.set_xticks(places, [f"{speed:.0f}" for speed in table["performance"]])
    ax.set(xlabel="server, Mops/s", ylabel="requests", ylim=(0, 1.3 * max(base.max(), 1.0)))
    ax.grid(visible=False, axis="x")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.legend(handles=keys, ncols=3, loc="upper center", columnspacing=1.0, handlelength=1.4)
    title(ax, f"first of {RUNS} environments")


@panel(
    "Deadlines on the Grid: failure against cost",
    Choice("policy", ("Deadline", "Greedy"), "scheduler"),
    Slider("opt", 0.1, 1.0, 0.05, 0.7, "Opt"),
    Slider("fallbacks", 0, 5, 1, 1, "most fallbacks"),
    Choice("correction", (False, True), "Load Correction"),
    Slider("probe", 15.0, 3600.0, 0, 60.0, "probe interval, s"),
    Slider("interval", 30.0, 150.0, 5.0, 60.0, "Int, minutes"),
    Slider("seed", 0, 99, 1, 0, "seed"),
    switches=SWITCHES, explained=(Reading, Scheduler, workload.draw),
    live={
        "opt": lambda v: bool(v["policy"] == "Deadline"),
        "probe": lambda v: v["reading"].get("predictor") != "perfect",
        **dict.fromkeys(_FALLBACKS, lambda v: v["fallbacks"] > 0),
        "corrected_until": lambda v: bool(v["correction"]),
    },
)  # fmt: skip
def grid(
    policy: str, opt: float, fallbacks: int, correction: bool, probe: float, interval: float,
    seed: int, reading: Mapping[str, Any],
) -> Figure:  # fmt: skip
    """Draw failure rate against cost, and what happened at every server."""
    name = "Greedy" if policy == "Greedy" else deadline(opt)
    switches = tuple(sorted(reading.items()))
    setting = Setting(interval, seed, fallbacks, int(correction), probe, switches)
    plain = setting._replace(fallbacks=0, corrected=0)
    figure = new_figure(9.4, 4.8, (0.65, 0.62, 0.1, 0.32), wspace=0.19)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _curve(left, name, setting, plain)
    _servers(right, outcomes(name, setting)[0])
    count = sum(len(o.requests) for o in outcomes(name, setting))
    (cost, failure), other = point(name, setting), "D-0.7" if name == "Greedy" else "Greedy"
    words = (
        f"{name} with {fallbacks or 'no'} fallback{'s' * (fallbacks != 1)}"
        f"{' and Load Correction' * correction}, probes every {probe:.4g} s: "
        f"{failure:.3g} % of {count} requests late at a cost of {cost:.4g} Mops/s"
    )
    cost, failure = point(other, setting)
    say(figure, f"{words}; {other}: {failure:.3g} % at {cost:.4g}.")
    return figure

"""Failure rate against cost on the Grid, under Opt, fallbacks and probe interval.

Source: paper B (bricks), section 4. The environment is smaller and shorter than those of Table 1,
so that a picture takes a fraction of a second; every other number is the table's.
"""

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlsim.bricks import (
    INPUT_SWITCHES,
    LAWS,
    SWITCHES,
    Environment,
    GridResult,
    Policy,
    Reading,
    read_legend,
    simulate,
)
from dlsim.bricks.model import ALGORITHMS
from dlsim.errors import InputError
from dlsim.explore.controls import Menu, Slider, StopSlider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure
from dlsim.study.plots import INK, draw_boxes, style_of

#: The environment: hours, domains, and the nodes of each, half of them servers.
HOURS, DOMAINS, NODES_PER_DOMAIN = 24.0, 2, (8, 8)
#: Values of Opt along the curve.
OPTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Switches that would take longer than a picture may; the probe interval has a slider.
_SLOW_SWITCHES = ("network", "trace_step", "link_background", "probe")
_SWITCHES_SHOWN: dict[str, tuple[Any, ...]] = {
    name: options
    for name, options in {**SWITCHES, **INPUT_SWITCHES}.items()
    if name not in _SLOW_SWITCHES
}

_DEFINITIONS = {
    **{
        name.capitalize(): f"takes {one.text.format(opt='Opt')}" for name, one in ALGORITHMS.items()
    },
    "fallback": "a server that would finish too late refuses; the request is scheduled again",
    "Load Correction": "the scheduler adds the requests that it has sent itself to the measured "
    "load of a server (L in the paper)",
    "probe interval": "time between two measurements of all servers and links",
    "failure rate": "percent of the requests that end after their deadline",
    "cost": "mean speed of the servers used, in Mops/s: a fast server is dear",
    "Int": "mean time between two requests of a client",
    "without either": "the same policy without fallback and Load Correction",
}


class GridSetting(NamedTuple):
    """What all points of a picture have in common; `interval` in minutes, `probe` in seconds."""

    interval: float
    seed: int
    fallbacks: int
    correction: bool
    probe: float
    reading: tuple[tuple[str, Any], ...] = ()


@panel(
    "Deadlines on the Grid: failure rate against cost",
    Menu("policy", "policy", [name.capitalize() for name in ALGORITHMS], "Deadline"),
    Slider("opt", "Opt (of Deadline)", 0.1, 1.0, 0.05, 0.7),
    Slider("fallbacks", "most fallbacks per request", 0, 5, 1, 1),
    Menu("correction", "Load Correction", (False, True)),
    StopSlider(
        "probe", "probe interval, seconds", (15, 30, 60, 120, 300, 600, 1200, 1800, 3600), 60.0
    ),
    Slider("interval", "Int, minutes", 30.0, 150.0, 5.0, 60.0),
    settings=(Slider("seed", "seed of the environment", 0, 99, 1, 0),),
    switches=_SWITCHES_SHOWN,
    labels={name: label for one in (Reading, *LAWS) for name, label in one.labels().items()},
    words=_DEFINITIONS,
)
def grid(
    policy: str,
    opt: float,
    fallbacks: int,
    correction: bool,
    probe: float,
    interval: float,
    seed: int,
    reading: dict[str, Any],
) -> tuple[Figure, str]:
    """Draw failure rate against cost, and the outcomes of requests at every server."""
    switches = tuple(sorted(reading.items()))
    setting = GridSetting(interval, seed, fallbacks, correction, probe, switches)
    name = ALGORITHMS[policy.lower()].legend.format(opt=f"{opt:g}")
    figure = new_figure(0.55, 0.48, 0.1, 0.1, wspace=0.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _draw_curve(left, name, setting)
    _draw_servers(right, count_by_server(run_on_grid(name, setting)))
    return figure, _sentence(name, setting)


@functools.lru_cache(maxsize=24)
def draw_environment(
    interval: float, seed: int, drawn: tuple[tuple[str, Any], ...] = ()
) -> Environment:
    """Draw the environment that all policies share."""
    size = {"horizon": HOURS * 3600, "domains": DOMAINS, "nodes": NODES_PER_DOMAIN}
    environment = Environment.random(seed, interval, **size, **dict(drawn))
    if environment.requests.empty:
        rule = "interval must be shorter, or interval_scope 'client'"
        found = f"in {HOURS:g} hours with one request in {interval:g} minutes none came"
        raise InputError(f"{rule}: {found}; take another seed")
    return environment


def make_policy(name: str, setting: GridSetting) -> Policy:
    """Return the policy of a legend such as ``"D-0.7"`` with the mechanisms of a setting."""
    policy = read_legend(name)
    return replace(policy, load_correction=setting.correction, max_fallbacks=setting.fallbacks)


@functools.lru_cache(maxsize=256)
def run_on_grid(name: str, setting: GridSetting) -> GridResult:
    """Return the result of a policy in the environment of a setting."""
    drawn = tuple((k, v) for k, v in setting.reading if k in INPUT_SWITCHES)
    rules = {k: v for k, v in setting.reading if k not in INPUT_SWITCHES}
    environment = draw_environment(setting.interval, setting.seed, drawn)
    reading = Reading.from_switches({**rules, "probe": setting.probe})
    # compiled, since a picture takes nine runs
    return simulate(environment, make_policy(name, setting), reading, engine="compiled")


@functools.lru_cache(maxsize=256)
def cost_and_failure(name: str, setting: GridSetting) -> tuple[float, float]:
    """Return the cost in Mops/s, and the percent of all requests that failed."""
    result = run_on_grid(name, setting)
    return result.cost, 100 * result.failure_rate


def count_by_server(result: GridResult) -> pd.DataFrame:
    """Count the outcomes of the requests on every server, the slowest server first."""
    servers, missed = result.environment.servers, result.requests["missed"].astype(bool)
    refused = result.attempts["server"][~result.attempts["accepted"]]
    parts = {
        "in time": result.requests["server"][~missed],
        "late": result.requests["server"][missed],
        "refused": refused,
    }
    counts = pd.DataFrame({name: part.value_counts() for name, part in parts.items()})
    counts = counts.reindex(servers.index).fillna(0).astype(int)
    table = servers[["performance"]].join(counts)
    return table.sort_values("performance", kind="stable")


def _draw_curve(ax: Axes, name: str, setting: GridSetting) -> None:
    """Draw failure against cost for all values of Opt, Greedy, and the chosen policy."""
    curve = [cost_and_failure(f"D-{opt:g}", setting) for opt in OPTS]
    costs, failures = np.transpose(curve)
    ax.plot(costs, failures, "o-", color=INK["blue"], ms=4.5, lw=1.4, label="Deadline", zorder=2)
    for opt, point in zip(OPTS, curve, strict=True):
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}
        ax.annotate(f"{opt:g}", point, (4, 4), **look)
    greedy = style_of("Greedy")
    x, y = cost_and_failure("Greedy", setting)
    ax.plot(x, y, greedy.marker, color=greedy.color, ms=7, label="Greedy")
    _draw_chosen(ax, name, setting)
    ax.set(xlabel="cost: mean Mops/s of the servers used", ylabel="failure rate, %")
    ax.margins(0.12)
    ax.autoscale_view()
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -0.03 * high), high + 0.3 * (high - low))  # room for the legend
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.legend(ncols=2, loc="upper right")


def _draw_chosen(ax: Axes, name: str, setting: GridSetting) -> None:
    """Draw the chosen policy, with an arrow from the same one without its two mechanisms."""
    here = cost_and_failure(name, setting)
    plain = setting._replace(fallbacks=0, correction=False)
    before = cost_and_failure(name, plain)
    if before != here:
        arrow = {"arrowstyle": "->", "color": "#444444", "lw": 1.1, "shrinkA": 4, "shrinkB": 8}
        ax.annotate("", here, before, zorder=3, arrowprops=arrow)
        ax.plot(*before, "s", color="white", mec="#444444", ms=6, zorder=3, label="without either")
    ax.plot(*here, "*", color=INK["vermillion"], ms=15, mec="white", zorder=4, label="as chosen")


def _draw_servers(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the counts of `count_by_server` as stacked bars."""
    places, base, entries = np.arange(len(table)), np.zeros(len(table)), []
    for name, ink, hatch in (
        ("in time", INK["sky"], None),
        ("late", INK["vermillion"], "////"),
        ("refused", "white", "...."),
    ):
        top = base + table[name].to_numpy()
        look: dict[str, Any] = {"hatch": hatch, "edgecolors": "#333333", "linewidths": 0.6}
        draw_boxes(ax, places - 0.36, places + 0.36, base, top, ink, **look)
        entries.append(Patch(fc=ink, hatch=hatch, ec="#333333", lw=0.6, label=name))
        base = top
    ax.set_xticks(places, [f"{speed:.0f}" for speed in table["performance"]])
    ax.set(xlim=(-0.7, len(table) - 0.3), ylim=(0, 1.3 * max(base.max(), 1.0)))
    ax.set(xlabel="server, Mops/s", ylabel="requests")
    ax.grid(visible=False, axis="x")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.legend(handles=entries, ncols=3, loc="upper center", columnspacing=1.0, handlelength=1.4)


def _sentence(name: str, setting: GridSetting) -> str:
    """Say how often the chosen policy and another one are late, and at which cost."""
    fallbacks = "1 fallback" if setting.fallbacks == 1 else f"{setting.fallbacks or 'no'} fallbacks"
    correction = " and Load Correction" if setting.correction else ""
    count = len(run_on_grid(name, setting).requests)
    cost, failure = cost_and_failure(name, setting)
    other = "D-0.7" if name == "Greedy" else "Greedy"
    other_cost, other_failure = cost_and_failure(other, setting)
    return (
        f"{name} with {fallbacks}{correction}, probes every {setting.probe:.4g} s: "
        f"{failure:.3g} % of {count} requests late at a cost of {cost:.4g} Mops/s; "
        f"{other}: {other_failure:.3g} % at {other_cost:.4g}."
    )

"""`explore.herding`: whom one stale load table sends where, and what that costs.

Source: paper B (bricks), sections 3.2 and 4.2, and `dlsim.bricks.herding`: between two probes
everybody sees the same loads, so that all who would choose alike follow the first.
"""

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dlsim.bricks import Outcome, Reading, Scheduler, run_many, workload
from dlsim.bricks.herding import expected_failure
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Slider, new_figure, panel, say, title
from dlsim.given import Floats, child
from dlsim.papers.bricks.cells import SWITCHES as OF_PAPER
from dlsim.papers.bricks.cells import Kind, deadline, drawn, queues, scheduler_of, split_switches
from dlsim.study.gantt import mark
from dlsim.study.plot import PERCENT, log_ticks
from dlsim.study.style import INK

#: Hours of a run, domains of the Grid, and probe intervals of the curve, seconds.
HOURS, DOMAINS, PROBES = 10.0, 4, (15.0, 60.0, 200.0, 800.0, 3600.0)
#: The probe interval of the run that says which queues a probe finds.
USUAL = 60.0
#: What is seen of a run: from about here on, so many probe intervals, within these hours.
SINCE, SPAN, SPANS = 3 * 3600.0, 8, (1.0, 8.0)
#: Most probes that are drawn as lines, and instants at which queues are counted.
MOST_LINES, INSTANTS = 40, 160
SWITCHES = {
    name: OF_PAPER[name] for name in ("load", "predictor", "corrected_until", "server_load")
}


class Grid(NamedTuple):
    """Who comes where, and how servers are chosen."""

    policy: str
    interval: float
    servers: int
    seed: int
    reading: tuple[tuple[str, Any], ...] = ()

    @property
    def given(self) -> dict[str, Any]:
        """The keywords of `dlsim.papers.bricks.cells` for it."""
        size = (self.servers // (DOMAINS // 2),) * 2  # every other node is a client
        options = {"horizon": HOURS * 3600, "domains": DOMAINS, "nodes": size}
        return {"interval": self.interval, "options": options, "seed": child(self.seed, 0)}


def outcomes(grid: Grid, probe: float) -> list[Outcome]:
    """Run the scheduler without and with Load Correction."""
    s, how = split_switches(dict(grid.reading)), grid.given
    place = drawn(how["seed"], how["interval"], {**how["options"], **s.drawn})
    if place.env.requests.empty:
        raise InputError(f"no request came with seed={grid.seed}: take another seed")
    kinds = [scheduler_of(Kind(grid.policy, corrected)) for corrected in (0, 1)]
    return run_many(place.env, kinds, replace(s.reading, probe=probe), place.known)


@functools.lru_cache(maxsize=128)
def failures(grid: Grid, probes: tuple[float, ...]) -> dict[float, Floats]:
    """Return the percent of requests late: without and with Load Correction, and by the formula.

    The latter is without it, and of the default reading of Load; NaN for others.
    """
    pairs, table = [outcomes(grid, probe) for probe in probes], np.full((len(probes), 3), np.nan)
    table[:, :2] = [[o.failure_rate for o in pair] for pair in pairs]
    if not {"load", "predictor"} & set(dict(grid.reading)):
        opt = float(grid.policy.removeprefix("D-").replace("Greedy", "0"))
        fresh = outcomes(grid, USUAL)[1]
        table[:, 2] = expected_failure(fresh, probes, opt, grid.seed)["expected"]
    return dict(zip(probes, PERCENT * table, strict=True))


def _servers(ax: Axes, o: Outcome) -> None:
    """Draw who chose which server when, over the queues, with the probes as lines."""
    probe, speeds = o.reading.probe, o.environment.servers["performance"].to_numpy()
    since = probe * np.ceil(SINCE / probe)
    until = since + min(max(SPAN * probe, 3600 * SPANS[0]), 3600 * SPANS[1])
    order = np.argsort(-speeds, kind="stable")
    edges = np.linspace(since, until, INSTANTS + 1)
    waiting = queues(o, (edges[1:] + edges[:-1]) / 2)[order]
    ax.pcolormesh(
        edges / 60, np.arange(len(order) + 1) - 0.5, waiting, cmap="Greys", vmin=0,
        vmax=max(1.6 * waiting.max(), 4.0), zorder=0.5,
    )  # fmt: skip
    lines = np.arange(since, until + probe / 2, probe)
    if len(lines) <= MOST_LINES:
        ax.vlines(lines / 60, -0.6, len(order) - 0.4, colors="#444444", lw=0.9, ls=":", zorder=1)
    at, row = o.column("submitted"), np.argsort(order)[o.column("server")]
    seen, late = (at >= SINCE) & (at < until), o.column("missed").astype(bool)
    for part, look in ((seen & ~late, _IN_TIME), (seen & late, _LATE)):
        ax.plot(at[part] / 60, row[part], ls="none", zorder=3, **look)
    step = -(-len(order) // 10)
    ax.set_yticks(range(0, len(order), step), [f"{speed:.0f}" for speed in speeds[order][::step]])
    ax.set(xlabel="minute", ylabel="server, Mops/s", xlim=(since / 60, until / 60))
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.grid(visible=False)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    title(ax, f"who chose which server when; grey: its queue, {waiting.max():.0f} at most")


_IN_TIME: dict[str, Any] = {"marker": "o", "ms": 5, "color": INK["blue"], "mec": "white"}
_LATE: dict[str, Any] = {"marker": "X", "ms": 7, "color": INK["vermillion"], "mec": "white"}


def _curve(ax: Axes, found: Mapping[float, Floats], probe: float, corrected: bool) -> None:
    """Draw failure over the probe interval, measured and computed."""
    at = sorted(found)
    bare, with_it, told = np.transpose([found[one] for one in at])
    if np.isfinite(told).all():
        ax.plot(at, told, "-", color=INK["sky"], lw=2.5, label="formula, nothing fitted", zorder=2)
    ax.plot(at, bare, "o", color=INK["black"], ms=6, label="measured", zorder=3)
    ax.plot(at, with_it, "o--", color=INK["green"], mfc="white", ms=6, mew=1.5, lw=1,
            label="with Load Correction", zorder=3)  # fmt: skip
    ax.plot(probe, found[probe][int(corrected)], "*", color=INK["vermillion"], ms=17, mec="white",
            label="as chosen", zorder=4)  # fmt: skip
    high = max(np.nanmax([bare, with_it, told]), 5.0)
    log_ticks(ax, PROBES).set(xlabel="probe interval, s", ylabel="late, %", xlim=(12, 4500))
    ticks = MaxNLocator(4).tick_values(0, high)
    ax.set_yticks(ticks[ticks <= min(1.1 * high, 100)])  # none beside the legend
    ax.set_ylim(-0.04 * high, 1.5 * high)
    ax.legend(loc="upper left")


@panel(
    "Herding: everybody follows the same old news",
    Choice("policy", ("Greedy", "Deadline"), "scheduler"),
    Choice("correction", (False, True), "Load Correction"),
    Slider("servers", 4, 40, 4, 20, "servers, and as many clients"),
    Slider("probe", 15.0, 3600.0, 0, 800.0, "probe interval, s"),
    Slider("interval", 30.0, 150.0, 5.0, 60.0, "Int, minutes between a client's requests"),
    Slider("opt", 0.1, 1.0, 0.05, 0.7, "Opt"),
    Slider("seed", 0, 99, 1, 0, "seed"),
    switches=SWITCHES, explained=(Reading, Scheduler, workload.draw),
    live={"opt": lambda v: bool(v["policy"] == "Deadline")},
)  # fmt: skip
def herding(
    policy: str, correction: bool, servers: int, probe: float, interval: float, opt: float,
    seed: int, reading: Mapping[str, Any],
) -> Figure:  # fmt: skip
    """Draw who chose which server between two probes, and failure over the probe interval."""
    name = "Greedy" if policy == "Greedy" else deadline(opt)
    grid = Grid(name, interval, servers, seed, tuple(sorted(reading.items())))
    o, found = outcomes(grid, probe)[correction], failures(grid, PROBES)
    if probe not in found:
        found = found | failures(grid, (probe,))
    figure = new_figure(9.6, 5.0, (0.7, 1.0, 0.1, 0.3), wspace=0.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.45, 1])
    _servers(left, o)
    _curve(right, found, probe, correction)
    keys = [mark("chosen, in time", ls="none", **_IN_TIME), mark("late", ls="none", **_LATE),
            mark("probe", color="#444444", lw=0.9, ls=":")]  # fmt: skip
    figure.legend(handles=keys, loc="lower left", ncols=3, fontsize=10)
    *measured, told = found[probe]
    formula = [f" (formula: {told:.3g} %)" * bool(np.isfinite(told)), ""]
    said = [f"{late:.3g} %{text}" for late, text in zip(measured, formula, strict=True)]
    words = ("without", "with")
    between = o.column("submitted") // probe
    herd = int(np.unique([between, o.column("server")], axis=1, return_counts=True)[1].max())
    say(figure, (
        f"{name} {words[correction]} Load Correction, probes every {probe:.4g} s: between two of "
        f"them up to {herd} request{'s go' if herd > 1 else ' goes'} to one server; late of "
        f"{len(o.environment.requests)}: {said[correction]}, "
        f"{words[not correction]} it {said[not correction]}."
    ))  # fmt: skip
    return figure

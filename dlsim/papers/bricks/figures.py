"""Figures 3 to 6 of paper B and what the claims rest on: a study in, Axes out.

Every ``fig...`` function takes the `Study`, which runs what has not been run, and optionally
the Axes to draw on (``axes`` where there are several panels), and returns the (first) Axes.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.bricks import claims, runs
from dlsim.papers.bricks.study import DEEP, KEY, Study, name_of
from dlsim.study.claims import SYMBOLS
from dlsim.study.experiment import keep
from dlsim.study.experiment import verdicts as verdicts
from dlsim.study.stats import relative_reduction, summary
from dlsim.study.style import INK, axes_of, policy_lines, style_of, verdict_heat

#: Shares are fractions; pictures show percent.
PERCENT = 100.0
#: Colour and marker of the four versions.
LOOKS = {
    "x/x": ("black", "o"), "L/x": ("orange", "s"), "x/F": ("blue", "v"), "L/F": ("green", "D"),
}  # fmt: skip
WORDS = {"failure": "failure rate, %", "cost": "average cost, Mops/s"}
_NAMES = {
    "probe": "probe interval, s",
    "trace_std": "noise on links, std / mean",
    "server_load": "load of servers by others",
    "H": "Hurst parameter of links",
    "nodes": "nodes",
}


def panels_of(
    axes: Sequence[Axes] | None, count: int, size: tuple[float, float], sharey: bool = True
) -> list[Axes]:
    """Return the axes given, or as many new ones in a row."""
    if axes is None:
        axes = plt.subplots(1, count, figsize=size, sharey=sharey, layout="constrained")[1]
    return list(np.atleast_1d(np.asarray(axes, dtype=object)))


def with_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the column version, such as ``"L/x"``."""
    pairs = zip(frame["corrected"], frame["fallbacks"], strict=True)
    return frame.assign(version=[runs.version(c, n) for c, n in pairs])


def in_percent(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Scale estimates of shares to percent; leave costs as they are."""
    if column != "failure":
        return table
    return table.assign(**{name: PERCENT * table[name] for name in ("estimate", "low", "high")})


def both_costs(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Estimate a column; of the cost also with requests weighted by their work."""
    table = summary(rows, keys, column)
    if column != "cost":
        return table
    weighted = summary(rows, keys, "work_cost").set_index(keys)[["estimate", "low", "high"]]
    return table.join(weighted.add_prefix("weighted_"), on=keys)


def draw_versions(ax: Axes, table: pd.DataFrame, places: Sequence[Any], x: str) -> None:
    """Draw one line per version with its intervals, side by side."""
    for k, (sign, (ink, marker)) in enumerate(LOOKS.items()):
        line = table[table["version"] == sign].set_index(x).reindex(list(places))
        spread = np.abs([line["estimate"] - line["low"], line["high"] - line["estimate"]])
        ax.errorbar(
            np.arange(len(places)) + 0.08 * (k - 1.5), line["estimate"], yerr=spread,
            color=INK[ink], marker=marker, lw=1, ls=":", capsize=2, label=sign,
        )  # fmt: skip
    ax.set_xticks(range(len(places)), [f"{p:g}" if x != "policy" else str(p) for p in places])


def _by_version(study: Study, name: str, column: str, axes: Sequence[Axes] | None) -> Axes:
    panels = panels_of(axes, len(study.intervals), (12, 3.8))
    rows = with_version(study.main[study.main["fallbacks"] <= 1])
    table = both_costs(rows, ["interval", "policy", "version"], column)
    shown = in_percent(table, column)
    for ax, interval in zip(panels, study.intervals, strict=True):
        draw_versions(ax, shown[shown["interval"] == interval], study.policies, "policy")
        ax.set_title(f"Int = {interval:g} min")
        ax.tick_params(axis="x", labelsize=8)
        if column == "failure":
            ax.set_ylim(0, None)
    panels[0].set_ylabel(WORDS[column])
    panels[-1].legend(title="correction/fallback", fontsize=8, title_fontsize=8)
    return keep(study, name, panels[0], table)


def fig3(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 3: failure rate of all schedulers in four versions, one panel per Int."""
    return _by_version(study, "fig3", "failure", axes)


def fig4(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 4: average cost of the same runs."""
    return _by_version(study, "fig4", "cost", axes)


def _by_fallbacks(study: Study, name: str, column: str, axes: Sequence[Axes] | None) -> Axes:
    panels = panels_of(axes, len(study.intervals), (12, 3.8))
    rows = study.main[study.main["corrected"] == 0]
    table = both_costs(rows, ["interval", "policy", "fallbacks"], column)
    shown = in_percent(table, column)
    for k, (ax, interval) in enumerate(zip(panels, study.intervals, strict=True)):
        here = shown[shown["interval"] == interval]
        policy_lines(here, "fallbacks", legend=k == len(panels) - 1, ax=ax)
        ax.set(xlabel="most fallbacks", ylabel="", title=f"Int = {interval:g} min")
        if column == "failure":
            ax.set_ylim(0, None)
    panels[0].set_ylabel(WORDS[column])
    return keep(study, name, panels[0], table)


def fig5(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 5: failure rate against the most fallbacks, without Load Correction."""
    return _by_fallbacks(study, "fig5", "failure", axes)


def fig6(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 6: average cost of the same runs."""
    return _by_fallbacks(study, "fig6", "cost", axes)


def fig_paired(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """What Load Correction and Fallback take from the failure rate, environment by environment."""
    panels, parts = panels_of(axes, len(study.intervals), (12, 3.6)), []
    table = claims.wide(study.main, "failure")
    changes = {"L/x": (1, 0), "x/F": (0, 1), "L/F": (1, 1)}
    for sign, (corrected, fallbacks) in changes.items():
        less = pd.DataFrame(
            {p: table[(p, 0, 0)] - table[(p, corrected, fallbacks)] for p in study.policies}
        )
        tidy = less.rename_axis(columns="policy").reset_index()
        tidy = tidy.melt(["interval", "replicate"], var_name="policy", value_name="less")
        parts.append(summary(tidy, ["interval", "policy"], "less").assign(version=sign))
    whole = pd.concat(parts, ignore_index=True)
    shown = in_percent(whole, "failure")
    for ax, interval in zip(panels, study.intervals, strict=True):
        draw_versions(ax, shown[shown["interval"] == interval], study.policies, "policy")
        ax.axhline(0, color="#333333", lw=0.8)
        ax.tick_params(axis="x", labelsize=8)
        ax.set_title(f"Int = {interval:g} min")
    handles, labels = panels[0].get_legend_handles_labels()
    kept = [(h, t) for h, t in zip(handles, labels, strict=True) if t in changes]
    panels[-1].legend(*zip(*kept, strict=True), fontsize=8)
    panels[0].set_ylabel("fewer failures than x/x, points")
    return keep(study, "paired", panels[0], whole)


def magnitude(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Estimate how late those are that are late: mean tardiness over mean failure rate."""
    tidy = frame.melt([*by, "replicate"], ["tardiness", "failure"], "what", "value")
    table = relative_reduction(tidy, "value", "what", "tardiness", "failure", at=list(by))
    ends = {"estimate": 1 - table["estimate"], "low": 1 - table["high"], "high": 1 - table["low"]}
    return table.assign(**ends)


def fig_magnitude(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Failure rate, lateness of the late and drain time under every reading of Load."""
    panels, parts = panels_of(axes, 3, (12, 3.8), sharey=False), []
    loads = runs.split_switches({}).reading.load, "util", "queue", "ext"
    for load in loads:
        own = {k: v for k, v in study.switches.items() if k != "load"}
        rows = study.at_reading({**own, **({"load": load} if load != loads[0] else {})})
        first = rows[rows["interval"] == rows["interval"].min()]
        plain = first[(first["corrected"] == 0) & (first["fallbacks"] == 0)]
        keys = ["policy"]
        each = {
            "failure rate, %": in_percent(summary(plain, keys, "failure"), "failure"),
            "lateness of the late, min": magnitude(plain, keys),
            "hours until drained": summary(plain, keys, "drain"),
        }
        parts += [t.assign(what=what, load=load) for what, t in each.items()]
    table = pd.concat(parts, ignore_index=True)
    for ax, (what, rows) in zip(panels, table.groupby("what", sort=False), strict=True):
        for k, (policy, line) in enumerate(rows.groupby("policy", sort=False)):
            color, marker, _ = style_of(str(policy))
            spread = np.abs([line["estimate"] - line["low"], line["high"] - line["estimate"]])
            place = np.arange(len(loads)) + 0.1 * (k - 1.5)
            ax.errorbar(place, line["estimate"], yerr=spread, fmt=marker, color=color, capsize=2,
                        label=str(policy))  # fmt: skip
        ax.set_xticks(range(len(loads)), loads)
        ax.set(title=str(what), xlabel="Load is read as")
        if what == "failure rate, %":
            ax.set_ylim(0, None)
        else:
            ax.set_yscale("log")
    panels[0].legend(fontsize=8)
    return keep(study, "magnitude", panels[0], table)


def fig_drivers(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """What drives failure: one parameter at a time, four versions of one Deadline and Greedy."""
    names = list(_NAMES)
    if axes is None:
        axes = plt.subplots(
            2, len(names), figsize=(14, 6), sharey=True, layout="constrained"
        )[1].ravel()  # fmt: skip
    rows = with_version(study.drivers)
    table = summary(rows, ["parameter", "value", "policy", "version"], "failure")
    shown, panels = in_percent(table, "failure"), list(axes)
    policies = list(dict.fromkeys(rows["policy"]))
    for k, ax in enumerate(panels):
        policy, name = policies[k // len(names)], names[k % len(names)]
        here = shown[(shown["policy"] == policy) & (shown["parameter"] == name)]
        draw_versions(ax, here, sorted(here["value"].unique()), "value")
        ax.set_title(policy, fontsize=10)
        ax.set_xlabel(_NAMES[name] if k >= len(names) else "")
        ax.set_ylim(0, None)
        if k % len(names) == 0:
            ax.set_ylabel("failure rate, %")
    panels[0].legend(fontsize=8, ncols=2)
    return keep(study, "drivers", panels[0], table)


def fig_correction(study: Study, ax: Axes | None = None) -> Axes:
    """What Load Correction gains with each blamed cause taken away (claim 10)."""
    ax = axes_of(ax, (9, 4))
    less = claims.gains(study.causes, "condition")
    tidy = less.rename_axis(columns="what").reset_index()
    tidy = tidy.melt(["condition", "replicate"], var_name="what", value_name="gain")
    table = summary(tidy, ["what", "condition"], "gain")
    shown, conditions = in_percent(table, "failure"), list(runs.CONDITIONS)
    for k, (what, line) in enumerate(shown.groupby("what", sort=False)):
        policy, plain = str(what).split()[0], "L/x" in str(what)
        line = line.set_index("condition").loc[conditions]
        spread = np.abs([line["estimate"] - line["low"], line["high"] - line["estimate"]])
        color, marker, _ = style_of(policy)
        place = np.arange(len(conditions)) + 0.09 * (k - 3.5)
        ax.errorbar(place, line["estimate"], yerr=spread, fmt=marker, color=color, capsize=2,
                    mfc=color if plain else "white", label=str(what))  # fmt: skip
    ax.axhline(0, color="#333333", lw=0.8)
    ax.set_xticks(range(len(conditions)), conditions)
    ax.set(ylabel="gain of Load Correction, points")
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return keep(study, "correction", ax, table)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the verdict of every claim under every reading."""
    table = study.by_reading
    shown = table.rename(index=lambda name: str(name).removeprefix(f"{KEY}-"))
    ax = verdict_heat(shown, ax)
    size = study.size
    lighter = ", ".join(f"{interval:g}" for interval in size.reading_intervals)
    ax.set_title(
        f"claims of paper B; first column: all Int, {size.runs} environments; others: Int "
        f"{lighter}, {size.other_runs} of {size.other_hours:g} h (packets: "
        f"{size.packet_hours:g} h)"
    )
    study.results.table(f"{KEY}-readings-intervals", study.judged_readings)
    return keep(study, "readings", ax, table.reset_index())


def table_readings(study: Study) -> pd.DataFrame:
    """Tabulate every claim's numbers under the readings of Load and in the packet network."""
    table = study.judged_readings
    deep = [name_of(switches) or "default" for switches in DEEP]
    kept = list(dict.fromkeys([table["reading"].iloc[0], *deep]))
    table = table[table["reading"].isin(kept)]
    share = np.where(table["unit"].isin(["points", "%"]), PERCENT, 1.0)
    ends = [(table[name] * share).map("{:.3g}".format) for name in ("mean", "low", "high")]
    cells = [
        f"{SYMBOLS[word]} {e} [{a}, {b}] {unit}" if point else SYMBOLS[word]
        for word, point, unit, e, a, b in zip(
            table["verdict"], table["point"], table["unit"], *ends, strict=True
        )
    ]
    wide = table.assign(cell=cells).pivot(index="claim", columns="reading", values="cell")
    order = list(dict.fromkeys(table["claim"]))
    found = wide.reindex(index=order, columns=[k for k in kept if k in wide.columns])
    return found.rename_axis(columns=None).reset_index()

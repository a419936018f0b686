"""What paper B's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.bricks.cells import TUNERS, VERSIONS, deadline, version
from dlsim.study.measure import counted, differences, named, points, tie, trend, wide
from dlsim.study.stats import ENDS, mean_interval, relative_reduction, summary

#: Nodes from which on a system counts as large (claim 11): the paper's own.
LARGE = 75
#: A dramatic reduction in points takes more failures than this, so that it needs as many.
DRAMATIC = 0.10
#: Opt of the fixed-Opt front.
FRONT = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: How far the picture of what is out of reach goes to the left, Mops/s.
LEFT_OF_IT = 60.0
#: Pairs of versions that differ in Fallback, and in Load Correction.
FALLBACK = (("x/x", "x/F"), ("L/x", "L/F"))
CORRECTION = (("x/x", "L/x"), ("x/F", "L/F"))
#: The sweeps that claims are measured on; None where one was not run.
Evidence = namedtuple(
    "Evidence", "main causes sizes background seconds", defaults=[None, None, None, None]
)


def by_scheduler(frame: pd.DataFrame, column: str, by: str = "interval") -> pd.DataFrame:
    """One column per policy, correction and fallbacks, one row per point and environment."""
    return wide(frame, [by], column, ["policy", "corrected", "fallbacks"])


def _over_opt(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Estimate the trend of Deadline over Opt in every version: failures, or what it saves."""
    rows = with_version(frame[(frame["fallbacks"] <= 1) & frame["policy"].str.startswith("D-")])
    rows["opt"] = rows["policy"].str.removeprefix("D-").astype(float)
    table = wide(rows, ["interval", "opt"], column, "version")
    if column == "cost":
        table = 1 - table / table.groupby(level=["interval", "replicate"]).transform("first")
    return trend(table, "opt")


def _at(changes: Any, by: str = "interval") -> pd.DataFrame:
    """Estimate changes at every point of an axis, point by point."""
    return points(pd.DataFrame(changes), [by]).sort_values(by, kind="stable", ignore_index=True)


def opts(table: pd.DataFrame) -> list[str]:
    """Return Deadline with every Opt among the columns of a table, the smallest first."""
    names = {name for name in table.columns.unique("policy") if name.startswith("D-")}
    return sorted(names, key=lambda name: float(name[2:]))


def _less(table: pd.DataFrame, a: Any, b: Any, column: str) -> "pd.Series[float]":
    """By how much b fails less than a, in points; by which fraction it costs less."""
    return table[a] - table[b] if column == "failure" else 1 - table[b] / table[a]


def _pairs(table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Name the columns of every policy in two versions."""
    return {
        f"{name} {a} - {b}": ((name, *VERSIONS[a]), (name, *VERSIONS[b]))
        for a, b in pairs for name in ("Greedy", *opts(table))
    }  # fmt: skip


def gains(frame: pd.DataFrame, by: str = "interval") -> pd.DataFrame:
    """Subtract, policy by policy, the failure rate with Load Correction from that without."""
    table = by_scheduler(frame, "failure", by)
    return differences(table, _pairs(table, CORRECTION))


def _gained(frame: pd.DataFrame, by: str = "interval") -> pd.DataFrame:
    """Estimate these gains; where no run has any, by the number of requests in which none was."""
    table = _at(gains(frame, by), by)
    requests = frame.groupby([by, "replicate"])["requests"].first().groupby(by).sum()
    return counted(table, table[by].map(requests))


def _removed(e: Evidence, most: int, fewest: int, corrected: Sequence[int] = (0,)) -> pd.DataFrame:
    """Estimate the share of failures that more fallbacks remove, by policy and Int."""
    rows = e.main[e.main["corrected"].isin(corrected)]
    rows = rows.assign(what=rows["policy"] + rows["corrected"].map({0: "", 1: ", corrected"}))
    at = ["what", "interval"]
    table = relative_reduction(rows, "failure", "fallbacks", most, fewest, at=at)
    return named(table, at)


def _than_greedy(e: Evidence, column: str, names: slice, same: bool = False) -> pd.DataFrame:
    """Compare Deadline in every version with Greedy as it is in use, or in the same version."""
    table = by_scheduler(e.main, column)
    return _at({
        f"{n} {sign}": _less(table, ("Greedy", *(pair if same else (0, 0))), (n, *pair), column)
        for sign, pair in VERSIONS.items() for n in opts(table)[names]
    })  # fmt: skip


def _dearer(e: Evidence) -> pd.DataFrame:
    """Estimate the cost with the most fallbacks over that with none, minus one."""
    table, most = by_scheduler(e.main, "cost"), e.main["fallbacks"].max()
    names = ("Greedy", *opts(table))
    return _at({name: table[(name, 0, most)] / table[(name, 0, 0)] - 1 for name in names})


def _fallback_in_points(e: Evidence) -> pd.DataFrame | None:
    """What one fallback takes, where more fail without it than it would have to take."""
    table = by_scheduler(e.main, "failure")
    pairs = _pairs(table, FALLBACK)
    without = _at({name: table[a] for name, (a, _) in pairs.items()})
    found = _at(differences(table, pairs))[without["estimate"] > DRAMATIC]
    return None if found.empty else found


def _trade_off(e: Evidence) -> pd.DataFrame:
    """From the smallest to the largest Opt failures rise and the cost falls."""
    parts = []
    for column, step in (("failure", -1), ("cost", 1)):
        table = by_scheduler(e.main, column)
        a, *_, b = opts(table)[::step]
        parts.append(_at({
            f"{column}, {n} fallbacks": _less(table, (a, 0, n), (b, 0, n), column)
            for n in (0, 1, e.main["fallbacks"].max())
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _causes_removed(e: Evidence) -> pd.DataFrame:
    """Gain of Load Correction without a blamed cause minus the gain with it."""
    table, usual = gains(e.causes, "condition"), "as it is"
    others = [name for name in table.index.unique("condition") if name != usual]
    apart = [(table.loc[name] - table.loc[usual]).add_prefix(f"{name}: ") for name in others]
    return pd.concat(map(points, apart), ignore_index=True)


def large_systems(e: Evidence) -> pd.DataFrame:
    """Gain of Load Correction in systems of 75 nodes and more."""
    return _gained(e.sizes[e.sizes["value"] >= LARGE].rename(columns={"value": "nodes"}), "nodes")


def _trace_model_is_cheaper(e: Evidence) -> pd.DataFrame:
    """Share of the environments where extraneous jobs or data take more CPU time."""
    table = wide(e.seconds, ["resource"], "seconds", "model")
    found = points((table["extraneous"] > table["trace"]).astype(float).unstack("resource"))
    return found.assign(total=found["n"], values=None)


#: What measures a claim, by the number in its id.
_MEASURES: dict[str, Callable[[Evidence], pd.DataFrame | None]] = {
    "1a": _fallback_in_points,
    "1b": lambda e: _removed(e, 1, 0, (0, 1)),
    "2a": lambda e: _gained(e.main),
    "2b": lambda e: _gained(e.main),
    "3": lambda e: _over_opt(e.main, "failure"),
    "4": lambda e: _than_greedy(e, "cost", slice(None), same=True),
    "5": lambda e: _over_opt(e.main, "cost"),
    "6a": lambda e: _than_greedy(e, "failure", slice(1)),
    "6b": lambda e: _than_greedy(e, "cost", slice(1)),
    "7a": lambda e: _removed(e, e.main["fallbacks"].max(), 0),
    "7b": lambda e: _removed(e, e.main["fallbacks"].max(), 1),
    "8a": _dearer,
    "8b": _dearer,
    "9": _trade_off,
    "10": _causes_removed,
    "11": large_systems,
    # spread of the links' coefficients of variation
    "12b": lambda e: points(
        differences(wide(e.background, [], "spread", "model"), {"links": ("extraneous", "trace")})
    ),
}
tie("bricks", _MEASURES)
tie("bricks", {"12a": _trace_model_is_cheaper}, readings=False)


def on_front(rows: pd.DataFrame, cost: float) -> tuple[float, bool]:
    """Read the failure rate of the fixed-Opt front, lotteries between two included, at a cost."""
    best = rows.groupby("cost")["failure"].min().sort_index()
    x, y = best.index.to_numpy(dtype=float), best.to_numpy(dtype=float)
    at = np.clip(cost, x[0], x[-1])
    pairs = [[i, j] for j in range(len(x)) for i in range(j + 1) if x[i] <= at <= x[j]]
    return min(float(np.interp(at, x[pair], y[pair])) for pair in pairs), bool(at == cost)


def against_fronts(frame: pd.DataFrame) -> pd.DataFrame:
    """Judge automatic Opt against the fixed-Opt fronts, environment by environment."""
    rows = []
    fixed = frame[frame["policy"].isin(list(map(deadline, FRONT)))]
    mine = frame[frame["policy"].isin(list(TUNERS))]
    groups: Any = mine.groupby(["policy", "fallbacks", "corrected"], sort=False)
    for (policy, fallbacks, corrected), line in groups:
        for front in range(corrected, 2):
            same = fixed[(fixed["fallbacks"] == fallbacks) & (fixed["corrected"] == front)]
            runs = zip(line["replicate"], line["cost"], strict=True)
            found = [on_front(same[same["replicate"] == k], cost) for k, cost in runs]
            at, inside = map(np.array, zip(*found, strict=True))
            rows.append({
                "policy": policy, "fallbacks": fallbacks, "corrected": corrected, "front": front,
                "failure": line["failure"].mean(), "cost": line["cost"].mean(),
                "target": TUNERS[policy], **mean_interval(line["failure"] - at)._asdict(),
                "outside": 1 - float(inside.mean()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def cost_and_failure(rows: pd.DataFrame) -> pd.DataFrame:
    """Estimate mean cost and failure rate, in percent, of every policy, side by side."""
    cost, failure = (
        summary(rows, ["policy"], column).set_index("policy")[[*ENDS]]
        for column in ("cost", "failure")
    )
    return cost.add_prefix("cost").join(100 * failure.add_prefix("failure"))


def with_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the column version, such as ``"L/x"``."""
    return frame.assign(version=list(map(version, frame["corrected"], frame["fallbacks"])))


def both_costs(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Estimate the cost, also with requests weighted by their work."""
    weighted = summary(rows, keys, "work_cost").set_index(keys)[[*ENDS]]
    return summary(rows, keys, "cost").join(weighted.add_prefix("weighted_"), on=keys)


def _lines(rows: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean lines below which no scheduler can lie, by their price."""
    lines = rows.filter(like="line ").mean().dropna()
    lines.index = lines.index.str.removeprefix("line ").astype(float)
    return lines


def _least_cost(lines: "pd.Series[float]", failure: float) -> float:
    """Return below which mean cost nobody fails as rarely, by the lines that fall."""
    falling = lines[lines.index > 0]
    return float(((falling - failure) / falling.index).max())


def unreachable(ax: Axes, rows: pd.DataFrame) -> Axes:
    """Shade what no scheduler can reach, failure in percent over cost; nothing without a bound."""
    lines = _lines(rows)
    if len(lines):
        zero = _least_cost(lines, lines.min())
        cost = np.linspace(zero - LEFT_OF_IT, max(zero, ax.get_xlim()[1]), 400)
        below = lines.to_numpy() - np.multiply.outer(cost, lines.index)
        least = below.max(axis=-1, initial=0.0)  # failure rate below which nobody can be
        ax.fill_between(cost, 0, 100 * least, color="0.85", zorder=0, label="out of reach")
    ax.set_ylim(0, None)
    return ax


def said_left(own: Any, seer: Any, gap: Any, rows: pd.DataFrame) -> str:
    """Say how far a scheduler is from the bound in failures and cost, and what foresight has."""
    lines = _lines(rows)
    if lines.empty:
        return "The bound speaks of mean costs in a fluid network: none under this reading."
    low, mean, high = (100 * gap[name] for name in ("low", "estimate", "high"))
    cost = _least_cost(lines, own["failureestimate"] / 100)
    return (
        f"errors fails {own['failureestimate']:.2f} % at cost {own['costestimate']:.0f}, "
        f"{mean:.2f} [{low:.2f}, {high:.2f}] points above what nobody can beat at that cost; "
        f"to fail as rarely nobody can cost less than {cost:.0f}. With perfect foresight we reach "
        f"{seer['failureestimate']:.2f} % at {seer['costestimate']:.0f}."
    )

"""The measuring functions of paper B's claims: evidence in, points of a grid out.

Each takes the `Evidence` and returns columns point, estimate, low, high (95 % interval over
paired environments), or None where its evidence is not there. data/claims.toml says which
function belongs to which claim, and `dlsim.study.claims` turns the points into a verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dlsim.papers.bricks.runs import VERSIONS, Row
from dlsim.study.claims import Claim, verdict_of
from dlsim.study.stats import relative_reduction

#: Nodes from which on a system counts as large (claim 11): the paper's own.
LARGE = 75


@dataclass(frozen=True, eq=False)
class Evidence:
    """The sweeps that claims are measured on."""

    main: pd.DataFrame
    causes: pd.DataFrame | None = None
    sizes: pd.DataFrame | None = None
    background: pd.DataFrame | None = None


def wide(frame: pd.DataFrame, column: str, by: str = "interval") -> pd.DataFrame:
    """One column per scheduler, one row per point and environment."""
    return frame.pivot(
        index=[by, "replicate"], columns=["policy", "corrected", "fallbacks"], values=column
    )


def compared(e: Evidence, column: str) -> pd.DataFrame:
    """Return the main sweep as `wide` has it, worked out once per evidence."""
    kept: dict[str, pd.DataFrame] = vars(e).setdefault("compared", {})
    if column not in kept:
        kept[column] = wide(e.main, column)
    return kept[column]


def points(values: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """Estimate every column of paired values at every point of the grid."""
    parts = [(None, values)] if not labels else list(values.groupby(level=labels[0]))
    tables = []
    for label, rows in parts:
        x, n = rows.to_numpy(dtype=float), len(rows)
        mean = x.mean(axis=0)
        half = stdtrit(n - 1.0, 0.975) * x.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.nan
        half = np.where((x == x[0]).all(axis=0) & (n > 1), 0.0, half)
        end = f", {labels[0]} {label:g}" if labels else ""
        columns = {"estimate": mean, "low": mean - half, "high": mean + half, "n": n}
        tables.append(pd.DataFrame({"point": [f"{name}{end}" for name in rows], **columns}))
    return pd.concat(tables, ignore_index=True)


def opts(table: pd.DataFrame) -> list[str]:
    """Return the smallest, the middle and the largest Opt among the columns of `wide`."""
    names = {name for name in table.columns.unique("policy") if name.startswith("D-")}
    rising = sorted(names, key=lambda name: float(name[2:]))
    return list(dict.fromkeys([rising[0], rising[len(rising) // 2], rising[-1]]))


def _policies(table: pd.DataFrame) -> list[str]:
    return ["Greedy", *opts(table)]


def _most(table: pd.DataFrame) -> int:
    return int(max(table.columns.unique("fallbacks")))


def _versions(
    table: pd.DataFrame, names: list[str], change: Callable[[pd.DataFrame, str], pd.Series]
) -> pd.DataFrame:
    """Apply a change to the four versions: one column per version and name."""
    columns: dict[str, pd.Series] = {}
    for sign, (corrected, fallbacks) in VERSIONS.items():
        pair = (corrected, fallbacks)
        part = pd.DataFrame(table.xs(pair, axis=1, level=("corrected", "fallbacks")))
        columns |= {f"{name} {sign}": change(part, name) for name in names}
    return points(pd.DataFrame(columns), ["interval"])


def _from_version(table: pd.DataFrame, a: str, b: str) -> dict[str, pd.Series]:
    """Subtract version b from version a, policy by policy."""
    return {
        f"{name} {a} - {b}": table[(name, *VERSIONS[a])] - table[(name, *VERSIONS[b])]
        for name in _policies(table)
    }


def _less(table: pd.DataFrame, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    changes = {k: v for a, b in pairs for k, v in _from_version(table, a, b).items()}
    return points(pd.DataFrame(changes), ["interval"])


_FALLBACK = [("x/x", "x/F"), ("L/x", "L/F")]
_CORRECTION = [("x/x", "L/x"), ("x/F", "L/F")]


def fallback_points(e: Evidence) -> pd.DataFrame:
    """Claim 1a: failure rate without Fallback minus with one fallback."""
    return _less(compared(e, "failure"), _FALLBACK)


def _reduction(e: Evidence, most: int, fewest: int) -> pd.DataFrame:
    """Estimate the share of failures that more fallbacks remove, by policy and Int."""
    names, frame = _policies(compared(e, "failure")), e.main
    at = ["policy", "interval"]
    rows = frame.loc[
        (frame["corrected"] == 0) & frame["policy"].isin(names),
        [*at, "replicate", "fallbacks", "failure"],
    ]
    table = relative_reduction(rows, "failure", "fallbacks", most, fewest, at=at)
    name = [f"{a}, interval {b:g}" for a, b in zip(table["policy"], table["interval"], strict=True)]
    return table.assign(point=name)


def fallback_share(e: Evidence) -> pd.DataFrame:
    """Claim 1b: share of the failures that one fallback removes."""
    return _reduction(e, 1, 0)


def correction_helps(e: Evidence) -> pd.DataFrame:
    """Claims 2a and 2b: failure rate without Load Correction minus with it."""
    return _less(compared(e, "failure"), _CORRECTION)


def small_opt_fails_less(e: Evidence) -> pd.DataFrame:
    """Claim 3: failure rate at one Opt minus that at the next smaller of three."""
    table = compared(e, "failure")
    steps = {b: a for a, b in pairwise(opts(table))}
    return _versions(table, list(steps), lambda part, name: part[name] - part[steps[name]])


def greedy_costs_more(e: Evidence) -> pd.DataFrame:
    """Claim 4: cost of Greedy minus that of Deadline, relative to Greedy's."""
    table = compared(e, "cost")
    return _versions(table, opts(table), lambda part, name: 1 - part[name] / part["Greedy"])


def cost_falls_with_opt(e: Evidence) -> pd.DataFrame:
    """Claim 5: relative fall of the cost from one Opt to the next larger of three."""
    table = compared(e, "cost")
    steps = dict(pairwise(opts(table)))
    return _versions(table, list(steps), lambda part, name: 1 - part[steps[name]] / part[name])


def conservative_fails_less(e: Evidence) -> pd.DataFrame:
    """Claim 6a: failure rate of Greedy minus that of Deadline with the smallest Opt."""
    table = compared(e, "failure")
    return _versions(table, opts(table)[:1], lambda part, name: part["Greedy"] - part[name])


def conservative_costs_less(e: Evidence) -> pd.DataFrame:
    """Claim 6b: cost of Greedy minus that of Deadline with the smallest Opt, relative."""
    table = compared(e, "cost")
    return _versions(table, opts(table)[:1], lambda part, name: 1 - part[name] / part["Greedy"])


def several_points(e: Evidence) -> pd.DataFrame:
    """Claim 7a: failure rate with one fallback minus with the most."""
    table = compared(e, "failure")
    most = _most(table)
    less = {n: table[(n, 0, 1)] - table[(n, 0, most)] for n in _policies(table)}
    return points(pd.DataFrame(less), ["interval"])


def several_share(e: Evidence) -> pd.DataFrame:
    """Claim 7b: share of the failures with one fallback that the most fallbacks remove."""
    return _reduction(e, _most(compared(e, "failure")), 1)


def several_cost(e: Evidence) -> pd.DataFrame:
    """Claim 8: cost with the most fallbacks over that with none, minus one."""
    table = compared(e, "cost")
    most = _most(table)
    more = {n: table[(n, 0, most)] / table[(n, 0, 0)] - 1 for n in _policies(table)}
    return points(pd.DataFrame(more), ["interval"])


def trade_off(e: Evidence) -> pd.DataFrame:
    """Claim 9: from the smallest to the largest Opt failures rise and the cost falls."""
    parts = []
    for column in ("failure", "cost"):
        table = compared(e, column)
        few, many = opts(table)[0], opts(table)[-1]
        changes = {}
        for fallbacks in (0, 1, _most(table)):
            a, b = table[(few, 0, fallbacks)], table[(many, 0, fallbacks)]
            name = f"{column}, {fallbacks} fallbacks"
            changes[name] = b - a if column == "failure" else 1 - b / a
        parts.append(points(pd.DataFrame(changes), ["interval"]))
    return pd.concat(parts, ignore_index=True)


def gains(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return what Load Correction takes from the failure rate."""
    table = wide(frame, "failure", by)
    parts = {k: v for a, b in _CORRECTION for k, v in _from_version(table, a, b).items()}
    return pd.DataFrame(parts)


def causes_removed(e: Evidence) -> pd.DataFrame | None:
    """Claim 10: gain of Load Correction without a blamed cause minus the gain with it."""
    if e.causes is None:
        return None
    table = gains(e.causes, "condition")
    base = table.xs("as it is", level="condition")
    conditions = [name for name in table.index.unique("condition") if name != "as it is"]
    parts = [
        points(pd.DataFrame(table.xs(name, level="condition") - base).add_prefix(f"{name}: "), [])
        for name in conditions
    ]
    return pd.concat(parts, ignore_index=True)


def large_systems(e: Evidence) -> pd.DataFrame | None:
    """Claim 11: gain of Load Correction in systems of 75 nodes and more."""
    if e.sizes is None:
        return None
    rows = e.sizes[e.sizes["value"] >= LARGE].rename(columns={"value": "nodes"})
    return points(gains(rows, "nodes"), ["nodes"])


def trace_model_is_cheaper(e: Evidence) -> pd.DataFrame | None:
    """Claim 12a: numbers that extraneous jobs and data need per number of a trace."""
    if e.background is None:
        return None
    table = e.background.pivot(index="replicate", columns="model", values=["servers", "links"])
    ratio = {w: table[(w, "extraneous")] / table[(w, "trace")] for w in ("servers", "links")}
    return points(pd.DataFrame(ratio), [])


def congestion_is_uneven(e: Evidence) -> pd.DataFrame | None:
    """Claim 12b: spread of the links' coefficients of variation, extraneous minus trace."""
    if e.background is None:
        return None
    table = e.background.pivot(index="replicate", columns="model", values="spread")
    return points((table["extraneous"] - table["trace"]).to_frame("links"), [])


def measured(claim: Claim, e: Evidence) -> pd.DataFrame | None:
    """Measure a claim."""
    function: Callable[[Evidence], pd.DataFrame | None] | None = globals().get(claim.measure)
    return function(e) if function else None


def weakest(claim: Claim, table: pd.DataFrame) -> pd.Series:
    """Return the point that speaks most against a claim."""
    least, greatest = claim.region
    inside = np.fmin(table["low"] - least, greatest - table["high"])
    other = (table["high"] < least) | (table["low"] > greatest)
    return table.iloc[int(np.lexsort((inside, ~other))[0])]


def judged(claim: Claim, e: Evidence) -> Row:
    """Judge a claim, with the numbers of the point that speaks most against it."""
    table = measured(claim, e)
    row: Row = {"claim": claim.id, "point": "", "mean": np.nan, "low": np.nan, "high": np.nan}
    row |= {"runs": 0, "unit": claim.unit}
    if table is None:
        return row | {"verdict": "cannot be checked", "reason": "Not run under this reading."}
    verdict, one = verdict_of(claim, table), weakest(claim, table)
    row |= {"point": one["point"], "mean": one["estimate"], "low": one["low"]}
    row |= {"high": one["high"], "runs": int(table["n"].min())}
    return row | {"verdict": verdict.word, "reason": verdict.reason}

"""What paper S's claims are measured by: evidence in, points of a grid out."""

import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.papers.steady_state.cells import HEURISTICS, TIE
from dlsim.papers.steady_state.platforms import CONNECTIVITY
from dlsim.study.measure import claim, mirrored, named, points, share, steps, tidy, tie, wide
from dlsim.study.stats import relative_reduction, summary

RIVALS = ("G", "LPRG")
#: Periods after which start-up and clean-up are said not to matter.
MANY_PERIODS = 100
#: The size up to which the paper speaks of LPRR, and the one where LPRG is said to win.
LPRR_TO, CROSSING = 45, 15


#: The sweeps that claims are measured on; None where one was not run.
Evidence = namedtuple(
    "Evidence", "tiers random spread crossed timing ends", defaults=[None, None, None, None]
)


def by_size(frame: pd.DataFrame, columns: Sequence[str] | Mapping[str, Any]) -> pd.DataFrame:
    """Average platforms of one size within each replicate, whatever their connectivity."""
    names, keys = list(columns), ["clusters", "replicate"]
    if isinstance(columns, Mapping):
        frame = frame.assign(**columns)
    return frame.dropna(subset=names).groupby(keys)[names].mean().reset_index()


def _kinds(e: Evidence) -> dict[str, pd.DataFrame]:
    return {"Tiers": e.tiers, "random": e.random}


def _both(e: Evidence, measure: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Measure both samples at every K."""
    parts = [
        points(measure(frame).assign(kind=kind), ["kind", "clusters"])
        for kind, frame in _kinds(e).items()
    ]
    return pd.concat(parts, ignore_index=True)


def mean_ratio(frame: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """Estimate the raw mean of a ratio, over platforms where its denominator is above 0."""
    there = frame[frame[b] > 0]
    mean = (there[a] / there[b]).groupby(there["replicate"]).mean().rename(f"{a}/{b}")
    return points(mean.reset_index())


@claim("steady-state-3a")
def greedy_above(e: Evidence) -> pd.DataFrame:
    """Claim 3a: mean ratio of G over that of LPRG, less 1, at every K on Tiers platforms."""
    flat = tidy(by_size(e.tiers, RIVALS), ["clusters"], "ratio")
    table = relative_reduction(flat, "ratio", "policy", "G", "LPRG", at="clusters")
    return named(mirrored(table), ["clusters"], "G over LPRG")


def _halves(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Mean over the smaller half of the sizes minus that over the larger half."""
    sizes = sorted(frame["clusters"].unique())
    middle = len(sizes) // 2
    table = by_size(frame, columns)

    def mean(some: Sequence[int]) -> pd.DataFrame:
        return table[table["clusters"].isin(some)].groupby("replicate")[list(columns)].mean()

    less = mean(sizes[:middle]) - mean(sizes[len(sizes) - middle :])
    return points(less.add_suffix(", small K minus large K").reset_index())


def _ahead(e: Evidence, a: str, b: str, sizes: str, name: str = "") -> pd.DataFrame:
    """Ratio of one method minus that of another on random platforms of some sizes."""
    table = by_size(e.random, RIVALS).assign(smallest=lambda t: t["clusters"].min())
    some = table.query(sizes)
    lead = (some[a] - some[b]).rename(name or f"{a} - {b}")
    return some[["clusters", "replicate"]].join(lead)


def _rise(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Subtract a column at one K from that at the next."""
    return steps(
        table.set_index(["clusters", "replicate"])[[column]], "clusters", "{what}, K {a} to {b}"
    )


@claim("steady-state-5", needs="spread")
def spread_does_not_matter(e: Evidence) -> pd.DataFrame:
    """Claim 5: lead of LPRG over G at every heterogeneity; one part of the grid per K."""
    frame = e.spread.assign(lead=e.spread["LPRG"] - e.spread["G"])
    keys = ["clusters", "heterogeneity"]
    mean = frame.groupby([*keys, "replicate"])["lead"].mean().reset_index()
    table = named(summary(mean, keys, "lead"), keys)
    return table.assign(part=table["point"].str.partition(",")[0])


@claim("steady-state-6a")
def lprr_is_best(e: Evidence) -> pd.DataFrame:
    """Claim 6a: ratio of LPRR minus those of G and LPRG, at every K."""

    def leads(frame: pd.DataFrame) -> pd.DataFrame:
        table = by_size(frame, (*RIVALS, "LPRR"))
        ahead = {f"LPRR - {name}": table["LPRR"] - table[name] for name in RIVALS}
        return table[["clusters", "replicate"]].assign(**ahead)

    return _both(e, leads)


def _lprr(frame: pd.DataFrame, value: Callable[[Any], Any]) -> pd.DataFrame:
    """Average something of LPRR's ratio at every K where it was run."""
    there = frame.dropna(subset=["LPRR"])
    return points(by_size(there, {"LPRR": value(there["LPRR"])}), ["clusters"])


@claim("steady-state-7b", needs="timing", readings=False)
def programs_solved(e: Evidence) -> pd.DataFrame:
    """Claim 7b: linear programs that LPRR solves over K squared."""
    table = e.timing.dropna(subset=["programs"])
    part = (table["programs"] / table["clusters"] ** 2).rename("programs / K^2")
    return points(table[["clusters", "replicate"]].join(part), ["clusters"])


def _losers_minus_others(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean over Tiers platforms where G beats LPRG minus over the others, by replicate."""
    there = frame.dropna(subset=[column])
    loses = np.where(there["G"] > there["LPRG"] + TIE, "loses", "not")
    mean = there.groupby(["replicate", loses])[column].mean().unstack()
    mean = mean.reindex(columns=["loses", "not"]).dropna()
    return points((mean["loses"] - mean["not"]).rename(column).reset_index())


def _advantage(e: Evidence) -> pd.DataFrame:
    """Ratio of G minus that of LPRG: rows numbers, clusters, replicate; columns structures."""
    frame = e.crossed.assign(lead=e.crossed["G"] - e.crossed["LPRG"])
    return wide(frame, ["numbers", "clusters"], "lead", "structure")


@claim("steady-state-12a", needs="crossed", readings=False)
def structure_helps_greedy(e: Evidence) -> pd.DataFrame:
    """Claim 12a: lead of G over LPRG on a Tiers-like network minus on a random graph."""
    table = _advantage(e)
    more = table[list(CONNECTIVITY)].rsub(table["Tiers-like"], axis=0)
    return points(more.groupby(["numbers", "replicate"]).mean().reset_index(), ["numbers"])


@claim("steady-state-12b", needs="crossed", readings=False)
def structure_decides(e: Evidence) -> pd.DataFrame:
    """Claim 12b: effect of the network on that lead minus the effect of the numbers."""
    table = _advantage(e)
    network = table["Tiers-like"] - table[list(CONNECTIVITY)].mean(axis=1)
    sides = pd.DataFrame({side: rows.mean(axis=1).groupby("replicate").mean()
                          for side, rows in table.groupby(level="numbers")})  # fmt: skip
    numbers = sides["Table 1"] - sides["Table 2"]
    structure = network.groupby("replicate").mean()
    effects = structure * np.sign(structure.mean()) - numbers * np.sign(numbers.mean())
    return points(effects.rename("network minus numbers").reset_index())


@claim("steady-state-13")
def best_is_near_optimal(e: Evidence) -> pd.DataFrame:
    """Claim 13: what the best heuristic lacks to the proved optimum, per K."""

    def lack(frame: pd.DataFrame) -> pd.DataFrame:
        there = frame.dropna(subset=["MILP", "LPRR"])
        ratio = there[list(HEURISTICS)].div(there["MILP"], axis=0)
        best = str(ratio.mean().idxmax()) if len(ratio) else HEURISTICS[-1]
        return by_size(there, {f"1 - {best}/optimum": 1 - ratio[best]})

    return _both(e, lack)


@claim("steady-state-14", needs="ends", readings=False)
def ends_are_negligible(e: Evidence) -> pd.DataFrame:
    """Claim 14: share of the load that start-up and clean-up cost over 100 periods."""
    frame = e.ends[e.ends["count"] == MANY_PERIODS]
    return points(frame.groupby(["kind", "replicate"])["ends"].mean().reset_index(), ["kind"])


#: Claims that a line or two measure, by the number in their id.
_MEASURES: dict[str, Callable[[Evidence], pd.DataFrame]] = {
    # what LPR lacks to the worse of G and LPRG; platforms where it gives an application nothing
    "1a": lambda e: _both(
        e, lambda f: by_size(f, {"min(G, LPRG) - LPR": f[list(RIVALS)].min(axis=1) - f["LPR"]})
    ),
    "1b": lambda e: pd.concat(
        [share(rows["LPR"] <= TIE, rows, kind) for kind, rows in _kinds(e).items()],
        ignore_index=True,
    ),
    # wins of G on Tiers platforms, ties left out and counted; the mean of its ratio to LPRG
    "2a": lambda e: share(e.tiers["G"] > e.tiers["LPRG"] + TIE, e.tiers, "G > LPRG"),
    "2b": lambda e: share(e.tiers["G"] >= e.tiers["LPRG"] - TIE, e.tiers, "G >= LPRG"),
    "2c": lambda e: mean_ratio(e.tiers, "G", "LPRG"),
    "3b": lambda e: _halves(e.tiers, RIVALS),
    # random platforms: the mean of LPRG over G, then who leads at which size
    "4a": lambda e: mean_ratio(e.random, "LPRG", "G"),
    "4b": lambda e: points(_ahead(e, "G", "LPRG", "clusters == smallest"), ["clusters"]),
    "4c": lambda e: points(_ahead(e, "LPRG", "G", "clusters > @CROSSING"), ["clusters"]),
    "4d": lambda e: points(_rise(_ahead(e, "LPRG", "G", "clusters >= @CROSSING", "lead"), "lead")),
    # what LPRR lacks to the bound on Tiers platforms; how often it reaches it on random ones
    "6b": lambda e: _lprr(e.tiers[e.tiers["clusters"] <= LPRR_TO], lambda ratio: 1 - ratio),
    "6c": lambda e: _lprr(e.random, lambda ratio: ratio >= 1 - TIE),
    # what LPR does not open
    "9": lambda e: _both(e, lambda frame: by_size(frame, ["lost"])),
    # routes below one connection, free speed its better-off owners take: LPRG loses minus not
    "10a": lambda e: _losers_minus_others(e.tiers, "below"),
    "10b": lambda e: _losers_minus_others(e.tiers, "own_use"),
    "11": lambda e: points(0.0 - _rise(by_size(e.random, ["LPRG"]), "LPRG")),
}
tie("steady-state", _MEASURES)


def mean_of(frame: pd.DataFrame, keys: Sequence[str], methods: Sequence[str]) -> pd.DataFrame:
    """Mean and interval of every method at every point of `keys`, over replicates."""
    mean = frame.groupby([*keys, "replicate"], sort=False)[list(methods)].mean()
    return summary(tidy(mean, keys, "ratio"), [*keys, "policy"], "ratio")


def by_method(frame: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Mean ratio with its interval per method and K; methods that were not run are left out."""
    parts = [
        summary(by, ["clusters"], name).assign(policy=name)
        for name in methods
        if len(by := by_size(frame, [name]))
    ]
    return pd.concat(parts, ignore_index=True)


def versus(frame: pd.DataFrame, column: str, rival: str) -> pd.DataFrame:
    """Geometric mean, with its interval, of a column over the rival's on the same platform."""
    keys = ["kind", "clusters"]
    logs = frame.assign(**{column: np.log(frame[column])})
    values = wide(logs, keys, column)
    others = values.drop(columns=rival).sub(values[rival], axis=0)
    table = summary(tidy(others, keys, column).dropna(), [*keys, "policy"], column)
    return table.assign(**{name: np.exp(table[name]) for name in ("estimate", "low", "high")})


def duel(frame: pd.DataFrame, a: str, b: str) -> dict[str, float]:
    """Compare two methods platform by platform: wins, ties, the ratio where both are above 0."""
    pair = frame[[a, b]].dropna()
    x, y = pair[a], pair[b]
    better, worse = float((x > y + TIE).mean()), float((x < y - TIE).mean())
    both = (x > TIE) & (y > TIE)
    ratio = (x[both] / y[both]).sort_values()
    rest = ratio.iloc[:-1]
    table: dict[str, Any] = {
        "platforms": len(pair), "better": better, "tie": 1 - better - worse, "worse": worse,
        "zero": float((~both).mean()), "mean": ratio.mean(), "sd": ratio.std(),
        "largest": float(ratio.max()) if len(ratio) else 0.0, "mean without it": rest.mean(),
        "sd without it": rest.std(), "geometric": float(np.exp(np.log(ratio).mean())),
        **{f"q{100 * q:g}": ratio.quantile(q) for q in (0.05, 0.5, 0.95)},
    }  # fmt: skip
    return table


def one_outlier(count: int, mean: float, deviation: float) -> dict[str, float]:
    r"""Read a mean and a standard deviation as those of equal values and one other.

    If :math:`n - 1` values are a and one is x, then :math:`\bar x = a + (x - a)/n` and
    :math:`s^2 = (x - a)^2 / n`. Without that assumption the largest of any values of at
    least 0 is at least :math:`\overline{x^2} / \bar x`.

    >>> {k: round(v, 6) for k, v in one_outlier(4, 2.0, 2.0).items()}  # of 1, 1, 1, 5
    {'others': 1.0, 'one': 5.0, 'least': 3.5}
    """
    apart = deviation * math.sqrt(count)
    others = mean - apart / count
    square = mean**2 + deviation**2 * (count - 1) / count
    return {"others": others, "one": others + apart, "least": square / mean}

"""What paper S's claims are measured by: evidence in, points of a grid out.

A replicate is one platform of each stratum. What LPR and LPRG make of the relaxed program
depends on which of its many optima a solver returns: claims on what rounding does are judged
over random optimal vertices, a random factor within platforms.
"""

import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.papers.steady_state.cells import CONNECTIVITY, HEURISTICS, TIE
from dlsim.study.measure import counted, exact, named, points, ratio, tidy, tie, trend, wide
from dlsim.study.stats import ENDS, summary

RIVALS = ("G", "LPRG")
#: Periods after which start-up and clean-up are said not to matter.
MANY_PERIODS = 100
#: The size up to which the paper speaks of LPRR, and the one where LPRG is said to win.
LPRR_TO, CROSSING = 45, 15
#: Into how many classes sizes are put where few platforms of a size are run.
CLASSES = 3
#: The part of the relaxed program's connections that it is significant not to open.
SIGNIFICANT = 0.1
#: The sweeps that claims are measured on; None where one was not run.
Evidence = namedtuple(
    "Evidence", "tiers random spread crossed timing ends vertices",
    defaults=[None, None, None, None, None],
)  # fmt: skip
Frames = Mapping[str, pd.DataFrame]


def by_size(frame: pd.DataFrame, columns: Sequence[str] | Mapping[str, Any]) -> pd.DataFrame:
    """Average platforms of one size within each replicate, whatever their connectivity."""
    names, keys = list(columns), ["clusters", "replicate"]
    if isinstance(columns, Mapping):
        frame = frame.assign(**columns)
    return frame.dropna(subset=names).groupby(keys)[names].mean().reset_index()


def by_class(frame: pd.DataFrame, columns: Sequence[str] | Mapping[str, Any]) -> pd.DataFrame:
    """Average platforms of neighbouring sizes within each replicate."""
    table = by_size(frame, columns)
    parts = [k for k in np.array_split(sorted(table["clusters"].unique()), CLASSES) if len(k)]
    names = {size: " to ".join(map(str, dict.fromkeys((k[0], k[-1])))) for k in parts for size in k}
    keys = [table["clusters"].map(names), "replicate"]
    return table.groupby(keys, sort=False)[list(columns)].mean().reset_index()


def over_all(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Average platforms of all sizes within each replicate."""
    return frame[["replicate"]].assign(**columns).dropna().groupby("replicate").mean().reset_index()


def _samples(e: Evidence) -> Frames:
    return {"Tiers": e.tiers, "random": e.random}


def _vertices(e: Evidence) -> Frames:
    return dict(list(e.vertices.groupby("kind", sort=False)))


def _each(frames: Frames, measure: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Measure each kind of platforms, at every K where the measure has any."""
    parts = []
    for kind, frame in frames.items():
        table = measure(frame).assign(kind=kind)
        parts.append(points(table, ["kind", *table.columns.intersection(["clusters"])]))
    return pd.concat(parts, ignore_index=True)


def _shares(frames: Frames, what: str, cases: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
    """Share of the cases in which something is so, over all platforms of each kind."""
    table = _each(frames, lambda frame: over_all(frame, {what: cases(frame).astype(float)}))
    stratum = ["clusters", "connectivity", "replicate"]
    count = {
        kind: len(frame[frame.columns.intersection(stratum)].drop_duplicates())
        for kind, frame in frames.items()
    }
    return counted(table, table["kind"].map(count))


def mean_ratio(frame: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """Estimate the raw mean of a ratio, over platforms where its denominator is above 0.

    One platform can make such a mean: its interval is bootstrapped (BCa), and the median and
    the largest ratio are told beside it. Random platforms with the same numbers of Table 2
    are drawn together.
    """
    from scipy.stats import bootstrap  # slow to load

    there = frame[frame[b] > 0].reset_index(drop=True)
    means = ratio = there[a] / there[b]
    if "connectivity" in there:
        means = ratio.groupby([there["replicate"], there["connectivity"]]).mean()
    row: dict[str, Any] = {"point": f"{a}/{b}", "estimate": means.mean(), "n": len(means)}
    low = high = math.nan
    if means.nunique() > 1:
        low, high = bootstrap((means,), np.mean, rng=0).confidence_interval
        most = int(ratio.argmax())
        at, rest = there.iloc[most], ratio.drop(most)
        row["beside"] = (
            f"median {ratio.median():.4g}, largest {ratio.max():.4g} at K {at['clusters']:.0f}, "
            f"replicate {at['replicate']:.0f}, mean without it {rest.mean():.4g}"
        )
    return pd.DataFrame([{**row, "low": low, "high": high}])


def leads(frame: pd.DataFrame, a: str = "LPRG", b: str = "G") -> pd.DataFrame:
    """Ratio of one method minus that of another on the same platforms, at every K."""
    return by_size(frame, {f"{a} - {b}": frame[a] - frame[b]})


def _falls(table: pd.DataFrame) -> pd.DataFrame:
    """Estimate by how much columns fall from the least K to the largest."""
    return trend(-table.set_index(["clusters", "replicate"]), "clusters", "fall of {what} over K")


def _lprr_leads(e: Evidence, value: Callable[[Any], Any]) -> pd.DataFrame:
    """What LPRR has more than either rival, over all platforms of a kind where it was run."""
    there = {kind: frame.dropna(subset=["LPRR"]) for kind, frame in _samples(e).items()}
    table = _each(
        there, lambda f: over_all(f, {f"LPRR - {r}": value(f["LPRR"] - f[r]) for r in RIVALS})
    )
    return table.assign(group=table["kind"])


def _losers_minus_others(e: Evidence, column: str) -> pd.DataFrame:
    """Mean over vertices where G beats LPRG minus elsewhere, at one K, averaged by replicate."""
    there = _vertices(e)["Tiers"].dropna(subset=[column])
    loses = np.where(there["G"] > there["LPRG"] + TIE, "loses", "not")
    mean = there.groupby(["replicate", "clusters", loses])[column].mean().unstack()
    mean = mean.reindex(columns=["loses", "not"]).dropna()
    return points((mean["loses"] - mean["not"]).groupby("replicate").mean().to_frame(column))


def _advantage(e: Evidence) -> pd.DataFrame:
    """Ratio of G minus that of LPRG: rows numbers, clusters, replicate; columns structures."""
    frame = e.crossed.assign(lead=e.crossed["G"] - e.crossed["LPRG"])
    return wide(frame, ["numbers", "clusters"], "lead", "structure")


def structure_helps_greedy(e: Evidence) -> pd.DataFrame:
    """Lead of G over LPRG on a Tiers-like network minus on a random graph."""
    table = _advantage(e)
    more = table[list(CONNECTIVITY)].rsub(table["Tiers-like"], axis=0)
    return points(more.groupby(["numbers", "replicate"]).mean(), ["numbers"])


def structure_decides(e: Evidence) -> pd.DataFrame:
    """Effect of the network on that lead minus the effect of the numbers."""
    table = _advantage(e)
    network = table["Tiers-like"] - table[list(CONNECTIVITY)].mean(axis=1)
    sides = pd.DataFrame({side: rows.mean(axis=1).groupby("replicate").mean()
                          for side, rows in table.groupby(level="numbers")})  # fmt: skip
    numbers = sides["Table 1"] - sides["Table 2"]
    structure = network.groupby("replicate").mean()
    effects = structure * np.sign(structure.mean()) - numbers * np.sign(numbers.mean())
    return points(effects.to_frame("network minus numbers"))


def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """What every heuristic lacks to the proved optimum, as a part of it, on every platform."""
    there = frame.dropna(subset=["MILP"])
    lack = 1 - there[list(HEURISTICS)].div(there["MILP"], axis=0)
    return there[["clusters", "replicate"]].join(lack)


def _best_lacks(frame: pd.DataFrame) -> pd.DataFrame:
    """What the best of the heuristics that were run at a K lacks, per class of K."""
    table = gaps(frame)
    best = table.groupby("clusters")[list(HEURISTICS)].mean().idxmin(axis=1)
    least = [row[best[row["clusters"]]] for _, row in table.iterrows()]
    return by_class(table, {"1 - best/optimum": pd.Series(least, index=table.index, dtype=float)})


# what measures a claim, by the number in its id
tie("steady-state", {
    # wins of G on Tiers platforms, ties left out and counted; the mean of its ratio to LPRG;
    # platforms where that is 1.05 to 1.1
    "2a": lambda e: _shares({"Tiers": e.tiers}, "G > LPRG", lambda f: f["G"] > f["LPRG"] + TIE),
    "2b": lambda e: _shares({"Tiers": e.tiers}, "G >= LPRG", lambda f: f["G"] >= f["LPRG"] - TIE),
    "2c": lambda e: mean_ratio(e.tiers, "G", "LPRG"),
    # G on Tiers platforms over all sizes, then both heuristics over the sizes
    "3a": lambda e: named(
        ratio(over_all(e.tiers, e.tiers[list(RIVALS)]), "G", "LPRG", [], less=1), [], "G over LPRG"
    ),
    "3b": lambda e: _falls(by_size(e.tiers, RIVALS)),
    "3c": lambda e: _shares(
        {"Tiers": e.tiers}, "G 5 to 10 % above", lambda f: (f["G"] / f["LPRG"]).between(1.05, 1.1)
    ),
    # random platforms: the mean of LPRG over G, then who leads at which size
    "4a": lambda e: mean_ratio(e.random, "LPRG", "G"),
    "4b": lambda e: points(
        leads(e.random[e.random["clusters"] == e.random["clusters"].min()], "G", "LPRG"),
        ["clusters"],
    ),
    "4c": lambda e: points(leads(e.random[e.random["clusters"] > CROSSING]), ["clusters"]),
    "4d": lambda e: trend(leads(e.random).set_index(["clusters", "replicate"]), "clusters"),
    # rise of the lead of LPRG over G with heterogeneity, at every K
    "5": lambda e: trend(
        e.spread.assign(lead=e.spread["LPRG"] - e.spread["G"])
        .groupby(["heterogeneity", "clusters", "replicate"])[["lead"]].mean(),
        "heterogeneity",
    ),
    # LPRR: its mean lead and its wins minus its losses; what it lacks to the bound on Tiers
    # platforms; how often it reaches it on random ones; the programs that it solves
    "6a": lambda e: _lprr_leads(e, lambda lead: lead),
    "6b": lambda e: points(
        by_class(e.tiers[e.tiers["clusters"] <= LPRR_TO], {"1 - LPRR": 1 - e.tiers["LPRR"]}),
        ["clusters"],
    ),
    "6c": lambda e: _shares(
        {"random": e.random.dropna(subset=["LPRR"])}, "LPRR", lambda f: f["LPRR"] >= 1 - TIE
    ),
    "6d": lambda e: _lprr_leads(e, lambda lead: np.sign(lead.where(lead.abs() > TIE, 0.0))),
    "7b": lambda e: _each(
        _samples(e), lambda f: by_size(f, {"programs / K^2": f["programs"] / f["clusters"] ** 2})
    ),
    # what LPR lacks to the worse of G and LPRG; where it gives an application nothing
    "1a": lambda e: _each(
        _vertices(e),
        lambda f: by_class(f, {"min(G, LPRG) - LPR": f[list(RIVALS)].min(axis=1) - f["LPR"]}),
    ),
    "1b": lambda e: _shares(_vertices(e), "LPR = 0", lambda f: f["LPR"] <= TIE),
    # what LPR does not open, on average and in how many cases it is much
    "9a": lambda e: _each(_vertices(e), lambda frame: by_class(frame, ["lost"])),
    "9b": lambda e: _shares(
        {kind: frame.dropna(subset=["lost"]) for kind, frame in _vertices(e).items()},
        f"more than {SIGNIFICANT:.0%}",
        lambda f: f["lost"] > SIGNIFICANT,
    ),
    # routes below one connection, free speed its better-off owners take: LPRG loses minus not
    "10a": lambda e: _losers_minus_others(e, "below"),
    "10b": lambda e: _losers_minus_others(e, "own_use"),
    "11": lambda e: _falls(by_size(_vertices(e)["random"], ["LPRG"])),
    "13": lambda e: _each(_samples(e), _best_lacks),
})  # fmt: skip
tie("steady-state", {
    "12a": structure_helps_greedy,
    "12b": structure_decides,
    # share of the load that start-up and clean-up cost over 100 periods
    "14": lambda e: exact(points(
        e.ends[e.ends["count"] == MANY_PERIODS].groupby(["kind", "replicate"])[["ends"]].mean(),
        ["kind"],
    )),
}, readings=False)  # fmt: skip


def mean_of(frame: pd.DataFrame, keys: Sequence[str], methods: Sequence[str]) -> pd.DataFrame:
    """Mean and interval of every method at every point of `keys`, over the replicates it ran in."""
    mean = frame.groupby([*keys, "replicate"], sort=False)[list(methods)].mean()
    return summary(tidy(mean, keys, "ratio").dropna(), [*keys, "policy"], "ratio")


def versus(frame: pd.DataFrame, column: str, rival: str) -> pd.DataFrame:
    """Geometric mean, with its interval, of a column over the rival's on the same platform."""
    keys = ["kind", "clusters"]
    logs = wide(frame, keys, column).apply(np.log)
    others = logs.drop(columns=rival).sub(logs[rival], axis=0)
    table = summary(tidy(others, keys, column).dropna(), [*keys, "policy"], column)
    return table.assign(**{name: np.exp(table[name]) for name in ENDS})


def duel(frame: pd.DataFrame, a: str, b: str) -> dict[str, Any]:
    """Compare two methods platform by platform: wins, ties, the ratio where both are above 0."""
    pair = frame[[a, b]].dropna()
    x, y = pair[a], pair[b]
    better, worse = float((x > y + TIE).mean()), float((x < y - TIE).mean())
    both = (x > TIE) & (y > TIE)
    ratio = (x[both] / y[both]).sort_values()
    rest = ratio.iloc[:-1]
    return {
        "platforms": len(pair), "better": better, "tie": 1 - better - worse, "worse": worse,
        "zero": float((~both).mean()), "mean": ratio.mean(), "sd": ratio.std(),
        "largest": float(ratio.max()) if len(ratio) else 0.0, "mean without it": rest.mean(),
        "sd without it": rest.std(), "geometric": float(np.exp(np.log(ratio).mean())),
        **{f"q{100 * q:g}": ratio.quantile(q) for q in (0.05, 0.5, 0.95)},
    }  # fmt: skip


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


def by_vertex(rows: pd.DataFrame, name: str) -> dict[str, float]:
    """Split what a heuristic's ratio varies by: platforms of one stratum, and vertices of one.

    ``share`` is the part of the variance that lies between optimal vertices of one platform,
    ``spread`` the mean difference between the best and the worst of them, ``flips`` the share of
    platforms on which the vertex decides whether the heuristic or G is ahead.
    """
    stratum = ["kind", "clusters", "connectivity"]
    own = rows.groupby([*stratum, "replicate"])[name]
    within = own.var(ddof=1).mean()
    between = own.mean().groupby(stratum).var(ddof=1).mean()
    both = rows.assign(lead=(rows[name] - rows["G"]).round(6))
    lead = both.groupby([*stratum, "replicate"])["lead"]
    return {
        "share": float(within / (within + between)) if within + between > 0 else 0.0,
        "spread": float((own.max() - own.min()).mean()),
        "flips": float(((lead.min() < 0) & (lead.max() > 0)).mean()),
    }

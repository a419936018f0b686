"""The measuring functions of paper S's claims: evidence in, points of a grid out.

Each takes the `Evidence` and returns columns point, estimate, low, high (95 % interval over
paired replicates), or None where its evidence is not there. data/claims.toml says which
function belongs to which claim, and `dlsim.study.claims` turns the points into a verdict.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.papers.steady_state.platforms import CONNECTIVITY
from dlsim.papers.steady_state.runs import HEURISTICS, TIE
from dlsim.study.claims import Claim
from dlsim.study.stats import relative_reduction, summary

RIVALS = ("G", "LPRG")
#: Periods after which start-up and clean-up are said not to matter.
MANY_PERIODS = 100
#: The size up to which the paper speaks of LPRR, and the one where LPRG is said to win.
LPRR_TO, CROSSING = 45, 15


class Evidence(NamedTuple):
    """The sweeps that claims are measured on."""

    tiers: pd.DataFrame
    random: pd.DataFrame
    spread: pd.DataFrame | None = None
    crossed: pd.DataFrame | None = None
    timing: pd.DataFrame | None = None
    ends: pd.DataFrame | None = None


def points(values: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
    """Estimate every column of paired values at every point of the grid."""
    tidy = values.melt([*labels, "replicate"], var_name="what", value_name="measured")
    table = summary(tidy, ["what", *labels], "measured")
    names = [
        ", ".join([str(row["what"]), *(_named(name, row[name]) for name in labels)])
        for _, row in table.iterrows()
    ]
    return table.assign(point=pd.Series(names, dtype=object))[
        ["point", "estimate", "low", "high", "n"]
    ]


def _named(name: str, value: object) -> str:
    short = {"clusters": "K", "kind": "", "structure": "", "numbers": ""}.get(name, name)
    return f"{short} {value}".strip()


def by_size(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Average platforms of one size within each replicate, whatever their connectivity."""
    there = frame.dropna(subset=list(columns))
    keys = ["clusters", "replicate"]
    return there.groupby(keys)[list(columns)].mean().reset_index()


def _kinds(e: Evidence) -> dict[str, pd.DataFrame]:
    return {"Tiers": e.tiers, "random": e.random}


def _both(e: Evidence, measure: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Measure both samples at every K."""
    parts = [
        points(measure(frame).assign(kind=kind), ["kind", "clusters"])
        for kind, frame in _kinds(e).items()
    ]
    return pd.concat(parts, ignore_index=True)


def lpr_is_poor(e: Evidence) -> pd.DataFrame:
    """Claim 1a: what LPR lacks to the worse of G and LPRG, ratios to the bound, per K."""

    def lack(frame: pd.DataFrame) -> pd.DataFrame:
        lacking = frame[list(RIVALS)].min(axis=1) - frame["LPR"]
        return by_size(frame.assign(**{"min(G, LPRG) - LPR": lacking}), ["min(G, LPRG) - LPR"])

    return _both(e, lack)


def lpr_is_zero(e: Evidence) -> pd.DataFrame:
    """Claim 1b: share of platforms where LPR gives some application nothing."""
    parts = []
    for kind, frame in _kinds(e).items():
        share = frame.assign(**{kind: frame["LPR"] <= TIE}).groupby("replicate")[kind].mean()
        parts.append(points(share.reset_index()))
    return pd.concat(parts, ignore_index=True)


def _share(values: "pd.Series[bool]", frame: pd.DataFrame, what: str) -> pd.DataFrame:
    share = values.astype(float).groupby(frame["replicate"]).mean().rename(what)
    return points(share.reset_index())


def greedy_wins(e: Evidence) -> pd.DataFrame:
    """Claim 2a: share of Tiers platforms where G is better than LPRG."""
    return _share(e.tiers["G"] > e.tiers["LPRG"] + TIE, e.tiers, "G > LPRG")


def greedy_is_no_worse(e: Evidence) -> pd.DataFrame:
    """Claim 2b: the same, ties counted for G."""
    return _share(e.tiers["G"] >= e.tiers["LPRG"] - TIE, e.tiers, "G >= LPRG")


def mean_ratio(frame: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """Estimate the raw mean of a ratio, over platforms where its denominator is above 0."""
    there = frame[frame[b] > 0]
    mean = (there[a] / there[b]).groupby(there["replicate"]).mean().rename(f"{a}/{b}")
    return points(mean.reset_index())


def tiers_mean_ratio(e: Evidence) -> pd.DataFrame:
    """Claim 2c: mean of G/LPRG on Tiers platforms."""
    return mean_ratio(e.tiers, "G", "LPRG")


def greedy_above(e: Evidence) -> pd.DataFrame:
    """Claim 3a: mean ratio of G over that of LPRG, less 1, at every K on Tiers platforms."""
    tidy = by_size(e.tiers, RIVALS).melt(
        ["clusters", "replicate"], var_name="policy", value_name="ratio"
    )
    table = relative_reduction(tidy, "ratio", "policy", "G", "LPRG", at="clusters")
    more = {"estimate": -table["estimate"], "low": -table["high"], "high": -table["low"]}
    names = [f"G over LPRG, K {k}" for k in table["clusters"]]
    return pd.DataFrame({"point": names, **more, "n": table["n"]})


def _halves(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Mean over the smaller half of the sizes minus that over the larger half."""
    sizes = sorted(frame["clusters"].unique())
    middle = len(sizes) // 2
    table = by_size(frame, columns)

    def mean(some: Sequence[int]) -> pd.DataFrame:
        return table[table["clusters"].isin(some)].groupby("replicate")[list(columns)].mean()

    less = mean(sizes[:middle]) - mean(sizes[len(sizes) - middle :])
    return points(less.add_suffix(", small K minus large K").reset_index())


def both_fall_away(e: Evidence) -> pd.DataFrame:
    """Claim 3b: ratio at the smaller half of K minus that at the larger half, Tiers."""
    return _halves(e.tiers, RIVALS)


def random_mean_ratio(e: Evidence) -> pd.DataFrame:
    """Claim 4a: mean of LPRG/G on random platforms."""
    return mean_ratio(e.random, "LPRG", "G")


def _lead(e: Evidence) -> pd.DataFrame:
    table = by_size(e.random, RIVALS)
    return table.assign(lead=table["LPRG"] - table["G"])[["clusters", "replicate", "lead"]]


def greedy_wins_small(e: Evidence) -> pd.DataFrame:
    """Claim 4b: ratio of G minus that of LPRG at the smallest K, random platforms."""
    table = _lead(e)
    small = table[table["clusters"] == table["clusters"].min()]
    ahead = small.assign(**{"G - LPRG": -small["lead"]}).drop(columns="lead")
    return points(ahead, ["clusters"])


def reclaiming_wins(e: Evidence) -> pd.DataFrame:
    """Claim 4c: ratio of LPRG minus that of G at every K above 15, random platforms."""
    table = _lead(e).rename(columns={"lead": "LPRG - G"})
    return points(table[table["clusters"] > CROSSING], ["clusters"])


def _steps(table: pd.DataFrame, column: str, sign: float) -> pd.DataFrame:
    wide = table.pivot(index="replicate", columns="clusters", values=column)
    steps = {f"{column}, K {a} to {b}": sign * (wide[b] - wide[a]) for a, b in pairwise(wide)}
    return points(pd.DataFrame(steps, index=wide.index).reset_index())


def reclaiming_lead_grows(e: Evidence) -> pd.DataFrame:
    """Claim 4d: lead of LPRG over G at one K minus that at the one before, from 15 on."""
    table = _lead(e)
    return _steps(table[table["clusters"] >= CROSSING], "lead", 1.0)


def spread_does_not_matter(e: Evidence) -> pd.DataFrame:
    """Claim 5: lead of LPRG over G at every heterogeneity; one part of the grid per K."""
    frame = _required(e.spread)
    frame = frame.assign(lead=frame["LPRG"] - frame["G"])
    keys = ["clusters", "heterogeneity"]
    mean = frame.groupby([*keys, "replicate"])["lead"].mean().reset_index()
    table = summary(mean, keys, "lead")
    part = [f"K {k}" for k in table["clusters"]]
    name = [f"{k}, {h:g}" for k, h in zip(part, table["heterogeneity"], strict=True)]
    return table.assign(part=part, point=name)


def lprr_is_best(e: Evidence) -> pd.DataFrame:
    """Claim 6a: ratio of LPRR minus those of G and LPRG, at every K."""

    def leads(frame: pd.DataFrame) -> pd.DataFrame:
        table = by_size(frame, (*RIVALS, "LPRR"))
        ahead = {f"LPRR - {name}": table["LPRR"] - table[name] for name in RIVALS}
        return table[["clusters", "replicate"]].assign(**ahead)

    return _both(e, leads)


def lprr_is_close(e: Evidence) -> pd.DataFrame:
    """Claim 6b: what LPRR lacks to the bound on Tiers platforms, at every K up to 45."""
    table = by_size(e.tiers, ["LPRR"])
    table = table[table["clusters"] <= LPRR_TO]
    return points(table.assign(LPRR=1 - table["LPRR"]), ["clusters"])


def lprr_is_at_bound(e: Evidence) -> pd.DataFrame:
    """Claim 6c: share of random platforms where LPRR reaches the bound, at every K."""
    there = e.random.dropna(subset=["LPRR"])
    return points(by_size(there.assign(LPRR=there["LPRR"] >= 1 - TIE), ["LPRR"]), ["clusters"])


def programs_solved(e: Evidence) -> pd.DataFrame:
    """Claim 7b: linear programs that LPRR solves over K squared."""
    table = _required(e.timing).dropna(subset=["programs"])
    part = (table["programs"] / table["clusters"] ** 2).rename("programs / K^2")
    return points(table[["clusters", "replicate"]].join(part), ["clusters"])


def network_is_left(e: Evidence) -> pd.DataFrame:
    """Claim 9: share of the relaxed program's connections that LPR does not open, per K."""
    return _both(e, lambda frame: by_size(frame, ["lost"]))


def _losers_minus_others(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean over Tiers platforms where G beats LPRG minus over the others, by replicate."""
    there = frame.dropna(subset=[column])
    loses = np.where(there["G"] > there["LPRG"] + TIE, "loses", "not")
    mean = there.groupby(["replicate", loses])[column].mean().unstack()
    mean = mean.reindex(columns=["loses", "not"]).dropna()
    return points((mean["loses"] - mean["not"]).rename(column).reset_index())


def small_connections_lost(e: Evidence) -> pd.DataFrame:
    """Claim 10a: share of routes below one connection, where LPRG loses minus elsewhere."""
    return _losers_minus_others(e.tiers, "below")


def own_cycles_used(e: Evidence) -> pd.DataFrame:
    """Claim 10b: free speed its better-off owners take, where LPRG loses minus elsewhere."""
    return _losers_minus_others(e.tiers, "own_use")


def reclaiming_falls(e: Evidence) -> pd.DataFrame:
    """Claim 11: ratio of LPRG at one K minus that at the next, random platforms."""
    return _steps(by_size(e.random, ["LPRG"]), "LPRG", -1.0)


def _advantage(e: Evidence) -> pd.DataFrame:
    """Ratio of G minus that of LPRG: rows numbers, clusters, replicate; columns structures."""
    frame = _required(e.crossed)
    keys = ["numbers", "clusters", "replicate"]
    frame = frame.assign(lead=frame["G"] - frame["LPRG"])
    return frame.pivot(index=keys, columns="structure", values="lead")


def structure_helps_greedy(e: Evidence) -> pd.DataFrame:
    """Claim 12a: lead of G over LPRG on a Tiers-like network minus on a random graph."""
    table = _advantage(e)
    more = table[list(CONNECTIVITY)].rsub(table["Tiers-like"], axis=0)
    return points(more.groupby(["numbers", "replicate"]).mean().reset_index(), ["numbers"])


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


def best_is_near_optimal(e: Evidence) -> pd.DataFrame:
    """Claim 13: what the best heuristic lacks to the proved optimum, per K."""

    def lack(frame: pd.DataFrame) -> pd.DataFrame:
        there = frame.dropna(subset=["MILP", "LPRR"])
        ratio = there[list(HEURISTICS)].div(there["MILP"], axis=0)
        best = str(ratio.mean().idxmax()) if len(ratio) else HEURISTICS[-1]
        short = there.assign(**{f"1 - {best}/optimum": 1 - ratio[best]})
        return by_size(short, [f"1 - {best}/optimum"])

    return _both(e, lack)


def ends_are_negligible(e: Evidence) -> pd.DataFrame:
    """Claim 14: share of the load that start-up and clean-up cost over 100 periods."""
    frame = _required(e.ends)
    frame = frame[frame["count"] == MANY_PERIODS]
    mean = frame.groupby(["kind", "replicate"])["ends"].mean().reset_index()
    return points(mean, ["kind"])


def _required(frame: pd.DataFrame | None) -> pd.DataFrame:
    assert frame is not None, "this claim is measured under the notebook's own reading only"
    return frame


#: Claims that the two samples decide: the rows of the heat map.
BY_READING = (
    "lpr_is_poor", "lpr_is_zero", "greedy_wins", "greedy_is_no_worse", "tiers_mean_ratio",
    "greedy_above", "both_fall_away", "random_mean_ratio", "greedy_wins_small",
    "reclaiming_wins", "reclaiming_lead_grows", "spread_does_not_matter", "lprr_is_best",
    "lprr_is_close", "lprr_is_at_bound", "network_is_left", "small_connections_lost",
    "own_cycles_used", "reclaiming_falls", "best_is_near_optimal",
)  # fmt: skip


def measured(claim: Claim, e: Evidence) -> pd.DataFrame | None:
    """Measure a claim."""
    function: Callable[[Evidence], pd.DataFrame] | None = globals().get(claim.measure)
    return function(e) if function else None

"""Paper S: its heuristics, the switches of its readings, and the measures of its claims.

Source: L. Marchal, Y. Yang, H. Casanova, Y. Robert, "Steady-State Scheduling of Multiple Divisible
Load Applications on Wide-Area Distributed Computing Platforms", IJHPCA 20(3), 2006.

The experiments are cells of notebooks/40-steady-state.ipynb. A measure takes the frames that they
leave and returns the points of a claim; the names of its parameters say which frames. A
replicate is one platform of each stratum.

tiers, random
    One row per platform: clusters, replicate (connectivity for random graphs), the objective of
    G, LPR, LPRG, LPRR and MILP (where the optimum is proved) over the bound of the relaxed program,
    and programs, the number of programs that the paper's LPRR solves.
vertices
    One row per platform and optimal vertex of the relaxed program: kind, clusters, connectivity,
    replicate, G, LPR, LPRG, and the effects of rounding: lost, below, own_use.
spread
    Random platforms by their heterogeneity.
crossed
    The numbers of either table on either kind of network.
ends
    The cost of start-up and clean-up.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dlsim.steady import SWITCHES as ENGINE_SWITCHES
from dlsim.steady import topology
from dlsim.steady.samples import CONNECTIVITY
from dlsim.study.measure import (
    mark_exact,
    measures,
    name_points,
    pivot_policies,
    points,
    ratio,
    trend,
    with_exact_bounds,
)

#: Switches of the engine, then of the platforms, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**ENGINE_SWITCHES, **topology.SWITCHES}
#: The paper's heuristics in the order of its legends.
PAPER_S_HEURISTICS = ("G", "LPR", "LPRG", "LPRR")
#: The heuristics that LPRR is compared with.
RIVALS_OF_LPRR = ("G", "LPRG")
#: Ratios to the bound that differ by no more than this are equal.
OBJECTIVE_TIE = 1e-6
#: Periods after which start-up and clean-up are said not to matter.
MANY_PERIODS = 100
#: The size up to which the paper speaks of LPRR.
LARGEST_LPRR_SIZE = 45
#: The size beyond which LPRG is said to win on random platforms.
LPRG_WINS_BEYOND = 15
#: Number of classes of sizes where few platforms of one size are run.
SIZE_CLASSES = 3
#: The part of the relaxed program's connections from which a loss by rounding is significant.
SIGNIFICANT_LOSS = 0.1

Frames = Mapping[str, pd.DataFrame]
Columns = Mapping[str, Any]


# ------------------------------------------------------------------ platforms put together


def average_by_size(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Average platforms of one size within each replicate, whatever their connectivity."""
    names = list(columns)
    there = frame.assign(**columns).dropna(subset=names)
    return there.groupby(["clusters", "replicate"])[names].mean().reset_index()


def average_by_class(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Average platforms of neighbouring sizes within each replicate."""
    table = average_by_size(frame, columns)
    classes = np.array_split(sorted(table["clusters"].unique()), SIZE_CLASSES)
    names: dict[Any, str] = {}
    for sizes in filter(len, classes):  # with few sizes a class may be empty
        low, high = sizes[0], sizes[-1]
        name = f"{low} to {high}" if low < high else str(low)
        names |= dict.fromkeys(sizes, name)
    keys = [table["clusters"].map(names), "replicate"]
    return table.groupby(keys, sort=False)[list(columns)].mean().reset_index()


def average_over_all(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Average platforms of all sizes within each replicate."""
    return frame[["replicate"]].assign(**columns).dropna().groupby("replicate").mean().reset_index()


def _points_by_kind(
    frames: Frames, average: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Estimate averages of each kind of platforms, at every K where they have one."""
    parts = []
    for kind, frame in frames.items():
        table = average(frame).assign(kind=kind)
        parts.append(points(table, ["kind", *table.columns.intersection(["clusters"])]))
    return pd.concat(parts, ignore_index=True)


def _estimate_shares(
    frames: Frames, what: str, is_case: Callable[[pd.DataFrame], pd.Series]
) -> pd.DataFrame:
    """Estimate the share of platforms of each kind that meet a condition."""
    table = _points_by_kind(
        frames, lambda frame: average_over_all(frame, {what: is_case(frame).astype(float)})
    )
    stratum = ["clusters", "connectivity", "replicate"]
    count = {
        kind: len(frame[frame.columns.intersection(stratum)].drop_duplicates())
        for kind, frame in frames.items()
    }
    return with_exact_bounds(table, table["kind"].map(count))


def _count_cases(
    frames: Frames, what: str, is_case: Callable[[pd.DataFrame], pd.Series]
) -> pd.DataFrame:
    """Count the platforms of each kind that meet a condition: their share, with exact bounds."""
    rows = [
        {"what": what, "kind": kind, "estimate": is_case(frame).mean(), "n": len(frame)}
        for kind, frame in frames.items()
        if len(frame)
    ]
    table = pd.DataFrame(rows, columns=["what", "kind", "estimate", "n"])
    return name_points(mark_exact(table.assign(total=table["n"])), ["what", "kind"])


def split_by_kind(vertices: pd.DataFrame) -> Frames:
    """Return the rows of each kind of platforms."""
    return {str(kind): rows for kind, rows in vertices.groupby("kind", sort=False)}


def lead_by_size(frame: pd.DataFrame, method: str = "LPRG", rival: str = "G") -> pd.DataFrame:
    """Return the ratio of one method minus that of another on the same platforms, at every K."""
    return average_by_size(frame, {f"{method} - {rival}": frame[method] - frame[rival]})


def _estimate_falls(table: pd.DataFrame) -> pd.DataFrame:
    """Estimate by how much columns fall from the least K to the largest."""
    return trend(-table.set_index(["clusters", "replicate"]), "clusters", "fall of {what} over K")


# ------------------------------------------------------------------ G and LPRG (6.2.1)


@measures("steady-state-2a")
def share_where_greedy_leads(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of Tiers platforms on which G is better than LPRG; ties do not count."""
    return _estimate_shares(
        {"Tiers": tiers}, "G > LPRG", lambda frame: frame["G"] > frame["LPRG"] + OBJECTIVE_TIE
    )


@measures("steady-state-2b")
def share_where_greedy_is_as_good(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of Tiers platforms on which G is at least as good as LPRG."""
    return _estimate_shares(
        {"Tiers": tiers}, "G >= LPRG", lambda frame: frame["G"] >= frame["LPRG"] - OBJECTIVE_TIE
    )


def mean_ratio(frame: pd.DataFrame, method: str, rival: str) -> pd.DataFrame:
    """Estimate the mean of a ratio over platforms, where its denominator is above 0.

    A single platform can dominate such a mean: its interval is bootstrapped (BCa), and the median
    and the largest ratio stand beside it. Random platforms with the same numbers of Table 2 are
    resampled together.
    """
    from scipy.stats import bootstrap  # slow to load

    there = frame[frame[rival] > 0].reset_index(drop=True)
    means = ratios = there[method] / there[rival]
    if "connectivity" in there:
        means = ratios.groupby([there["replicate"], there["connectivity"]]).mean()
    row: dict[str, Any] = {"point": f"{method}/{rival}", "estimate": means.mean(), "n": len(means)}
    low = high = math.nan
    if means.nunique() > 1:
        low, high = bootstrap((means,), np.mean, rng=0).confidence_interval
        largest = int(ratios.argmax())
        platform, rest = there.iloc[largest], ratios.drop(largest)
        where = f"K {platform['clusters']:.0f}, replicate {platform['replicate']:.0f}"
        row |= {"median": ratios.median(), "outlier": ratios.max(), "outlier_at": where}
        row |= {"mean_without": rest.mean()}
    return pd.DataFrame([{**row, "low": low, "high": high}])


@measures("steady-state-2c")
def mean_of_greedy_over_lprg(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of G/LPRG on Tiers platforms."""
    return mean_ratio(tiers, "G", "LPRG")


@measures("steady-state-4a")
def mean_of_lprg_over_greedy(random: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of LPRG/G on random platforms."""
    return mean_ratio(random, "LPRG", "G")


@measures("steady-state-3a")
def greedy_over_lprg(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of G over the mean of LPRG on Tiers platforms of all sizes, less 1."""
    table = average_over_all(tiers, {name: tiers[name] for name in RIVALS_OF_LPRR})
    return name_points(ratio(table, "G", "LPRG", [], less=1), [], "G over LPRG")


@measures("steady-state-3b")
def falls_over_size(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return by how much G and LPRG fall from the bound as K grows, on Tiers platforms."""
    return _estimate_falls(average_by_size(tiers, {name: tiers[name] for name in RIVALS_OF_LPRR}))


@measures("steady-state-3c")
def share_where_greedy_is_slightly_better(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the K at which G is 5 to 10 % above LPRG on average."""
    means = tiers.groupby("clusters")[list(RIVALS_OF_LPRR)].mean()
    return _count_cases(
        {"Tiers": means},
        "K with G 5 to 10 % above",
        lambda frame: (frame["G"] / frame["LPRG"]).between(1.05, 1.1),
    )


@measures("steady-state-15")
def share_where_greedy_trails(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of Tiers platforms on which G is worse than LPRG."""
    return _count_cases(
        {"Tiers": tiers}, "LPRG > G", lambda frame: frame["LPRG"] > frame["G"] + OBJECTIVE_TIE
    )


@measures("steady-state-16")
def mean_lead_of_greedy(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the mean lead of G over LPRG on Tiers platforms."""
    return points(average_over_all(tiers, {"G - LPRG": tiers["G"] - tiers["LPRG"]}))


@measures("steady-state-4b")
def lead_of_greedy_for_few_clusters(random: pd.DataFrame) -> pd.DataFrame:
    """Return the lead of G over LPRG on the smallest random platforms."""
    smallest = random[random["clusters"] == random["clusters"].min()]
    return points(lead_by_size(smallest, "G", "LPRG"), ["clusters"])


@measures("steady-state-4c")
def lead_of_lprg_for_many_clusters(random: pd.DataFrame) -> pd.DataFrame:
    """Return the lead of LPRG over G beyond the size where it is said to win."""
    return points(lead_by_size(random[random["clusters"] > LPRG_WINS_BEYOND]), ["clusters"])


@measures("steady-state-4d")
def growth_of_lead_over_size(random: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the lead of LPRG over G grows from the least K to the largest."""
    return trend(lead_by_size(random).set_index(["clusters", "replicate"]), "clusters")


@measures("steady-state-5")
def growth_of_lead_over_heterogeneity(spread: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the lead of LPRG over G grows with heterogeneity, at every K."""
    frame = spread.assign(lead=spread["LPRG"] - spread["G"])
    means = frame.groupby(["heterogeneity", "clusters", "replicate"])[["lead"]].mean()
    return trend(means, "heterogeneity")


# ------------------------------------------------------------------ LPRR (6.2.2, 6.2.4)


def _leads_of_lprr(
    tiers: pd.DataFrame, random: pd.DataFrame, value: Callable[[Any], Any]
) -> pd.DataFrame:
    """Return a value of the lead of LPRR over either rival, on all platforms of a kind."""
    there = {
        kind: frame.dropna(subset=["LPRR"])
        for kind, frame in {"Tiers": tiers, "random": random}.items()
    }
    table = _points_by_kind(
        there,
        lambda frame: average_over_all(
            frame,
            {f"LPRR - {rival}": value(frame["LPRR"] - frame[rival]) for rival in RIVALS_OF_LPRR},
        ),
    )
    return table.assign(group=table["kind"])


@measures("steady-state-6a")
def mean_lead_of_lprr(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the mean lead of LPRR over each rival, on each kind of platforms."""
    return _leads_of_lprr(tiers, random, lambda lead: lead)


@measures("steady-state-6d")
def wins_minus_losses_of_lprr(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the share of platforms on which LPRR leads minus that on which it trails."""
    return _leads_of_lprr(
        tiers, random, lambda lead: np.sign(lead.where(lead.abs() > OBJECTIVE_TIE, 0.0))
    )


@measures("steady-state-6e")
def share_where_lprr_trails(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the share of platforms on which LPRR is worse than the better of G and LPRG."""
    frames = {"Tiers": tiers, "random": random}
    return _count_cases(
        {kind: frame.dropna(subset=["LPRR"]) for kind, frame in frames.items()},
        "G or LPRG > LPRR",
        lambda frame: frame[list(RIVALS_OF_LPRR)].max(axis=1) > frame["LPRR"] + OBJECTIVE_TIE,
    )


@measures("steady-state-17")
def lprr_on_random_over_tiers(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the mean ratio of LPRR on random platforms minus that on Tiers platforms.

    The samples are independent; their replicates are paired in order, as far as there are both.
    """
    by_kind = [
        average_over_all(frame, {"LPRR": frame["LPRR"]})["LPRR"] for frame in (tiers, random)
    ]
    more = (by_kind[1] - by_kind[0]).dropna()
    return points(more.to_frame("random - Tiers").rename_axis("replicate"))


@measures("steady-state-6b")
def gap_of_lprr_to_bound(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return how far LPRR stays below the bound on Tiers platforms, by class of K."""
    small = tiers[tiers["clusters"] <= LARGEST_LPRR_SIZE]
    return points(average_by_class(small, {"1 - LPRR": 1 - small["LPRR"]}), ["clusters"])


@measures("steady-state-6c")
def share_where_lprr_reaches_bound(random: pd.DataFrame) -> pd.DataFrame:
    """Return the share of random platforms on which LPRR reaches the bound."""
    there = random.dropna(subset=["LPRR"])
    return _estimate_shares(
        {"random": there}, "LPRR", lambda frame: frame["LPRR"] >= 1 - OBJECTIVE_TIE
    )


@measures("steady-state-7b")
def programs_of_lprr(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return how many programs LPRR solves, over K squared."""
    return _points_by_kind(
        {"Tiers": tiers, "random": random},
        lambda frame: average_by_size(
            frame, {"programs / K^2": frame["programs"] / frame["clusters"] ** 2}
        ),
    )


# ------------------------------------------------------------------ what rounding does (6.2.3)


@measures("steady-state-1a")
def share_where_lpr_reaches_bound(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the share of platforms on which LPR reaches the bound."""
    return _count_cases(
        {"Tiers": tiers, "random": random},
        "LPR at the bound",
        lambda frame: frame["LPR"] >= 1 - OBJECTIVE_TIE,
    )


@measures("steady-state-1b")
def share_where_lpr_is_zero(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return the share of cases in which LPR gives some application nothing."""
    return _estimate_shares(
        split_by_kind(vertices), "LPR = 0", lambda frame: frame["LPR"] <= OBJECTIVE_TIE
    )


@measures("steady-state-9a")
def connections_lost_by_rounding(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return the mean part of the relaxed connections that LPR does not open."""
    return _points_by_kind(
        split_by_kind(vertices), lambda frame: average_by_class(frame, {"lost": frame["lost"]})
    )


@measures("steady-state-9b")
def share_where_much_is_lost(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return the share of cases in which LPR does not open a significant part."""
    frames = split_by_kind(vertices)
    there = {kind: frame.dropna(subset=["lost"]) for kind, frame in frames.items()}
    return _estimate_shares(
        there, f"more than {SIGNIFICANT_LOSS:.0%}", lambda frame: frame["lost"] > SIGNIFICANT_LOSS
    )


def _where_lprg_loses_minus_elsewhere(vertices: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the mean over vertices where G beats LPRG minus that elsewhere, at one K."""
    there = split_by_kind(vertices)["Tiers"].dropna(subset=[column])
    outcome = np.where(there["G"] > there["LPRG"] + OBJECTIVE_TIE, "loses", "not")
    mean = there.groupby(["replicate", "clusters", outcome])[column].mean().unstack()
    mean = mean.reindex(columns=["loses", "not"]).dropna()
    difference = (mean["loses"] - mean["not"]).groupby("replicate").mean()
    return points(difference.to_frame(column))


@measures("steady-state-10a")
def small_routes_where_lprg_loses(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return how many more routes carry less than one connection where LPRG loses."""
    return _where_lprg_loses_minus_elsewhere(vertices, "below")


@measures("steady-state-10b")
def own_use_where_lprg_loses(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return how much more of the free speed the better-off owners take where LPRG loses."""
    return _where_lprg_loses_minus_elsewhere(vertices, "own_use")


@measures("steady-state-11")
def fall_of_lprg_on_random(vertices: pd.DataFrame) -> pd.DataFrame:
    """Return by how much LPRG falls from the bound as K grows, on random platforms."""
    random = split_by_kind(vertices)["random"]
    return _estimate_falls(average_by_size(random, {"LPRG": random["LPRG"]}))


# ------------------------------------------------------------------ networks and numbers


def _lead_of_greedy(crossed: pd.DataFrame) -> pd.DataFrame:
    """Return G minus LPRG: rows numbers, clusters, replicate; columns structures."""
    frame = crossed.assign(lead=crossed["G"] - crossed["LPRG"])
    return pivot_policies(frame, ["numbers", "clusters"], "lead", "structure")


@measures("steady-state-12a", readings=False)
def structure_helps_greedy(crossed: pd.DataFrame) -> pd.DataFrame:
    """Return the lead of G over LPRG on a Tiers-like network minus that on a random graph."""
    table = _lead_of_greedy(crossed)
    more = table[list(CONNECTIVITY)].rsub(table["Tiers-like"], axis=0)
    return points(more.groupby(["numbers", "replicate"]).mean(), ["numbers"])


@measures("steady-state-12b", readings=False)
def structure_decides(crossed: pd.DataFrame) -> pd.DataFrame:
    """Return the effect of the network on that lead minus the effect of the numbers."""
    table = _lead_of_greedy(crossed)
    network = table["Tiers-like"] - table[list(CONNECTIVITY)].mean(axis=1)
    sides = {
        str(side): rows.mean(axis=1).groupby("replicate").mean()
        for side, rows in table.groupby(level="numbers")
    }
    numbers = sides["Table 1"] - sides["Table 2"]
    structure = network.groupby("replicate").mean()
    effects = structure * np.sign(structure.mean()) - numbers * np.sign(numbers.mean())
    return points(effects.to_frame("network minus numbers"))


# ------------------------------------------------------------------ optimum; start-up


def _gap_of_best(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the part of the optimum that the best heuristic of a K lacks, by class of K."""
    there = frame.dropna(subset=["MILP"])
    gaps = 1 - there[list(PAPER_S_HEURISTICS)].div(there["MILP"], axis=0)
    table = there[["clusters", "replicate"]].join(gaps)
    best = table.groupby("clusters")[list(PAPER_S_HEURISTICS)].mean().idxmin(axis=1)
    least = [row[best[row["clusters"]]] for _, row in table.iterrows()]
    column = pd.Series(least, index=table.index, dtype=float)
    return average_by_class(table, {"1 - best/optimum": column})


@measures("steady-state-13")
def gap_of_best_heuristic(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return how far the best heuristic stays below the optimum, by kind and class of K."""
    return _points_by_kind({"Tiers": tiers, "random": random}, _gap_of_best)


@measures("steady-state-14", readings=False)
def cost_of_start_up(ends: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the load that start-up and clean-up cost over many periods."""
    many = ends[ends["count"] == MANY_PERIODS]
    return mark_exact(points(many.groupby(["kind", "replicate"])[["ends"]].mean(), ["kind"]))

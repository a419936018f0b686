"""Paper S: its heuristics, the switches of its readings, and the measures of its claims.

Source: L. Marchal, Y. Yang, H. Casanova, Y. Robert, "Steady-State Scheduling of Multiple Divisible
Load Applications on Wide-Area Distributed Computing Platforms", IJHPCA 20(3), 2006.

The experiments are cells of notebooks/40-steady-state.ipynb. The table at the end says how each
claim is measured on the frames that they leave. A replicate is one platform of each stratum.

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
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.reading import find_touched
from dlsim.steady import METHODS, Reading, topology
from dlsim.steady import SWITCHES as ENGINE_SWITCHES
from dlsim.steady.samples import CONNECTIVITY
from dlsim.study.measure import (
    mark_exact,
    measure_claims,
    name_points,
    on,
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


#: What identifies what was run of a frame; a platform has one row per vertex in `vertices`.
KEYS = {
    "tiers": ("clusters", "replicate"),
    "random": ("clusters", "connectivity", "replicate"),
    "vertices": ("kind", "clusters", "connectivity", "replicate"),
    "spread": ("heterogeneity", "clusters", "connectivity", "replicate"),
}


def touched(switch: str, frames: object = None) -> list[str]:
    """Return the paper's heuristics whose results a switch can change."""
    return find_touched(switch, {name: METHODS[name] for name in PAPER_S_HEURISTICS}, Reading)


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

#: Expressions of the columns of a frame by the name of their value, such as "G - LPRG".
Expressions = Mapping[str, str]
#: The names of both kinds of platforms in the names of points.
KINDS_OF_PLATFORMS = ("Tiers", "random")


# ------------------------------------------------------------------ platforms put together


def evaluate(frame: pd.DataFrame, values: Expressions) -> pd.DataFrame:
    """Evaluate expressions of the columns; ``@tie`` is by how much equal ratios may differ."""
    tie = {"tie": OBJECTIVE_TIE}
    columns: dict[str, Any] = {
        name: frame.eval(text, engine="python", local_dict=tie) for name, text in values.items()
    }
    return frame[frame.columns.intersection(["clusters", "replicate"])].assign(**columns)


def average_by_size(frame: pd.DataFrame, values: Expressions) -> pd.DataFrame:
    """Average platforms of one size within each replicate, whatever their connectivity."""
    there = evaluate(frame, values).dropna(subset=list(values))
    return there.groupby(["clusters", "replicate"])[list(values)].mean().reset_index()


def average_by_class(frame: pd.DataFrame, values: Expressions) -> pd.DataFrame:
    """Average platforms of neighbouring sizes within each replicate."""
    table = average_by_size(frame, values)
    classes = np.array_split(sorted(table["clusters"].unique()), SIZE_CLASSES)
    names: dict[Any, str] = {}
    for sizes in filter(len, classes):  # with few sizes a class may be empty
        low, high = sizes[0], sizes[-1]
        name = f"{low} to {high}" if low < high else str(low)
        names |= dict.fromkeys(sizes, name)
    keys = [table["clusters"].map(names), "replicate"]
    return table.groupby(keys, sort=False)[list(values)].mean().reset_index()


def average_over_all(frame: pd.DataFrame, values: Expressions) -> pd.DataFrame:
    """Average platforms of all sizes within each replicate."""
    there = evaluate(frame, values)[["replicate", *values]].dropna()
    return there.groupby("replicate").mean().reset_index()


def lead_by_size(frame: pd.DataFrame, method: str, rival: str) -> pd.DataFrame:
    """Return the ratio of one method minus that of another on the same platforms, at every K."""
    return average_by_size(frame, {f"{method} - {rival}": f"{method} - {rival}"})


def by_kind(
    frames: Sequence[pd.DataFrame], kind: str = "", needs: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the rows of each kind of platforms that have the columns `needs`.

    Two frames are those of Tiers and of random platforms; one is of the kind that is named, or has
    a column kind.
    """
    if len(frames) == len(KINDS_OF_PLATFORMS):
        parts = dict(zip(KINDS_OF_PLATFORMS, frames, strict=True))
    elif kind:
        parts = {kind: frames[0]}
    else:
        parts = {str(one): rows for one, rows in frames[0].groupby("kind", sort=False)}
    return {name: rows.dropna(subset=list(needs)) for name, rows in parts.items()}


# ------------------------------------------------------------------ measures of many claims


def means(
    *frames: pd.DataFrame,
    values: Expressions,
    average: Callable[[pd.DataFrame, Expressions], pd.DataFrame] = average_over_all,
    **kinds: Any,
) -> pd.DataFrame:
    """Estimate averages of expressions for each kind of platforms, at every K where they have one.

    The members of a kind count as one where there are several values. `kinds` are the further
    arguments of `by_kind`.
    """
    parts = []
    for kind, frame in by_kind(frames, **kinds).items():
        table = average(frame, values).assign(kind=kind)
        parts.append(points(table, ["kind", *table.columns.intersection(["clusters"])]))
    found = pd.concat(parts, ignore_index=True)
    return found.assign(group=found["kind"]) if len(values) > 1 else found


def shares_of_platforms(*frames: pd.DataFrame, name: str, case: str, **kinds: Any) -> pd.DataFrame:
    """Estimate the share of platforms of each kind that are a case, over replicates."""
    table = means(*frames, values={name: f"1.0 * ({case})"}, **kinds)
    stratum = ["clusters", "connectivity", "replicate"]
    count = {
        kind: len(frame[frame.columns.intersection(stratum)].drop_duplicates())
        for kind, frame in by_kind(frames, **kinds).items()
    }
    return with_exact_bounds(table, table["kind"].map(count))


def counts(*frames: pd.DataFrame, name: str, case: str, **kinds: Any) -> pd.DataFrame:
    """Count the platforms of each kind that are a case: their share, with exact bounds."""
    rows = [
        {
            "what": name,
            "kind": kind,
            "estimate": evaluate(frame, {"is": case})["is"].mean(),
            "n": len(frame),
        }
        for kind, frame in by_kind(frames, **kinds).items()
        if len(frame)
    ]
    table = pd.DataFrame(rows, columns=["what", "kind", "estimate", "n"])
    return name_points(mark_exact(table.assign(total=table["n"])), ["what", "kind"])


def means_at_sizes(
    frame: pd.DataFrame,
    values: Expressions,
    where: str,
    average: Callable[[pd.DataFrame, Expressions], pd.DataFrame] = average_by_size,
) -> pd.DataFrame:
    """Estimate averages at the sizes of platforms that a condition names."""
    return points(average(frame.query(where, engine="python"), values), ["clusters"])


def trend_over_size(
    frame: pd.DataFrame, values: Expressions, text: str = "{what} over {over}", kind: str = ""
) -> pd.DataFrame:
    """Estimate by how much averages rise from the least K to the largest."""
    rows = by_kind([frame])[kind] if kind else frame
    table = average_by_size(rows, values).set_index(["clusters", "replicate"])
    return trend(table, "clusters", text)


# ------------------------------------------------------------------ measures of single claims


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


def greedy_over_lprg(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of G over the mean of LPRG on Tiers platforms of all sizes, less 1."""
    table = average_over_all(tiers, {name: name for name in RIVALS_OF_LPRR})
    return name_points(ratio(table, "G", "LPRG", [], less=1), [], "G over LPRG")


def mean_lead_of_greedy(tiers: pd.DataFrame) -> pd.DataFrame:
    """Return the mean lead of G over LPRG on Tiers platforms."""
    return points(average_over_all(tiers, {"G - LPRG": "G - LPRG"}))


def share_of_sizes(tiers: pd.DataFrame, name: str, case: str) -> pd.DataFrame:
    """Return the share of the K at which the means of the methods are a case."""
    at_sizes = tiers.groupby("clusters")[list(RIVALS_OF_LPRR)].mean()
    return counts(at_sizes, name=name, case=case, kind="Tiers")


def growth_of_lead_over_heterogeneity(spread: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the lead of LPRG over G grows with heterogeneity, at every K."""
    frame = spread.assign(lead=spread["LPRG"] - spread["G"])
    means = frame.groupby(["heterogeneity", "clusters", "replicate"])[["lead"]].mean()
    return trend(means, "heterogeneity")


def lprr_on_random_over_tiers(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return the mean ratio of LPRR on random platforms minus that on Tiers platforms.

    The samples are independent; their replicates are paired in order, as far as there are both.
    """
    ratios = [average_over_all(frame, {"LPRR": "LPRR"})["LPRR"] for frame in (tiers, random)]
    more = (ratios[1] - ratios[0]).dropna()
    return points(more.to_frame("random - Tiers").rename_axis("replicate"))


def where_lprg_loses(vertices: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the mean over vertices where G beats LPRG minus that elsewhere, at one K."""
    there = by_kind([vertices])["Tiers"].dropna(subset=[column])
    outcome = np.where(there["G"] > there["LPRG"] + OBJECTIVE_TIE, "loses", "not")
    mean = there.groupby(["replicate", "clusters", outcome])[column].mean().unstack()
    mean = mean.reindex(columns=["loses", "not"]).dropna()
    difference = (mean["loses"] - mean["not"]).groupby("replicate").mean()
    return points(difference.to_frame(column))


def _lead_of_greedy(crossed: pd.DataFrame) -> pd.DataFrame:
    """Return G minus LPRG: rows numbers, clusters, replicate; columns structures."""
    frame = crossed.assign(lead=crossed["G"] - crossed["LPRG"])
    return pivot_policies(frame, ["numbers", "clusters"], "lead", "structure")


def structure_helps_greedy(crossed: pd.DataFrame) -> pd.DataFrame:
    """Return the lead of G over LPRG on a Tiers-like network minus that on a random graph."""
    table = _lead_of_greedy(crossed)
    more = table[list(CONNECTIVITY)].rsub(table["Tiers-like"], axis=0)
    return points(more.groupby(["numbers", "replicate"]).mean(), ["numbers"])


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


def _gap_of_best(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the part of the optimum that the best heuristic of a K lacks, by class of K."""
    there = frame.dropna(subset=["MILP"])
    gaps = 1 - there[list(PAPER_S_HEURISTICS)].div(there["MILP"], axis=0)
    table = there[["clusters", "replicate"]].join(gaps)
    best = table.groupby("clusters")[list(PAPER_S_HEURISTICS)].mean().idxmin(axis=1)
    least = [row[best[row["clusters"]]] for _, row in table.iterrows()]
    table["gap"] = pd.Series(least, index=table.index, dtype=float)
    return average_by_class(table, {"1 - best/optimum": "gap"})


def gap_of_best_heuristic(tiers: pd.DataFrame, random: pd.DataFrame) -> pd.DataFrame:
    """Return how far the best heuristic stays below the optimum, by kind and class of K."""
    parts = [
        points(_gap_of_best(frame).assign(kind=kind), ["kind", "clusters"])
        for kind, frame in by_kind([tiers, random]).items()
    ]
    return pd.concat(parts, ignore_index=True)


def cost_of_start_up(ends: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the load that start-up and clean-up cost over many periods."""
    many = ends[ends["count"] == MANY_PERIODS]
    return mark_exact(points(many.groupby(["kind", "replicate"])[["ends"]].mean(), ["kind"]))


# ------------------------------------------------------------------ the claims

_FALL = "fall of {what} over K"
_LEADS_OF_LPRR = {f"LPRR - {rival}": f"LPRR - {rival}" for rival in RIVALS_OF_LPRR}
_WINS_OF_LPRR = {
    name: f"1.0 * ({lead} > @tie) - 1.0 * ({lead} < -@tie)" for name, lead in _LEADS_OF_LPRR.items()
}

measure_claims(
    "steady-state",
    {
        "1a": on("tiers random", counts, name="LPR at the bound", case="LPR >= 1 - @tie"),
        "1b": on("vertices", shares_of_platforms, name="LPR = 0", case="LPR <= @tie"),
        "2a": on(
            "tiers", shares_of_platforms, kind="Tiers", name="G > LPRG", case="G > LPRG + @tie"
        ),
        "2b": on(
            "tiers", shares_of_platforms, kind="Tiers", name="G >= LPRG", case="G >= LPRG - @tie"
        ),
        "2c": on("tiers", mean_ratio, method="G", rival="LPRG"),
        "3a": on("tiers", greedy_over_lprg),
        "3b": on("tiers", trend_over_size, values={"G": "-G", "LPRG": "-LPRG"}, text=_FALL),
        "3c": on(
            "tiers", share_of_sizes, name="K with G 5 to 10 % above", case="1.05 <= G / LPRG <= 1.1"
        ),
        "4a": on("random", mean_ratio, method="LPRG", rival="G"),
        "4b": on(
            "random",
            means_at_sizes,
            values={"G - LPRG": "G - LPRG"},
            where="clusters == clusters.min()",
        ),
        "4c": on(
            "random",
            means_at_sizes,
            values={"LPRG - G": "LPRG - G"},
            where=f"clusters > {LPRG_WINS_BEYOND}",
        ),
        "4d": on("random", trend_over_size, values={"LPRG - G": "LPRG - G"}),
        "5": on("spread", growth_of_lead_over_heterogeneity),
        "6a": on("tiers random", means, values=_LEADS_OF_LPRR, needs=["LPRR"]),
        "6b": on(
            "tiers",
            means_at_sizes,
            values={"1 - LPRR": "1 - LPRR"},
            where=f"clusters <= {LARGEST_LPRR_SIZE}",
            average=average_by_class,
        ),
        "6c": on(
            "random",
            shares_of_platforms,
            kind="random",
            name="LPRR",
            case="LPRR >= 1 - @tie",
            needs=["LPRR"],
        ),
        "6d": on("tiers random", means, values=_WINS_OF_LPRR, needs=["LPRR"]),
        "6e": on(
            "tiers random",
            counts,
            name="G or LPRG > LPRR",
            case="(G > LPRR + @tie) | (LPRG > LPRR + @tie)",
            needs=["LPRR"],
        ),
        "7b": on(
            "tiers random",
            means,
            values={"programs / K^2": "programs / clusters ** 2"},
            average=average_by_size,
        ),
        "9a": on("vertices", means, values={"lost": "lost"}, average=average_by_class),
        "9b": on(
            "vertices",
            shares_of_platforms,
            name=f"more than {SIGNIFICANT_LOSS:.0%}",
            case=f"lost > {SIGNIFICANT_LOSS}",
            needs=["lost"],
        ),
        "10a": on("vertices", where_lprg_loses, column="below"),
        "10b": on("vertices", where_lprg_loses, column="own_use"),
        "11": on("vertices", trend_over_size, values={"LPRG": "-LPRG"}, text=_FALL, kind="random"),
        "12a": on("crossed", structure_helps_greedy, readings=False),
        "12b": on("crossed", structure_decides, readings=False),
        "13": on("tiers random", gap_of_best_heuristic),
        "14": on("ends", cost_of_start_up, readings=False),
        "15": on("tiers", counts, kind="Tiers", name="LPRG > G", case="LPRG > G + @tie"),
        "16": on("tiers", mean_lead_of_greedy),
        "17": on("tiers random", lprr_on_random_over_tiers),
    },
)

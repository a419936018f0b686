"""Paper M: its policies, the switches of its readings, and the measures of its claims.

Source: X. Lin, Y. Lu, J. Deogun, S. Goddard, "Real-Time Divisible Load Scheduling for Cluster
Computing", technical report UNL-CSE 2005-0014.

The experiments are cells of notebooks/20-mcdf.ipynb. The table at the end says how each claim is
measured on the frames that they leave:

main
    Figures 4 to 9, one row per load, set-up cost (setup), replicate and policy: ratio (share of
    refused tasks; of late tasks for a policy that refuses none), delay_growth, fewer, tasks.
ratios
    Figure 10, one row per mode (the cost that is varied), value (of Cms/Cps), load, replicate
    and policy: ratio.
orders, newcomers
    One row per queue (excess, beaten); one row per load and replicate (cheap, dear).
doubled, half
    As ``main`` with the parameter that is doubled in place of setup; at half the length of a run.
"""

from itertools import combinations

import numpy as np
import pandas as pd

from dlsim.reading import find_touched
from dlsim.realtime import workload
from dlsim.realtime.model import POLICIES as ENGINE_POLICIES
from dlsim.realtime.model import SWITCHES_M, Reading
from dlsim.study.claims import LEVEL
from dlsim.study.measure import (
    difference_to,
    differences,
    join_points,
    mark_exact,
    measure_claims,
    on,
    pivot_policies,
    points,
    slope_over,
    trend,
    with_exact_bounds,
    with_medians,
)
from dlsim.study.stats import INTERVAL_ENDS, family

#: Policies with admission control, in the order of the paper's legends.
WITH_ADMISSION = ("MCDF", "FIFOMN", "EDFMN", "FIFOAN", "EDFAN")
#: Policies that refuse no task, and are judged by missed deadlines.
WITHOUT_ADMISSION = ("FIFOANNA", "EDFANNA")
POLICIES = (*WITH_ADMISSION, *WITHOUT_ADMISSION)
RIVALS_OF_MCDF = tuple(name for name in WITH_ADMISSION if name != "MCDF")
ALL_NODES = ("FIFOAN", "EDFAN")
FEWEST_NODES = ("FIFOMN", "EDFMN")
#: Switches of the engine, then of the workload, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**SWITCHES_M, **workload.SWITCHES["mcdf"]}
#: Those that change nothing where there are no set-up costs.
SWITCHES_OF_SETUP = ("an_nodes", "setup")


#: What identifies a row of the frames of which a reading may run a part.
KEYS = {
    "main": ("load", "setup", "policy", "replicate"),
    "half": ("load", "setup", "policy", "replicate"),
    "ratios": ("mode", "value", "load", "policy", "replicate"),
    "doubled": ("parameter", "load", "policy", "replicate"),
}


def touched(switch: str, frames: object = None) -> list[str]:
    """Return the policies of the paper whose results a switch can change."""
    return find_touched(switch, {name: ENGINE_POLICIES[name] for name in POLICIES}, Reading)


# ------------------------------------------------------------------ parts of the frames


def ratios_without_setup(main: pd.DataFrame, column: str = "ratio") -> pd.DataFrame:
    """Return a column without set-up costs: a column per policy, a row per load and replicate."""
    return pivot_policies(main[main["setup"] == 0], ["load"], column)


def ratios_with_setup(main: pd.DataFrame, column: str = "ratio") -> pd.DataFrame:
    """Return a column with set-up costs: a row per set-up cost, load and replicate."""
    rows = main[(main["setup"] > 0) & main["policy"].isin(WITH_ADMISSION)]
    return pivot_policies(rows, ["setup", "load"], column)


def _decided_by_best(values: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return points that are judged place by place: the rival that refuses fewest decides."""
    return points(values, by).assign(group=lambda table: table.groupby(by).ngroup())


# ------------------------------------------------------------------ Figures 4 and 5


def lead_over_all(main: pd.DataFrame) -> pd.DataFrame:
    """Return the difference between each of the six other policies and MCDF at every load."""
    rivals = (*RIVALS_OF_MCDF, *WITHOUT_ADMISSION)
    return _decided_by_best(difference_to(ratios_without_setup(main), "MCDF", rivals), ["load"])


def without_admission(main: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of the policies that refuse no task: late tasks, or growth of delays."""
    table = ratios_without_setup(main, column)[list(WITHOUT_ADMISSION)]
    return with_medians(points(table, ["load"]))


def nearer_with_all_nodes(main: pd.DataFrame, best: bool) -> pd.DataFrame:
    """Return how much nearer to MCDF a policy is with all nodes than with the fewest nodes.

    FIFO is compared with FIFO and EDF with EDF; or the best policy of each kind with the other.
    """
    far = difference_to(ratios_without_setup(main), "MCDF", RIVALS_OF_MCDF).abs()
    fewest, every = far[list(FEWEST_NODES)].set_axis(list(ALL_NODES), axis=1), far[list(ALL_NODES)]
    if best:
        return points((fewest.min(axis=1) - every.min(axis=1)).to_frame("nearest"), ["load"])
    return points(fewest - every, ["load"])


def decrement(main: pd.DataFrame, relative: bool) -> pd.DataFrame:
    """Return how much less MCDF refuses than FIFOAN and EDFAN, averaged over the loads."""
    mean = ratios_without_setup(main).groupby("replicate").mean()
    less = difference_to(mean, "MCDF", ALL_NODES)
    return points(less / mean[list(ALL_NODES)] if relative else less)


def estimate_leads(frame: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Return how much more rivals refuse than MCDF at every load, with the claims' intervals."""
    table = points(difference_to(pivot_policies(frame, ["load"]), "MCDF", RIVALS_OF_MCDF), ["load"])
    return table.assign(**family(list(table["values"]), level)[INTERVAL_ENDS])


# ------------------------------------------------------------------ Figures 6 to 9


def lead_with_setup(main: pd.DataFrame) -> pd.DataFrame:
    """Return how much more each rival refuses than MCDF at every set-up cost and load."""
    table = difference_to(ratios_with_setup(main), "MCDF", RIVALS_OF_MCDF)
    return _decided_by_best(table, ["setup", "load"])


def _trend_over_setup(table: pd.DataFrame) -> pd.DataFrame:
    """Return the trend over the set-up costs of the mean over the loads."""
    return trend(table.groupby(["setup", "replicate"]).mean(), "setup", "{what}")


def growth_of_lead(main: pd.DataFrame) -> pd.DataFrame:
    """Return MCDF's lead over each rival, and how far it rises over the set-up costs."""
    lead = difference_to(ratios_with_setup(main), "MCDF", RIVALS_OF_MCDF)
    mean = points(lead.groupby("replicate").mean())
    parts = {"rise of the lead": _trend_over_setup(lead), "mean lead": mean}
    table = join_points(parts)
    return table.assign(group=table["what"])


def growth_of_rivals(main: pd.DataFrame) -> pd.DataFrame:
    """Return how far each rival's reject ratio rises over the set-up costs."""
    return _trend_over_setup(ratios_with_setup(main)[list(RIVALS_OF_MCDF)])


def change_between_setups(main: pd.DataFrame) -> pd.DataFrame:
    """Return by how much MCDF's reject ratio differs at any two set-up costs, at every load."""
    rows = main[(main["setup"] > 0) & (main["policy"] == "MCDF")]
    table = pivot_policies(rows, ["load"], columns="setup")
    pairs = {f"setup {b:g} against setup {a:g}": (b, a) for a, b in combinations(table, 2)}
    return points(differences(table, pairs), ["load"])


def tasks_with_fewer_nodes(main: pd.DataFrame) -> pd.DataFrame:
    """Return the share of tasks that are fastest on fewer than all nodes."""
    table = ratios_with_setup(main, "fewer")[["MCDF"]]
    means = points(table.groupby(["setup", "replicate"]).mean(), ["setup"])
    tasks = main[main["policy"] == "MCDF"].groupby("setup")["tasks"].sum()  # independent sizes
    return with_exact_bounds(means, means["setup"].map(tasks))


# ------------------------------------------------------------------ Figure 10


def _by_ratio(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return MCDF's reject ratio in Figure 10, one column per cost that is varied."""
    rows = ratios[ratios["policy"] == "MCDF"]
    return pivot_policies(rows, ["value", "load"], columns="mode")


def sensitivity_to_load(
    ratios: pd.DataFrame, above: float = 0.0, most: float = np.inf
) -> pd.DataFrame:
    """Return how far MCDF's reject ratio rises over the loads, at ratios Cms/Cps of the costs."""
    table = trend(_by_ratio(ratios), "load", "{what}")
    return table[(table["value"] > above) & (table["value"] <= most)]


def fall_of_sensitivity(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return how far the sensitivity to the load falls over the ratios Cms/Cps."""
    return trend(0.0 - slope_over(_by_ratio(ratios), "load"), "value", "{what}")


def ranges_over_axes(main: pd.DataFrame, ratios: pd.DataFrame) -> pd.DataFrame:
    """Return the range of the reject ratio over load, set-up cost and Cms/Cps, per policy.

    An axis of which nothing was run is left out.
    """
    names = list(ratios["policy"].unique())
    rows = main[main["policy"].isin(names)]
    axes: dict[str, tuple[pd.DataFrame, list[str]]] = {
        "load": (ratios_without_setup(main), []),
        "set-up cost": (pivot_policies(rows, ["setup", "load"]), ["load"]),
        "Cms/Cps": (pivot_policies(ratios, ["mode", "value", "load"]), ["mode", "load"]),
    }
    parts = {}
    for axis, (table, others) in axes.items():
        if table.empty:  # no set-up cost of 0, or none above it
            continue
        groups = table.groupby([*others, "replicate"])
        parts[axis] = (groups.max() - groups.min()).groupby("replicate").mean()[names]
    return pd.concat(parts, names=["axis"])


def lead_in_stability(main: pd.DataFrame, ratios: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """Return each rival's range of the reject ratio over some axes minus MCDF's."""
    ranges = ranges_over_axes(main, ratios)
    some = ranges[ranges.index.get_level_values("axis").isin(axes)]
    return _decided_by_best(difference_to(some, "MCDF", RIVALS_OF_MCDF), ["axis"])


# ------------------------------------------------------------------ sections 4 to 6


def excess_of_rule(orders: pd.DataFrame) -> pd.DataFrame:
    """Return how much more MCDF's order costs than the cheapest; one queue refutes the claim."""
    words = {"excess": "mean excess", "beaten": "queues beaten"}
    table = orders.rename(columns=words).groupby("queue")[list(words.values())].mean()
    table = table.reset_index().melt("queue", var_name="what", value_name="estimate")
    return mark_exact(table.assign(point=table["what"] + ", queue " + table["queue"].astype(str)))


def newcomers_behind_cheap_plans(newcomers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of newcomers admitted behind the cheapest plan minus behind the dearest."""
    table = newcomers.set_index(["load", "replicate"])
    more = (table["cheap"] - table["dear"]).to_frame("more admitted")
    return points(more, ["load"])


def effects_of_doubling(doubled: pd.DataFrame) -> pd.DataFrame:
    """Return the change of the reject ratio when one parameter doubles, over the loads."""
    table = (
        pivot_policies(doubled, ["parameter", "load"]).groupby(["parameter", "replicate"]).mean()
    )
    base = table.xs("base", level="parameter")
    names = [name for name in doubled["parameter"].unique() if name != "base"]
    parts = {name: table.xs(name, level="parameter") - base for name in names}
    return pd.concat(parts, names=["parameter"])


def costs_against_others(doubled: pd.DataFrame) -> pd.DataFrame:
    """Return the effect of doubling Cms or Cps minus that of doubling another parameter."""
    table = effects_of_doubling(doubled)["MCDF"].abs().unstack("parameter")
    costs = ("Cms", "Cps")
    others = [name for name in doubled["parameter"].unique() if name not in ("base", *costs)]
    pairs = {f"{a} against {b}": table[a] - table[b] for a in costs for b in others}
    made = points(pd.DataFrame(pairs))
    return made.assign(group=made["what"].str.partition(" ")[0])


def half_against_full_length(main: pd.DataFrame, half: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio at half the length of a run minus that at full length."""
    return points(pivot_policies(half, ["load"]) - ratios_without_setup(main), ["load"])


def share_of_latency() -> pd.DataFrame:
    """Return the share of latency in the time to send 1 GB at 40 Gbit/s, 100 ms latency."""
    return mark_exact(pd.DataFrame({"point": ["1 GB"], "estimate": [0.1 / (0.1 + 8e9 / 40e9)]}))


# ------------------------------------------------------------------ the claims

measure_claims(
    "mcdf",
    {
        "1": on("main", lead_over_all),
        "2": on("main", without_admission, column="ratio"),
        "3": on("main", without_admission, column="delay_growth"),
        "4a": on("main", nearer_with_all_nodes, best=False),
        "4b": on("main", nearer_with_all_nodes, best=True),
        "5a": on("main", decrement, relative=True),
        "5b": on("main", decrement, relative=False),
        "6": on("main", lead_with_setup),
        "7": on("main", growth_of_lead),
        "8": on("main", growth_of_rivals),
        "9": on("main", change_between_setups),
        "10": on("ratios", sensitivity_to_load, most=0.5),
        "11": on("ratios", fall_of_sensitivity),
        "12": on("ratios", sensitivity_to_load, above=3.0),
        "13": on("main", tasks_with_fewer_nodes, readings=False),
        "14": on("main ratios", lead_in_stability, axes=["set-up cost"]),
        "15": on("orders", excess_of_rule, readings=False),
        "16": on("newcomers", newcomers_behind_cheap_plans, readings=False),
        "17": on("doubled", costs_against_others),
        "18": on("main half", half_against_full_length),
        "19": on("", share_of_latency, readings=False),
        "20": on("main", lead_over_all),
        "21": on("main ratios", lead_in_stability, axes=["load", "Cms/Cps"]),
    },
)

# ------------------------------------------------------------------ beyond the paper


def _start_of_lead(values: "pd.Series[float]") -> float:
    """Return from which load on a lead is above 0, interpolated linearly between two loads."""
    x, y = values.index.to_numpy(float), values.to_numpy(float)
    if np.isnan(y).any():
        return np.nan
    last = int(np.flatnonzero(np.append(True, y <= 0))[-1])  # loads up to the last without a lead
    if last in (0, len(x)):
        return float(x[0]) if last == 0 else np.inf
    k = last - 1
    return float(x[k] - y[k] * (x[last] - x[k]) / (y[last] - y[k]))


def find_start_of_lead(frame: pd.DataFrame) -> pd.DataFrame:
    """Return from which load on MCDF refuses less than each rival, and than all of them.

    Every load is tested with an error rate that is split over the rivals, so that all intervals
    hold with 95 % at once: an interval contains every load at which MCDF may not lead yet.

    Returns
    -------
    DataFrame
        A row per rival, and one for all rivals: estimate, low, high. The least load stands for a
        lead at all loads, infinity for no lead at the greatest load.
    """
    ends = {"estimate": "estimate", "low": "high", "high": "low"}
    table = estimate_leads(frame, level=1 - (1 - LEVEL) / len(RIVALS_OF_MCDF))
    by_end = {end: table.pivot(index="load", columns="what", values=at) for end, at in ends.items()}
    parts = {rival: [rival] for rival in RIVALS_OF_MCDF} | {"all rivals": list(RIVALS_OF_MCDF)}
    rows = []
    for name, rivals in parts.items():
        row: dict[str, object] = {"rival": name}
        for end, leads in by_end.items():
            row[end] = _start_of_lead(leads[rivals].min(axis="columns"))
        rows.append(row)
    return pd.DataFrame(rows)

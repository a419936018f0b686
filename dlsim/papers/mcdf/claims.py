"""What paper M's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlsim.papers.mcdf.cells import BASE, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.study.claims import LEVEL
from dlsim.study.measure import counted, estimates, exact, lead, points, rise, tie, trend, wide
from dlsim.study.stats import family

RIVALS = tuple(name for name in WITH_ADMISSION if name != "MCDF")
ALL_NODES = ("FIFOAN", "EDFAN")
FEWEST_NODES = ("FIFOMN", "EDFMN")
#: The sweeps that claims are measured on; None where one was not run.
Evidence = namedtuple(
    "Evidence", "main ratios doubled half orders newcomers", defaults=[None, None, None]
)


def _no_setup(e: Evidence, column: str = "ratio") -> pd.DataFrame:
    return wide(e.main[e.main["setup"] == 0], ["load"], column)


def _setups(e: Evidence, column: str = "ratio") -> pd.DataFrame:
    rows = e.main[(e.main["setup"] > 0) & e.main["policy"].isin(WITH_ADMISSION)]
    return wide(rows, ["setup", "load"], column)


def _lead(table: pd.DataFrame) -> pd.DataFrame:
    return lead(table, "MCDF", RIVALS)


def _best(values: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Let the rivals at every place speak as one, so that the best of them decides."""
    return points(values, by).assign(group=lambda table: table.groupby(by).ngroup())


def _counted(table: pd.DataFrame, rows: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Give shares of tasks exact bounds where they are the same in all runs."""
    tasks = rows.groupby(["policy", axis])["tasks"].sum()
    return counted(table, table.join(tasks, on=["what", axis])["tasks"])


def leads(frame: pd.DataFrame, by: str = "load", level: float = LEVEL) -> pd.DataFrame:
    """What each rival refuses more than MCDF along an axis, with intervals as claims have them."""
    table = points(_lead(wide(frame, [by])), [by])
    ends = ["low", "high", "least", "most"]
    return table.assign(**family(list(table["values"]), level)[ends])


def _start(lead: "pd.Series[Any]") -> float:
    """From which load a lead stays above 0; between two loads it runs straight."""
    x, y = lead.index.to_numpy(float), lead.to_numpy(float)
    if np.isnan(y).any():
        return np.nan
    k = int(np.flatnonzero(np.append(True, y <= 0))[-1])  # loads up to the last without a lead
    if k in (0, len(x)):
        return float(x[0]) if k == 0 else np.inf
    return float(x[k - 1] - y[k - 1] * (x[k] - x[k - 1]) / (y[k] - y[k - 1]))


def begins_to_lead(frame: pd.DataFrame) -> pd.DataFrame:
    """From which load on MCDF refuses less than each rival, and than all of them.

    The interval holds the loads at which a lead of 0 cannot be excluded: a test at each load,
    its error rate split over the rivals, so that all these loads lie in theirs with 95 %. The
    least load stands for a lead at all loads, infinity for none at the greatest.
    """
    ends = {"estimate": "estimate", "low": "high", "high": "low"}
    table = leads(frame, level=1 - (1 - LEVEL) / len(RIVALS))
    wide = {end: table.pivot(index="load", columns="what", values=at) for end, at in ends.items()}
    parts = {**{rival: [rival] for rival in RIVALS}, "all rivals": list(RIVALS)}
    return pd.DataFrame(
        {"rival": name, **{end: _start(wide[end][some].min(axis="columns")) for end in ends}}
        for name, some in parts.items()
    )


def _less_on_average(e: Evidence, relative: bool) -> pd.DataFrame:
    """What MCDF refuses less than FIFOAN and EDFAN over all loads: relative, or in points."""
    mean = _no_setup(e).groupby("replicate").mean()
    less = lead(mean, "MCDF", ALL_NODES)
    return points(less / mean[list(ALL_NODES)] if relative else less)


def _nearer(e: Evidence, best: bool) -> pd.DataFrame:
    """How much nearer to MCDF fewest nodes are than all: like with like, or the nearest of each."""
    far = _lead(_no_setup(e)).abs()
    fewest, every = far[list(FEWEST_NODES)].set_axis(ALL_NODES, axis=1), far[list(ALL_NODES)]
    nearest = (fewest.min(axis=1) - every.min(axis=1)).to_frame("nearest")
    return points(nearest if best else fewest - every, ["load"])


def _over_setups(table: pd.DataFrame) -> pd.DataFrame:
    """Trend over the set-up costs of the mean over the loads."""
    return trend(table.groupby(["setup", "replicate"]).mean(), "setup", "{what}")


def _by_ratio(e: Evidence) -> pd.DataFrame:
    """MCDF's reject ratio in Figure 10, one column per mode."""
    return wide(e.ratios.query("policy == 'MCDF'"), ["value", "load"], columns="mode")


def sensitivity(e: Evidence) -> pd.DataFrame:
    """By how much MCDF's reject ratio rises over the loads, at every ratio of the costs."""
    return trend(_by_ratio(e), "load", "{what}")


def ranges(e: Evidence) -> pd.DataFrame:
    """Range of the reject ratio over load, set-up cost and Cms/Cps, per policy."""
    names = list(e.ratios["policy"].unique())
    main = e.main[e.main["policy"].isin(names)]
    axes = {
        "load": (_no_setup(e), []),
        "set-up cost": (wide(main, ["setup", "load"]), ["load"]),
        "Cms/Cps": (wide(e.ratios, ["mode", "value", "load"]), ["mode", "load"]),
    }
    parts = {}
    for axis, (table, others) in axes.items():
        groups = table.groupby([*others, "replicate"])
        parts[axis] = (groups.max() - groups.min()).groupby("replicate").mean()[names]
    return pd.concat(parts, names=["axis"])


def _order_minimises_cost(e: Evidence) -> pd.DataFrame:
    """How much dearer than the cheapest order; one queue refutes it, so no interval."""
    words = {"excess": "mean excess", "beaten": "queues beaten"}
    table = e.orders.rename(columns=words).groupby("queue")[list(words.values())].mean()
    table = table.reset_index().melt("queue", var_name="what", value_name="estimate")
    return exact(table.assign(point=table["what"] + ", queue " + table["queue"].astype(str)))


def _costs_matter_most(e: Evidence) -> pd.DataFrame:
    """Effect of doubling Cms or Cps minus that of doubling another parameter."""
    table, costs = effects(e)["MCDF"].abs().unstack("parameter"), ("Cms", "Cps")
    pairs = product(costs, [name for name in BASE if name not in costs])
    made = points(pd.DataFrame({f"{a} against {b}": table[a] - table[b] for a, b in pairs}))
    return made.assign(group=made["what"].str.partition(" ")[0])


def effects(e: Evidence) -> pd.DataFrame:
    """Change of the reject ratio when one parameter doubles, averaged over the loads."""
    table = wide(e.doubled, ["parameter", "load"]).groupby(["parameter", "replicate"]).mean()
    base = table.xs("base", level="parameter")
    parts = {name: table.xs(name, level="parameter") - base for name in BASE}
    return pd.concat(parts, names=["parameter"])


# what measures a claim, by the number in its id
tie("mcdf", {
    # without set-up costs, at every load; growth: delay in the last quarter minus in the first
    "1": lambda e: _best(lead(_no_setup(e), "MCDF", (*RIVALS, *WITHOUT_ADMISSION)), ["load"]),
    "2": lambda e: _counted(
        points(_no_setup(e)[list(WITHOUT_ADMISSION)], ["load"]), e.main.query("setup == 0"), "load"
    ),
    "3": lambda e: points(_no_setup(e, "delay_growth")[list(WITHOUT_ADMISSION)], ["load"]),
    "4a": lambda e: _nearer(e, best=False),
    "4b": lambda e: _nearer(e, best=True),
    "5a": lambda e: _less_on_average(e, relative=True),
    "5b": lambda e: _less_on_average(e, relative=False),
    # with set-up costs, then over them: MCDF's lead, the rivals' own ratios
    "6": lambda e: _best(_lead(_setups(e)), ["setup", "load"]),
    "7": lambda e: _over_setups(_lead(_setups(e))),
    "8": lambda e: _over_setups(_setups(e)[list(RIVALS)]),
    # at every set-up cost, one part of the grid per load
    "9": lambda e: estimates(
        e.main.query("setup > 0 and policy == 'MCDF'"), ["load", "setup"], "ratio"
    ).assign(part=lambda table: table["point"].str.partition(",")[0]),
    # where sending is cheap, over the ratios, where it is dear
    "10": lambda e: sensitivity(e).query("value <= 0.5"),
    "11": lambda e: trend(0.0 - rise(_by_ratio(e), "load"), "value", "{what}"),
    "12": lambda e: sensitivity(e).query("value >= 3"),
    # range of a rival's reject ratio over an axis minus that of MCDF's
    "14": lambda e: _best(_lead(ranges(e)), ["axis"]),
    "17": _costs_matter_most,
    # at half the length minus at full length
    "18": lambda e: points(wide(e.half, ["load"]) - _no_setup(e), ["load"]),
})  # fmt: skip
tie("mcdf", {
    # tasks whose fastest number of nodes is below N
    "13": lambda e: _counted(points(
        _setups(e, "fewer")[["MCDF"]].groupby(["setup", "replicate"]).mean(), ["setup"]
    ), e.main, "setup"),
    "15": _order_minimises_cost,
    # newcomers admitted behind the cheapest plan minus behind the dearest
    "16": lambda e: points(
        e.newcomers.set_index(["load", "replicate"]).eval("cheap - dear").to_frame("more admitted"),
        ["load"],
    ),
    # share of latency in the time to send 1 GB at 40 Gbit/s, 100 ms latency
    "19": lambda _: exact(
        pd.DataFrame({"point": ["1 GB"], "estimate": [0.1 / (0.1 + 8e9 / 40e9)]})
    ),
}, readings=False)  # fmt: skip

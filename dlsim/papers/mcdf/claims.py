"""What paper M's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlsim.papers.mcdf.cells import BASE, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.study.claims import LEVEL
from dlsim.study.measure import (
    claim,
    counted,
    differences,
    estimates,
    exact,
    lead,
    points,
    rise,
    tie,
    trend,
    wide,
)
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


def _best(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Let the rivals at every place speak as one, so that the best of them decides."""
    return table.assign(group=table.groupby(by).ngroup())


def _counted(table: pd.DataFrame, rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Give shares of tasks exact bounds where they are the same in all runs."""
    tasks = rows.rename(columns={"policy": "what"}).groupby(by)["tasks"].sum().rename("tasks")
    return counted(table, table.join(tasks, on=by)["tasks"])


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


def _less_on_average(e: Evidence) -> pd.DataFrame:
    """What MCDF refuses less than FIFOAN and EDFAN over all loads."""
    return lead(_no_setup(e).groupby("replicate").mean(), "MCDF", ALL_NODES)


def _distances(e: Evidence) -> pd.DataFrame:
    """How far each rival's reject ratio is from MCDF's, without set-up costs."""
    return _lead(_no_setup(e)).abs()


def _nearest(e: Evidence) -> pd.DataFrame:
    far = _distances(e)
    nearer = far[list(FEWEST_NODES)].min(axis=1) - far[list(ALL_NODES)].min(axis=1)
    return points(nearer.to_frame("nearest"), ["load"])


def _over_setups(table: pd.DataFrame) -> pd.DataFrame:
    """Trend over the set-up costs of the mean over the loads."""
    mean = table.groupby(["setup", "replicate"]).mean()
    return trend(mean, "setup", "{what}")


@claim("mcdf-9")
def mcdf_stays(e: Evidence) -> pd.DataFrame:
    """Claim 9: MCDF's reject ratio at every set-up cost; one part of the grid per load."""
    mine = e.main.query("setup > 0 and policy == 'MCDF'")
    table = estimates(mine, ["load", "setup"], "ratio")
    return table.assign(part=table["point"].str.partition(",")[0])


def _by_ratio(e: Evidence) -> pd.DataFrame:
    """MCDF's reject ratio in Figure 10, one column per mode."""
    return wide(e.ratios[e.ratios["policy"] == "MCDF"], ["value", "load"], columns="mode")


def sensitivity(e: Evidence) -> pd.DataFrame:
    """By how much MCDF's reject ratio rises over the loads, at every ratio of the costs."""
    return trend(_by_ratio(e), "load", "{what}")


#: Claims that a line or two measure, by the number in their id.
_MEASURES: dict[str, Callable[[Evidence], pd.DataFrame]] = {
    # without set-up costs, at every load; growth: delay in the last quarter minus in the first
    "1": lambda e: _best(
        points(lead(_no_setup(e), "MCDF", (*RIVALS, *WITHOUT_ADMISSION)), ["load"]), ["load"]
    ),
    "2": lambda e: _counted(
        points(_no_setup(e)[list(WITHOUT_ADMISSION)], ["load"]),
        e.main[e.main["setup"] == 0],
        ["what", "load"],
    ),
    "3": lambda e: points(_no_setup(e, "delay_growth")[list(WITHOUT_ADMISSION)], ["load"]),
    # like with like, and the nearest of each kind
    "4a": lambda e: points(
        differences(
            _distances(e), {a: (b, a) for a, b in zip(ALL_NODES, FEWEST_NODES, strict=True)}
        ),
        ["load"],
    ),
    "4b": _nearest,
    # relative to FIFOAN and EDFAN, and in points
    "5a": lambda e: points(
        _less_on_average(e) / _no_setup(e).groupby("replicate").mean()[list(ALL_NODES)]
    ),
    "5b": lambda e: points(_less_on_average(e)),
    # with set-up costs, then over them: MCDF's lead, the rivals' own ratios
    "6": lambda e: _best(points(_lead(_setups(e)), ["setup", "load"]), ["setup", "load"]),
    "7": lambda e: _over_setups(_lead(_setups(e))),
    "8": lambda e: _over_setups(_setups(e)[list(RIVALS)]),
    # where sending is cheap, over the ratios, where it is dear
    "10": lambda e: sensitivity(e).query("value <= 0.5"),
    "11": lambda e: trend(0.0 - rise(_by_ratio(e), "load"), "value", "{what}"),
    "12": lambda e: sensitivity(e).query("value >= 3"),
}
tie("mcdf", _MEASURES)
# share of latency in the time to send 1 GB at 40 Gbit/s, 100 ms latency
_latency = {"point": ["1 GB"], "estimate": [0.1 / (0.1 + 8e9 / 40e9)]}
tie("mcdf", {"19": lambda e: exact(pd.DataFrame(_latency))}, readings=False)


def ranges(e: Evidence) -> pd.DataFrame:
    """Range of the reject ratio over load, set-up cost and Cms/Cps, per policy."""
    main = e.main[e.main["policy"].isin(WITH_ADMISSION)]
    axes = {
        "load": (_no_setup(e), []),
        "set-up cost": (wide(main, ["setup", "load"]), ["load"]),
        "Cms/Cps": (wide(e.ratios, ["mode", "value", "load"]), ["mode", "load"]),
    }
    parts = {}
    for axis, (table, others) in axes.items():
        groups = table.groupby([*others, "replicate"])
        spread = groups.max() - groups.min()
        parts[axis] = spread.groupby("replicate").mean()[list(WITH_ADMISSION)]
    return pd.concat(parts, names=["axis"])


@claim("mcdf-14")
def more_stable(e: Evidence) -> pd.DataFrame:
    """Claim 14: range of a rival's reject ratio over an axis minus that of MCDF's."""
    more = _lead(ranges(e))
    return _best(points(more, ["axis"]), ["axis"])


@claim("mcdf-13", readings=False)
def fewer_nodes(e: Evidence) -> pd.DataFrame:
    """Claim 13: share of tasks whose fastest number of nodes is below N."""
    share = _setups(e, "fewer")["MCDF"].groupby(["setup", "replicate"]).mean().to_frame("MCDF")
    return _counted(points(share, ["setup"]), e.main, ["what", "setup"])


@claim("mcdf-15", needs="orders", readings=False)
def order_minimises_cost(e: Evidence) -> pd.DataFrame:
    """Claim 15: how much dearer than the cheapest order; one queue refutes it, so no interval."""
    words = {"excess": "mean excess", "beaten": "queues beaten"}
    table = e.orders.groupby("queue")[list(words)].mean().reset_index()
    table = table.melt("queue", var_name="what", value_name="estimate")
    pairs = zip(table["what"], table["queue"], strict=True)
    return exact(table.assign(point=[f"{words[what]}, queue {queue}" for what, queue in pairs]))


@claim("mcdf-16", needs="newcomers", readings=False)
def cost_predicts_admission(e: Evidence) -> pd.DataFrame:
    """Claim 16: newcomers admitted behind the cheapest plan minus behind the dearest."""
    table = e.newcomers.set_index(["load", "replicate"])
    return points(differences(table, {"more admitted": ("cheap", "dear")}), ["load"])


@claim("mcdf-17")
def costs_matter_most(e: Evidence) -> pd.DataFrame:
    """Claim 17: effect of doubling Cms or Cps minus that of doubling another parameter."""
    table = effects(e)["MCDF"].abs().unstack("parameter")
    others = [name for name in BASE if name not in ("Cms", "Cps")]
    pairs = {f"{a} against {b}": (a, b) for a, b in product(("Cms", "Cps"), others)}
    made = points(differences(table, pairs))
    return made.assign(group=made["what"].str.partition(" ")[0])


def effects(e: Evidence) -> pd.DataFrame:
    """Change of the reject ratio when one parameter doubles, averaged over the loads."""
    table = wide(e.doubled, ["parameter", "load"]).groupby(["parameter", "replicate"]).mean()
    base = table.xs("base", level="parameter")
    parts = {name: table.xs(name, level="parameter") - base for name in BASE}
    return pd.concat(parts, names=["parameter"])


@claim("mcdf-18", needs="half")
def half_length_agrees(e: Evidence) -> pd.DataFrame:
    """Claim 18: ratio at half the length minus at full length."""
    return points(wide(e.half, ["load"]) - _no_setup(e), ["load"])

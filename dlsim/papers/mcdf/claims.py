"""What paper M's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from collections.abc import Callable
from itertools import product

import pandas as pd

from dlsim.papers.mcdf.cells import BASE, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.study.measure import claim, differences, estimates, exact, lead, points, steps, tie, wide
from dlsim.study.plot import shares
from dlsim.study.stats import summary

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


def _less_on_average(e: Evidence) -> pd.DataFrame:
    """What MCDF refuses less than FIFOAN and EDFAN over all loads."""
    return lead(_no_setup(e).groupby("replicate").mean(), "MCDF", ALL_NODES)


@claim("mcdf-4")
def all_nodes_come_closest(e: Evidence) -> pd.DataFrame:
    """Claim 4: nearer of FIFOMN, EDFMN to MCDF minus farther of FIFOAN, EDFAN."""
    far = _lead(_no_setup(e)).abs()
    margin = far[list(FEWEST_NODES)].min(axis=1) - far[list(ALL_NODES)].max(axis=1)
    return points(margin.to_frame("distance"), ["load"])


def _from_setup_to_setup(table: pd.DataFrame) -> pd.DataFrame:
    return points(steps(table.groupby(["setup", "replicate"]).mean(), "setup"))


@claim("mcdf-9")
def mcdf_stays(e: Evidence) -> pd.DataFrame:
    """Claim 9: MCDF's reject ratio at every set-up cost; one part of the grid per load."""
    mine = e.main.query("setup > 0 and policy == 'MCDF'")
    table = estimates(mine, ["load", "setup"], "ratio")
    return table.assign(part=table["point"].str.partition(",")[0])


def _sensitivity(e: Evidence) -> pd.DataFrame:
    """MCDF's reject ratio at the largest load minus that at the smallest, one column per mode."""
    table = wide(e.ratios, ["mode", "value", "load"])["MCDF"].unstack("mode")
    loads = table.index.unique("load")
    rise = table.xs(loads.max(), level="load") - table.xs(loads.min(), level="load")
    return pd.DataFrame(rise).rename(columns="{} MCDF".format)


@claim("mcdf-11")
def sensitivity_falls(e: Evidence) -> pd.DataFrame:
    """Claim 11: sensitivity at one ratio minus that at the next larger one."""
    table = _sensitivity(e).rename(columns=lambda name: name.removesuffix(" MCDF"))
    return points(pd.concat([0.0 - steps(table[[mode]], "value") for mode in table], axis=1))


#: Claims that a line or two measure, by the number in their id.
_MEASURES: dict[str, Callable[[Evidence], pd.DataFrame]] = {
    # without set-up costs, at every load; growth: delay in the last quarter minus in the first
    "1": lambda e: points(lead(_no_setup(e), "MCDF", (*RIVALS, *WITHOUT_ADMISSION)), ["load"]),
    "2": lambda e: shares(points(_no_setup(e)[list(WITHOUT_ADMISSION)], ["load"])),
    "3": lambda e: points(_no_setup(e, "delay_growth")[list(WITHOUT_ADMISSION)], ["load"]),
    # relative to FIFOAN and EDFAN, and in points
    "5a": lambda e: points(
        _less_on_average(e) / _no_setup(e).groupby("replicate").mean()[list(ALL_NODES)]
    ),
    "5b": lambda e: points(_less_on_average(e)),
    # with set-up costs, then from one to the next: MCDF's lead, the rivals' own ratios
    "6": lambda e: points(_lead(_setups(e)), ["setup", "load"]),
    "7": lambda e: _from_setup_to_setup(_lead(_setups(e))),
    "8": lambda e: _from_setup_to_setup(_setups(e)[list(RIVALS)]),
    # share of tasks whose fastest number of nodes is below N
    "13": lambda e: points(
        _setups(e, "fewer")["MCDF"].groupby(["setup", "replicate"]).mean().to_frame("share"),
        ["setup"],
    ),
    # where sending is cheap, and where it is dear
    "10": lambda e: points(_sensitivity(e).query("value <= 0.5"), ["value"]),
    "12": lambda e: points(_sensitivity(e).query("value >= 3"), ["value"]),
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
    parts = [
        points(pd.DataFrame(more.xs(axis, level="axis")).add_suffix(f" over {axis}"))
        for axis in more.index.unique("axis")
    ]
    return pd.concat(parts, ignore_index=True)


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
    return points(differences(table, pairs))


def effects(e: Evidence) -> pd.DataFrame:
    """Change of the reject ratio when one parameter doubles, averaged over the loads."""
    table = wide(e.doubled, ["parameter", "load"]).groupby(["parameter", "replicate"]).mean()
    base = table.xs("base", level="parameter")
    parts = {name: table.xs(name, level="parameter") - base for name in BASE}
    return pd.concat(parts, names=["parameter"])


@claim("mcdf-18", needs="half")
def half_length_agrees(e: Evidence) -> pd.DataFrame:
    """Claim 18: estimate at half the length minus at full length, in its half-widths."""
    keys, whole = ["policy", "load"], e.main[e.main["setup"] == 0]
    full, half = (summary(frame, keys, "ratio").set_index(keys) for frame in (whole, e.half))
    apart = (half["estimate"] - full["estimate"]) / (full["high"] - full["estimate"])
    apart = apart.where(half["estimate"] != full["estimate"], 0.0)
    name = [f"{policy}, load {load:g}" for policy, load in apart.index]
    return exact(pd.DataFrame({"point": name, "estimate": apart.to_numpy()}))

"""The measuring functions of paper M's claims: evidence in, points of a grid out.

Each takes the `Evidence` and returns columns point, estimate, low, high (95 % interval over
paired replicates), or None where its evidence is not there. data/claims.toml says which
function belongs to which claim, and `dlsim.study.claims` turns the points into a verdict.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import pandas as pd

from dlsim.papers.mcdf.runs import BASE, WITH_ADMISSION, WITHOUT_ADMISSION
from dlsim.study.claims import Claim
from dlsim.study.stats import summary

RIVALS = tuple(name for name in WITH_ADMISSION if name != "MCDF")
ALL_NODES = ("FIFOAN", "EDFAN")
FEWEST_NODES = ("FIFOMN", "EDFMN")


class Evidence(NamedTuple):
    """The sweeps that claims are measured on."""

    main: pd.DataFrame
    ratios: pd.DataFrame
    half: pd.DataFrame | None = None
    orders: pd.DataFrame | None = None
    newcomers: pd.DataFrame | None = None
    doubled: pd.DataFrame | None = None


def wide(frame: pd.DataFrame, by: Sequence[str], column: str = "ratio") -> pd.DataFrame:
    """One column per policy, one row per point and replicate."""
    return frame.pivot(index=[*by, "replicate"], columns="policy", values=column)


def points(values: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Estimate every column of paired values at every point of the grid."""
    tidy = values.rename_axis(columns="what").reset_index()
    tidy = tidy.melt([*labels, "replicate"], var_name="what", value_name="measured")
    table = summary(tidy, ["what", *labels], "measured")
    names = [
        ", ".join([str(row["what"]), *(f"{name} {row[name]:g}" for name in labels)])
        for _, row in table.iterrows()
    ]
    return table.assign(point=names)[["point", "estimate", "low", "high", "n"]]


def _leads(frame: pd.DataFrame, by: Sequence[str], rivals: Sequence[str]) -> pd.DataFrame:
    table = wide(frame, by)
    return table[list(rivals)].sub(table["MCDF"], axis=0)


def _no_setup(e: Evidence) -> pd.DataFrame:
    return e.main[e.main["setup"] == 0]


def _setups(e: Evidence) -> pd.DataFrame:
    return e.main[(e.main["setup"] > 0) & e.main["policy"].isin(WITH_ADMISSION)]


def best_without_setup(e: Evidence) -> pd.DataFrame:
    """Claim 1: ratio of each of six rivals minus that of MCDF, at every load."""
    return points(_leads(_no_setup(e), ["load"], (*RIVALS, *WITHOUT_ADMISSION)), ["load"])


def misses_without_admission(e: Evidence) -> pd.DataFrame:
    """Claim 2: miss ratio of the policies without admission control, at every load."""
    table = points(wide(_no_setup(e), ["load"])[list(WITHOUT_ADMISSION)], ["load"])
    return table.assign(low=table["low"].clip(0, 1), high=table["high"].clip(0, 1))


def delays_propagate(e: Evidence) -> pd.DataFrame:
    """Claim 3: mean delay in the last quarter of the tasks minus that in the first."""
    table = wide(_no_setup(e), ["load"], "delay_growth")
    return points(table[list(WITHOUT_ADMISSION)], ["load"])


def all_nodes_come_closest(e: Evidence) -> pd.DataFrame:
    """Claim 4: nearer of FIFOMN, EDFMN to MCDF minus farther of FIFOAN, EDFAN."""
    far = _leads(_no_setup(e), ["load"], RIVALS).abs()
    margin = far[list(FEWEST_NODES)].min(axis=1) - far[list(ALL_NODES)].max(axis=1)
    return points(margin.to_frame("distance"), ["load"])


def _decrements(e: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    table = wide(_no_setup(e), ["load"]).groupby("replicate").mean()[[*ALL_NODES, "MCDF"]]
    rivals = table[list(ALL_NODES)]
    return rivals, rivals.sub(table["MCDF"], axis=0)


def relative_decrement(e: Evidence) -> pd.DataFrame:
    """Claim 5a: what MCDF refuses less than FIFOAN and EDFAN, relative to them."""
    rivals, less = _decrements(e)
    return points(less / rivals, [])


def decrement_in_points(e: Evidence) -> pd.DataFrame:
    """Claim 5b: what MCDF refuses less than FIFOAN and EDFAN, in points."""
    return points(_decrements(e)[1], [])


def best_with_setup(e: Evidence) -> pd.DataFrame:
    """Claim 6: ratio of each rival minus that of MCDF, with set-up costs, at every load."""
    return points(_leads(_setups(e), ["setup", "load"], RIVALS), ["setup", "load"])


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    """Turn one column per step of set-up costs into differences of neighbours."""
    costs = sorted(table.index.unique("setup"))
    parts = {
        f"{a:g} to {b:g}": table.xs(b, level="setup") - table.xs(a, level="setup")
        for a, b in pairwise(costs)
    }
    steps = pd.concat(parts, axis=1)
    steps.columns = steps.columns.map(lambda pair: f"{pair[1]} {pair[0]}")
    return steps


def lead_grows(e: Evidence) -> pd.DataFrame:
    """Claim 7: lead of MCDF at one set-up cost minus that at the one before."""
    leads = _leads(_setups(e), ["setup", "load"], RIVALS)
    return points(_steps(leads.groupby(["setup", "replicate"]).mean()), [])


def rivals_grow(e: Evidence) -> pd.DataFrame:
    """Claim 8: reject ratio of each rival at one set-up cost minus at the one before."""
    table = wide(_setups(e), ["setup", "load"])[list(RIVALS)]
    return points(_steps(table.groupby(["setup", "replicate"]).mean()), [])


def mcdf_stays(e: Evidence) -> pd.DataFrame:
    """Claim 9: MCDF's reject ratio at every set-up cost; one part of the grid per load."""
    mine = _setups(e)[_setups(e)["policy"] == "MCDF"]
    table = summary(mine, ["load", "setup"], "ratio")
    part = [f"load {load:g}" for load in table["load"]]
    name = [f"load {a:g}, setup {b:g}" for a, b in zip(table["load"], table["setup"], strict=True)]
    return table.assign(part=part, point=name)


def sensitivity(e: Evidence, policies: Sequence[str] = ("MCDF",)) -> pd.DataFrame:
    """Reject ratio at the largest load minus that at the smallest, per ratio Cms/Cps."""
    table = wide(e.ratios, ["mode", "value", "load"])[list(policies)]
    loads = table.index.unique("load")
    return pd.DataFrame(table.xs(loads.max(), level="load") - table.xs(loads.min(), level="load"))


def _at(table: pd.DataFrame, **level: object) -> pd.DataFrame:
    [(name, value)] = level.items()
    return pd.DataFrame(table.xs(value, level=name))


def _by_mode(table: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    modes = table.index.unique("mode")
    parts = [points(_at(table, mode=m).add_prefix(f"{m} "), labels) for m in modes]
    return pd.concat(parts, ignore_index=True)


def sensitive_at_small_ratio(e: Evidence) -> pd.DataFrame:
    """Claim 10: sensitivity of MCDF to the load where Cms/Cps <= 0.5."""
    return _by_mode(sensitivity(e).query("value <= 0.5"), ["value"])


def sensitivity_falls(e: Evidence) -> pd.DataFrame:
    """Claim 11: sensitivity at one ratio minus that at the next larger one."""
    table = sensitivity(e)["MCDF"].unstack("value")
    steps = {f"{a:g} to {b:g}": table[a] - table[b] for a, b in pairwise(sorted(table.columns))}
    return _by_mode(pd.DataFrame(steps), [])


def sensitivity_gone(e: Evidence) -> pd.DataFrame:
    """Claim 12: sensitivity of MCDF to the load where Cms/Cps >= 3."""
    return _by_mode(sensitivity(e).query("value >= 3"), ["value"])


def fewer_nodes_fastest(e: Evidence) -> pd.DataFrame:
    """Claim 13: share of tasks whose fastest number of nodes is below N."""
    table = wide(_setups(e), ["setup", "load"], "fewer")[["MCDF"]]
    share = table.groupby(["setup", "replicate"]).mean().rename(columns={"MCDF": "share"})
    return points(share, ["setup"])


def ranges(e: Evidence) -> pd.DataFrame:
    """Range of the reject ratio over load, set-up cost and Cms/Cps, per policy."""
    main = e.main[e.main["policy"].isin(WITH_ADMISSION)]
    axes = {
        "load": (wide(_no_setup(e), ["load"]), []),
        "set-up cost": (wide(main, ["setup", "load"]), ["load"]),
        "Cms/Cps": (wide(e.ratios, ["mode", "value", "load"]), ["mode", "load"]),
    }
    parts = {}
    for axis, (table, others) in axes.items():
        groups = table.groupby([*others, "replicate"])
        spread = groups.max() - groups.min()
        parts[axis] = spread.groupby("replicate").mean()[list(WITH_ADMISSION)]
    return pd.concat(parts, names=["axis"])


def more_stable(e: Evidence) -> pd.DataFrame:
    """Claim 14: range of a rival's reject ratio over an axis minus that of MCDF's."""
    table = ranges(e)
    more = table[list(RIVALS)].sub(table["MCDF"], axis=0)
    parts = [
        points(_at(more, axis=axis).add_suffix(f" over {axis}"), [])
        for axis in table.index.unique("axis")
    ]
    return pd.concat(parts, ignore_index=True)


def order_minimises_cost(e: Evidence) -> pd.DataFrame:
    """Claim 15: how much dearer than the cheapest order MCDF's is, and how often.

    The claim is about every queue: one counterexample refutes it, so the means stand
    without an interval.
    """
    words = {"excess": "mean excess", "beaten": "queues beaten"}
    tidy = _required(e.orders).groupby("queue")[list(words)].mean().reset_index()
    tidy = tidy.melt("queue", var_name="what", value_name="estimate")
    name = [
        f"{words[what]}, queue {queue}"
        for what, queue in zip(tidy["what"], tidy["queue"], strict=True)
    ]
    return tidy.assign(point=name, low=tidy["estimate"], high=tidy["estimate"])


def cost_predicts_admission(e: Evidence) -> pd.DataFrame:
    """Claim 16: newcomers admitted behind the cheapest plan minus behind the dearest."""
    table = _required(e.newcomers).set_index(["load", "replicate"])
    return points((table["cheap"] - table["dear"]).to_frame("more admitted"), ["load"])


def costs_matter_most(e: Evidence) -> pd.DataFrame:
    """Claim 17: effect of doubling Cms or Cps minus that of doubling another parameter."""
    table = effects(e)["MCDF"].abs().unstack("parameter")
    others = [name for name in BASE if name not in ("Cms", "Cps")]
    more = {f"{a} against {b}": table[a] - table[b] for a, b in product(("Cms", "Cps"), others)}
    return points(pd.DataFrame(more), [])


def effects(e: Evidence) -> pd.DataFrame:
    """Change of the reject ratio when one parameter doubles, averaged over the loads."""
    table = wide(_required(e.doubled), ["parameter", "load"])
    table = table.groupby(["parameter", "replicate"]).mean()
    base = table.xs("base", level="parameter")
    parts = {name: table.xs(name, level="parameter") - base for name in BASE}
    return pd.concat(parts, names=["parameter"])


def half_length_agrees(e: Evidence) -> pd.DataFrame | None:
    """Claim 18: estimate at half the length minus at full length, in its half-widths."""
    if e.half is None:
        return None
    keys = ["policy", "load"]
    full, half = (summary(frame, keys, "ratio").set_index(keys) for frame in (_no_setup(e), e.half))
    apart = (half["estimate"] - full["estimate"]) / (full["high"] - full["estimate"])
    apart = apart.where(half["estimate"] != full["estimate"], 0.0)
    name = [f"{policy}, load {load:g}" for policy, load in apart.index]
    same = apart.to_numpy()
    return pd.DataFrame({"point": name, "estimate": same, "low": same, "high": same})


def latency_share(_: Evidence) -> pd.DataFrame:
    """Claim 19: share of latency in the time to send 1 GB at 40 Gbit/s, 100 ms latency."""
    latency, transfer = 0.1, 8e9 / 40e9
    share = latency / (latency + transfer)
    return pd.DataFrame([{"point": "1 GB", "estimate": share, "low": share, "high": share}])


def _required(frame: pd.DataFrame | None) -> pd.DataFrame:
    assert frame is not None, "this claim is measured under the notebook's own reading only"
    return frame


#: Claims that long simulations decide: the rows of the heat map.
BY_READING = (
    "best_without_setup", "misses_without_admission", "delays_propagate",
    "all_nodes_come_closest", "relative_decrement", "decrement_in_points", "best_with_setup",
    "lead_grows", "rivals_grow", "mcdf_stays", "sensitive_at_small_ratio", "sensitivity_falls",
    "sensitivity_gone", "fewer_nodes_fastest", "more_stable", "costs_matter_most",
    "half_length_agrees",
)  # fmt: skip


def measured(claim: Claim, e: Evidence) -> pd.DataFrame | None:
    """Measure a claim."""
    function: Callable[[Evidence], pd.DataFrame | None] | None = globals().get(claim.measure)
    return function(e) if function else None

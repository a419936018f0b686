"""What paper I's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from dlsim.papers.inserted_idle_time.cells import named as policy
from dlsim.study.claims import intervals, load_claims
from dlsim.study.measure import counted, differences, named, points, ratio, tidy, tie, trend, wide
from dlsim.study.stats import share_bounds, summary

ORDERS = ("FIFO", "EDF")
#: Policies that the claims compare; the others go beyond the paper.
ROLES = ("DLT", "I", "II", "OPR-MN", "EQ-MN", "US", "AN", "UMR-IIT")
#: Those of them whose use of idle time is compared.
USE = ("DLT", "II", "UMR-IIT")
#: The constraints by the column that counts them.
CONSTRAINTS = {"Constraint 1": "opt_iits", "Constraint 2": "opt_iits_ii"}
#: The two steps of Figure 3.
LADDER = (("DLT", "I"), ("I", "II"))
#: The sweeps that claims are measured on.
Evidence = namedtuple("Evidence", "main taus")


def _decided(
    frame: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], by: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count the tasks of all runs, and at most how many two policies decided differently.

    Two policies differ on no more tasks than both together differ on from DLT.
    """
    sums = frame.groupby([*by, "policy"])[["tasks", "discordant"]].sum(min_count=1)
    tasks, other = sums["tasks"].unstack(), sums["discordant"].unstack()
    apart = pd.DataFrame({name: other[a] + other[b] for name, (a, b) in pairs.items()})
    return pd.DataFrame({name: tasks[a] for name, (a, _) in pairs.items()}), apart


def _among(table: pd.DataFrame, cases: pd.DataFrame, apart: pd.DataFrame) -> pd.DataFrame:
    """Bound what is 0 in every run by the cases that differ, a row per place and a column each."""
    places = pd.MultiIndex.from_frame(table[[*cases.index.names, "what"]])
    total, other = (
        pd.Series(counts.stack().reindex(places).to_numpy(), table.index)
        for counts in (cases, apart)
    )
    return counted(table, total.where(other.notna())).assign(discordant=other.fillna(0))


def less(
    frame: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], column: str = "ratio",
    by: Sequence[str] = ("load",),
) -> pd.DataFrame:  # fmt: skip
    """Subtract policies; what is 0 in all runs is bounded by the tasks decided differently."""
    table = points(differences(wide(frame, by, column), pairs), by)
    return _among(table, *_decided(frame, pairs, by)) if column == "ratio" else table


def minus(
    e: Evidence, *pairs: tuple[str, str], orders: Sequence[str] = ORDERS, column: str = "ratio"
) -> pd.DataFrame:
    """Compare roles at every load and in every order: the first minus the second."""
    names = [(policy(order, a), policy(order, b)) for order in orders for a, b in pairs]
    return less(e.main, {f"{a} - {b}": (a, b) for a, b in names}, column)


def _counted(frame: pd.DataFrame, name: str) -> pd.DataFrame | None:
    """Return the rows of a policy whose plannings were counted, None without any."""
    rows = frame[frame["policy"] == name]
    return rows if "s_iits" in rows and rows["s_iits"].notna().any() else None


def held(e: Evidence, column: str, other: str = "") -> pd.DataFrame | None:
    """Count the share of plannings with idle time that a constraint allows, less the other."""
    rows = _counted(e.main, "FIFO-DLT")
    if rows is None or rows[[column, other or column]].isna().any(axis=None):
        return None
    rows = rows.assign(held=rows[column] - (rows[other] if other else 0))
    cases = rows.groupby("load", sort=False)["s_iits"].sum()
    table = named(ratio(rows, "held", "s_iits", ["load"]), ["load"])
    return table.assign(total=table["load"].map(cases).replace(0, np.nan), values=None)


def _idle_time_used(e: Evidence) -> pd.DataFrame:
    """Used share under II minus that under DLT; if equal, by cases split otherwise."""
    table = minus(e, ("II", "DLT"), column="use")
    if "s_iits" not in e.main:
        return table
    names = {policy(o, "II"): f"{policy(o, 'II')} - {policy(o, 'DLT')}" for o in ORDERS}
    rows = e.main.assign(what=e.main["policy"].map(names)).dropna(subset=["what"])
    sums = rows.groupby(["load", "what"])[["s_iits", "opt_iits_ii"]].sum(min_count=1).unstack()
    return _among(table, sums["s_iits"], sums["opt_iits_ii"])


def _cheaper(table: pd.DataFrame, cases: pd.DataFrame, apart: pd.DataFrame) -> pd.DataFrame:
    """Estimate the rise while sending becomes cheaper, over the axis of Figure 4, by octaves.

    It is no further from 0 than all cases that differ, among the fewest at any cost of sending.
    """
    taus = sorted(table.index.unique("tau"))
    text = f"{{what}}, tau {taus[-1]:g} to {taus[0]:g}"
    rise = trend(table.rename(index=lambda tau: -np.log2(tau), level="tau"), "tau", text)
    counts = cases.groupby("load").min(), apart.groupby("load").sum(min_count=len(taus))
    return _among(
        rise, *(one.rename(columns=lambda what: text.format(what=what)) for one in counts)
    )


def gain_grows(e: Evidence) -> pd.DataFrame:
    """Rise of the gain of EDDO-II over EDF-DLT as sending becomes cheaper."""
    pair, by = {"gain": ("EDF-DLT", "EDDO-II")}, ["load", "tau"]
    return _cheaper(differences(wide(e.taus, by), pair), *_decided(e.taus, pair, by))


def _constraints_loosen(e: Evidence) -> pd.DataFrame | None:
    """Rise of the share of cases in which a constraint holds, likewise."""
    rows = _counted(e.taus, "EDF-DLT")
    if rows is None:
        return None
    rows = rows.set_index(["load", "tau", "replicate"])
    shares = pd.DataFrame({c: rows[k] / rows["s_iits"] for c, k in CONSTRAINTS.items()})
    sums = rows[["s_iits", *CONSTRAINTS.values()]].groupby(["load", "tau"]).sum(min_count=1)
    cases = pd.DataFrame({c: sums["s_iits"] for c in CONSTRAINTS})
    return _cheaper(shares, cases, pd.DataFrame({c: sums[k] for c, k in CONSTRAINTS.items()}))


def _rare_constraints_gain_little(e: Evidence) -> pd.DataFrame | None:
    """DLT minus I and minus II, where the constraint mostly does not hold."""
    parts = [pd.DataFrame()]
    for (constraint, column), role in zip(CONSTRAINTS.items(), ("I", "II"), strict=True):
        shares = held(e, column)
        if shares is None:
            return None
        rare = e.main["load"].isin(shares[shares["estimate"] < 0.5]["load"])
        if rare.any():
            parts.append(less(e.main[rare], {constraint: ("FIFO-DLT", policy("FIFO", role))}))
    return pd.concat(parts, ignore_index=True)


# what measures a claim, by the number in its id
tie("inserted-idle-time", {
    "1": lambda e: held(e, "opt_iits"),
    "2": lambda e: held(e, "opt_iits_ii"),
    "3": lambda e: minus(e, *LADDER, orders=["FIFO"]),
    "4": lambda e: minus(e, *LADDER, orders=["EDF"]),
    "5": gain_grows,
    "6": _constraints_loosen,
    "7a": lambda e: minus(e, ("OPR-MN", "DLT")),
    "7b": lambda e: minus(e, ("OPR-MN", "DLT")),
    "10a": _idle_time_used,
    "10b": lambda e: minus(e, ("DLT", "II")),
    "11": lambda e: minus(e, ("AN", "OPR-MN")),
    "12": lambda e: minus(e, ("EQ-MN", "OPR-MN"), ("US", "OPR-MN")),
    "14a": lambda e: minus(e, ("UMR-IIT", "II"), column="use"),
    "14b": lambda e: minus(e, ("II", "UMR-IIT")),
    "15": _rare_constraints_gain_little,
})  # fmt: skip
tie("inserted-idle-time", {"8": lambda e: held(e, "opt_iits_ii", "opt_iits")}, readings=False)


def family(points: pd.DataFrame) -> pd.DataFrame:
    """Give other differences of reject ratios the intervals by which claim 3 is judged."""
    [like] = [one for one in load_claims() if one.id == "inserted-idle-time-3"]
    return intervals(points, like)


def discordant(frame: pd.DataFrame) -> pd.DataFrame:
    """Count per policy the tasks that it decides otherwise than DLT, with exact bounds."""
    table = frame.groupby("policy", sort=False)[["tasks", "discordant"]].sum()
    low, high = share_bounds(table["discordant"], table["tasks"])
    return table.assign(share=table["discordant"] / table["tasks"], low=low, high=high)


def window(n: int, ratio: float) -> float:
    r"""Return the room that a minimal n leaves for the last gap, in units of sigma tau.

    .. math:: \frac{\mathcal{E}(n-1) - \mathcal{E}(n)}{\sigma\tau}
              = \frac{1}{1-\beta^{n-1}} - \frac{1}{1-\beta^n}

    n is the fewest nodes that meet the deadline, so that :math:`r_{n-1} +
    \mathcal{E}(n-1) > A + D \ge r_n + \mathcal{E}(n)`; Constraint 1 needs a gap
    :math:`r_n - r_{n-1}` of at least 1 in these units.

    >>> [max(n for n in range(2, 17) if window(n, 100 / tau) > 1) for tau in (8, 4, 2, 1)]
    [4, 5, 7, 10]
    """
    decay = -np.log1p(1 / ratio)  # ln beta
    return float(1 / np.expm1(n * decay) - 1 / np.expm1((n - 1) * decay))


def feasible(nodes: int, ratios: Sequence[float]) -> pd.DataFrame:
    """Tell for every n and chi/tau whether Constraint 1 can hold."""
    table = pd.DataFrame(list(product(range(2, nodes + 1), ratios)), columns=["n", "ratio"])
    table["window"] = list(map(window, table["n"], table["ratio"]))
    return table.assign(positive=table["n"] * (table["n"] - 1) / 2 < 1 + table["ratio"])


def less_refused(
    frame: pd.DataFrame, over: Mapping[str, str], by: Sequence[str], text: str = "{}",
    beside: Sequence[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Estimate what roles refuse less than other roles, under FIFO and under EDF.

    Each has the error of its pairs, and that without pairing; policies of one's own `beside` are
    compared with the remodel.
    """
    values, keys, tables = wide(frame, by), list(by), {}
    spread = values.groupby(keys).var()
    for order in ORDERS:
        names = [(policy(order, role), policy(order, base)) for role, base in over.items()]
        names += [(name, policy(order, "DLT")) for name in beside]
        pairs = {text.format(mine, base): (base, mine) for mine, base in names}
        apart = differences(values, pairs)
        alone = pd.DataFrame({name: spread[a] + spread[b] for name, (a, b) in pairs.items()})
        table = summary(tidy(apart, by, "difference"), ["policy", *by], "difference")
        variances = {"standard_error": apart.groupby(keys).var(), "unpaired_error": alone}
        for name, variance in variances.items():
            errors = variance.reset_index().melt(keys, var_name="policy", value_name=name)
            table = table.merge(errors, on=["policy", *by], how="left")
            table[name] = np.sqrt(table[name] / table["n"])
        tables[order] = table
    return pd.concat(tables, names=["order"]).reset_index(0)

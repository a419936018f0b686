"""Paper I: its policies, the switches of its readings, and the measures of its claims.

Source: X. Lin, Y. Lu, J. Deogun, S. Goddard, "Enhancing Real-time Scheduling of Divisible Loads by
Utilizing Inserted Idle Time".

The experiments are cells of notebooks/30-inserted-idle-time.ipynb. The table at the end says how
each claim is measured on the frames that they leave:

main
    One row per load, replicate and policy: the share of refused tasks (ratio), the number of tasks
    (tasks), how many of them are decided otherwise than by the remodel in the same order
    (discordant), the part of the inserted idle time that is used (use). FIFO-DLT and the policies
    with a constraint have counts of plannings, too: with idle time (s_iits), with idle time under
    Constraint 1 (opt_iits) and under Constraint 2 (opt_iits_ii); NaN where nothing is counted.
costs
    The same for EDF-DLT and EDDO-II at several costs of sending (tau).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.reading import find_touched
from dlsim.realtime import POLICIES as ENGINE_POLICIES
from dlsim.realtime import Policy, Reading, workload
from dlsim.study.claims import intervals, load_claims
from dlsim.study.measure import (
    differences,
    measure_claims,
    name_points,
    on,
    pivot_policies,
    points,
    ratio,
    trend,
    with_medians,
)

ORDERS_OF_PAPER_I = ("FIFO", "EDF")
#: Ways to use nodes that the claims compare, in either order; "I" and "II" are FIDO and EDDO.
ROLES = ("DLT", "I", "II", "OPR-MN", "EQ-MN", "US", "AN", "UMR-IIT")
#: Ways that go beyond the paper.
ROLES_BEYOND = ("EXACT", "EXACT-N", "OPR-FRAG", "UMR-MN")
#: How plannings are counted (`dlsim.realtime.Schedule.counts`), the default first.
COUNTING_RULES = ("admitted", "arrival", "replanned", "dispatched", "rtgrid")
#: Switches of the engine, of the workload and of the counts, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {
    **Reading.switches("I"),
    **workload.SWITCHES["dcratio"],
    **workload.SWITCHES["user_split"],
    "counting": COUNTING_RULES,
}
#: Those by which plannings are counted; they change no schedule.
SWITCHES_OF_COUNTS = ("scope", "ties", "count_single", "counting")
#: The constraints by the column that counts them.
CONSTRAINTS = {"Constraint 1": "opt_iits", "Constraint 2": "opt_iits_ii"}
#: The two steps of Figure 3.
STEPS_OF_FIGURE_3 = (("DLT", "I"), ("I", "II"))


def policy_name(order: str, role: str) -> str:
    """Return the name of a policy in the paper's legends.

    >>> [policy_name("EDF", role) for role in ("DLT", "II", "AN")]
    ['EDF-DLT', 'EDDO-II', 'EDFAN']
    """
    if role in ("I", "II"):
        return {"FIFO": "FIDO", "EDF": "EDDO"}[order] + f"-{role}"
    return f"{order}{role}" if role == "AN" else f"{order}-{role}"


#: The policies that the claims compare, FIFO first.
POLICIES = tuple(policy_name(order, role) for order in ORDERS_OF_PAPER_I for role in ROLES)


#: What identifies a row of the frames.
KEYS = dict.fromkeys(("main", "costs"), ("load", "tau", "policy", "replicate"))


def touched(switch: str, frames: object = None) -> list[str]:
    """Return the policies that the claims compare of which a switch can change a row of `main`.

    Each row compares a policy with the remodel in the same order: the remodels are always among
    them, and where a switch touches these, it touches every row.
    """
    if switch in SWITCHES_OF_COUNTS:
        return [policy_name(order, role) for order in ORDERS_OF_PAPER_I for role in ROLES[:3]]
    records = {name: ENGINE_POLICIES[name] for name in POLICIES}
    names = find_touched(switch, records, Reading, workload.UserDraw)
    remodels = [policy_name(order, "DLT") for order in ORDERS_OF_PAPER_I]
    return [*remodels, *names] if set(remodels).isdisjoint(names) else list(POLICIES)


#: Those, and the policies that go beyond the paper.
COMPARED_POLICIES = (
    *POLICIES,
    *(policy_name(order, role) for order in ORDERS_OF_PAPER_I for role in ROLES_BEYOND),
)


def require_admission(policies: Mapping[str, Policy]) -> None:
    """Raise InputError for a policy without admission control: this paper counts refused tasks."""
    for label, policy in policies.items():
        if not policy.admission:
            rule = "refuses no task, and this paper counts refused tasks"
            raise InputError(f"policy {label} {rule}; use one with admission control")


# ------------------------------------------------------------------ reject ratios compared

PolicyPairs = Mapping[str, tuple[str, str]]


def subtract(
    frame: pd.DataFrame, pairs: PolicyPairs, by: Sequence[str] = ("load",), column: str = "ratio"
) -> pd.DataFrame:
    """Return a column (ratio, use) of one policy minus that of another, for each named pair."""
    return with_medians(points(differences(pivot_policies(frame, by, column), pairs), by))


def estimate_gains(
    frame: pd.DataFrame, pairs: PolicyPairs, by: Sequence[str] = ("load",)
) -> pd.DataFrame:
    """Return differences of reject ratios with the intervals by which claim 3 is judged.

    Parameters
    ----------
    frame : DataFrame
        Columns of ``main`` above, and those in `by`.
    pairs : mapping of str to (str, str)
        Policies by the name of their difference: the first minus the second.
    by : sequence of str
        Columns of the place of a point.

    Returns
    -------
    DataFrame
        Per place: ``estimate``, ``low`` and ``high`` (95 % for one point alone), ``least`` and
        ``most`` (95 % for all points at once).
    """
    [like] = [one for one in load_claims() if one.id == "inserted-idle-time-3"]
    return intervals(subtract(frame, pairs, by), like)


def _pairs(*roles: tuple[str, str], orders: Sequence[str] = ORDERS_OF_PAPER_I) -> PolicyPairs:
    """Name pairs of roles in every order."""
    pairs = {}
    for order in orders:
        for pair in roles:
            first, second = (policy_name(order, role) for role in pair)
            pairs[f"{first} - {second}"] = first, second
    return pairs


# ------------------------------------------------------------------ constraints (Table 1)


def _rows_counted(frame: pd.DataFrame, policy: str) -> pd.DataFrame | None:
    """Return the rows of a policy whose plannings were counted, None without any."""
    rows = frame[frame["policy"] == policy]
    return rows if rows["s_iits"].notna().any() else None


def share_under_constraint(main: pd.DataFrame, column: str, less: str = "") -> pd.DataFrame | None:
    """Return the share of plannings with idle time under a constraint, less another's."""
    rows = _rows_counted(main, "FIFO-DLT")
    if rows is None or rows[[column, less or column]].isna().any(axis=None):
        return None
    rows = rows.assign(held=rows[column] - (rows[less] if less else 0))
    return with_medians(name_points(ratio(rows, "held", "s_iits", ["load"]), ["load"]))


def gain_under_rare_constraints(main: pd.DataFrame) -> pd.DataFrame | None:
    """Return the gain of a constraint at the loads where it mostly does not hold."""
    parts = []
    for (constraint, column), role in zip(CONSTRAINTS.items(), ("I", "II"), strict=True):
        shares = share_under_constraint(main, column)
        if shares is None:
            return None
        rare = main["load"].isin(shares[shares["estimate"] < 0.5]["load"])
        if rare.any():
            pair = {constraint: ("FIFO-DLT", policy_name("FIFO", role))}
            parts.append(points(differences(pivot_policies(main[rare], ["load"]), pair), ["load"]))
    return with_medians(pd.concat(parts, ignore_index=True)) if parts else pd.DataFrame()


# ------------------------------------------------------------------ costs of sending (Figure 4)


def _rise_by_octaves(table: pd.DataFrame) -> pd.DataFrame:
    """Estimate the rise while sending becomes cheaper, over the axis of Figure 4, by octaves."""
    taus = sorted(table.index.unique("tau"))
    text = f"{{what}}, tau {taus[-1]:g} to {taus[0]:g}"
    return with_medians(
        trend(table.rename(index=lambda tau: -np.log2(tau), level="tau"), "tau", text)
    )


def rise_of_gain(costs: pd.DataFrame) -> pd.DataFrame:
    """Return the rise of the gain of EDDO-II over EDF-DLT as sending becomes cheaper."""
    pair = {"gain": ("EDF-DLT", "EDDO-II")}
    return _rise_by_octaves(differences(pivot_policies(costs, ["load", "tau"]), pair))


def rise_of_shares(costs: pd.DataFrame) -> pd.DataFrame | None:
    """Return the rise of the share of cases under each constraint as sending becomes cheaper."""
    rows = _rows_counted(costs, "EDF-DLT")
    if rows is None:
        return None
    rows = rows.set_index(["load", "tau", "replicate"])
    return _rise_by_octaves(
        pd.DataFrame(
            {
                constraint: rows[column] / rows["s_iits"]
                for constraint, column in CONSTRAINTS.items()
            }
        )
    )


# ------------------------------------------------------------------ the claims

measure_claims(
    "inserted-idle-time",
    {
        "1": on("main", share_under_constraint, column="opt_iits"),
        "2": on("main", share_under_constraint, column="opt_iits_ii"),
        "3": on("main", subtract, pairs=_pairs(*STEPS_OF_FIGURE_3, orders=["FIFO"])),
        "4": on("main", subtract, pairs=_pairs(*STEPS_OF_FIGURE_3, orders=["EDF"])),
        "5": on("costs", rise_of_gain),
        "6": on("costs", rise_of_shares),
        "7a": on("main", subtract, pairs=_pairs(("OPR-MN", "DLT"))),
        "7b": on("main", subtract, pairs=_pairs(("OPR-MN", "DLT"))),
        "10a": on("main", subtract, pairs=_pairs(("II", "DLT")), column="use"),
        "10b": on("main", subtract, pairs=_pairs(("DLT", "II"))),
        "11": on("main", subtract, pairs=_pairs(("AN", "OPR-MN"))),
        "12": on("main", subtract, pairs=_pairs(("EQ-MN", "OPR-MN"), ("US", "OPR-MN"))),
        "14a": on("main", subtract, pairs=_pairs(("UMR-IIT", "II")), column="use"),
        "14b": on("main", subtract, pairs=_pairs(("II", "UMR-IIT"))),
        "15": on("main", gain_under_rare_constraints),
        "16": on("main", share_under_constraint, column="opt_iits_ii"),
        "17": on("main", share_under_constraint, column="opt_iits_ii", less="opt_iits"),
    },
)

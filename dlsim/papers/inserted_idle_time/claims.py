"""The measuring functions of paper I's claims: evidence in, points of a grid out.

Each takes the `Evidence` and returns columns point, estimate, low, high (95 % interval over
paired replicates), or None where its evidence is not there. data/claims.toml says which
function belongs to which claim, and `dlsim.study.claims` turns the points into a verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from dlsim.papers.inserted_idle_time.runs import named
from dlsim.papers.mcdf.claims import points, wide
from dlsim.study.claims import Claim
from dlsim.study.stats import relative_reduction

ORDERS = ("FIFO", "EDF")
#: Policies that the claims compare; the others go beyond the paper.
ROLES = ("DLT", "I", "II", "OPR-MN", "OPR-FRAG", "EQ-MN", "US", "AN", "UMR-IIT")
#: Those of them whose use of idle time is compared.
USE = ("DLT", "II", "UMR-IIT")
#: The constraints by the column that counts them.
CONSTRAINTS = {"Constraint 1": "opt_iits", "Constraint 2": "opt_iits_ii"}


class Evidence(NamedTuple):
    """The sweeps that claims are measured on."""

    main: pd.DataFrame
    taus: pd.DataFrame


def differences(
    frame: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], by: Sequence[str],
    column: str = "ratio",
) -> pd.DataFrame:  # fmt: skip
    """Subtract one policy from another on the same workload."""
    table = wide(frame, by, column)
    return pd.DataFrame({name: table[a] - table[b] for name, (a, b) in pairs.items()})


def _by_load(e: Evidence, *pairs: tuple[str, str], column: str = "ratio") -> pd.DataFrame:
    """Compare roles at every load: for FIFO and EDF the first minus the second."""
    wanted = {
        f"{named(order, a)} - {named(order, b)}": (named(order, a), named(order, b))
        for order in ORDERS
        for a, b in pairs
    }
    return points(differences(e.main, wanted, ["load"], column), ["load"])


def _counted(frame: pd.DataFrame, policy: str) -> pd.DataFrame | None:
    """Return the rows of a policy whose plannings were counted, None without any."""
    rows = frame[frame["policy"] == policy]
    return rows if "s_iits" in rows and rows["s_iits"].notna().any() else None


def held(rows: pd.DataFrame, column: str, by: Sequence[str]) -> pd.DataFrame:
    """Estimate the share of plannings with idle time in which a constraint holds."""
    tidy = rows.melt([*by, "replicate"], [column, "s_iits"], var_name="what", value_name="count")
    table = relative_reduction(tidy, "count", "what", column, "s_iits", at=list(by))
    ends = {"estimate": 1 - table["estimate"], "low": 1 - table["high"], "high": 1 - table["low"]}
    return table.assign(**ends)


def _share(e: Evidence, constraint: str) -> pd.DataFrame | None:
    rows = _counted(e.main, "FIFO-DLT")
    if rows is None:
        return None
    column = CONSTRAINTS[constraint]
    if rows[column].isna().any():
        return None
    table = held(rows, column, ["load"])
    return table.assign(point=[f"load {load:g}" for load in table["load"]])


def constraint_1_share(e: Evidence) -> pd.DataFrame | None:
    """Claim 1: share of plannings with idle time under Constraint 1, at every load."""
    return _share(e, "Constraint 1")


def constraint_2_share(e: Evidence) -> pd.DataFrame | None:
    """Claim 2: share of plannings with idle time under Constraint 2, at every load."""
    return _share(e, "Constraint 2")


def _steps(e: Evidence, order: str) -> pd.DataFrame:
    names = [named(order, role) for role in ("DLT", "I", "II")]
    pairs = {f"{a} - {b}": (a, b) for a, b in pairwise(names)}
    return points(differences(e.main, pairs, ["load"]), ["load"])


def fifo_steps(e: Evidence) -> pd.DataFrame:
    """Claim 3: FIFO-DLT minus FIDO-I, and FIDO-I minus FIDO-II, at every load."""
    return _steps(e, "FIFO")


def edf_steps(e: Evidence) -> pd.DataFrame:
    """Claim 4: EDF-DLT minus EDDO-I, and EDDO-I minus EDDO-II, at every load."""
    return _steps(e, "EDF")


def gains(e: Evidence) -> pd.DataFrame:
    """Reject ratio of EDF-DLT minus that of EDDO-II at every cost of sending (Figure 4)."""
    return differences(e.taus, {"gain": ("EDF-DLT", "EDDO-II")}, ["load", "tau"])


def _cheaper(table: pd.DataFrame) -> pd.DataFrame:
    """Subtract, from every cost of sending to the next smaller one; columns name both."""
    costs = sorted(table.index.unique("tau"), reverse=True)
    parts = {
        f"tau {a:g} to {b:g}": table.xs(b, level="tau") - table.xs(a, level="tau")
        for a, b in pairwise(costs)
    }
    steps = pd.concat(parts, axis=1)
    steps.columns = steps.columns.map(lambda pair: f"{pair[1]}, {pair[0]}")
    return steps


def gain_grows(e: Evidence) -> pd.DataFrame:
    """Claim 5: gain of EDDO-II at one cost of sending minus at the next larger one."""
    return points(_cheaper(gains(e)), ["load"])


def constraints_loosen(e: Evidence) -> pd.DataFrame | None:
    """Claim 6: how often a constraint holds, at one cost of sending minus at the larger."""
    rows = _counted(e.taus, "EDF-DLT")
    if rows is None:
        return None
    rows = rows.set_index(["load", "tau", "replicate"])
    table = pd.DataFrame({c: rows[column] / rows["s_iits"] for c, column in CONSTRAINTS.items()})
    return points(_cheaper(table), ["load"])


def remodel_pays(e: Evidence) -> pd.DataFrame:
    """Claim 7: OPR-MN minus DLT."""
    return _by_load(e, ("OPR-MN", "DLT"))


def constraint_2_is_weaker(e: Evidence) -> pd.DataFrame | None:
    """Claim 8: share under Constraint 2 minus share under Constraint 1, at every load."""
    rows = _counted(e.main, "FIFO-DLT")
    if rows is None or rows["opt_iits_ii"].isna().any():
        return None
    more = rows.assign(more=rows["opt_iits_ii"] - rows["opt_iits"])
    table = held(more, "more", ["load"])
    return table.assign(point=[f"load {load:g}" for load in table["load"]])


def _used(e: Evidence, *pairs: tuple[str, str]) -> pd.DataFrame:
    return _by_load(e._replace(main=with_use(e.main)), *pairs, column="use")


def with_use(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the column use: the used share of the idle node time, where it was measured."""
    return frame.assign(use=frame["used"] / frame["idle"])


def more_idle_time_used(e: Evidence) -> pd.DataFrame:
    """Claim 10a: used share of the idle time under Constraint 2 minus under the remodel."""
    return _used(e, ("II", "DLT"))


def performance_improves(e: Evidence) -> pd.DataFrame:
    """Claim 10b: DLT minus II."""
    return _by_load(e, ("DLT", "II"))


def fewest_beat_all(e: Evidence) -> pd.DataFrame:
    """Claim 11: AN minus OPR-MN."""
    return _by_load(e, ("AN", "OPR-MN"))


def theory_pays(e: Evidence) -> pd.DataFrame:
    """Claim 12: EQ-MN minus OPR-MN, and US minus OPR-MN."""
    return _by_load(e, ("EQ-MN", "OPR-MN"), ("US", "OPR-MN"))


def fragments_gain(e: Evidence) -> pd.DataFrame:
    """Claim 13a: OPR-MN minus OPR-FRAG."""
    return _by_load(e, ("OPR-MN", "OPR-FRAG"))


def remodel_beats_fragments(e: Evidence) -> pd.DataFrame:
    """Claim 13b: OPR-FRAG minus DLT."""
    return _by_load(e, ("OPR-FRAG", "DLT"))


def rounds_use_more(e: Evidence) -> pd.DataFrame:
    """Claim 14a: used share of the idle time in several rounds minus under Constraint 2."""
    return _used(e, ("UMR-IIT", "II"))


def rounds_perform_better(e: Evidence) -> pd.DataFrame:
    """Claim 14b: II minus UMR-IIT."""
    return _by_load(e, ("II", "UMR-IIT"))


def rare_constraints_gain_little(e: Evidence) -> pd.DataFrame | None:
    """Claim 15: DLT minus I and minus II, where the constraint mostly does not hold."""
    rows, parts = _counted(e.main, "FIFO-DLT"), [pd.DataFrame()]
    for (constraint, column), role in zip(CONSTRAINTS.items(), ("I", "II"), strict=True):
        if rows is None or rows[column].isna().any():
            return None
        shares = held(rows, column, ["load"])
        rare = e.main["load"].isin(shares[shares["estimate"] < 0.5]["load"])
        if rare.any():
            pair = {constraint: ("FIFO-DLT", named("FIFO", role))}
            parts.append(points(differences(e.main[rare], pair, ["load"]), ["load"]))
    return pd.concat(parts, ignore_index=True)


#: Claims that simulations decide: the rows of the heat map.
BY_READING = (
    "constraint_1_share", "constraint_2_share", "fifo_steps", "edf_steps", "gain_grows",
    "constraints_loosen", "remodel_pays", "more_idle_time_used", "performance_improves",
    "fewest_beat_all", "theory_pays", "fragments_gain", "remodel_beats_fragments",
    "rounds_use_more", "rounds_perform_better", "rare_constraints_gain_little",
)  # fmt: skip


def measured(claim: Claim, e: Evidence) -> pd.DataFrame | None:
    """Measure a claim."""
    function: Callable[[Evidence], pd.DataFrame | None] | None = globals().get(claim.measure)
    return function(e) if function else None

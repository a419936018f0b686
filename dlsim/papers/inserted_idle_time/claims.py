"""What paper I's claims are measured by: evidence in, points of a grid out."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.papers.inserted_idle_time.cells import named as policy
from dlsim.study.measure import claim, differences, named, points, ratio, steps, tidy, wide
from dlsim.study.stats import summary

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


def _by_load(e: Evidence, *pairs: tuple[str, str], column: str = "ratio") -> pd.DataFrame:
    """Compare roles at every load: for FIFO and EDF the first minus the second."""
    names = [(policy(o, a), policy(o, b)) for o in ORDERS for a, b in pairs]
    return _apart(e, names, column)


def _apart(e: Evidence, names: Sequence[tuple[str, str]], column: str = "ratio") -> pd.DataFrame:
    pairs = {f"{a} - {b}": (a, b) for a, b in names}
    return points(differences(wide(e.main, ["load"], column), pairs), ["load"])


def _counted(frame: pd.DataFrame, name: str) -> pd.DataFrame | None:
    """Return the rows of a policy whose plannings were counted, None without any."""
    rows = frame[frame["policy"] == name]
    return rows if "s_iits" in rows and rows["s_iits"].notna().any() else None


def _held(e: Evidence, column: str) -> pd.DataFrame | None:
    """Estimate the share of plannings with idle time in which a constraint holds."""
    rows = _counted(e.main, "FIFO-DLT")
    if rows is None or rows[column].isna().any():
        return None
    return named(ratio(rows, column, "s_iits", ["load"]), ["load"])


@claim("inserted-idle-time-1")
def constraint_1_share(e: Evidence) -> pd.DataFrame | None:
    """Claim 1: share of plannings with idle time under Constraint 1, at every load."""
    return _held(e, "opt_iits")


@claim("inserted-idle-time-2")
def constraint_2_share(e: Evidence) -> pd.DataFrame | None:
    """Claim 2: share of plannings with idle time under Constraint 2, at every load."""
    return _held(e, "opt_iits_ii")


@claim("inserted-idle-time-3")
def fifo_steps(e: Evidence) -> pd.DataFrame:
    """Claim 3: FIFO-DLT minus FIDO-I, and FIDO-I minus FIDO-II, at every load."""
    return _apart(e, [*pairwise(policy("FIFO", role) for role in ("DLT", "I", "II"))])


@claim("inserted-idle-time-4")
def edf_steps(e: Evidence) -> pd.DataFrame:
    """Claim 4: EDF-DLT minus EDDO-I, and EDDO-I minus EDDO-II, at every load."""
    return _apart(e, [*pairwise(policy("EDF", role) for role in ("DLT", "I", "II"))])


def _cheaper(table: pd.DataFrame) -> pd.DataFrame:
    """Subtract, from every cost of sending to the next smaller one; columns name both."""
    return points(steps(table, "tau", "{what}, tau {a:g} to {b:g}", falling=True), ["load"])


@claim("inserted-idle-time-5")
def gain_grows(e: Evidence) -> pd.DataFrame:
    """Claim 5: gain of EDDO-II over EDF-DLT at one cost of sending minus at the next larger."""
    table = wide(e.taus, ["load", "tau"])
    return _cheaper(differences(table, {"gain": ("EDF-DLT", "EDDO-II")}))


@claim("inserted-idle-time-6")
def constraints_loosen(e: Evidence) -> pd.DataFrame | None:
    """Claim 6: how often a constraint holds, at one cost of sending minus at the larger."""
    rows = _counted(e.taus, "EDF-DLT")
    if rows is None:
        return None
    rows = rows.set_index(["load", "tau", "replicate"])
    return _cheaper(pd.DataFrame({c: rows[k] / rows["s_iits"] for c, k in CONSTRAINTS.items()}))


@claim("inserted-idle-time-7")
def remodel_pays(e: Evidence) -> pd.DataFrame:
    """Claim 7: OPR-MN minus DLT."""
    return _by_load(e, ("OPR-MN", "DLT"))


@claim("inserted-idle-time-8", readings=False)
def constraint_2_is_weaker(e: Evidence) -> pd.DataFrame | None:
    """Claim 8: share under Constraint 2 minus share under Constraint 1, at every load."""
    more = e.main
    if "opt_iits" in more:
        more = more.assign(more=more["opt_iits_ii"] - more["opt_iits"])
    return _held(e._replace(main=more), "more")


def with_use(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the column use: the used share of the idle node time, where it was measured."""
    return frame.assign(use=frame["used"] / frame["idle"])


def _used(e: Evidence, *pairs: tuple[str, str]) -> pd.DataFrame:
    return _by_load(e._replace(main=with_use(e.main)), *pairs, column="use")


@claim("inserted-idle-time-10a")
def more_idle_time_used(e: Evidence) -> pd.DataFrame:
    """Claim 10a: used share of the idle time under Constraint 2 minus under the remodel."""
    return _used(e, ("II", "DLT"))


@claim("inserted-idle-time-10b")
def performance_improves(e: Evidence) -> pd.DataFrame:
    """Claim 10b: DLT minus II."""
    return _by_load(e, ("DLT", "II"))


@claim("inserted-idle-time-11")
def fewest_beat_all(e: Evidence) -> pd.DataFrame:
    """Claim 11: AN minus OPR-MN."""
    return _by_load(e, ("AN", "OPR-MN"))


@claim("inserted-idle-time-12")
def theory_pays(e: Evidence) -> pd.DataFrame:
    """Claim 12: EQ-MN minus OPR-MN, and US minus OPR-MN."""
    return _by_load(e, ("EQ-MN", "OPR-MN"), ("US", "OPR-MN"))


@claim("inserted-idle-time-13a")
def fragments_gain(e: Evidence) -> pd.DataFrame:
    """Claim 13a: OPR-MN minus OPR-FRAG."""
    return _by_load(e, ("OPR-MN", "OPR-FRAG"))


@claim("inserted-idle-time-13b")
def remodel_beats_fragments(e: Evidence) -> pd.DataFrame:
    """Claim 13b: OPR-FRAG minus DLT."""
    return _by_load(e, ("OPR-FRAG", "DLT"))


@claim("inserted-idle-time-14a")
def rounds_use_more(e: Evidence) -> pd.DataFrame:
    """Claim 14a: used share of the idle time in several rounds minus under Constraint 2."""
    return _used(e, ("UMR-IIT", "II"))


@claim("inserted-idle-time-14b")
def rounds_perform_better(e: Evidence) -> pd.DataFrame:
    """Claim 14b: II minus UMR-IIT."""
    return _by_load(e, ("II", "UMR-IIT"))


@claim("inserted-idle-time-15")
def rare_constraints_gain_little(e: Evidence) -> pd.DataFrame | None:
    """Claim 15: DLT minus I and minus II, where the constraint mostly does not hold."""
    parts = [pd.DataFrame()]
    for (constraint, column), role in zip(CONSTRAINTS.items(), ("I", "II"), strict=True):
        shares = _held(e, column)
        if shares is None:
            return None
        rare = e.main["load"].isin(shares[shares["estimate"] < 0.5]["load"])
        if rare.any():
            pair = {constraint: ("FIFO-DLT", policy("FIFO", role))}
            parts.append(points(differences(wide(e.main[rare], ["load"]), pair), ["load"]))
    return pd.concat(parts, ignore_index=True)


def compared(
    frame: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], by: Sequence[str],
    column: str = "ratio",
) -> pd.DataFrame:  # fmt: skip
    """Estimate differences of policies, with the error of pairs and that without pairing."""
    values = wide(frame, by, column)
    apart, spread = differences(values, pairs), values.groupby(list(by)).var()
    alone = pd.DataFrame({name: spread[a] + spread[b] for name, (a, b) in pairs.items()})
    table = summary(tidy(apart, by, "difference"), ["policy", *by], "difference")
    for name, variance in (
        ("standard_error", apart.groupby(list(by)).var()),
        ("unpaired_error", alone),
    ):
        errors = variance.reset_index().melt(list(by), var_name="policy", value_name=name)
        table = table.merge(errors, on=["policy", *by], how="left")
        table[name] = np.sqrt(table[name] / table["n"])
    return table

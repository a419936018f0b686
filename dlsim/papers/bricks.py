"""Paper B: the constants of its experiments, and the measures of its claims.

Source: A. Takefusa, S. Matsuoka, H. Casanova, F. Berman, "A Study of Deadline Scheduling for
Client-Server Systems on the Computational Grid", HPDC 2001.

The experiments are cells of notebooks/60-bricks.ipynb. The table at the end says how each claim is
measured on the frames that these leave:

runs
    Figures 3 to 6, one row per scheduler, interval and environment: interval, replicate, policy,
    corrected (0 or 1), fallbacks, failure, cost, requests.
causes
    The same columns with condition (a key of `BLAMED_CAUSES`) in place of interval.
sizes
    The same columns with nodes in place of interval.
background
    model ("trace" or "extraneous"), replicate, spread.
seconds
    resource, model, replicate, seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dlsim.bricks import INPUT_SWITCHES, Policy, Reading, find_policy
from dlsim.bricks import SWITCHES as ENGINE_SWITCHES
from dlsim.errors import InputError
from dlsim.reading import find_touched
from dlsim.study.measure import (
    differences,
    measure_claims,
    name_points,
    on,
    pivot_policies,
    points,
    trend,
    with_medians,
)
from dlsim.study.stats import relative_reduction

#: The schedulers of Figures 3 to 6.
POLICIES = ("Greedy", "D-0.5", "D-0.6", "D-0.7", "D-0.8", "D-0.9")
#: The four versions of Figures 3 and 4: Load Correction, and fallbacks.
SCHEDULER_VERSIONS = {"x/x": (0, 0), "L/x": (1, 0), "x/F": (0, 1), "L/F": (1, 1)}
#: Pairs of versions that differ in Fallback, and in Load Correction.
FALLBACK_PAIRS = (("x/x", "x/F"), ("L/x", "L/F"))
CORRECTION_PAIRS = (("x/x", "L/x"), ("x/F", "L/F"))
#: Switches of a reading with their options, the default first: of the simulator, of
#: `Environment.random`, and of the scheduler.
SWITCHES: dict[str, tuple[Any, ...]] = {
    **{name: options for name, options in ENGINE_SWITCHES.items() if name != "probe"},
    "probe": ENGINE_SWITCHES["probe"],  # last, as in the shipped map of readings
    **INPUT_SWITCHES,
    "exclude_rejecting": (False, True),
}
#: Causes to which section 4.2 ascribes the small gain of Load Correction, each with the change of
#: the reading that takes it away.
BLAMED_CAUSES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no noise on links": {"trace_std": 0.0},
    "no outside jobs": {"server_load": 0.0},
    "perfect prediction": {"predictor": "perfect"},
    "none of the three": {"trace_std": 0.0, "server_load": 0.0, "predictor": "perfect"},
}
#: The inputs that both models of background load depend on.
SWITCHES_OF_BACKGROUND = ("server_load", "H", "trace_step", "trace_std", "trace_method")
#: Nodes from which on a system counts as large (claim 11): the paper's own.
LARGE_SYSTEM_NODES = 75
#: The reduction of the failure rate from which it is dramatic (claim 1a).
DRAMATIC_REDUCTION = 0.10


def find_scheduler(policy: str, **options: Any) -> Policy:
    """Return the policy of a legend such as "Greedy", "D-0.7" or "FILE.py:rule", with mechanisms.

    Parameters
    ----------
    policy : str
        Greedy; D- and Opt, in (0, 1]; or a function of a user's file.
    **options
        Further fields of `dlsim.bricks.Policy`.

    Raises
    ------
    InputError
        For another legend, also for one that says a mechanism, or as `Policy`.
    """
    found = find_policy(policy)
    if found.load_correction or found.max_fallbacks:
        rule = "a legend without Load Correction and Fallback, which are added"
        raise InputError(f"policy must be {rule}; got {policy!r}; use its first word")
    return replace(found, **options)


#: What identifies a row of the frame of which a reading may run a part.
KEYS = {"runs": ("interval", "policy", "corrected", "fallbacks", "replicate")}


def touched(switch: str, frames: Mapping[str, pd.DataFrame]) -> list[tuple[str, int, int]]:
    """Return those policies of `runs`, with correction and fallbacks, that a switch can change.

    The cost that a claim means is chosen from the results of a run: `cost` touches none.
    """
    if switch == "cost":
        return []
    versions = frames["runs"][["policy", "corrected", "fallbacks"]].drop_duplicates()
    records = {
        version: find_scheduler(
            version[0], load_correction=bool(version[1]), max_fallbacks=version[2]
        )
        for version in versions.itertuples(index=False, name=None)
    }
    if switch == "exclude_rejecting":
        return [version for version, record in records.items() if record.max_fallbacks > 0]
    return find_touched(switch, records, Reading)


def name_version(corrected: int, fallbacks: int) -> str:
    """Return the paper's sign for Load Correction and Fallback, such as ``"L/x"``."""
    return f"{'L' if corrected else 'x'}/{'F' if fallbacks else 'x'}"


def add_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the column version, such as ``"L/x"``, to the rows of runs."""
    return frame.assign(version=list(map(name_version, frame["corrected"], frame["fallbacks"])))


# ------------------------------------------------------------------ parts of the measures


def by_scheduler(frame: pd.DataFrame, column: str, by: str = "interval") -> pd.DataFrame:
    """Return one column per policy, correction and fallbacks, one row per point and environment."""
    return pivot_policies(frame, [by], column, ["policy", "corrected", "fallbacks"])


def sort_opts(policies: Iterable[str]) -> list[str]:
    """Return the legends of Deadline among some policies, the smallest Opt first."""
    names = {name for name in policies if name.startswith("D-")}
    return sorted(names, key=lambda name: float(name.removeprefix("D-")))


def estimate_changes(changes: Any, by: str = "interval") -> pd.DataFrame:
    """Estimate paired changes at every point of an axis, one column of changes per name."""
    return points(pd.DataFrame(changes), [by]).sort_values(by, kind="stable", ignore_index=True)


def pair_versions(
    table: pd.DataFrame, pairs: Sequence[tuple[str, str]]
) -> dict[str, tuple[Any, Any]]:
    """Name the columns of every policy in two versions, such as ``"Greedy x/x - x/F"``."""
    return {
        f"{name} {a} - {b}": ((name, *SCHEDULER_VERSIONS[a]), (name, *SCHEDULER_VERSIONS[b]))
        for a, b in pairs
        for name in ("Greedy", *sort_opts(table.columns.unique("policy")))
    }


def subtract_corrected(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Subtract, policy by policy, the failure rate with Load Correction from that without."""
    table = by_scheduler(frame, "failure", by)
    return differences(table, pair_versions(table, CORRECTION_PAIRS))


def gains_of_correction(frame: pd.DataFrame, by: str = "interval") -> pd.DataFrame:
    """Estimate by how much Load Correction lowers the failure rate."""
    return with_medians(estimate_changes(subtract_corrected(frame, by), by))


def removed_failures(
    runs: pd.DataFrame, fewest: int, most: int | None = None, corrected: Sequence[int] = (0,)
) -> pd.DataFrame:
    """Estimate the share of failures that more fallbacks remove, by policy and interval.

    Without a number of them, it is the largest that was run.
    """
    most = runs["fallbacks"].max() if most is None else most
    rows = runs[runs["corrected"].isin(corrected)]
    rows = rows.assign(what=rows["policy"] + rows["corrected"].map({0: "", 1: ", corrected"}))
    at = ["what", "interval"]
    return name_points(relative_reduction(rows, "failure", "fallbacks", most, fewest, at=at), at)


def trend_over_opt(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Estimate the trend of Deadline over Opt in every version: of failures, or of cost saved."""
    rows = add_version(runs[(runs["fallbacks"] <= 1) & runs["policy"].str.startswith("D-")])
    rows["opt"] = rows["policy"].str.removeprefix("D-").astype(float)
    table = pivot_policies(rows, ["interval", "opt"], column, "version")
    if column == "cost":
        table = 1 - table / table.groupby(level=["interval", "replicate"]).transform("first")
    return trend(table, "opt")


def compare_columns(
    table: pd.DataFrame, first: Any, second: Any, column: str
) -> "pd.Series[float]":
    """Return how much less the second fails than the first; or by which part it costs less."""
    if column == "failure":
        return table[first] - table[second]
    return 1 - table[second] / table[first]


def compare_with_greedy(
    runs: pd.DataFrame, column: str, opts: int | None = None, same_version: bool = False
) -> pd.DataFrame:
    """Compare Deadline in every version with Greedy x/x, or with Greedy in the same version.

    Of the smallest `opts` values of Opt, or of all.
    """
    table = by_scheduler(runs, column)
    names = sort_opts(table.columns.unique("policy"))[:opts]
    changes = {}
    for sign, version in SCHEDULER_VERSIONS.items():
        greedy = ("Greedy", *(version if same_version else (0, 0)))
        for name in names:
            changes[f"{name} {sign}"] = compare_columns(table, greedy, (name, *version), column)
    return estimate_changes(changes)


# ------------------------------------------------------------------ measures of single claims


def fallback_in_points(runs: pd.DataFrame) -> pd.DataFrame | None:
    """Return the failure rate that one fallback removes, where at least as many fail without it."""
    table = by_scheduler(runs, "failure")
    pairs = pair_versions(table, FALLBACK_PAIRS)
    without = estimate_changes({name: table[a] for name, (a, _) in pairs.items()})
    found = estimate_changes(differences(table, pairs))[without["estimate"] > DRAMATIC_REDUCTION]
    return None if found.empty else found


def cost_of_fallbacks(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the cost with the most fallbacks over that without, minus one."""
    table, most = by_scheduler(runs, "cost"), runs["fallbacks"].max()
    names = ("Greedy", *sort_opts(table.columns.unique("policy")))
    return estimate_changes(
        {name: table[(name, 0, most)] / table[(name, 0, 0)] - 1 for name in names}
    )


def trade_off(runs: pd.DataFrame) -> pd.DataFrame | None:
    """Return the rise of the failure rate and the fall of the cost from least to largest Opt."""
    if len(sort_opts(runs["policy"])) < 2:
        return None
    parts = []
    for column in ("failure", "cost"):
        table = by_scheduler(runs, column)
        smallest, *_, largest = sort_opts(table.columns.unique("policy"))
        first, second = (largest, smallest) if column == "failure" else (smallest, largest)
        changes = {}
        for fallbacks in (0, 1, runs["fallbacks"].max()):
            columns = (first, 0, fallbacks), (second, 0, fallbacks)
            changes[f"{column}, {fallbacks} fallbacks"] = compare_columns(table, *columns, column)
        parts.append(estimate_changes(changes))
    return pd.concat(parts, ignore_index=True)


def recommended_against_greedy(runs: pd.DataFrame) -> pd.DataFrame:
    """Compare Deadline with the most fallbacks with Greedy x/x: by failure rate and by cost."""
    parts = []
    for column in ("failure", "cost"):
        table, most = by_scheduler(runs, column), runs["fallbacks"].max()
        changes = {
            f"{column}, {name}": compare_columns(table, ("Greedy", 0, 0), (name, 0, most), column)
            for name in sort_opts(table.columns.unique("policy"))
        }
        parts.append(estimate_changes(changes))
    return pd.concat(parts, ignore_index=True)


def gain_without_causes(causes: pd.DataFrame) -> pd.DataFrame:
    """Return the gain of Load Correction without a blamed cause, minus the gain with it."""
    table, usual = subtract_corrected(causes, "condition"), "as it is"
    others = [name for name in table.index.unique("condition") if name != usual]
    apart = [(table.loc[name] - table.loc[usual]).add_prefix(f"{name}: ") for name in others]
    return pd.concat(map(points, apart), ignore_index=True)


def gain_in_large_systems(sizes: pd.DataFrame) -> pd.DataFrame:
    """Return the gain of Load Correction in systems of `LARGE_SYSTEM_NODES` nodes and more."""
    return gains_of_correction(sizes[sizes["nodes"] >= LARGE_SYSTEM_NODES], "nodes")


def time_of_models(seconds: pd.DataFrame) -> pd.DataFrame:
    """Return the share of environments in which a run with extraneous users takes more CPU time."""
    table = pivot_policies(seconds, ["resource"], "seconds", "model")
    dearer = (table["extraneous"] > table["trace"]).astype(float)
    found = points(dearer.unstack("resource"))
    return found.assign(total=found["n"], values=None)


def spread_of_models(background: pd.DataFrame) -> pd.DataFrame:
    """Return the spread of the links' coefficients of variation, extraneous data minus traces."""
    table = pivot_policies(background, [], "spread", "model")
    return points(differences(table, {"links": ("extraneous", "trace")}))


# ------------------------------------------------------------------ the claims

measure_claims(
    "bricks",
    {
        "1a": on("runs", fallback_in_points),
        "1b": on("runs", removed_failures, most=1, fewest=0, corrected=(0, 1)),
        "2a": on("runs", gains_of_correction),
        "2b": on("runs", gains_of_correction),
        "3": on("runs", trend_over_opt, column="failure"),
        "4": on("runs", compare_with_greedy, column="cost", same_version=True),
        "5": on("runs", trend_over_opt, column="cost"),
        "6a": on("runs", compare_with_greedy, column="failure", opts=1),
        "6b": on("runs", compare_with_greedy, column="cost", opts=1),
        "7a": on("runs", removed_failures, fewest=0),
        "7b": on("runs", removed_failures, fewest=1),
        "8a": on("runs", cost_of_fallbacks),
        "8b": on("runs", cost_of_fallbacks),
        "9": on("runs", trade_off),
        "10": on("causes", gain_without_causes),
        "11": on("sizes", gain_in_large_systems),
        "12a": on("seconds", time_of_models, readings=False),
        "12b": on("background", spread_of_models),
        "13": on("runs", recommended_against_greedy),
    },
)

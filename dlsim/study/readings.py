"""The map of readings: every claim of a paper under every reading, one switch changed at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.files import read_csv
from dlsim.study import session
from dlsim.study.claims import COLUMNS, Claim, Verdict, judge_claim, load_claims, reference_of
from dlsim.study.measure import MEASURES
from dlsim.study.saving import save
from dlsim.study.session import name_reading
from dlsim.study.verdict import measure_claim

Switches = Mapping[str, Any]
#: From a switch, its value and what it touches to the frames that were run again.
_Run = Callable[[str, Any, list[Any]], Mapping[str, Any]]


def list_changes(
    switches: Mapping[str, Sequence[Any]], reading: Switches | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield every switch and value by which a reading differs in one switch from a given one."""
    for name, options in switches.items():
        here = name_reading({name: (reading or {}).get(name, options[0])})
        yield from ((name, one) for one in options if name_reading({name: one}) != here)


def replace_rows(frame: pd.DataFrame, rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Put rows that were run again into the place of the old ones; the others stay as they are.

    Parameters
    ----------
    frame : DataFrame
        What a sweep returned under the notebook's reading.
    rows : DataFrame
        What a part of it returned under another reading. Columns of the frame that it does not have
        stay as they are, too.
    by : sequence of str
        Columns that identify what was run again, such as the load, the policy and the replicate.

    Returns
    -------
    DataFrame
        In the order of the frame; without the replicates that were not run again.

    Raises
    ------
    InputError
        For rows of a place that the frame does not have.
    """
    keys = list(by)
    kept = frame.columns.difference(rows.columns)
    if len(kept):
        rows = rows.merge(frame[[*keys, *kept]], on=keys)
    frame = frame[frame["replicate"].isin(rows["replicate"])]
    places = frame[keys].drop_duplicates().reset_index(drop=True).rename_axis("place").reset_index()
    is_again = pd.MultiIndex.from_frame(frame[keys]).isin(pd.MultiIndex.from_frame(rows[keys]))
    both = pd.concat([frame[~is_again], rows[list(frame)]])
    found = both.merge(places, on=keys)
    if len(found) != len(both):
        raise InputError(f"rows were run again of places that the frame does not have, by {keys}")
    found = found.sort_values("place", kind="stable", ignore_index=True)
    return found.drop(columns="place")


def _row(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict under a reading, with the point that speaks most against the claim."""
    missing = "Not run under this reading."
    is_run = verdict.intervals is not None or verdict.claim.reason
    reason = {} if is_run or verdict.reason else {"reason": missing}
    return {"reading": name, **verdict.row, **session.current().sample, **reason}


def _mapped_claims() -> list[Claim]:
    """Return the claims of the paper to which readings matter."""
    known = load_claims(session.current().paper)
    return [one for one in known if one.id in MEASURES and MEASURES[one.id].readings]


def _list_session_verdicts(name: str) -> Iterator[dict[str, Any]]:
    """Yield the verdicts of this session, one row per claim, with `name` as the reading."""
    here = session.current()
    for claim in _mapped_claims():
        yield _row(name, here.verdicts.get(claim.id) or judge_claim(claim))


def _judge_frames(name: str, frames: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the verdicts on the frames of a reading; a claim that lacks one is not checked."""
    for claim in _mapped_claims():
        is_run = all(frames.get(one) is not None for one in MEASURES[claim.id].frames)
        yield _row(name, measure_claim(claim, named=frames) if is_run else judge_claim(claim))


def _run_all(run: _Run, frames: Mapping[str, Any]) -> pd.DataFrame:
    """Return this run's verdicts, then those under every reading that differs in one switch."""
    here = session.current()
    rows = list(_list_session_verdicts(name_reading(here.reading)))
    for switch, value in list_changes(here.module.SWITCHES, here.reading):
        again = dict(run(switch, value, here.module.touched(switch, frames)))
        for name, keys in here.module.KEYS.items():
            if again.get(name) is not None:
                again[name] = replace_rows(frames[name], again[name], keys)
        rows += _judge_frames(name_reading({switch: value}), {**frames, **again})
    return pd.DataFrame(rows)


def _add_shipped_map() -> pd.DataFrame:
    """Return this run's verdicts, then those of all readings at full scale."""
    here = session.current()
    own = pd.DataFrame(_list_session_verdicts(f"this run: {name_reading(here.reading)}"))
    place = reference_of(here.paper).parent / f"{here.paper}-readings-intervals.csv"
    shipped = read_csv(place, {"reading": "any"} | COLUMNS)
    own = own[own["id"].isin(shipped["id"])]  # a claim may be younger than the shipped run
    return pd.concat([own, shipped], ignore_index=True)


def _pivot(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Put one column of the verdicts on a claim under all readings beside each other."""
    wide = table.pivot(index="id", columns="reading", values=column)
    rows, columns = (list(dict.fromkeys(table[name])) for name in ("id", "reading"))
    return wide.reindex(index=rows, columns=columns).rename_axis(index="claim", columns=None)


def by_reading(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the words of the verdicts, and how many points of how many are for the claim.

    All points of a claim that is stronger than claimed are counted as for it.
    """
    for_it = table["for"].mask(table["verdict"] == "stronger than claimed", table["points"])
    count = for_it.astype(str) + "/" + table["points"].astype(str)
    table = table.assign(count=count.where(table["points"] > 0, ""))
    return _pivot(table, "verdict"), _pivot(table, "count")


def map_of_readings(run: _Run, frames: Mapping[str, Any]) -> pd.DataFrame:
    """Draw and keep the verdicts on every claim under every reading, one switch changed at a time.

    The first column has the verdicts of this notebook. At quick scale no other reading is run:
    the map that is shipped with dlsim, which was run at full scale, stands beside it.

    Parameters
    ----------
    run : callable
        From the name of a switch, its value, and what it touches (``touched`` in the module of the
        paper) to a dict of what is run again: frames by the names that the measures of the claims
        have as parameters. Where the module names the keys of a frame (``KEYS``), a part of it is
        enough. A frame that is None leaves its claims unchecked.
    frames : mapping
        The frames of this notebook by the same names: all that is not run again is taken from here.

    Returns
    -------
    DataFrame
        One row per claim, one column per reading: the word of the verdict, and how many points of
        how many are for the claim.
    """
    from dlsim.study import plots

    here = session.current()
    is_full = here.scale == "full"
    numbers = _run_all(run, frames) if is_full else _add_shipped_map()
    words, counts = by_reading(numbers)
    shown = (words + " " + counts).map(str.strip)
    here.folder_of_results.table(f"{here.paper}-readings-intervals", numbers)
    ax = plots.plot_verdict_map(words, counts)
    is_small = shown.shape[1] <= plots.FEW_READINGS
    claims, readings = ("rows", "columns") if is_small else ("columns", "rows")
    title = f"Verdict of each claim ({claims}) under each reading ({readings})"
    if not is_full:
        first = readings.removesuffix("s")
        title += f"\nFirst {first}: this run; the others: stored results at full scale"
    ax.set_title(title, pad=12)
    save(f"{here.paper}-readings", shown.reset_index(), ax)
    return shown

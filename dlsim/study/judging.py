"""Judge the sentences of a paper on the frames of a notebook, and keep the verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.errors import InputError
from dlsim.study import claims, session
from dlsim.study.claims import Claim, Verdict
from dlsim.study.fingerprint import name_experiment, tabulate_experiments
from dlsim.study.measure import MEASURES, Measure
from dlsim.study.verdict import explain
from dlsim.validate import one_of


class MarkdownText(str):
    """A text that a notebook shows as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


#: Columns of the points of a claim that could not be measured.
NO_POINTS = ("point", "what", "estimate", "low", "high", "least", "most", "n")


def find_claim(name: str) -> Claim:
    """Return a claim of the current paper, by its id."""
    known = {one.id: one for one in claims.load_claims(session.current().paper)}
    return known[one_of("a claim", name, known)]


def without_own_policies(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of policies that the paper does not have."""
    known = getattr(session.current().module, "POLICIES", None)
    if known is None or "policy" not in frame:
        return frame
    return frame[frame["policy"].isin(list(known))]


def _arguments(
    claim: Claim, measure: Measure, frames: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Give a measure the frames that it names; refuse a call that lacks one."""
    names = measure.frames
    given = dict(zip(names, frames, strict=False)) | {k: v for k, v in named.items() if k in names}
    if len(frames) > len(names) or given.keys() != set(names):
        call = f"judge({claim.id!r}, {', '.join(f'{name}=...' for name in names)})"
        raise InputError(f"{claim.id} is measured on {', '.join(names) or 'no frame'}: call {call}")
    return {
        name: without_own_policies(one) if isinstance(one, pd.DataFrame) else one
        for name, one in given.items()
    }


def measure_claim(
    claim: Claim, frames: Sequence[Any] = (), named: Mapping[str, Any] | None = None
) -> Verdict:
    """Measure a claim on frames and judge it."""
    if claim.id not in MEASURES:
        return claims.judge_claim(claim)
    measure = MEASURES[claim.id]
    arguments = _arguments(claim, measure, frames, named or {})
    try:
        points = measure.function(**arguments)
    except KeyError as error:
        reason = f"The frame has no {error.args[0]!r}, on which this claim is measured."
        return Verdict(claim, "not checkable", reason)
    verdict = claims.judge_claim(claim, points)
    experiment = name_experiment(arguments.values()) if arguments else "as shipped"
    return replace(verdict, numbers={**verdict.numbers, "experiment": experiment})


def _by_readers_rule(claim: Claim, within: Sequence[float]) -> Claim:
    """Return a claim whose statistic must lie between two numbers that a reader gives."""
    if len(within) != 2 or not within[0] < within[1]:  # NaN is no end either
        raise InputError(f"within must be two numbers, the smaller one first; got {within!r}")
    return replace(claim, favour="", within=(float(within[0]), float(within[1])))


def judge(
    names: str | Sequence[str],
    *frames: pd.DataFrame,
    within: Sequence[float] | None = None,
    **named: pd.DataFrame,
) -> MarkdownText:
    """Judge claims of the paper on frames, keep the verdicts, and return them in words.

    Rows of a user's own policies are left out: they are no part of what the paper claims.

    Parameters
    ----------
    names : str or sequence of str
        Ids of claims in data/claims.toml, such as "mcdf-1".
    *frames, **named : DataFrame
        What the claims are measured on: the frames that the measure of the claim (a function of
        dlsim/papers/<paper>.py) has as parameters, in order or by name. A frame that a claim
        does not use may be named.
    within : two float, optional
        A rule of your own: where the statistic must lie, in the unit of the claim (a fraction for
        shares, 0.05 for five percent; ``math.inf`` for no end). Such a verdict says so, and is no
        part of the scorecard.

    Returns
    -------
    MarkdownText
        Two paragraphs per claim: what was measured, what the claim asks for, and at how many
        points; then the verdict, the sentence, and the number that decides.

    Raises
    ------
    InputError
        For an unknown claim, frames that its measure does not take, or a rule that is no range.
    """
    here, paragraphs = session.current(), []
    for name in [names] if isinstance(names, str) else names:
        claim = find_claim(name)
        if within is None:
            here.verdicts[name] = verdict = measure_claim(claim, frames, named)
            paragraphs.append(explain(claim, verdict.row))
        else:
            yours = _by_readers_rule(claim, within)
            verdict = measure_claim(yours, frames, named)
            paragraphs.append(explain(yours, verdict.row))
    return MarkdownText("\n\n".join(paragraphs))


def claim_points(name: str) -> pd.DataFrame:
    """Return the points of a claim as they were judged.

    Columns: the place of the point, ``estimate``, ``low`` and ``high`` (95 % for one point alone),
    ``least`` and ``most`` (95 % for all points of the claim at once). There is no row where the
    claim could not be measured.
    """
    known = session.current().verdicts
    points = known[one_of("a claim that was judged", name, known)].intervals
    if points is None:
        return pd.DataFrame(columns=NO_POINTS)
    missing = [name for name in NO_POINTS if name not in points]
    return points.reindex(columns=[*points, *missing]) if points.empty else points.copy()


def plot_claim(name: str, x: str, **place: Any) -> Axes:
    """Draw the points that a claim was judged by, with the intervals that hold all of them at once.

    The dashed line is the end of what the claim says.

    Parameters
    ----------
    name : str
        Id of a claim that was judged.
    x : str
        The column of `claim_points` along the axis; there is a line per value of ``what``.
    **place
        Values of further columns, of which only these rows are drawn: ``setup=5``.
    """
    from dlsim.study import plot

    claim, table = find_claim(name), claim_points(name)
    for column, value in place.items():
        table = table[table[column] == value]
    edge = claim.margin if claim.direction not in claims.PRINTED else claim.printed[0]
    return plot.plot_points(table, x, claim.unit, edge)


#: Columns of the points by which claims were judged (data/README.md says what they hold).
POINT_COLUMNS = ("claim", "point", "group", "estimate", "low", "high", "least", "most", "n")


def collect_claim_points() -> pd.DataFrame:
    """Return the points by which the claims of the paper were judged, in the order of judging."""
    tables = [claim_points(name).assign(claim=name) for name in session.current().verdicts]
    tables = [table for table in tables if len(table)]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.reindex(columns=POINT_COLUMNS).replace({"n": {math.inf: math.nan}})


def show_scorecard(*columns: str) -> Any:
    """Write and show the verdicts on all claims of the paper, in the order of data/claims.toml.

    The points by which they were judged are written, too: data/<paper>-points.csv; and the digests
    of the experiments: data/<paper>-experiments.csv.
    At quick scale, under the default reading, the verdict at full scale stands beside.
    Claims that were not judged are shown as such.

    Parameters
    ----------
    *columns : str
        Further columns of the scorecard to show, such as "whose".
    """
    from dlsim.study import scorecard

    here = session.current()
    verdicts = [
        here.verdicts.get(claim.id) or measure_claim_without_frames(claim)
        for claim in claims.load_claims(here.paper)
    ]
    card = claims.tabulate(verdicts, **here.sample)
    here.folder_of_results.table(f"{here.paper}-claims", card)
    here.folder_of_results.table(f"{here.paper}-points", collect_claim_points())
    here.folder_of_results.table(f"{here.paper}-experiments", tabulate_experiments())
    return scorecard.style_verdicts(claims.beside_reference(card), *columns)


def measure_claim_without_frames(claim: Claim) -> Verdict:
    """Judge a claim whose measure needs no frame; say of any other that it was not judged."""
    is_measurable = claim.id in MEASURES and not MEASURES[claim.id].frames
    return measure_claim(claim) if is_measurable else claims.judge_claim(claim)

"""Paired comparisons of policies: differences within runs, with intervals for all at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.errors import InputError
from dlsim.study.measure import difference_to, pivot_policies, points
from dlsim.study.plain_text import shown_label
from dlsim.study.plot import axes_of
from dlsim.study.stats import family
from dlsim.study.style import policy_style
from dlsim.validate import one_of, require_table

#: The ends of the intervals: of one difference alone, then of all differences at once.
INTERVAL_ENDS = ("low", "high", "least", "most")
#: How far apart the marks of two rivals stand, as a share of the step along the axis.
DODGE = 0.05


def compare(
    runs: pd.DataFrame, by: str, column: str, chosen: Any = None, at: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compare one policy with every other, run by run.

    Policies that met the same random workloads are subtracted within each replicate, so that the
    variation of the workloads cancels. The intervals are those by which claims are judged
    (`dlsim.study.stats.family`).

    Parameters
    ----------
    runs : DataFrame
        What `sweep` returned: the columns of the points, ``replicate``, `by` and `column`.
    by : str
        The column that names the policies, such as "policy".
    column : str
        What is compared, such as "ratio".
    chosen : optional
        The policy that is compared with every other: a value of `by`; default: the last in the
        order of the rows.
    at : sequence of str, optional
        The other columns of the points: one difference for each of their combinations; default:
        the columns before ``replicate``.

    Returns
    -------
    DataFrame
        One row per rival and point: ``chosen``; `by`, the rival; the columns of `at`; ``estimate``,
        the mean of `column` under `chosen` minus that under the rival, in the unit of `column`;
        ``low`` and ``high``, its 95 % interval alone; ``least`` and ``most``, the 95 % intervals
        that hold for all rows at once; ``n``, the number of runs. The ends are NaN where the
        difference is the same in all runs: then the runs do not say how much it varies.

    Raises
    ------
    InputError
        For a column or policy that is not there, fewer than two policies, or a policy that lacks
        a run of another or has one twice.

    Examples
    --------
    >>> runs = pd.DataFrame({"replicate": [0, 0, 1, 1, 2, 2], "policy": ["EDFMN", "mine"] * 3,
    ...                      "ratio": [0.50, 0.40, 0.54, 0.42, 0.58, 0.50]})
    >>> compare(runs, "policy", "ratio").round(3)
      chosen policy  estimate   low  high  least  most  n
    0   mine  EDFMN      -0.1 -0.15 -0.05  -0.15 -0.05  3
    """
    require_table("runs", runs, ["replicate", by, column], unique=False)
    if at is None:
        at = [str(name) for name in runs.columns[: list(runs.columns).index("replicate")]]
        at = [name for name in at if name != by]
    require_table("runs", runs, at, unique=False)
    names = list(dict.fromkeys(runs[by]))
    if len(names) < 2:
        raise InputError(f"{by} must name at least two policies to compare; got {names}")
    chosen = names[-1] if chosen is None else one_of(f"chosen {by}", chosen, names)
    keys = [*at, "replicate", by]
    if runs.duplicated(keys).any():
        places = ", ".join(keys)
        raise InputError(f"runs must have one row per {places}: name the other columns in at")
    wide = pivot_policies(runs, at, column, by)[names]
    if wide.isna().to_numpy().any():
        lacking = [name for name in names if wide[name].isna().any()]
        raise InputError(f"every {by} must have run at every point; runs are missing of {lacking}")
    found = points(difference_to(wide, chosen, [one for one in names if one != chosen]) * -1, at)
    ends = family(list(found["values"]))
    found = found.assign(chosen=chosen, **{end: ends[end] for end in INTERVAL_ENDS})
    found = found.rename(columns={"what": by})
    return found[["chosen", by, *at, "estimate", *INTERVAL_ENDS, "n"]]


def plot_comparison(comparison: pd.DataFrame, x: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw what `compare` returned: a dot per difference, with the intervals that hold at once.

    Parameters
    ----------
    comparison : DataFrame
        A result of `compare`, or some of its rows.
    x : str, optional
        The column along the axis; default: the first that is no policy. There is one colour per
        rival; without such a column the rivals stand side by side.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        Above the line at 0 the chosen policy has the larger value.
    """
    require_table("comparison", comparison, ["chosen", "estimate", *INTERVAL_ENDS], unique=False)
    names = [str(name) for name in comparison.columns]
    by, *places = names[1 : names.index("estimate")]
    x = (places[0] if places else by) if x is None else one_of("x", x, [by, *places])
    ax = axes_of(ax)
    levels = list(dict.fromkeys(comparison[x]))
    is_number = pd.api.types.is_numeric_dtype(comparison[x])
    position = comparison[x] if is_number else comparison[x].map(levels.index)
    look = policy_style(comparison[by])
    rivals = look["hue_order"]
    step = np.diff(np.unique(position)).min() if len(levels) > 1 else 1.0
    for number, rival in enumerate(rivals):
        rows = comparison[comparison[by].astype(str) == rival]
        middle = rows["estimate"]
        aside = 0.0 if x == by else DODGE * step * (number - (len(rivals) - 1) / 2)
        ax.errorbar(
            position[rows.index] + aside,
            middle,
            [(middle - rows["least"]).fillna(0), (rows["most"] - middle).fillna(0)],
            fmt=look["markers"][rival],
            color=look["palette"][rival],
            capsize=2,
            label=shown_label(rival),
        )
    ax.axhline(0, color="0.4", lw=1, ls="--", zorder=0)
    if not is_number:
        ax.set_xticks(range(len(levels)), [shown_label(level) for level in levels])
    chosen = shown_label(comparison["chosen"].iloc[0])
    ax.set(xlabel=shown_label(x), ylabel=f"{chosen} minus rival")
    if x != by:
        ax.legend(title="rival", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax

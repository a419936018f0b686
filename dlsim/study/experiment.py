"""What the studies of all papers share: common parameters, results kept, claims judged.

A study is any object with the fields scale, seed, runs, jobs and reading, and with
``results``, the `dlsim.study.report.Results` of its paper.
"""

import math
from collections.abc import Collection
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.given import mapping, option, whole
from dlsim.study.claims import scorecard


def need_common(study: Any, scales: Collection[str]) -> None:
    """Refuse values that no study can run with."""
    option("scale", study.scale, scales)
    meaning = {"seed": "", "runs": " (0 = what the scale says)", "jobs": " (0 = all cores)"}
    for name, zero in meaning.items():
        if hasattr(study, name):
            rule = f"a whole number of at least 0{zero}"
            object.__setattr__(study, name, whole(name, getattr(study, name), 0, math.inf, rule))
    if getattr(study, "reading", None) is not None:
        mapping("reading", study.reading)


def keep(study: Any, name: str, ax: Axes, table: pd.DataFrame | None = None) -> Axes:
    """Write a picture and the numbers behind it.

    Parameters
    ----------
    study : Study
        Whose results they are.
    name : str
        Id of the figure, without the paper.
    ax : Axes
        The picture.
    table : DataFrame, optional
        Its numbers.

    Returns
    -------
    Axes
        The axes given.
    """
    if table is not None:
        study.results.table(f"{study.results.paper}-{name}", table)
    study.results.figure(f"{study.results.paper}-{name}", ax)
    return ax


def verdicts(study: Any) -> pd.DataFrame:
    """Judge every claim of a paper and keep the scorecard.

    Parameters
    ----------
    study : Study
        Its ``verdicts`` run whatever the claims need.

    Returns
    -------
    DataFrame
        One row per claim, as `dlsim.study.claims.scorecard` makes it.
    """
    card = scorecard(study.verdicts)
    study.results.verdicts(study.results.paper, card)
    return card

"""What the studies of all papers share: common parameters, results kept, claims judged.

A study is any object with the fields scale, seed, runs, jobs and reading, and with
``results``, the `dlsim.study.report.Results` of its paper.
"""

from collections.abc import Collection, Mapping
from numbers import Integral
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.errors import InputError
from dlsim.study.claims import scorecard


def need_common(study: Any, scales: Collection[str]) -> None:
    """Refuse values that no study can run with.

    Parameters
    ----------
    study : object
        With the fields scale, seed and runs, and perhaps jobs and reading.
    scales : collection of str
        Scales that there are.

    Raises
    ------
    InputError
        For an unknown scale, a seed or a count that is not whole or below 0, or a reading
        that is no mapping.
    """
    if study.scale not in scales:
        raise InputError(f"scale must be one of {', '.join(scales)}; got {study.scale!r}")
    meaning = {"seed": "", "runs": " (0 = what the scale says)", "jobs": " (0 = all cores)"}
    for name, zero in meaning.items():
        value = getattr(study, name, 0)
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
            raise InputError(f"{name} must be a whole number of at least 0{zero}, got {value!r}")
    reading = getattr(study, "reading", None)
    if reading is not None and not isinstance(reading, Mapping):
        raise InputError(f"reading must be a mapping such as a dict, got {reading!r}")


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

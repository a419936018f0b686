"""What the checks of results share: rules that are tested one after another."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import ScheduleError
from dlsim.validate import unwrap_scalar

#: A rule in words, the labels of what it is tested for, and for each whether it holds.
TestedRule = tuple[str, pd.Index, Any]


def require_rules(rules: Iterable[TestedRule], kind: str, where: str) -> None:
    """Raise ScheduleError at the first broken rule; name the task or such that breaks it."""
    with np.errstate(all="ignore"):  # a NaN breaks every rule that compares it
        for rule, labels, holds in rules:
            good = np.asarray(holds, dtype=bool)
            if not good.all():
                label = unwrap_scalar(labels[int(np.argmin(good))]) if len(labels) else "none"
                raise ScheduleError(f"{rule}: broken by {kind} {label!r} ({where})")

"""A user's predictor: a plain function that is shown what the monitor has measured."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dlsim import validate
from dlsim.bricks.core.state import EnvironmentArrays, State
from dlsim.errors import InputError
from dlsim.validate import Floats


def _takes_times(function: Callable[..., Any]) -> bool:
    """Tell whether a predictor takes, beside values, the times of their measurement."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled ones tell nothing
        return False
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in usual and one.default is one.empty for one in known) == 2


class UserPredictor:
    """A user's predictor in one run, with the measurements that it is shown."""

    def __init__(self, function: Callable[..., Any], probe: float) -> None:
        """Begin without measurements."""
        self.function, self.probe, self.count = function, probe, 0
        self.past: Floats | None = np.empty((0, 0)) if _takes_times(function) else None

    def _arguments(self, env: EnvironmentArrays, state: State) -> tuple[Floats, ...]:
        """Return the last ten measurements, or all of them and their times."""
        k, size = int(state.counters[0].probes), len(state.measured)
        if self.past is None:
            rows = np.arange(max(0, k - size), k) % size
            return (np.ascontiguousarray(state.measured[rows].T),)
        if k > len(self.past):
            room = max(64, 2 * len(self.past))
            remedy = "use a longer probe interval, or a predictor of the last ten values alone"
            validate.require_memory(
                "the past of all series", 8.0 * room * state.measured.shape[1], remedy
            )
            more = np.empty((room, state.measured.shape[1]))
            if self.count:
                more[: self.count] = self.past[: self.count]
            self.past = more
        self.past[k - 1] = state.measured[(k - 1) % size]
        self.count = k
        seen = self.past[:k].T
        seen.flags.writeable = False
        return seen, np.asarray(self.probe * np.arange(k) - env.origin)

    def predict(self, env: EnvironmentArrays, state: State) -> None:
        """Write what the function predicts after a probe."""
        rule = "predictor must return one finite number of at least 0 per series, shape "
        rule += str(state.predicted.shape)
        with validate.user_code(rule):
            values = np.asarray(self.function(*self._arguments(env, state)), dtype=np.float64)
        if values.shape != state.predicted.shape or not ((values >= 0) & (values < np.inf)).all():
            least, most = values.min(initial=0), values.max(initial=0)
            raise InputError(f"{rule}; got shape {values.shape}, from {least} to {most}")
        state.predicted[:] = values

"""Call a user's predictor: a plain function of the monitor's measurements."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dlsim import validate
from dlsim.bricks.core.state import EnvironmentArrays, GridState
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import Floats


def _takes_times(function: Callable[..., Any]) -> bool:
    """Tell whether a predictor takes the times of the measurements as a second argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a compiled function has no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [one for one in parameters if one.kind in positional and one.default is one.empty]
    return len(required) == 2


class UserPredictor:
    """A user's predictor in one run, with the measurements that it is given."""

    def __init__(self, function: Callable[..., Any], probe: float) -> None:
        """Begin without measurements."""
        self.function, self.probe, self.count = function, probe, 0
        self.past: Floats | None = np.empty((0, 0)) if _takes_times(function) else None

    def _arguments(self, env: EnvironmentArrays, state: GridState) -> tuple[Floats, ...]:
        """Return the last ten measurements, or all measurements and their times."""
        k, size = int(state.counters[0].probes), len(state.measured)
        if self.past is None:
            rows = np.arange(max(0, k - size), k) % size
            return (np.ascontiguousarray(state.measured[rows].T),)
        if k > len(self.past):
            capacity = max(64, 2 * len(self.past))
            remedy = "use a longer probe interval, or a predictor of the last ten values alone"
            validate.require_memory(
                "the past of all series", 8.0 * capacity * state.measured.shape[1], remedy
            )
            longer = np.empty((capacity, state.measured.shape[1]))
            if self.count:
                longer[: self.count] = self.past[: self.count]
            self.past = longer
        self.past[k - 1] = state.measured[(k - 1) % size]
        self.count = k
        values = self.past[:k].T
        values.flags.writeable = False
        return values, np.asarray(self.probe * np.arange(k) - env.origin)

    def predict(self, env: EnvironmentArrays, state: GridState) -> None:
        """Call the function after a probe, and store what it predicts."""
        rule = "predictor must return one finite number of at least 0 per series, shape "
        rule += str(state.predicted.shape)
        with calling_user_code(rule):
            values = np.asarray(self.function(*self._arguments(env, state)), dtype=np.float64)
        if values.shape != state.predicted.shape or not ((values >= 0) & (values < np.inf)).all():
            least, most = values.min(initial=0), values.max(initial=0)
            raise InputError(f"{rule}; got shape {values.shape}, from {least} to {most}")
        state.predicted[:] = values

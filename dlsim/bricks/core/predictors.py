"""Predictors turn measurements of the monitor into predictions for the scheduler (section 2).

A series is a link's throughput or a server's Load. A user's predictor is called outside the core.
"""

from dlsim.bricks.core.state import ADAPTIVE, LAST, MEAN, PERFECT, WINDOW_PROBES
from dlsim.compiled import compiled, times_tie

# Weights of the last value in the smoothed forecasts; see `state.FORECASTERS`.
_WEIGHTS = (0.1, 0.5)


@compiled(inline=True)
def mean_of_window(series, probe, state):
    """Return the mean of the last ten values of a series, or of as many as there are."""
    count, total = min(probe + 1, WINDOW_PROBES), 0.0
    for age in range(count):
        total += state.measured[(probe - age) % WINDOW_PROBES, series]
    return total / count


@compiled(inline=True)
def predict_last(probe, state):
    """Predict the value that was measured last."""
    for series in range(state.predicted.shape[0]):
        state.predicted[series] = state.measured[probe % WINDOW_PROBES, series]


@compiled(inline=True)
def predict_mean(probe, state):
    """Predict the mean of the last ten values."""
    for series in range(state.predicted.shape[0]):
        state.predicted[series] = mean_of_window(series, probe, state)


@compiled(inline=True)
def best_forecaster(series, value, state):
    """Return the first forecaster with the smallest sum of absolute errors."""
    least, best = state.errors[0, series], 0
    for forecaster in range(1, state.errors.shape[0]):
        least = min(least, state.errors[forecaster, series])
    while not times_tie(state.errors[best, series], least, abs(value)):
        best += 1
    return best


@compiled(inline=True)
def update_forecasts(series, value, probe, state):
    """Update every forecaster of a series by a measured value."""
    forecast = state.forecasts[:, series]
    forecast[0] = value
    forecast[1] = mean_of_window(series, probe, state)
    forecast[2] += (value - forecast[2]) / (probe + 1)
    for k in range(len(_WEIGHTS)):
        weight = _WEIGHTS[k] if probe > 0 else 1.0
        forecast[3 + k] += weight * (value - forecast[3 + k])


@compiled(inline=True)
def predict_adaptive(probe, state):
    """Predict by the forecaster with the smallest sum of absolute errors so far."""
    for series in range(state.predicted.shape[0]):
        value = state.measured[probe % WINDOW_PROBES, series]
        if probe > 0:
            for forecaster in range(state.forecasts.shape[0]):
                error = abs(state.forecasts[forecaster, series] - value)
                state.errors[forecaster, series] += error
        best = best_forecaster(series, value, state)
        update_forecasts(series, value, probe, state)
        state.predicted[series] = state.forecasts[best, series]


@compiled
def predict(probe, cfg, state):
    """Write the prediction of every series after a probe of this number."""
    if cfg.predictor == LAST or cfg.predictor == PERFECT:  # PERFECT measures at every decision
        predict_last(probe, state)
    elif cfg.predictor == MEAN:
        predict_mean(probe, state)
    elif cfg.predictor == ADAPTIVE:
        predict_adaptive(probe, state)
    else:
        raise ValueError("no predictor has this code")

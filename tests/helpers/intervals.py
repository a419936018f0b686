"""Student's intervals by SciPy, with which tests compare those of `dlsim.study.stats`."""

import warnings

import numpy as np
from scipy import stats


def student(values):
    """Return the mean of values and the ends of its interval, NaN without two values."""
    values = np.asarray(values, dtype=float)
    with warnings.catch_warnings():  # of equal values SciPy says that they are nearly identical
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return values.mean(), interval.low, interval.high

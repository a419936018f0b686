"""Student's intervals by SciPy, with which tests compare those of `dlsim.study.stats`."""

import numpy as np
from scipy import stats


def student(values, level=0.95):
    """Return the mean of values and the ends of its interval, NaN without two values."""
    values = np.asarray(values, dtype=float)
    interval = stats.ttest_1samp(values, 0).confidence_interval(level)
    return values.mean(), interval.low, interval.high

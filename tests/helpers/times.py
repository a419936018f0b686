"""The least execution time of a load, by trying every number of nodes."""

import functools

import numpy as np

from dlsim.realtime.formulas import execution_time


@functools.cache
def lines(cluster):
    """E(sigma, n) of every n is a line in sigma: its value at 0, and its slope."""
    one, two = (execution_time(sigma, range(1, cluster.nodes + 1), cluster) for sigma in (1, 2))
    return 2 * one - two, two - one


def least(sigma, cluster):
    """E(min(N, N*)) of one size or of many."""
    fixed, unit = lines(cluster)
    return (fixed + np.multiply.outer(sigma, unit)).min(axis=-1)

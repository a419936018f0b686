"""When two instants of a grid are one: up to TOL of the clock, which begins with its traces."""

import numba.extending

from dlsim.kernel import TOL, kernel


@numba.extending.register_jitable
def latest_finish(due):
    """Return ``due + TOL * max(1, |due|)``."""
    return due + TOL * max(1.0, abs(due))


@kernel
def meets(finish, due):
    """Tell whether a finish meets an absolute deadline."""
    return finish <= latest_finish(due)


@kernel
def same_instant(a, b):
    """Tell whether two times are one instant."""
    return abs(a - b) <= TOL * max(1.0, abs(a), abs(b))

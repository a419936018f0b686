"""How many random instances the tests try.

The README's command tries few, always the same ones. DLSIM_TEST_SCALE multiplies the numbers that
stand in the tests: ``DLSIM_TEST_SCALE=1 pytest`` tries all of them, drawn anew by Hypothesis, and
runs ``tests/verification`` too. A scheduled job does so every week.
"""

import os

_ASKED = os.environ.get("DLSIM_TEST_SCALE")

#: Whether the tests try all of their random instances.
TRIES_ALL = bool(_ASKED)
#: Multiplies the number of random instances of every differential test.
SCALE = float(_ASKED or 0.3)
#: The same for instances that take seconds together.
LONG = float(_ASKED or 0.15)
#: The same where a test counts what it met, and wants enough of it.
ENOUGH = float(_ASKED or 1)


def scale_count(number, by=SCALE, least=3):
    """Return how many of so many instances are tried."""
    return max(least, round(number * by))


def some_of(cases, by=LONG):
    """Return the cases or, where no scale is asked for, some of them, spread over all."""
    cases = list(cases)
    return cases if by >= 1 else cases[:: round(1 / by)]

"""How many random instances the tests try.

DLSIM_TEST_SCALE multiplies the numbers of all differential and Hypothesis tests. Where it is not
set, the tests that take seconds try a part of theirs, and some are deselected that look closer at
what others look at too: the README's command takes minutes so. ``.ci/run`` runs that command with
DLSIM_TEST_LONG=0.3: none is deselected. DLSIM_TEST_SCALE=1 is in full.
"""

import os

import pytest

_ASKED = os.environ.get("DLSIM_TEST_SCALE")

#: Multiplies the number of random instances of every differential test.
SCALE = float(_ASKED or 1)
#: The same for what takes seconds.
LONG = float(os.environ.get("DLSIM_TEST_LONG") or _ASKED or 0.3)
#: Tests that are run only where a scale is asked for.
deep = pytest.mark.deep


def some_of(cases):
    """Return the cases or, where no scale is asked for, some of them, spread over all."""
    cases = list(cases)
    return cases if LONG >= 1 else cases[:: round(1 / LONG)]

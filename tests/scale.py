"""How many random instances the tests try.

What a change is tried with all day, the README's command, takes some minutes: three in ten of the
random instances, a seventh of those that take seconds each, and none of the tests marked `deep`,
which look closer at what others look at too. ``.ci/run`` runs that command with
DLSIM_TEST_LONG=0.3: every test, every random instance, three in ten of those that take seconds.
DLSIM_TEST_SCALE multiplies all of these numbers; with 1 it is the suite in full.
"""

import os

import pytest

_ASKED = os.environ.get("DLSIM_TEST_SCALE")
_LONG = os.environ.get("DLSIM_TEST_LONG")

#: Whether every test is run, the deep ones too.
WHOLE = bool(_ASKED or _LONG)
#: Multiplies the number of random instances of every differential test.
SCALE = float(_ASKED or (1 if WHOLE else 0.3))
#: The same where a test counts what it met, and wants enough of it.
ENOUGH = float(_ASKED or 1)
#: The same for what takes seconds.
LONG = float(_LONG or _ASKED or 0.15)
#: Tests that are run only where a scale is asked for.
deep = pytest.mark.deep


def some_of(cases):
    """Return the cases or, where no scale is asked for, some of them, spread over all."""
    cases = list(cases)
    return cases if LONG >= 1 else cases[:: round(1 / LONG)]

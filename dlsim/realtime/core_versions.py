"""The core of papers M and I at two speeds."""

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from dlsim.compiled import Core
from dlsim.errors import InputError
from dlsim.realtime.model import Policy

#: Uncompiled, 1,000 tasks take about as long as loading the compiled core: a second at most for
#: most policies, where compiling takes some 20.
CORE = Core("dlsim.realtime.core", work=1_000, seconds=20)

#: Tables of more entries than that are filled by the compiled formulas.
SMALL_TABLE = 10_000


def formulas_for(size: int) -> Any:
    """Return the formulas of the core, for arrays of this size."""
    return (CORE.python if size <= SMALL_TABLE else CORE.compiled).formulas


def core_for(policy: Policy, engine: str, tasks: int) -> AbstractContextManager[SimpleNamespace]:
    """Return the modules of the core, compiled or not, for a run of `tasks` tasks.

    A policy with a user's functions always takes the uncompiled core.
    """
    if not policy.has_user_rules:
        return CORE.at_speed(engine, tasks)
    if engine == "compiled":
        raise InputError(
            "engine must be 'auto' or 'python' for functions of a user, which are called"
            " uncompiled; got 'compiled'"
        )
    return CORE.at_speed("python" if engine == "auto" else engine, tasks)

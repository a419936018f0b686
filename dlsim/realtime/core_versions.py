"""The core of papers M and I at two speeds."""

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from dlsim.compiled import CORES
from dlsim.realtime.model import Policy

#: Tables of more entries than that are filled by the compiled formulas.
SMALL_TABLE = 10_000


def formulas_for(size: int) -> Any:
    """Return the formulas of the core, for arrays of this size."""
    core = CORES["realtime"]
    return (core.python if size <= SMALL_TABLE else core.compiled).formulas


def core_for(policy: Policy, engine: str, tasks: int) -> AbstractContextManager[SimpleNamespace]:
    """Return the modules of the core, compiled or not, for a run of `tasks` tasks."""
    return CORES["realtime"].at_speed(engine, tasks, policy.has_user_rules)

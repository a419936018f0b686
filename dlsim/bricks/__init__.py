"""Deadline scheduling for client-server systems on the Grid (paper B).

>>> from dlsim.bricks import Environment, Scheduler, simulate
>>> env = Environment.random(seed=0, interval=60, horizon=6 * 3600)
>>> o = simulate(env, Scheduler("deadline", opt=0.7, max_fallbacks=1))
>>> o.check()
"""

from dlsim.bricks import topology, traces, workload
from dlsim.bricks.engine import simulate
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import INPUT_SWITCHES, SWITCHES, EnvironmentDraw, Reading, Scheduler
from dlsim.bricks.outcome import GridResult
from dlsim.bricks.view import REFUSE, View, best_server
from dlsim.reading import require_readers

__all__ = [
    "INPUT_SWITCHES",
    "REFUSE",
    "SWITCHES",
    "Environment",
    "EnvironmentDraw",
    "GridResult",
    "Reading",
    "Scheduler",
    "View",
    "best_server",
    "simulate",
    "topology",
    "traces",
    "workload",
]

require_readers(Reading, EnvironmentDraw)

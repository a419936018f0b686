"""Deadline scheduling for client-server systems on the Grid (paper B).

>>> from dlsim.bricks import Environment, simulate
>>> env = Environment.random(seed=0, interval=60, horizon=6 * 3600)
>>> o = simulate(env, "D-0.7 x/F")
>>> o.check()
"""

from dlsim.bricks import topology, traces, workload
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import POLICIES, SWITCHES, Policy, Reading, find_policy, read_legend
from dlsim.bricks.result import GridResult
from dlsim.bricks.simulate import simulate
from dlsim.bricks.view import REFUSE, View, best_server
from dlsim.bricks.workload import INPUT_SWITCHES, LAWS, BackgroundLaw, NetworkLaw, RequestLaw
from dlsim.reading import require_readers

__all__ = [
    "INPUT_SWITCHES",
    "LAWS",
    "POLICIES",
    "REFUSE",
    "SWITCHES",
    "BackgroundLaw",
    "Environment",
    "GridResult",
    "NetworkLaw",
    "Policy",
    "Reading",
    "RequestLaw",
    "View",
    "best_server",
    "find_policy",
    "read_legend",
    "simulate",
    "topology",
    "traces",
    "workload",
]

require_readers(Reading, *LAWS)

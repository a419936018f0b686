"""The pictures of the theory: what the statements of `dlsim.theory` say, from numbers.

Each ``fig...`` function draws one picture for a `Study`, keeps the numbers behind it and
returns what it drew on.
"""

from dlsim.papers.theory.curves import (
    accuracy,
    fig_accuracy,
    fig_cost,
    fig_share,
    fig_time,
    table_deadlines,
    table_reduction,
)
from dlsim.papers.theory.diagrams import fig2, fig3, fig6, fig7, fig_order, fig_release, graph
from dlsim.papers.theory.study import SCALES, Study

__all__ = [
    "SCALES",
    "Study",
    "accuracy",
    "fig2",
    "fig3",
    "fig6",
    "fig7",
    "fig_accuracy",
    "fig_cost",
    "fig_order",
    "fig_release",
    "fig_share",
    "fig_time",
    "graph",
    "table_deadlines",
    "table_reduction",
]

"""What the notebooks of all papers use: sweeps, verdicts, results, pictures.

A notebook starts a paper, sweeps functions of its own over points, judges the paper's sentences on
the frames, and saves tables and pictures::

    size = start("mcdf", out, scale, seed, runs, jobs, reading)
    runs = sweep(reject_ratios, {"load": loads})
    sns.lineplot(runs, x="load", y="ratio", **policy_style(runs["policy"]))
    save("mcdf-fig4", summary(runs, ["policy", "load"], "ratio"))
    judge("mcdf-1", runs)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.study.plain_text import shown_label, shown_table, shown_text
    from dlsim.study.plots import (
        compare,
        plot_comparison,
        policy_style,
        share_interval,
        student_interval,
    )
    from dlsim.study.readings import map_of_readings
    from dlsim.study.saving import save
    from dlsim.study.scorecard import show_scorecard
    from dlsim.study.session import has_rows, note_missing, show_sizes, start
    from dlsim.study.stats import summary
    from dlsim.study.sweeps import one_bar, sweep
    from dlsim.study.verdict import claim_points, judge, plot_claim

__all__ = [
    "claim_points",
    "compare",
    "has_rows",
    "judge",
    "map_of_readings",
    "note_missing",
    "one_bar",
    "plot_claim",
    "plot_comparison",
    "policy_style",
    "save",
    "share_interval",
    "show_scorecard",
    "show_sizes",
    "shown_label",
    "shown_table",
    "shown_text",
    "start",
    "student_interval",
    "summary",
    "sweep",
]

#: The functions of the package by the module that has them.
_NAMES_OF = {
    "plain_text": ("shown_label", "shown_table", "shown_text"),
    "plots": ("compare", "plot_comparison", "policy_style", "share_interval", "student_interval"),
    "readings": ("map_of_readings",),
    "saving": ("save",),
    "scorecard": ("show_scorecard",),
    "session": ("has_rows", "note_missing", "show_sizes", "start"),
    "stats": ("summary",),
    "sweeps": ("one_bar", "sweep"),
    "verdict": ("claim_points", "judge", "plot_claim"),
}


def __getattr__(name: str) -> Any:
    """Import a function at its first use, so that listing figures imports no compiler."""
    for module, names in _NAMES_OF.items():
        if name in names:
            return getattr(importlib.import_module(f"dlsim.study.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

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

_MODULE_OF = {
    "claim_points": "verdict",
    "compare": "plots",
    "has_rows": "session",
    "judge": "verdict",
    "map_of_readings": "readings",
    "note_missing": "session",
    "one_bar": "sweeps",
    "plot_claim": "verdict",
    "plot_comparison": "plots",
    "policy_style": "plots",
    "save": "saving",
    "share_interval": "plots",
    "show_scorecard": "scorecard",
    "show_sizes": "session",
    "shown_label": "plain_text",
    "shown_table": "plain_text",
    "shown_text": "plain_text",
    "start": "session",
    "student_interval": "plots",
    "summary": "stats",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    """Import a function at its first use, so that listing figures imports no compiler."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"dlsim.study.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

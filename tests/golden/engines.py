"""The random runs of every engine, by its name."""

from tests.golden import bricks_runs, cpugpu_runs, realtime_runs, steady_runs

ENGINES = {
    "realtime": realtime_runs.run,
    "steady": steady_runs.run,
    "cpugpu": cpugpu_runs.run,
    "bricks": bricks_runs.run,
}

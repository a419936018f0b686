"""Runs of papers M and I compiled and uncompiled, byte for byte, under many readings at once."""

import numpy as np
import pytest

from tests.golden.realtime_runs import ROWS, draw_reading
from tests.helpers.scale import LONG, scale_count
from tests.realtime.test_paths import COMPILED_ROWS, differences_between_speeds, jit


@jit
@pytest.mark.parametrize("name", COMPILED_ROWS)
def test_runs_are_the_same_bytes_at_both_speeds(name):
    rng = np.random.default_rng([11, list(ROWS).index(name)])
    for seed in range(scale_count(100, LONG)):
        reading = draw_reading(rng)
        whole = ROWS[name].admission and reading.get("split") != "piece"
        negotiate = float(rng.choice([0, 1.5, 4])) if whole else 0.0
        assert differences_between_speeds(name, 1000 + seed, reading, negotiate) == [], (
            seed, reading, negotiate,
        )  # fmt: skip

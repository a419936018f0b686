"""How often the rule for verdicts errs, on made-up families of replicates."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, pdtrik

from dlsim.study.grid import sweep
from dlsim.study.stats import family
from dlsim.validate import whole

#: Laws with mean 0 by name: from standard normal numbers to replicates. "with ties" is -1 or 1 in
#: a tenth of cases each, and 0 else.
LAWS = {
    "normal": lambda z: z,
    "skewed to the right": lambda z: -np.log(ndtr(-z)) - 1,  # exponential
    "skewed to the left": lambda z: 1 + np.log(ndtr(-z)),
    "with ties": lambda z: (ndtr(z) > 0.9) * 1.0 - (ndtr(z) < 0.1),
    "rare counts": lambda z: np.ceil(pdtrik(ndtr(z), 0.5)) - 0.5,  # Poisson
}
GRID = {
    "law": list(LAWS),
    "points": [1, 12, 60, 160],
    "correlation": [0.0, 0.5, 0.9],
    "runs": [5, 10, 20],
}


def count_wrong_verdicts(
    law: str, points: int, correlation: float, runs: int, draws: int, seed: Any
) -> dict[str, float]:
    """Count wrong verdicts, *contrary* and *holds*, among families of replicates with mean 0.

    A claim "above 0" about such a family is neither right nor wrong at any point.
    """
    rng, contrary, holds = np.random.default_rng(seed), 0, 0
    for _ in range(draws):
        common = rng.standard_normal((runs, 1)) * np.sqrt(correlation)
        own = rng.standard_normal((runs, points)) * np.sqrt(1 - correlation)
        ends = family(list(LAWS[law](common + own).T))
        against, for_it = (ends["most"] <= 0).any(), (ends["least"] > 0).any()
        alone = bool((ends["low"] > 0).all())
        holds += alone
        contrary += bool(against and not for_it and not alone)
    return {"contrary": contrary / draws, "holds": holds / draws}


def calibrate(draws: int = 2000, seed: int = 0, jobs: int = 0, **grid: Any) -> pd.DataFrame:
    """Estimate how often the rule errs for every law, size of family, correlation and runs.

    ``draws`` says of how many families.
    """
    batch = min(100, whole("draws", draws))
    frame = sweep(
        count_wrong_verdicts,
        GRID | grid,
        draws // batch,
        seed,
        jobs=jobs,
        fixed={"draws": batch},
        label="calibration of the verdicts",
    )
    rates = frame.groupby(list(GRID), sort=False)[["contrary", "holds"]].mean().reset_index()
    return rates.assign(draws=batch * (draws // batch))

"""Seeds: a whole number, or a SeedSequence that a caller has spawned."""

import numpy as np

from dlsim.given import Seed, child


def generator(seed: Seed, number: int) -> np.random.Generator:
    """Return one of a seed's generators, apart from those of other numbers and seeds."""
    return np.random.default_rng(child(seed, number))

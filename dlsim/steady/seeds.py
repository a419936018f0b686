"""Seeds: a whole number, or a SeedSequence that a caller has spawned."""

import numpy as np

from dlsim.errors import InputError

Seed = int | np.random.SeedSequence


def root_of(seed: Seed) -> np.random.SeedSequence:
    """Return a seed as a SeedSequence.

    Parameters
    ----------
    seed : int or SeedSequence
        A number of at least 0.

    Returns
    -------
    SeedSequence
        The one given, or that of the number.

    Raises
    ------
    InputError
        For anything else.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.SeedSequence(int(seed))


def generator(seed: Seed, number: int) -> np.random.Generator:
    """Return one of a seed's generators, apart from those of other numbers and seeds.

    Parameters
    ----------
    seed : int or SeedSequence
        As `root_of`.
    number : int
        Of the purpose or run.

    Returns
    -------
    numpy.random.Generator
        The same for the same seed and number.
    """
    root = root_of(seed)
    key = (*root.spawn_key, number)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=key))

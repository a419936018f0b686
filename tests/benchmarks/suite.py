"""How long the whole suite takes; minutes each, so only by name."""

import tempfile

from tests.benchmarks.parts import Part, run_dlsim


def reproduce(folder, *words):
    """One run of ``dlsim reproduce``, with caches in the folder."""
    where = {"DLSIM_CACHE": f"{folder}/cache", "NUMBA_CACHE_DIR": f"{folder}/cache/numba"}
    return run_dlsim("reproduce", "--out", f"{folder}/out", *words, **where)


def quick(seed=0, tasks=10_000):
    """The quick scale from nothing, and once more with everything cached but the notebooks."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in {"cold": (), "cached": ("--force",)}.items():
            yield {"run": name, **reproduce(folder, f"--seed={seed}", *words)}


def paper(seed=0, tasks=10_000):
    """The papers' own sizes from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"run": "paper", **reproduce(folder, f"--seed={seed}", "--scale=paper")}


PARTS = {
    "reproduce": Part("dlsim reproduce, cold and cached", quick, True),
    "paper": Part("dlsim reproduce --scale paper, cold", paper, True),
}

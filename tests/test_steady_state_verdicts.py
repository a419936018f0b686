"""Paper S's claims on evidence made up so that they hold, and so that they are contrary."""

import itertools

import numpy as np
import pandas as pd

from dlsim.papers.steady_state import claims
from dlsim.papers.steady_state.cells import STRUCTURES
from tests.made_up import assert_each_way

RUNS, SIZES, LINKS = 50, (5, 15, 25, 35, 45), (0.1, 0.8)


def cross(**levels):
    """Every combination of some levels with every replicate."""
    levels["replicate"] = range(RUNS)
    return pd.DataFrame(itertools.product(*levels.values()), columns=list(levels))


def filled(frame, **columns):
    """Set columns to values, or to functions of the frame, each plus noise of its own."""
    rng = np.random.default_rng(0)
    noise = {name: 0.002 * rng.standard_normal(len(frame)) for name in columns}
    values = {name: v(frame) if callable(v) else v for name, v in columns.items()}
    return frame.assign(**{name: v + noise[name] for name, v in values.items()})


def samples(**columns):
    """Both samples with the same columns, and a vertex of each platform."""
    frame = filled(cross(clusters=SIZES, connectivity=LINKS), **columns)
    both = pd.concat([frame.assign(kind=kind) for kind in ("Tiers", "random")])
    return claims.Evidence(frame.drop(columns="connectivity"), frame, vertices=both)


def some(share):
    """1 in about this share of the rows, 0 in the others."""
    return lambda frame: (np.random.default_rng(1).random(len(frame)) < share).astype(float)


def over_k(first, last):
    """From one value at the least K to another at the largest."""
    return lambda frame: first + (last - first) * (frame["clusters"] - 5) / 40


def spread(first, last):
    frame = cross(heterogeneity=(0.4, 0.6, 0.8), clusters=(15, 25))
    lead = first + (last - first) * (frame["heterogeneity"] - 0.4) / 0.4
    return claims.Evidence(None, None, spread=filled(frame, G=0.6, LPRG=0.6 + lead))


def crossed(network, numbers):
    """The lead of G that a structured network and the first table's numbers give."""
    frame = cross(structure=STRUCTURES, numbers=("Table 1", "Table 2"), clusters=(15,))
    lead = network * frame["structure"].str.startswith("Tiers")
    lead += numbers * (frame["numbers"] == "Table 1")
    return claims.Evidence(None, None, crossed=filled(frame, LPRG=0.5, G=0.5 + lead))


def ends(lost):
    frame = cross(kind=("Tiers", "random"), count=(100,))
    return claims.Evidence(None, None, ends=frame.assign(ends=lost))


def losing(more):
    """Vertices at which LPRG loses, where a column is so much larger, and others."""
    given = {name: lambda f: 0.4 + more * some(0.5)(f) for name in ("below", "own_use")}
    return samples(G=0.9, LPRG=lambda f: 1 - 0.5 * some(0.5)(f), **given)


def wins(share):
    """LPRR wins on this share of the platforms and loses on the others."""
    return samples(G=0.5, LPRG=0.5, LPRR=lambda f: 0.3 + 0.4 * some(share)(f))


MADE = {
    "1a": (samples(G=0.9, LPRG=0.8, LPR=0.2), samples(G=0.9, LPRG=0.8, LPR=0.8)),
    "1b": (samples(LPR=lambda f: some(0.5)(f) - 0.1), samples(LPR=lambda f: 0.8 - some(0)(f))),
    "2a": (samples(G=0.5, LPRG=lambda f: 1 - some(0.8)(f)), samples(G=0.5, LPRG=0.7)),
    "2b": (samples(G=0.5, LPRG=lambda f: 1 - some(0.8)(f)), samples(G=0.5, LPRG=0.7)),
    "2c": (samples(G=0.59, LPRG=0.5), samples(G=0.5, LPRG=0.59)),
    "3a": (samples(G=0.75, LPRG=0.7), samples(G=0.7, LPRG=0.75)),
    "3b": (samples(G=over_k(1, 0.5), LPRG=over_k(1, 0.4)), samples(G=over_k(0.5, 1), LPRG=1.0)),
    "3c": (
        samples(G=lambda f: 0.2 + 0.55 * some(0.8)(f), LPRG=0.7),
        samples(G=lambda f: 0.2 + 0.55 * some(0.2)(f), LPRG=0.7),
    ),
    "4a": (samples(LPRG=0.8, G=0.4), samples(LPRG=0.5, G=0.5)),
    "4b": (samples(G=0.8, LPRG=0.7), samples(G=0.7, LPRG=0.8)),
    "4c": (samples(G=0.7, LPRG=0.8), samples(G=0.8, LPRG=0.7)),
    "4d": (samples(G=0.5, LPRG=over_k(0.5, 0.9)), samples(G=0.5, LPRG=over_k(0.9, 0.5))),
    "5": (spread(0.1, 0.1), spread(0.1, 0.3)),
    "6a": (samples(G=0.7, LPRG=0.8, LPRR=0.9), samples(G=0.7, LPRG=0.9, LPRR=0.8)),
    "6b": (samples(LPRR=0.99), samples(LPRR=0.8)),
    "6c": (samples(LPRR=lambda f: 2 - some(0)(f)), samples(LPRR=lambda f: 0.5 + some(0.5)(f))),
    "6d": (wins(0.8), wins(0.2)),
    "7b": (
        samples(programs=lambda f: f["clusters"] ** 2),
        samples(programs=lambda f: f["clusters"]),
    ),
    "9a": (samples(lost=0.4), samples(lost=0.05)),
    "9b": (samples(lost=lambda f: 0.4 * some(0.8)(f)), samples(lost=lambda f: 0.4 * some(0.2)(f))),
    "10a": (losing(0.3), losing(-0.3)),
    "10b": (losing(0.3), losing(-0.3)),
    "11": (samples(LPRG=over_k(0.9, 0.5)), samples(LPRG=over_k(0.5, 0.9))),
    "12a": (crossed(0.3, 0), crossed(-0.3, 0)),
    "12b": (crossed(0.3, 0.1), crossed(0.1, 0.3)),
    "13": (
        samples(MILP=1.0, G=0.99, LPR=0.1, LPRG=0.9, LPRR=0.9),
        samples(MILP=1.0, G=0.8, LPR=0.1, LPRG=0.8, LPRR=0.8),
    ),
    "14": (ends(0.01), ends(0.5)),
}


def test_every_claim_can_hold_and_can_be_contrary():
    assert_each_way("steady-state", MADE)

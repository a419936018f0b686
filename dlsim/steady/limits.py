"""Policies of the owners of a platform: shares of clusters, connections between two of them.

Source: paper S, section 7.
"""

import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import instance, number, whole


def floored(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round counts down to whole numbers, with a warning where that changes one."""
    down = np.floor(values)
    if (down != values).any():
        some = values[down != values][0]
        text = f"{name} is rounded down to whole numbers, e.g. {some:g}"
        warnings.warn(text, stacklevel=_outside())
    return down


def _outside() -> int:
    """Return the stacklevel of a warning of the caller's that names who called dlsim."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "dlsim":
        frame, level = frame.f_back, level + 1
    return level


def _pair(pair: Any) -> tuple[int, int]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError(f"limits.pairs must be named by pairs of clusters, got {pair!r}")
    return pair


def _most(most: Any) -> float:
    rule = "a number of at least 0"
    most = float(number("limits.pairs", most, high=math.inf, rule=rule))
    down = floored("limits.pairs", np.array([most]))[0]
    return int(down) if math.isfinite(down) else math.inf


@dataclass(frozen=True)
class Share:
    """A cap on how much of a cluster some origins may use (section 7).

    Parameters
    ----------
    cluster : int
        Where the work is done.
    origins : tuple of int
        Clusters whose applications, taken together, are capped.
    share : float
        Largest part of the cluster's speed, 0 to 1.
    """

    cluster: int
    origins: tuple[int, ...]
    share: float

    def __post_init__(self) -> None:
        rule = "a whole number, as it names a cluster"
        if isinstance(self.origins, str) or not isinstance(self.origins, Iterable):
            raise InputError(f"origins of a share cap must be a list, got {self.origins!r}")
        origins = tuple(whole("origins of a share cap", k, 0, rule=rule) for k in self.origins)
        cluster = whole("cluster of a share cap", self.cluster, 0, rule=rule)
        share = number("share", self.share, high=1, rule="a number from 0 to 1")
        for name, value in (("cluster", cluster), ("origins", origins), ("share", share)):
            object.__setattr__(self, name, value)
        if not origins:
            raise InputError("a share cap must name at least one origin, got none")


@dataclass(frozen=True)
class Limits:
    """Policies of the platform's owners beside (6) (section 7).

    Parameters
    ----------
    shares : tuple of Share
        Caps on parts of clusters.
    pairs : int, mapping of (int, int) to int, or None
        Most connections between two clusters, both directions together: one number for
        every pair, or one for each pair named; a broken number is rounded down with a
        warning, and an empty mapping is None. An empty route opens no connection.

    Examples
    --------
    No more than 10 % of cluster 2 for applications from clusters 0 and 1, at most four
    connections between any two clusters:

    >>> Limits((Share(2, (0, 1), 0.1),), 4).pairs
    4
    """

    shares: tuple[Share, ...] = ()
    pairs: int | Mapping[tuple[int, int], int] | None = None

    def __post_init__(self) -> None:
        shares = self.shares if isinstance(self.shares, Iterable) else [self.shares]
        for cap in (shares := tuple(shares)):
            instance("limits.shares", cap, Share)
        object.__setattr__(self, "shares", shares)
        if isinstance(self.pairs, Mapping):
            named = map(_pair, self.pairs), map(_most, self.pairs.values())
            object.__setattr__(self, "pairs", dict(zip(*named, strict=True)) or None)
        elif self.pairs is not None:
            object.__setattr__(self, "pairs", _most(self.pairs))

    def between(self, k: int, to: int) -> float:
        """Return the most connections between two clusters, infinite where not limited."""
        if not isinstance(self.pairs, Mapping):
            return math.inf if self.pairs is None else float(self.pairs)
        return float(min(self.pairs.get(p, math.inf) for p in ((k, to), (to, k))))

"""The sites of a virtual organisation and what joins them (paper S, section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady.limits import Limits
from dlsim.steady.model import Floats, Platform


@dataclass(frozen=True, eq=False)
class Network:
    """The sites and what joins them; speeds and applications come and go.

    Parameters
    ----------
    sites : sequence of str
        Names.
    gateway : array_like of float, shape (K,)
        Bandwidth of each site's own link.
    links : DataFrame
        bandwidth, max_connect, as in `Platform`.
    routes : mapping of (int, int) to sequence
        As in `Platform`, between numbers of sites.
    limits : Limits
        Policies of the organisation.

    Raises
    ------
    InputError
        For a site named twice, or what is no platform.
    """

    sites: Sequence[str]
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[tuple[int, int], Sequence[Any]]
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse what is no network; round the links' connections down once."""
        is_list = isinstance(self.sites, Sequence) and not isinstance(self.sites, str)
        if not is_list or not all(isinstance(site, str) for site in self.sites):
            raise InputError(f"sites must be a list of names, got {self.sites!r}")
        if len(set(self.sites)) < len(self.sites):
            raise InputError(f"sites must have different names, got {list(self.sites)}")
        whole = self.platform(np.ones(len(self.sites)), [(0, 1.0, 1.0, 1.0)]).links
        object.__setattr__(self, "links", whole)

    @classmethod
    def of(cls, p: Platform) -> Self:
        """Take the network of a platform, whose sites are called site 0, site 1, ..."""
        names = [f"site {k}" for k in range(p.clusters)]
        return cls(names, p.gateway, p.links, p.routes, p.limits)

    def platform(
        self, speed: Floats, applications: Sequence[tuple[int, float | Floats, float, float]]
    ) -> Platform:
        """Return the platform of a moment: speeds, (origin, priority, work, data) of each."""
        origin, priority, work, data = (list(part) for part in zip(*applications, strict=True))
        if any(map(np.ndim, priority)):
            priority = [np.broadcast_to(pi, len(self.sites)) for pi in priority]
        return Platform(
            speed, self.gateway, self.links, self.routes, priority, work, data,
            origin=origin, limits=self.limits,
        )  # fmt: skip

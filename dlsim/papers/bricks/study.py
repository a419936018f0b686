"""All experiments on paper B at one scale: each is run once, when first asked for."""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Scheduler
from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.given import whole
from dlsim.papers.bricks import cells, claims
from dlsim.papers.bricks.cells import Kind
from dlsim.study import study
from dlsim.study.cells import Point, points
from dlsim.study.study import Switches

HOUR = 3600.0
NODES = tuple(cells.SIZES)
#: Switches that the two background models of claim 12 depend on.
OF_BACKGROUND = ("server_load", "H", "trace_step", "trace_std", "trace_method")
#: Fewest runs that are timed: if all of six agree, most runs do (95 %).
TIMED = 6
#: What claims are measured on.
GROUPS = ("Figures 3 to 6", "causes", "nodes")
#: The function of a cell, its point, and what else it takes.
Task = tuple[Callable[..., Any], Point, dict[str, Any]]
SCALES = study.scales("bricks")


def printed_table() -> pd.DataFrame:
    """Return Table 1 as printed."""
    path = shared_file("data/papers/bricks-table1.csv")
    return read_csv(path, {"parameter": "text", "low": "number", "high": "number", "law": "text"})


@dataclass(frozen=True)
class Study(study.Study):
    """Paper B's experiments: `dlsim.study.study.Study` with the axes of section 4.

    ``runs`` is the number of environments; ``reading`` may name fields of
    `dlsim.bricks.Reading`, keys of `dlsim.bricks.DRAWN`, and exclude_rejecting.

    Parameters
    ----------
    intervals, opts, fallbacks : sequence
        Axes: Int in minutes, Opt, most fallbacks; fallbacks must hold 0 and 1.
    nodes : sequence of int
        Sizes of the systems of claim 11, keys of `cells.SIZES`.
    domains : int
        Local domains of 5 to 10 nodes each.
    """

    intervals: Sequence[float] = (60.0, 90.0, 120.0)
    opts: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9)
    fallbacks: Sequence[int] = tuple(range(6))
    nodes: Sequence[int] = NODES
    domains: int = 10

    KEY, SCALES, SWITCHES = "bricks", SCALES, cells.SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, and axes that claims cannot be compared on."""
        if not self.intervals:
            raise InputError("intervals must be one value or more, got none")
        if len(set(self.opts)) < 2:
            raise InputError("opts must be two values or more: claims compare them")
        for opt in self.opts:
            Scheduler("deadline", opt=opt)
        for most in self.fallbacks:
            whole("fallbacks", most, 0)
        if not {0, 1} < set(self.fallbacks):
            raise InputError("fallbacks must hold 0, 1 and a larger number: claims compare them")
        if not self.nodes or set(self.nodes) - set(NODES):
            known = ", ".join(map(str, NODES))
            raise InputError(f"nodes must be one or more of {known}; got {self.nodes!r}")
        drawn = cells.split_switches(self.switches).drawn
        tiny = {"horizon": 60.0, "domains": self.domains, "nodes": (2, 2), **drawn}
        for interval in self.intervals:
            Environment.random(0, interval, **{**tiny, "server_load": 0.0})

    @functools.cached_property
    def size(self) -> Any:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        return size._replace(runs=self.runs or size.runs, other_runs=self.runs or size.other_runs)

    @property
    def policies(self) -> list[str]:
        """Legends of Figures 3 to 6."""
        return ["Greedy", *(cells.deadline(opt) for opt in sorted(self.opts))]

    @property
    def few(self) -> list[str]:
        """Greedy, and the smallest, middle and largest Opt."""
        rising = self.policies[1:]
        return list(dict.fromkeys(["Greedy", rising[0], rising[len(rising) // 2], rising[-1]]))

    @property
    def middle(self) -> str:
        """The legend of the middle Opt."""
        return self.few[len(self.few) // 2]

    @property
    def most(self) -> int:
        """The largest number of fallbacks."""
        return int(max(self.fallbacks))

    @property
    def drawn_first(self) -> dict[str, Any]:
        """What the environment of the first replicate is drawn by."""
        seed = np.random.SeedSequence(self.seed, spawn_key=(0,))
        size = {"horizon": self.size.hours * HOUR, "domains": self.domains}
        drawn = cells.split_switches(self.switches).drawn
        return {"seed": seed, "interval": float(self.intervals[0]), **size, **drawn}

    def versions(self, policies: Sequence[str], fallbacks: Sequence[int] = ()) -> list[Kind]:
        """List schedulers: four versions of each, and more fallbacks without correction."""
        more = [(0, n) for n in fallbacks if n > 1]
        return [Kind(p, *v) for p in policies for v in (*cells.VERSIONS.values(), *more)]

    def place(self, hours: float = 0) -> dict[str, Any]:
        """The environments of a cell: of some hours, 0 = the smaller size, at the first Int."""
        options = {"horizon": (hours or self.size.other_hours) * HOUR, "domains": self.domains}
        return {"interval": float(self.intervals[0]), "options": options}

    def run(
        self, function: Any, grid: Any, label: str, hours: float = 0, count: int = 0, **fixed: Any
    ) -> pd.DataFrame:
        """Sweep in environments of some hours at the first Int; 0 hours = the smaller size."""
        how = {**self.place(hours), "switches": self.switches, **fixed}
        count = count if hours else self.size.other_runs
        tasks = [(function, point, how) for point in points(grid)]
        return self.together({label: tasks}, label, count)[label]

    def together(
        self, groups: Mapping[Any, list[Task]], label: str, count: int,
        part: Callable[[Point], float] = lambda point: 0,
    ) -> dict[Any, pd.DataFrame]:  # fmt: skip
        """Run groups of tasks, the replicate or a part of it as the cell: they share what is drawn.

        A group's rows are in the order of its tasks.
        """
        parts: dict[float, list[Any]] = {}
        for number, (cell, point, how) in enumerate(itertools.chain(*groups.values())):
            parts.setdefault(part(point), []).append((number, cell, {**how, **point}))
        for some in parts.values():
            some.sort(key=lambda task: cells.place_of(**task[2]))
        rows = self.sweep(cells.together, {"part": list(parts)}, label, count, tasks=parts)
        rows = rows.drop(columns="part").sort_values(["task", "replicate"], kind="stable")
        found, first = {}, 0
        for name, tasks in groups.items():
            own = rows[rows["task"].between(first, first + len(tasks) - 1)]
            at = pd.DataFrame([point for _, point, _ in tasks]).iloc[own["task"] - first]
            own = own.drop(columns="task").reset_index(drop=True)
            found[name], first = at.reset_index(drop=True).join(own), first + len(tasks)
        return found

    def tasks(self, name: str, switches: Switches) -> list[Task]:
        """List a group: every scheduler at every Int; few without causes, or over the nodes."""
        few = self.versions(self.few)
        groups: dict[str, tuple[Any, Any, float, list[Kind]]] = {
            "Figures 3 to 6": (
                cells.compare, {"interval": tuple(self.intervals)}, self.size.hours,
                self.versions(self.policies, self.fallbacks),
            ),
            "causes": (cells.under, {"condition": list(cells.CONDITIONS)}, 0, few),
            "nodes": (
                cells.vary, {"parameter": ["nodes"], "value": map(float, self.nodes)}, 0, few,
            ),
        }  # fmt: skip
        cell, grid, hours, schedulers = groups[name]
        how = {**self.place(hours), "schedulers": schedulers, "switches": dict(switches)}
        return [(cell, point, how) for point in points(grid)]

    def own(self, name: str) -> pd.DataFrame:
        """Run a group under the study's own reading."""
        count = self.size.runs if name == GROUPS[0] else self.size.other_runs
        return self.together({name: self.tasks(name, self.switches)}, name, count)[name]

    def background_at(self, switches: Switches, count: int) -> pd.DataFrame:
        """Draw both models of other users' load."""
        own = {k: v for k, v in switches.items() if k in OF_BACKGROUND}
        grid = {"model": ["trace", "extraneous"]}
        return self.sweep(cells.background, grid, "background", max(2, count), switches=own)

    # interval replicate policy corrected failure ..., condition replicate policy ...,
    # parameter value replicate policy ..., model replicate ...
    main = functools.cached_property(lambda self: self.own("Figures 3 to 6"))
    causes = functools.cached_property(lambda self: self.own("causes"))
    sizes = functools.cached_property(lambda self: self.own("nodes"))
    background = functools.cached_property(
        lambda self: self.background_at(self.switches, self.size.other_runs)
    )

    @functools.cached_property
    def seconds(self) -> pd.DataFrame:
        """CPU time of runs with either model: resource replicate model seconds."""
        own = {k: v for k, v in self.switches.items() if k in OF_BACKGROUND}
        count, grid = max(TIMED, self.size.other_runs), {"resource": list(cells.EXTRANEOUS)}
        return self.sweep(cells.timed, grid, "CPU time", count, jobs=1, switches=own)

    @functools.cached_property
    def extras(self) -> pd.DataFrame:
        """Further mechanisms: network mechanism replicate policy corrected fallbacks ..."""
        versions = ((0, 0), (0, 1), (1, 1))
        schedulers = [Kind(p, c, n) for p in ("Greedy", self.middle) for c, n in versions]
        known = {"fluid": cells.EXTRAS, "packet": ("as it is", "links")}
        grid = [{"network": a, "mechanism": b} for a, names in known.items() for b in names]
        return self.run(cells.extra, grid, "further mechanisms", schedulers=schedulers)

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the claims are measured on; for a reading on the same grids, in fewer runs."""
        if switches is None:
            return claims.Evidence(
                self.main, self.causes, self.sizes, self.background, self.seconds
            )
        return dict(self.measures({"": switches}))[""]

    def measures(self, readings: Mapping[str, Switches]) -> Iterator[tuple[str, claims.Evidence]]:
        """Run all readings in one sweep, whose cell is a system of some size and a replicate."""
        count = min(self.size.runs, self.size.other_runs, self.size.reading_runs)
        groups = {(r, name): self.tasks(name, s) for r, s in readings.items() for name in GROUPS}
        usual = (self.domains, cells.SIZES[75][1])

        def part(point: Point) -> float:
            nodes = point.get("value", 0)
            return 0 if cells.SIZES.get(nodes, usual) == usual else nodes

        found = self.together(groups, "readings", count, part)
        for reading, switches in readings.items():
            frames = (found[reading, name] for name in GROUPS)
            background = self.background_at(switches, count)
            yield reading, claims.Evidence(*frames, background)  # type: ignore[call-arg]

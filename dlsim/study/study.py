"""What every paper's study is: one scale, one reading, experiments run once, claims judged."""

import functools
import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from inspect import signature
from typing import Any, ClassVar, get_args, get_origin

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.errors import InputError
from dlsim.files import read_csv, read_toml, shared_file
from dlsim.given import MOST, MOST_WHOLE, mapping, number, option, whole, word
from dlsim.study import claims
from dlsim.study.claims import Claim, Verdict, load_claims, reference_of, verdict_of
from dlsim.study.measure import MEASURES, measured
from dlsim.study.report import Results
from dlsim.study.stats import ENDS
from dlsim.study.sweeps import sweep

Switches = Mapping[str, Any]


def name_of(switches: Switches) -> str:
    """Write a reading in one line: what differs from the default.

    >>> name_of({"link": "shared", "probe": 300.0, "work_range": (90.0, 1080.0)})
    'link=shared, probe=300, work_range=90-1080'
    """
    spans = (tuple, list)
    short = ("-".join(f"{v:.0f}" for v in value) if isinstance(value, spans) else word(value)
             for value in switches.values())  # fmt: skip
    return ", ".join(map("=".join, zip(switches, short, strict=True))) or "default"


def scales(key: str) -> dict[str, Any]:
    """Read how much the study of a paper computes at each scale, by its names in scales.toml."""
    rows = read_toml(shared_file("data/scales.toml"))[key]
    found: dict[str, Any] = {}
    for name, row in rows.items():
        values = (tuple(v) if isinstance(v, list) else v for v in row.values())
        found[name] = namedtuple("Scale", row)(*values)
    return found


def _axis(name: str, values: Any, kind: type) -> tuple[Any, ...]:
    """Return the values of an axis, refusing what is no list of its kind."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        rule = "a list of names" if kind is str else "one value or more, such as (1, 2)"
        raise InputError(f"{name} must be {rule}; got {values!r}")
    axis = tuple(values)
    for value in axis if kind is not str else ():
        number(name, value, -MOST)
        if kind is int:
            whole(name, value, -MOST_WHOLE, rule="a whole number")
    return axis


class Said(str):
    """A sentence that a notebook shows as text."""

    def _repr_markdown_(self) -> str:
        return str(self)


def keep(study: Any, name: str, ax: Axes, table: pd.DataFrame | None = None) -> Axes:
    """Write a picture and the numbers behind it under an id of data/figures.toml."""
    if table is not None:
        study.results.table(name, table)
    study.results.figure(name, ax)
    return ax


@dataclass(frozen=True)
class Study:
    """A paper's experiments under one set of parameters; results are kept once computed.

    A paper's own study adds its parameters as fields, its experiments as methods that call
    `sweep`, and `measure`, which gathers what its claims are measured on.
    """

    scale: str = "quick"  # how much is computed
    seed: int = 0
    runs: int = 0  # 0 = what the scale says
    jobs: int = 0  # worker processes; 0 = all cores
    out: str = ""  # "" = results/<paper> under the project, or under the current folder
    reading: Switches | None = None  # switches that differ from the default
    executor: Executor | None = field(default=None, kw_only=True)  # where sweeps run, if not here

    #: Key of the paper; its scales, NamedTuples; its switches with their options, the default
    #: first.
    KEY: ClassVar[str]
    SCALES: ClassVar[Mapping[str, Any]]
    SWITCHES: ClassVar[Mapping[str, Sequence[Any]]]

    def __post_init__(self) -> None:
        option("scale", self.scale, self.SCALES)
        meaning = {"seed": "", "runs": " (0 = what the scale says)", "jobs": " (0 = all cores)"}
        for name, zero in meaning.items():
            rule = f"a whole number of at least 0{zero}"
            object.__setattr__(self, name, whole(name, getattr(self, name), 0, math.inf, rule))
        if self.reading is not None:
            mapping("reading", self.reading)
        for one in fields(self):
            if get_origin(one.type) is Sequence:
                axis = _axis(one.name, getattr(self, one.name), *get_args(one.type))
                object.__setattr__(self, one.name, axis)
        self.check()
        if self.out:
            Results(self.out, self.KEY)  # refused now, not when all is computed

    def check(self) -> None:
        """Refuse the paper's own parameters."""

    def measure(self, switches: Switches | None = None) -> Any:
        """Run what the claims are measured on; less of it under another reading."""
        raise NotImplementedError

    def measures(self, readings: Mapping[str, Switches]) -> Iterator[tuple[str, Any]]:
        """Run it for several readings; yield the name of each and what `measure` returns."""
        yield from ((name, self.measure(switches)) for name, switches in readings.items())

    #: Policies of one's own by label, which stand for the paper's of that label or beside them, and
    #: a workload (cluster, load, horizon, seed) in place of the paper's; where a paper takes them.
    mine: ClassVar[Mapping[str, Any]] = {}
    drawn_by: ClassVar[Callable[..., Any] | None] = None

    @property
    def switches(self) -> dict[str, Any]:
        """The reading as a plain mapping."""
        return dict(self.reading or {})

    def under(self, switches: Switches | None) -> dict[str, Any]:
        """The switches of another reading, or the study's own."""
        return self.switches if switches is None else dict(switches)

    @functools.cached_property
    def size(self) -> Any:
        """The scale with a positive number of runs put in."""
        size = self.SCALES[self.scale]
        return size._replace(runs=self.runs or size.runs)

    @functools.cached_property
    def results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        return Results(self.out, self.KEY)

    def keep(self, name: str, ax: Axes, table: pd.DataFrame | None = None) -> Axes:
        """Write a picture and the numbers behind it as <paper>-<name>."""
        return keep(self, f"{self.KEY}-{name}", ax, table)

    def show(self, name: str, ax: Axes, table: pd.DataFrame | None, *claims: str) -> Said:
        """Keep a picture with its numbers, and say what became of the claims that it shows."""
        self.keep(name, ax, table)
        return self.say(*claims)

    def table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table as <paper>-<name>."""
        self.results.table(f"{self.KEY}-{name}", table)

    def given(self, switches: Switches) -> dict[str, Any]:
        """What every cell is given under a reading, where it has a parameter of that name."""
        return {"switches": dict(switches)}

    def given_to(
        self, function: Callable[..., Any], reading: Switches | None = None
    ) -> dict[str, Any]:
        """What a cell function names of `given`, under the study's own reading or another."""
        known, names = self.given(self.under(reading)), signature(function).parameters
        return {name: known[name] for name in names if name in known}

    def sweep(
        self, function: Callable[..., Any], grid: Any, label: str, replicates: int = 0,
        reading: Switches | None = None, jobs: int = 0, **fixed: Any,
    ) -> pd.DataFrame:  # fmt: skip
        """Run a cell function over a grid under the study's seed; 0 replicates = all runs.

        It is told what it is `given_to` where neither the grid nor `fixed` says otherwise.
        """
        axes = grid if isinstance(grid, Mapping) else grid[0]
        known = self.given_to(function, reading) | fixed
        return sweep(
            function, grid, replicates or self.size.runs, self.seed,
            None if jobs else self.executor, jobs or self.jobs,
            fixed={name: value for name, value in known.items() if name not in axes},
            label=f"{label}, {name_of(reading)}" if reading else label,
        )  # fmt: skip

    @functools.cached_property
    def evidence(self) -> Any:
        """Everything that the claims are measured on, under the study's own reading."""
        return self.measure()

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on every claim under the study's own reading."""
        evidence = self.evidence
        return [verdict_of(one, measured(one, evidence)) for one in load_claims(self.KEY)]

    def family(self, name: str) -> pd.DataFrame:
        """The points of a claim as they are judged: each by its own interval, and all at once."""
        claim = next(one for one in load_claims(self.KEY) if one.id == name)
        found = measured(claim, self.evidence)
        return pd.DataFrame() if found is None or found.empty else claims.intervals(found, claim)

    def say(self, *names: str) -> Said:
        """Say what became of claims, by their ids or those of their figures: ``say("mcdf-1")``."""
        known: dict[str, list[str]] = {}
        for verdict in self.verdicts:
            for name in filter(None, (verdict.claim.id, verdict.claim.figure)):
                known.setdefault(name, []).append(verdict.sentence)
        parts = (known[option("a claim or a figure with claims", name, known)] for name in names)
        return Said("\n\n".join(sentence for part in parts for sentence in part))

    @classmethod
    def alternatives(cls) -> Iterator[dict[str, Any]]:
        """Yield the default reading, then every reading one switch away from it."""
        yield {}
        for name, options in cls.SWITCHES.items():
            yield from ({name: value} for value in options[1:])

    def readings(self) -> dict[str, Switches | None]:
        """Name the readings that claims are judged under; None is the study's own."""
        others = {name_of(switches): switches for switches in self.alternatives()}
        own: dict[str, Switches | None] = {name_of(self.switches): None}
        return own | others | own

    @functools.cached_property
    def judged_readings(self) -> pd.DataFrame:
        """Claims under every reading, in numbers: claim reading point mean low high runs ...

        The study's own reading comes first, then those one switch away from the default, all
        on the same grid, sample and random numbers (`measure`). Each row has the point that
        speaks most against the claim with its 95 % interval, the verdict and its reason.
        """
        readings = {name: self.under(switches) for name, switches in self.readings().items()}
        return self._judged(self.measures(readings))

    def _judged(self, evidence: Iterable[tuple[str, Any]]) -> pd.DataFrame:
        """Judge the claims to which readings matter, on the evidence of each reading."""
        every = [one for one in load_claims(self.KEY) if one.id in MEASURES]
        return pd.DataFrame(
            {"claim": one.id, "reading": reading, **self._row(one, found)}
            for reading, found in evidence for one in every if MEASURES[one.id].readings
        )  # fmt: skip

    @functools.cached_property
    def shown_readings(self) -> pd.DataFrame:
        """`judged_readings` at paper scale; else this run's own, before those that are shipped."""
        if self.scale == "paper":
            return self.judged_readings
        own = self._judged([(f"this run: {name_of(self.switches)}", self.evidence)])
        place = reference_of(self.KEY).parent / f"{self.KEY}-readings-intervals.csv"
        shipped = read_csv(place, {"claim": "any", "reading": "any"})
        ends = ["mean", "low", "high", "runs"]
        shipped[ends] = shipped[ends].apply(pd.to_numeric)
        return pd.concat([own, shipped], ignore_index=True)

    def readings_map(self, said: str) -> tuple[pd.DataFrame, str]:
        """Return the verdicts by reading, with what is said of them where all were run now.

        A quick run shows the map at the paper's own scale that is shipped with the package, and
        its own verdicts beside it; ``by_reading`` runs every reading at any scale.
        """
        self.table("readings-intervals", self.shown_readings)
        shipped = "first column: this run; the others at paper scale, as shipped"
        return _by_reading(self.shown_readings), said if self.scale == "paper" else shipped

    def _row(self, claim: Claim, evidence: Any) -> dict[str, Any]:
        """Judge a claim, with the numbers of the point that speaks most against it."""
        points = measured(claim, evidence)
        verdict = verdict_of(claim, points)
        row = {"point": "", **dict.fromkeys(ENDS, np.nan), **(verdict.weakest or {})}
        runs, reason = 0, verdict.reason
        if points is None:
            reason = claim.reason or "Not run under this reading."
        elif len(points) and "n" in points:
            runs = int(points["n"].min())
        return {
            "point": row["point"], "mean": row["estimate"], "low": row["low"],
            "high": row["high"], "runs": runs, "unit": claim.unit, "verdict": verdict.word,
            "points": verdict.points, "reason": reason,
        }  # fmt: skip

    @functools.cached_property
    def by_reading(self) -> pd.DataFrame:
        """The verdicts of `judged_readings`: rows are claims, columns readings."""
        return _by_reading(self.judged_readings)


def _by_reading(table: pd.DataFrame) -> pd.DataFrame:
    """Put a claim's words beside each other, each with how many points of how many are for it."""
    for_it = table["points"].str.extract(r"^(\d+) for.*of (\d+)$")
    count = (" " + for_it[0] + "/" + for_it[1]).fillna("")
    table = table.assign(cell=table["verdict"] + count)
    wide = table.pivot(index="claim", columns="reading", values="cell")
    rows, columns = (list(dict.fromkeys(table[name])) for name in ("claim", "reading"))
    return wide.reindex(index=rows, columns=columns).rename_axis(columns=None)


def verdicts(study: Study) -> pd.DataFrame:
    """Judge every claim of a paper, and keep and return the scorecard."""
    place = reference_of(study.KEY)
    own = study.mine or study.drawn_by
    apart = study.scale == "paper" or study.switches or own or not place.exists()
    card = claims.scorecard(study.verdicts, None if apart else claims.read_scorecard(place))
    study.results.verdicts(study.KEY, card)
    return card

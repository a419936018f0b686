"""All experiments on paper C at one scale: each is run once, when first asked for."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dlsim.cpugpu import SWITCHES, Machine, Reading, workload
from dlsim.cpugpu.given import MOST_COUNT
from dlsim.cpugpu.moldable import NodePool
from dlsim.errors import InputError
from dlsim.files import read_text
from dlsim.given import option, whole
from dlsim.papers.cpu_gpu import claims, runs, systems
from dlsim.papers.cpu_gpu.runs import ONLINE, VARIANTS, Setting
from dlsim.study.claims import Verdict, load_claims, verdict_of
from dlsim.study.experiment import need_common
from dlsim.study.report import Results
from dlsim.study.sweeps import sweep

KEY = "cpu-gpu"
MIXES = tuple(workload.MIXES)
#: Noise of the fairness picture, and factors of wrong first samples.
CVS = (0.0, 0.1, 0.3, 1.0)
WRONG = (1.0, 5.0, 20.0, 100.0)
#: What the thread of a GPU job takes at most, of a CPU with 16 or 8 cores (section 3).
SHARES = (0.0, 0.0625, 0.125)
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0)
REPEATS = (1, 2, 4, 8, 16)
GPUS = (1, 2, 4, 8)
#: Declared times are wrong by so much, as the second source has it.
ERROR = 0.2
#: What a cold batch is compared with in the break-even map.
EVEN = ("history", "preferred", "gpu-only", "mct")
#: Jobs of a queue that is compared with the exhaustive schedule.
SHORT = 8


class Scale(NamedTuple):
    """How much is computed."""

    runs: int
    reading_runs: int
    reading_mixes: int
    draws: int
    words: int


#: The paper states no size; ``paper`` is one at which intervals are narrow.
SCALES = {"quick": Scale(5, 4, 2, 20, 2_000), "paper": Scale(30, 20, 5, 100, 10_000)}


def alternatives() -> list[dict[str, str]]:
    """List every reading that differs from the default in one switch."""
    return [{}, *({name: value} for name, options in SWITCHES.items() for value in options[1:])]


@dataclass(frozen=True)
class Study:
    """Paper C's experiments under one set of parameters; results are kept once computed.

    Parameters
    ----------
    scale : {"quick", "paper"}
        Number of runs and sizes.
    seed : int
        Root of all randomness.
    runs : int
        Number of runs; 0 = what the scale says.
    jobs : int
        Worker processes; 0 = all cores.
    out : str
        Where results go; "" = results/cpu-gpu under the project, or the current folder.
    reading : mapping
        Switches of the engine that differ from the default.
    mixes : sequence of str
        Mixes of applications.
    cpus, gpus : int
        The machine.
    apps, queue, batches : int
        Applications of a mix, jobs of a batch, batches.
    cv, outliers, factor : float
        Noise of the run times.
    nodes : int
        Nodes of problem 2.
    text : str
        A file whose words are counted; "" = a drawn text.

    Raises
    ------
    InputError
        For an unknown scale, mix, switch or value, or a number out of range.
    """

    scale: str = "quick"
    seed: int = 0
    runs: int = 0
    jobs: int = 0
    out: str = ""
    reading: Mapping[str, Any] | None = None
    mixes: Sequence[str] = MIXES
    cpus: int = 1
    gpus: int = 1
    apps: int = 12
    queue: int = 24
    batches: int = 8
    cv: float = 0.1
    outliers: float = 0.02
    factor: float = 5.0
    nodes: int = 4
    text: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be run before anything runs."""
        need_common(self, SCALES)
        Reading.of(self.switches)
        if not self.mixes:
            raise InputError("mixes must be one mix or more, got none")
        for mix in self.mixes:
            option("mixes", mix, MIXES)
        Machine(self.cpus, self.gpus)
        if not (self.cpus and self.gpus):
            raise InputError(f"the paper needs both classes, got {self.cpus=} and {self.gpus=}")
        for name in ("apps", "queue"):
            whole(name, getattr(self, name), 1, MOST_COUNT)
        whole("batches", self.batches, 2, MOST_COUNT)
        NodePool(self.nodes)
        table = workload.applications(self.mixes[0], 1)
        workload.draw(table, 1, 0, self.cv, self.outliers, self.factor)

    @property
    def switches(self) -> dict[str, Any]:
        """The reading as a plain mapping."""
        return dict(self.reading or {})

    @functools.cached_property
    def size(self) -> Scale:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        runs = self.runs or size.runs
        return size._replace(runs=runs, reading_runs=min(runs, size.reading_runs))

    @functools.cached_property
    def results(self) -> Results:
        """Where tables, figures and verdicts are written."""
        return Results(self.out, KEY)

    @property
    def setting(self) -> Setting:
        """What all workloads have in common."""
        return Setting(
            self.cpus, self.gpus, self.apps, self.queue, self.batches, self.cv, self.outliers,
            self.factor,
        )  # fmt: skip

    def _sweep(
        self, function: Any, grid: Any, label: str, count: int = 0, **fixed: Any
    ) -> pd.DataFrame:
        count = count or self.size.runs
        return sweep(function, grid, count, self.seed, jobs=self.jobs, fixed=fixed, label=label)

    def main(
        self, policies: Sequence[str], switches: Mapping[str, Any] | None = None,
        error: float = 0.0, count: int = 0, mixes: Sequence[str] = (),
    ) -> pd.DataFrame:  # fmt: skip
        """Run batches under every policy, in every mix."""
        grid = {"mix": tuple(mixes or self.mixes), "error": (error,)}
        return self._sweep(
            runs.compare, grid, "batches", count, policies=tuple(policies), **self._how(switches)
        )

    def _how(self, switches: Mapping[str, Any] | None = None) -> dict[str, Any]:
        changed = self.switches if switches is None else dict(switches)
        return {"setting": self.setting, "switches": changed}

    def _fair(self, mixes: Sequence[str], cvs: Sequence[float], **how: Any) -> pd.DataFrame:
        grid = {"mix": tuple(mixes), "cv": tuple(cvs)}
        count = how.pop("count", 0)
        return self._sweep(runs.fairness, grid, "fairness", count, **how).assign(own=self.cv)

    def measure(self, switches: Mapping[str, Any] | None = None) -> claims.Evidence:
        """Run what the engine's readings decide."""
        other = switches is not None
        how, count = self._how(switches), self.size.reading_runs if other else 0
        policies = claims.JUDGED if other else (*ONLINE, *VARIANTS)
        mixes = tuple(self.mixes[: self.size.reading_mixes] if other else self.mixes)
        wrong = {"mix": mixes, "wrong": (1.0, 100.0) if other else WRONG}
        return claims.Evidence(
            self.main(policies, switches, 0.0, count, mixes),
            self._sweep(runs.explore, {"mix": mixes}, "explorations", count, **how),
            self._fair(mixes, (self.cv,), count=count, **how),
            self._sweep(runs.poison, wrong, "wrong samples", count, **how),
        )

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        mixes = tuple(self.mixes)
        return self.measure()._replace(
            wrong=self.main(("rsc", "asjf", "mct"), error=ERROR),
            ideal=self.ideal,
            threads=self._sweep(
                runs.thread, {"mix": mixes, "share": SHARES}, "CPU threads", **self._how()
            ),
            moulded=self._sweep(
                systems.mould, {"mix": mixes, "error": (0.0, ERROR)}, "problem 2",
                nodes=self.nodes, setting=self.setting,
            ),
            pipelines=self._sweep(
                systems.pipeline, {"profile": tuple(systems.PROFILES)}, "pipelines", chunks=24,
                cv=self.cv,
            ),
            issued=self.issued,
            adapted=self._sweep(
                systems.adapt, {"case": tuple(systems.CASES)}, "optimiser", devices=4, rounds=12
            ),
            words=self.words,
            memory=systems.memory(),
        )  # fmt: skip

    @functools.cached_property
    def ideal(self) -> pd.DataFrame | None:
        """Short queues against the exhaustive schedule; None where CPUs slow down."""
        if Reading.of(self.switches).gpu_cpu_share:
            return None
        return self._sweep(
            runs.ideal, {"mix": tuple(self.mixes)}, "exhaustive", jobs=SHORT,
            policies=runs.WITH_IDEAL, **self._how(),
        )  # fmt: skip

    @functools.cached_property
    def issued(self) -> pd.DataFrame:
        """Operations issued from several threads: queues engines replicate order slowdown."""
        grid = {"queues": ("per-engine", "single"), "engines": (1, 2)}
        return self._sweep(
            systems.issue, grid, "issue order", profile="balanced", chunks=24, cv=0.3,
            draws=self.size.draws,
        )  # fmt: skip

    @functools.cached_property
    def words(self) -> pd.DataFrame:
        """The word count on CPUs, GPUs and both: devices gpus streams replicate makespan."""
        grid = [
            {"devices": devices, "gpus": gpus, "streams": streams}
            for devices in ("cpu", "gpu", "both")
            for gpus in (GPUS if devices != "cpu" else GPUS[:1])
            for streams in claims.STREAMS
        ]
        text = read_text(self.text) if self.text else ""
        return self._sweep(
            systems.count_words, grid, "word count", words=self.size.words, text=text,
            policy="history",
        )  # fmt: skip

    @functools.cached_property
    def noises(self) -> pd.DataFrame:
        """Fairness in the first mix under more and less noise."""
        return self._fair(self.mixes[:1], CVS, **self._how())

    @functools.cached_property
    def even(self) -> pd.DataFrame:
        """Cold batches: spread repeats replicate policy makespan."""
        grid = {"spread": SPREADS, "repeats": REPEATS}
        return self._sweep(runs.break_even, grid, "break-even", policies=EVEN, **self._how())

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on every claim under the study's own reading."""
        return [
            verdict_of(claim, claims.measured(claim, self.evidence)) for claim in load_claims(KEY)
        ]

    @functools.cached_property
    def by_reading(self) -> pd.DataFrame:
        """Verdicts under the study's own reading and under every other one.

        Rows are the claims that the engine's switches decide; columns are readings, the
        study's own first, the others one switch away from the default, at the scale's
        `reading_runs` and `reading_mixes`.
        """
        rows = [claim for claim in load_claims(KEY) if claim.measure in claims.BY_READING]
        own = {verdict.claim.id: str(verdict) for verdict in self.verdicts}
        columns = {_name(self.switches) or "default": [own[claim.id] for claim in rows]}
        for switches in alternatives():
            if _name(switches) in columns or not (switches or self.switches):
                continue
            evidence = self.measure(switches)
            columns[_name(switches) or "default"] = [
                str(verdict_of(claim, claims.measured(claim, evidence))) for claim in rows
            ]
        return pd.DataFrame(columns, index=pd.Index([claim.id for claim in rows], name="claim"))


def _name(switches: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in switches.items())

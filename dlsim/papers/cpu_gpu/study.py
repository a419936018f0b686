"""All experiments on paper C at one scale: each is run once, when first asked for."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.cpugpu import Machine, Reading, workload
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.cpugpu.moldable import NodePool
from dlsim.errors import InputError
from dlsim.files import read_text
from dlsim.given import option, whole
from dlsim.papers.cpu_gpu import cells, claims
from dlsim.papers.cpu_gpu.cells import OF_ENGINE, ONLINE, SWITCHES, VARIANTS, Setting
from dlsim.study import study
from dlsim.study.study import Switches

MIXES = tuple(workload.MIXES)
#: Factors of wrong first samples.
WRONG = (1.0, 5.0, 20.0, 100.0)
#: What the thread of a GPU job takes at most, of a CPU with 16 or 8 cores (section 3).
SHARES = (0.0, 0.0625, 0.125)
GPUS = (1, 2, 4, 8)
#: Declared times are wrong by so much, as the second source has it.
ERROR = 0.2
#: Jobs of a queue that is compared with the exhaustive schedule.
SHORT = 8
SCALES = study.scales("cpu-gpu")


@dataclass(frozen=True)
class Study(study.Study):
    """Paper C's experiments: `dlsim.study.study.Study` with a machine and its workloads.

    Parameters
    ----------
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
    """

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

    KEY, SCALES, SWITCHES = "cpu-gpu", SCALES, SWITCHES

    def check(self) -> None:
        """Refuse unknown switches, mixes and machines, and workloads that cannot be drawn."""
        for name, value in self.switches.items():
            if option("reading switch", name, SWITCHES) not in OF_ENGINE:
                option(name, value, SWITCHES[name])
        Reading.of(self.given(self.switches)["switches"])
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

    def given(self, switches: Switches) -> dict[str, Any]:
        """What cells are given: all switches, those of the engine together, and the setting."""
        usual = {name: options[0] for name, options in SWITCHES.items()}
        usual |= {"nodes": self.nodes, **switches}
        noise = (self.cv, self.outliers, self.factor, usual["base"])
        setting = Setting(self.cpus, self.gpus, self.apps, self.queue, self.batches, *noise)
        of_engine = {name: value for name, value in switches.items() if name in OF_ENGINE}
        return usual | {"switches": of_engine, "setting": setting}

    @property
    def setting(self) -> Any:
        """What all workloads have in common."""
        return self.given(self.switches)["setting"]

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the readings decide; what a reading does not concern is the study's own."""
        own = switches is None

        def ran(field: str, function: Any, fixed: Any = None, **axes: Any) -> Any:
            if own or self.given_to(function, switches) != self.given_to(function):
                grid = {"mix": self.mixes, **axes}
                return self.sweep(function, grid, field, reading=switches, **fixed or {})
            return getattr(self.evidence, field)

        policies = {"policies": (*ONLINE, *VARIANTS) if own else claims.JUDGED}
        return claims.Evidence(
            ran("main", cells.compare, policies, error=(0.0,)),
            ran("fair", cells.fairness, cv=(self.cv,)),
            ran("outlying", cells.outlying),
            ran("poisoned", cells.poison, wrong=WRONG),
            ran("moulded", cells.mould, error=(0.0, ERROR) if own else (0.0,)),
        )

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        mixes: dict[str, Any] = {"mix": self.mixes}
        wrong, shares = mixes | {"error": (ERROR,)}, mixes | {"share": SHARES}
        profiles, cases = {"profile": tuple(cells.PROFILES)}, {"case": tuple(cells.CASES)}
        queues = {"queues": ("per-engine", "single"), "engines": (1, 2)}
        # no exhaustive schedule where GPU jobs slow CPUs down
        free = not Reading.of(self.given(self.switches)["switches"]).gpu_cpu_share
        return self.measure()._replace(
            wrong=self.sweep(cells.compare, wrong, "wrong times", policies=("rsc", "asjf", "mct")),
            ideal=self.sweep(
                cells.ideal, mixes, "exhaustive", length=SHORT, policies=cells.WITH_IDEAL
            ) if free else None,
            threads=self.sweep(cells.thread, shares, "CPU threads"),
            pipelines=self.sweep(cells.pipeline, profiles, "pipelines", chunks=24, cv=self.cv),
            issued=self.sweep(
                cells.issue, queues, "issue order", profile="balanced", chunks=24, cv=0.3,
                draws=self.size.draws,
            ),
            adapted=self.sweep(cells.adapt, cases, "optimiser", devices=4, rounds=12),
            words=self.words,
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
        return self.sweep(
            cells.count_words, grid, "word count", words=self.size.words, text=text,
            policy="history",
        )  # fmt: skip

"""All experiments on paper C at one scale: each is run once, when first asked for."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.cpugpu import SWITCHES, Machine, Reading, workload
from dlsim.cpugpu.given import MOST_COUNT
from dlsim.cpugpu.moldable import NodePool
from dlsim.errors import InputError
from dlsim.files import read_text
from dlsim.given import option, whole
from dlsim.papers.cpu_gpu import cells, claims
from dlsim.papers.cpu_gpu.cells import ONLINE, VARIANTS, Setting
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

    @functools.cached_property
    def size(self) -> Any:
        """The scale with a positive number of runs put in."""
        size = SCALES[self.scale]
        runs = self.runs or size.runs
        return size._replace(runs=runs, reading_runs=min(runs, size.reading_runs))

    @property
    def setting(self) -> Setting:
        """What all workloads have in common."""
        noise = (self.cv, self.outliers, self.factor)
        return Setting(self.cpus, self.gpus, self.apps, self.queue, self.batches, *noise)

    def run(
        self, function: Any, label: str, switches: Switches | None = None, mixes: Any = (),
        fixed: Any = (), **axes: Any,
    ) -> pd.DataFrame:  # fmt: skip
        """Sweep over mixes and further axes; fewer mixes and runs under another reading."""
        size, own = self.size, switches is None
        grid = {"mix": tuple(mixes or self.mixes[: None if own else size.reading_mixes]), **axes}
        how = {"setting": self.setting, "switches": self.switches if own else switches}
        count = 0 if own else size.reading_runs
        return self.sweep(function, grid, label, count, **how | dict(fixed))

    def measure(self, switches: Switches | None = None) -> claims.Evidence:
        """Run what the engine's readings decide."""
        own, run = switches is None, functools.partial(self.run, switches=switches)
        policies = (*ONLINE, *VARIANTS) if own else claims.JUDGED
        return claims.Evidence(
            run(cells.compare, "batches", error=(0.0,), fixed={"policies": policies}),
            run(cells.explore, "explorations"),
            run(cells.fairness, "fairness", cv=(self.cv,)).assign(own=self.cv),
            run(cells.poison, "wrong samples", wrong=WRONG if own else (1.0, 100.0)),
        )

    @functools.cached_property
    def evidence(self) -> claims.Evidence:
        """Everything that the claims are measured on, under the study's own reading."""
        policies = {"policies": ("rsc", "asjf", "mct")}
        return self.measure()._replace(
            wrong=self.run(cells.compare, "batches", error=(ERROR,), fixed=policies),
            ideal=self.ideal,
            threads=self.run(cells.thread, "CPU threads", share=SHARES),
            moulded=self.sweep(
                cells.mould, {"mix": tuple(self.mixes), "error": (0.0, ERROR)}, "problem 2",
                nodes=self.nodes, setting=self.setting,
            ),
            pipelines=self.sweep(
                cells.pipeline, {"profile": tuple(cells.PROFILES)}, "pipelines", chunks=24,
                cv=self.cv,
            ),
            issued=self.issued,
            adapted=self.sweep(
                cells.adapt, {"case": tuple(cells.CASES)}, "optimiser", devices=4, rounds=12
            ),
            words=self.words,
            memory=cells.memory(),
        )  # fmt: skip

    @functools.cached_property
    def ideal(self) -> pd.DataFrame | None:
        """Short queues against the exhaustive schedule; None where CPUs slow down."""
        if Reading.of(self.switches).gpu_cpu_share:
            return None
        fixed = {"jobs": SHORT, "policies": cells.WITH_IDEAL}
        return self.run(cells.ideal, "exhaustive", fixed=fixed)

    @functools.cached_property
    def issued(self) -> pd.DataFrame:
        """Operations issued from several threads: queues engines replicate order slowdown."""
        grid = {"queues": ("per-engine", "single"), "engines": (1, 2)}
        return self.sweep(
            cells.issue, grid, "issue order", profile="balanced", chunks=24, cv=0.3,
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
        return self.sweep(
            cells.count_words, grid, "word count", words=self.size.words, text=text,
            policy="history",
        )  # fmt: skip

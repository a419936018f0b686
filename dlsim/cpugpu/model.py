"""The model of CPU-GPU scheduling: machine, policies and readings.

Sources: paper C (cpu-gpu), S. Goyat, A. K. Sahoo, "Scheduling algorithm for CPU-GPU based
heterogeneous clustered environment using Map-Reduce data processing", section 5 (the five
rules) and sections 2, 6 and 7 (its rivals). The papers that it takes them from: C. Gregg, M. Boyer,
K. Hazelwood, K. Skadron, A4MMC 2011; V. Ravi, M. Becchi, W. Jiang, G. Agrawal,
S. Chakradhar, CCGrid 2012.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dlsim.cpugpu.jobs import CLASSES
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.user_code import resolve_user_code
from dlsim.validate import find_row, flag, number, one_of, whole

#: Most devices of one class, and the largest count of any argument.
MOST_DEVICES, MOST_COUNT = 10_000, 10**7


@dataclass(frozen=True)
class Machine:
    """CPUs and GPUs that each run one job at a time (paper C, section 5 A).

    Parameters
    ----------
    cpus, gpus : int
        Devices of each class; one of them may be 0.

    Raises
    ------
    InputError
        For a count that is no whole number, negative, beyond `MOST_DEVICES`, or no
        device at all.

    Examples
    --------
    >>> Machine(cpus=1, gpus=2).devices
    ('gpu0', 'gpu1', 'cpu0')
    """

    cpus: int = 1
    gpus: int = 1

    def __post_init__(self) -> None:
        own = vars(self)
        own.update({name: whole(name, own[name], 0, MOST_DEVICES) for name in ("cpus", "gpus")})
        if self.cpus + self.gpus == 0:
            raise InputError("a machine needs a device, got cpus=0 and gpus=0")

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices, GPUs first: the order of the last tie-break."""
        return tuple(f"{cls}{i}" for cls in CLASSES for i in range(self.count(cls)))

    def count(self, cls: str) -> int:
        """Return the number of devices of a class."""
        return self.gpus if cls == "gpu" else self.cpus


class JobMetrics:
    """Figures over all jobs of a schedule, from its table `jobs`."""

    jobs: pd.DataFrame

    @property
    def makespan(self) -> float:
        """Time from the first arrival to the last end."""
        return float(self.jobs["end"].max() - self.jobs["arrival"].min())

    @property
    def throughput(self) -> float:
        """Jobs per unit of time, over the makespan; infinite where the clock shows none."""
        return len(self.jobs) / self.makespan if self.makespan else math.inf

    @property
    def mean_wait(self) -> float:
        """Mean time from arrival to start."""
        return float(self.jobs.get("wait", self.jobs["start"] - self.jobs["arrival"]).mean())

    @property
    def mean_completion(self) -> float:
        """Mean time from arrival to end."""
        return float(self.jobs.get("completion", self.jobs["end"] - self.jobs["arrival"]).mean())


@dataclass(frozen=True)
class Rule:
    """A rule of a `Policy`.

    Attributes
    ----------
    decide : str
        Its function in `dlsim.cpugpu.rules`; empty for a rule that follows a plan of all jobs,
        made before the first decision (`dlsim.cpugpu.ideal`).
    options : mapping of str to tuple of str
        The words among the fields of a `Policy` that it reads, and what each may be.
    """

    decide: str
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_TARGET = {"target": (*CLASSES, "preferred")}
#: The rules of a `Policy` by name, which its docstring describes.
POLICY_RULES: dict[str, Rule] = {
    "history": Rule("history_rule", {"estimate": ("mean", "median", "ewma")}),
    "mct": Rule("minimum_completion_time"),
    "fifo": Rule("first_come", _TARGET),
    "strict": Rule("head_of_line", _TARGET),
    "round-robin": Rule("round_robin"),
    "speed-up": Rule("by_speed_up", {"cross_class": ("if_speedup_small", "never", "always")}),
    "shortest": Rule("shortest_first"),
    "ideal": Rule("", {"objective": ("makespan", "completion")}),
}


@dataclass(frozen=True)
class Policy:
    """What an algorithm decides, as data.

    Parameters
    ----------
    rule : str or callable
        A name of `POLICY_RULES`: ``history``: the paper's five rules; ``mct``: minimum completion
        time by declared times; ``fifo``: one queue per class; ``strict``: the head of the main
        queue waits for its class; ``round-robin``; ``speed-up``: RSC and its kin; ``shortest``:
        ASJF; ``ideal``: exhaustive. Or a function of (state, policy, reading) that returns a
        `Decision` or None, or its name as ``FILE.py:name`` or ``module:name``.
    target : {"preferred", "cpu", "gpu"}
        ``fifo`` and ``strict``: the class that each job goes to.
    cross_class : {"if_speedup_small", "never", "always"}
        ``speed-up``: when an idle device takes a job that prefers the other class.
    objective : {"makespan", "completion"}
        ``ideal``: what is least, the makespan or the mean completion time.
    min_samples : int
        ``history``: rule 2 tries a class until so many jobs were assigned there (1: the
        paper's rule).
    re_explore : int
        ``history``: rule 2 tries a class again once the application was assigned
        elsewhere so many times in a row; 0: never.
    bound : float
        ``history``: rule 2 does not try a class if the least known time of the application
        is under this part of the known work that waits in the main queue (equal up to rounding
        is not under it); 0: no bound.
    estimate : {"mean", "median", "ewma"}
        ``history``: which statistic of the measured times is expected.
    steal : bool
        ``history``: at the end, a free device takes the last job of another sub-queue if
        it should finish sooner here.
    """

    rule: str | Callable[..., Any] = "history"
    target: str = "preferred"
    cross_class: str = "if_speedup_small"
    objective: str = "makespan"
    min_samples: int = 1
    re_explore: int = 0
    bound: float = 0.0
    estimate: str = "mean"
    steal: bool = False

    def __post_init__(self) -> None:
        vars(self)["rule"] = resolve_user_code("rule", self.rule)
        if not callable(self.rule):
            one_of("rule", self.rule, POLICY_RULES)
        for rule in POLICY_RULES.values():
            for name, options in rule.options.items():
                one_of(name, getattr(self, name), options)
        vars(self).update(
            min_samples=whole("min_samples", self.min_samples, 1, MOST_COUNT),
            re_explore=whole("re_explore", self.re_explore, 0, MOST_COUNT),
            bound=number("bound", self.bound, high=1.0),
        )
        flag("steal", self.steal)

    @property
    def is_planned(self) -> bool:
        """Whether the policy follows a plan of all jobs, made before the first decision."""
        return not callable(self.rule) and not POLICY_RULES[self.rule].decide


#: The paper's scheduler and its rivals by name, with descriptions. ``torque`` keeps one
#: first-come queue per class, which on one machine is the preferred-device queue of Gregg et al.
_KNOWN: dict[str, tuple[Policy, str]] = {
    "history": (Policy("history"), "the paper's five rules, on measured times"),
    "cpu-only": (Policy("fifo", target="cpu"), "everything on the CPU"),
    "gpu-only": (Policy("fifo", target="gpu"), "everything on the GPU"),
    "preferred": (Policy("fifo"), "each on the class it prefers"),
    "round-robin": (Policy("round-robin"), "classes in turn"),
    "mct": (Policy("mct"), "minimum completion time by declared times"),
    "torque-strict": (Policy("strict"), "Torque: the first in line waits for its class"),
    "torque": (Policy("fifo"), "Torque: a queue per class"),
    "rsc": (Policy("speed-up"), "by speed-up; an idle device takes with care"),
    "rsc-strict": (
        Policy("speed-up", cross_class="never"),
        "by speed-up; an idle device takes nothing of the other class",
    ),
    "rsa": (
        Policy("speed-up", cross_class="always"),
        "by speed-up; an idle device takes whatever there is",
    ),
    "asjf": (Policy("shortest"), "the shortest job first, where it is fastest"),
    "ideal": (Policy("ideal"), "exhaustive: least makespan of a few jobs"),
    "ideal-mean": (
        Policy("ideal", objective="completion"),
        "exhaustive: least mean completion time of a few jobs",
    ),
}
POLICIES = {name: policy for name, (policy, _) in _KNOWN.items()}
POLICY_TEXTS = {name: words for name, (_, words) in _KNOWN.items()}


def find_job_policy(policy: str | Policy) -> tuple[str, Policy]:
    """Return the name and the record of a policy, by its name or of a user's own."""
    return find_row(
        "policy", policy, POLICIES, lambda own: str(getattr(own.rule, "__name__", own.rule))
    )


@dataclass(frozen=True)
class Reading(BaseReading):
    """How the ambiguous sentences of paper C are understood; every default is named.

    Parameters
    ----------
    both_free : {"explore", "best"}
        With a free device of either class, which no rule covers: an untried class is
        tried, or the best known class is taken, the GPU where none is known.
    unknown_remaining : {"avg", "zero", "inf"}
        Expected time of a running job that was never measured there: the mean over the
        measured applications of its class (0 without any), nothing, or for ever.
    deviations : float
        A run is expected to take the mean and so many standard deviations. The paper
        stores the deviation and no rule uses it: 0.
    gpu_cpu_share : float
        Part of one CPU's speed that the CPU thread of a running GPU job takes away,
        spread over all CPUs; assumed free by the paper (section 5 A): 0.
    """

    both_free: str = switch(
        ("explore", "best"),
        label="both kinds of device free: try the unknown one, or take the best known",
        reads="rules:rule_2",
    )
    unknown_remaining: str = switch(
        ("avg", "zero", "inf"),
        label="unknown run time of a running job: average, zero, or infinite",
        reads="rules:unknown_time",
    )
    deviations: float = switch(
        (0.0, 1.0, 2.0),
        label="expected run time: the mean, plus so many standard deviations",
        reads="rules:expected_times",
        number={"high": 100.0},
    )
    gpu_cpu_share: float = switch(
        (0.0, 0.05, 0.2),
        label="share of a CPU that a running GPU job takes",
        reads="loop:simulate_jobs",
        number={"high": 1.0},
    )


#: Switches of `Reading` with their options, the default first.
SWITCHES = Reading.switches()

"""The model of CPU-GPU scheduling: devices, jobs, rules, policies and readings.

Sources: paper C (cpu-gpu), S. Goyat, A. K. Sahoo, "Scheduling algorithm for CPU-GPU based
heterogeneous clustered environment using Map-Reduce data processing", section 5 (the five
rules) and sections 2, 6 and 7 (its rivals). The papers that it takes them from: C. Gregg, M. Boyer,
K. Hazelwood, K. Skadron, A4MMC 2011; V. Ravi, M. Becchi, W. Jiang, G. Agrawal,
S. Chakradhar, CCGrid 2012.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import pandas as pd

from dlsim.compiled import deadline_with_tolerance
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.record import NamedRecord, find_record, require_names
from dlsim.user_code import load_user_code, names_user_code, resolve_user_code
from dlsim.validate import flag, instance, number, one_of, whole

#: Most devices of one class, and the largest count of any argument.
MOST_DEVICES, MOST_COUNT = 10_000, 10**7
#: Device classes, in the order that decides the last tie: GPUs first.
CLASSES = ("gpu", "cpu")
#: The class that a class is not.
OTHER_CLASS = {"gpu": "cpu", "cpu": "gpu"}


def device_class(device: str) -> str:
    """Return the class of a device by its name."""
    cls = device[:3]
    if cls not in CLASSES or not device[3:].isdecimal():
        raise InputError(
            f"a device is called gpu0, gpu1, .. or cpu0, cpu1, ..; got {device!r}; use a name of "
            "Machine.devices"
        )
    return cls


class JobView(NamedTuple):
    """A job as a scheduler sees it: its declared times, not its real ones.

    Attributes
    ----------
    job : int
        Its place in the queue order.
    app : str
        Its application.
    declared : dict
        Its declared run time by class, for the classes it has a version for, GPUs first.
        Policies that learn ask only which classes there are.
    """

    job: int
    app: str
    declared: dict[str, float]

    @property
    def preferred(self) -> str:
        """The class with the smaller declared time, GPUs on a tie."""
        declared = self.declared
        if len(declared) == 1:
            return next(iter(declared))
        return "gpu" if declared["gpu"] <= declared["cpu"] else "cpu"

    @property
    def speed_up(self) -> float:
        """How much faster the preferred class is; infinite if there is no other version."""
        times = self.declared.values()
        return max(times) / min(times) if len(times) > 1 else math.inf


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
    name: str

    @property
    def makespan(self) -> float:
        """Time from the first arrival to the last completion."""
        return float(self.jobs["completion"].max() - self.jobs["arrival"].min())

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
        """Mean time from arrival to completion."""
        response = self.jobs.get("response", self.jobs["completion"] - self.jobs["arrival"])
        return float(response.mean())

    def summary(self) -> pd.Series:
        """Return the measures that paper C names, under the name of the policy.

        Returns
        -------
        Series
            makespan (units of time, from the first arrival to the last completion; less is
            better), throughput (jobs per unit of time; more is better), mean_wait and
            mean_completion (units of time from the arrival; less is better).
        """
        names = ("makespan", "throughput", "mean_wait", "mean_completion")
        return pd.Series({name: getattr(self, name) for name in names}, name=self.name)


def is_simultaneous(first: Any, second: Any, span: Any) -> bool:
    """Tell whether two instants are equal at the time scale `span`; also for Fractions."""
    return bool(max(first, second) <= deadline_with_tolerance(min(first, second), span))


@dataclass(frozen=True)
class Rule:
    """A rule by which jobs leave the main queue."""

    text: str  # one sentence that says what it does
    #: Its function in `dlsim.cpugpu.rules`; empty for a rule that follows a plan of all jobs, made
    #: before the first decision (`dlsim.cpugpu.ideal`).
    decide: str
    words: tuple[str, ...]  # under which jobs leave the main queue, as the table of jobs shows
    predicts: tuple[str, ...] = ()  # those of the words under which a finish is predicted
    looks_at_head: bool = False  # whether jobs leave the main queue in its order
    works_while_busy: bool = False  # whether it also decides while every device is busy
    #: The words among the fields of a `Policy` that it reads, and what each may be.
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: The words under which rule 2 places a job to learn its run time.
EXPLORING = ("R2", "R2*")
_TARGET = {"target": (*CLASSES, "preferred")}
_COMPARED = ("R3", "R3*", "R4", "R4q")
#: The rules of a `Policy` by name.
POLICY_RULES: dict[str, Rule] = {
    "history": Rule(
        "the paper's five rules, on measured times",
        "history_rule",
        words=("R0", *EXPLORING, *_COMPARED, "steal"),
        predicts=(*_COMPARED, "steal"),
        looks_at_head=True,
        options={"estimate": ("mean", "median", "ewma")},
    ),
    "mct": Rule(
        "minimum completion time by declared times",
        "minimum_completion_time",
        words=("mct",),
        predicts=("mct",),
        looks_at_head=True,
        works_while_busy=True,
    ),
    "fifo": Rule("a queue per class", "first_come", words=("fifo",), options=_TARGET),
    "strict": Rule(
        "the first in line waits for its class",
        "head_of_line",
        words=("fifo",),
        looks_at_head=True,
        options=_TARGET,
    ),
    "round-robin": Rule(
        "devices in turn", "round_robin", words=("turn",), looks_at_head=True, works_while_busy=True
    ),
    "speed-up": Rule(
        "the largest speed-up first; an idle device may take from the other class",
        "by_speed_up",
        words=("own", "taken"),
        options={"cross_class": ("if_speedup_small", "never", "always")},
    ),
    "shortest": Rule(
        "the shortest job first, where it is fastest", "shortest_first", words=("own", "taken")
    ),
    "ideal": Rule(
        "exhaustive: the best schedule of a few jobs",
        "",
        words=("ideal",),
        options={"objective": ("makespan", "completion")},
    ),
}


def changed_fields(record: NamedRecord, but: str = "") -> list[str]:
    """Return the fields of a record that differ from their defaults, as ``name=value``."""
    options = (one for one in fields(record) if one.compare and one.name != but)
    values = ((one, getattr(record, one.name)) for one in options)
    return [f"{one.name}={value}" for one, value in values if value != one.default]


@dataclass(frozen=True)
class Policy(NamedRecord):
    """What an algorithm decides, as data.

    Parameters
    ----------
    rule : str or callable
        A name of `POLICY_RULES`, which says what each does. Or a function of (state, policy,
        reading) that returns a `Decision` or None, or its name as ``FILE.py:name`` or
        ``module:name``.
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
    name, text : str, optional
        The name in legends and tables, and one sentence that says what the policy does; derived
        from the rule and the other fields where they are not given.
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
        named: Any = self.rule
        if callable(named):
            named = getattr(named, "__name__", type(named).__name__)
        changes = changed_fields(self, but="rule")
        text = f"decides by the function {named}" if self.record is None else self.record.text
        self.settle_words(lambda: ", ".join([named, *changes]), lambda: ", ".join([text, *changes]))

    @property
    def record(self) -> Rule | None:
        """The record of its rule, None for a function of a user."""
        return None if callable(self.rule) else POLICY_RULES[self.rule]

    @property
    def is_planned(self) -> bool:
        """Whether the policy follows a plan of all jobs, made before the first decision."""
        return self.record is not None and not self.record.decide


#: The paper's scheduler and its rivals by name. ``torque`` keeps one first-come queue per class,
#: which on one machine is the preferred-device queue of Gregg et al.
POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("history", name="history", text=POLICY_RULES["history"].text),
        Policy("fifo", target="cpu", name="cpu-only", text="everything on the CPU"),
        Policy("fifo", target="gpu", name="gpu-only", text="everything on the GPU"),
        Policy("fifo", name="preferred", text="each on the class it prefers"),
        Policy("round-robin", name="round-robin", text="devices in turn"),
        Policy("mct", name="mct", text=POLICY_RULES["mct"].text),
        Policy(
            "strict", name="torque-strict", text="Torque: the first in line waits for its class"
        ),
        Policy("fifo", name="torque", text="Torque: a queue per class"),
        Policy("speed-up", name="rsc", text="by speed-up; an idle device takes with care"),
        Policy(
            "speed-up",
            cross_class="never",
            name="rsc-strict",
            text="by speed-up; an idle device takes nothing of the other class",
        ),
        Policy(
            "speed-up",
            cross_class="always",
            name="rsa",
            text="by speed-up; an idle device takes whatever there is",
        ),
        Policy("shortest", name="asjf", text=POLICY_RULES["shortest"].text),
        Policy("ideal", name="ideal", text="exhaustive: least makespan of a few jobs"),
        Policy(
            "ideal",
            objective="completion",
            name="ideal-mean",
            text="exhaustive: least mean completion time of a few jobs",
        ),
    )
}
require_names(POLICIES)

#: What stands for a policy: a name of `POLICIES`, a record, or a rule of one's own.
AnyPolicy = str | Policy | Callable[..., Any]


def read_policy(policy: AnyPolicy) -> tuple[str, Policy]:
    """Return the name and the record of a policy.

    It is given by its name, as a record, as a rule (see `Policy`), or as ``FILE.py:name`` of one.
    """
    if names_user_code(policy):
        found = load_user_code("policy", str(policy))
        found = Policy(found) if callable(found) else instance(f"policy {policy!r}", found, Policy)
        return str(policy).rpartition(":")[2], found
    return find_record("policy", Policy(policy) if callable(policy) else policy, POLICIES)


def _learns(policy: Policy) -> bool:
    """Return whether a policy decides by the run times that it has measured."""
    return policy.rule == "history" or callable(policy.rule)


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
        touches=_learns,
    )
    unknown_remaining: str = switch(
        ("avg", "zero", "inf"),
        label="unknown run time of a running job: average, zero, or infinite",
        reads="rules:unknown_time",
        touches=_learns,
    )
    deviations: float = switch(
        (0.0, 1.0, 2.0),
        label="expected run time: the mean, plus so many standard deviations",
        reads="rules:expected_times",
        touches=_learns,
        number={"high": 100.0},
    )
    gpu_cpu_share: float = switch(
        (0.0, 0.05, 0.2),
        label="share of a CPU that a running GPU job takes",
        reads=("scheduler:require_share", "scheduler:EventLoop.__init__"),
        number={"high": 1.0},
    )


#: Switches of `Reading` with their options, the default first.
SWITCHES = Reading.switches()

"""Scheduler, reading, and the rules of a simulation of deadline scheduling on the Grid.

Source: paper B (bricks), A. Takefusa, S. Matsuoka, H. Casanova, F. Berman, "A Study of
Deadline Scheduling for Client-Server Systems on the Computational Grid", HPDC 2001.

Units: seconds, Mbit, Mbit/s, Mops, Mops/s. The paper leaves the following rules open; they hold
under every reading:

- A request is submitted at its time; the scheduler picks a server at once; the input goes
  over the path; once all of it has arrived the server takes the request into its queue or
  lets it fall back, which submits it again at that same instant. A server runs its queue,
  client and background jobs alike, first come, first served, one at a time. The result goes
  back over the return path. Nothing is cancelled: the run ends when all results are in.
- What happens at one instant happens in this order: probes; background arrivals; jobs
  served; results returned; inputs arriving; submissions (new ones and fallbacks); packets
  offered to links. Within a kind, requests go in the order of their table. A job served or
  arriving at the instant of a probe is therefore not yet gone, or not yet seen.
- Probes happen at 0, probe, 2 probe, ...; the scheduler knows the latest one, up to and
  including its own instant. Before the trace of a link ends its value at t is entry
  floor(t / step); afterwards the last value is held.
- T_Si = send / P_send + recv / P_recv + work / P_serv (eq. 2), P_send and P_recv the
  smallest predicted throughput on the path, P_serv = performance / (1 + Load). Transfers of
  no data take no time.
- ET_exec of eq. (6) is the exact backlog of the server plus work / performance, whatever its
  load trace says; ET_recv is recv over the smallest predicted throughput of the return path,
  never corrected for links.
- numjobs of eq. (5), and the transfers that ``correct_links`` counts, no longer hold a
  rejected request when the resubmission chooses.
- The predictor "adaptive" keeps, for every series by itself, the sum of absolute one-step
  errors of the forecasters in `dlsim.bricks.core.state.FORECASTERS`; the first of those that err
  least (sums that differ by less than `dlsim.compiled.TOL` of the latest value are equal) predicts.
- With predictor "perfect" the load ``util`` is the busy fraction of the last ``probe`` seconds.
- Other users' data (`Environment.link_background`) take from a link up to the end of its trace
  or of the step of their last arrival, whichever is later; then its last entry holds, whole.
- Two times are equal if they differ by no more than `dlsim.compiled.TOL` of a duration and 4
  units in the last place of the clock (`dlsim.compiled.deadline_with_tolerance`). The durations
  are: T_Si against T_target, the target; estimates against the best one, that one (ties go to the
  lowest server index); a completion, or eq. (6) with the clock added to both sides, against the
  deadline, the time from the request to it; a probe, the probe interval; another user's job or
  data, the time that it takes; an entry of a trace, the step. The order of all other events is by
  exact time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dlsim.bricks.core import state
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.user_code import resolve_user_code
from dlsim.validate import number, one_of, whole


class RegistryEntry(NamedTuple):
    """A method of the simulator: its name, its code in the kernels, its legend.

    The legend is that of Figures 3 and 5, if it has one; ``{opt:g}`` stands for Opt.
    """

    name: str
    code: int
    legend: str = ""


class Registry(dict[str, RegistryEntry]):
    """Methods of one kind by name, the default first."""

    def __init__(self, kind: str, *methods: RegistryEntry) -> None:
        """Register methods."""
        super().__init__({method.name: method for method in methods})
        self.kind = kind

    def code_of(self, value: Any) -> int:
        """Return the code of a method or of a user's function; raise InputError for another."""
        if callable(value):
            return state.USER
        return self[one_of(self.kind, value, tuple(self))].code


#: Schedulers of section 3.1 (`Scheduler.algorithm`); a user's own is a function.
ALGORITHMS = Registry(
    "algorithm",
    RegistryEntry("greedy", state.GREEDY, "Greedy"),
    RegistryEntry("deadline", state.DEADLINE, "D-{opt:g}"),
)
#: Predictors of links and loads (`Reading.predictor`); a user's own is a function.
PREDICTORS = Registry(
    "predictor",
    RegistryEntry("last", state.LAST),
    RegistryEntry("mean", state.MEAN),
    RegistryEntry("perfect", state.PERFECT),
    RegistryEntry("adaptive", state.ADAPTIVE),
)
#: What the monitor reports as Load of a server (`Reading.load`).
LOADS = Registry(
    "load",
    RegistryEntry("clients", state.CLIENTS),
    RegistryEntry("util", state.UTILISATION),
    RegistryEntry("queue", state.QUEUE),
    RegistryEntry("ext", state.EXTERNAL),
)
#: Most fallbacks of one request.
MOST_FALLBACKS = 1000
#: Most packets of a run.
MOST_PACKETS = 10**9
#: Rule of the probe interval.
PROBE_RULE: dict[str, Any] = {"above": True, "rule": "a finite number of seconds above 0"}


@dataclass(frozen=True)
class Scheduler:
    r"""The rule that picks a server for a request (paper B, section 3).

    Parameters
    ----------
    algorithm : {"greedy", "deadline"} or callable
        The server with the smallest :math:`T_{S_i}`; or, with :math:`T_{target} = (T_{deadline} -
        now) \, Opt` (eq. 1, 3), the largest :math:`T_{S_i} \le T_{target}`, and if there is none
        the smallest (eq. 4); or a plain function of a `dlsim.bricks.View` that returns the row of a
        server or `dlsim.bricks.REFUSE`, or its name as ``FILE.py:name`` or ``module:name``.
    opt : float
        Opt, in (0, 1].
    load_correction : bool
        Load Correction: add ``pload`` to the Load of a server per client job that is scheduled
        on it and not completed (eq. 5; `dlsim.bricks.core.schedulers.apply_load_correction`,
        which adds, and `dlsim.bricks.core.loop`, which counts the jobs).
    pload : float
        At least 0.
    max_fallbacks : int
        :math:`N_{max. fallbacks}`; 0 for no Fallback mechanism.
    exclude_rejecting : bool
        Whether a request may no longer go to servers that it fell back from, unless it fell
        back from all of them.
    correct_links : bool
        Load Correction for links (the paper's future work): a link's predicted throughput
        is divided by 1 + ``pload`` per client transfer that is under way over it, an
        input until it has arrived, a result once it is sent. Needs no `load_correction`.
    fallback_slack : float
        Seconds past the deadline that a server still accepts (section 3.3).

    Raises
    ------
    InputError
        For an Opt outside (0, 1], an unknown algorithm or one without a name for the figures, or a
        number out of range.
    """

    algorithm: str | Callable[[Any], int] = "greedy"
    opt: float = 1.0
    load_correction: bool = False
    pload: float = 1.0
    max_fallbacks: int = 0
    exclude_rejecting: bool = False
    correct_links: bool = False
    fallback_slack: float = 0.0

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        vars(self)["algorithm"] = resolve_user_code("algorithm", self.algorithm)
        if not callable(self.algorithm):
            one_of("algorithm", self.algorithm, tuple(ALGORITHMS))
        seconds = "a finite number of seconds, at least 0"
        vars(self).update(
            opt=number("opt", self.opt, 0, 1, above=True, rule="above 0 and at most 1 (eq. 3)"),
            pload=number("pload", self.pload),
            max_fallbacks=whole("max_fallbacks", self.max_fallbacks, 0, MOST_FALLBACKS),
            fallback_slack=number("fallback_slack", self.fallback_slack, rule=seconds),
        )
        for name in ("load_correction", "exclude_rejecting", "correct_links"):
            one_of(name, getattr(self, name), (True, False))
        if not self.legend.strip():
            remedy = "give its record in ALGORITHMS a legend, or the function a __name__"
            raise InputError(f"algorithm {self.algorithm!r} has no name for the figures; {remedy}")

    @property
    def legend(self) -> str:
        """The first word of `name`: Greedy, D-0.7, or a function's own name."""
        if callable(self.algorithm):
            return str(getattr(self.algorithm, "__name__", type(self.algorithm).__name__))
        return ALGORITHMS[self.algorithm].legend.format(opt=self.opt)

    @property
    def name(self) -> str:
        """The legend of Figures 3 and 5, such as ``D-0.7 L/F``; a function's own name."""
        fallback = "F" if self.max_fallbacks else "x"
        return f"{self.legend} {'L' if self.load_correction else 'x'}/{fallback}"


@dataclass(frozen=True)
class Reading(BaseReading):
    """Switches for the ambiguous sentences of paper B.

    Parameters
    ----------
    load : {"clients", "util", "queue", "ext"}
        What the monitor reports as Load of a server. ``clients``: client jobs in its queue
        or running, plus the external load; ``util``: busy fraction of the last probe
        period (0 at the first probe); ``queue``: all jobs in its queue or running,
        background included; ``ext``: the external load alone. The external load is
        ``Environment.server_load``, or the value of the server's load trace; it is also
        added to ``util`` and ``queue`` where there is a load trace.
    probe : float
        Seconds between two probes of the monitor.
    predictor : {"last", "mean", "perfect", "adaptive"} or callable
        From what was probed to what is predicted, for links and loads alike: the last
        value; the mean of the last ten (or as many as there are); the true value of this
        very instant, without probing; the one of several forecasters with the smallest sum of
        errors so far; or a plain function of an array (series, n) of the last n <= 10 values,
        newest last, that returns one value per series. A function of two arguments is given the
        whole past instead, (series, n), and the time of each measurement, (n,), on the clock of a
        `dlsim.bricks.View`. A function must not keep values in variables of its own: they would
        be carried from one run into the next. A function may be named as ``FILE.py:name``.
    fallback_time : {"at_submit", "at_arrival"}
        Whether T_until_deadline of (6) is counted from the latest submission, or from the
        arrival of the input, which counts T_send twice.
    fallback_strict : bool
        Eq. (7) with < (at most max_fallbacks); False: <= as printed, one more, but
        max_fallbacks = 0 never falls back.
    network : {"fluid", "packet"}
        A transfer flows at the smallest throughput of its path's traces, and transfers do not
        share links; or packets of ``Environment.packet`` Mbit (the last one smaller) pass the
        links one by one, each link first come, first served at the throughput of its trace; a
        packet is offered to the first link when the one before has left it.
    corrected_until : {"returned", "served"}
        When Load Correction (eq. 5) ceases to count a job: once its result has returned to the
        client, or once the server has run the job.
    cost : {"mean", "work_weighted"}
        Mean over all requests of the Mops/s of the server that finally ran it; or weighted
        by work.

    Notes
    -----
    Behind the switches (paper B): Load is never defined (2.1, 3.2); probe interval and
    predictor are not given (4.1); (6) refers to (1), "now", while T_send has passed already;
    (7) allows one fallback more than its name says; packets of 10 Mbit are in Table 1,
    sharing is not; "completed" (3.2) and "priced proportionally to their performance" (1)
    have two meanings each. What concerns inputs is an argument of `Environment.random`, and
    listed in `INPUT_SWITCHES`.
    """

    load: str = switch(
        tuple(LOADS),
        label="load of a server: its client jobs, busy time, all jobs, or other users' load",
        reads="engine:configure",
    )
    probe: float = switch(
        (60.0, 1.0, 900.0),
        label="seconds between two measurements of all servers and links",
        reads="engine:configure",
        number=PROBE_RULE,
    )
    predictor: str | Callable[[Any], Any] = switch(
        tuple(PREDICTORS),
        label="prediction of loads and links: last value, mean of ten, perfect, or adaptive",
        reads="engine:configure",
        is_open=True,
    )
    fallback_time: str = switch(
        ("at_submit", "at_arrival"),
        label="fallback, time left counts from: the submission, or the input's arrival",
        reads="engine:configure",
    )
    fallback_strict: bool = switch(
        (True, False),
        label="most fallbacks is a strict limit (no: one more is allowed)",
        reads="engine:configure",
    )
    network: str = switch(
        ("fluid", "packet"),
        label="a transfer: flows at its path's throughput, or goes in packets that share links",
        reads="engine:configure",
    )
    corrected_until: str = switch(
        ("returned", "served"),
        label="Load Correction counts a job: until its result returns, or its work ends",
        reads="engine:configure",
    )
    cost: str = switch(
        ("mean", "work_weighted"),
        label="cost: mean over the requests, or weighted by work",
        reads="outcome:GridResult.cost",
    )


@dataclass(frozen=True)
class EnvironmentDraw(BaseReading):
    """What paper B leaves open about its inputs: keyword arguments of `Environment.random`."""

    work_range: tuple[float, float] = switch(
        ((1_500.0, 1_080_000.0), (90_000.0, 1_080_000.0)),
        label="work of a request, Mops: from 1500, or from 90000",
        reads="workload:random_environment",
    )
    interval_scope: str = switch(
        ("client", "system"),
        label="Int is the mean time between requests: of each client, or of all",
        reads="workload:random_environment",
    )
    deadline_communication: bool = switch(
        (True, False),
        label="deadlines allow for the transfers",
        reads="workload:random_environment",
    )
    server_load: float = switch(
        (0.1, 0.0, 0.3),
        label="load of the servers by other users",
        reads="workload:random_environment",
        number={"high": 1, "below": True},
    )
    server_background: str = switch(
        ("jobs", "trace"),
        label="other users' load of servers: single jobs, or a trace",
        reads="workload:random_environment",
    )
    link_background: str = switch(
        ("trace", "data"),
        label="other users' load of links: part of the trace, or data of their own",
        reads="workload:random_environment",
    )
    H: float = switch(
        (0.8, 0.5, 0.9),
        label="Hurst parameter of the traces: how long they remember",
        reads="workload:random_environment",
        number={"high": 1, "below": True, "above": True},
    )
    trace_step: float = switch(
        (10.0, 1.0, 60.0, 900.0),
        label="seconds between two values of a trace",
        reads="workload:random_environment",
        number={"above": True},
    )
    trace_std: float = switch(
        (0.1, 0.0, 0.5),
        label="standard deviation of the traces over their mean",
        reads="workload:random_environment",
        number={},
    )
    trace_method: str = switch(
        ("davies-harte", "paxson"),
        label="method that draws the traces",
        reads="workload:random_environment",
    )


#: Switches of `Reading` and of `EnvironmentDraw` with their options, the default first.
SWITCHES, INPUT_SWITCHES = Reading.switches(), EnvironmentDraw.switches()

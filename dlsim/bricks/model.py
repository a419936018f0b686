"""Policies, reading, and the rules of a simulation of deadline scheduling on the Grid.

Source: paper B (bricks), A. Takefusa, S. Matsuoka, H. Casanova, F. Berman, "A Study of
Deadline Scheduling for Client-Server Systems on the Computational Grid", HPDC 2001.

Units: seconds, Mbit, Mbit/s, Mops, Mops/s. The paper leaves the following rules open; they hold
under every reading:

- A request is submitted at its arrival; the scheduler picks a server at once; the input goes
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
  due instant, the time from the arrival to it; a probe, the probe interval; another user's job or
  data, the time that it takes; an entry of a trace, the step. The order of all other events is by
  exact time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from dlsim.bricks.core import schedulers, state
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.record import NamedRecord, require_names
from dlsim.user_code import load_user_code, names_user_code, resolve_user_code
from dlsim.validate import did_you_mean, instance, number, one_of, whole


class Algorithm(NamedTuple):
    """An algorithm of the simulator: its code in the kernels, and how it is called in words."""

    code: int
    legend: str  # in Figures 3 and 5; ``{opt}`` stands for Opt
    text: str  # which server it takes, in plain words


#: Algorithms of section 3.1 (`Policy.algorithm`); a user's own is a function.
ALGORITHMS = {
    "greedy": Algorithm(
        schedulers.GREEDY, "Greedy", "the server that should finish the request first"
    ),
    "deadline": Algorithm(
        schedulers.DEADLINE,
        "D-{opt}",
        "the slowest server that should finish the request within {opt} times the time left",
    ),
}
#: Codes of the predictors of links and loads (`Reading.predictor`); a user's own is a function.
PREDICTORS = {
    "last": state.LAST,
    "mean": state.MEAN,
    "perfect": state.PERFECT,
    "adaptive": state.ADAPTIVE,
}
#: Codes of what the monitor reports as Load of a server (`Reading.load`).
LOADS = {
    "clients": state.CLIENTS,
    "util": state.UTILISATION,
    "queue": state.QUEUE,
    "ext": state.EXTERNAL,
}
#: Most fallbacks of one request.
MOST_FALLBACKS = 1000
#: Most packets of a run.
MOST_PACKETS = 10**9


@dataclass(frozen=True)
class Policy(NamedRecord):
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
        Seconds past the due instant that a server still accepts (section 3.3).
    name, text : str, optional
        Default: the legend of Figures 3 and 5 that `read_legend` reads, such as ``D-0.7 L/F``, with
        a function's own name for its first word and every other field that is not the default
        behind it; and a sentence that says the same.

    Raises
    ------
    InputError
        For an Opt outside (0, 1], an unknown algorithm, a number out of range, or a name or text
        that is given but blank.

    Examples
    --------
    >>> Policy("deadline", 0.7, load_correction=True, max_fallbacks=5).name
    'D-0.7 L/F5'
    >>> Policy(max_fallbacks=1, fallback_slack=60).name
    'Greedy x/F (fallback_slack=60)'
    """

    algorithm: str | Callable[[Any], Any] = "greedy"
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
        self.settle_words(self._derive_name, self._derive_text)

    def _derive_name(self) -> str:
        """Return the legend, and behind it what no legend says."""
        words = self._legend, self._mechanisms(), self._unsaid
        return " ".join(filter(None, words)) if self._legend.strip() else ""

    def _derive_text(self) -> str:
        """Return a sentence with the algorithm, the mechanisms, and what no legend says."""
        what = f"the server that {self._legend} chooses"
        if not callable(self.algorithm):
            what = ALGORITHMS[self.algorithm].text.format(opt=_shortest(self.opt))
        parts = [what]
        if self.load_correction:
            parts.append("Load Correction")
        if self.max_fallbacks:
            some = "one fallback" if self.max_fallbacks == 1 else f"{self.max_fallbacks} fallbacks"
            parts.append(f"at most {some}")
        return " ".join(filter(None, ("; ".join(parts), self._unsaid)))

    @property
    def _legend(self) -> str:
        """The first word of the legend: Greedy, D-0.7, or a function's own name."""
        if callable(self.algorithm):
            return str(getattr(self.algorithm, "__name__", type(self.algorithm).__name__))
        return ALGORITHMS[self.algorithm].legend.format(opt=_shortest(self.opt))

    def _mechanisms(self) -> str:
        """Return the last word of the legend, such as L/F; nothing for the plain algorithm."""
        if not self.load_correction and not self.max_fallbacks:
            return ""
        fallback = {0: "x", 1: "F"}.get(self.max_fallbacks, f"F{self.max_fallbacks}")
        return f"{'L' if self.load_correction else 'x'}/{fallback}"

    @property
    def _unsaid(self) -> str:
        """Return the fields that differ from the default and are in no legend, in brackets."""
        said = {"name", "text", "algorithm", "load_correction", "max_fallbacks"}
        if not callable(self.algorithm) and "{opt}" in ALGORITHMS[self.algorithm].legend:
            said.add("opt")
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        unsaid = [
            f"{name}={_shortest(value)}"
            for name, (value, default) in values.items()
            if name not in said and value != default
        ]
        return f"({', '.join(unsaid)})" if unsaid else ""


def _shortest(value: Any) -> str:
    """Return the shortest text of a number that gives it back."""
    return repr(value).removesuffix(".0")


#: The values of Opt in Figures 3 to 6.
PAPER_OPTS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: What follows the algorithm in their legends: neither mechanism, Load Correction, Fallback, both.
LEGEND_VERSIONS = ("", " L/x", " x/F", " L/F")


def _match_legend(text: str) -> Policy | None:
    """Return the policy of a legend; None for another text."""
    for name, algorithm in ALGORITHMS.items():
        opt = r"(?P<opt>\d*\.?\d+(e-?\d+)?)"
        word = re.escape(algorithm.legend).replace(re.escape("{opt}"), opt)
        mechanisms = r"( (?P<correction>[Lx])/(?P<fallback>x|F(?P<most>[1-9]\d*)?))?"
        if found := re.fullmatch(word + mechanisms, text, re.ASCII):
            parts = found.groupdict()
            most = 0 if parts["fallback"] in (None, "x") else int(parts["most"] or 1)
            return Policy(
                name,
                float(parts.get("opt") or 1.0),
                load_correction=parts["correction"] == "L",
                max_fallbacks=most,
            )
    return None


def read_legend(legend: str) -> Policy:
    """Return the policy of a legend of Figures 3 to 6; `Policy.name` is that legend again.

    Parameters
    ----------
    legend : str
        ``Greedy``, or ``D-`` with any Opt in (0, 1]; then nothing, or Load Correction and Fallback:
        ``L/x``, ``x/F``, ``L/F``, or with n fallbacks at most ``x/Fn``, ``L/Fn``.

    Raises
    ------
    InputError
        For another text, and for an Opt out of range.

    Examples
    --------
    >>> policy = read_legend("D-0.7 L/F5")
    >>> policy.opt, policy.load_correction, policy.max_fallbacks, policy.name
    (0.7, True, 5, 'D-0.7 L/F5')
    """
    policy = _match_legend(legend)
    if policy is None:
        near = did_you_mean(legend, POLICIES)
        known = "a legend such as 'Greedy', 'D-0.7' or 'D-0.7 L/F5' (dlsim list policies)"
        raise InputError(f"policy must be {known}; got {legend!r}{near}")
    return policy


def _name_policies() -> dict[str, Policy]:
    """Return the policies of Figures 3 to 6 by their legends."""
    legends = [algorithm.legend for algorithm in ALGORITHMS.values()]
    words = dict.fromkeys(legend.format(opt=opt) for legend in legends for opt in PAPER_OPTS)
    made = [read_legend(word + version) for word in words for version in LEGEND_VERSIONS]
    return {one.name: replace(one, name=str(one.name), text=str(one.text)) for one in made}


#: The policies of Figures 3 to 6 by name; `find_policy` takes every other legend, too.
POLICIES = _name_policies()
require_names(POLICIES)


def find_policy(value: Any) -> Policy:
    """Return the policy that a value stands for.

    Parameters
    ----------
    value : str, Policy or callable
        A legend (`read_legend`), a policy, a function of a `dlsim.bricks.View`, or
        ``FILE.py:name`` of one of the last two, which is then called by that name.

    Raises
    ------
    InputError
        For any other value, and for a policy that has the legend of another one for a name.
    """
    named: dict[str, Any] = {}
    if names_user_code(value):
        named = {"name": value.rpartition(":")[2]}
        value = load_user_code("policy", value)
    elif isinstance(value, str):
        return read_legend(value)
    if callable(value):
        value = Policy(value, **named)
    rule = "a legend such as 'D-0.7 L/F', a Policy, a function of a View, or FILE.py:name"
    policy: Policy = replace(instance("policy", value, Policy, rule=rule), **named)
    meant = _match_legend(policy.name)
    if meant is not None and meant != policy:
        what = f"policy {policy.name!r} differs from the policy of that legend"
        raise InputError(f"{what}; give it a name of its own, as in replace(..., name='mine')")
    return policy


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
    listed in `dlsim.bricks.workload.INPUT_SWITCHES`.
    """

    load: str = switch(
        tuple(LOADS),
        label="load of a server: its client jobs, busy time, all jobs, or other users' load",
        reads="simulate:configure",
    )
    probe: float = switch(
        (60.0, 1.0, 900.0),
        label="seconds between two measurements of all servers and links",
        reads="simulate:configure",
        number={"above": True, "rule": "a finite number of seconds above 0"},
    )
    predictor: str | Callable[[Any], Any] = switch(
        tuple(PREDICTORS),
        label="prediction of loads and links: last value, mean of ten, perfect, or adaptive",
        reads="simulate:configure",
        is_open=True,
    )
    fallback_time: str = switch(
        ("at_submit", "at_arrival"),
        label="fallback, time left counts from: the submission, or the input's arrival",
        reads="simulate:configure",
        touches=lambda policy: policy.max_fallbacks > 0,
    )
    fallback_strict: bool = switch(
        (True, False),
        label="most fallbacks is a strict limit (no: one more is allowed)",
        reads="simulate:configure",
        touches=lambda policy: policy.max_fallbacks > 0,
    )
    network: str = switch(
        ("fluid", "packet"),
        label="a transfer: flows at its path's throughput, or goes in packets that share links",
        reads="simulate:configure",
    )
    corrected_until: str = switch(
        ("returned", "served"),
        label="Load Correction counts a job: until its result returns, or its work ends",
        reads="simulate:configure",
        touches=lambda policy: policy.load_correction,
    )
    cost: str = switch(
        ("mean", "work_weighted"),
        label="cost: mean over the requests, or weighted by work",
        reads="result:GridResult.cost",
    )


#: Switches of `Reading` with their options, the default first.
SWITCHES = Reading.switches()

"""What the five rules are compared with: pure functions of the same state.

Sources: the rivals that paper C names in sections 6 and 7, and those of the papers it takes
them from. RSC (with its neighbours RSA and RSC-strict) and ASJF are only named there: what
they do here is our reading.
"""

import math

from dlsim.cpugpu.model import Decide, Decision, Item, Policy, Reading, State
from dlsim.cpugpu.rules import declared, five, rule_3, rule_4
from dlsim.kernel import TOL


def mct(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """Every job, as it arrives, where it completes earliest (M. Maheswaran et al., HCW 1999)."""
    if not state.main:
        return None
    item = state.main[0]
    finishes = rule_3(state, item, declared, policy, reading)
    return rule_4(state, item, declared, finishes)._replace(rule="mct")


def fifo(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """One first-come queue per class; a job waits for the class it is meant for."""
    for device in state.free() if state.main else ():
        cls = state.classes[device]
        if policy.target == cls:
            return Decision(state.main[0].job, device, "fifo")
        if policy.target == "preferred":
            for item in state.main:
                if item.preferred == cls:
                    return Decision(item.job, device, "fifo")
    return None


def strict(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """TORQUE with one queue: nobody passes its head, which waits for its class."""
    for item in state.main[:1]:
        target = item.preferred if policy.target == "preferred" else policy.target
        for device in (d for d in state.free() if state.classes[d] == target):
            return Decision(item.job, device, "fifo")
    return None


def round_robin(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """Blind round robin: the i-th job to device i mod n, or the next that has a version."""
    if not state.main:
        return None
    item, n = state.main[0], len(state.classes)
    turns = ((item.job + step) % n for step in range(n))
    device = next(d for d in turns if state.classes[d] in item.declared)
    return Decision(item.job, device, "turn")


def speed_up_of(item: Item) -> float:
    """Return how much faster the preferred class is, by declared times."""
    times = item.declared.values()
    return max(times) / min(times) if len(item.declared) > 1 else math.inf


def speed_up(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """RSC and its kin: best speed-up first, and an idle device may take from the tail.

    Our reading of "Relative Speedup based policy with Conservative assignment" (paper C,
    section 7): one queue per preferred class. A device whose own queue is empty looks at
    the job of least speed-up s of the other queue and takes it if s <= q/m, q jobs
    waiting there, itself included, m devices of that class.
    """
    ranked = sorted(state.main, key=lambda item: (-speed_up_of(item), item.job))
    for device in state.free():
        cls = state.classes[device]
        own = [item for item in ranked if item.preferred == cls]
        if own:
            return Decision(own[0].job, device, "own")
        if ranked and policy.take != "never" and cls in ranked[-1].declared:
            m = len(state.classes) - state.classes.count(cls)
            few = speed_up_of(ranked[-1]) * m <= len(ranked) * (1 + TOL)
            if few or policy.take == "always":
                return Decision(ranked[-1].job, device, "taken")
    return None


def shortest(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """ASJF: shortest first, and an idle device takes what it would finish sooner.

    Our reading of "Adaptive Shortest Job First" (paper C, section 7): one queue per
    preferred class. A device whose own queue is empty scans the other one by the time
    here, shortest first, and takes the first job that finishes here strictly before its
    estimated finish there: (remaining work of the running jobs + all jobs ahead of it)/m
    + its own time, m devices of that class.
    """
    for device in state.free():
        cls = state.classes[device]
        own = [item for item in state.main if item.preferred == cls]
        if own:
            item = min(own, key=lambda one: (one.declared[cls], one.job))
            return Decision(item.job, device, "own")
        for item in _sooner_here(state, cls):
            return Decision(item.job, device, "taken")
    return None


def _sooner_here(state: State, cls: str) -> list[Item]:
    """Return the jobs of the other queue that a device of this class should finish first."""
    other = "cpu" if cls == "gpu" else "gpu"
    m, ahead = state.classes.count(other), 0.0
    for kind, job in zip(state.classes, state.running, strict=True):
        if kind == other and job is not None:
            ahead += max(0.0, job.start + job.item.declared[other] - state.now)
    found = []
    for item in sorted(state.main, key=lambda one: (one.declared[other], one.job)):
        there = ahead / m + item.declared[other]
        ahead += item.declared[other]
        if item.declared.get(cls, math.inf) < there * (1 - TOL):
            found.append(item)
    return sorted(found, key=lambda one: (one.declared[cls], one.job))


#: The decision of each `Policy.rule`; ``ideal`` follows a plan (`dlsim.cpugpu.ideal`).
DECIDE: dict[str, Decide] = {
    "five": five,
    "mct": mct,
    "fifo": fifo,
    "strict": strict,
    "round-robin": round_robin,
    "speed-up": speed_up,
    "shortest": shortest,
}

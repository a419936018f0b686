"""Slow, plain twin of the CPU-GPU scheduler: paper C's five rules and its rivals.

Every number may be an int or a Fraction and every comparison is exact; a machine is a dict
of devices, and nothing is kept that could be asked for anew. It shares no code with dlsim.
"""

import itertools
import math
from dataclasses import dataclass, field

from gmpy2 import mpq as Fraction

OTHER = {"gpu": "cpu", "cpu": "gpu"}


@dataclass
class Job:
    number: int
    app: str
    arrival: Fraction
    time: dict  # class -> realised; a class is missing where there is no version
    said: dict  # class -> declared
    rule: str = ""
    device: str = ""
    decided: object = None
    start: object = None
    end: object = None
    ends: dict = field(default_factory=dict)  # device -> predicted finish, where one was asked

    @property
    def preferred(self):
        return min(self.said, key=lambda c: (self.said[c], c != "gpu"))

    @property
    def gain(self):
        if len(self.said) == 1:
            return math.inf
        return Fraction(self.said[OTHER[self.preferred]]) / self.said[self.preferred]


@dataclass
class Twin:
    cpus: int
    gpus: int
    policy: str = "history"
    both_free: str = "explore"
    unknown_remaining: str = "avg"
    deviations: int = 0
    share: Fraction = Fraction(0)
    min_samples: int = 1
    re_explore: int = 0
    bound: Fraction = Fraction(0)
    estimate: str = "mean"
    steal: bool = False
    runs: dict = field(default_factory=dict)  # (app, class) -> measured times
    assigned: dict = field(default_factory=dict)  # app -> classes it was assigned to, in order

    def __post_init__(self):
        self.devices = [f"gpu{i}" for i in range(self.gpus)]
        self.devices += [f"cpu{i}" for i in range(self.cpus)]

    # --- what is known ------------------------------------------------------------------

    def known(self, job, cls):
        """Expected time of a job by the database; None where it holds nothing."""
        times = self.runs.get((job.app, cls), [])
        if not times or cls not in job.said:
            return None
        mean = Fraction(sum(times)) / len(times)
        if self.estimate == "median":
            ranked, half = sorted(times), len(times) // 2
            middle = (ranked[half] + ranked[-1 - half]) / Fraction(2)
            base = middle
        elif self.estimate == "ewma":
            base = Fraction(times[0])
            for one in times[1:]:
                base = Fraction(7, 10) * base + Fraction(3, 10) * one
        else:
            base = mean
        if self.deviations:
            variance = sum((one - mean) ** 2 for one in times) / len(times)
            base += self.deviations * Fraction(math.sqrt(variance))
        return base

    def time_of(self, job, cls):
        return job.said.get(cls) if self.policy == "mct" else self.known(job, cls)

    def stand_in(self, cls):
        """For a run that was never measured."""
        if self.unknown_remaining != "avg":
            return Fraction(0) if self.unknown_remaining == "zero" else math.inf
        apps = {app for app, kind in self.runs if kind == cls and self.runs[app, kind]}
        k, self.deviations = self.deviations, 0  # the mean of means, whatever is added to one
        each = [self.known(Job(0, app, 0, {}, {cls: 1}), cls) for app in apps]
        self.deviations = k
        return sum(each) / len(each) if each else Fraction(0)

    def ends(self, job):
        """Rule 3: when a job should end on each device on which its time is known."""
        times = {d: self.time_of(job, d[:3]) for d in self.devices}
        return {d: self.busy_until(d) + time for d, time in times.items() if time is not None}

    def busy_until(self, device):
        """Rule 3: the running job's remaining time and every job of the sub-queue."""
        cls, left = device[:3], Fraction(0)
        if device in self.on:
            job = self.on[device]
            whole = self.time_of(job, cls)
            whole = self.stand_in(cls) if whole is None else whole
            left = max(left, whole - (self.now - job.start))
        for job in self.sub[device]:
            time = self.time_of(job, cls)
            left += self.stand_in(cls) if time is None else time
        return self.now + left

    # --- the five rules -------------------------------------------------------------------

    def untried(self, app, cls):
        classes = self.assigned.get(app, [])
        if classes.count(cls) < self.min_samples:
            return True
        since = list(itertools.takewhile(lambda c: c != cls, reversed(classes)))
        return 0 < self.re_explore <= len(since)

    def not_worth_it(self, job):
        least = []
        for one in self.main:
            times = [self.known(one, c) for c in one.said]
            least.append(min([t for t in times if t is not None], default=0))
        return 0 < least[0] < self.bound * sum(least)

    def history(self):
        free = self.free()
        if not free:
            return None
        if not self.main:
            return self.stolen() if self.steal else None
        job, kinds = self.main[0], {d[:3] for d in free}
        if not (len(kinds) == 2 and len(job.said) == 2 and self.both_free == "best"):
            for device in free:
                if device[:3] in job.said and self.untried(job.app, device[:3]):
                    if self.bound and self.not_worth_it(job):
                        break
                    return job, device, "R2*" if len(kinds) == 2 else "R2", None
        times = {c: self.known(job, c) for c in job.said if self.known(job, c) is not None}
        if not times:
            fits = [d for d in self.devices if d[:3] in job.said]
            here = [d for d in free if d in fits]
            return job, here[0] if here else min(fits, key=self.busy_until), "R0", None
        return self.compared(job, times, free, kinds)

    def compared(self, job, times, free, kinds):
        """Rules 3 and 4: the free device if it is not slower, else where it ends first."""
        ends = self.ends(job)
        for device in free:
            if times.get(device[:3]) == min(times.values()):
                return job, device, "R3*" if len(kinds) == 2 else "R3", ends
        first = [d for d in ends if ends[d] == min(ends.values())]
        device = min(first, key=lambda d: (times[d[:3]], self.devices.index(d)))
        return job, device, "R4" if device in free else "R4q", ends

    def stolen(self):
        best = None
        for device in self.free():
            for there in self.devices:
                if self.sub[there]:
                    job = self.sub[there][-1]
                    time = self.known(job, device[:3])
                    if time is not None:
                        saved = self.busy_until(there) - (self.now + time)
                        if saved > 0 and (best is None or saved > best[0]):
                            best = saved, job, device, self.ends(job)
        return None if best is None else (best[1], best[2], "steal", best[3])

    # --- the rivals -----------------------------------------------------------------------

    def mct(self):
        if not self.main:
            return None
        job, free = self.main[0], self.free()
        job, device, _, ends = self.compared(job, job.said, free, set())
        return job, device, "mct", ends

    def in_line(self, wanted, head_only):
        for device in self.free():
            for job in self.main[:1] if head_only else self.main:
                if wanted(job) == device[:3]:
                    return job, device, "fifo", None
        return None

    def round_robin(self):
        if not self.main:
            return None
        job = self.main[0]
        place = job.number % len(self.devices)
        while self.devices[place][:3] not in job.said:
            place = (place + 1) % len(self.devices)
        return job, self.devices[place], "turn", None

    def relative_speed_up(self, take):
        queue = {c: [j for j in self.main if j.preferred == c] for c in OTHER}
        for jobs in queue.values():
            jobs.sort(key=lambda j: j.number)
            jobs.sort(key=lambda j: j.gain, reverse=True)
        for device in self.free():
            own, other = queue[device[:3]], queue[OTHER[device[:3]]]
            if own:
                return own[0], device, "own", None
            if other and device[:3] in other[-1].said:
                m = self.gpus if device[:3] == "cpu" else self.cpus
                if take == "always" or (
                    take == "careful" and other[-1].gain <= Fraction(len(other), m)
                ):
                    return other[-1], device, "taken", None
        return None

    def shortest_first(self):
        for device in self.free():
            cls, other = device[:3], OTHER[device[:3]]
            own = [j for j in self.main if j.preferred == cls]
            if own:
                return min(own, key=lambda j: (j.said[cls], j.number)), device, "own", None
            line = sorted(self.main, key=lambda j: (j.said[other], j.number))
            running = [job for d, job in self.on.items() if d[:3] == other]
            left = sum(max(0, j.said[other] - (self.now - j.start)) for j in running)
            here = [j for j in line if cls in j.said]
            for job in sorted(here, key=lambda j: (j.said[cls], j.number)):
                ahead = left + sum(j.said[other] for j in line[: line.index(job)])
                m = self.gpus if other == "gpu" else self.cpus
                if job.said[cls] < Fraction(ahead) / m + job.said[other]:
                    return job, device, "taken", None
        return None

    def decision(self):
        return {
            "history": self.history,
            "mct": self.mct,
            "cpu-only": lambda: self.in_line(lambda job: "cpu", False),
            "gpu-only": lambda: self.in_line(lambda job: "gpu", False),
            "preferred": lambda: self.in_line(lambda job: job.preferred, False),
            "torque": lambda: self.in_line(lambda job: job.preferred, False),
            "torque-strict": lambda: self.in_line(lambda job: job.preferred, True),
            "round-robin": self.round_robin,
            "rsc": lambda: self.relative_speed_up("careful"),
            "rsc-strict": lambda: self.relative_speed_up("never"),
            "rsa": lambda: self.relative_speed_up("always"),
            "asjf": self.shortest_first,
        }[self.policy]()

    # --- the machine ----------------------------------------------------------------------

    def free(self):
        return [d for d in self.devices if d not in self.on and not self.sub[d]]

    def speed(self, device):
        if device[:3] == "gpu":
            return Fraction(1)
        return 1 - self.share * sum(d[:3] == "gpu" for d in self.on) / Fraction(self.cpus)

    def run(self, jobs):
        """Complete, arrive, decide, instant by instant; the jobs are filled in."""
        self.jobs = jobs
        coming = sorted(jobs, key=lambda j: (j.arrival, j.number))
        self.main, self.sub, self.on = [], {d: [] for d in self.devices}, {}
        self.now, left = Fraction(0), {}
        while coming or self.on or self.main:
            ends = [self.now + left[d] / self.speed(d) for d in self.on]
            then = min(ends + [j.arrival for j in coming[:1]])
            for device in self.on:
                left[device] -= (then - self.now) * self.speed(device)
            self.now = then
            for device in [d for d in self.devices if d in self.on and left[d] == 0]:
                job = self.on.pop(device)
                job.end = then
                times = self.runs.setdefault((job.app, device[:3]), [])
                times.append(then - job.start)
            while coming and coming[0].arrival == then:
                self.main.append(coming.pop(0))
            while True:
                for device in self.devices:
                    if self.sub[device] and device not in self.on:
                        job = self.on[device] = self.sub[device].pop(0)
                        job.start, left[device] = then, Fraction(job.time[device[:3]])
                found = self.decision()
                if found is None:
                    break
                job, device, rule, ends = found
                for queue in [self.main, *self.sub.values()]:
                    if job in queue:
                        queue.remove(job)
                self.sub[device].append(job)
                self.assigned.setdefault(job.app, []).append(device[:3])
                job.device, job.rule, job.decided = device, rule, then
                job.ends = ends or {}
        return jobs


def best_of_all(jobs, cpus, gpus, objective):
    """Least makespan or mean completion of all assignments and orders."""
    devices = ["gpu"] * gpus + ["cpu"] * cpus
    best = math.inf
    for order in itertools.permutations(jobs):
        for places in itertools.product(range(len(devices)), repeat=len(jobs)):
            free, ends = [0] * len(devices), []
            for job, d in zip(order, places, strict=True):
                if devices[d] not in job.time:
                    break
                free[d] = max(free[d], job.arrival) + job.time[devices[d]]
                ends.append(free[d] - (job.arrival if objective == "completion" else 0))
            else:
                cost = sum(ends) / Fraction(len(ends)) if objective == "completion" else max(ends)
                best = min(best, cost)
    return best

"""The queues of paper C, section 5, a main queue and a sub-queue per device, and their devices."""

from bisect import bisect_left, insort
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES, OTHER_CLASS, JobView
from dlsim.rounding import add_in_order


class MainQueue:
    """The jobs that wait for a decision, in queue order; any of them is found by its number.

    `view` keeps another order for a policy: a class with the methods ``put(job, first)``, which
    adds a job, before all others if `first`, and ``take(job)``. Iteration, ``len``, ``queue[0]``
    and ``in`` (of a job's number) work as for a list.
    """

    def __init__(self, jobs: Iterable[JobView] = ()) -> None:
        self._jobs: OrderedDict[int, JobView] = OrderedDict((job.job, job) for job in jobs)
        self._views: dict[type, Any] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[JobView]:
        return iter(self._jobs.values())

    def __contains__(self, number: int) -> bool:
        return number in self._jobs

    def __getitem__(self, place: int) -> JobView:
        count = len(self._jobs)
        if not -count <= place < count:
            raise IndexError(f"place {place} of a main queue with {count} jobs")
        if place < 0:
            return next(islice(reversed(self._jobs.values()), -1 - place, None))
        return next(islice(self._jobs.values(), place, None))

    @property
    def head(self) -> JobView:
        """The next job; there must be one."""
        return next(iter(self._jobs.values()))

    def find(self, number: int) -> JobView:
        """Return the job with this number, which waits."""
        return self._jobs[number]

    def put(self, job: JobView, first: bool = False) -> None:
        """Put a job at the end, or at the head if `first`."""
        self._jobs[job.job] = job
        if first:
            self._jobs.move_to_end(job.job, last=False)
        for view in self._views.values():
            view.put(job, first)

    def take(self, number: int) -> JobView:
        """Take the job with this number out."""
        job = self._jobs.pop(number)
        for view in self._views.values():
            view.take(job)
        return job

    def view(self, kind: type) -> Any:
        """Return the jobs in another order."""
        view = self._views.get(kind)
        if view is None:
            self._views[kind] = view = kind()
            for job in self:
                view.put(job, False)
        return view


class ByPreferredClass:
    """A first-come queue for the jobs that prefer each class."""

    def __init__(self) -> None:
        self.queues = {cls: MainQueue() for cls in CLASSES}

    def put(self, job: JobView, first: bool) -> None:
        """Add a job."""
        self.queues[job.preferred].put(job, first)

    def take(self, job: JobView) -> None:
        """Remove a job."""
        self.queues[job.preferred].take(job.job)


class BySpeedUp:
    """The jobs that prefer each class by their speed-up, the largest last."""

    def __init__(self) -> None:
        self.queues: dict[str, list[tuple[float, int, JobView]]] = {cls: [] for cls in CLASSES}

    def put(self, job: JobView, first: bool) -> None:
        """Add a job."""
        insort(self.queues[job.preferred], (job.speed_up, -job.job, job))

    def take(self, job: JobView) -> None:
        """Remove a job."""
        queue = self.queues[job.preferred]
        del queue[bisect_left(queue, (job.speed_up, -job.job))]


class ByTime:
    """The jobs that prefer each class by their declared time there, the shortest last.

    `elsewhere` has, for each class, the jobs that prefer the other one but have a version here, by
    their declared time here.
    """

    def __init__(self) -> None:
        self.queues: dict[str, list[tuple[float, int, JobView]]] = {cls: [] for cls in CLASSES}
        self.elsewhere: dict[str, list[tuple[float, int, JobView]]] = {cls: [] for cls in CLASSES}
        self._times: dict[str, list[float]] = {cls: [] for cls in CLASSES}

    def put(self, job: JobView, first: bool) -> None:
        """Add a job."""
        cls, here = job.preferred, OTHER_CLASS[job.preferred]
        time, place = job.declared[cls], self._place(job)
        self.queues[cls].insert(place, (-time, -job.job, job))
        self._times[cls].insert(place, time)
        if here in job.declared:
            insort(self.elsewhere[here], (-job.declared[here], -job.job, job))

    def take(self, job: JobView) -> None:
        """Remove a job."""
        cls, here = job.preferred, OTHER_CLASS[job.preferred]
        place = self._place(job)
        del self.queues[cls][place], self._times[cls][place]
        if here in job.declared:
            queue = self.elsewhere[here]
            del queue[bisect_left(queue, (-job.declared[here], -job.job))]

    def _place(self, job: JobView) -> int:
        """Return where a job is in the queue of its preferred class."""
        cls = job.preferred
        return bisect_left(self.queues[cls], (-job.declared[cls], -job.job))

    def work_before(self, job: JobView) -> float:
        """Return the declared work of all jobs that go before one in the queue of its class."""
        return add_in_order(self._times[job.preferred][self._place(job) + 1 :])


class ByVersions:
    """How many jobs of an application wait, by the classes that they have versions for."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def put(self, job: JobView, first: bool) -> None:
        """Add a job."""
        self.counts[job.app, tuple(job.declared)] += 1

    def take(self, job: JobView) -> None:
        """Remove a job."""
        self.counts[job.app, tuple(job.declared)] -= 1


class SubQueue(deque[JobView]):
    """The jobs that wait before a device of class `cls`, in the order of the decisions."""

    def __init__(self, cls: str) -> None:
        super().__init__()
        self.cls = cls
        self._work, self._lost = 0.0, 0.0

    @property
    def declared_work(self) -> float:
        """The sum of the declared times, with its rounding errors added again (compensated sum)."""
        return self._work + self._lost

    def put(self, job: JobView) -> None:
        """Put a job at the end."""
        self.append(job)
        self._add(job.declared[self.cls])

    def take(self, number: int | None = None) -> JobView:
        """Take the job with this number out, the next one by default."""
        if number is None:
            job = self.popleft()
        else:
            place = next(i for i, job in enumerate(self) if job.job == number)
            job = self[place]
            del self[place]
        if self:
            self._add(-job.declared[self.cls])
        else:
            self._work = self._lost = 0.0
        return job

    def _add(self, time: float) -> None:
        """Add to a sum of two floats (Knuth's TwoSum): hardly anything is lost, nothing drifts."""
        total = self._work + time
        part = total - self._work
        self._lost += (self._work - (total - part)) + (time - part)
        self._work = total


#: The first free device of each class, None without one.
FreeDevices = dict[str, int | None]


class SchedulerState:
    """The state that a policy sees at an instant: queues, devices, history.

    Attributes
    ----------
    now : float
        The instant.
    devices, classes : tuple of str
        Names of the devices, GPUs first, and their classes.
    running : list of JobView or None
        The job that each device runs.
    started : list of float
        When the running job of each device started.
    queues : list of SubQueue
        The sub-queue of each device, next job first.
    main : MainQueue
        The main queue, next job first.
    history : History
        Learned run times, and what was tried.
    """

    def __init__(self, devices: tuple[str, ...], history: History) -> None:
        self.now, self.history = 0.0, history
        self.devices = devices
        self.running: list[JobView | None] = [None for _ in devices]
        self.started = [0.0 for _ in devices]
        self.main = MainQueue()
        self._classify()
        self.queues = [SubQueue(cls) for cls in self.classes]

    def _classify(self) -> None:
        """Note which devices there are of each class."""
        self.classes = tuple(name[:3] for name in self.devices)
        self.members = {
            cls: [d for d, own in enumerate(self.classes) if own == cls] for cls in CLASSES
        }

    def free(self) -> list[int]:
        """Return the places of the devices that run nothing, ascending."""
        return [device for device, running in enumerate(self.running) if running is None]

    def first_free(self, cls: str) -> int | None:
        """Return the place of the first free device of a class, None without one."""
        running = self.running
        for device in self.members[cls]:
            if running[device] is None:
                return device
        return None

    def free_by_class(self) -> FreeDevices:
        """Return the first free device of each class, None without one."""
        return {"gpu": self.first_free("gpu"), "cpu": self.first_free("cpu")}

    def remove_devices(self, doomed: list[int]) -> None:
        """Take devices away, which neither run a job nor have any in their sub-queues."""
        kept = [d for d in range(len(self.devices)) if d not in doomed]
        self.running = [self.running[d] for d in kept]
        self.started = [self.started[d] for d in kept]
        self.queues = [self.queues[d] for d in kept]
        self.devices = tuple(self.devices[d] for d in kept)
        self._classify()

"""Tasks that wait for each other's data: who makes what, where it lies, what moving it costs.

All CPUs share the host's memory, each GPU has its own. A piece of data moves to a memory once, as
soon as it is made and a reader of it is assigned there, and stays there; moves do not compete, as
both rivals of the history rule assume. HEFT: H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-
effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002;
dmda and dmdas: StarPU's, C. Augonnet, S. Thibault, R. Namyst, P.-A. Wacrenier, CCPE 23(2), 2011.
"""

import heapq
import math
from bisect import insort
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dlsim.cpugpu import model
from dlsim.cpugpu.dispatch import Desk
from dlsim.cpugpu.given import (
    VERSIONS,
    apart,
    before,
    first_least,
    first_of,
    hold,
    need_known,
    numbered,
    time_column,
    together,
)
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.model import Decision, Item, Machine, Measures, Policy, Reading, State
from dlsim.errors import InputError
from dlsim.given import Floats, column, instance, named, number, option, table, theirs, usual, whole
from dlsim.kernel import latest_finish
from dlsim.rounding import not_after

__all__ = ["RIVALS", "GraphSchedule", "TaskGraph", "cholesky", "run_graph"]

#: Policies that know the graph. ``heft``: by falling upward rank, each task into the first gap of
#: the device on which it ends first. ``dmda``: each task, as it gets ready, to the device where it
#: is expected to end first, its data moved; ``dmdas``: the same, the urgent first in every queue.
RIVALS = ("heft", "dmda", "dmdas")
#: Kernels of a Cholesky factorization: flop over the cube of the tile's side, and how much faster
#: a GPU is than a core, about as E. Agullo et al. found ("Bridging the gap between performance
#: and bounds of Cholesky factorization on heterogeneous platforms", HCW 2015).
KERNELS = {"potrf": (1 / 3, 2.0), "trsm": (1.0, 11.0), "syrk": (1.0, 26.0), "gemm": (2.0, 29.0)}
HOST, READS = "host", ["task", "data", "move"]

#: A piece of data: the task that makes it (or a name of its own), and what moving it takes.
Piece = tuple[object, float]


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Tasks, and the data that they read.

    Parameters
    ----------
    tasks : DataFrame
        Columns app, cpu_time, gpu_time (NaN: no version), and where given arrival (0); a column
        such as gpu1_time holds the times of one device. Index: the tasks' names.
    reads : DataFrame
        Columns task, data, move: a task reads what another one makes, which is named by its maker,
        or what lies in the host's memory from the start (any other name), and moving that to
        another memory takes so long. What is equal in data and move is moved there once.

    Raises
    ------
    InputError
        For a table that cannot be used, a reader that is no task, and tasks that wait for
        each other in a circle.
    """

    tasks: pd.DataFrame
    reads: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=READS))
    #: What each task reads; whom it waits for and who for it, by place; all behind those.
    pieces: list[list[Piece]] = field(init=False, repr=False)
    makers: list[set[int]] = field(init=False, repr=False)
    followers: list[list[int]] = field(init=False, repr=False)
    order: list[int] = field(init=False, repr=False)
    arrival: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tasks, reads = self.tasks, table("reads", self.reads, READS, unique=False)
        numbered(table("tasks", tasks, ("app",), empty=False)["app"])
        column("move", reads["move"], row="row", labels=reads.index)
        place = {name: j for j, name in enumerate(tasks.index)}
        pieces: list[list[Piece]] = [[] for _ in place]
        followers: list[list[int]] = [[] for _ in place]
        for task, data, move in reads[READS].itertuples(index=False):
            with theirs(f"reads must name a task and what it reads, got {task!r} and {data!r}"):
                if task not in place:
                    raise InputError(f"reads: task {task!r} is not in the index of tasks; name one")
                pieces[place[task]].append((place.get(data, (data,)), float(move)))
        makers = [{data for data, _ in own if isinstance(data, int)} for own in pieces]
        for k, own in enumerate(makers):
            for j in own:
                followers[j].append(k)
        waits = [len(own) for own in makers]
        order = [j for j, count in enumerate(waits) if not count]
        for j in order:
            for k in followers[j]:
                waits[k] -= 1
                if not waits[k]:
                    order.append(k)
        if len(order) < len(place):
            stuck = tasks.index[min(set(place.values()) - set(order))]
            raise InputError(f"reads must not go in a circle; task {stuck!r} would wait for ever")
        has = "arrival" in tasks
        arrival = time_column("tasks", tasks, "arrival") if has else np.zeros(len(tasks))
        vars(self).update(pieces=pieces, makers=makers, followers=followers, order=order,
                          arrival=arrival)  # fmt: skip

    def times(self, machine: Machine) -> Floats:
        """Return the time of each task on each device; NaN: no version."""
        own = [f"{d}_time" if f"{d}_time" in self.tasks else f"{d[:3]}_time"
               for d in instance("machine", machine, Machine).devices]  # fmt: skip
        table("tasks", self.tasks, own)
        columns = [time_column("tasks", self.tasks, name, True, True) for name in own]
        times: Floats = np.stack(columns, axis=1)
        if (none := np.isnan(times).all(axis=1)).any():
            label = first_of(self.tasks.index, none)
            raise InputError(f"task {label!r} has no version for any of {', '.join(own)}; give one")
        return times

    def ranks(self, machine: Machine) -> list[float]:
        r"""Return the upward rank of every task, its mean way to the end (Topcuoglu et al.).

        .. math:: r_i = \bar w_i + \max_{j \text{ after } i} (c_{ij} + r_j)

        with the mean time :math:`\bar w_i` over the devices, and what moving takes.
        """
        means, ranks = np.nanmean(self.times(machine), axis=1).tolist(), [0.0] * len(self.tasks)
        moves = machine.gpus + (machine.cpus > 0) > 1
        for i in reversed(self.order):
            after = (move * moves + ranks[j] for j in self.followers[i]
                     for data, move in self.pieces[j] if data == i)  # fmt: skip
            ranks[i] = means[i] + max(after, default=0.0)
        return ranks

    def bound(self, machine: Machine) -> float:
        """Return a makespan that no schedule can beat.

        Of the tasks as they are and in reverse, none starting before the longest way to it by
        the least times: `dlsim.cpugpu.ideal.lb_fractional`. Moving is free.
        """
        times, gpus = self.times(machine), machine.gpus
        least, heads, tails = np.nanmin(times, axis=1), self.arrival.copy(), 0 * self.arrival
        for j in self.order:
            heads[j] = max([heads[j], *(heads[i] + least[i] for i in self.makers[j])])
        for j in reversed(self.order):
            tails[j] = max((tails[k] + least[k] for k in self.followers[j]), default=0.0)
        ahead = lb_fractional(heads, times, gpus) - float(heads.min())
        return max(ahead, lb_fractional(tails, times, gpus))


def cholesky(
    tiles: int = 8, tile: int = 960, rate: float = 1e10, bandwidth: float = 6e9,
    times: pd.DataFrame | None = None,
) -> TaskGraph:  # fmt: skip
    """Return the graph of a tiled Cholesky factorization, whose matrix lies in the host's memory.

    Parameters
    ----------
    tiles : int
        Tiles in a row of the matrix: N (N + 1) (N + 2) / 6 tasks potrf, trsm, syrk and gemm.
    tile : int
        Doubles in a row of a tile.
    rate, bandwidth : float
        Flop/s of a core, and bytes per second of a move between memories.
    times : DataFrame, optional
        Measured cpu_time and gpu_time of the four, such as `workload.from_csv` reads; default:
        those of `KERNELS`.

    Examples
    --------
    >>> cholesky(2).tasks["app"].tolist()
    ['potrf', 'trsm', 'syrk', 'potrf']
    """
    count, side = whole("tiles", tiles, 1, 100), whole("tile", tile, 1, 10**6)
    move = 8.0 * side**2 / number("bandwidth", bandwidth, above=True)
    if times is None:
        unit = side**3 / number("rate", rate, above=True)
        rows = {app: (work * unit, work * unit / gain) for app, (work, gain) in KERNELS.items()}
        times = pd.DataFrame.from_dict(rows, "index", columns=VERSIONS)
    times = table("times", times, VERSIONS).drop(columns="app", errors="ignore")
    for app in KERNELS:
        option("kernel", app, times.index)
    latest = {(i, j): f"tile {i} {j}" for i in range(count) for j in range(i + 1)}
    tasks = list[tuple[str, str]]()
    reads = list[tuple[str, str, float]]()

    def add(app: str, written: tuple[int, int], *others: tuple[int, int], at: str = "") -> None:
        name = f"{app} {' '.join(map(str, written))}{at}"
        tasks.append((name, app))
        reads.extend((name, latest[one], move) for one in (written, *others))
        latest[written] = name

    for k in range(count):
        add("potrf", (k, k))
        for i in range(k + 1, count):
            add("trsm", (i, k), (k, k))
        for i in range(k + 1, count):
            add("syrk", (i, i), (i, k), at=f" {k}")
            for j in range(k + 1, i):
                add("gemm", (i, j), (i, k), (j, k), at=f" {k}")
    table_of = pd.DataFrame(tasks, columns=["task", "app"]).set_index("task")
    return TaskGraph(table_of.join(times, on="app"), pd.DataFrame(reads, columns=READS))


class _Run:
    """What became of the tasks of a graph until now, and where data are when."""

    def __init__(self, graph: TaskGraph, machine: Machine) -> None:
        self.graph, self.times, self.ranks = graph, graph.times(machine), graph.ranks(machine)
        self.memory = [d if d.startswith("gpu") else HOST for d in machine.devices]
        self.made: dict[object, tuple[float, str]] = {}
        self.there: dict[tuple[Piece, str], float] = {}
        self.decisions: dict[int, Decision] = {}
        # ready, decided, with all data at its device, started, ended
        columns = np.full((5, len(self.times)), math.nan)
        self.ready, self.decided, self.data, self.start, self.end = columns

    def arrive(self, j: int, d: int, now: float, book: bool = False) -> float:
        """Return when all that a task reads is with a device, if it is assigned there now."""
        memory, latest = self.memory[d], 0.0
        for piece in self.graph.pieces[j]:
            made, home = self.made.get(piece[0], (0.0, HOST))
            moved = self.there.get((piece, memory), max(now, made) + piece[1])
            if home == memory:
                moved = made
            elif book:
                self.there[piece, memory] = moved
            latest = max(latest, moved)
        return latest

    def heft(self) -> None:
        """Plan every task beforehand."""
        graph, busy = self.graph, [list[tuple[float, float]]() for _ in self.memory]
        for j in sorted(graph.order, key=lambda j: -self.ranks[j]):
            ends, starts = np.full((2, len(busy)), math.nan)
            for d in np.flatnonzero(~np.isnan(self.times[j])).tolist():
                start, time = max(float(graph.arrival[j]), self.arrive(j, d, 0.0)), self.times[j, d]
                for begin, end in busy[d]:
                    if start + time <= begin:
                        break
                    start = max(start, end)
                starts[d], ends[d] = start, start + time
            d = first_least(ends.tolist(), 0.0)
            self.arrive(j, d, 0.0, book=True)
            insort(busy[d], (starts[d], ends[d]))
            self.made[j] = ends[d], self.memory[d]
            self.decisions[j] = Decision(j, d, "heft", tuple(ends))
            self.ready[j] = max([graph.arrival[j], *(self.end[i] for i in graph.makers[j])])
            self.decided[j], self.start[j], self.end[j] = 0.0, starts[d], ends[d]

    def follow(self, state: State, decision: Decision, line: int) -> None:
        """Let the data of a task that was assigned move."""
        j, self.decisions[decision.job] = decision.job, decision
        self.decided[j] = state.now
        self.data[j] = self.arrive(j, decision.device, state.now, book=True)

    def dmda(self, state: State, policy: Policy, reading: Reading) -> Decision | None:
        """Send the first task that is ready where it should end first, data moved."""
        return self._sent("dmda", state, state.main[:1])

    def dmdas(self, state: State, policy: Policy, reading: Reading) -> Decision | None:
        """The same; the more urgent task is sent first, and goes first in a sub-queue."""
        for queue in state.queues:
            queue.sort(key=lambda item: -self.ranks[item.job])
        return self._sent("dmdas", state, state.main)

    def _sent(self, name: str, state: State, ready: list[Item]) -> Decision | None:
        if not ready:
            return None
        item = max(ready, key=lambda item: self.ranks[item.job])
        ends = []
        for d, time in enumerate(self.times[item.job]):
            free, job = state.now, state.running[d]
            for other in ([] if job is None else [job.item]) + state.queues[d]:
                end = max(free, self.data[other.job]) + self.times[other.job, d]
                free = end if np.isnan(self.end[other.job]) else self.end[other.job]
            ends.append(float(max(free, self.arrive(item.job, d, state.now)) + time))
        return Decision(item.job, first_least(ends, state.now), name, tuple(ends))

    def play(self, desk: Desk) -> None:
        """Let a desk decide as tasks get ready; a device waits for the data of its next task."""
        graph, times, classes = self.graph, self.times, np.array(desk.state.classes)
        least = {c: np.fmin.reduce(times[:, classes == c], axis=1, initial=math.inf)
                 for c in model.CLASSES}  # fmt: skip
        waits = [len(own) + 1 for own in graph.makers]
        events = [(float(at), j, -1, 0.0) for j, at in enumerate(graph.arrival)]
        heapq.heapify(events)
        span, apps = float(np.nanmin(times)), graph.tasks["app"].tolist()
        while events:
            limit, now, ready = latest_finish(events[0][0], span), 0.0, []
            while events and events[0][0] <= limit:
                now, j, d, since = heapq.heappop(events)
                if d >= 0:
                    desk.complete(now, d, now - since)
                    self.made[j] = now, self.memory[d]
                for k in graph.followers[j] if d >= 0 else [j]:
                    waits[k] -= 1
                    if not waits[k]:
                        ready.append(k)
            self.ready[ready] = now
            for j in sorted(ready):
                own = {c: float(t[j]) for c, t in least.items() if t[j] < math.inf}
                desk.arrive(now, [Item(j, apps[j], own)])
            for d, item in desk.dispatch(now):
                j = item.job
                self.start[j] = max(now, self.data[j])
                self.end[j] = self.start[j] + times[j, d]
                heapq.heappush(events, (float(self.end[j]), j, d, now))


def run_graph(
    graph: TaskGraph, machine: Machine | None = None, policy: str | Policy = "dmdas",
    history: History | None = None, reading: Reading | None = None,
) -> "GraphSchedule":  # fmt: skip
    """Run a task graph; tasks enter the main queue as they get ready.

    Parameters
    ----------
    graph : TaskGraph
        Such as `cholesky` makes.
    machine : Machine, optional
        Its devices; by default one CPU and one GPU.
    policy : str or Policy
        One of `RIVALS`, or as of `dlsim.cpugpu.simulate` but ideal. The latter know of no data:
        a time that the five rules learn holds the wait for what had to be moved.
    history : History, optional
        What is known at the start. It is not changed.
    reading : Reading, optional
        Its gpu_cpu_share has no effect.

    Returns
    -------
    GraphSchedule
        Its `check` verifies it against the model alone.

    Raises
    ------
    InputError
        For a value that cannot be used, or a policy that leaves a task waiting for ever.

    Examples
    --------
    >>> run_graph(cholesky(1), policy="heft").jobs["device"].tolist()
    ['gpu0']
    """
    instance("graph", graph, TaskGraph, "; see cholesky()")
    machine, (reading, known) = usual("machine", machine, Machine), need_known(reading, history)
    run = _Run(graph, machine)
    rows = {one: row for one, row in model.POLICIES.items() if row.rule != "ideal"}
    rows |= {one: Policy(getattr(run, one)) for one in RIVALS}
    name, row = named(
        "policy of a task graph", policy, rows, lambda own: model.policy_named(own)[0]
    )
    if name == "heft":
        run.heft()
    else:
        run.play(Desk(machine, row, reading, known, watch=run.follow))
    if (waits := np.isnan(run.end)).any():
        label = first_of(graph.tasks.index, waits)
        raise InputError(f"policy {name} leaves task {label!r} waiting for ever; use another one")
    made = [run.decisions[j] for j in range(len(run.end))]
    columns = {
        "app": graph.tasks["app"], "arrival": run.ready, "decided": run.decided,
        "device": [machine.devices[one.device] for one in made],
        "start": run.start, "end": run.end, "rule": [one.rule for one in made],
        "predicted": [one.finishes[one.device] if one.finishes else math.nan for one in made],
    }  # fmt: skip
    table = pd.DataFrame(columns, index=graph.tasks.index)
    return GraphSchedule(table, graph, machine, name, known, len(run.there))


@dataclass(frozen=True, eq=False)
class GraphSchedule(Measures):
    """When and where each task ran.

    `jobs` has app, arrival (when it was ready), decided, device, start, end, rule and predicted
    (its finish, NaN where nothing was); `history` is what is known afterwards, `moves` how often a
    piece of data was moved.
    """

    jobs: pd.DataFrame
    graph: TaskGraph
    machine: Machine
    name: str
    history: History
    moves: int

    @property
    def bound(self) -> float:
        """Lower bound of the makespan (`TaskGraph.bound`)."""
        return self.graph.bound(self.machine)

    def check(self) -> None:
        """Check the schedule against the model, independently of who made it."""
        jobs, graph, devices = self.jobs, self.graph, self.machine.devices
        labels, start, end = jobs.index, jobs["start"].to_numpy(), jobs["end"].to_numpy()
        hold("every task is in the table once", [labels.equals(graph.tasks.index)])
        hold("a task runs on a device of the machine", jobs["device"].isin(devices), labels)
        lanes = pd.Index(devices).get_indexer(pd.Index(jobs["device"]))
        times = graph.times(self.machine)[np.arange(len(jobs)), lanes]
        hold("a task runs where it has a version", ~np.isnan(times), labels)
        hold("a task takes its time", together(start + times, end, times), labels)
        alone = apart(lanes, start, end, times.min())
        hold("a device runs one task at a time", alone, labels)
        memory = [name if name.startswith("gpu") else HOST for name in jobs["device"]]
        ready, first, last = graph.arrival.copy(), np.zeros(len(jobs)), np.zeros(len(jobs))
        decided = jobs["decided"].to_numpy()
        for j, own in enumerate(graph.pieces):
            for data, move in own:
                made, home = (end[data], memory[data]) if isinstance(data, int) else (0.0, HOST)
                ready[j] = max(ready[j], made)
                far = move if home != memory[j] else 0.0
                first[j] = max(first[j], made + far)
                last[j] = max(last[j], made + far, decided[j] + far)
        hold("a task waits for those that it needs", not_after(ready, start, times), labels)
        hold("a task waits for its data", not_after(first, start, times), labels)
        order = np.argsort(start, kind="stable")
        free = np.empty(len(jobs))
        free[order] = before(lanes[order], end[order], 0.0)
        latest = np.maximum.reduce([ready, last, free, decided])
        hold("a device idles only without data", not_after(start, latest, times), labels)

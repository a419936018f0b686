"""What every public argument does with each kind of number, and with magnitudes at the ends."""

import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dlsim import bricks, cpugpu, realtime, steady, validate
from dlsim.bricks import topology as ways
from dlsim.bricks import traces
from dlsim.cpugpu import workload as queues
from dlsim.errors import InputError
from dlsim.realtime import workload
from dlsim.steady import topology
from tests.helpers.refusals import require_refusals

CLUSTER = realtime.Cluster(nodes=3, cms=1, cps=10)
TASKS = pd.DataFrame({"arrival": [0.0, 1.0], "sigma": [6.0, 7.0], "deadline": [90.0, 80.0]})
APPS = pd.DataFrame({"cpu_time": [4.0, 2.0], "gpu_time": [1.0, 3.0]}, index=["a", "b"])
JOBS = queues.jobs_in_order(APPS, ["a", "b", "a"])
NOISES = ("cv", "outliers", "factor", "error")
CHUNKS = cpugpu.equal_chunks(5, h2d=3, map=1, d2h=2)
LINKS = pd.DataFrame({"bandwidth": [3.0, 2.0], "max_connect": [2, 3]})
ROUTES = {(0, 1): [0], (1, 0): [0], (1, 2): [1], (2, 1): [1]}
PLATFORM = {
    "speed": [10.0, 2.0, 5.0], "gateway": [20.0, 20.0, 9.0], "priority": [1.0, 1.0, 2.0],
    "work": [1.0, 1.0, 2.0], "data": [1.0, 2.0, 1.0],
}  # fmt: skip
GRID = {
    "servers": pd.DataFrame({"domain": [0, 0], "performance": [100.0, 300.0]}),
    "clients": pd.DataFrame({"domain": [0]}),
    "requests": pd.DataFrame(
        {"arrival": [0.0, 5.0], "client": [0, 0], "send": [10.0, 20.0], "recv": [5.0, 5.0],
         "work": [1e3, 2e3], "due": [200.0, 300.0]}
    ),
    "traces": np.full((1, 4, 3), 50.0), "step": 10.0,
}  # fmt: skip


def changed(table, column, value):
    """Return a table whose first value is another one, of any kind."""
    table = table.astype({column: object})
    table.iloc[0, table.columns.get_loc(column)] = value
    return table


def platform(**parts):
    links = LINKS
    for name in ("bandwidth", "max_connect"):
        if name in parts:
            links = changed(links, name, parts.pop(name))
    first = {name: [value, *PLATFORM[name][1:]] for name, value in parts.items()}
    return steady.Platform(links=links, routes=ROUTES, **(PLATFORM | first))


def environment(table=None, column=None, value=None, **parts):
    rows = {} if table is None else {table: changed(GRID[table], column, value)}
    return bricks.Environment(**(GRID | rows | parts))


def mcdf(**options):
    return workload.mcdf(CLUSTER, **({"load": 0.5, "horizon": 100.0} | options))


def dcratio(**options):
    return workload.dcratio(CLUSTER, **({"load": 0.5, "horizon": 100.0} | options))


def drawn(**options):
    noise = {name: options.pop(name) for name in NOISES if name in options}
    return queues.random_jobs(APPS, **({"jobs": 3} | options), noise=queues.Noise(**noise))


def queued(jobs=None, policy="history"):
    return cpugpu.simulate(JOBS if jobs is None else jobs, cpugpu.Machine(1, 1), policy)


def map_reduce(job=None, **options):
    blocks = cpugpu.split_text("the quick fox the dog", 3)
    group = options.pop("group", cpugpu.NodeGroup(2, 2, 2))
    job = job or cpugpu.word_count()
    cpugpu.run_mapreduce(job, blocks, group, "history", **options).check()


def random_environment(**options):
    few = {"seed": 0, "interval": 10.0, "horizon": 2000.0, "domains": 1}
    return bricks.Environment.random(**(few | options))


def broker(**options):
    wires = LINKS.iloc[:1]
    return steady.Broker(steady.Network(["a", "b"], [9, 9], wires, {(0, 1): [0]}), "G", **options)


#: Every argument that is a number of any kind: what takes it, and a value that it takes.
NUMBERS = {
    **{f"Cluster {n}": (lambda x, n=n: realtime.Cluster(**{n: x}), 2.0)
       for n in ("cms", "cps", "st", "sc")},
    "simulate negotiate": (lambda x: realtime.simulate(TASKS, CLUSTER, "MCDF", negotiate=x), 2.0),
    "execution_time sigma": (lambda x: realtime.execution_time(x, 2, CLUSTER), 2.0),
    "fewest_nodes budget": (lambda x: realtime.fewest_nodes(2.0, x, CLUSTER), 2.0),
    "fewest_nodes start": (lambda x: realtime.fewest_nodes(2.0, 9.0, CLUSTER, x), 2.0),
    "split_load sigma": (lambda x: realtime.split_load(x, [0, 0], CLUSTER), 2.0),
    "split_load release": (lambda x: realtime.split_load(9.0, [x, 2.0], CLUSTER), 2.0),
    **{f"tasks {n}": (lambda x, n=n: realtime.simulate(changed(TASKS, n, x), CLUSTER, "MCDF"), 0.5)
       for n in TASKS},
    **{f"mcdf {n}": (lambda x, n=n: mcdf(**{n: x}), v)
       for n, v in (("load", 0.5), ("horizon", 128.0), ("mean", 64.0))},
    **{f"dcratio {n}": (lambda x, n=n: dcratio(**{n: x}), v)
       for n, v in (("load", 0.5), ("horizon", 128.0), ("mean", 64.0), ("dc_ratio", 2.0))},
    "realised_load horizon": (lambda x: workload.realised_load(TASKS, CLUSTER, x), 2.0),
    "mean_least_time mean": (lambda x: workload.mean_least_time(CLUSTER, x), 2.0),
    **{f"Platform {n}": (lambda x, n=n: platform(**{n: x}), 2.0)
       for n in (*PLATFORM, "bandwidth", "max_connect")},
    "Share share": (lambda x: steady.Share(0, (1,), x), 0.5),
    "Limits pairs": (lambda x: steady.Limits(pairs=x), 2.0),
    **{f"random {n}": (lambda x, n=n: topology.random(3, **{n: x}), 0.5)
       for n in ("connectivity", "heterogeneity", "gateway", "bandwidth", "speed")},
    **{f"Broker {n}": (lambda x, n=n: broker(**{n: x}), 0.5) for n in ("period", "trust")},
    "Broker speed": (lambda x: broker().register("a", x), 2.0),
    **{f"Broker {n}": (lambda x, n=n: broker().submit("x", "a", **({"load": 1.0} | {n: x})), 2.0)
       for n in ("load", "priority", "work", "data")},
    **{f"Grid policy {n}": (lambda x, n=n: bricks.Policy(**{n: x}), 0.5)
       for n in ("opt", "pload", "fallback_slack")},
    "bricks Reading probe": (lambda x: bricks.Reading(probe=x), 2.0),
    **{f"Environment {n}": (lambda x, n=n: environment(**{n: x}), 16.0)
       for n in ("step", "packet", "horizon")},
    "Environment server_load": (lambda x: environment(server_load=x), 0.5),
    "Environment traces": (lambda x: environment(traces=[[[50.0, x]] * 4]), 2.0),
    "Environment background": (lambda x: environment(background=[[x], []]), 2.0),
    "Environment performance": (lambda x: environment("servers", "performance", x), 2.0),
    **{f"requests {n}": (lambda x, n=n: environment("requests", n, x), 2.0)
       for n in ("arrival", "send", "recv", "work", "due")},
    **{f"drawn {n}": (lambda x, n=n: random_environment(**{n: x}), v)
       for n, v in (("interval", 8.0), ("horizon", 1024.0), ("trace_step", 16.0),
                    ("background_work", 64.0), ("server_load", 0.5), ("H", 0.5))},
    "drawn range": (lambda x: random_environment(data_range=(x, 512.0)), 64.0),
    "traces H": (lambda x: traces.random_traces([1.0], 8, H=x), 0.5),
    "traces mean": (lambda x: traces.random_traces([x], 8), 2.0),
    "traces std": (lambda x: traces.random_traces([1.0], 8, std=x), 0.5),
    "cpugpu bound": (lambda x: cpugpu.Policy("history", bound=x), 0.5),
    "cpugpu deviations": (lambda x: cpugpu.Reading(deviations=x), 0.5),
    "cpugpu arrival": (lambda x: queued(changed(JOBS, "arrival", x).assign(
        arrival=[x, 9.0, 9.0])), 2.0),
    "cpugpu cpu_time": (lambda x: queued(changed(JOBS, "cpu_time", x)), 2.0),
    "applications single": (lambda x: queues.applications(single=x), 0.5),
    **{f"jobs {n}": (lambda x, n=n: drawn(**{n: x}), 0.5)
       for n in (*NOISES, "interval")},
}  # fmt: skip

#: Every argument that is a whole number, and a value that it takes.
WHOLES = {
    "Cluster nodes": (lambda x: realtime.Cluster(nodes=x), 2),
    "Policy rounds": (lambda x: realtime.Policy("edf", "min", "umr", rounds=x), 2),
    "execution_time n": (lambda x: realtime.execution_time(2.0, x, CLUSTER), 2),
    "user_nodes": (lambda x: realtime.simulate(
        TASKS.assign(user_nodes=pd.Series([x, 1], dtype=object)), CLUSTER, "EDF-US"), 2),
    **{f"solve {n}": (lambda x, n=n: steady.solve(platform(), "LPRR", **{n: x}), 2)
       for n in ("most_nodes", "seed")},
    "tiers clusters": (lambda x: topology.tiers(x, wan=4, mans=1, man=2), 2),
    "tiers wan": (lambda x: topology.tiers(2, wan=x, mans=1, man=2), 4),
    "random clusters": (lambda x: topology.random(x), 3),
    "origin": (lambda x: steady.Platform(links=LINKS, routes=ROUTES, origin=[x, 1, 2], **PLATFORM),
               2),
    "Share cluster": (lambda x: steady.Share(x, (1,), 0.5), 2),
    "Grid policy max_fallbacks": (lambda x: bricks.Policy(max_fallbacks=x), 2),
    "two_level domains": (lambda x: ways.two_level(x), 2),
    "client": (lambda x: bricks.Environment(**GRID | {
        "clients": pd.DataFrame({"domain": [0, 0, 0]}),
        "requests": changed(GRID["requests"], "client", x)}), 2),
    "traces steps": (lambda x: traces.random_traces([1.0], x), 8),
    "Machine cpus": (lambda x: cpugpu.Machine(x, 1), 2),
    "applications count": (lambda x: queues.applications(count=x), 2),
    "jobs": (lambda x: drawn(jobs=x), 2),
    "batches": (lambda x: drawn(batches=x), 2),
    "min_samples": (lambda x: queued(policy=cpugpu.Policy(min_samples=x)), 2),
    **{f"Gpu {n}": (lambda x, n=n: cpugpu.run_chunks(CHUNKS, cpugpu.Gpu(**{n: x})).check(), 2)
       for n in ("streams", "copy_engines")},
    **{f"run_chunks {n}": (lambda x, n=n: cpugpu.run_chunks(CHUNKS, **{"gpus": 2, n: x}).check(), 2)
       for n in ("gpus", "buffers")},
    "NodeGroup cpus": (lambda x: map_reduce(group=cpugpu.NodeGroup(x, x, x)), 2),
    "Costs chunks": (lambda x: map_reduce(costs=cpugpu.Costs(chunks=x)), 2),
    "partitions": (lambda x: map_reduce(cpugpu.word_count(x)), 2),
    "replicas": (lambda x: map_reduce(storage=cpugpu.Storage(x)), 2),
    **{f"{name} seed": (call, 2) for name, call in {
        "mcdf": lambda x: mcdf(seed=x),
        "dcratio": lambda x: dcratio(seed=x),
        "user_split": lambda x: workload.user_split(TASKS, CLUSTER, x),
        "tiers": lambda x: topology.tiers(2, x, wan=4, mans=1, man=2),
        "random": lambda x: topology.random(3, seed=x),
        "Broker": lambda x: broker(seed=x),
        "Environment": lambda x: random_environment(seed=x),
        "traces": lambda x: traces.random_traces([1.0], 8, seed=x),
        "applications": lambda x: queues.applications(seed=x),
        "jobs": lambda x: drawn(seed=x),
    }.items()},
}  # fmt: skip

#: Every argument that is a number; its name, as a refusal says it, is the last word.
ARGUMENTS = NUMBERS | WHOLES
#: Those that 0 is no value of.
ABOVE_ZERO = """
    execution_time sigma; split_load sigma; tasks sigma; tasks deadline; mcdf load; mcdf horizon;
    mcdf mean; dcratio load; dcratio horizon; dcratio mean; dcratio dc_ratio; realised_load horizon;
    mean_least_time mean; Platform work; Broker period; Broker speed; Broker load; Broker priority;
    Broker work; Grid policy opt; bricks Reading probe; Environment step; Environment packet;
    Environment horizon; Environment performance; drawn interval; drawn horizon; drawn trace_step;
    drawn background_work; drawn H; traces H; traces mean; cpugpu cpu_time; jobs factor; Cluster
    nodes; Policy rounds; execution_time n; user_nodes; tiers clusters; tiers wan; random clusters;
    two_level domains; traces steps; applications count; jobs; batches; min_samples; Gpu streams;
    Gpu copy_engines; run_chunks gpus; Costs chunks; partitions; replicas
""".replace("\n", " ").split(";")
ABOVE_ZERO = {" ".join(name.split()) for name in ABOVE_ZERO}
NONE = [True, False, np.True_, "1", "fast", b"1", Decimal(1), 1j, None, math.nan, math.inf, -1, [1]]


#: What has a meaning of its own: no limit, the last request, no such version, all, an array, a
#: time that is over.
MEANT = {
    "Limits pairs": "None inf", "Environment horizon": "None", "cpugpu cpu_time": "None nan",
    "Platform max_connect": "inf", "tiers clusters": "None", "traces mean": "[1]",
    "execution_time sigma": "[1]", "execution_time n": "[1]", "fewest_nodes budget": "[1] inf -1",
    "fewest_nodes start": "[1] -1", "split_load release": "-1", "requests due": "-1",
}  # fmt: skip
#: What a refusal shows as another value: as pandas reads it, as the list that holds it.
SHOWN = {("cpugpu arrival", "None"): "nan", ("Environment background", "[1]"): "[[1.]]"}


def refusal_of(call, value):
    """Return what a call says when it refuses a value, "" if it takes it; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call(value)
        except InputError as error:
            return str(error)
    return ""


def test_a_wrong_number_is_refused_by_argument_value_and_rule():
    faults = []
    for name, (call, _) in ARGUMENTS.items():
        for value in [*NONE, *([0] if name in ABOVE_ZERO else [])]:
            shown = repr(value).removeprefix("np.").removesuffix("_")
            if shown in MEANT.get(name, "").split():
                continue
            said = refusal_of(call, value)
            words = (name.split()[-1], SHOWN.get((name, shown), shown))
            if not (re.search("must|needs", said) and all(word in said for word in words)):
                faults.append(f"{name}={shown}: {said}")
    assert not faults, "\n".join(faults)


def test_zero_is_a_value_of_the_other_arguments():
    for name in ARGUMENTS.keys() - ABOVE_ZERO - {"Environment traces", "NodeGroup cpus"}:
        assert refusal_of(ARGUMENTS[name][0], 0) == "", name


def test_a_number_of_any_kind_is_that_number():
    for name, (call, value) in ARGUMENTS.items():
        kinds = (np.float16, np.float64) if name in NUMBERS else (np.int8, np.uint64)
        for kind in (float, Fraction, np.float32, *kinds):
            assert refusal_of(call, kind(value)) == "", (name, kind)


def test_what_is_no_whole_number_is_refused():
    for name, (call, _) in WHOLES.items():
        for broken in (1.5, math.inf, Fraction(7, 3), -1e300):
            assert refusal_of(call, broken), (name, broken)


def test_kinds_do_not_change_what_comes_out():
    for one, other in (
        (mcdf(load=0.5, seed=3), mcdf(load=Fraction(1, 2), seed=3.0)),
        (mcdf(mean=64.0), mcdf(mean=np.float32(64))),
        (drawn(cv=0.5, seed=2), drawn(cv=Fraction(1, 2), seed=np.int8(2))),
        (queues.applications(count=3), queues.applications(count=3.0)),
    ):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert mcdf(seed=2.0).attrs == mcdf(seed=2).attrs
    assert realtime.Cluster(cms=np.float32(0.1)).cms == float(np.float32(0.1))
    assert realtime.Cluster(cms=Fraction(1, 3)).cms == Fraction(1, 3)
    assert type(realtime.Cluster(cms=np.float32(0.5)).cms) is float
    tasks = TASKS.astype("float32")
    s, t = (realtime.simulate(x, CLUSTER, "MCDF").tasks for x in (TASKS, tasks))
    pd.testing.assert_frame_equal(s, t, check_exact=True)
    assert platform(speed=Fraction(1, 3)).speed[0] == 1 / 3


# ------------------------------------------------------------------------------ magnitudes

FAR = [5e-324, 1e-308, 1e-200, 1e200, 1e308]
RANGE = "between 1e-100 and 1e+100"
#: Numbers with a smaller upper end of their own, which is what the message then names.
SHARES = (
    "Share share", "random connectivity", "random heterogeneity", "Broker trust", "Grid policy opt",
    "cpugpu bound", "cpugpu deviations", "applications single", "jobs cv", "jobs outliers",
    "jobs error", "drawn H", "drawn server_load", "traces H",
)  # fmt: skip


def test_what_is_out_of_range_is_refused_by_the_range():
    faults = []
    for name, (call, _) in NUMBERS.items():
        for value in FAR:
            said = refusal_of(call, value)
            own = value > 1 and name in SHARES
            own |= value < 1 and name in ("simulate negotiate", "Environment horizon")  # at least 1
            own |= name == "drawn range"  # from the value to 512
            if repr(value) not in said or not (own or RANGE in said):
                faults.append(f"{name}={value!r}: {said}")
    assert not faults, "\n".join(faults)


def checked(tasks, cluster, policy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = realtime.simulate(tasks, cluster, policy)
        s.check()
    return s.tasks


def test_a_unit_near_an_end_of_the_range_is_a_unit_like_another():
    for policy in ("MCDF", "FIFOMN", "EDFAN", "FIFO-OPR-MN", "EDF-UMR-MN"):
        base = checked(TASKS, CLUSTER, policy)["completion"].tolist()
        for unit in (validate.MIN_MAGNITUDE * 100, validate.MAX_MAGNITUDE / 100):
            cluster = realtime.Cluster(3, CLUSTER.cms * unit, CLUSTER.cps * unit)
            tasks = TASKS.assign(arrival=TASKS["arrival"] * unit, deadline=TASKS["deadline"] * unit)
            ends = checked(tasks, cluster, policy)["completion"] / unit
            # below 1e-12 every instant is the same up to the tolerance of dlsim.compiled
            assert unit < 1 or ends.tolist() == pytest.approx(base), policy


def test_one_quantity_at_an_end_of_the_range_passes_the_check():
    ends = (validate.MIN_MAGNITUDE, validate.MAX_MAGNITUDE)
    for policy in ("MCDF", "FIFOMN", "EDFAN", "EDF-OPR-MN", "EDF-DLT"):
        for value in ends:
            for name in TASKS:
                checked(TASKS.assign(**{name: [TASKS[name][0], value]}), CLUSTER, policy)
            for name in ("cms", "cps", *(("st", "sc") if policy != "EDF-DLT" else ())):
                costs = {"nodes": 3, "cms": 1, "cps": 10} | {name: value}
                checked(TASKS, realtime.Cluster(**costs), policy)
    for policy in ("history", "preferred", "mct", "rsa"):
        for name in ("cpu_time", "gpu_time"):
            for value in ends:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    queued(changed(JOBS, name, value), policy).check()


# ----------------------------------------------------------------------------- the page itself


number, whole, column = validate.number, validate.whole, validate.column
UNIT, LEAST = "choose another unit of time or data", "a finite number of at least 0, got"
#: Calls, and how their refusals begin: value, rule and remedy.
MESSAGES = [
    (lambda: number("cms", 5e-324), f"cms must be 0 or {RANGE}, got 5e-324; {UNIT}"),
    (lambda: number("cms", 1e200, above=True), f"cms must be {RANGE}, got 1e+200; {UNIT}"),
    (lambda: number("x", -1), f"x must be {LEAST} -1"),
    (lambda: number("x", 2, 0, 1, above=True), "x must be a number above 0 and at most 1, got 2"),
    (lambda: number("x", 1, 0, 1, below=True),
     "x must be a number of at least 0 and below 1, got 1"),
    (lambda: whole("n", 2.5), "n must be a whole number of at least 1, got 2.5"),
    (lambda: whole("n", 9, 1, 8), "n must be a whole number in 1..8, got 9"),
    (lambda: whole("n", 10**400), "n must be a whole number in 1..9007199254740992, got"),
    (lambda: validate.flag("f", 1), "f must be True or False, got 1"),
    (lambda: validate.one_of("o", "c", ("a", "b")), "o must be one of a, b; got 'c'"),
    (lambda: validate.one_of("o", 1, (True, False)), "o must be one of True, False; got 1"),
    (lambda: column("x", [1.0, [2]]), f"x[1] must be {LEAST}"),
    (lambda: column("x", pd.Series([1.0, -2.0]), row="row", labels=pd.Index(["a", "b"])),
     f"x of row 'b' must be {LEAST} -2.0"),
    (lambda: column("x", np.array([1, 2], "datetime64[ns]")), "x[0] must be a num"),
    (lambda: column("x", pd.Series([5e-324, 0.0, 1.0])), "x[0] must be 0 or between"),
    (lambda: column("x", np.array([0.0, 1.0, 1e101])), "x[2] must be 0 or between"),
    (lambda: column("x", [0.0, 1.0], above=True), "x[0] must be a finite number above"),
    (lambda: column("x", [True, 2.0]), f"x[0] must be {LEAST}"),
    (lambda: validate.number_range("r", (2, 1)),
     "r must be a range (low, high) of finite numbers of at least 0, got (2, 1)"),
    (lambda: validate.require_table("t", [1], ["a"]),
     "t must be a pandas DataFrame with the columns a; got list"),
    *((lambda values=values: validate.list_of("loads", values, number, above=True), said)
      for values, said in [
          (0.5, "loads must be a list, got 0.5; write loads = [0.5]"),
          ("0.5", "loads must be a list, got '0.5'"),
          ([], "loads must hold at least one value, got []"),
          (["x"], "loads[0] must be a finite number above 0, got 'x'"),
          ([1, 0], "loads[1] must be a finite number above 0, got 0"),
          ([1, 2, 1.0], "loads holds 1.0 twice; give every value once"),
      ]),
    (lambda: validate.lists_of_one_length(arrivals=[0, 0], sizes=[1]),
     "arrivals, sizes must be equally long lists, got 2, 1"),
]  # fmt: skip


def test_a_message_names_value_rule_and_remedy():
    require_refusals([(call, f"^{re.escape(said)}") for call, said in MESSAGES])


def test_three_numbers_of_the_range_have_an_ordinary_product():
    least, most = validate.MIN_MAGNITUDE, validate.MAX_MAGNITUDE
    for product in (least**3, most**3, least * least / most, most * most / least):
        assert np.finfo(float).tiny < product < np.finfo(float).max


def test_numbers_go_out_as_they_are():
    third = Fraction(1, 3)
    assert validate.number("x", third) is third
    assert validate.number("x", 10) == 10
    assert type(validate.number("x", 10)) is int
    assert validate.number("x", math.inf, high=math.inf) == math.inf
    missing = validate.column("x", pd.Series([1.0, math.nan]), absent=True)
    assert missing[0] == 1
    assert math.isnan(missing[1])
    values = np.array([1.0, 2.0])
    assert not np.shares_memory(validate.column("x", values), values)


WIDE = {
    "network": lambda: topology.tiers_graph(0, wan=10),
    "random": lambda: topology.random(10),
    "file": lambda: steady.Platform(links=LINKS, routes=ROUTES, **PLATFORM),
    "method": lambda: steady.solve(GIVEN_PLATFORM, "MILP"),
    "tasks": lambda: realtime.simulate(TASKS, CLUSTER, "MCDF"),
    "nodes": lambda: realtime.simulate(TASKS[:1], realtime.Cluster(nodes=10), "EDF-DLT"),
    "traces": lambda: traces.random_traces([1.0], 200),
    "background": lambda: random_environment(link_background="data"),
}
GIVEN_PLATFORM = steady.Platform(links=LINKS, routes=ROUTES, **PLATFORM)


def test_what_cannot_fit_in_memory_is_refused_before_it_begins(monkeypatch):
    for call in WIDE.values():
        call()
    monkeypatch.setattr(validate, "memory_limit", lambda: 100.0)
    for call in WIDE.values():
        call()
    monkeypatch.setattr(validate, "SMALL_BYTES", 0)
    words = r" cannot fit in memory: at least .* GiB .* in all; \w"
    require_refusals([(call, words) for call in WIDE.values()])


def test_what_a_users_function_refuses_is_said_as_it_is_and_its_faults_with_the_rule():
    def calls(error):
        def fail(given):
            raise error

        grid, unlike = bricks.Environment(**GRID), bricks.Reading(predictor=fail)
        yield lambda: realtime.simulate(TASKS, CLUSTER, realtime.Policy(fail, "min"))
        yield lambda: bricks.simulate(grid, bricks.Policy(fail))
        yield lambda: bricks.simulate(grid, bricks.Policy(), unlike)

    fault = r"must .*; got ZeroDivisionError: by zero$"
    require_refusals([(call, "^no licence$") for call in calls(InputError("no licence"))])
    require_refusals([(call, fault) for call in calls(ZeroDivisionError("by zero"))])


def test_memory_is_what_machine_container_and_shell_leave(monkeypatch):
    import resource

    whole = validate.memory_limit()
    assert 2**28 < whole < 2**60
    monkeypatch.setattr(resource, "getrlimit", lambda _: (12345, resource.RLIM_INFINITY))
    assert validate.memory_limit() == 12345
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    monkeypatch.setattr(validate.Path, "read_text", lambda path, _: "2345\n")
    assert validate.memory_limit() == 2345
    monkeypatch.setattr(validate.Path, "read_text", lambda path, _: "max\n")
    assert validate.memory_limit() >= whole


def test_a_column_that_is_not_known_is_refused_unless_it_is_to_be_ignored():
    table = pd.DataFrame({"arrival": [0.0], "weigth": [1.0], "note": ["x"]})
    known = {"columns": ["arrival"], "optional": ["weight"]}
    with pytest.raises(InputError, match=r"'weigth' that is not known \(did you mean weight\?\)"):
        validate.require_table("tasks", table, **known, ignore=["note"])
    with pytest.raises(InputError, match="'note'"):
        validate.require_table("tasks", table, **known, ignore=["weigth"])
    assert validate.require_table("tasks", table, **known, ignore=["weigth", "note"]) is table
    assert validate.require_table("tasks", table, ["arrival"]) is table  # nothing is asked


def test_lists_keep_the_types_of_their_values():
    assert validate.list_of("x", (1, 0.5), validate.number) == [1, 0.5]
    assert [*map(type, validate.list_of("x", [1, 0.5], validate.number))] == [int, float]
    assert validate.list_of("x", np.array([3.0, 4.0]), validate.whole) == [3, 4]
    assert validate.list_of("x", [], validate.whole, least=0) == []
    assert validate.list_of("x", [7, 7], validate.whole, unique=False) == [7, 7]

"""Paper C's MapReduce: real counts under failures, and the policies' own schedules."""

import dataclasses
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.cpugpu import (
    POLICIES,
    Costs,
    Faults,
    Gpu,
    History,
    Machine,
    MapReduce,
    NodeGroup,
    Storage,
    run_mapreduce,
    simulate,
    split_text,
    word_count,
)
from dlsim.cpugpu.cluster.mapreduce_job import place_blocks, words_of
from dlsim.errors import InputError, ScheduleError
from tests.helpers.cpugpu_queues import ONLINE, knowing
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
FOX = "the quick fox the dog the fox"
PAIR = NodeGroup(nodes=2, cpus=2, gpus=2)


def run(job, blocks, group=PAIR, policy="history", reading=None, **more):
    """Run on two nodes with a CPU and a GPU each by the paper's rules, unless told otherwise."""
    return run_mapreduce(job, blocks, group, policy, reading, **more)


def ran(*args, **kwargs):
    r = run(*args, **kwargs)
    r.check()
    return r


# ------------------------------------------------------------------ real data, under failures


def test_fox_by_hand():
    for policy in ONLINE:
        r = ran(word_count(2), split_text(FOX, 3), PAIR, policy, faults=Faults({("map", 1): 1}))
        assert r.output == {"the": 3, "fox": 2, "quick": 1, "dog": 1}, policy
        maps = r.attempts[r.attempts["kind"] == "map"]
        assert len(maps) == 4
        assert maps["outcome"].tolist().count("lost") == 1
        assert maps[maps["number"] == 1]["outcome"].tolist() == ["lost", "done"]


@given(st.integers(0, 10**6))
@settings(max_examples=scale_count(80), deadline=None)
def test_any_text_is_counted_under_any_faults(seed):
    source = random.Random(seed)
    words = [source.choice(["a", "bb", "Ccc", "d,", "e-f"]) for _ in range(source.randint(1, 60))]
    text, nodes = " ".join(words), source.randint(1, 4)
    gone = source.sample(range(nodes), source.randint(0, nodes - 1))
    group = NodeGroup(nodes, source.randint(nodes, 5), source.randint(nodes, 5))
    r = ran(
        word_count(source.randint(1, 4)),
        split_text(text, source.randint(1, 9)),
        group,
        source.choice(ONLINE),
        storage=Storage(nodes, prefer_local=source.random() < 0.5, seed=seed),
        faults=Faults(
            dead={node: source.choice([0, 0.01, 0.05, 0.1, 0.2]) for node in gone},
            loss_rate=source.choice([0, 0.2, 0.5]),
            seed=seed,
        ),
    )
    is_counted(text, r)


def is_counted(text, r):
    """The words of a text are counted, and the history holds what has run to its end."""
    counts = Counter(words_of(text))
    assert r.output == counts
    assert list(r.output) == sorted(counts)
    known = r.history.table()
    done = r.attempts["outcome"].isin(("done", "gone")).sum()
    assert known["count"].sum() == known["assigned"].sum() == done


def test_readme_is_counted_though_nodes_die_whose_queues_hold_tasks():
    blocks, group = split_text(README, 12), NodeGroup(4, 4, 4)
    for policy in ("history", "mct", "round-robin"):
        for dead in ({1: 0.3}, {0: 0.05, 2: 0.5, 3: 0.9}, {0: 0.75, 1: 0.8}):
            more = {"storage": Storage(4), "faults": Faults(dead=dead, loss_rate=0.1)}
            is_counted(README, ran(word_count(3), blocks, group, policy, **more))


def attempts_of(text, blocks, partitions, dies):
    """Run on two nodes with a CPU each, set-up 1 alone, until node 1 dies; list the attempts."""
    costs, group = Costs(0, 0, 0, 0, 0, 0, setup=1), NodeGroup(2, 2, 0)
    more = {"costs": costs, "faults": Faults(dead={1: dies}), "storage": Storage(2)}
    r = ran(word_count(partitions), split_text(text, blocks), group, "cpu-only", **more)
    return r.attempts[["kind", "number", "node", "start", "end", "outcome"]].to_numpy().tolist()


def test_a_dead_node_takes_its_maps_with_it():
    """Both nodes map at 0-1, then again 1-2; node 1 dies at 1.5, so its first map, done, and its
    second, running, both run on node 0."""
    assert attempts_of("a b c d", 4, 1, dies=1.5) == [
        ["map", 0, 0, 0, 1, "done"],
        ["map", 1, 1, 0, 1, "gone"],
        ["map", 2, 0, 1, 2, "done"],
        ["map", 3, 1, 1, 1.5, "killed"],
        ["map", 1, 0, 2, 3, "done"],
        ["map", 3, 0, 3, 4, "done"],
        ["reduce", 0, 0, 4, 5, "done"],
    ]


def test_a_reduce_waits_when_a_map_is_gone():
    """Node 1 dies at 2.5 while node 0 reduces: one reduce left, map 1 first."""
    assert attempts_of("a b", 2, 3, dies=2.5) == [
        ["map", 0, 0, 0, 1, "done"],
        ["map", 1, 1, 0, 1, "gone"],
        ["reduce", 0, 0, 1, 2, "done"],
        ["reduce", 1, 1, 1, 2, "done"],
        ["reduce", 2, 0, 2, 3, "done"],
    ]
    assert attempts_of("a b", 2, 4, dies=2.5)[4:] == [
        ["reduce", 2, 0, 2, 3, "done"],
        ["reduce", 3, 1, 2, 2.5, "killed"],
        ["map", 1, 0, 3, 4, "done"],
        ["reduce", 3, 0, 4, 5, "done"],
    ]


def test_lost_time_is_not_learned():
    r = ran(word_count(2), split_text(README, 6), faults=Faults(loss_rate=0.4, seed=2))
    done = r.attempts[r.attempts["outcome"] == "done"]
    assert (r.attempts["outcome"] == "lost").any()
    known = r.history.table()
    assert known["count"].sum() == len(done)
    for row in known.itertuples():
        mine = done["device"].str.startswith(row[2]) & (done["kind"] == row.app.split()[-1])
        spans = (done["end"] - done["start"])[mine]
        assert row.mean == pytest.approx(spans.mean())


def _first_letters(block):
    return [(word[0], len(word)) for word in block.split()]


def _largest(key, lengths):
    return max(lengths)


def test_another_job_and_a_version_for_one_class():
    job = MapReduce("longest word", {"cpu": _first_letters}, _largest, partitions=3)
    blocks = split_text(README, 7)
    for policy in ("history", "mct", "preferred", "rsa"):
        r = ran(job, blocks, NodeGroup(2, 2, 2), policy)
        maps = r.attempts[r.attempts["kind"] == "map"]
        assert maps["device"].str.startswith("cpu").all()
    plain = {}
    for word in README.split():
        plain[word[0]] = max(len(word), plain.get(word[0], 0))
    assert r.output == plain


@given(st.text(alphabet="ab \n", min_size=1, max_size=40), st.integers(1, 8))
@settings(max_examples=scale_count(60), deadline=None)
def test_a_text_is_cut_between_words(text, blocks):
    if not text.strip():
        with pytest.raises(InputError, match="must hold a word"):
            split_text(text, blocks)
        return
    found = split_text(text, blocks)
    assert "".join(found) == text
    assert len(found) <= blocks
    assert [word for block in found for word in block.split()] == text.split()


# ------------------------------------------------------------------ the policies' own schedules


def by_simulate(r, policy):
    """Schedule the maps, then the reduces, as jobs of `dlsim.cpugpu.simulate`."""
    group, costs, history, start = r.setting.group, r.setting.costs, History(), 0.0
    found = []
    for kind in ("map", "reduce"):
        mine = r.attempts[r.attempts["kind"] == kind].sort_values("number")
        size = mine["size"].to_numpy()
        jobs = pd.DataFrame(
            {
                "app": f"word count {kind}",
                "arrival": start,
                "cpu_time": [costs.time(kind, "cpu", s) for s in size],
                "gpu_time": [costs.time(kind, "gpu", s) for s in size],
            }
        )
        s = simulate(jobs, group.machine, policy, history=history)
        s.check()
        history, start = s.history, s.jobs["completion"].max()
        done = s.jobs.rename(columns={"completion": "end"})
        found.append(done[["device", "start", "end", "rule"]])
    return pd.concat(found, ignore_index=True)


def test_tasks_are_placed_as_the_engine_places_jobs():
    """On one node, so that no pair travels; 15 maps on 5 devices, so that round robin deals
    the reduces from the first device on, as it does where they are jobs 0 to 4."""
    for policy in POLICIES:
        small = "ideal" in policy
        blocks = split_text(README, 6 if small else 15)
        group = NodeGroup(1, 1, 1) if small else NodeGroup(1, 2, 3)
        r = ran(word_count(3 if small else 5), blocks, group, policy)
        found = r.attempts.sort_values(["kind", "number"], ignore_index=True)
        found = found[["device", "start", "end", "rule"]]
        pd.testing.assert_frame_equal(found, by_simulate(r, policy), obj=policy)


def test_the_history_that_is_given_stays():
    history = knowing(("word count map", "gpu", 1.0))
    before = history.table()
    r = ran(word_count(), split_text(README, 4), history=history)
    pd.testing.assert_frame_equal(history.table(), before)
    assert r.history.record("word count map", "gpu").count > 1


# ------------------------------------------------------------------ locality, devices, pipeline


@given(seed=st.integers(0, 10**6))
@settings(max_examples=scale_count(5), deadline=None)
def test_locality_first_takes_the_first_local_block(seed):
    blocks, group = split_text(README, 24), NodeGroup(4, 4, 4)
    plain = ran(word_count(), blocks, group, "preferred", storage=Storage(seed=seed))
    storage = Storage(prefer_local=True, seed=seed)
    local = ran(word_count(), blocks, group, "preferred", storage=storage)
    block_locations = place_blocks(24, 4, 1, seed)
    waiting = list(range(24))
    for row in local.attempts[local.attempts["kind"] == "map"].itertuples():
        here = [number for number in waiting if row.node in block_locations[number]]
        assert row.number == (here or waiting)[0]
        waiting.remove(row.number)
    assert local.attempts["remote"].sum() < plain.attempts["remote"].sum()


def test_a_replica_everywhere_leaves_nothing_to_read():
    r = ran(word_count(), split_text(README, 8), NodeGroup(3, 3, 3), storage=Storage(3))
    assert (r.attempts["remote"][r.attempts["kind"] == "map"] == 0).all()
    assert place_blocks(5, 3, 3) == [(0, 1, 2)] * 5
    assert all(len(set(home)) == 2 for home in place_blocks(50, 4, 2, seed=1))
    assert place_blocks(50, 4, 2, seed=1) == place_blocks(50, 4, 2, seed=1)


def test_devices_by_hand():
    """Four blocks of 1000 characters: a CPU maps one in 2, a GPU in 1, whatever else is free.
    4 CPUs: 2. GPUs alone: 4 / count. Both with one GPU: GPU 1 + 1, CPUs 2. One second of
    set-up for the reduce."""
    costs, blocks = Costs(1, 0, 0, 0, 0, 0, setup=1), ["a " * 500] * 4
    for devices, makespan in {(4, 0): 3, (0, 1): 5, (0, 2): 3, (0, 4): 2, (0, 8): 2,
                              (4, 1): 3, (4, 2): 3, (4, 4): 2, (4, 8): 2}.items():  # fmt: skip
        r = ran(word_count(1), blocks, NodeGroup(1, *devices), "mct", costs=costs)
        assert r.makespan == makespan, devices


def test_a_pipelined_gpu_is_faster_and_no_faster_than_its_kernels():
    blocks = split_text(README, 8)
    ends = [
        ran(word_count(), blocks, NodeGroup(1, 0, 2), costs=Costs(gpu=Gpu(streams=k))).makespan
        for k in (1, 2, 3)
    ]
    assert ends[0] > ends[1] >= ends[2]
    costs = Costs(gpu_map=2, copy=1, setup=0.5, chunks=4, gpu=Gpu(streams=3))
    assert costs.time("map", "gpu", 4) == 0.5 + 1 + 4 * 2 + 1
    costs = dataclasses.replace(costs, gpu=Gpu(streams=1))
    assert costs.time("map", "gpu", 4) == 0.5 + 4 * (1 + 2 + 1)


def test_figures_by_hand():
    """One CPU, two maps of 2 and 1 units, set-up 1, then a reduce of nothing but set-up."""
    costs = Costs(1, 0, 0, 0, 0, 0, setup=1)
    r = ran(word_count(1), ["a " * 1000, "b " * 500], NodeGroup(1, 1, 0), costs=costs)
    assert (r.makespan, r.throughput) == (6, 0.5)
    assert r.summary().to_dict() == {"makespan": 6, "throughput": 0.5}
    assert (r.name, r.policy) == ("history", POLICIES["history"])


# ------------------------------------------------------------------ check refuses


@pytest.mark.parametrize(
    ("rule", "row", "changes"),
    [
        ("on its node", 0, {"node": 1}),
        ("takes its time", 5, {"end": 3.25}),
        ("before 0", 0, {"start": -1.0, "end": 0.0}),
        ("one task at a time", 3, {"start": 0.5, "end": 1.5}),
        ("when all maps are done", 5, {"start": 1.0, "end": 2.0}),
        ("reads its data", 0, {"remote": 1.0}),
        ("reads its data", 4, {"size": 7.0}),
        ("only a dying node kills", 0, {"outcome": "killed"}),
        ("counted from 0", 0, {"attempt": 3}),
        ("not run again once it is done", 0, {"outcome": "done"}),
    ],
)
def test_check_names_the_broken_rule(rule, row, changes):
    """One node, 3 CPUs, set-up 1: maps at 0-1, map 0 lost and again at 1-2, reduces at 2-3."""
    costs = Costs(0, 0, 0, 0, 0, 0, setup=1)
    more = {"costs": costs, "faults": Faults({("map", 0): 1})}
    r = ran(word_count(2), ["a", "b", "c"], NodeGroup(1, 3, 0), "cpu-only", **more)
    attempts = r.attempts.copy()
    assert attempts["start"].tolist() == [0, 0, 0, 1, 2, 2]
    for column, value in changes.items():
        attempts.loc[row, column] = value
    with pytest.raises(ScheduleError, match=rule):
        dataclasses.replace(r, attempts=attempts).check()


def test_check_counts_again():
    r = ran(word_count(2), split_text(FOX, 3))
    for rule, changes in {
        "plain computation": {"output": r.output | {"fox": 3}},
        "every reduce task": {"attempts": r.attempts.iloc[:-1]},
        "as injected": {"setting": r.setting._replace(faults=Faults({("map", 0): 1}))},
        "dead node": {"setting": r.setting._replace(faults=Faults(dead={0: 0.0}))},
    }.items():
        with pytest.raises(ScheduleError, match=rule):
            dataclasses.replace(r, **changes).check()


# ------------------------------------------------------------------ bad input

JOB, BLOCKS = word_count(), split_text(FOX, 3)


def _own(mapper, partitions=1, reduce=lambda key, values: len(values), **options):
    return run(MapReduce("x", mapper, reduce, partitions), BLOCKS, **options)


def _numbers(block):
    return [(i, 1) for i in range(5)]


REFUSED = [
    (lambda: MapReduce(" ", _first_letters, _largest), "name must be"),
    (lambda: MapReduce("x", {"tpu": _first_letters}, _largest), "map must be a function"),
    (lambda: MapReduce("x", _first_letters, {}), "reduce must be a function"),
    (lambda: Costs(setup=0), "setup .* got 0"),
    (lambda: Costs(gpu="fast"), "gpu must be a Gpu"),
    (lambda: Costs().time("sort", "gpu", 1), "kind must be one of map, reduce"),
    (lambda: Costs().time("map", "cpu", -1), "size .* got -1"),
    (lambda: split_text("a", 0), "blocks .* got 0"),
    (lambda: split_text(" ", 3), "must hold a word"),
    (lambda: Storage(prefer_local="yes"), "prefer_local .* got 'yes'"),
    (lambda: Storage(seed=-1), "seed .* got -1"),
    (lambda: Faults(loss_rate=1), "loss_rate .* got 1"),
    (lambda: Faults(seed=-1), "seed .* got -1"),
    (lambda: Faults(5), "lost must be a mapping"),
    (lambda: Faults(dead=[1]), "dead must be a mapping"),
    # --- what is run
    (lambda: run("wc", BLOCKS), "job must be a MapReduce"),
    (lambda: run(JOB, FOX), "blocks must be a list, got one text"),
    (lambda: run(JOB, []), "blocks must be a list of things"),
    (lambda: run(JOB, [1, 2]), "blocks must be a list of things"),
    (lambda: run(JOB, BLOCKS, Machine(1, 1)), "group must be a NodeGroup"),
    (lambda: run(JOB, BLOCKS, policy="best"), "policy .* got 'best'"),
    (lambda: run(JOB, BLOCKS, policy="ideal", faults=Faults(loss_rate=0.1)), "without faults"),
    (lambda: run(JOB, BLOCKS, NodeGroup(1, 1, 0), "gpu-only"),
     "policy gpu-only leaves 3 tasks waiting for ever"),
    (lambda: run(MapReduce("x", {"gpu": _first_letters}, _largest), BLOCKS, NodeGroup(1, 1, 0)),
     "must have a version"),
    *[(lambda n=name, v=value: run(JOB, BLOCKS, **{n: v}), f"{name} must be a {kind}")
      for name, value, kind in (("costs", 1.0, "Costs, got 1.0"), ("faults", {}, "Faults"),
                                ("storage", 2, "Storage, got 2"), ("reading", {}, "Reading"),
                                ("history", {}, "History"))],
    (lambda: run(JOB, BLOCKS, storage=Storage(3)), "replicas .* got 3"),
    *[(lambda f=faults: run(JOB, BLOCKS, faults=Faults(**f)), words) for faults, words in (
        ({"lost": {"map 1": 1}}, "lost must name tasks"),
        ({"lost": {("sort", 1): 1}}, "lost .* got 'sort'"),
        ({"lost": {("map", 3): 1}}, "lost map .* got 3"),
        ({"dead": {7: 1}}, "dead .* got 7"),
        ({"dead": {0: -1}}, "dead .* got -1"),
        ({"dead": {0: 1, 1: 1}}, "leave a node alive"))],
    (lambda: run(JOB, BLOCKS, faults=Faults(dead={0: 0}), storage=Storage(seed=1)),
     "replica of block"),
    # --- functions of a user
    (lambda: _own(lambda block: 1 / 0), "map of 'x' must .* ZeroDivisionError"),
    (lambda: _own(lambda block: [1, 2]), "map of 'x' must give pairs"),
    (lambda: _own(lambda block: [([1], 1)]), "reduce of 'x' must .* unhashable"),
    (lambda: _own(lambda block: [(1, 1), ("a", 1)]), "map of 'x' must .* sorted"),
    (lambda: _own(lambda block: [(1, 1), ("a", 1)], 7), "keys of 'x' must .* sorted"),
    (lambda: _own(_first_letters, reduce=lambda key, values: 1 / 0), "reduce of 'x' must"),
    (lambda: _own({"cpu": _numbers, "gpu": lambda block: [(float(i), 1) for i in range(5)]},
                  3, policy="round-robin"), "must print alike"),
]  # fmt: skip

test_what_cannot_be_used_is_refused = refuses_each(REFUSED)


def test_a_machine_of_the_engine_is_what_a_group_is():
    assert NodeGroup(4, 6, 3).machine == Machine(6, 3)
    nodes = {"gpu0": 0, "gpu1": 1, "cpu0": 0, "cpu1": 1, "cpu2": 0}
    assert NodeGroup(2, 3, 2).node_of_device == nodes


def test_equal_keys_are_one_key_whatever_their_type():
    kinds = {"cpu": _numbers, "gpu": lambda block: [(np.int64(i), 1) for i in range(5)]}
    r = _own(kinds, 3, policy="round-robin")
    assert r.output == dict.fromkeys(range(5), len(BLOCKS))
    r.check()


def test_a_job_keeps_its_functions_when_the_mapping_is_changed_afterwards():
    maps = {"cpu": lambda block: [(block, 1)]}
    job = MapReduce("count", maps, lambda key, values: sum(values), 1)
    maps.clear()
    assert run(job, ["a", "b", "a"], NodeGroup(1, 1, 0)).output == {"a": 2, "b": 1}

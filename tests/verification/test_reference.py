"""A sample of every paper's claims, measured again and held against data/reference.

The sample is smaller and drawn from another seed. At the point that a reference result
names as its weakest, the new interval must meet the one that is kept there.
"""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dlsim import cpugpu
from dlsim.bricks import Environment, Policy
from dlsim.bricks import simulate as simulate_grid
from dlsim.papers import bricks, inserted_idle_time, mcdf
from dlsim.realtime import Cluster, simulate, workload
from dlsim.study import sweep
from dlsim.study.claims import intervals, load_claims, read_scorecard, reference_of
from dlsim.study.measure import MEASURES
from tests.verification.notebook_code import defined_in, functions_of

importlib.import_module("dlsim.papers.steady_state")  # registers its measures
SEED = 1
idle_used = defined_in("30-inserted-idle-time").idle_used


def run_mcdf(load, setup, seed):
    """Run all policies of paper M on the same tasks, as long as the paper does."""
    cluster = Cluster(10, 10, 10, setup, setup)
    tasks = workload.mcdf(cluster, load, 1_000_000.0, seed)
    runs = {name: simulate(tasks, cluster, name) for name in mcdf.POLICIES}
    return [
        {
            "policy": name,
            "ratio": run.reject_ratio if run.policy.admission else run.miss_ratio,
            "tasks": len(tasks),
        }
        for name, run in runs.items()
    ]


def frames_of_mcdf(_folder):
    grid = {"load": [0.1, 0.5, 1.0], "setup": [0]}
    return {"main": sweep(run_mcdf, grid, replicates=4, seed=SEED, jobs=1)}


def run_inserted_idle_time(load, tau, names, seed):
    """Run policies of paper I on the same tasks, as long as the paper does."""
    cluster = Cluster(16, tau, 100)
    tasks = workload.dcratio(cluster, load, 10_000_000.0, seed)
    tasks = workload.user_split(tasks, cluster, seed)
    rows, admitted = [], {}
    for name in names:
        run = simulate(tasks, cluster, name)
        admitted[name] = run.tasks["admitted"]
        remodel = admitted["EDF-DLT" if name.startswith("ED") else "FIFO-DLT"]
        counts = dict.fromkeys(["s_iits", "opt_iits", "opt_iits_ii"], math.nan)
        if run.policy.partition in ("dlt", "I", "II"):
            counts = run.counts.astype(float).loc["admitted", list(counts)].to_dict()
        row = {"policy": name, "ratio": run.reject_ratio, "tasks": len(tasks), **counts}
        row["discordant"] = int((admitted[name] != remodel).sum())
        rows.append(row | idle_used(run))
    return rows


def frames_of_inserted_idle_time(_folder):
    grid, costs = {"load": [0.1, 0.2, 0.3, 0.7, 1.0], "tau": [1.0]}, {"load": [0.6, 0.8, 1.0]}
    how = {"replicates": 4, "seed": SEED, "jobs": 1}
    names = inserted_idle_time.POLICIES
    main = sweep(run_inserted_idle_time, grid, fixed={"names": names}, **how)
    fixed = {"names": ["EDF-DLT", "EDDO-II"]}
    costs = sweep(run_inserted_idle_time, costs | {"tau": [8, 4, 2, 1]}, fixed=fixed, **how)
    return {"main": main.assign(use=main["used"] / main["idle"]), "costs": costs}


def frames_of_steady_state(_folder):
    """Solve fewer platforms of the paper's sizes by the function of its notebook."""
    solve = defined_in("40-steady-state").solve_by_all
    quick = {"lprr_every": 10**6, "exact_every": 10**6}
    sizes = {"Tiers": [5, 25, 45, 65, 85], "random": [5, 15]}
    tiers, random = (
        sweep(solve, {"clusters": k}, 8, SEED, jobs=1, fixed={"kind": kind, **quick})
        for kind, k in sizes.items()
    )
    return {"tiers": tiers, "random": random.assign(connectivity=0.4)}


def frames_of_cpu_gpu(folder):
    """Run batches of every mix by the function of the notebook."""
    compare = functions_of("50-cpu-gpu", out=str(folder))["compare_policies"]
    names = ["history", "cpu-only", "gpu-only", "preferred", "round-robin", "mct", "rsc", "asjf"]
    parts = [
        compare(mix, 0.0, names, np.random.SeedSequence(0, spawn_key=(replicate,))).assign(
            mix=mix, replicate=replicate
        )
        for mix in cpugpu.workload.MIXES
        for replicate in range(8)
    ]
    return {"runs": pd.concat(parts, ignore_index=True)}


def run_bricks(interval, seed):
    """Run every policy of paper B for a day, as the paper does."""
    env, rows = Environment.random(seed, interval), []
    versions = [*bricks.SCHEDULER_VERSIONS.values(), *((0, n) for n in range(2, 6))]
    for policy in bricks.POLICIES:
        opt = float(policy.removeprefix("D-")) if policy != "Greedy" else 1.0
        for corrected, n in versions:
            name = "greedy" if policy == "Greedy" else "deadline"
            options = {"load_correction": bool(corrected), "max_fallbacks": n}
            o = simulate_grid(env, Policy(name, opt=opt, **options))
            row = {"policy": policy, "corrected": corrected, "fallbacks": n}
            row |= {"failure": o.failure_rate, "cost": o.cost, "requests": len(o.requests)}
            rows.append(row)
    return rows


def frames_of_bricks(_folder):
    return {"runs": sweep(run_bricks, {"interval": [60]}, replicates=4, seed=SEED, jobs=1)}


#: Papers whose measures take frames: what is run, and claims whose weakest point lies in it.
FRAMES = {
    "mcdf": (frames_of_mcdf, ("1", "2", "4a", "5a", "5b")),
    "inserted-idle-time": (
        frames_of_inserted_idle_time,
        ("3", "4", "6", "7a", "7b", "10a", "10b", "11", "14a", "14b", "15"),
    ),
    "steady-state": (frames_of_steady_state, ("2a", "2b", "4b")),
    "cpu-gpu": (frames_of_cpu_gpu, ("1a", "3", "14a", "18a", "18b")),
    "bricks": (frames_of_bricks, ("2b", "4", "5", "6b", "7a", "7b")),
}


@pytest.fixture(scope="module", params=FRAMES)
def sample(request, tmp_path_factory):
    """A paper, its reference results, and what was run again."""
    paper = request.param
    kept = read_scorecard(reference_of(paper)).set_index("id")
    run, names = FRAMES[paper]
    frames = run(tmp_path_factory.mktemp(paper))
    return SimpleNamespace(paper=paper, names=names, frames=frames, kept=kept)


def test_a_smaller_sample_meets_the_reference(sample):
    known = {claim.id: claim for claim in load_claims(sample.paper)}
    apart = {}
    for name in sample.names:
        claim = known[f"{sample.paper}-{name}"]
        kept = sample.kept.loc[claim.id]
        points = MEASURES[claim.id].function(**sample.frames)
        own = intervals(points, claim).set_index("point").loc[[kept["what"]]]
        assert len(own) == 1, f"{claim.id}: no point {kept['what']!r} in the smaller sample"
        low, high = own.iloc[0][["low", "high"]].astype(float)
        if high < kept["low"] or low > kept["high"]:
            apart[claim.id] = f"kept {kept['low']} to {kept['high']}, now {low:.4g} to {high:.4g}"
    assert not apart

"""Paper C: the constants of its experiments, and the measures of its claims.

Source: S. Goyat, A. K. Sahoo, "Scheduling Algorithm for CPU-GPU Based Heterogeneous Clustered
Environment Using Map-Reduce Data Processing".

The experiments are cells of notebooks/50-cpu-gpu.ipynb. The table at the end says how each claim is
measured on the frames that they leave.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlsim.cpugpu import POLICIES as ENGINE_POLICIES
from dlsim.cpugpu import SWITCHES as ENGINE_SWITCHES
from dlsim.cpugpu import Policy, Reading, workload
from dlsim.reading import BaseReading, find_touched, require_readers, switch
from dlsim.study.measure import (
    estimates,
    join_points,
    measure_claims,
    name_points,
    negate_interval,
    on,
    pivot_policies,
    trend,
    with_medians,
)
from dlsim.study.stats import relative_reduction
from dlsim.validate import one_of


@dataclass(frozen=True)
class ExperimentReading(BaseReading):
    """What paper C leaves open about its experiments, beside the rules of the engine."""

    base: str = switch(
        workload.BASES,
        label="device class of which a mix draws the times",
        reads="dlsim.cpugpu.workload:applications",
    )
    poisoned: str = switch(
        ("one", "all"),
        label="applications with a wrong first sample: one of them, or all",
        reads="50-cpu-gpu.ipynb:follow_wrong_sample",
    )
    significant: float = switch(
        (0.1, 0.05, 0.2),
        label="relative error above which a prediction is wrong",
        reads="dlsim.cpugpu.check:judge_fairness",
        number={"high": 100.0},
    )
    exponent: float = switch(
        (0.9, 0.7, 1.0),
        label="exponent of a job's speed-up over nodes",
        reads="dlsim.cpugpu.cluster.moldable:NodePool.time",
        number={"high": 1.0},
    )
    both: float = switch(
        (0.95, 0.8, 1.0),
        label="speed of both devices of a node, as a part of the sum",
        reads="dlsim.cpugpu.cluster.moldable:NodePool.time",
        number={"high": 1.0, "above": True},
    )
    nodes: int = switch(
        (4, 2, 8),
        label="number of nodes for moldable jobs",
        reads="dlsim.cpugpu.cluster.moldable:NodePool.__post_init__",
    )


require_readers(ExperimentReading)

#: What the paper leaves open, the default first: about the rules, and about the experiments.
SWITCHES: dict[str, tuple[Any, ...]] = {**ENGINE_SWITCHES, **ExperimentReading.switches()}


def _variant(name: str, text: str, **changes: Any) -> Policy:
    """Return the five rules with a change."""
    return Policy(name=f"history, {name}", text=f"the five rules; {text}", **changes)


#: Variants of the five rules that the paper does not have.
RULE_VARIANTS: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        _variant("3 samples", "a class is tried three times", min_samples=3),
        _variant("re-explore", "a class is tried again after 8 jobs elsewhere", re_explore=8),
        _variant("bounded", "a job under a tenth of the waiting work tries no class", bound=0.1),
        _variant("median", "the median of the run times is expected", estimate="median"),
        _variant("ewma", "a moving average of the run times is expected", estimate="ewma"),
        _variant("steal", "at the end a free device takes a job that waits", steal=True),
    )
}
#: Every policy by its name in the legends.
POLICIES: dict[str, Policy] = {**ENGINE_POLICIES, **RULE_VARIANTS}
#: Policies of the paper and of its second source.
PROPOSED_POLICIES = ("history", "rsc", "asjf")
#: Cores of a CPU, "8 or 16", and the part of a core that a thread takes which does not consume many
#: cycles; this number is ours (claim 13).
COUNTS_OF_CORES, FEW_CYCLES = (8, 16), 0.1
#: What the conclusion names as the two existing schemes, for moldable jobs on several nodes.
EXISTING_SCHEMES = ("torque-strict", "torque", "mct")


def choose_reading(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every switch; the engine's own are one `Reading` under "engine".

    Parameters
    ----------
    reading : mapping
        Switches of `SWITCHES` that differ from the default.

    Raises
    ------
    InputError
        For a switch or a value that is not known.
    """
    for name in reading:
        one_of("reading switch", name, SWITCHES)
    of_engine = {name: value for name, value in reading.items() if name in ENGINE_SWITCHES}
    own = {name: value for name, value in reading.items() if name not in ENGINE_SWITCHES}
    chosen = vars(ExperimentReading.from_switches(own))
    return {**chosen, "engine": Reading.from_switches(of_engine)}


#: What identifies a row of the frame of which a reading may run a part.
KEYS = {"runs": ("mix", "replicate", "batch", "policy")}


def touched(switch: str, frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return those policies of `runs` whose results a switch can change.

    None is touched by a switch of another experiment.
    """
    if switch not in ENGINE_SWITCHES and switch != "base":
        return []
    names = frames["runs"]["policy"].unique()
    return find_touched(switch, {name: POLICIES[name] for name in names}, Reading)


# ------------------------------------------------------------------ tables of pictures and claims


def total_saved(
    runs: pd.DataFrame, policies: Sequence[str], rival: str, column: str = "makespan"
) -> pd.DataFrame:
    """Estimate by which fraction totals over all batches are smaller than a rival's.

    Parameters
    ----------
    runs : DataFrame
        Columns mix, replicate, policy, batch and `column`.
    policies, rival : sequence of str, str
        The policies, and the rival that their totals are compared with.

    Returns
    -------
    DataFrame
        One row per policy and mix: estimate, low, high (95 %), n, and ``values``, one per
        replicate, whose mean is the estimate.
    """
    sums = runs.groupby(["mix", "replicate", "policy"], sort=False)[column].sum().reset_index()
    parts = []
    for policy in policies:
        table = relative_reduction(sums, column, "policy", policy, rival, at=["mix"])
        parts.append(name_points(table, ["mix"], f"{policy} against {rival}").assign(policy=policy))
    return pd.concat(parts, ignore_index=True)


def compare_with(runs: pd.DataFrame, is_base: Any) -> pd.DataFrame:
    """Add to every batch ``base``, its makespan in the marked row, and ``ratio`` to it."""
    keys = ["mix", "replicate", "batch"]
    base = runs[is_base].set_index(keys)["makespan"].rename("base")
    table = runs.join(base, on=keys)
    return table.assign(ratio=table["makespan"] / table["base"])


def compare_with_mct(runs: pd.DataFrame) -> pd.DataFrame:
    """Compare every batch with MCT, which knows the mean times from the start."""
    return compare_with(runs, runs["policy"] == "mct")


def excess_of_wrong_samples(first_samples: pd.DataFrame) -> pd.DataFrame:
    """Return by how much wrong first samples lengthen each batch."""
    table = compare_with(first_samples, first_samples["wrong"] == 1)
    return table[table["wrong"] != 1].assign(excess=lambda wrong: wrong["ratio"] - 1)


def throughput_gains(
    moldable: pd.DataFrame, rivals: Sequence[str] = EXISTING_SCHEMES
) -> pd.DataFrame:
    """Return the gain in throughput over the best of some rivals, queue by queue."""
    keys = ["mix", "error", "replicate"]
    best = moldable[moldable["scheduler"].isin(rivals)].groupby(keys)["makespan"].min()
    flexible = moldable[moldable["scheduler"].isin(("flexible", "area"))]
    table = flexible.join(best.rename("best"), on=keys)
    return table.assign(gain=table["best"] / table["makespan"] - 1)


def times_by_gpus(word_counts: pd.DataFrame, streams: int, devices: str) -> pd.DataFrame:
    """Return the times of a word count: one row per replicate, one column per number of GPUs."""
    rows = word_counts[(word_counts["streams"] == streams) & (word_counts["devices"] == devices)]
    return rows.pivot(index="replicate", columns="gpus", values="makespan")


def estimate_by_gpus(values: pd.DataFrame) -> pd.DataFrame:
    """Estimate every column of a table with one column per number of GPUs."""
    rows = values.melt(var_name="gpus", value_name="gain", ignore_index=False)
    return estimates(rows.reset_index(), ["gpus"], "gain")


def excess_over(runs: pd.DataFrame, by: str, value: float, at: list[str]) -> pd.DataFrame:
    """Estimate how much longer schedules are at a value of a column than where it is 0."""
    return negate_interval(relative_reduction(runs, "makespan", by, value, 0.0, at=at))


def cost_of_threads(threads: pd.DataFrame, most: float = 1.0) -> pd.DataFrame:
    """Return how much longer schedules are if the thread of a GPU job takes part of the CPU.

    Parts of at most a given size are shown.
    """
    threads = threads[threads["share"] <= most]
    sums = threads.groupby(["mix", "replicate", "share"])["makespan"].sum().reset_index()
    shares = sorted(set(sums["share"]) - {0.0})
    parts = [excess_over(sums, "share", share, ["mix"]).assign(share=share) for share in shares]
    return name_points(pd.concat(parts, ignore_index=True), ["share", "mix"])


def _estimate_at(values: Any, by: Sequence[str]) -> pd.DataFrame:
    """Estimate paired values at every point."""
    return estimates(values.rename("value").reset_index(), by, "value")


# ------------------------------------------------------------------ measures of single claims


def fall_over_batches(runs: pd.DataFrame, first: int) -> pd.DataFrame:
    """Estimate by how much the makespan over MCT's falls from a batch to the last."""
    table = compare_with_mct(runs)
    table = table[(table["policy"] == "history") & (table["batch"] >= first)]
    if table["batch"].nunique() < 2:
        return table.iloc[:0]
    return trend(-table.set_index(["mix", "replicate", "batch"])[["ratio"]], "batch", "fall")


def trade_waits(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return how much less jobs wait under ASJF, and how much sooner RSC completes them."""
    parts = {
        "mean wait": total_saved(runs, ["asjf"], "rsc", "mean_wait"),
        column.replace("_", " "): total_saved(runs, ["rsc"], "asjf", column),
    }
    return join_points(parts)


def share_unexcused(lateness: pd.DataFrame, fair: str) -> pd.DataFrame:
    """Return the share of the jobs that are late and under neither exception."""
    rows = lateness[(lateness["above"] == 0) & (lateness["fair"] == fair)]
    return with_medians(estimates(rows, ["mix"], "unexcused"))


def excess_at_end(frame: pd.DataFrame, number: str, by: Sequence[str]) -> pd.DataFrame:
    """Return the excess in the last batch or round."""
    return estimates(frame[frame[number] == frame[number].max()], by, "excess")


def excess_after_wrong_samples(first_samples: pd.DataFrame) -> pd.DataFrame:
    """Return the excess of the last batch after a wrong first sample."""
    table = excess_of_wrong_samples(first_samples)
    return excess_at_end(table, "batch", ["wrong", "mix"])


def _mean_gain(moldable: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain in throughput over the best of TORQUE and MCT."""
    exact = moldable[moldable["error"] == 0]
    return estimates(throughput_gains(exact), ["scheduler", "mix"], "gain")


def greatest_gain(moldable: pd.DataFrame) -> pd.DataFrame:
    """Return the gain on odd replicates, in the mix with the largest gain on even ones."""
    chosen, judged = (_mean_gain(moldable[moldable["replicate"] % 2 == k]) for k in (0, 1))
    best = chosen.groupby("scheduler", sort=False)["estimate"].idxmax()
    return judged.merge(chosen.loc[best, ["scheduler", "mix"]])


def excess_over_exhaustive(short_queues: pd.DataFrame) -> pd.DataFrame:
    """Return the excess over the schedules of an exhaustive search."""
    rows = short_queues[short_queues["policy"].isin(PROPOSED_POLICIES)]
    columns = {"makespan": "makespan", "mean completion": "completion"}
    return join_points(
        {name: estimates(rows, ["policy", "mix"], of) for name, of in columns.items()}
    )


def gain_in_gpu_use(pipelines: pd.DataFrame) -> pd.DataFrame:
    """Return the share of time in which the GPU maps: with three streams, less with one."""
    use = pivot_policies(pipelines, ["profile", "engines"], "use", "streams")
    return _estimate_at(use[3] - use[1], ["profile", "engines"])


def excess_of_thread_order(orders: pd.DataFrame) -> pd.DataFrame:
    """Return by how much slowdowns spread more in the order of threads than in the planned one."""
    keys = ["queues", "engines"]
    mean = orders.groupby([*keys, "order"])["slowdown"].transform("mean")
    rows = orders.assign(distance=(orders["slowdown"] / mean - 1).abs())
    spread = rows.groupby([*keys, "replicate", "order"])["distance"].mean().unstack("order")
    return _estimate_at(spread["threads"] - spread["scheduled"], keys)


def fall_of_excess(splits: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the excess over equal finish falls over the rounds."""
    return trend(-splits.set_index(["case", "replicate", "round"]), "round", "fall")


def word_count_saving_against_cpus(word_counts: pd.DataFrame) -> pd.DataFrame:
    """Return the part of a word count's time that is saved against CPUs only."""
    cpus_only = times_by_gpus(word_counts, 3, "cpu").iloc[:, 0]
    return estimate_by_gpus(1 - times_by_gpus(word_counts, 3, "both").div(cpus_only, axis=0))


def speedup_by_gpus(word_counts: pd.DataFrame) -> pd.DataFrame:
    """Return the time of a word count on one GPU over that on several, less 1."""
    times = times_by_gpus(word_counts, 3, "gpu")
    return estimate_by_gpus(times.drop(columns=1).rdiv(times[1], axis=0) - 1)


def word_count_speedup_by_overlap(word_counts: pd.DataFrame) -> pd.DataFrame:
    """Return the time of a word count without overlap over that with it, less 1."""
    parts = {}
    for devices in ("gpu", "both"):
        plain, overlapped = (times_by_gpus(word_counts, streams, devices) for streams in (1, 3))
        parts[devices] = estimate_by_gpus(plain / overlapped - 1)
    return join_points(parts)


# ------------------------------------------------------------------ the claims

measure_claims(
    "cpu-gpu",
    {
        "1a": on("runs", fall_over_batches, first=0),
        "1b": on("runs", fall_over_batches, first=1),
        "3": on("runs", total_saved, policies=PROPOSED_POLICIES, rival="round-robin"),
        "4": on("short_queues", excess_over_exhaustive, readings=False),
        "6a": on("lateness", share_unexcused, fair="local"),
        "6b": on("lateness", share_unexcused, fair="global"),
        "7a": on("outliers", excess_at_end, number="batch", by=["mix"]),
        "7b": on("first_samples", excess_after_wrong_samples),
        "8a": on("moldable", greatest_gain),
        "10a": on("pipelines", gain_in_gpu_use, readings=False),
        "11": on("orders", excess_of_thread_order, readings=False),
        "12a": on("splits", fall_of_excess, readings=False),
        "12b": on("splits", excess_at_end, readings=False, number="round", by=["case"]),
        "13": on(
            "threads", cost_of_threads, readings=False, most=FEW_CYCLES / min(COUNTS_OF_CORES)
        ),
        "14a": on("runs", total_saved, policies=["history"], rival="cpu-only"),
        "14b": on("word_counts", word_count_saving_against_cpus, readings=False),
        "15a": on("word_counts", speedup_by_gpus, readings=False),
        "15b": on("word_counts", word_count_speedup_by_overlap, readings=False),
        "18a": on("runs", trade_waits, column="mean_completion"),
        "18b": on("runs", trade_waits, column="makespan"),
    },
)

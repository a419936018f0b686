"""The measuring functions of paper C's claims: evidence in, points of a grid out.

Each takes the `Evidence` and returns columns point, estimate, low, high (95 % interval over
paired replicates), or None where its evidence is not there. data/claims.toml says which
function belongs to which claim, and `dlsim.study.claims` turns the points into a verdict.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from dlsim.study.claims import Claim
from dlsim.study.stats import relative_reduction, summary

#: Policies of the paper and of its second source.
OURS = ("history", "rsc", "asjf")
#: What the conclusion names as the two existing schemes.
EXISTING = ("torque-strict", "torque", "mct")
#: Policies that the readings are judged by.
JUDGED = ("history", "cpu-only", "gpu-only", "preferred", "round-robin", "mct", "rsc", "asjf")
STREAMS = (1, 3)


class Evidence(NamedTuple):
    """The sweeps that claims are measured on; None where they were not run."""

    main: pd.DataFrame
    explored: pd.DataFrame
    fair: pd.DataFrame
    poisoned: pd.DataFrame
    wrong: pd.DataFrame | None = None
    ideal: pd.DataFrame | None = None
    threads: pd.DataFrame | None = None
    moulded: pd.DataFrame | None = None
    pipelines: pd.DataFrame | None = None
    issued: pd.DataFrame | None = None
    adapted: pd.DataFrame | None = None
    words: pd.DataFrame | None = None
    memory: pd.DataFrame | None = None


def _said(name: str, value: object) -> str:
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def points(frame: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Estimate a column at every point of a grid."""
    return named(summary(frame, list(by), column), by)


def named(table: pd.DataFrame, by: Sequence[str], what: str = "") -> pd.DataFrame:
    """Name the points of a table of estimates after their place in the grid."""
    names = [
        ", ".join(filter(None, [what, *(_said(name, row[name]) for name in by)]))
        for row in table.to_dict("records")
    ]
    return table.assign(point=names)


def totals(frame: pd.DataFrame, column: str = "makespan") -> pd.DataFrame:
    """Sum a column over the batches of each mix, replicate and policy."""
    return frame.groupby(["mix", "replicate", "policy"], sort=False)[column].sum().reset_index()


def saved(
    frame: pd.DataFrame, policies: Sequence[str], rival: str, column: str = "makespan"
) -> pd.DataFrame:
    """Estimate by which fraction totals are smaller than a rival's, in every mix."""
    sums = totals(frame, column)
    parts = []
    for policy in policies:
        table = relative_reduction(sums, column, "policy", policy, rival, at=["mix"])
        parts.append(named(table, ["mix"], f"{policy} against {rival}").assign(policy=policy))
    return pd.concat(parts, ignore_index=True)


def over_mct(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the makespan of every batch over that of MCT, which has exact means from the start."""
    keys = ["mix", "replicate", "batch"]
    mct = frame[frame["policy"] == "mct"].set_index(keys)["makespan"].rename("mct")
    table = frame.join(mct, on=keys)
    return table.assign(ratio=table["makespan"] / table["mct"])


def improves(e: Evidence) -> pd.DataFrame:
    """Claim 1: makespan over MCT's in the first batch minus in the second half."""
    table = over_mct(e.main)
    table = table[table["policy"] == "history"]
    half = table["batch"] >= (table["batch"].max() + 1) / 2
    keys = ["mix", "replicate"]
    first = table[table["batch"] == 0].set_index(keys)["ratio"]
    gain = first - table[half].groupby(keys)["ratio"].mean()
    return points(gain.rename("gain").reset_index(), ["mix"], "gain")


def less_than_gpu_only(e: Evidence) -> pd.DataFrame:
    """Claim 2a: part of the total run time saved against GPU only."""
    return saved(e.main, ["history"], "gpu-only")


def less_than_preferred(e: Evidence) -> pd.DataFrame:
    """Claim 2b: part of the total run time saved against the preferred device."""
    return saved(e.main, ["history"], "preferred")


def beats_round_robin(e: Evidence) -> pd.DataFrame:
    """Claim 3: part of the total run time saved against blind round robin."""
    return saved(e.main, OURS, "round-robin")


def near_ideal(e: Evidence) -> pd.DataFrame | None:
    """Claim 4: excess over the exhaustive schedules."""
    if e.ideal is None:
        return None
    rows = e.ideal[e.ideal["policy"].isin(OURS)]
    parts = [points(rows, ["policy", "mix"], column) for column in ("makespan", "completion")]
    for table, what in zip(parts, ("makespan", "mean completion"), strict=True):
        table["point"] = what + ", " + table["point"]
    return pd.concat(parts, ignore_index=True)


def penalised_once(e: Evidence) -> pd.DataFrame:
    """Claim 5: most explorations of one application on its slower class."""
    return points(e.explored, ["mix"], "times")


def fair_but_for_exceptions(e: Evidence) -> pd.DataFrame:
    """Claim 6: share of the jobs that are late under neither exception."""
    rows = e.fair[(e.fair["above"] == 0) & (e.fair["cv"] == e.fair["own"])]
    return points(rows, ["fair", "mix"], "unexcused")


def excess_of_poison(frame: pd.DataFrame) -> pd.DataFrame:
    """Return by how much wrong first samples lengthen each batch."""
    keys = ["mix", "replicate", "batch"]
    right = frame[frame["wrong"] == 1].set_index(keys)["makespan"].rename("right")
    table = frame[frame["wrong"] != 1].join(right, on=keys)
    return table.assign(excess=table["makespan"] / table["right"] - 1)


def smoothed_out(e: Evidence) -> pd.DataFrame:
    """Claim 7: excess of the last batch when every first sample was wrong."""
    table = excess_of_poison(e.poisoned)
    return points(table[table["batch"] == table["batch"].max()], ["wrong", "mix"], "excess")


def moulding_gains(frame: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """Return the gain in throughput over the best of some rivals, queue by queue."""
    keys = ["mix", "error", "replicate"]
    best = frame[frame["scheduler"].isin(rivals)].groupby(keys)["makespan"].min().rename("best")
    table = frame[frame["scheduler"].isin(("flexible", "area"))].join(best, on=keys)
    return table.assign(gain=table["best"] / table["makespan"] - 1)


def throughput_gain(e: Evidence) -> pd.DataFrame | None:
    """Claim 8: mean gain over the best of TORQUE and MCT in the mix where it is largest."""
    if e.moulded is None:
        return None
    gains = moulding_gains(e.moulded[e.moulded["error"] == 0], EXISTING)
    table = points(gains, ["scheduler", "mix"], "gain")
    best = table.groupby("scheduler", sort=False)["estimate"].idxmax()
    return table.loc[best].reset_index(drop=True)


def tolerates_errors(e: Evidence) -> pd.DataFrame | None:
    """Claim 9: how much longer schedules are if declared times are wrong by up to 20 %."""
    if e.wrong is None or e.moulded is None:
        return None
    one = pd.concat([e.main.assign(error=0.0), e.wrong])
    sums = one.groupby(["mix", "replicate", "error", "policy"])["makespan"].sum().reset_index()
    two = e.moulded.rename(columns={"scheduler": "policy"})
    two = two.assign(policy="problem 2: " + two["policy"])
    everything = pd.concat([sums, two[sums.columns]])
    wanted = ["rsc", "asjf", "problem 2: flexible", "problem 2: area"]
    rows = everything[everything["policy"].isin(wanted)]
    worst = rows["error"].max()
    table = relative_reduction(rows, "makespan", "error", worst, 0.0, at=["policy", "mix"])
    return named(_mirrored(table), ["policy", "mix"])


def _mirrored(table: pd.DataFrame) -> pd.DataFrame:
    """Turn a saving into an excess."""
    ends = {"estimate": -table["estimate"], "low": -table["high"], "high": -table["low"]}
    return table.assign(**ends)


def gpu_is_used_more(e: Evidence) -> pd.DataFrame | None:
    """Claim 10a: share of the time in which the GPU maps, three streams minus one."""
    if e.pipelines is None:
        return None
    wide = e.pipelines.pivot(
        index=["profile", "engines", "replicate"], columns="streams", values="use"
    )
    gain = (wide[3] - wide[1]).rename("gain").reset_index()
    return points(gain, ["profile", "engines"], "gain")


def pipeline_speed_up(e: Evidence) -> pd.DataFrame | None:
    """Claim 10b: makespan without a pipeline over that with three streams, two engines."""
    if e.pipelines is None:
        return None
    rows = e.pipelines[e.pipelines["engines"] == 2]
    wide = rows.pivot(index=["profile", "replicate"], columns="streams", values="makespan")
    return points((wide[1] / wide[3]).rename("ratio").reset_index(), ["profile"], "ratio")


def stabilises(e: Evidence) -> pd.DataFrame | None:
    """Claim 11: spread over interleavings, and mean excess, against the scheduled order."""
    if e.issued is None:
        return None
    keys = ["queues", "engines", "replicate"]
    runs = e.issued.groupby([*keys, "order"])["slowdown"].agg(["mean", "std"]).fillna(0.0)
    mean, spread = (runs[name].unstack("order") for name in ("mean", "std"))
    columns = {
        "spread": spread["threads"] / mean["threads"] - spread["scheduled"] / mean["scheduled"],
        "mean": mean["threads"] / mean["scheduled"] - 1,
    }
    parts = [
        points(column.rename("more").reset_index(), keys[:2], "more").assign(what=name)
        for name, column in columns.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(point=table["what"] + ", " + table["point"])


def approaches_ideal(e: Evidence) -> pd.DataFrame | None:
    """Claim 12: excess of the last round over equal finish."""
    if e.adapted is None:
        return None
    last = e.adapted[e.adapted["round"] == e.adapted["round"].max()]
    return points(last, ["case"], "excess")


def thread_is_free(e: Evidence) -> pd.DataFrame | None:
    """Claim 13: excess if the thread of a GPU job takes a part of the CPU."""
    if e.threads is None:
        return None
    sums = e.threads.groupby(["mix", "replicate", "share"])["makespan"].sum().reset_index()
    parts = [
        relative_reduction(sums, "makespan", "share", share, 0.0, at=["mix"]).assign(share=share)
        for share in sorted(set(sums["share"]))
        if share
    ]
    return named(_mirrored(pd.concat(parts, ignore_index=True)), ["share", "mix"])


def both_beat_cpus(e: Evidence) -> pd.DataFrame:
    """Claim 14a: part of the total run time saved against CPU only, job by job."""
    return saved(e.main, ["history"], "cpu-only")


def counted(frame: pd.DataFrame, streams: int, devices: str) -> pd.DataFrame:
    """Return the times of a word count, one column per number of GPUs."""
    rows = frame[(frame["streams"] == streams) & (frame["devices"] == devices)]
    return rows.pivot(index="replicate", columns="gpus", values="makespan")


def by_gpus(wide: pd.DataFrame) -> pd.DataFrame:
    """Estimate every column of a table of one column per number of GPUs."""
    tidy = wide.reset_index().melt("replicate", var_name="gpus", value_name="gain")
    return points(tidy, ["gpus"], "gain")


def both_beat_cpus_in_mapreduce(e: Evidence) -> pd.DataFrame | None:
    """Claim 14b: part of the word count's time saved against CPUs only."""
    if e.words is None:
        return None
    cpus = counted(e.words, 3, "cpu").iloc[:, 0]
    return by_gpus(1 - counted(e.words, 3, "both").div(cpus, axis=0))


def more_gpus_are_faster(e: Evidence) -> pd.DataFrame | None:
    """Claim 15a: time on some GPUs over that on twice as many, less 1."""
    if e.words is None:
        return None
    wide = counted(e.words, 3, "gpu")
    return by_gpus(
        pd.DataFrame({f"{a} to {b}": wide[a] / wide[b] - 1 for a, b in pairwise(wide.columns)})
    )


def pipelines_raise_throughput(e: Evidence) -> pd.DataFrame | None:
    """Claim 15b: word count without overlap over the same with it, less 1."""
    if e.words is None:
        return None
    parts = []
    for devices in ("gpu", "both"):
        plain, piped = (counted(e.words, streams, devices) for streams in STREAMS)
        table = by_gpus(plain / piped - 1)
        parts.append(table.assign(point=f"{devices}, " + table["point"]))
    return pd.concat(parts, ignore_index=True)


def fits_in_memory(e: Evidence) -> pd.DataFrame | None:
    """Claim 16: by how much either memory is exceeded, and what is left of the input."""
    if e.memory is None:
        return None
    beyond = pd.DataFrame({
        "size": e.memory["size"],
        "GPU memory": (e.memory["gpu"] - 1).clip(lower=0),
        "host memory": (e.memory["host"] - 1).clip(lower=0),
        "not mapped": (1 - e.memory["mapped"]).abs(),
    })  # fmt: skip
    table = beyond.melt("size", var_name="what", value_name="estimate")
    table = table.assign(low=table["estimate"], high=table["estimate"])
    sizes = [f", {size:g} times the GPU's memory" for size in table["size"]]
    return table.assign(point=table["what"] + sizes)


def queue_order_is_kept(e: Evidence) -> pd.DataFrame:
    """Claim 17: share of the jobs that start on a device behind a later one."""
    rows = e.explored.assign(share=e.explored["late"] / e.explored["jobs"])
    return points(rows, ["mix"], "share")


def waits_are_traded(e: Evidence) -> pd.DataFrame:
    """Claim 18: what ASJF waits less than RSC, and what RSC completes sooner than ASJF."""
    parts = []
    for column, (one, other) in (
        ("mean_wait", ("asjf", "rsc")), ("mean_completion", ("rsc", "asjf")),
    ):  # fmt: skip
        table = saved(e.main, [one], other, column)
        parts.append(table.assign(point=column.replace("_", " ") + ", " + table["point"]))
    return pd.concat(parts, ignore_index=True)


#: Claims that the readings of the engine decide: the rows of the heat map.
BY_READING = (
    "improves", "less_than_gpu_only", "less_than_preferred", "beats_round_robin",
    "penalised_once", "fair_but_for_exceptions", "smoothed_out", "both_beat_cpus",
    "queue_order_is_kept", "waits_are_traded",
)  # fmt: skip


def measured(claim: Claim, e: Evidence) -> pd.DataFrame | None:
    """Measure a claim."""
    function: Callable[[Evidence], pd.DataFrame | None] | None = globals().get(claim.measure)
    return function(e) if function else None

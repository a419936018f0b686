"""What paper C's claims are measured by: evidence in, points of a grid out."""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.study.measure import counted, estimates, joined, mirrored, named, tidy, tie, trend, wide
from dlsim.study.stats import relative_reduction

#: Policies of the paper and of its second source.
OURS = ("history", "rsc", "asjf")
#: What the conclusion names as the two existing schemes.
EXISTING = ("torque-strict", "torque", "mct")
#: Policies that the readings are judged by.
JUDGED = ("history", "cpu-only", "gpu-only", "preferred", "round-robin", "mct", "rsc", "asjf")
STREAMS = (1, 3)
#: The sweeps that claims are measured on; None where they were not run.
Evidence = namedtuple(
    "Evidence",
    "main fair outlying poisoned moulded wrong ideal threads pipelines issued adapted words",
    defaults=[None, None, None, None, None, None, None],
)


def _at(values: Any, by: Sequence[str]) -> pd.DataFrame:
    """Estimate paired values at every point of a grid."""
    return estimates(values.rename("value").reset_index(), by, "value")


def saved(
    frame: pd.DataFrame, policies: Sequence[str], rival: str, column: str = "makespan"
) -> pd.DataFrame:
    """Estimate by which fraction totals over the batches are smaller than a rival's."""
    keys, parts = ["mix", "replicate", "policy"], []
    sums = frame.groupby(keys, sort=False)[column].sum().reset_index()
    for policy in policies:
        table = relative_reduction(sums, column, "policy", policy, rival, at=["mix"])
        parts.append(named(table, ["mix"], f"{policy} against {rival}").assign(policy=policy))
    return pd.concat(parts, ignore_index=True)


def over(frame: pd.DataFrame, base: Any, keys: Sequence[str]) -> pd.DataFrame:
    """Add the makespan of a base that met the same, and the ratio to it."""
    known = frame[base].set_index(list(keys))["makespan"].rename("base")
    table = frame.join(known, on=list(keys))
    return table.assign(ratio=table["makespan"] / table["base"])


def over_mct(frame: pd.DataFrame) -> pd.DataFrame:
    """Compare every batch with MCT, which has exact means from the start."""
    return over(frame, frame["policy"] == "mct", ["mix", "replicate", "batch"])


def first_stay(below: "pd.Series[bool]") -> str:
    """Return the first batch, from 1, after which something always holds."""
    stays = below[::-1].cummin()[::-1]
    return str(int(np.argmax(stays)) + 1) if stays.any() else "never"


def break_even(frame: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """Tell after which batch a cold start has paid, learning included."""
    mean = frame.groupby(["mix", "policy", "batch"])["makespan"].mean()
    total = mean.groupby(level=["mix", "policy"]).cumsum().unstack("policy")
    less = pd.DataFrame({rival: total["history"] < total[rival] for rival in rivals})
    return less.groupby(level="mix", sort=False).agg(first_stay)


def _last(frame: pd.DataFrame, number: str) -> pd.DataFrame:
    """Return the rows of the last batch or round."""
    return frame[frame[number] == frame[number].max()]


def improves(e: Evidence, since: int = 0) -> pd.DataFrame:
    """Claim 1: by how much makespan over MCT's falls from a batch to the last."""
    table = over_mct(e.main)
    table = table[(table["policy"] == "history") & (table["batch"] >= since)]
    if table["batch"].nunique() < 2:
        return table.iloc[:0]
    return trend(-table.set_index(["mix", "replicate", "batch"])[["ratio"]], "batch", "fall")


def excess_of_poison(frame: pd.DataFrame) -> pd.DataFrame:
    """Return by how much wrong first samples lengthen each batch."""
    table = over(frame, frame["wrong"] == 1, ["mix", "replicate", "batch"])
    return table[table["wrong"] != 1].assign(excess=lambda wrong: wrong["ratio"] - 1)


def moulding_gains(frame: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """Return the gain in throughput over the best of some rivals, queue by queue."""
    keys = ["mix", "error", "replicate"]
    best = frame[frame["scheduler"].isin(rivals)].groupby(keys)["makespan"].min().rename("best")
    table = frame[frame["scheduler"].isin(("flexible", "area"))].join(best, on=keys)
    return table.assign(gain=table["best"] / table["makespan"] - 1)


def throughput_gain(e: Evidence) -> pd.DataFrame:
    """Mean gain over the best of TORQUE and MCT."""
    gains = moulding_gains(e.moulded[e.moulded["error"] == 0], EXISTING)
    return estimates(gains, ["scheduler", "mix"], "gain")


def greatest_gain(e: Evidence) -> pd.DataFrame:
    """The gain of every second queue, in the mix where it is largest in the others."""
    chosen, judged = (
        throughput_gain(e._replace(moulded=e.moulded[e.moulded["replicate"] % 2 == k]))
        for k in (0, 1)
    )
    best = chosen.groupby("scheduler", sort=False)["estimate"].idxmax()
    return judged.merge(chosen.loc[best, ["scheduler", "mix"]])


def tolerates_errors(e: Evidence) -> pd.DataFrame:
    """How much longer schedules are if declared times are wrong by up to 20 %."""
    one = pd.concat([e.main.assign(error=0.0), e.wrong])
    sums = one.groupby(["mix", "replicate", "error", "policy"])["makespan"].sum().reset_index()
    two = e.moulded.assign(policy="problem 2: " + e.moulded["scheduler"])
    rows, at = pd.concat([sums, two[sums.columns]]), ["policy", "mix"]
    rows = rows[rows["policy"].isin(["rsc", "asjf", "problem 2: flexible", "problem 2: area"])]
    return named(_longer(rows, "error", rows["error"].max(), at), at)


def _piped(rows: pd.DataFrame, by: list[str], column: str, compared: Any) -> pd.DataFrame:
    """Compare what three streams do with what one does."""
    table = wide(rows, by, column, "streams")
    return _at(compared(table[3], table[1]), by)


def _longer(rows: pd.DataFrame, by: str, value: float, at: list[str]) -> pd.DataFrame:
    """How much longer schedules are at a value of a column than where it is 0."""
    return mirrored(relative_reduction(rows, "makespan", by, value, 0.0, at=at))


def _stabilises(e: Evidence) -> pd.DataFrame:
    """Distance from the mean slowdown, and slowdown, beyond the scheduled order's."""
    keys = ["queues", "engines"]
    mean = e.issued.groupby([*keys, "order"])["slowdown"].transform("mean")
    rows = e.issued.assign(distance=(e.issued["slowdown"] / mean - 1).abs())
    runs = rows.groupby([*keys, "replicate", "order"])[["distance", "slowdown"]].mean()
    spread, mean = (runs[name].unstack("order") for name in ("distance", "slowdown"))
    columns = {
        "spread": spread["threads"] - spread["scheduled"],
        "mean": mean["threads"] / mean["scheduled"] - 1,
    }
    return joined({name: _at(column, keys) for name, column in columns.items()})


def thread_is_free(e: Evidence) -> pd.DataFrame:
    """Excess if the thread of a GPU job takes a part of the CPU."""
    sums = e.threads.groupby(["mix", "replicate", "share"])["makespan"].sum().reset_index()
    shares = sorted(set(sums["share"]) - {0.0})
    parts = [_longer(sums, "share", share, ["mix"]).assign(share=share) for share in shares]
    return named(pd.concat(parts, ignore_index=True), ["share", "mix"])


def word_counts(frame: pd.DataFrame, streams: int, devices: str) -> pd.DataFrame:
    """Return the times of a word count, one column per number of GPUs."""
    rows = frame[(frame["streams"] == streams) & (frame["devices"] == devices)]
    return rows.pivot(index="replicate", columns="gpus", values="makespan")


def by_gpus(values: pd.DataFrame) -> pd.DataFrame:
    """Estimate every column of a table of one column per number of GPUs."""
    return estimates(tidy(values, [], "gain", "gpus"), ["gpus"], "gain")


def _waits_are_traded(e: Evidence, column: str) -> pd.DataFrame:
    """What ASJF waits less than RSC, and what RSC completes sooner than ASJF."""
    return joined({
        "mean wait": saved(e.main, ["asjf"], "rsc", "mean_wait"),
        column.replace("_", " "): saved(e.main, ["rsc"], "asjf", column),
    })  # fmt: skip


def _unexcused(e: Evidence, fair: str) -> pd.DataFrame:
    """Share of the jobs that are late and under neither exception."""
    rows = e.fair[(e.fair["above"] == 0) & (e.fair["fair"] == fair)]
    jobs = rows.groupby("mix", sort=False)["jobs"].sum().reset_index(drop=True)
    return counted(estimates(rows, ["mix"], "unexcused"), jobs)


# what measures a claim, by the number in its id
tie("cpu-gpu", {
    "1a": improves,
    "1b": lambda e: improves(e, since=1),
    # part of the total run time saved
    "2a": lambda e: saved(e.main, ["history"], "gpu-only"),
    "2b": lambda e: saved(e.main, ["history"], "preferred"),
    "3": lambda e: saved(e.main, OURS, "round-robin"),
    "14a": lambda e: saved(e.main, ["history"], "cpu-only"),
    "6a": lambda e: _unexcused(e, "local"),
    "6b": lambda e: _unexcused(e, "global"),
    # the last batch after outliers, and after wrong first samples
    "7a": lambda e: estimates(_last(e.outlying, "batch"), ["mix"], "excess"),
    "7b": lambda e: estimates(
        _last(excess_of_poison(e.poisoned), "batch"), ["wrong", "mix"], "excess"
    ),
    "8a": greatest_gain,
    "8b": throughput_gain,
    "18a": lambda e: _waits_are_traded(e, "mean_completion"),
    "18b": lambda e: _waits_are_traded(e, "makespan"),
})  # fmt: skip
# those that no reading concerns
tie("cpu-gpu", {
    # excess over the exhaustive schedules
    "4": lambda e: joined({
        what: estimates(e.ideal[e.ideal["policy"].isin(OURS)], ["policy", "mix"], column)
        for what, column in (("makespan", "makespan"), ("mean completion", "completion"))
    }),
    "9": tolerates_errors,
    # part of the time in which the GPU maps; makespan without a pipeline over that with it
    "10a": lambda e: _piped(e.pipelines, ["profile", "engines"], "use", lambda x, y: x - y),
    "10b": lambda e: _piped(
        e.pipelines.query("engines == 2"), ["profile"], "makespan", lambda x, y: y / x
    ),
    "11": _stabilises,
    # excess over equal finish: its way over the rounds, and the last one
    "12a": lambda e: trend(-e.adapted.set_index(["case", "replicate", "round"]), "round", "fall"),
    "12b": lambda e: estimates(_last(e.adapted, "round"), ["case"], "excess"),
    "13": thread_is_free,
    # part of the word count's time saved against CPUs only
    "14b": lambda e: by_gpus(
        1 - word_counts(e.words, 3, "both").div(word_counts(e.words, 3, "cpu").iloc[:, 0], axis=0)
    ),
    # time on one GPU over that on several, and without overlap over that with it, less 1
    "15a": lambda e: by_gpus(
        word_counts(e.words, 3, "gpu")
        .pipe(lambda times: times.drop(columns=1).rdiv(times[1], axis=0) - 1)
    ),
    "15b": lambda e: joined({
        name: by_gpus(word_counts(e.words, 1, name) / word_counts(e.words, 3, name) - 1)
        for name in ("gpu", "both")
    }),
}, readings=False)  # fmt: skip

"""Every measured claim of paper C on evidence for it, and on evidence against it."""

from itertools import product

import numpy as np
import pandas as pd

from dlsim.papers.cpu_gpu import EXISTING_SCHEMES, PROPOSED_POLICIES
from tests.verification.made_up import assert_judged_each_way

MIXES, RIVALS = ("a", "b"), ("mct", "gpu-only", "cpu-only", "preferred", "round-robin")


def made(level, noise=0.01, column="makespan", **axes):
    """Eight replicates of a number at every point, give or take a per cent."""
    names = [*axes, "replicate"]
    rows = pd.DataFrame(product(*axes.values(), range(8)), columns=names)
    factor = 1 + noise * np.random.default_rng(rows.shape).standard_normal(len(rows))
    return rows.assign(**{column: [level(row) for row in rows.itertuples()] * factor})


def queued(level, **columns):
    """Batches of every policy, mean wait and mean completion as given."""
    frame = made(level, policy=(*PROPOSED_POLICIES, *RIVALS), mix=MIXES, batch=range(4))
    policy = frame["policy"]
    more = {name: policy.map(of).fillna(1.0) for name, of in columns.items()}
    return {"runs": frame.assign(**{k: v * frame["makespan"] for k, v in more.items()})}


def ours_take(part):
    return queued(lambda row: part if row.policy in PROPOSED_POLICIES else 1.0)


def learns(way):
    return queued(lambda row: 2 - way * 0.2 * row.batch if row.policy == "history" else 1.0)


def trades(way):
    """RSC waits longer than ASJF, whose batches and jobs take longer; or the other way round."""
    much, wait = 2.0**way, {"rsc": 2.0**way, "asjf": 2.0**-way}
    return queued(
        lambda row: much if row.policy == "asjf" else 1.0, mean_wait=wait, mean_completion={}
    )


def unfair(share):
    fair = {"fair": ("local", "global"), "above": (0.0,), "mix": MIXES}
    return {"lateness": made(lambda row: share, column="unexcused", **fair).assign(jobs=96)}


def far_from_ideal(excess):
    frame = made(lambda row: excess, policy=PROPOSED_POLICIES, mix=MIXES)
    return {"short_queues": frame.assign(completion=frame["makespan"])}


def outlying(excess):
    frame = made(lambda row: excess, column="excess", mix=MIXES, batch=(1, 2))
    wrong = made(
        lambda row: 1 + excess * (row.wrong > 1), 0.001, mix=MIXES, wrong=(1.0, 5.0), batch=(0, 1)
    )
    return {"outliers": frame, "first_samples": wrong}


def moulded(gain):
    every = (*EXISTING_SCHEMES, "flexible", "area")
    axes = {"mix": MIXES, "error": (0.0,), "scheduler": every}
    ours = 1 / (1 + gain)
    frame = made(lambda row: 1 if row.scheduler in EXISTING_SCHEMES else ours, 0.005, **axes)
    return {"moldable": frame}


def piped(gain):
    axes = {"profile": ("a", "b"), "engines": (1, 2), "streams": (1, 3)}
    frame = made(lambda row: 1 if row.streams == 3 else 1 + gain, **axes)
    return {"pipelines": frame.assign(use=0.3 / frame["makespan"])}


def issued(steady, other):
    axes = {"queues": ("single",), "engines": (1, 2), "number": range(5)}
    calm = made(lambda row: 1.1, 0.01, "slowdown", order=(steady,), **axes)
    wild = made(lambda row: 1.5, 0.2, "slowdown", order=(other,), **axes)
    return {"orders": pd.concat([calm, wild], ignore_index=True)}


def adapted(level):
    return {"splits": made(level, column="excess", case=("x", "y"), round=range(4))}


def shared(excess):
    """Threads that take a tenth of a core of 16 or 8; those that take all of it cost much."""
    level = {0.0: 1.0, 0.00625: 1 + excess, 0.0125: 1 + excess, 0.0625: 1.5, 0.125: 2.0}
    return {"threads": made(lambda row: level[row.share], 0.001, mix=MIXES, share=tuple(level))}


def counts(power):
    """GPUs that take (or give) so much, and streams that do."""
    axes = {"devices": ("cpu", "gpu", "both"), "gpus": (1, 2, 4), "streams": (1, 3)}
    rest = {"cpu": 0, "gpu": 1, "both": 1}
    level = {1: 1.0, 3: 2.0**-power}
    frame = made(
        lambda row: (2.0 * row.gpus) ** (-power * rest[row.devices]) * level[row.streams], **axes
    )
    return {"word_counts": frame}


LATE = unfair(0.001), unfair(0.3)
#: By the number of the claim: frames on which it must hold, and on which it must be contrary.
MADE = {
    "1a": (learns(1), learns(-1)),
    "1b": (learns(1), learns(-1)),
    "3": (ours_take(0.5), ours_take(2.0)),
    "4": (far_from_ideal(0.01), far_from_ideal(0.5)),
    "6a": LATE,
    "6b": LATE,
    "7a": (outlying(0.01), outlying(0.5)),
    "7b": (outlying(0.01), outlying(0.5)),
    "8a": (moulded(0.42), moulded(0.1)),
    "10a": (piped(1.5), piped(-0.5)),
    "11": (issued("scheduled", "threads"), issued("threads", "scheduled")),
    "12a": (adapted(lambda row: 1 / (1 + row.round)), adapted(lambda row: 1 + row.round)),
    "12b": (adapted(lambda row: 0.01), adapted(lambda row: 0.5)),
    "13": (shared(0.001), shared(0.2)),
    "14a": (ours_take(0.5), ours_take(1.0)),
    "14b": (counts(1), counts(-1)),
    "15a": (counts(1), counts(-1)),
    "15b": (counts(1), counts(-1)),
    "18a": (trades(1), trades(-1)),
    "18b": (trades(1), trades(-1)),
}


def test_every_claim_can_hold_and_can_be_contrary():
    assert_judged_each_way("cpu-gpu", MADE)

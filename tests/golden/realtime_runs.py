"""Random runs of papers M and I: every policy, every switch of the reading, rules of one's own."""

import numpy as np
import pandas as pd

from dlsim.realtime import POLICIES, SWITCHES, Cluster, Policy, Reading, simulate
from tests.golden.blocks import cell, digest, lines

#: Partitions without set-up times, and partitions in several rounds.
WITHOUT_SETUP = ("dlt", "I", "II", "exact", "exact-n")
IN_ROUNDS = ("umr", "umr-iit")
#: Columns of a schedule that are decisions or instants.
DECIDED = ["admitted", "start", "nodes", "estimate", "completion", "missed", "deadline"]


def largest_first(tasks: pd.DataFrame) -> pd.Series:
    """Rank tasks by size, the largest first."""
    return -tasks["sigma"]


def least_laxity(task, n, t, state):
    """Rank tasks by the time that is left."""
    return task.due - t - task.sigma * (state.cms + state.cps) / n


def one_more(task, t, state):
    """Take one node more than the fewest, and none where none would do."""
    return min(task.n_min + 1, state.nodes) if task.n_min else 0


def halves(sigma, release, state):
    """Give each node half of what the one before it has, the last as much as that one."""
    count = len(release)
    return [2.0 ** -min(k + 1, count - 1) for k in range(count)]


OWN = {
    "largest-first": Policy(largest_first, "min", overtake=True),
    "largest-first, all": Policy(largest_first, "all", admission=False),
    "least-laxity": Policy(least_laxity, "min", overtake=True),
    "one-more": Policy("edf", one_more),
    "halves": Policy("fifo", "min", halves),
    "edf, min": Policy("edf", "min"),
    "fifo, min": Policy("fifo", "min"),
    "dc, min": Policy("dc", "min"),
    "edf, exact, all": Policy("edf", "all", "exact"),
    "fifo, exact, fragment": Policy("fifo", "fragment", "exact"),
    "edf, umr, best": Policy("edf", "min", "umr", rounds="best"),
    "fifo, umr-iit, best": Policy("fifo", "min", "umr-iit", rounds="best"),
}
#: The policies when the runs were frozen: what a run is depends on their order. Later policies are
#: drawn by `tests/helpers/strategies.py` alone.
FROZEN_POLICIES = (
    "MCDF", "FIFOMN", "EDFMN", "FIFOAN", "EDFAN", "FIFOANNA", "EDFANNA", "FIFO-OPR-MN",
    "EDF-OPR-MN", "FIFO-DLT", "EDF-DLT", "FIDO-I", "EDDO-I", "FIDO-II", "EDDO-II", "FIFO-EQ-MN",
    "EDF-EQ-MN", "FIFO-OPR-FRAG", "EDF-OPR-FRAG", "FIFO-US", "EDF-US", "FIFO-EXACT", "EDF-EXACT",
    "FIFO-EXACT-N", "EDF-EXACT-N", "FIFO-UMR-MN", "EDF-UMR-MN", "FIFO-UMR-IIT", "EDF-UMR-IIT",
)  # fmt: skip
#: The switches when the runs were frozen, in the order in which they are drawn.
FROZEN_SWITCHES = (
    "an_nodes", "mn_order", "mn_count", "dc_at_N", "order_when", "link", "batch_order",
    "batch_commit", "same_time", "late", "release", "commit", "backfill", "split", "scope", "ties",
    "count_single",
)  # fmt: skip
ROWS = {name: POLICIES[name] for name in FROZEN_POLICIES} | OWN


def draw_cluster(rng: np.random.Generator, policy: Policy) -> Cluster:
    """Draw a cluster on which a policy is defined."""
    cms = float(rng.choice([0, 0.5, 1, 1, 2, 8, 10]))
    cps = float(rng.choice([1, 1.5, 5, 10, 20, 100]))
    setup, start = (float(rng.choice([0, 0, 0.5, 1, 5])) for _ in "sc")
    if policy.partition in WITHOUT_SETUP:
        setup = start = 0.0
    if policy.partition in IN_ROUNDS:
        cms = cms or 1.0
        setup = setup or 0.5 if policy.rounds == "best" else setup
    return Cluster(int(rng.integers(1, 9)), cms, cps, setup, start)


def draw_tasks(rng: np.random.Generator, cluster: Cluster, count: int) -> pd.DataFrame:
    """Draw tasks, of short numbers or of any; deadlines from too short to loose."""
    sigma = rng.integers(1, 81, count) / 4
    gap = rng.choice([0, 0, 1, 5, 20], count) * (1 + cluster.cps / cluster.nodes)
    alone = sigma * (cluster.cms + cluster.cps / cluster.nodes) + cluster.st + cluster.sc
    deadline = np.ceil(4 * alone * rng.choice([0.75, 1, 1.5, 2, 4, 8], count)) / 4
    if rng.random() < 0.5:
        sigma, gap, deadline = (x * rng.uniform(0.7, 1.4, count) for x in (sigma, gap, deadline))
    table = {"arrival": np.cumsum(gap), "sigma": sigma, "deadline": deadline}
    return pd.DataFrame(table | {"user_nodes": rng.integers(1, cluster.nodes + 1, count)})


def draw_reading(rng: np.random.Generator) -> dict[str, str]:
    """Draw a reading: often the default, else some switches."""
    if rng.random() < 0.3:
        return {}
    return {k: str(rng.choice(SWITCHES[k])) for k in FROZEN_SWITCHES if rng.random() < 0.4}


def run(number: int, engine: str = "auto") -> str:
    """Return the block of a run; functions of a user are called uncompiled, whatever is asked."""
    rng = np.random.default_rng([1, number])
    name = list(ROWS)[number % len(ROWS)]
    policy, own = ROWS[name], name in OWN
    cluster, changes = draw_cluster(rng, policy), draw_reading(rng)
    tasks = draw_tasks(rng, cluster, int(rng.integers(3, 16)))
    pieces = policy.partition == "pieces" and changes.get("split") == "piece"
    negotiate = 1.5 if policy.admission and not own and not pieces and rng.random() < 0.2 else 0.0
    engine = "auto" if policy.has_user_rules else engine
    s = simulate(
        tasks, cluster, policy, Reading.from_switches(changes), engine, negotiate=negotiate
    )
    text = [f"{name} {changes} {negotiate}", lines(s.tasks, DECIDED)]
    text.append("chunks " + digest(*(s.chunks[c] for c in s.chunks.columns)))
    refused = s.tasks.index[~s.tasks["admitted"]]
    if policy.admission and not own and not pieces and len(refused):
        offer = s.offer(refused[0])
        text.append(
            f"offer {refused[0]} " + (f"{cell(offer.deadline)} {offer.nodes}" if offer else "none")
        )
    in_line = not (own or pieces or policy.overtake) and policy.admission
    if in_line and changes.get("backfill") != "on":
        text.append("counts " + ";".join(lines(s.counts).split("\n")))
    return "\n".join(text)

"""``dlsim list``: what can be reproduced, and which policies and switches there are."""

import argparse
from collections.abc import Callable

from dlsim.cli.words import switches_of
from dlsim.cpugpu import model as cpugpu
from dlsim.files import suite_notebooks
from dlsim.given import option, word
from dlsim.realtime.model import ORDERS, POLICIES, Policy
from dlsim.study.figures import load_figures

#: What the words of a `dlsim.realtime.Policy` mean, in a few more.
ORDER = dict(zip(ORDERS, ("by arrival", "by deadline", "by the slope of the cost"), strict=True))
NODES = {"min": "the fewest nodes", "all": "all nodes", "fragment": "the fewest, and idle ones",
         "user": "as many nodes as the user asks"}  # fmt: skip
PARTITION = {
    "opr": "that start together", "equal": "that start together, equal shares",
    "pieces": "each with a piece of its own", "dlt": "as they come free, remodelled",
    "I": "as they come free, Constraint 1", "II": "as they come free, Constraint 2",
    "exact": "as they come free, true optimum",
    "exact-n": "as they come free, n from the true optimum",
    "umr": "that start together, several rounds", "umr-iit": "as they come free, several rounds",
}  # fmt: skip
#: What the policies of paper C are, by name.
DEVICES = {
    "history": "the paper's five rules, on measured times", "cpu-only": "everything on the CPU",
    "gpu-only": "everything on the GPU", "preferred": "each on the class it prefers",
    "round-robin": "classes in turn", "mct": "minimum completion time by declared times",
    "torque-strict": "Torque: the first in line waits for its class",
    "torque": "Torque: a queue per class", "rsc": "by speed-up; an idle device takes with care",
    "rsc-strict": "by speed-up; an idle device takes nothing of the other class",
    "rsa": "by speed-up; an idle device takes whatever there is",
    "asjf": "the shortest job first, where it is fastest",
    "ideal": "exhaustive: least makespan of a few jobs",
    "ideal-mean": "exhaustive: least mean completion time of a few jobs",
}  # fmt: skip


def about(policy: Policy) -> str:
    """Say what a policy does in a line."""
    order = ORDER[policy.order] if isinstance(policy.order, str) else "by an order of its own"
    end = "" if policy.admission else "; nobody is refused"
    passes = ", who fits may pass" if policy.overtake else ""
    return f"{order}{passes}; {NODES[policy.nodes]} {PARTITION[policy.partition]}{end}"


def _figures() -> None:
    there, rows = list(suite_notebooks()), load_figures()[1]
    print("dlsim reproduce NAME, where NAME is a paper, a notebook or a figure:")
    for notebook in there:
        print(f"\n{notebook}")
        for row in (row for row in rows if row.notebook == notebook):
            print(f"  {row.id:<36}{row.printed:<18}{row.title} ({row.status})")
    waiting = [row.id for row in rows if row.notebook not in there]
    if waiting:
        print(f"\nwithout their notebook: {', '.join(waiting)}")


def _policies() -> None:
    print("policies of dlsim simulate, dlsim advise and papers M and I:")
    for name, policy in POLICIES.items():
        print(f"  {name:<14}{about(policy)}")
    print("\npolicies of dlsim live and paper C:")
    for name in cpugpu.POLICIES:
        print(f"  {name:<14}{DEVICES[name]}")


def _readings() -> None:
    print("readings (default first), dlsim reproduce PAPER --reading NAME=VALUE:")
    for notebook in suite_notebooks():
        if table := switches_of(notebook):
            print(f"\n{notebook[3:]}")
            for name, options in table.items():
                print(f"  {name:<13} {' | '.join(map(word, options))}")


TOPICS: dict[str, Callable[[], None]] = {
    "figures": _figures, "policies": _policies, "readings": _readings,
}  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Print one of the topics, or all."""
    for k, topic in enumerate([option("topic", args.topic, TOPICS)] if args.topic else TOPICS):
        print(end="\n" * (k > 0))
        TOPICS[topic]()
    return 0

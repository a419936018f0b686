"""The options of ``dlsim live``, without what the command itself needs."""

import argparse

#: Where measured runs and decisions are kept.
FOLDER = "results/live"
#: What ``dlsim live`` can do.
VERBS = {
    "calibrate": "measure every kernel on every device, compare results",
    "run": "run a queue of kernels, each where the policy sends it",
    "explain": "why each job went where it went, computed again",
}


def add_live(one: argparse.ArgumentParser) -> None:
    """Add the sub-commands calibrate, run and explain."""
    verbs = one.add_subparsers(dest="live", required=True, metavar=" | ".join(VERBS))
    made = {
        name: verbs.add_parser(name, help=text, description=text) for name, text in VERBS.items()
    }
    for name in ("calibrate", "run"):
        _add_machine(made[name])
    add = made["calibrate"].add_argument
    add("--repeats", type=int, default=3, help="timed runs of each (default 3)")
    add("--csv", metavar="FILE", help="write the mean times as applications, to a new file")
    add = made["run"].add_argument
    add("--jobs", type=int, default=24, help="jobs in the queue (default 24)")
    add("--seed", type=int, default=0, help="which jobs (default 0)")
    add("--policy", default="history", help="default history")
    add("--reading", action="append", default=[], metavar="NAME=VALUE",
        help="a switch, for instance both_free=best; may be repeated")  # fmt: skip
    for name in ("run", "explain"):
        made[name].add_argument(
            "--log", default=f"{FOLDER}/log.jsonl", metavar="FILE",
            help="decisions with their inputs (default %(default)s); an earlier log is kept beside",
        )  # fmt: skip


def _add_machine(one: argparse.ArgumentParser) -> None:
    add = one.add_argument
    add("--kernels", metavar="A,B,...", help="names of applications (default: all)")
    add("--gpu", default="auto",
        help="auto, cuda, opencl, or threads: all CPU threads in its place")  # fmt: skip
    add("--cpu", default="numpy", help="numpy or numba (default numpy)")
    add("--crew", default="threads", choices=("threads", "dask"),
        help="who runs them: threads of this process, or Dask workers (extra cluster)")  # fmt: skip
    add("--factor", type=float, default=1.0, metavar="X",
        help="of the usual problem sizes (default 1)")  # fmt: skip
    add("--history", default=f"{FOLDER}/history.sqlite", metavar="FILE",
        help="where measured times are kept (default %(default)s)")  # fmt: skip

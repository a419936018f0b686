"""Inputs of notebooks in which every text is one of `tests.helpers.hostile_text`."""

import csv
import io
import json

from dlsim import files
from tests.helpers.hostile_text import HOSTILE

#: All hostile texts in three, and each by itself.
THIRDS = [" ".join(HOSTILE[k::3]) for k in range(3)]
#: A file may have any name without a slash.
NAME = "".join(HOSTILE[0:1] + HOSTILE[4:5] + HOSTILE[8:10] + HOSTILE[6:8]).replace("/", "")


def hostile_csv(texts):
    """A CSV log whose users, queues and one more column are such texts; most jobs are refused."""
    rows = [["submit", "run_time", "processors", "user", "queue", HOSTILE[0]]]
    # two jobs at once on the two nodes of the machine, the wider one last
    for text in texts:
        rows += [[0, 100, 2, text, text, text]] * 3
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def hostile_sacct(texts):
    """The accounting of Slurm whose users and partitions are such texts; most jobs are refused."""
    times = "2025-05-01T00:00:00|2025-05-01T00:00:00|2025-05-01T00:01:40"
    lines = ["JobID|User|Partition|Submit|Start|End|ElapsedRaw|AllocCPUS|State"]
    for number, text in enumerate(text for text in texts for _ in range(3)):
        lines.append(f"{number}|{text}|{text}|{times}|100|2|COMPLETED")
    return "\n".join(lines) + "\n"


def hostile_swf():
    """A log in the Standard Workload Format whose header is such texts, label by label."""
    head = files.read_text(files.shared_file("data/examples/cluster.swf"), 10**7)
    jobs = [line for line in head.splitlines() if line and not line.startswith(";")]
    labels = ("Version", "Computer", "Installation", "MaxJobs", "MaxRecords", "MaxProcs")
    labels += ("UnixStartTime", "TimeZoneString", "Queue", "Note", HOSTILE[0])
    lines = [f"; {label}: {text}" for label in labels for text in HOSTILE]
    queues = [f"; Queue: {number} {text}" for number, text in enumerate(HOSTILE)]
    return "\n".join([*lines, *queues, *jobs[:40]]) + "\n"


def hostile_toml(texts):
    """A platform whose clusters, routers, links and applications are such texts."""
    words = [json.dumps(text) for text in texts]
    parts = []
    for k, word in enumerate(words):
        speed = 10.0 if k else 100.0
        parts += [f"[[cluster]]\nname = {word}\nspeed = {speed}\ngateway = 20\nrouter = {word}\n"]
    for word in words:
        parts += [f"[[application]]\nname = {word}\norigin = {word}\npriority = 1\nwork = 1\n"]
        parts[-1] += "data = 1\n"
    for k, word in enumerate(words[1:]):
        parts += [f"[[link]]\nname = {word}\nbandwidth = {3 + k}\nmax_connect = 2\n"]
        parts[-1] += f"start = {words[0]}\nend = {word}\n"
    return "\n".join(parts)

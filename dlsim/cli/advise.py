"""What ``dlsim advise`` does: a job log in, one page and its tables out."""

import argparse
import math
import re
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from dlsim.advice import Terms, advise
from dlsim.advice.page import Picture, doubts, draw, findings, headline, page
from dlsim.advice.questions import POLICIES, in_window
from dlsim.cli.words import folder_of, names_of, png_of, reading_of, write_tables
from dlsim.errors import InputError
from dlsim.joblog import Log, read_log
from dlsim.progress import step
from dlsim.realtime import Reading

#: Seconds of the units of a length of time.
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "day": 86_400, "week": 604_800}
#: What --from and --to take.
WHEN = "a date such as 2026-01-31 12:00, or a time since the log's begin such as 36h"


def seconds_of(option: str, text: str, what: str = "a length such as 90min, 12d or week") -> float:
    """Read a length of time such as 36h; a number alone is seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)? ?([a-z]*)", text.strip().lower())
    number, unit = found.groups() if found else (None, "?")
    unit = unit.removesuffix("s") or unit  # days
    if not found or (unit or "s") not in UNITS or not (number or unit):
        raise InputError(f"{option} takes {what}; got {text!r}")
    return float(number or 1) * UNITS[unit or "s"]


def second_of(option: str, text: str, log: Log) -> float:
    """Read where a window ends: a date in the log's own zone, or a time since its begin."""
    if not re.match(r"\d{4}-", text):
        return float(log.jobs["submit"].iloc[0]) + seconds_of(option, text, WHEN)
    if log.epoch is None:
        raise InputError(f"{option} {text}: the log has no dates; give a time since its begin, 12d")
    try:
        when = pd.Timestamp(text)
    except ValueError:
        raise InputError(f"{option} takes {WHEN}; got {text!r}") from None
    when = when.tz_localize(log.epoch.tz) if when.tz is None else when
    return float((when - log.epoch).total_seconds())


def window_of(args: argparse.Namespace, log: Log) -> Log:
    """Cut the window out of the log that the options ask for."""
    begin = second_of("--from", args.begin, log) if args.begin else -math.inf
    end = second_of("--to", args.to, log) if args.to else math.inf
    busiest = seconds_of("--busiest", args.busiest) if args.busiest else None
    return in_window(log, begin, end, busiest)


def main(args: argparse.Namespace) -> int:
    """Read the log, answer the questions, write the page and its tables."""
    terms = Terms(
        args.nodes, args.cms, args.deadline, args.laxity,
        tuple(names_of(args.compare, None, ",".join(POLICIES))), args.policy, args.target,
        seconds_of("--warm-up", args.warm_up) if args.warm_up else 0.0,
        Reading.of(reading_of(args.reading)),
    )  # fmt: skip
    home = folder_of(args, "advise")
    assert home is not None
    step("reading the log")
    log, name = window_of(args, read_log(args.log)), Path(args.log).name
    print(headline(log, name), *doubts(log), sep="\n", flush=True)
    a = advise(log, terms)
    for sentence in findings(a):
        print(f"- {sentence}")
    step("drawing and writing")
    pictures = []
    for key, (figure, title, caption) in draw(a).items():
        place = home.write(f"figures/{key}.png", png_of(figure, 110))
        pictures.append(Picture(key, title, caption, place))
    command = shlex.join(["dlsim", *sys.argv[1:]])
    written = home.write("advice.html", page(a, name, command, pictures, home.folder).encode())
    asked = {name: vars(args)[name] for name in ("begin", "to", "busiest")}
    facts = {"log": name, **asdict(terms), "nodes": a.cluster.nodes, "policy": a.chosen, **asked}
    frames = {name: getattr(a, name) for name in
              ("jobs", "policies", "nodes", "deadlines", "users", "queues", "days")}  # fmt: skip
    write_tables(home, facts, frames)
    print(f"open {written}")
    return 0

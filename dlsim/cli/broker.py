"""What ``dlsim broker`` does: a virtual organisation from a TOML file, method by method."""

import argparse
from pathlib import Path

import pandas as pd

from dlsim.cli.words import folder_of, names_of, reading_of, shown, write_tables
from dlsim.progress import step
from dlsim.steady.broker import METHOD
from dlsim.steady.model import Reading
from dlsim.steady.organisation import run_file
from dlsim.steady.plan import text_of


def main(args: argparse.Namespace) -> int:
    """Run the broker by each method, print what came of it, and keep the tables if asked to."""
    reading = Reading.of(reading_of(args.reading))
    home = folder_of(args, "broker")
    methods = names_of(args.compare, args.method or None, METHOD)
    brokers, plans = {}, dict[str, list[str]]()
    for name in methods:
        step(f"going through the events by {name}")
        kept = plans.setdefault(name, [])
        keep = (lambda broker, kept=kept: kept.append(text_of(broker.plan()))) if home else None
        brokers[name] = run_file(args.file, name, args.seed, reading, args.seconds, keep)
    table = pd.DataFrame({name: broker.summary() for name, broker in brokers.items()}).T
    table.index.name = "method"
    first = brokers[methods[0]]
    print(f"{methods[0]}, until {first.now:g}")
    print(shown(first.applications))
    print(f"\n{shown(table)}")
    print("\nevery schedule passed its check: speeds, gateways, connections, policies")
    if home:
        for name, texts in plans.items():
            for number, plan in enumerate(texts, start=1):
                home.write(f"{name}-plan-{number:04}.json", plan.encode())
        record = {"file": Path(args.file).name, "reading": reading.changes(), "seed": args.seed,
                  "seconds": args.seconds}  # fmt: skip
        what = ("applications", "schedules", "rates", "sites", "links")
        each = {f"{n}-{name}": getattr(b, name) for n, b in brokers.items() for name in what}
        write_tables(home, record, {"summary": table, **each})
    return 0

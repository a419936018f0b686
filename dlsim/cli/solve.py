"""What ``dlsim solve`` does: a platform file in; what to send where, and what to open, out."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.cli.words import folder_of, names_of, png_of, reading_of, shown, write_tables
from dlsim.progress import step
from dlsim.steady.engine import solve
from dlsim.steady.model import Reading
from dlsim.steady.outcome import ROUNDING, Allocation, Period
from dlsim.steady.relaxation import bound
from dlsim.steady.store import read_platform


def amounts(a: Allocation, period: Period | None) -> pd.DataFrame:
    """Return who computes what: load units and data per time, whole load units per period."""
    p, (sites, apps) = a.platform, a.platform.names
    table = [
        (apps[i], sites[p.origin[i]], sites[to], float(a.work[i, to]),
         float(a.work[i, to] * p.data[i]) if to != p.origin[i] else 0.0,
         *([] if period is None else [period.units[i, to]]))
        for i, to in np.argwhere(a.work > 0)
    ]  # fmt: skip
    columns = ["application", "from", "to", "units_per_time", "data_sent_per_time"]
    return pd.DataFrame(table, columns=columns + ["units_per_period"] * (period is not None))


def connections(a: Allocation) -> pd.DataFrame:
    """Return which connections to open, over which links, and the bandwidth of one."""
    p, (sites, _) = a.platform, a.platform.names
    table = [
        (sites[k], sites[to], a.connections[k, to], p.connection_bandwidth(k, to),
         " ".join(map(str, p.routes[k, to])))
        for k, to in np.argwhere(np.asarray(a.connections) > 0).tolist()
    ]  # fmt: skip
    return pd.DataFrame(table, columns=["from", "to", "connections", "bandwidth_of_one", "links"])


def picture(a: Allocation, table: pd.DataFrame, top: float) -> bytes:
    """Draw where each application's work goes, and what each method reaches of the bound."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sites, apps = a.platform.names
    size = 8 + 0.3 * len(sites), 2.5 + 0.3 * max(len(apps), len(table))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=np.minimum(size, 40), width_ratios=(2, 1), layout="constrained"
    )
    image = left.imshow(np.where(a.work > 0, a.work, np.nan).astype(float), aspect="auto")
    left.set_xticks(range(len(sites)), sites, rotation=90)
    left.set_yticks(range(len(apps)), apps)
    left.set(xlabel="computed at", ylabel="application", title=f"{a.method}: who computes what")
    figure.colorbar(image, ax=left, label="load units per time")
    right.barh(table.index, table["objective"])
    right.axvline(top, color="black", linestyle="--")
    right.set(xlabel="least work / priority", xlim=(0, None), title="methods; dashed: LP bound")
    right.invert_yaxis()
    return png_of(figure)


def main(args: argparse.Namespace) -> int:
    """Solve a platform by each method, say what to do by the first, and keep it if asked to."""
    reading = Reading.of(reading_of(args.reading))
    home = folder_of(args, "solve")
    p = read_platform(args.file)
    methods = names_of(args.compare, args.method, "LPRG")
    found, periods, rows = {}, dict[str, Period | None](), []
    top = bound(p)
    for name in methods:
        step(f"solving by {name}")
        found[name] = a = solve(p, name, args.seed, reading, most_seconds=args.seconds)
        periods[name] = one = None if a.is_relaxed else a.periodic(args.period)
        # a method that proves nothing is within the bound of the relaxed program
        gap = replace(a, upper=min(a.upper, top)).gap
        opened = np.asarray(a.connections).sum()
        kept = (str(one.length), float(one.objective)) if one else ("", np.nan)
        rows.append((name, a.objective, a.ratio, 0.0 if gap <= ROUNDING else gap, opened, *kept))
    columns = ["method", "objective", "ratio_to_lp", "gap", "connections", "period",
               "objective_in_periods"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns).set_index("method")
    first = found[methods[0]]
    print(f"{Path(args.file).name}: {p.clusters} sites, {p.applications} "
          f"applications; no schedule is better than {top:.6g} (LP)")  # fmt: skip
    print(f"\nwhat to compute where, by {methods[0]}")
    print(shown(amounts(first, periods[methods[0]]), index=False))
    print("\nconnections to open")
    print(shown(connections(first), index=False))
    if period := periods[methods[0]]:
        print(f"\nthe schedule repeats every T_p = {period.length} units of time; what is sent in "
              "one period is computed in the next")  # fmt: skip
    else:
        print("\na bound with broken connections: no schedule")
    print(f"\n{shown(table, na_rep='')}")
    print("\ngap: how far the optimum may lie above; every schedule passed its check")
    if home:
        step("drawing and writing")
        facts = {"file": Path(args.file).name, "reading": reading.changes(), "seed": args.seed,
                 "seconds": args.seconds, "bound": top}  # fmt: skip
        home.write("flows.png", picture(first, table, top))
        each = {f"{name}-work": amounts(a, periods[name]) for name, a in found.items()}
        each |= {f"{name}-connections": connections(a) for name, a in found.items()}
        write_tables(home, facts, {"summary": table, **each})
    return 0

"""Refuse a results folder that is not whole, or that contradicts the reference too often."""

import json
import sys
from pathlib import Path

from scipy.stats import binom


def faults(folder: Path) -> list[str]:
    """Return what is wrong with a results folder, nothing if it is whole."""
    record = json.loads((folder / "run.json").read_text("utf-8"))
    report = (folder / "report.html").read_text("utf-8")
    found = [f"problem: {problem}" for problem in record["problems"]]
    found += [
        f"run.json lists no {part}"
        for part in ("notebooks", "claims", "figures")
        if not record[part]
    ]
    for notebook in record["notebooks"]:
        if notebook["status"] != "ok" or not (folder / notebook["path"]).is_file():
            found.append(f"notebook {notebook['name']}: {notebook['status']} {notebook['error']}")
    for row in record["figures"]:
        is_table = (folder / "data" / f"{row['id']}.csv").is_file()
        if not (row["drawn"] or is_table or row["status"] == "cannot be reproduced"):
            found.append(f"figure {row['id']} was not drawn")
    said = [row for row in record["claims"] if row["agreement"].startswith(("agrees", "CONTRA"))]
    against = [row["id"] for row in said if row["agreement"] == "CONTRADICTS"]
    if len(against) > binom.ppf(0.99, len(said), 0.05):
        found.append(f"contradicts the reference beyond the error rate: {', '.join(against)}")
    changed = [row["id"] for row in record["claims"] if row["experiment"] != "as shipped"]
    if changed:
        what = f"another experiment than the shipped one: {', '.join(changed)}"
        found.append(f"{what} (python .ci/keep_experiments.py keeps those of new runs)")
    if not list((folder / "data").glob("*.csv")):
        found.append("no table in data/")
    if not report.rstrip().endswith("</html>"):
        found.append("report.html is cut short")
    return found


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    sys.exit("\n".join(wrong) if wrong else 0)

"""The scorecard at the end of a paper's notebook: a line per claim, its reasons folded."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim.study import claims, session
from dlsim.study.claims import SIDES, VERDICTS, Claim, Verdict
from dlsim.study.fingerprint import tabulate_experiments
from dlsim.study.measure import MEASURES
from dlsim.study.plain_text import WITHOUT_FORMULAS, shown_text
from dlsim.study.stats import ENDS
from dlsim.study.verdict import (
    VerdictRow,
    collect_claim_points,
    measure_claim,
    with_sentences,
    write_number,
)

if TYPE_CHECKING:
    from IPython.display import HTML

#: A claim takes what the other columns leave of the line; its end is cut until it is folded out.
#: In a narrow window, the verdict stands under the claim.
_STYLE = """<style>
.dlsim-scorecard { border-collapse: collapse; width: 100%; }
.dlsim-scorecard :is(th, td) { text-align: left; vertical-align: top; padding: 3px 6px; }
.dlsim-scorecard td { white-space: nowrap; }
.dlsim-scorecard td.claim { width: 100%; max-width: 0; white-space: normal; }
.dlsim-scorecard summary { overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  cursor: pointer; }
.dlsim-scorecard details[open] summary { white-space: normal; }
.dlsim-scorecard details p { margin: 6px 0; }
.dlsim-scorecard td.verdict { color: #1d1d1f; }
@media (max-width: 760px) {
  .dlsim-scorecard thead { display: none; }
  .dlsim-scorecard, .dlsim-scorecard tbody { display: block; }
  .dlsim-scorecard tr { display: flex; flex-wrap: wrap; padding: 4px 0; }
  .dlsim-scorecard td { padding: 1px 5px; white-space: normal; }
  .dlsim-scorecard td.number { flex: 0 0 2em; box-sizing: border-box; }
  .dlsim-scorecard td.claim { flex: 1 0 70%; max-width: calc(100% - 4em); width: auto; }
}
</style>"""


def scorecard_as_html(card: pd.DataFrame, *more: str) -> str:
    """Show verdicts of one paper, with further columns of `with_sentences` after the number."""
    rows: list[Any] = with_sentences(card).to_dict("records")
    columns: dict[str, Callable[[VerdictRow], str]] = {
        "no.": lambda row: _cell("number", row["id"].rpartition("-")[2]),
        **{name: partial(_more, name) for name in more},
        "claim": lambda row: f'<td class="claim">{_folded(row)}</td>',
        "verdict": _verdict,
        "for / open / against": lambda row: _cell("sides", _count_sides(row)),
        "the number that decides": lambda row: _cell("decides", write_interval(row)),
    }
    if any(row["reference"] for row in rows):
        columns["at full scale"] = lambda row: _cell("reference", _compare(row))
    head = "".join(f"<th>{shown_text(name)}</th>" for name in columns)
    lines = [f"<tr>{''.join(write(row) for write in columns.values())}</tr>" for row in rows]
    table = f'<table class="{WITHOUT_FORMULAS} dlsim-scorecard"><thead><tr>{head}</tr></thead>'
    return "\n".join([_STYLE, table, "<tbody>", *lines, "</tbody></table>"])


def _cell(name: str, text: str) -> str:
    return f'<td class="{name}">{shown_text(text)}</td>'


def _more(name: str, row: VerdictRow) -> str:
    return _cell("more", str(row[name]))


def _verdict(row: VerdictRow) -> str:
    """Show a verdict in colour and symbol, and say whose experiment it is of."""
    look = VERDICTS[row["verdict"]]
    text = " ".join(filter(None, [look.symbol, row["whose_experiment"], row["verdict"]]))
    style = f'style="background-color: {look.color}"'
    return f'<td class="verdict" {style}>{shown_text(text)}</td>'


def _is_measured(row: VerdictRow) -> bool:
    return row["points"] > 0 and row["verdict"] != "not checkable"


def _count_sides(row: VerdictRow) -> str:
    """Count the points for a claim, open, and against it."""
    return " / ".join(str(row[side]) for side in SIDES) if _is_measured(row) else ""


def write_interval(row: VerdictRow) -> str:
    """Write the number that decides a verdict, with its interval of 95 % and its unit."""
    if not _is_measured(row):
        return ""
    number, low, high = (write_number(row[end], row["unit"]) for end in ENDS)
    return f"{number}{f' [{low}, {high}]' * (low != high)} {row['unit']}".strip()


def _compare(row: VerdictRow) -> str:
    """Say the verdict at full scale, and whether this one agrees."""
    return ": ".join(filter(None, [row["reference"], row["agreement"]]))


def _folded(row: VerdictRow) -> str:
    """Show the sentence of a claim; what was measured, and the reasons, fold out."""
    source = f"{row['id']}, {row['where']}."
    source += f' The paper: "{row["quote"]}"' if row["quote"] else ""
    source += f" Printed: {row['printed']}." if row["printed"] else ""
    readings = f"It is {row['verdict']} {row['readings']}." if row["readings"] else ""
    texts = filter(None, [source, row["measured"], readings, row["reason"]])
    paragraphs = "".join(f"<p>{shown_text(text)}</p>" for text in texts)
    return f"<details><summary>{shown_text(row['claim'])}</summary>{paragraphs}</details>"


def show_scorecard(*columns: str) -> "HTML":
    """Write and show the verdicts on all claims of the paper, in the order of data/claims.toml.

    A claim is a line; what was measured, and the reasons, fold out under it.
    The points by which they were judged are written, too: data/<paper>-points.csv; and the digests
    of the experiments: data/<paper>-experiments.csv.
    At quick scale, under the default reading, the verdict at full scale stands beside.
    Claims that were not judged are shown as such.

    Parameters
    ----------
    *columns : str
        Further columns of the scorecard to show, such as "whose".
    """
    from IPython.display import HTML

    here = session.current()
    verdicts = [
        here.verdicts.get(claim.id) or measure_claim_without_frames(claim)
        for claim in claims.load_claims(here.paper)
    ]
    card = claims.tabulate(verdicts, **here.sample)
    here.folder_of_results.table(f"{here.paper}-claims", card)
    here.folder_of_results.table(f"{here.paper}-points", collect_claim_points())
    here.folder_of_results.table(f"{here.paper}-experiments", tabulate_experiments())
    return HTML(scorecard_as_html(claims.beside_reference(card), *columns))


def measure_claim_without_frames(claim: Claim) -> Verdict:
    """Judge a claim whose measure needs no frame; say of any other that it was not judged."""
    is_measurable = claim.id in MEASURES and not MEASURES[claim.id].frames
    return measure_claim(claim) if is_measurable else claims.judge_claim(claim)

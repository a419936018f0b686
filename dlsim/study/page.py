"""The report as one HTML page: pure functions from data to text.

Everything that comes from outside is escaped; pictures are embedded; there is no
script and no address of another machine in the page.
"""

import base64
import html
import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from urllib.parse import quote

import pandas as pd

from dlsim.files import read_bytes
from dlsim.study.claims import SYMBOLS
from dlsim.study.notebooks import NotebookResult
from dlsim.study.style import VERDICT_INK

_INK = "\n".join(
    f".v-{word.replace(' ', '-')} {{ background: {ink}; }}" for word, ink in VERDICT_INK.items()
)

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dlsim report</title>
<style>
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1rem 1.2rem 3rem; max-width: 64rem; background: #fff;
  color: #1d1d1f; font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; }
.headline { margin: 0 -1.2rem; max-width: none; padding: .7rem 1.2rem; background: #f3f5f7;
  font-weight: 600; border-bottom: 1px solid #d9dde1; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1.4rem 0 .6rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; border-bottom: 2px solid #1d1d1f; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
h4 { font-size: 1rem; margin: 0 0 .4rem; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: #00558c; }
code { font: .88em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  background: #f3f5f7; padding: .1em .35em; border-radius: 3px; overflow-wrap: anywhere; }
small, .quiet { color: #55595e; font-size: .88rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dl.facts dt { color: #55595e; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.note, .alarm { padding: .5rem .9rem; margin: .9rem 0; border-left: 4px solid; }
.note { border-color: #e69f00; background: #fdf6e7; }
.alarm { border-color: #d55e00; background: #fdefe7; }
.alarm p, .note p { max-width: none; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid
  #e2e5e8; overflow-wrap: break-word; }
th { font-weight: 600; border-bottom: 1.5px solid #1d1d1f; }
.verdict { display: inline-block; white-space: nowrap; padding: .1rem .5rem; border-radius: 1rem;
  font-weight: 600; }
$ink
.bar { display: flex; min-width: 12rem; }
.bar span { padding: .1rem .3rem; text-align: center; white-space: nowrap; overflow: hidden;
  border-right: 2px solid #fff; }
table.counts td:last-child { width: 70%; }
table.claims td:first-child { min-width: 7.5rem; }
.card { border: 1px solid #d9dde1; border-radius: 6px; padding: .9rem 1rem; margin: 0 0 1.1rem; }
.card img { display: block; max-width: min(100%, 44rem); height: auto; margin: .3rem auto .7rem; }
.status { float: right; margin-left: 1rem; color: #55595e; font-size: .88rem; }
nav { margin-bottom: .8rem; }
nav a { margin-right: 1rem; }
details { margin: .8rem 0; }
summary { cursor: pointer; }
@media (max-width: 44rem) {
  table.wide thead { display: none; }
  table.wide, table.wide tbody, table.wide tr, table.wide td { display: block; width: auto; }
  table.wide tr { border: 1px solid #d9dde1; border-radius: 6px; margin: 0 0 .8rem; }
  table.wide td { border: 0; padding: .25rem .7rem; }
  table.wide td:empty { display: none; }
  table.wide td[data-label]::before { content: attr(data-label) ": "; color: #55595e; }
}
@media print {
  body { font-size: 10.5pt; max-width: none; padding: 0; }
  .card, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  nav { display: none; }
  .verdict, .headline, .note, .alarm { print-color-adjust: exact; }
}
</style>
</head>
<body>
<p class="headline">$headline</p>
<h1>Divisible-load scheduling: what this run found</h1>
<nav><a href="#claims">Claims</a><a href="#figures">Figures</a>
<a href="#notebooks">Notebooks</a></nav>
$facts
$alarms
<h2 id="claims">Claims</h2>
$claims
<h2 id="figures">Figures</h2>
$figures
<h2 id="notebooks">Notebooks</h2>
$notebooks
<p class="quiet">Numbers behind every picture lie in <code>data/</code>, the pictures in
<code>figures/</code>, the record of this run in <code>run.json</code>.</p>
</body>
</html>
"""
)


@dataclass(frozen=True)
class FigureRow:
    """One row of data/figures.toml."""

    id: str
    paper: str
    printed: str
    title: str
    notebook: str
    status: str
    caption: str = ""
    expect: str = ""
    parameters: str = ""
    why: str = ""


@dataclass(frozen=True)
class Material:
    """Everything that the page shows."""

    folder: Path
    headline: str
    facts: Mapping[str, str]
    scale: str
    claims: pd.DataFrame
    figures: Sequence[FigureRow]
    papers: Mapping[str, Mapping[str, str]]
    notebooks: Sequence[NotebookResult]
    problems: Sequence[str]

    def result_of(self, row: FigureRow) -> NotebookResult | None:
        """Return what became of a figure's notebook in this run."""
        return next((result for result in self.notebooks if result.name == row.notebook), None)


_text = html.escape


def _tag(name: str, inner: str, **attributes: str) -> str:
    parts = "".join(f' {key.rstrip("_")}="{_text(value)}"' for key, value in attributes.items())
    return f"<{name}{parts}>{inner}</{name}>"


def _link(target: str, text: str) -> str:
    return _tag("a", _text(text), href=quote(target, safe="/#.-"))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], css: str = "wide") -> str:
    top = "".join(_tag("th", _text(name)) for name in head)
    body = "\n".join(
        _tag(
            "tr",
            "".join(
                _tag("td", cell, data_label=name) if cell else "<td></td>"
                for name, cell in zip(head, row, strict=True)
            ),
        )
        for row in rows
    ).replace("data_label", "data-label")
    return f'<table class="{css}"><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table>'


def _verdict(word: str) -> str:
    css = f"verdict v-{word.replace(' ', '-')}"
    return _tag("span", f"{SYMBOLS[word]} {_text(word)}", class_=css)


def _place(row: Mapping[Hashable, str]) -> str:
    """Name the place of a claim in its paper, linked to the figure that shows it."""
    return _link(f"#{row['figure']}", row["where"]) if row["figure"] else _text(row["where"])


def _bar(words: Sequence[str], most: int) -> str:
    """Render how many claims of a paper hold as one bar, a part per verdict."""
    parts = []
    for word, symbol in SYMBOLS.items():
        if count := words.count(word):
            css, share = f"v-{word.replace(' ', '-')}", f"flex: {count} 1 0"
            said = f"{symbol}&nbsp;{count}"
            parts.append(_tag("span", said, class_=css, style=share, title=f"{count} {word}"))
    width = f"width: {100 * len(words) / most:.1f}%"
    return _tag("div", "".join(parts), class_="bar", style=width)


def _overview(material: Material) -> str:
    """Render a bar per paper, each linked to its table."""
    verdicts = material.claims.groupby("paper", sort=False)["verdict"]
    groups = {str(paper): list(words) for paper, words in verdicts}
    most = max(map(len, groups.values()))
    rows = [
        (_link(f"#claims-{paper}", paper), str(len(words)), _bar(words, most))
        for paper, words in groups.items()
    ]
    keys = " ".join(map(_verdict, SYMBOLS))
    return _table(("Paper", "Claims", "Verdicts"), rows, "counts") + _tag("p", keys)


def _claims(material: Material) -> str:
    """Render the scorecard: an overview, then one table per paper."""
    if material.claims.empty:
        return "<p>This run judged no claims.</p>"
    parts = [_overview(material)]
    for paper, rows in material.claims.groupby("paper", sort=False):
        title = material.papers.get(str(paper), {}).get("title", str(paper))
        parts.append(_tag("h3", _text(title), id=f"claims-{paper}"))
        cells = [
            (
                f"{_text(row['id'])}<br><small>{_place(row)}</small>",
                f"{_text(row['claim'])}<br><small>{_text(row['whose'])}</small>",
                _text(row["printed"]),
                _text(row["measured"]),
                f"{_verdict(row['verdict'])}<br><small>{_text(row['reason'])}</small>",
            )
            for row in rows.to_dict("records")
        ]
        head = ("Where", "Claim, in our words", "Printed", "Measured, 95 % interval", "Verdict")
        parts.append(_table(head, cells, "wide claims"))
    return "\n".join(parts)


def _picture(path: Path, title: str) -> str:
    data = base64.b64encode(read_bytes(path)).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" alt="{_text(title)}">'


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _card(row: FigureRow, result: NotebookResult, material: Material) -> str:
    """Render one figure with its caption, its expectation and its sources."""
    picture = material.folder / "figures" / f"{row.id}.png"
    table = material.folder / "data" / f"{row.id}.csv"
    parts = [
        _tag("span", _text(row.status), class_="status"),
        _tag("h4", f"{_text(row.printed)}: {_text(row.title)}"),
    ]
    if picture.is_file():
        parts.append(_picture(picture, row.title))
    else:
        parts.append(
            _tag("p", _text(row.why or "No picture was drawn in this run."), class_="quiet")
        )
    if result.status != "ok":
        what = f"Its notebook {result.status}: a picture here may be from an earlier run."
        parts.append(_tag("div", _tag("p", what), class_="alarm"))
    for label, text in (
        ("", row.caption),
        ("What the prose says: ", row.expect),
        ("Parameters: ", row.parameters),
    ):
        if text:
            parts.append(_tag("p", (_tag("b", label) if label else "") + _text(text)))
    sources = []
    if table.is_file():
        sources.append(_link(_relative(table, material.folder), "numbers (CSV)"))
    if result.path:
        sources.append(_link(_relative(result.path, material.folder), "executed notebook"))
    command = f"dlsim reproduce {row.id} --scale {material.scale}"
    sources.append(f"again: {_tag('code', _text(command))}")
    parts.append(_tag("p", " · ".join(sources), class_="quiet"))
    return _tag("section", "\n".join(parts), class_="card", id=row.id)


def _figures(material: Material) -> str:
    """Render a card per figure of this run, and list all others."""
    parts, others = [], []
    for paper in dict.fromkeys(row.paper for row in material.figures):
        cards = []
        for row in (row for row in material.figures if row.paper == paper):
            result = material.result_of(row)
            if result is not None:
                cards.append(_card(row, result, material))
            else:
                status = f"{row.status}: {row.why}" if row.why else row.status
                cells = (row.id, row.printed, row.title, status)
                others.append([_text(cell) for cell in cells])
        if cards:
            about = material.papers.get(paper, {})
            parts.append(_tag("h3", _text(about.get("title", paper))))
            parts.append(_tag("p", _text(about.get("source", "")), class_="quiet"))
            parts += cards
    if others:
        table = _table(("Id", "In the paper", "What it shows", "Status"), others)
        summary = f"{len(others)} figures and tables that are not part of this run"
        parts.append(f"<details><summary>{summary}</summary>\n{table}</details>")
    return "\n".join(parts)


def duration(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _notebooks(material: Material) -> str:
    if not material.notebooks:
        return "<p>This run had no notebooks.</p>"
    rows = []
    for result in material.notebooks:
        name = _text(result.name)
        if result.path:
            name = _link(_relative(result.path, material.folder), result.name)
        status = f"{result.status}, taken from an earlier run" if result.reused else result.status
        rows.append((name, _text(status), duration(result.seconds), _text(result.error)))
    return _table(("Notebook", "Status", "Duration", "What went wrong"), rows)


def _alarms(material: Material) -> str:
    """Render what must be known before reading on."""
    parts = [
        _tag("div", _tag("p", f"<b>{_text(r.name)} {_text(r.status)}.</b> {_text(r.error)}"),
             class_="alarm")
        for r in material.notebooks
        if r.status != "ok"
    ]  # fmt: skip
    parts += [_tag("div", _tag("p", _text(what)), class_="alarm") for what in material.problems]
    if material.scale == "quick":
        what = (
            "This is a quick run: it shows the shape of every figure. "
            "For numbers to quote, use <code>--scale paper</code>."
        )
        parts.append(_tag("div", _tag("p", what), class_="note"))
    return "\n".join(parts)


def render(material: Material) -> str:
    """Write the page."""
    facts = dict(material.facts) | {"Written": time.strftime("%Y-%m-%d %H:%M %Z")}
    rows = "".join(_tag("dt", _text(k)) + _tag("dd", _text(v)) for k, v in facts.items() if v)
    return _PAGE.substitute(
        ink=_INK,
        headline=_text(material.headline),
        facts=_tag("dl", rows, class_="facts"),
        alarms=_alarms(material),
        claims=_claims(material),
        figures=_figures(material),
        notebooks=_notebooks(material),
    )

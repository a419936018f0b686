"""Texts of files are shown as they are: functions, tables, and every place that makes markup."""

import ast
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from IPython.core.getipython import get_ipython
from matplotlib.figure import Figure

from dlsim import explore
from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.realtime import POLICIES
from dlsim.record import find_records
from dlsim.study import plain_text, shown_label, shown_table, shown_text, verdict
from dlsim.study.pages import PageFrame, set_formulas, write_page
from dlsim.study.plain_text import table_as_html, visible_text
from dlsim.study.plots import plot_gantt
from tests.explore.test_panel import Shown
from tests.helpers.hostile_text import HOSTILE, UNSEEN, Outline, outline_of_markdown, seen, words_of

ROOT = Path(__file__).parents[2]
ALL = (*HOSTILE, *UNSEEN)
MARKS = "".join(chr(code) for code in range(32, 127) if not chr(code).isalnum())


# ------------------------------------------------------------------ functions


def test_markdown_and_html_show_a_text_as_it_is():
    for text in ALL:
        for around in ("{}", "- user {} (2 of 3 jobs).", "**{}**: {}"):
            source = around.replace("{}", shown_text(text))
            for outline in (outline_of_markdown(source), Outline(source)):
                assert outline.faults == [], source
                assert seen(text) in words_of(outline)


@given(st.text(st.sampled_from(MARKS + "ab1\n\t\x00\u202e\ud800é–\u00a0"), max_size=12))
def test_markdown_shows_any_text_as_it_is(text):
    for source in (shown_text(text), f"- of {shown_text(text)}, so"):
        outline = outline_of_markdown(source)
        assert outline.faults == []
        said = outline.text.strip("\n").removeprefix("of ").removesuffix(", so")
        assert said.split() == visible_text(text).split()


def test_a_text_as_it_stands_would_act():
    """The check of these tests finds what is not escaped."""
    found = [text for text in HOSTILE if outline_of_markdown(text).faults]
    assert len(found) >= 9
    assert [text for text in HOSTILE if Outline(text).faults]


def test_a_label_of_a_picture_is_its_text():
    """matplotlib shows what is left when it has taken formulas and escapes out."""
    figure = Figure()
    for text in ALL:
        drawn = figure.text(0, 0, shown_label(text))
        assert drawn._preprocess_math(drawn.get_text()) == (visible_text(text), False)
    figure.canvas.draw()


def hostile_table():
    frame = pd.DataFrame({"n": 1.5, "text": ALL}, index=pd.Index(ALL, name=HOSTILE[0]))
    return frame.rename(columns={"text": HOSTILE[1]}).rename_axis(columns=HOSTILE[2])


SHOWN = [
    lambda table: shown_table(table).to_html(),
    lambda table: shown_table(table).format({"n": "{:.1%}"}).to_html(),
    lambda table: shown_table(table.T).to_html(),
    lambda table: shown_table(table.set_index("n", append=True)).to_html(),
    lambda table: verdict.style_table(table).to_html(),
    table_as_html,
    lambda table: table_as_html(table.T),
]


@pytest.mark.parametrize("show", SHOWN)
def test_a_table_shows_cells_and_labels_as_they_are(show):
    with pd.option_context("display.max_colwidth", None, "display.max_columns", None):
        text = show(hostile_table())
    outline = Outline(text)
    assert outline.faults == []
    assert "1.5" in outline.text or "150.0%" in outline.text
    for one in HOSTILE:
        assert seen(one) in words_of(outline)
    assert Outline(set_formulas(text)).faults == []  # on a page, too


SHARES = pd.DataFrame(
    np.arange(6.0).reshape(2, 3) / 7,
    pd.MultiIndex.from_tuples([("a", 0.1), ("b", 0.25)], names=["k", "x"]),
    pd.MultiIndex.from_tuples([("p", 1), ("p", 2), ("q", 1)], names=["c", None]),
)
MIXED = {"a": [0.1, np.nan], "b": ["x", "y"], "c": [1, 2], "d": [True, False]}


LOOKS = [
    (SHARES, lambda style: style.format("{:.4g}")),
    (pd.DataFrame(MIXED), lambda style: style.hide().format(precision=4, na_rep="-")),
    (pd.DataFrame(columns=["a", "b"]), lambda style: style),
]


def test_a_table_of_plain_words_looks_as_pandas_makes_it():
    for table, look in LOOKS:
        plain, ours = (look(one).set_uuid("u") for one in (table.style, shown_table(table)))
        assert ours.to_html().replace(' class="mathjax_ignore"', "") == plain.to_html()


def test_a_table_without_a_helper_would_act():
    assert Outline(hostile_table().style.to_html()).elements[1:]
    assert Outline(hostile_table()._repr_html_()).formulas


def test_a_notebook_shows_tables_of_pandas_without_formulas(monkeypatch):
    class Shell:
        display_formatter = DisplayFormatter()

    assert get_ipython() is None
    monkeypatch.setattr("IPython.get_ipython", Shell)
    plain_text.show_tables_without_formulas()
    data, _ = Shell.display_formatter.format(hostile_table())
    assert Outline(data["text/html"]).faults == []
    assert data.keys() == {"text/html", "text/plain"}


# ------------------------------------------------------------------ where texts appear


def test_rows_and_tasks_of_a_timing_diagram_may_have_any_name():
    times = {"alpha": 1.0, "send_start": 0.0, "send_end": 1.0, "compute_end": 500.0}
    ax = plot_gantt(pd.DataFrame({"task": ALL, "node": ALL, **times}), nodes=ALL)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert [name.replace(r"\$", "$") for name in names[1:]] == [visible_text(one) for one in ALL]
    ax.get_figure().canvas.draw()


def test_a_policy_whose_label_is_a_formula_is_refused():
    for label in ("$x$", r"a $\href{x}{y}$", "two\nlines"):
        with pytest.raises(InputError, match=r"the label .* stands in pictures"):
            find_records("policy", [f"{label}=EDF-DLT"], POLICIES)


def test_a_panel_says_what_it_was_given_as_text():
    shown = Shown(explore.queue)
    for text in HOSTILE:
        shown.controls["cpu"].value = text
        outline = Outline(shown.text("error"))  # a widget of the kind HTML sets no formulas
        assert outline.elements == ['<div class="dlsim-error" role="status" aria-live="polite">']
        said = f"Not drawn: cpu must be numbers with commas between them, got {text!r}"
        assert said in outline.text


def test_a_page_says_alarms_and_facts_as_text(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title")])
    data = {"image/png": "iVBORw0KGgo="}
    picture = nbformat.v4.new_output(
        "display_data", data, metadata={"image/png": {"alt": HOSTILE[2]}}
    )
    book.cells.append(nbformat.v4.new_code_cell("1", outputs=[picture]))
    nbformat.write(book, tmp_path / "a.ipynb")
    facts = {one: one for one in HOSTILE}
    home = OutputFolder(tmp_path / "out")
    path = write_page(home, tmp_path / "a.ipynb", "a.html", PageFrame(list(HOSTILE), facts))
    text = path.read_text()
    assert "<math" not in text
    assert text.count("<svg") == 0
    for one in HOSTILE:
        assert seen(one) in words_of(Outline(text))


# ------------------------------------------------------------------ every place that makes markup

#: What makes a text HTML, Markdown or another kind that a browser does not show as it is.
MAKERS = {"HTML", "HTMLMath", "Markdown", "MarkdownText", "Latex", "Math", "SVG", "Javascript"}
MAKERS |= {"Label", "display_html", "display_markdown", "display_latex"}
#: Where an argument is no literal, and why that is right: texts of files in it are escaped.
KNOWN = {
    ("90-scorecard", "Markdown(describe_rates(rates))"): "numbers of a table of ours",
    ("65-your-log", "Markdown('\\n'.join((f'- {line}' for line in lines)))"): "shown_text",
    ("66-your-platform", "Markdown('\\n'.join((f'- {line}' for line in lines)))"): "shown_text",
    ("80-your-own", "MarkdownText(explain(claim, verdict.row))"): (
        "sentences of a claim that the user writes"
    ),
    ("75-lesson", "HTML(f'<details><summary>Numbers for the answer</summary>{text}</details>')"): (
        "escaped"
    ),
    ("study/verdict", "MarkdownText('\\n\\n'.join(paragraphs))"): "sentences of claims.toml",
    ("study/pages", "HTML(f'<article class=\"{WITHOUT_FORMULAS}\">{text}</article>')"): (
        "a template of jinja that escapes"
    ),
    ("explore/panel_view", "widgets.HTML(f'{_STYLE}<b>{html.escape(self.panel.title)}</b>')"): (
        "escaped"
    ),
    ("explore/panel_view", "widgets.HTML(f'<dl>{entries}</dl>', layout=widgets.Layout("
     "display='none'))"): "escaped",
    ("explore/panel_view", "Javascript(_SCRIPT)"): "a constant",
    ("study/scorecard", "HTML(scorecard_as_html(claims.beside_reference(card), *columns))"): (
        "every text of it passes shown_text"
    ),
}  # fmt: skip
#: Functions by which an object says what it is in a notebook.
KNOWN_REPRS = {
    ("explore/panel_view", "_repr_mimebundle_"): "widgets and a picture",
    ("study/verdict", "_repr_markdown_"): "of MarkdownText, above",
    ("theory/errata", "_repr_markdown_"): "texts of the package",
    ("theory/relations", "_repr_latex_"): "formulas of the package",
    ("theory/statements", "_repr_markdown_"): "texts of the package",
    ("theory/steps", "_repr_markdown_"): "texts of the package",
}
#: What is called `style` and is no table's: how a widget looks.
WIDGET_STYLES = {"control.style.description_width"}


def sources():
    """Yield the name and the code of every module of the package and of every notebook."""
    for path in sorted((ROOT / "dlsim").rglob("*.py")):
        yield path.relative_to(ROOT / "dlsim").with_suffix("").as_posix(), path.read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        code = (cell.source for cell in cells if cell.cell_type == "code")
        yield path.stem, "\n".join(code)


def is_literal(call):
    """Whether all arguments of a call are constants."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    return all(isinstance(one, ast.Constant) for one in arguments)


def places(name, text):
    """Return the styled tables, the makers of markup and the representations of a source."""
    tables, makers, reprs = set(), set(), set()
    tree = ast.parse(text)
    of_styles = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == "style"
    ]
    widgets = {ast.unparse(one.value) for one in of_styles if ast.unparse(one) in WIDGET_STYLES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "style":
            tables |= {(name, ast.unparse(node))} - {(name, one) for one in widgets}
        if isinstance(node, ast.Call) and not is_literal(node):
            function = ast.unparse(node.func).rpartition(".")[2]
            if function in MAKERS:
                makers.add((name, ast.unparse(node)))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_repr_"):
            reprs.add((name, node.name))
    return tables, makers, reprs


def test_every_place_that_makes_markup_is_known():
    """A new one must show texts of files by dlsim.study.plain_text; then it is named above."""
    found = [set(), set(), set()]
    for name, text in sources():
        for kind, more in zip(found, places(name, text), strict=True):
            kind |= more
    tables, makers, reprs = found
    assert tables == {("study/plain_text", "shown.style")}, "use dlsim.study.shown_table"
    assert makers == KNOWN.keys()
    assert reprs == KNOWN_REPRS.keys()


def test_a_new_place_is_found_and_looks_of_widgets_are_none():
    for text, kind in (
        ("heaviest.style.format('{}')", 0),
        ("pd.DataFrame({'a': facts}).style", 0),
        ("display(Markdown(f'- {user}'))", 1),
        ("IPython.display.HTML(text)", 1),
        ("class A:\n    def _repr_html_(self):\n        return self.name", 2),
    ):
        assert places("x", text)[kind], text
    text = "Markdown('')\nwidgets.HTML()\ncontrol.style.description_width = 'initial'\nstyle.use()"
    assert places("x", text) == (set(), set(), set())

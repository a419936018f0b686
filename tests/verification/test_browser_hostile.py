"""Notebooks 65 and 66 with scripts in place of names in JupyterLab, in a real browser.

JupyterLab trusts what it has executed itself, and a notebook that it has saved. A text of a file
that reaches the page as HTML, or as a link in a formula, acts there with the user's rights.
"""

import nbformat
import pytest

from tests.helpers.hostile_text import HOSTILE
from tests.verification.hostile_inputs import THIRDS, hostile_csv, hostile_toml
from tests.verification.lab_browser import Notebook, browser, serve_lab, set_parameters

__all__ = ["browser"]
pytestmark = pytest.mark.browser

#: Writes a file on the server by its own API, as the page may.
WRITE = (
    "window.PWN=1;fetch(location.origin+'/api/contents/PWN',{method:'PUT',headers:"
    "{'X-XSRFToken':(document.cookie.match(/_xsrf=([^;]*)/)||[])[1]},"
    "body:JSON.stringify({type:'file',format:'text',content:'x'})})"
)
SCRIPTS = [f'<img src=x onerror="{WRITE}">', rf"a $\href{{javascript:{WRITE}}}{{y}}$"]
TEXTS = [*SCRIPTS, *THIRDS]
INPUTS = {
    "65-your-log": ("log", "my.csv", hostile_csv(TEXTS), {"ignore": list(HOSTILE[:1])}),
    "66-your-platform": ("platform", "my.toml", hostile_toml(TEXTS), {"hours": 2.0}),
}
#: Elements of HTML and Markdown in outputs that act, and links and formulas, which these notebooks
#: do not show themselves. (In plain text JupyterLab makes links of its own, such as of warnings.)
FOUND = """() => { const outputs = '.jp-OutputArea-output.jp-RenderedHTMLCommon';
  const acting = 'script, svg, img, a[href], mjx-container, em, del, [onerror], [onmouseover]';
  return [...document.querySelectorAll(outputs)].flatMap(
    one => [...one.querySelectorAll(acting)].map(part => part.outerHTML.slice(0, 200))); }"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Serve the notebooks, with hostile files as their parameters; yield folder and address."""
    folder = tmp_path_factory.mktemp("lab")
    with serve_lab(folder) as address:
        for name, (parameter, file, text, more) in INPUTS.items():
            path = folder / file
            path.write_text(text)
            given = {parameter: str(path), **more}
            set_parameters(folder / "copy" / "notebooks" / f"{name}.ipynb", **given)
        yield folder, address


def look_at_all(book):
    """Bring every cell into view, so that its outputs are in the page; return what acts there."""
    found = []
    count = book.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length")
    for place in range(count):
        book.page.evaluate(
            "async i => { const book = window.jupyterapp.shell.currentWidget.content;"
            " book.activeCellIndex = i; await book.scrollToItem(i, 'start'); }",
            place,
        )
        book.page.wait_for_timeout(200)
        found += book.page.evaluate(FOUND)
    book.page.wait_for_timeout(1000)
    return found


def nothing_ran(book, folder):
    """Nothing has run or written a file, and no output has a link or a formula that could."""
    found = look_at_all(book)
    ran = book.page.evaluate("window.PWN ?? null")
    assert (ran, list(folder.rglob("PWN*")), found) == (None, [], [])


@pytest.mark.parametrize("name", INPUTS)
def test_texts_of_a_file_run_no_script_now_and_when_opened_again(browser, lab, name):
    folder, address = lab
    book = Notebook(browser, address, name)
    try:
        assert book.outputs_of("error") == []
        nothing_ran(book, folder)
        book.save()
        book.show("conclusions.display(")
        book.keep("hostile")
    finally:
        book.page.close()
    saved = nbformat.read(folder / "copy" / "notebooks" / f"{name}.ipynb", as_version=4)
    assert sum(bool(cell.get("outputs")) for cell in saved.cells) >= 5
    again = Notebook(browser, address, name, run=False)
    try:
        assert again.outputs_of("text/html") != []
        nothing_ran(again, folder)
    finally:
        again.page.close()

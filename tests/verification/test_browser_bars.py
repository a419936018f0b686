"""Progress bars in JupyterLab, in a real browser: a bar that ends at once leaves no error."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.verification.lab_browser import Notebook, browser, serve_lab

__all__ = ["browser"]
pytestmark = pytest.mark.browser

#: Bars of both kinds, most of them gone before a browser can have drawn them.
MANY_BARS = """
import time
from dlsim import progress
progress.SILENT_SECONDS, progress.MIN_REPORT_INTERVAL = 0.0, 0.01
for pause in [0.0, 0.001, 0.01, 0.05, 0.1] * 4:
    with progress.timed_bar("compiling", 20):
        time.sleep(0.02 + pause)
    with progress.progress_bar("a sweep", 40) as show:
        for done in range(40):
            show(done)
            time.sleep(pause / 40)
"""
#: A bar that can be seen until somebody types a word.
ONE_BAR = """
with progress.timed_bar("compiling", 20):
    print(input())
"""
KERNEL = {"name": "python3", "display_name": "Python 3"}
#: Text of all outputs in the page.
SHOWN = "() => [...document.querySelectorAll('.jp-OutputArea-output')].map(o => o.innerText)"


def test_bars_are_seen_and_end_without_an_error(browser, tmp_path):
    with serve_lab(tmp_path) as address:
        path = tmp_path / "copy" / "notebooks" / "bars.ipynb"
        cells = [new_code_cell(source) for source in (MANY_BARS, ONE_BAR)]
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), path)
        book = Notebook(browser, address, "bars", run=False)
        page = book.page
        try:
            page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
            field = page.locator(".jp-Stdin-input")
            field.wait_for()
            page.get_by_text(re.compile(r"^compiling: +[1-9]\d*%.* of about 20 s$")).wait_for()
            book.keep("seen")
            field.fill("all bars are gone")
            field.press("Enter")
            page.locator(".jp-OutputArea-output", has_text="all bars are gone").last.wait_for()
            page.wait_for_timeout(1000)  # for what is still being drawn
            assert book.errors == []
            assert book.outputs_of("error") == book.outputs_of("stderr") == []
            texts = {text.strip() for text in page.evaluate(SHOWN)}
            assert texts == {"", "all bars are gone"}
        finally:
            page.close()

"""Every notebook in JupyterLab, in a real browser: as ``dlsim lab`` copies it, and run whole.

See `lab_browser`. The results of all papers appear beside the copy, where 90-scorecard, the
last notebook, finds them.
"""

import nbformat
import pytest

from dlsim import files
from dlsim.study.notebook_process import first_problem
from tests.verification.lab_browser import Notebook, browser, serve_lab, set_parameters

__all__ = ["browser"]
pytestmark = pytest.mark.browser

#: The notebooks that repeat an experiment, and how often; the others have their own size.
FEW_RUNS = dict.fromkeys(("20", "21", "30", "31", "40", "41", "50", "51", "60", "61"), 2)
FEW_RUNS |= {"25": 3}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Serve a copy of the notebooks; return its folder and its address."""
    folder = tmp_path_factory.mktemp("lab")
    with serve_lab(folder) as address:
        for path in (folder / "copy" / "notebooks").glob("*.ipynb"):
            if runs := FEW_RUNS.get(path.name[:2]):
                set_parameters(path, runs=runs)
        yield folder / "copy", address


@pytest.mark.parametrize("name", list(files.suite_notebooks()))
def test_every_cell_runs(browser, copy, name):
    folder, address = copy
    book = Notebook(browser, address, name)
    try:
        book.save()
        book.keep("end")
        executed = nbformat.read(folder / "notebooks" / f"{name}.ipynb", as_version=4)
        assert first_problem(executed) == ""
        assert any(cell.get("outputs") for cell in executed.cells)
        assert book.errors == []
        assert book.strangers == []
    finally:
        book.page.close()

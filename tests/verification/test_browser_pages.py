"""Pages and book in a real browser: two widths, two themes, by keyboard, and by axe-core.

Deselected by default, see `lab_browser`. With DLSIM_QUICK_RESULTS=FOLDER of a whole
``dlsim reproduce`` every page in it is looked at as well.
"""

import os
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs 'browser'")

from dlsim.output_folder import OutputFolder  # noqa: E402
from dlsim.study.book import write_book  # noqa: E402
from dlsim.study.claims import read_scorecard, reference_of  # noqa: E402
from dlsim.study.pages import write_results_page  # noqa: E402
from tests.helpers.made_up_run import META, ended, make_run  # noqa: E402
from tests.study.test_report import verdicts  # noqa: E402
from tests.verification.lab_browser import browser, faults  # noqa: E402, F401

pytestmark = pytest.mark.browser
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
LOCAL = ("file:", "data:")
#: Leaves the first sections of the reference: of all of them axe-core would read for minutes.
SHORTER = "[...document.querySelectorAll('section > section')].slice(3).forEach(e => e.remove())"
PAGES = ("report.html", "notebooks/20-mcdf.html")
BOOK = ("index", "api", "search", "notebooks/20-mcdf", "notebooks/90-scorecard")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "latest"
    make_run(folder, verdicts().assign(scale="quick"))
    write_results_page(folder, [ended(folder), ended(folder, "90-scorecard")], META)
    return folder


@pytest.fixture(scope="module")
def book(run):
    pytest.importorskip("furo", reason="needs the extra 'docs'")
    return write_book(OutputFolder(run)).parent


def new_tab(browser):  # noqa: F811
    """A page, and a list of what those opened in it should not have said or asked for."""
    page, wrong = browser.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(LOCAL) or wrong.append(asked.url))
    page.on("requestfailed", lambda asked: wrong.append(f"not found: {asked.url}"))
    yield page, wrong
    page.close()


#: For all that is only looked at: a tab each would take longer than most looks.
tab = pytest.fixture(new_tab, scope="module")
own_tab = pytest.fixture(new_tab)


def opened(tab, path, width, theme):
    page, wrong = tab
    page.goto("about:blank")  # ends what the page before still asks for
    wrong.clear()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.goto(path.as_uri())
    return page, wrong


def looked_at(tab, path, width, theme):
    page, wrong = opened(tab, path, width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []
    page.evaluate(SHORTER)
    assert faults(page) == []


@pytest.mark.parametrize(("width", "theme"), LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_the_pages_can_be_read_by_all(tab, run, name, width, theme):
    looked_at(tab, run / name, width, theme)


def executed_pages():
    """Return the pages of a whole run, if there is one."""
    folder = os.environ.get("DLSIM_QUICK_RESULTS")
    if not folder:
        return [pytest.param(None, marks=pytest.mark.skip(reason="needs DLSIM_QUICK_RESULTS"))]
    pages = [Path(folder, "report.html"), *sorted(Path(folder, "notebooks").glob("*.html"))]
    return [pytest.param(page.resolve(), id=page.stem) for page in pages]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", executed_pages())
def test_an_executed_page_fits_its_window_and_needs_no_other_host(tab, path, width):
    page, wrong = opened(tab, path, width, "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []
    if path.stem == "report":
        assert faults(page) == []


@pytest.mark.parametrize(("width", "theme"), LOOKS)
@pytest.mark.parametrize("name", BOOK)
def test_the_book_can_be_read_by_all(tab, book, name, width, theme):
    looked_at(tab, book / f"{name}.html", width, theme)


def test_claims_are_filtered_and_the_theme_is_switched_by_keyboard(own_tab, run):
    page, wrong = opened(own_tab, run / "report.html", 1280, "light")
    shown = "() => [...document.querySelectorAll('tr[data-verdict]')]"
    shown += ".filter(r => r.checkVisibility())"
    shown += ".filter(r => r.dataset.paper == 'mcdf').map(r => r.dataset.verdict)"
    shipped = read_scorecard(reference_of("mcdf"))
    words = [word.replace(" ", "-") for word in shipped["verdict"]]
    page.keyboard.press("Tab")  # to the first link, which leads past the contents
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate(shown) == []
    page.locator(".all-claims > summary").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(shown) == words
    page.locator("select.by-verdict").focus()
    page.keyboard.type("contradicted")
    assert page.evaluate(shown) == ["contradicted"] * words.count("contradicted")
    page.locator("select.by-paper").focus()
    page.keyboard.press("End")
    assert page.evaluate(shown) == []
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(".theme select").focus()
    page.keyboard.type("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.locator(".contents summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    link = "document.activeElement.getAttribute('href')"
    assert page.evaluate(link) == "notebooks/20-mcdf.html"
    assert wrong == []

"""The panels and a paper's notebook in JupyterLab, in a real browser."""

import pytest

from dlsim import explore
from tests.verification.lab_browser import (
    PATIENCE,
    Notebook,
    browser,
    serve_lab,
    set_parameters,
    sync_api,
)

__all__ = ["browser"]
pytestmark = pytest.mark.browser

PAPER = "30-inserted-idle-time"
EXPLORE = "70-explore"
#: Few points of each figure: all that is drawn and said is there, sooner.
SMALL = {"loads": [0.5, 1.0], "taus": [8, 1]}
PANELS = tuple(explore.PANELS)
#: JupyterLab's own: pictures of a cell get no name (a sentence below says it), and what is wider
#: than the notebook, a table or a line of code, is scrolled by keys though it is no stop of Tab.
OF_THE_LAB = {"image-alt", "scrollable-region-focusable"}
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with serve_lab(folder) as address:
        set_parameters(folder / "copy" / "notebooks" / f"{PAPER}.ipynb", runs=2, jobs=1, **SMALL)
        yield address


@pytest.fixture(scope="module")
def explorer(browser, lab):
    book = Notebook(browser, lab, EXPLORE)
    yield book
    book.page.close()


def state_of(output):
    """The picture's address and the call of a panel in its cell."""
    image = output.locator("img.widget-image, .widget-image").first
    return image.get_attribute("src"), output.locator(".dlsim-link code").inner_text()


@pytest.mark.parametrize("name", PANELS)
def test_a_slider_moved_by_keyboard_changes_picture_and_call(explorer, name):
    output = explorer.show(f"explore.{name}(")
    output.locator(".dlsim-link code").wait_for()
    before, call = state_of(output)
    assert call.startswith(f"explore.{name}(")
    explorer.keep(name)
    if name == "queue":  # its sliders are behind a button
        output.get_by_role("button", name="more settings").click()
    handle = output.locator(".widget-slider .noUi-handle").first
    handle.focus()
    explorer.page.keyboard.press("ArrowLeft")
    link = output.locator(".dlsim-link code")
    sync_api.expect(link).not_to_have_text(call, timeout=PATIENCE)
    after, moved = state_of(output)
    assert moved.startswith(f"explore.{name}(")
    assert after != before
    assert output.locator(".dlsim-error").count() == 0
    explorer.page.keyboard.press("Tab")  # the next control is one key away
    there = output.evaluate(
        "(box) => box.contains(document.activeElement) &&"
        " !document.activeElement.classList.contains('noUi-handle-lower-first')"
    )
    assert there
    if name == "queue":
        output.get_by_role("button", name="more settings").click()


def test_readings_and_their_menus_open_by_keyboard(explorer):
    output = explorer.show("explore.timing(")
    link = output.locator(".dlsim-link code")
    link.wait_for()
    call = link.inner_text()
    output.get_by_role("button", name="readings").focus()
    explorer.page.keyboard.press("Enter")
    menu = output.locator("select").last
    menu.wait_for()
    menu.focus()  # JupyterLab takes the arrow keys of a closed menu
    for key in ("Space", "ArrowDown", "Enter"):
        explorer.page.keyboard.press(key)
        explorer.page.wait_for_timeout(500)
    sync_api.expect(link).not_to_have_text(call, timeout=PATIENCE)
    assert "reading={'an_nodes': 'best'}" in link.inner_text()
    output.get_by_role("button", name="readings").click()
    output = explorer.show("explore.wan(")
    output.get_by_role("button", name="words").focus()
    explorer.page.keyboard.press("Enter")
    sync_api.expect(output.locator("dt").first).to_be_visible()
    explorer.keep("words")
    explorer.page.keyboard.press("Enter")


#: Where the picture begins below the top of its cell, how tall the panel is, and whether picture
#: and controls stand side by side.
PLACES = """box => { const at = part => box.querySelector(part).getBoundingClientRect();
  const cell = box.closest('.jp-Cell').getBoundingClientRect(), picture = at('.dlsim-picture');
  return {top: picture.top - cell.top, height: at('.dlsim-panel').height,
    beside: picture.left - at('.dlsim-field').right, width: picture.width}; }"""


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize(("width", "side_bar"), [(1280, True), (1024, False), (1024, True)])
def test_controls_and_picture_are_on_one_screen(explorer, name, width, side_bar):
    explorer.dress(width, "light", height=800, side_bar=side_bar)
    output = explorer.show(f"explore.{name}(")
    output.locator(".dlsim-link code").wait_for()
    explorer.page.wait_for_timeout(500)
    explorer.keep(f"{name}-{width}-{'open' if side_bar else 'closed'}")
    box = output.locator(".dlsim-panel")
    found = output.evaluate(PLACES)
    assert box.count() == 1
    assert found["top"] <= 200
    assert found["height"] <= 560
    assert found["beside"] >= 0
    assert found["width"] >= 350


#: What reaches beyond the right edge of the notebook, but what is scrolled on purpose.
BEYOND = """part => { const end = document.querySelector('.jp-Notebook').getBoundingClientRect();
  return [...document.querySelectorAll(part + ' *')].filter(one => {
    const box = one.getBoundingClientRect(); return box.width && box.right > end.right + 1;
  }).map(one => `${one.tagName} ${one.className}`); }"""


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_a_panel_can_be_read_by_all(explorer, name, width, theme):
    explorer.dress(width, theme)
    output = explorer.show(f"explore.{name}(")
    output.locator(".dlsim-link code").wait_for()
    place = output.evaluate("box => box.closest('.jp-Cell').dataset.windowedListIndex")
    part = f'.jp-Notebook .jp-Cell[data-windowed-list-index="{place}"] .jp-OutputArea-output'
    explorer.keep(f"{name}-{width}-{theme}")
    assert explorer.page.evaluate(BEYOND, part) == []
    assert explorer.faults(part) == []


def test_the_explorer_shows_no_error_and_asks_no_other_host(explorer):
    assert explorer.outputs_of("error") == []
    assert explorer.outputs_of("stderr") == []
    assert explorer.errors == []
    assert explorer.strangers == []


def test_a_paper_notebook_runs_to_its_end(browser, lab):
    book = Notebook(browser, lab, PAPER)
    try:
        assert book.outputs_of("error") == []
        assert len(book.outputs_of("image/png")) >= 8
        book.page.locator(".jp-OutputArea-output img").first.wait_for()
        book.keep("end")
        for width, theme in LOOKS:
            book.dress(width, theme)
            for part in ("judge", "show_scorecard", "map_of_readings"):
                book.show(f"{part}(")
                book.keep(f"{part}-{width}-{theme}")
                found = book.faults(".jp-Cell :is(.jp-RenderedMarkdown, .jp-OutputArea-output)")
                assert [one for one in found if one[0] not in OF_THE_LAB] == []
        assert book.errors == []
        assert book.strangers == []
    finally:
        book.page.close()

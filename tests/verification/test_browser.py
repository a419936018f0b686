"""The panels and a paper's notebook in JupyterLab, in a real browser.

Deselected by default: ``pytest -n0 -m browser`` runs them, with the extra ``browser`` and Debian's
chromium. With DLSIM_SCREENSHOTS=FOLDER what was seen is kept there.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest

from dlsim.cli import lab_environment

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs 'browser'")

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("DLSIM_CHROMIUM", "/usr/bin/chromium")
PAPER = "30-inserted-idle-time"
EXPLORE = "70-explore"
#: Few points of each figure: all that is drawn and said is there, sooner.
SMALL = {"loads": [0.5, 1.0], "taus": [8, 1]}
#: Longest wait for anything, in milliseconds (DLSIM_PATIENCE in seconds): kernels are compiled.
PATIENCE = 1000 * int(os.environ.get("DLSIM_PATIENCE", 600))
TOKEN = "t"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
PANELS = ("timing", "schedules", "wan", "grid", "queue")
#: JupyterLab's own: pictures of a cell get no name (a sentence below says it), and what is wider
#: than the notebook, a table or a line of code, is scrolled by keys though it is no stop of Tab.
OF_THE_LAB = {"image-alt", "scrollable-region-focusable"}
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
OWN = ("config", "data", "runtime", "workspaces", "settings", "ipython")


#: All that is not a violation axe-core would describe too, which takes longer than to find it.
FAULTS = """async part => {
  window.lookAnew();
  const asked = {preload: false, resultTypes: ['violations'], selectors: false};
  const found = await axe.run(part || document, asked);
  return found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => [one.id, one.nodes[0].html.slice(0, 200)]); }"""

#: Contrast takes most of axe-core's time. Text of one look (its own and that of all it stands in)
#: has one contrast, so the first is measured, in every box that is placed by itself.
ONE_OF_A_LOOK = """() => {
  const rule = axe._audit.rules.find(one => one.id === 'color-contrast'), all = rule.matches;
  const looks = ['color', 'backgroundColor', 'backgroundImage', 'opacity', 'fontSize',
    'fontWeight', 'textShadow'];
  let known, numbers, met;
  const look = node => {
    if (!node) return '';
    if (!known.has(node)) {
      const style = getComputedStyle(node);
      const box = ['static', 'relative'].includes(style.position) ? '' : known.size;
      const words = [look(node.parentElement), box, ...looks.map(one => style[one])].join(' ');
      if (!numbers.has(words)) numbers.set(words, numbers.size);
      known.set(node, numbers.get(words));
    }
    return known.get(node);
  };
  rule.matches = (node, ...more) => {
    if (!all.call(rule, node, ...more)) return false;
    const before = met.size;
    return met.add(look(node)).size > before;
  };
  window.lookAnew = () => { known = new Map(); numbers = new Map(); met = new Set(); }; }"""


def copy_notebook(name, folder, **values):
    """Copy a notebook with other parameters, beside the pictures that it links."""
    book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    cell = next(cell for cell in book.cells if "parameters" in cell.metadata.get("tags", ()))
    cell.source += "".join(f"\n{key} = {value!r}" for key, value in values.items())
    (folder / "notebooks").mkdir(exist_ok=True)
    nbformat.write(book, folder / "notebooks" / f"{name}.ipynb")


def faults(page, part=None):
    """What hinders somebody in (a part of) a page, by axe-core: the serious and critical."""
    if not page.evaluate("'lookAnew' in window"):
        page.evaluate(axe.Axe().axe_script)
        page.evaluate(ONE_OF_A_LOOK)
    return page.evaluate(FAULTS, part)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "data" / "figures", folder / "data" / "figures")
    copy_notebook(EXPLORE, folder, out=str(folder / "explore"))
    copy_notebook(PAPER, folder, out=str(folder / "paper"), runs=2, jobs=1, **SMALL)
    return folder


@pytest.fixture(scope="module")
def lab(folder):
    """A JupyterLab that no user's settings leak into; its address."""
    own = {name: folder / "own" / name for name in OWN}
    for path in own.values():
        path.mkdir(parents=True)
    usual = lab_environment(folder)
    inherited = {key: value for key, value in usual.items() if key != "MPLBACKEND"}
    environment = inherited | {
        "JUPYTER_CONFIG_DIR": str(own["config"]), "JUPYTER_DATA_DIR": str(own["data"]),
        "JUPYTER_RUNTIME_DIR": str(own["runtime"]), "IPYTHONDIR": str(own["ipython"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(own["workspaces"]),
        "JUPYTERLAB_SETTINGS_DIR": str(own["settings"]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with open(folder / "lab.log", "wb") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_for_server(server, f"{address}/api/status?token={TOKEN}", folder / "lab.log")
            yield address
        finally:
            server.terminate()
            server.wait(60)


def wait_for_server(server, status, log):
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(status, timeout=5).close()
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs chromium at {CHROMIUM}; DLSIM_CHROMIUM names another place")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Notebook:
    """A notebook in the browser, all its cells run, and what went wrong meanwhile."""

    def __init__(self, browser, lab, name):
        self.name, self.look = name, None
        self.page = browser.new_page(viewport={"width": 1400, "height": 1000})
        self.errors, self.strangers = [], []
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._met(request.url))
        self.page.on("websocket", lambda socket: self._met(socket.url))
        self.page.goto(
            f"{lab}/lab/workspaces/auto-{name}/tree/notebooks/{name}.ipynb?token={TOKEN}&reset"
        )
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.wait_for_function(
            "() => { const w = window.jupyterapp?.shell.currentWidget;"
            " return w?.context?.isReady &&"
            " w.sessionContext?.session?.kernel?.status === 'idle'; }"
        )
        ran = self.page.evaluate(
            "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells');"
            " return window.jupyterapp.shell.currentWidget.content.widgets"
            ".filter(c => c.model.type === 'code').map(c => c.model.sharedModel.getSource()"
            ".trim() === '' || c.model.executionCount !== null); }"
        )
        assert ran
        assert all(ran)

    def _console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location})")

    def _met(self, url):
        parts = urlparse(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.strangers.append(url)

    def show(self, source):
        """Bring the code cell with this source to the top; return its output."""
        place = self.page.evaluate(
            "async source => { const book = window.jupyterapp.shell.currentWidget.content;"
            " const i = book.widgets.findIndex(c => c.model.type === 'code' &&"
            " c.model.sharedModel.getSource().includes(source));"
            " book.activeCellIndex = i; await book.scrollToItem(Math.max(i - 1, 0), 'start');"
            " return i; }",
            source,
        )
        assert place >= 0
        cell = self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{place}"]')
        cell.wait_for()
        return cell.locator(".jp-OutputArea-output").last

    def outputs_of(self, kind):
        """All outputs of one type, from the model: cells out of sight are not in the page."""
        return self.page.evaluate(
            "kind => window.jupyterapp.shell.currentWidget.content.widgets.flatMap(c =>"
            " c.model.type === 'code' ? c.model.outputs.toJSON().filter("
            " o => o.output_type === kind || o.name === kind || (o.data && kind in o.data)) : [])",
            kind,
        )

    def dress(self, width, theme, height=1000, side_bar=False):
        """Give the lab a size, a theme, and a side bar or none."""
        if self.look == (width, theme, height, side_bar):
            return
        self.look = width, theme, height, side_bar
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(
            "async ([theme, open]) => { const lab = window.jupyterapp;"
            " if (open) lab.shell.expandLeft('filebrowser'); else lab.shell.collapseLeft();"
            " lab.shell.collapseRight();"
            " await lab.commands.execute('apputils:change-theme', {theme}); }",
            [f"JupyterLab {theme.title()}", side_bar],
        )
        light = "false" if theme == "dark" else "true"
        self.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")

    def faults(self, part):
        """What hinders somebody in a part of the page, by axe-core: the serious and critical."""
        return faults(self.page, part)

    def keep(self, word):
        shots = os.environ.get("DLSIM_SCREENSHOTS")
        if shots:
            Path(shots).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(shots) / f"{self.name}-{word}.png"))


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


#: Where the picture begins below the top of its cell, how tall the panel is, and whether the
#: picture stands beside the controls.
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


def test_a_refused_value_leaves_no_picture_that_looks_valid(explorer):
    output = explorer.show("explore.queue(")
    field, picture = output.locator("input[type=text]").first, output.locator("img.widget-image")
    output.locator(".dlsim-link code").wait_for()
    height = picture.bounding_box()["height"]
    usual = field.input_value()
    for text, opacity in (("1, 9", "0.12"), (usual, "1")):
        field.fill(text)
        field.press("Enter")
        sync_api.expect(picture).to_have_css("opacity", opacity, timeout=PATIENCE)
        error = output.locator(".dlsim-error")
        sync_api.expect(error).to_have_count(int(text != usual), timeout=PATIENCE)
        explorer.keep(f"stale-{opacity}")
        assert picture.bounding_box()["height"] == height


def test_a_button_saves_the_picture_and_says_where(explorer, folder):
    output = explorer.show("explore.timing(")
    output.get_by_role("button", name="SVG").click()
    kept = output.locator(".dlsim-kept code")
    kept.wait_for()
    path = Path(kept.inner_text())
    assert path.name.startswith("explore-timing")
    assert path.read_bytes().startswith(b"<?xml")
    path.unlink()


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


def test_the_explorer_shows_no_error_and_asks_nobody_else(explorer):
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

"""JupyterLab on the copy of ``dlsim lab`` in a real browser, for tests marked ``browser``.

The tests are deselected by default: ``pytest -n0 -m browser`` runs them, with the extra ``browser``
and Debian's chromium. With DLSIM_SCREENSHOTS=FOLDER they keep pictures of what they saw.
"""

import contextlib
import os
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

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs 'browser'")

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("DLSIM_CHROMIUM", "/usr/bin/chromium")
#: Longest wait for anything, in milliseconds (DLSIM_PATIENCE in seconds): kernels are compiled.
PATIENCE = 1000 * int(os.environ.get("DLSIM_PATIENCE", 600))
TOKEN = "t"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
#: Folders of Jupyter that hold the settings of a user, by their variables.
USER_FOLDERS = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "IPYTHONDIR": "ipython",
}


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


def faults(page, part=None):
    """What hinders somebody in (a part of) a page, by axe-core: the serious and critical."""
    if not page.evaluate("'lookAnew' in window"):
        page.evaluate(axe.Axe().axe_script)
        page.evaluate(ONE_OF_A_LOOK)
    return page.evaluate(FAULTS, part)


def set_parameters(path, **values):
    """Change parameters of a notebook, as its user would in the first code cell."""
    book = nbformat.read(path, as_version=4)
    cell = next(cell for cell in book.cells if "parameters" in cell.metadata.get("tags", ()))
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in values.items())
    nbformat.write(book, path)


@contextlib.contextmanager
def serve_lab(folder):
    """Run ``dlsim lab`` with a copy of the notebooks in a folder; yield its address.

    Settings of the user have no effect.
    """
    own = {name: folder / "user" / value for name, value in USER_FOLDERS.items()}
    for path in own.values():
        path.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
    environment |= {name: str(path) for name, path in own.items()}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-P", "-m", "dlsim", "lab", "--dir", str(folder / "copy"), "--no-browser",
        "--port", str(port), "--allow-root", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}", "--LabApp.expose_app_in_browser=True",
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
    """A notebook in the browser, all its cells run or none, and what went wrong meanwhile."""

    def __init__(self, browser, lab, name, run=True):
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
        if run:
            self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def _console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location})")

    def _met(self, url):
        parts = urlparse(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.strangers.append(url)

    def save(self):
        """Save the notebook with the state of its widgets."""
        self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")

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

"""The panels as pages of a folder: what they hold, and that they move without a server."""

import io
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.pages import TOURS, fields_of
from tests.scale import WHOLE

NAME = "timing"
#: Fewer stops, among them those that the panel opens with.
SMALL = {"used": (3, 4), "st": (20.0, 40.0)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        if not WHOLE:
            patch.setitem(TOURS, NAME, SMALL)
        yield folder, explore.export(folder, [NAME])


def said_on(page):
    return json.loads(re.search(r"said = (\[.*\]);\n", page)[1])


def test_every_stop_has_the_sentence_and_the_picture_of_its_panel(site):
    folder, sizes = site
    tour, page = TOURS[NAME], (folder / f"{NAME}.html").read_text("utf-8")
    said = said_on(page)
    assert len(said) == np.prod([len(stops) for stops in tour.values()])
    picked = list(zip(itertools.product(*tour.values()), said, strict=True))[:: len(said) // 3]
    for values, (words, place) in picked:
        figure, png = explore.timing.drawn(**dict(zip(tour, values, strict=True)))
        assert words == " ".join(figure.get_suptitle().split())
        ours, plain = (imread(io.BytesIO(one))[..., :3] for one in
                       ((folder / place).read_bytes(), png))  # fmt: skip
        assert np.abs(ours - plain).max() <= 17 / 255  # colours are rounded
    opened = " ".join(explore.timing.figure().get_suptitle().split())
    assert re.search(r'<p id="words"[^>]*>([^<]*)</p>', page)[1] == opened
    files = [path for path in folder.rglob("*.*") if path.name != "index.html"]
    assert sizes == {NAME: sum(p.stat().st_size for p in files if NAME in str(p))}
    assert sizes[NAME] < 1e6
    assert f"{sizes[NAME] / 1e6:.1f} MB" in (folder / "index.html").read_text("utf-8")


def test_a_page_asks_nobody_else(site):
    for path in site[0].glob("*.html"):
        page = path.read_text("utf-8")
        assert "://" not in page
        links = re.findall(r'(?:href|src)="([^"]+)"', page)
        assert links
        assert all((path.parent / link).is_file() for link in links)


@pytest.mark.parametrize("name", TOURS)
def test_every_tour_begins_with_the_panel_as_it_opens(name):
    panel = explore.__getattr__(name)
    for (key, stops), field in zip(TOURS[name].items(), fields_of(panel), strict=True):
        checked = [panel.values(**{key: stop})[key] for stop in stops]
        assert checked == list(stops)
        assert checked[field["start"]] == panel.values()[key]


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(InputError, match="panel must be one of timing, schedules"):
        explore.export(tmp_path / "new", ["timming"])
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="choose another folder"):
        explore.export(tmp_path, [NAME])


@pytest.mark.browser
def test_a_slider_moved_by_keyboard_changes_sentence_and_picture(site):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
    chromium = os.environ.get("DLSIM_CHROMIUM", "/usr/bin/chromium")
    if not Path(chromium).exists():
        pytest.skip(f"needs chromium at {chromium}")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in (1280, 390):
            page, errors, asked = browser.new_page(viewport={"width": width, "height": 900}), [], []
            page.on("console", lambda m, e=errors: e.append(m.text) if m.type == "error" else None)
            page.on("request", lambda request, a=asked: a.append(request.url))
            page.goto((site[0] / f"{NAME}.html").as_uri())
            words, picture = page.locator("#words"), page.locator("#picture")
            before = words.inner_text(), picture.get_attribute("src")
            page.keyboard.press("Tab")  # the way back
            page.keyboard.press("Tab")
            page.keyboard.press("ArrowRight")
            said = said_on((site[0] / f"{NAME}.html").read_text("utf-8"))
            used, st = (list(stops) for stops in TOURS[NAME].values())
            place = used.index(4) * len(st) + st.index(40.0)
            assert [words.inner_text(), picture.get_attribute("src")] == said[place]
            assert before == tuple(said[place - len(st)])
            assert page.evaluate("document.getElementById('picture').naturalWidth") > 500
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if shots := os.environ.get("DLSIM_SCREENSHOTS"):
                page.screenshot(path=f"{shots}/page-{width}.png", full_page=True)
            assert errors == []
            assert all(url.startswith("file:") for url in asked)
        browser.close()

"""What 66-your-platform shows: its cells, in one namespace, against numbers worked elsewhere."""

import html
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from tests.helpers.steady_platforms import as_instance
from tests.twins import steady as twin
from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "66-your-platform.ipynb"

TWO_SITES = """[[cluster]]
name = "fast"
speed = 10
gateway = 20
router = "a"
[[cluster]]
name = "slow"
speed = 2
gateway = 20
router = "b"
[[application]]
origin = "fast"
priority = 1
work = 1
data = 1
[[application]]
origin = "slow"
priority = 1
work = 1
data = 1
[[link]]
name = "wan"
bandwidth = 3
max_connect = 2
start = "a"
end = "b"
"""


def run(folder, text, **given):
    """Run the notebook on a platform; return the names that its cells leave, and what they show."""
    if text:
        (folder / "my.toml").write_text(text)
        given["platform"] = str(folder / "my.toml")
    given |= {"out": str(folder / "results"), "hours": 4.0}
    return in_one_space(NOTEBOOK, folder, given)


@pytest.fixture(scope="module")
def two_sites(tmp_path_factory):
    return run(tmp_path_factory.mktemp("platform"), TWO_SITES)


def gain_of(seen, change):
    gains = seen[0]["gains"].set_index("change")["gain"]
    return gains[change]


def test_two_sites_by_hand(two_sites):
    """In all 12 units an hour for two applications; two connections carry at most 6 of them."""
    names, _ = two_sites
    assert names["upper"] == pytest.approx(6)
    found = names["found"].set_index("method")["objective"]
    assert found.pop("LPRR") in (pytest.approx(5), pytest.approx(6))  # it rounds at random
    assert found.to_dict() == pytest.approx({"MILP": 6, "G": 4, "LPR": 5, "LPRG": 6})
    assert names["rates"].to_numpy().sum(axis=1) == pytest.approx([6, 6])
    assert names["busy"] == pytest.approx([10, 2])
    assert "**Every application can get at least 6 units" in names["lines"][0]
    assert "this is the optimum" in names["lines"][0]


def test_changes_of_two_sites_by_hand(two_sites):
    """A tenth of a speed is shared by both; the network has room, so that it brings nothing."""
    assert gain_of(two_sites, "10 % more speed, fast") == pytest.approx(0.5)
    assert gain_of(two_sites, "10 % more speed, slow") == pytest.approx(0.1)
    assert gain_of(two_sites, "a connection more, a - b") == pytest.approx(0)
    assert gain_of(two_sites, "10 % more own link, slow") == pytest.approx(0)
    assert "10 % more speed, fast brings most: +0.5." in html.unescape(two_sites[0]["lines"][2])


def test_a_connection_more_by_hand(tmp_path):
    """One connection brings the slow site 3 units and 2 of its own; another one 6 in all."""
    seen = run(tmp_path, TWO_SITES.replace("max_connect = 2", "max_connect = 1"))
    assert seen[0]["best"].objective == pytest.approx(5)
    assert gain_of(seen, "a connection more, a - b") == pytest.approx(1)
    table = pd.read_csv(tmp_path / "results" / "data" / "your-platform-changes.csv")
    assert table["gain"].tolist() == sorted(table["gain"], reverse=True)
    assert "a connection more, a - b brings most: +1." in html.unescape(seen[0]["lines"][2])


def test_every_change_is_the_optimum_by_brute_force(two_sites):
    names, _ = two_sites
    gains = names["gains"].set_index("change")["objective"]
    for change, platform in names["changes"]:
        exact = twin.brute_force(as_instance(platform))
        assert gains[change] == pytest.approx(float(exact)), change


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The notebook on the graph that stands in it."""
    return run(tmp_path_factory.mktemp("graph"), "")


def test_the_graph_of_the_notebook(example):
    names, shown = example
    assert names["sites"] == ["north", "south", "east", "west"]
    assert shown["platform-04"]["speed"].tolist() == [100, 40, 10, 5]
    gains = names["gains"]
    assert {"a new link, east - west", "a connection more, north - hub"} <= set(gains["change"])
    assert (gains["gain"] > -1e-9).all()  # more of anything harms no application in the optimum
    best = names["best"]
    assert best.objective == pytest.approx(names["now"])
    assert np.all(names["busy"] <= names["wan"].speed * (1 + 1e-9))


def test_the_brokers_serve_the_same_day(example):
    names, _ = example
    days = [broker.applications[["origin", "load"]] for broker in names["brokers"].values()]
    pd.testing.assert_frame_equal(*days)
    completed = names["done"].groupby("method").size()
    assert completed.to_dict() == names["served"].set_index("method")["completed"].to_dict()


def test_links_without_ends_are_not_extended_and_that_is_said(tmp_path):
    routes = '[[route]]\nfrom = "fast"\nto = "slow"\nlinks = ["wan"]\n'
    routes += '[[route]]\nfrom = "slow"\nto = "fast"\nlinks = ["wan"]\n'
    text = TWO_SITES.replace('start = "a"\nend = "b"\n', "").replace('router = "a"\n', "")
    seen = run(tmp_path, text.replace('router = "b"\n', "") + routes)
    assert "No new links are tried" in seen[1]["platform-13 said"]
    assert "a connection more, wan" in set(seen[0]["gains"]["change"])
    assert seen[0]["best"].objective == pytest.approx(6)


def test_a_file_that_is_no_platform_is_refused_by_line(tmp_path):
    with pytest.raises(InputError, match=r"my\.toml, .*speed"):
        run(tmp_path, TWO_SITES.replace("speed = 10", 'speed = "quick"'))

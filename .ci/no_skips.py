"""Pytest plugin for an environment that holds every extra: a skipped test is a failure.

Expected failures stay what they are. Where RAN names the JUnit file of an earlier run, tests that
were not skipped there are not run again.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest


def _address(nodeid):
    """Return class and name of a test as a JUnit file has them."""
    path, bracket, parameters = nodeid.partition("[")
    first, *others = path.split("::")
    *places, name = [first.removesuffix(".py").replace("/", "."), *others]
    return ".".join(places), name + bracket + parameters


def pytest_collection_modifyitems(config, items):
    """Deselect what ran before."""
    if not (place := os.environ.get("RAN")):
        return
    cases = ElementTree.parse(Path(place)).iter("testcase")
    ran = {(c.get("classname"), c.get("name")) for c in cases if c.find("skipped") is None}
    again = [item for item in items if _address(item.nodeid) in ran]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if _address(item.nodeid) not in ran]


def _refuse(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where every extra is installed: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Turn a skipped test into a failed one."""
    return _refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Turn a module that skips itself into a failed one."""
    return _refuse((yield))

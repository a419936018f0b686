"""Pytest plugin for an environment that holds every extra: a skipped test is a failure.

Only what needs a CUDA device may be skipped, and what needs OpenCL on a processor for which PoCL
builds nothing; expected failures stay what they are. Where RAN names the JUnit file of an earlier
run, tests that were not skipped there are not run again.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

#: What no installation brings: reasons for which a test may be skipped.
EXCUSED = ("CUDA", "PoCL as installed by pip does not know every processor")


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
    why = str(report.longrepr)
    if report.skipped and not hasattr(report, "wasxfail") and not any(x in why for x in EXCUSED):
        report.outcome = "failed"
        report.longrepr = f"skipped where every extra is installed: {why}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Turn a skipped test into a failed one."""
    return _refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Turn a module that skips itself into a failed one."""
    return _refuse((yield))

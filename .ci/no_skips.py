"""Pytest plugin for an environment that holds every extra: a skipped test is a failure.

Only what needs a CUDA device may be skipped; expected failures stay what they are.
"""

import pytest


def _refuse(report):
    if report.skipped and not hasattr(report, "wasxfail") and "CUDA" not in str(report.longrepr):
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

"""Pytest plugin for an environment whose versions are pinned: a warning is a failure."""

FILTERS = [
    "error",
    "ignore:vert. bool was deprecated:matplotlib.MatplotlibDeprecationWarning",
    "ignore:The copy keyword is deprecated",
    # threads of a Dask cluster draw random numbers while a strategy draws an example
    "ignore:Do not use the `random` module inside strategies",
]


def pytest_configure(config):
    """Add the filters before those that a test names itself."""
    for one in FILTERS:
        config.addinivalue_line("filterwarnings", one)

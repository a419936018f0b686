"""What every test of the study begins without: figures and sessions that another one left open."""

import matplotlib.pyplot as plt
import pytest

from dlsim.study import session


@pytest.fixture(autouse=True)
def _nothing_left_open():
    yield
    plt.close("all")
    session._OPEN.clear()

"""Every value of every switch draws a picture in every panel."""

import pytest

from dlsim import explore
from tests.scale import some_of


@pytest.mark.parametrize("name", explore.PANELS)
def test_each_switch_draws(name):
    panel = explore.PANELS[name]
    for switch, options in panel.switches.items():
        for option in some_of(options[1:]):
            panel.picture(reading={switch: option})

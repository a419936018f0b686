"""Every value of every switch and the ends of every control draw a picture in every panel."""

import pytest

from dlsim import explore
from dlsim.explore.controls import Menu, Slider, StopSlider
from tests.explore.test_panel import draws_or_says_why_not, values_of_call
from tests.helpers.scale import LONG, some_of


@pytest.mark.parametrize("name", explore.PANELS)
def test_each_switch_draws(name):
    panel = explore.PANELS[name]
    for switch, options in panel.switches.items():
        for option in some_of(options[1:]):
            panel.picture(reading={switch: option})


def ends_of(control):
    if isinstance(control, Slider):
        return (control.low, control.high)
    if isinstance(control, StopSlider):
        return (control.stops[0], control.stops[-1])
    if isinstance(control, Menu):
        return control.options[-1:]
    high = min(control.high, 1e6)
    return ((control.low,), (high,) * control.most)


@pytest.mark.parametrize("name", explore.PANELS)
def test_each_control_at_its_ends_draws_or_says_why_not(name):
    panel = explore.PANELS[name]
    for number, control in enumerate(panel.all_controls.values()):
        ends = ends_of(control)
        for value in ends if LONG >= 1 else ends[number % len(ends) :][:1]:
            given = {control.name: value}
            assert values_of_call(panel.call(**given), panel) == panel.values(**given)
            draws_or_says_why_not(panel, given)

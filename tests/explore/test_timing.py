"""The panel of one load says what the hand case of paper M says."""

from fractions import Fraction

import numpy as np
import pytest

from dlsim import explore
from dlsim.errors import InputError

#: N = 4, Cms = Cps = 1, ST = 3, SC = 2, sigma = 21: E = 47, 35, 233/7, 171/5 (by hand).
C2 = {"nodes": 4, "sigma": 21.0, "cms": 1.0, "cps": 1.0, "st": 3.0, "sc": 2.0}
TIMES = [47.0, 35.0, float(Fraction(233, 7)), float(Fraction(171, 5))]


def test_timing_of_the_hand_case():
    for used, deadline, said in (
        (1, 50.0, "On 1 of 4 nodes the load ends at 47, in time: 1 would do, 3 are the fastest"),
        (1, 46.0, "ends at 47, too late: 2 would do, 3 are the fastest (33.29)."),
        (2, 34.0, "ends at 35, too late: 3 would do, 3 are the fastest (33.29)."),
        (3, 33.0, "ends at 33.29, too late: no number of the 4 would do, 3 are the fastest"),
        (4, 34.0, "ends at 34.2, too late: 3 would do, 3 are the fastest (33.29). Beyond 3 one"),
        (4, 35.0, "in time: 2 would do, 3 are the fastest (33.29). Beyond 3 one more set-up "
                  "costs more than the share it takes over: 1 share comes out at or below zero."),
    ):  # fmt: skip
        assert said in explore.timing.sentence(used=used, deadline=deadline, **C2)


def test_timing_draws_both_curves_and_the_shares():
    figure, _ = explore.timing.picture(used=4, deadline=34.0, **C2)
    diagram, time, cost = figure.axes
    shares = [text.get_text() for text in diagram.get_yticklabels()]
    # alpha = (73, 29, 7, -4) / 105
    by_hand = ["node 1: 69.5 %", "node 2: 27.6 %", "node 3: 6.67 %", "node 4: -3.81 %"]
    assert shares == ["link", *by_hand]
    drawn = {tuple(line.get_xdata()): line.get_ydata() for line in time.lines[:3]}
    assert drawn[(1, 2, 3)] == pytest.approx(TIMES[:3])
    assert drawn[(4,)] == pytest.approx(TIMES[3:])  # hollow: a formula, no schedule
    node_time = np.concatenate([cost.lines[0].get_ydata(), cost.lines[2].get_ydata()])
    assert node_time == pytest.approx(np.multiply(TIMES, [1, 2, 3, 4]))
    labels = [label.get_text().split() for label in time.get_xticklabels()]
    assert ["3", "fewest", "in", "time", "fastest"] in labels
    assert ["4", "used"] in labels


def test_the_reading_of_all_nodes_leaves_the_slow_ones_out():
    assert "On 3 of 4 nodes the load ends at 33.29" in explore.timing.sentence(
        used=4, deadline=34.0, reading={"an_nodes": "best"}, **C2
    )


def test_more_nodes_used_than_there_are_is_refused():
    with pytest.raises(InputError, match="used must be at most nodes=2, got 3"):
        explore.timing.picture(nodes=2, used=3)

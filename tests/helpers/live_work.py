"""What the tests of a live cluster compute on its workers."""

import threading
import time

from dlsim.live.calibration import MeasuredCosts, Measurement
from dlsim.live.job import Job
from dlsim.live.loads import as_load

#: Tests with workers in their own process let functions go on with this event.
GO = threading.Event()


def count_words(text):
    return len(text.split())


def list_numbers(items):
    return list(items)


def list_slowly(items):
    """A hundredth of a second for every item."""
    time.sleep(0.01 * len(items))
    return list(items)


def wait_for_go(items):
    assert GO.wait(60)
    return list(items)


def raise_at_seven(items):
    if 7 in items:
        raise ArithmeticError("seven cannot be computed")
    return sum(items)


def return_generator(items):
    return (item for item in items)


def concatenate(parts):
    return [item for part in parts for item in part]


def raise_in_combine(parts):
    raise KeyError("these do not combine")


def exact_costs(per_unit=1.0, start_up=0.0):
    """Return costs measured without any noise."""
    costs = MeasuredCosts()
    for k in range(20):
        units = 1.0 + k % 5
        seconds = start_up + per_unit * units
        costs.add_piece(Measurement(units, seconds, seconds), 20)
    return costs


def new_job(planner, units, deadline, now=0.0, number=0, costs=None):
    """A load of so many units that is cut for a planner, not yet promised."""
    costs = costs or exact_costs()
    load = as_load(range(units))
    job = Job(
        None, number, "f", list_numbers, None, load, costs, costs.ratios, deadline, arrival=now
    )
    job.due = now + deadline
    planner.cut_into_pieces(job, [(0, units)])
    return job

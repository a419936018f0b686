"""The panel of the CPU-GPU queue: hand cases, equalities that can be proved, its labels."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.cpugpu import Machine, simulate
from dlsim.errors import InputError
from dlsim.explore.queue import application_table, job_table
from tests.helpers.scale import scale_count

PANEL = explore.queue

WARM = {"known": "every run time"}
COLD = {"queue": [1] * 4, "cpu": [40], "gpu": [10]}
THREE = {"queue": [1, 2, 3], "cpu": [100, 15, 5], "gpu": [10, 10, 50]}


def draw(**given):
    """Return the sentence, the axes of the two schedules, and those of the history."""
    figure, sentence = PANEL.picture(**given)
    return sentence, figure.axes[:2], figure.axes[2]


def runs(ax):
    """(row, start, end) of every block, rows named by the axis."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    boxes = [patch.get_bbox() for patch in ax.patches]
    found = [(names[round((b.y0 + b.y1) / 2)], b.x0, b.x1) for b in boxes]
    return sorted(found, key=lambda run: (run[0], run[1]))


def labels(ax):
    """Texts in the blocks, from left to right."""
    return [text.get_text() for text in sorted(ax.texts, key=lambda t: t.get_position())]


# ------------------------------------------------------------------------ hand cases


def test_cold_start_by_hand():
    """4 x A(40/10), nothing known: gpu 0-10, cpu 0-40 to learn, gpu 10-20, gpu 20-30."""
    words, (one, other), learned = draw(**COLD, rival="gpu-only")
    assert runs(one) == [("cpu0", 0, 40), ("gpu0", 0, 10), ("gpu0", 10, 20), ("gpu0", 20, 30)]
    assert labels(one) == ["A\nR2*", "A\nR3", "A\nR2", "A\nR3"]
    assert [end for _, _, end in runs(other)] == [10, 20, 30, 40]
    assert words == (
        "history ends at 40 s, as gpu-only does; 2 of 4 jobs were placed to learn their run times."
    )
    assert [text.get_text() for text in learned.texts] == ["n=3", "n=1"]
    assert one.get_title(loc="left") == "history: end 40 s, mean wait 7.5 s, 1 late"


def test_warm_start_by_hand():
    """A gpu 0-10, B cpu 0-15, C waits for the CPU until 15; preferred: B waits, C runs at 0."""
    words, (one, other), _ = draw(**THREE, **WARM, rival="preferred")
    assert runs(one) == [("cpu0", 0, 15), ("cpu0", 15, 20), ("gpu0", 0, 10)]
    assert runs(other) == [("cpu0", 0, 5), ("gpu0", 0, 10), ("gpu0", 10, 20)]
    assert words == "history ends at 20 s, as preferred does."
    assert one.get_title(loc="left") == "history: end 20 s, mean wait 5 s, 0 late"


def test_tie_goes_to_the_preferred_device_by_hand():
    """A(100/10) B(20/10): 20 on the CPU ties with 10 + 10, and joins the GPU's sub-queue."""
    _, (one, _), _ = draw(queue=[1, 2], cpu=[100, 20], gpu=[10, 10], **WARM)
    assert runs(one) == [("gpu0", 0, 10), ("gpu0", 10, 20)]
    assert labels(one) == ["A\nR3*", "B\nR4q"]


def test_speed_up_shortens_the_gpu_only():
    table = application_table((8.0, 6.0), (4.0, 3.0), 2.0)
    assert table.to_dict("list") == {"cpu_time": [8, 6], "gpu_time": [2, 1.5]}
    words, (one, _), _ = draw(**COLD, speed_up=2.0, policy="gpu-only", rival="cpu-only")
    assert [end for _, _, end in runs(one)] == [5, 10, 15, 20]
    assert words == "gpu-only ends at 20 s, 87.5 % earlier than cpu-only at 160 s."


# ------------------------------------------------------------------------ what must always hold


@st.composite
def queues(draw_one):
    """A queue that can be typed: few applications of whole seconds, one machine."""
    apps = draw_one(st.integers(1, 5))
    seconds = st.lists(st.integers(1, 40), min_size=apps, max_size=apps)
    return {
        "queue": draw_one(st.lists(st.integers(1, apps), min_size=1, max_size=12)),
        "cpu": draw_one(seconds),
        "gpu": draw_one(seconds),
        "cpus": draw_one(st.integers(1, 3)),
        "gpus": draw_one(st.integers(1, 3)),
    }


@given(queues())
@settings(max_examples=scale_count(10), deadline=None)
def test_exact_history_is_minimum_completion_time(queue):
    """P1: with every run time known and no noise the five rules are MCT, job by job."""
    words, (one, other), _ = draw(**queue, **WARM)
    assert runs(one) == runs(other)
    assert words.endswith(", as mct does.")
    assert ", 0 late" in one.get_title(loc="left")


@given(queues(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 99))
@settings(max_examples=scale_count(10), deadline=None)
def test_picture_is_the_engines_and_noise_is_shared(queue, noise, seed):
    given = {**queue, "noise": noise, "seed": seed}
    words, (one, other), learned = draw(**given, rival="history")
    assert runs(one) == runs(other)
    assert re.match(r"history ends at \S+ s with a mean wait of", words)
    v = PANEL.values(**given)
    table = application_table(v["cpu"], v["gpu"], v["speed_up"])
    jobs = job_table(table, v["queue"], v["arrivals"], noise, seed)
    s = simulate(jobs, Machine(v["cpus"], v["gpus"]), "history")
    s.check()
    wanted = list(zip(s.jobs["device"], s.jobs["start"], s.jobs["completion"], strict=True))
    assert [r[0] for r in runs(one)] == [w[0] for w in sorted(wanted)]
    assert [r[1:] for r in runs(one)] == [pytest.approx(w[1:]) for w in sorted(wanted)]
    counts = [int(text.get_text().removeprefix("n=")) for text in learned.texts]
    assert sum(counts) == len(jobs)


def test_noise_has_mean_one_and_leaves_what_is_declared():
    table = application_table((10.0,), (5.0,), 1.0)
    pure = job_table(table, [1.0] * 24, (0.0,), 0.0, 3)
    assert set(pure["cpu_time"]) == {10.0}
    jobs = job_table(table, [1.0] * 24, (0.0,), 0.5, 3)
    assert set(jobs["gpu_estimate"]) == {5.0}
    factors = np.concatenate([
        job_table(table, [1.0] * 24, (0.0,), 0.5, seed)["cpu_time"] / 10 for seed in range(100)
    ])  # fmt: skip
    assert factors.mean() == pytest.approx(1, abs=4 * 0.5 / np.sqrt(len(factors)))
    assert factors.std() == pytest.approx(0.5, rel=0.15)


# ------------------------------------------------------------------------ readings, refusals


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queue": [1, 4]}, "applications 1 to 3"),
        ({"queue": [1.5]}, "applications 1 to 3"),
        ({"cpu": [1, 2]}, "one time per application"),
        ({"arrivals": [0, 1]}, "one time, or one per job, 9"),
        ({"queue": [1, 2], "arrivals": [5, 1]}, "sorted by arrival"),
        ({"cpus": 0, "gpus": 0}, "needs a device"),
        ({"cpus": 0, "rival": "cpu-only"}, "no version"),
        ({"gpu": [0, 1, 2]}, "between 0.01"),
        ({"cpu": ["x"]}, "must be numbers"),
        ({"policy": "ideal", "queue": [1] * 24, "cpus": 4, "gpus": 4}, "ideal|exhaustive"),
    ],
)
def test_bad_queues_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        PANEL.picture(**given)

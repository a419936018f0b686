"""What the tests of a live cluster compute on its workers: really, and held to a part of a core.

The pauses are the test rig's: two cores carry eight workers that way.
"""

import re
import time
from collections import Counter
from datetime import datetime
from functools import partial

import numpy as np

#: The part of a core that a worker may use.
PART = 0.1


def held(function, *args):
    """Compute, then pause until the work took its time on a part of a core, not on what was left.

    Others that compute at the same instant make the pause shorter, not the work longer.
    """
    begun, before = time.monotonic(), time.thread_time()
    result = function(*args)
    whole = (time.thread_time() - before) / PART
    time.sleep(max(0.0, begun + whole - time.monotonic()))
    return result


def words(text):
    """Count the words of a text."""
    return len(re.findall(r"\w+", text))


def vocabulary(text):
    """Count each word of a text."""
    found = Counter()
    for line in text.splitlines():
        found.update(re.findall(r"\w+", line.lower()))
    return found


def held_vocabulary(text):
    return held(vocabulary, text)


#: Host, time, request, status and bytes of an answer in a web server's log.
_ANSWER = re.compile(r'(\S+) \S+ \S+ \[(\S+) \S+\] "(\S+) (\S+) (\S+)" (\d+) (\d+)')


def _traffic(text):
    """Add up the bytes of a web server's answers by hour and status."""
    found = Counter()
    for line in text.splitlines():
        answer = _ANSWER.match(line)
        if answer:
            hour = datetime.strptime(answer[2], "%d/%b/%Y:%H:%M:%S").hour
            found[hour, answer[6]] += int(answer[7])
    return found


def held_traffic(text):
    return held(_traffic, text)


#: Five bell-shaped filters of 9 by 9, as spectra of a frame of 64 by 64 with its margin.
_FILTERS = np.fft.rfft2([np.outer(w, w) for w in map(partial(np.kaiser, 9), range(5))], (72, 72))


def _peaks(frames):
    """Convolve each frame with five filters and return the greatest value of each."""
    peaks = np.empty((len(frames), len(_FILTERS)))
    for frame, row in zip(frames, peaks, strict=True):
        for k, spectrum in enumerate(_FILTERS):
            row[k] = np.fft.irfft2(np.fft.rfft2(frame, (72, 72)) * spectrum).max()
    return peaks


def held_peaks(frames):
    return held(_peaks, np.asarray(frames))


def stack(first, second):
    return np.concatenate([first, second])


def add(first, second):
    return first + second


def breaks(text):
    raise ValueError("no such word")


def slow_words(text):
    """Count words, a second for every hundred thousand letters."""
    time.sleep(len(text) / 100_000)
    return words(text)


def numbers(text):
    """Return the numbers that lines hold, after a second for every thirty thousand letters."""
    time.sleep(len(text) / 30_000)
    return [int(line) for line in text.splitlines()]


def unsendable(text):
    return (letter for letter in text)


def breaks_both(first, second):
    raise ValueError("these do not combine")


def blown_up(text):
    """A thousand bytes for every letter."""
    return np.zeros(1000 * len(text), np.uint8)


def joined(first, second):
    return np.append(first, second)

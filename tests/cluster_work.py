"""What the tests of a live cluster compute on its workers."""

import re
import time

import numpy as np


def words(text):
    """Count the words of a text."""
    return len(re.findall(r"\w+", text))


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

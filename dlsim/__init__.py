"""Divisible-load scheduling: five papers executed, proved and checked.

``dlsim.realtime`` simulates real-time divisible loads on one cluster,
``dlsim.study`` repeats an engine over a grid and judges claims, and
``dlsim.papers`` holds one module per reproduced paper.
"""

__version__ = "1.0.0"

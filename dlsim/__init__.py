"""Divisible-load scheduling: five papers executed, proved and checked.

Engines: ``dlsim.realtime`` (papers M and I), ``dlsim.steady`` (paper S), ``dlsim.cpugpu`` (paper C)
and ``dlsim.bricks`` (paper B). ``dlsim.theory`` derives formulas and proves theorems,
``dlsim.study`` repeats engines and judges claims, ``dlsim.papers`` holds the measures
of each paper's claims, ``dlsim.explore`` the widgets, and ``dlsim.live`` runs divisible loads on a
Dask cluster.
"""

__version__ = "3.0.0"

"""The kernel of heuristic G: arrays and floats in and out.

K clusters, A applications, S speed rows (a cluster's speed, then the caps on parts of it), L links
(limits of pairs of clusters among them), R routes.
"""

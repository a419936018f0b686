"""The compiled core: arrays and floats in and out, one vocabulary.

============= ================================================================================
a, b          an application; K clusters, A applications, S speed rows, L links, R routes
k, m          the home of an application, and a cluster where it could compute
r             a speed row of a cluster, or a route
to, widest    the cluster of the best pay-off; the one where most units could go
amount        units of an application, ``weight`` work and ``data`` data each
prose, rest   readings of step 5: the amount as the prose has it; where it is 0, all that is left
net           what does not change (`Network`)
left          what every step changes (`Left`)
============= ================================================================================
"""

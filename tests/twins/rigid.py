"""FCFS and EASY backfilling, instant by instant on sets: written from their definitions."""

from fractions import Fraction


def starts(jobs, nodes, easy):
    """Return when each of the jobs (submit, run, estimate, processors) starts."""
    begun, waiting, coming = {}, [], list(range(len(jobs)))
    instants = sorted({Fraction(job[0]) for job in jobs})
    while instants:
        t = instants.pop(0)
        waiting += [i for i in coming if jobs[i][0] <= t]
        coming = [i for i in coming if jobs[i][0] > t]

        def used(at, begun=begun):
            return sum(jobs[i][3] for i, s in begun.items() if s <= at < s + Fraction(jobs[i][1]))

        def start(i, t=t, waiting=waiting, instants=instants):
            begun[i] = t
            waiting.remove(i)
            instants.append(t + Fraction(jobs[i][1]))

        while waiting and jobs[waiting[0]][3] <= nodes - used(t):
            start(waiting[0])
        for i in list(waiting[1:]) if easy and waiting else ():
            first, (_, _, estimate, needs) = waiting[0], jobs[i]
            if needs > nodes - used(t):
                continue
            running = [
                (s + Fraction(jobs[k][2]), jobs[k][3])
                for k, s in begun.items()
                if s + Fraction(jobs[k][1]) > t
            ]

            def fits_at(running, first=first):  # the first instant at which the head would fit
                for at in sorted(end for end, _ in running):
                    busy = sum(p for end, p in running if end > at)
                    if jobs[first][3] <= nodes - busy:
                        return at
                raise AssertionError("the first in line never fits")

            with_it = [*running, (t + Fraction(estimate), needs)]
            if fits_at(with_it) <= fits_at(running):
                start(i)
        instants = sorted(set(instants))
    return [begun[i] for i in range(len(jobs))]

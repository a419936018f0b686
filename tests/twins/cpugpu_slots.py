"""A plain twin of the slot schedulers: a clock of whole ticks."""


def run(jobs, slots, scheduler):
    """Return the end of each job; jobs are (arrival, tasks, time, queue, share, weight)."""
    left = [job[1] for job in jobs]
    running, ends, now = [], [0] * len(jobs), 0
    order = sorted(range(len(jobs)), key=lambda j: jobs[j][0])
    while any(left) or running:
        running = [(end, j) for end, j in running if end > now]
        while len(running) < slots:
            best = None
            for j in order:
                if not left[j] or jobs[j][0] > now:
                    continue
                mine = sum(1 for _, i in running if i == j)
                queue = sum(1 for _, i in running if jobs[i][3] == jobs[j][3])
                rank = {"fifo": 0, "fair": mine / jobs[j][5], "capacity": queue / jobs[j][4]}
                if best is None or rank[scheduler] < best[0]:
                    best = rank[scheduler], j
            if best is None:
                break
            j = best[1]
            left[j] -= 1
            ends[j] = max(ends[j], now + jobs[j][2])
            running.append((now + jobs[j][2], j))
        now += 1
    return ends

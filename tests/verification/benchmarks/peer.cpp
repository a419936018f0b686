// The plain Python peer as a C++ loop: see peers.py for the rules.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

struct Waiting {
    double due, sigma;
    int64_t task;
};

struct Placed {
    double start, end, sigma;
    int64_t task, nodes;
};

// The n nodes that are idle first are busy until `end`; `free` stays sorted.
void occupy(std::vector<double>& free, int64_t n, double end) {
    auto later = std::upper_bound(free.begin() + n, free.end(), end);
    std::copy(free.begin() + n, later, free.begin());
    std::fill(later - n, later, end);
}

}  // namespace

extern "C" void schedule(const double* arrival, const double* sigma, const double* deadline,
                         int64_t size, const double* unit, int64_t nodes, double cms, double tol,
                         int64_t* used, double* start, double* end) {
    std::vector<double> free(nodes, 0.0), now_free(nodes);
    std::vector<Waiting> queue, longer;
    std::vector<Placed> plan, fresh;
    size_t gone = 0;
    double link = 0.0;
    for (int64_t x = 0; x < size; ++x) {
        const double now = arrival[x];
        for (; gone < plan.size() && plan[gone].start <= now; ++gone) {
            const Placed& p = plan[gone];
            occupy(free, p.nodes, p.end);
            link = p.start + p.sigma * cms;
            used[p.task] = p.nodes, start[p.task] = p.start, end[p.task] = p.end;
        }
        const Waiting mine{now + deadline[x], sigma[x], x};
        longer.assign(queue.begin() + gone, queue.end());
        auto place = std::upper_bound(longer.begin(), longer.end(), mine,
                                      [](const Waiting& a, const Waiting& b) { return a.due < b.due; });
        longer.insert(place, mine);
        now_free = free;
        fresh.clear();
        double sent = link;
        bool fits = true;
        for (const Waiting& w : longer) {
            const double limit = w.due + tol * std::max(1.0, std::abs(w.due));
            double t = std::max(now, sent);
            int64_t idle = 0, n = 1;
            for (;;) {
                while (idle < nodes && now_free[idle] <= t) ++idle;
                while (n <= nodes && t + w.sigma * unit[n] > limit) ++n;
                if (n > nodes || n <= idle) break;
                t = now_free[idle];
            }
            fits = n <= nodes;
            if (!fits) break;
            const double finish = t + w.sigma * unit[n];
            sent = t + w.sigma * cms;
            occupy(now_free, n, finish);
            fresh.push_back({t, finish, w.sigma, w.task, n});
        }
        if (fits) {
            queue.swap(longer);
            plan.swap(fresh);
            gone = 0;
        }
    }
    for (; gone < plan.size(); ++gone) {
        const Placed& p = plan[gone];
        used[p.task] = p.nodes, start[p.task] = p.start, end[p.task] = p.end;
    }
}

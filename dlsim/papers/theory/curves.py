"""E(n), W(n), B(n), accuracy, and what is counted over many loads and graphs."""

from decimal import Decimal, localcontext
from math import ceil, log

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.theory.study import SCALES, Study
from dlsim.realtime import Cluster
from dlsim.realtime.partition import (
    duration,
    execution_time,
    fastest_nodes,
    fewest_nodes,
    shares,
    table_of,
)
from dlsim.steady.program import solve_program
from dlsim.steady.reduction import instance
from dlsim.study.plot import axes_of
from dlsim.study.style import INK


def _table(study: Study) -> pd.DataFrame:
    """Tabulate E, W, B and the last share for n = 1..N."""
    n, one = np.arange(1, study.nodes + 1), study.cluster
    time = np.array([execution_time(study.sigma, int(k), one) for k in n])
    work = study.sigma * (one.cms + one.cps)
    last = [shares(study.sigma, int(k), one)[-1] for k in n]
    share = (time - one.st - one.sc) / work
    return pd.DataFrame({"n": n, "E": time, "W": n * time, "B": share, "last_share": last})


def _mark(ax: Axes, study: Study) -> None:
    """Mark n_min and N*, and shade the counts that are no schedule."""
    most = fastest_nodes(study.sigma, study.cluster)
    least = fewest_nodes(study.sigma, study.budget, study.cluster)
    if most < study.nodes:
        ax.axvspan(most + 0.5, study.nodes + 0.5, color="#DDDDDD", zorder=0, label="share < 0")
    ax.axvline(most, color=INK["vermillion"], linestyle=":", label=f"$N^* = {most}$")
    if least:
        ax.axvline(least, color=INK["green"], linestyle="--", label=rf"$n^{{min}} = {least}$")
    ax.set(xlabel="number of nodes n", xlim=(0.5, study.nodes + 0.5))
    # opaque: the key of the grey patch would vanish on the patch
    ax.legend(loc="best", frameon=True, facecolor="white", edgecolor="none", framealpha=0.9)


def fig_time(study: Study, ax: Axes | None = None) -> Axes:
    """Draw E(n) with the budget, n_min, N*, and what no number of nodes can do."""
    ax, table = axes_of(ax), _table(study)
    bare = [execution_time(study.sigma, int(k), study.bare) for k in table["n"]]
    ax.plot(table["n"], table["E"], "o-", color=INK["blue"], label="E(n)")
    ax.plot(table["n"], bare, "s--", color=INK["sky"], label="without set-up")
    ax.axhline(study.budget, color=INK["black"], linewidth=1, label="budget A + D - s")
    floor = study.sigma * study.cms
    ax.axhspan(0, floor, color=INK["orange"], alpha=0.15, label=r"$\leq \sigma C_{ms}$: infeasible")
    ax.set(ylabel="time", title="Execution time", ylim=(0, None))
    _mark(ax, study)
    return study.keep("theory-time", ax, table.assign(E_without=bare))


def fig_cost(study: Study, ax: Axes | None = None) -> Axes:
    """Draw W(n) = n E(n): the node time rises with every node (Theorem 5.3)."""
    ax, table = axes_of(ax), _table(study)
    ax.plot(table["n"], table["W"], "o-", color=INK["blue"], label="W(n) = n E(n)")
    ax.set(ylabel="node time", title="Cost", ylim=(0, None))
    _mark(ax, study)
    return study.keep("theory-cost", ax)


def fig_share(study: Study, ax: Axes | None = None) -> Axes:
    """Draw the first share B(n) and the last: B is least where the last one turns negative."""
    ax, table = axes_of(ax), _table(study)
    ax.plot(table["n"], table["B"], "o-", color=INK["blue"], label=r"first share $\mathcal{B}(n)$")
    ax.plot(
        table["n"], table["last_share"], "D-", color=INK["pink"], label=r"last share $\alpha_n$"
    )
    ax.axhline(0, color="#333333", linewidth=0.8)
    ax.set(ylabel="share of the load", title="First and last share")
    _mark(ax, study)
    return study.keep("theory-share", ax)


def _reference(cluster: Cluster, sigma: float, n: int) -> Decimal:
    """Return E(n) to sixty digits and more."""
    cms, cps, st, sc, size = (
        Decimal(v) for v in (cluster.cms, cluster.cps, cluster.st, cluster.sc, sigma)
    )
    w = cms + cps
    growth = (1 - (cps / w) ** n) * w / cms
    return st + sc + (st * (n - growth) * w / cms + size * w) / growth


def accuracy(nodes: int, st: float, sigma: float = 1.0) -> pd.DataFrame:
    """Measure the relative error of E(n) over nine decades of Cms/Cps."""
    rows = []
    for ratio in 10.0 ** np.linspace(-9, 0, 37):
        one = Cluster(nodes, 100.0 * ratio, 100.0, st)
        table, w = table_of(one), one.cms + one.cps
        b, f = one.cps / w, one.st / (sigma * w)
        whole = (1 - b + nodes * f) / (1 - b**nodes) - f / (1 - b)
        found = (duration(sigma, nodes, table.unit, table.fixed), one.st + sigma * w * whole)
        with localcontext(prec=90):
            want = _reference(one, sigma, nodes)
            errors = [float(abs(Decimal(float(v)) - want) / want) for v in found]
        rows.append((ratio, *errors))
    return pd.DataFrame(rows, columns=["ratio", "engine", "printed"])


def fig_accuracy(study: Study, n: int = 8, ax: Axes | None = None) -> Axes:
    """Draw the error of the engine's E(n) beside that of the printed formula."""
    ax, eps, frames = axes_of(ax), 2.0**-52, []
    for st, color, bound in ((0.0, INK["blue"], 4 * eps), (1.0, INK["green"], (n / 4 + 4) * eps)):
        frame = accuracy(n, st)
        shown = frame.clip(lower=eps / 8)
        for column, look in (("engine", "o-"), ("printed", "--")):
            text = f"{column}, ST = {st:g}"
            ax.loglog(frame["ratio"], shown[column], look, color=color, label=text)
        ax.axhline(bound, color=color, linestyle=":")
        frames.append(frame.assign(n=n, st=st))
    ax.set(xlabel="Cms / Cps", ylabel=f"relative error of E({n})", title="Accuracy")
    ax.legend(fontsize=8)
    return study.keep("theory-accuracy", ax, pd.concat(frames))


def table_deadlines(study: Study) -> pd.DataFrame:
    """Count how often each rule finds n where the deadline is exactly start + E(n)."""
    rng, one = np.random.default_rng(study.seed), Cluster(16, 1.0, 100.0)
    loads, beta = study.runs or SCALES[study.scale][1], 100.0 / 101.0
    found: dict[str, list[int]] = {"scan with one tolerance": [], "ceil(ln gamma / ln beta)": []}
    for size, start, n in zip(
        rng.uniform(50, 500, loads),
        rng.uniform(0, 1e7, loads),
        rng.integers(1, 17, loads),
        strict=True,
    ):
        budget = (start + execution_time(size, int(n), one)) - start
        gamma = 1 - size * one.cms / budget
        scan = fewest_nodes(size, budget, one, start)
        found["scan with one tolerance"].append(scan - int(n))
        found["ceil(ln gamma / ln beta)"].append(ceil(log(gamma) / log(beta)) - int(n))
    rows = {
        rule: {
            "n": np.mean(d == 0),
            "n + 1": np.mean(d == 1),
            "other": np.mean((d != 0) & (d != 1)),
        }
        for rule, d in ((rule, np.array(values)) for rule, values in found.items())
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")
    study.results.table("theory-deadlines", table)
    return table


def table_reduction(study: Study) -> pd.DataFrame:
    """Compare best throughput and independence number over all small graphs."""
    rows = []
    for example in nx.graph_atlas_g():
        if 1 <= len(example) <= SCALES[study.scale][0]:
            platform = instance(example)
            true = max(map(len, nx.find_cliques(nx.complement(example))))
            best, bound = (solve_program(platform, whole).objective for whole in (True, False))
            rows.append((len(example), abs(best - true) < 1e-6, bound / true))
    frame = pd.DataFrame(rows, columns=["vertices", "agree", "ratio"])
    table = frame.groupby("vertices").agg(
        graphs=("agree", "size"),
        agree=("agree", "sum"),
        relaxation_above=("ratio", lambda r: int((r > 1 + 1e-6).sum())),
        worst_ratio=("ratio", "max"),
    )
    study.results.table("theory-reduction", table)
    return table

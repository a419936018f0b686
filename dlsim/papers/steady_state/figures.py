"""The pictures and tables of paper S's evaluation: a study in, Axes or tables out.

Every ``fig...`` function takes the `Study`, which runs what has not been run, and optionally
the Axes to draw on (``axes`` where there are several panels), and returns the (first) Axes.
"""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.steady_state import claims
from dlsim.papers.steady_state.platforms import PRINTED, of_kind, printed_table
from dlsim.papers.steady_state.runs import HEURISTICS, TIE
from dlsim.papers.steady_state.study import KEY, KINDS, Study
from dlsim.study.experiment import keep
from dlsim.study.experiment import verdicts as verdicts
from dlsim.study.stats import summary
from dlsim.study.style import INK, axes_of, policy_lines, style_of, verdict_heat

_BOUND = "objective / bound of the relaxed program"
#: What the paper prints of the ratio G/LPRG on Tiers platforms: mean, standard deviation.
PRINTED_RATIO = (1.18, 31.5)
#: Times that section 6.2.4 prints at K = 50, in seconds.
PRINTED_SECONDS = {"LPRR": (3600.0, 3600.0), "G": (10.0, 30.0), "LPRG": (10.0, 30.0)}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def panels(
    axes: Sequence[Axes] | None, count: int, size: tuple[float, float], is_shared: bool = True
) -> Sequence[Axes]:
    """Return the axes given, or a row of new ones."""
    if axes is not None:
        return axes
    _, new = plt.subplots(
        1, count, figsize=size, sharey=is_shared, layout="constrained", squeeze=False
    )
    return list(new[0])


_SAMPLE = {1: ("Tiers", "tiers_clusters"), 2: ("random", "random_clusters")}
_NUMBERS = ("bandwidth", "gateway", "speed", "max_connect", "data", "work", "priority")


def _drawn(study: Study, number: int) -> dict[str, Any]:
    """Return the numbers of the first five of the study's largest platforms."""
    kind, name = _SAMPLE[number]
    seeds = [np.random.SeedSequence(study.seed, spawn_key=(r,)) for r in range(5)]
    drawn = [of_kind(kind, max(getattr(study.size, name)), seed) for seed in seeds]
    return {
        name: np.concatenate(
            [np.ravel(p.links[name] if name in p.links else getattr(p, name)) for p in drawn]
        )
        for name in _NUMBERS
    }


def table1(study: Study) -> pd.DataFrame:
    """Table 1: laws as printed, and the numbers of the study's platforms."""
    return _parameters(study, 1)


def table2(study: Study) -> pd.DataFrame:
    """Table 2: means as printed, and the numbers of the study's platforms."""
    return _parameters(study, 2)


def _parameters(study: Study, number: int) -> pd.DataFrame:
    table = printed_table(number).set_index("parameter")
    found = {name: np.quantile(x, (0, 0.5, 1)) for name, x in _drawn(study, number).items()}
    for k, column in enumerate(("least drawn", "median drawn", "largest drawn")):
        table[column] = pd.Series({name: values[k] for name, values in found.items()})
    study.results.table(f"{KEY}-table{number}", table.reset_index())
    return table


def fig_table1(study: Study, ax: Axes | None = None) -> Axes:
    """Table 1 as a picture: printed ranges, and what was drawn."""
    return _ranges(study, 1, "Tiers-like platforms", ax)


def fig_table2(study: Study, ax: Axes | None = None) -> Axes:
    """Table 2 as a picture: printed means, and what was drawn around them."""
    return _ranges(study, 2, "random platforms", ax)


def _ranges(study: Study, number: int, title: str, ax: Axes | None) -> Axes:
    """Draw printed ranges (grey; a log-normal law by two deviations) under drawn numbers."""
    table, ax = printed_table(number).set_index("parameter"), axes_of(ax, (7.2, 3.2))
    for y, (name, values) in enumerate(_drawn(study, number).items()):
        if name in table.index:
            low, high = float(table["first"][name]), float(table["second"][name])
            if table["law"][name] == "log-normal":
                low, high = low / high**2, low * high**2
            ax.plot([low, high], [y, y], color="0.8", lw=9, solid_capstyle="butt")
            ax.plot([low, high], [y, y], "|", color="0.6", ms=12)
        every = np.maximum(np.quantile(values, (0, 0.05, 0.5, 0.95, 1)), 0.5)
        ax.plot(every[[0, 4]], [y, y], color=INK["blue"], lw=1)
        ax.plot(every[[1, 3]], [y, y], color=INK["blue"], lw=4)
        ax.plot(every[2], y, "o", color=INK["vermillion"], ms=6, zorder=4)
    ax.set_yticks(range(len(_NUMBERS)), _NUMBERS)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="value (line: all drawn, bar: 90 %, dot: median)", title=title)
    return keep(study, f"table{number}", ax)


def table_sample(study: Study) -> pd.DataFrame:
    """Say how many of the paper's platforms the study runs on."""
    frames = dict(zip(KINDS, (study.evidence.tiers, study.evidence.random), strict=True))
    table = pd.DataFrame(
        {
            "platforms": {kind: len(frame) for kind, frame in frames.items()},
            "with LPRR": {kind: int(f["LPRR"].notna().sum()) for kind, f in frames.items()},
            "optimum proved": {kind: int(f["MILP"].notna().sum()) for kind, f in frames.items()},
            "optimum at the bound": {
                kind: int((f["MILP"] >= 1 - TIE).sum()) for kind, f in frames.items()
            },
            "printed": PRINTED,
        }
    )
    table["share"] = table["platforms"] / table["printed"]
    study.results.table(f"{KEY}-sample", table.rename_axis("kind").reset_index())
    return table


def _by_method(frame: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Mean ratio with its interval per method and K; methods that were not run are left out."""
    parts = [
        summary(by, ["clusters"], name).assign(policy=name)
        for name in methods
        if len(by := claims.by_size(frame, [name]))
    ]
    return pd.concat(parts, ignore_index=True)


def _figure4(study: Study, part: str, frame: pd.DataFrame, title: str, ax: Axes | None) -> Axes:
    table = _by_method(frame, (*HEURISTICS, "MILP"))
    shown = table.assign(low=table["low"].clip(0, 1), high=table["high"].clip(0, 1))
    ax = policy_lines(shown, "clusters", ax=axes_of(ax, (7.2, 4.0)))
    ax.set(xlabel="clusters K", ylabel=_BOUND, title=title, ylim=(0, 1.03))
    return keep(study, f"fig4{part}", ax, table)


def fig4a(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 4(a): mean ratio to the bound against K, Tiers-like platforms."""
    return _figure4(study, "a", study.evidence.tiers, "Tiers-like platforms", ax)


def fig4b(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 4(b): mean ratio to the bound against K, random platforms."""
    return _figure4(study, "b", study.evidence.random, "random platforms", ax)


def fig_quantiles(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: how the ratios to the bound are distributed."""
    axes, parts = panels(axes, 2, (10, 3.8)), []
    frames = (study.evidence.tiers, study.evidence.random)
    for ax, kind, frame in zip(axes, KINDS, frames, strict=True):
        for name in HEURISTICS:
            values = np.sort(frame[name].dropna().to_numpy())
            if not len(values):
                continue
            color, _, dash = style_of(name)
            share = np.arange(1, len(values) + 1) / len(values)
            ax.step(values, share, where="post", color=color, linestyle=dash, label=name)
            row = {f"q{100 * q:g}": np.quantile(values, q) for q in QUANTILES}
            at = float((values >= 1 - TIE).mean())
            parts.append({"kind": kind, "policy": name, **row, "at the bound": at})
        ax.set(xlabel=_BOUND, title=f"{kind} platforms, all K", xlim=(-0.02, 1.02))
    axes[0].set(ylabel="share of platforms at or below", ylim=(0, 1.02))
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    return keep(study, "quantiles", axes[0], pd.DataFrame(parts))


def fig_gap(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: what the heuristics lack to the true optimum, where it is proved."""
    axes, parts = panels(axes, 2, (10, 3.8)), []
    frames = (study.evidence.tiers, study.evidence.random)
    for ax, kind, frame in zip(axes, KINDS, frames, strict=True):
        proved = frame.dropna(subset=["MILP"])
        gaps = proved.assign(**{h: 100 * (1 - proved[h] / proved["MILP"]) for h in HEURISTICS})
        table = _by_method(gaps, HEURISTICS)
        shown = table.assign(low=table["low"].clip(0, 100), high=table["high"].clip(0, 100))
        policy_lines(shown, "clusters", ax=ax, legend=False)
        ax.set(xlabel="clusters K", ylabel="", title=f"{kind}: {len(proved)} platforms proved")
        parts.append(table.assign(kind=kind))
    axes[0].set(ylabel="below the optimum, %", ylim=(-2, 102))
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    return keep(study, "gap", axes[0], pd.concat(parts, ignore_index=True))


def duel(frame: pd.DataFrame, a: str, b: str) -> dict[str, float]:
    """Compare two methods platform by platform."""
    pair = frame[[a, b]].dropna()
    x, y = pair[a].to_numpy(), pair[b].to_numpy()
    better, worse = float((x > y + TIE).mean()), float((x < y - TIE).mean())
    both = (x > TIE) & (y > TIE)
    ratio = np.sort(x[both] / y[both])
    rest = ratio[:-1]
    return {
        "platforms": len(pair), "better": better, "tie": 1 - better - worse, "worse": worse,
        "zero": float((~both).mean()), "mean": _mean(ratio), "sd": _sd(ratio),
        "largest": float(ratio.max(initial=0.0)), "mean without it": _mean(rest),
        "sd without it": _sd(rest), "geometric": math.exp(_mean(np.log(ratio))),
        **{f"q{100 * q:g}": float(np.quantile(ratio, q)) for q in (0.05, 0.5, 0.95)},
    }  # fmt: skip


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _sd(values: Any) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def table_duels(study: Study) -> pd.DataFrame:
    """Compare the heuristics in pairs: wins, ties, and the ratio by mean, median, quantiles."""
    pairs = (("G", "LPRG"), ("LPRG", "G"), ("LPRR", "G"), ("LPRR", "LPRG"))
    rows = {}
    for kind, frame in zip(KINDS, (study.evidence.tiers, study.evidence.random), strict=True):
        for a, b in pairs:
            if len(frame[[a, b]].dropna()):
                rows[kind, f"{a} / {b}"] = duel(frame, a, b)
    table = pd.DataFrame(rows).T.rename_axis(["kind", "pair"])
    study.results.table(f"{KEY}-duels", table.reset_index())
    return table


def one_outlier(count: int, mean: float, deviation: float) -> dict[str, float]:
    r"""Read a mean and a standard deviation as those of equal values and one other.

    If :math:`n - 1` values are a and one is x, then :math:`\bar x = a + (x - a)/n` and
    :math:`s^2 = (x - a)^2 / n`. Without that assumption the largest of any values of at
    least 0 is at least :math:`\overline{x^2} / \bar x`.

    Examples
    --------
    >>> {k: round(v, 6) for k, v in one_outlier(4, 2.0, 2.0).items()}  # of 1, 1, 1, 5
    {'others': 1.0, 'one': 5.0, 'least': 3.5}
    """
    apart = deviation * math.sqrt(count)
    others = mean - apart / count
    square = mean**2 + deviation**2 * (count - 1) / count
    return {"others": others, "one": others + apart, "least": square / mean}


def table_outlier(study: Study) -> pd.DataFrame:
    """Read the printed mean 1.18 and standard deviation 31.5 of G/LPRG, beside our own."""
    mine = duel(study.evidence.tiers, "G", "LPRG")
    count = round(mine["platforms"] * (1 - mine["zero"]))
    cases = {"printed": (PRINTED["Tiers"], *PRINTED_RATIO)}
    cases["here"] = (count, mine["mean"], mine["sd"])
    rows = {
        name: {"platforms": n, "mean": mean, "sd": sd, **one_outlier(n, mean, sd)}
        for name, (n, mean, sd) in cases.items()
    }
    table = pd.DataFrame(rows).T.rename(
        columns={"others": "if one is apart: others", "one": "that one", "least": "largest >="}
    )
    study.results.table(f"{KEY}-outlier", table.rename_axis("what").reset_index())
    return table


def fig5(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 5: median seconds per run against K, beside the printed ones at K = 50."""
    times = study.timing.groupby(["policy", "clusters"])["seconds"]
    table = times.agg(["median", "min", "max"]).reset_index()
    exact = study.timing.dropna(subset=["proved"])
    ax = axes_of(ax, (7.2, 4.2))
    policy_lines(table, "clusters", "median", low="min", high="max", ax=ax)
    for name, (least, most) in PRINTED_SECONDS.items():
        x = 50 + {"G": -0.8, "LPRG": 0.8}.get(name, 0)
        ax.plot([x, x], [least, most], color=style_of(name).color, lw=4, solid_capstyle="butt")
        ax.plot(x, math.sqrt(least * most), style_of(name).marker, color=style_of(name).color)
    ax.annotate("printed, 1 GHz Pentium", (50, 3600), (-8, 0), textcoords="offset points",
                ha="right", va="center", fontsize="small")  # fmt: skip
    ax.set(
        yscale="log", xlabel="clusters K", ylabel="processor seconds per run",
        title=f"Tiers-like; MILP proved in {exact['proved'].sum():.0f} of {len(exact)} runs",
    )  # fmt: skip
    programs = summary(study.timing.dropna(subset=["programs"]), ["clusters"], "programs")
    counts = programs[["clusters", "estimate"]].rename(columns={"estimate": "programs of LPRR"})
    table = table.merge(counts, on="clusters")
    shares = exact.groupby(["policy", "clusters"])["proved"].mean().reset_index()
    return keep(study, "fig5", ax, table.merge(shares, on=["policy", "clusters"], how="left"))


def fig_spread(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: lead of LPRG over G against heterogeneity (claim 5)."""
    frame = study.evidence.spread
    assert frame is not None
    frame = frame.assign(lead=100 * (frame["LPRG"] - frame["G"]))
    keys = ["clusters", "heterogeneity"]
    table = summary(frame.groupby([*keys, "replicate"])["lead"].mean().reset_index(), keys, "lead")
    ax = axes_of(ax)
    inks = [INK[name] for name in ("blue", "vermillion", "green", "orange")]
    for k, (size, rows) in enumerate(table.groupby("clusters")):
        x = rows["heterogeneity"] + 0.008 * k
        error = [rows["estimate"] - rows["low"], rows["high"] - rows["estimate"]]
        ink = inks[k % len(inks)]
        ax.errorbar(
            x, rows["estimate"], error, marker="o", capsize=3, color=ink, label=f"K = {size}"
        )
    ax.axhline(0, color="0.4", lw=0.8)
    ax.set(xlabel="heterogeneity", ylabel="LPRG minus G, points of the bound",
           title="random platforms, otherwise equal")  # fmt: skip
    ax.set_xticks(sorted(table["heterogeneity"].unique()))
    ax.legend()
    return keep(study, "spread", ax, table)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the verdict of every claim under every reading."""
    table = study.by_reading
    ax = verdict_heat(table, ax)
    sizes = ", ".join(map(str, study.size.reading_clusters))
    ax.set_title(f"first column: all platforms; others: K = {sizes}", pad=12)
    return keep(study, "readings", ax, table.reset_index())

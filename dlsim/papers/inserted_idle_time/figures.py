"""The pictures of paper I that need simulations: a study in, Axes out, numbers kept beside.

Every ``fig...`` function takes the `Study`, which runs what has not been run, and optionally
the Axes to draw on (``axes`` where there are several panels), and returns the (first) Axes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.papers.inserted_idle_time import claims
from dlsim.papers.inserted_idle_time.claims import differences
from dlsim.papers.inserted_idle_time.runs import ROLES, RULES, USED, named
from dlsim.papers.inserted_idle_time.study import KEY, Study, printed_table
from dlsim.papers.mcdf.claims import wide
from dlsim.study.experiment import keep
from dlsim.study.experiment import verdicts as verdicts
from dlsim.study.stats import summary
from dlsim.study.style import INK, axes_of, policy_lines, verdict_heat

_LOAD = "nominal load"
#: Ten runs of 10,000,000 time units: what Table 1 seems to be summed over.
PAPER_TIME = 1e8
#: Shares are fractions; pictures show points.
POINTS = 100.0
#: Least distance of two rows of text beside a picture, as a share of its height.
_ROW = 0.033


def panels_of(axes: Sequence[Axes] | None, count: int, size: tuple[float, float]) -> list[Axes]:
    """Return the axes given, or as many new ones in a row that share their y axis."""
    if axes is None:
        axes = plt.subplots(1, count, figsize=size, sharey=True, layout="constrained")[1]
    return list(np.atleast_1d(np.asarray(axes, dtype=object)))


def _realised_axis(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the realised load above the nominal one: they are proportional but for chance."""
    slope = float((rows["load"] * rows["realised_load"]).sum() / (rows["load"] ** 2).sum())

    def forward(x: Any) -> Any:
        return np.asarray(x) * slope

    def back(x: Any) -> Any:
        return np.asarray(x) / slope

    top = ax.secondary_xaxis("top", functions=(forward, back))
    top.set_xlabel("realised load", fontsize="small")


def _reach(table: pd.DataFrame) -> float:
    """Return half the height of an axis that shows all intervals around 0."""
    return max(0.05, 1.3 * float(np.nanmax(np.abs(table[["low", "high"]].to_numpy(float)))))


def _nest(ax: Axes) -> None:
    """Draw earlier lines wider than later ones: those that coincide stay visible."""
    lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    for k, line in enumerate(reversed(lines)):
        line.set(linewidth=1.5 + 1.9 * k, markersize=4.5 + 3.2 * k)


def _stretched(ax: Axes, ticks: Sequence[float]) -> None:
    """Scale the y axis linearly from -1 to 1 and by logarithms beyond."""
    low, high = ax.get_ylim()
    ax.set_yscale("symlog", linthresh=1.0)
    shown = [tick for tick in ticks if low <= tick <= high]
    ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
    ax.minorticks_off()
    ax.set_ylim(low, high)


def _figure_3(study: Study, name: str, order: str, ax: Axes | None) -> Axes:
    names = [named(order, role) for role in ("DLT", "I", "II")]
    rows = study.figure_3[study.figure_3["policy"].isin(names)]
    table = summary(rows, ["policy", "load"], "ratio")
    loads = summary(rows, ["load"], "realised_load").rename(columns={"estimate": "realised_load"})
    table = table.merge(loads[["load", "realised_load"]], on="load", how="left")
    ax = policy_lines(table, "load", ax=axes_of(ax))
    _nest(ax)
    ax.legend(handlelength=4)
    ax.set(xlabel=_LOAD, ylabel="task reject ratio", ylim=(0, None))
    _realised_axis(ax, table)
    return keep(study, name, ax, table)


def fig3a(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 3a: reject ratio against load, FIFO-DLT, FIDO-I and FIDO-II."""
    return _figure_3(study, "fig3a", "FIFO", ax)


def fig3b(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 3b: reject ratio against load, EDF-DLT, EDDO-I and EDDO-II."""
    return _figure_3(study, "fig3b", "EDF", ax)


def compared(
    frame: pd.DataFrame, pairs: Mapping[str, tuple[str, str]], by: Sequence[str],
    column: str = "ratio",
) -> pd.DataFrame:  # fmt: skip
    """Estimate differences of policies, with the error of pairs and that without pairing."""
    apart = differences(frame, pairs, by, column)
    spread = wide(frame, by, column).groupby(list(by)).var()
    alone = pd.DataFrame({name: spread[a] + spread[b] for name, (a, b) in pairs.items()})
    table = summary(_long(apart, "difference"), ["policy", *by], "difference")
    for name, variance in (
        ("standard_error", apart.groupby(list(by)).var()),
        ("unpaired_error", alone),
    ):
        table = table.merge(_long(variance, name), on=["policy", *by], how="left")
        table[name] = np.sqrt(table[name] / table["n"])
    return table


def _long(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return one row per legend and index entry."""
    tidy = table.rename_axis(columns="policy").reset_index()
    return tidy.melt(table.index.names, var_name="policy", value_name=name)


def _in_points(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["estimate", "low", "high"]
    return table.assign(**{name: POINTS * table[name] for name in columns})


def fig_paired(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 3 again: what I and II refuse less than DLT, run by run."""
    panels, tables = panels_of(axes, 2, (10, 3.8)), {}
    for ax, order in zip(panels, claims.ORDERS, strict=True):
        pairs = {named(order, r): (named(order, "DLT"), named(order, r)) for r in ("I", "II")}
        table = compared(study.figure_3, pairs, ["load"])
        tables[order] = table
        policy_lines(_in_points(table), "load", interval="bar", ax=ax)
        _nest(ax)
        ax.legend(handlelength=4)
        alone = POINTS * table["unpaired_error"].max()
        words = f"different workloads would leave a standard error of {alone:.2g} points"
        ax.text(0.5, 0.03, words, transform=ax.transAxes, ha="center", fontsize=8, color="#555555")
        ax.axhline(0, color="#333333", lw=0.8)
        reach = _reach(_in_points(table))
        ax.set(xlabel=_LOAD, ylabel="", ylim=(-reach, reach))
        ax.set_title(f"less refused than by {named(order, 'DLT')}")
    panels[0].set_ylabel("points")
    table = pd.concat(tables, names=["order"]).reset_index(0)
    return keep(study, "paired", panels[0], table)


def _rainbow(count: int) -> Any:
    return plt.get_cmap("viridis")(np.linspace(0, 0.85, count))


def fig4(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Figure 4: gain of EDDO-II over EDF-DLT against the cost of sending."""
    panels = panels_of(axes, 2, (10, 3.8))
    pairs = {"EDDO-II": ("EDF-DLT", "EDDO-II")}
    table = compared(study.evidence.taus, pairs, ["load", "tau"]).drop(columns="policy")
    shown = _in_points(table)
    for color, marker, (load, line) in zip(
        _rainbow(shown["load"].nunique()), "osD^v<>", shown.groupby("load"), strict=False
    ):
        line = line.sort_values("tau")
        look = {"color": color, "marker": marker, "label": f"load {load:g}"}
        panels[0].plot(line["tau"], line["estimate"], **look)
        reach = [line["estimate"] - line["low"], line["high"] - line["estimate"]]
        place = line["tau"] * (1 + 0.06 * (line["load"] - shown["load"].mean()))
        panels[1].errorbar(place, line["estimate"], yerr=reach, capsize=2.5, lw=1.2, **look)
    for ax, title in zip(panels, ("means", "95 % intervals of the pairs"), strict=True):
        ax.set_xscale("log", base=2)
        taus = sorted(shown["tau"].unique())
        ax.set_xticks(taus, [f"{tau:g}" for tau in taus])
        ax.minorticks_off()
        ax.invert_xaxis()
        ax.axhline(0, color="#333333", lw=0.8)
        ax.set(xlabel=r"cost of sending $\tau$ (falls to the right)", title=title)
    panels[0].set_ylabel("EDF-DLT minus EDDO-II, points")
    height = _reach(shown)
    panels[0].set_ylim(-height, height)  # shared
    panels[0].legend(loc="lower right")
    return keep(study, "fig4", panels[0], table)


def counted(study: Study) -> pd.DataFrame:
    """Estimate how often the constraints hold, by every counting rule and reading."""
    columns = ["s_iits", "opt_iits", "opt_iits_ii", "non_positive"]
    keys = ["reading", "rule", "load"]
    table = study.counted().groupby(keys, sort=False)[columns].mean().reset_index()
    return table.assign(
        share=table["opt_iits"] / table["s_iits"], share_ii=table["opt_iits_ii"] / table["s_iits"]
    )


def table1(study: Study) -> pd.DataFrame:
    """Table 1: printed counts, the percentages that follow from them, and measured ones."""
    printed, measured = printed_table(), counted(study)
    said: dict[tuple[str, str], Any] = {
        ("printed", "S-IITs"): printed["s_iits"].map("{:.0f}".format),
        ("printed", "Opt"): printed["opt_iits"].map("{:.0f}".format),
        ("printed", "Opt-II"): printed["opt_iits_ii"].map("{:.0f}".format),
    }
    for end, name in (("", "%"), ("_ii", "% II")):
        said["printed", name] = [
            f"{p:.0f}" if right else f"{p:.0f} (≠ {100 * share:.1f})"
            for p, right, share in zip(
                printed[f"percent{end}"], printed[f"follows{end}"], printed[f"share{end}"],
                strict=True,
            )
        ]  # fmt: skip
    table = pd.DataFrame(said).set_axis(printed["load"].to_numpy()).rename_axis("load")
    own = measured[measured["reading"] == ""]
    for rule in RULES:
        rows = own[own["rule"] == rule].set_index("load").reindex(table.index)
        whole = rows["s_iits"] * (PAPER_TIME / study.size.horizon)
        table[rule, "S-IITs"] = whole.map("{:.0f}".format)
        table[rule, "%"] = (100 * rows["share"]).map("{:.1f}".format)
        if rule != "rtgrid":
            table[rule, "% II"] = (100 * rows["share_ii"]).map("{:.1f}".format)
    flat = measured.merge(printed.add_prefix("printed_"), left_on="load", right_on="printed_load",
                          how="left").drop(columns="printed_load")  # fmt: skip
    study.results.table(f"{KEY}-table1", flat)
    return table


def fig_table1(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Draw Table 1: share of plannings with idle time in which a constraint holds."""
    panels, printed, measured = panels_of(axes, 2, (11, 4.2)), printed_table(), counted(study)
    for ax, end, title in zip(panels, ("", "_ii"), claims.CONSTRAINTS, strict=True):
        share = f"share{end}"
        for key, line in measured.groupby(["reading", "rule"], sort=False):
            reading, rule = map(str, key)
            if line[share].isna().all() or (reading and rule != RULES[0]):
                continue
            color = list(INK.values())[1 + RULES.index(rule)] if not reading else "#999999"
            look: dict[str, Any] = (
                {"lw": _WIDE[rule]} if not reading else {"ls": _THIN[reading], "lw": 1.1}
            )
            label = f"{rule}, {reading}" if reading else rule
            ax.plot(line["load"], 100 * line[share], color=color, label=label, **look)
        ax.plot(printed["load"], 100 * printed[share], "kD", ms=5, label="printed counts")
        wrong = printed[~printed[f"follows{end}"]]
        ax.plot(
            wrong["load"], wrong[f"percent{end}"], "x", color=INK["vermillion"], ms=8, mew=2,
            label="printed %, does not follow",
        )  # fmt: skip
        ax.set(xlabel=_LOAD, title=f"{title} holds", ylim=(0, 120))
        _stretched(ax, (0, 0.5, 1, 2, 5, 10, 20, 50, 100))
    panels[0].set_ylabel("% of the cases with idle time (linear up to 1)")
    figure = panels[0].get_figure(root=True)
    assert figure is not None
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, handlelength=3)
    return keep(study, "table1", panels[0])


_WIDE = {"admitted": 8, "arrival": 5.6, "replanned": 3.4, "dispatched": 1.4, "rtgrid": 1.8}
_THIN = {
    "scope=all": (0, (5, 2)),
    "ties=skip": (0, (1, 1.4)),
    "scope=all, count_single=yes": (0, (6, 2, 1.4, 2)),
    "release=finish": "-",
    "mn_count=frozen": (0, (9, 2.5)),
}


def fig_rivals(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """What every policy refuses less than DLT, run by run (claims 7, 11 to 14, and beyond)."""
    panels, tables = panels_of(axes, 2, (11, 5.4)), {}
    for ax, order in zip(panels, claims.ORDERS, strict=True):
        names = [named(order, role) for role in ROLES if role not in ("DLT", "I")]
        pairs = {name: (named(order, "DLT"), name) for name in names}
        tables[order] = compared(study.evidence.main, pairs, ["load"])
        policy_lines(_in_points(tables[order]), "load", ax=ax)
        ax.axhline(0, color="#333333", lw=0.8)
        ax.set(xlabel=_LOAD, ylabel="", title=f"less refused than by {named(order, 'DLT')}")
        _stretched(ax, (-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50))
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=8, handlelength=4
        )
    for ax, order in zip(panels, claims.ORDERS, strict=True):
        _name_ends(ax, _in_points(tables[order]), {named(order, role): role for role in ROLES})
    panels[0].set_ylabel("points (linear from -1 to 1, logarithmic beyond)")
    table = pd.concat(tables, names=["order"]).reset_index(0)
    return keep(study, "rivals", panels[0], table)


def _name_ends(ax: Axes, table: pd.DataFrame, names: Mapping[str, str]) -> None:
    """Write names at the right ends of lines, in one row where lines end together."""
    last = float(table["load"].max())
    ends = table[table["load"] == last].sort_values("estimate")
    to_axes = ax.transData + ax.transAxes.inverted()
    rows: list[tuple[float, list[str]]] = []
    for policy, estimate in zip(ends["policy"], ends["estimate"], strict=True):
        height = float(to_axes.transform((last, estimate))[1])
        if rows and height - rows[-1][0] < _ROW:
            rows[-1][1].append(names[policy])
        else:
            rows.append((height, [names[policy]]))
    for height, roles in rows:
        ax.text(1.01, height, ", ".join(roles), transform=ax.transAxes, va="center", fontsize=8)


def fig_use(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Which part of the inserted idle node time every partition puts to use."""
    panels, tables = panels_of(axes, 2, (11, 4.2)), {}
    frame = claims.with_use(study.evidence.main)
    for ax, order in zip(panels, claims.ORDERS, strict=True):
        rows = frame[frame["policy"].isin([named(order, role) for role in USED])]
        tables[order] = summary(rows, ["policy", "load"], "use")
        policy_lines(_in_points(tables[order]), "load", ax=ax)
        ax.set(xlabel=_LOAD, ylabel="", ylim=(-3, 103))
        _name_ends(ax, _in_points(tables[order]), {named(order, role): role for role in USED})
        ax.legend(loc="center", ncols=2, fontsize=8, handlelength=3.2)
    panels[0].set_ylabel(r"% of $\sum p_i$ in which nodes send or compute")
    table = pd.concat(tables, names=["order"]).reset_index(0)
    return keep(study, "use", panels[0], table)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: the verdict of every claim under every reading."""
    table = study.by_reading
    shown = table.rename(index=lambda name: str(name).removeprefix(f"{KEY}-"))
    ax = verdict_heat(shown, ax)
    lighter = ", ".join(f"{load:g}" for load in study.size.reading_loads)
    title = f"claims of paper I; first column: all loads, others: {lighter}"
    ax.set_title(title if lighter else "claims of paper I", pad=12)
    return keep(study, "readings", ax, table.reset_index())

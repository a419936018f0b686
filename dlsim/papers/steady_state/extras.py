"""Pictures that go beyond the paper: structure, polish, policies, drift, churn, start-up."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from dlsim.papers.steady_state import runs
from dlsim.papers.steady_state.beyond import INFORMED, SERVING
from dlsim.papers.steady_state.figures import panels
from dlsim.papers.steady_state.platforms import STRUCTURES
from dlsim.papers.steady_state.study import KEY, KINDS, LENGTHS, NUMBERS, Study
from dlsim.study.experiment import keep
from dlsim.study.stats import summary
from dlsim.study.style import INK, axes_of, policy_lines, style_of

_METHODS = ("G", "LPRG", "LPRR")
#: What the lead of G over LPRG is explained with.
FEATURES = ("treeness", "degree", "hops", "shared", "below")


def _mean_of(frame: pd.DataFrame, keys: Sequence[str], methods: Sequence[str]) -> pd.DataFrame:
    """Mean and interval of every method at every point of `keys`, over replicates."""
    mean = frame.groupby([*keys, "replicate"], sort=False)[list(methods)].mean().reset_index()
    tidy = mean.melt([*keys, "replicate"], var_name="policy", value_name="ratio")
    return summary(tidy, [*keys, "policy"], "ratio")


def _grouped(
    ax: Axes, table: pd.DataFrame, column: str, order: Sequence[str], most: float = 1.0
) -> None:
    """Draw one mark per method side by side at every category."""
    methods = list(dict.fromkeys(table["policy"]))
    shift = {name: 0.13 * (k - (len(methods) - 1) / 2) for k, name in enumerate(methods)}
    place = {name: k for k, name in enumerate(order)}
    at = table[column].map(place) + table["policy"].map(shift)
    shown = table.assign(at=at, low=table["low"].clip(0, most), high=table["high"].clip(0, most))
    policy_lines(shown, "at", interval="bar", legend=False, ax=ax)
    for line in ax.get_lines():
        line.set_linestyle("none")
    ax.set_xticks(list(place.values()), list(place), rotation=25, ha="right")
    ax.set(xlabel="", ylabel="")


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    some = dict(zip(labels, handles, strict=True))
    ax.legend(some.values(), some.keys(), loc="center left", bbox_to_anchor=(1.01, 0.5))


def fig_structure(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: the numbers of either table on either kind of network (claim 12)."""
    table = _mean_of(study.crossed, ["structure", "numbers"], _METHODS)
    axes = panels(axes, 2, (11, 4.2))
    for ax, numbers in zip(axes, NUMBERS, strict=True):
        _grouped(ax, table[table["numbers"] == numbers], "structure", STRUCTURES)
        ax.set_title(f"numbers of {numbers}")
    axes[0].set(ylabel="objective / bound", ylim=(0, 1.05))
    _legend(axes[-1])
    return keep(study, "structure", axes[0], table)


def table_structure(study: Study) -> pd.DataFrame:
    """Explain the lead of G over LPRG by features of the network, per table of numbers."""
    rows = {}
    for numbers, frame in study.crossed.groupby("numbers"):
        rows[numbers] = _regression(frame.dropna(subset=[*FEATURES]))
    table = pd.DataFrame(rows).T.rename_axis("numbers")
    study.results.table(f"{KEY}-regression", table.reset_index())
    return table


def _regression(frame: pd.DataFrame) -> dict[str, float]:
    names = [name for name in (*FEATURES, "clusters") if frame[name].nunique() > 1]
    x = frame[names].astype(float)
    x = (x - x.mean()) / x.std()
    y = 100 * (frame["G"] - frame["LPRG"]).to_numpy()
    design = np.column_stack([np.ones(len(x)), x])
    found = np.linalg.lstsq(design, y)[0]
    rest, spread = y - design @ found, y - y.mean()
    r2 = 1 - float(rest @ rest) / float(spread @ spread) if (spread != 0).any() else np.nan
    return {**dict(zip(names, found[1:].tolist(), strict=True)), "r2": r2, "lead": float(y.mean())}


def fig_polish(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: what fewest connections and one more linear program add."""
    table = _mean_of(study.improved, ["kind"], runs.IMPROVED)
    axes = panels(axes, 2, (10.5, 4.4))
    height = {name: -k for k, name in enumerate(runs.IMPROVED)}
    for ax, kind in zip(axes, KINDS, strict=True):
        for _, row in table[table["kind"] == kind].iterrows():
            y, style = height[row["policy"]], style_of(row["policy"].split("+")[0])
            ax.plot([max(row["low"], 0), min(row["high"], 1)], [y, y], color=style.color, lw=1)
            ax.plot(row["estimate"], y, style.marker, color=style.color, ms=7)
        ax.set(xlabel="objective / bound", title=f"{kind} platforms", xlim=(0, 1.03))
    axes[0].set_yticks(list(height.values()), list(height))
    return keep(study, "polish", axes[0], table)


def fig_limits(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: the heuristics on platforms whose owners set limits (section 7)."""
    table = _mean_of(study.limited, ["kind", "rule"], (*runs.HEURISTICS, "allowed"))
    axes = panels(axes, 2, (11, 4.2))
    for ax, kind in zip(axes, KINDS, strict=True):
        rows = table[table["kind"] == kind]
        _grouped(ax, rows[rows["policy"] != "allowed"], "rule", runs.POLICIES)
        left = rows[rows["policy"] == "allowed"]
        ax.plot(range(len(left)), left["estimate"], color="0.6", lw=5, zorder=1, alpha=0.5,
                label="what the limits leave\nof the bound")  # fmt: skip
        ax.set(title=f"{kind} platforms")
    axes[0].set(ylabel="objective / bound within the limits", ylim=(0, 1.05))
    _legend(axes[-1])
    return keep(study, "limits", axes[0], table)


def fig_adaptation(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: bandwidths drift; schedules that know more or less of it."""
    table = summary(study.adapted, ["period", "policy"], "ratio")
    inks = dict(zip(INFORMED, ("vermillion", "orange", "blue", "green"), strict=True))
    ax = axes_of(ax, (7.6, 4.0))
    for name in INFORMED:
        rows = table[table["policy"] == name]
        ax.plot(rows["period"], rows["estimate"], color=INK[inks[name]], label=name)
        low, high = rows["low"].clip(0, 1), rows["high"].clip(0, 1)
        ax.fill_between(rows["period"], low, high, color=INK[inks[name]], alpha=0.12, lw=0)
    ax.set(xlabel="period", ylabel="throughput / bound of the period", ylim=(0, 1.03),
           title="schedules under drifting bandwidths")  # fmt: skip
    ax.legend(loc="lower left", ncols=2)
    return keep(study, "adaptation", ax, table)


def _versus(frame: pd.DataFrame, column: str, rival: str) -> pd.DataFrame:
    """Geometric mean, with its interval, of a column over the rival's on the same platform."""
    keys = ["kind", "clusters"]
    logs = frame.assign(**{column: np.log(frame[column])})
    wide = logs.pivot(index=[*keys, "replicate"], columns="policy", values=column)
    others = wide.drop(columns=rival).sub(wide[rival], axis=0).reset_index()
    tidy = others.melt([*keys, "replicate"], var_name="policy", value_name=column).dropna()
    table = summary(tidy, [*keys, "policy"], column)
    return table.assign(**{name: np.exp(table[name]) for name in ("estimate", "low", "high")})


def fig_churn(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Beyond the paper: the heuristics where sites and applications come and go (section 7)."""
    frame = study.churn
    ratio = summary(frame, ["kind", "clusters", "policy"], "ratio").assign(measure="ratio")
    faster = _versus(frame, "response", SERVING[0]).assign(measure="response over G's")
    table = pd.concat([ratio, faster], ignore_index=True)
    table["platform"] = table["kind"] + ", K = " + table["clusters"].astype(str)
    axes = panels(axes, 2, (11, 4.2), is_shared=False)
    for ax, (measure, rows) in zip(axes, table.groupby("measure", sort=False), strict=True):
        _grouped(ax, rows, "platform", list(dict.fromkeys(rows["platform"])), np.inf)
        ax.set_ylabel(str(measure))
    axes[0].set(ylabel="objective / bound, mean over time", ylim=(None, 1.005))
    axes[1].set(ylabel="response time over that under G", yscale="log")
    axes[1].yaxis.set(major_formatter=LogFormatter(), minor_formatter=LogFormatter())
    axes[1].axhline(1, color="0.4", lw=0.8)
    _legend(axes[0])
    return keep(study, "churn", axes[0], table.drop(columns="platform"))


def fig_startup(study: Study, ax: Axes | None = None) -> Axes:
    """Beyond the paper: throughput of a run that ends, against its length (claim 14)."""
    frame = study.ends.assign(run=study.ends["length"] * study.ends["count"])
    table = summary(frame, ["length", "count", "run"], "kept")
    ax = axes_of(ax, (7.2, 4.0))
    for length, ink in zip(LENGTHS, ("blue", "orange", "green"), strict=True):
        rows = table[table["length"] == length]
        ax.plot(rows["run"], 100 * (1 - rows["estimate"]), "o-", color=INK[ink],
                label=f"period of {length} time units")  # fmt: skip
    ax.axhline(2, color="0.4", lw=0.8, ls="--")
    ax.annotate("two points: marginal", (table["run"].max(), 2), (0, 3), ha="right",
                textcoords="offset points", fontsize="small")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="length of the run, time units")
    ax.set(ylabel="below the steady state, %", title="whole load units, first and last period")
    ax.legend()
    return keep(study, "startup", ax, table)

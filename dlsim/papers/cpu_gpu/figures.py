"""The pictures of paper C that need many runs: a study in, Axes out, numbers kept beside.

Every ``fig...`` function takes the `Study`, which runs what has not been run, and optionally
the Axes to draw on (``axes`` where there are several panels), and returns the (first) Axes.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from dlsim.papers.cpu_gpu import claims
from dlsim.papers.cpu_gpu.runs import VARIANTS
from dlsim.papers.cpu_gpu.study import KEY, SHORT, Study
from dlsim.papers.inserted_idle_time.figures import panels_of
from dlsim.study.experiment import keep
from dlsim.study.experiment import verdicts as verdicts
from dlsim.study.stats import relative_reduction, summary
from dlsim.study.style import INK, axes_of, policy_lines, style_of, verdict_heat

#: What the sources print: saved against GPU only, against the preferred device; gained.
PRINTED = {"gpu-only": 0.39, "preferred": 0.29}
GAINED = 0.42
_RIVALS = ("gpu-only", "preferred", "round-robin", "cpu-only", "mct", "rsc", "asjf")


def fig_learning(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F2: makespan over MCT's, batch after batch, while the history fills."""
    panels = panels_of(axes, len(study.mixes), (2.7 * len(study.mixes) + 1, 3.6))
    table = claims.over_mct(study.evidence.main)
    table = table.assign(bound=table["bound"] / table["mct"])
    shown = ("history", "preferred", "rsc", "asjf")
    lines = summary(table[table["policy"].isin(shown)], ["mix", "policy", "batch"], "ratio")
    own = table[table["policy"] == "history"]
    counts = own.groupby(["mix", "batch"], as_index=False)["explored"].mean()
    for ax, mix in zip(panels, study.mixes, strict=True):
        policy_lines(lines[lines["mix"] == mix], "batch", legend=ax is panels[0], ax=ax)
        low = own[own["mix"] == mix].groupby("batch")["bound"].mean()
        ax.plot(low.index, low, color="#777777", ls=":", label="lower bound")
        ax.axhline(1, color="#333333", lw=0.8)
        mine = counts[counts["mix"] == mix]
        for batch, count in zip(mine["batch"], mine["explored"], strict=True):
            if count > 0.05:
                ax.annotate(f"{count:.0f}" if count >= 1 else f"{count:.1f}", (batch, 0.01),
                            xycoords=("data", "axes fraction"), size=8, ha="center")  # fmt: skip
        ax.set(title=mix, ylabel="", xlabel="batch (below: explorations)")
    panels[0].set_ylabel("makespan over MCT's")
    panels[0].legend(fontsize=8, loc="upper right")
    panels[0].set_ylim(0.55, min(2.5, 1.05 * float(lines["high"].max())))
    counts = counts.assign(policy="history")
    return keep(study, "learning", panels[0],
                lines.merge(counts, on=["mix", "policy", "batch"], how="left"))  # fmt: skip


def fig_savings(study: Study, ax: Axes | None = None) -> Axes:
    """F3: total run time that the history policy saves against each rival, mix by mix."""
    ax = axes_of(ax, (9.6, 4.2))
    table = pd.concat(
        [claims.saved(study.evidence.main, ["history"], rival).assign(rival=rival)
         for rival in _RIVALS], ignore_index=True,
    )  # fmt: skip
    mixes, width = list(study.mixes), 0.8 / len(_RIVALS)
    for i, rival in enumerate(_RIVALS):
        rows = table[table["rival"] == rival].set_index("mix").loc[mixes]
        x = np.arange(len(mixes)) + (i - (len(_RIVALS) - 1) / 2) * width
        reach = np.abs([rows["estimate"] - rows["low"], rows["high"] - rows["estimate"]])
        ax.bar(x, 100 * rows["estimate"], width, color=style_of(rival).color, label=rival,
               hatch=None if i < 4 else "//", edgecolor="white", linewidth=0.4,
               yerr=100 * reach, error_kw={"lw": 0.9, "capsize": 2})  # fmt: skip
    for rival, value in PRINTED.items():
        ax.axhline(100 * value, color=style_of(rival).color, ls="--", lw=1.1)
        side = "bottom" if rival == "gpu-only" else "top"
        said = f"{100 * value:.0f} % (Gregg et al.)\nagainst {rival}"
        ax.text(len(mixes) - 0.58, 100 * value, said, fontsize=7.5,
                color=style_of(rival).color, va=side)  # fmt: skip
    ax.axhline(0, color="#333333", lw=0.8)
    ax.set_xticks(range(len(mixes)), mixes)
    low = max(-160.0, 110 * float(table["low"].min()))
    ax.set(ylabel="% of the total run time saved by history", ylim=(low, 105),
           xlim=(-0.55, len(mixes) + 0.25))  # fmt: skip
    ax.legend(ncols=7, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return keep(study, "savings", ax, table.drop(columns="point"))


def variants(study: Study) -> pd.DataFrame:
    """Compare the literal rules with their variants: total run time over the literal rules'."""
    names = [*VARIANTS, "mct", "rsc", "asjf"]
    table = claims.saved(study.evidence.main, names, "history")
    table["more"] = -100 * table["estimate"]
    study.results.table(f"{KEY}-variants", table.drop(columns="point"))
    wide = table.pivot(index="policy", columns="mix", values="more")
    return wide.loc[names, list(study.mixes)].map("{:+.1f} %".format)


def fig_ideal(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Excess over the exhaustive schedule of short queues, with exact histories (claim 4)."""
    panels, rows = panels_of(axes, 2, (10, 3.8)), study.ideal
    if rows is None:
        panels[0].set_title("no exhaustive schedule where GPU jobs slow CPUs down", fontsize=9)
        return keep(study, "ideal", panels[0])
    names = [
        name
        for name in ("history", "mct", "rsc", "asjf", "preferred")
        if name in set(rows["policy"])
    ]
    for ax, column, title in zip(
        panels, ("makespan", "completion"), ("makespan", "mean completion time"), strict=True
    ):
        for name in names:
            x = 100 * np.sort(rows.loc[rows["policy"] == name, column])
            color, _, dash = style_of(name)
            ax.step(
                x, np.arange(1, len(x) + 1) / len(x), where="post", color=color, ls=dash, label=name
            )
        ax.axvline(5, color="#777777", lw=0.8, ls=":")
        ax.set(xlabel="% beyond the ideal schedule", title=title, xlim=(-1, 150), ylim=(0, 1.02))
    panels[0].set_ylabel(f"share of the queues of {SHORT} jobs")
    panels[1].legend(loc="lower right", fontsize=8)
    return keep(study, "ideal", panels[0], rows)


def fig_moulding(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F4: gain in throughput over the best rival, queue by queue (problem 2)."""
    frame = study.evidence.moulded
    assert frame is not None
    panels = panels_of(axes, 3, (12.5, 3.8))
    exact, parts = frame[frame["error"] == 0], {}
    colors = dict(zip(study.mixes, sns.color_palette("viridis", len(study.mixes)), strict=True))
    rivals = {
        "best of TORQUE and MCT": claims.EXISTING,
        "MCT that may use both devices": ("mct-any",),
    }
    for ax, (title, names) in zip(panels, rivals.items(), strict=False):
        gains = claims.moulding_gains(exact, names)
        parts[title] = gains
        for mix, own in gains[gains["scheduler"] == "flexible"].groupby("mix", sort=False):
            x = 100 * np.sort(own["gain"])
            ax.step(x, np.arange(1, len(x) + 1) / len(x), where="post", color=colors[str(mix)],
                    label=f"{mix}, mean {x.mean():.0f} %")  # fmt: skip
        ax.axvline(
            100 * GAINED, color=INK["vermillion"], ls="--", lw=1.2, label="42 % (Ravi et al.)"
        )
        ax.axvline(0, color="#333333", lw=0.8)
        ax.set(xlabel="% more throughput", title=f"flexible over the\n{title}")
        ax.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    wide = frame.pivot(index=["mix", "replicate", "scheduler"], columns="error", values="makespan")
    cost = (wide[wide.columns[-1]] / wide[0.0] - 1).rename("cost").reset_index()
    for name, ink in (("mct", "vermillion"), ("flexible", "green"), ("area", "blue")):
        x = 100 * np.sort(cost.loc[cost["scheduler"] == name, "cost"])
        y = np.arange(1, len(x) + 1) / len(x)
        panels[2].step(x, y, where="post", color=INK[ink], label=name)
    panels[2].axvline(7, color=INK["vermillion"], ls="--", lw=1.2)
    panels[2].set(
        xlabel="% longer, declared times wrong by up to 20 %",
        title="cost of wrong inputs\n(dashed: 7 %, Ravi et al.)",
    )
    panels[2].legend(fontsize=8, loc="lower right")
    panels[0].set_ylabel("share of the queues")
    table = pd.concat(parts, names=["rivals"]).reset_index(0)
    return keep(study, "moulding", panels[0], table)


def fig_fairness(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F5: by how much jobs end later than on their preferred device, under noise."""
    panels = axes or plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")[1].tolist()
    table = summary(study.noises, ["fair", "cv", "above"], "share")
    late = study.noises.groupby(["fair", "cv"], as_index=False)[["late", "unexcused"]].mean()
    inks = sns.color_palette("viridis", table["cv"].nunique())
    titles = {
        "local": "behind what was assigned there (F1)",
        "global": "in the all-preferred schedule (F2)",
    }
    for ax, (fair, title) in zip(panels, titles.items(), strict=True):
        for ink, (cv, rows) in zip(inks, table[table["fair"] == fair].groupby("cv"), strict=True):
            own = late[(late["fair"] == fair) & (late["cv"] == cv)]
            missed = 100 * float(own["unexcused"].iloc[0])
            rows = rows[rows["above"] > 0]
            ax.plot(rows["above"], 100 * rows["estimate"], color=ink,
                    label=f"cv {cv:g}; under neither exception: {missed:.1f} %")  # fmt: skip
            ax.fill_between(
                rows["above"], 100 * rows["low"], 100 * rows["high"], color=ink, alpha=0.15
            )
        ax.set(
            xscale="log", xlabel="late by more than x run times there", title=title, ylim=(0, None)
        )
        ax.legend(fontsize=8)
    panels[0].set_ylabel(f"% of the jobs ({study.mixes[0]})")
    kept = table.merge(late, on=["fair", "cv"], how="left")
    return keep(study, "fairness", panels[0], kept)


def fig_even(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F6: what one cold batch gains, by how applications differ and how often they return."""
    panels = panels_of(axes, 2, (10.5, 3.8))
    keys, parts = ["spread", "repeats"], {}
    for ax, rival in zip(panels, ("preferred", "gpu-only"), strict=True):
        table = relative_reduction(study.even, "makespan", "policy", "history", rival, at=keys)
        parts[rival] = table
        sure = (table["low"] > 0) | (table["high"] < 0)
        text = (100 * table["estimate"]).map("{:.0f}".format)
        table["text"] = text.where(sure, "(" + text + ")")
        grids = [
            table.pivot(index="repeats", columns="spread", values=c) for c in ("estimate", "text")
        ]
        sns.heatmap(100 * grids[0].iloc[::-1], annot=grids[1].iloc[::-1], fmt="", cmap="RdBu",
                    center=0, vmin=-60, vmax=60, ax=ax, cbar=ax is panels[1],
                    cbar_kws={"label": "% saved by history"})  # fmt: skip
        ax.set(title=f"against {rival}", xlabel="spread of ln(speed-up)", ylabel="")
    panels[0].set_ylabel("jobs per application")
    table = pd.concat(parts, names=["rival"]).reset_index(0).drop(columns="text")
    return keep(study, "even", panels[0], table)


def break_even(study: Study) -> pd.DataFrame:
    """Tell after which batch a cold start has paid, learning included."""
    mean = study.evidence.main.groupby(["mix", "policy", "batch"])["makespan"].mean()
    total = mean.groupby(level=["mix", "policy"]).cumsum().unstack("policy")
    rivals = ["gpu-only", "cpu-only", "preferred", "round-robin", "mct", "rsc", "asjf"]
    rows = {}
    for mix in study.mixes:
        own = total.loc[mix]
        rows[mix] = {rival: _first_stay(own["history"] < own[rival]) for rival in rivals}
    table = pd.DataFrame(rows).T.rename_axis("mix")
    study.results.table(f"{KEY}-break-even", table.reset_index())
    return table


def _first_stay(below: "pd.Series[bool]") -> str:
    stays = below[::-1].cummin()[::-1]
    return str(int(np.argmax(stays)) + 1) if stays.any() else "never"


def fig_poison(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """F7: what is left of wrong first samples, batch after batch."""
    panels = panels_of(axes, len(study.mixes), (2.6 * len(study.mixes) + 1, 3.4))
    excess = claims.excess_of_poison(study.evidence.poisoned)
    table = summary(excess, ["mix", "wrong", "batch"], "excess")
    inks = sns.color_palette("flare", table["wrong"].nunique())
    for ax, mix in zip(panels, study.mixes, strict=True):
        for ink, (wrong, rows) in zip(
            inks, table[table["mix"] == mix].groupby("wrong"), strict=True
        ):
            ax.plot(
                rows["batch"], 100 * rows["estimate"], "o-", color=ink, label=f"{wrong:g} times"
            )
            ax.fill_between(
                rows["batch"], 100 * rows["low"], 100 * rows["high"], color=ink, alpha=0.15
            )
        ax.axhline(0, color="#333333", lw=0.8)
        ax.set(title=mix, xlabel="batch")
    panels[0].set_ylabel("% longer than with right samples")
    panels[0].legend(fontsize=8)
    return keep(study, "poison", panels[0], table)


def fig_assumption(study: Study, ax: Axes | None = None) -> Axes:
    """Claim 13: what the CPU thread of a GPU job costs, were it to keep a core busy."""
    ax, table = axes_of(ax, (6.8, 3.6)), claims.thread_is_free(study.evidence)
    assert table is not None
    for share, ink in zip(sorted(set(table["share"])), (INK["sky"], INK["blue"]), strict=False):
        rows = table[table["share"] == share]
        place = np.arange(len(rows)) + (0.1 if ink == INK["blue"] else -0.1)
        reach = np.abs([rows["estimate"] - rows["low"], rows["high"] - rows["estimate"]])
        ax.errorbar(place, 100 * rows["estimate"], yerr=100 * reach, fmt="o", color=ink, capsize=3,
                    label=f"one core of {1 / share:.0f}")  # fmt: skip
    ax.axhspan(-2, 2, color="#BFE3D6", alpha=0.5, lw=0, label="negligible: under 2 %")
    ax.set_xticks(range(len(study.mixes)), study.mixes)
    ax.set(ylabel="% longer", xlim=(-0.5, len(study.mixes) - 0.5))
    ax.legend(fontsize=8, loc="upper left", ncols=3)
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    return keep(study, "assumption", ax, table.drop(columns="point"))


def fig_tradeoff(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """T2 as a picture: mean wait against makespan of every policy, over MCT's."""
    panels = panels_of(axes, len(study.mixes), (2.5 * len(study.mixes) + 1, 3.4))
    table = tradeoff(study)
    for ax, mix in zip(panels, study.mixes, strict=True):
        for name in ("history", "mct", "preferred", "rsc", "asjf"):
            row = table.loc[[(mix, name)]]
            color, marker, _ = style_of(name)
            ax.plot(row["wait"], row["makespan"], marker, color=color, ms=8, label=name)
        ax.axhline(1, color="#999999", lw=0.7)
        ax.axvline(1, color="#999999", lw=0.7)
        ax.set(title=mix, xlabel="mean wait over MCT's")
    panels[0].set_ylabel("makespan over MCT's")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    return keep(study, "tradeoff", panels[0], table.reset_index())


def tradeoff(study: Study) -> pd.DataFrame:
    """T2: makespan, mean wait and mean completion time of every policy over those of MCT."""
    columns = {"makespan": "makespan", "mean_wait": "wait", "mean_completion": "completion"}
    sums = study.evidence.main.groupby(["mix", "policy"], sort=False)[list(columns)].sum()
    mct = sums.xs("mct", level="policy")
    return sums.div(mct, level="mix").rename(columns=columns)


def fig_readings(study: Study, ax: Axes | None = None) -> Axes:
    """The verdict of every claim that the engine's switches decide, under every reading."""
    table = study.by_reading
    shown = table.rename(index=lambda name: str(name).removeprefix(f"{KEY}-"))
    ax = verdict_heat(shown, ax)
    few = study.size.reading_mixes < len(study.mixes)
    more = f"others: {study.size.reading_mixes} mixes, " if few else "others: "
    ax.set_title(f"claims of paper C; {more}{study.size.reading_runs} runs", pad=12)
    return keep(study, "readings", ax, table.reset_index())

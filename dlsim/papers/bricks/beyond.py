"""Beyond paper B: the Pareto front, automatic Opt, economies, a replayed log, backgrounds."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.bricks import Environment
from dlsim.papers.bricks import economy, runs
from dlsim.papers.bricks.figures import PERCENT, panels_of
from dlsim.papers.bricks.study import FRONT, HOUR, KEY, OF_BACKGROUND, Study
from dlsim.study.experiment import keep
from dlsim.study.stats import mean_interval, summary
from dlsim.study.style import INK, style_of

#: Fronts by Load Correction: colour, legend.
FRONTS = {0: ("black", "fixed Opt"), 1: ("orange", "fixed Opt, Load Correction")}
TUNER_INKS = ("sky", "blue", "green", "vermillion", "pink")
#: Looks of the two buyers, whose names are no policies of the table of styles.
_BUYER_LOOKS = {
    "cheapest, premium": (INK["sky"], "P", ":"), "cheapest, spot": (INK["pink"], "X", ":"),
}  # fmt: skip
#: Penalties of a missed deadline, in units of the bill of a mean request at one per Mops.
PENALTIES = np.linspace(0, 10, 21)


def on_front(rows: pd.DataFrame, cost: float) -> tuple[float, bool]:
    """Read the failure rate of the fixed-Opt front at a cost."""
    hull: list[tuple[float, float]] = []
    best = rows.groupby("cost")["failure"].min()
    for x, y in zip(best.index.to_numpy(dtype=float), best.to_numpy(dtype=float), strict=True):
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    xs, ys = zip(*hull, strict=True)
    return float(np.interp(cost, xs, ys)), bool(xs[0] <= cost <= xs[-1])


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Tell whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def judged(study: Study) -> pd.DataFrame:
    """Judge automatic Opt against the fixed-Opt fronts, environment by environment."""
    frame, rows = study.front, []
    fixed = frame[frame["policy"].isin(list(map(runs.deadline, FRONT)))]
    mine = frame[frame["policy"].isin(list(runs.TUNERS))]
    for key, line in mine.groupby(["policy", "fallbacks", "corrected"], sort=False):
        policy, fallbacks = str(key[0]), int(line["fallbacks"].iloc[0])
        corrected = int(line["corrected"].iloc[0])
        for front in [front for front in FRONTS if front >= corrected]:
            same = fixed[(fixed["fallbacks"] == fallbacks) & (fixed["corrected"] == front)]
            apart, inside = [], []
            for _, run in line.iterrows():
                at, within = on_front(same[same["replicate"] == run["replicate"]], run["cost"])
                apart.append(run["failure"] - at)
                inside.append(within)
            rows.append(
                {
                    "policy": policy, "fallbacks": fallbacks, "corrected": corrected,
                    "front": front, "failure": line["failure"].mean(), "cost": line["cost"].mean(),
                    "target": runs.TARGETS.get(policy, np.nan),
                    **mean_interval(apart)._asdict(), "outside": 1 - float(np.mean(inside)),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def table_tuning(study: Study) -> pd.DataFrame:
    """Tabulate what automatic Opt attains, and how it compares with a fixed one."""
    table = judged(study)
    study.results.table(f"{KEY}-tuning", table)
    beyond = table["outside"] > 0.5
    worse = np.where((table["low"] > 0) & ~beyond, "worse", "no telling")
    word = np.where(table["high"] < 0, "better", worse)
    return pd.DataFrame(
        {
            "tuner": table["policy"] + np.where(table["corrected"] == 1, ", L", ""),
            "fallbacks": table["fallbacks"],
            "target": [f"{PERCENT * t:.0f} %" if t == t else "" for t in table["target"]],
            "failure": (PERCENT * table["failure"]).map("{:.1f} %".format),
            "cost": table["cost"].map("{:.0f}".format),
            "front": np.where(table["front"] == 1, "with Load Correction", "without"),
            "above the front, points": [
                f"{PERCENT * e:+.1f} [{PERCENT * a:.1f}, {PERCENT * b:.1f}]"
                for e, a, b in zip(table["estimate"], table["low"], table["high"], strict=True)
            ],
            "verdict": word,
            "beyond its range": table["outside"].map("{:.0%}".format),
        }
    )


def _mean_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean cost and failure of every policy, with the ends of their intervals."""
    parts = [
        summary(rows, ["policy"], c).set_index("policy")[["estimate", "low", "high"]].add_prefix(c)
        for c in ("cost", "failure")
    ]
    table = pd.concat(parts, axis=1)
    shares = [f"failure{end}" for end in ("estimate", "low", "high")]
    return table.assign(**{name: PERCENT * table[name] for name in shares})


def _crosses(
    ax: Axes, t: pd.DataFrame, color: str, marker: str, label: str, line: str = "",
    hollow: bool = False,
) -> None:  # fmt: skip
    """Draw means of cost and failure with their intervals both ways."""
    ax.errorbar(
        t["costestimate"], t["failureestimate"],
        xerr=np.abs([t["costestimate"] - t["costlow"], t["costhigh"] - t["costestimate"]]),
        yerr=np.abs([t["failureestimate"] - t["failurelow"],
                     t["failurehigh"] - t["failureestimate"]]),
        color=color, marker=marker, ls=line, lw=1.2, elinewidth=0.7, capsize=0, label=label,
        mfc="white" if hollow else color,
    )  # fmt: skip


def fig_pareto(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Draw the front of failure rate against cost, and where automatic Opt ends up."""
    panels, frame = panels_of(axes, 2, (12, 4.8), sharey=False), study.front
    names, parts = list(map(runs.deadline, FRONT)), []
    for ax, fallbacks in zip(panels, (0, study.most), strict=True):
        here = frame[frame["fallbacks"] == fallbacks]
        for front, (ink, label) in FRONTS.items():
            own = here[here["corrected"] == front]
            t = _mean_points(own[own["policy"].isin(names)]).loc[names]
            color = INK[ink]
            _crosses(ax, t, color, ".", label, "-")
            ax.fill_between(t["costestimate"], t["failurelow"], t["failurehigh"], color=color,
                            alpha=0.12, lw=0)  # fmt: skip
            for name in (names[0], names[-1]):
                place = (t.loc[name, "costestimate"], t.loc[name, "failureestimate"])
                ax.annotate(name[2:], place, textcoords="offset points", xytext=(5, 4), fontsize=8)
            greedy = _mean_points(own[own["policy"] == "Greedy"])
            _crosses(ax, greedy, color, "v", f"Greedy{', Load Correction' * front}")
            parts += [x.assign(corrected=front, fallbacks=fallbacks) for x in (t, greedy)]
        tuned = here[here["policy"].isin(list(runs.TUNERS))]
        for key, rows in tuned.groupby(["policy", "corrected"], sort=False):
            tuner, corrected = str(key[0]), int(rows["corrected"].iloc[0])
            t, k = _mean_points(rows), list(runs.TUNERS).index(tuner)
            label = "" if corrected else tuner
            _crosses(ax, t, INK[TUNER_INKS[k]], "DsP^*"[k], label, hollow=bool(corrected))
            parts.append(t.assign(corrected=corrected, fallbacks=fallbacks))
        ax.set(xlabel="cost, Mops/s", title=f"at most {fallbacks} fallbacks")
    panels[0].text(0.98, 0.98, "hollow: automatic Opt with Load Correction", ha="right",
                   va="top", fontsize=8, transform=panels[0].transAxes)  # fmt: skip
    panels[0].set_ylabel("failure rate, %")
    panels[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return keep(study, "pareto", panels[0], pd.concat(parts).reset_index())


def fig_economy(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """What every scheduler's users pay in other economies, without and with a penalty."""
    panels, frame = panels_of(axes, 2, (12, 4.2), sharey=False), study.priced
    table = frame.pivot(index=["economy", "replicate"], columns="policy", values="bill")
    relative = table.div(table["Greedy"], axis=0)[list(economy.BUYERS)]
    tidy = relative.rename_axis(columns="policy").reset_index()
    tidy = tidy.melt(["economy", "replicate"], var_name="policy", value_name="relative")
    bills = summary(tidy, ["economy", "policy"], "relative")
    kinds = ["speed of the server", *economy.ECONOMIES]
    for k, name in enumerate(economy.BUYERS):
        color, marker, dash = _BUYER_LOOKS.get(name, style_of(name))
        line = bills[bills["policy"] == name].set_index("economy").loc[kinds]
        spread = np.abs([line["estimate"] - line["low"], line["high"] - line["estimate"]])
        panels[0].errorbar(np.arange(len(kinds)) + 0.1 * (k - 2.5), line["estimate"], yerr=spread,
                           fmt=marker, color=color, capsize=2, label=name)  # fmt: skip
        spot = frame[(frame["policy"] == name) & (frame["economy"] == kinds[-1])]
        total = spot["bill"].mean() + PENALTIES * spot["failure"].mean()
        panels[1].plot(PENALTIES, total, color=color, ls=dash, label=name)
    panels[0].set_xticks(range(len(kinds)), [kind.replace(", ", ",\n") for kind in kinds])
    panels[0].tick_params(axis="x", labelsize=8)
    panels[0].set(ylabel="bill over Greedy's", title="what users pay")
    panels[1].set(xlabel="penalty of a miss, in mean bills", ylabel="bill and penalty",
                  title=f"spot market, {study.most} fallbacks")  # fmt: skip
    panels[1].legend(fontsize=8)
    failure = summary(frame[frame["economy"] == kinds[0]], ["policy"], "failure")
    both = pd.concat([bills.assign(what="bill over Greedy's"),
                      failure.assign(economy="", what="failure")])  # fmt: skip
    return keep(study, "economy", panels[0], both)


def fig_replay(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """A job log replayed: when requests come, and how the schedulers fare."""
    panels = panels_of(axes, 3, (13, 4), sharey=False)
    seed = np.random.SeedSequence(study.seed, spawn_key=(0,))
    options: dict[str, Any] = {"horizon": study.size.hours * HOUR, "domains": study.domains}
    options |= runs.split_switches(study.switches).drawn
    interval = float(study.intervals[0])
    log, drawn = economy.replay_of(study.swf, seed, interval=interval, **options)
    for env, label, ink in ((drawn, "drawn (Poisson)", "black"), (log, "log", "vermillion")):
        count = economy.by_hour(env.requests)
        panels[0].stairs(count, color=INK[ink], label=label, baseline=None, lw=1.7)
    made = ", ".join(log.requests.attrs["synthesised"])
    panels[0].set(xlabel="hour", ylabel="requests per hour", title=f"synthesised: {made}")
    panels[0].legend()
    table = []
    for ax, (name, rows) in zip(panels[1:], study.replayed.groupby("workload"), strict=True):
        for fallbacks, line in rows.groupby("fallbacks"):
            t = _mean_points(line)
            for policy in study.few:
                color, marker, _ = style_of(policy)
                label = policy if fallbacks else ""
                _crosses(ax, t.loc[[policy]], color, marker, label, hollow=not fallbacks)
            table.append(t.assign(workload=name, fallbacks=fallbacks))
        ax.set(xlabel="cost, Mops/s", title=f"{name}; hollow: no fallback")
        ax.set_ylim(0, None)
    panels[1].set_ylabel("failure rate, %")
    panels[2].legend(fontsize=8)
    return keep(study, "replay", panels[0], pd.concat(table).reset_index())


def fig_background(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Both models of congestion on links (section 2.1): what they look like, what they cost."""
    panels = panels_of(axes, 2, (11, 3.8), sharey=False)
    seed, table = np.random.SeedSequence(study.seed, spawn_key=(0,)), []
    own = {k: v for k, v in study.switches.items() if k in OF_BACKGROUND}
    for model, label, ink in (("trace", "trace", "blue"), ("data", "extraneous data", "orange")):
        env = Environment.random(
            seed, horizon=runs.BACKGROUND_SECONDS, **{**own, "link_background": model}
        )
        rates = env.open_rates[:, : int(1.5 * runs.BACKGROUND_SECONDS / env.step)]
        varied = rates.std(axis=1) / rates.mean(axis=1)
        half = math.ceil(1800 / env.step)
        panels[0].plot(env.step * np.arange(half) / 60, rates[0, :half], lw=1, color=INK[ink],
                       label=label)  # fmt: skip
        panels[1].plot(rates.mean(axis=1), varied, "o", ms=4, color=INK[ink], label=label)
        table.append(pd.DataFrame({"model": model, "mean": rates.mean(axis=1), "cv": varied}))
    counts = study.background.groupby("model")[["servers", "links"]].mean()
    ratio = counts.loc["extraneous"] / counts.loc["trace"]
    panels[0].set(xlabel="minute", ylabel="throughput, Mbit/s", title="one LAN link")
    panels[1].set(xlabel="mean throughput, Mbit/s", ylabel="std / mean", xscale="log",
                  title=f"extraneous needs {ratio['links']:.0f} times the numbers on links, "
                        f"{ratio['servers']:.1f} on servers")  # fmt: skip
    panels[1].set_ylim(0, None)
    panels[1].legend(fontsize=8)
    return keep(study, "background", panels[0], pd.concat(table, ignore_index=True))


def _apart(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Subtract what is without a mechanism from what is with it, in the same environments."""
    keys = ["network", "replicate", "policy", "corrected", "fallbacks"]
    wide = frame.pivot(index=keys, columns="mechanism", values=column)
    less = wide.drop(columns="as it is").sub(wide["as it is"], axis=0).reset_index()
    tidy = less.melt(keys, var_name="mechanism", value_name="change").dropna()
    table = summary(tidy, [key for key in ("mechanism", *keys) if key != "replicate"], "change")
    return table.assign(what=column)


def _draw_change(ax: Axes, table: pd.DataFrame, places: list[Any], x: str) -> None:
    """Draw changes of every scheduler with their intervals, side by side."""
    for k, (key, line) in enumerate(table.groupby(["policy", "corrected", "fallbacks"])):
        corrected, fallbacks = int(line["corrected"].iloc[0]), int(line["fallbacks"].iloc[0])
        line = line.set_index(x).reindex(places)
        spread = np.abs([line["estimate"] - line["low"], line["high"] - line["estimate"]])
        color = style_of(str(key[0]))[0]
        sign = runs.version(corrected, fallbacks)
        ax.errorbar(np.arange(len(places)) + 0.1 * (k - 2.5), line["estimate"], yerr=spread,
                    fmt={"x/x": "o", "x/F": "D"}.get(sign, "v"), color=color, capsize=2,
                    mfc="white" if fallbacks else color, label=f"{key[0]} {sign}")  # fmt: skip
    ax.axhline(0, color="#333333", lw=0.8)
    ax.set_xticks(range(len(places)), [f"{p:g}" if x == "slack" else str(p) for p in places])


def fig_mechanisms(study: Study, axes: Sequence[Axes] | None = None) -> Axes:
    """Load Correction for links, and a threshold for Fallback: what they change."""
    panels, frame = panels_of(axes, 2, (11, 4), sharey=False), study.extras
    table = pd.concat([_apart(frame, name) for name in ("failure", "cost", "resubmitted")])
    shown = table[table["what"] == "failure"]
    ends = ("estimate", "low", "high")
    shown = shown.assign(**{name: PERCENT * shown[name] for name in ends})
    _draw_change(panels[0], shown[shown["mechanism"] == "links"], ["fluid", "packet"], "network")
    late = shown[shown["mechanism"].str.startswith("slack") & (shown["fallbacks"] > 0)]
    late = late.assign(slack=late["mechanism"].str.removeprefix("slack ").astype(float))
    _draw_change(panels[1], late, sorted(late["slack"].unique()), "slack")
    panels[0].set(title="Load Correction for links", xlabel="network",
                  ylabel="change of the failure rate, points")  # fmt: skip
    panels[1].set(title="Fallback only beyond a slack", xlabel="slack, s")
    handles, labels = panels[0].get_legend_handles_labels()
    panels[-1].legend(handles, labels, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return keep(study, "mechanisms", panels[0], table)

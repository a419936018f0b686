"""The verbs of every picture: lines with bands, marks with intervals, shares, heat maps, axes.

A table of estimates has the columns estimate, low and high (`dlsim.study.stats.summary`). Every
verb draws on the axes given, or on those of a new figure, and returns them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation
from seaborn.utils import relative_luminance

from dlsim.errors import InputError
from dlsim.given import option, word
from dlsim.given import table as need_table
from dlsim.study.claims import SHOWN_WORDS, SYMBOLS, load_claims
from dlsim.study.stats import ENDS, summary
from dlsim.study.style import VERDICT_INK, policy_order, style_of

#: Shares are fractions; pictures show points and percent.
PERCENT = 100.0
#: Where a legend stands beside the axes.
BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
# A legend of more policies than this stands there.
_MOST_INSIDE = 4


def axes_of(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def policy_lines(
    frame: pd.DataFrame, x: str, y: str = "estimate", *, low: str = "low", high: str = "high",
    interval: str = "auto", legend: bool = True, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw one mean line per policy with its interval, in the fixed order and style.

    A single line has a band; those of several have bars, side by side where they share a place.
    """
    need_table("policy lines", frame, ("policy", x, y), empty=False, unique=False)
    option("interval", interval, ("auto", "band", "bar", "none"))
    ax, names = axes_of(ax), policy_order(frame["policy"])
    known = interval != "none" and low in frame.columns and high in frame.columns
    banded = interval == "band" or (interval == "auto" and len(names) == 1)
    apart = known and not banded and frame[x].duplicated().any()
    for k, name in enumerate(names):
        rows = frame[frame["policy"].astype(str) == name].sort_values(x)
        color, marker, dash = style_of(name)
        line = ax.plot(
            rows[x], rows[y], color=color, marker=marker, linestyle=dash, label=name,
            markeredgecolor="white", markeredgewidth=0.6, zorder=3,
        )  # fmt: skip
        drawn: list[Artist] = [*line]
        if known and banded:
            ax.fill_between(rows[x], rows[low], rows[high], color=color, alpha=0.15, linewidth=0)
        elif known:
            spread = np.abs([rows[y] - rows[low], rows[high] - rows[y]])
            look: dict[str, Any] = {"fmt": "none", "ecolor": color, "elinewidth": 1}
            drawn += ax.errorbar(rows[x], rows[y], yerr=spread, capsize=2, **look).get_children()
        if apart:
            aside(ax, drawn, k, len(names), frame[x].nunique())
    ax.set(xlabel=x, ylabel=y)
    if legend:
        ax.legend(handlelength=3.2, **(BESIDE if len(names) > _MOST_INSIDE else {}))
    return ax


def aside(ax: Axes, drawn: Iterable[Artist], k: int, count: int, places: int) -> None:
    """Move what is the k-th of several a few points from its place, where limits keep it."""
    step = min(3.5, 240 / (places * count))
    shift = ScaledTranslation(step * (k - (count - 1) / 2) / 72, 0, ax.figure.dpi_scale_trans)
    for one in drawn:
        one.set_transform(ax.transData + shift)


def panels(
    axes: Any, count: int, size: tuple[float, float], sharey: bool = True, rows: int = 1,
    **options: Any,
) -> list[Axes]:  # fmt: skip
    """Return the axes given, or as many new ones, row by row."""
    if axes is None:
        layout: dict[str, Any] = {"layout": "constrained", "squeeze": False, **options}
        axes = plt.subplots(rows, count, figsize=size, sharey=sharey, **layout)[1]
    return list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())


def facets(
    table: pd.DataFrame, by: str | list[str], size: tuple[float, float], title: str = "{}",
    ylabel: str = "", sharey: bool = True,
) -> list[tuple[Axes, pd.DataFrame]]:  # fmt: skip
    """Make one panel per value of a column, in their order, each with its rows."""
    groups = list(table.groupby(by, sort=False))
    axes = panels(None, len(groups), size, sharey)
    for ax, (value, _) in zip(axes, groups, strict=True):
        ax.set_title(title.format(*value) if isinstance(value, tuple) else title.format(value))
    axes[0].set_ylabel(ylabel)
    return list(zip(axes, (rows for _, rows in groups), strict=True))


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Cut the intervals of shares to what a share can be."""
    return table.assign(low=table["low"].clip(0, 1), high=table["high"].clip(0, 1))


def percent(table: pd.DataFrame) -> pd.DataFrame:
    """Scale estimates of shares to percent or points."""
    return table.assign(**{name: PERCENT * table[name] for name in ENDS})


def reach(table: pd.DataFrame) -> Any:
    """Return how far the interval of every row reaches below and above its estimate."""
    return np.abs([table["estimate"] - table["low"], table["high"] - table["estimate"]])


def with_load(frame: pd.DataFrame, by: Sequence[str], column: str = "ratio") -> pd.DataFrame:
    """Estimate a column at every point of a grid, with the realised load beside the nominal."""
    table, keys = summary(frame, by, column), [name for name in by if name != "policy"]
    loads = summary(frame, keys, "realised_load")[[*keys, "estimate"]]
    return table.merge(loads.rename(columns={"estimate": "realised_load"}), on=keys, how="left")


def realised_axis(ax: Axes, table: pd.DataFrame) -> Axes:
    """Draw the realised load above the nominal one: they are proportional but for chance."""
    nominal, realised = table["load"], table["realised_load"]
    slope = float((nominal * realised).sum() / (nominal**2).sum())
    ways = lambda x: np.asarray(x) * slope, lambda x: np.asarray(x) / slope
    top = ax.secondary_xaxis("top", functions=ways)
    top.set_xlabel("realised load", fontsize="small")
    if ax.get_xscale() == "log":
        top.xaxis.set_major_formatter("{x:g}")
        top.minorticks_off()
    return ax


def log_ticks(ax: Axes, ticks: Sequence[float], base: float = 10) -> Axes:
    """Scale the x axis by logarithms and name these values on it."""
    ax.set_xscale("log", base=base)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    return ax


def band(ax: Axes, x: Any, table: pd.DataFrame, mark: str = "o-", **look: Any) -> Axes:
    """Draw one line of estimates with its interval as a band."""
    alpha = look.pop("alpha", 0.15)
    [line] = ax.plot(x, table["estimate"], mark, **look)
    ax.fill_between(x, table["low"], table["high"], color=line.get_color(), alpha=alpha, lw=0)
    return ax


def bands(
    table: pd.DataFrame, x: str, by: str, colors: Any = "viridis", ax: Axes | None = None,
    label: str | Callable[[Any], str] = "{:g}", mark: str = "o-", interval: str = "band",
    **look: Any,
) -> Axes:  # fmt: skip
    """Draw one line with its band, or bars beside each other, per value of a column, in order."""
    ax, named = axes_of(ax), isinstance(colors, Mapping)
    groups = list(table.groupby(by, sort=not named))
    if isinstance(colors, str):
        colors = plt.get_cmap(colors)(np.linspace(0, 0.9, len(groups)))
    inks = colors if named else dict(zip((value for value, _ in groups), colors, strict=False))
    for k, (value, rows) in enumerate(groups):
        look["color"] = inks[value]
        look["label"] = label(value) if callable(label) else label.format(value)
        if interval == "bar":
            lines = {"fmt": mark, "capsize": 2, "elinewidth": 1, **look}
            drawn = ax.errorbar(rows[x], rows["estimate"], yerr=reach(rows), **lines)
            aside(ax, drawn.get_children(), k, len(groups), table[x].nunique())
        else:
            band(ax, rows[x], rows, mark, **look)
    return ax


def marks(ax: Axes, x: Any, table: pd.DataFrame, **look: Any) -> Axes:
    """Draw estimates with their intervals as bars."""
    ax.errorbar(x, table["estimate"], yerr=reach(table), **{"capsize": 2, **look})
    return ax


def beside_each_other(
    table: pd.DataFrame, at: str, order: Sequence[Any], step: float = 0.13,
    ax: Axes | None = None, **text: Any,
) -> Axes:  # fmt: skip
    """Draw one mark per policy side by side at every category, in the order of the table."""
    policies = list(dict.fromkeys(table["policy"]))
    shift = {name: step * (k - (len(policies) - 1) / 2) for k, name in enumerate(policies)}
    place = {name: k for k, name in enumerate(order)}
    x = table[at].map(place) + table["policy"].map(shift)
    ax = policy_lines(table.assign(place=x), "place", interval="bar", legend=False, ax=ax)
    for line in ax.get_lines():
        line.set_linestyle("none")
    ax.set_xticks(list(place.values()), list(map(str, place)), **text)
    ax.set(xlabel="", ylabel="")
    return ax


def side_by_side(
    table: pd.DataFrame, at: str, by: str, look: Callable[[Any], Mapping[str, Any]], ax: Axes,
    order: Sequence[Any] = (), step: float = 0.1,
) -> Axes:  # fmt: skip
    """Draw the marks of every group side by side at every category, each group in its look."""
    order, groups = list(order) or list(table[at].unique()), list(table.groupby(by, sort=False))
    for k, (name, rows) in enumerate(groups):
        place = np.arange(len(order)) + step * (k - (len(groups) - 1) / 2)
        marks(ax, place, rows.set_index(at).reindex(order), **{"label": name, **look(name)})
    ax.set_xticks(range(len(order)), list(map(word, order)))
    return ax


def crosses(
    ax: Axes, table: pd.DataFrame, x: str, y: str, hollow: bool = False, **look: Any
) -> Axes:
    """Draw one estimate against another, ``<x>estimate`` and so on, with both intervals."""
    one, other = (table[[f"{name}{end}" for end in ENDS]].set_axis(ENDS, axis=1) for name in (x, y))
    ax.errorbar(
        one["estimate"], other["estimate"], xerr=reach(one), yerr=reach(other),
        **{"ls": "", "lw": 1.2, "elinewidth": 0.7, "capsize": 0, **look},
        mfc="white" if hollow else look["color"],
    )  # fmt: skip
    return ax


def dotted(ax: Axes, *places: float, color: str = "#777777") -> Axes:
    """Draw dotted lines at places of the x axis."""
    for place in places:
        ax.axvline(place, color=color, lw=1, ls=":")
    return ax


def cumulative(ax: Axes, values: Any, **look: Any) -> Axes:
    """Draw the share of values at or below each."""
    x = np.sort(values)
    ax.step(x, np.arange(1, len(x) + 1) / len(x), where="post", **look)
    return ax


def nest(ax: Axes) -> Axes:
    """Draw earlier lines wider than later ones: those that coincide stay visible."""
    lines = (line for line in reversed(ax.lines) if not str(line.get_label()).startswith("_"))
    for k, line in enumerate(lines):
        line.set(linewidth=1.5 + 1.9 * k, markersize=4.5 + 3.2 * k)
    ax.legend(handlelength=4)
    return ax


def stretched(ax: Axes) -> Axes:
    """Scale the y axis linearly from -1 to 1 and by logarithms beyond."""
    low, high = ax.get_ylim()
    ax.set_yscale("symlog", linthresh=1.0)
    far = (0.5, 1, 2, 5, 10, 20, 50, 100)
    shown = [x for x in (0, *far, *(-tick for tick in far)) if low <= x <= high]
    ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
    ax.minorticks_off()
    ax.set_ylim(low, high)
    return ax


def name_ends(ax: Axes, table: pd.DataFrame, x: str, names: Mapping[str, str]) -> Axes:
    """Write names at the right ends of lines, in one row where lines end together."""
    last, least = float(table[x].max()), 0.033  # of the height of the axes, between two rows
    ends = table[table[x] == last].sort_values("estimate")
    to_axes = ax.transData + ax.transAxes.inverted()
    rows: list[tuple[float, list[str]]] = []
    for policy, estimate in zip(ends["policy"], ends["estimate"], strict=True):
        height = float(to_axes.transform((last, estimate))[1])
        if rows and height - rows[-1][0] < least:
            rows[-1][1].append(names[policy])
        else:
            rows.append((height, [names[policy]]))
    for height, texts in rows:
        ax.text(1.01, height, ", ".join(texts), transform=ax.transAxes, va="center", fontsize=8)
    return ax


def tiles(
    values: pd.DataFrame, texts: pd.DataFrame, colors: Any, ends: tuple[float, float], ax: Axes,
    gap: float = 1.0, **text: Any,
) -> Axes:  # fmt: skip
    """Draw a table as coloured tiles with a text in each.

    seaborn's heat map would draw the whole figure at every call, to see whether labels overlap.
    """
    ax.spines[:].set_visible(False)
    numbers = values.to_numpy(float)
    rows, columns = numbers.shape
    mesh: Any = ax.pcolormesh(
        numbers, cmap=colors, vmin=ends[0], vmax=ends[1], linewidths=gap, edgecolor="white"
    )
    ax.set(xlim=(0, columns), ylim=(rows, 0))
    ax.set_xticks(np.arange(columns) + 0.5, list(map(str, values.columns)))
    ax.set_yticks(np.arange(rows) + 0.5, list(map(str, values.index)), va="center")
    ax.tick_params(length=0, rotation=0)
    mesh.update_scalarmappable()
    light = relative_luminance(mesh.get_facecolors()).reshape(numbers.shape) > 0.408
    look: dict[str, Any] = {"ha": "center", "va": "center"}
    for y, x in np.argwhere(~np.isnan(numbers)).tolist():
        ink = ".15" if light[y, x] else "w"
        ax.text(x + 0.5, y + 0.5, str(texts.iat[y, x]), **{"color": ink, **look, **text})
    return ax


def heat(table: pd.DataFrame, rows: str, columns: str, far: float, ax: Axes | None = None) -> Axes:
    """Draw a map of differences, coloured by their root; in brackets if the interval contains 0."""
    grid = {name: table.pivot(index=rows, columns=columns, values=name) for name in ENDS}
    shown: Any = grid["estimate"].rename(index=word, columns=word)
    unsure = ((grid["low"] <= 0) & (grid["high"] >= 0)).to_numpy()
    said = (shown.round(2) + 0.0).map("{:.2f}".format)  # no minus sign before 0.00
    ax, bound = axes_of(ax), np.sqrt(far)
    said = said.mask(unsure, "[" + said + "]")
    return tiles(np.sign(shown) * np.sqrt(shown.abs()), said, "RdBu", (-bound, bound), ax, size=8)


def shades(count: int) -> Any:
    """Return colours in order, dark first."""
    return plt.get_cmap("viridis")(np.linspace(0, 0.85, count))


def boxed(
    ax: Axes, x: float, y: float, text: str, pad: float = 0.3, face: str = "white",
    edge: str = "0.25", shape: str = "round", **look: Any,
) -> Text:  # fmt: skip
    """Write a text in a box around a place, and return it: what an `arrow` joins."""
    box = {"boxstyle": f"{shape},pad={pad}", "facecolor": face, "edgecolor": edge}
    return ax.text(x, y, text, ha="center", va="center", bbox=box, zorder=3, **look)


def arrow(ax: Axes, one: Any, other: Any, head: str = "->", **look: Any) -> None:
    """Draw an arrow from the frame of one text in a box to that of another."""
    ends = {"patchA": one.get_bbox_patch(), "patchB": other.get_bbox_patch()}
    bare = {"arrowstyle": head, "color": "0.35", "shrinkA": 0, "shrinkB": 0, **ends, **look}
    ax.annotate("", other.get_position(), one.get_position(), arrowprops=bare)


def zero(ax: Axes) -> Axes:
    """Draw the line of no difference."""
    ax.axhline(0, color="#333333", lw=0.8)
    return ax


def legend_of_all(ax: Axes, **look: Any) -> Axes:
    """Draw a legend beside the axes, every label once."""
    handles, labels = ax.get_legend_handles_labels()
    some = dict(zip(labels, handles, strict=True))
    ax.legend(some.values(), some.keys(), **{**BESIDE, **look})
    return ax


def judged(
    family: pd.DataFrame, x: str, by: str = "what", unit: str = "points", edge: float = 0.0,
    ax: Axes | None = None, **look: Any,
) -> Axes:  # fmt: skip
    """Draw the points that a claim is judged by, with the intervals that hold all of them at once.

    The dashed line is where the claim's region ends.
    """
    scale = PERCENT if unit in ("points", "%") else 1.0
    ends = family[["estimate", "least", "most"]].to_numpy(float) * scale
    table = family.assign(estimate=ends[:, 0], low=ends[:, 1], high=ends[:, 2])
    inks, label = look.pop("colors", "viridis"), look.pop("label", "{}")
    ax = bands(table, x, by, inks, ax, label, interval="bar", **look)
    ax.axhline(edge * scale, color="0.4", lw=1, ls="--", zorder=0)
    ax.set(xlabel=x, ylabel=unit)
    return ax


def verdict_heat(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw which reading supports which claim: colour, symbol and count in every cell.

    A cell is the word of a verdict, followed where it is known by the number of points for it.
    """
    words = list(SYMBOLS)
    parts = frame.map(lambda cell: re.fullmatch(r"(\D+?)(?: (\d+/\d+))?", str(cell)))
    bare = parts.map(lambda part: part[1] if part else "")
    unknown = sorted(set(frame.to_numpy()[~bare.isin(words).to_numpy()]), key=str)
    if frame.empty or unknown:
        found = f"got {unknown[0]!r}" if unknown else "got an empty table"
        raise InputError(f"every cell must be one of {', '.join(words)}; {found}")
    texts = parts.map(lambda part: f"{SYMBOLS[part[1]]} {part[2] or ''}".strip())
    claims = {claim.id: f"{claim.number}: {shorten(claim.text, 75, placeholder=' ...')}"
              for claim in load_claims()}  # fmt: skip
    rows, columns = frame.shape
    label = max(len(str(name)) for name in frame.columns)
    ax = axes_of(ax, (5.6 + 0.66 * columns, 1.3 + 0.08 * label + 0.3 * rows))
    colors, codes = ListedColormap(list(VERDICT_INK.values())), bare.map(words.index)
    codes.index = pd.Index([claims.get(name, str(name)) for name in frame.index])
    tiles(codes, texts, colors, (0, len(words) - 1), ax, 1.5, color="#222222", size=9)
    ax.xaxis.tick_top()
    ax.tick_params("x", rotation=90)
    labels = {word: f"{SYMBOLS[word]} {SHOWN_WORDS[word]}" for word in words}
    keys = [Patch(color=VERDICT_INK[word], label=labels[word]) for word in words]
    ax.legend(
        handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.02),
        ncols=2 if columns < 12 else len(words), columnspacing=1.2, handlelength=1.2,
    )  # fmt: skip
    return ax

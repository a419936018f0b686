"""One look for every figure: theme, palette, and a style per policy for life.

Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), without
their yellow, which is too light for a line. A policy is told apart by colour, marker
and dash, so that a figure survives colour blindness and a black-and-white print.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from dlsim.study.plain_text import show_tables_without_formulas

#: Named colours of the house.
INK = {
    "black": "#000000",
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "orange": "#E69F00",
    "pink": "#CC79A7",
}

#: More colours for pictures of many policies: P. Tol, "Colour Schemes" (2021), the muted scheme.
MORE_INK = {"indigo": "#332288", "wine": "#882255", "olive": "#999933", "teal": "#44AA99"}

#: Named dashes of the house, as matplotlib line styles.
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (5, 2)),
    "dotted": (0, (1, 1.4)),
    "dashdot": (0, (6, 2, 1.4, 2)),
    "long": (0, (9, 2.5)),
}


class Style(NamedTuple):
    """How one policy is drawn, everywhere and for ever."""

    color: str
    marker: str
    dash: Any


# Order of the rows = order of every legend. FIFO policies are cold, EDF policies warm.
_TABLE = """
MCDF          black      D solid   | FIFOMN        blue       o solid
EDFMN         vermillion o solid   | FIFOAN        sky        s dashed
EDFAN         orange     s dashed  | FIFOANNA      green      ^ dotted
EDFANNA       pink       ^ dotted  | FIFO-OPR-MN   blue       o long
FIFO-DLT      black      s solid   | FIDO-I        sky        v dashed
FIDO-II       green      D solid   | FIFO-EXACT    indigo     ^ dashdot
FIFO-EXACT-N  vermillion ^ long    | FIFO-US       olive      v dotted
FIFO-UMR-MN   pink       o dashdot | FIFO-UMR-IIT  teal       s long
EDF-OPR-MN    vermillion o long    | EDF-DLT       black      s dashed
EDDO-I        orange     v dashed  | EDDO-II       pink       D solid
EDF-EXACT     wine       ^ dashdot | EDF-EXACT-N   green      ^ long
EDF-US        olive      v dashed  | EDF-UMR-MN    indigo     o dashdot
EDF-UMR-IIT   teal       s dashed  | LP            black      o dotted
FIFO-OPR-FRAG orange     o dotted  | FIFO-EQ-MN    wine       v dotted
EDF-OPR-FRAG  sky        o dotted  | EDF-EQ-MN     blue       v dotted
MILP          black      s long    | G             vermillion s solid
LPR           sky        v dotted  | LPRG          blue       D dashed
LPRR          green      o solid   | history       black      o solid
cpu-only      indigo     v long    | gpu-only      blue       ^ long
preferred     green      s dashed  | round-robin   orange     D dotted
mct           vermillion s dashdot | torque        pink       v dashdot
torque-strict pink       v solid   | rsc           sky        D dashdot
rsc-strict    sky        D solid   | rsa           sky        D dotted
asjf          wine       ^ solid   | ideal         black      ^ dotted
Greedy        black      v solid   | D-0.5         vermillion D dashed
D-0.6         orange     ^ dashed  | D-0.7         green      D dashed
D-0.8         sky        o dashed  | D-0.9         blue       s dashed
"""


#: Every named policy with its style, in the order of the legends.
STYLES: dict[str, Style] = {
    name: Style((INK | MORE_INK)[ink], marker, DASHES[dash])
    for cell in _TABLE.strip().replace("\n", "|").split("|")
    for name, ink, marker, dash in [cell.split()]
}
# Markers that no named policy uses: an unnamed one never looks like a named one.
_SPARE_MARKERS = ("P", "X", "*", "h", "p", "<", ">", "d")


def style_of(policy: str) -> Style:
    """Return the style of a policy: its row, or one derived from its name.

    >>> style_of("MCDF").color
    '#000000'
    >>> style_of("my own policy") == style_of("my own policy")
    True
    """
    if policy in STYLES:
        return STYLES[policy]
    number = int.from_bytes(hashlib.sha256(policy.encode()).digest()[:8], "big")
    number, color = divmod(number, len(INK))
    number, marker = divmod(number, len(_SPARE_MARKERS))
    dash = number % len(DASHES)
    return Style(list(INK.values())[color], _SPARE_MARKERS[marker], list(DASHES.values())[dash])


def policy_order(names: Iterable[str]) -> list[str]:
    """Sort policy names for a legend: the table's order, then the alphabet.

    >>> policy_order(["zeta", "EDFAN", "MCDF", "EDFAN"])
    ['MCDF', 'EDFAN', 'zeta']
    """
    rank = {name: i for i, name in enumerate(STYLES)}
    return sorted(set(map(str, names)), key=lambda name: (rank.get(name, len(rank)), name))


#: Colours of policies that a user adds, which no policy of a paper has.
OWN_INK = ("#7B3FA0", "#8B5A2B", "#A51C4B", "#5A7302")


def _own_styles(names: Iterable[str]) -> dict[str, Style]:
    """Give each policy of a user a colour of its own, as long as there are enough."""
    own = [name for name in names if name not in STYLES]
    return {
        name: style_of(name)._replace(color=OWN_INK[k % len(OWN_INK)]) for k, name in enumerate(own)
    }


def policy_style(policies: Iterable[Any]) -> dict[str, Any]:
    """Return the keywords by which seaborn draws one line per policy in its colour for life.

    Parameters
    ----------
    policies : iterable of str
        The column of policies, or their names. One that no paper has gets a colour of its own.

    Returns
    -------
    dict
        hue, style (both "policy"), hue_order, style_order, palette, markers and dashes, for
        ``seaborn.lineplot`` and ``seaborn.relplot``.
    """
    names = policy_order(policies)
    styles = {name: STYLES[name] for name in names if name in STYLES} | _own_styles(names)
    return {
        "hue": "policy",
        "style": "policy",
        "hue_order": names,
        "style_order": names,
        "palette": {name: styles[name].color for name in names},
        "markers": {name: styles[name].marker for name in names},
        "dashes": {
            name: "" if styles[name].dash == "-" else styles[name].dash[1] for name in names
        },
    }


def student_interval(values: Any) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean: ``errorbar=student_interval`` of seaborn."""
    from scipy.special import stdtrit

    sample = np.asarray(values, dtype=float)
    mean, n = float(sample.mean()), len(sample)
    if n < 2:
        return mean, mean
    half_width = stdtrit(n - 1, 0.975) * sample.std(ddof=1) / np.sqrt(n)
    return mean - half_width, mean + half_width


def use() -> None:
    """Set the theme of all figures (seaborn over matplotlib), and how tables are shown."""
    import seaborn as sns  # and with it SciPy's statistics: only where something is drawn

    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=list(INK.values()),
        rc={
            "figure.figsize": (6.4, 4.0),
            "figure.dpi": 110,
            "savefig.dpi": 150,
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "dlsim",
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "axes.edgecolor": "#444444",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": "#E2E2E2",
            "grid.linewidth": 0.8,
            "lines.linewidth": 1.7,
            "lines.markersize": 5.5,
            "hatch.linewidth": 0.6,
        },
    )
    show_tables_without_formulas()

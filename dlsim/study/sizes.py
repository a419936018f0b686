"""How much the notebooks of a paper compute at each scale, beside what the paper states."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim.files import read_toml, shared_file
from dlsim.study.plain_text import shown_table
from dlsim.validate import one_of

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

SCALES = ("quick", "full")


def _sizes_of(papers: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the sizes of some papers: at each scale, and as stated (None if not stated)."""
    rows = read_toml(shared_file("data/scales.toml"))
    for paper in papers:
        of_paper = rows[one_of("the paper", paper, rows)]
        for size in of_paper.get("sizes", ()):
            yield {
                "paper": paper,
                "stated": size.get("stated"),
                "where": size.get("where", ""),
                "quote": size.get("quote", ""),
                "what": size["what"],
                **{scale: _product(of_paper[scale], size["parameters"]) for scale in SCALES},
            }


def _product(scale: Mapping[str, Any], names: list[str]) -> float:
    """Return the product of parameters; a list counts by its length."""
    values = (scale[name] for name in names)
    return math.prod(len(one) if isinstance(one, list) else one for one in values)


def _as_text(size: float, stated: float | None) -> str:
    """Write a size, and how much of the stated one it is, unless they are equal."""
    if stated is None or size == stated:
        return f"{size:,.0f}"
    times = f"{100 * size / stated:.2g} %" if size < stated else f"{size / stated:g} times"
    return f"{size:,.0f} ({times})"


def table_of_sizes(*papers: str) -> pd.DataFrame:
    """Return how much is computed at each scale, beside what each paper states.

    Parameters
    ----------
    *papers : str
        Keys of data/scales.toml, such as "mcdf".

    Returns
    -------
    DataFrame
        One row per size, all texts: paper, what, "the paper states" (with the section), and one
        column per scale, which says how much of the stated size it is where it is another.
    """
    rows = []
    for size in _sizes_of(list(papers)):
        stated = "nothing" if size["stated"] is None else f"{size['stated']:,} ({size['where']})"
        row = {"paper": size["paper"], "what": size["what"], "the paper states": stated}
        rows.append(row | {one: _as_text(size[one], size["stated"]) for one in SCALES})
    return pd.DataFrame(rows, columns=["paper", "what", "the paper states", *SCALES])


def has_stated_size(paper: str, scale: str) -> bool:
    """Return whether a scale has every size that the paper states, and the paper states one."""
    known = [one for one in _sizes_of([paper]) if one["stated"] is not None]
    return bool(known) and all(one[scale] == one["stated"] for one in known)


def show_sizes(*papers: str) -> "Styler":
    """Show how much is computed at each scale, beside what each paper states.

    Parameters
    ----------
    *papers : str
        Keys of data/scales.toml, such as "mcdf".
    """
    table = table_of_sizes(*papers)
    own = {paper: [one for one in SCALES if has_stated_size(paper, one)] for paper in papers}
    if len(papers) == 1:
        table = table.drop(columns="paper")
    said = [
        f"The scale {scale} is the paper's own size" + f" ({paper})" * (len(papers) > 1)
        for paper, scales in own.items()
        for scale in scales
    ]
    caption = ". ".join(said) or "Neither scale is a size that the paper states"
    return shown_table(table).hide(axis="index").set_caption(f"{caption}.")

"""Paper C's drawings made from runs, and the inventory of its mechanisms."""

import importlib
from itertools import pairwise
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dlsim.cpugpu.mapdata import map_block, partition_of
from dlsim.cpugpu.mapreduce import run_mapreduce, split_text, word_count
from dlsim.errors import InputError
from dlsim.files import read_csv, shared_file
from dlsim.papers.cpu_gpu.study import Study
from dlsim.study.plot import arrow, axes_of, boxed
from dlsim.study.style import INK

#: The sentence of Figure 3, and how it is cut.
SENTENCE, MAPS, PARTS = "the quick fox the dog the fox", 3, 2
#: Colours of the stages of a chunk.
STAGE_INK = {"h2d": INK["sky"], "map": INK["green"], "d2h": INK["orange"]}


def flow_of(text: str = SENTENCE, maps: int = MAPS, parts: int = PARTS) -> dict[str, list[str]]:
    """Return what each step of a word count hands on, in words."""
    job, blocks = word_count(parts), split_text(text, maps)
    run = run_mapreduce(job, blocks)
    run.check()
    mapped = [map_block(job, block, "cpu") for block in blocks]
    merged = [sorted(pair for own in mapped for pair in own[part]) for part in range(parts)]
    return {
        "input": [text],
        "split": [block.strip() for block in blocks],
        "map": ["\n".join(f"{k} {v}" for own in made for k, v in own) for made in mapped],
        "partition, sort": ["\n".join(f"{k} {v}" for k, v in pairs) for pairs in merged],
        "reduce": [
            "\n".join(f"{k} {v}" for k, v in run.output.items() if partition_of(k, parts) == part)
            for part in range(parts)
        ],
    }


def fig3(
    study: Study, text: str = SENTENCE, maps: int = MAPS, parts: int = PARTS, ax: Axes | None = None
) -> Axes:
    """Figure 3, redrawn: a word count on its way through map, partition, sort and reduce."""
    ax = axes_of(ax, (8.6, 3.8))
    steps = flow_of(text, maps, parts)
    places = {
        name: [(2.1 * column, -(i + 0.5) * 6 / len(texts)) for i in range(len(texts))]
        for column, (name, texts) in enumerate(steps.items())
    }
    inks = ("#EEEEEE", "#EEEEEE", "#CFE6F3", "#F6E7A8", "#BFE3D6")
    boxes: dict[str, list[Any]] = {}
    for (name, texts), ink in zip(steps.items(), inks, strict=True):
        ax.text(places[name][0][0], 0.35, name, ha="center", fontsize=11, weight="bold")
        shown = [fill(part, 14) if name == "input" else part for part in texts]
        boxes[name] = [
            boxed(ax, *place, part, face=ink, edge="#555555", fontsize=9.5)
            for place, part in zip(places[name], shown, strict=True)
        ]
    for one, other in pairwise(boxes):
        for i, a in enumerate(boxes[one]):
            for j, b in enumerate(boxes[other]):
                if len(boxes[one]) != len(boxes[other]) or i == j:
                    arrow(ax, a, b)
    ax.set(xlim=(-1, 9.4), ylim=(-6.2, 0.8))
    ax.axis("off")
    table = pd.DataFrame(
        [(name, i, text) for name, texts in steps.items() for i, text in enumerate(texts)],
        columns=["step", "box", "text"],
    )
    return study.keep("fig3", ax, table)


def inventory() -> pd.DataFrame:
    """List every mechanism of the paper with its section, what runs it and what shows it.

    >>> inventory().loc[8, "runs in"]
    'rules.minimum_completion_time'
    """
    table = read_csv(shared_file("data/papers/cpu-gpu-mechanisms.csv"), {"mechanism": "text"})
    for module, name in table["runs in"].str.rsplit(".", n=1):
        if not hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name):
            raise InputError(f"dlsim.cpugpu.{module} must hold {name}, which the inventory names")
    return table.set_index(pd.RangeIndex(1, len(table) + 1, name="row"))

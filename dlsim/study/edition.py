"""The executed edition: the notebooks of a run, to be read without running anything.

An output is kept in its best form, a picture in fewer colours, and nothing tells of the machine
or of the hour: equal results give equal bytes. It lies in data/executed, and `dlsim book` takes it
for a run.
"""

import base64
import io
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from PIL import Image

from dlsim import files
from dlsim.errors import InputError
from dlsim.owned import Owned
from dlsim.progress import step

#: Forms of an output, the best first.
FORMS = ("image/png", "text/html", "text/markdown", "text/latex", "text/plain")
#: A picture's widest, in pixels, and how far apart its colours are, of 255.
WIDEST, APART = 1200, 24
#: From a notebook to the data that lies beside it, in the suite and in the edition.
HERE, THERE = "../data/", "../../"


def executed(run: Path) -> list[Path]:
    """Return the executed notebooks of a run; refuse a folder with none, or a damaged one."""
    ended = sorted((run / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    found = [path for path in ended if ".failed" not in path.name]
    if not (run / "run.json").is_file() or not found:
        remedy = "run dlsim reproduce first, or name the folder of a run with --from"
        raise InputError(f"{run}: no executed notebooks; {remedy}")
    for path in found:
        try:
            nbformat.validate(nbformat.read(path, 4))
        except Exception as error:  # whatever a damaged one holds
            why = str(error).partition("\n")[0]
            what = f"{path}: not a notebook ({why})"
            raise InputError(f"{what}; run dlsim reproduce again") from error
    return found


def pictures(run: Path) -> dict[str, bytes]:
    """Return the pictures of a run by name; those of an edition lie in its notebooks."""
    found = {path.stem: files.read_bytes(path) for path in (run / "figures").glob("*.png")}
    for cell in (cell for path in executed(run) for cell in nbformat.read(path, 4).cells):
        for output in cell.get("outputs", []):
            if name := output.get("metadata", {}).get("figure"):
                found[name] = base64.b64decode(output.data["image/png"])
    return found


def _smaller(png: bytes, width: int) -> bytes:
    """Write a picture as wide as it is shown, its colours the most frequent of those alike."""
    with Image.open(io.BytesIO(png)) as image:
        seen = Image.new("RGBA", image.size, "white")
        seen.alpha_composite(image.convert("RGBA"))
    few = seen.convert("RGB")
    if width < few.width:
        height = max(1, round(width * few.height / few.width))
        few = few.resize((width, height), Image.Resampling.BOX)
    codes = np.asarray(few, np.int64) @ (1 << 16, 1 << 8, 1)
    known, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    inks = np.stack([known >> 16, known >> 8 & 255, known & 255], axis=1)
    nearest, distance = np.zeros(len(inks), np.uint8), np.full(len(inks), np.inf)
    palette: list[Any] = []
    while len(palette) < 256 and counts.any():
        chosen = inks[counts.argmax()]
        away = np.linalg.norm(inks - chosen, axis=1)
        nearest[away < distance] = len(palette)
        distance = np.minimum(distance, away)
        counts[away <= APART] = 0
        palette.append(chosen)
    few = Image.fromarray(nearest[places].reshape(codes.shape))
    few.putpalette(np.array(palette, np.uint8).tobytes())
    buffer = io.BytesIO()
    few.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _table(text: str, number: int) -> str:
    """Number a table of pandas, whose name is drawn at random; leave out names of no use."""
    text = re.sub(r"\bT_[0-9a-f]{5}\b|\bT_[0-9a-f]{5}(?=_)", f"T_{number}", text)
    used = set(re.findall(r"#(T_\w+)", text))
    return re.sub(r' id="(T_\w+_row\w+)" class="[^"]*" ?',
                  lambda one: f' id="{one[1]}"' if one[1] in used else "", text)  # fmt: skip


def _output(output: Any, number: int, known: Mapping[bytes, str]) -> None:
    """Leave of an output one form."""
    data, output.metadata = output.data, output.get("metadata", {})
    form = next((name for name in FORMS if name in data), "")
    output.data = {form: data[form]} if form else {}
    if form == "image/png":
        png, size = base64.b64decode(data[form]), output.metadata.get(form, {})
        few = _smaller(png, min(size.get("width", WIDEST), WIDEST))
        output.data[form] = base64.b64encode(few).decode("ascii")
        if png in known:
            output.metadata["figure"] = known[png]
    elif form == "text/html":
        output.data[form] = _table("".join(data[form]), number)


def _notebook(path: Path, known: Mapping[bytes, str]) -> str:
    """Return an executed notebook as the edition has it."""
    book: Any = nbformat.read(path, 4)
    folder = book.metadata.get("papermill", {}).get("parameters", {}).get("out")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(book.cells):
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(f"]({HERE}", f"]({THERE}")
        elif "injected-parameters" in (tags or ()):
            cell.source = re.sub(r"^jobs = .*$", "jobs = 0", cell.source, flags=re.M)
        for output in cell.get("outputs", []):
            if "data" in output:
                _output(output, number, known)
    text = nbformat.writes(book)
    if folder:
        text = text.replace(json.dumps(folder)[1:-1], "results/latest")
    share = files.shared_folder("data")
    homes = (Path.home(), Path(tempfile.gettempdir()), Path(sys.prefix), share)
    here = "|".join(re.escape(json.dumps(str(one))[1:-1]) for one in homes if one.name)
    if told := re.search(rf"({here})[/\\][^\s\"]*", text):
        remedy = "let the notebook not print that, and run it again"
        raise InputError(f"{path}: tells of this machine: {told[0]}; {remedy}")
    return text + "\n"


def write_edition(run: Path, home: Owned) -> int:
    """Write the edition of a run, and return its size in bytes."""
    paths = executed(run)
    known = {png: name for name, png in pictures(run).items()}
    parts = dict[str, bytes]()
    for path in paths:
        step(f"packing {path.stem}")
        parts[f"notebooks/{path.name}"] = _notebook(path, known).encode()
    for path in sorted((run / "data").glob("*-claims.csv")):
        parts[f"data/{path.name}"] = files.read_bytes(path)
    record = files.read_json(run / "run.json")
    try:
        given, made = record["parameters"], record["environment"]
        record = {
            "software": record["software"],
            "parameters": {name: given[name] for name in given if name != "seconds"},
            "environment": {name: made[name] for name in ("python", "packages")},
        }
    except (KeyError, TypeError) as error:
        what = f"{run / 'run.json'}: no record of a run ({error})"
        raise InputError(f"{what}; run dlsim reproduce again") from error
    parts["run.json"] = (json.dumps(record, indent=1) + "\n").encode()
    for name in {name for name, _ in home.claim().known()} - parts.keys():  # of an earlier one
        home.clear(name)
    return sum(home.write(name, data).stat().st_size for name, data in parts.items())

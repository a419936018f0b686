"""Small notebooks that tests run."""

import nbformat

PARAMETERS = """scale: str = "quick"  # quick or full
seed: int = 0
runs: int = 0  # 0 = what the scale says
jobs: int = 0
out: str = ""
reading: dict = {}  # switches
width: float = 1.5
wide: bool = False
loads: list[float] = [0.5, 1.0]
bare = 3
"""


def write_notebook(path, *cells, parameters=PARAMETERS, text=""):
    """Write a notebook with a parameters cell, further code cells, and text at the end."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source) for source in (parameters, *cells)]
    book.cells[0].metadata["tags"] = ["parameters"]
    if text:
        book.cells.append(nbformat.v4.new_markdown_cell(text))
    # a kernel that is nowhere: notebooks run with this very Python all the same
    book.metadata["kernelspec"] = {"name": "gone", "display_name": "Gone", "language": "python"}
    nbformat.write(book, path)
    return path

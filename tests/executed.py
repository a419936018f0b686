"""What an executed notebook shows."""

import nbformat


def said(path):
    """All sentences that a notebook computed, in one text."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in outputs)


def needs_saying(study):
    """The sentences of all claims that a picture belongs to."""
    return [v.sentence for v in study.verdicts if v.claim.figure]

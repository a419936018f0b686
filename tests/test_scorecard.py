"""The scorecard of all papers: a run where there is one, the reference elsewhere."""

import importlib.util
import json
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from PIL import Image

from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.output_folder import OutputFolder
from dlsim.study import scorecard
from dlsim.study.claims import SHOWN_SYMBOLS, SHOWN_WORDS, SYMBOLS, load_claims, reference_of
from dlsim.study.notebooks import run_all

ROOT = Path(__file__).resolve().parents[1]


def row(claim, verdict="holds", **change):
    fields = {"id": claim, "paper": claim.rpartition("-")[0], "where": "1", "whose": "theorem"}
    fields |= {"claim": "<b> & co", "printed": "", "measured": "3", "points": ""}
    fields |= {"verdict": verdict, "reason": "Because.", "figure": "", "reference": "holds"}
    return fields | {"agreement": "CONTRADICTS" if verdict == "contrary" else "agrees"} | change


@pytest.fixture
def run(tmp_path):
    """A run of paper B only, quick, that left two claims."""
    frame = pd.DataFrame([row("bricks-1", "contrary"), row("bricks-2")])
    OutputFolder(tmp_path).acquire()
    (tmp_path / "data").mkdir()
    frame.to_csv(tmp_path / "data" / "bricks-claims.csv", index=False)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "60-bricks.ipynb").touch()
    given = {"scale": "quick", "seed": 3, "runs": 4, "reading": {"load": "util"}}
    stamp = tmp_path / "notebooks" / ".60-bricks.stamp.json"
    stamp.write_text(json.dumps({"parameters": given}))
    return tmp_path


def test_without_a_run_the_reference_is_shown(tmp_path):
    frame = scorecard.read_scorecards(tmp_path)
    assert list(frame["id"]) == [claim.id for claim in load_claims()]
    assert set(frame["origin"]) == {scorecard.REFERENCE}
    for paper, rows in frame.groupby("paper"):
        known = pd.read_csv(reference_of(paper), dtype=str, keep_default_na=False)
        assert list(rows["verdict"]) == list(known["verdict"])


def test_a_run_comes_first_and_says_how_it_was_run(run):
    frame = scorecard.read_scorecards(run)
    ours = frame[frame["paper"] == "bricks"]
    assert list(ours["id"]) == ["bricks-1", "bricks-2"]
    assert set(ours["origin"]) == {"this run, scale quick, seed 3, 4 runs, load=util"}
    assert set(frame[frame["paper"] != "bricks"]["origin"]) == {scorecard.REFERENCE}
    (run / "notebooks" / "60-bricks.ipynb").unlink()  # as after a failure
    frame = scorecard.read_scorecards(run)
    assert frame.loc[frame["paper"] == "bricks", "origin"].str.contains("did not end").all()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"parameters": []}',
                                  '{"parameters": {"reading": ["load"]}}'])  # fmt: skip
def test_a_damaged_stamp_tells_nothing(run, text):
    (run / "notebooks" / ".60-bricks.stamp.json").write_text(text)
    frame = scorecard.read_scorecards(run)
    assert frame.loc[frame["paper"] == "bricks", "origin"].str.contains("did not end").all()


@pytest.mark.parametrize("text", ["", "id,verdict\na,holds\n", "\0\0", 'id,"\n'])
def test_what_is_no_scorecard_is_refused(run, text):
    (run / "data" / "bricks-claims.csv").write_text(text)
    with pytest.raises(InputError, match=r"bricks-claims\.csv.*run dlsim reproduce again"):
        scorecard.read_scorecards(run)


def test_a_seventh_verdict_is_refused(run):
    pd.DataFrame([row("bricks-1", "maybe")]).to_csv(run / "data" / "bricks-claims.csv", index=False)
    with pytest.raises(InputError, match="'maybe'"):
        scorecard.read_scorecards(run)


def test_counts_and_picture_agree(run):
    frame = scorecard.read_scorecards(run)
    counts = scorecard.count_verdicts(frame)
    assert list(counts.columns) == list(SHOWN_SYMBOLS)
    assert counts.loc["bricks"].tolist() == [1, 0, 0, 1, 0, 0, 0]
    ax = scorecard.plot_counts(frame)
    widths = sum(patch.get_width() for patch in ax.patches)
    assert widths == len(frame)
    texts = [text.get_text() for text in ax.texts]
    for paper in counts.index:
        for word, number in counts.loc[paper].items():
            assert not number or f"{SHOWN_SYMBOLS[word]} {number}" in texts
    plt.close("all")
    with pytest.raises(InputError, match="needs claims"):
        scorecard.plot_counts(frame[:0])


def test_tables_escape_and_mark(run):
    frame = scorecard.read_scorecards(run)
    html = scorecard.style_claims(frame, "id", "claim", "verdict", "reference").to_html()
    assert "<b>" not in html
    assert "&lt;b&gt; &amp; co" in html
    assert html.count("<tr>") == len(frame) + 1
    for word in set(frame["verdict"]):
        assert f"{SYMBOLS[word]} {SHOWN_WORDS[word]}" in html


def test_the_verdicts_of_a_notebook_are_marked(run):
    frame = scorecard.read_scorecards(run).query("paper == 'bricks'")
    html = scorecard.style_verdicts(frame, "whose").to_html()
    for word in (
        f"{SYMBOLS['contrary']} contradicted",
        "CONTRADICTS",
        "Because.",
        "theorem",
        "&lt;b&gt; &amp; co",
    ):
        assert word in html
    assert html.count("<tr>") == 3
    assert "whose" not in scorecard.style_verdicts(frame).data


def test_the_notebook_reads_the_run_it_belongs_to(run):
    (result,) = run_all(["90-scorecard"], out=run)
    assert (result.status, result.error) == ("ok", "")
    text = result.path.read_text("utf-8")
    assert "scale quick, seed 3, 4 runs, load=util" in text
    shown = {
        cell["id"]: "".join(map(str, cell["outputs"]))
        for cell in json.loads(text)["cells"]
        if cell["cell_type"] == "code"
    }
    assert "bricks-1" in shown["against"]
    assert "bricks-2" not in shown["against"]
    assert "bricks-1" in shown["contradictions"]
    assert "mcdf-2" in shown["changes"]
    assert "rare counts" in shown["errors"]
    total = len(scorecard.read_scorecards(run))
    assert text.count('id=\\"claim-') == total
    with Image.open(run / "figures" / "suite-counts.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 16)) > 20  # a blank one has one colour
    about = json.loads(text)["metadata"]["papermill"]
    assert (about["input_path"], about["output_path"]) == ("90-scorecard.ipynb",) * 2


def test_the_changelog_ends_at_the_reference():
    moved = pd.read_csv(shared_file("data/reference/suite/suite-changelog.csv"))
    known = scorecard.read_scorecards("nowhere").set_index("id")["verdict"]
    assert moved["now"].tolist() == known[moved["id"]].tolist()
    assert moved["why"].str.endswith(".").all()
    assert moved["id"].is_unique


def test_results_that_contradict_the_reference_too_often_are_refused(tmp_path):
    said = [{"id": f"p-{k}", "agreement": "agrees"} for k in range(20)]
    spec = importlib.util.spec_from_file_location("check_results", ROOT / ".ci/check_results.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    for against, refused in ((3, False), (5, True)):
        for row in said[:against]:
            row["agreement"] = "CONTRADICTS"
        record = {"problems": [], "notebooks": [], "claims": said, "figures": []}
        (tmp_path / "run.json").write_text(json.dumps(record))
        (tmp_path / "report.html").write_text("</html>")
        found = [fault for fault in check.faults(tmp_path) if "contradicts" in fault]
        assert bool(found) == refused, against

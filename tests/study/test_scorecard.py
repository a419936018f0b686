"""The scorecard of all papers: a run where there is one, the reference elsewhere."""

import importlib.util
import json
import re
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from dlsim.errors import InputError
from dlsim.files import shared_file, suite_notebooks
from dlsim.output_folder import OutputFolder
from dlsim.study import pages, scorecard
from dlsim.study.claims import VERDICTS, Verdict, load_claims, read_scorecard, reference_of
from tests.verification.executed import in_one_space

ROOT = Path(__file__).resolve().parents[2]


def row(name, verdict="supported", **change):
    known = {claim.id: claim for claim in load_claims()}
    numbers = {"for": 3, "points": 3, "runs": 4, "what": "<b> & co", "estimate": 0.3}
    numbers |= {"low": 0.2, "high": 0.4, "smallest": 0.3, "largest": 0.5}
    about = {"scale": "quick", "sample": "quick scale, seed 3", "experiment": "as shipped"}
    return Verdict(known[name], verdict, "", numbers).row | about | change


@pytest.fixture
def run(tmp_path):
    """A run of paper B only, quick, that left two claims: one is contradicted at full scale."""
    frame = pd.DataFrame([row("bricks-2a", "contradicted"), row("bricks-3")])
    OutputFolder(tmp_path).acquire()
    (tmp_path / "data").mkdir()
    frame.to_csv(tmp_path / "data" / "bricks-claims.csv", index=False)
    return tmp_path


def test_a_run_comes_first_and_says_how_it_was_run(run):
    frame = pages.read_scorecards(run)
    ours = frame[frame["paper"] == "bricks"]
    assert list(ours["id"]) == ["bricks-2a", "bricks-3"]
    assert set(ours["origin"]) == {"this run: quick scale, seed 3"}
    assert list(ours["reference"]) == ["supported", "supported"]
    assert list(ours["agreement"]) == ["CONTRADICTS", "agrees"]
    rest = frame[frame["paper"] != "bricks"]
    assert set(rest["origin"]) == {pages.REFERENCE}
    assert set(rest["reference"]) == set(rest["agreement"]) == {""}


@pytest.mark.parametrize("change", [{"scale": "full"}, {"experiment": "changed"}])
def test_only_a_quick_run_of_what_is_shipped_stands_beside_the_reference(run, change):
    frame = pd.DataFrame([row("bricks-2a", "contradicted", **change)])
    frame.to_csv(run / "data" / "bricks-claims.csv", index=False)
    ours = pages.read_scorecards(run).query("paper == 'bricks'")
    assert (ours["reference"].item(), ours["agreement"].item()) == ("", "")


def test_what_is_no_scorecard_is_refused(run):
    path = run / "data" / "bricks-claims.csv"
    for text in ("", "id,verdict\na,supported\n", "\0\0", 'id,"\n'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"bricks-claims\.csv.*run dlsim reproduce again"):
            pages.read_scorecards(run)
    pd.DataFrame([row("bricks-2a") | {"verdict": "maybe"}]).to_csv(path, index=False)
    with pytest.raises(InputError, match="'maybe'"):
        pages.read_scorecards(run)


def test_counts_and_picture_agree(run):
    frame = pages.read_scorecards(run)
    counts = pages.count_verdicts(frame)
    assert list(counts.columns) == list(VERDICTS)
    assert counts.loc["bricks"].tolist() == [1, 0, 0, 1, 0, 0, 0]
    ax = pages.plot_counts(frame)
    widths = sum(patch.get_width() for patch in ax.patches)
    assert widths == len(frame)
    texts = [text.get_text() for text in ax.texts]
    for paper in counts.index:
        for word, number in counts.loc[paper].items():
            assert not number or f"{VERDICTS[word].symbol} {number}" in texts
    with pytest.raises(InputError, match="needs claims"):
        pages.plot_counts(frame[:0])


def test_the_table_of_claims_has_each_once_with_both_verdicts(run):
    """The run judged two claims of paper B; all others have the verdict at full scale alone."""
    html = pages.show_claims(pages.read_scorecards(run), run).data
    rows = dict(re.findall(r'<tr id="claim-(.+?)"(.*?)</tr>', html, re.S))
    assert list(rows) == [claim.id for claim in load_claims()]
    known = pd.concat(read_scorecard(reference_of(one)) for one in ("bricks", "mcdf"))
    own = {"bricks-2a": ("contradicted", "CONTRADICTS"), "bricks-3": ("supported", "agrees")}
    for name, at_full_scale in known.set_index("id")["verdict"].items():
        cells = [unescape(re.sub("<.+?>", " ", cell)) for cell in rows[name].split("<td>")]
        assert f"{VERDICTS[at_full_scale].symbol} {at_full_scale}" in cells[-2]
        assert f'data-verdict="{at_full_scale.replace(" ", "-")}"' in cells[0]
        word, agreement = own.get(name, ("", ""))
        assert agreement in cells[-1].split()[-1:] or not agreement
        assert f"{VERDICTS[word].symbol} {word}" in cells[-1] if word else not cells[-1].strip()
    assert "30 [20, 40] points" in html
    assert "<b> &" not in html
    assert "&lt;b&gt; &amp; co" in html
    said = pages.show_contradictions(pages.read_scorecards(run)).data
    assert re.findall('href="(.+?)"', said) == ["#claim-bricks-2a"]
    assert "No verdict" in pages.show_contradictions(pages.read_scorecards("nowhere")).data


def test_the_scorecard_of_a_notebook_is_a_line_per_claim_with_its_reasons_folded(run):
    frame = pages.read_scorecards(run).query("paper == 'bricks'")
    html = scorecard.scorecard_as_html(frame, "whose")
    lines = [line for line in html.splitlines() if line.startswith("<tr>")]
    assert len(lines) == len(frame)
    for line, claim in zip(lines, frame["id"], strict=True):
        shown, folded = re.sub("(?s)<p>.*</p>", "", line), "".join(re.findall("<p>.*</p>", line))
        known = {one.id: one for one in load_claims("bricks")}[claim]
        assert known.text in unescape(shown)
        assert known.whose in unescape(shown)
        assert "30 [20, 40] points" if claim == "bricks-2a" else "30 [20, 40]" in unescape(shown)
        assert "Of 3 comparisons 3 support the claim." in unescape(folded)
        assert claim in unescape(folded)
    assert f"{VERDICTS['contradicted'].symbol} contradicted" in unescape(html)
    assert "CONTRADICTS" in unescape(html)
    assert "<b>" not in html
    assert "<b> & co" in unescape(html)
    assert known.whose not in unescape(scorecard.scorecard_as_html(frame))


def test_the_notebook_reads_the_run_it_belongs_to(run):
    displayed = []
    given = {"out": str(run), "display": lambda *some: displayed.extend(some)}
    _, shown = in_one_space(suite_notebooks()["90-scorecard"], run, given)
    assert "this run: quick scale, seed 3" in shown["origins"].to_html()
    assert shown["claims"].data.count('id="claim-') == len(load_claims())
    assert "bricks-2a" in shown["contradictions"].data
    assert "bricks-3" not in shown["contradictions"].data
    assert "mcdf-2" in shown["changes"].data
    assert "rare counts" in "".join(one.data for one in displayed)
    with Image.open(run / "figures" / "suite-counts.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 16)) > 20  # a blank one has one colour


def test_the_changelog_ends_at_the_reference():
    moved = pd.read_csv(shared_file("data/reference/suite/suite-changelog.csv"))
    known = pages.read_scorecards("nowhere").set_index("id")["verdict"]
    last = moved.groupby("id")["now"].last()
    last = last[last.index.isin(known.index)]  # claims that have gone stay in the list
    assert last.to_dict() == known[last.index].to_dict()
    assert moved["why"].str.endswith(".").all()
    for _, steps in moved.groupby("id"):
        assert steps["before"].tolist()[1:] == steps["now"].tolist()[:-1]


def test_results_that_contradict_the_reference_too_often_are_refused(tmp_path):
    said = [{"id": f"p-{k}", "agreement": "agrees", "experiment": "as shipped"} for k in range(20)]
    spec = importlib.util.spec_from_file_location("check_results", ROOT / ".ci/check_results.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)

    def faults():
        record = {"problems": [], "notebooks": [], "claims": said, "figures": []}
        (tmp_path / "run.json").write_text(json.dumps(record))
        return " ".join(check.faults(tmp_path))

    (tmp_path / "report.html").write_text("</html>")
    for against, refused in ((3, False), (5, True)):
        for row in said[:against]:
            row["agreement"] = "CONTRADICTS"
        assert ("contradicts" in faults()) == refused, against
    said[7]["experiment"] = "changed"
    assert "another experiment than the shipped one: p-7" in faults()

"""The command line as a person uses it: words in, tables, pages and exit codes out."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from dlsim import bricks
from dlsim.cli import main, parser
from dlsim.cpugpu import POLICIES as DEVICES
from dlsim.realtime import POLICIES
from dlsim.steady import METHODS, SUFFIXES
from dlsim.study.claims import load_claims, read_scorecard, reference_of
from dlsim.study.notebooks import NotebookResult
from dlsim.study.results import load_figures, paper_letters
from tests.helpers.small_notebooks import write_notebook

ROOT = Path(__file__).parents[1]
#: The commands, as the parser knows them.
VERBS = next(list(one.choices) for one in parser()._actions if one.dest == "verb")


def run(capsys, *words):
    code = main(list(words))
    out = capsys.readouterr()
    return code, out.out, out.err


# ------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_help_ends_with_two_examples_that_can_be_parsed(capsys, verb):
    with pytest.raises(SystemExit) as stop:
        main([*filter(None, [verb]), "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    examples = said.rstrip().partition("examples:\n")[2].splitlines()
    assert len(examples) == 2
    for example in examples:
        name, *words = example.split()
        assert name == "dlsim"
        assert parser().parse_args(words).verb == (verb or words[0])


def test_the_bare_command_shows_what_there_is(capsys):
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    for verb in VERBS:
        assert re.search(rf"\n    {verb}\s", err)


def test_a_word_that_is_nearly_right_is_asked_for(capsys):
    with pytest.raises(SystemExit):
        main(["reproduc"])
    assert "did you mean reproduce?" in capsys.readouterr().err
    for words, meant in (
        (["claims", "mcfd"], "mcdf"),
        (["claims", "mcdf-99"], "mcdf-9"),
        (["reproduce", "mdcf"], "mcdf"),
        (["reproduce", "mcdf", "--reading", "link=sharde"], "shared"),
        (["list", "polices"], "policies"),
    ):
        code, _, err = run(capsys, *words)
        assert code == 2
        assert f"did you mean {meant}?" in err, words


def test_output_survives_an_encoding_without_its_signs(capsys, monkeypatch):
    _, said, _ = run(capsys, "claims", "mcdf")
    assert "✓" in said
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    assert main(["claims", "mcdf"]) == 0
    sys.stdout.flush()
    assert written.getvalue() == said.encode("cp1252", "backslashreplace")


# ---------------------------------------------------------------------- list, claims, prove


def test_list_names_figures_policies_and_readings_and_each_topic_alone(capsys):
    code, out, _ = run(capsys, "list")
    parts = [run(capsys, "list", topic)[1] for topic in ("figures", "policies", "readings")]
    assert (code, out) == (0, "\n".join(parts))
    assert {"mcdf-fig4", "mcdf-fig10"} < set(parts[0].split())
    names = re.findall(r"^  (\S.*?)  +", parts[1], re.MULTILINE)
    methods = [*METHODS, *(f"+{name}" for name in SUFFIXES)]
    assert sorted(names) == sorted([*POLICIES, *DEVICES, *methods, *bricks.POLICIES])
    assert "(LP, LPR, LPRG, LPRR)" in parts[1]
    listed = {block.split()[0]: block for block in parts[2].split("\n\n")[1:]}
    assert set(listed) >= {"mcdf", "inserted-idle-time", "steady-state"}
    assert "batch_commit" in listed["mcdf"]
    assert "batch_order" not in listed["steady-state"]
    for line in ("vertex        solver | least_connections", "table2        one | het"):
        assert line in listed["steady-state"]


def test_claims_show_printed_measured_verdict(capsys):
    code, out, _ = run(capsys, "claims", "mcdf")
    assert code == 0
    claims = load_claims("mcdf")
    is_measured = read_scorecard(reference_of("mcdf"))["points"] > 0
    assert out.count("Measured: ") == is_measured.sum() > 20
    assert f"{len(claims)} claims:" in out
    code, out, _ = run(capsys, "claims", "mcdf", "--json")
    rows = json.loads(out)
    assert (code, [row["id"] for row in rows]) == (0, [claim.id for claim in claims])
    assert set(rows[0]) >= {"verdict", "points", "measured", "reason"}


def test_claims_are_named_as_they_are_printed(capsys):
    code, out, _ = run(capsys, "claims", "mcdf-1")
    assert (code, out.count("Measured: ")) == (0, 1)
    assert "1 claim: 0 supported" in out
    for letter, name in paper_letters().items():
        code, said, _ = run(capsys, "claims", letter.lower())
        assert (code, said) == run(capsys, "claims", name)[:2]
        assert f"{name}-1" in said


def test_claims_of_a_run_that_is_not_there(capsys, tmp_path):
    code, _, err = run(capsys, "claims", "mcdf", "--results", str(tmp_path))
    assert code == 2
    assert "dlsim reproduce mcdf" in err


def test_a_claim_that_was_not_measured_is_named(capsys, tmp_path):
    rows = (ROOT / "data" / "reference" / "mcdf" / "mcdf-claims.csv").read_text().splitlines()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mcdf-claims.csv").write_text("\n".join(rows[:-1]) + "\n")
    missing = rows[-1].partition(",")[0]
    code, out, _ = run(capsys, "claims", "mcdf", "--results", str(tmp_path))
    assert code == 0
    assert re.search(rf"{missing} \(.+\) is not in these results", out)
    assert f"{len(rows) - 2} claims:" in out  # without the head and the last row


def test_prove_prints_statuses_and_steps(capsys):
    code, out, _ = run(capsys, "prove", "5.sum", "5.1")
    assert code == 0
    assert "1 proved as printed; 1 refuted" in out
    code, out, _ = run(capsys, "prove", "5.1", "--steps")
    assert code == 0
    assert "5.1       proved" in out
    assert "1 - beta" in out
    assert "\\" not in out  # no LaTeX
    code, _, err = run(capsys, "prove", "5.1a")
    assert "did you mean 5.1" in err
    for words in (["nope"], ["nope", "--steps"]):
        code, _, err = run(capsys, "prove", *words)
        assert code == 2
        assert "'nope'" in err


# ------------------------------------------------------------------------------ run


def test_run_refuses_what_the_notebook_does_not_know(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = str(write_notebook(tmp_path / "own.ipynb", "1"))
    for words, said in (
        (["-p", "run", "7"], "no parameter 'run'; it has: scale, seed, runs, jobs"),
        (["-p", "runs", "x"], "parameter runs must be a finite int, got 'x'"),
        (["-p", "runs", "1", "-p", "runs", "2"], "-p sets runs twice"),
    ):
        code, _, err = run(capsys, "run", source, *words)
        assert code == 2
        assert said in err
    assert run(capsys, "run", "nothing")[0] == 2
    assert run(capsys, "run", "nothing.ipynb")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["own.ipynb"]


# ------------------------------------------------------------------------------ reproduce


def test_unknown_things_to_reproduce_are_refused(capsys, tmp_path):
    out = ["--out", str(tmp_path / "r")]
    for words, said in (
        (["mdcf"], "figures that dlsim list prints"),
        (["mcdf-fig44"], "did you mean mcdf-fig4 or "),
        (["mcdf", "--runs", "-1"], "--runs must be a whole number of at least 0 (0: what the"),
        (["mcdf", "--reading", "shared"], "--reading takes name=value"),
        (["mcdf", "--reading", "link=shared,link=per_task"], "--reading sets link twice"),
        (["steady-state", "--reading", "link=shared"], "knows the switch 'link'"),
    ):
        code, _, err = run(capsys, "reproduce", *words, *out)
        assert code == 2
        assert said in err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("verb", "more", "missing", "extra"),
    [
        ("reproduce", ["--book"], "furo", "docs"),
        ("reproduce", ["--dask", "x:1"], "distributed", "cluster"),
        ("reproduce", [], "distributed", "cluster"),
        ("run", [], "distributed", "cluster"),
    ],
)
def test_an_extra_is_asked_for_before_anything_runs(
    capsys, tmp_path, monkeypatch, verb, more, missing, extra
):
    if not more:
        monkeypatch.setenv("DLSIM_DASK", "tcp://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr("dlsim.study.notebooks.run_all", lambda *_, **__: pytest.fail("it ran"))
    name = "theory" if verb == "reproduce" else "10-theory"
    code, out, err = run(capsys, verb, name, *more, "--out", str(tmp_path / "r"))
    assert (code, out) == (2, "")
    assert f"needs the extra {extra}" in err
    assert f"pip install 'dlsim[{extra}]'" in err
    assert not (tmp_path / "r").exists()


@pytest.fixture
def asked(monkeypatch):
    """What `run_all` is asked for; every notebook then ends with the status that is set here."""
    asked = {"status": "ok"}

    def pretend(names, *, out, **options):
        asked.update(options, names=names)
        out.mkdir()
        status, error = asked["status"], "reason" if asked["status"] != "ok" else ""
        return [NotebookResult(name, None, status, 1.0, error) for name in names]

    monkeypatch.setattr("dlsim.study.notebooks.run_all", pretend)
    return asked


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("failed", 1), ("interrupted", 130)])
def test_exit_codes_of_reproduce(capsys, tmp_path, asked, status, code):
    asked["status"] = status
    got, out, err = run(capsys, "reproduce", "mcdf-fig4", "--out", str(tmp_path / "r"))
    assert got == code
    assert asked["names"] == ["20-mcdf", "90-scorecard"]
    assert "report.html" in out.splitlines()[-1]
    assert ("reason" in err) == (code != 0)
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    assert record["notebooks"][0]["status"] == status
    # a page is there though no notebook left anything
    assert (tmp_path / "r" / "report.html").exists() == (status != "interrupted")


def test_a_notebook_gets_the_switches_that_its_paper_knows(capsys, tmp_path, asked):
    least, mcdf = {"vertex": "least_connections"}, {"link": "shared", "base": "nominal"}
    inserted = {"link": "shared", "size": "uniform"}
    for number, (words, expected) in enumerate([
        ("mcdf", {"20-mcdf": {}, "21-mcdf-beyond": {}}),
        ("S --reading vertex=least_connections",
         {"40-steady-state": least, "41-steady-state-beyond": least}),
        ("steady-state-fig4b --reading table2=het", {"40-steady-state": {"table2": "het"}}),
        ("M inserted-idle-time --reading link=shared,base=nominal,size=uniform",
         {"20-mcdf": mcdf, "21-mcdf-beyond": mcdf, "30-inserted-idle-time": inserted,
          "31-inserted-idle-time-beyond": inserted}),
    ]):  # fmt: skip
        out = str(tmp_path / str(number))
        code, _, err = run(capsys, "reproduce", *words.split(), "--out", out)
        assert code == 0, err
        assert asked["readings"] == expected
    run(capsys, "reproduce", "--reading", "link=shared", "--out", str(tmp_path / "all"))
    shared = {name for name, one in asked["readings"].items() if one == {"link": "shared"}}
    rows, letters = load_figures().figures, paper_letters()
    own = {row.notebook for row in rows if row.paper in (letters["M"], letters["I"])}
    assert shared == own - {"10-theory"}

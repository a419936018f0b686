"""What texts say about results is in data/findings.toml, and comes from data/reference."""

import re
import runpy
import tomllib
from functools import cache
from pathlib import Path

import nbformat
import pytest

from dlsim.errors import InputError
from dlsim.study.findings import Value, load_findings, look_up, sizes_in_markdown

ROOT = Path(__file__).parents[2]
FINDINGS = load_findings()
#: Notebooks whose Markdown is looked through whole; of the others the head, and what is said
#: about runs at full scale.
WHOLE = ("00-start-here", "90-scorecard")


def one_line(text):
    return re.sub(r"\s+", " ", text)


@cache
def text_of(name):
    """Return a text of the project, or the Markdown of a notebook, or the values of a TOML file."""
    path = ROOT / name
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        return one_line("\n\n".join(c.source for c in cells if c.cell_type == "markdown"))
    text = path.read_text("utf-8")
    return one_line(text.replace('\\"', '"') if path.suffix == ".toml" else text)


def test_texts_hold_what_the_tables_say():
    assert [one for finding in FINDINGS for one in finding.failures()] == []  # else: rewrite them
    missing = [
        f"{name}: {finding.rendered()}"
        for finding in FINDINGS
        for name in finding.texts
        if finding.rendered() not in text_of(name)
    ]
    assert missing == []  # else a number has changed: run .ci/render_findings
    assert all(finding.values or finding.holds for finding in FINDINGS)


def test_data_readme_has_the_sizes_of_the_runs():  # else run .ci/render_findings
    assert f"\n\n{sizes_in_markdown()}\n" in (ROOT / "data" / "README.md").read_text("utf-8")


# ----------------------------------------------------------- numbers without a finding


def parts_to_check():
    """Yield the places that state results, as file and text."""
    readme = (ROOT / "README.md").read_text("utf-8")
    yield "README.md", re.sub(r"```.*?```", "", readme, flags=re.S)
    about = tomllib.loads((ROOT / "data" / "figures.toml").read_text("utf-8"))["papers"]
    for row in about.values():
        for field in ("found", "terms", "says"):
            yield "data/figures.toml", row.get(field, "")
    template = (ROOT / "dlsim" / "study" / "templates" / "overview.html.j2").read_text("utf-8")
    yield (
        "overview.html.j2",
        re.sub(r"<style>.*?</style>|\{[%{].*?[%}]\}|<[^>]*>", "", template, flags=re.S),
    )
    log = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n## 1.")[0]
    for entry in re.findall(r"^- (?:.+\n(?:  .+\n)*)", log, re.M):
        if re.search(r"\b(claims?|verdicts?|points|contradicted|supported)\b", entry):
            yield "CHANGELOG.md", entry
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if not (path.stem in WHOLE or "20" <= path.stem[:2] <= "66"):
            continue
        cells = nbformat.read(path, as_version=4).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        name = f"notebooks/{path.name}"
        for place, text in enumerate(texts):
            paragraphs = text.split("\n\n")
            head = text.partition("\n## ")[0].split("\n\n") if place == 0 else []
            for paragraph in paragraphs:
                if path.stem in WHOLE or paragraph in head or "full scale" in paragraph:
                    yield name, paragraph


#: What is no sentence: code, formulas, links, notebooks by name or number.
NO_TEXT = (
    r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)"
    r"|\[?\b\d\d-[a-z][\w-]*(?:\.ipynb)?\]?|\[\d\d\]|\b[Nn]otebook \d\d\b"
)
PART = r"[(\[]?\d+(?:\.\d+)*[a-z]?[)\]]?"
#: Numbers that are plainly no result, by what they are.
NO_RESULT = {
    "a year": r"\b(?:19|20)\d\d\b",
    "a part of a text, such as Figure 4, section 6.1, claims 10 and 12": (
        r"(?:\b(?:[Ss]ections?|[Ff]igures?|Tables?|Theorems?|[Ee]quations?|[Cc]laims?|[Pp]roblems?|"
        rf"Constraints?|[Rr]ules?|errata|[Rr]eferences?|[Ss]tatements?|step)) {PART}"
        rf"(?:(?:,| and| or| to|, and) {PART})*"
    ),
    "equations, such as (3) and (4), and papers in a paper's list": (
        r"(?<= )\(\d\)(?:(?:,| and| to) \(\d\))*|\[\d\]"
    ),
    "the level of an interval": r"\b95 %(?= (?:confidence|interval|lie))|95 %(?=[:)])",
    "a parameter, such as N = 16": r"\b(?:N|K|L|Int|Opt|DCRatio|ST|SC) = [\d.,]*\d",
    "a policy's name": r"\bD-[\d.]*\d\b|\bx/F\d\b",
    "an amount in the definition of a word": r"\*?[Ll]oad\*? (?:above )?1\b(?= is as much|\.)",
}
#: A number in digits, or in words where it measures something.
NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten) (?:points|per ?cent|times)\b", re.I
)
#: Phrases that are no results, with the reason.
ALLOWED = {
    "Python 3.11 or newer": "what dlsim needs",
    "| 4.1-4.4 |": "keys of statements", "| 4.5 |": "keys of statements", "| 4.5, OPR |": "a key",
    "a deadline of 1, 2 or 5 times its run time": "what the cell below it tries",
    "| 1/g and 1/bw, w_k/s_k |": "symbols of a paper",
    "load shares, which sum to 1 |": "a definition", "| not its α | 1 |": "a unit",
    "over the bound of the relaxed program; 1 is best": "a definition",
    "a batch of 24 jobs, drawn from 12 applications": "the input",
    "packets of 10 Mbit": "the input", "a day has 24 requests": "the input",
    "done within 0.7 times the time left": "a definition",
    "seed 0": "the input",
    "whose true difference is 0": "the input",
    "the rule is made for at most five percent": "what the rule aims at",
    "lies above five percent": "what the rule aims at",
    "a class of 45 minutes": "the length of a lesson",
}  # fmt: skip


@cache
def sentences_of(name):
    return [finding.rendered() for finding in FINDINGS if name in finding.texts]


def masked(text, name):
    """Return a text with blanks in the place of findings and of what is plainly no result."""
    text = one_line(text)
    for sentence in sentences_of(name):
        text = text.replace(sentence, " " * len(sentence))
    for pattern in (*map(re.escape, ALLOWED), NO_TEXT, *NO_RESULT.values()):
        text = re.sub(pattern, lambda found: re.sub(r"\w", "#", found[0]), text)
    return text


def numbers_left(name, text):
    """Return the sentences of a text that hold a number without a finding."""
    return [
        f"{name}: {sentence.strip()[:300]}"
        for sentence in re.split(r"(?<=[.:;?!|]) ", masked(text, name))
        if NUMBER.search(sentence)
    ]


def test_no_number_stands_without_a_finding():
    assert [one for name, text in parts_to_check() for one in numbers_left(name, text)] == []


def test_a_number_without_a_finding_is_found_and_what_is_no_result_needs_none():
    for text in (
        "It refuses 5 points fewer.",
        "It is better at load 0.7, up to 3 %.",
        "By two to four points it is better.",
        "At full scale, as Figure 4 shows, 12 of 15 differ (95 %).",
    ):
        assert numbers_left("README.md", text), text
    for text in (
        "As Figure 4 and section 6.1 say (95 % confidence), in 2006.",
        "See `x[1]` and $x^2$.",
    ):
        assert numbers_left("README.md", text) == []


def test_phrases_that_need_no_finding_stand_somewhere():
    texts = one_line(" ".join(text for _, text in parts_to_check()))
    assert [phrase for phrase in ALLOWED if phrase not in texts] == []


# ------------------------------------------------------------------- reading and writing

TABLE = "policy,load,estimate\nA,0.1,-0.25\nA,1,0.5\nB,0.1,1234.5\n"
FILE = """
[[mcdf]]
sentence = 'A is "{low} %" at load 0.1, B {high}'
texts = ["README.md"]
rows = { table = "t", column = "estimate", where = { policy = "A", load = 0.1 } }
values.low = { times = -100 }
values.high = { where = { policy = "B" }, digits = 1 }
holds = [{ below = 0 }]
"""


@pytest.fixture
def made_up(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "findings.toml").write_text(FILE)
    (finding,) = load_findings(tmp_path / "findings.toml")
    return tmp_path, finding


def test_a_sentence_takes_its_values_from_a_table(made_up):
    folder, finding = made_up
    assert finding.rendered(folder) == 'A is "25 %" at load 0.1, B 1,234.5'
    assert list(finding.failures(folder)) == []
    (folder / "other").mkdir()
    (folder / "other" / "t.csv").write_text(TABLE.replace("-0.25", "0.25"))
    assert len(list(finding.failures(folder / "other"))) == 1


def test_a_number_that_a_table_lacks_is_refused(made_up):
    """A text would say "nan", and a condition on it would hold."""
    folder, finding = made_up
    (folder / "t.csv").write_text(TABLE.replace("-0.25", ""))
    with pytest.raises(InputError, match="a number is missing"):
        finding.rendered(folder)


def test_rows_make_one_number(made_up):
    numbers = {"least": -0.25, "most": 0.5, "mean": 0.125, "sum": 0.25, "count": 2, "different": 2}
    for take, number in numbers.items():
        value = Value(table="t", column="estimate", where={"policy": "A"}, take=take)
        assert look_up(value, made_up[0]) == number, take
    assert look_up(Value("t", unless={"policy": ["A"]}, take="count"), made_up[0]) == 1


NO_NUMBERS = [
    (Value("t", {"policy": "A"}, column="estimate"), "2 rows instead of one"),
    (Value("t", {"policy": "C"}, column="estimate", take="most"), "0 rows instead of one"),
    (Value("t", {"polcy": "A"}, column="estimate"), "no column 'polcy' among policy, load"),
    (Value("t", column="estmate", take="most"), "no column 'estmate' among policy, load"),
    (Value("none", column="x"), "no table is called none.csv"),
]
WRONG_FILES = [
    ("values.low", "values.lwo", "places .* need values of these names"),
    ("times = -100", "tims = -100", "no field is called 'tims'"),
]


def test_what_is_no_number_and_a_wrong_file_of_findings_are_refused(made_up):
    folder, _ = made_up
    for value, words in NO_NUMBERS:
        with pytest.raises(InputError, match=words):
            look_up(value, folder)
    for old, new, words in WRONG_FILES:
        (folder / "findings.toml").write_text(FILE.replace(old, new))
        with pytest.raises(InputError, match=words):
            load_findings(folder / "findings.toml")


def test_new_numbers_are_written_into_a_text(made_up):
    folder, finding = made_up
    for text in (
        'So A is "26 %" at load 0.1, B 7.',
        'So A is \\"26 %\\" at load 0.1, B 7.',
        'So A\nis "26 %" at\nload 0.1, B 7.',
    ):
        new = finding.updated(text, folder)
        assert new == text.replace("26", "25").replace("B 7", "B 1,234.5")
        assert finding.updated(new, folder) == new
    assert finding.updated("A is 26 at load 0.1", folder) == "A is 26 at load 0.1"


def test_the_command_writes_new_numbers_into_every_text(tmp_path, capsys):
    names = {name for finding in FINDINGS for name in finding.texts}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    wrong = ["README.md", "data/figures.toml", "notebooks/00-start-here.ipynb"]
    for name in wrong:
        text = (tmp_path / name).read_text("utf-8")
        here = [one for one in FINDINGS if name in one.texts and one.values]
        finding = next(one for one in here if one.rendered() in text)
        false = finding.sentence.format_map(dict.fromkeys(finding.values, "1.5"))
        (tmp_path / name).write_text(text.replace(finding.rendered(), false), "utf-8")
    assert runpy.run_path(str(ROOT / ".ci" / "render_findings"))["main"](tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}: new numbers" for name in wrong]
    assert all((tmp_path / name).read_bytes() == (ROOT / name).read_bytes() for name in names)

"""Folders that dlsim writes into: nothing is renewed, moved or removed but what dlsim wrote."""

import os
import shutil
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from dlsim import explore
from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.output_folder import FOLDER_KINDS, RECORD_FILE, OutputFolder
from dlsim.study import start
from dlsim.study.results import Results
from tests.helpers.refusals import require_refusals
from tests.helpers.scale import scale_count

NAMES = ["a.csv", "data/b.csv", "notebooks/.c.json"]


def everything(folder):
    """Return what lies in a folder by name: texts, where links lead to, False for folders."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.name != RECORD_FILE
    }


class Folder(RuleBasedStateMachine):
    """A folder where dlsim and a person write by turns: whatever the person wrote is there."""

    @initialize(make=st.sampled_from([True, False]))
    def begin(self, make):
        self.holder = tempfile.TemporaryDirectory()
        self.path = Path(self.holder.name, "out")
        if make:
            self.path.mkdir()
        self.home, self.theirs, self.count = OutputFolder(self.path).acquire(), set(), 0
        self.is_record_whole = True

    def teardown(self):
        if hasattr(self, "holder"):
            self.holder.cleanup()

    def nothing_is_lost(self):
        assert self.theirs <= set(everything(self.path).values())

    @rule(name=st.sampled_from(NAMES), again=st.booleans())
    def person_writes(self, name, again):
        self.count += 1
        before = everything(self.path).get(name)
        self.theirs.discard(before)  # their own to overwrite
        text = before + "!" if again and before else f"mine {self.count}"
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(text)
        self.theirs.add(text)

    @rule(name=st.sampled_from(NAMES), text=st.sampled_from(["x", "y", "z"]))
    def dlsim_writes(self, name, text):
        there, refused = everything(self.path).get(name), ""
        try:
            self.home.write(name, text.encode())
        except InputError as error:
            refused = str(error)
        assert everything(self.path)[name] == (there if refused else text)
        assert bool(refused) == ("not as dlsim wrote it" in refused)
        if self.is_record_whole:
            assert bool(refused) == (there in self.theirs)
        self.nothing_is_lost()

    @rule(name=st.sampled_from(NAMES))
    def dlsim_clears(self, name):
        there = everything(self.path).get(name)
        self.home.remove(name)
        left = everything(self.path).get(name)
        assert left is None or left == there
        if self.is_record_whole:
            assert (left is not None) == (there in self.theirs)
        self.nothing_is_lost()

    @rule(cut=st.integers(0, 200))
    def the_record_is_cut(self, cut):
        first, _, rest = (self.path / RECORD_FILE).read_text().partition("\n")
        (self.path / RECORD_FILE).write_text(f"{first}\n{rest[: max(0, len(rest) - cut)]}")
        self.is_record_whole &= not (cut and rest)

    @rule()
    def another_process_goes_on(self):
        self.home = OutputFolder(self.path).acquire()


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=scale_count(40, least=5), stateful_step_count=25)


@pytest.fixture
def home(tmp_path):
    return OutputFolder(tmp_path / "out").acquire()


def test_a_new_or_empty_folder_is_claimed_and_any_other_refused(tmp_path):
    OutputFolder(tmp_path / "new").check()
    assert everything(tmp_path) == {}  # a check makes nothing
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "new" / "deep", tmp_path / "empty"):
        OutputFolder(folder).acquire().write("a.csv", b"1")
        assert everything(folder) == {"a.csv": "1"}
        assert OutputFolder(folder).acquire().recorded()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years")
    theirs = r"mine: not empty, .*it holds thesis.tex.*; nothing was written there: choose"
    (tmp_path / "file").touch()
    require_refusals([
        (OutputFolder(mine).acquire, theirs),
        (lambda: start("mcdf", out=str(mine)), "it holds thesis.tex"),  # before it computes
        (lambda: explore.timing.save(out=str(mine)), "it holds thesis.tex"),
        *((OutputFolder(tmp_path / name).check, "cannot be written to")
          for name in ("file", "file/below")),
    ])  # fmt: skip
    assert everything(mine) == {"thesis.tex": "years"}


def test_what_one_command_made_is_not_another_ones(tmp_path):
    for kind, words in FOLDER_KINDS.items():
        OutputFolder(tmp_path / kind, kind).acquire()
        OutputFolder(tmp_path / kind, kind).acquire()
        require_refusals([
            (OutputFolder(tmp_path / kind, other).acquire, f"holds {words}; nothing was written")
            for other in FOLDER_KINDS if other != kind
        ])  # fmt: skip


#: What a user may put where dlsim writes a file, or the folder of it, by links to a place.
IN_THE_WAY = {
    "a file": lambda file, place: file.write_text("theirs"),
    "a link": lambda file, place: file.symlink_to(place / "a.csv"),
    "a broken link": lambda file, place: file.symlink_to(place / "gone.csv"),
    "a folder": lambda file, place: file.mkdir(),
    "a linked parent": lambda file, place: file.parent.symlink_to(place),
    "a parent that is a file": lambda file, place: file.parent.write_text("theirs"),
}


@pytest.mark.parametrize("kind", IN_THE_WAY)
@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_what_a_person_put_in_the_way_is_refused_by_name_and_stays(tmp_path, home, kind, name):
    file, place = home.folder / "data" / name, tmp_path / "elsewhere"
    place.mkdir()
    (place / "a.csv").write_text("theirs")
    if "parent" not in kind:
        file.parent.mkdir()
    IN_THE_WAY[kind](file, place)
    before = everything(tmp_path)
    said = (
        f"{file}: not as dlsim wrote it; dlsim overwrites only what it wrote itself: move away what"
        " you want to keep, or choose a new or empty folder with --out"
    )
    acts = [lambda: home.write(f"data/{name}", b"ours"), lambda: home.write(f"data/{name}", [])]
    require_refusals([(act, said) for act in acts])
    home.remove(f"data/{name}")
    assert everything(tmp_path) == before


def test_a_link_is_not_followed_even_where_dlsim_wrote_what_it_leads_to(tmp_path, home):
    home.write("a.csv", b"first").rename(tmp_path / "kept.csv")
    (home.folder / "a.csv").symlink_to(tmp_path / "kept.csv")
    home.write("data/b.csv", b"first")
    (home.folder / "data").rename(tmp_path / "data")
    (home.folder / "data").symlink_to(tmp_path / "data")
    for name in ("a.csv", "data/b.csv"):
        with pytest.raises(InputError, match=rf"{name}: not as dlsim wrote it"):
            home.write(name, b"second")
        home.remove(name)
        assert (home.folder / name).read_text() == "first"


def test_a_text_that_dlsim_would_write_is_taken_over(home):
    (home.folder / "a.csv").write_text("equal")
    home.write("a.csv", b"equal")
    home.write("a.csv", b"newer")
    assert (home.folder / "a.csv").read_text() == "newer"


def test_many_changed_files_are_counted(home):
    for name in "abcde":
        home.write(name, b"ours").write_text("mine")
    home.write("f", b"ours")
    home.require_unchanged("f", "gone")
    with pytest.raises(InputError, match=r"out/a, \S+out/b, \S+out/c, and 2 more: not as dlsim"):
        home.require_unchanged(*"abcdef")


def test_a_line_that_follows_one_that_was_cut_is_on_record(home):
    home.write("a.csv", b"ours")
    os.truncate(home.folder / RECORD_FILE, (home.folder / RECORD_FILE).stat().st_size - 5)
    home.write("b.csv", b"ours")
    assert [name for name, _ in home.recorded()] == ["b.csv"]


def test_what_is_no_record_makes_no_folder_an_output_folder(home):
    record = home.folder / RECORD_FILE
    with open(record, "a") as stream:
        stream.write('{"file": 3, "sha256": "0"}\n{"file": "a", "sha256": {}}\n[3]\n')
    home.write("a.csv", b"ours")
    assert {name for name, _ in home.recorded()} == {"a.csv"}
    record.rename(home.folder.parent / "record")
    record.symlink_to(home.folder.parent / "record")
    with pytest.raises(InputError, match="is damaged"):
        OutputFolder(home.folder).acquire()


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, home):
    (tmp_path / "b.csv").write_text("theirs")
    before = everything(tmp_path)
    acts = (home.file_digest, home.remove, home.require_unchanged, lambda n: home.write(n, b"ours"))
    require_refusals([
        (lambda act=act, name=name: act(name), r"below the folder, got .*; use a relative name")
        for act in acts
        for name in ("../b.csv", "data/../../b.csv", "/b.csv", "..", "", "a/..")
    ])  # fmt: skip
    assert everything(tmp_path) == before


def test_a_kill_at_the_first_write_leaves_a_folder_that_can_be_used(tmp_path):
    (tmp_path / ".dlsim-0123456789abcdef.part").write_text('{"dls')
    OutputFolder(tmp_path).acquire().write("a.csv", b"1")
    assert (tmp_path / "a.csv").exists()


def test_two_runs_at_once_in_one_folder_are_refused(tmp_path, home):
    second = OutputFolder(home.folder)
    busy = "another dlsim is at work there; nothing was written there: wait"
    with home.lock():
        with pytest.raises(InputError, match=busy), second.lock():
            pass
        # two that began at once: the second put a record in the place of the first one's
        shutil.copy(home.folder / RECORD_FILE, tmp_path / "copy")
        os.replace(tmp_path / "copy", home.folder / RECORD_FILE)
        with pytest.raises(InputError, match=busy), second.lock():
            pass
    with second.lock():
        pass


def test_results_of_a_notebook_are_kept_from_what_is_there(tmp_path):
    frame = pd.DataFrame({"a": [1]})
    path = Results(tmp_path / "out").table("t", frame)
    path.write_text("edited by hand")
    with pytest.raises(InputError, match=r"data/t\.csv: not as .*another folder with out="):
        Results(tmp_path / "out").table("t", frame)
    assert path.read_text() == "edited by hand"
    path.unlink()
    assert Results(tmp_path / "out").table("t", frame).read_text() == "a\n1\n"
    with pytest.raises(InputError, match="choose another folder with out="):
        Results(tmp_path).table("t", frame)


@pytest.mark.parametrize("words", [["reproduce", "start-here"], ["run", "theory"]])
def test_no_command_writes_into_a_folder_that_dlsim_did_not_make(tmp_path, capsys, words):
    (tmp_path / "run.json").write_text("mine")
    assert main([*words, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "not empty, and this dlsim did not make it (it holds run.json)" in said.err
    assert said.out == ""  # before anything ran
    assert everything(tmp_path) == {"run.json": "mine"}

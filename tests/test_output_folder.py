"""Folders that dlsim writes into: nothing is renewed, moved or removed but what dlsim wrote."""

import json
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from dlsim import explore
from dlsim.cli import copy_notebooks, main
from dlsim.errors import InputError
from dlsim.output_folder import FOLDER_KINDS, RECORD_FILE, OutputFolder
from dlsim.study import start
from dlsim.study.results import Results
from tests.helpers.scale import scale_count

NAMES = ["a.csv", "data/b.csv", "notebooks/.c.json"]


class Folder(RuleBasedStateMachine):
    """A folder where dlsim and a person write by turns: whatever the person wrote is there."""

    @initialize(make=st.sampled_from([True, False]))
    def begin(self, make):
        import tempfile

        self.holder = tempfile.TemporaryDirectory()
        self.path = f"{self.holder.name}/out"
        if make:
            os.mkdir(self.path)
        self.home, self.theirs, self.count = OutputFolder(self.path).acquire(), set(), 0
        self.is_record_whole = True

    def teardown(self):
        if hasattr(self, "holder"):
            self.holder.cleanup()

    def everything(self):
        found = {}
        for folder, _, files in os.walk(self.path):
            for name in files:
                with open(os.path.join(folder, name)) as stream:
                    found[os.path.relpath(os.path.join(folder, name), self.path)] = stream.read()
        return found

    def nothing_is_lost(self):
        assert self.theirs <= set(self.everything().values())

    @rule(name=st.sampled_from(NAMES), again=st.booleans())
    def person_writes(self, name, again):
        self.count += 1
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        before = self.everything().get(name)
        self.theirs.discard(before)  # their own to overwrite
        text = before + "!" if again and before else f"mine {self.count}"
        with open(path, "w") as stream:
            stream.write(text)
        self.theirs.add(text)

    @rule(name=st.sampled_from(NAMES), text=st.sampled_from(["x", "y", "z"]))
    def dlsim_writes(self, name, text):
        there, refused = self.everything().get(name), ""
        try:
            self.home.write(name, text.encode())
        except InputError as error:
            refused = str(error)
        assert self.everything()[name] == (there if refused else text)
        assert bool(refused) == ("not as dlsim wrote it" in refused)
        if self.is_record_whole:
            assert bool(refused) == (there in self.theirs)
        self.nothing_is_lost()

    @rule(name=st.sampled_from(NAMES))
    def dlsim_clears(self, name):
        there = self.everything().get(name)
        self.home.remove(name)
        left = self.everything().get(name)
        assert left is None or left == there
        if self.is_record_whole:
            assert (left is not None) == (there in self.theirs)
        self.nothing_is_lost()

    @rule(cut=st.integers(0, 200))
    def the_record_is_cut(self, cut):
        path = os.path.join(self.path, RECORD_FILE)
        with open(path, "rb") as stream:
            first, data = stream.readline(), stream.read()
        with open(path, "wb") as stream:
            stream.write(first + data[: max(0, len(data) - cut)])
        self.is_record_whole &= not (cut and data)

    @rule()
    def another_process_goes_on(self):
        self.home = OutputFolder(self.path).acquire()


TestFolder = Folder.TestCase
TestFolder.settings = settings(
    max_examples=scale_count(40, least=5), stateful_step_count=25, deadline=None
)


def test_a_new_or_empty_folder_is_claimed_and_any_other_refused(tmp_path):
    for folder in (tmp_path / "new" / "deep", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        OutputFolder(folder).acquire().write("a.csv", b"1")
        assert {p.name for p in folder.iterdir()} == {RECORD_FILE, "a.csv"}
        assert OutputFolder(folder).acquire().recorded()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years")
    with pytest.raises(
        InputError,
        match=r"mine: not empty, and this dlsim did not make it "
        r"\(it holds thesis.tex\); nothing was written there: choose",
    ):
        OutputFolder(mine).acquire()
    assert [p.name for p in mine.iterdir()] == ["thesis.tex"]
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="cannot be written to"):
            OutputFolder(place).check()


@pytest.mark.parametrize("kind", FOLDER_KINDS)
def test_what_one_command_made_is_not_another_ones(tmp_path, kind):
    OutputFolder(tmp_path / "out", kind).acquire()
    for other in FOLDER_KINDS:
        home = OutputFolder(tmp_path / "out", other)
        if other == kind:
            home.acquire()
        else:
            what = f"holds {FOLDER_KINDS[kind]}; nothing was written"
            with pytest.raises(InputError, match=what):
                home.acquire()


def test_a_check_makes_nothing(tmp_path):
    OutputFolder(tmp_path / "out").check()
    assert not (tmp_path / "out").exists()


def in_the_way(folder, kind, elsewhere):
    """Put a link, a folder or a file of the user where dlsim writes `data/a.csv`."""
    (folder / "data").mkdir(exist_ok=True)
    place = folder / "data" / "a.csv"
    if kind == "file":
        place.write_text("theirs")
    elif kind == "link":
        place.symlink_to(elsewhere / "a.csv")
    elif kind == "folder":
        place.mkdir()
        (place / "note").write_text("theirs")
    else:
        (folder / "data").rmdir()
        if kind == "linked parent":
            (folder / "data").symlink_to(elsewhere)
        else:
            (folder / "data").write_text("theirs")


def everything(folder):
    """Return what lies in a folder, without the record."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.name != RECORD_FILE
    }


@pytest.mark.parametrize("kind", ["file", "link", "folder", "linked parent", "parent is a file"])
@pytest.mark.parametrize("leads_to_a_file", [True, False])
def test_what_a_person_put_in_the_way_is_refused_by_name_and_stays(tmp_path, kind, leads_to_a_file):
    home, elsewhere = OutputFolder(tmp_path / "out").acquire(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    if leads_to_a_file:
        (elsewhere / "a.csv").write_text("theirs")
    in_the_way(home.folder, kind, elsewhere)
    before = everything(tmp_path)
    said = (
        rf"{home.folder}/data/a\.csv: not as dlsim wrote it; dlsim overwrites only what it wrote "
        "itself: move away what you want to keep, or choose a new or empty folder with --out"
    )
    for act in (lambda: home.write("data/a.csv", b"ours"), lambda: home.write("data/a.csv", [])):
        with pytest.raises(InputError, match=said):
            act()
    home.remove("data/a.csv")
    assert everything(tmp_path) == before


def test_a_link_is_not_followed_even_where_dlsim_wrote_what_it_leads_to(tmp_path):
    home = OutputFolder(tmp_path / "out").acquire()
    home.write("a.csv", b"first").rename(tmp_path / "kept.csv")
    (home.folder / "a.csv").symlink_to(tmp_path / "kept.csv")
    with pytest.raises(InputError, match=r"a\.csv: not as dlsim wrote it"):
        home.write("a.csv", b"second")
    home.remove("a.csv")
    assert (home.folder / "a.csv").read_text() == "first"


def test_a_text_that_dlsim_would_write_is_taken_over(tmp_path):
    home = OutputFolder(tmp_path / "out").acquire()
    (home.folder / "a.csv").write_text("equal")
    home.write("a.csv", b"equal")
    home.write("a.csv", b"newer")
    assert (home.folder / "a.csv").read_text() == "newer"


def test_many_changed_files_are_counted(tmp_path):
    home = OutputFolder(tmp_path / "out").acquire()
    for name in "abcde":
        home.write(name, b"ours").write_text("mine")
    home.write("f", b"ours")
    home.require_unchanged("f", "gone")
    with pytest.raises(InputError, match=r"out/a, \S+out/b, \S+out/c, and 2 more: not as dlsim"):
        home.require_unchanged(*"abcdef")


def test_a_linked_record_makes_no_folder_an_output_folder(tmp_path):
    home = OutputFolder(tmp_path / "out").acquire()
    record = home.folder / RECORD_FILE
    record.rename(tmp_path / "record")
    record.symlink_to(tmp_path / "record")
    with pytest.raises(InputError, match="is damaged"):
        OutputFolder(tmp_path / "out").acquire()


@pytest.mark.parametrize("line", ['{"file": 3, "sha256": "0"}', '{"file": ["a"], "sha256": {}}'])
def test_a_line_of_the_record_that_is_of_another_kind_is_no_record(tmp_path, line):
    home = OutputFolder(tmp_path / "out").acquire()
    with open(home.folder / RECORD_FILE, "a") as stream:
        stream.write(f"{line}\n")
    home.write("a.csv", b"ours")
    assert {name for name, _ in home.recorded()} == {"a.csv"}


@pytest.mark.parametrize("name", ["../b.csv", "data/../../b.csv", "/b.csv", "..", "", "a/.."])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    (tmp_path / "b.csv").write_text("theirs")
    home = OutputFolder(tmp_path / "out").acquire()
    before = sorted(tmp_path.rglob("*"))
    for act in (
        home.file_digest,
        home.remove,
        home.require_unchanged,
        lambda n: home.write(n, b"ours"),
    ):
        with pytest.raises(InputError, match=r"below the folder, got .*; use a relative name"):
            act(name)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "b.csv").read_text() == "theirs"


def test_a_kill_at_the_first_write_leaves_a_folder_that_can_be_used(tmp_path):
    (tmp_path / ".dlsim-0123456789abcdef.part").write_text('{"dls')
    OutputFolder(tmp_path).acquire().write("a.csv", b"1")
    assert (tmp_path / "a.csv").exists()


def test_two_runs_at_once_in_one_folder_are_refused(tmp_path):
    home = OutputFolder(tmp_path / "out").acquire()
    code = """import sys
from dlsim.output_folder import OutputFolder
with OutputFolder(sys.argv[1]).lock():
    pass
"""
    words = [sys.executable, "-c", code, str(home.folder)]
    with home.lock():
        done = subprocess.run(words, capture_output=True, text=True)
        assert "another dlsim is at work there; nothing was written there: wait" in done.stderr
        # two that began at once: the second put a record in the place of the first one's
        second = shutil.copy(home.folder / RECORD_FILE, tmp_path / "copy")
        os.replace(second, home.folder / RECORD_FILE)
        done = subprocess.run(words, capture_output=True, text=True)
        assert "another dlsim is at work there" in done.stderr
    assert subprocess.run(words).returncode == 0


def test_results_of_a_notebook_are_kept_from_what_is_there(tmp_path, capsys):
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


def test_lab_then_an_edit_then_reproduce_into_it_ends_in_a_refusal(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy_notebooks(tmp_path / "dlsim-notebooks")
    mine = tmp_path / "dlsim-notebooks" / "notebooks" / "00-start-here.ipynb"
    book = json.loads(mine.read_text("utf-8"))
    book["cells"][0]["source"] = "what I wrote"
    mine.write_text(json.dumps(book))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert main(["reproduce", "start-here", "--out", "dlsim-notebooks"]) == 2
    assert capsys.readouterr().err == (
        "dlsim: dlsim-notebooks: holds the copy of the notebooks that dlsim lab made, with your "
        "changes; nothing was written there: choose a new or empty folder with --out\n"
    )
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


COMMANDS = {"reproduce": ["reproduce", "start-here"], "run": ["run", "theory"]}


@pytest.mark.parametrize("verb", COMMANDS)
def test_no_command_writes_into_a_folder_that_dlsim_did_not_make(tmp_path, capsys, verb):
    (tmp_path / "run.json").write_text("mine")
    assert main([*COMMANDS[verb], "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "not empty, and this dlsim did not make it (it holds run.json)" in said.err
    assert said.out == ""  # before anything ran
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    assert (tmp_path / "run.json").read_text() == "mine"


@pytest.mark.parametrize("verb", COMMANDS)
@pytest.mark.parametrize("place", ["", "file", "file/below", "/proc/self/below"])
def test_a_folder_that_cannot_be_is_refused_before_anything_runs(
    tmp_path, capsys, monkeypatch, verb, place
):
    """Even by root, which may write to every place that is one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main([*COMMANDS[verb], "--out", place]) == 2
    said = capsys.readouterr()
    assert ("cannot be written to" if place else "--out must name a folder") in said.err
    assert "choose a new or empty folder with --out" in said.err
    assert said.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_study_refuses_a_folder_of_others_before_it_computes(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    for make in (lambda out: start("mcdf", out=out), lambda out: explore.timing.save(out=out)):
        with pytest.raises(InputError, match=r"it holds thesis\.tex"):
            make(out=str(tmp_path))

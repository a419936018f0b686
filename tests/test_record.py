"""Named records: derived and given names, and what `replace` does to them."""

from dataclasses import dataclass, replace

import pytest

from dlsim.errors import InputError
from dlsim.record import Derived, NamedRecord, find_record, require_names
from tests.helpers.refusals import require_refusals


@dataclass(frozen=True)
class Meal(NamedRecord):
    dish: str
    salt: bool = False

    def __post_init__(self):
        self.settle_words(lambda: f"{self.dish} {self.salt}", lambda: f"Serves {self.dish}.")


MEALS = {
    "plain": Meal("rice", name="plain", text="Rice alone."),
    "sunday": Meal("stew", True, name="sunday", text="Stew with salt."),
}


def test_words_are_derived_unless_they_are_given():
    assert (Meal("rice").name, Meal("rice").text) == ("rice False", "Serves rice.")
    assert (MEALS["plain"].name, MEALS["plain"].text) == ("plain", "Rice alone.")


def test_words_do_not_count_in_comparisons_and_follow_a_changed_copy():
    assert Meal("rice") == MEALS["plain"]
    assert hash(Meal("rice")) == hash(MEALS["plain"])
    assert replace(Meal("rice"), salt=True).name == "rice True"


def test_a_blank_word_is_refused():
    require_refusals([
        (lambda given={word: blank}: Meal("rice", **given), f"{word} of a Meal must be a text")
        for word in ("name", "text")
        for blank in ("", "  ", None, 3)
    ])  # fmt: skip


def test_a_record_is_found_by_name_by_value_and_by_file(tmp_path, monkeypatch):
    assert find_record("meal", "sunday", MEALS) == ("sunday", MEALS["sunday"])
    assert find_record("meal", Meal("stew", True), MEALS)[0] == "sunday"
    assert find_record("meal", Meal("stew"), MEALS)[0] == "stew False"
    assert find_record("meal", Meal("stew", name="mine"), MEALS)[0] == "mine"
    with pytest.raises(InputError, match=r"meal must be one of plain, sunday; got 'sundya' \(did"):
        find_record("meal", "sundya", MEALS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from tests.test_record import Meal\nhot = Meal('soup')\n")
    assert find_record("meal", "mine.py:hot", MEALS) == ("hot", Meal("soup"))


def test_a_changed_copy_under_the_name_of_a_row_is_refused():
    changed = replace(MEALS["plain"], salt=True)
    with pytest.raises(InputError, match="meal 'plain' differs from the meal of that name"):
        find_record("meal", changed, MEALS)
    assert find_record("meal", replace(changed, name=Derived()), MEALS)[0] == "rice True"


def test_a_registry_needs_given_words_under_its_keys():
    require_names(MEALS)
    with pytest.raises(TypeError, match="'plane' must be given its name"):
        require_names({"plane": MEALS["plain"]})
    with pytest.raises(TypeError, match="'rice False' must be given its name"):
        require_names({"rice False": Meal("rice")})

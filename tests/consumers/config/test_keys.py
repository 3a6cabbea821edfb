"""A declared key: what is read of it, with one case for each kind of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from streammetrics_consumers.config.keys import (
    Required,
    ValueKind,
    completed,
    is_complete,
    key,
    keys_of,
    read,
    state_key,
)
from streammetrics_consumers.config.kinds import (
    Choice,
    FieldPath,
    FilePath,
    Real,
    Seconds,
    Switch,
    Text,
    Whole,
)
from streammetrics_consumers.config.section import Override, Problem, Section


def even(section: Section, name: str, value: object) -> int:
    if isinstance(value, int) and value % 2 == 0:
        return value
    section.refuse(name, "an even number", "add 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A table with a key of each kind."""

    name: str = key(Text(9), "corner", "its name")
    door: Path | None = key(FilePath(), None, "the file of its door")
    size: str = key(Choice(("small", "large")), "small", "its size")
    seats: int = state_key(Whole(1, 40, " of seats"), 12, "where to sit")
    opens_s: int | None = key(Seconds(5, 90), None, "after this")
    price: float = key(Real(0.0, 2.5), 1.0, "of a cup")
    share: float | None = key(Real(0.0, 1.0, is_open=True), None, "of milk")
    is_open: bool = key(Switch("look at the door"), True, "whether it is open")
    who: str | None = key(FieldPath(), None, "the field of the guest")
    beans: Mapping[str, int] = key(ValueKind("table of numbers"), {}, "by sort")
    cups: int = key(ValueKind("even number", even), 2, "how many", name="cup", secret=True)


GOOD: Mapping[str, object] = {
    "name": "north", "door": "a/b", "size": "large", "seats": 40, "opens_s": 5, "price": 2,
    "share": 0.5, "is_open": False, "who": "user.id", "cup": 8,
}  # fmt: skip


def opened(
    table: Mapping[str, object], flags: Mapping[str, Override] | None = None
) -> tuple[Shop, list[Problem]]:
    problems: list[Problem] = []
    section = Section("shop", dict(table), problems, flags)
    return read(section, Shop), problems


def test_a_key_has_its_default_until_the_file_has_a_value() -> None:
    assert opened({}) == (Shop(), [])
    shop, problems = opened(GOOD)
    expected = Shop(
        name="north", door=Path("a/b"), size="large", seats=40, opens_s=5, price=2.0, share=0.5,
        is_open=False, who="user.id", cups=8,
    )  # fmt: skip
    assert (shop, problems) == (expected, [])
    assert isinstance(shop.price, float)
    home, _ = opened({"door": "~"})
    assert home.door == Path.home()


@pytest.mark.parametrize(
    ("name", "value", "expected", "hint"),
    [
        ("name", "", "a text of 1 to 9 characters", "put it in quotes"),
        ("name", "ten letters", "a text of 1 to 9 characters", "put it in quotes"),
        ("name", "a\x00b", "a text of 1 to 9 characters", "put it in quotes"),
        ("door", 3, "a text of 1 to 1000 characters", "put it in quotes"),
        ("size", "smal", '"small" or "large"', "did you mean `small`?"),
        ("size", 1, '"small" or "large"', "put it in quotes"),
        ("seats", 0, "a whole number of seats from 1 to 40", "change it"),
        ("seats", 41, "a whole number of seats from 1 to 40", "change it"),
        ("seats", True, "a whole number of seats from 1 to 40", "change it"),
        ("seats", "7", "a whole number of seats from 1 to 40", "change it"),
        ("price", -0.5, "a number from 0 to 2.5", "change it"),
        ("price", math.nan, "a number from 0 to 2.5", "change it"),
        ("price", True, "a number from 0 to 2.5", "change it"),
        ("price", "1", "a number from 0 to 2.5", "change it"),
        ("is_open", 1, "true or false", "look at the door"),
        ("who", "a..b", 'a dotted path in an event, such as "user.id"', "name the field"),
        ("cup", 3, "an even number", "add 1"),
    ],
)
def test_a_bad_value_is_an_error_of_four_parts_and_leaves_the_default(
    name: str, value: object, expected: str, hint: str
) -> None:
    shop, problems = opened({name: value})
    assert problems == [Problem(f"[shop] {name}", expected, repr(value), hint)]
    assert shop == Shop()


def test_a_refused_number_without_a_default_is_not_taken_for_a_missing_one() -> None:
    shop, problems = opened({"opens_s": 91, "share": 2})
    assert [problem.expected for problem in problems] == [
        "a whole number of seconds from 5 to 90", "a number from 0 to 1",
    ]  # fmt: skip
    assert shop.opens_s == 5
    assert shop.share is not None and math.isnan(shop.share)


def test_an_open_range_excludes_its_ends() -> None:
    for end in (0, 1.0):
        (problem,) = opened({"share": end})[1]
        assert problem.expected == "a number between 0 and 1"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("seats", " 7 ", 7), ("price", "0.5", 0.5), ("name", "a", "a"), ("seats", "9" * 5000, None)],
)
def test_a_flag_goes_before_the_file_and_its_text_may_be_a_number(
    name: str, text: str, value: object
) -> None:
    shop, problems = opened({name: []}, {name: Override(text, "--flag")})
    assert [problem.where for problem in problems] == ([] if value is not None else ["--flag"])
    assert getattr(shop, name) == (12 if value is None else value)


def test_a_misspelt_key_is_unknown_and_a_flag_that_nothing_reads_does_not_apply() -> None:
    _, problems = opened({"seat": 3}, {"cap": Override(1, "--cap")})
    assert problems == [
        Problem("[shop] seat", "a known key", "'seat'", "did you mean `seats`?"),
        Problem("--cap", "a setting that applies here", "1", "leave it out for this config"),
    ]


@dataclass(frozen=True, slots=True)
class Visit:
    """A table with required keys, and a field that is no key."""

    guest: str = key(Text(), Required("a guest", "say who comes", "nobody"), "who comes")
    table: int = key(ValueKind("an even number", even), Required(), "where")
    waiter: str = "Ada"


def test_a_required_key_is_missed_with_its_own_words_and_something_stands_for_it() -> None:
    problems: list[Problem] = []
    section = Section("visit", {}, problems)
    visit = read(section, Visit)
    assert problems == [Problem("[visit] guest", "a guest", "nothing", "say who comes")]
    assert (visit.guest, visit.waiter) == ("nobody", "Ada")
    assert not is_complete(section, Visit)
    for table, complete in (({"guest": "Bo", "table": 2}, True), ({"guest": 3, "table": 2}, False)):
        section = Section("visit", table, [])
        read(section, Visit)
        assert is_complete(section, Visit) == complete


def test_each_table_of_a_list_is_read_but_one_that_is_refused() -> None:
    section = Section(
        "town", {"shops": [{"seats": 4}, 3, {"seats": 41, "sets": 1}]}, problems := []
    )
    tables = section.elements("shops", "at most 3 shops", "write [{ seats = 4 }]", most=3)
    shops = tables.each(lambda tables, key: read(tables.entry(key, "write { seats = 4 }"), Shop))
    assert [shop.seats for shop in shops] == [4, 12]
    places = ["[town] shops[1]", "[town] shops[2].seats", "[town] shops[2].sets"]
    assert [problem.where for problem in problems] == places
    assert not section.elements("shops", "at most 2 shops", "cut it", most=2).table
    assert str(problems[-1]).startswith("[town] shops: expected at most 2 shops, got [")
    assert not section.elements("stalls", "stalls", "write []").table
    assert len(problems) == 4


def test_a_default_may_follow_from_other_keys() -> None:
    section = Section("shop", {"seats": 4, "cup": 3}, problems := [])
    shop = completed(section, read(section, Shop), seats=9, opens_s=30, name="north")
    assert (shop.seats, shop.opens_s, shop.name) == (4, 30, "north")
    assert [problem.where for problem in problems] == ["[shop] cup"]


def test_a_table_as_a_default_belongs_to_one_object() -> None:
    assert Shop().beans == {} and Shop().beans is not Shop().beans
    assert opened({})[0].beans is not opened({})[0].beans


def test_a_secret_is_not_in_the_repr() -> None:
    assert "cups" not in repr(Shop()) and "seats" in repr(Shop())


def test_a_key_is_part_of_states_or_required_where_its_declaration_says_so() -> None:
    assert [name for name, declared in keys_of(Shop).items() if declared.in_states] == ["seats"]
    required = [name for name, declared in keys_of(Visit).items() if declared.is_required]
    assert required == ["guest", "table"]

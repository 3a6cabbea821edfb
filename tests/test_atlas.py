"""The atlas of definitions: the page is what was measured, and what was measured has its reasons.

The libraries are not asked here: `make atlas ARGS=--check` asks them, each night.
"""

from __future__ import annotations

from typing import Any

import pytest

from docs.atlas import page
from docs.atlas.adapter import ADAPTERS, Adapter
from docs.atlas.definition import Definition
from docs.atlas.definitions import DEFINITIONS, our_value

KEPT = page.kept()
LIBRARIES: dict[str, dict[str, Any]] = KEPT["libraries"]
KEYS = [definition.key for definition in DEFINITIONS]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)


def test_the_page_is_what_was_measured() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.written(KEPT), "run `python -m docs.atlas --page`"


def test_the_atlas_has_many_libraries_and_definitions_each_with_a_value_of_another() -> None:
    assert len(LIBRARIES) >= 12
    assert len({*KEYS}) == len(DEFINITIONS) >= 30
    asked = {key for library in LIBRARIES.values() for key in library["values"]}
    assert asked == {*KEYS}
    assert sum(len(library["values"]) for library in LIBRARIES.values()) >= 200


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.key)
def test_our_value_is_what_the_library_gives_today(definition: Definition) -> None:
    assert page.plain(our_value(definition)) == KEPT["ours"][definition.key]


@each_adapter
def test_what_an_adapter_calls_was_measured(adapter: Adapter) -> None:
    library = LIBRARIES[adapter.name]
    assert library["calls"] == adapter.calls
    assert library["values"].keys() == adapter.calls.keys()
    assert adapter.environment in page.PAGE.parent.parent.parent.joinpath("Makefile").read_text()


def test_each_difference_has_a_reason_and_no_other_value_has_one() -> None:
    reasons = {(name, one.key) for one in DEFINITIONS for name, text in one.reasons.items() if text}
    assert reasons == page.differences(KEPT).keys()


def test_a_value_that_changes_with_a_version_is_reported() -> None:
    (name, library), *others = LIBRARIES.items()
    key = next(key for key, value in library["values"].items() if isinstance(value, float))
    later = {"version": "99", "values": {**library["values"], key: library["values"][key] + 1e-3}}
    now = {**KEPT, "libraries": {name: later, **dict(others)}}
    (line,) = page.changes(KEPT, now)
    assert line.startswith(f"{name} {library['version']} to 99: {key} was ")
    assert [*page.changes(KEPT, KEPT)] == []
    unmeasured = {**now, "ours": {**KEPT["ours"], "auc": 0.25}}
    assert [*page.changes(KEPT, unmeasured)][-1] == f"ours: auc was {KEPT['ours']['auc']}, is 0.25"

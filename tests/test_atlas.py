"""The atlas of definitions: the page is what was measured, and what was measured has its reasons.

The libraries are not asked here: `make atlas ARGS=--check` asks them, each night.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docs.atlas import __main__ as atlas
from docs.atlas import page
from docs.atlas.adapter import ADAPTERS, Adapter
from docs.atlas.definition import Definition
from docs.atlas.definitions import DEFINITIONS, our_value, rows_digest
from tests.requirements import ROOT

KEPT = page.stored_values()
LIBRARIES: dict[str, dict[str, Any]] = KEPT["libraries"]
KEYS = [definition.key for definition in DEFINITIONS]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)


def test_the_page_is_what_was_measured() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.written(KEPT), "run `python -m docs.atlas --page`"


def test_the_atlas_has_many_libraries_and_definitions_each_with_a_value_of_another() -> None:
    assert len(LIBRARIES) >= 12
    assert len({*KEYS}) == len(DEFINITIONS) >= 30
    keys = {key for library in LIBRARIES.values() for key in library["values"]}
    assert keys == {*KEYS}
    assert sum(len(library["values"]) for library in LIBRARIES.values()) >= 200


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.key)
def test_our_value_is_what_the_library_gives_today(definition: Definition) -> None:
    assert page.plain(our_value(definition)) == KEPT["ours"][definition.key]


@each_adapter
def test_what_an_adapter_calls_was_measured_of_the_rows_of_the_page(adapter: Adapter) -> None:
    library = LIBRARIES[adapter.name]
    assert library["calls"] == adapter.calls
    assert library["rows"] == rows_digest(), "run `make atlas`"
    assert library["values"].keys() == adapter.calls.keys()
    assert adapter.environment in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_each_difference_has_a_reason_and_no_other_value_has_one() -> None:
    reasons = {
        (name, definition.key)
        for definition in DEFINITIONS
        for name, text in definition.reasons.items()
        if text
    }
    assert reasons == page.differences(KEPT).keys()


def test_a_nightly_run_reports_a_value_that_changes_with_a_version_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {name: dict(library) for name, library in LIBRARIES.items()}
    monkeypatch.setattr(atlas, "record_of", lambda adapter: answers[adapter.name])
    assert atlas.main(["--check"]) == 0
    assert capsys.readouterr().out == ""
    river = LIBRARIES["river"]
    answers["river"] = {**river, "version": "99", "values": {**river["values"], "auc_rare": 0.75}}
    assert atlas.main(["--check", "scipy"]) == 0
    assert atlas.main(["--check"]) == 1
    expected = f"river {river['version']} to 99: auc_rare was 0.5, is 0.75\n"
    assert capsys.readouterr().out == expected
    assert page.stored_values() == KEPT


def test_a_library_without_its_environment_keeps_its_values(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(atlas, "ROOT", tmp_path)
    assert atlas.main(["--check"]) == 0
    assert capsys.readouterr().err.count("run `make atlas`") == len(ADAPTERS)


def test_a_value_of_ours_that_changes_is_reported() -> None:
    later = {**KEPT, "ours": {**KEPT["ours"], "auc": 0.25}}
    assert [*page.changes(KEPT, later)] == [f"ours: auc was {KEPT['ours']['auc']}, is 0.25"]

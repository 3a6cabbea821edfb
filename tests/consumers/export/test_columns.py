"""The columns of exported results are the fields of their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import pytest
from streammetrics_consumers.export.columns import (
    COLUMNS,
    COMPARISON,
    EXPOSED,
    KEY,
    NAMES,
    RESULT,
    Origin,
    content_of,
    key_of,
    row_of,
)
from streammetrics_consumers.export.exposed_values import exposed_values
from streammetrics_consumers.query.encoding import Encoder

from tests.consumers.export.exported import row
from tests.consumers.render.corpus import corpus
from tests.requirements import ROOT

PLACE = Origin(7, "store", 2, 3, None)
OF_PLACE = (*PLACE._fields, "record", "variant")


def objects() -> Iterator[tuple[str, dict[str, object]]]:
    """Every result, comparison and effect on exposed units of many answers, as JSON has it."""
    encoder = Encoder()
    for answer in corpus().values():
        yield from ((RESULT, json.loads(encoder.text(result))) for result in answer.rows)
        yield from (
            (COMPARISON, json.loads(encoder.text(comparison))) for comparison in answer.comparisons
        )
        shown = answer.exposed_units
        yield from ((EXPOSED, dict(effect)) for effect in (exposed_values(shown) if shown else ()))


def leaves(path: str, value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The values of an object by the names of their columns, without what is null."""
    for name, member in value.items():
        if isinstance(member, dict) and f"{path}{name}" not in ("slice", "counts"):
            yield from leaves(f"{path}{name}_", member)
        elif member is not None:
            yield f"{path}{name}", member


def test_a_row_has_every_value_of_its_object_and_no_other() -> None:
    records = set()
    for record, value in objects():
        cells = dict(zip(NAMES, row_of(record, value, PLACE), strict=True))
        records.add((record, value.get("window") == {"start_ms": None}))
        has = {n: cell for n, cell in cells.items() if cell is not None and n not in OF_PLACE}
        expected = dict(leaves("", value))
        assert has.keys() == expected.keys()
        for name, cell in has.items():
            member = expected[name]
            if isinstance(member, dict):
                assert json.loads(str(cell)) == member
            elif member in ("inf", "-inf") and isinstance(cell, float):
                assert cell == float(str(member))
            else:
                assert cell == member, name
    assert {record for record, _ in records} == {RESULT, COMPARISON, EXPOSED}


def test_every_cell_is_of_the_kind_of_its_column() -> None:
    filled = set()
    for record, value in objects():
        for column, cell in zip(COLUMNS, row_of(record, value, PLACE), strict=True):
            assert cell is None or type(cell) is column.kind, column
            filled |= {column.name} if cell is not None else set()
    rare = ("n_eff", "deff", "target", "since_effect", "since_lower", "since_upper", "experiment")
    assert [name for name in set(NAMES) - filled if not name.endswith(rare)] == []


def test_the_variant_is_that_of_the_slice_or_the_treatment() -> None:
    for record, value in objects():
        cells = dict(zip(NAMES, row_of(record, value, PLACE), strict=True))
        slice_ = value.get("slice", {})
        assert isinstance(slice_, dict)
        name = value.get("treatment_variant", slice_.get("variant"))
        assert cells["variant"] == (name and str(name).encode("utf-8", "backslashreplace").decode())


@pytest.mark.parametrize("name", [*KEY, "value", "looks", "verdict", "experiment"])
def test_another_value_is_another_content(name: str) -> None:
    base_row, changed_row = (
        row(),
        row(**{name: None if row()[NAMES.index(name)] is not None else 5}),
    )
    assert content_of(base_row) != content_of(changed_row)
    assert (key_of(base_row) != key_of(changed_row)) == (name in KEY)


def test_the_time_of_writing_is_no_content() -> None:
    assert content_of(row(1, revision=1)) == content_of(row(2, revision=2))
    assert content_of(row(type="")) == content_of(row(type=None))  # which CSV does not tell apart


def test_names_that_utf_8_cannot_hold_are_escaped() -> None:
    value = next(value for record, value in objects() if record == RESULT)
    cells = row_of(RESULT, {**value, "slice": {"variant": "\ud800"}, "metric": "\ud800"}, PLACE)
    assert "\\ud800" in str(cells[NAMES.index("variant")])
    assert all(cell.encode() for cell in cells if isinstance(cell, str) and cell)


def test_the_page_lists_the_columns_in_their_order() -> None:
    page = (ROOT / "docs" / "how_to" / "results_as_data.md").read_text(encoding="utf-8")
    words = {str: "text", int: "integer", float: "number", bool: "boolean"}
    rows = re.findall(r"^\| ((?:`\w+` ?)+) \| (\w+) \|", page, re.M)
    listed = [(name, kind) for names, kind in rows for name in re.findall(r"\w+", names)]
    assert listed == [(column.name, words[column.kind]) for column in COLUMNS]

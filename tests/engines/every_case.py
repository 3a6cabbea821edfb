"""Rows of every public accumulator as tables of an engine, and what one process makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

from streammetrics import Accumulator
from streammetrics.core.rows import DictionaryColumn
from streammetrics.testing import Case
from tests.cases import CASES

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 6
# All but similarities of one's own: workers know ours alone.
OF_ENGINES = [case for case in CASES if "similarity='nearness'" not in repr(case.empty)]


@dataclass(frozen=True)
class Rows:
    """Some rows of a case: the batch that an engine has of them, and their state."""

    name: str
    spec: Accumulator
    batch: pa.RecordBatch
    whole: Accumulator


@cache
def every_case() -> list[Rows]:
    """Rows of every case of engines; to draw them takes seconds."""
    return list(map(rows_of, OF_ENGINES))


def rows_of(case: Case[Any]) -> Rows:
    """Some rows of one case."""
    columns = {name: _plain(name, column) for name, column in case.columns(_drawn(case)).items()}
    whole = case.empty.empty()
    whole.update(**columns)
    return Rows(str(case), case.empty, _arrow(columns), whole)


def _drawn(case: Case[Any]) -> list[Any]:
    """The last rows that hypothesis thinks of."""
    draws: list[list[Any]] = []

    @hypothesis.settings(max_examples=5, phases=[hypothesis.Phase.generate], database=None)
    @hypothesis.given(st.lists(case.row, min_size=ROWS, max_size=ROWS))
    def draw(rows: list[Any]) -> None:
        draws.append(rows)

    draw()
    return draws[-1]


def _plain(name: str, column: Any) -> Any:
    """A column as Arrow may hold it: its keys and subtopics are of one type, and UTF-8."""
    if isinstance(column, DictionaryColumn):
        column = [column.values[code] for code in column.codes]
    if name == "subtopics" and all(isinstance(topics, tuple | list) for topics in column):
        return [[ascii(topic) for topic in answered] for answered in column]
    return [ascii(key) for key in column] if name == "keys" else column


def _arrow(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """The columns of `update` as a batch of an engine: flat ones with offsets as lists."""
    import pyarrow as pa

    offsets = columns.get("offsets")
    arrays = {}
    for name, column in columns.items():
        if name == "offsets" or column is None:
            continue
        array = pa.array(
            [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
        )
        of_items = offsets is not None and len(array) == int(offsets[-1])
        if of_items and name != "n_relevant":
            array = pa.ListArray.from_arrays(pa.array(np.asarray(offsets), pa.int32()), array)
        arrays[name] = array
    return pa.record_batch(arrays)

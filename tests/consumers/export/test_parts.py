"""A folder of parquet files grows by whole parts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.export import parts
from streammetrics_consumers.export.columns import COLUMNS, NAMES, Row
from streammetrics_consumers.export.parts import Parts, read_parquet, write_parquet

from streammetrics import InputError, StateError
from tests.consumers.export.exported import HOSTILE, row, rows_in

pyarrow = pytest.importorskip("pyarrow")
ROWS = [row(1, metric="a"), row(1, metric=HOSTILE), row(2, metric="b", view=None)]


def appended(folder: Path, *groups: list[Row]) -> None:
    """Append these rows, each group at once."""
    with closing(Parts(folder)) as target:
        list(target.rows())
        for group in groups:
            target.append(group)


def test_a_folder_is_one_table_with_the_columns_and_their_kinds(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = tmp_path / "results.parquet"
    appended(folder, ROWS[:2], [], ROWS[2:])
    assert sorted(path.name for path in folder.iterdir()) == [
        "part-00000001.parquet",
        "part-00000002.parquet",
    ]
    table = pq.read_table(folder)
    kinds = {str: "string", int: "int64", float: "double", bool: "bool"}
    assert [(field.name, str(field.type)) for field in table.schema] == [
        (column.name, kinds[column.kind]) for column in COLUMNS
    ]
    assert [tuple(cells.values()) for cells in table.to_pylist()] == ROWS == rows_in(folder)


def test_polars_reads_the_folder(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    folder = tmp_path / "results.parquet"
    appended(folder, ROWS[:1], ROWS[1:])
    (folder / parts._UNFINISHED).write_bytes(b"half of a part")
    assert polars.read_parquet(folder / "*.parquet").rows() == ROWS


def test_groups_of_rows_are_written_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "GROUP_ROWS", 2)
    many = [row(1, metric=str(i)) for i in range(5)]
    assert write_parquet(tmp_path / "a.parquet", iter(many)) == 5
    assert list(read_parquet(tmp_path / "a.parquet")) == many
    assert pyarrow.parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == 3


def test_half_of_a_part_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "results.parquet"
    appended(folder, ROWS)
    (folder / parts._UNFINISHED).write_bytes(b"PAR1")
    assert rows_in(folder) == ROWS
    assert [path.name for path in folder.iterdir()] == ["part-00000001.parquet"]


def test_one_process_appends_at_a_time(tmp_path: Path) -> None:
    with closing(Parts(tmp_path)), pytest.raises(InputError, match="another export follows"):
        Parts(tmp_path)
    Parts(tmp_path).close()


def test_a_file_cannot_grow(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    write_parquet(path, ROWS)
    with pytest.raises(InputError, match="expected a folder of parquet files"):
        Parts(path)
    assert list(read_parquet(path)) == ROWS


def test_a_part_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "results.parquet"
    folder.mkdir()
    part = folder / "part-00000001.parquet"
    part.write_bytes(b"not parquet")
    with pytest.raises(StateError, match=f"{part}: expected a parquet file that"):
        rows_in(folder)
    pyarrow.parquet.write_table(pyarrow.table({name: [1] for name in NAMES}), part)
    with pytest.raises(StateError, match=f"{part}: expected the {len(NAMES)} columns"):
        rows_in(folder)


def test_without_pyarrow_nothing_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(Exception, match=r"pip install '\.\[parquet\]' in a clone"):
        Parts(tmp_path / "results.parquet")
    assert not [*tmp_path.iterdir()]

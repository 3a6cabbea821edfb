import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.sources import GapError
from streammetrics_consumers.sources.files import parquet_file

from streammetrics import DictionaryColumn
from tests.consumers.file_sources import From, close_all, drained, source
from tests.consumers.small_config import EVENT, config

SMALL = config()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close what a test opens."""
    yield
    close_all()


TS = "2024-01-01T00:00:00Z"


def write(path: Path, rows: int = 7, group: int = 3, **columns: object) -> Path:
    """A parquet file of good events with some columns replaced, a few rows in each row group."""
    table = {
        "ts": [TS] * rows,
        "variant": ["a", "b"] * rows,
        "label": [0, 1, 0] * rows,
        "score": [0.25] * rows,
        "phase": [f"p{i}" for i in range(rows)],
        **columns,
    }
    pq.write_table(
        pa.table({name: values[:rows] for name, values in table.items()}),  # type: ignore[index]
        path,
        row_group_size=group,
    )
    return path


def chunks(path: Path, start: int = 0) -> list[Chunk]:
    opened = source(path)
    opened.assign(From(start))
    return list(drained(opened))


def decoded(path: Path, event: str = EVENT) -> Decoded:
    (chunk,) = chunks(path)
    return Decoder(config(event=event)).decode(chunk)


def phases(result: Decoded) -> list[object]:
    column = result.keys["slice phase"]
    return [column.values[code] for code in column.codes.tolist()]


def test_a_row_has_its_number_as_offset_and_is_an_event(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    for start in (0, 1, 3, 5, 7):
        parts = chunks(path, start)
        assert [o for chunk in parts for o in chunk.offsets] == list(range(start, 7))
        rows = [phase for chunk in parts for phase in phases(Decoder(SMALL).decode(chunk))]
        assert rows == [f"p{i}" for i in range(start, 7)]
    with pytest.raises(GapError):
        chunks(path, 8)
    events = decoded(write(tmp_path / "b.parquet", group=100))
    assert events.times_ms.tolist() == [1_704_067_200_000] * 7
    assert np.asarray(events.columns["label:label"]).tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert not events.refused


def test_a_column_of_times_needs_no_text(tmp_path: Path) -> None:
    moments = [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None]
    column = pa.array(moments, pa.timestamp("us", "Europe/Paris"))
    result = decoded(write(tmp_path / "a.parquet", rows=2, ts=column))
    assert result.times_ms.tolist() == [-1]
    assert [(e.reason, e.field) for e in result.refused] == [("missing_field", "ts")]
    column = pa.array([0], pa.timestamp("ms"))
    with pytest.raises(SourceError, match="without a zone"):
        decoded(write(tmp_path / "a.parquet", rows=1, ts=column))


def test_columns_of_structs_are_reached_by_dotted_paths(tmp_path: Path) -> None:
    column = pa.array([{"y": 1}, None, {"y": 0}], pa.struct([("y", pa.int8())]))
    result = decoded(
        write(tmp_path / "a.parquet", rows=3, click=column),
        EVENT.replace('label = "label"', 'label = "click.y"'),
    )
    assert np.asarray(result.columns["click.y:label"]).tolist() == [1, 0]
    assert [(e.offset, e.reason) for e in result.refused] == [(1, "missing_field")]


def test_a_bad_row_is_refused_alone_with_its_text(tmp_path: Path) -> None:
    result = decoded(write(tmp_path / "a.parquet", rows=3, score=[0.5, float("nan"), 0.5]))
    (entry,) = result.refused
    assert (entry.offset, entry.reason, entry.field) == (1, "not_a_number", "score")
    assert json.loads(entry.payload)["phase"] == "p1"


def test_a_text_that_is_no_utf_8_costs_its_row_alone(tmp_path: Path) -> None:
    ends = np.array([0, 1, 3, 4], np.int32)
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(ends), pa.py_buffer(b"a\xff\xfeb"))
    as_bytes = texts.cast(pa.binary()).dictionary_encode()
    dictionary_column = pa.DictionaryArray.from_arrays(as_bytes.indices, texts)
    for field, column in product(("variant", "phase"), (texts, dictionary_column)):
        result = decoded(write(tmp_path / "a.parquet", rows=3, **{field: column}))
        assert result.at.tolist() == [0, 2]
        assert [(e.offset, e.reason, e.field) for e in result.refused] == [(1, "wrong_type", field)]


DAYS = pa.array([0, 2**31 - 1, 1], pa.int32()).cast(pa.date32())  # one is beyond the calendar
SPANS = pa.array([0, 2**62, 1], pa.duration("s"))
ENDS = pa.array([0, 1, 2, 3], pa.int32())
NO_TEXT = pa.array([b"a", b"\xff", b"b"], pa.binary_view()).view(pa.string_view())


def test_values_that_nothing_reads_may_be_anything_also_in_a_part(tmp_path: Path) -> None:
    columns = {
        "created": pa.array([0, 1, 2], pa.timestamp("us")),
        "day": DAYS,
        "span": SPANS,
        "days": pa.ListArray.from_arrays(ENDS, DAYS),
        "text": NO_TEXT,
    }
    (whole,) = chunks(write(tmp_path / "a.parquet", rows=3, **columns))
    decoder = Decoder(SMALL)
    for i in range(3):
        part = decoder.decode(whole.part(i, i + 1, i, i + 1))
        assert phases(part) == [f"p{i}"] and not part.refused
        assert part.chunk.values[0] == whole.values[i]


def test_what_is_no_value_of_python_is_refused_and_ends_nothing(tmp_path: Path) -> None:
    other_zone = pa.array([0, 1, 2]).view(pa.timestamp("us", "Mars/Here"))
    for column, rows in (
        (NO_TEXT, [1]),
        (DAYS, [0, 1, 2]),
        (SPANS, [0, 1, 2]),
        (pa.ListArray.from_arrays(ENDS, DAYS), [0, 1, 2]),
        (pa.ListArray.from_arrays(ENDS, other_zone), [0, 1, 2]),
    ):
        path = write(tmp_path / "a.parquet", rows=3, phase=column)
        for result in (decoded(path), decoded(path, EVENT + 'where = { phase = "present" }')):
            refused = [(entry.offset, entry.reason, entry.field) for entry in result.refused]
            assert refused == [(row, "wrong_type", "phase") for row in rows]
        assert decoded(path, EVENT + 'where = { phase = "absent" }').left_out == 3


def test_a_time_is_no_name_of_a_slice_however_far_it_is(tmp_path: Path) -> None:
    times = pa.array([0, 2**60, None], pa.timestamp("ms", "UTC"))
    path = write(tmp_path / "a.parquet", rows=3, phase=times)
    result = decoded(path)
    assert phases(result) == [None]
    refused = [(entry.offset, entry.reason, entry.field) for entry in result.refused]
    assert refused == [(0, "wrong_type", "phase"), (1, "wrong_type", "phase")]
    assert decoded(path, EVENT + f'where = {{ phase = "{2**60}" }}').left_out == 3


def test_two_columns_of_one_name_are_refused_where_they_are_read(tmp_path: Path) -> None:
    inner = {"seen": pa.array([{"at": "x"}] * 3), "seen.at": pa.array(["y"] * 3)}
    path = write(tmp_path / "a.parquet", rows=3, **inner)
    assert phases(decoded(path)) == ["p0", "p1", "p2"]
    with pytest.raises(SourceError, match="two columns have the name"):
        decoded(path, EVENT.replace('"score"', '"seen.at"'))


def test_dictionaries_and_missing_slices_are_texts(tmp_path: Path) -> None:
    column = pa.array(["x", None, "x"]).dictionary_encode()
    result = decoded(write(tmp_path / "a.parquet", rows=3, phase=column))
    assert phases(result) == ["x", None, "x"]
    assert isinstance(result.keys["variant"], DictionaryColumn)


def test_a_file_without_a_column_or_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": [TS]}), path)
    with pytest.raises(SourceError, match="no column 'variant', 'label', 'score'"):
        decoded(path)
    path.write_bytes(b"{}\n" * 100)
    with pytest.raises(SourceError, match="not a parquet file"):
        source(path)


def test_long_lists_come_in_small_chunks(tmp_path: Path) -> None:
    rows, width = 40, 100_000
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * width)), width)
    pq.write_table(pa.table({"score": lists}), tmp_path / "a.parquet")
    opened = source(tmp_path / "a.parquet")
    opened.assign(From(0))
    sizes = [len(chunk) for chunk in drained(opened)]
    close_all()
    assert sum(sizes) == rows
    assert max(sizes) * width * 8 <= 8 << 20


def damaged_at(path: Path, group: int) -> Path:
    """The file with a byte flipped in the pages of a row group."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(4)
    data = bytearray(path.read_bytes())
    first = column.dictionary_page_offset or column.data_page_offset
    data[first + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)
    return path


def read_until_an_error(path: Path) -> tuple[int, str]:
    """How many rows come, and what the error says."""
    opened = source(path)
    opened.assign(From(0))
    rows = 0
    with pytest.raises(SourceError) as caught:
        for _ in range(100):
            rows += sum(len(chunk) for chunk in opened.poll(0.0))
    return rows, str(caught.value)


def test_of_a_damaged_row_group_the_rows_before_it_come_and_then_its_number(
    tmp_path: Path,
) -> None:
    whole = pq.read_table(write(tmp_path / "a.parquet"))
    path = tmp_path / "b.parquet"
    for group in range(3):
        pq.write_table(whole, path, row_group_size=3, write_page_checksum=True)
        rows, message = read_until_an_error(damaged_at(path, group))
        assert rows == 3 * group
        last = min(3 * group + 2, 6)
        assert f"{path}: expected row group {group} (rows {3 * group} to {last})" in message
        assert "write or copy the file again" in message and "disk" not in message


def test_a_file_cut_off_anywhere_is_refused_in_words(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.parquet").read_bytes()
    path = tmp_path / "b.parquet"
    for size in range(0, len(whole), 31):
        path.write_bytes(whole[:size])
        with pytest.raises(SourceError, match="expected a parquet file"):
            source(path)


@pytest.mark.parametrize("step", [97, 23])
def test_no_flipped_byte_ends_otherwise_than_in_words(tmp_path: Path, step: int) -> None:
    """Each byte by itself, in the pages and in the footer: rows come, or the error names the file
    and nothing waits. (Where a page has no checksum, other values may come.)"""
    whole = write(tmp_path / "a.parquet").read_bytes()
    path = tmp_path / "b.parquet"
    refused = 0
    for index in range(0, len(whole), step):
        data = bytearray(whole)
        data[index] ^= 0x7F
        path.write_bytes(data)
        try:
            opened = source(path)
            opened.assign(From(0))
            (end,) = opened.ends().values() if opened.partitions() else (0,)
            rows = 0
            for _ in range(20):
                rows += sum(len(chunk) for chunk in opened.poll(0.0))
            assert rows == end, index
        except SourceError as error:
            refused += 1
            assert str(path) in str(error)
            assert "disk" not in str(error)
    assert refused > 5


def test_a_footer_that_claims_rows_that_no_group_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.parquet")
    metadata = pq.ParquetFile(path).metadata

    class Claims:
        num_rows = metadata.num_rows + 1
        num_row_groups = metadata.num_row_groups
        row_group = metadata.row_group

    class Claiming:
        def __init__(self, *_: object, **__: object) -> None:
            self.metadata = Claims()

    monkeypatch.setattr(pq, "ParquetFile", Claiming)
    with pytest.raises(
        SourceError, match="expected row groups with the 8 rows of the footer, got 7"
    ):
        source(path)


HOSTILE = ["a", "b", "", "é\n", None, "x" * 40, "x" * 600, '"']


def of_few_texts(path: Path, last: bytes) -> Path:
    """A file with two columns of few texts, one in its last row group that is no text if `last`
    is no UTF-8, and one column of many texts in a struct."""
    rows = 4_000
    plain = [HOSTILE[i * i % len(HOSTILE)] for i in range(rows)]
    texts = pa.array([*plain[:-1], "a"], pa.string()).cast(pa.binary()).to_pylist()
    phase = pa.array([*texts[:-1], last], pa.binary())
    phase = pa.Array.from_buffers(pa.string(), rows, phase.buffers(), phase.null_count)
    inner = pa.array([{"y": f"{i % 700}"} for i in range(rows)])
    variant = [("a", "b", "c")[i // 7 % 3] for i in range(rows)]
    times = [TS] * (rows - 1) + ["no time"]
    return write(path, rows, 2_000, ts=times, variant=variant, phase=phase, label=[0, 1] * rows,
                 score=[0.25] * rows, click=inner)  # fmt: skip


@pytest.mark.parametrize("last", [b"a", b"\xff", b"a\xed\xa0\x80"])
def test_few_texts_are_read_as_stored_with_the_same_events_and_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: bytes
) -> None:
    path = of_few_texts(tmp_path / "a.parquet", last)
    assert parquet_file.columns_of_few_texts(pq.ParquetFile(path)) == ["ts", "variant", "phase"]

    def read(**changed: object) -> list[tuple[object, ...]]:
        for name, value in changed.items():
            monkeypatch.setattr(parquet_file, name, value)
        decoder, rows = Decoder(SMALL), list[tuple[object, ...]]()
        for chunk in chunks(path, 3):
            events = decoder.decode(chunk)
            variants = events.keys["variant"]
            names = [variants.values[code] for code in variants.codes.tolist()]
            times = events.times_ms.tolist()
            offsets = [chunk.offsets[i] for i in events.at.tolist()]
            rows += zip(offsets, times, names, phases(events), strict=True)
            rows += [(entry.offset, entry) for entry in events.refused]
            rows += zip(chunk.offsets, chunk.values, strict=True)
        return sorted(rows, key=repr)

    as_stored = read()
    assert any("unknown_variant" in repr(row) for row in as_stored)
    assert as_stored == read(ROWS=700)
    assert as_stored == read(columns_of_few_texts=lambda file: [])

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.sources import GapError
from streammetrics_consumers.sources.files import text_file

from tests.consumers.file_sources import From, close_all, drained, source


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close what a test opens."""
    yield
    close_all()


def read(path: Path, start: int = 0, **how: bool | int) -> list[Chunk]:
    opened = source(path, **how)  # type: ignore[arg-type]
    opened.assign(From(start))
    return list(drained(opened))


def values(chunks: Iterable[Chunk]) -> list[bytes | None]:
    return [value for chunk in chunks for value in chunk.values]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(10)))
    return path


def test_a_line_has_its_number_as_offset_in_a_log_named_after_the_file(lines: Path) -> None:
    (chunk,) = read(lines)
    assert (chunk.start, chunk.end, list(chunk.offsets)) == (0, 10, list(range(10)))
    assert chunk.values == [b"%d" % i for i in range(10)]
    assert chunk.timestamps_ms is None
    opened = source(lines)
    assert [str(partition) for partition in opened.partitions()] == ["events.jsonl/0"]
    assert opened.replayable and opened.beginning(opened.partitions()[0]) == 0
    for start in (0, 1, 7, 10):
        assert values(read(lines, start)) == [b"%d" % i for i in range(start, 10)]


def test_the_end_is_the_number_of_records(lines: Path) -> None:
    opened = source(lines)
    (partition,) = opened.partitions()
    assert opened.ends() == {partition: 10}
    lines.write_bytes(lines.read_bytes() + b"last, without a line end")
    assert source(lines).ends() == {partition: 11}
    assert source(lines, follow=True).ends() == {partition: 10}


def test_chunks_follow_each_other(lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streammetrics_consumers.sources.files.CHUNK_RECORDS", 3)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 5)
    chunks = read(lines, 2)
    assert [(c.start, c.end) for c in chunks] == [(2, 5), (5, 8), (8, 10)]
    assert values(chunks) == [b"%d" % i for i in range(2, 10)]


def test_a_file_that_is_shorter_than_its_head_is_a_gap(lines: Path) -> None:
    with pytest.raises(GapError) as caught:
        source(lines).assign(From(11))
    assert (caught.value.head, caught.value.beginning, caught.value.end) == (11, 0, 10)


def test_a_file_that_is_truncated_while_it_is_read_is_a_gap(lines: Path) -> None:
    opened = source(lines, follow=True)
    opened.assign(From(0))
    assert len(values(drained(opened))) == 10
    os.truncate(lines, 4)
    with pytest.raises(GapError) as caught:
        opened.poll(0)
    assert (caught.value.head, caught.value.end) == (10, 2)


def test_a_line_over_the_limit_is_cut_and_its_neighbours_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n" + b"x" * 5000 + b"\n[]\n")
    (chunk,) = read(path)
    assert chunk.values == [b"{}", b"x" * 4096, b"[]"]
    assert list(chunk.cut) == [1] and chunk.cut[1].size == 5000


def test_a_followed_file_gives_a_line_once_its_line_end_is_there(lines: Path) -> None:
    opened = source(lines, follow=True)
    opened.assign(From(9))
    with lines.open("ab") as file:
        file.write(b'{"half":')
        file.flush()
        assert values(drained(opened)) == [b"9"]
        file.write(b"1}\nnext\n")
        file.flush()
        assert values(drained(opened)) == [b'{"half":1}', b"next"]


def test_a_file_is_the_same_log_in_another_place_and_another_file_is_another(
    lines: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / lines.name
    copy.write_bytes(lines.read_bytes() + b"more\n")
    assert source(copy).partitions() == source(lines).partitions()
    (old_partition,) = source(lines).partitions()
    lines.write_bytes(b"other\n" * 20)
    (now,) = source(lines).partitions()
    assert str(now) == str(old_partition) and now.topic_id != old_partition.topic_id
    path = tmp_path / "a.csv"
    path.write_bytes(b"ts,label\n1,0\n")
    csv = source(path).partitions()
    path.write_bytes(b"ts,label\n2,0\n")  # of CSV files one header is alike
    assert source(path).partitions() != csv


def test_a_csv_file_has_its_header_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfts,"label"\r\n1,"x\ny"\r\n2,z')
    (chunk,) = read(path)
    assert chunk.fields == ("ts", "label")
    assert (list(chunk.offsets), chunk.values) == ([0, 1], [b'1,"x\ny"', b"2,z"])
    assert values(read(path, 1)) == [b"2,z"]
    assert list(source(path).ends().values()) == [2]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(SourceError, match=r"\[source\] path: expected a file"):
        source(path)
    for header in (b"a,a\n1,2\n", b'"a\n1\n', b"\xff,b\n1,2\n", b"\n1\n"):
        path.write_bytes(header)
        with pytest.raises(SourceError, match="header"):
            read(path)


def test_a_file_without_a_complete_record_is_no_log_yet(tmp_path: Path) -> None:
    for name, beginning, follow in (
        ("e.jsonl", b"", False),
        ("e.jsonl", b"", True),
        ("e.jsonl", b'{"half":', True),
        ("e.csv", b"", False),
        ("e.csv", b"ts,label\n", False),
        ("e.csv", b"ts,label\n", True),
        ("e.csv", b"ts,label\n1,", True),
    ):
        path = tmp_path / name
        path.write_bytes(beginning)
        opened = source(path, follow=follow)
        assert (opened.partitions(), opened.ends()) == ([], {})
        listener = From(0)
        opened.assign(listener)
        assert list(drained(opened)) == [] and listener.assigned == []


@pytest.mark.parametrize(
    ("name", "growth"),
    [
        ("e.jsonl", [b'{"a"', b":1", b"}\n", b"2\n3\n"]),
        ("e.csv", [b"a", b"\n", b"1", b"\n", b"2\n"]),
    ],
)
def test_a_followed_file_is_assigned_with_its_first_record_and_stays_the_same_log(
    tmp_path: Path, name: str, growth: list[bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    opened, listener = source(path, follow=True), From(0)
    opened.assign(listener)
    arrivals = []
    for shard in growth:
        with path.open("ab") as file:
            file.write(shard)
        arrivals += values(drained(opened))
        arrivals += [str(partition) for partition in listener.assigned]
        if listener.assigned:
            assert source(path, follow=True).partitions() == listener.assigned
            assert source(path).partitions() == listener.assigned
    whole = path.read_bytes().splitlines()[1 if name == "e.csv" else 0 :]
    assert [value for value in arrivals if isinstance(value, bytes)] == whole
    assert arrivals.index(f"{name}/0") == 1


def test_a_finished_file_may_end_within_its_first_line_however_long(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    for line, follow in ((b'{"a":1}', False), (b"x" * 9000, True)):
        path.write_bytes(line)
        if not follow:
            assert values(read(path)) == [line]
        before = source(path, follow=follow).partitions()
        path.write_bytes(line + b"\n2\n")
        assert source(path).partitions() == before != []


def test_closing_wakes_and_repeats(lines: Path) -> None:
    opened = source(lines)
    opened.assign(From(10))
    opened.close()
    opened.close()
    opened.acknowledge({opened.partitions()[0]: 10})

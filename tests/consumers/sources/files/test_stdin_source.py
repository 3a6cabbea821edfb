import os
from collections.abc import Iterator
from contextlib import suppress

import pytest
from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources.files import StdinSource

from tests.consumers.file_sources import From


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe; a test may close the writing one."""
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        with suppress(OSError):
            os.close(end)


def opened(descriptor: int, format: str = "jsonl") -> StdinSource:
    source = StdinSource(SourceConfig("stdin", format), descriptor=descriptor)  # type: ignore[arg-type]
    source.assign(From(0))
    return source


def test_lines_come_as_they_arrive_and_the_end_is_known_when_it_is_there(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    source = opened(reading)
    assert source.poll(0) == []
    os.write(writing, b"a\nb\nc")
    (first,) = source.poll(0)
    assert (first.values, first.start, first.end) == ([b"a", b"b"], 0, 2)
    assert source.ends() == {}
    os.close(writing)
    (last,) = source.poll(0)
    assert (last.values, last.start, last.end) == ([b"c"], 2, 3)
    assert source.poll(0) == [] and source.ends() == {source.partition: 3}


def test_standard_input_cannot_be_read_again(pipe: tuple[int, int]) -> None:
    source = StdinSource(SourceConfig("stdin", "jsonl"), descriptor=pipe[0])
    assert not source.replayable
    with pytest.raises(SourceError, match="cannot be resumed"):
        source.assign(From(5))


def test_a_csv_stream_begins_with_its_header(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    source = opened(reading, "csv")
    os.write(writing, b"ts,label\n1,2\n")
    (chunk,) = source.poll(0)
    assert (chunk.fields, chunk.values, chunk.start) == (("ts", "label"), [b"1,2"], 0)


def test_an_empty_input_ends_at_once_and_a_closed_source_reads_no_more(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    source, empty = opened(reading), opened(reading)
    os.write(writing, b"a\n")
    source.close()
    source.close()
    assert source.poll(0) == []
    os.read(reading, 9)
    os.close(writing)
    assert empty.poll(0) == [] and empty.ends() == {empty.partition: 0}

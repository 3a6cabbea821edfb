import csv
import hashlib
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.sources.files.text_file import Overlong, Record, TextRecords

LIMIT = 20


def records(data: bytes, format: str = "jsonl", cuts: list[int] | None = None) -> list[Record]:
    """The records of some bytes that come in blocks, cut at these places."""
    reader, lines, start = TextRecords(format, LIMIT, "a.csv"), list[Record](), 0
    for cut in [*sorted(cuts or []), len(data)]:
        lines += reader.feed(data[start:cut])
        start = max(start, cut)
    lines += reader.finish()
    for line in lines if reader.longest is not None else ():
        assert len(line.beginning if isinstance(line, Overlong) else line) <= reader.longest
    return lines


def test_a_line_is_a_record() -> None:
    for data, lines in (
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\n\na\n", [b"", b"", b"a"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"x" * LIMIT + b"\r\n", [b"x" * LIMIT]),
    ):
        assert records(data) == lines


def test_a_line_over_the_limit_is_measured_hashed_and_cut() -> None:
    for size, end in product((21, 5000, 100_000), (b"\n", b"\r\n", b"")):
        line = bytes(i % 251 for i in range(size)).replace(b"\n", b"x").replace(b"\r", b"y")
        for cuts in ([], [7, 4100, 4101, size]):
            first, cut, last = records(b"a\n" + line + end + b"\nb"[len(end) > 0 :], cuts=cuts)
            assert (first, last) == (b"a", b"b")
            assert isinstance(cut, Overlong) and cut.beginning == line[:4096]
            assert (cut.cut.size, cut.cut.sha256) == (size, hashlib.sha256(line).hexdigest())


def test_a_quoted_value_may_hold_line_ends() -> None:
    assert records(b'a,b\n1,"x\ny"\n2,z\n', "csv") == [b'1,"x\ny"', b"2,z"]


def test_a_mark_before_the_header_is_no_part_of_its_first_name() -> None:
    data = b'"a,b",c\n"x\ny",2\n'
    for mark in (b"", b"\xef\xbb\xbf"):
        assert records(mark + data, "csv") == [b'"x\ny",2']


def test_a_row_of_several_lines_may_have_a_cell_as_large_as_the_limit_of_an_event() -> None:
    csv.field_size_limit(131_072)  # the default, whatever has been read before
    reader = TextRecords("csv", 262_144, "a.csv")
    row = b'"%s\ny",2' % (b"x" * 200_000)
    assert reader.feed(b"a,b\n" + row + b"\n") == [row]


def test_a_broken_quote_costs_its_own_row_alone() -> None:
    assert records(b'a,b\n1,"x\n2,y\n3,z\n', "csv") == [b'1,"x', b"2,y", b"3,z"]
    assert records(b'a,b\n1,"x\n2,y\n3,"z"\n4,"u\n', "csv") == [
        b'1,"x', b"2,y", b'3,"z"', b'4,"u',
    ]  # fmt: skip


def test_a_row_that_does_not_close_within_the_limit_was_none() -> None:
    data = b'a,b\n1,"x\n' + b"2,y\n" * 9 + b'3,z"\n'
    assert records(data, "csv") == [b'1,"x', *[b"2,y"] * 9, b'3,z"']


BYTES = st.lists(
    st.sampled_from([b"a", b"b,", b'"', b"\n", b"\r", b"x" * 25, b'""', b"\r\n"]), max_size=30
).map(b"".join)


@given(BYTES, st.sampled_from(["jsonl", "csv"]), st.lists(st.integers(0, 120), max_size=4))
def test_where_blocks_are_cut_does_not_matter(data: bytes, format: str, cuts: list[int]) -> None:
    data = b"a,b\n" + data  # in CSV a header
    assert records(data, format, cuts) == records(data, format)


@given(BYTES)
def test_lines_are_those_that_split_gives(data: bytes) -> None:
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if data.endswith(b"\n") or not data:
        lines.pop()
    beginnings = [r.beginning if isinstance(r, Overlong) else r for r in records(data)]
    assert beginnings == lines

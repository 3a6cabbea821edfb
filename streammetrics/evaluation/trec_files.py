"""Judgments and runs in the files of TREC, line by line, with bounds on whatever they may hold.

A file is input from strangers: lines and files have a greatest length, numbers have one spelling,
and an error names the file and the line.
"""

from __future__ import annotations

import errno
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from os import PathLike, fsdecode
from typing import BinaryIO, Final, NoReturn, TypeAlias, TypeVar, cast

from streammetrics.core.errors import InputError, shown

MAX_LINE: Final = 4096  # bytes
MAX_FEATURES: Final = 1 << 20  # bytes of a line of features, after its label and its query
MAX_BYTES: Final = 4 << 30  # of a file: 80 million lines of a run

_QRELS: Final = "4 columns: query, iteration, document, grade"
_RUN: Final = "6 columns: query, Q0, document, rank, score, tag"
_FEATURES: Final = re.compile(rb"\s*[^\s#]{1,400}\s+qid:")
_GRADE: Final = re.compile(rb"[+-]?[0-9]{1,9}")
_SCORE: Final = re.compile(
    rb"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?"
    rb"|[+-]?inf(?:inity)?",
    re.IGNORECASE,
)
_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_TABLE: Final = "read such a table with polars or pandas, and pass the frame"
_SPLIT: Final = "evaluate the queries in several files, or pass columns"

V = TypeVar("V", int, float)
NumberedLine: TypeAlias = tuple[int, bytes]  # the number of a line, from 1, and its bytes


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """The judgments of a file: grade by document, by query.

    A line has a query, an ignored word, a document and a grade. Empty lines and those that begin
    with # are ignored. InputError for other lines, and for a document that is judged twice.
    """
    name = text_name(path)
    return qrels_of(text_lines(path, name, "qrels"), name)


def qrels_of(lines: Iterable[NumberedLine], name: str) -> dict[str, dict[str, int]]:
    """The judgments of the lines of a file with this name, as `read_qrels` reads them."""
    return _read(lines, name, "qrels", _grade)


def read_subtopic_qrels(path: str | PathLike[str]) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments of a file of a diversity task: grade by subtopic, by document, by query.

    A line has a query, a subtopic, a document and a grade, as the TREC tool ndeval reads it. Empty
    lines and those that begin with # are ignored. InputError for other lines, and for a document
    that is judged twice for one subtopic.
    """
    name = text_name(path)
    lines = text_lines(path, name, "qrels")
    by_pair = _read(lines, name, "qrels", _subtopic_grade, "subtopic and document")
    by_query: dict[str, dict[str, dict[str, int]]] = {}
    for query, grades in by_pair.items():
        of_query = by_query.setdefault(query, {})
        for pair, grade in grades.items():
            subtopic, _, document = pair.partition(" ")
            of_query.setdefault(document, {})[subtopic] = grade
    return by_query


def read_run(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """The run of a file: score by document, by query; the column of ranks is ignored, as by
    trec_eval.

    A line has a query, Q0, a document, a rank, a score and a tag; text after the tag is ignored.
    Empty lines and those that begin with # are ignored. InputError for other lines, and for a
    document twice in one query.
    """
    name = text_name(path)
    return run_of_lines(text_lines(path, name, "run"), name)


def run_of_lines(lines: Iterable[NumberedLine], name: str) -> dict[str, dict[str, float]]:
    """The run of the lines of a file with this name, as `read_run` reads them."""
    return _read(lines, name, "run", _score)


def text_name(path: str | PathLike[str]) -> str:
    """The path as messages show it."""
    return shown(fsdecode(path), limit=200)[1:-1]


def _read(
    lines: Iterable[NumberedLine],
    name: str,
    kind: str,
    row_of: Callable[[list[bytes], str], tuple[bytes, bytes, V]],
    judged: str = "document",
) -> dict[str, dict[str, V]]:
    by_query: dict[str, dict[str, V]] = {}
    last_query, of_query = b"", dict[str, V]()
    for number, line in lines:
        fields = line.split()
        if not fields or line.startswith(b"#"):
            continue
        where = f"{name}, line {number}"
        query, document, value = row_of(fields, where)
        try:
            if query != last_query:
                of_query, last_query = by_query.setdefault(query.decode(), {}), query
            key = document.decode()
        except UnicodeDecodeError as error:
            got = f"the byte {error.object[error.start]:#04x}"
            refuse("text in UTF-8", got, where, "convert the file to UTF-8")
        if key in of_query:
            got = f"{shown(key)} twice for query {shown(query.decode())}"
            hint = "drop the later line"
            if row_of is _grade:
                hint += "; judgments by subtopic are read for measures such as AlphaNDCG@10"
            refuse(f"each {judged} once for a query", got, where, hint)
        of_query[key] = value
    if not by_query:
        refuse(f"a {kind} file with at least one line", "none", name, "check the path")
    return by_query


def text_lines(
    path: str | PathLike[str], name: str, kind: str, most: int = MAX_LINE
) -> Iterator[NumberedLine]:
    """The lines of a file with their numbers from 1, each of at most `most` bytes, or of
    MAX_FEATURES if it has a label and a query before its features."""
    try:
        with opened(path) as plain, decompressed(plain) as file:
            total = number = 0
            while line := file.readline(most + 1):
                limit = most
                if len(line) > most and is_line_of_features(line):
                    limit = MAX_FEATURES
                    line += file.readline(limit + 1 - len(line))
                number, total = number + 1, total + len(line)
                if number == 1:
                    line = line.removeprefix(_BOM)
                    _refuse_other_formats(line, name)
                if len(line) > limit:
                    hint = f"pass a {kind} file as trec_eval reads it"
                    refuse(f"at most {limit} bytes", "more", f"{name}, line {number}", hint)
                if total > MAX_BYTES:
                    refuse(f"a file of at most {MAX_BYTES} bytes", "more", name, _SPLIT)
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        refuse("a whole file of gzip", str(error), name, "compress or download it again")
    except OSError as error:
        hint = "check the path; judgments and runs may also be dicts, data frames or columns"
        raise InputError(
            expected=f"a {kind} file", got=error.strerror or str(error), where=name, hint=hint
        ) from None


def opened(path: str | PathLike[str]) -> BufferedReader:
    """The file; OSError if there is none, also where no file can have such a path."""
    try:
        return open(path, "rb")
    except ValueError as error:  # a null character, or half a surrogate pair
        raise OSError(errno.EINVAL, str(error)) from None


def decompressed(file: BufferedReader) -> BinaryIO:
    """The file itself, which may be a pipe, or what gzip compressed in it; read line by line."""
    compressed = file.peek(2)[:2] == _GZIP
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if compressed else file


def _refuse_other_formats(first: bytes, name: str) -> None:
    if first.startswith((b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh")):
        refuse("a text file, or one of gzip", "a compressed one", name, "decompress it first")
    if first.startswith(b"PAR1"):
        refuse("a text file", "parquet", name, "read it with polars or pandas, and pass the frame")
    if first.lstrip()[:1] in (b"{", b"["):
        refuse("a file of TREC", "JSON", name, "pass json.load(file) if it is a dict of dicts")


def _grade(fields: list[bytes], where: str) -> tuple[bytes, bytes, int]:
    if len(fields) != 4:
        hint = "correct the line"
        if len(fields) == 6:
            hint = "this looks like a run; the order is evaluate(qrels, run, measures)"
        elif _is_table(fields):
            hint = _TABLE
        refuse(_QRELS, f"{len(fields)} column(s): {cut_text(b' '.join(fields))}", where, hint)
    query, _, document, grade = fields
    return query, document, grade_of(grade, where)


def grade_of(text: bytes, where: str) -> int:
    """A grade; InputError for all but a whole number."""
    if _GRADE.fullmatch(text) is None:
        hint = "correct the grade; below 0 the document is not judged"
        refuse("a whole number as the grade", cut_text(text), where, hint)
    return int(text)


def _subtopic_grade(fields: list[bytes], where: str) -> tuple[bytes, bytes, int]:
    query, document, grade = _grade(fields, where)
    return query, fields[1] + b" " + document, grade


def _score(fields: list[bytes], where: str) -> tuple[bytes, bytes, float]:
    if len(fields) < 6:
        hint = "correct the line"
        if len(fields) in (1, 3) and _SCORE.fullmatch(fields[-1]):
            hint = "scores without documents need judgments by row: a file of LETOR or LightGBM"
        if len(fields) == 4:
            hint = "this looks like qrels; the order is evaluate(qrels, run, measures)"
        elif hint == "correct the line" and _is_table(fields):
            hint = _TABLE
        refuse(_RUN, f"{len(fields)} column(s): {cut_text(b' '.join(fields))}", where, hint)
    return fields[0], fields[2], score_of(fields[4], where)


def score_of(text: bytes, where: str) -> float:
    """A score; InputError for all but a number."""
    if _SCORE.fullmatch(text) is None:
        refuse("a number as the score, not nan", cut_text(text), where, "correct the score")
    return float(text)


def _is_table(fields: list[bytes]) -> bool:
    """Whether a line is of a table of three columns, or of a file of CSV."""
    return len(fields) == 3 or b" ".join(fields).count(b",") > 1


def cut_text(data: bytes) -> str:
    """The beginning of bytes from a file, as messages show it."""
    return shown(data[:100].decode(errors="backslashreplace"))


def is_line_of_features(line: bytes) -> bool:
    """Whether a line begins as those of LETOR and SVMlight do: a label, then `qid:` and a query."""
    return _FEATURES.match(line) is not None


def refuse(expected: str, got: str, where: str, hint: str) -> NoReturn:
    """Raise an InputError of these four parts."""
    raise InputError(expected=expected, got=got, where=where, hint=hint)

"""Judgments and runs in the files of TREC, line by line, with bounds on whatever they may hold.

A file is input from strangers: lines and files have a greatest length, numbers have one spelling,
and an error names the file and the line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from os import PathLike, fsdecode
from typing import BinaryIO, Final, NoReturn, TypeVar, cast

from streammetrics.core.errors import InputError, shown

MAX_LINE: Final = 4096  # bytes
MAX_BYTES: Final = 4 << 30  # of a file: 80 million lines of a run

_QRELS: Final = "4 columns: query, iteration, document, grade"
_RUN: Final = "6 columns: query, Q0, document, rank, score, tag"
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


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """The judgments of a file: grade by document, by query.

    A line has a query, an ignored word, a document and a grade. Empty lines and those that begin
    with # are ignored. InputError for other lines, and for a document that is judged twice.
    """
    return _read(path, "qrels", _grade)


def read_subtopic_qrels(path: str | PathLike[str]) -> dict[str, dict[str, dict[str, int]]]:
    """The judgments of a file of a diversity task: grade by subtopic, by document, by query.

    A line has a query, a subtopic, a document and a grade, as the TREC tool ndeval reads it. Empty
    lines and those that begin with # are ignored. InputError for other lines, and for a document
    that is judged twice for one subtopic.
    """
    by_pair = _read(path, "qrels", _subtopic_grade, "subtopic and document")
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

    A line has a query, Q0, a document, a rank, a score and a tag. Empty lines and those that begin
    with # are ignored. InputError for other lines, and for a document twice in one query.
    """
    return _read(path, "run", _score)


def _read(
    path: str | PathLike[str],
    kind: str,
    row_of: Callable[[list[bytes], str], tuple[bytes, bytes, V]],
    judged: str = "document",
) -> dict[str, dict[str, V]]:
    by_query: dict[str, dict[str, V]] = {}
    name = shown(fsdecode(path), limit=200)[1:-1]
    last_query, of_query = b"", dict[str, V]()
    for number, line in _lines(path, name, kind):
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
            _refuse("text in UTF-8", got, where, "convert the file to UTF-8")
        if key in of_query:
            got = f"{shown(key)} twice for query {shown(query.decode())}"
            hint = "drop the later line"
            if row_of is _grade:
                hint += "; judgments by subtopic are read for measures such as AlphaNDCG@10"
            _refuse(f"each {judged} once for a query", got, where, hint)
        of_query[key] = value
    if not by_query:
        _refuse(f"a {kind} file with at least one line", "none", name, "check the path")
    return by_query


def _lines(path: str | PathLike[str], name: str, kind: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, each of bounded length."""
    try:
        with open(path, "rb") as plain, _decompressed(plain) as file:
            total = number = 0
            while line := file.readline(MAX_LINE + 1):
                number, total = number + 1, total + len(line)
                if number == 1:
                    line = line.removeprefix(_BOM)
                    _refuse_other_formats(line, name)
                if len(line) > MAX_LINE:
                    hint = f"pass a {kind} file as trec_eval reads it"
                    _refuse(f"at most {MAX_LINE} bytes", "more", f"{name}, line {number}", hint)
                if total > MAX_BYTES:
                    _refuse(f"a file of at most {MAX_BYTES} bytes", "more", name, _SPLIT)
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        _refuse("a whole file of gzip", str(error), name, "compress or download it again")
    except OSError as error:
        hint = "check the path; judgments and runs may also be dicts, data frames or columns"
        raise InputError(
            expected=f"a {kind} file", got=error.strerror or str(error), where=name, hint=hint
        ) from None


def _decompressed(file: BufferedReader) -> BinaryIO:
    """The file itself, which may be a pipe, or what gzip compressed in it; read line by line."""
    compressed = file.peek(2)[:2] == _GZIP
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if compressed else file


def _refuse_other_formats(first: bytes, name: str) -> None:
    if first.startswith((b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh")):
        _refuse("a text file, or one of gzip", "a compressed one", name, "decompress it first")
    if first.startswith(b"PAR1"):
        _refuse("a text file", "parquet", name, "read it with polars or pandas, and pass the frame")
    if first.lstrip()[:1] in (b"{", b"["):
        _refuse("a file of TREC", "JSON", name, "pass json.load(file) if it is a dict of dicts")


def _grade(fields: list[bytes], where: str) -> tuple[bytes, bytes, int]:
    if len(fields) != 4:
        hint = "correct the line"
        if len(fields) == 6:
            hint = "this looks like a run; the order is evaluate(qrels, run, measures)"
        elif _is_table(fields):
            hint = _TABLE
        _refuse(_QRELS, f"{len(fields)} column(s): {_cut(b' '.join(fields))}", where, hint)
    query, _, document, grade = fields
    if _GRADE.fullmatch(grade) is None:
        hint = "correct the grade; below 0 the document is not judged"
        _refuse("a whole number as the grade", _cut(grade), where, hint)
    return query, document, int(grade)


def _subtopic_grade(fields: list[bytes], where: str) -> tuple[bytes, bytes, int]:
    query, document, grade = _grade(fields, where)
    return query, fields[1] + b" " + document, grade


def _score(fields: list[bytes], where: str) -> tuple[bytes, bytes, float]:
    if len(fields) != 6:
        hint = "correct the line; a tag has no spaces"
        if len(fields) == 4:
            hint = "this looks like qrels; the order is evaluate(qrels, run, measures)"
        elif _is_table(fields):
            hint = _TABLE
        _refuse(_RUN, f"{len(fields)} column(s): {_cut(b' '.join(fields))}", where, hint)
    score = fields[4]
    if _SCORE.fullmatch(score) is None:
        _refuse("a number as the score, not nan", _cut(score), where, "correct the score")
    return fields[0], fields[2], float(score)


def _is_table(fields: list[bytes]) -> bool:
    """Whether a line is of a table of three columns, or of a file of CSV."""
    return len(fields) == 3 or b" ".join(fields).count(b",") > 1


def _cut(data: bytes) -> str:
    return shown(data[:100].decode(errors="backslashreplace"))


def _refuse(expected: str, got: str, where: str, hint: str) -> NoReturn:
    raise InputError(expected=expected, got=got, where=where, hint=hint)

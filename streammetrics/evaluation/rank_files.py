"""Judgments by row in the files of learning to rank, and the scores that a model gave the rows.

LETOR, SVMlight, RankLib and XGBoost: `label qid:QUERY 1:0.5 2:0.1 # comment` a line. LightGBM: rows
that begin with a label, and beside the file one with the numbers of rows of each query,
`test.txt.query`; XGBoost calls such a file `test.txt.group`. The documents have no ids, so a row is
named by its number from 0. Scores are in a file of their own, in the order of the rows: one a line,
as LightGBM, XGBoost and `numpy.savetxt` write them, or `query index score`, as RankLib does with
`-rank` and `-score`. As in `trec_files`, an error names the file and the line, and every length has
a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from os import PathLike, fsdecode
from os.path import isfile
from typing import Final

from streammetrics.core.errors import shown
from streammetrics.evaluation.trec_files import (
    MAX_FEATURES,
    MAX_LINE,
    NumberedLine,
    cut_text,
    grade_of,
    is_line_of_features,
    qrels_of,
    refuse,
    run_of_lines,
    score_of,
    text_lines,
    text_name,
)

_BESIDE: Final = (".query", ".group")  # what LightGBM and XGBoost call the file of group sizes
_SIZE: Final = re.compile(rb"[0-9]{1,9}")
_WORDS: Final = re.compile(rb"[\s,]+")
_ORDER: Final = "write the score of each row of the judgments, in their order"


class RowJudgments(dict[str, dict[int, int]]):
    """Grade by row, by query, of a file whose documents are rows; `queries` is that of each row."""

    def __init__(self, rows: Iterable[tuple[str, int]]) -> None:
        super().__init__()
        self.queries: list[str] = []
        for row, (query, grade) in enumerate(rows):
            self.setdefault(query, {})[row] = grade
            self.queries.append(query)

    def scored(self, scores: Sequence[float], where: str) -> dict[str, dict[int, float]]:
        """The run of these scores, one a row; InputError for another number of them."""
        n = len(self.queries)
        if len(scores) != n:
            got = "more" if len(scores) > n else f"{len(scores):,}"
            refuse(f"{n:,} scores, one a row", got, where, _ORDER)
        run: dict[str, dict[int, float]] = {query: {} for query in self}
        for row, (query, score) in enumerate(zip(self.queries, scores, strict=True)):
            run[query][row] = score
        return run


def read_judgments(path: str | PathLike[str]) -> RowJudgments | dict[str, dict[str, int]]:
    """The judgments of a file of TREC, or those of rows with features.

    A file of rows has a query in each, or the sizes of queries in a file beside it. InputError for
    lines that are neither.
    """
    name = text_name(path)
    sizes = _sizes_beside(path)
    lines = text_lines(path, name, "qrels", MAX_FEATURES if sizes else MAX_LINE)
    first, lines = _first_line(lines)
    if sizes:
        sizes_path, numbers = sizes
        grades = [*_grades_of_rows(lines, name)]
        if len(grades) != sum(numbers):
            refuse(
                f"{sum(numbers):,} rows, the sum of {sizes_path}",
                f"{len(grades):,}",
                name,
                "write both files again from the same rows",
            )
        queries = (str(i) for i, size in enumerate(numbers, 1) for _ in range(size))
        return RowJudgments(zip(queries, grades, strict=True))
    if is_line_of_features(first):
        return RowJudgments(_rows_of_queries(lines, name))
    return qrels_of(lines, name)


def read_run_of(
    path: str | PathLike[str], judgments: object
) -> dict[str, dict[str, float]] | dict[str, dict[int, float]]:
    """The run of a file for these judgments: of rows, the score of each; else one of TREC."""
    name = text_name(path)
    lines = text_lines(path, name, "run")
    if not isinstance(judgments, RowJudgments):
        return run_of_lines(lines, name)
    scores = islice(_scores(lines, name, judgments.queries), len(judgments.queries) + 1)
    return judgments.scored([*scores], name)


def _first_line(lines: Iterator[NumberedLine]) -> tuple[bytes, Iterator[NumberedLine]]:
    """The first line with content, empty without one, and all lines."""
    passed = []
    for number, line in lines:
        passed.append((number, line))
        if line.strip() and not line.startswith(b"#"):
            return line, chain(passed, lines)
    return b"", iter(passed)


def _contents(lines: Iterable[NumberedLine], name: str) -> Iterator[tuple[str, list[bytes]]]:
    """The place of each line with content, and its words up to a comment."""
    for number, line in lines:
        words = [word for word in _WORDS.split(line.partition(b"#")[0]) if word]
        if words:
            yield f"{name}, line {number}", words


def _sizes_beside(path: str | PathLike[str]) -> tuple[str, list[int]] | None:
    """The name of the file of group sizes beside this one, and the sizes; None without one."""
    for suffix in _BESIDE:
        sizes_path = fsdecode(path) + suffix
        if isfile(sizes_path):  # False also where a path is too long or has a null character
            name, sizes = text_name(sizes_path), []
            for where, words in _contents(text_lines(sizes_path, name, "sizes"), name):
                if len(words) != 1 or _SIZE.fullmatch(words[0]) is None:
                    hint = "write the number of rows of one query a line"
                    refuse("one whole number", cut_text(b" ".join(words)), where, hint)
                sizes.append(int(words[0]))
            return name, sizes
    return None


def _grades_of_rows(lines: Iterable[NumberedLine], name: str) -> Iterator[int]:
    """The first number of each row; a first line that begins with a word is a header."""
    for i, (where, words) in enumerate(_contents(lines, name)):
        if i or not words[0][:1].isalpha():
            yield grade_of(_whole(words[0]), where)


def _rows_of_queries(lines: Iterable[NumberedLine], name: str) -> Iterator[tuple[str, int]]:
    for where, (label, *words) in _contents(lines, name):
        query = words[0].removeprefix(b"qid:") if words else b""
        if not query or query == words[0]:
            refuse("a label, then qid:QUERY", cut_text(b" ".join([label, *words])), where,
                   "write the query of each row")  # fmt: skip
        yield query.decode(errors="backslashreplace"), grade_of(_whole(label), where)


def _whole(label: bytes) -> bytes:
    """The label without decimals that are 0: `2.0` is `2`."""
    whole, _, decimals = label.partition(b".")
    return label if decimals.strip(b"0") else whole


def _scores(lines: Iterable[NumberedLine], name: str, queries: Sequence[str]) -> Iterator[float]:
    """The score of each line; a line of three words names the query and the place in it."""
    place = 0
    for row, (where, words) in enumerate(_contents(lines, name)):
        if len(words) == 3:
            query = words[0].decode(errors="backslashreplace")
            place = place + 1 if row and queries[row - 1 : row] == [query] else 0
            if queries[row : row + 1] != [query] or words[1] != str(place).encode():
                expected_place = (
                    f"query {shown(queries[row])}, row {place}" if row < len(queries) else "none"
                )
                refuse(expected_place, cut_text(b" ".join(words)), where, _ORDER)
        elif len(words) != 1:
            refuse("one score, or query, index and score", f"{len(words)} words", where, _ORDER)
        yield score_of(words[-1], where)

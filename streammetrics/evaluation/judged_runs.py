"""Judgments and runs in the forms that people have: dicts, data frames, files, columns and rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import checks
from streammetrics.core.conversion import vector, whole
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.rows import Key
from streammetrics.core.slips import ids_instead
from streammetrics.evaluation.rank_files import RowJudgments, read_judgments, read_run_of
from streammetrics.evaluation.trec_files import read_subtopic_qrels

Ids: TypeAlias = Iterable[Hashable]
Judgments: TypeAlias = dict[Hashable, Ids]  # by query: document -> grade, or relevant documents
Run: TypeAlias = dict[Hashable, Ids]  # by query: document -> score, or documents in ranked order

# Columns by the names that they have in ir_measures, ranx, PyTerrier, BEIR, MS MARCO and
# recommender libraries, the first one that a table has; capitals, `_` and `-` do not matter.
_QUERIES: Final = ("query_id", "qid", "query", "topic_id", "topic", "groups", "user_id", "user")
_DOCUMENTS: Final = (
    *("doc_id", "docno", "document_id", "document", "corpus_id", "passage_id", "pid", "item_id"),
    *("item", "items", "doc"),
)
_GRADES: Final = ("relevance", "rel", "label", "labels", "grade", "gain", "rating", "score")
_SUBTOPICS: Final = ("subtopic_id", "subtopic", "intent", "iteration", "iter", "aspect")
_SCORES: Final = ("score", "scores", "sim", "prediction")
_MOST_GRADE: Final = 1 << 31


class Kind(NamedTuple):
    """What is read. name: the argument, for messages. values: the names of the column of values.
    graded: whether the values are grades; subtopics: whether they are by subtopic."""

    name: str
    values: tuple[str, ...]
    graded: bool
    subtopics: bool = False

    @property
    def value(self) -> str:
        """What a value is called in messages."""
        return "grade" if self.graded else "score"


def judgments_of(source: object, name: str = "qrels", *, subtopics: bool = False) -> Judgments:
    """Judgments by query from any form; InputError for everything else.

    A grade below 0 means that the document is not judged, as in trec_eval. subtopics: judgments are
    by subtopic, so that a document has a grade for each of its subtopics.
    """
    judgments: Judgments
    if isinstance(source, (str, PathLike)):
        read = read_subtopic_qrels if subtopics else read_judgments
        judgments = cast("Judgments", read(source))
    else:
        judgments = _query_rows(source, Kind(name, _GRADES, True, subtopics))
    if subtopics:
        return {query: _judged_subtopics(truth) for query, truth in judgments.items()}
    for query, truth in judgments.items():
        if isinstance(truth, Mapping) and not all(map(_is_plain_grade, truth.values())):
            grades = {document: _grade(grade) for document, grade in truth.items()}
            judged = {d: grade for d, grade in grades.items() if not _is_below_0(grade)}
            judgments[query] = _Pooled(judged, grades.keys() - judged.keys())
    return judgments


class _Pooled(dict[Hashable, object]):
    """The grades of judged documents; `pooled`: those of the pool that are not judged."""

    def __init__(self, judged: Mapping[Hashable, object], pooled: Collection[Hashable]) -> None:
        super().__init__(judged)
        self.pooled = pooled


def pooled_documents(truth: Ids) -> Collection[Hashable]:
    """The documents with a grade below 0: they were in the pool, and are not judged."""
    return truth.pooled if isinstance(truth, _Pooled) else ()


def _judged_subtopics(truth: Ids) -> Ids:
    """The same documents with whole grades by subtopic, without those that are not judged."""
    if not isinstance(truth, Mapping):
        return truth
    judged: dict[Hashable, object] = {}
    for document, entry in truth.items():
        value = _grade(entry)
        if isinstance(entry, Mapping):
            grades = {subtopic: _grade(grade) for subtopic, grade in entry.items()}
            value = {subtopic: g for subtopic, g in grades.items() if not _is_below_0(g)}
            if grades and not value:
                continue
        if not _is_below_0(value):
            judged[document] = value
    return judged


def run_of(source: object, name: str = "run", judgments: object = None) -> Run:
    """A run by query from any form; InputError for everything else.

    judgments: if these are of rows, a run is the score of each row.
    """
    if isinstance(source, (str, PathLike)):
        return cast("Run", read_run_of(source, judgments))
    if isinstance(judgments, RowJudgments) and isinstance(source, (list, np.ndarray)):
        scores = checks.scores(vector(source, name), name).tolist()
        return cast("Run", judgments.scored(scores, name))
    return _query_rows(source, Kind(name, _SCORES, False))


def _is_plain_grade(grade: object) -> bool:
    return type(grade) is int and grade >= 0


def _grade(grade: object) -> object:
    """A whole number of any type as an integer; other values unchanged, to be refused later."""
    if isinstance(grade, (float, np.floating)) and float(grade).is_integer():
        return int(grade)
    return grade


def _is_below_0(grade: object) -> bool:
    number = whole(grade)
    return number is not None and number < 0


def collected(source: object) -> object:
    """The same judgments or run; a LazyFrame of polars as its frame."""
    collect = getattr(source, "collect", None)
    is_lazy = callable(collect) and hasattr(source, "collect_schema")
    return collect() if is_lazy and callable(collect) else source


def _query_rows(source: object, kind: Kind) -> dict[Hashable, Ids]:
    """By query a mapping from documents to values, or documents alone."""
    source = collected(source)
    names = column_names(source)
    if names is not None:
        return _grouped(_columns(source, names, kind), kind)
    nested = mapping_of(source)
    if nested is not None:
        return _nested(nested, kind)
    several = 4 if kind.subtopics else 3
    is_columns = isinstance(source, (tuple, list)) and len(source) == several
    if is_columns and not isinstance(source[0], tuple):  # type: ignore[index]
        return _grouped(tuple(source), kind)  # type: ignore[arg-type]
    if isinstance(source, Iterable) and not isinstance(source, (bytes, np.ndarray)):
        return _grouped(_row_columns(source, kind), kind)
    raise _other_form(source, kind)


def mapping_of(value: object) -> Mapping[Hashable, object] | None:
    """A mapping, or what becomes one: Qrels and Run of ranx, users as a Series; else None."""
    if isinstance(value, Mapping):
        return value
    to_dict = getattr(value, "to_dict", None)
    mapping = to_dict() if callable(to_dict) else None
    return mapping if isinstance(mapping, Mapping) else None


def _other_form(source: object, kind: Kind) -> InputError:
    dicts = f"a dict of dicts {{query: {{document: {kind.value}}}}}"
    return InputError(
        expected=f"{dicts}, a data frame, the path of a TREC file, or (queries, documents, "
        f"{kind.value}s)",
        got=shown(source),
        where=kind.name,
        hint="pass one of these",
    )


# Dicts of dicts.


def _nested(nested: Mapping[Hashable, object], kind: Kind) -> dict[Hashable, Ids]:
    by_query: dict[Hashable, Ids] = {}
    for query, documents in nested.items():
        plain_query = _id(query, kind.name, "query")
        if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
            dicts = isinstance(documents, (int, float))
            raise InputError(
                expected=f"a dict {{document: {kind.value}}} for each query",
                got=shown(documents),
                where=_cell_text(kind.name, query),
                hint="for a single query, pass {query: {...}}" if dicts else "pass one",
            )
        is_read_once = isinstance(documents, Iterator)
        by_query[plain_query] = list(documents) if is_read_once else documents
    if not by_query:
        raise _none(kind)
    return by_query


def _id(value: object, where: str, role: str) -> Hashable:
    """An id of a query as a plain string or integer."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, (str, int)):
        raise InputError(
            expected=f"strings or integers as the id of a {role}",
            got=shown(value),
            where=where,
            hint=ids_instead(plain) or "convert the ids, for example with str(id)",
        )
    return plain


def _none(kind: Kind) -> InputError:
    hint = f"pass at least one query with its documents and {kind.value}s"
    return InputError(expected="at least one query", got="none", where=kind.name, hint=hint)


def _cell_text(name: str, *keys: object) -> str:
    return name + "".join(f"[{shown(key)}]" for key in keys)


# Columns: of data frames, of dicts of arrays, or three arrays.


def column_names(table: object) -> list[str] | None:
    """The names of the columns of a table, or None if it is no table."""
    if isinstance(table, Mapping):
        names = [name for name in islice(table, 64) if isinstance(name, str)]
        bare = {*map(_bare, names)}
        has_rows = bool(bare & _ROW_NAMES[0]) and bool(bare & _ROW_NAMES[1])
        no_columns = (Mapping, str, set, frozenset)
        if any(isinstance(table[name], no_columns) for name in names):
            return None
        return names if has_rows or len(bare & _MEANT) >= 3 else None
    for attribute in ("column_names", "columns"):
        columns = getattr(table, attribute, None)
        if isinstance(columns, Iterable) and hasattr(table, "__getitem__"):
            names = list(columns)
            if all(isinstance(name, str) for name in names):
                return names
    return None


def lacks_grades(source: object) -> bool:
    """Whether judgments are a table without a column of grades, so that each has grade 1."""
    names = column_names(source)
    return names is not None and not {*map(_bare, names)} & {*map(_bare, _GRADES)}


def slices_of_rows(source: object, names: Sequence[str], where: str) -> dict[Hashable, Key]:
    """By query what these columns of a table have, a tuple of several; InputError unless it is the
    same in all rows of a query."""
    table_names = column_names(source) or []
    query_name = _column(table_names, "query", _QUERIES, where)
    queries = _ids(source[query_name], f"{where} queries").tolist()  # type: ignore[index]
    columns = []
    for name in names:
        _require_one(table_names, name, where)
        columns.append(dictionary_column(source[name], f"{where}[{shown(name)}]"))  # type: ignore[index]
    rows = [[column.values[code] for code in column.codes.tolist()] for column in columns]
    slices: dict[Hashable, Key] = {}
    for row, (query, *parts) in enumerate(zip(queries, *rows, strict=True)):
        key = cast("Key", tuple(parts) if len(parts) > 1 else parts[0])
        if slices.setdefault(query, key) != key:
            text = ", ".join(map(shown, names))
            raise InputError(
                expected=f"one value of {text} for each query",
                got=f"{shown(slices[query])} and {shown(key)} for query {shown(query)}",
                where=f"{where}, row {row}",
                hint="slice by a column that is the same in all rows of a query",
                rows=np.array([row], np.intp),
            )
    return slices


def _columns(table: object, names: Sequence[str], kind: Kind) -> tuple[object, ...]:
    """The columns of queries, documents, values (None: each grade is 1) and subtopics."""
    roles = [("query", _QUERIES), ("document", _DOCUMENTS), (kind.value, kind.values)]
    if kind.subtopics:
        roles.append(("subtopic", _SUBTOPICS))
    columns: list[object] = []
    for role, aliases in roles:
        other_names = other_columns(names)
        if role == "grade" and lacks_grades(table) and not _nearest_column(other_names, aliases):
            columns.append(None)
        else:
            columns.append(table[_column(names, role, aliases, kind.name)])  # type: ignore[index]
    return tuple(columns)


def _column(names: Sequence[str], role: str, aliases: Sequence[str], where: str) -> str:
    """The name of the column of a role; InputError if there is none, or several of this name."""
    by_name = {_bare(name): name for name in reversed(names)}
    name = next((by_name[_bare(alias)] for alias in aliases if _bare(alias) in by_name), None)
    if name is None:
        raise InputError(
            expected=f"a column of each {role}, called {', '.join(aliases)}",
            got=", ".join(map(shown, names[:20])) or "no columns",
            where=where,
            hint=_nearest_column(other_columns(names), aliases)
            or f"rename the {role} column to {aliases[0]}",
        )
    _require_one(names, name, where)
    return name


def _require_one(names: Sequence[str], name: str, where: str) -> None:
    if names.count(name) > 1:
        raise InputError(
            expected="one column of this name",
            got="several",
            where=f"{where}, column {shown(name)}",
            hint="rename the others",
        )


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_MEANT: Final = frozenset(map(_bare, (*_QUERIES, *_DOCUMENTS, *_GRADES, *_SCORES, *_SUBTOPICS)))
# What every table has: without one of each, a dict is one of queries.
_ROW_NAMES: Final = frozenset(map(_bare, _QUERIES)), frozenset(map(_bare, _DOCUMENTS))


def other_columns(names: Sequence[str]) -> list[str]:
    """The columns that are neither of queries nor documents, grades, scores or subtopics."""
    return [name for name in names if _bare(name) not in _MEANT]


def _nearest_column(names: Sequence[str], aliases: Sequence[str]) -> str:
    for name in names:
        question = nearest(name.lower(), aliases, "")
        if question:
            return f"rename the column {shown(name)}; {question}"
    return ""


def _row_columns(source: Iterable[object], kind: Kind) -> tuple[object, ...]:
    """Columns from rows (query, document, value, ...), as ir_measures has them, or from named
    tuples as pyndeval has them."""
    rows, n = list(source), 4 if kind.subtopics else 3
    for i, row in enumerate(rows):
        if not isinstance(row, (tuple, list)) or len(row) < n:
            extra = ", subtopic" if kind.subtopics else ""
            raise (
                _other_form(row, kind)
                if not i
                else InputError(
                    expected=f"rows (query, document, {kind.value}{extra})",
                    got=shown(row),
                    where=f"{kind.name}[{i}]",
                    hint="pass one for each document",
                )
            )
    names = getattr(rows[0], "_fields", None) if rows and kind.subtopics else None
    if names is not None:
        by_name = {name: [getattr(row, name) for row in rows] for name in names}
        return _columns(by_name, names, kind)
    columns: list[list[object]] = [[] for _ in range(n)]
    for row in rows:
        for column, value in zip(columns, row, strict=False):  # type: ignore[call-overload]
            column.append(value)
    return tuple(columns)


def _grouped(columns: tuple[object, ...], kind: Kind) -> dict[Hashable, Ids]:
    """By query document -> value, or -> value by subtopic, from a column of each [n]."""
    queries, documents = (
        _ids(column, f"{kind.name} {role}")
        for column, role in zip(columns[:2], ("queries", "documents"), strict=True)
    )
    name = f"{kind.name} {kind.value}s"
    value_column = np.ones(len(documents), np.int64) if columns[2] is None else columns[2]
    values = vector(value_column, name)
    subtopics = None
    if kind.subtopics:
        subtopics = _ids(columns[3], f"{kind.name} subtopics")
    lengths = {
        len(column) for column in (queries, documents, values, subtopics) if column is not None
    }
    if len(lengths) > 1:
        raise InputError(
            expected=f"queries, documents and {kind.value}s of one length",
            got=f"{len(queries)}, {len(documents)} and {len(values)}",
            where=kind.name,
            hint="pass one value of each for each row",
        )
    if not len(queries):
        raise _none(kind)
    checked: NDArray[np.generic] = checks.scores(values, name)
    plain: list[object] = checked.tolist()
    if kind.graded:
        plain = checks.integers(_integral(checked, name), name).tolist()
    if subtopics is not None:
        return _subtopic_rows(zip(queries, documents, subtopics, plain, strict=True), kind)
    by_query: dict[Hashable, dict[Hashable, object]] = {}
    for row, (query, document, value) in enumerate(
        zip(queries.tolist(), documents.tolist(), plain, strict=True)
    ):
        of_query = by_query.setdefault(query, {})
        if document in of_query:
            raise InputError(
                expected="each document once for a query",
                got=f"{shown(document)} twice for query {shown(query)}",
                where=f"{kind.name}, row {row}",
                hint="drop the later rows",
                rows=np.array([row], np.intp),
            )
        of_query[document] = value
    return dict(by_query.items())


def _plain(id_: object) -> Hashable:
    plain: Hashable = id_.item() if isinstance(id_, np.generic) else id_
    return plain


def _subtopic_rows(
    rows: Iterable[tuple[object, object, object, object]], kind: Kind
) -> dict[Hashable, Ids]:
    """By query and document value by subtopic."""
    by_query: dict[Hashable, dict[Hashable, dict[Hashable, object]]] = {}
    for row, (*ids, value) in enumerate(rows):
        query, document, subtopic = map(_plain, ids)
        of_document = by_query.setdefault(query, {}).setdefault(document, {})
        if subtopic in of_document:
            raise InputError(
                expected="each document once for a subtopic of a query",
                got=f"{shown(document)} twice for subtopic {shown(subtopic)} of {shown(query)}",
                where=f"{kind.name}, row {row}",
                hint="drop the later rows",
                rows=np.array([row], np.intp),
            )
        of_document[subtopic] = value
    return dict(by_query.items())


def _ids(column: object, name: str) -> NDArray[np.generic]:
    """A column of ids: integers or strings."""
    array = vector(column, name)
    kind = array.dtype.kind
    if kind in "iuUT" or not len(array):
        return array
    bad = [0]
    if kind == "O":
        bad = [i for i, value in enumerate(array.tolist()) if type(value) not in (str, int)][:1]
        if not bad:
            return array
    value = array[bad[0]]
    plain = value.item() if isinstance(value, np.generic) else value
    raise InputError(
        expected="strings or integers as ids",
        got=shown(value),
        where=f"{name}[{bad[0]}]",
        hint=ids_instead(plain) or "convert the ids, for example with str(id)",
        rows=np.array(bad, np.intp),
    )


def _integral(values: NDArray[np.generic], name: str) -> NDArray[np.int64]:
    """Numbers as integers; InputError for those that are not whole."""
    numbers = values.astype(np.float64)
    bad = np.flatnonzero((numbers != np.floor(numbers)) | (np.abs(numbers) > _MOST_GRADE))
    if len(bad):
        raise InputError(
            expected="whole numbers as grades",
            got=shown(values[bad[0]]),
            where=f"{name}[{bad[0]}]",
            hint="map your grades to 0, 1, 2, ... first",
            rows=bad,
        )
    return numbers.astype(np.int64)

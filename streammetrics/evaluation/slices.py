"""Slices of queries: `by` as mappings and names of columns, and the results of the slices."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, cast

from streammetrics.combine.panel import R
from streammetrics.combine.per_key import KeyedResult
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.rows import Key, Scalar
from streammetrics.evaluation.judged_runs import (
    column_names,
    mapping_of,
    other_columns,
    slices_of_rows,
)

Tables: TypeAlias = Mapping[str, object]  # judgments and runs as they were passed, by argument
Places: TypeAlias = dict[Key, list[int]]  # by slice the positions of its queries


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SliceResults(KeyedResult[R]):
    """The result of each slice of the queries: numbers by size, then texts.

    >>> from streammetrics import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> run = {"q1": ["a"], "q2": ["c", "b"]}
    >>> result = evaluate(qrels, run, "mrr", by={"q1": "short", "q2": "long"})
    >>> list(result.slices), result.slices["long"]["mrr"]
    (['long', 'short'], 0.5)
    """

    overflow: R | None = None

    _kind: ClassVar[str] = "slices"

    def _notes(self) -> Iterator[str]:
        """None: what one slice has to say, such as how many queries it lacks, is of that slice."""
        return iter(())


class SlicesOfQueries:
    """The slice, or the slices, of any query."""

    def __init__(self, by: object, tables: Tables, queries: Sequence[Hashable]) -> None:
        self._named = _mappings(by, tables, queries)

    def places(self, queries: Sequence[Hashable], *, whole: bool = True) -> Places:
        """The positions of the queries of each slice, slices in their order. whole: InputError for
        a query without a slice, which is left out otherwise."""
        slices: Places = {}
        for where, name, keys in self._named:
            of_name: Places = {}
            lacking = []
            for position, query in enumerate(queries):
                key = keys.get(query)
                if _is_missing(key):
                    lacking.append(query)
                else:
                    of_name.setdefault(key, []).append(position)
            if lacking and whole:
                raise InputError(
                    expected="the slice of each evaluated query",
                    got=f"none for {len(lacking):,} of {len(queries):,}, the first is "
                    f"{shown(lacking[0])}",
                    where=where,
                    hint="name a slice for each; those of no other slice may be one of their own",
                )
            for key in sorted(of_name, key=_order):
                slices[key if name is None else _named(name, key)] = of_name[key]
        return slices


def _is_missing(key: Key) -> bool:
    return key is None or (isinstance(key, tuple) and None in key)


def _named(name: str, key: Key) -> Key:
    return (name, *key) if isinstance(key, tuple) else (name, key)


def _order(key: Key) -> list[tuple[bool, Scalar]]:
    """Numbers by size, then texts."""
    parts = key if isinstance(key, tuple) else (key,)
    return [(isinstance(part, str), part) for part in parts]


def _mappings(
    by: object, tables: Tables, queries: Sequence[Hashable]
) -> list[tuple[str, str | None, Mapping[Hashable, Key]]]:
    """The slice of each query, and where it was given: once, or by name."""
    if isinstance(by, str):
        return [("by", None, _column_slices([by], tables, "by"))]
    if isinstance(by, (list, tuple)) and by and all(isinstance(name, str) for name in by):
        return [("by", None, _column_slices(list(by), tables, "by"))]
    names = None if isinstance(by, Mapping) else column_names(by)
    columns = other_columns(names or [])
    if len(columns) == 1:
        return [("by", None, slices_of_rows(by, columns, "by"))]
    if columns:
        return [("by", name, slices_of_rows(by, [name], "by")) for name in columns]
    mapping = mapping_of(by) if names is None else None
    if not mapping:
        raise InputError(
            expected="a dict {query: slice}, the name of a column, or several of these by name",
            got=shown(by),
            where="by",
            hint='pass for example by={"q1": "short", "q2": "long"}',
        )
    several = not mapping.keys() & set(queries) and all(
        mapping_of(value) is not None or (isinstance(value, str) and _table_with([value], tables))
        for value in mapping.values()
    )
    if not several:
        return [("by", None, _plain(mapping, "by"))]
    named_mappings: list[tuple[str, str | None, Mapping[Hashable, Key]]] = []
    for name, value in mapping.items():
        where, slices = f"by[{shown(name)}]", mapping_of(value)
        keys = _column_slices([str(value)], tables, where) if slices is None else None
        named_mappings.append((where, str(name), keys or _plain(slices or {}, where)))
    return named_mappings


def _plain(mapping: Mapping[Hashable, object], where: str) -> Mapping[Hashable, Key]:
    """The slices of a mapping, as keys."""
    column = dictionary_column(cast("list[Key]", list(mapping.values())), where)
    keys = [column.values[code] for code in column.codes.tolist()]
    return dict(zip(mapping, keys, strict=True))


def _column_slices(names: list[str], tables: Tables, where: str) -> Mapping[Hashable, Key]:
    """By query what these columns have in the first table that has them."""
    table = _table_with(names, tables)
    if table is not None:
        return slices_of_rows(tables[table], names, table)
    columns = {name: list(column_names(source) or ()) for name, source in tables.items()}
    every = list(dict.fromkeys(name for group in columns.values() for name in group))
    missing = [name for name in names if name not in every] or names
    raise InputError(
        expected=f"one of the columns {', '.join(every)}"
        if every
        else "judgments or a run with columns, or a dict {query: slice}",
        got=", ".join(map(shown, missing)),
        where=where,
        hint=nearest(missing[0], every, "pass a dict {query: slice}, or name a column"),
    )


def _table_with(names: list[str], tables: Tables) -> str | None:
    """The name of the first table with all of these columns."""
    for table, source in tables.items():
        if {*names} <= {*(column_names(source) or ())}:
            return table
    return None

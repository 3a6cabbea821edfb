"""The checks that every metric with a bag of rows shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import integers
from streammetrics.core.conversion import vector
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.ids.id_hashes import HashedIds, hashes_of
from streammetrics.core.ids.keys import dictionary_column, whole
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.core.slips import ids_instead

_NAMES: Final = {str: "strings", int: "integers of at most 64 bits"}


def check_choice(value: object, choices: Sequence[str], where: str) -> None:
    """Refuse a setting that is none of the choices."""
    if value not in choices:
        raise SettingsError(
            expected=f"one of {', '.join(choices)}",
            got=shown(value),
            where=where,
            hint="choose one of them",
        )


def check_max_rows(value: object, where: str) -> None:
    """Refuse a limit that is not a positive number of rows, or None."""
    if value is not None and (type(value) is not int or not 1 <= value < 1 << 63):
        raise SettingsError(
            expected="a number of rows from 1, or None for no limit",
            got=shown(value),
            where=where,
            hint="pass how many rows a state may hold before it is given up",
        )


def group_ids(
    groups: ArrayLike | DictionaryColumn,
    kind: str,
    name: str = "groups",
    setting: str = "ids",
    *,
    decimals: bool = False,
) -> NDArray[np.int64] | DictionaryColumn:
    """Ids [n] as a bag of ids "integer", "hashed" or "exact" takes them; kinds never mix.

    name: of the column. setting: the one that says which kind. decimals: where strings are wanted
    an integer is the string of its decimal digits, as in the events of a log.
    """
    if isinstance(groups, HashedIds):
        if kind == "hashed":
            return integers(groups.view(np.ndarray), name)
        raise InputError(
            expected="integers" if kind == "integer" else "the strings themselves",
            got="hashes of strings",
            where=name,
            hint=f'use {setting}="hashed", or pass what was given to hash_ids',
        )
    if kind == "integer":
        return _integers(groups, name, setting)
    if not (isinstance(groups, DictionaryColumn) and set(map(type, groups.values)) <= {str}):
        given = dictionary_column(groups, name)
        hint = f'pass strings, or use {setting}="integer" for integers'
        _refuse_others(given, (str, int) if decimals else (str,), name, hint)
        groups = DictionaryColumn(given.codes, tuple(map(str, given.values)))
    strings = whole(groups, name)
    if kind == "exact":
        return strings
    # Other metrics may be fed with the same column, so it is the one that hashes are kept for.
    known = groups if strings.values is groups.values else strings
    return hashes_of(known)[strings.codes]


def _integers(groups: ArrayLike | DictionaryColumn, name: str, setting: str) -> NDArray[np.int64]:
    hint = f'pass integers, or use {setting}="hashed" for strings'
    if isinstance(groups, DictionaryColumn):
        _refuse_others(groups, (int,), name, hint)
        values = [value if isinstance(value, int) else 0 for value in groups.values]
        return integers(values, name)[groups.codes]
    try:
        return integers(groups, name)
    except InputError as error:
        if not error.expected.startswith("integers"):  # a value is missing, or it is no column
            raise
        raise InputError(
            expected=f'integers of 64 bits, since {setting}="integer"',
            got=error.got,
            where=error.where,
            hint=_hint_of_floats(groups, error) or hint,
            rows=error.rows,
        ) from None


def _refuse_others(
    groups: DictionaryColumn, kinds: tuple[type[str] | type[int], ...], name: str, hint: str
) -> None:
    """Refuse values of another kind that some row has; those that no row has do not matter."""
    bad = [i for i, value in enumerate(groups.values) if not _is(value, kinds)]
    rows = np.flatnonzero(np.isin(groups.codes, bad)) if bad else np.empty(0, np.intp)
    if len(rows):
        first = groups.values[groups.codes[rows[0]]]
        raise InputError(
            expected=" or ".join(_NAMES[kind] for kind in kinds),
            got=f"{shown(first)} ({type(first).__name__})",
            where=f"{name}[{rows[0]}]",
            hint=hint,
            rows=rows,
        )


def _is(value: Key, kinds: tuple[type[str] | type[int], ...]) -> bool:
    if isinstance(value, int):
        return int in kinds and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
    return str in kinds and isinstance(value, str)


def _hint_of_floats(groups: ArrayLike, error: InputError) -> str | None:
    first = vector(groups, "ids")[error.rows[0]] if len(error.rows) else None
    return ids_instead(first)

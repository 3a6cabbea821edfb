"""Events of a join, checked: impressions with their columns, and outcomes of several kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.batch import Batch
from streammetrics.core.checks import column_codes, numbers, same_length
from streammetrics.core.conversion import converted, vector
from streammetrics.core.errors import InputError, SettingsError, bad_rows, shown
from streammetrics.core.event_times import milliseconds
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.ids.unit_hashes import Words, salt_word, unit_hashes, unit_words
from streammetrics.core.parts.part import Slots as Positions
from streammetrics.core.parts.record_table import KINDS, MAX_TIME, Values, checked
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.core.settings import Setting

IMPRESSION: Final = "impression"
_ID_SALT: Final = salt_word("streammetrics join")
_EVENT_SALT: Final = salt_word("streammetrics event")
Given = ArrayLike | DictionaryColumn | Sequence[Key] | None


class EventKeys(NamedTuple):
    """Ids uint64 [n] and times int64 [n] of events."""

    ids: Words
    times: NDArray[np.int64]


def event_keys(ids: ArrayLike | DictionaryColumn, times_ms: ArrayLike) -> EventKeys:
    """Checked ids, as mixed words, and times, in new arrays."""
    times = _event_times(times_ms)
    words = unit_hashes(ids, _ID_SALT, "ids")
    same_length(len(words), times, "times_ms", "ids")
    return EventKeys(words, times)


def unit_keys(units: ArrayLike | DictionaryColumn, times_ms: ArrayLike) -> EventKeys:
    """Checked units, as the words from which metrics of units take their hashes, and times, in new
    arrays."""
    times = _event_times(times_ms)
    words = unit_words(units, "units").copy()
    same_length(len(words), times, "times_ms", "units")
    return EventKeys(words, times)


def _event_times(times_ms: ArrayLike) -> NDArray[np.int64]:
    times = milliseconds(times_ms, "times_ms").copy()
    if len(times) and not (
        times.item(times.argmin()) > -MAX_TIME and times.item(times.argmax()) < MAX_TIME
    ):
        bad = np.flatnonzero((times <= -MAX_TIME) | (times >= MAX_TIME))
        expected = "times in milliseconds, between -2**62 and 2**62"
        raise bad_rows(times, bad, "times_ms", expected, "pass milliseconds since the epoch")
    return times


def declared(
    n: int,
    columns: Mapping[str, Given],
    kinds: Mapping[str, str],
    indices: Positions | None = None,
    rows: str = "impression",
) -> list[Values]:
    """The checked columns that a setting declares, in the order of their names, or InputError.

    n: the number of events. indices: of those that have these columns, None: all; elsewhere a
    column may hold anything. rows: what such an event is called.
    """
    for name in columns:
        if name not in kinds:
            raise InputError(
                expected=f"only the declared columns: {', '.join(sorted(kinds)) or 'none'}",
                got=shown(name),
                where="columns",
                hint="declare it in the setting columns, or leave it out",
            )
    values: list[Values] = []
    for name in sorted(kinds):
        argument = columns.get(name)
        if argument is None and indices is not None and not len(indices):
            values.append(checked((), kinds[name], name))
        elif argument is None:
            raise InputError(
                expected=f"a column {name}, as declared in the setting columns",
                got="none",
                where=name,
                hint=f"pass one value for each {rows}",
            )
        elif indices is None:
            column = checked(argument, kinds[name], name)  # type: ignore[arg-type]
            same_length(n, column, name, "ids")
            values.append(column)
        else:
            values.append(_checked_at(argument, kinds[name], name, indices, n))
    return values


def outcomes(
    n: int, summed: NDArray[np.bool_], values: ArrayLike | None, event_ids: Given
) -> tuple[NDArray[np.float64], Words]:
    """Values, 0 except where `summed` [n], and hashes of the event ids, 0 where there is none."""
    return _values(values, summed), event_words(event_ids, n)


def kinds_of(
    event_kinds: str | ArrayLike | DictionaryColumn | Sequence[Key],
    n: int,
    declared_kinds: Sequence[str],
    name: str = "kinds",
) -> Positions:
    """The index of each event's kind among `declared_kinds`, [n]; InputError for another kind.

    event_kinds: the kind of each event, or one kind for all.
    """
    whole = (
        DictionaryColumn(np.zeros(n, np.intp), (event_kinds,))
        if isinstance(event_kinds, str)
        else event_kinds
    )
    kinds = dictionary_column(whole, name)
    places = [declared_kinds.index(v) if v in declared_kinds else -1 for v in kinds.values]
    index = np.array(places, np.intp)
    # A dictionary may have values without rows, and one kind may be given for no events.
    if -1 in places and (len(bad := np.flatnonzero(index[kinds.codes] < 0)) or not n):
        got = kinds.values[kinds.codes[bad[0]] if len(bad) else int(np.argmin(index))]
        raise InputError(
            expected=f"one of {', '.join(declared_kinds)}",
            got=shown(got),
            where=f"{name}[{bad[0]}]" if len(bad) else name,
            hint="declare it in the setting outcomes, or leave these events out",
            rows=bad,
        )
    same_length(n, kinds.codes, name, "ids")
    return index[kinds.codes]


def _picked(column: Given, indices: Positions, n: int, name: str) -> Given:
    """The column, of n rows, at these indices."""
    if isinstance(column, DictionaryColumn):
        codes: NDArray[Any] = vector(column.codes, f"{name}.codes")
        same_length(n, codes, name, "ids")
        picked_codes = column_codes(DictionaryColumn(codes[indices], column.values), name)
        used, places = np.unique(picked_codes, return_inverse=True)
        return DictionaryColumn(
            places.astype(np.intp), tuple(column.values[i] for i in used.tolist())
        )
    if isinstance(column, list | tuple):
        same_length(n, column, name, "ids")
        return [column[i] for i in indices.tolist()]
    array = column if isinstance(column, np.ndarray) else converted(column, name)
    if not array.ndim:
        return array  # its check raises the error
    same_length(n, array, name, "ids")
    return array[indices]


def _checked_at(column: Given, kind: str, name: str, indices: Positions, n: int) -> Values:
    try:
        return checked(_picked(column, indices, n, name), kind, name)  # type: ignore[arg-type]
    except InputError as error:
        raise _event_error(error, indices, name) from None


def _event_error(error: InputError, indices: Positions, name: str) -> InputError:
    """The error about some of the events, with their indices among all."""
    rows = indices[error.rows]
    return error.of_rows(f"{name}[{rows[0]}]" if len(rows) else error.where, rows)


def _values(values: ArrayLike | None, summed: NDArray[np.bool_]) -> NDArray[np.float64]:
    out = np.zeros(len(summed))
    indices = np.flatnonzero(summed)
    if not len(indices):
        return out
    if values is None:
        raise InputError(
            expected='a value for each outcome of the kind "sum"',
            got="none",
            where="values",
            hint="pass values",
        )
    try:
        picked = numbers(_picked(values, indices, len(out), "values"), "values")  # type: ignore[arg-type]
    except InputError as error:
        raise _event_error(error, indices, "values") from None
    out[indices] = picked
    bad = np.flatnonzero(~np.isfinite(out))
    if len(bad):
        raise bad_rows(out, bad, "values", "finite numbers", "leave these events out")
    return out


def event_words(event_ids: Given, n: int) -> Words:
    """The hashes of event ids [n], 0 where there is none."""
    out = np.zeros(n, np.uint64)
    if event_ids is None:
        return out
    indices = np.arange(n)
    if isinstance(event_ids, np.ndarray) and event_ids.dtype == object:
        event_ids = event_ids.tolist()
    if isinstance(event_ids, list | tuple):
        indices = np.array([i for i, value in enumerate(event_ids) if value is not None], np.intp)
    elif isinstance(event_ids, DictionaryColumn):
        has_id = np.array([value is not None for value in event_ids.values], np.bool_)
        indices = np.flatnonzero(has_id[column_codes(event_ids, "event_ids")])
    try:
        picked = _picked(event_ids, indices, n, "event_ids")
        words = unit_hashes(picked, _EVENT_SALT, "event_ids")  # type: ignore[arg-type]
    except InputError as error:
        raise _event_error(error, indices, "event_ids") from None
    out[indices] = np.maximum(words, np.uint64(1))
    return out


# The settings of a join, checked.

COUNTS: Final = ("once", "count", "sum")
ATTRIBUTIONS: Final = ("one", "last", "every")
MAX_SPAN_MS: Final = 1 << 53  # of `label_window_ms` and `remember_ms`
OF_JOIN: Final = ("kinds", "ids", "times_ms", "values", "event_ids", "self")  # arguments
OF_EXPOSURES: Final = ("units", "times_ms", "experiments", "arms", "event_ids", "self")


def checked_names(
    value: object, choices: Sequence[object], where: str, reserved_names: Iterable[object]
) -> Mapping[str, Setting]:
    """A mapping from name to one of the choices, in order of names."""
    mapping = dict(value) if isinstance(value, Mapping) else {"": None}
    for name, kind in mapping.items():
        if type(name) is not str or not name or name in reserved_names or kind not in choices:
            raise SettingsError(
                expected=f"names other than {', '.join(map(str, reserved_names))}, each with one of"
                f" {', '.join(map(str, choices))}",
                got=shown(value if not isinstance(value, Mapping) else {name: kind}),
                where=where,
                hint="rename it, or choose another kind",
            )
    return {name: mapping[name] for name in sorted(mapping)}


def checked_columns(
    value: object, where: str, reserved_names: Iterable[object] = OF_JOIN
) -> Mapping[str, Setting]:
    """The checked setting `columns`. reserved_names: names of other arguments."""
    return checked_names(value, KINDS, where, reserved_names)


def checked_outcomes(value: object, where: str) -> Mapping[str, Setting]:
    """The checked setting `outcomes`, of 1 to 255 names."""
    kinds = checked_names(value, COUNTS, where, (IMPRESSION,))
    if not 1 <= len(kinds) <= 255:
        raise SettingsError(
            expected="1 to 255 outcomes",
            got=f"{len(kinds)}",
            where=where,
            hint='name each outcome with its kind, such as {"click": "once"}',
        )
    return kinds


def check_span(value: object, least: int, where: str) -> None:
    """SettingsError unless `value` is in milliseconds, from `least` to 2**53."""
    if type(value) is not int or not least <= value <= MAX_SPAN_MS:
        raise SettingsError(
            expected=f"whole milliseconds from {least} to 2**53",
            got=shown(value),
            where=where,
            hint="pass 1_800_000 for half an hour, for example",
        )


def columns_at(batch: Batch, names: Iterable[str], indices: NDArray[np.intp]) -> dict[str, Values]:
    """These columns of checked events, in the order of names, at some indices."""
    columns: dict[str, Values] = {}
    for name in sorted(names):
        column = batch.as_ids(name)
        if isinstance(column, DictionaryColumn):
            columns[name] = DictionaryColumn(column.codes[indices], column.values)
        else:
            columns[name] = column[indices]
    return columns


def widened(column: Values, indices: Positions, n: int) -> Values:
    """A column of the events at some indices as a column of all n."""
    if isinstance(column, DictionaryColumn):
        codes = np.zeros(n, np.intp)
        codes[indices] = column.codes
        return DictionaryColumn(codes, column.values or (None,))
    wide = np.zeros(n, column.dtype)
    wide[indices] = column
    return wide

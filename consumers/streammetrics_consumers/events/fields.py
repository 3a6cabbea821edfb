"""How the columns that a config reads are converted from fields of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, hash_texts
from streammetrics_consumers.config.event import MAX_TEXT
from streammetrics_consumers.config.states import EPOCH, EventColumn
from streammetrics_consumers.events.columns import (
    Bad,
    Converted,
    Converter,
    encoded_texts,
    flag_lists,
    flags,
    hashed_texts,
    integer_lists,
    integers,
    labels,
    lists,
    reals,
    rounded,
    rows,
    taken,
    times_from_store,
    times_in,
    times_iso,
    variants,
)
from streammetrics_consumers.events.refusals import Unfit
from streammetrics_consumers.model.chunk import Texts

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config

ID: Final = "join id"  # the column of what an impression and its outcomes share
VALUE: Final = "join value"  # the column of what an outcome adds up
EVENT_ID: Final = "event id"  # the column of what an event and its repeats share
KIND: Final = "join kind"  # the column that tells them apart
_CONVERTERS: Final[Mapping[str, Converter]] = {
    "time_iso": times_iso,
    "time_s": times_in(1000),
    "time_ms": times_in(1),
    "slice": partial(encoded_texts, nullable=True),
    "text_id": partial(encoded_texts, name=False),
    "hashed_id": hashed_texts,
    "int_id": integers,
    "count": integers,
    "label": labels,
    "real": reals,
    "flag": flags,
    "label_list": partial(lists, booleans=True),
    "real_list": partial(lists, booleans=False),
    "flag_list": flag_lists,
    "int_list": integer_lists,
}
_ROWS: Final[Mapping[str, Callable[..., Converted]]] = {
    "label_row": partial(rows, booleans=True, or_one=False),
    "real_row": partial(rows, booleans=False, or_one=False),
    "label_or_row": partial(rows, booleans=True, or_one=True),
    "real_or_row": partial(rows, booleans=False, or_one=True),
}


@dataclass(frozen=True, slots=True)
class Use:
    """One column that is made of a field: its name, the field's path, and the conversion."""

    name: str
    path: str
    kind: str
    convert: Converter

    @property
    def is_key(self) -> bool:
        """Whether rows are sliced by it, rather than measured."""
        return self.kind in ("variant", "slice")


def uses(config: Config) -> tuple[Use, ...]:
    """Every column that a config needs, with its conversion."""
    declared = variants(config.event.variants)

    def conversion(column: EventColumn) -> Converter:
        if column.kind == "variant":
            return variants(None) if column.name == EPOCH else declared
        row = _ROWS.get(column.kind)
        return _CONVERTERS[column.kind] if row is None else partial(row, width=column.width)

    return tuple(Use(one.name, one.path, one.kind, conversion(one)) for one in config.columns)


def uses_of_outcome(config: Config, value: str | None) -> tuple[Use, ...]:
    """The columns that are read of an outcome: its time, and the number that it adds, if any."""
    unit = f"time_{config.event.time_unit or 'iso'}"
    found = [Use("time", config.event.time, unit, _CONVERTERS[unit])]
    return tuple(found if value is None else [*found, Use(VALUE, value, "real", reals)])


def use_of_id(path: str) -> Use:
    """What an impression and its outcomes share."""
    return Use(ID, path, "hashed_id", hashed_texts)


def use_of_event_id(config: Config) -> list[Use]:
    """What an event and its repeats share, where the config asks for it."""
    found = config.dedup
    return [] if found is None else [Use(EVENT_ID, found.event_id, "hashed_id", hashed_texts)]


def use_of_kind(path: str) -> Use:
    """The field that tells events apart."""
    return Use(KIND, path, "slice", _CONVERTERS["slice"])


def epochs_by_time(config: Config) -> Callable[[NDArray[np.int64]], DictionaryColumn] | None:
    """What makes the column of epochs out of event times [n], where the config declares starts, or
    neither starts nor a field; None where the field says it, or there is no experiment."""
    experiment = config.experiment
    if experiment is None or config.event.epoch is not None:
        return None
    starts, names = np.array(experiment.epochs, np.int64), experiment.epoch_names

    def convert(times_ms: NDArray[np.int64]) -> DictionaryColumn:
        return DictionaryColumn(np.searchsorted(starts, times_ms, side="right"), names)

    return convert


def paths(columns: Sequence[Use]) -> dict[str, frozenset[str]]:
    """Each field that is read, with the kinds that it is read as; a field that something needs
    comes without "slice", which takes any value or none."""
    found: dict[str, set[str]] = {}
    for use in columns:
        found.setdefault(use.path, set()).add(use.kind)
    return {path: frozenset(kinds - {"slice"} or kinds) for path, kinds in found.items()}


def from_store(use: Use, values: NDArray[np.generic] | DictionaryColumn | Texts) -> Converted:
    """The column of one use, and what is wrong by row."""
    if isinstance(values, Texts):
        if use.kind == "hashed_id" and int(np.diff(values.offsets).max(initial=0)) <= MAX_TEXT:
            return hash_texts(values.data, values.offsets), {}
        values = values.dictionary_column()
    if isinstance(values, DictionaryColumn):
        return _each_once(use, list(values.values), values.codes)
    if values.dtype.kind == "M":
        if use.name == "time":
            return times_from_store(values.astype("datetime64[ms]"), use.path)
        return use.convert(values.tolist(), use.path)
    fast = _numbers(use, values)
    if fast is not None:
        return fast
    if use.kind in ("slice", "variant", "text_id", "hashed_id"):  # few different numbers, mostly
        distinct, codes = np.unique(values, return_inverse=True)
        return _each_once(use, distinct.tolist(), codes)
    return use.convert(values.tolist(), use.path)


def _each_once(use: Use, distinct: list[object], codes: NDArray[np.intp]) -> Converted:
    """Convert each distinct value once: what it becomes depends on it alone."""
    column, bad = use.convert(distinct, use.path)
    rows: Bad = {}
    for code, why in bad.items():
        rows.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), why))
    return taken(column, codes), rows


def _numbers(use: Use, values: NDArray[np.generic]) -> Converted | None:
    """Numbers that need no conversion of their own; None where one at a time says more."""
    kind = values.dtype.kind
    if use.kind == "flag" and kind == "b":
        return values.astype(np.bool_), {}
    if kind in {"real": "fiu", "label": "fiub"}.get(use.kind, ""):
        doubles = values.astype(np.float64)
        if kind in "iu":
            return doubles, rounded(values, doubles, use.path)
        nan = np.isnan(doubles)
        if not nan.any():
            return doubles, {}
        bad = dict.fromkeys(np.flatnonzero(nan).tolist(), Unfit("not_a_number", use.path, "NaN"))
        return np.where(nan, 0.0, doubles), bad
    if use.kind in ("count", "int_id") and kind == "i":
        return values.astype(np.int64), {}
    return None

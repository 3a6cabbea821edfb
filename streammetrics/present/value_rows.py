"""The values of a result as rows: one mechanism for `to_dict`, `to_frame`, `repr` and notebooks.

A row has a value with its certain bounds, its confidence interval, the counts that it rests on, and
the reason why something is undefined. Every result has a row for each of its views; a result with
parts has those of each part, with its metric, key or window.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among, as_float
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.interval import Interval, interval_of
from streammetrics.present.view import ENTRIES, declaration
from streammetrics.present.views import (
    Part,
    counts_of,
    has_parts,
    part_of_view,
    view_of,
    views_of,
)

if TYPE_CHECKING:
    import pandas
    import polars

    PandasFrame: TypeAlias = pandas.DataFrame
    PolarsFrame: TypeAlias = polars.DataFrame
    Frame: TypeAlias = PandasFrame | PolarsFrame | list[dict[str, object]]

LEVEL: Final = 0.95
ALWAYS_VALID: Final = "always-valid"  # the method of an interval that holds at all looks together
Columns: TypeAlias = dict[str, list[object]]
Library = Literal["pandas", "polars"]


@dataclass(frozen=True, slots=True)
class ValueRow:
    """One value of a result.

    name: of the view, after the metric in a panel. value: `Bounded` if it is approximated; a float
    is exact, if `exact`, and otherwise an estimate, such as an effect. interval: the confidence
    interval, None if there is none. keys, window: of the part. counts: the denominators. reason:
    why the value or the interval is undefined, or doubtful. pvalue: of the test against 0,
    adjusted for the tests beside it where it is; None without one.
    """

    name: str
    value: float | Bounded
    interval: Interval | None = None
    counts: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""
    exact: bool = True
    keys: tuple[object, ...] = ()
    window: tuple[int, int] | None = None
    pvalue: float | None = None

    @property
    def exact_within(self) -> tuple[float, float] | None:
        """The certain bounds, which equal an exact value; None for an estimate."""
        if isinstance(self.value, Bounded):
            return self.value.low, self.value.high
        return (self.value, self.value) if self.exact else None

    @property
    def ci(self) -> tuple[float, float] | None:
        """The bounds of the confidence interval, one of which may be infinite; None without one."""
        interval = self.interval
        if interval is None or not interval.defined or math.isnan(interval.lower + interval.upper):
            return None
        return interval.lower, interval.upper

    @property
    def key(self) -> object:
        """The key, a tuple of the keys of nested ones, or None."""
        return self.keys[0] if len(self.keys) == 1 else self.keys or None

    def placed_in(self, part: Part) -> ValueRow:
        """The row in a result that has this one's result as a part."""
        name = Part(part.name).view_text(self.name) if part.name else self.name
        keys = (*part.keys, *self.keys)
        window = self.window or part.window
        # Not `replace`, which would be the slowest step of a table of many keys.
        return ValueRow(
            *(name, self.value, self.interval, self.counts, self.reason, self.exact),
            *(keys, window, self.pvalue),
        )

    def columns(self) -> dict[str, object]:
        """The cells of the row, by the columns of `to_dict`; the counts come last."""
        start, end = self.window or (None, None)
        low, high = self.exact_within or (None, None)
        interval, (lower, upper) = self.interval, self.ci or (None, None)
        has = interval is not None and lower is not None
        fixed: dict[str, object] = {
            "name": self.name or "value",
            "key": self.key,
            "window_start_ms": start,
            "window_end_ms": end,
            "value": float(self.value),
            "exact_low": low,
            "exact_high": high,
            "ci_lower": lower,
            "ci_upper": upper,
            "ci_level": interval.level if has and interval else None,
            "ci_method": interval.method if has and interval else "",
            "ci_n": interval.n if has and interval else None,
            "reason": self.reason,
        }
        counts = {f"{x}_count" if x in fixed else x: n for x, n in self.counts.items()}
        return fixed | counts


class HasRows(Protocol):
    """A result that has rows of its own making."""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The rows; headlines: only those of the headline views, where there are such."""
        ...


def _has_rows(result: object) -> TypeGuard[HasRows]:
    return hasattr(type(result), "_value_rows")


def rows_of(result: object, *, level: float = LEVEL, headlines: bool = False) -> Iterator[ValueRow]:
    """The rows of a result or of a number, one by one: the interval of a row is computed when the
    row is taken.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> [(row.name, row.value) for row in rows_of(ctr.compute())]
    [('ratio', 0.5), ('numerator', 2.0), ('denominator', 4.0)]
    """
    if has_parts(result):
        for part, part_result in result._parts():
            for row in rows_of(part_result, level=level, headlines=headlines):
                yield row.placed_in(part)
    elif _has_rows(result):
        yield from result._value_rows(level, headlines)
    elif isinstance(result, (float, int, np.number, Bounded)):
        value = result if isinstance(result, Bounded) else float(result)
        yield ValueRow("", value)
    else:
        yield from rows_of_views(result, level, headlines)


def rows_of_views(result: object, level: float, headlines: bool) -> Iterator[ValueRow]:
    """A row for each view of a result without parts."""
    counts = counts_of(result)
    for name, value in views_of(result, headlines=headlines).items():
        reason = reason_of(result, name)
        interval = interval_of(result, result, name, level)
        why = reason or (interval.reason if interval.formula else "")
        if not math.isfinite(value):
            why = reason or why_undefined(result, name, value, counts)
        yield ValueRow(name, value, interval, counts, why, is_exact(result, name))


def is_exact(result: object, view: object = None) -> bool:
    """Whether a view of a result is a figure of its rows, exact or `Bounded`; otherwise it is a
    measure of error, such as a p-value or a design effect. None: the first view.

    >>> from streammetrics import Interleaving
    >>> found = Interleaving().compute()
    >>> is_exact(found, "preference"), is_exact(found, "pvalue")
    (True, False)
    """
    inside = part_of_view(result, view)
    if inside is not None:
        return is_exact(inside[0], inside[1] or None)
    view_text = view_of(result, view)
    of_error = declaration(result, view_text.name).estimator.of_error
    if of_error or getattr(type(result), "estimates", False):
        return False
    inner = view_text.figure(result) if view_text.rest else getattr(result, "value", None)
    if inner is None or isinstance(inner, (float, np.floating, Bounded)):
        return True
    return is_exact(inner, view_text.rest or view_text.text)


def reason_of(result: object, view: str) -> str:
    """Why a view, by its text, is undefined for these rows; "" if it is not, or if its class says
    why."""
    declared = declaration(result, view_of(result, view).name).reason
    if declared is not None:
        return declared(result)
    reason = getattr(result, "reason", "")
    return reason if isinstance(reason, str) else ""


def why_undefined(
    result: object, view: str, value: float | Bounded, counts: Mapping[str, object]
) -> str:
    """Why a value is nan or infinite, in words, as its class declares it of the view."""
    if counts.get("rows") == 0:
        return "no rows"
    why = declaration(result, view).undefined or declaration(result, ENTRIES).undefined
    if callable(why):
        return why(result)
    if why:
        units: str = getattr(type(result), "independent", "")
        return why.replace("{unit}", units.removesuffix("s"))
    return "0 divided by 0" if math.isnan(value) else "beyond the range of numbers"


# Columns of rows, and their tables.


class FrameColumn(NamedTuple):
    """The cells of a column [n]; missing: of those that are None, or None if no cell is."""

    values: NDArray[np.generic]
    missing: NDArray[np.bool_] | None = None

    def cells(self) -> list[object]:
        """The cells as Python's values."""
        cells = self.values.tolist()
        if self.missing is not None:
            for position in np.flatnonzero(self.missing).tolist():
                cells[position] = None
        return cast("list[object]", cells)


def to_columns(rows: Iterator[ValueRow]) -> Columns:
    """The rows as columns of equal length; a count that a row does not have is None."""
    cells = [row.columns() for row in rows]
    names = dict.fromkeys(ValueRow("", math.nan).columns())
    names |= dict.fromkeys(name for row in cells for name in row)
    return {name: [row.get(name) for row in cells] for name in names}


_PLACES: Final = ("key", "window_start_ms", "window_end_ms")


def wide_columns(columns: Columns) -> Columns:
    """The columns of `to_dict` as a table with a row for each key and window, and a column for the
    value of each name; InputError for a table without names, such as the points of a curve.

    >>> wide_columns({"name": ["a", "b", "a"], "key": [1, 1, 2], "value": [0.5, 0.1, 0.25],
    ...               "window_start_ms": [None] * 3, "window_end_ms": [None] * 3})
    {'key': [1, 2], 'a': [0.5, 0.25], 'b': [0.1, nan]}
    """
    if not {"name", "value", *_PLACES} <= columns.keys():
        raise InputError(
            expected="a result with values by name",
            got="one that is a table of columns itself",
            where="to_frame(wide)",
            hint="leave wide out",
        )
    has_windows = any(start is not None for start in columns["window_start_ms"])
    rows: list[tuple[tuple[object, ...], dict[str, object]]] = []
    row_of_place: dict[tuple[object, ...], dict[str, object]] = {}
    names = cast("Sequence[str]", columns["name"])
    for name, value, *place in zip(
        names, columns["value"], *(columns[p] for p in _PLACES), strict=True
    ):
        if has_windows and place[1] is None:
            name = name.removeprefix("total.")  # of all windows, which has a row of its own
        key = tuple(place)
        if name in row_of_place.get(key, (name,)):  # another result of an equal key
            row_of_place[key] = {}
            rows.append((key, row_of_place[key]))
        row_of_place[key][name] = value
    places = zip(*(place for place, _ in rows), strict=True)
    used = {
        name: list(cells)
        for name, cells in zip(_PLACES, places, strict=False)
        if any(cell is not None for cell in cells)
    }
    titles = dict.fromkeys(name for _, values in rows for name in values)
    return used | {
        f"{name}_value" if name in used else name: [
            values.get(name, math.nan) for _, values in rows
        ]
        for name in titles
    }


def strict(columns: Columns) -> Columns:
    """The columns with values of JSON only: a number that is not finite is None, a tuple a list.

    >>> strict({"value": [0.5, math.nan, math.inf], "key": [("bts", 2), "x", None]})
    {'value': [0.5, None, None], 'key': [['bts', 2], 'x', None]}
    """
    return {name: list(map(_plain, values)) for name, values in columns.items()}


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def checked_level(level: object, where: str = "level") -> float:
    """The confidence level, or InputError."""
    share = as_float(level)
    if share is None or not 0 < share < 1:
        raise InputError(
            expected="a number between 0 and 1, such as 0.95",
            got=shown(level),
            where=where,
            hint="pass the confidence level as a share of 1",
        )
    return share


def frame_of(columns: Columns, library: str | None) -> Frame:
    """The columns as a frame of pandas or polars, or as a list of dicts if neither is installed.

    library: "pandas" or "polars"; None: the one that the program has imported, else the one that is
    installed, pandas if both are. SettingsError if it is not installed.
    """
    chosen = library_of(library)
    try:
        if chosen == "pandas":
            return _pandas(columns)
        if chosen == "polars":
            return _polars(columns)
    except ImportError as error:
        raise SettingsError(
            expected=f"{chosen}, which makes the frame",
            got=str(error),
            where="to_frame(library)",
            hint=f"install it with: pip install {chosen}; to_dict() needs neither",
        ) from None
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def library_of(library: str | None) -> str | None:
    """The library of a frame, as `frame_of` chooses it; InputError for any other."""
    if library is not None and not among(library, ("pandas", "polars")):
        raise InputError(
            expected='"pandas", "polars" or None',
            got=shown(library),
            where="to_frame(library)",
            hint="pass one of these; to_dict() needs neither",
        )
    return library or _installed()


def _installed() -> str | None:
    packages = ("pandas", "polars")
    loaded = [name for name in packages if name in sys.modules]
    candidates = loaded or [name for name in packages if find_spec(name) is not None]
    return next(iter(candidates), None)


def _pandas(columns: Columns) -> PandasFrame:
    import pandas as pd

    kinds = {float: "float64", int: "Int64"}
    series = {}
    for name, values in columns.items():
        kind = kind_of_column(name, values)
        if kind is int and None not in values:
            series[name] = pd.Series(values, dtype="int64")
        else:
            series[name] = pd.Series(values, dtype=kinds.get(kind, "object"))
    return pd.DataFrame(series)


def pandas_of_columns(columns: Mapping[str, FrameColumn]) -> PandasFrame:
    """The columns as a frame of pandas, with the types that `frame_of` gives."""
    import pandas as pd

    series = {}
    for name, column in columns.items():
        values, missing = column
        if values.dtype.kind == "f":
            cells = values if missing is None else np.where(missing, np.nan, values)
            series[name] = pd.Series(cells, dtype="float64")
        elif values.dtype.kind == "i" and missing is not None and missing.any():
            series[name] = pd.Series(pd.arrays.IntegerArray(values, missing))
        else:
            series[name] = pd.Series(values, dtype="int64" if values.dtype.kind == "i" else object)
    return pd.DataFrame(series, copy=False)  # no one else has the arrays


def _polars(columns: Columns) -> PolarsFrame:
    import polars as pl

    kinds = {float: pl.Float64, int: pl.Int64, str: pl.String}
    series = []
    for name, values in columns.items():
        kind = kind_of_column(name, values)
        cells = values if kind is not object else [x if x is None else _text(x) for x in values]
        series.append(pl.Series(name, cells, dtype=kinds.get(kind, pl.String)))
    return pl.DataFrame(series)


_FLOATS: Final = ("value", "exact_low", "exact_high", "ci_lower", "ci_upper", "ci_level")
_INTEGERS: Final = ("window_start_ms", "window_end_ms", "ci_n")


def kind_of_column(name: str, values: Sequence[object]) -> type:
    """The type of all values of a column that are not None; object if there are several."""
    kinds = {type(value) for value in values if value is not None}
    if name in _FLOATS or kinds == {float}:
        return float
    if name in _INTEGERS or kinds == {int}:
        small = all(value is None or -(1 << 63) <= value < 1 << 63 for value in values)  # type: ignore[operator]
        return int if small else object
    return str if kinds <= {str} else object


def _text(key: object) -> str:
    """A key of a column that has keys of several types, or of several columns."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)

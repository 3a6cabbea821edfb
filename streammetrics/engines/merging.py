"""The sum of the states of one group, and its result as rows of a table. Needs no Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine import KeyedResult, PanelResult, WindowsResult
from streammetrics.combine.sealed import Sealed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, StateError, shown
from streammetrics.core.layouts import without_later_parts
from streammetrics.core.stacked import summed
from streammetrics.engines.groups import field_of, group_names
from streammetrics.present.view_columns import columns_of_views
from streammetrics.registry import load

if TYPE_CHECKING:
    import pyarrow as pa

Figure: TypeAlias = tuple[str, str, float, float, float]

_OTHERS: Final = "others"  # the keys beyond `max_keys`
RESULT_TEXTS: Final = ("metric", "view")
RESULT_NUMBERS: Final = ("value", "low", "high")


def agree(state: Accumulator, other: Accumulator) -> bool:
    """Whether two states may be of the same rows: they are equal, or equal but for what one of
    them does not know, because it was read from bytes of a former schema.

    >>> from streammetrics import Ratio
    >>> clicks = Ratio()
    >>> clicks.update([1, 0])
    >>> agree(clicks, clicks.copy()), agree(clicks, Ratio())
    (True, False)
    """
    if state == other:
        return True
    (former, unknown), (other_former, too) = without_later_parts(state), without_later_parts(other)
    return (unknown or too) and former == other_former


def merged(states: Iterable[bytes], *, replay: str = "refuse") -> Accumulator:
    """The sum of these envelopes (or state bytes), with its provenance.

    replay: "refuse" (default): a state that counted the same piece of the same range as another
    raises OverlapError; "skip": a state that is already fully counted is left out, and one that is
    partly counted still raises.

    Raises InputError without a state, StateError for invalid bytes, and SettingsError if settings
    differ.

    >>> from streammetrics import Ratio
    >>> clicks = Ratio()
    >>> clicks.update([1, 0])
    >>> clicks.provenance.add("clicks/0", 0, 2)
    >>> merged([clicks.to_file_bytes()] * 3, replay="skip").compute().rows
    2
    """
    require_replay(replay)

    def add(total: Accumulator | None, state: Accumulator) -> Accumulator:
        if total is None:
            return state
        merge_once(total, state, replay)
        return total

    total = summed(map(_state_bytes, states), load, add)
    if total is None:
        raise InputError(
            expected="at least one state",
            got="none",
            where="merged",
            hint="use the empty metric if nothing was counted",
        )
    return total


def merge_once(total: Accumulator, state: Accumulator, replay: str = "refuse") -> bool:
    """Merge `state` into `total`; with replay="skip" return False, without a change, if `total`
    covers its provenance. A state without provenance is always new.

    Raises OverlapError if some of it is counted already, and SettingsError if settings differ.
    """
    skip = replay == "skip" and bool(state.provenance)
    if skip and total.provenance.covers(state.provenance):
        total.merge(state.empty())  # raises if the settings differ
        return False
    total.merge(state)
    return True


def require_replay(replay: str) -> None:
    """SettingsError for an unknown rule."""
    if replay not in ("refuse", "skip"):
        raise SettingsError(
            expected='"refuse" or "skip"',
            got=shown(replay),
            where="replay",
            hint="choose one of them",
        )


def read_state(data: object) -> Accumulator:
    """The state in a cell of a column of states: only bytes, because a text would name a file."""
    return load(_state_bytes(data))


def _state_bytes(data: object) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateError(
            expected="the bytes of a state",
            got=shown(data),
            where="states",
            hint="leave out rows without a state, for example those of an outer join",
        )
    return bytes(data)


def merge_all(states: Iterable[bytes], *, replay: str = "refuse") -> bytes:
    """The envelope of `merged`: the bytes of the sum with its provenance."""
    return merged(states, replay=replay).to_file_bytes()


def results_rows(state: bytes | Accumulator) -> list[Figure]:
    """(metric, view, value, low, high) of every view of the result.

    metric: the name in a Panel, the key of a PerKey as JSON, the window of a Windows as
    `[start_ms,end_ms]`, nested ones joined by `/`; for a plain metric its class. An exact value has
    low = high = value; an undefined one is nan.

    >>> from streammetrics import Panel, Ratio
    >>> panel = Panel({"ctr": Ratio()})
    >>> panel.update(numerators=[1, 0])
    >>> results_rows(panel)[0]
    ('ctr', 'ratio', 0.5, 0.5, 0.5)
    """
    whole = state if isinstance(state, Accumulator) else read_state(state)
    figures = figures_of_states([whole])
    texts = figures.metrics.tolist(), figures.views.tolist()
    return [*zip(*texts, *figures.values.tolist(), strict=True)]


class Figures(NamedTuple):
    """The rows of many results: owners: the result [n]; metrics and views: texts [n]; values:
    [3, n], value, low and high."""

    owners: NDArray[np.intp]
    metrics: NDArray[np.object_]
    views: NDArray[np.object_]
    values: NDArray[np.float64]


def figures_of_states(states: Iterable[Accumulator]) -> Figures:
    """`results_rows` of each of these states, one after another."""
    return figures_of_results((state.compute(), name_of_metric(state)) for state in states)


def figures_of_results(results: Iterable[tuple[object, str]]) -> Figures:
    """`results_rows` of each of these results, one after another, each with the name of its metric
    where it has no parts."""
    owners, paths, leaves = [], [], []
    for owner, (result, metric) in enumerate(results):
        for path, part in _parts(result, ()):
            owners.append(owner)
            paths.append("/".join(path) or metric)
            leaves.append(part)
    views = columns_of_views(leaves)
    metrics = np.array(paths, object)[views.owners]
    return Figures(np.array(owners, np.intp)[views.owners], metrics, views.names, views.values)


def name_of_metric(state: Accumulator) -> str:
    """The name of a metric that is in no panel: its class, also where it is sealed."""
    return type(state.metric if isinstance(state, Sealed) else state).__name__


def require_no_result_names(by: Sequence[str]) -> None:
    """InputError for group columns that have the name of a column of results."""
    names = [*RESULT_TEXTS, *RESULT_NUMBERS]
    for name in by:
        if name in names:
            raise InputError(
                expected=f"names of columns, none of them {', '.join(names)}, which results have",
                got=repr(name),
                where="by",
                hint="rename the column",
            )


def results_schema(schema: pa.Schema | None = None, by: Sequence[str] = ()) -> pa.Schema:
    """(by..., metric, view string, value, low, high float64), for `results_rows`.

    schema: of states or rows, with the group columns `by`. InputError for one that is not there,
    or has the name of a column of results.
    """
    import pyarrow as pa

    keys = group_names(by)
    require_no_result_names(keys)
    groups = [] if schema is None else [field_of(schema, name, "by") for name in keys]
    texts = [pa.field(name, pa.string()) for name in RESULT_TEXTS]
    return pa.schema([*groups, *texts, *(pa.field(name, pa.float64()) for name in RESULT_NUMBERS)])


def _parts(result: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    match result:
        case PanelResult():
            inner: Mapping[str, object] = result.results
        case KeyedResult():
            inner = {json.dumps(key): inner_result for key, inner_result in result.results.items()}
            if result.overflow is not None:
                inner[_OTHERS] = result.overflow
        case WindowsResult():
            inner = {
                f"[{start},{end}]": inner_result for (start, end), inner_result in result.items()
            }
            inner["total"] = result.total
        case _:
            yield path, result
            return
    for name, inner_result in inner.items():
        yield from _parts(inner_result, (*path, name))

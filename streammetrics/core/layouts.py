"""Layouts: the parts of a state that bytes of a former schema lack, and what stands for them.

A metric that has gained a part has a new schema, and names the former ones with the parts that
their bytes lack. In bytes of a former schema each such part is *unknown* for the rows that are
counted there: it is made by `LaterPart.unknown`, is added up as any other, and the state that
results is one of the current schema. A reader carries what its bytes lack, because metrics lie
within metrics; so a specification of settings never depends on the layout of some bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import STATE_MAGIC, Reader, Stack, Writer, frame
from streammetrics.core.parts.counts import CountsColumn
from streammetrics.core.parts.part import Column, LaterPart, Part
from streammetrics.core.parts.weighted_counts import WeightedCountsColumn

if TYPE_CHECKING:
    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.declared import Declared

Schemas = Mapping[str, str | Collection[str]]


class Layout(NamedTuple):
    """What the class body of a metric says of its bytes: its schema, its other schemas, its parts
    by name, in the order of the bytes, and those that some former layout lacks."""

    schema: str
    schemas: Schemas
    parts: dict[str, Part[Column]]
    later_parts: dict[str, LaterPart[Column]]


def layout_of(metric: type[Declared], schema: str) -> Layout:
    """The layout of a class with this schema, whose abstract bases may have parts too; TypeError
    unless each part that a former layout lacks is one of its parts, and may be unknown."""
    whole, schemas = base_layout(schema, metric._schemas, metric._lacked)
    bases = reversed(metric.__mro__)
    parts = {k: v for b in bases for k, v in vars(b).items() if isinstance(v, Part)}
    later_parts = {}
    for former, lacks in schemas.items():
        for name in () if isinstance(lacks, str) else lacks:
            part = parts.get(name)
            if isinstance(part, LaterPart):
                later_parts[name] = part
            elif "/" not in name:  # else the former schema of a metric that the head does not name
                raise TypeError(
                    f"{metric.__name__}: {former} lacks {name}, which is no part that may be "
                    "unknown: exact sums may be"
                )
    return Layout(whole, schemas, parts, later_parts)


def base_layout(
    schema: str, schemas: Schemas, lacked: tuple[frozenset[str], ...]
) -> tuple[str, Schemas]:
    """The schema and the former ones of a metric whose abstract base has gained parts.

    lacked: for each former layout of the base, the oldest first, the parts that it lacks.

    >>> base_layout("my/2", {"my/1": {"more"}}, (frozenset({"cubes"}),))[0]
    'my/2+2'
    >>> base_layout("my/1", {}, (frozenset({"cubes"}),))
    ('my/1+2', {'my/1': frozenset({'cubes'})})
    """
    if not lacked:
        return schema, schemas
    layouts = [("" if i == 1 else f"+{i}", parts) for i, parts in enumerate(lacked, 1)]
    every: dict[str, str | Collection[str]] = {schema + end: parts for end, parts in layouts}
    for former, lacks in schemas.items():
        for end, parts in [*layouts, (f"+{len(lacked) + 1}", frozenset())]:
            every[former + end] = lacks if isinstance(lacks, str) else parts.union(lacks)
    return f"{schema}+{len(lacked) + 1}", every


def leave_out(metric: Declared, *names: str) -> None:
    """Let an instance have none of these parts, and no bytes of them: for `check_settings`, where a
    setting that came after the first states is None."""
    parts = metric._parts.items()
    metric.__dict__["_parts"] = {name: part for name, part in parts if name not in names}


@runtime_checkable
class CountsRows(Protocol):
    """A metric that counts its rows in no table of counts."""

    def _counted_rows(self) -> NDArray[np.int64]:
        """The rows of each slot."""


def columns(
    metric: Accumulator, data: Reader | Stack, width: int, read: Callable[[Part[Column]], Column]
) -> dict[str, Column]:
    """The column of each part: as `read` reads it, or unknown if the bytes lack it."""
    lacks = data.lacking.get(type(metric), ())
    part_columns = {name: read(part) for name, part in metric._parts.items() if name not in lacks}
    if lacks:
        partial_state = metric._holding(part_columns, width, 0)
        if isinstance(partial_state, CountsRows):
            rows = partial_state._counted_rows()
        else:
            rows = _counted_rows(part_columns.values(), width)
        for name in lacks:
            part_columns[name] = metric._later_parts[name].unknown(metric, width, rows)
    return part_columns


def _counted_rows(part_columns: Iterable[Column], width: int) -> NDArray[np.int64]:
    """The rows of each slot, weights aside, by the first table of counts of a metric."""
    column = next(
        table for table in part_columns if isinstance(table, CountsColumn) and table.cells
    )
    totals = np.array(column.totals(np.arange(width)), np.int64)
    return totals - column.surplus if isinstance(column, WeightedCountsColumn) else totals


def written(metric: Accumulator, out: Writer) -> list[Column]:
    """The columns to write, in order; a Writer may leave some out."""
    state = metric.__dict__
    if out.left_out is None:
        lacks = out.lacking.get(type(metric), ())
        return [state[name] for name in metric._parts if name not in lacks]
    later = metric._later_parts
    out.left_out += [state[name].unknown for name in sorted(later)]
    return [state[name] for name in metric._parts if name not in later]


def without_later_parts(state: Accumulator) -> tuple[bytes, bool]:
    """The bytes of a state without the parts that some former layout lacks, and whether these are
    unknown for some of its rows: so are all that were read from bytes of a former schema.

    Two states of the same rows, of which one was read from such bytes, are equal in these alone.
    """
    out = Writer(left_out=[])
    state._encode(out)
    return frame(STATE_MAGIC, state._head(), *out.chunks), any(out.left_out or ())

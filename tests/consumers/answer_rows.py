"""Rows of answers, made and altered for tests by the names of their JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields as struct_fields
from streammetrics_consumers.query.query import Slice
from streammetrics_consumers.query.records import RECORDS
from streammetrics_consumers.query.rows import SliceRow, Window, WindowFinding

from streammetrics import Interval
from streammetrics.experiments import Safeguard
from streammetrics.present import ValueRow
from streammetrics.results import Bounded

R = TypeVar("R", SliceRow, WindowFinding)
_INSIDE = ("shown", "finding", "contrast", "names", "comparison", "reading")  # records in records
_ELSEWHERE = {  # values that a record holds in one of its own, under another name
    "control_variant": ("names", "control"),
    "treatment_variant": ("names", "treatment"),
    "control": ("both", "control"),
    "treatment": ("both", "treatment"),
    "effect_size": ("effect", "estimate"),
    "effect_size_ci_lower": ("effect", "lower"),
    "effect_size_ci_upper": ("effect", "upper"),
    "rel_effect_size": ("lift", "estimate"),
    "rel_effect_size_ci_lower": ("lift", "lower"),
    "rel_effect_size_ci_upper": ("lift", "upper"),
    "anytime_lower": ("reading", "lower"),
    "anytime_upper": ("reading", "upper"),
}


def slice_row(
    window: Window,
    slice_: Slice,
    metric: str,
    kind: str,
    view: str,
    value: float,
    low: float,
    high: float,
    counts: Mapping[str, int],
    digest: str = "",
    interval: Interval | None = None,
    band: Interval | UnsetType = UNSET,
) -> SliceRow:
    """A row with these bounds."""
    shown = ValueRow(view, bounded(value, low, high), interval, counts)
    return SliceRow(window, slice_, metric, kind, digest, shown, band)


def bounded(value: float, low: float, high: float) -> float | Bounded:
    """The value with its bounds, or alone if it is exact."""
    return value if low == value == high else Bounded(value, low=low, high=high)


def altered(row: R, **changes: object) -> R:
    """The row with other values, each in the record that has it: the outermost, or the first in it.

    guardrail: whether it is of a guardrail; margin: of it."""
    if isinstance(row, SliceRow):
        if changes.keys() & {"value", "low", "high"}:
            bounds: Any = {"value": row.value, "low": row.low, "high": row.high, **changes}
            changes["value"] = bounded(bounds["value"], bounds["low"], bounds["high"])
            changes = {
                name: value for name, value in changes.items() if name not in ("low", "high")
            }
        if "view" in changes:
            changes["name"] = changes.pop("view")
    else:
        if (guardrail := changes.pop("guardrail", None)) is not None:
            changes["safeguard"] = Safeguard(row.contrast.metric, 0.1) if guardrail else None
        if "anytime_reason" in changes:  # the comparison has a reason, too
            finding = replace(row.finding, reason=str(changes.pop("anytime_reason")))
            row = replace(row, finding=finding)
        if "holm_pvalue" in changes:
            changes["holm"] = changes.pop("holm_pvalue")
    left, new = _altered(row, changes)
    assert not left, left
    return new


def _altered(record: Any, changes: dict[str, object]) -> tuple[dict[str, object], Any]:
    names = {field.name for field in fields(record)}
    members = {name: value for name, value in changes.items() if name in names}
    left = {name: value for name, value in changes.items() if name not in names}
    for name in [name for name in left if _ELSEWHERE.get(name, ("",))[0] in names]:
        inner, field = _ELSEWHERE[name]
        members[inner] = replace(
            members.get(inner, getattr(record, inner)), **{field: left.pop(name)}
        )  # type: ignore[type-var]
    for name in _INSIDE:
        if left and name in names:
            left, members[name] = _altered(members.get(name, getattr(record, name)), left)
    return left, replace(record, **members)


def plain(value: object) -> Any:
    """A value of an answer as mappings, lists, numbers and texts, member by member."""
    if isinstance(value, Struct):
        members = {field.encode_name: getattr(value, field.name) for field in struct_fields(value)}
        config = value.__struct_config__
        if config.tag_field is not None:
            members[config.tag_field] = config.tag
        return plain({name: member for name, member in members.items() if name != "tables"})
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items() if member is not UNSET}
    if is_dataclass(value):
        record = RECORDS[type(value).__name__]
        return plain(
            {name: _member(value, record.elsewhere.get(name, name)) for name in record.fields}
        )
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _member(record: Any, source: str | Callable[[Any], object]) -> object:
    return attrgetter(source)(record) if isinstance(source, str) else source(record)

"""The sentence about a stream of which most events are refused, or all are skipped: what, how many,
and the key of the config that is likely to be wrong.

One bad event is the producer's; if most are bad, the config expects other events than those that
come, and nobody should have to find that out from empty results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import LATE, Counters

LEAST: Final = 10  # events, before their share is meaningful
SHARE: Final = 0.5  # of the events that are not skipped
SHOWN: Final = 3  # kinds of refused events
NAME: Final = 80  # characters

_UNREAD: Final = "[source] format, which says how records are read"
_KEYS: Final[Mapping[str, str]] = {  # by reason
    **dict.fromkeys(
        ("not_json", "not_csv", "not_array", "not_arrow", "not_an_object", "two_documents",
         "invalid_utf8", "too_deep", "empty"),
        _UNREAD,
    ),
    "too_large": "[source] max_event_bytes",
    "too_many_events": "[source] format, since a message holds more events than are taken",
    "unknown_variant": "[event] variants, which lists the known names",
    "unknown_kind": '[join] outcomes, or others = "skip"',
    "future": "[windows] max_ahead_s, or [event] time_unit",
    **dict.fromkeys(LATE, "[windows] lateness_s"),
    "closed": "[join] reopen_s, or that of [exposures]",
    "metric": "`inputs` of [metrics], since a metric refuses the values",
}  # fmt: skip


class RefusedKind(NamedTuple):
    """Events that are refused for one reason in one field. detail: of the first of them, or ""
    where contents must not be shown."""

    reason: str
    field: str | None
    events: int
    detail: str = ""


def mostly_refused(counters: Counters) -> bool:
    """Whether most of the events that are not skipped were refused."""
    rows = counters.rows - counters.skipped
    return rows >= LEAST and counters.quarantined > SHARE * rows


def all_skipped(counters: Counters) -> bool:
    """Whether all events were skipped."""
    return counters.rows >= LEAST and counters.skipped == counters.rows


def refusal_sentence(
    counters: Counters,
    kinds: Sequence[RefusedKind],
    description: Mapping[str, object],
    *,
    lately: bool = False,
    newest: int | None = None,
) -> str:
    """The sentence about events that `mostly_refused` or `all_skipped` is true of.

    kinds: the most frequent first. description: of a metric, as the store has it. lately: whether
    these are the last events, not all of them. newest: the most refused events whose kinds were
    counted; None: all.
    """
    rows = counters.rows - counters.skipped
    scope = "the last " if lately else ""
    if all_skipped(counters):
        sentence = f"all {scope}{formatting.count(counters.rows)} events were skipped"
        if "where" in description:
            return f"{sentence}: none meets [event] where; check its fields and values"
        return f"{sentence}; check [join] impression and outcomes, by which events are chosen"
    count = formatting.count(counters.quarantined)
    sentence = f"{count} of {scope}{formatting.count(rows)} events were refused"
    if counters.quarantined == rows:
        sentence = f"all {scope}{count} events were refused"
    if not kinds:
        return sentence
    parts = [_kind(kind) for kind in kinds[:SHOWN]]
    if newest is not None and counters.quarantined > newest:
        sentence += f"; of the newest {formatting.count(newest)}"
    return f"{sentence}: {', '.join(parts)}. The likely key is {likely_key(kinds[0], description)}"


def _kind(kind: RefusedKind) -> str:
    field = "" if kind.field is None else f" in `{formatting.name(kind.field, NAME)}`"
    detail = f" ({formatting.name(kind.detail, 160)})" if kind.detail else ""
    return f"{formatting.count(kind.events)} {kind.reason}{field}{detail}"


def likely_key(kind: RefusedKind, description: Mapping[str, object]) -> str:
    """The key of the config that is likely to be wrong, and what to do with it."""
    path, unit = _time(description)
    if kind.field is not None and kind.field == path and kind.reason != "missing_field":
        if kind.reason == "future":
            return "[event] time_unit, or [windows] max_ahead_s"
        if unit is None:
            return '[event] time_unit: without it times are ISO texts; set it to "s" or "ms"'
        return f'[event] time_unit: it is "{unit}"; set the right one, or none for ISO texts'
    if kind.reason in _KEYS:
        return _KEYS[kind.reason]
    exposed_path, _ = _time(_exposures(description))
    if kind.field is not None and kind.field == exposed_path and kind.reason != "missing_field":
        return "[exposures] time_unit: set the right one"
    where = _key_of(kind.field, description)
    if kind.reason == "missing_field":
        return f"{where}: name the field that events have"
    return f"{where}: name the right field"


def _time(description: Mapping[str, object]) -> tuple[str | None, str | None]:
    time = description.get("time")
    if not isinstance(time, list | tuple) or len(time) != 2:
        return None, None
    path, unit = cast("tuple[str, str | None]", time)
    return path, unit


def _exposures(description: Mapping[str, object]) -> Mapping[str, object]:
    """What the description says of [exposures]; empty without any."""
    exposures = description.get("exposures")
    return exposures if isinstance(exposures, Mapping) else {}


def _key_of(field: str | None, description: Mapping[str, object]) -> str:
    """The key that names a field."""
    if field is None:
        return "[event] or [metrics]"
    if field == _time(description)[0]:
        return "[event] time"
    variant = description.get("variant")
    if isinstance(variant, list | tuple) and field in variant[:1]:
        return "[event] variant"
    exposures = _exposures(description)
    for name in ("unit", "experiment", "arm"):
        if field == exposures.get(name):
            return f"[exposures] {name}"
    if field == _time(exposures)[0]:
        return "[exposures] time"
    groupings = cast("Iterable[Iterable[Sequence[str]]]", description.get("slices") or ())
    if any(field == path for grouping in groupings for _, path in grouping):
        return "[slices] by"
    inputs = cast("Mapping[str, object]", description.get("inputs") or {})
    names = sorted(
        name for name, column in inputs.items() if str(column).rpartition(":")[0] == field
    )
    if names:
        return f"[event], or `inputs` of [metrics], where `{field}` is {' and '.join(names)}"
    return "[event] or [metrics], where it names this field"

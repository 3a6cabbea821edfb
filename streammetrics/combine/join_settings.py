"""The settings of a join, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from streammetrics.combine.join_events import IMPRESSION
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.record_fields import KINDS
from streammetrics.core.settings import Setting

COUNTS: Final = ("once", "count", "sum")
ATTRIBUTIONS: Final = ("one", "last", "every")
MAX_SPAN_MS: Final = 1 << 53  # of label windows, and of remembering
_TAKEN: Final = ("kinds", "ids", "times_ms", "values", "event_ids", "self")


def checked_names(
    value: object, choices: Sequence[object], where: str, taken: Iterable[object]
) -> Mapping[str, Setting]:
    """A mapping from name to one of the choices, in order of names."""
    given = dict(value) if isinstance(value, Mapping) else {"": None}
    for name, kind in given.items():
        if type(name) is not str or not name or name in taken or kind not in choices:
            raise SettingsError(
                expected=f"names (none of {', '.join(map(str, taken))}), each with one of"
                f" {', '.join(map(str, choices))}",
                came=shown(value if not isinstance(value, Mapping) else {name: kind}),
                where=where,
                todo="correct it",
            )
    return {name: given[name] for name in sorted(given)}


def checked_columns(value: object, where: str) -> Mapping[str, Setting]:
    """The setting `columns`."""
    return checked_names(value, KINDS, where, _TAKEN)


def checked_outcomes(value: object, where: str) -> Mapping[str, Setting]:
    """The setting `outcomes`; there is at least one, and at most 255."""
    found = checked_names(value, COUNTS, where, (IMPRESSION,))
    if not 1 <= len(found) <= 255:
        raise SettingsError(
            expected="1 to 255 outcomes",
            came=f"{len(found)}",
            where=where,
            todo='name what may follow an impression, as {"click": "once"}',
        )
    return found


def check_span(value: object, least: int, where: str) -> None:
    """Milliseconds from `least` to 2**53."""
    if type(value) is not int or not least <= value <= MAX_SPAN_MS:
        raise SettingsError(
            expected=f"whole milliseconds, {least} to 2**53",
            came=shown(value),
            where=where,
            todo="pass for instance 1_800_000 for half an hour",
        )

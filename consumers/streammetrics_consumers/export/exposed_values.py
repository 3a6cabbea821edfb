"""The effects on exposed units as objects of an export: those of the units that the plan does not
decide by, and those by days since the exposure. None of them is a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from streammetrics_consumers.query.encoding import Encoder, as_bytes
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposedEffect

SINCE: Final = "since"  # the units whose days since the exposure are over
DAYS: Final = ("from_day", "to_day", "exposed_from_ms", "exposed_to_ms")


def exposed_values(answer: ExposedAnswer) -> Iterator[Mapping[str, object]]:
    """An object for each effect: its fields, of which units it is, and when these were exposed."""
    encoder = Encoder()

    def fields(effect: ExposedEffect) -> dict[str, object]:
        values: dict[str, object] = json.loads(as_bytes(encoder.text(effect)))
        return values

    unit_fields: dict[str, object] = {"unit_view": "so_far"}
    if answer.units == "so_far":
        days = answer.closed_from_ms, answer.closed_to_ms
        unit_fields = {"unit_view": "closed", "exposed_from_ms": days[0], "exposed_to_ms": days[1]}
    for effect in answer.beside:
        yield fields(effect) | unit_fields
    for part in answer.since:
        since = {"unit_view": SINCE} | {name: getattr(part, name) for name in DAYS}
        for effect in part.effects:
            yield fields(effect) | since

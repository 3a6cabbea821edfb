"""The settings of a metric as this version reads its stored states.

A description in the store is in the words of the version that counted: a setting may have another
name since, or the state another form. So where type or settings of a description are not those of
the config, stored states are read, and what this version makes of them is compared in their place:
a metric whose former states can be read goes on, whatever its settings were called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, select

import streammetrics as sm
from streammetrics_consumers.ledger.delta_metadata import read_rows, read_states, state_bytes
from streammetrics_consumers.ledger.descriptions import Description, as_started, differences
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.model.generation import Generation, Metric, settings_of, type_of

UNREADABLE: Final = "unreadable"  # a key of a description: why its stored states cannot be read
_OTHER_SCHEMA: Final = ("a known schema", "the schema ")  # what such an error expected


def is_of_another_version(error: sm.StateError) -> bool:
    """Whether a state is whole, but of a schema that this version does not read; else it is
    damaged."""
    return error.expected.startswith(_OTHER_SCHEMA)


def unless_damaged(error: sm.StateError) -> sm.StateError:
    """The error of a state that another version of the library must read. Raises that of a damaged
    one."""
    if is_of_another_version(error):
        return error
    raise error


def as_read_now(
    connection: Connection,
    current: Generation,
    fingerprints: Mapping[str, str],
    descriptions: Mapping[str, Description],
) -> Generation:
    """A generation whose metrics have, where they are not those of a config, the type and settings
    that this version reads in their states, and the config's fingerprint where these agree; and
    under UNREADABLE the reason where their states cannot be read."""
    return replace(
        current,
        metrics=tuple(
            _as_read(
                connection,
                current.id,
                metric,
                fingerprints[metric.name],
                descriptions[metric.name],
            )
            if metric.fingerprint != fingerprints.get(metric.name, metric.fingerprint)
            else metric
            for metric in current.metrics
        ),
    )


def _as_read(
    connection: Connection, number: int, metric: Metric, fingerprint: str, now: Description
) -> Metric:
    stored = metric.description
    started = as_started(stored, now)
    settings = now.get("settings")
    unchanged = stored.get("type") == now.get("type") and stored.get("settings") == settings
    if unchanged or not isinstance(settings, Mapping):
        continued = started is not now and not any(differences(stored, _plain(started)))
        return replace(metric, fingerprint=fingerprint) if continued else metric
    counted: Description | None = None
    for data in _samples(connection, number, metric.name):
        try:
            counted = _described(data)
        except sm.StreamMetricsError as error:
            counted = {UNREADABLE: str(error)}
        if counted != {"type": now["type"], "settings": dict(settings)}:
            break
    if counted is None:
        former = stored.get("settings")
        if isinstance(former, Mapping) and former.keys() == settings.keys():
            # Nothing was counted, so that only its layout may differ where its name is the same.
            if _name(stored) != _name(now):
                return metric
            settings = former
        # Nothing was counted, and no config can undo what another version called its settings.
        counted = {"type": now["type"], "settings": dict(settings)}
    read = replace(metric, description={**stored, **counted})
    if any(differences(read.description, _plain(started))):
        return read
    return replace(read, fingerprint=fingerprint)


def _plain(description: Description) -> Description:
    """A description as it is stored, so that a tuple and a list are the same."""
    plain: Description = json.loads(json.dumps(description))
    return plain


def _name(description: Description) -> str:
    """The name of a metric, without the version of its schema."""
    return str(description.get("type")).partition("/")[0]


def _samples(connection: Connection, number: int, metric: str) -> Iterator[bytes]:
    """The smallest and the largest stored state of each grouping of a metric. All states of a
    metric have the settings of its description, so these stand for the others."""
    of_metric = delta.c.generation == number, delta.c.metric == metric, delta.c.same_as.is_(None)
    for grouping in connection.scalars(select(delta.c.grouping).where(*of_metric).distinct()).all():
        sizes = select(delta.c.id).where(*of_metric, delta.c.grouping == grouping)
        ids = {
            connection.scalar(sizes.order_by(order, delta.c.id).limit(1))
            for order in (delta.c.nbytes, delta.c.nbytes.desc())
        }
        for row, data in read_states(connection, read_rows(connection, delta.c.id.in_(ids))):
            yield state_bytes(row, data)


def _described(data: bytes) -> Description:
    state: sm.Accumulator = sm.load(data)
    if isinstance(state, sm.PerKey):
        state = state.metric
    return {"type": type_of(state), "settings": settings_of(state)}

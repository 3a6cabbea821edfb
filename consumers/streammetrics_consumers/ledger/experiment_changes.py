"""What a config changes of each experiment of a generation, whole: its metrics begin and end
together. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

from streammetrics_consumers.model.generation import (
    SHOWN,
    Changes,
    ExperimentChange,
    Generation,
    experiment_name,
    experiment_set,
)

Ends: TypeAlias = "tuple[int | None, int | None]"
_NO_TEXTS = ("position", "order")  # values for display that follow from the order of the config


def experiment_changes(
    current: Generation,
    descriptions: Mapping[str, Mapping[str, object]],
    changes: Changes,
    epochs: Mapping[str, tuple[str, ...]],
    ends: Mapping[str, Ends],
) -> tuple[ExperimentChange, ...]:
    """What a config changes of each experiment that it or the store has, in the order of the
    config; those that have ended before are left out. epochs, ends: see `ExperimentChange`, by
    metric set."""
    live = {metric.name for metric in current.metrics if not metric.ended}
    known_metrics = {metric.name for metric in current.metrics}
    names = dict.fromkeys(
        name
        for metric in (*descriptions, *sorted(live))
        if (name := experiment_name(metric.rpartition("/")[0])) is not None
    )
    return tuple(
        ExperimentChange(
            name,
            *_kind(
                {metric for metric in known_metrics if _is_of(metric, name)},
                {metric for metric in live if _is_of(metric, name)},
                {metric for metric in descriptions if _is_of(metric, name)},
                changes,
            ),
            epochs=epochs.get(experiment_set(name), ()),
            end=ends.get(experiment_set(name)),
            shown=_other_texts(current, descriptions, name),
        )
        for name in names
    )


def _is_of(metric: str, name: str) -> bool:
    return metric.rpartition("/")[0] == experiment_set(name)


def _kind(
    names: set[str], live: set[str], described: set[str], changes: Changes
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The kind of a change, and the metrics that begin and end in an experiment that goes on.

    names: the metrics of an experiment that the store has; live: those that it counts; described:
    those of the config."""
    if not names:
        return "added", (), ()
    if not described:
        return "ended", (), ()
    if not live:
        return "resumed", (), ()
    added = sorted(described & {*changes.added, *changes.resumed})
    ended = sorted(live & {*changes.ended})
    return "goes on", tuple(map(_last_part, added)), tuple(map(_last_part, ended))


def _last_part(metric: str) -> str:
    return metric.rpartition("/")[2]


def _other_texts(
    current: Generation, descriptions: Mapping[str, Mapping[str, object]], name: str
) -> tuple[str, ...]:
    """The names of the values for display that differ from those of the store."""
    differ: set[str] = set()
    for metric in current.metrics:
        if not _is_of(metric.name, name) or metric.name not in descriptions:
            continue
        stored_texts = cast("Mapping[str, object]", metric.description.get(SHOWN, {}))
        now = json.loads(json.dumps(descriptions[metric.name].get(SHOWN, {})))
        differ.update(key for key in {*stored_texts, *now} if stored_texts.get(key) != now.get(key))
    return tuple(sorted(differ.difference(_NO_TEXTS)))

"""How a config reads events: their paths, kinds and limits, and which of these a retry may change.

A retry counts events that the log's settings refused: a variant was added, a path corrected, a
limit raised. The meaning of a state must not change (metrics and their settings, groupings,
windows). The reading of its rows may, and is stored with the retry, so that `verify` can read them
in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final, cast

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.event import EventConfig, Field, Kind, conditions_of
from streammetrics_consumers.config.experiment import ExperimentConfig
from streammetrics_consumers.config.exposures import ExposuresConfig
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.config.marks import Mark
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.ledger.descriptions import more_variants
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.model.generation import (
    DELAYS,
    EXPOSED_ROWS,
    EXPOSED_UNITS,
    ROWS,
    Generation,
)

_OF_EXPOSURES: Final = ("unit", "experiment", "arm", "time", "time_unit")
# The keys of a description that must be equal.
_EQUAL: Final[tuple[str, ...]] = (
    *("type", "settings", "windows", "max_keys", "experiment", "kinds"),
    *("columns", "condition"),  # also the paths in them: they are part of what a state means
)


def reading_of(config: Config) -> str:
    """How a config reads events, as canonical JSON."""
    event = {name: value for name, value in asdict(config.event).items() if name != "assignments"}
    reading = {
        "event": event,
        "inputs": {
            metric.name: {
                name: {"path": field.path, "kind": field.kind, "width": field.width}
                for name, field in metric.inputs.items()
            }
            for metric in config.counted
        },
        "max_event_bytes": config.source.max_event_bytes,
        "max_ahead_s": config.windows.max_ahead_s,
    }
    named_experiments = {
        name: experiment for name, experiment in config.experiments.items() if experiment.is_named
    }
    if named_experiments:
        reading["experiments"] = {
            name: {
                "variant": experiment.arms.path,
                "where": [asdict(condition) for condition in experiment.where],
                **({"unit": experiment.unit} if experiment.is_exposed else {}),
            }
            for name, experiment in named_experiments.items()
        }
    if config.join is not None:
        reading["join"] = {
            "id": config.join.id,
            "marks": [asdict(mark) for mark in config.join.marks],
            "values": [outcome.value for outcome in config.join.outcomes],
            "others": config.join.others,
        }
    if config.exposures is not None:
        names = ("mark", *_OF_EXPOSURES, "where")
        fields = asdict(config.exposures)
        reading["exposures"] = {name: fields[name] for name in names}
    return json.dumps(reading, sort_keys=True, separators=(",", ":"))


def with_reading(config: Config, reading: str) -> Config:
    """The config with the reading of another one that has the same metrics; see `reading_of`."""
    settings = json.loads(reading)
    event = dict(settings["event"])
    if event["variants"] is not None:
        event["variants"] = tuple(event["variants"])
    event["where"] = conditions_of(event.get("where", ()))
    event["assignments"] = config.event.assignments  # which only gives paths their defaults
    inputs: Mapping[str, Mapping[str, Mapping[str, object]]] = settings["inputs"]

    def with_fields(metrics: tuple[MetricConfig, ...]) -> tuple[MetricConfig, ...]:
        return tuple(
            replace(
                metric,
                inputs={
                    name: Field(
                        str(field["path"]),
                        cast("Kind", field["kind"]),
                        int(str(field["width"])),
                        name=same.name if (same := metric.inputs.get(name)) else None,
                        optional=same.optional if same else False,
                        computed=same.computed if same else None,
                    )
                    for name, field in inputs[metric.name].items()
                },
            )
            for metric in metrics
            if metric.name in inputs
        )

    experiment_metrics = {
        name: fields
        for name, metrics in config.experiment_metrics.items()
        if (fields := with_fields(metrics))
    }
    experiments: Mapping[str, Mapping[str, Any]] = settings.get("experiments", {})
    return replace(
        config,
        event=EventConfig(**event),
        join=_join_with(config.join, settings.get("join")),
        exposures=_exposures_with(config.exposures, settings.get("exposures")),
        source=replace(config.source, max_event_bytes=settings["max_event_bytes"]),
        windows=replace(config.windows, max_ahead_s=settings["max_ahead_s"]),
        metrics=with_fields(config.metrics),
        experiments={
            name: _experiment_with(config.experiments[name], experiments.get(name))
            for name in experiment_metrics
        },
        experiment_metrics=experiment_metrics,
    )


def _experiment_with(
    experiment: ExperimentConfig, reading: Mapping[str, Any] | None
) -> ExperimentConfig:
    if reading is None:
        return experiment
    arms = replace(experiment.arms, path=reading["variant"])
    unit, where = reading.get("unit", experiment.unit), conditions_of(reading["where"])
    return replace(experiment, arms=arms, unit=unit, where=where)


def _exposures_with(
    exposures: ExposuresConfig | None, reading: Mapping[str, Any] | None
) -> ExposuresConfig | None:
    if exposures is None or reading is None:
        return exposures
    fields = {name: reading[name] for name in _OF_EXPOSURES}
    mark, where = Mark(**reading["mark"]), conditions_of(reading["where"])
    return replace(exposures, mark=mark, where=where, **fields)


def _join_with(join: JoinConfig | None, reading: Mapping[str, Any] | None) -> JoinConfig | None:
    if join is None or reading is None:
        return join
    first, *marks = (Mark(**mark) for mark in reading["marks"])
    outcomes = tuple(
        replace(outcome, mark=mark, value=value)
        for outcome, mark, value in zip(join.outcomes, marks, reading["values"], strict=True)
    )
    others = reading.get("others", join.others)  # retries of older versions do not have it
    return replace(join, id=reading["id"], impression=first, outcomes=outcomes, others=others)


def require_same_states(config: Config, generation: Generation) -> None:
    """Raise SettingsChanged unless events that this config reads can be added to the states of a
    generation, whatever their paths."""
    live = {metric.name: metric.description for metric in generation.metrics if not metric.ended}
    counted = {metric.name: (_EQUAL, True) for metric in config.counted}
    for names, table in (
        ((ROWS, DELAYS), config.join),
        ((EXPOSED_ROWS, EXPOSED_UNITS), config.exposures),
    ):
        of_pending = ("type", "settings", "pane_ms", "columns", "expressions")
        counted |= {} if table is None else dict.fromkeys(names, (of_pending, False))
    differences = [f"metric {name}: not in the config" for name in live if name not in counted]
    for name, (keys, is_ours) in counted.items():
        description = live.get(name)
        if description is None:
            differences.append(f"metric {name}: the store does not count it")
            continue
        now = json.loads(json.dumps(config.descriptions[name]))
        differ = [key for key in keys if description.get(key) != now.get(key)]
        if is_ours:
            differ += ["where"] if _conditions(description) != _conditions(now) else []
            differ += ["variant"] if more_variants(description, now) is None else []
            for part, reader in (("groupings", _groupings), ("inputs", _inputs)):
                if reader(description) != reader(now):
                    differences.append(f"metric {name}: its {part} differ from those of the store")
        differences += [
            f"metric {name}: {key} was {_shown(description.get(key))}, is {_shown(now.get(key))}"
            for key in differ
        ]
    if differences:
        raise SettingsChanged(
            differences,
            "A retry adds events to the states of the store; restore the metrics, groupings, "
            "windows and variants of the config, or `run` it first. Paths and limits may differ, "
            "and variants may be added.",
        )


def _groupings(description: Mapping[str, object]) -> object:
    slices = cast("list[list[list[str]]]", description["slices"])
    return [[name for name, _ in grouping] for grouping in slices]


def _inputs(description: Mapping[str, object]) -> object:
    return set(cast("Mapping[str, str]", description["inputs"]))


def _conditions(description: Mapping[str, object]) -> list[tuple[object, object]]:
    """The fields and their conditions in [event] where, without the paths."""
    conditions = cast("list[tuple[object, object, object]]", description.get("where", []))
    return [(name, must_be) for name, _, must_be in conditions]


def _shown(value: object) -> str:
    return json.dumps(value)[:80]

"""Exposures as other software writes them: docs/exposures.md says where each format comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from streammetrics_consumers.config.event import Condition
from streammetrics_consumers.config.marks import Mark
from streammetrics_consumers.model.paths import column_of

Preset = Literal["openfeature", "growthbook", "flagr", "posthog"]
TimeFormat = Literal["iso", "s", "ms"]


@dataclass(frozen=True, slots=True)
class ExposureFormat:
    """How some software writes an exposure: the defaults of the keys of [exposures]."""

    mark: Mark
    unit: str
    experiment: str
    arm: str
    time: str
    time_unit: TimeFormat = "iso"
    where: tuple[Condition, ...] = ()

    def keys(self, *, has_columns: bool) -> dict[str, object]:
        """The defaults by key, but for the mark. has_columns: whether events are rows of columns,
        whose names have dots as they are."""
        names = ("unit", "experiment", "arm", "time")
        paths = {name: str(getattr(self, name)) for name in names}
        where = self.where
        if has_columns:
            paths = {name: column_of(path) for name, path in paths.items()}
            where = tuple(replace(test, path=column_of(test.path)) for test in where)
        return {**paths, "time_unit": self.time_unit, "where": where}


def _present(path: str) -> Condition:
    return Condition(path, path, present=True, values=None)


_VARIANT: Final = 'attributes."feature_flag.result.variant"'
_SOURCE: Final = "payload.recordSource"
_RESPONSE: Final = "properties.$feature_flag_response"
PRESETS: Final[Mapping[Preset, ExposureFormat]] = {
    # The event that createEvaluationEvent of an SDK makes in a hook, with the time added.
    "openfeature": ExposureFormat(
        Mark("name", "feature_flag.evaluation"),
        unit='attributes."feature_flag.context.id"',
        experiment='attributes."feature_flag.key"',
        arm=_VARIANT,
        time="timestamp",
        where=(_present(_VARIANT),),
    ),
    # The event of a tracking callback, with the columns of an experiment assignment query.
    "growthbook": ExposureFormat(
        Mark("event", "experiment_viewed"),
        unit="user_id",
        experiment="experiment_id",
        arm="variation_id",
        time="timestamp",
    ),
    # A frame of the data recorder in the mode payload_raw_json. Evaluations have the same form.
    "flagr": ExposureFormat(
        Mark(_SOURCE, "exposure"),
        unit="payload.evalContext.entityID",
        experiment="payload.flagKey",
        arm="payload.variantKey",
        time="payload.timestamp",
        where=(
            Condition(_SOURCE, _SOURCE, present=True, values=("exposure",)),
            _present("payload.variantKey"),
        ),
    ),
    # An event as the SDKs send and a batch export writes it.
    "posthog": ExposureFormat(
        Mark("event", "$feature_flag_called"),
        unit="distinct_id",
        experiment="properties.$feature_flag",
        arm=_RESPONSE,
        time="timestamp",
        where=(_present(_RESPONSE),),
    ),
}

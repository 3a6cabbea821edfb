"""[exposures]: an event that says which unit is shown which arm of an experiment from now on.

The arm of another event is that of the first exposure of its unit at or before it. An event is
counted when it is certain that no earlier exposure can come (see closing.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast, get_args

from streammetrics_consumers.config.event import Condition, EventConfig, Field, Kind, read_where
from streammetrics_consumers.config.experiment import ExperimentConfig
from streammetrics_consumers.config.exposure_presets import PRESETS, Preset, TimeFormat
from streammetrics_consumers.config.join import JoinConfig
from streammetrics_consumers.config.keys import (
    Required,
    ValueKind,
    completed,
    key,
    keys_of,
    read_keys,
    state_key,
)
from streammetrics_consumers.config.kinds import YEAR_S, Choice, FieldPath, Seconds
from streammetrics_consumers.config.marks import Mark, read_mark, require_distinct
from streammetrics_consumers.config.section import RefusedSetting, Section
from streammetrics_consumers.config.source import SourceConfig, require_order
from streammetrics_consumers.config.tables import WindowsConfig

UNIT: Final = "(unit)"  # the column of the hash of the unit that an event names
HAS_UNIT: Final = "(has unit)"  # whether it names one
EXPERIMENT: Final = "(experiment)"  # the column of the experiment of an exposure, a text
ARM: Final = "(arm)"  # the column of the arm of an exposure, a text
_A_MARK: Final = (
    "how exposures are recognized: `field` and `equals`, or `topic`",
    'write topic = "exposures", or field = "kind" and equals = "exposure"',
)
_OF_COLUMNS: Final = ("csv", "parquet", "arrow", "columns")
_OF_JOIN: Final = ("nothing, since there is a [join]", "write it in [join]; one clock closes both")
_NOT_USED: Final = (
    "an entry of [experiments] without `variant`, to take its arms from exposures",
    "remove [exposures], or the key `variant` of an experiment, and [event] assignments",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposuresConfig:
    """[exposures]; the keys of its mark stand beside these.

    only: the experiment of all exposures, if no field of them says it; else "".
    """

    mark: Mark
    preset: Preset | None = key(
        Choice(get_args(Preset)),
        None,
        "the software that wrote the exposures: gives `field`, `equals`, `unit`, `experiment`, "
        "`arm`, `time`, `time_unit` and `where` their defaults, see [exposures.md](exposures.md). "
        "A mark of your own replaces that of the preset as a whole",
    )
    unit: str = state_key(
        FieldPath(),
        Required(instead=""),
        "the unit that is exposed: a text or a whole number",
        shown="`event.user`",
    )
    experiment: str | None = state_key(
        FieldPath(),
        None,
        "the field with NAME of `[experiments.NAME]`, a text or a whole number; left out where all "
        "exposures are of one experiment",
    )
    arm: str = state_key(
        FieldPath(),
        Required(instead=""),
        "the arm: a text, a whole number, `true` or `false`; a preset names it",
    )
    time: str = state_key(
        FieldPath(), Required(instead=""), "the time of the exposure", shown="`event.time`"
    )
    time_unit: TimeFormat = state_key(
        Choice(get_args(TimeFormat)),
        "iso",
        "the unit of whole numbers in `time`, or `iso` for ISO texts with a zone; by default as in "
        "[event]",
        shown="`event.time_unit`",
    )
    where: tuple[Condition, ...] = state_key(
        ValueKind("table"),
        (),
        "the conditions that an exposure meets besides its mark, written like those of "
        "`event.where`; other events with the mark are skipped",
        shown="`{}`",
    )
    window_s: int | None = state_key(
        Seconds(1, YEAR_S),
        None,
        "events this long after the first exposure of their unit, or later, do not count; without "
        "it all do",
    )
    reopen_s: int = state_key(
        Seconds(0, YEAR_S),
        0,
        "events up to this much later than `lateness_s` are still counted; all events are counted "
        "later by this time. With `[join]` its own holds",
    )
    idle_s: int | None = key(
        Seconds(1, YEAR_S),
        None,
        "a partition without events, or whose newest event is this much older than the newest of "
        "all, delays no result; by default every partition does. With `[join]` its own holds",
    )
    only: str = ""

    @property
    def window_ms(self) -> int | None:
        """The time after an exposure in which events count; None: no end."""
        return None if self.window_s is None else self.window_s * 1000

    @property
    def fields(self) -> tuple[Field, ...]:
        """What is read of an exposure; the time is the first."""
        kind = cast("Kind", f"time_{self.time_unit}")
        fields = [
            Field(self.time, kind, name="time"),
            Field(self.unit, "hashed_id", name=UNIT),
            Field(self.unit, "has_id", name=HAS_UNIT, optional=True),
        ]
        if self.experiment is not None:
            fields.append(Field(self.experiment, "name", name=EXPERIMENT))
        return (*fields, Field(self.arm, "name", name=ARM))

    @property
    def named_paths(self) -> dict[str, str]:
        """The paths of its fields, by the setting that names each."""
        names = ("time", "unit", "experiment", "arm")
        paths = {f"[exposures] {name}": getattr(self, name) for name in names}
        return {where: path for where, path in paths.items() if path}

    def plan(self, windows: WindowsConfig) -> dict[str, object]:
        """The settings that determine which events are counted for which arms, in plain values."""
        return {
            "mark": self.mark.declared,
            "unit": self.unit,
            "experiment": self.experiment or {"only": self.only},
            "arm": self.arm,
            "time": [self.time, self.time_unit],
            "where": [condition.plain for condition in self.where],
            "window_s": self.window_s,
            "late_after_s": windows.lateness_s + self.reopen_s,
            "late": "to quarantine",
        }


def unit_fields(path: str) -> tuple[Field, Field]:
    """What is read of any other event, to find the exposures of its unit: an event without the
    field, or with a value that is no id, belongs to no unit."""
    return (
        Field(path, "hashed_id", name=UNIT, optional=True),
        Field(path, "has_id", name=HAS_UNIT, optional=True),
    )


def read_exposures(
    section: Section,
    source: SourceConfig,
    event: EventConfig,
    windows: WindowsConfig,
    join: JoinConfig | None,
    *,
    is_joined: bool,
) -> ExposuresConfig | None:
    """Read [exposures]; None if it is unusable, after recording a problem. is_joined: whether there
    is a [join], even if it is unusable."""
    exposures = read_keys(section, ExposuresConfig, mark=Mark())
    preset = None if exposures.preset is None else PRESETS[exposures.preset]
    defaults: dict[str, object] = {
        "time": event.time,
        "time_unit": event.time_unit or "iso",
        "unit": event.user or "",
        "where": read_where(section, event),
    }
    if preset is not None:
        of_preset = preset.keys(has_columns=source.format in _OF_COLUMNS)
        if section.raw("where") is not None:
            del of_preset["where"]
        defaults |= of_preset
    exposures = completed(section, exposures, **defaults)
    try:
        mark = read_mark(section)
    except RefusedSetting:
        mark = None
    section.done()
    require_order(section, source)
    if mark == Mark():
        mark = Mark() if preset is None else preset.mark
        if mark == Mark():
            section.problem(section.title, _A_MARK[0], None, _A_MARK[1])
    if not exposures.unit and section.raw("unit") is None:
        expected = "the field of the unit, since [event] names no user"
        section.bad("unit", expected, 'name it, such as "user_id"')
    if not exposures.arm and section.raw("arm") is None:
        section.bad("arm", "the field of the arm", 'name it, such as "variant"')
    for name in ("reopen_s", "idle_s") if is_joined else ():
        if section.raw(name) is not None:
            section.bad(name, *_OF_JOIN)
    if mark is None:
        return None
    marks = {} if join is None else join.named_marks
    require_distinct(section, {**marks, section.title: mark}, source)
    _require_retention(section, exposures, windows)
    reopen_s = exposures.reopen_s if join is None else join.reopen_s
    return replace(exposures, mark=mark, reopen_s=reopen_s)


def _require_retention(
    section: Section, exposures: ExposuresConfig, windows: WindowsConfig
) -> None:
    least = windows.size_s + windows.lateness_s + exposures.reopen_s
    if windows.retention_s < least:
        expected = f"at least {least}: size_s, lateness_s and reopen_s together"
        hint = "keep windows until the events in them are counted"
        section.problem("[windows] retention_s", expected, windows.retention_s, hint)


def with_experiments(
    section: Section, exposures: ExposuresConfig, experiments: Mapping[str, ExperimentConfig]
) -> ExposuresConfig:
    """The same, checked against the experiments that take their arms from exposures. After a
    problem, the result must not be used."""
    exposed = {
        name: experiment for name, experiment in experiments.items() if experiment.is_exposed
    }
    if not exposed:
        section.problem(section.title, _NOT_USED[0], None, _NOT_USED[1])
        return exposures
    first, *other_names = exposed
    unit = exposed[first].unit
    for name in other_names:
        if exposed[name].unit != unit:
            expected = f"{unit!r}, the unit of {first}: all experiments with exposures have one"
            hint = "use the same, or give the experiment the field of its arm, `variant`"
            got = exposed[name].unit
            section.problem(f"[experiments.{name}] unit", expected, got, hint)
    for name, experiment in exposed.items():
        if experiment.units == "closed" and exposures.window_s is None:
            section.problem(
                f"[experiments.{name}] units",
                '"so_far", since [exposures] has no window_s, so that no unit is ever closed',
                experiment.units,
                "write [exposures] window_s, such as 1_209_600, or leave units out",
            )
    if exposures.experiment is None and other_names:
        section.bad(
            "experiment",
            f"the field of the experiment, since {len(exposed)} have exposures",
            f"name it; {_listed(list(exposed))} take their arms from exposures",
        )
    return replace(exposures, only="" if exposures.experiment is not None else first)


def _listed(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + suffix


EXPOSURE_KEYS: Final = {**keys_of(Mark), **keys_of(ExposuresConfig)}

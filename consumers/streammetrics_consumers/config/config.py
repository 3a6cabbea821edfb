"""The config file: one frozen dataclass per table, and the values derived from them.

`load_config` reads TOML, applies the overrides (flags and environment, already merged by the
command line), checks everything, and raises one ConfigError that lists every bad setting.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from streammetrics_consumers.config.arms import ArmsConfig
from streammetrics_consumers.config.closing import Closing, closing_of
from streammetrics_consumers.config.column_expressions import (
    NO_COLUMNS,
    ColumnsConfig,
    read_columns,
)
from streammetrics_consumers.config.counted_panels import CountedPanel, counted_panels
from streammetrics_consumers.config.drift import DriftEntry, read_drifts
from streammetrics_consumers.config.event import EventConfig, Field, read_event
from streammetrics_consumers.config.experiment import (
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
)
from streammetrics_consumers.config.experiment_states import (
    experiment_metric_sets,
    experiment_metrics,
    paths_of,
)
from streammetrics_consumers.config.exposures import (
    EXPOSURE_KEYS,
    ExposuresConfig,
    read_exposures,
    with_experiments,
)
from streammetrics_consumers.config.hooks import HookConfig, read_hooks
from streammetrics_consumers.config.join import JoinConfig, OutcomeConfig, read_join
from streammetrics_consumers.config.keys import Key, keys_of, read, secret_keys
from streammetrics_consumers.config.marks import Mark
from streammetrics_consumers.config.metric_entry import MetricEntry
from streammetrics_consumers.config.metrics import (
    MetricConfig,
    read_metrics,
    refuse_clashes,
    refuse_objects,
)
from streammetrics_consumers.config.read_experiments import read_experiments
from streammetrics_consumers.config.section import (
    ALL_KEYS,
    ConfigError,
    Override,
    Problem,
    Section,
    Value,
    did_you_mean,
)
from streammetrics_consumers.config.source import SourceConfig, read_source
from streammetrics_consumers.config.states import (
    MetricSet,
    describe_exposures,
    describe_join,
    exposed_columns,
    fields_of,
    slice_field,
    split_by_condition,
)
from streammetrics_consumers.config.tables import (
    DedupConfig,
    QuarantineConfig,
    ServerConfig,
    SlicesConfig,
    StoreConfig,
    WindowsConfig,
    read_dedup,
    read_quarantine,
    read_slices,
    read_store,
    read_windows,
)
from streammetrics_consumers.model.generation import DeclaredDrift, fingerprint

MAX_FILE_BYTES = 1 << 20

TABLES: Final[Mapping[str, Mapping[str, Key]]] = {
    "source": keys_of(SourceConfig),
    "event": keys_of(EventConfig),
    "windows": keys_of(WindowsConfig),
    "slices": keys_of(SlicesConfig),
    "columns": {},  # the user chooses the names
    "metrics": {},
    "drift": {},
    "store": keys_of(StoreConfig),
    "quarantine": keys_of(QuarantineConfig),
    "experiment": keys_of(ExperimentConfig),
    "experiments": {},
    "layers": {},
    "join": keys_of(JoinConfig),
    "exposures": EXPOSURE_KEYS,
    "dedup": keys_of(DedupConfig),
    "server": keys_of(ServerConfig),
    "hooks": {},
}
# The keys in tables whose names the user chooses, and in lists of tables.
ENTRIES: Final[Mapping[str, Mapping[str, Key]]] = {
    "metrics.NAME": keys_of(MetricEntry),
    "drift.NAME": keys_of(DriftEntry),
    "experiment.guardrails[]": keys_of(GuardrailConfig),
    "experiment.covariates.NAME": keys_of(CovariateConfig),
    "experiments.NAME": keys_of(ArmsConfig),
    "hooks.NAME": keys_of(HookConfig),
    "join.impression": keys_of(Mark),
    "join.outcomes.NAME": {**keys_of(Mark), **keys_of(OutcomeConfig)},
}


@dataclass(frozen=True)
class Config:
    """A checked config.

    `path` is the config file; relative paths in it are already resolved against its folder.
    `experiments` has those of [experiments] by name, and [experiment] under "";
    `experiment_metrics` the metrics that each of them counts.
    """

    path: Path
    source: SourceConfig
    event: EventConfig
    windows: WindowsConfig
    slices: SlicesConfig
    metrics: tuple[MetricConfig, ...]
    store: StoreConfig
    server: ServerConfig
    quarantine: QuarantineConfig = field(default_factory=QuarantineConfig)
    experiments: Mapping[str, ExperimentConfig] = field(default_factory=dict)
    experiment_metrics: Mapping[str, tuple[MetricConfig, ...]] = field(default_factory=dict)
    join: JoinConfig | None = None
    exposures: ExposuresConfig | None = None
    dedup: DedupConfig | None = None
    drifts: tuple[DeclaredDrift, ...] = ()
    columns: ColumnsConfig = NO_COLUMNS
    hooks: tuple[HookConfig, ...] = ()

    @cached_property
    def metric_sets(self) -> tuple[MetricSet, ...]:
        """All metric sets: the metrics by the slices, and those of each experiment."""
        keys = {name: slice_field(self.event, name, self.columns) for name in self.slices.names}
        declared = {} if self.join is None else {"join": self.join.plan(self.windows)}
        if self.exposures is not None:
            declared["exposures"] = self.exposures.plan(self.windows)
        declared |= {} if self.dedup is None else {"dedup": self.dedup.plan}
        slice_set = MetricSet(
            self.slices,
            self.metrics,
            self.event,
            self.windows,
            keys,
            declared,
            drifts=self.drifts,
        )
        experiment_sets = [
            metric_set
            for name, experiment in self.experiments.items()
            for metric_set in experiment_metric_sets(
                name, experiment, self.experiment_metrics[name], self.event, self.windows
            )
        ]
        metric_sets = (
            slice_set,
            *(
                replace(metric_set, declared={**metric_set.declared, **declared})
                for metric_set in experiment_sets
            ),
        )
        return tuple(part for whole in metric_sets for part in split_by_condition(whole))

    @cached_property
    def panels(self) -> tuple[CountedPanel, ...]:
        """The panels that count the metrics of all metric sets."""
        return counted_panels(self.metric_sets)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Every field that is read of an event; the time is the first."""
        return fields_of(self.event, self.metric_sets)

    @cached_property
    def closing(self) -> Closing | None:
        """When events that wait are counted; None if none waits: without [join] and [exposures]."""
        return closing_of(self.join, self.exposures, self.windows)

    @property
    def exposed(self) -> tuple[str, ...]:
        """The experiments that take their arms from exposures."""
        return tuple(name for name, experiment in self.experiments.items() if experiment.is_exposed)

    @property
    def exposed_unit(self) -> str | None:
        """The field of the unit in other events than exposures; None without [exposures]."""
        return self.experiments[self.exposed[0]].unit if self.exposed else None

    @cached_property
    def exposed_columns(self) -> tuple[Field, ...]:
        """The fields of an event that are kept until it is attributed to exposures; none where
        events are joined, which keeps them."""
        is_joined = self.join is not None
        return tuple(exposed_columns(self.fields, self.exposed_unit or "", is_joined=is_joined))

    @property
    def counted(self) -> tuple[MetricConfig, ...]:
        """The metrics of all metric sets."""
        return tuple(metric for metric_set in self.metric_sets for metric in metric_set.metrics)

    @cached_property
    def descriptions(self) -> dict[str, dict[str, object]]:
        """For each counted metric, and for the states of pending events, everything that determines
        which rows are counted and how."""
        descriptions = {
            name: description
            for metric_set in self.metric_sets
            for name, description in metric_set.descriptions.items()
        }
        event, windows = self.event, self.windows
        if self.join is not None:
            descriptions |= describe_join(self.join, event, windows, self.fields)
        if self.exposures is not None and self.closing is not None:
            descriptions |= describe_exposures(
                self.exposures, self.closing, event, windows, self.exposed_columns
            )
        return descriptions

    def fingerprints(self) -> dict[str, str]:
        """The sha256 (hex) of each metric's description. Two runs with equal fingerprints of a
        metric may add to one state; otherwise the descriptions show the difference."""
        return {name: fingerprint(description) for name, description in self.descriptions.items()}

    @property
    def settings(self) -> dict[str, int]:
        """The settings that the descriptions leave out and that a store may show the effect of.
        `refuse_others`: 1 if `[join] others` is "refuse", else 0."""
        join = self.join
        return {
            "lateness_s": self.windows.lateness_s,
            "max_event_bytes": self.source.max_event_bytes,
            **({} if join is None else {"refuse_others": int(join.others == "refuse")}),
            "retention_s": self.windows.retention_s,
        }

    def adjusted_to(self, settings: Mapping[str, int]) -> Config:
        """The config with those of these `settings` that decide on single events: which are too
        large, late, or refused for their kind. Where events wait, lateness_s stays: what decides is
        its sum with reopen_s, which is part of the states."""
        settings, join, windows = {**self.settings, **settings}, self.join, self.windows
        if join is not None:
            join = replace(join, others="refuse" if settings["refuse_others"] else "skip")
        if self.closing is None:
            windows = replace(windows, lateness_s=settings["lateness_s"])
        source = replace(self.source, max_event_bytes=settings["max_event_bytes"])
        return replace(self, source=source, windows=windows, join=join)

    @property
    def hash(self) -> str:
        """The sha256 (hex) of all that determines what is counted and kept: the fingerprints and
        `settings`; no address, path or password is in it."""
        text = json.dumps([self.fingerprints(), self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def load_config(
    path: str | Path, overrides: Mapping[str, Override | Value] | None = None
) -> Config:
    """Read and check a config file.

    overrides: dotted key (`store.url`) to a value that replaces the file's. Texts are converted to
    numbers for numeric keys. An `Override` also names its origin. Raises ConfigError with every bad
    setting.
    """
    path = Path(path)
    problems: list[Problem] = []
    document = _read_toml(path)
    flags = _overrides_by_table(overrides or {}, problems)
    directory, kind = path.resolve().parent, ""

    def section(name: str) -> Section:
        secrets = (ALL_KEYS,) if name == "hooks" else secret_keys(TABLES.get(name, {}))
        table = document.get(name, {})
        return Section(name, table, problems, flags.get(name), source=kind, secrets=secrets)

    def is_given(name: str) -> bool:
        return name in document or name in flags

    for name in document:
        if name not in TABLES:
            hint = did_you_mean(name, list(TABLES))
            problems.append(Problem(f"[{name}]", "a known table", name, hint))
    source = read_source(section("source"), directory)
    kind = source.kind
    waits = {"a [join]": is_given("join"), "[exposures]": is_given("exposures")}
    waiting = next((table for table, is_there in waits.items() if is_there), "")
    windows = read_windows(section("windows"), waiting=waiting)
    event = read_event(section("event"))
    slices = read_slices(section("slices"), event)
    store = read_store(section("store"), directory)
    quarantine = read_quarantine(section("quarantine"), source)
    server = read(section("server"), ServerConfig)
    join = read_join(section("join"), source, event, windows) if is_given("join") else None
    exposure_section = section("exposures")
    exposures = None
    if is_given("exposures"):
        is_joined = is_given("join")
        exposures = read_exposures(
            exposure_section, source, event, windows, join, is_joined=is_joined
        )
    dedup = read_dedup(section("dedup"), source) if is_given("dedup") else None
    columns = read_columns(section("columns"), event)
    metrics = read_metrics(section("metrics"), event, directory, join, columns, waiting=waiting)
    drifts = read_drifts(section("drift"), metrics, windows, directory)
    experiments = read_experiments(section, is_given, event, metrics)
    hooks = read_hooks(section("hooks"), experiments, directory, store.commit_interval_s)
    values, tested = paths_of(experiments, event)
    ids = {} if dedup is None else {"[dedup] event_id": dedup.event_id}
    if exposures is not None:
        exposures = with_experiments(exposure_section, exposures, experiments)
        exposure_paths = {**exposures.named_paths, **ids}
        refuse_objects(exposure_section, {path: where for where, path in exposure_paths.items()})
        tests = {test.path: f"[exposures] where.{test.name}" for test in exposures.where}
        refuse_objects(exposure_section, tests)
    ids |= {} if join is None else {"[join] id": join.id}
    refuse_clashes(section("metrics"), event, slices, metrics, {**values, **ids}, tested)
    if problems:
        raise ConfigError(str(path), problems)
    return Config(
        path=path,
        source=source,
        event=event,
        windows=windows,
        slices=slices,
        metrics=metrics,
        store=store,
        server=server,
        quarantine=quarantine,
        experiments=experiments,
        experiment_metrics={
            name: experiment_metrics(name, experiment, metrics)
            for name, experiment in experiments.items()
        },
        join=join,
        exposures=exposures,
        dedup=dedup,
        drifts=drifts,
        columns=columns,
        hooks=hooks,
    )


# The marks of other encodings, and of UTF-8, which TOML does not have either.
_MARKS: Final = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_TOO_LONG: Final = (
    "whole numbers of at most 64 bits, as TOML 1.0 has",
    "a longer one",
    "write the number with fewer digits, or as a text in quotes",
)


def _read_toml(path: Path) -> dict[str, object]:
    def failed(expected: str, got: object, hint: str) -> ConfigError:
        return ConfigError(str(path), [Problem(str(path), expected, str(got), hint)])

    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise failed("a readable file", error.strerror, "check the path") from None
    if len(data) > MAX_FILE_BYTES:
        raise failed(f"at most {MAX_FILE_BYTES} bytes", "more", "is this a config file?")
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise failed(
                "TOML 1.0 in UTF-8 without a byte-order mark",
                f"the mark of {encoding} at the start",
                "save the file as UTF-8 without a mark (without BOM)",
            )
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise failed("TOML 1.0 in UTF-8", error, "correct the file there") from None
    except ValueError:  # Python does not read more than 4300 digits
        raise failed(*_TOO_LONG) from None
    if any(value.bit_length() > 64 for value in _integers(document)):
        raise failed(*_TOO_LONG)
    return document


def _integers(value: object) -> Iterator[int]:
    """All whole numbers in a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from _integers(element)
    elif isinstance(value, int):
        yield value


def _overrides_by_table(
    overrides: Mapping[str, Override | Value], problems: list[Problem]
) -> dict[str, dict[str, Override]]:
    tables: dict[str, dict[str, Override]] = {}
    for key, value in overrides.items():
        override = value if isinstance(value, Override) else Override(value, key)
        table, _, name = key.partition(".")
        if table not in TABLES or not name:
            problems.append(
                Problem(
                    override.where,
                    "a key of the config",
                    key,
                    "see the list of keys in docs/config.md",
                )
            )
        tables.setdefault(table, {})[name] = override
    return tables

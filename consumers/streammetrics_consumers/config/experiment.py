"""[experiment]: the comparison, and all that must be declared before the data.

An experiment has its own states, by allocation epoch and variant, beside those of the slices, and a
plan that must not change after a look at the data; so the plan is part of the fingerprint of these
states. `experiment/NAME` is the metric NAME of the config, in groups of users if rows of one user
are correlated, and `experiment/units` the observed units. Such names are not valid for metrics of a
config.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from streammetrics import Units
from streammetrics_consumers.config.event import EventConfig, Field
from streammetrics_consumers.config.metrics import Better, MetricConfig, metric_of
from streammetrics_consumers.config.states import EPOCH, MetricSet
from streammetrics_consumers.config.tables import SlicesConfig, WindowsConfig
from streammetrics_consumers.config.users import in_groups, is_of_units, without_groups
from streammetrics_consumers.model.generation import BETTER, FIRST_EPOCH, WATCH_RATES

Cluster = Literal["groups", "none"]
OnSeveral = Literal["keep", "drop", "error"]

UNITS: Final = "units"  # the name of the set of units among the metrics
PREFIX: Final = "experiment/"
BY: Final = (EPOCH, "variant")
MAX_KEYS: Final = 10_000  # epochs times variants, if epochs come from events


@dataclass(frozen=True, slots=True)
class GuardrailConfig:
    """One of `guardrails`: a metric, or `metric.view`, that must not get worse by `margin`.

    higher_is_better: None until it is taken from the metric. required: whether it must be kept
    before anything is shipped; else it only stops what is shown to be worse.
    """

    metric: str
    margin: float
    higher_is_better: bool | None = True
    required: bool = True

    @property
    def plain(self) -> list[object]:
        """The guardrail in plain values; a required one as before there were others."""
        more = [] if self.required else [False]
        return [self.metric, self.margin, self.higher_is_better, *more]


@dataclass(frozen=True, slots=True)
class CovariateConfig:
    """One of `covariates`: a metric, or `metric.view`, known before the exposure, and its slope."""

    metric: str
    theta: float


@dataclass(frozen=True, slots=True)
class ExperimentConfig:
    """[experiment], with fields named like the keys.

    decision: the metrics of the decision, each a metric or `metric.view`. unit: the path of the
    units assigned to variants, None if not declared. epochs: starts of new allocations in
    milliseconds, ascending. shares: weights by variant, one mapping for all epochs, or one for each
    (the first is that before the first start); empty if they are equal. horizon, baseline, mde: see
    `streammetrics.experiments.plan`. mdes: the mde of single metrics, by name in the decision or
    the guardrails, instead of the common horizon or mde. better: by name in the decision, the
    direction if the config declares it ("higher", "lower", "none" or a target). covariates: by name
    in the decision or the guardrails, the covariate that adjusts it (CUPED). watch_rates: whether
    the rate beside each mean over units is one of the guardrails by default. name,
    hypothesis: texts for the page, "" if not declared; days: the planned duration, None if not;
    min_days: the one before which nothing is shipped, None for `days`. sample_ratio_acknowledged:
    why the experiment is believed in spite of an alarm of the sample ratio, "" if it is not.
    """

    control: str
    decision: tuple[str, ...]
    guardrails: tuple[GuardrailConfig, ...] = ()
    unit: str | None = None
    on_several_variants: OnSeveral = "keep"
    cluster: Cluster = "groups"
    horizon: int | None = None
    baseline: float | None = None
    mde: float | None = None
    mdes: Mapping[str, float] = field(default_factory=dict)
    better: Mapping[str, Better] = field(default_factory=dict)
    covariates: Mapping[str, CovariateConfig] = field(default_factory=dict)
    level: float = 0.95
    epochs: tuple[int, ...] = ()
    shares: tuple[Mapping[str, float], ...] = ()
    unit_share: float = 1.0
    max_units: int = 1_000_000
    assignment_salt: str | None = None
    look_every_s: float = 60.0
    watch_rates: bool = True
    name: str = ""
    hypothesis: str = ""
    days: int | None = None
    min_days: int | None = None
    sample_ratio_acknowledged: str = ""

    @property
    def epoch_names(self) -> tuple[str, ...]:
        """The keys of the epochs: first that before any start, then one for each of `epochs`.

        >>> ExperimentConfig("a", ("ctr",), epochs=(86_400_000,)).epoch_names
        ('start', '1970-01-02T00:00:00Z')
        """
        return (FIRST_EPOCH, *map(_iso_utc, self.epochs))

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """The decision metrics for which the config declares that lower is better."""
        return tuple(name for name, said in self.better.items() if said == "lower")

    @property
    def watched(self) -> tuple[str, ...]:
        """The names of the decision metrics and the guardrails."""
        return (*self.decision, *(one.metric for one in self.guardrails))

    @property
    def counted(self) -> tuple[str, ...]:
        """The names of all metrics that it counts: the watched ones and the covariates."""
        return (*self.watched, *(one.metric for one in self.covariates.values()))

    @property
    def plan(self) -> dict[str, object]:
        """The declarations before the data, in plain values.

        It omits `look_every_s`, `name`, `hypothesis`, `days`, `min_days`, `better` and
        `sample_ratio_acknowledged`, which change no interval and may be declared while the
        experiment runs, and the settings that are part of its states: `unit`, `unit_share`,
        `max_units`.
        """
        # A plan without `mdes` or `covariates` has the same description as before these keys.
        mdes = {"mdes": dict(sorted(self.mdes.items()))} if self.mdes else {}
        known = {name: [one.metric, one.theta] for name, one in sorted(self.covariates.items())}
        covariates = {"covariates": known} if known else {}
        return {
            "control": self.control,
            "decision": list(self.decision),
            "guardrails": [one.plain for one in self.guardrails],
            "on_several_variants": self.on_several_variants,
            "cluster": self.cluster,
            "horizon": self.horizon,
            "baseline": self.baseline,
            "mde": self.mde,
            **mdes,
            **covariates,
            "level": self.level,
            "epochs": list(self.epoch_names[1:]),
            "shares": [dict(weights) for weights in self.shares],
        }


def _iso_utc(ms: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    precision = "milliseconds" if ms % 1000 else "seconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def experiment_metrics(
    experiment: ExperimentConfig | None, event: EventConfig, metrics: Sequence[MetricConfig]
) -> tuple[MetricConfig, ...]:
    """The metrics of the decision, the guardrails and the covariates, each once, and the units,
    sorted by name."""
    if experiment is None:
        return ()
    named = experiment.counted
    plain = {found[0].name: found[0] for name in named if (found := metric_of(name, metrics))}
    made = [_watched(experiment, metric) for metric in plain.values()]
    if experiment.unit is not None:
        empty = Units(share=experiment.unit_share, max_units=experiment.max_units)
        inputs = {"units": Field(experiment.unit, "hashed_id")}
        made.append(MetricConfig(PREFIX + UNITS, "Units", {}, inputs, empty))
    return tuple(sorted(made, key=lambda metric: metric.name))


def _watched(experiment: ExperimentConfig, metric: MetricConfig) -> MetricConfig:
    name, plain = PREFIX + metric.name, without_groups(metric.empty)
    inputs = {name: field for name, field in metric.inputs.items() if name in plain.arguments()}
    if is_of_units(plain):
        own = experiment.unit and {"units": Field(experiment.unit, "hashed_id")}
        return MetricConfig(name, metric.type, metric.settings, {**inputs, **(own or {})}, plain)
    if experiment.cluster == "none" or experiment.unit is None:
        return MetricConfig(name, metric.type, metric.settings, inputs, plain)
    empty = in_groups(plain)
    users = next(iter(empty.arguments()))
    inputs = {**inputs, users: Field(experiment.unit, "hashed_id")}
    return MetricConfig(name, "UserGroups", metric.settings, inputs, empty)


def experiment_metric_set(
    experiment: ExperimentConfig,
    metrics: tuple[MetricConfig, ...],
    event: EventConfig,
    windows: WindowsConfig,
) -> MetricSet:
    """The metrics by (epoch, variant). An epoch derived from the time has the path of the time."""
    assert event.variant is not None
    paths = {EPOCH: event.epoch or event.time, "variant": event.variant}
    columns = {EPOCH: EPOCH, "variant": "variant"}
    slices = SlicesConfig((BY,), MAX_KEYS)
    # A new variant changes the plan: more comparisons share one level, and the shares change.
    declared = {"experiment": {**experiment.plan, "variants": sorted(event.variants or ())}}
    said: Mapping[str, object] = {
        BETTER: dict(sorted(experiment.better.items())),
        "name": experiment.name,
        "hypothesis": experiment.hypothesis,
        "days": experiment.days,
        "min_days": experiment.min_days,
        "sample_ratio_acknowledged": experiment.sample_ratio_acknowledged,
    }
    shown = {key: value for key, value in said.items() if value}
    shown |= {} if experiment.watch_rates else {WATCH_RATES: False}
    return MetricSet(slices, metrics, event, windows, paths, columns, declared, shown)


def paths_of(experiment: ExperimentConfig | None, event: EventConfig) -> Mapping[str, str]:
    """The fields that an experiment reads besides those of metrics, by the setting that names
    them."""
    if experiment is None:
        return {}
    found = {"[experiment] unit": experiment.unit, "[event] epoch": event.epoch}
    return {where: path for where, path in found.items() if path is not None}

"""[experiment]: what is compared, and all that must be declared before the data.

Two things follow from it: states of its own, by allocation epoch and variant, beside those of the
slices, and a plan that no look at the data may change, so that it is a part of the fingerprint of
these states. `experiment/NAME` is the metric NAME of the config, in groups of users where rows of
one user are correlated, and `experiment/units` the units that were seen. No metric of a config has
such a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from streammetrics import Units, UserGroups
from streammetrics_consumers.config.event import EventConfig, Field
from streammetrics_consumers.config.metrics import Better, MetricConfig, metric_of
from streammetrics_consumers.config.states import EPOCH, MetricSet
from streammetrics_consumers.config.tables import SlicesConfig, WindowsConfig

Cluster = Literal["groups", "none"]
OnSeveral = Literal["keep", "drop", "error"]

GROUPS: Final = 64
GROUPS_SALT: Final = "streammetrics"
BETTER: Final = "better"  # what directions are called among what is kept to be shown
UNITS: Final = "units"  # what its set of units is called among its metrics
PREFIX: Final = "experiment/"
BY: Final = (EPOCH, "variant")
MAX_KEYS: Final = 10_000  # epochs times variants, where epochs come from events
FIRST_EPOCH: Final = "start"  # the epoch of events before the first declared start


@dataclass(frozen=True, slots=True)
class GuardrailConfig:
    """One of `guardrails`: a metric, or `metric.view`, that must not get worse by `margin`.

    higher_is_better: None where that is still to be read of the metric.
    """

    metric: str
    margin: float
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class CovariateConfig:
    """One of `covariates`: a metric, or `metric.view`, known before the exposure, and its slope."""

    metric: str
    theta: float


@dataclass(frozen=True, slots=True)
class ExperimentConfig:
    """[experiment], with fields named as the keys.

    decision: what the decision rests on, each a metric or `metric.view`. unit: the path of what
    was assigned to variants, None where nobody says. epochs: starts of new allocations in
    milliseconds, rising. shares: weights by variant, one mapping for all epochs, or one for each
    (the first is that before the first start); empty where they are equal. horizon, baseline, mde:
    see `streammetrics.experiments.plan`. mdes: by a name in the decision or the guardrails, an
    mde of its own, in the place of the horizon or mde of all. better: by a name in the decision,
    its direction where the config says it ("higher", "lower", "none" or a target). covariates: by a
    name in the decision or the guardrails, what is taken out of it (CUPED).
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

    @property
    def epoch_names(self) -> tuple[str, ...]:
        """The keys of the epochs that `epochs` starts, and before them that of earlier events.

        >>> ExperimentConfig("a", ("ctr",), epochs=(86_400_000,)).epoch_names
        ('start', '1970-01-02T00:00:00Z')
        """
        return (FIRST_EPOCH, *map(_iso_utc, self.epochs))

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """The decision metrics of which less is better, wherever the config says so."""
        return tuple(name for name, said in self.better.items() if said == "lower")

    @property
    def watched(self) -> tuple[str, ...]:
        """The decision metrics and the guardrails, as they are named there."""
        return (*self.decision, *(one.metric for one in self.guardrails))

    @property
    def counted(self) -> tuple[str, ...]:
        """All that is counted for it, as it is named: what is watched, and the covariates."""
        return (*self.watched, *(one.metric for one in self.covariates.values()))

    @property
    def plan(self) -> dict[str, object]:
        """What is declared before the data, in plain values.

        Not here are `look_every_s`, which decides nothing, `better`, which moves no interval and
        may be declared while it goes on, and what the settings and inputs of its states say:
        `unit`, `unit_share`, `max_units`.
        """
        # A plan without `mdes` or `covariates` is described as it was before there were such keys.
        mdes = {"mdes": dict(sorted(self.mdes.items()))} if self.mdes else {}
        known = {name: [one.metric, one.theta] for name, one in sorted(self.covariates.items())}
        covariates = {"covariates": known} if known else {}
        return {
            "control": self.control,
            "decision": list(self.decision),
            "guardrails": [[g.metric, g.margin, g.higher_is_better] for g in self.guardrails],
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
    """The metrics of the decision, the guardrails and the covariates, each once, and the units; by
    name."""
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
    name = PREFIX + metric.name
    if experiment.cluster == "none" or experiment.unit is None:
        return MetricConfig(name, metric.type, metric.settings, metric.inputs, metric.empty)
    empty = UserGroups(metric.empty, buckets=GROUPS, salt=GROUPS_SALT)
    users = next(iter(empty.arguments()))
    inputs = {**metric.inputs, users: Field(experiment.unit, "hashed_id")}
    return MetricConfig(name, "UserGroups", metric.settings, inputs, empty)


def experiment_metric_set(
    experiment: ExperimentConfig,
    metrics: tuple[MetricConfig, ...],
    event: EventConfig,
    windows: WindowsConfig,
) -> MetricSet:
    """The metrics by (epoch, variant). An epoch that follows from the time has its path."""
    assert event.variant is not None
    paths = {EPOCH: event.epoch or event.time, "variant": event.variant}
    columns = {EPOCH: EPOCH, "variant": "variant"}
    slices = SlicesConfig((BY,), MAX_KEYS)
    # Another variant is another plan: more comparisons share one level, and shares are others.
    declared = {"experiment": {**experiment.plan, "variants": sorted(event.variants or ())}}
    shown = {BETTER: dict(sorted(experiment.better.items()))} if experiment.better else {}
    return MetricSet(slices, metrics, event, windows, paths, columns, declared, shown)


def paths_of(experiment: ExperimentConfig | None, event: EventConfig) -> Mapping[str, str]:
    """The fields that an experiment reads beside those of metrics, by where they are named."""
    if experiment is None:
        return {}
    found = {"[experiment] unit": experiment.unit, "[event] epoch": event.epoch}
    return {where: path for where, path in found.items() if path is not None}

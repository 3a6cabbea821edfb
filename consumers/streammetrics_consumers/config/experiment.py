"""[experiment] and [experiments.NAME]: comparisons, and all that must be declared before the data.

An experiment has its own states, beside those of the slices (see experiment_states.py), and a plan
that must not change after a look at the data; so the plan is part of the fingerprint of these
states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, get_args

from streammetrics_consumers.config.arms import NO_ARMS, DeclaredArms, UnitView
from streammetrics_consumers.config.event import Condition
from streammetrics_consumers.config.keys import Required, ValueKind, key, state_key
from streammetrics_consumers.config.kinds import (
    Choice,
    FieldPath,
    Instant,
    Real,
    Several,
    Single,
    Switch,
    Text,
    Whole,
    finite,
    is_text,
)
from streammetrics_consumers.config.metric_entry import Better
from streammetrics_consumers.config.section import Section
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.generation import FIRST_EPOCH
from streammetrics_consumers.model.times import iso_to_ms

Cluster = Literal["groups", "none"]
OnSeveral = Literal["keep", "drop", "error"]

MAX_EPOCHS: Final = 1000
_A_TIME: Final = '"2026-01-31T00:00:00Z"'
_TIMES: Final = Several(
    "list of times",
    is_text,
    f"a list of at most {MAX_EPOCHS} ISO times in quotes",
    f"write for example [{_A_TIME}]",
    least=0,
    most=MAX_EPOCHS,
    may_repeat=True,
)
_A_SLOPE: Final = (
    "a finite number, the slope",
    "take the slope of an earlier period, from user_slope",
)


@dataclass(frozen=True, slots=True)
class GuardrailConfig:
    """One of `guardrails`: a metric, or `metric.view`, that must not get worse by `margin`.

    higher_is_better: None until it is taken from the metric.
    """

    metric: str = key(Single("metric, or metric.view", str), Required(), "the metric")
    margin: float = key(
        Real(0.0, 1e300),
        Required("a number of 0 or more", "say how much worse it may become", math.nan),
        "how much worse it may become",
    )
    higher_is_better: bool | None = key(
        Switch(), None, "by default as the metric declares, else `true`"
    )
    required: bool = key(
        Switch(),
        True,
        "whether it must be shown to be kept before anything is shipped; `false`: it only "
        "stops what is shown to be worse than the margin, and counts in `level`",
    )

    @property
    def plain(self) -> list[object]:
        """The guardrail in plain values; a required one as before there were others."""
        required = [] if self.required else [False]
        return [self.metric, self.margin, self.higher_is_better, *required]


@dataclass(frozen=True, slots=True)
class CovariateConfig:
    """One of `covariates`: a metric, or `metric.view`, known before the exposure, and its slope."""

    metric: str = key(
        Single("metric, or metric.view", str),
        Required(),
        "another metric of the config, over the same events, that variants cannot affect",
    )
    theta: float = key(
        Single("number", finite, *_A_SLOPE),
        Required(*_A_SLOPE, math.nan),
        "its slope, fixed before the experiment (`user_slope` of an earlier period)",
    )


def _epochs(section: Section, name: str, value: object) -> tuple[int, ...]:
    texts = list(_TIMES.read(section, name, value))
    times, good = iso_to_ms(texts)
    for i, text in enumerate(texts):
        if not good[i]:
            where = section.where(f"{name}[{i}]")
            section.problem(where, "an ISO time with a zone", text, f"write for example {_A_TIME}")
    if good.all() and any(before >= after for before, after in pairwise(times.tolist())):
        section.bad(name, "ascending times", "sort them, each once")
    return tuple(times.tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentConfig:
    """[experiment], or an entry of [experiments].

    decision: each a metric or `metric.view`. unit: the path of the units assigned to variants, None
    if not declared. epochs: starts of new allocations in milliseconds. shares: weights by variant,
    one mapping for all epochs, or one for each; empty if they are equal. horizon, baseline, mde:
    see `streammetrics.experiments.plan`. start, end: in milliseconds.

    better: by name in the decision, the direction if the config declares it ("higher", "lower",
    "none" or a target). position: its place among the entries, from 1 on. layers: the names of
    those in [layers] that it belongs to.
    """

    name: str = key(Text(200), "", "the title of the page, in place of the name of the store")
    hypothesis: str = key(Text(), "", "what is expected, in a sentence; shown below the title")
    days: int | None = key(
        Whole(1, 3660, " of days"),
        None,
        "the planned duration; nothing is shipped before it has passed, see `min_days`",
    )
    min_days: int | None = key(
        Whole(1, 3660, " of days"),
        None,
        "nothing is shipped before this number of days of events; by default `days`",
    )
    sample_ratio_acknowledged: str = key(
        Text(),
        "",
        "why the experiment is believed although its sample ratio had an alarm; it stands in every "
        "report, and ends the alarm",
    )
    control: str = state_key(
        Text(200),
        Required("the variant that others are compared with", "name one of [event] variants", ""),
        "the variant of `event.variants` that all others are compared with",
    )
    decision: tuple[str, ...] = state_key(
        ValueKind("list of 1 to 100 metrics"),
        Required(instead=()),
        'the metrics that decide, as named in the config: `"auc"` for its headline, or '
        '`"auc.gini"` or `"auc.confusion(0.2).precision"` for another view',
    )
    guardrails: tuple[GuardrailConfig, ...] = state_key(
        ValueKind("list of tables"), (), "metrics that must not get worse"
    )
    watch_rates: bool = state_key(
        Switch(),
        True,
        "beside each mean of a `UnitMean` or `Moments` of `decision` or `guardrails` with a better "
        "direction the rate of values above 0, of units or of rows, is a guardrail, which stops "
        "what is shown to be worse and counts in `level`; without harm nothing waits for it",
    )
    lower_is_better: tuple[str, ...] = key(
        Several(
            "list of metrics",
            is_text,
            "a list of metrics of decision or guardrails",
            'write for example ["bounce"]',
            least=0,
            may_repeat=True,
        ),
        (),
        'metrics of `decision` or `guardrails` for which lower is better, such as `["bounce"]`; '
        'equivalent to `better = "lower"` for each of them',
    )
    unit: str | None = state_key(
        FieldPath(), None, "the field of the assigned unit, by default the role `user`"
    )
    cluster: Cluster = state_key(
        Choice(get_args(Cluster)),
        "groups",
        "`groups`: rows of one unit are correlated, so rows are hashed by unit into 64 groups; "
        "`none`: rows are independent",
    )
    on_several_variants: OnSeveral = state_key(
        Choice(get_args(OnSeveral)),
        "keep",
        "units seen in several variants: `keep` counts them; with `error` the experiment is not "
        "trusted; `drop` removes their rows from all variants when results are read. `drop` "
        "needs metrics whose states keep the rows of each unit apart: GroupedAUC and "
        "GroupedScores, with either `cluster`, whose groups or lists are the unit, with `ids` "
        "not `integer`, no weights, and `unit_share` 1",
    )
    horizon: int | None = state_key(
        Whole(2, 10**15, " of units"),
        None,
        "units of all variants at the planned end; always-valid intervals are narrowest at half "
        "of it",
    )
    baseline: float | None = state_key(
        Real(0.0, 1.0, is_open=True), None, "the rate of an earlier period; used with `horizon`"
    )
    mde: float | None = state_key(
        Real(0.0, math.inf, is_open=True),
        None,
        "instead of `horizon` and `baseline`: the smallest absolute effect that matters",
    )
    mdes: Mapping[str, float] = state_key(
        ValueKind("table of numbers"),
        {},
        "`mde` for metrics of another scale, such as an AUC beside a rate: `{ auc = 0.005, "
        '"rank.NDCG@10" = 0.01 }`, named as in `decision` or `guardrails`; replaces `horizon` or '
        "`mde` for them",
    )
    covariates: Mapping[str, CovariateConfig] = state_key(
        ValueKind("table of tables"),
        {},
        "covariates, known before the experiment, that adjust metrics (CUPED): `{ revenue = { "
        'metric = "revenue_before", theta = 0.4 } }`. Only with `cluster = "groups"`',
    )
    level: float = state_key(
        Real(0.5, 1.0, is_open=True), 0.95, "the level of all decisions together"
    )
    epochs: tuple[int, ...] = state_key(
        ValueKind(_TIMES.text, _epochs),
        (),
        "ascending ISO times at which another allocation began; the epoch before the first is "
        "called `start`. Times after all counted events may be appended while the experiment "
        "runs (with a `horizon`, only with the shares of the last epoch). Not with `event.epoch`",
    )
    shares: tuple[Mapping[str, float], ...] = state_key(
        ValueKind("table, or a list of tables"),
        (),
        "planned weights, such as `{ control = 9, new = 1 }`, by default equal; with `epochs` "
        "also a list of tables, the first for `start`",
    )
    unit_share: float = state_key(
        Real(2.0**-32, 1.0),
        1.0,
        "the share of units whose ids (hashed) are kept, the same units everywhere",
    )
    max_units: int = state_key(
        Whole(1, 1_000_000_000),
        1_000_000,
        "with more kept units than this in a window or total of a variant, their number is "
        "undefined",
    )
    assignment_salt: str | None = key(
        Text(),
        None,
        "the salt that assigned units to variants; refused if the 64 groups use the same one",
    )
    look_every_s: float = key(
        Real(1.0, 86_400.0, " of seconds"), 60.0, "the time between two looks"
    )
    metrics: tuple[str, ...] = state_key(
        ValueKind("list of metrics"),
        (),
        "further metrics of the config that it counts and shows, without a verdict; some may be "
        "added while it runs",
    )
    interactions: bool = state_key(
        Switch(),
        False,
        "whether it is asked if the effects on its decision metrics differ between the arms of "
        "other experiments. Then the sums of 10,000 units of a window and an arm are counted for "
        "each `Ratio`, `Moments`, `UnitMean` or `UnitRate` of `decision` that needs no weights, "
        "which must be finite. It may be changed while the experiment runs. Arms that come from "
        "`[exposures]` have none",
    )
    where: tuple[Condition, ...] = state_key(
        ValueKind("table"),
        (),
        "the conditions that its events meet besides those of `event.where`, written alike; other "
        "events are not its events",
        shown="`{}`",
    )
    start: int | None = state_key(
        Instant(), None, "the time of its first events; earlier ones are not its events"
    )
    end: int | None = state_key(
        Instant(),
        None,
        "events from this time on are not its events. It may be declared or moved while the "
        "experiment runs, if both times are after all counted events",
    )
    archived: bool = key(Switch(), False, "whether lists of experiments leave it out")
    better: Mapping[str, Better] = field(default_factory=dict)
    arms: DeclaredArms = NO_ARMS
    position: int = 0
    layers: tuple[str, ...] = ()

    @property
    def epoch_names(self) -> tuple[str, ...]:
        """The keys of the epochs: first that before any start, then one for each of `epochs`.

        >>> ExperimentConfig(control="a", decision=("ctr",), epochs=(86_400_000,)).epoch_names
        ('start', '1970-01-02T00:00:00Z')
        """
        return (FIRST_EPOCH, *map(iso_utc, self.epochs))

    @property
    def watched(self) -> tuple[str, ...]:
        """The names of the decision metrics and the guardrails."""
        return (*self.decision, *(guardrail.metric for guardrail in self.guardrails))

    @property
    def counted(self) -> tuple[str, ...]:
        """The names of all metrics that it counts: the watched ones, the covariates, and others."""
        covariates = (covariate.metric for covariate in self.covariates.values())
        return (*self.watched, *covariates, *self.metrics)

    @property
    def is_named(self) -> bool:
        """Whether it is an entry of [experiments], whose events need not be events of it."""
        return self.arms.is_named

    @property
    def units(self) -> UnitView:
        """Of which exposed units the means and rates of units are that the plan compares."""
        return self.arms.units

    @property
    def is_exposed(self) -> bool:
        """Whether the arm of an event is that of the first exposure of its unit."""
        return self.arms.is_exposed

    @property
    def plan(self) -> dict[str, object]:
        """The declarations before the data, in plain values.

        It omits `look_every_s`, `name`, `hypothesis`, `days`, `min_days`, `better`, `archived`
        and `sample_ratio_acknowledged`, which change no interval and may be declared while the
        experiment runs, and the settings that are part of its states: `unit`, `unit_share`,
        `max_units`.
        """
        # A plan without `mdes` or `covariates` has the same description as before these keys.
        mdes = {"mdes": dict(sorted(self.mdes.items()))} if self.mdes else {}
        slopes = {
            name: [covariate.metric, covariate.theta]
            for name, covariate in sorted(self.covariates.items())
        }
        covariates = {"covariates": slopes} if slopes else {}
        # As one without the keys that say which events are its own, and which values are one arm.
        rows: dict[str, object] = {
            "start": self.start,
            "end": self.end,
            "where": [condition.plain for condition in self.where] or None,
            "arms": {arm: list(values) for arm, values in sorted(self.arms.merged.items())} or None,
            "units": None if self.units == "so_far" else self.units,
        }
        return {
            "control": self.control,
            "decision": list(self.decision),
            "guardrails": [guardrail.plain for guardrail in self.guardrails],
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
            **{name: value for name, value in rows.items() if value is not None},
        }

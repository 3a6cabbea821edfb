"""An entry of [metrics]: the keys that are not settings of its metric, and what they make of it.

`cluster` and `models` count its rows in groups of users. Rows of one user are correlated; states in
64 groups of users know how much, so that intervals and drifts are those of users. An experiment
counts its metrics in the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streammetrics import (
    Accumulator,
    InputError,
    Paired,
    SettingsError,
    UnitMean,
    UnitRate,
    UserGroups,
)
from streammetrics.results import value_of
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.keys import Required, ValueKind, key
from streammetrics_consumers.config.kinds import Choice, Several, Single, finite
from streammetrics_consumers.config.section import RefusedSetting, Section, did_you_mean
from streammetrics_consumers.model.paths import is_path

Better: TypeAlias = str | float  # one of WORDS, or a target

MAX_VIEWS: Final = 20  # that an entry names
WORDS: Final = ("higher", "lower", "none")
GROUPS: Final = 64
GROUPS_SALT: Final = "streammetrics"
CLUSTERS: Final = ("groups", "none")


def _better(section: Section, name: str, value: object) -> Better:
    if isinstance(value, str) and value in WORDS:
        return value
    target = finite(value)
    if target is None:
        hint = did_you_mean(value, WORDS) if isinstance(value, str) else 'write for example "lower"'
        section.refuse(name, '"higher", "lower", "none", or a target number', hint)
    return target


def _as_table(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None


_DIRECTION: Final[ValueKind[Better]] = ValueKind(
    '`"higher"`, `"lower"`, `"none"` or a number', _better
)


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """The keys of an entry of [metrics] that are not settings of its metric."""

    type: str = key(
        Single("name of a metric", str),
        Required(instead=""),
        "the metric; its settings are further keys of this table",
    )
    inputs: Mapping[str, object] = key(
        Single("table", _as_table, "a table", 'write { scores = "propensity" }'),
        {},
        "the fields of arguments that have no role, or another field than their role",
    )
    models: tuple[str, ...] | None = key(
        Several(
            "two fields",
            is_path,
            "the fields of two models",
            'write models = ["score", "score_of_the_other"]',
            least=2,
            most=2,
        ),
        None,
        "scores (or predictions) of two models, as in `Paired`",
    )
    cluster: str | None = key(
        Choice(CLUSTERS),
        None,
        "`groups`: rows of one user are correlated, so they are hashed by the role `user` into "
        "64 groups, and intervals and drifts are those of users; `none`: rows are independent. "
        "With `models` by default `groups` if `event.user` is named, else `none`",
    )
    better: Better | None = key(
        _DIRECTION,
        None,
        "the better direction, or a target; by default that of its view",
    )
    where: str | None = key(
        ValueKind("expression"),
        None,
        "a condition such as `\"surface == 'search' and dwell_s >= 30\"`, see *Columns*: "
        "the metric counts only events that meet it, and only they need its fields",
    )
    views: tuple[str, ...] = key(
        ValueKind('list of views, such as `["quantile(0.999)"]`'),
        (),
        "views that tables, the page and Prometheus show beside the main ones of the metric",
    )


def read_views(section: Section, empty: Accumulator) -> tuple[str, ...]:
    """`views` of an entry of [metrics]; those that are no views become problems."""
    expected, hint = f"a list of at most {MAX_VIEWS} views", 'write for example ["quantile(0.999)"]'
    entries = section.elements("views", expected, hint, most=MAX_VIEWS)
    result = without_groups(empty).compute()
    views: dict[str, None] = {}
    for i, view in entries.table.items():
        try:
            value_of(result, view if isinstance(view, str) else "")
            views["".join(str(view).split())] = None
        except InputError as error:
            is_unknown = error.where == "view"  # else the view is known, and its arguments are not
            entries.bad(
                i, error.expected if is_unknown else f"a view with {error.expected}", error.hint
            )
    return tuple(views)


def group_users(metric: Accumulator) -> UserGroups:
    """The metric in groups of users."""
    return UserGroups(metric, buckets=GROUPS, salt=GROUPS_SALT)


def is_of_units(metric: Accumulator) -> bool:
    """Whether a metric is a mean or a rate over users, which tells them apart by itself."""
    return isinstance(metric, UnitMean | UnitRate)


def without_groups(metric: Accumulator) -> Accumulator:
    """The metric itself, if it is counted in groups of users."""
    return metric.metric if isinstance(metric, UserGroups) else metric


def count_users(
    section: Section, entry: MetricEntry, event: EventConfig, metric: Accumulator
) -> tuple[Accumulator, dict[str, str]]:
    """The metric as it is counted, and the field of each model by argument.

    With `models` it is Paired, in groups by default if [event] names the user, unless the metric
    has groups of its own.
    """
    cluster, place = entry.cluster, "cluster"
    if cluster is None and entry.models is not None:
        is_grouped = event.user is not None and "groups" not in metric.arguments()
        cluster = CLUSTERS[0] if is_grouped else CLUSTERS[1]
    try:
        counted = group_users(metric) if cluster == CLUSTERS[0] else metric
        if entry.models is None:
            return counted, {}
        place = "models"
        counted = Paired(counted)
    except SettingsError as error:
        section.problem(section.where(place), error.expected, error.got, error.hint)
        raise RefusedSetting from None
    column = (counted.columns or ("",))[0]
    return counted, dict(zip((f"{column}_a", f"{column}_b"), entry.models, strict=True))

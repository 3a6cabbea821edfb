"""Users of a metric: `cluster` and `models` of its entry, which count its rows in groups of users.

Rows of one user are correlated. States in 64 groups of users know how much, so that intervals and
drifts are those of users; an experiment counts its metrics in the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streammetrics import Accumulator, Paired, SettingsError, UnitMean, UnitRate, UserGroups
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.section import Section, did_you_mean, is_path

GROUPS: Final = 64
GROUPS_SALT: Final = "streammetrics"
CLUSTERS: Final = ("groups", "none")


def in_groups(metric: Accumulator) -> UserGroups:
    """The metric in groups of users."""
    return UserGroups(metric, buckets=GROUPS, salt=GROUPS_SALT)


def is_of_units(metric: Accumulator) -> bool:
    """Whether a metric is a mean or a rate over users, which tells them apart by itself."""
    return isinstance(metric, UnitMean | UnitRate)


def without_groups(metric: Accumulator) -> Accumulator:
    """The metric itself, if it is counted in groups of users."""
    return metric.metric if isinstance(metric, UserGroups) else metric


def read_users(
    section: Section,
    where: str,
    table: Mapping[str, object],
    event: EventConfig,
    metric: Accumulator,
) -> tuple[Accumulator, dict[str, str]] | None:
    """The metric as it is counted, and the field of each model by argument; None after a problem.

    With `models` it is Paired, in groups by default if [event] names the user, unless the metric
    has groups of its own.
    """
    paths, cluster = table.get("models"), table.get("cluster")
    if cluster is not None and cluster not in CLUSTERS:
        hint = did_you_mean(cluster, CLUSTERS) if isinstance(cluster, str) else "put it in quotes"
        section.problem(f"{where}.cluster", '"groups" or "none"', cluster, hint)
        return None
    if cluster is None and paths is not None:
        is_grouped = event.user is not None and "groups" not in metric.arguments()
        cluster = CLUSTERS[0] if is_grouped else CLUSTERS[1]
    place = f"{where}.cluster"
    try:
        counted = in_groups(metric) if cluster == CLUSTERS[0] else metric
        if paths is None:
            return counted, {}
        place = f"{where}.models"
        if (
            not isinstance(paths, list)
            or len(paths) != 2
            or not all(map(is_path, paths))
            or paths[0] == paths[1]
        ):
            hint = 'write models = ["score", "score_of_the_other"]'
            section.problem(place, "the fields of two models", paths, hint)
            return None
        counted = Paired(counted)
    except SettingsError as error:
        section.problem(place, error.expected, error.got, error.hint)
        return None
    column = (counted.columns or ("",))[0]
    return counted, dict(zip((f"{column}_a", f"{column}_b"), paths, strict=True))

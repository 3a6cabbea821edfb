"""What the measures of a metric of lists must be given, beside labels and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from streammetrics import Accumulator, Measure, Paired, UserGroups, parse_measure


def reads_subtopics(metric: Accumulator) -> bool:
    """Whether a measure of the metric reads subtopics, without which it refuses relevant items."""
    return any(measure.subtopics for measure in _measures(metric))


def recall_of_lists(metric: Accumulator) -> Measure | None:
    """A measure for which the metric refuses lists without the number of their relevant items."""
    if isinstance(metric, Paired | UserGroups):
        return recall_of_lists(metric.metric)
    if metric.settings().get("complete_lists") is not False:
        return None
    return next((measure for measure in _measures(metric) if measure.has_recall), None)


def _measures(metric: Accumulator) -> list[Measure]:
    if isinstance(metric, Paired | UserGroups):
        return _measures(metric.metric)
    return [*map(parse_measure, cast("Sequence[str]", metric.settings().get("measures", ())))]

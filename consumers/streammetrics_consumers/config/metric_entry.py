"""The keys of an entry of [metrics] that are not settings of its metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streammetrics import Accumulator, InputError
from streammetrics.results import value_of
from streammetrics_consumers.config.keys import Required, ValueKind, key
from streammetrics_consumers.config.kinds import Choice
from streammetrics_consumers.config.section import Section, did_you_mean
from streammetrics_consumers.config.users import CLUSTERS, without_groups

Better: TypeAlias = str | float  # one of WORDS, or a target

MAX_VIEWS: Final = 20  # that an entry names
WORDS: Final = ("higher", "lower", "none")


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """The keys of an entry of [metrics] that are not settings of its metric."""

    type: str = key(
        ValueKind("name of a metric"),
        Required(),
        "the metric; its settings are further keys of this table",
    )
    inputs: Mapping[str, str] = key(
        ValueKind("table"),
        {},
        "the fields of arguments that have no role, or another field than their role",
    )
    models: tuple[str, str] | None = key(
        ValueKind("two fields"), None, "scores (or predictions) of two models, as in `Paired`"
    )
    cluster: str | None = key(
        Choice(CLUSTERS),
        None,
        "`groups`: rows of one user are correlated, so they are hashed by the role `user` into "
        "64 groups, and intervals and drifts are those of users; `none`: rows are independent. "
        "With `models` by default `groups` if `event.user` is named, else `none`",
    )
    better: Better | None = key(
        ValueKind('`"higher"`, `"lower"`, `"none"` or a number'),
        None,
        "the better direction, or a target; by default that of its view",
    )
    views: tuple[str, ...] = key(
        ValueKind('list of views, such as `["quantile(0.999)"]`'),
        (),
        "views that tables, the page and Prometheus show beside the main ones of the metric",
    )


def read_better(section: Section, where: str, table: Mapping[str, object]) -> Better | None:
    """`better` of an entry of [metrics]; None if it is absent or invalid."""
    better = table.get("better")
    if better is None:
        return None
    if isinstance(better, str) and better in WORDS:
        return better
    if isinstance(better, (int, float)) and not isinstance(better, bool) and math.isfinite(better):
        return float(better)
    hint = did_you_mean(better, WORDS) if isinstance(better, str) else 'write for example "lower"'
    expected = '"higher", "lower", "none", or a target number'
    section.problem(f"{where}.better", expected, better, hint)
    return None


def read_views(
    section: Section, where: str, table: Mapping[str, object], empty: Accumulator
) -> tuple[str, ...]:
    """`views` of an entry of [metrics]; those that are no views become problems."""
    entries = table.get("views", [])
    if not isinstance(entries, list) or len(entries) > MAX_VIEWS:
        hint = 'write for example ["quantile(0.999)"]'
        section.problem(f"{where}.views", f"a list of at most {MAX_VIEWS} views", entries, hint)
        return ()
    result = without_groups(empty).compute()
    views: dict[str, None] = {}
    for i, view in enumerate(entries):
        try:
            value_of(result, view if isinstance(view, str) else "")
            views["".join(str(view).split())] = None
        except InputError as error:
            is_unknown = error.where == "view"  # else the view is known, and its arguments are not
            expected = error.expected if is_unknown else f"a view with {error.expected}"
            section.problem(f"{where}.views[{i}]", expected, view, error.hint)
    return tuple(views)

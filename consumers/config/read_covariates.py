"""Reading `covariates` of [experiment]: what is taken out of which metric, and by which slope."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from consumers.config.experiment import CovariateConfig, ExperimentConfig
from consumers.config.schema import Section, did_you_mean

EXAMPLE = 'write for example { revenue = { metric = "revenue_before", theta = 0.4 } }'


def read_covariates(
    section: Section, found: ExperimentConfig, is_metric: Callable[[str, object], bool]
) -> Mapping[str, CovariateConfig]:
    """The covariates by the name of the metric; is_metric: whether a name, which stands somewhere,
    is one of a metric, and notes a problem where it is not."""
    tables = section.raw("covariates")
    if tables is None:
        return {}
    if not isinstance(tables, dict):
        section.bad("covariates", "a table of covariates, by metric", EXAMPLE)
        return {}
    if tables and found.cluster != "groups":
        todo = 'a covariate is taken out of groups of users: write cluster = "groups"'
        section.bad("covariates", 'nothing, since cluster is "none"', todo)
    read = {}
    for name, table in tables.items():
        where = f"[experiment] covariates.{name}"
        if name not in found.watched:
            todo = did_you_mean(name, found.watched) if found.watched else "name it there as well"
            section.problem(
                "[experiment] covariates", "names as in decision or guardrails", name, todo
            )
        elif not isinstance(table, dict):
            section.problem(where, "a table", table, EXAMPLE)
        elif (one := _read_one(section, name, table, is_metric)) is not None:
            read[name] = one
    return read


def _read_one(
    section: Section,
    name: str,
    table: Mapping[str, object],
    is_metric: Callable[[str, object], bool],
) -> CovariateConfig | None:
    where = f"[experiment] covariates.{name}"
    one = Section(where.removeprefix("[experiment] "), table, section.problems)
    metric, theta = one.raw("metric"), one.raw("theta")
    one.done()
    good = is_metric(f"{where}.metric", metric)
    if good and metric == name:
        section.problem(f"{where}.metric", "another metric than the one it is taken out of", metric,
                        "name what was known before the exposure")  # fmt: skip
        good = False
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not math.isfinite(theta):
        section.problem(f"{where}.theta", "a finite number, the slope", theta,
                        "take the slope of an earlier period, from user_slope")  # fmt: skip
        return None
    return CovariateConfig(str(metric), float(theta)) if good else None

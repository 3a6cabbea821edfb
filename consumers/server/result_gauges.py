"""What was counted, for Prometheus: values, bounds, intervals and effects as gauges.

Shown are the views that a metric is known by, since the start (`window="total"`) and over the
latest window (`window="latest"`); effects since the start. Variants and slices come from the stream
and there may be any number of them: at most `ROWS` rows of each window and `EFFECTS` effects are
shown, those of groupings with few names first, and a gauge says how many are left out. A row has
one to six series.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from consumers.results.query import OTHER, Slice
from consumers.results.results import ComparisonRow, ResultRow, Results
from consumers.results.verdict_words import margin_of
from consumers.server.join_gauges import join_gauges
from streammetrics.experiments import (
    ACTIONS,
    VERDICTS,
    Contamination,
    Recommendation,
    SampleRatioFound,
)

ROWS: Final = 1000  # of one window
EFFECTS: Final = 200

_ROW: Final = ("metric", "view", "window", "variant", "slice")
_EFFECT: Final = ("metric", "view", "control", "treatment")
_EFFECT_GAUGES: Final = {
    "streammetrics_effect": "Treatment less control, since the start",
    "streammetrics_effect_lower": "Lower end of its always-valid interval, adjusted for decisions",
    "streammetrics_effect_upper": "Upper end of its always-valid interval, adjusted for decisions",
    "streammetrics_effect_pvalue": "Always-valid p-value of no effect, of this comparison alone",
    "streammetrics_effect_holm_pvalue": "The same with Holm's adjustment among the decisions",
    "streammetrics_effect_e_value": "E-value of the last look against no effect",
    "streammetrics_effect_margin": "Effect at which a guardrail is broken",
}
_ROW_GAUGES: Final = {
    "streammetrics_result": "Value of a metric",
    "streammetrics_result_low": "Certain bound below: the exact value is not less",
    "streammetrics_result_high": "Certain bound above: the exact value is not greater",
    "streammetrics_result_lower": "Lower end of the interval of one look",
    "streammetrics_result_upper": "Upper end of the interval of one look",
    "streammetrics_result_rows": "Rows that were counted for it",
}


def result_gauges(found: Mapping[str, Results]) -> Iterator[Metric]:
    """The families of one scrape, from the results by window; where there are none, one gauge says
    so."""
    yield GaugeMetricFamily("streammetrics_results_up", "Whether the results can be read",
                            value=float(bool(found)))  # fmt: skip
    if not found:
        return
    rows, left_out = [], 0
    for window, results in found.items():
        shown = sorted((row for row in results.rows if row.headline), key=_few_names_first)
        rows += [(window, row) for row in shown[:ROWS]]
        left_out += len(shown[ROWS:])
    total = found["total"]
    yield GaugeMetricFamily("streammetrics_results_events",
                            "Events that had been counted when the results were read",
                            value=total.rows_read)  # fmt: skip
    yield from _row_gauges(rows)
    yield from _effect_gauges(total.comparisons[:EFFECTS])
    if total.recommendation is not None:
        yield from _recommendation(total.recommendation)
    if total.contamination is not None:
        yield from _contamination(total.contamination)
    if total.srm is not None:
        yield from _sample_ratio(total.srm)
    yield from join_gauges(total.join)
    left_out += len(total.comparisons[EFFECTS:])
    yield GaugeMetricFamily("streammetrics_results_left_out",
                            "Rows and effects that are too many to be shown here",
                            value=left_out)  # fmt: skip


def _few_names_first(row: ResultRow) -> int:
    other = row.slice.get(OTHER)
    return len(other) if isinstance(other, tuple) else len(row.slice)


def _row_gauges(rows: Sequence[tuple[str, ResultRow]]) -> Iterator[Metric]:
    families = _families(_ROW_GAUGES, _ROW)
    seen: set[tuple[str, ...]] = set()
    for window, row in rows:
        labels = (row.metric, row.view, window, *slice_labels(row.slice))
        if labels in seen:  # a number and a text that read alike
            continue
        seen.add(labels)
        interval = row.interval
        ends = (math.nan, math.nan) if interval is None else (interval.lower, interval.upper)
        counted = float(row.counts.get("rows", math.nan))
        figures = (row.value, row.low, row.high, *ends, counted)
        for i, (family, figure) in enumerate(zip(families, figures, strict=True)):
            if i == 0 or not math.isnan(figure):
                family.add_metric(labels, figure)
    yield from families


def _effect_gauges(rows: Sequence[ComparisonRow]) -> Iterator[Metric]:
    families = _families(_EFFECT_GAUGES, _EFFECT)
    verdicts = GaugeMetricFamily(
        "streammetrics_effect_verdict", "1 for the verdict on it, and 0 for each other",
        labels=[*_EFFECT, "verdict"],
    )  # fmt: skip
    for row in rows:
        finding, one = row.finding, row.finding.contrast
        labels = (
            one.metric,
            one.view,
            _sayable(one.control_variant),
            _sayable(one.treatment_variant),
        )
        adjusted = math.nan if finding.holm is None else finding.holm
        always = (
            finding.anytime_lower, finding.anytime_upper, finding.anytime_pvalue, adjusted,
            finding.e_value,
        )  # fmt: skip
        margin = math.nan if one.safeguard is None else margin_of(one.safeguard)
        shown = [math.nan] * len(always) if finding.reason else always
        for family, figure in zip(
            families, (one.comparison.effect_size, *shown, margin), strict=True
        ):
            if family is families[0] or not math.isnan(figure):
                family.add_metric(labels, figure)
        for verdict in VERDICTS:
            verdicts.add_metric([*labels, verdict], float(verdict == finding.verdict))
    yield from (*families, verdicts)


def _recommendation(found: Recommendation) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "streammetrics_recommendation", "1 for what to do now, and 0 for each other",
        labels=["action"],
    )  # fmt: skip
    for action in ACTIONS:
        family.add_metric([action], float(action == found.action))
    yield family


def _contamination(found: Contamination) -> Iterator[Metric]:
    if not math.isnan(found.share):
        yield GaugeMetricFamily("streammetrics_units_in_several_variants_share",
                                "Share of all units that were seen in several variants",
                                value=found.share)  # fmt: skip


def _sample_ratio(found: SampleRatioFound) -> Iterator[Metric]:
    units = GaugeMetricFamily(
        "streammetrics_units", "Units of each variant, since the start", labels=["variant"]
    )
    for variant, count in found.counts:
        units.add_metric([_sayable(variant)], count)
    yield units
    if not found.reason:
        yield GaugeMetricFamily("streammetrics_sample_ratio_e_value",
                                "E-value against the declared shares of the variants",
                                value=found.e_value)  # fmt: skip


def _families(gauges: dict[str, str], labels: Sequence[str]) -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(name, what, labels=labels) for name, what in gauges.items()]


def slice_labels(slice_: Slice) -> tuple[str, str]:
    """The labels `variant` and `slice`: the variant, and every other name with its value. The sum
    of the keys past `max_keys` says which names they are of.

    >>> slice_labels({"variant": "bts", "phase": "eval"}), slice_labels({})
    (('bts', 'phase=eval'), ('', ''))
    """
    other = slice_.get(OTHER)
    if isinstance(other, tuple):
        return OTHER if "variant" in other else "", _sayable(f"{OTHER}={' '.join(other)}")
    rest = (f"{_escaped(name)}={_escaped(_text(value))}" for name, value in sorted(slice_.items())
            if name != "variant")  # fmt: skip
    return (_text(slice_["variant"]) if "variant" in slice_ else ""), ",".join(rest)


def _text(value: object) -> str:
    return "null" if value is None else _sayable(str(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _sayable(text: str) -> str:
    """A text as UTF-8 can have it. The decoders keep slices short."""
    return text.encode("utf-8", "backslashreplace").decode()

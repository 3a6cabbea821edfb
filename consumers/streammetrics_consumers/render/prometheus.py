"""Answers for Prometheus: values, bounds, intervals and effects as gauges, and the state of a join.

The gauges show headline views since the start (`window="total"`) and over the latest window
(`window="latest"`), and effects since the start. Variants and slices come from the stream and may
be many: at most `ROWS` rows of each window, `EFFECTS` effects, `PAIRS` pairs of experiments and as
many interactions are shown, groupings with few names, pairs with an alarm and effects that differ
first, and a gauge counts those left out. A row has one to eight series.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from streammetrics.experiments import ACTIONS, VERDICTS
from streammetrics_consumers.query.answers import (
    ExperimentsAnswer,
    Join,
    JoinOutcome,
    ResultsAnswer,
)
from streammetrics_consumers.query.exposed_answers import ExposureStatus
from streammetrics_consumers.query.query import OTHER, Slice
from streammetrics_consumers.query.rows import SliceRow, WindowFinding
from streammetrics_consumers.query.slices import VARIANT
from streammetrics_consumers.render.cells import (
    band_bounds,
    headline_rows,
    interval_bounds,
    names_of,
)

ROWS: Final = 1000  # of one window
EFFECTS: Final = 200
PAIRS: Final = 200  # of experiments

_ROW: Final = ("metric", "view", "window", "variant", "slice")
_EFFECT: Final = ("metric", "view", "control", "treatment")
EXPERIMENT: Final = "experiment"  # the label of those with a name; others are without it
_EFFECT_GAUGES: Final = {
    "streammetrics_effect": "Treatment minus control, since the start",
    "streammetrics_effect_lower": "Lower end of its always-valid interval, adjusted for decisions",
    "streammetrics_effect_upper": "Upper end of its always-valid interval, adjusted for decisions",
    "streammetrics_effect_pvalue": "Always-valid p-value of no effect, of this comparison alone",
    "streammetrics_effect_holm_pvalue": "Always-valid p-value, adjusted for all decisions by Holm",
    "streammetrics_effect_e_value": "E-value of the last look against no effect",
    "streammetrics_effect_margin": "Effect at which a guardrail is broken",
}
_ROW_GAUGES: Final = {
    "streammetrics_result": "Value of a metric",
    "streammetrics_result_low": "Certain lower bound: the exact value is not less",
    "streammetrics_result_high": "Certain upper bound: the exact value is not greater",
    "streammetrics_result_lower": "Lower end of the interval of one look",
    "streammetrics_result_upper": "Upper end of the interval of one look",
    "streammetrics_result_rows": "Rows counted for the value",
    "streammetrics_result_band_lower": "Lower end of the band of quantiles, at all looks together",
    "streammetrics_result_band_upper": "Upper end of the band of quantiles, at all looks together",
}


def result_gauges(
    answers: Mapping[str, ResultsAnswer], experiments: Mapping[str, ResultsAnswer] = {}
) -> Iterator[Metric]:
    """The metric families of one scrape, from the results by window; without any, `results_up`.
    experiments: results since the start of those with a name, by it."""
    yield _gauge("results_up", "Whether the results can be read", bool(answers))
    if not answers:
        return
    rows: dict[tuple[str, ...], SliceRow] = {}  # by their labels
    left_out = 0
    for window, results in answers.items():
        shown = sorted(headline_rows(results), key=_fewest_names)
        for row in shown[:ROWS]:
            labels = row.metric, row.view, window, *slice_labels(row.slice)
            left_out += labels in rows  # a number, or null, and a string with the same text
            rows.setdefault(labels, row)
        left_out += len(shown[ROWS:]) + results.tables.left_out * len(results.tables.headlines)
    total = answers["total"]
    yield _gauge("results_events", "Events counted when the results were read",
                 total.rows_read)  # fmt: skip
    yield from _row_gauges(rows)
    all_results = {"": total, **experiments}
    effects = [(name, row) for name, results in all_results.items() for row in results.comparisons]
    yield from _effect_gauges(effects[:EFFECTS])
    yield from _experiment_gauges(all_results)
    pairs = 0  # and interactions that are left out
    if total.index is not None:
        yield from _meeting_gauges(total.index)
        meetings = len(total.index.overlaps), len(total.index.interactions)
        pairs = sum(max(number - PAIRS, 0) for number in meetings)
    yield from join_gauges(total.join)
    if total.exposure_status is not None:
        yield from _exposure_gauges(total.exposure_status)
    left_out += len(effects[EFFECTS:]) + pairs
    yield _gauge(
        "results_left_out",
        "Rows, effects and pairs left out: there are too many, or another has the same labels",
        left_out,
    )


def _experiment_gauges(answers: Mapping[str, ResultsAnswer]) -> Iterator[Metric]:
    """The recommendation and the units of each experiment, by its name: those that there are."""
    actions: list[tuple[tuple[str, ...], float]] = []
    shares: list[tuple[tuple[str, ...], float]] = []
    units: list[tuple[tuple[str, ...], float]] = []
    e_values: list[tuple[tuple[str, ...], float]] = []
    alarms: list[tuple[tuple[str, ...], float]] = []
    for name, results in answers.items():
        of_it = (name,) if name else ()
        if results.recommendation is not None:
            now = results.recommendation.action
            actions += [((action, *of_it), action == now) for action in ACTIONS]
        mixed, ratio = results.contamination, results.srm
        if mixed is not None and not math.isnan(mixed.share):
            shares.append((of_it, mixed.share))
        if ratio is not None:
            units += [((_encodable(variant), *of_it), count) for variant, count in ratio.counts]
            if not ratio.reason:
                e_values.append((of_it, ratio.e_value))
                alarms.append((of_it, ratio.alarm and not ratio.acknowledged))
    has_units = any(results.srm is not None for results in answers.values())
    for name, help_text, label, values, is_shown in (
        ("recommendation", "1 for the recommended action, 0 for all others", ("action",), actions,
         bool(actions)),
        ("units_in_several_variants_share", "Share of all units that were seen in several variants",
         (), shares, bool(shares)),
        ("units", "Units of each variant, since the start", ("variant",), units, has_units),
        ("sample_ratio_e_value", "E-value against the declared shares of the variants", (),
         e_values, bool(e_values)),
        ("sample_ratio_alarm", "Whether the sample ratio has an alarm that is not acknowledged", (),
         alarms, bool(alarms)),
    ):  # fmt: skip
        if is_shown:
            family = GaugeMetricFamily(
                f"streammetrics_{name}", help_text, labels=[*label, EXPERIMENT]
            )
            for labels, value in values:  # without a name, without the last label
                family.add_metric(labels, float(value))
            yield family


def _meeting_gauges(index: ExperimentsAnswer) -> Iterator[Metric]:
    """Whether layers are broken, and whether the arms of pairs depend; none where that is not
    known."""
    layers = GaugeMetricFamily(
        "streammetrics_layer_alarm", "Whether a unit is in two experiments of a layer",
        labels=["layer"],
    )  # fmt: skip
    pairs = GaugeMetricFamily(
        "streammetrics_overlap_alarm", "Whether the arms of two experiments are not independent",
        labels=["first", "second"],
    )  # fmt: skip
    for layer in index.layers:
        if layer.alarm or not math.isnan(layer.units):
            layers.add_metric([layer.name], float(layer.alarm))
    for pair in sorted(index.overlaps, key=lambda pair: not pair.alarm)[:PAIRS]:
        if not math.isnan(pair.adjusted_p):
            pairs.add_metric([*pair.experiments], float(pair.alarm))
    effects = GaugeMetricFamily(
        "streammetrics_interaction_differs",
        "Whether an effect differs between the arms of another experiment",
        labels=["experiment", "treatment", "metric", "other", "other_treatment"],
    )
    for entry in sorted(index.interactions, key=lambda entry: not entry.differs)[:PAIRS]:
        if not math.isnan(entry.adjusted_p):
            (name, other_name), (treatment, other_treatment) = entry.experiments, entry.variants
            labels = [
                name,
                _encodable(treatment),
                entry.metric,
                other_name,
                _encodable(other_treatment),
            ]
            effects.add_metric(labels, float(entry.differs))
    yield from (layers, pairs, effects)


def _fewest_names(row: SliceRow) -> tuple[int, list[str]]:
    names = sorted(names_of(row))
    return len(names), names


def _row_gauges(rows: Mapping[tuple[str, ...], SliceRow]) -> Iterator[Metric]:
    families = families_of(_ROW_GAUGES, _ROW)
    for labels, row in rows.items():
        counted = float(row.counts.get("rows", math.nan))
        bounds = *interval_bounds(row), counted, *band_bounds(row)
        figures = (row.value, row.low, row.high, *bounds)
        for i, (family, figure) in enumerate(zip(families, figures, strict=True)):
            if i == 0 or not math.isnan(figure):
                family.add_metric(labels, figure)
    yield from families


def _effect_gauges(rows: Sequence[tuple[str, WindowFinding]]) -> Iterator[Metric]:
    """The effects, each with the name of its experiment; without a name, without that label."""
    families = families_of(_EFFECT_GAUGES, [*_EFFECT, EXPERIMENT])
    verdicts = GaugeMetricFamily(
        "streammetrics_effect_verdict", "1 for the verdict on the effect, 0 for others",
        labels=[*_EFFECT, "verdict", EXPERIMENT],
    )  # fmt: skip
    verdicts_by: dict[tuple[str, ...], set[str]] = {}  # a metric may be decision and guardrail
    for name, row in rows:
        contrast, finding = row.contrast, row.finding
        variants = _encodable(contrast.control_variant), _encodable(contrast.treatment_variant)
        labels = (contrast.metric, contrast.view, *variants, *((name,) if name else ()))
        is_repeated = labels in verdicts_by
        verdicts_by.setdefault(labels, set()).add(finding.verdict)
        always = (
            finding.anytime_lower, finding.anytime_upper, finding.anytime_pvalue, row.holm_pvalue,
            finding.e_value,
        )  # fmt: skip
        shown = [math.nan] * len(always) if finding.reason else always
        if is_repeated:
            shown = [math.nan] * len(always)
        for i, figure in enumerate((row.comparison.effect_size, *shown, row.margin)):
            if not is_repeated if i == 0 else not math.isnan(figure):
                families[i].add_metric(labels, figure)
    for effect_labels, effect_verdicts in verdicts_by.items():
        for verdict in VERDICTS:
            place, of_it = effect_labels[: len(_EFFECT)], effect_labels[len(_EFFECT) :]
            verdicts.add_metric([*place, verdict, *of_it], float(verdict in effect_verdicts))
    yield from (*families, verdicts)


def join_gauges(join: Join | None) -> Iterator[Metric]:
    """The metric families of a join; none if events are not joined."""
    if join is None:
        return
    yield _labelled_family(
        "join_impressions", "Impressions since the start, by state", "state",
        [("closed", join.closed), ("pending", join.pending), ("conflict", join.conflicts),
         ("late", join.late_impressions)],
    )  # fmt: skip
    yield _gauge("join_late_outcomes", "Outcomes that came too late to be joined",
                 join.late_outcomes)  # fmt: skip
    yield _gauge("join_repeated_events", "Events that repeat an earlier one", join.repeated)
    closed = GaugeMetricFamily("streammetrics_join_closed_timestamp_seconds",
                               "Event time up to which label windows are closed")  # fmt: skip
    if join.closed_ms is not None:
        closed.add_metric([], join.closed_ms / 1000)
    yield closed
    yield from _outcome_families(join)


def _exposure_gauges(status: ExposureStatus) -> Iterator[Metric]:
    """The metric families of the exposures of a stream."""
    yield _labelled_family(
        "exposures_events", "Events that are attributed by exposures, by state", "state",
        [("closed", status.closed), ("pending", status.pending_events),
         ("late", status.late_events)],
    )  # fmt: skip
    yield _labelled_family(
        "exposures", "Exposures since the start, by state", "state",
        [("known", status.unit_exposures), ("pending", status.pending_exposures),
         ("late", status.late_exposures), ("left_out", status.dropped)],
    )  # fmt: skip
    closed = GaugeMetricFamily("streammetrics_exposures_closed_timestamp_seconds",
                               "Event time up to which events are attributed")  # fmt: skip
    if status.closed_ms is not None:
        closed.add_metric([], status.closed_ms / 1000)
    yield closed


def _outcome_families(join: Join) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "streammetrics_join_outcomes", "Outcomes since the start, by state",
        labels=["outcome", "state"],
    )  # fmt: skip
    after, last = families_of(
        {
            "streammetrics_join_share_after_window":
                "Lower bound of the share of outcomes after their label window",
            "streammetrics_join_share_last_tenth":
                "Share of attributed outcomes in the last tenth of their label window",
        }, ["outcome"],
    )  # fmt: skip
    delays = HistogramMetricFamily(
        "streammetrics_join_label_delay_seconds",
        "Time from impressions to their outcomes", labels=["outcome"],
    )  # fmt: skip
    for name, outcome in join.outcomes.items():
        states.add_metric([name, "waiting"], outcome.waiting)
        states.add_metric([name, "attributed"], outcome.attributed)
        states.add_metric([name, "unattributed"], outcome.unattributed)
        for family, share in (
            (after, outcome.share_after_window),
            (last, outcome.share_last_tenth),
        ):
            if not math.isnan(share):
                family.add_metric([name], share)
        delays.add_metric([name], _buckets(join, outcome), None)
    yield from (states, after, last, delays)


def _buckets(join: Join, outcome: JoinOutcome) -> list[tuple[str, float]]:
    """Buckets for all delays within the label window, also those that have not occurred yet."""
    bounds = [1]
    while bounds[-1] < join.label_window_s:
        bounds.append(2 * bounds[-1])
    counts = {end: n for _, end, n in outcome.delays_s}
    sums = list(accumulate(float(counts.get(bound, 0)) for bound in bounds))
    return [*zip(map(str, map(float, bounds)), sums, strict=True), ("+Inf", sums[-1])]


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"streammetrics_{name}", help_text, value=float(value))


def _labelled_family(
    name: str, help_text: str, label: str, values: Iterable[tuple[str, float]]
) -> Metric:
    family = GaugeMetricFamily(f"streammetrics_{name}", help_text, labels=[label])
    for key, value in values:
        family.add_metric([key], float(value))
    return family


def families_of(gauges: Mapping[str, str], labels: Sequence[str]) -> list[GaugeMetricFamily]:
    """A metric family for each of these gauges, from its name and help text."""
    return [GaugeMetricFamily(name, help_text, labels=labels) for name, help_text in gauges.items()]


def slice_labels(slice_: Slice) -> tuple[str, str]:
    """The labels `variant` and `slice`: the variant, and every other name with its value. For the
    sum of the keys past `max_keys`, the names of its grouping.

    >>> slice_labels({"variant": "bts", "phase": "eval"}), slice_labels({})
    (('bts', 'phase=eval'), ('', ''))
    """
    grouping = slice_.get(OTHER)
    if isinstance(grouping, tuple):
        return OTHER if VARIANT in grouping else "", _encodable(f"{OTHER}={' '.join(grouping)}")
    pairs = (f"{_escaped(name)}={_escaped(_text(value))}" for name, value in sorted(slice_.items())
            if name != VARIANT)  # fmt: skip
    return (_text(slice_[VARIANT]) if VARIANT in slice_ else ""), ",".join(pairs)


def _text(value: object) -> str:
    return "null" if value is None else _encodable(str(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _encodable(text: str) -> str:
    """A text that UTF-8 can encode. The decoders keep slices short."""
    return text.encode("utf-8", "backslashreplace").decode()

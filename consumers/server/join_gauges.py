"""How a join stands, for Prometheus: what is counted and what waits, and how late outcomes come."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from consumers.results.join_status import JoinFound


def join_gauges(found: JoinFound | None) -> Iterator[Metric]:
    """The families of one scrape; none where events are not joined."""
    if found is None:
        return
    yield _by(
        "streammetrics_join_impressions", "Impressions since the start, by what became of them",
        {"closed": found.closed, "pending": found.pending, "conflict": found.conflicts,
         "late": found.late_impressions},
    )  # fmt: skip
    yield GaugeMetricFamily("streammetrics_join_late_outcomes",
                            "Outcomes that came too late to be joined",
                            value=found.late_outcomes)  # fmt: skip
    yield GaugeMetricFamily("streammetrics_join_repeated_events",
                            "Events that had come before", value=found.repeated)  # fmt: skip
    closed = GaugeMetricFamily("streammetrics_join_closed_timestamp_seconds",
                               "Event time up to which label windows are closed")  # fmt: skip
    if found.closed_ms is not None:
        closed.add_metric([], found.closed_ms / 1000)
    yield closed
    yield from _outcomes(found)


def _outcomes(found: JoinFound) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "streammetrics_join_outcomes", "Outcomes since the start, by what became of them",
        labels=["outcome", "state"],
    )  # fmt: skip
    after = GaugeMetricFamily(
        "streammetrics_join_share_after_window",
        "Share of outcomes that came after their label window, at least", labels=["outcome"],
    )  # fmt: skip
    last = GaugeMetricFamily(
        "streammetrics_join_share_last_tenth",
        "Share of the attributed that came in the last tenth of it", labels=["outcome"],
    )  # fmt: skip
    delays = HistogramMetricFamily(
        "streammetrics_join_label_delay_seconds",
        "Time from impressions to their outcomes", labels=["outcome"],
    )  # fmt: skip
    for name, one in found.outcomes.items():
        states.add_metric([name, "waiting"], one.waiting)
        states.add_metric([name, "attributed"], one.delays.attributed)
        states.add_metric([name, "unattributed"], one.delays.unattributed)
        for family, share in ((after, one.share_after_window), (last, one.delays.share_cut)):
            if not math.isnan(share):
                family.add_metric([name], share)
        delays.add_metric([name], _buckets(found, one.delays.delays), None)
    yield from (states, after, last, delays)


def _buckets(found: JoinFound, delays: Mapping[tuple[int, int], int]) -> list[tuple[str, float]]:
    """Those of all delays within the label window, whichever have come so far."""
    ends = [1]
    while ends[-1] < found.label_window_s:
        ends.append(2 * ends[-1])
    counts = {end: n for (_, end), n in delays.items()}
    sums = list(accumulate(float(counts.get(end, 0)) for end in ends))
    return [*zip(map(str, map(float, ends)), sums, strict=True), ("+Inf", sums[-1])]


def _by(name: str, what: str, counts: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=["state"])
    for state, count in counts.items():
        family.add_metric([state], count)
    return family

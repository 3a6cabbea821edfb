"""Drifts: which windows of a metric are compared with which reference, when they are read.

A drift is a result with a name of its own, and rows like those of a metric: one for each window,
slice and view. A window is compared slice by slice with the same slice of a reference window, or
each slice with one saved state.
"""

from __future__ import annotations

from collections.abc import Iterable

from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.generation import DeclaredDrift, Metric
from streammetrics_consumers.query.query import Span


def declared_drift(snapshot: Snapshot, name: str | None) -> tuple[Metric, DeclaredDrift] | None:
    """The drift of this name in the last config, and its metric; None if there is none."""
    for metric in snapshot.generation.metrics:
        for drift in metric.drifts if not metric.ended else ():
            if drift.name == name:
                return metric, drift
    return None


def span_of(declared: DeclaredDrift, span: Span | None) -> Span | None:
    """The window that a window is compared with. None: a file, or nothing."""
    if not isinstance(declared.reference, str):
        return Span(*declared.reference)
    if not _is_previous(declared) or span is None:
        return None
    return Span(2 * span.start_ms - span.end_ms, span.start_ms)


def is_compared(declared: DeclaredDrift, span: Span | None) -> bool:
    """Whether a window has a reference: the total has no window before it."""
    return span is not None or not _is_previous(declared)


def _is_previous(declared: DeclaredDrift) -> bool:
    return declared.reference == "previous"


def reference_spans(
    spans: Iterable[Span | None], drifts: Iterable[DeclaredDrift]
) -> frozenset[Span]:
    """The windows that are read only as references of these windows."""
    windows = [span for span in spans if span is not None]
    references = {span_of(drift, span) for drift in drifts for span in (*windows, None)}
    references -= {None, *windows}
    return frozenset(span for span in references if span is not None)

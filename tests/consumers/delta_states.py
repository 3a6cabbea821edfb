"""The states that a delta would store, also those that another one could stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.ledger.delta_metadata import summed

from streammetrics import PerKey


class PaneState(NamedTuple):
    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None
    state: PerKey


def states_of(delta: Delta) -> Iterator[PaneState]:
    for metric_set in delta.metric_sets if delta.has_states else ():
        slices = metric_set.metric_set.slices
        for whole, metric, base, coarser, spans in metric_set.whole_states():
            for place in (base, *coarser):
                state = whole if place == base else summed(whole, slices.by, base, place)
                for span in spans:
                    yield PaneState(metric, place, *span, state.limited(slices.max_keys))

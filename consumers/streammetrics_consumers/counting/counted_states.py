"""The states of all metrics of a config: its events, routed to the states of their windows and
slices, and the rows of the store that these become. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from streammetrics import PerKey
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.counted_panels import CountedPanel
from streammetrics_consumers.config.states import MetricSet
from streammetrics_consumers.counting.counted_events import (
    CountedEvents,
    columns_of,
    own_rows,
)
from streammetrics_consumers.counting.keyed_states import (
    Keying,
    PanelStates,
    Span,
    StatesOfKeying,
)
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.delta_metadata import (
    SHARD_BYTES,
    can_stand_for_coarser,
    finest,
    split,
    summed,
)
from streammetrics_consumers.model.generation import Pane, StateShard

_finest = cache(finest)  # a process knows few configs


class MetricStates(NamedTuple):
    """The state of a metric by a finest grouping, and the spans that it covers.

    coarser: the coarser groupings that are derived from this one. name_in_panel: that of the same
    metric in the panel whose state this is.
    """

    metric_set: MetricSet
    name: str
    grouping: int
    coarser: Sequence[int]
    name_in_panel: str
    states: StatesOfKeying
    spans: Sequence[Span]

    def state(self, max_keys: int | None = None) -> PerKey:
        """The state of the metric, with all keys by default, to be read before the next update."""
        panel, keys, key_of = self.states
        return panel.project(self.name_in_panel, max_keys, keys=keys, key_of=key_of, copy=False)


class CountedStates:
    """The states of the finest groupings; those of coarser groupings are derived from them."""

    def __init__(self, config: Config) -> None:
        self.metric_sets = config.metric_sets
        self._panels = [
            PanelStates(panel, _keyings(panel, self.metric_sets)) for panel in config.panels
        ]
        self.keyed = tuple(keyed for states in self._panels for keyed in states.keyed)

    @property
    def nbytes(self) -> int:
        """Approximate memory of the states in bytes."""
        return sum(keyed.nbytes for keyed in self.keyed)

    def checked(self, decoded: Decoded, *, expired: bool = False) -> Callable[[], None]:
        """Check these events for every panel, or raise InputError where a metric refuses one. The
        returned function adds them to their windows, or only to the totals if `expired`. The events
        must be of one shape."""
        events = CountedEvents(self.metric_sets, decoded)
        adds = [add for states in self._panels for add in states.checked(events, expired=expired)]

        def add_all() -> None:
            for add in adds:
                add()

        return add_all

    def check(self, decoded: Decoded) -> None:
        """Raise InputError where a metric refuses one of these events; changes nothing."""
        events = CountedEvents(self.metric_sets, decoded)
        for states in self._panels:
            states.check(events)

    def check_alone(self, decoded: Decoded) -> None:
        """As `check`, of one event: the error is that of the first metric, in the order of metric
        sets, that refuses it, however metrics are counted together."""
        columns = columns_of(decoded)
        for metric_set in self.metric_sets:
            rows = own_rows(metric_set, decoded)
            if rows is None or len(rows):
                takes = metric_set.panel.arguments()
                metric_set.panel.check(**{n: c for n, c in columns.items() if n in takes})

    def shards(self, limit: int = SHARD_BYTES) -> Iterator[StateShard]:
        """Every state as rows of the store, of at most `limit` bytes, in an order that depends
        only on the content. Each grouping has its own states, so that its keys never push those of
        another into (other). Coarser groupings have none where the row of the finest one can stand
        for them."""
        for metric in self.metric_states():
            groupings, max_keys = metric.metric_set.slices.by, metric.metric_set.slices.max_keys
            for grouping in (metric.grouping, *metric.coarser):
                is_finest = grouping == metric.grouping
                if is_finest:
                    state = metric.state(max_keys)
                else:
                    whole = summed(metric.state(), groupings, metric.grouping, grouping)
                    state = whole.limited(max_keys)
                shards = list(split(Pane(metric.name, grouping, *metric.spans[0]), state, limit))
                if is_finest and metric.coarser and can_stand_for_coarser(shards, state):
                    shards = [replace(shards[0], for_coarser=True)]
                for span in metric.spans:
                    pane = Pane(metric.name, grouping, *span)
                    yield from (replace(shard, pane=pane) for shard in shards)
                if shards[0].for_coarser:
                    break

    def metric_states(self) -> Iterator[MetricStates]:
        """Each different state of each metric and finest grouping."""
        for place, metric_set in enumerate(self.metric_sets):
            for grouping, coarser in _finest(metric_set.slices.by).items():
                states = self._states_by_metric(Keying(place, grouping))
                for i in range(max((len(by_span) for _, by_span in states.values()), default=0)):
                    # Each metric of a set has the same spans, unless its states are elsewhere.
                    for name, (name_in_panel, by_span) in states.items():
                        if i < len(by_span):
                            yield MetricStates(
                                metric_set, name, grouping, coarser, name_in_panel, *by_span[i]
                            )

    def _states_by_metric(
        self, keying: Keying
    ) -> dict[str, tuple[str, list[tuple[StatesOfKeying, list[Span]]]]]:
        """By the name of each metric of a metric set, its name in its panel and the states of this
        panel, with the spans of each."""
        names: dict[str, tuple[str, list[tuple[StatesOfKeying, list[Span]]]]] = {}
        for states in self._panels:
            if keying.metric_set in states.panel.metric_sets:
                by_span = list(states.states_by_span(keying))
                names |= {name: (same, by_span) for name, same in states.panel.names.items()}
        return {
            metric.name: names[metric.name]
            for metric in self.metric_sets[keying.metric_set].metrics
        }


def _keyings(panel: CountedPanel, metric_sets: Sequence[MetricSet]) -> list[tuple[Keying, ...]]:
    """The finest groupings of the metric sets of a panel; those of the same names together."""
    by_names: dict[tuple[str, ...], list[Keying]] = defaultdict(list)
    for place in panel.metric_sets:
        for grouping in _finest(metric_sets[place].slices.by):
            by_names[metric_sets[place].slices.by[grouping]].append(Keying(place, grouping))
    return [*map(tuple, by_names.values())]

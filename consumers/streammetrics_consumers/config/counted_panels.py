"""The panels that a config counts: metrics that the same metric sets count are one panel, however
many these sets are.

Experiments mostly count the same metrics, each by the arms of its own: an event is checked for all
of them at once, and has a key in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from streammetrics import Panel, PerKey, Windows
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.states import ALL_KEYS, MetricSet, panel_of
from streammetrics_consumers.config.tables import WindowsConfig


@dataclass(frozen=True)
class CountedPanel:
    """Different metrics, each of which all of these metric sets count.

    metric_sets: their places in the config. names: that of a metric here, by its name in any of
    the sets.
    """

    metric_sets: tuple[int, ...]
    metrics: tuple[MetricConfig, ...]
    names: Mapping[str, str]
    windows: WindowsConfig

    @cached_property
    def panel(self) -> Panel:
        """The empty panel; its columns are `Field.column` of the inputs."""
        return panel_of(self.metrics)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The columns of the fields that the metrics read."""
        fields = (field for metric in self.metrics for field in metric.inputs.values())
        return frozenset(field.column for field in fields)

    @cached_property
    def states_by_key(self) -> PerKey:
        """The empty state of one grouping of these sets, of which each holder takes a copy by
        `empty()`. It keeps all keys: coarser groupings are derived from them, and `max_keys` limits
        only the stored states."""
        return PerKey(self.panel, max_keys=ALL_KEYS)

    @cached_property
    def states_by_window(self) -> Windows:
        """The same by window."""
        # Checking the settings of nested metrics takes half a millisecond; empty() takes none.
        return Windows(self.states_by_key, size_s=self.windows.size_s, slide_s=self.windows.slide_s)


def counted_panels(metric_sets: Sequence[MetricSet]) -> tuple[CountedPanel, ...]:
    """The panels of all metrics of these sets."""
    same: dict[object, list[tuple[int, MetricConfig]]] = {}
    for place, metric_set in enumerate(metric_sets):
        for metric in metric_set.metrics:
            # The bytes of an empty state are its type and settings.
            counted = metric.empty.to_bytes(), tuple(sorted(metric.columns.items()))
            same.setdefault(counted, []).append((place, metric))
    by_sets: dict[tuple[int, ...], list[list[MetricConfig]]] = {}
    for uses in same.values():
        places = tuple(dict.fromkeys(place for place, _ in uses))
        by_sets.setdefault(places, []).append([metric for _, metric in uses])
    return tuple(
        CountedPanel(
            places,
            tuple(metrics[0] for metrics in metric_groups),
            {metric.name: metrics[0].name for metrics in metric_groups for metric in metrics},
            metric_sets[places[0]].windows,
        )
        for places, metric_groups in by_sets.items()
    )

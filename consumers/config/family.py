"""A family: metrics that are counted by the same groupings.

The metrics of the config by its slices are one family, those of an experiment by epoch and variant
another. Whatever counts, stores, compares or drops states does so for each family alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, cast

from consumers.config.event import EventConfig
from consumers.config.fingerprint import describe
from consumers.config.metrics import MetricConfig
from consumers.config.tables import SlicesConfig, WindowsConfig
from consumers.model.generation import SHOWN
from streammetrics import Panel, PerKey, Windows

ALL_KEYS: Final = 1 << 31


@dataclass(frozen=True)
class Family:
    """Some metrics and their groupings.

    columns: by name of the groupings, the decoder's column of its values. paths: where these come
    from in an event. declared: what else decides what the metrics' states mean. shown: what else is
    kept for those who show results.
    """

    slices: SlicesConfig
    metrics: tuple[MetricConfig, ...]
    event: EventConfig
    windows: WindowsConfig
    paths: Mapping[str, str]
    columns: Mapping[str, str]
    declared: Mapping[str, object] = field(default_factory=dict)
    shown: Mapping[str, object] = field(default_factory=dict)

    def panel(self) -> Panel:
        """The empty panel of all metrics; its columns are `Field.column` of what they read."""
        return Panel(
            {metric.name: metric.empty for metric in self.metrics},
            inputs={metric.name: metric.columns for metric in self.metrics},
        )

    def per_key(self) -> PerKey:
        """The empty state of one grouping: keys are (grouping, value, ...). All are kept apart:
        coarser groupings follow from these, and only what is stored is bounded by `max_keys`."""
        return self._per_key.empty()

    def empty(self) -> Windows:
        """The empty state of one grouping by window. Each grouping has one of its own, so that
        the keys of one never push those of another into (other)."""
        return self._windows.empty()

    @cached_property
    def takes(self) -> frozenset[str]:
        """The columns that its metrics read."""
        return frozenset(self._per_key.metric.arguments())

    @cached_property
    def _per_key(self) -> PerKey:
        return PerKey(self.panel(), max_keys=ALL_KEYS)

    @cached_property
    def _windows(self) -> Windows:
        # Checking the settings of nested metrics takes half a millisecond; empty() takes none.
        return Windows(self._per_key, size_s=self.windows.size_s, slide_s=self.windows.slide_s)

    @property
    def descriptions(self) -> dict[str, dict[str, object]]:
        """For each metric, everything that decides which rows it counts and how."""
        by = [[(name, self.paths[name]) for name in names] for names in self.slices.by]
        found = {}
        for metric in self.metrics:
            one = describe(metric, self.event, self.windows, by, self.slices.max_keys)
            shown = cast("Mapping[str, object]", one[SHOWN])
            found[metric.name] = one | dict(self.declared) | {SHOWN: {**shown, **self.shown}}
        return found

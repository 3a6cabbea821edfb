"""LabelDelays: the delays of outcomes after their impressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.checks import integers
from streammetrics.core.errors import SettingsError, bad_rows, shown
from streammetrics.core.inputs import Inputs, Unchecked
from streammetrics.core.intakes import integer_intake, name_intake
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.join.join_events import check_span, kinds_of
from streammetrics.results.join_results import (
    BINS,
    LabelDelaysResult,
    OutcomeDelays,
    delay_bins,
    histogram,
)


class LabelDelays(Accumulator, schema="label-delays/1"):
    """The delays of outcomes that a join has closed, and the numbers of unattributed ones.

    Settings
        outcomes: their names. label_window_ms: an outcome with a delay below it was attributed.
    Rows
        outcomes: [n], the name of each. delays_ms: [n], the time since the last impression of its
        id, or -1 if none is known; both as returned by `JoinRows.close`.
    State
        For each outcome the counts by powers of two of seconds, for attributed and for other
        outcomes; the number without an impression; the number in the last tenth of the window.
    Result
        A mapping from outcome to `attributed`, `unattributed`, `share_cut`, `delays` and more.
    Undefined
        Shares of no outcomes are nan.
    Exactness
        Exact counts.
    Cost
        About 20 ns an outcome.
    Source
        Chapelle 2014, "Modeling delayed feedback in display advertising", KDD, section 3.

    >>> from streammetrics import LabelDelays
    >>> delays = LabelDelays(("click",), label_window_ms=10_000)
    >>> delays.update(["click"] * 4, delays_ms=[500, 9_500, 12_000, -1])
    >>> found = delays.compute()["click"]
    >>> found.attributed, found.unattributed, found.unknown, found.share_cut
    (2, 2, 1, 0.5)
    >>> found.delays
    {(0, 1): 1, (8, 16): 1}
    """

    _reads_each_row = True

    outcomes: tuple[str, ...]
    label_window_ms: int
    inputs = Inputs(
        outcomes=Unchecked(
            "[n], the name of each",
            type_text="ArrayLike | DictionaryColumn | Sequence[Key]",
            intake=lambda metric: name_intake(metric.outcomes),
        ),
        delays_ms=Unchecked(
            "[n], the time since the last impression of its id, or -1",
            intake=lambda _: integer_intake(-1),
        ),
    )
    attributed = Counts("_n_outcomes", BINS)
    others = Counts("_n_outcomes", BINS)
    unknown = Counts("_n_outcomes")
    cut = Counts("_n_outcomes")

    def check_settings(self) -> None:
        setting: object = self.outcomes
        names = setting if isinstance(setting, tuple) else ()
        are_names = all(type(name) is str and name for name in names)
        if not are_names or not 1 <= len(set(names)) == len(names) <= 255:
            raise SettingsError(
                expected="1 to 255 different names",
                got=shown(setting),
                where="LabelDelays.outcomes",
                hint='pass names, such as ("click", "purchase")',
            )
        self._set("outcomes", tuple(sorted(self.outcomes)))
        check_span(self.label_window_ms, 1, "LabelDelays.label_window_ms")

    @property
    def _n_outcomes(self) -> int:
        """The number of outcomes."""
        return len(self.outcomes)

    if TYPE_CHECKING:

        def update(
            self, outcomes: ArrayLike | DictionaryColumn | Sequence[Key], delays_ms: ArrayLike
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        delays = integers(given["delays_ms"], "delays_ms")
        kinds = kinds_of(given["outcomes"], len(delays), self.outcomes, "outcomes")
        if len(delays) and delays.item(delays.argmin()) < -1:
            bad = np.flatnonzero(delays < -1)
            expected = "delays of at least 0 milliseconds, or -1 if unknown"
            hint = "pass -1 for an outcome before its impression"
            raise bad_rows(delays, bad, "delays_ms", expected, hint)
        return Batch(len(delays), {"outcomes": kinds, "delays_ms": delays})

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        places, delays = batch.outcomes, batch.delays_ms
        within = delays < self.label_window_ms
        has_delay = delays >= 0
        cells = places * BINS + delay_bins(np.maximum(delays, 0))
        late = within & (delays >= self.label_window_ms - self.label_window_ms // 10)
        for part, chosen, part_cells in (
            (self.attributed, has_delay & within, cells),
            (self.others, has_delay & ~within, cells),
            (self.unknown, ~has_delay, places),
            (self.cut, late, places),
        ):
            rows = np.flatnonzero(chosen)
            part.add(part_cells[rows], None if slots is None else slots[rows])

    def compute(self) -> LabelDelaysResult:
        """The delays of each outcome."""
        self._flush()
        tables = (p.dense() for p in (self.attributed, self.others, self.unknown, self.cut))
        within, outside, unknown, cut = tables
        delays: Mapping[str, OutcomeDelays] = {
            name: OutcomeDelays(
                int(within[i].sum()),
                int(outside[i].sum()) + int(unknown[i]),
                int(unknown[i]),
                int(cut[i]),
                histogram(within[i].tolist()),
                histogram(outside[i].tolist()),
            )
            for i, name in enumerate(self.outcomes)
        }
        return LabelDelaysResult(delays)

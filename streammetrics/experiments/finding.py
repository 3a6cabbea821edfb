"""Finding: one contrast, read with all the looks at it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, get_args

from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Reading
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow
from streammetrics.present.view import Direction

Verdict = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "faded",
    "no_difference_yet",
    "kept",
    "broken",
    "open",
    "disbelieved",
    "not_started",
]
Action = Literal["ship", "do_not_ship", "decide", "wait", "check_setup"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Finding(Shown):
    """One contrast, read with all the looks at it.

    anytime_lower, anytime_upper, anytime_pvalue: of all looks together, or of this reading if there
    are none; both infinite if the looks exclude one another. e_value: of the last look. gated:
    before the burn-in; reason: why there is no always-valid interval, or "". verdict: one word, see
    `verdict.verdict_of`; direction: in which the metric is better. since_effect: the effect since
    the decision, as estimated at the last look, nan before there is one; since_lower, since_upper:
    its interval, of all looks since then, which may exclude it. faded: it lies apart from that of
    all looks together, nearer to no effect or beyond it. check_logging: why the logging must be
    checked before this effect is believed, or "". holm: the anytime p-value, adjusted among the
    decisions; e_bh: whether e-BH rejects it among them; both None for guardrails, and if only some
    decisions were requested. distrusted: the finding must not be trusted, whatever its numbers.
    sentence: the conclusion, or the reason for the distrust.
    """

    estimates: ClassVar[bool] = True
    contrast: Contrast
    reading: Reading
    verdict: Verdict = "not_started"
    sentence: str
    reason: str
    holm: float | None
    e_bh: bool | None
    faded: bool = False
    check_logging: str = ""

    @property
    def anytime_lower(self) -> float:
        """The lower end of the interval of all looks together."""
        return self.reading.lower if self.reading.consistent else -math.inf

    @property
    def anytime_upper(self) -> float:
        """The upper end of the interval of all looks together."""
        return self.reading.upper if self.reading.consistent else math.inf

    @property
    def anytime_pvalue(self) -> float:
        """The p-value of all looks together."""
        return self.reading.pvalue

    @property
    def e_value(self) -> float:
        """The e-value of the last look."""
        return self.contrast.e_value(self.reading.last)

    @property
    def gated(self) -> bool:
        """Whether the last look was before the burn-in."""
        return self.reading.last.gated

    @property
    def distrusted(self) -> bool:
        """Whether the finding must not be trusted, whatever its numbers."""
        return self.verdict == "disbelieved"

    @property
    def direction(self) -> Direction:
        """The direction in which the metric is better."""
        return self.contrast.direction

    @property
    def since_effect(self) -> float:
        """The effect since the decision, as estimated at the last look; nan before there is one."""
        return math.nan if self.reading.since is None else self.reading.since.effect

    @property
    def since_lower(self) -> float:
        """The lower end of its interval, of all looks since then; nan if there is none."""
        since = self.reading.since
        return since.lower if since is not None and since.known else math.nan

    @property
    def since_upper(self) -> float:
        """The upper end of its interval, of all looks since then; nan if there is none."""
        since = self.reading.since
        return since.upper if since is not None and since.known else math.nan

    @property
    def rows_per_unit(self) -> RowsPerUnit | None:
        """Rows per unit of both arms, of a mean or a rate per row; None if units are not known."""
        return self.contrast.rows_per_unit

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        row = self.contrast.effect_row(self.anytime_lower, self.anytime_upper, self.reason)
        figures = {"pvalue": self.anytime_pvalue, "holm": self.holm, "verdict": self.verdict}
        adjusted = self.anytime_pvalue if self.holm is None else self.holm
        yield replace(row, counts={**figures, **row.counts}, pvalue=adjusted)

    def _notes(self) -> Iterator[str]:
        yield self.sentence

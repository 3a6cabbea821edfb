"""The texts of answers: what people read in place of the numbers, as the view model writes it.

`render.page_answers` puts them beside the numbers, so that the page formats none.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Tone = Literal["good", "bad", "warn", "neutral"]


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of one object of an answer."""


class ResultText(Text, frozen=True):
    """A result as tables show it. certain, interval: "" where there is none."""

    value: str
    certain: str
    interval: str
    level: str
    rows: str


class ComparisonText(Text, frozen=True):
    """A comparison as tables show it. margin: "" of a decision."""

    verdict: str
    symbol: str
    tone: Tone
    effect: str
    margin: str
    once: str
    p_once: str
    always: str
    p: str
    p_title: str


class OutcomeText(Text, frozen=True):
    """An outcome of a join as tables show it."""

    attributed: str
    unattributed: str
    after_window: str


class ExperimentText(Text, frozen=True):
    """An experiment as a reader sees it. advice: the sentence of the recommendation before, within
    and after the words about units of several variants. tone: of the action; worst: of the whole.
    standing: what else may be concluded. units: of each variant."""

    symbol: str
    tone: Tone
    worst: Tone
    advice: tuple[str, str, str]
    standing: str
    units: str


class HealthText(Text, frozen=True):
    """The numbers of health as a reader sees them. others: events of the rarer kinds."""

    lag: str
    read: str
    skipped: str
    late: str
    quarantined: str
    others: str

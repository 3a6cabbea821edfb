"""Verdicts and recommendations as a person reads them: a word, a symbol beside it, and a tone.

Every surface shows the same verdict by these, and colours by the tone alone: "good" is green, "bad"
red, "warn" amber, and "neutral" has the colour of the text. Whoever sees no colours has the word.
`page/verdicts.js` has the same tables; a test compares them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from consumers.results.comparisons import State
from streammetrics.experiments import (
    Action,
    Contamination,
    Finding,
    Recommendation,
    Safeguard,
    Verdict,
)

Tone = Literal["good", "bad", "warn", "neutral"]

TONES: Final[Mapping[Verdict, Tone]] = {
    "better": "good",
    "worse": "bad",
    "higher": "neutral",
    "lower": "neutral",
    "faded": "neutral",
    "no_difference_yet": "neutral",
    "kept": "good",
    "broken": "bad",
    "open": "neutral",
    "disbelieved": "warn",
    "not_started": "neutral",
}
SYMBOLS: Final[Mapping[Verdict, str]] = {
    "better": "✓",
    "worse": "✕",
    "higher": "↑",
    "lower": "↓",
    "faded": "~",
    "no_difference_yet": "○",
    "kept": "✓",
    "broken": "✕",
    "open": "○",
    "disbelieved": "!",
    "not_started": "…",
}
ACTION_TONES: Final[Mapping[Action, Tone]] = {
    "ship": "good",
    "do_not_ship": "bad",
    "decide": "neutral",
    "wait": "neutral",
    "check_setup": "warn",
}
ACTION_SYMBOLS: Final[Mapping[Action, str]] = {
    "ship": "✓",
    "do_not_ship": "✕",
    "decide": "◆",
    "wait": "…",
    "check_setup": "!",
}
_ENDS: Final = re.compile(r"(?<=[.]) (?=[A-Z])")  # between two sentences
STYLES: Final[Mapping[Tone, str]] = {  # of a terminal
    "good": "bold green",
    "bad": "bold red",
    "warn": "yellow",
    "neutral": "",
}


def words(verdict: Verdict) -> str:
    """A verdict in words.

    >>> words("no_difference_yet")
    'no difference yet'
    """
    return verdict.replace("_", " ")


def tone_of(found: Recommendation, mixed: Contamination | None) -> Tone:
    """The tone of a recommendation: amber where units of several variants are too many, unless
    there is worse."""
    tone = ACTION_TONES[found.action]
    return "warn" if mixed is not None and mixed.warning and tone != "bad" else tone


def parted(sentence: str, mixed: Contamination | None) -> tuple[str, str, str]:
    """A sentence in three parts: before, within and after what is said of units of several
    variants, which every surface shows in amber."""
    said = "" if mixed is None else mixed.sentence.removesuffix(".")
    return sentence.partition(said) if said else (sentence, "", "")


def p_column(findings: Iterable[Finding]) -> tuple[str, list[float]]:
    """The title of a column of p-values, and the values; nan where a finding has none.

    Decisions have the always-valid p-value with Holm's adjustment, where all of them were asked
    for; guardrails are judged by their margin, and have none. Where only some decisions were asked
    for, it is not adjusted, and the title says so.
    """
    rows = list(findings)
    adjusted = all(one.contrast.safeguard is not None or one.holm is not None for one in rows)

    def value(one: Finding) -> float:
        if one.reason or one.contrast.safeguard is not None:
            return math.nan
        return one.anytime_pvalue if one.holm is None or not adjusted else one.holm

    return "p (Holm)" if adjusted else "p (not adjusted)", [value(one) for one in rows]


def standing(
    state: State, sentence: str, mixed: Contamination | None, found: Recommendation | None
) -> str:
    """What stands below the recommendation: nothing where that says why already, and none of the
    sentences that it has said, nor that about units of several variants."""
    if state in ("waiting", "distrusted", "early"):
        return ""
    said = "" if mixed is None else mixed.sentence
    rest = sentence.replace(said, "").strip() if said else sentence
    advice = "" if found is None else found.sentence
    return " ".join(one for one in _ENDS.split(rest) if one not in advice)


def margin_of(rail: Safeguard) -> float:
    """The effect at which a guardrail is broken, with its sign."""
    return -rail.margin if rail.higher_is_better else rail.margin

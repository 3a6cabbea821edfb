"""Verdicts and recommendations for people: a word, a symbol beside it, and a tone.

Every surface shows verdicts by these, and colours by the tone alone: "good" is green, "bad" red,
"warn" amber, and "neutral" has the colour of the text. The word is for readers without colours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from streammetrics import experiments
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.json_kinds import ExperimentState, Tone

if TYPE_CHECKING:
    from streammetrics.experiments import Contamination, Finding, Recommendation
    from streammetrics_consumers.query.experiment_plan import DeclaredExperiment

_VERDICTS: Final[Mapping[experiments.Verdict, tuple[str, Tone]]] = {
    "better": ("✓", "good"),
    "worse": ("✕", "bad"),
    "higher": ("↑", "neutral"),
    "lower": ("↓", "neutral"),
    "faded": ("~", "neutral"),
    "no_difference_yet": ("○", "neutral"),
    "kept": ("✓", "good"),
    "broken": ("✕", "bad"),
    "open": ("○", "neutral"),
    "disbelieved": ("!", "warn"),
    "not_started": ("…", "neutral"),
}
_ACTIONS: Final[Mapping[experiments.Action, tuple[str, Tone]]] = {
    "ship": ("✓", "good"),
    "do_not_ship": ("✕", "bad"),
    "decide": ("◆", "neutral"),
    "wait": ("…", "neutral"),
    "check_setup": ("!", "warn"),
}
SYMBOLS: Final = {verdict: symbol for verdict, (symbol, _) in _VERDICTS.items()}
TONES: Final = {verdict: tone for verdict, (_, tone) in _VERDICTS.items()}
ACTION_SYMBOLS: Final = {action: symbol for action, (symbol, _) in _ACTIONS.items()}
ACTION_TONES: Final = {action: tone for action, (_, tone) in _ACTIONS.items()}
_ON_ROWS: Final = re.compile(r"(?<= )Rows per unit differ .* on rows, not on units\.")
_ENDS: Final = re.compile(r"(?<=[.]) (?=[A-Z])")  # between two sentences


def words(verdict: experiments.Verdict) -> str:
    """A verdict in words.

    >>> words("no_difference_yet")
    'no difference yet'
    """
    return verdict.replace("_", " ")


def tone_of_verdict(finding: Finding) -> Tone:
    """The tone of a finding: "warn" if rows per unit differ, unless that of its verdict is
    "bad"."""
    tone, rows = TONES[finding.verdict], finding.rows_per_unit
    return "warn" if rows is not None and rows.differ and tone != "bad" else tone


def rows_per_unit(finding: Finding) -> str:
    """The rows per unit of both arms, the control's first; "" if they are not known."""
    rows = finding.rows_per_unit
    if rows is None or not (math.isfinite(rows.control) and math.isfinite(rows.treatment)):
        return ""
    return f"{formatting.number(rows.control, 2)} and {formatting.number(rows.treatment, 2)}"


def parted_rows(sentence: str) -> tuple[str, str]:
    """A sentence on a comparison without, and with only, its words about rows per unit, which every
    surface shows in amber.

    >>> sentence = "new is lower. Rows per unit differ (2 and 3): this is an effect on rows, not on"
    >>> parted_rows(f"{sentence} units.")[0]
    'new is lower. '
    """
    match = _ON_ROWS.search(sentence)
    return (sentence, "") if match is None else (sentence[: match.start()], match[0])


def tone_of(recommendation: Recommendation, mixed: Contamination | None) -> Tone:
    """The tone of a recommendation; "warn" if units of several variants are too many, unless the
    tone is "bad"."""
    tone = ACTION_TONES[recommendation.action]
    return "warn" if mixed is not None and mixed.warning and tone != "bad" else tone


def parted(sentence: str, mixed: Contamination | None) -> tuple[str, str, str]:
    """A sentence in three parts: before, within and after the words about units of several
    variants, which every surface shows in amber."""
    warning = "" if mixed is None else mixed.sentence.removesuffix(".")
    return sentence.partition(warning) if warning else (sentence, "", "")


def standing(
    state: ExperimentState,
    sentence: str,
    mixed: Contamination | None,
    recommendation: Recommendation | None,
) -> str:
    """The text below the recommendation: "" if the recommendation gives the reason, otherwise
    without its sentences and without the one about units of several variants."""
    if state in ("waiting", "distrusted", "early"):
        return ""
    warning = "" if mixed is None else mixed.sentence
    remaining_text = sentence.replace(warning, "").strip() if warning else sentence
    advice = "" if recommendation is None else recommendation.sentence
    return " ".join(part for part in _ENDS.split(remaining_text) if part not in advice)


def standing_over(declared: DeclaredExperiment | None, total: ResultsAnswer) -> str:
    """`standing` for an answer over the total; "" if no experiment is declared."""
    if declared is None:
        return ""
    from streammetrics_consumers.query.comparisons import verdict

    state, sentence = verdict(declared, total.comparisons)
    return standing(state, sentence, total.contamination, total.recommendation)

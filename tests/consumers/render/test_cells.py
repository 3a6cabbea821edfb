"""What every surface shows alike: verdicts, columns of p-values, and texts beside the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.join_status import outcome_answer
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.rows import ComparisonText
from streammetrics_consumers.render.cells import (
    effects_of,
    p_column,
    results_with_texts,
)
from streammetrics_consumers.render.join_text import join_outcomes
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.terminal import Watcher, screen
from streammetrics_consumers.render.verdict_words import (
    ACTION_SYMBOLS,
    ACTION_TONES,
    SYMBOLS,
    TONES,
)

from streammetrics.experiments import ACTIONS, VERDICTS
from streammetrics.results import OutcomeDelays
from tests.consumers.answer_rows import altered
from tests.consumers.render.corpus import JOINED, corpus

Stores = Callable[[str], Path]


def test_every_verdict_and_action_has_a_tone_and_only_what_is_good_has_a_tick() -> None:
    assert set(TONES) == set(SYMBOLS) == set(VERDICTS)
    assert set(ACTION_TONES) == set(ACTION_SYMBOLS) == set(ACTIONS)
    for tones, symbols in ((TONES, SYMBOLS), (ACTION_TONES, ACTION_SYMBOLS)):
        for word, tone in tones.items():
            assert (symbols[word] == "✓") is (tone == "good")  # type: ignore[index]
            assert (symbols[word] == "✕") is (tone == "bad")  # type: ignore[index]
            assert (symbols[word] == "!") is (tone == "warn")  # type: ignore[index]


def test_a_column_of_p_values_says_which_they_are() -> None:
    rows = corpus()["kept"].comparisons
    title, values = p_column(rows)
    assert title == "p (Holm)"
    assert values[0] == rows[0].holm_pvalue and math.isnan(values[1])  # a guardrail has none
    title, values = p_column([altered(row, holm_pvalue=None) for row in rows])
    assert (title, values[0]) == ("p (not adjusted)", rows[0].finding.anytime_pvalue)
    assert math.isnan(values[1])


def test_what_is_undefined_has_no_text_on_the_page() -> None:
    nan, shown = math.nan, corpus()["win"]
    row = altered(
        shown.comparisons[0], pvalue=nan, effect_size_ci_lower=nan, effect_size_ci_upper=nan
    )
    for comparison, texts in ((row, ("—", "—")), (altered(row, pvalue=0.5), ("—", "0.500"))):
        [result] = results_with_texts(replace(shown, comparisons=(comparison,))).comparisons
        assert isinstance(result.text, ComparisonText)
        assert (result.text.once, result.text.p_once) == texts


def test_half_of_the_outcomes_are_in_by_the_end_of_the_bin_that_completes_it() -> None:
    delays = OutcomeDelays(1000, 0, 0, 0, {(1, 2): 500, (2, 4): 500}, {})
    join = replace(JOINED, outcomes={"click": outcome_answer(0, delays)})
    assert next(join_outcomes(join))[3:5] == ("2 s", "4 s")


def test_advice_is_of_all_metrics_and_said_once(case_store: Callable[[str], Path]) -> None:
    with closing(Ledger.open(str(case_store("broken")))) as ledger:
        answer = QueryCache(ledger).results(Query(metric="ctr"))
    assert answer.recommendation is not None
    assert answer.recommendation.action == "do_not_ship"
    with closing(Ledger.open(str(case_store("none")))) as ledger:
        shown = screen(Watcher(ledger, Query(), lambda: 0.0).look(), Style(1000))
    assert "We cannot tell yet: the always-valid interval" in shown
    assert shown.count("more units would show") == 1


def test_an_interval_at_one_look_without_an_end_is_none() -> None:
    [row] = corpus()["win"].comparisons
    for lower, upper, text in (
        (-math.inf, math.inf, "none"),
        (math.nan, math.nan, "none"),
        (-1.0, math.inf, "-1.000 to inf"),
    ):
        [effect] = effects_of(
            [altered(row, effect_size_ci_lower=lower, effect_size_ci_upper=upper)]
        )
        assert effect.once == text

"""One verdict on every surface: the same word, in the colour of its tone."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json
from streammetrics_consumers.render.cells import p_column
from streammetrics_consumers.render.terminal import screen
from streammetrics_consumers.render.text import Style
from streammetrics_consumers.render.verdict_words import (
    ACTION_SYMBOLS,
    ACTION_TONES,
    SYMBOLS,
    TONES,
)
from streammetrics_consumers.render.watching import Watcher

from streammetrics.experiments import ACTIONS, VERDICTS
from tests.consumers.render.corpus import corpus
from tests.consumers.render.snapshots import report, terminal, text
from tests.consumers.verdict_cases import CASES

Stores = Callable[[str], Path]


def test_every_verdict_and_action_has_a_tone_and_only_what_is_good_has_a_tick() -> None:
    assert set(TONES) == set(SYMBOLS) == set(VERDICTS)
    assert set(ACTION_TONES) == set(ACTION_SYMBOLS) == set(ACTIONS)
    for tones, symbols in ((TONES, SYMBOLS), (ACTION_TONES, ACTION_SYMBOLS)):
        for one, tone in tones.items():
            assert (symbols[one] == "✓") is (tone == "good")  # type: ignore[index]
            assert (symbols[one] == "✕") is (tone == "bad")  # type: ignore[index]
            assert (symbols[one] == "!") is (tone == "warn")  # type: ignore[index]


def test_no_surface_shows_a_number_of_an_experiment_that_nobody_can_read() -> None:
    concluded = [one for one in corpus().values() if one.recommendation is not None]
    assert {one.recommendation.action for one in concluded if one.recommendation} == set(ACTIONS)
    for results in concluded:
        for render in (text, terminal, report):
            shown = html.unescape(render(results))
            assert not re.search(r"\bp 0\.0+\b|\de[+-]\d|\(unnamed\)", shown)


def test_a_column_of_p_values_says_which_they_are() -> None:
    findings = [row.finding for row in corpus()["kept"].comparisons]
    title, values = p_column(findings)
    assert title == "p (Holm)"
    assert values[0] == findings[0].holm and math.isnan(values[1])  # a guardrail has none
    title, values = p_column([replace(one, holm=None) for one in findings])
    assert (title, values[0]) == ("p (not adjusted)", findings[0].anytime_pvalue)
    assert math.isnan(values[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_script_reads_the_recommendation_from_the_results(case_store: Stores, name: str) -> None:
    with closing(Ledger.open(str(case_store(name)))) as ledger:
        results = read_results(ledger, Query())
    case, found = CASES[name], json.loads(to_json(results))
    assert tuple(one["verdict"] for one in found["comparisons"]) == case.says
    assert found["recommendation"]["action"] == case.action
    assert (found["contamination"]["units"] > 0) == (case.both > 0)


@pytest.mark.slow
def test_answers_of_one_metric_keep_the_recommendation_of_all(case_store: Stores) -> None:
    with closing(Ledger.open(str(case_store("broken")))) as ledger:
        found = QueryCache(ledger).results(Query(metric="ctr"))
    assert found.recommendation is not None
    assert found.recommendation.action == "do_not_ship"


@pytest.mark.slow
def test_how_many_more_units_are_needed_is_said_once(case_store: Stores) -> None:
    """It is the recommendation's, and not said again below it."""
    with closing(Ledger.open(str(case_store("none")))) as ledger:
        shown = screen(Watcher(ledger, Query(), lambda: 0.0).look(), Style(1000))
    assert "We cannot tell yet: the always-valid interval" in shown
    assert shown.count("more units would show") == 1

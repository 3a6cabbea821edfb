"""One verdict on every surface: the same word, and the colour of its tone."""

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

from consumers.ledger.ledger import Ledger
from consumers.report import document
from consumers.report.material import Material
from consumers.results.follow import QueryCache
from consumers.results.query import Query
from consumers.results.reader import read_results
from consumers.results.results import Results, to_json
from consumers.results.screen import screen
from consumers.results.store_text import results_text
from consumers.results.terminal import Style
from consumers.results.verdict_words import (
    ACTION_SYMBOLS,
    ACTION_TONES,
    SYMBOLS,
    TONES,
    p_column,
    tone_of,
    words,
)
from consumers.results.watching import Watcher
from consumers.server.exposition import exposition
from consumers.server.health import NOBODY
from streammetrics.experiments import ACTIONS, VERDICTS
from tests.consumers.verdict_cases import CASES

pytestmark = pytest.mark.slow
ANSI = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "warn": "\x1b[33m"}
Stores = Callable[[str], Path]


def read(store: Path) -> Results:
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, Query())


def surfaces(store: Path, width: int = 100) -> dict[str, str]:
    """What `results`, `watch`, `report` and Prometheus show, with colours."""
    results, style = read(store), Style(width, colour=True)
    with closing(Ledger.open(str(store))) as ledger:
        watched = screen(Watcher(ledger, Query(), lambda: 0.0).look(), style)
        gauges = exposition(ledger, NOBODY).decode()
    material = Material("store", results, None, "said.", (), 0, ())
    return {
        "results": results_text(results, Query(), style, store=str(store)),
        "watch": watched,
        "report": document.report_html(material).decode(),
        "metrics": gauges,
    }


def test_every_verdict_and_action_has_a_tone_and_only_what_is_good_has_a_tick() -> None:
    assert set(TONES) == set(SYMBOLS) == set(VERDICTS)
    assert set(ACTION_TONES) == set(ACTION_SYMBOLS) == set(ACTIONS)
    for tones, symbols in ((TONES, SYMBOLS), (ACTION_TONES, ACTION_SYMBOLS)):
        for one, tone in tones.items():
            assert (symbols[one] == "✓") is (tone == "good")  # type: ignore[index]
            assert (symbols[one] == "✕") is (tone == "bad")  # type: ignore[index]
            assert (symbols[one] == "!") is (tone == "warn")  # type: ignore[index]


@pytest.mark.parametrize("name", CASES)
def test_every_surface_shows_the_verdict_in_its_tone(case_store: Stores, name: str) -> None:
    case, results = CASES[name], read(case_store(name))
    found = [row.finding for row in results.comparisons]
    assert tuple(one.verdict for one in found) == case.says
    advice = results.recommendation
    assert advice is not None and advice.action == case.action
    told = surfaces(case_store(name))
    tone = tone_of(advice, results.contamination)
    assert f'<p class="verdict {tone}"' in told["report"]
    first = re.sub(r"\x1b\[[0-9;]*m", "", told["watch"]).splitlines()[3]
    assert advice.sentence.startswith(first)
    for one in found:
        said, tone = words(one.verdict), TONES[one.verdict]
        assert f"{SYMBOLS[one.verdict]} {said}</td>" in told["report"]
        assert f'class="{tone}">{SYMBOLS[one.verdict]} {said}' in told["report"]
        for surface in ("results", "watch"):
            colour = ANSI.get(tone)
            assert said in told[surface]
            if colour is not None:
                assert f"{colour}{said}" in told[surface], surface
        labels = f'metric="{one.contrast.metric}",treatment="new",verdict="{one.verdict}"'
        assert re.search(rf"_effect_verdict{{[^}}]*{labels}[^}}]*}} 1\.0", told["metrics"])
    assert told["metrics"].count("\nstreammetrics_effect_verdict{") == len(VERDICTS) * len(found)
    assert len(re.findall(r"_effect_verdict{.*} 1\.0", told["metrics"])) == len(found)
    assert re.findall(r'_recommendation{action="(\w+)"} 1\.0', told["metrics"]) == [case.action]


@pytest.mark.parametrize("name", CASES)
def test_no_surface_shows_a_number_that_nobody_can_read(case_store: Stores, name: str) -> None:
    told = surfaces(case_store(name))
    for surface in ("results", "watch", "report"):
        text = html.unescape(re.sub(r"<style>.*</style>", "", told[surface], flags=re.DOTALL))
        assert not re.search(r"\bp 0\.0+\b|\de[+-]\d|\(unnamed\)", text), surface


def test_units_of_several_variants_are_amber_and_in_the_sentence(case_store: Stores) -> None:
    store = case_store("mixed")
    mixed, told = read(store).contamination, surfaces(store)
    assert mixed is not None and mixed.warning
    said = "100 units have been seen in several variants"
    assert f'<span class="mixed">{said}' in told["report"]
    for surface in ("results", "watch"):
        assert f"{ANSI['warn']}{said}" in told[surface] or said in told[surface]
    [share] = re.findall(r"\nstreammetrics_units_in_several_variants_share (\S+)", told["metrics"])
    assert float(share) == mixed.share


def test_a_guardrail_shows_its_margin(case_store: Stores) -> None:
    told = surfaces(case_store("kept"))
    assert "stay (ratio), guardrail, margin -0.1000" in told["report"]
    assert re.search(r"  margin +-0\.1000", told["results"])
    [margin] = re.findall(r'_effect_margin{[^}]*metric="stay"[^}]*} (\S+)', told["metrics"])
    assert float(margin) == -0.1


def test_a_column_of_p_values_says_which_they_are(case_store: Stores) -> None:
    findings = [row.finding for row in read(case_store("kept")).comparisons]
    title, values = p_column(findings)
    assert title == "p (Holm)"
    assert values[0] == findings[0].holm and math.isnan(values[1])  # a guardrail has none
    title, values = p_column([replace(one, holm=None) for one in findings])
    assert (title, values[0]) == ("p (not adjusted)", findings[0].anytime_pvalue)
    assert math.isnan(values[1])
    told = surfaces(case_store("kept"))
    assert "p (Holm)" in told["watch"] and "p (Holm)" in told["report"]
    assert "p, always valid, Holm" in told["results"]
    [adjusted] = re.findall(r"_effect_holm_pvalue{.*} (\S+)", told["metrics"])
    assert float(adjusted) == findings[0].holm


def test_answers_of_one_metric_keep_the_recommendation_of_all(case_store: Stores) -> None:
    with closing(Ledger.open(str(case_store("broken")))) as ledger:
        found = QueryCache(ledger).results(Query(metric="ctr"))
    assert found.recommendation is not None
    assert found.recommendation.action == "do_not_ship"


def test_how_many_more_units_are_needed_is_said_once(case_store: Stores) -> None:
    """It is the recommendation's, and not said again below it."""
    with closing(Ledger.open(str(case_store("none")))) as ledger:
        shown = screen(Watcher(ledger, Query(), lambda: 0.0).look(), Style(1000))
    assert "We cannot tell yet: the always-valid interval" in shown
    assert shown.count("more units would show") == 1


@pytest.mark.parametrize("name", CASES)
def test_a_script_reads_the_recommendation_from_the_results(case_store: Stores, name: str) -> None:
    found = json.loads(to_json(read(case_store(name))))
    assert found["recommendation"]["action"] == CASES[name].action
    assert (found["contamination"]["units"] > 0) == (CASES[name].both > 0)

"""What may be concluded, as the page shows it: one recommendation, and a verdict on each."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.render import verdict_words
from streammetrics_consumers.server.health import Watched
from streammetrics_consumers.server.process import serving

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.consumers.verdict_cases import CASES

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]
ALONE = Watched(dict, time.monotonic, time.time)
COLOUR = """(one) => {
  const probe = document.createElement("i");
  one.append(probe);
  const of = (element) => getComputedStyle(element).color;
  const found = ["good", "bad", "warn", "ink"].find((name) => {
    probe.style.color = `var(--${name})`;
    return of(probe) === of(one);
  });
  probe.remove();
  return found;
}"""
TONES = {"good": "good", "bad": "bad", "warn": "warn", "neutral": "ink"}


def test_the_words_of_the_page_are_those_of_the_command_line(
    served: Stream, open_page: Open
) -> None:
    found = open_page(served.url).page.evaluate(
        """async () => {
          const all = await import("/assets/verdicts.js");
          const { TONES, SYMBOLS, ACTION_TONES, ACTION_SYMBOLS } = all;
          const words = Object.fromEntries(Object.keys(TONES).map((one) => [one, all.words(one)]));
          return { TONES, SYMBOLS, ACTION_TONES, ACTION_SYMBOLS, words };
        }"""
    )
    assert found.pop("words") == {one: verdict_words.words(one) for one in verdict_words.TONES}
    assert found == {name: dict(getattr(verdict_words, name)) for name in found}


@pytest.mark.parametrize("name", CASES)
def test_every_verdict_has_its_word_symbol_and_colour(
    case_store: Callable[[str], Path], open_page: Open, name: str
) -> None:
    case = CASES[name]
    with serving(str(case_store(name)), "127.0.0.1", 0, ALONE) as url:
        page = open_page(url).until("ready")
        told = httpx.get(url + "api/experiment").json()
    assert page.text("#sentence") == told["recommendation"]["sentence"]
    cells = page.page.locator("#experiment td.verdict")
    assert cells.all_inner_texts() == [
        verdict_words.SYMBOLS[one] + verdict_words.words(one)  # type: ignore[index,arg-type]
        for one in case.says
    ]
    for i, verdict in enumerate(case.says):
        assert cells.nth(i).evaluate(COLOUR) == TONES[verdict_words.TONES[verdict]]  # type: ignore[index]
    tone = verdict_words.ACTION_TONES[case.action]  # type: ignore[index]
    assert page.page.locator(".sentence .symbol").evaluate(COLOUR) == TONES[tone]
    ticks = page.text("#experiment").count("✓")
    assert ticks == sum(verdict_words.TONES[one] == "good" for one in case.says) + (tone == "good")  # type: ignore[index]


def test_a_guardrail_draws_its_margin_on_the_scale_of_its_interval(
    case_store: Callable[[str], Path], open_page: Open
) -> None:
    with serving(str(case_store("kept")), "127.0.0.1", 0, ALONE) as url:
        page = open_page(url).until("ready").page
    rows = page.locator("#experiment tbody tr")
    assert rows.nth(0).locator(".bar-margin").count() == 0
    rail = rows.nth(1)
    assert "guardrail, margin -0.1000" in rail.inner_text()
    zero, margin, value = (
        rail.locator(f".bar-{name}").evaluate("one => parseFloat(one.style.left)")
        for name in ("zero", "margin", "value")
    )
    assert value == zero  # the effect is 0
    lower = rail.locator(".bar-interval").evaluate("one => parseFloat(one.style.left)")
    assert 0 < margin < lower < zero


def test_units_of_several_variants_are_amber_in_the_sentence(
    case_store: Callable[[str], Path], open_page: Open
) -> None:
    with serving(str(case_store("mixed")), "127.0.0.1", 0, ALONE) as url:
        page = open_page(url).until("ready")
    assert page.text("#sentence .attention").startswith("100 units have been seen in several")
    assert page.page.locator("#sentence .attention").first.evaluate(COLOUR) == "warn"
    assert page.page.locator("#experiment").get_attribute("data-tone") == "warn"


def test_a_column_of_p_values_says_which_they_are(
    case_store: Callable[[str], Path], open_page: Open
) -> None:
    with serving(str(case_store("kept")), "127.0.0.1", 0, ALONE) as url:
        page = open_page(url).until("ready").page
    assert page.locator("#experiment thead th").last.inner_text() == "p (Holm)"
    cells = page.locator("#experiment tbody tr td:last-child").all_inner_texts()
    assert cells == ["<0.0001", "none"]

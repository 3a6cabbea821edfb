"""What may be concluded, as the page shows it: one recommendation, and a verdict on each."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.render import verdict_words
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests.consumers.server.page.seen import Seen
from tests.consumers.verdict_cases import CASES, Case
from tests.patience import LIMIT_S

Open = Callable[..., Seen]
ALONE = WatchedWorkers(dict, time.monotonic, time.time)
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


def test_every_verdict_has_its_word_symbol_and_colour(
    case_store: Callable[[str], Path], open_page: Open
) -> None:
    visit = None
    for name, case in CASES.items():
        with serving(str(case_store(name)), ServerConfig(port=0), ALONE) as url:
            visit = (visit.go(url) if visit else open_page(url)).until("ready")
            answer = httpx.get(url + "api/experiment", timeout=LIMIT_S).json()
        assert answer["recommendation"]["action"] == case.action, name
        assert (answer["contamination"]["units"] > 0) == (case.both > 0), name
        shown(visit, case, answer["recommendation"]["sentence"])
        if name == "kept":
            margin_is_drawn(visit)
            assert visit.page.locator("#experiment thead th").last.inner_text() == "p (Holm)"
            cells = visit.texts("#experiment tbody tr td:last-child")
            assert cells == ["<0.0001", "—"]
        if name == "rows":
            sentence = "differ (1.00 and 1.50): an effect on rows, not on units"
            doubt = "#experiment .note .attention"
            assert visit.texts(doubt) == [sentence]
            assert visit.page.locator(doubt).first.evaluate(COLOUR) == "warn"
        if name == "mixed":
            assert visit.text("#sentence .attention").startswith("100 units (2.56 % of all)")
            assert visit.page.locator("#sentence .attention").first.evaluate(COLOUR) == "warn"
            assert visit.page.locator("#experiment").get_attribute("data-tone") == "warn"


def shown(page: Seen, case: Case, sentence: str) -> None:
    """The page has the verdicts of a case, in the colours of their tones."""
    assert page.text("#sentence") == sentence
    cells = page.page.locator("#experiment td.verdict")
    assert page.texts("#experiment td.verdict") == [
        verdict_words.SYMBOLS[word] + verdict_words.words(word)  # type: ignore[index,arg-type]
        for word in case.says
    ]
    for i, verdict in enumerate(case.says):
        colour = "warn" if case.again else TONES[verdict_words.TONES[verdict]]  # type: ignore[index]
        assert cells.nth(i).evaluate(COLOUR) == colour
    tone = verdict_words.ACTION_TONES[case.action]  # type: ignore[index]
    assert page.page.locator(".sentence .symbol").evaluate(COLOUR) == TONES[tone]
    arms = page.texts("#arms li")
    assert [text.partition(":")[0][1:].strip() for text in arms] == ["new"]
    ticks = (page.text("#experiment").count("✓")) - page.text("#arms").count("✓")
    assert ticks == sum(verdict_words.TONES[word] == "good" for word in case.says) + (
        tone == "good"
    )  # type: ignore[index]


def margin_is_drawn(page: Seen) -> None:
    """A guardrail has its margin on the scale of its interval, and a decision has none."""
    rows = page.page.locator("#experiment tbody tr")
    assert rows.nth(0).locator(".bar-margin").count() == 0
    rail = rows.nth(1)
    assert "guardrail, margin -0.10" in rail.inner_text()
    zero, margin, value, lower = (
        rail.locator(f".bar-{name}").evaluate("one => parseFloat(one.style.left)")
        for name in ("zero", "margin", "value", "interval")
    )
    assert value == zero  # the effect is 0
    assert 0 < margin < lower < zero

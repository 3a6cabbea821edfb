"""The rules of axe-core, which are those of WCAG 2.2 that a program can check and more, over every
scene and state of the page in both themes; and the order in which keys reach its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.process import serving

from tests import page_scenes
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.consumers.server.page.test_verdicts import ALONE

Open = Callable[..., Seen]
# Widths of the page, and the looks that axe takes at it there.
LOOKS = ((1280, ("light", "dark")), (390, ("narrow",)))
SHOWN = "html:is([data-state=ready], [data-state=empty])"
ALL_DRAWN = """async () => {
  const { whole } = await import("/assets/cards.js");
  await whole();
  for (const card of document.querySelectorAll(".card")) card.style.contentVisibility = "visible";
}"""
AXE = """async (look) => {
  // In another theme only colours differ, and a narrow page has those of a wide one.
  const runOnly = look === "dark" ? ["cat.color"] : undefined;
  const rules = look === "narrow" ? { "color-contrast": { enabled: false } } : {};
  const options = { resultTypes: ["violations"], runOnly, rules };
  const { passes, violations } = await axe.run(document, options);
  return { passed: passes.length, violations };
}"""
FOCUSED = """() => {
  const one = document.activeElement;
  if (one === document.body) return "none";
  const { top, bottom, width } = one.getBoundingClientRect();
  const strip = document.getElementById("health");
  const above = one.closest("header, .skip, #health") !== null;
  const least = above ? 0 : strip.getBoundingClientRect().bottom;
  if (!(width > 0 && top < innerHeight && bottom > least)) return null;  // not in view yet
  const { last } = globalThis;
  globalThis.last = one;
  const follows = last?.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
  return last?.isConnected ? (follows ? "after" : "before") : "first";
}"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The store of a scene of `tests.page_scenes`, made once."""
    stores: dict[str, Path] = {}

    def store(name: str) -> Path:
        if name not in stores:
            stores[name] = page_scenes.SCENES[name](tmp_path_factory.mktemp(name))
        return stores[name]

    return store


def violations(page: Seen, where: str, looks: Sequence[str] = ("light", "dark")) -> list[str]:
    """What axe finds at each look: the rule, and the first element that breaks it."""
    breaches = []
    if page.page.evaluate("typeof axe") == "undefined":  # to compile it costs half of a run
        page.page.evaluate(AXE_SCRIPT)
    for look in looks:
        theme: Literal["light", "dark"] = "dark" if look == "dark" else "light"
        page.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        answer = page.page.evaluate(AXE, look)
        assert answer["passed"], where  # it has run
        breaches += [
            f"{where}, {look}: {violation['id']}: {violation['nodes'][0]['html'][:200]}"
            for violation in answer["violations"]
        ]
    return breaches


@pytest.mark.parametrize("name", page_scenes.SCENES)
def test_no_scene_breaks_a_rule_of_accessibility(
    name: str, scene: Callable[[str], Path], open_page: Open
) -> None:
    with serving(str(scene(name)), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url)
        breaches = []
        for width, looks in LOOKS:
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.wait_for_selector(SHOWN, state="attached")
            if name != "fifty":  # of which those in view are drawn
                visit.page.evaluate(ALL_DRAWN)
            breaches += violations(visit, f"{width} pixels", looks)
    assert breaches == []


def test_no_view_and_no_state_breaks_one(scene: Callable[[str], Path], open_page: Open) -> None:
    breaches = []
    with serving(str(scene("three")), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url)
        for query in (
            "?by=variant,country&metric=click_rate",
            "?metric=auc",
            "?window=all",
            "#late",
        ):
            visit.go(url + query).until("ready")
            visit.page.evaluate(ALL_DRAWN)
            breaches += violations(visit, query)
        visit.go(f"{url}?metric=nothing").until("broken")
        breaches += violations(visit, "broken")
        visit.go(url).until("ready")
    visit.until("stale")
    breaches += violations(visit, "stale")
    assert breaches == []


def test_names_of_any_kind_break_none(tmp_path: Path, open_page: Open) -> None:
    names = "\u05d9\u05e9\u05df", "<b onclick=alert(1)>b</b>", "a_long_name_" * 12
    with Stream.counted(tmp_path, names).serve() as stream:
        visit = open_page(stream.url, width=390).until("ready")
        visit.page.evaluate(ALL_DRAWN)
        assert violations(visit, "names") == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visit.page.locator("#experiment bdi").first.inner_text() == names[0]
        assert "a_long_name_a_long_name_a_long_name_a..." in visit.text("#arms")
        assert visit.page.locator("[onclick]").count() == 0


def test_keys_reach_each_part_in_the_order_of_the_page_and_it_is_in_view(
    scene: Callable[[str], Path], open_page: Open
) -> None:
    with serving(str(scene("three")), ServerConfig(port=0), ALONE) as url:
        visit = open_page(f"{url}?by=variant,country").until("ready")
        visit.page.evaluate(ALL_DRAWN)  # a chart that is drawn later moves what is below it
        forwards = list(focused(visit, "Tab", 200))
        backwards = list(focused(visit, "Shift+Tab", len(forwards) - 1))
    assert 30 < len(forwards) < 200 and "before" not in forwards
    assert len(backwards) == len(forwards) - 1 and "after" not in backwards[1:]


def focused(page: Seen, key: str, times: int) -> Iterator[str]:
    """Where each element that a key reaches is, seen from the last, until it leaves the page."""
    for _ in range(times):
        page.page.keyboard.press(key)
        place = page.page.wait_for_function(FOCUSED).json_value()
        if place == "none":
            return
        yield place

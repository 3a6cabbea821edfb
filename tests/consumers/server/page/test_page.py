"""The page in a real browser, over a real server and a store of real runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]


def test_the_page_shows_the_numbers_of_the_api_to_the_bit(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready")
    answer = served.get("api/results?by=variant&views=headline")
    for metric in ("auc", "calibration", "ctr"):
        rows = [row["value"] for row in answer["results"] if row["metric"] == metric]
        card = f'.card[data-metric="{metric}"]'
        page.page.locator(card).scroll_into_view_if_needed()
        page.page.wait_for_selector(f"{card} table")
        assert page.numbers(f"{card} table.figures") == rows
    effects = [one["effect_size"] for one in answer["comparisons"]]
    assert page.numbers("#experiment table") == effects
    told = served.get("api/experiment")
    assert page.text("#sentence") == told["recommendation"]["sentence"]  # type: ignore[call-overload]
    assert page.text("#standing") == told["sentence"]


def test_an_update_arrives_by_itself(growing: Stream, open_page: Open) -> None:
    page = open_page(growing.url).until("ready")
    assert "1,200" in page.text("#health")
    growing.write(50, day=2)
    growing.count()
    page.page.wait_for_selector('#health [data-field=read] dd:text-is("1,300")')
    page.page.wait_for_selector('.card[data-metric="auc"] td:text-is("650")')
    answer = growing.get("api/results?by=variant&metric=auc&views=headline")
    assert page.numbers('.card[data-metric="auc"] table') == [
        row["value"] for row in answer["results"]
    ]


def test_a_chart_that_was_updated_is_that_which_is_drawn_anew(
    growing: Stream, open_page: Open
) -> None:
    drawn = "[...document.querySelectorAll('figure canvas')].map((one) => one.toDataURL())"
    page = open_page(growing.url + "?metric=ctr", height=1400).until("ready").chart()
    seen = []
    for counted in (700, 800):  # the first update has all rows, and later ones what has changed
        growing.write(100, day=2)
        growing.count()
        page.page.wait_for_selector(f'table.figures td:text-is("{counted}")')
        page.page.wait_for_timeout(2500)
        seen.append(page.page.evaluate(drawn))
    assert len(seen[0]) == 2  # over time, and the effect
    assert seen[0] != seen[1]
    page.page.reload()
    page.until("ready").chart()
    page.page.wait_for_timeout(1500)
    assert page.page.evaluate(drawn) == seen[1]


def test_an_update_leaves_what_a_person_has_marked(growing: Stream, open_page: Open) -> None:
    page = open_page(growing.url).until("ready")
    page.page.wait_for_selector(".card table.figures")
    page.page.locator(".card .scroll").first.focus()
    growing.write(50, day=2)
    growing.count()
    page.page.wait_for_selector('.card[data-metric="auc"] td:text-is("650")')
    assert page.page.evaluate("document.activeElement.className") == "scroll"


def test_the_page_marks_intervals_that_take_rows_as_independent(
    served: Stream, open_page: Open
) -> None:
    found = served.get("api/results?by=variant&views=headline&metric=ctr")["results"]
    said = {row["interval"]["reason"] for row in found}  # type: ignore[index]
    page = open_page(served.url + "?metric=ctr").until("ready")
    mark = page.page.locator("table.figures .doubt").first
    assert mark.get_attribute("title") in said
    assert "independent" in str(mark.get_attribute("title"))


def test_a_deep_link_opens_its_view_and_a_filter_changes_the_address(
    served: Stream, open_page: Open
) -> None:
    page = open_page(served.url + "?metric=ctr&window=latest&by=variant,phase").until("ready")
    assert page.page.locator(".card").count() == 1
    assert page.page.input_value("[name=window]") == "latest"
    assert "phase = fit" in page.text(".card caption >> nth=0")
    page.page.select_option("[name=metric]", "auc")
    page.page.wait_for_selector('.card[data-metric="auc"]')
    assert "metric=auc" in page.page.url and "window=latest" in page.page.url
    page.page.go_back()
    page.page.wait_for_selector('.card[data-metric="ctr"]')


def test_one_metric_alone_has_every_view_and_every_chart(served: Stream, open_page: Open) -> None:
    page = open_page(served.url + "?metric=auc").until("ready")
    page.chart()
    shown = page.page.locator("figcaption").all_inner_texts()
    assert {text.split("\n")[0].strip() for text in shown} >= {"Over time", "ROC"}
    views = {row["view"] for row in served.get("api/results?by=variant&metric=auc")["results"]}
    assert set(page.page.locator("th[scope=rowgroup]").all_inner_texts()) == views


def test_a_point_of_a_chart_says_its_numbers(served: Stream, open_page: Open) -> None:
    page = open_page(served.url + "?metric=ctr").until("ready").chart()
    assert page.page.evaluate(_POINT_AT_ANY)
    said = page.text("#vg-tooltip-element")
    assert "window (UTC)" in said and "2022-01-08" in said
    assert "control" in said or "treatment" in said
    page.page.mouse.move(0, 0)


_POINT_AT_ANY = """() => {
  const canvas = document.querySelector("figure canvas");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  for (let x = 0; x < width; x += 2) {
    for (let y = 0; y < height; y += 3) {
      const at = { clientX: left + x, clientY: top + y, bubbles: true };
      canvas.dispatchEvent(new PointerEvent("pointermove", at));
      canvas.dispatchEvent(new MouseEvent("mousemove", at));
      if (document.querySelector("#vg-tooltip-element.visible")) return true;
    }
  }
  return false;
}"""


def test_hostile_names_are_text(tmp_path: Path, open_page: Open) -> None:
    hostile = "<script>alert(1)</script>", "<img src=x onerror=alert(2)>"
    with Stream.counted(tmp_path, hostile, phase='"><svg onload=alert(3)>').serve() as stream:
        page = open_page(stream.url + "?by=variant,phase&metric=auc").until("ready")
        page.chart()
        page.page.wait_for_timeout(300)
        assert "<script>alert(1)</scr..." in page.text("table.figures")
        assert '"><svg onload=alert(3)>' in page.text("table.figures caption")
        assert page.page.locator("main script, main img, main [onload]").count() == 0


def test_without_javascript_the_way_to_the_text_is_shown(served: Stream, open_page: Open) -> None:
    page = open_page(served.url, java_script_enabled=False)
    assert page.page.locator("noscript a").get_attribute("href") == "/results.txt"


def test_the_theme_follows_the_system_until_a_person_chooses(
    served: Stream, open_page: Open
) -> None:
    page = open_page(served.url, color_scheme="dark").until("ready")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.page.evaluate(ground)
    page.page.emulate_media(color_scheme="light")
    light = page.page.evaluate(ground)
    assert dark != light
    for name, colour in (("light", light), ("dark", dark)):
        page.page.click("#theme")
        assert name in page.text("#theme")
        assert page.page.evaluate(ground) == colour
    page.page.reload()
    page.until("ready")
    assert page.page.evaluate(ground) == dark


@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_nothing_lies_beyond_the_edge_and_health_stays_in_view(
    served: Stream, open_page: Open, width: int
) -> None:
    page = open_page(served.url, width, 700).until("ready")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.page.wait_for_timeout(200)
    extent = page.page.locator("#health").bounding_box()
    assert extent is not None and extent["y"] >= 0
    assert extent["y"] + extent["height"] <= 250

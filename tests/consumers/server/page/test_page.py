"""The page in a real browser, over a real server and a store of real runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streammetrics_consumers.model import formatting

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

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
    effects = [comparison["effect_size"] for comparison in answer["comparisons"]]
    assert page.numbers("#experiment table") == effects
    experiment = served.get("api/experiment")
    assert page.text("#sentence") == experiment["recommendation"]["sentence"]  # type: ignore[call-overload]
    assert page.text("#standing") == experiment["sentence"]


def test_alarms_of_metrics_are_notes_and_only_dashes_that_are_shown_are_explained(
    tmp_path: Path, open_page: Open
) -> None:
    treated = 'Uplift", treated_share = 0.99, inputs = { treated = "label" }, better = "higher'
    with Stream.counted(tmp_path, metrics={"ctr": "Ratio", "targeting": treated}).serve() as stream:
        page = open_page(stream.url).until("ready")
        *alarms, of_experiment = stream.get("api/results?by=variant&views=headline")["notes"]
        assert len(alarms) == 2 and all("alarm: the treated are 0." in note for note in alarms)
        assert of_experiment in page.text("#experiment")
        assert page.page.locator("#notes p").count() == 2
        assert page.texts("#notes .attention") == alarms
        card = '.card[data-metric="targeting"]'
        page.page.locator(card).scroll_into_view_if_needed()
        page.page.wait_for_selector(f"{card} table.figures")
        assert page.page.locator(f"{card} table.figures ~ .note").count() == 0
        page.page.goto(f"{stream.url}?metric=ctr")
        page.page.wait_for_selector("#notes:empty", state="attached")


INSIDE = """(table) => document.querySelector(table).getBoundingClientRect().right
  <= document.querySelector(table).closest(".card").getBoundingClientRect().right"""


def test_quantiles_of_independent_rows_have_their_band_below_their_interval(
    tmp_path: Path, open_page: Open
) -> None:
    of_scores = 'Quantiles", inputs = { values = "score" }, better = "lower'
    with Stream.counted(tmp_path, metrics={"ctr": "Ratio", "wait": of_scores}).serve() as stream:
        page = open_page(stream.url).until("ready")
        rows = stream.get("api/results?by=variant&metric=wait&views=headline&texts=tables")
        by_view = sorted(rows["results"], key=lambda row: row["view"])
        bands = [row["text"]["band"] for row in by_view]
        assert len(bands) == 8 and any("to inf" not in band for band in bands)
        heads = {}
        for metric in ("ctr", "wait"):
            table = f'.card[data-metric="{metric}"] table.figures'
            page.page.locator(f'.card[data-metric="{metric}"]').scroll_into_view_if_needed()
            page.page.wait_for_selector(table)
            heads[metric] = page.texts(f"{table} thead th")
        assert any("band" in head for head in heads["wait"])
        assert not any("band" in head for head in heads["ctr"])
        assert page.texts(f"{table} tbody small") == bands
        assert page.page.evaluate(INSIDE, table), "the numbers of rows are beyond the card"


def test_an_update_arrives_by_itself_and_leaves_what_a_person_has_marked(
    growing: Stream, open_page: Open
) -> None:
    page = open_page(growing.url).until("ready")
    assert "1,200" in page.text("#health")
    page.page.wait_for_selector(".card table.figures")
    page.page.locator(".card .scroll").first.focus()
    growing.write(50, day=2)
    growing.count()
    page.page.wait_for_selector('#health [data-field=read] dd:text-is("1,300")')
    page.page.wait_for_selector('.card[data-metric="auc"] td:text-is("650")')
    answer = growing.get("api/results?by=variant&metric=auc&views=headline")
    assert page.numbers('.card[data-metric="auc"] table') == [
        row["value"] for row in answer["results"]
    ]
    assert page.page.evaluate("document.activeElement.className") == "scroll"


def test_a_chart_that_was_updated_is_that_which_is_drawn_anew(
    growing: Stream, open_page: Open
) -> None:
    page = open_page(growing.url + "?metric=ctr", height=1400).until("ready").chart()
    drawn = page.drawings()
    assert len(drawn) == 2  # over time, and the effect
    for counted in (700, 800):  # the first update has all rows, and later ones what has changed
        growing.write(100, day=2)
        growing.count()
        page.page.wait_for_selector(f'table.figures td:text-is("{counted}")')
        drawn = page.settled().drawings(drawn)
    page.page.reload()
    page.until("ready").chart()
    assert page.settled().drawings() == drawn


def test_texts_are_those_of_the_server_and_intervals_that_take_rows_as_independent_are_marked(
    served: Stream, open_page: Open
) -> None:
    rows: Any = served.get("api/results?by=variant&metric=ctr&texts=tables&views=all")["results"]
    reasons = {row["interval"]["reason"] for row in rows if row["interval"]}
    page = open_page(served.url + "?metric=ctr").until("ready")
    cells = page.texts("table.figures td.number")
    for row in rows:
        text = row["text"]
        assert {text["value"], text["interval"] or "none", text["rows"]} <= set(cells)
    mark = page.page.locator("table.figures .doubt").first
    assert mark.get_attribute("title") in reasons
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
    roc = page.page.locator("figure", has=page.page.locator("figcaption", has_text="ROC"))
    roc.first.scroll_into_view_if_needed()
    page.page.locator("figcaption", has_text="AUC: ").first.wait_for()  # written when it is drawn
    shown = page.texts("figcaption")
    kinds = {text.split("\n")[0].strip() for text in shown}
    assert "Over time" in kinds and any(label.startswith("ROC AUC: control 0.") for label in kinds)
    views = {
        row["view"] for row in served.get("api/results?by=variant&metric=auc&views=all")["results"]
    }
    assert set(page.texts("th[scope=rowgroup]")) == views


def test_a_point_of_a_chart_says_its_numbers(served: Stream, open_page: Open) -> None:
    page = open_page(served.url + "?metric=ctr").until("ready").chart()
    assert page.page.evaluate(_POINT_AT_ANY)
    tooltip = page.text("#vg-tooltip-element")
    assert "window (UTC)" in tooltip and "2022-01-08" in tooltip
    assert "control" in tooltip or "treatment" in tooltip
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
        page.chart().settled()
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


def test_nothing_lies_beyond_the_edge_and_health_stays_in_view(
    served: Stream, open_page: Open
) -> None:
    page = open_page(served.url).until("ready").page
    for width in (400, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate("scrollTo(0, 0)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(100)
        extent = page.locator("#health").bounding_box()
        assert extent is not None and extent["y"] >= 0
        assert extent["y"] + extent["height"] <= 250


def test_names_are_shown_as_the_command_line_shows_them(served: Stream, open_page: Open) -> None:
    names = ["", "plain", "<b>&amp;", "a\x1b[31m\n\t", "\u202eabc", "\u00a0\u2028", "\U000e0001",
             "ß🎈", "x" * 41, "\n" * 39, "é" * 60]  # fmt: skip
    texts = open_page(served.url).page.evaluate(
        """async (names) => {
          const { name } = await import("/assets/printed.js");
          return names.map((one) => name(one));
        }""",
        names,
    )
    assert texts == [formatting.name(name) for name in names]


def test_two_effects_on_a_metric_have_their_views_and_no_column_is_cut_off(
    tmp_path: Path, open_page: Open
) -> None:
    stream = Stream.begun(tmp_path, ("control", "a_ranker_with_a_long_one"))
    config = tmp_path / "config.toml"
    text = config.read_text(encoding="utf-8")
    for old, new in (
        ('decision = ["ctr"]', 'decision = ["auc", "auc.gini"]'),
        ('cluster = "none"', 'cluster = "groups"'),
    ):
        assert old in text
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")
    stream.write(200)
    stream.count()
    with stream.serve():
        visit = open_page(stream.url).until("ready")
        names = visit.texts("#experiment tbody th")
        assert names == ["auc", "auc (gini)"]
        assert "auc (gini) " in visit.text("#arms")
        arms = visit.texts('.card[data-metric="auc"] table.effects tbody th')
        assert [arm_text.split() for arm_text in arms] == [
            [stream.variants[1]],
            [stream.variants[1], "gini"],
        ]
        tables = visit.page.locator(".card .scroll:has(table.figures)")
        assert tables.count() > 0
        for table in tables.all():
            assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0

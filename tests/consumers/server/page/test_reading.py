"""The page as its readers use it: slices in one table, a search, a range of dates, paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.process import serving

from tests import page_scenes
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.test_verdicts import ALONE

Open = Callable[..., Seen]
CARD = '.card[data-metric="click_rate"]'


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over an experiment of three metrics, 45 countries, and days without rows."""
    folder = tmp_path_factory.mktemp("scene")
    store = page_scenes.make_store(page_scenes.THREE, page_scenes.RAILS, 600, folder)
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        yield url


def test_the_declared_name_is_the_title_and_the_plan_stands_below(
    scene: str, open_page: Open
) -> None:
    page = open_page(scene).until("ready")
    assert page.text("h1") == "New ranker on the home page"
    assert page.page.title() == "New ranker on the home page - streammetrics"
    assert page.text("#hypothesis").startswith("Fresh items first")
    progress = page.text("#progress")
    assert progress.startswith("Planned 14 days, at least 6.0 so far; planned 20,000 units, ")
    [arm] = page.texts("#arms li")
    assert "new_ranker: click_rate better (+" in arm and "guardrail" in arm
    assert page.texts(".card h3 a") == list(page_scenes.THREE)
    first = page.page.locator(f"{CARD} table.figures tbody th").first
    assert first.inner_text() == "control"  # the config declares it second


def test_slices_are_one_table_that_is_sorted_and_searched(scene: str, open_page: Open) -> None:
    page = open_page(f"{scene}?by=variant,country").until("ready")
    page.page.wait_for_selector(f"{CARD} table.slices")
    assert page.page.locator(f"{CARD} table.figures").count() == 0
    rows = f"{CARD} table.slices tbody tr"
    assert page.page.locator(rows).count() == len(page_scenes.COUNTRIES)
    assert page.page.locator(f"{rows} th").first.inner_text() == "AA"
    page.page.click(f"{CARD} [data-sort='1']")
    values = page.numbers(f"{rows} td:nth-child(2)")
    assert values == sorted(values, reverse=True)
    assert page.page.locator(f"{CARD} [aria-sort=descending]").inner_text().startswith("control")
    page.page.click(f"{CARD} [data-sort='1']")
    assert page.numbers(f"{rows} td:nth-child(2)") == sorted(values)
    page.page.fill(f"{CARD} .slice-find", "ba")
    assert page.texts(f"{rows} th") == ["BA"]
    assert page.page.evaluate("document.activeElement.className") == "slice-find"


def test_slices_that_the_answer_left_out_are_sorted_and_searched_by_the_server(
    scene: str, open_page: Open
) -> None:
    page = open_page(f"{scene}?by=variant,country&window=all").until("ready")
    page.page.wait_for_selector(f"{CARD} table.slices")
    rows = f"{CARD} table.slices tbody tr"
    path = f"{scene}api/results?by=variant,country&window=all&metric=click_rate&views=headline"
    all_rows = page.page.request.get(path).json()["results"]
    lines = Counter[tuple[object, str]]()
    for row in all_rows:
        lines[row["window"]["start_ms"], row["slice"]["country"]] += row["counts"]["rows"]
    whole, days = len(lines), sum(country == "BA" for _, country in lines)
    assert f"{whole} slices" in page.text(f"{CARD} caption")
    assert page.page.locator(rows).count() == 50
    assert f"{whole - 50} more slices" in page.text(CARD)
    with page.page.expect_response("**/api/results?**sort=rows**order=descending**"):
        page.page.click(f"{CARD} [data-sort='4']")
    page.page.wait_for_selector(f"{rows}:nth-child(200)")
    counted = [int(n) for n in page.texts(f"{rows} td:last-child")]
    assert counted == sorted(lines.values(), reverse=True)[:200]
    page.page.fill(f"{CARD} .slice-find", "ba")
    page.page.wait_for_selector(f'{CARD} caption:has-text(": {days} of {whole} slices")')
    names = page.texts(f"{rows} th")
    assert {name.partition(";")[0] for name in names} == {"country = BA"}
    assert page.page.evaluate("document.activeElement.className") == "slice-find"
    page.page.fill(f"{CARD} .slice-find", "nowhere")
    page.page.wait_for_selector(f'{CARD} caption:has-text(": 0 of {whole} slices")')
    page.page.goto(f"{scene}?by=variant,country&metric=click_rate")
    page.until("ready").page.wait_for_selector(f"{CARD} .slice-view")
    page.page.select_option(f"{CARD} .slice-view", "numerator")
    page.page.wait_for_function(
        "(cells) => [...document.querySelectorAll(cells)].every((one) => one.value % 1 === 0)",
        arg=f"{rows} td:nth-child(2) data",
    )
    numbers = page.numbers(f"{rows} td:nth-child(2)")
    assert numbers and all(number.is_integer() for number in numbers)
    assert page.page.locator(f"{CARD} .slice-view").input_value() == "numerator"


def test_metrics_are_searched_and_the_address_keeps_the_search(scene: str, open_page: Open) -> None:
    page = open_page(scene).until("ready")
    page.page.fill("[name=find]", "LOSS")
    assert page.page.locator(".card").count() == 1
    assert page.text("#metrics-title") == "1 metric with “LOSS”"
    page.page.reload()
    page.until("ready")
    assert page.texts(".card h3 a") == ["log_loss"]


def test_a_range_of_dates_is_the_sum_of_its_windows(scene: str, open_page: Open) -> None:
    page = open_page(scene).until("ready")
    assert page.page.locator("[name=until]").count() == 0
    page.page.select_option("[name=window]", label="2022-01-09, closed")
    page.page.select_option("[name=until]", label="the end of 2022-01-10")
    page.page.wait_for_selector(f"{CARD} caption:has-text('2022-01-09 to 2022-01-11')")
    rows = page.texts(f"{CARD} table.figures tbody td:last-child")
    assert rows == ["600", "600"]  # two days of 300 users


def test_late_and_refused_events_are_a_link_from_their_counts(scene: str, open_page: Open) -> None:
    page = open_page(scene).until("ready")
    assert page.page.locator("#refused").count() == 0
    page.page.click("[data-field=quarantined] a")
    page.page.wait_for_selector("#refused")
    cells = page.texts("#refused tbody tr")
    assert sorted(cells) == ["metric\t5", "wrong_type\t5"]
    questions = [urlsplit(url).path for url in page.requests]
    assert questions.count("/api/quarantine") == 1  # what a person reads is not replaced at once
    assert page.page.locator("#late tbody td").nth(1).inner_text() == "10"
    for name in ("watermark", "late", "quarantined"):
        assert page.page.locator(f"[data-field={name}]").get_attribute("title")


def test_on_a_phone_each_effect_is_a_card_with_all_of_its_numbers(
    scene: str, open_page: Open
) -> None:
    page = open_page(scene, width=390).until("ready").page
    rows = page.locator("#experiment table.effects tbody tr")
    assert rows.count() == 3
    for i in range(3):
        extent = rows.nth(i).bounding_box()
        assert extent is not None and extent["x"] >= 0 and extent["x"] + extent["width"] <= 390
        assert rows.nth(i).locator(".bar-interval").first.is_visible()
    labels = "all => all.map((one) => getComputedStyle(one, '::before').content)"
    shown = rows.first.locator("[data-label]").evaluate_all(labels)
    assert shown == ['"Effect"', '"Relative"', '"Always-valid"', '"p (Holm)"']
    assert page.get_by_role("row", name="click_rate").count() == 1


def test_printing_waits_until_every_chart_is_drawn(scene: str, open_page: Open) -> None:
    page = open_page(scene, height=500).until("ready").page
    page.evaluate("""() => { globalThis.print = () => { globalThis.drawnAtPrint =
      [...document.querySelectorAll("figure")].map((one) => one.getAttribute("aria-busy")); }; }""")
    page.keyboard.press("Control+p")
    page.wait_for_function("() => globalThis.drawnAtPrint !== undefined")
    assert page.evaluate("globalThis.drawnAtPrint") == ["false"] * 3


def test_what_is_undefined_is_a_dash_beside_its_reason(tmp_path: Path, open_page: Open) -> None:
    store = page_scenes.make_store(page_scenes.THREE, page_scenes.RAILS, 0, tmp_path)
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        page = open_page(url).until("empty")
        shown = page.text("#experiment")
        assert "inf" not in shown and "nan" not in shown and "undefined" not in shown
        assert "— of click_rate, auc, log_loss: no rows." in shown
        assert page.page.locator("#experiment .bar-interval").count() == 0

"""The index of experiments: what to stop comes first; it is sorted, searched and folded."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from streammetrics_consumers.cli.main import main as streammetrics
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.process import serving

from tests import experiment_scenes
from tests.consumers.server.page.experiment_rows import (
    CURRENT,
    FIRST,
    FOLDED,
    NAMES,
    REST,
    changed,
    index_of,
    parameters,
)
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.consumers.server.page.test_accessibility import ALL_DRAWN, focused
from tests.consumers.server.page.test_verdicts import ALONE, COLOUR
from tests.patience import until

Open = Callable[..., Seen]
COUNT_MOVES = """() => {
  const Real = EventSource;
  globalThis.moves = new Set();
  globalThis.EventSource = class extends Real {
    constructor(url) {
      super(url);
      this.addEventListener("moved", ({ data }) => globalThis.moves.add(data));
    }
  };
}"""


def test_what_should_be_stopped_comes_first_and_the_texts_are_those_of_the_server(
    url: str, open_page: Open
) -> None:
    visit = open_page(url).until("ready")
    assert visit.texts(NAMES) == FIRST + REST
    assert visit.text("#index-title") == "18 current experiments"
    summary = visit.texts("#index-summary .count")
    assert summary == ["✕2 to stop", "!1 to check", "✓1 to ship", "…14 to wait for"]
    entries = index_of(url)
    for column in ("guardrails", "days", "units"):
        cells = visit.texts(f"#index-body > .scroll td[data-label={column.title()}]")
        assert cells == [entries[name]["text"][column] for name in FIRST + REST]
    assert visit.texts('#index-body > .scroll td[data-label="State"]') == [
        entries[name]["state"] for name in FIRST + REST
    ]
    shown = [name for name in FIRST + REST if entries[name]["effect"]]
    assert visit.numbers("#index-body > .scroll") == [
        entries[name]["effect"]["relative"] for name in shown
    ]
    advice = visit.texts("#index-body > .scroll td.advice")
    for name, text in zip(FIRST, advice, strict=False):
        action, _, why = entries[name]["recommendation"]["sentence"].partition(": ")
        assert text.split("\n")[1:] == [action, why]
    assert {tuple(text.split()) for text in advice[4:]} == {("…", "wait")}


def test_an_effect_has_its_interval_about_zero_and_its_course_look_by_look(
    url: str, open_page: Open
) -> None:
    visit = open_page(url).until("ready")
    row = visit.page.locator("#index-body tr", has_text="pricing")
    zero, value, lower = (
        row.locator(f".bar-{name}").evaluate("one => parseFloat(one.style.left)")
        for name in ("zero", "value", "interval")
    )
    width = row.locator(".bar-interval").evaluate("one => parseFloat(one.style.width)")
    assert lower < value < lower + width < zero == 50
    effect = index_of(url)["pricing"]["effect"]
    assert len(effect["course"]) == 3
    path = row.locator(".sparkline path").get_attribute("d")
    assert path is not None and path.count("L") == 2
    assert row.locator("td.number small").inner_text().startswith(f"{effect['estimate']:+.3f} [")
    waiting = visit.page.locator("#index-body tr", has_text="new_logo")
    assert waiting.locator(".sparkline, .bar").count() == 0


@pytest.mark.parametrize(
    ("column", "key", "down"),
    [
        ("name", lambda row: row["name"], False),
        ("effect", lambda row: row["effect"] and row["effect"]["relative"], True),
        ("units", lambda row: row["progress"]["units"], True),
        ("days", lambda row: row["progress"]["days"], True),
        ("state", lambda row: ["running", "waiting", "ended"].index(row["state"]), False),
        ("guardrails", lambda row: (len(row["guardrails"]["broken"]), row["guardrails"]["waiting"]),
         True),
        ("ratio", lambda row: None if row["srm"]["reason"] else row["srm"]["alarm"], True),
    ],
)  # fmt: skip
def test_a_heading_sorts_the_index_and_undefined_values_are_last(
    url: str, open_page: Open, column: str, key: Callable[[Any], Any], down: bool
) -> None:
    visit = open_page(url).until("ready")
    entries = [entry for name, entry in index_of(url).items() if name in CURRENT]
    defined = [entry for entry in entries if key(entry) or key(entry) == 0]
    undefined = [entry["name"] for entry in entries if entry not in defined]
    for isdown in (down, not down):
        visit.page.click(f"[data-sort={column}] >> nth=0")
        order = sorted(defined, key=key, reverse=isdown)
        assert visit.texts(NAMES) == [entry["name"] for entry in order] + undefined
        head = visit.page.locator(f"th[data-column={column}]").first
        assert head.get_attribute("aria-sort") == ("descending" if isdown else "ascending")
        assert visit.page.locator("#index-body > .scroll th[aria-sort]").count() == 1
        active = "document.activeElement.dataset.sort"
        assert visit.page.evaluate(active) == column


def test_the_address_keeps_the_order_and_back_returns_to_the_one_before(
    url: str, open_page: Open
) -> None:
    visit = open_page(url).until("ready")
    visit.page.click("[data-sort=name] >> nth=0")
    visit.page.click("[data-sort=name] >> nth=0")
    assert parameters(visit) == {"sort": ["name"], "order": ["descending"]}
    descending = sorted(CURRENT, reverse=True)
    assert visit.texts(NAMES) == descending
    visit.page.reload()
    visit.until("ready")
    assert visit.texts(NAMES) == descending
    visit.page.go_back()
    visit.page.wait_for_selector('th[data-column=name][aria-sort="ascending"]')
    assert visit.texts(NAMES) == sorted(CURRENT)
    visit.page.go_back()
    visit.page.wait_for_selector("th[data-column=recommendation][aria-sort]")
    assert visit.texts(NAMES) == FIRST + REST
    assert parameters(visit) == {}


def test_experiments_are_searched_by_name_and_title_also_where_they_are_folded(
    url: str, open_page: Open
) -> None:
    visit = open_page(url).until("ready")
    visit.page.fill("#index-tools input", "CART")
    assert visit.texts(NAMES) == ["cart_reminder"]
    assert visit.text("#index-title") == "1 of 18 current experiments with “CART”"
    assert visit.text("#announce") == visit.text("#index-title")
    assert visit.texts(FOLDED.format("ended")) == ["legacy_cart"]
    assert visit.page.evaluate("document.activeElement.name") == "search"
    assert parameters(visit) == {"search": ["CART"]}
    visit.page.reload()
    visit.until("ready")
    assert visit.texts(NAMES) == ["cart_reminder"]
    assert visit.page.input_value("#index-tools input") == "CART"
    visit.page.fill("#index-tools input", "evening")  # of a title
    assert visit.texts(NAMES) == ["push_time"]
    visit.page.fill("#index-tools input", "nowhere")
    assert visit.page.locator(NAMES).count() == 0
    assert "0 of 18 current experiments with “nowhere”" in visit.text("#index-body")
    visit.page.fill("#index-tools input", "")
    assert visit.texts(NAMES) == FIRST + REST


def test_ended_and_archived_experiments_are_folded_and_the_address_unfolds_them(
    url: str, open_page: Open
) -> None:
    visit = open_page(url).until("ready")
    assert visit.texts("#index summary") == ["1 ended experiment", "1 archived experiment"]
    assert visit.page.locator("#index details[open]").count() == 0
    visit.page.click("#index details[data-fold=ended] summary")
    visit.page.wait_for_url("**/?unfold=ended")
    assert visit.texts(FOLDED.format("ended")) == ["legacy_cart"]
    visit.page.click("#index details[data-fold=archived] summary")
    visit.page.wait_for_function("() => location.search.includes('archived')")
    assert parameters(visit) == {"unfold": ["ended,archived"]}
    visit.page.reload()
    visit.until("ready")
    assert visit.page.locator("#index details[open]").count() == 2
    assert visit.page.locator(FOLDED.format("archived")).is_visible()
    visit.page.click("#index details[data-fold=ended] summary")
    visit.page.wait_for_url("**/?unfold=archived")


def test_the_index_is_requested_once_after_each_change_and_never_by_a_user(
    twenty: Path, tmp_path: Path, open_page: Open
) -> None:
    shutil.copytree(twenty, tmp_path, dirs_exist_ok=True)
    with serving(str(tmp_path / "store.db"), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url)
        visit.page.add_init_script(f"({COUNT_MOVES})()")
        visit.go(url).until("ready").settled(1200)

        def requests() -> int:
            return Counter(urlsplit(address).path for address in visit.requests)["/api/experiments"]

        assert requests() == 1 == visit.page.evaluate("moves.size")
        visit.page.click("[data-sort=effect] >> nth=0")
        visit.page.fill("#index-tools input", "c")
        visit.page.fill("#index-tools input", "")
        visit.page.click("#index details[data-fold=ended] summary")
        visit.page.select_option("[name=window]", "latest")
        visit.page.click("a[data-experiment=checkout]")
        visit.page.wait_for_selector("#way-back:visible")
        visit.page.click("#way-back a")
        visit.page.wait_for_selector("#index:visible")
        visit.settled(1200)
        assert requests() == 1 == visit.page.evaluate("moves.size")
        experiment_scenes.count(experiment_scenes.TWENTY, experiment_scenes.DAYS, tmp_path)
        config = str(tmp_path / "config.toml")
        assert streammetrics(["run", config, "--until-end", "--no-serve"]) == 0
        selector = '#index-body td[data-label="Units"] span:text("2,700 of 3,000")'
        visit.page.wait_for_selector(selector)
        until(lambda: index_of(url)["loyalty"]["looks"] == 4)
        visit.settled(1500)
        moves = visit.page.evaluate("moves.size")
        assert 2 <= requests() <= moves
        days = visit.texts('#index-body > .scroll td[data-label="Days"]')
        assert "≥ 8.3 of 14" in days


def test_a_store_with_one_experiment_without_a_name_has_no_index(
    served: Stream, open_page: Open
) -> None:
    visit = open_page(served.url).until("ready").settled()
    for part in ("index", "matrix", "overlaps", "way-back"):
        assert visit.page.locator(f"#{part}").is_hidden()
    assert visit.page.locator("#experiment").is_visible()
    assert not visit.has_asked("/api/experiments")


def test_names_of_any_length_and_any_number_of_experiments_have_room(
    url: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        entry = next(
            candidate for candidate in answer["experiments"] if candidate["name"] == "checkout"
        )
        entry["text"]["guardrails"] = f"broken: {'guardrail_' * 6}"
        entries = (
            {**entry, "name": f"{i:03d}_{'x' * 60}", "title": "title" * 40} for i in range(300)
        )
        answer["experiments"] += entries

    visit = open_page("about:blank")
    visit.page.route("**/api/experiments*", changed(change))
    visit.go(url).until("ready")
    assert visit.text("#index-title") == "318 current experiments"
    assert visit.page.locator(NAMES).count() == 200
    assert "118 more experiments: search for them." in visit.text("#index")
    visit.page.fill("#index-tools input", "299_")
    assert visit.texts(NAMES) == [f"299_{'x' * 60}"]
    for width in (390, 800, 1280, 2560):
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        table = visit.page.locator("#index-body > .scroll").first
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, width


def test_names_are_text_and_one_that_cannot_be_read_says_why(url: str, open_page: Open) -> None:
    def change(answer: dict[str, Any]) -> None:
        entry = next(
            candidate for candidate in answer["experiments"] if candidate["name"] == "loyalty"
        )
        entry.update(
            title="<img src=x onerror=alert(1)>",
            recommendation=None,
            sentence="The experiment is not shown: its states are too large.",
            srm=None, effect=None, progress=None,
        )  # fmt: skip
        empty = dict.fromkeys(("symbol", "advice", "days", "units", "guardrails", "ratio"), "")
        entry["text"].update(empty, tone="warn")

    visit = open_page("about:blank")
    visit.page.route("**/api/experiments*", changed(change))
    visit.go(url).until("ready")
    assert visit.texts(NAMES)[:4] == ["checkout", "pricing", "search_prefix", "loyalty"]
    row = visit.page.locator("#index-body tr", has_text="loyalty")
    assert "unknown" in row.inner_text() and "its states are too large" in row.inner_text()
    assert "<img src=x onerror=alert(1)>" in row.inner_text()
    assert "!2 to check" in visit.texts("#index-summary .count")
    assert visit.page.locator("main img").count() == 0


def test_on_a_phone_each_experiment_is_a_card_with_all_of_its_numbers(
    url: str, open_page: Open
) -> None:
    page = open_page(url, width=390).until("ready").page
    rows = page.locator("#index-body > .scroll tbody tr")
    for i in range(4):
        extent = rows.nth(i).bounding_box()
        assert extent is not None and extent["x"] >= 0 and extent["x"] + extent["width"] <= 390
        assert rows.nth(i).locator(".bar-interval").is_visible()
        assert rows.nth(i).locator(".sparkline").is_visible()
    labels = "all => all.map((one) => getComputedStyle(one, '::before').content)"
    shown = rows.first.locator("[data-label]").evaluate_all(labels)
    assert shown[1:] == [
        f'"{label} "' for label in ("Guardrails", "Sample ratio", "Days", "Units", "State")
    ]
    page.click("[data-sort=name] >> nth=0")
    assert rows.first.locator("a").inner_text() == "badges"
    for width in (390, 800, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator("#index-body > .scroll").first
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, width


def test_tones_have_their_colours_in_both_themes(url: str, open_page: Open) -> None:
    visit = open_page(url).until("ready")
    row = visit.page.locator("#index-body tr", has_text="checkout")
    ground = "one => getComputedStyle(one).backgroundColor"
    grounds = set()
    for theme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=theme)
        assert row.locator("td.advice .symbol").evaluate(COLOUR) == "bad"
        assert row.locator("[data-label=Guardrails]").evaluate(COLOUR) == "bad"
        ship = visit.page.locator("#index-body tr", has_text="ranker").locator("td.advice")
        assert ship.evaluate(COLOUR) == "good"
        grounds.add(row.evaluate(ground))
    assert len(grounds) == 2


def test_keys_reach_each_part_of_the_index_in_its_order(url: str, open_page: Open) -> None:
    visit = open_page(url).until("ready")
    visit.page.evaluate(ALL_DRAWN)
    forwards = list(focused(visit, "Tab", 200))
    assert 40 < len(forwards) < 200 and "before" not in forwards
    visit.page.focus("[data-sort=name] >> nth=0")
    visit.page.keyboard.press("Enter")
    assert visit.texts(NAMES) == sorted(CURRENT)
    visit.page.focus(f"{NAMES} >> nth=0")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector("#way-back:visible")
    assert parameters(visit)["experiment"] == ["badges"]

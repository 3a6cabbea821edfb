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
    seen = open_page(url).until("ready")
    assert seen.texts(NAMES) == FIRST + REST
    assert seen.text("#index-title") == "18 current experiments"
    summary = seen.texts("#index-summary .count")
    assert summary == ["✕2 to stop", "!1 to check", "✓1 to ship", "…14 to wait for"]
    entries = index_of(url)
    for column in ("guardrails", "days", "units"):
        cells = seen.texts(f"#index-body > .scroll td[data-label={column.title()}]")
        assert cells == [entries[name]["text"][column] for name in FIRST + REST]
    assert seen.texts('#index-body > .scroll td[data-label="State"]') == [
        entries[name]["state"] for name in FIRST + REST
    ]
    shown = [name for name in FIRST + REST if entries[name]["effect"]]
    assert seen.numbers("#index-body > .scroll") == [
        entries[name]["effect"]["relative"] for name in shown
    ]
    advice = seen.texts("#index-body > .scroll td.advice")
    for name, text in zip(FIRST, advice, strict=False):
        action, _, why = entries[name]["recommendation"]["sentence"].partition(": ")
        assert text.split("\n")[1:] == [action, why]
    assert {tuple(text.split()) for text in advice[4:]} == {("…", "wait")}


def test_an_effect_has_its_interval_about_zero_and_its_course_look_by_look(
    url: str, open_page: Open
) -> None:
    seen = open_page(url).until("ready")
    row = seen.page.locator("#index-body tr", has_text="pricing")
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
    waiting = seen.page.locator("#index-body tr", has_text="new_logo")
    assert waiting.locator(".sparkline, .bar").count() == 0


@pytest.mark.parametrize(
    ("column", "key", "down"),
    [
        ("name", lambda one: one["name"], False),
        ("effect", lambda one: one["effect"] and one["effect"]["relative"], True),
        ("units", lambda one: one["progress"]["units"], True),
        ("days", lambda one: one["progress"]["days"], True),
        ("state", lambda one: ["running", "waiting", "ended"].index(one["state"]), False),
        ("guardrails", lambda one: (len(one["guardrails"]["broken"]), one["guardrails"]["waiting"]),
         True),
        ("ratio", lambda one: None if one["srm"]["reason"] else one["srm"]["alarm"], True),
    ],
)  # fmt: skip
def test_a_heading_sorts_the_index_and_undefined_values_are_last(
    url: str, open_page: Open, column: str, key: Callable[[Any], Any], down: bool
) -> None:
    seen = open_page(url).until("ready")
    entries = [one for name, one in index_of(url).items() if name in CURRENT]
    defined = [one for one in entries if key(one) or key(one) == 0]
    undefined = [one["name"] for one in entries if one not in defined]
    for isdown in (down, not down):
        seen.page.click(f"[data-sort={column}] >> nth=0")
        order = sorted(defined, key=key, reverse=isdown)
        assert seen.texts(NAMES) == [one["name"] for one in order] + undefined
        head = seen.page.locator(f"th[data-column={column}]").first
        assert head.get_attribute("aria-sort") == ("descending" if isdown else "ascending")
        assert seen.page.locator("#index-body > .scroll th[aria-sort]").count() == 1
        active = "document.activeElement.dataset.sort"
        assert seen.page.evaluate(active) == column


def test_the_address_keeps_the_order_and_back_returns_to_the_one_before(
    url: str, open_page: Open
) -> None:
    seen = open_page(url).until("ready")
    seen.page.click("[data-sort=name] >> nth=0")
    seen.page.click("[data-sort=name] >> nth=0")
    assert parameters(seen) == {"sort": ["name"], "order": ["descending"]}
    descending = sorted(CURRENT, reverse=True)
    assert seen.texts(NAMES) == descending
    seen.page.reload()
    seen.until("ready")
    assert seen.texts(NAMES) == descending
    seen.page.go_back()
    seen.page.wait_for_selector('th[data-column=name][aria-sort="ascending"]')
    assert seen.texts(NAMES) == sorted(CURRENT)
    seen.page.go_back()
    seen.page.wait_for_selector("th[data-column=recommendation][aria-sort]")
    assert seen.texts(NAMES) == FIRST + REST
    assert parameters(seen) == {}


def test_experiments_are_searched_by_name_and_title_also_where_they_are_folded(
    url: str, open_page: Open
) -> None:
    seen = open_page(url).until("ready")
    seen.page.fill("#index-tools input", "CART")
    assert seen.texts(NAMES) == ["cart_reminder"]
    assert seen.text("#index-title") == "1 of 18 current experiments with “CART”"
    assert seen.text("#announce") == seen.text("#index-title")
    assert seen.texts(FOLDED.format("ended")) == ["legacy_cart"]
    assert seen.page.evaluate("document.activeElement.name") == "search"
    assert parameters(seen) == {"search": ["CART"]}
    seen.page.reload()
    seen.until("ready")
    assert seen.texts(NAMES) == ["cart_reminder"]
    assert seen.page.input_value("#index-tools input") == "CART"
    seen.page.fill("#index-tools input", "evening")  # of a title
    assert seen.texts(NAMES) == ["push_time"]
    seen.page.fill("#index-tools input", "nowhere")
    assert seen.page.locator(NAMES).count() == 0
    assert "0 of 18 current experiments with “nowhere”" in seen.text("#index-body")
    seen.page.fill("#index-tools input", "")
    assert seen.texts(NAMES) == FIRST + REST


def test_ended_and_archived_experiments_are_folded_and_the_address_unfolds_them(
    url: str, open_page: Open
) -> None:
    seen = open_page(url).until("ready")
    assert seen.texts("#index summary") == ["1 ended experiment", "1 archived experiment"]
    assert seen.page.locator("#index details[open]").count() == 0
    seen.page.click("#index details[data-fold=ended] summary")
    seen.page.wait_for_url("**/?unfold=ended")
    assert seen.texts(FOLDED.format("ended")) == ["legacy_cart"]
    seen.page.click("#index details[data-fold=archived] summary")
    seen.page.wait_for_function("() => location.search.includes('archived')")
    assert parameters(seen) == {"unfold": ["ended,archived"]}
    seen.page.reload()
    seen.until("ready")
    assert seen.page.locator("#index details[open]").count() == 2
    assert seen.page.locator(FOLDED.format("archived")).is_visible()
    seen.page.click("#index details[data-fold=ended] summary")
    seen.page.wait_for_url("**/?unfold=archived")


def test_the_index_is_requested_once_after_each_change_and_never_by_a_user(
    twenty: Path, tmp_path: Path, open_page: Open
) -> None:
    shutil.copytree(twenty, tmp_path, dirs_exist_ok=True)
    with serving(str(tmp_path / "store.db"), ServerConfig(port=0), ALONE) as url:
        seen = open_page(url)
        seen.page.add_init_script(f"({COUNT_MOVES})()")
        seen.go(url).until("ready").settled(1200)

        def requests() -> int:
            return Counter(urlsplit(one).path for one in seen.requests)["/api/experiments"]

        assert requests() == 1 == seen.page.evaluate("moves.size")
        seen.page.click("[data-sort=effect] >> nth=0")
        seen.page.fill("#index-tools input", "c")
        seen.page.fill("#index-tools input", "")
        seen.page.click("#index details[data-fold=ended] summary")
        seen.page.select_option("[name=window]", "latest")
        seen.page.click("a[data-experiment=checkout]")
        seen.page.wait_for_selector("#way-back:visible")
        seen.page.click("#way-back a")
        seen.page.wait_for_selector("#index:visible")
        seen.settled(1200)
        assert requests() == 1 == seen.page.evaluate("moves.size")
        experiment_scenes.count(experiment_scenes.TWENTY, experiment_scenes.DAYS, tmp_path)
        config = str(tmp_path / "config.toml")
        assert streammetrics(["run", config, "--until-end", "--no-serve"]) == 0
        done = '#index-body td[data-label="Units"] span:text("2,700 of 3,000")'
        seen.page.wait_for_selector(done)
        until(lambda: index_of(url)["loyalty"]["looks"] == 4)
        seen.settled(1500)
        moves = seen.page.evaluate("moves.size")
        assert 2 <= requests() <= moves
        days = seen.texts('#index-body > .scroll td[data-label="Days"]')
        assert "8.3 of 14" in days


def test_a_store_with_one_experiment_without_a_name_has_no_index(
    served: Stream, open_page: Open
) -> None:
    seen = open_page(served.url).until("ready").settled()
    for part in ("index", "matrix", "overlaps", "way-back"):
        assert seen.page.locator(f"#{part}").is_hidden()
    assert seen.page.locator("#experiment").is_visible()
    assert not seen.has_asked("/api/experiments")


def test_names_of_any_length_and_any_number_of_experiments_have_room(
    url: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        entry = next(one for one in answer["experiments"] if one["name"] == "checkout")
        entry["text"]["guardrails"] = f"broken: {'guardrail_' * 6}"
        more = ({**entry, "name": f"{i:03d}_{'x' * 60}", "title": "title" * 40} for i in range(300))
        answer["experiments"] += more

    seen = open_page("about:blank")
    seen.page.route("**/api/experiments*", changed(change))
    seen.go(url).until("ready")
    assert seen.text("#index-title") == "318 current experiments"
    assert seen.page.locator(NAMES).count() == 200
    assert "118 more experiments: search for them." in seen.text("#index")
    seen.page.fill("#index-tools input", "299_")
    assert seen.texts(NAMES) == [f"299_{'x' * 60}"]
    for width in (390, 800, 1280, 2560):
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        table = seen.page.locator("#index-body > .scroll").first
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, width


def test_names_are_text_and_one_that_cannot_be_read_says_why(url: str, open_page: Open) -> None:
    def change(answer: dict[str, Any]) -> None:
        entry = next(one for one in answer["experiments"] if one["name"] == "loyalty")
        entry.update(
            title="<img src=x onerror=alert(1)>",
            recommendation=None,
            sentence="The experiment is not shown: its states are too large.",
            srm=None, effect=None, progress=None,
        )  # fmt: skip
        empty = dict.fromkeys(("symbol", "advice", "days", "units", "guardrails", "ratio"), "")
        entry["text"].update(empty, tone="warn")

    seen = open_page("about:blank")
    seen.page.route("**/api/experiments*", changed(change))
    seen.go(url).until("ready")
    assert seen.texts(NAMES)[:4] == ["checkout", "pricing", "search_prefix", "loyalty"]
    row = seen.page.locator("#index-body tr", has_text="loyalty")
    assert "unknown" in row.inner_text() and "its states are too large" in row.inner_text()
    assert "<img src=x onerror=alert(1)>" in row.inner_text()
    assert "!2 to check" in seen.texts("#index-summary .count")
    assert seen.page.locator("main img").count() == 0


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
        f'"{one} "' for one in ("Guardrails", "Sample ratio", "Days", "Units", "State")
    ]
    page.click("[data-sort=name] >> nth=0")
    assert rows.first.locator("a").inner_text() == "badges"
    for width in (390, 800, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator("#index-body > .scroll").first
        assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, width


def test_tones_have_their_colours_in_both_themes(url: str, open_page: Open) -> None:
    seen = open_page(url).until("ready")
    row = seen.page.locator("#index-body tr", has_text="checkout")
    ground = "one => getComputedStyle(one).backgroundColor"
    grounds = set()
    for theme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=theme)
        assert row.locator("td.advice .symbol").evaluate(COLOUR) == "bad"
        assert row.locator("[data-label=Guardrails]").evaluate(COLOUR) == "bad"
        ship = seen.page.locator("#index-body tr", has_text="ranker").locator("td.advice")
        assert ship.evaluate(COLOUR) == "good"
        grounds.add(row.evaluate(ground))
    assert len(grounds) == 2


def test_keys_reach_each_part_of_the_index_in_its_order(url: str, open_page: Open) -> None:
    seen = open_page(url).until("ready")
    seen.page.evaluate(ALL_DRAWN)
    forwards = list(focused(seen, "Tab", 200))
    assert 40 < len(forwards) < 200 and "before" not in forwards
    seen.page.focus("[data-sort=name] >> nth=0")
    seen.page.keyboard.press("Enter")
    assert seen.texts(NAMES) == sorted(CURRENT)
    seen.page.focus(f"{NAMES} >> nth=0")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector("#way-back:visible")
    assert parameters(seen)["experiment"] == ["badges"]

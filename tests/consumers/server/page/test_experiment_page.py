"""The page of one of many experiments, and what it shares with the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.process import serving

from tests import experiment_scenes
from tests.consumers import experiment_run, experiments_run, hook_run
from tests.consumers.server.page.experiment_rows import (
    CURRENT,
    NAMES,
    changed,
    parameters,
)
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.test_accessibility import ALL_DRAWN, LOOKS, violations
from tests.consumers.server.page.test_verdicts import ALONE, COLOUR
from tests.patience import LIMIT_S

Open = Callable[..., Seen]


def test_an_experiment_has_a_page_of_its_own_with_its_numbers_and_a_way_back(
    url: str, open_page: Open
) -> None:
    seen = open_page(f"{url}?sort=name").until("ready")
    seen.page.click("a[data-experiment=home_layout]")
    seen.page.wait_for_selector("#experiment:visible")
    assert parameters(seen) == {"experiment": ["home_layout"]}
    assert seen.text("#store") == "Layout of the home page"
    assert seen.text("#file") == "home_layout · store.db"
    assert seen.page.title() == "Layout of the home page - streammetrics"
    assert seen.page.evaluate("document.activeElement.id") == "store"
    assert seen.page.locator("#index").is_hidden()
    answer = httpx.get(f"{url}api/experiment?experiment=home_layout", timeout=LIMIT_S).json()
    assert seen.text("#sentence") == answer["recommendation"]["sentence"]
    effects = [one["effect_size"] for one in answer["comparisons"]]
    assert seen.numbers("#experiment table") == effects
    card = seen.page.locator(".card[data-metric=ctr]")
    card.scroll_into_view_if_needed()
    card.locator("table.figures").wait_for()
    rows = seen.texts(".card[data-metric=ctr] table.figures tbody th")
    assert [text.strip() for text in rows] == ["control", "grid", "list", "short"]
    for link in ("as-text", "as-json"):
        address = seen.page.locator(f"#{link}").get_attribute("href")
        assert address is not None and "experiment=home_layout" in address
        assert httpx.get(url + address[1:], timeout=LIMIT_S).status_code == 200
    seen.page.click("#way-back a")
    seen.page.wait_for_selector("#index:visible")
    assert parameters(seen) == {"sort": ["name"]}
    assert seen.texts(NAMES) == sorted(CURRENT)
    assert seen.page.evaluate("document.activeElement.dataset.experiment") == "home_layout"
    assert seen.text("#store") == "store.db"
    seen.page.go_back()
    seen.page.wait_for_selector("#way-back:visible")
    assert seen.text("#store") == "Layout of the home page"


def test_a_matrix_has_each_metric_in_the_order_of_the_config_by_arm(
    url: str, open_page: Open
) -> None:
    seen = open_page(f"{url}?experiment=checkout").until("ready")
    path = "api/results?experiment=checkout&by=variant&views=headline&texts=tables"
    answer = httpx.get(url + path, timeout=LIMIT_S).json()
    texts = {
        (row["metric"], row["slice"]["variant"]): row["text"]["value"] for row in answer["results"]
    }
    assert seen.texts("#matrix tbody th a") == ["ctr", "errors", "auc"]
    assert [head.strip() for head in seen.texts("#matrix thead th")] == [
        "Metric", "control", "one_page",
    ]  # fmt: skip
    cells = seen.texts("#matrix td .value")
    assert cells == [
        texts[metric, arm] for metric in ("ctr", "errors", "auc") for arm in ("control", "one_page")
    ]
    verdicts = seen.texts("#matrix td small")
    assert [text.split()[-1] for text in verdicts] == ["yet", "broken"]
    assert seen.page.locator("#matrix td small").last.evaluate(COLOUR) == "bad"
    seen.page.click("#matrix a >> nth=1")
    seen.page.wait_for_selector(".card[data-metric=errors]:only-child")
    assert parameters(seen) == {"experiment": ["checkout"], "metric": ["errors"]}
    assert seen.page.locator("#matrix").is_hidden()
    kinds = {parse_qs(urlsplit(one).query).get("kind", [""])[0] for one in seen.requests}
    asked = [one for one in seen.requests if "/api/figure" in one]
    assert all("experiment=checkout" in one for one in asked) and kinds


def test_an_experiment_without_events_says_so_and_one_that_is_not_there_leads_to_all(
    url: str, open_page: Open
) -> None:
    seen = open_page(f"{url}?experiment=new_logo").until("empty")
    assert "No events of this experiment are counted yet" in seen.text("#notice")
    assert seen.page.locator("#matrix").is_hidden()
    seen.go(f"{url}?experiment=nothing").until("broken")
    assert "ranker" in seen.text("#notice") and "got 'nothing'" in seen.text("#notice")
    seen.page.click("#notice a")
    seen.page.wait_for_selector("#index:visible")


def test_the_experiment_without_a_name_is_beside_those_with_one(
    tmp_path: Path, open_page: Open
) -> None:
    store = experiments_run.make(tmp_path)
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        seen = open_page(url).until("ready")
        assert set(seen.texts(NAMES)) == {"(no name)", *experiments_run.NAMES}
        assert seen.page.locator("#experiment").is_visible()  # as without the others
        effects = seen.numbers("#experiment table")
        seen.page.click("a[data-experiment='']")
        seen.page.wait_for_selector("#way-back:visible")
        assert seen.page.url == f"{url}?experiment="
        assert seen.numbers("#experiment table") == effects
        assert seen.texts("#matrix tbody th a") == ["ctr"]
        seen.page.click("#way-back a")
        seen.page.wait_for_selector("#index:visible")
        assert seen.page.evaluate("document.activeElement.dataset.experiment") == ""


def test_layers_and_pairs_that_share_units_are_shown_and_their_alarms_stand_first(
    url: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        answer["layers"] = [
            {"name": "search", "experiments": ["ranker", "filters"], "units": 3, "alarm": True,
             "sentence": "3 units are in two."},
            {"name": "shop", "experiments": ["pricing", "loyalty"], "units": None, "alarm": False,
             "sentence": ""},
        ]  # fmt: skip
        answer["overlaps"] = [
            {"experiments": pair, "units": units, "adjusted_p": p, "alarm": p < 0.05,
             "sentence": f"{units} units are in both."}
            for pair, units, p in (
                (["ranker", "pricing"], 900, 1.0),
                (["filters", "pricing"], 1200.4, 1.0),
                (["badges", "ranker"], 40, 0.001),
            )
        ]  # fmt: skip

    seen = open_page("about:blank")
    seen.page.route("**/api/experiments*", changed(change))
    seen.go(url).until("ready")
    alarms = ["▲ 3 units are in two.", "▲ 40 units are in both."]
    assert seen.texts("#index-body > .attention") == alarms
    layer = "Layer search: ranker, filters exclude each other. 3 units are in two."
    assert seen.texts("#overlaps-body > .note") == [
        f"▲ {layer}", "Layer shop: pricing, loyalty exclude each other.",
    ]  # fmt: skip
    pairs = ["badges\tranker\t40 ▲ 40 units are in both.", "filters\tpricing\t1,200",
             "ranker\tpricing\t900"]  # fmt: skip
    assert seen.texts("#overlaps tbody tr") == pairs
    assert violations(seen, "overlaps") == []
    seen.go(f"{url}?experiment=filters").until("ready")
    assert seen.texts("#overlaps tbody tr") == pairs[1:2]


def test_effects_by_the_arm_of_another_experiment_are_a_table_and_those_that_differ_stand_first(
    url: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        answer["interactions"] = [
            {"experiments": [own, other], "metric": "ctr", "variants": ["new", "wide"],
             "estimate": 0.1, "lower": -0.1, "upper": 0.3, "adjusted_p": p, "differs": p == 0.001,
             "sentence": f"The effect of {own}."}
            for own, other, p in (
                ("ranker", "pricing", 1.0),
                ("pricing", "ranker", 0.001),
                ("filters", "badges", None),
            )
        ]  # fmt: skip

    seen = open_page("about:blank")
    seen.page.route("**/api/experiments*", changed(change))
    seen.go(url).until("ready")
    assert seen.texts("#index-body > .attention") == ["▲ The effect of pricing."]
    effects = ["pricing new\tctr\tranker wide\tdiffer ▲ The effect of pricing.",
               "ranker new\tctr\tpricing wide\tnot shown to differ",
               "filters new\tctr\tbadges wide\tnot known The effect of filters."]  # fmt: skip
    assert seen.texts("#overlaps table:last-of-type tbody tr")[-3:] == effects
    assert violations(seen, "overlaps") == []
    seen.go(f"{url}?experiment=filters").until("ready")
    assert seen.texts("#overlaps tbody tr")[-1:] == effects[2:]


def test_the_effect_on_a_metric_by_calendar_day_is_a_table_of_each_treatment(
    url: str, open_page: Open
) -> None:
    seen = open_page(f"{url}?experiment=home_layout&metric=ctr&window=all").until("ready")
    tables = "table.effects caption"
    seen.page.locator(".card").first.scroll_into_view_if_needed()  # far ones are not drawn
    seen.page.wait_for_selector(f".card {tables}")
    assert seen.texts(f".card {tables}") == [
        f"Effect of {arm} against control, each window by itself"
        for arm in ("grid", "list", "short")
    ]
    path = "api/results?experiment=home_layout&metric=ctr&window=all&texts=tables"
    answer = httpx.get(url + path, timeout=LIMIT_S).json()["comparisons"]
    mine = [one for one in answer if one["treatment_variant"] == "grid"]
    assert len(mine) == 1 + experiment_scenes.DAYS
    table = '.card .scroll[aria-label*="of grid"] table.effects'
    days = [f"2024-10-{4 + day:02d}" for day in range(experiment_scenes.DAYS)]
    assert [text.strip() for text in seen.texts(f"{table} tbody th")] == ["Since the start", *days]
    assert seen.numbers(table) == [one["effect_size"] for one in mine]


def test_neither_the_index_nor_the_page_of_one_breaks_a_rule_of_accessibility(
    url: str, open_page: Open
) -> None:
    seen = open_page(url)
    found = []
    for query in ("?unfold=ended,archived", "?experiment=checkout", "?search=nowhere"):
        seen.go(url + query).until("ready")
        for width, looks in LOOKS:
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.page.evaluate(ALL_DRAWN)
            found += violations(seen, f"{query}, {width} pixels", looks)
    assert found == []


def test_the_events_of_hooks_are_a_table_with_their_states_and_answers(
    tmp_path: Path, open_page: Open
) -> None:
    with hook_run.receiving(hook_run.Receiver(answers=[204, 503])) as receiver:
        store = experiment_run.run(
            hook_run.config(tmp_path, hook_run.hook(receiver.url, retry_s=600))
        )
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        seen = open_page(url).until("ready")
        rows = [text.split("\t")[1:6] for text in seen.texts("#hooks tbody tr")]
        assert rows == [
            ["recommendation", "old", "flags (127.0.0.1)", "sent", "1"],
            ["guardrail broken", "rail, old", "flags (127.0.0.1)", "waiting", "1"],
            ["worse", "ctr, old", "flags (127.0.0.1)", "sent", "1"],
        ]
        assert seen.texts("#hooks td:last-child")[0].startswith("HTTP 204 at 20")
        assert seen.page.locator("#hooks td.count").nth(1).evaluate(COLOUR) == "warn"
        assert violations(seen, "hooks") == []
    store = experiment_run.run(hook_run.config(make(tmp_path / "none"), ""))
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        seen = open_page(url).until("ready")
        assert seen.page.locator("#hooks").is_hidden()


def make(folder: Path) -> Path:
    """A new folder."""
    folder.mkdir()
    return folder

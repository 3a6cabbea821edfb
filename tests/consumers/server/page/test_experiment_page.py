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
    visit = open_page(f"{url}?sort=name").until("ready")
    visit.page.click("a[data-experiment=home_layout]")
    visit.page.wait_for_selector("#experiment:visible")
    assert parameters(visit) == {"experiment": ["home_layout"]}
    assert visit.text("#store") == "Layout of the home page"
    assert visit.text("#file") == "home_layout · store.db"
    assert visit.page.title() == "Layout of the home page - streammetrics"
    assert visit.page.evaluate("document.activeElement.id") == "store"
    assert visit.page.locator("#index").is_hidden()
    answer = httpx.get(f"{url}api/experiment?experiment=home_layout", timeout=LIMIT_S).json()
    assert visit.text("#sentence") == answer["recommendation"]["sentence"]
    effects = [comparison["effect_size"] for comparison in answer["comparisons"]]
    assert visit.numbers("#experiment table") == effects
    card = visit.page.locator(".card[data-metric=ctr]")
    card.scroll_into_view_if_needed()
    card.locator("table.figures").wait_for()
    rows = visit.texts(".card[data-metric=ctr] table.figures tbody th")
    assert [text.strip() for text in rows] == ["control", "grid", "list", "short"]
    for link in ("as-text", "as-json"):
        address = visit.page.locator(f"#{link}").get_attribute("href")
        assert address is not None and "experiment=home_layout" in address
        assert httpx.get(url + address[1:], timeout=LIMIT_S).status_code == 200
    visit.page.click("#way-back a")
    visit.page.wait_for_selector("#index:visible")
    assert parameters(visit) == {"sort": ["name"]}
    assert visit.texts(NAMES) == sorted(CURRENT)
    assert visit.page.evaluate("document.activeElement.dataset.experiment") == "home_layout"
    assert visit.text("#store") == "store.db"
    visit.page.go_back()
    visit.page.wait_for_selector("#way-back:visible")
    assert visit.text("#store") == "Layout of the home page"


def test_a_matrix_has_each_metric_in_the_order_of_the_config_by_arm(
    url: str, open_page: Open
) -> None:
    visit = open_page(f"{url}?experiment=checkout").until("ready")
    path = "api/results?experiment=checkout&by=variant&views=headline&texts=tables"
    answer = httpx.get(url + path, timeout=LIMIT_S).json()
    texts = {
        (row["metric"], row["slice"]["variant"]): row["text"]["value"] for row in answer["results"]
    }
    assert visit.texts("#matrix tbody th a") == ["ctr", "errors", "auc"]
    assert [head.strip() for head in visit.texts("#matrix thead th")] == [
        "Metric", "control", "one_page",
    ]  # fmt: skip
    cells = visit.texts("#matrix td .value")
    assert cells == [
        texts[metric, arm] for metric in ("ctr", "errors", "auc") for arm in ("control", "one_page")
    ]
    verdicts = visit.texts("#matrix td small")
    assert [text.split()[-1] for text in verdicts] == ["yet", "broken"]
    assert visit.page.locator("#matrix td small").last.evaluate(COLOUR) == "bad"
    visit.page.click("#matrix a >> nth=1")
    visit.page.wait_for_selector(".card[data-metric=errors]:only-child")
    assert parameters(visit) == {"experiment": ["checkout"], "metric": ["errors"]}
    assert visit.page.locator("#matrix").is_hidden()
    kinds = {parse_qs(urlsplit(address).query).get("kind", [""])[0] for address in visit.requests}
    figures = [address for address in visit.requests if "/api/figure" in address]
    assert all("experiment=checkout" in address for address in figures) and kinds


def test_an_experiment_without_events_says_so_and_one_that_is_not_there_leads_to_all(
    url: str, open_page: Open
) -> None:
    visit = open_page(f"{url}?experiment=new_logo").until("empty")
    assert "No events of this experiment are counted yet" in visit.text("#notice")
    assert visit.page.locator("#matrix").is_hidden()
    visit.go(f"{url}?experiment=nothing").until("broken")
    assert "ranker" in visit.text("#notice") and "got 'nothing'" in visit.text("#notice")
    visit.page.click("#notice a")
    visit.page.wait_for_selector("#index:visible")


def test_the_experiment_without_a_name_is_beside_those_with_one(
    tmp_path: Path, open_page: Open
) -> None:
    store = experiments_run.make(tmp_path)
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url).until("ready")
        assert set(visit.texts(NAMES)) == {"(no name)", *experiments_run.NAMES}
        assert visit.page.locator("#experiment").is_visible()  # as without the others
        effects = visit.numbers("#experiment table")
        visit.page.click("a[data-experiment='']")
        visit.page.wait_for_selector("#way-back:visible")
        assert visit.page.url == f"{url}?experiment="
        assert visit.numbers("#experiment table") == effects
        assert visit.texts("#matrix tbody th a") == ["ctr"]
        visit.page.click("#way-back a")
        visit.page.wait_for_selector("#index:visible")
        assert visit.page.evaluate("document.activeElement.dataset.experiment") == ""


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

    visit = open_page("about:blank")
    visit.page.route("**/api/experiments*", changed(change))
    visit.go(url).until("ready")
    alarms = ["▲ 3 units are in two.", "▲ 40 units are in both."]
    assert visit.texts("#index-body > .attention") == alarms
    layer = "Layer search: ranker, filters exclude each other. 3 units are in two."
    assert visit.texts("#overlaps-body > .note") == [
        f"▲ {layer}", "Layer shop: pricing, loyalty exclude each other.",
    ]  # fmt: skip
    pairs = ["badges\tranker\t40 ▲ 40 units are in both.", "filters\tpricing\t1,200",
             "ranker\tpricing\t900"]  # fmt: skip
    assert visit.texts("#overlaps tbody tr") == pairs
    assert violations(visit, "overlaps") == []
    visit.go(f"{url}?experiment=filters").until("ready")
    assert visit.texts("#overlaps tbody tr") == pairs[1:2]


def test_effects_by_the_arm_of_another_experiment_are_a_table_and_those_that_differ_stand_first(
    url: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        answer["interactions"] = [
            {"experiments": [experiment, modifier], "metric": "ctr", "variants": ["new", "wide"],
             "estimate": 0.1, "lower": -0.1, "upper": 0.3, "adjusted_p": p, "differs": p == 0.001,
             "sentence": f"The effect of {experiment}."}
            for experiment, modifier, p in (
                ("ranker", "pricing", 1.0),
                ("pricing", "ranker", 0.001),
                ("filters", "badges", None),
            )
        ]  # fmt: skip

    visit = open_page("about:blank")
    visit.page.route("**/api/experiments*", changed(change))
    visit.go(url).until("ready")
    assert visit.texts("#index-body > .attention") == ["▲ The effect of pricing."]
    effects = ["pricing new\tctr\tranker wide\tdiffer ▲ The effect of pricing.",
               "ranker new\tctr\tpricing wide\tnot shown to differ",
               "filters new\tctr\tbadges wide\tnot known The effect of filters."]  # fmt: skip
    assert visit.texts("#overlaps table:last-of-type tbody tr")[-3:] == effects
    assert violations(visit, "overlaps") == []
    visit.go(f"{url}?experiment=filters").until("ready")
    assert visit.texts("#overlaps tbody tr")[-1:] == effects[2:]


def test_the_effect_on_a_metric_by_calendar_day_is_a_table_of_each_treatment(
    url: str, open_page: Open
) -> None:
    visit = open_page(f"{url}?experiment=home_layout&metric=ctr&window=all").until("ready")
    tables = "table.effects caption"
    visit.page.locator(".card").first.scroll_into_view_if_needed()  # far ones are not drawn
    visit.page.wait_for_selector(f".card {tables}")
    assert visit.texts(f".card {tables}") == [
        f"Effect of {arm} against control, each window by itself"
        for arm in ("grid", "list", "short")
    ]
    path = "api/results?experiment=home_layout&metric=ctr&window=all&texts=tables"
    answer = httpx.get(url + path, timeout=LIMIT_S).json()["comparisons"]
    comparisons = [comparison for comparison in answer if comparison["treatment_variant"] == "grid"]
    assert len(comparisons) == 1 + experiment_scenes.DAYS
    table = '.card .scroll[aria-label*="of grid"] table.effects'
    days = [f"2024-10-{4 + day:02d}" for day in range(experiment_scenes.DAYS)]
    assert [text.strip() for text in visit.texts(f"{table} tbody th")] == ["Since the start", *days]
    assert visit.numbers(table) == [comparison["effect_size"] for comparison in comparisons]


def test_neither_the_index_nor_the_page_of_one_breaks_a_rule_of_accessibility(
    url: str, open_page: Open
) -> None:
    visit = open_page(url)
    breaches = []
    for query in ("?unfold=ended,archived", "?experiment=checkout", "?search=nowhere"):
        visit.go(url + query).until("ready")
        for width, looks in LOOKS:
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.evaluate(ALL_DRAWN)
            breaches += violations(visit, f"{query}, {width} pixels", looks)
    assert breaches == []


def test_the_events_of_hooks_are_a_table_with_their_states_and_answers(
    tmp_path: Path, open_page: Open
) -> None:
    with hook_run.receiving(hook_run.Receiver(answers=[204, 503])) as receiver:
        store = experiment_run.run(
            hook_run.config(tmp_path, hook_run.hook(receiver.url, retry_s=600))
        )
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url).until("ready")
        rows = [text.split("\t")[1:6] for text in visit.texts("#hooks tbody tr")]
        assert rows == [
            ["recommendation", "old", "flags (127.0.0.1)", "sent", "1"],
            ["guardrail broken", "rail, old", "flags (127.0.0.1)", "waiting", "1"],
            ["worse", "ctr, old", "flags (127.0.0.1)", "sent", "1"],
        ]
        assert visit.texts("#hooks td:last-child")[0].startswith("HTTP 204 at 20")
        assert visit.page.locator("#hooks td.count").nth(1).evaluate(COLOUR) == "warn"
        assert violations(visit, "hooks") == []
    store = experiment_run.run(hook_run.config(make(tmp_path / "none"), ""))
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        visit = open_page(url).until("ready")
        assert visit.page.locator("#hooks").is_hidden()


def make(folder: Path) -> Path:
    """A new folder."""
    folder.mkdir()
    return folder

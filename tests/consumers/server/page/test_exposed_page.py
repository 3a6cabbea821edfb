"""The page of an experiment whose arms come from exposures, and the status of the exposures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.process import serving

from tests import exposed_scenes
from tests.consumers.server.page.experiment_rows import changed
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.consumers.server.page.test_accessibility import ALL_DRAWN, LOOKS, violations
from tests.consumers.server.page.test_verdicts import ALONE
from tests.patience import LIMIT_S

Open = Callable[..., Seen]


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over a store of three experiments with exposures."""
    store = exposed_scenes.make_store(tmp_path_factory.mktemp("exposed"))
    with serving(str(store), ServerConfig(port=0), ALONE) as url:
        yield url


def fetch_json(url: str, path: str) -> Any:
    return httpx.get(url + path, timeout=LIMIT_S).json()


def test_the_days_since_the_exposure_the_funnel_and_the_other_units_have_the_numbers_of_the_answer(
    exposed: str, open_page: Open
) -> None:
    visit = open_page(f"{exposed}?experiment=checkout").until("ready")
    answer = fetch_json(exposed, "api/experiment?experiment=checkout")["exposed"]
    assert (answer["units"], len(answer["since"]), len(answer["beside"])) == ("so_far", 4, 2)
    assert visit.text("#exposed-units") == answer["sentence"]
    assert "is not the final one" in answer["sentence"]
    funnel = [n for arm in answer["funnel"] for n in (arm["exposed"], arm["active"])]
    closed_effects = [effect["effect_size"] for effect in answer["beside"]]
    by_days = [part["effects"][i]["effect_size"] for i in range(2) for part in answer["since"]]
    assert visit.numbers("#exposed") == [*funnel, *closed_effects, *by_days]
    captions = visit.texts("#exposed caption")
    assert captions[:2] == ["Units after their exposure", "Units whose window is over: no verdict"]
    assert captions[2].startswith("Effect on revenue (mean) per exposed unit, by days since")
    days = "#exposed .exposed-tables >> nth=1"
    rows = visit.page.locator(days).locator("tbody th").all_inner_texts()
    assert rows == 2 * ["0", "1", "2 to 3", "4 to 6"]
    heads = visit.texts("#exposed thead th:last-child")
    assert heads.count("At one look, 95 %") == 2
    assert not any("better" in text or "worse" in text for text in visit.texts("#exposed td"))


def test_a_plan_that_decides_by_closed_units_says_so_and_shows_all_beside(
    exposed: str, open_page: Open
) -> None:
    visit = open_page(f"{exposed}?experiment=reminder").until("ready")
    answer = fetch_json(exposed, "api/experiment?experiment=reminder")
    shown = answer["exposed"]
    assert shown["units"] == "closed"
    assert visit.text("#exposed-units").startswith("Of the units whose window of 7 days")
    assert visit.numbers("#experiment table") == [
        comparison["effect_size"] for comparison in answer["comparisons"]
    ]
    assert "All exposed units, so far: no verdict" in visit.texts("#exposed caption")
    assert "of units whose window is over" in visit.text("#matrix .note")
    # The arm only delays: its first day is worse, the next are better, and all is not.
    effects = [part["effects"][0] for part in shown["since"]]
    assert effects[0]["effect_size_ci_upper"] < 0 < effects[1]["effect_size_ci_lower"]
    assert answer["comparisons"][0]["verdict"] == "no_difference_yet"


def test_without_a_metric_of_units_the_page_says_so_and_without_exposures_nothing(
    exposed: str, served: Stream, open_page: Open
) -> None:
    visit = open_page(f"{exposed}?experiment=banner").until("ready")
    assert "No metric is of units" in visit.text("#exposed-units")
    assert visit.texts("#exposed caption") == ["Units after their exposure"]
    visit.go(exposed).until("ready")
    assert visit.page.locator("#exposed").is_hidden()
    visit.go(served.url).until("ready")
    assert visit.page.locator("#exposed").is_hidden()
    assert visit.page.locator("#exposures").is_hidden()


def test_a_card_counts_the_units_of_a_mean_per_unit_and_the_index_says_which_decide(
    exposed: str, open_page: Open
) -> None:
    visit = open_page(exposed).until("ready")
    results = fetch_json(exposed, "api/results")["results"]
    counts = {row["metric"]: row["counts"] for row in results}
    assert "rows" not in counts["revenue"] and counts["revenue"]["units"] > 1000
    visit.page.evaluate(ALL_DRAWN)
    cells = visit.texts(".figures tbody td:last-child")
    assert f"{counts['revenue']['units']:,}" in cells and "0" not in cells
    assert {"Units", "Rows"} <= set(visit.texts(".figures thead th:last-child"))
    units = visit.texts(".index td[data-label=Units]")
    assert [text.endswith("(closed decide)") for text in units].count(True) == 1


def test_the_status_of_exposures_and_its_warnings_are_shown(exposed: str, open_page: Open) -> None:
    def change(answer: dict[str, Any]) -> None:
        answer["exposures"]["warnings"] = ["<b>many</b> were too late"]

    status = fetch_json(exposed, "api/status")["exposures"]
    assert status == fetch_json(exposed, "api/results")["exposures"]
    visit = open_page("about:blank")
    visit.page.route("**/api/results*", changed(change))
    visit.go(exposed).until("ready")
    counts = visit.text("#exposures-counts")
    assert f"{status['closed']:,} events counted, {status['pending_events']} pending" in counts
    assert visit.texts("#exposures [data-attention]") == ["▲ <b>many</b> were too late"]
    assert "for 7 days" in visit.text("#exposures")


def test_several_treatments_have_rows_of_their_own_and_hostile_names_stay_text(
    exposed: str, open_page: Open
) -> None:
    def change(answer: dict[str, Any]) -> None:
        for part in answer["exposed"]["since"]:
            part["effects"] += [
                {**effect, "treatment_variant": "<i>\u202eevil"} for effect in part["effects"]
            ]
        answer["exposed"]["reason"] = "<b>too large</b>"
        answer["exposed"]["funnel"][0]["variant"] = "<i>arm</i>"

    visit = open_page("about:blank")
    visit.page.route("**/api/experiment?*", changed(change))
    visit.go(f"{exposed}?experiment=checkout").until("ready")
    groups = visit.texts("#exposed th[scope=rowgroup]")
    assert groups == 2 * ["one_page − control", "<i>\\u202eevil − control"]
    assert "▲ Not shown: <b>too large</b>." in visit.texts("#exposed .note")
    assert visit.page.locator("#exposed i, #exposed b").count() == 0


def test_no_page_of_exposed_units_breaks_a_rule_of_accessibility(
    exposed: str, open_page: Open
) -> None:
    visit = open_page(exposed)
    breaches = []
    for query in ("?experiment=checkout", "?experiment=reminder", "?experiment=banner", ""):
        visit.go(exposed + query).until("ready")
        for width, looks in (*LOOKS, (2560, ())):
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.evaluate(ALL_DRAWN)
            breaches += violations(visit, f"{query}, {width} pixels", looks)
            over = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, (query, width)
    assert breaches == []

"""What tests of the index and of the pages of experiments share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from tests import experiment_scenes
from tests.consumers.server.page.seen import Seen
from tests.patience import LIMIT_S

if TYPE_CHECKING:
    from playwright.sync_api import Route

NAMES: Final = "#index-body > .scroll tbody th a"
FOLDED: Final = "#index-body details[data-fold={}] tbody th a"
FIRST: Final = ["checkout", "pricing", "search_prefix", "ranker"]  # to stop, to check, to ship
CURRENT: Final = [
    name for name in experiment_scenes.TWENTY if name not in ("legacy_cart", "first_banner")
]
REST: Final = [name for name in CURRENT if name not in FIRST]


def index_of(url: str) -> dict[str, Any]:
    """The entries of the index by name, as the server answers them."""
    answer = httpx.get(f"{url}api/experiments?texts=tables", timeout=LIMIT_S).json()
    return {entry["name"]: entry for entry in answer["experiments"]}


def parameters(page: Seen) -> dict[str, list[str]]:
    """Those of the address."""
    return parse_qs(urlsplit(page.page.url).query)


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[Route], None]:
    """A handler that changes the answer of the server."""

    def handle(route: Route) -> None:
        answer = route.fetch().json()
        change(answer)
        route.fulfill(body=json.dumps(answer), content_type="application/json")

    return handle

"""A heavy answer is refused past a limit, gives way to others, and ends when its client goes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import follow
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Lines, Query, QueryError
from streammetrics_consumers.query.slices import Computed
from streammetrics_consumers.query.state_cells import CellForm, StateCell
from streammetrics_consumers.query.turns import (
    LIGHT_SLICES,
    Queue,
    TooHeavy,
    Turn,
    current_turn,
)
from streammetrics_consumers.server.api import TABLES
from streammetrics_consumers.server.concurrency import ConcurrencyLimiter
from streammetrics_consumers.server.process import serving

from tests.consumers.server.test_events import ALONE
from tests.consumers.stores import event, make_store
from tests.patience import LIMIT_S, until

ITEMS = 400
ALL = "/api/results?window=all"
# Of each metric: a slice of each item and variant, and of no and one name.
OF_WINDOW = 2 * (ITEMS + 3)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a few hundred slices in each of two windows."""
    events = [
        event(60 * (index % 2), "ab"[index % 4 > 1], index % 3 == 0, 0.5, f"item {index // 4}")
        for index in range(4 * ITEMS)
    ]
    return make_store(
        tmp_path_factory.mktemp("many"), [{**record, "ts": record["ts"]} for record in events]
    )


def number(url: str, name: str) -> float:
    """A gauge of a server."""
    text = httpx.get(f"{url}metrics", timeout=LIMIT_S).text
    return next(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    )


def test_an_answer_past_the_limit_is_refused_before_it_is_computed(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[object] = []
    monkeypatch.setattr(follow, "results_of", lambda *given: computed.append(given))
    with serving(str(many), ServerConfig(port=0, max_slices=1000), ALONE) as url:
        refused = httpx.get(url + ALL[1:], timeout=LIMIT_S)
    assert refused.status_code == 400 and not computed
    error = refused.json()["error"]
    assert error["expected"] == "at most 1,000 slices, each counted for every metric and window"
    assert error["got"].startswith("at least ") and error["where"] == "the answer"
    assert "most=50" in error["hint"] and "max_slices" in error["hint"]


def test_what_the_error_says_to_ask_for_is_answered(many: Path) -> None:
    with serving(str(many), ServerConfig(port=0, max_slices=1000), ALONE) as url:
        for parameters in ("most=50", "by=variant", "by=variant,phase&where=phase=item%207"):
            answer = httpx.get(f"{url}{ALL[1:]}&{parameters}", timeout=LIMIT_S)
            assert answer.status_code == 200 and answer.json()["results"], parameters


def test_a_program_without_clients_has_no_limit(many: Path) -> None:
    with closing(Ledger.open(str(many))) as ledger:
        rows = QueryCache(ledger).results(Query("all", headlines=True)).rows
        turn = Turn(Queue(), light=None, most=1000)
        with pytest.raises(QueryError):
            turn.run(lambda: QueryCache(ledger).results(Query("all")))
    assert len(rows) > LIGHT_SLICES


def test_an_answer_ends_when_its_client_has_gone(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, turns = Event(), list[Turn]()
    real = CellForm.cell

    def cell(form: CellForm, computed: Computed) -> StateCell:
        turn = current_turn()
        assert turn is not None
        turns.append(turn)
        begun.set()
        assert turn.abandoned.wait(LIMIT_S)
        return real(form, computed)

    monkeypatch.setattr(CellForm, "cell", cell)
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(many), ServerConfig(port=0), ALONE))
        parts = urlsplit(url)
        client = socket.create_connection((parts.hostname, parts.port), timeout=LIMIT_S)
        client.sendall(f"GET {ALL} HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
        assert begun.wait(LIMIT_S)
        client.close()
        monkeypatch.setattr(CellForm, "cell", real)  # of the gauges of /metrics
        until(lambda: number(url, "streammetrics_heavy_answers") == 0)
    assert len(turns) == 1


def test_a_heavy_answer_holds_up_no_other(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = Event(), Event()
    real = CellForm.cell

    def cell(form: CellForm, computed: Computed) -> StateCell:
        turn = current_turn()
        if turn is not None and turn.is_heavy:
            begun.set()
            assert end.wait(LIMIT_S)
        return real(form, computed)

    monkeypatch.setattr(CellForm, "cell", cell)
    statuses: list[int] = []

    def ask() -> None:
        statuses.append(httpx.get(url + ALL[1:], timeout=LIMIT_S).status_code)

    with serving(str(many), ServerConfig(port=0), ALONE) as url:
        heavy = [Thread(target=ask) for _ in range(TABLES + 1)]  # more than are computed at once
        for thread in heavy:
            thread.start()
        assert begun.wait(LIMIT_S)
        for path in ("metrics", "healthz", "readyz", "api/store", "api/results?by=variant"):
            assert httpx.get(url + path, timeout=LIMIT_S).status_code == 200, path
        assert number(url, "streammetrics_heavy_answers") == 1
        end.set()
        for thread in heavy:
            thread.join(LIMIT_S)
    assert statuses == [200] * len(heavy)


def test_a_heavy_answer_is_computed_apart_from_light_ones_and_ends_in_its_own_turn() -> None:
    turns: list[Turn] = []

    def make(request: Request) -> Response:
        turn = current_turn()
        assert turn is not None
        turns.append(turn)
        if turn.light is not None:
            raise TooHeavy
        if len(turns) == 4:
            turn.abandoned.set()
            turn.require_awaited()
        return Response()

    async def ask() -> Response:
        async def waits() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        return await limited(Request(scope, waits))

    async def ask_twice() -> list[int]:
        nonlocal limited
        limited = ConcurrencyLimiter(1, Turn(Queue())).limited(make)
        return [(await ask()).status_code, (await ask()).status_code]

    limited: Callable[[Request], object] = make  # type: ignore[assignment]
    assert asyncio.run(ask_twice()) == [200, 499]
    assert [turn.is_heavy for turn in turns] == [False, True, False, True]


def test_to_sort_many_slices_by_a_value_is_heavy_and_not_refused(many: Path) -> None:
    lines = Lines(5, "value", down=True)
    grouping = frozenset(["variant", "phase"])
    query = Query("all", by=grouping, headlines=False, lines=lines)
    with closing(Ledger.open(str(many))) as ledger:
        cache, light = QueryCache(ledger), Turn(Queue(), light=ITEMS // 2, most=ITEMS // 2)
        few = replace(query, lines=replace(lines, order="slice"))
        assert light.run(lambda: cache.results(few)).rows  # only five lines are computed
        with pytest.raises(TooHeavy):
            light.run(lambda: cache.results(replace(query, lines=replace(lines, order="rows"))))
        answer = light.as_heavy().run(lambda: cache.results(query))
    assert answer.slices["ctr"].all > ITEMS and answer.slices["ctr"].shown == 5


def test_others_give_way_to_what_comes_first_but_not_for_ever() -> None:
    queue = Queue()
    queue.give_way()  # nothing comes first
    with queue.first():
        queue.give_way()  # it ends all the same
    order: list[str] = []
    entered, leave = Event(), Event()

    def first() -> None:
        with queue.first():
            entered.set()
            assert leave.wait(LIMIT_S)
            order.append("first")

    thread = Thread(target=first)
    thread.start()
    assert entered.wait(LIMIT_S)
    leave.set()
    thread.join(LIMIT_S)
    queue.give_way()
    order.append("last")
    assert order == ["first", "last"]


@pytest.fixture(autouse=True)
def no_turn_is_left() -> Iterator[None]:
    yield
    assert current_turn() is None

"""However many answers of one kind are asked for, others come; what nobody awaits is not made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import httpx
import pytest
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.history import HistoryReader
from streammetrics_consumers.query.turns import Queue, Turn
from streammetrics_consumers.render import charts
from streammetrics_consumers.server import api
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.concurrency import ConcurrencyLimiter

from tests.patience import LIMIT_S

CHART = "/api/figure?metric=auc&kind=roc"
HISTORY = "/api/history?metric=auc"
PROBES = ("/healthz", "/readyz", "/metrics", "/api/health")
THREADS, MANY = 10, 12
WORK = {  # what makes the answers of a path
    CHART: (charts, "figure_of_states"),
    HISTORY: (HistoryReader, "read"),
    "/api/results": (api, "to_json"),
    "/api/status": (api, "status_json"),
    "/results.txt": (api, "results_text"),
}


@pytest.fixture
def app(store: Path) -> Iterator[ASGIApp]:
    with closing(Ledger.open(str(store))) as ledger:
        yield application(ledger, store=str(store))


@pytest.mark.parametrize(
    ("slow", "at_once", "quick"),
    [
        ((CHART, HISTORY), api.CHARTS, ("/api/results", "/results.txt", "/api/store")),
        (("/api/results", "/api/status", "/results.txt"), api.TABLES, (CHART, HISTORY)),
    ],
    ids=["charts", "tables"],
)
def test_answers_that_wait_hold_up_no_probe_and_none_of_another_kind(
    app: ASGIApp, monkeypatch: pytest.MonkeyPatch,
    slow: tuple[str, ...], at_once: int, quick: tuple[str, ...],
) -> None:  # fmt: skip
    begun: list[str] = []
    end = Event()

    def slowed(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def slowly(*given: object, **keywords: object) -> object:
            begun.append(name)
            assert end.wait(LIMIT_S)
            return work(*given, **keywords)

        return slowly

    async def ask() -> None:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            waiting = [asyncio.create_task(client.get(path)) for path in slow * (MANY // len(slow))]
            while len(begun) < at_once:
                await asyncio.sleep(0.005)
            for path in (*PROBES, *quick):
                assert (await client.get(path)).status_code == 200, path
            assert len(begun) == at_once
            end.set()
            assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}

    for module, name in map(WORK.__getitem__, slow):
        monkeypatch.setattr(module, name, slowed(name, getattr(module, name)))
    asyncio.run(ask())
    assert set(begun) == {WORK[path][1] for path in slow}


def test_what_nobody_waits_for_is_not_made() -> None:
    paths: list[str] = []

    def make(request: Request) -> Response:
        paths.append(request.url.path)
        return Response()

    async def ask() -> Response:
        async def gone() -> Message:
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        turn = Turn(Queue())
        return await ConcurrencyLimiter(1, turn).limited(make)(Request(scope, gone))

    assert (asyncio.run(ask()).status_code, paths) == (499, [])

"""What a page follows, over a real socket: what was counted, and how the store stands."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server import events, process
from streammetrics_consumers.server.events import Events
from streammetrics_consumers.server.health import HealthMonitor, WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests.consumers.stores import EVENTS, make_store, write_events
from tests.patience import LIMIT_S

ALONE = WatchedWorkers(dict, time.monotonic, time.time)


def heard(answer: httpx.Response) -> Generator[tuple[str, dict[str, object]], None, None]:
    """The events of a stream, as a browser reads them."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def until(stream: Iterator[tuple[str, dict[str, object]]], event_name: str) -> dict[str, object]:
    return next(data for name, data in stream if name == event_name)


def test_a_page_hears_of_what_was_counted(tmp_path: Path) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    with (
        serving(str(store), ServerConfig(port=0), ALONE) as url,
        httpx.stream("GET", url + "api/events", timeout=LIMIT_S) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        stream = heard(answer)
        first = until(stream, "moved")
        assert first["rows_read"] == 2
        assert until(stream, "health")["state"] == "idle"
        write_events(tmp_path, EVENTS)
        assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
        later = until(stream, "moved")
        assert later["rows_read"] == len(EVENTS)
        assert later["moment"] != first["moment"]  # of what is counted, whatever looks there were
        assert httpx.get(url + "api/health", timeout=LIMIT_S).json()["committed_s"] is not None


def test_more_pages_than_the_limit_are_told_so_and_none_holds_up_the_end(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS", 1)
    monkeypatch.setattr(process, "STOP_S", 3600)  # how long it would be held up
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(store), ServerConfig(port=0), ALONE))
        with httpx.stream("GET", url + "api/events", timeout=LIMIT_S) as answer:
            stream = heard(answer)  # it ends with this
            until(stream, "moved")
            refused = httpx.get(url + "api/events", timeout=LIMIT_S)
            assert refused.status_code == 503
            assert refused.json()["error"]["got"].startswith("1 pages follow")
            stack.close()
            stream.close()


def test_the_limit_holds_for_pages_that_ask_at_once(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS", 1)
    monitor = HealthMonitor.__new__(HealthMonitor)  # nothing is sent
    streams = Events(monitor, lambda: True)
    first = streams.answer("GET")
    with pytest.raises(HTTPException):
        streams.answer("GET")

    async def gone(message: Message) -> None:
        raise OSError

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    with pytest.raises(ClientDisconnect):
        asyncio.run(first(scope, receive, gone))
    assert isinstance(streams.answer("GET"), StreamingResponse)

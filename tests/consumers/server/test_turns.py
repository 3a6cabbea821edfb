"""However many charts are asked for, other answers come, and what nobody waits for is not drawn."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import httpx
import pytest
from streammetrics_consumers.render import charts
from streammetrics_consumers.server import api
from streammetrics_consumers.server.process import serving

CHART = "api/figure?metric=auc&kind=history"
HISTORY = "api/history?metric=auc"
PROBES = ("healthz", "readyz", "metrics", "api/health")
MANY = 60  # more than there are threads

Slow = Callable[[object, str], tuple[list[str], Event]]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Has a function of a module wait: its calls that were begun, and what lets them end."""
    go_on = Event()

    def slowed(module: object, name: str) -> tuple[list[str], Event]:
        begun: list[str] = []
        work = getattr(module, name)

        def slowly(*arguments: object, **named: object) -> object:
            begun.append(name)
            assert go_on.wait(60)
            return work(*arguments, **named)

        monkeypatch.setattr(module, name, slowly)
        return begun, go_on

    yield slowed
    go_on.set()


def asked(stack: ExitStack, url: str, path: str) -> socket.socket:
    """A connection that asks, and waits."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    connection.sendall(f"GET /{path} HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
    return stack.enter_context(closing(connection))


@pytest.mark.parametrize(
    ("path", "module", "work", "at_once", "others"),
    [
        (CHART, charts, "figure_of_history", api.CHARTS, ("api/results", "results.txt")),
        (HISTORY, api, "history_json", api.CHARTS, ("api/store", "api/experiment")),
        ("api/results", api, "to_json", api.TABLES, (CHART, HISTORY)),
        ("api/status", api, "status_json", api.TABLES, (CHART,)),
        ("results.txt", api, "results_text", api.TABLES, (CHART,)),
    ],
)
def test_answers_that_wait_hold_up_no_probe_and_none_of_another_kind(
    store: Path, slow: Slow, path: str, module: object, work: str, at_once: int,
    others: tuple[str, ...],
) -> None:  # fmt: skip
    begun, go_on = slow(module, work)
    with ExitStack() as stack, serving(str(store), "127.0.0.1", 0) as url:
        for _ in range(MANY):
            asked(stack, url, path)
        while len(begun) < at_once:
            httpx.get(url + "healthz")
        for other in (*PROBES, *others):
            assert httpx.get(url + other, timeout=30).status_code == 200
        assert len(begun) == at_once
        go_on.set()


def test_what_nobody_waits_for_is_not_drawn(store: Path, slow: Slow) -> None:
    begun, go_on = slow(charts, "figure_of_history")
    with serving(str(store), "127.0.0.1", 0) as url:
        with ExitStack() as stack:
            for _ in range(MANY):
                asked(stack, url, CHART)
            while len(begun) < api.CHARTS:
                httpx.get(url + "healthz")
        httpx.get(url + "healthz")  # answered after the server heard that they have gone
        go_on.set()
        assert httpx.get(url + CHART, timeout=30).status_code == 200
    assert len(begun) == api.CHARTS + 1

"""Over a real socket: the bytes of the command line, and refusals of what is hostile."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.server.process import serving


@pytest.fixture(scope="module")
def url(store: Path) -> Iterator[str]:
    with serving(str(store), "127.0.0.1", 0) as address:
        yield address


def ask(url: str, target: str, **headers: str) -> tuple[int, bytes]:
    """One request, sent as it is written."""
    host = urlsplit(url).netloc
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.putrequest("GET", target, skip_host=True)
        for name, value in {"host": host, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(("command", "path"), [("results", "results"), ("status", "status")])
def test_the_bytes_are_those_of_the_command_line(
    url: str, store: Path, capfdbinary: pytest.CaptureFixture[bytes], command: str, path: str
) -> None:
    assert main([command, str(store), "--json"]) == 0
    assert ask(url, f"/api/{path}") == (200, capfdbinary.readouterr().out)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "127.0.0.1.nip.io"])
@pytest.mark.parametrize(
    "path", ["/", "/api/results", "/api/events", "/assets/main.js", "/healthz"]
)
def test_another_host_s_name_is_refused_everywhere(url: str, host: str, path: str) -> None:
    status, body = ask(url, path, host=host)
    assert status == 400
    assert body.startswith(b"this name is not served here")


@pytest.mark.parametrize(
    "target",
    [
        "/api/results?" + "&".join(f"where=a{i}=b" for i in range(1500)),
        "/api/results?metric=" + "x" * 20_000,
        "/api/history?metric=" + quote("<script>alert(1)</script>"),
        "/api/figure?metric=auc&kind=%00%ff%fe",
        "/api/figure?metric=auc&where=" + quote("variant='; drop table delta; --"),
        "/api/results?generation=" + "9" * 4000,
        "/api/results?window=" + quote("0001-01-01/9999-12-31"),
        "/api/store?generation=-1",
        "/assets/..%2f..%2fguard.py",
        "//evil.example/%2e%2e",
    ],
    ids=lambda target: target[:40],
)
def test_a_hostile_address_costs_a_short_error(url: str, target: str) -> None:
    status, body = ask(url, target)
    assert status in (400, 404)
    assert len(body) < 2000
    assert json.loads(body)["error"]["came"] if body.startswith(b"{") else b"Traceback" not in body


def test_an_origin_of_another_page_is_told_nothing_more(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", "/api/results", headers={"Origin": "http://evil.example"})
        answer = connection.getresponse()
        answer.read()
        assert answer.getheader("access-control-allow-origin") is None
        assert answer.getheader("cross-origin-resource-policy") == "same-origin"
    finally:
        connection.close()

"""The token: without it there is nothing to see, and a browser needs to say it once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application

from tests.consumers.server.asking import Client

TOKEN = "0123456789abcdef&=%;"
PATHS = ["/", "/assets/x.js", "/api/results", "/api/events", "/results.txt", "/metrics", "/nothing"]


@pytest.fixture(scope="module")
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store))) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(ledger: Ledger) -> Client:
    return Client(application(ledger, store="s", settings=ServerConfig(token=TOKEN)))


def test_without_the_token_nothing_is_told(client: Client) -> None:
    for header in (
        {},
        {"authorization": b"Bearer wrong"},
        {"authorization": f"Basic {TOKEN}".encode()},
        {"authorization": f"Bearer {TOKEN}x".encode()},
        {"cookie": f"streammetrics={TOKEN}".encode()},
        {"cookie": b"\x80; =;"},
    ):
        for path in PATHS:
            answer = client.get(path, headers=header)  # type: ignore[arg-type]
            refusal = answer.status_code, answer.headers["www-authenticate"]
            assert refusal == (401, "Bearer"), (path, header)
            assert "generation" not in answer.text and TOKEN not in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"
            if path.startswith("/api/"):
                assert answer.json()["error"]["hint"].startswith("open /?token=TOKEN")


def test_whether_it_lives_is_told_to_anyone_and_the_rest_to_a_script_with_the_token(
    client: Client,
) -> None:
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    for kind in ("Bearer", "bearer"):
        answer = client.get("/api/results", headers={"authorization": f"{kind} {TOKEN}"})
        assert answer.status_code == 200
    assert client.get("/api/results", params=[("token", TOKEN)]).status_code == 401


def test_a_browser_is_led_to_the_same_view_with_a_cookie(client: Client) -> None:
    shared = [("window", "latest"), ("where", "variant=a&b")]
    first = client.get("/", params=[("token", TOKEN), *shared])
    assert first.status_code == 303
    assert first.headers["location"] == "/?window=latest&where=variant%3Da%26b"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    assert TOKEN not in cookie
    [(name, morsel)] = SimpleCookie(cookie).items()
    second = client.get(first.headers["location"], headers={"cookie": f"{name}={morsel.value}"})
    assert second.status_code == 200
    forged = client.get("/", headers={"cookie": f"{name}={morsel.value[:-1]}"})
    assert forged.status_code == 401
    wrong = client.get("/?token=wrong")
    assert wrong.status_code == 401 and "set-cookie" not in wrong.headers


def test_the_address_is_never_another_host_s(client: Client) -> None:
    answer = client.get("/", params=[("token", TOKEN), ("//evil.example", "")])
    assert answer.headers["location"] == "/?%2F%2Fevil.example="


def test_cookies_of_two_servers_of_one_machine_do_not_meet(ledger: Ledger) -> None:
    names = set()
    for token in ("a" * 16, "b" * 16):
        token_client = Client(application(ledger, store="s", settings=ServerConfig(token=token)))
        names.add(token_client.get(f"/?token={token}").headers["set-cookie"].partition("=")[0])
    assert len(names) == 2


def test_cookies_of_others_that_no_parser_takes_lock_nobody_out(client: Client) -> None:
    ours = client.get("/", params=[("token", TOKEN)]).headers["set-cookie"].partition(";")[0]
    for other in ('theme={"a":1}', "x=a b", "bad[name]=1", 'a="unclosed', "user@x=1", "a,b=1", "="):
        for cookies in (f"{other}; {ours}", f"{ours}; {other}"):
            assert client.get("/api/store", headers={"cookie": cookies}).status_code == 200, other

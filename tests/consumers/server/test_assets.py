"""The files of the page: ours alone, by name, compressed, and not sent again."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server import assets
from streammetrics_consumers.server.application import application

from tests.consumers.server.asking import Client


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[Client]:
    with closing(Ledger.open(str(store))) as ledger:
        yield Client(application(ledger, store="s"))


def names() -> list[str]:
    """The files of the page."""
    return sorted(one.name for one in (files("streammetrics_consumers.server") / "page").iterdir())


def test_every_file_of_the_page_is_served_with_its_type(client: Client) -> None:
    assert "index.html" in names()
    for name in names():
        if name.endswith(".md"):
            continue
        answer = client.get(f"/assets/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"] == assets.TYPES[name.rpartition(".")[2]]


@pytest.mark.parametrize(
    "name",
    ["..%2fguard.py", "%2e%2e/guard.py", "guard.py", ".hidden.js", "x.js", "A.JS", "a%00.js"],
)
def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert client.get(f"/assets/{name}").status_code in (400, 404)


def test_what_a_browser_has_is_not_sent_again(client: Client) -> None:
    first = client.get("/")
    again = client.get("/", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip, br", True), ("br", False), ("gzip;q=0", False), ("gzip;q=0.5", True)],
)
def test_it_is_compressed_for_whom_that_suits(
    client: Client, accepted: str, compressed: bool
) -> None:
    found = client.get("/assets/index.html", headers={"accept-encoding": accepted})
    assert ("content-encoding" in found.headers) is compressed
    assert found.content == client.get("/").content
    index = assets.asset("index.html")
    assert index is not None and gzip.decompress(index.compressed) == index.data


def test_the_library_of_charts_is_made_once_and_outside_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assets, "_PROGRAM", "import sys; sys.stdout.write('export {};')")
    made = assets._charts.__wrapped__()
    assert made is not None and made.data == b"export {};"
    assert made.type.startswith("text/javascript")


def test_without_its_package_there_are_no_charts_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(assets, "_PROGRAM", "raise SystemExit('install vl-convert-python')")
    assert assets._charts.__wrapped__() is None
    assert "the page has no charts: install vl-convert-python" in caplog.text

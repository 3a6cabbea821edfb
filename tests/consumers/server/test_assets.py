"""The files of the page: ours alone, by name, compressed, and not sent again."""

from __future__ import annotations

from importlib.resources import files
from threading import Event, Semaphore

import pytest
from streammetrics_consumers.server import assets

from tests.consumers.server.asking import Client
from tests.patience import LIMIT_S


def test_the_files_of_the_page_are_served_with_their_types_and_nothing_else(client: Client) -> None:
    names = [file.name for file in (files("streammetrics_consumers.server") / "page").iterdir()]
    assert "index.html" in names
    for name in names:
        answer = client.get(f"/assets/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"] == assets.TYPES[name.rpartition(".")[2]]
    for name in ("..%2fguard.py", "%2e%2e/guard.py", "guard.py", ".hidden.js", "x.js", "A.JS",
                 "a%00.js"):  # fmt: skip
        assert client.get(f"/assets/{name}").status_code in (400, 404), name


def test_what_a_browser_has_is_not_sent_again(client: Client) -> None:
    first = client.get("/")
    second = client.get("/", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (second.status_code, second.content) == (304, b"")
    assert client.get("/", headers={"if-none-match": '"other"'}).status_code == 200


def test_it_is_compressed_for_whom_that_suits(client: Client) -> None:
    for accepted, compressed in (
        ("gzip, br", True), ("br", False), ("gzip;q=0", False), ("gzip;q=0.5", True),
    ):  # fmt: skip
        answer = client.get("/assets/index.html", headers={"accept-encoding": accepted})
        assert ("content-encoding" in answer.headers) is compressed, accepted
        assert answer.content == client.get("/").content


def test_the_library_of_charts_is_made_once_and_outside_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assets, "_PROGRAM", "import sys; sys.stdout.write('export {};')")
    asset = assets._charts.__wrapped__()
    assert asset is not None and asset.data == b"export {};"
    assert asset.type.startswith("text/javascript")


def test_without_its_package_there_are_no_charts_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(assets, "_PROGRAM", "raise SystemExit('install vl-convert-python')")
    assert assets._charts.__wrapped__() is None
    assert "the page has no charts: install vl-convert-python" in caplog.text


def test_the_first_page_that_is_asked_for_has_the_charts_made_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    semaphore = Semaphore(0)
    monkeypatch.setattr(assets, "_CHARTS_ASKED", Event())
    monkeypatch.setattr(assets, "charts", semaphore.release)
    for _ in range(3):
        assets.prepare()
    assert semaphore.acquire(timeout=LIMIT_S)
    assert not semaphore.acquire(blocking=False)

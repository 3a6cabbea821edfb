"""The page of other servers: of a worker that counts, of joined events, and behind a token."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import httpx
from streammetrics_consumers.cli.demo_configs import JOINED_CONFIG
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests.consumers.running import Running
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.patience import LIMIT_S

Open = Callable[..., Seen]
TOKEN = "0123456789abcdef&=%;"
PROFILE = {"locale": "en-GB"}  # a profile without cookies


def test_the_page_follows_a_worker_and_sees_it_die(tmp_path: Path, open_page: Open) -> None:
    stream = Stream.begun(tmp_path)
    stream.write(50)
    with Running(tmp_path / "config.toml") as worker:
        page = open_page(worker.url).until("ready")
        page.page.wait_for_selector('#health [data-field=read] dd:text-is("100")')
        page.page.wait_for_selector("#health[data-state=live]")
        assert "Counting" in page.text("#health")
        page.page.wait_for_selector('#health [data-field=lag] dd:text-is("none")')
        stream.write(50)
        page.page.wait_for_selector('#health [data-field=read] dd:text-is("200")')
        page.page.wait_for_selector('.card[data-metric="auc"] td:text-is("100")')
        stream.url = worker.url
        answer = stream.get("api/results?by=variant&metric=auc&views=headline")
        shown = page.numbers('.card[data-metric="auc"] table.figures')
        assert shown == [row["value"] for row in answer["results"]]
        worker.process.kill()
        page.until("stale")
        assert "No connection" in page.text("#health")
        assert page.numbers('.card[data-metric="auc"] table.figures') == shown


def test_pending_repeats_delays_and_the_warning_are_shown_where_events_are_joined(
    tmp_path: Path, served: Stream, open_page: Open
) -> None:
    config = tmp_path / "demo.toml"
    text = JOINED_CONFIG.replace("label_window_s = 1800", "label_window_s = 300")
    config.write_text(text, encoding="utf-8")
    events = str(tmp_path / "events.jsonl")
    assert main(["simulate", "--join", "--items", "10", "--events", "5000", "-o", events]) == 0
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    watched = WatchedWorkers(dict, time.monotonic, time.time)
    with serving(str(tmp_path / "demo.db"), ServerConfig(port=0), watched) as url:
        page = open_page(url).until("ready")
        join = json.loads(httpx.get(url + "api/results", timeout=LIMIT_S).text)["join"]
        counts = page.text("#joined-counts")
        assert f"{join['closed']:,} impressions counted, {join['pending']:,} pending (" in counts
        assert f"{join['repeated']:,} events repeated (" in counts
        rows = page.texts("#joined tbody tr")
        assert [row.split()[:2] for row in rows] == [
            [name, f"{outcome['attributed']:,}"] for name, outcome in join["outcomes"].items()
        ]
        assert "█" in rows[0] and "2 s to 4 min" in rows[0]
        assert [text[2:] for text in page.texts("#joined .note")] == (join["warnings"])
        assert len(join["warnings"]) == 2
        page.go(served.url).until("ready")
        assert page.page.locator("#joined").is_hidden()  # of a store that joins nothing


def test_a_page_behind_a_token_says_so_until_it_has_it_and_when_it_is_gone(
    stream_copy: Stream, open_page: Open
) -> None:
    with stream_copy.serve(token=TOKEN) as stream:
        page = open_page(stream.url, **PROFILE)
        for address in (stream.url, stream.url + "?token=wrong"):
            page.page.goto(address)
            assert "this server requires its token: open /?token=TOKEN" in page.text("body")
            assert page.page.locator("script, table").count() == 0
        # It is said once and leaves the address.
        page.page.goto(f"{stream.url}?{urlencode({'token': TOKEN, 'metric': 'ctr'})}")
        page.until("ready")
        assert page.page.url == f"{stream.url}?metric=ctr"
        assert page.page.evaluate("document.cookie") == ""  # no script can read it
        page.chart()
        stream.write(50, day=2)
        stream.count()
        page.page.wait_for_selector('#health [data-field=read] dd:text-is("1,300")')
        page.page.reload()
        page.until("ready")
        page.page.context.clear_cookies()
        page.page.select_option("[name=metric]", "auc")
        page.until("broken")
        assert "This page needs its token" in page.text("#notice")
        assert "Open the address that the server printed" in page.text("#notice")

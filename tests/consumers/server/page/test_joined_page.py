"""What the page says of joined events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.demo import JOINED_CONFIG
from streammetrics_consumers.server.health import Watched
from streammetrics_consumers.server.process import serving

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]


def test_pending_repeats_delays_and_the_warning_are_shown(tmp_path: Path, open_page: Open) -> None:
    config = tmp_path / "demo.toml"
    text = JOINED_CONFIG.replace("label_window_s = 1800", "label_window_s = 300")
    config.write_text(text, encoding="utf-8")
    events = str(tmp_path / "events.jsonl")
    assert main(["simulate", "--join", "--events", "5000", "-o", events]) == 0
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    watched = Watched(dict, time.monotonic, time.time)
    with serving(str(tmp_path / "demo.db"), "127.0.0.1", 0, watched) as url:
        page = open_page(url).until("ready")
        join = json.loads(httpx.get(url + "api/results").text)["join"]
        said = page.text("#joined-counts")
        assert f"{join['closed']:,} impressions counted, {join['pending']:,} pending (" in said
        assert f"{join['repeated']:,} events repeated (" in said
        rows = page.page.locator("#joined tbody tr").all_inner_texts()
        assert [row.split()[:2] for row in rows] == [
            [name, f"{one['attributed']:,}"] for name, one in join["outcomes"].items()
        ]
        assert "█" in rows[0] and "1 s to 4 min" in rows[0]
        assert [text[2:] for text in page.page.locator("#joined .note").all_inner_texts()] == (
            join["warnings"]
        )
        assert len(join["warnings"]) == 2


def test_a_store_that_joins_nothing_has_no_such_part(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready")
    assert page.page.locator("#joined").is_hidden()

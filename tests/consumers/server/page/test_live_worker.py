"""The page of `streammetrics run`, whose worker counts while someone looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumers.running import Running
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]


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

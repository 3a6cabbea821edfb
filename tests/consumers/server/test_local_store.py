"""A store whose routes are answered in this process: what `streammetrics.open` reads."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.local_store import LocalStore
from streammetrics_consumers.server.process import serving

import streammetrics as sm
from streammetrics.stored.http_server import HttpServer
from tests.consumers.stores import make_store

ROUTES = (
    "/api/store",
    "/api/results?window=all&views=all",
    "/api/experiment",
    "/api/results?metric=x",
)


def test_answers_are_those_of_a_server(store: Path) -> None:
    with (
        serving(str(store), ServerConfig(port=0)) as url,
        closing(LocalStore(str(store))) as local,
    ):
        for route in ROUTES:
            assert local.get(route) == HttpServer(url).get(route)


def test_a_store_is_read_from_a_loop(store: Path) -> None:
    async def read() -> tuple[str, ...]:
        with sm.open(store) as reader:
            return reader.metrics()

    assert asyncio.run(read()) == ("auc", "ctr")


def test_nothing_is_created_or_changed(tmp_path: Path, store: Path) -> None:
    absent = tmp_path / "absent.db"
    with pytest.raises(sm.StreamMetricsError, match="expected a store that can be read") as caught:
        sm.open(absent)
    assert "absent.db" in caught.value.got and not [*tmp_path.iterdir()]
    before = store.read_bytes()
    with sm.open(store) as reader:
        reader.frame()
        reader.figure("auc", "roc")
    assert store.read_bytes() == before


@pytest.mark.usefixtures("each_store")
def test_each_kind_of_store_is_read(tmp_path: Path) -> None:
    with sm.open(make_store(tmp_path)) as store:
        assert store.metrics() == ("auc", "ctr")

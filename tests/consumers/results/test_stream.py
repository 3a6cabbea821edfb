"""Ranges of keys, one at a time, give the bytes of the whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from consumers.cli.main import main
from consumers.ledger.compact import Compactor
from consumers.ledger.ledger import Ledger
from consumers.results import reader
from consumers.results.query import Query, QueryError, parse_query
from consumers.results.reader import read_results, streamed_results
from consumers.results.results import to_json
from tests.consumers.results.test_follow import views_computed_once
from tests.consumers.stores import (
    event,
    make_store,
    over_stores,
    write_config,
    write_events,
)

pytestmark = pytest.mark.usefixtures("each_store")

EVENTS = [event(i % 150, "ab"[i % 2], i % 3 == 0, i % 10 / 10, f"phase {i * 7 % 40}")
          for i in range(200)]  # fmt: skip
QUERIES = (
    parse_query("all"),
    parse_query("total", "variant,phase"),
    parse_query("latest", metric="ctr"),
    parse_query("all", "variant,phase", ["variant=a"]),
)


def grown(folder: Path, max_keys: int) -> Path:
    """A store of some commits, with rows of several sizes of key ranges."""
    path = write_config(
        folder, windows="slide_s = 1200", slices=f"max_keys = {max_keys}", variants=""
    )
    for end in (60, 80, 200):
        write_events(folder, EVENTS[:end])
        assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
        if end == 80:
            with closing(Ledger.open(str(folder / "store.db"))) as ledger:
                list(Compactor(ledger.store, above=1, row_bytes=1500).steps())
    return folder / "store.db"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("databases", "max_keys"),
    over_stores((30,), (10_000,), (1,), postgres=1),
    indirect=["databases"],
)
def test_ranges_give_the_bytes_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_keys: int
) -> None:
    opened = Ledger.open(str(grown(tmp_path, max_keys)))
    with closing(opened) as ledger, views_computed_once():
        for query in QUERIES:
            whole = to_json(read_results(ledger, query))
            for size in (1 << 30, 2000):
                monkeypatch.setattr(reader, "RANGE_BYTES", size)
                assert to_json(streamed_results(ledger, query)) == whole


@pytest.mark.slow
def test_how_much_is_read_is_told_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    with closing(Ledger.open(str(make_store(tmp_path, EVENTS[:20])))) as ledger:
        read_results(ledger, Query(), lambda *one: told.append(one))
        whole = list(told)
        monkeypatch.setattr(reader, "RANGE_BYTES", 200)
        told.clear()
        streamed_results(ledger, Query(), lambda *one: told.append(one))
    for heard in (whole, told):
        done, totals = zip(*heard, strict=True)
        assert done[0] == 0 and list(done) == sorted(done) and done[-1] < totals[-1]
        assert len(set(totals)) == 1
    assert len(told) > len(whole)


def test_what_is_too_large_even_so_says_what_to_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_RANGE_BYTES", 10)
    store = make_store(tmp_path, EVENTS[:20])
    with (
        closing(Ledger.open(str(store))) as ledger,
        pytest.raises(QueryError, match="ask for fewer windows with --window"),
    ):
        streamed_results(ledger, Query())

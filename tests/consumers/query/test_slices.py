"""The first tables of an answer: their texts equal those of all rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import reader
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import FirstBlocks, KeyedState
from streammetrics_consumers.render import text as module
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import results_text, text_query

from streammetrics import PerKey, Ratio
from tests.consumers.server.asking import EXPERIMENT
from tests.consumers.stores import event, make_store

EVENTS = [
    event(i % 150, "ab"[i % 2], i % 3 == 0, i % 10 / 10, f"phase {i * 7 % 10}") for i in range(60)
]
QUERIES = (
    Query(),
    parse_query("all"),
    parse_query("all", "variant,phase"),
    parse_query("total", "variant,phase", ["variant=b"]),
    parse_query("total", "variant,phase", metric="auc"),
    parse_query("latest", ""),
)


@pytest.mark.parametrize(
    ("most", "nbytes", "max_keys"),
    [(1, 64 << 20, 6), (4, 64 << 20, 100), (4, 500, 6), (999, 500, 100)],
)
def test_a_text_of_few_tables_is_that_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, nbytes: int, max_keys: int
) -> None:
    store = make_store(tmp_path, EVENTS, rest=EXPERIMENT, slices=f"max_keys = {max_keys}")
    monkeypatch.setattr(reader, "RANGE_BYTES", nbytes)
    monkeypatch.setattr(module, "MAX_BLOCKS", most)
    with closing(Ledger.open(str(store))) as ledger:
        for query in QUERIES:
            few = text_query(query)
            assert few.blocks == most
            part, whole = (
                read_results(ledger, request) for request in (few, replace(few, blocks=None))
            )
            assert len(part.rows) <= len(whole.rows)
            assert part.tables.left_out == 0 or len(part.rows) < len(whole.rows)
            text, expected = (
                results_text(results, few, Style(), store="clicks") for results in (part, whole)
            )
            assert text == expected


def test_results_are_computed_for_the_slices_that_a_text_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path, EVENTS, slices="max_keys = 6")
    monkeypatch.setattr(module, "MAX_BLOCKS", 2)
    query = text_query(parse_query("total", "variant,phase", metric="ctr"))
    with closing(Ledger.open(str(store))) as ledger:
        answer = read_results(ledger, query)
    phases = {row.slice.get("phase", "(other)") for row in answer.rows}
    assert len(phases) == 2 and answer.tables.left_out > 0
    text = results_text(answer, query, Style(), store="clicks")
    assert f"{answer.tables.left_out} more tables: narrow with --where" in text
    assert text.count("since the start") == 2


def test_no_slice_that_others_displaced_is_chosen_of_the_next_metric() -> None:
    first = FirstBlocks(3, each_slice=True)

    def chosen(day: int, metric: str, items: str) -> list[object]:
        states = PerKey(Ratio())
        states.update([(0, item) for item in items], numerators=[1] * len(items))
        window = Window(day * 86_400_000, (day + 1) * 86_400_000, "closed")
        slices, _ = first.choose(KeyedState(window, ("item",), metric, states, None))
        return [slice_["item"] for slice_, _ in slices]

    assert chosen(1, "ctr", "ab") == ["a", "b"]
    assert chosen(0, "ctr", "ab") == ["a", "b"]  # before those of the day after
    assert chosen(1, "auc", "ab") == ["a"]
    assert chosen(0, "auc", "abc") == ["a", "b", "c"]

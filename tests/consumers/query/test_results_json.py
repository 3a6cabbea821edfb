"""The JSON of results in pieces equals that of the whole answer, byte for byte."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import reader
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_json, read_results
from streammetrics_consumers.query.results_json import KeptRows, to_json
from streammetrics_consumers.render.cells import results_with_texts

from tests.consumers.answer_rows import altered, plain
from tests.consumers.render.corpus import corpus
from tests.consumers.server.asking import EXPERIMENT
from tests.consumers.stores import HOSTILE, event, make_store


def simply(results: ResultsAnswer) -> bytes:
    """The bytes by way of one object of the whole answer."""
    text = json.dumps(plain(results), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def test_every_answer_has_the_bytes_of_the_object_of_all_of_it() -> None:
    for answer in corpus().values():
        assert to_json(answer) == simply(answer)
        with_texts = results_with_texts(answer)
        assert to_json(with_texts) == simply(with_texts)
    assert to_json(replace(answer, rows=())) == simply(replace(answer, rows=()))


def test_rows_that_are_kept_are_written_as_they_are_now() -> None:
    cache = KeptRows(20)
    for answer in [*corpus().values()] * 2:
        with_texts = results_with_texts(answer)  # of the same values and slices
        assert to_json(answer, cache) == simply(answer)
        assert to_json(with_texts, cache) == simply(with_texts)
        last = with_texts.rows[-10:]
        assert all(map(operator.is_, cache.each(last), [*cache.each(last)]))


def test_hostile_names_and_odd_numbers_are_written_as_in_the_object() -> None:
    row = next(row for example in corpus().values() for row in example.rows if row.interval)
    assert row.interval is not None
    numbers = (0, 1, -0.0, 5e-324, 1e16, math.nan, math.inf, -math.inf, np.float64(0.1), True)
    names = (HOSTILE, "\ud800", '"\\\n', "", "é甲", "\u2028")
    hostile = [
        altered(
            row,
            metric=name,
            view=name,
            slice=MappingProxyType({name: name, "(other)": (name, "b"), "c": None, "d": 7}),
            counts={name: HTTPStatus.OK, "rows": 1 << 63},
            value=number,
            low=number,
            interval=dataclasses.replace(
                row.interval, lower=number, n_eff=number, reason=name, n=1 << 63
            ),
        )
        for name in names
        for number in numbers
    ]
    answer = replace(corpus()["kept"], rows=tuple(hostile), notes=('"results": []',))
    assert to_json(answer) == simply(answer)


EVENTS = [
    event(i % 150, "ab"[i % 2], i % 3 == 0, i % 10 / 10, (f"{i * 7 % 9}", None, HOSTILE)[i % 3])
    for i in range(90)
]


@pytest.mark.parametrize(
    ("query", "nbytes"),
    [
        pytest.param(Query(headlines=True), 500, id="headlines"),
        pytest.param(Query("all"), 500, id="all"),
        pytest.param(Query("all"), reader.RANGE_BYTES, id="at once"),
        pytest.param(parse_query("total", "variant,phase", ["variant=b"]), 500, id="where"),
        pytest.param(parse_query("latest", "variant", metric="ctr"), 500, id="metric"),
    ],
)  # fmt: skip
def test_a_file_of_rows_gives_the_bytes_of_the_answer_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Query, nbytes: int
) -> None:
    store = make_store(tmp_path, EVENTS, rest=EXPERIMENT, slices="max_keys = 7")
    monkeypatch.setattr(reader, "RANGE_BYTES", nbytes)
    with closing(Ledger.open(str(store))) as ledger:
        whole = read_results(ledger, query)
        assert len(whole.rows) > 1
        assert b"".join(read_json(ledger, query)) == to_json(whole) == simply(whole)

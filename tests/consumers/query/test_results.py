"""The JSON of results, to the byte."""

from __future__ import annotations

import json
import math

from msgspec.structs import replace
from streammetrics_consumers.query.answers import SINCE_THE_START, Result, Window
from streammetrics_consumers.query.results import in_order, rows_of, to_json

from streammetrics import HistogramAUC, Ratio
from tests.consumers.render.corpus import results

ROW = Result(
    window=SINCE_THE_START,
    slice={"variant": "bts"},
    metric="auc",
    type="HistogramAUC",
    view="auc",
    value=0.7011,
    low=0.7007,
    high=0.7015,
    counts={"rows": 10000, "positives": 69},
    digest="sha256:9f",
    interval=None,
)
RESULTS = replace(results(iter([ROW])), offsets={"obd_men_events.jsonl/0": 20000}, quarantined=0)


def test_the_json_is_that_of_the_interface_to_the_byte() -> None:
    assert to_json(RESULTS).decode() == (
        '{"comparisons": [], "contamination": null, "expired": 0, '
        '"format": "streammetrics-results/1", "future": 0, '
        '"generation": 1, "incomplete": {}, "join": null, "late": 0, "notes": [], '
        '"offsets": {"obd_men_events.jsonl/0": 20000}, "quarantined": 0, "recommendation": null, '
        '"repeated": 0, '
        '"results": [{"counts": {"positives": 69, "rows": 10000}, '
        '"digest": "sha256:9f", "high": 0.7015, "interval": null, "low": 0.7007, '
        '"metric": "auc", "slice": {"variant": "bts"}, "type": "HistogramAUC", '
        '"value": 0.7011, "view": "auc", "window": {"end_ms": null, "start_ms": null, '
        '"state": "total"}}], "rows_read": 20000, "skipped": 0, "srm": null, '
        '"watermark_ms": 1575158000000}\n'
    )


def test_undefined_is_null_and_other_keys_are_named() -> None:
    slice_ = {"variant": "甲\ud800", "(other)": ("variant", "phase")}
    row = replace(ROW, slice=slice_, value=math.nan, low=-math.inf, high=math.inf)
    text = to_json(replace(RESULTS, rows=(row,)))
    assert '"variant": "甲\\ud800"}'.encode() in text
    (found,) = json.loads(text)["results"]
    assert (found["value"], found["low"], found["high"]) == (None, "-inf", "inf")
    assert found["slice"] == {"variant": "甲\ud800", "(other)": ["variant", "phase"]}


def test_rows_are_in_order_of_window_slice_metric_and_view() -> None:
    early, late = Window(0, 10, "closed"), Window(10, 20, "open")
    wanted = [
        replace(ROW, slice={}),
        replace(ROW, slice={"phase": None}),
        replace(ROW, slice={"phase": "eval"}),
        replace(ROW, slice={"variant": "bts"}, view="ap"),
        replace(ROW, slice={"variant": "bts"}, view="auc"),
        replace(ROW, slice={"variant": "bts"}, metric="ctr"),
        replace(ROW, slice={"variant": "random"}),
        replace(ROW, slice={"phase": "eval", "variant": "bts"}),
        replace(ROW, window=early),
        replace(ROW, window=late),
    ]
    assert list(in_order(reversed(wanted))) == wanted


def test_a_row_has_its_certain_bounds_which_are_the_value_of_an_exact_metric() -> None:
    ctr, auc = Ratio(), HistogramAUC()
    ctr.update([1, 0, 0, 0])
    row = next(row for row in rows_of(SINCE_THE_START, {}, "ctr", ctr)[0] if row.view == "ratio")
    assert (row.value, row.low, row.high) == (0.25, 0.25, 0.25)
    assert (row.type, row.counts["rows"], row.digest) == ("Ratio", 4, ctr.digest())
    auc.update([0, 1, 1], [0.1, 0.1, 0.7])
    result = auc.compute().auc
    row = next(row for row in rows_of(SINCE_THE_START, {}, "auc", auc)[0] if row.view == "auc")
    assert (row.value, row.low, row.high) == (float(result), result.low, result.high)
    assert row.low < row.high


def test_a_table_shows_the_first_view_of_a_metric_unasked() -> None:
    rows, known = rows_of(SINCE_THE_START, {}, "auc", HistogramAUC())
    assert known == ("auc",) and len(rows) > 1

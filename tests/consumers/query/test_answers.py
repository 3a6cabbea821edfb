"""Answers: their rows, as JSON, and as schemas."""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from types import MappingProxyType

import numpy as np
from streammetrics_consumers.query.answers import Error, ProblemAnswer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.lines import all_views
from streammetrics_consumers.query.results import ordered_rows
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.rows import SINCE_THE_START, Window
from streammetrics_consumers.query.slices import Computed
from streammetrics_consumers.query.state_cells import CellForm, StateCell
from streammetrics_consumers.server.openapi import openapi_json

from streammetrics import Accumulator, HistogramAUC, Ratio
from streammetrics.experiments import SampleRatioFound
from tests.consumers.answer_rows import altered, slice_row
from tests.consumers.render.corpus import results


def test_numbers_that_json_does_not_have_are_null_and_texts() -> None:
    numbers = {"b": (math.nan, np.float64("nan")), "a": [math.inf, -math.inf, 0.5]}
    assert dumps(numbers) == b'{"a": ["inf", "-inf", 0.5], "b": [null, null]}\n'


def test_subclasses_of_plain_values_and_views_of_mappings_are_plain() -> None:
    counts = MappingProxyType({"b": HTTPStatus.OK, "a": 1})
    pairs = tuple(counts.items())
    text = dumps(SampleRatioFound(pairs, math.nan, 1, np.float64(0.25), math.nan, np.str_("why")))
    assert json.loads(text) == {
        "counts": {"a": 1, "b": 200}, "e_value": None, "pvalue": 0.25, "reason": "why",
        "greatest_e_value": None, "alarm": False, "acknowledged": "",
    }  # fmt: skip


def test_a_lone_surrogate_is_written_by_its_code_and_what_is_unset_is_left_out() -> None:
    assert dumps(Error(ProblemAnswer("\ud800"))) == b'{"error": {"got": "\\ud800"}}\n'


def test_every_object_is_closed_and_described() -> None:
    schemas = json.loads(openapi_json())["components"]["schemas"]
    assert len(schemas) > 30
    for name, schema in schemas.items():
        assert schema["additionalProperties"] is False, name
        assert schema["description"], name
        if name != "Problem":
            optional = {"text", "slices", "band", "experiment", "experiments"}
            optional |= {"exposures", "exposed", "hooks", "units"}
            assert schema["properties"].keys() - schema["required"] <= optional, name


ROW = slice_row(
    SINCE_THE_START,
    {"variant": "bts"},
    "auc",
    "HistogramAUC",
    "auc",
    0.7011,
    0.7007,
    0.7015,
    {"rows": 10000, "positives": 69},
    "sha256:9f",
)


def test_undefined_is_null_and_other_keys_are_named() -> None:
    slice_ = {"variant": "甲\ud800", "(other)": ("variant", "phase")}
    row = altered(ROW, slice=slice_, value=math.nan, low=-math.inf, high=math.inf)
    text = to_json(results(iter([row])))
    assert '"variant": "甲\\ud800"}'.encode() in text
    (result,) = json.loads(text)["results"]
    assert (result["value"], result["low"], result["high"]) == (None, "-inf", "inf")
    assert result["slice"] == {"variant": "甲\ud800", "(other)": ["variant", "phase"]}


def test_rows_are_in_order_of_window_slice_metric_and_view() -> None:
    early, late = Window(0, 10, "closed"), Window(10, 20, "open")
    expected = [
        altered(ROW, slice={}),
        altered(ROW, slice={"phase": None}),
        altered(ROW, slice={"phase": "eval"}),
        altered(ROW, slice={"variant": "bts"}, view="ap"),
        altered(ROW, slice={"variant": "bts"}, view="auc"),
        altered(ROW, slice={"variant": "bts"}, metric="ctr"),
        altered(ROW, slice={"variant": "random"}),
        altered(ROW, slice={"phase": "eval", "variant": "bts"}),
        altered(ROW, window=early),
        altered(ROW, window=late),
    ]
    assert list(ordered_rows(reversed(expected))) == expected


def cell_of(state: Accumulator) -> StateCell:
    return CellForm("all", all_views).cell(Computed.from_state(state, state.digest()))


def test_a_value_has_its_certain_bounds_which_are_the_value_of_an_exact_metric() -> None:
    ctr, auc = Ratio(), HistogramAUC()
    ctr.update([1, 0, 0, 0])
    cell = cell_of(ctr)
    value = next(value for value, _ in cell.values if value.name == "ratio")
    assert (value.value, value.exact_within, value.counts["rows"]) == (0.25, (0.25, 0.25), 4)
    assert (cell.kind, cell.digest) == ("Ratio", ctr.digest())
    auc.update([0, 1, 1], [0.1, 0.1, 0.7])
    result = auc.compute().auc
    value = next(value for value, _ in cell_of(auc).values if value.name == "auc")
    assert (float(value.value), value.exact_within) == (float(result), (result.low, result.high))
    assert result.low < result.high


def test_a_table_shows_the_first_view_of_a_metric_unasked() -> None:
    cell = cell_of(HistogramAUC())
    assert cell.headlines == ("auc",) and len(cell.values) > 1


def test_a_ratio_has_the_range_of_a_share_while_all_of_its_rows_are_0_or_1() -> None:
    ctr, revenue = Ratio(), Ratio()
    ctr.update([1, 0, 0])
    revenue.update([1, 0, 12.5])
    for state, expected in ((ctr, (0.0, 1.0)), (revenue, (-math.inf, math.inf))):
        assert dict(cell_of(state).ranges)["ratio"] == expected

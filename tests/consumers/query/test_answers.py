"""What answers are as JSON, and as schemas."""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from types import MappingProxyType

import numpy as np
from streammetrics_consumers.query.answers import Error, Problem, SampleRatio, dumps
from streammetrics_consumers.server.openapi import openapi_json


def test_numbers_that_json_does_not_have_are_null_and_texts() -> None:
    found = {"b": (math.nan, np.float64("nan")), "a": [math.inf, -math.inf, 0.5]}
    assert dumps(found) == b'{"a": ["inf", "-inf", 0.5], "b": [null, null]}\n'


def test_subclasses_of_plain_values_and_views_of_mappings_are_plain() -> None:
    counts = MappingProxyType({"b": HTTPStatus.OK, "a": 1})
    found = dumps(SampleRatio(np.float64(0.25), math.nan, counts, np.str_("why")))
    assert json.loads(found) == {
        "counts": {"a": 1, "b": 200}, "e_value": None, "pvalue": 0.25, "reason": "why",
    }  # fmt: skip


def test_a_lone_surrogate_is_written_by_its_code_and_what_is_unset_is_left_out() -> None:
    assert dumps(Error(Problem("\ud800"))) == b'{"error": {"came": "\\ud800"}}\n'


def test_every_object_is_closed_and_described() -> None:
    schemas = json.loads(openapi_json())["components"]["schemas"]
    assert len(schemas) > 30
    for name, schema in schemas.items():
        assert schema["additionalProperties"] is False, name
        assert schema["description"], name
        if name != "Problem":
            assert schema["properties"].keys() - schema["required"] <= {"text"}, name

"""What the tests of figures share: the schema of Vega-Lite, and results to draw."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from streammetrics import ExactAUC, HistogramAUC
from streammetrics.core.accumulator import Accumulator

VALID: set[str] = set()  # what has been checked, without its rows


@cache
def _validator() -> Any:
    import jsonschema

    text = files("altair.vegalite.v6.schema").joinpath("vega-lite-schema.json").read_text("utf-8")
    definitions = json.loads(text)["definitions"]
    return jsonschema.Draft7Validator(
        {**definitions["TopLevelLayerSpec"], "definitions": definitions}
    )


def check(spec: Any) -> Any:
    """Fail unless it is strict JSON and a valid layered figure with one data set, `rows`."""
    figure = json.loads(json.dumps(spec, allow_nan=False))
    assert figure == spec
    # The schema tries every kind of mark for every layer: a few rows say as much as all.
    few = {**figure, "data": {**figure["data"], "values": figure["data"]["values"][:3]}}
    without_rows = json.dumps({**figure, "data": None})
    if without_rows not in VALID:
        errors = [error.message for error in _validator().iter_errors(few)]
        assert not errors, errors[:1]
        VALID.add(without_rows)
    assert figure["data"]["name"] == "rows"
    inner = [layer["data"] for layer in figure["layer"] if "data" in layer]
    assert all(data == {"values": [{}]} for data in inner)
    assert figure["description"].endswith(".")
    for layer in figure["layer"]:
        for channel in ("x", "y"):
            axis = layer["encoding"].get(channel, {"datum": 0})
            assert "datum" in axis or "title" in axis  # every axis says what it is of
    return figure


def fed(metric: Accumulator, rows: int, *, seed: int = 1, **more: object) -> Any:
    """The result of a metric of labels and scores after so many rows."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 20, rows)
    labels = (rng.random(rows) < np.sqrt(scores)).astype(int)
    metric.update(labels=labels, scores=scores, **more)
    return metric.compute()


def pair(rows: int, seed: int = 1) -> tuple[Any, Any]:
    """The same rows in coarse buckets and exactly."""
    return fed(HistogramAUC(resolution=2), rows, seed=seed), fed(ExactAUC(), rows, seed=seed)

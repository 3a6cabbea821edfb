"""Metrics of tables in a config: an event has a row, an array of so many numbers."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.small_config import config

EVENT = 'time = "ts"\nlabel = "kind"\nscore = "probs"'
KINDS = 'type = "MulticlassConfusion", n_classes = 3'
AREAS = 'type = "MulticlassAUC", n_classes = 3'
LABELS = 'type = "MultilabelConfusion", n_labels = 3'
GUESS = 'inputs = { predictions = "guess" }'


def read(*metrics: str, slices: str = "by = [[]]") -> Config:
    named = (f"m{i} = {{ {metric} }}" for i, metric in enumerate(metrics))
    return config(event=EVENT, slices=slices, metrics="\n".join(named))


@pytest.mark.parametrize(
    ("metric", "inputs"),
    [
        (KINDS, {"labels": Field("kind", "label"), "predictions": Field("probs", "real_row", 3)}),
        (
            f"{KINDS}, {GUESS}",
            {"labels": Field("kind", "label"), "predictions": Field("guess", "real_or_row", 3)},
        ),
        (
            f"{KINDS}, {GUESS}, top_k = [2, 1]",
            {"labels": Field("kind", "label"), "predictions": Field("guess", "real_row", 3)},
        ),
        (
            AREAS,
            {"labels": Field("kind", "label_or_row", 3), "scores": Field("probs", "real_row", 3)},
        ),
        (
            f'{LABELS}, inputs = {{ scores = "a.b" }}',
            {"labels": Field("kind", "label_row", 3), "scores": Field("a.b", "real_row", 3)},
        ),
    ],
)
def test_an_argument_that_takes_a_table_reads_rows_of_its_width(
    metric: str, inputs: dict[str, Field]
) -> None:
    (found,) = read(metric).metrics
    assert not found.of_lists
    assert found.inputs == inputs


def test_an_exact_state_has_so_many_scores_by_default_and_not_so_many_rows() -> None:
    made = read(f"{AREAS}, exact = true", f"{AREAS}, exact = true, max_rows = 7", AREAS)
    exact, own, near = made.metrics
    assert exact.settings["max_rows"] == 3_333_333
    assert own.settings["max_rows"] == 7
    assert "max_rows" not in near.settings


def test_a_label_may_be_read_as_a_class_by_one_metric_and_as_either_by_another() -> None:
    made = read(KINDS, AREAS, 'type = "Ratio"')
    assert [metric.inputs.get("labels") for metric in made.metrics] == [
        Field("kind", "label"),
        Field("kind", "label_or_row", 3),
        None,
    ]
    read(LABELS, AREAS)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ((KINDS, LABELS), "a field with a list, got 'kind'; .*m0, labels reads it as one value"),
        ((KINDS, 'type = "MulticlassAUC", n_classes = 4'), "an array of 4 values, got 'probs'"),
        ((KINDS, 'type = "HistogramAUC"'), "one value, got 'probs'; .*reads it as a list"),
        ((f"{KINDS}, top_k = [4]",), r"m0\.top_k: expected whole numbers from 1 to 3"),
        ((f"{KINDS}, top_k = 2",), r"m0\.top_k"),
        (('type = "MulticlassAUC"',), "n_classes"),
        ((f"{AREAS}, max_rows = 5",), r"m0\.max_rows: expected none unless exact=True"),
        ((f'{KINDS}, inputs = {{ scores = "probs" }}',), "an argument of MulticlassConfusion"),
        ((KINDS, 'type = "Ratio", inputs = { numerators = "probs.x" }'), "a field of an object"),
    ],
)
def test_what_does_not_fit_together_is_said_before_any_event_is_read(
    metrics: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        read(*metrics)


def test_events_are_not_sliced_by_an_array() -> None:
    with pytest.raises(ConfigError, match="reads it as one value"):
        read(KINDS, slices='by = [["probs"]]')

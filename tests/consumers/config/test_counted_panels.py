"""Metrics that the same metric sets count are one panel; equal metrics are counted once."""

from __future__ import annotations

from streammetrics_consumers.config.config import Config

from tests.consumers.many_experiments import EVENTS, KEYS, parts
from tests.consumers.small_config import METRICS, config


def panels(run_config: Config) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """The metric sets and the metrics of each panel."""
    return [(p.metric_sets, tuple(metric.name for metric in p.metrics)) for p in run_config.panels]


def test_experiments_over_equal_metrics_are_one_panel() -> None:
    run_config = config(**parts("plain", "three", "bounded", "ramped"))
    slices, together = panels(run_config)
    assert slices == ((0,), ("auc", "ctr"))
    assert together == ((1, 2, 3, 4), ("experiment/plain/ctr", "experiment/plain/units"))


def test_a_metric_is_counted_by_the_sets_that_name_it_by_the_same_fields() -> None:
    run_config = config(**parts("plain", "further", "sessions", "rows"))
    names = {tuple(p.metric_sets): set(p.names) for p in run_config.panels}
    metric_names = [f"experiment/{name}/{metric}" for name in KEYS for metric in ("ctr", "units")]
    assert names == {
        (0,): {"auc"},
        (0, 4): {"ctr", "experiment/rows/ctr"},  # without groups of users, as in slices
        (1, 2): {name for name in metric_names if name.split("/")[1] in ("plain", "further")},
        (2,): {"experiment/further/auc"},
        (3,): {"experiment/sessions/ctr"},
        (3, 4): {"experiment/sessions/units", "experiment/rows/units"},
    }


def test_every_metric_of_a_config_is_in_one_panel() -> None:
    for run_config in (config(event=EVENTS), config(**parts()), config(metrics=METRICS)):
        names = [name for panel in run_config.panels for name in panel.names]
        assert sorted(names) == sorted(metric.name for metric in run_config.counted)
        assert len(run_config.panels) <= len(KEYS)


def test_metrics_with_equal_settings_are_counted_once() -> None:
    run_config = config(metrics=METRICS + '\nagain = { type = "Ratio" }\n')
    (panel,) = run_config.panels
    assert dict(panel.names)["again"] == dict(panel.names)["ctr"]

"""`views` of a metric: those that tables and the page show beside its main ones."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.metric_entry import MAX_VIEWS

from tests.consumers.small_config import config, refused


def metrics(views: str) -> str:
    return f'auc = {{ type = "HistogramAUC", cluster = "groups", views = {views} }}'


def test_views_are_shown_and_change_no_fingerprint() -> None:
    views = '["recall_at_budget( 0.05 )", "confusion(0.2).precision", "ks", "ks"]'
    plain, view_config = config(metrics=metrics("[]")), config(metrics=metrics(views))
    assert plain.fingerprints() == view_config.fingerprints()
    shown = [run_config.descriptions["auc"]["shown"] for run_config in (plain, view_config)]
    assert "views" not in str(shown[0])
    assert shown[1]["views"] == ["recall_at_budget(0.05)", "confusion(0.2).precision", "ks"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("views", "where", "message"),
    [
        ('["kss"]', "[0]", "expected a view of ScoreCurve: auc,"),
        ('["ks", "recall_at_budget(2)"]', "[1]", "expected a view with a share from 0 to 1"),
        ('["confusion(0.2)"]', "[0]", "expected a view of"),
        ('["confusion(0.2).rows"]', "[0]", "expected a view of"),
        ("[1]", "[0]", "expected a view of"),
        ('[""]', "[0]", "expected a view of"),
        ('"ks"', "", f"expected a list of at most {MAX_VIEWS} views, got 'ks'"),
        (str(["ks"] * (MAX_VIEWS + 1)), "", f"expected a list of at most {MAX_VIEWS} views"),
    ],
)
def test_what_is_no_view_is_refused(views: str, where: str, message: str) -> None:
    refused(f"[metrics] auc.views{where}", message, metrics=metrics(views))

"""The texts of an experiment: each treatment in a line, the progress, and shared axes."""

from __future__ import annotations

from streammetrics_consumers.query.answers import ProgressAnswer
from streammetrics_consumers.query.rows import WindowFinding
from streammetrics_consumers.render.experiment_text import _axes, arms_of, progress_text

from streammetrics.experiments import Safeguard
from tests.consumers.answer_rows import altered
from tests.consumers.render.corpus import corpus


def row(
    metric: str, verdict: str, *, arm: str = "new", view: str = "", size: float = 0.1
) -> WindowFinding:
    """A comparison; guardrails have verdicts of their own."""
    [first] = corpus()["win"].comparisons
    return altered(
        first,
        metric=metric,
        view=view or first.contrast.view,
        verdict=verdict,
        treatment_variant=arm,
        guardrail=verdict in ("kept", "open", "broken"),
        rel_effect_size=size,
        effect_size=size,
        anytime_lower=0.5 * size,
        anytime_upper=1.5 * size,
        anytime_reason="",
    )


def test_each_treatment_is_one_line_that_names_unresolved_guardrails() -> None:
    rails = [row(f"r{i}", "open") for i in range(7)]
    rows = [
        row("ctr", "better"),
        *rails,
        row("k", "kept"),
        row("ctr", "worse", arm="b", size=-0.0125),
    ]
    new, b = arms_of(rows)
    assert (new.variant, new.tone, new.symbol) == ("new", "neutral", "○")
    assert new.line == (
        "ctr better (+10.0\u00a0%); guardrails unresolved: r0, r1, r2, r3, r4, and 2 more; "
        "1 guardrail kept"
    )
    assert (b.variant, b.tone, b.symbol, b.line) == ("b", "bad", "✕", "ctr worse (-1.25\u00a0%)")
    [summary] = arms_of([row("ctr", "disbelieved"), row("r", "broken")])
    assert (summary.tone, summary.line) == ("bad", "ctr disbelieved; guardrail broken: r")
    assert [arm.tone for arm in arms_of([row("ctr", "better"), row("r", "kept")])] == ["good"]


def test_a_guardrail_that_is_only_watched_is_not_said_to_have_no_harm() -> None:
    watched = [
        altered(row(name, "open"), safeguard=Safeguard(name, 0.1, required=False)) for name in "rs"
    ]
    assert next(arms_of([row("ctr", "better"), watched[0]])).line.endswith(
        "; guardrail not broken: r"
    )
    assert next(arms_of(watched)).line == "guardrails not broken: r, s"


def test_a_metric_with_several_views_has_them_in_its_label() -> None:
    rows = [
        row("auc", "better", view="auc"),
        row("auc", "worse", view="confusion(0.2).precision"),
        row("ctr", "better", view="ratio"),
        row("auc", "broken", view="recall_at_budget(0.05)"),
    ]
    [line] = [arm.line for arm in arms_of(rows)]
    assert line.startswith("auc better") and "auc (confusion(0.2).precision) worse" in line
    assert "; ctr better" in line and line.endswith("broken: auc (recall_at_budget(0.05))")


def test_progress_leaves_out_what_is_not_known() -> None:
    for progress, looks, text in (
        (None, 3, ""),
        (ProgressAnswer(None, None, None, None), 0, "0 looks"),
        (ProgressAnswer(0.01, None, None, 100.0), 2,
         "Planned 100 units; 2 looks"),
    ):  # fmt: skip
        assert progress_text(progress, looks) == text


def test_metrics_share_an_axis_if_their_view_and_their_extents_are_alike() -> None:
    alike = dict(
        _axes([row("a", "better", view="ratio"), row("b", "better", view="ratio", size=0.2)])
    )
    assert alike == {"ratio": ((0.0, "0"), (0.2, "+0.2"))}
    for rows in (
        [row("b", "better", view="auc")],
        [row("b", "better", view="ratio", size=9.0)],
        [],
    ):
        assert not dict(_axes([row("a", "better", view="ratio"), *rows]))

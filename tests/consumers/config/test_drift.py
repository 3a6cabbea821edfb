"""[drift]: comparisons of windows with a reference, and every bad setting of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from streammetrics_consumers.config import drift as module
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.drift import reference_of
from streammetrics_consumers.model.generation import DeclaredDrift

from streammetrics import HistogramAUC, Panel, Ratio, StateError
from tests.consumers.small_config import EVENT, METRICS, config, refused, toml


def drift(text: str, name: str = "moved") -> str:
    return f"[drift.{name}]\n{text}"


def saved(folder: Path, state: HistogramAUC | Panel | Ratio, name: str = "ref.state") -> Path:
    path = folder / name
    path.write_bytes(state.to_file_bytes())
    return path


def loaded(folder: Path, text: str) -> Config:
    path = folder / "config.toml"
    path.write_text(toml(rest=drift(text)), encoding="utf-8")
    return load_config(path)


def test_a_drift_has_the_window_before_as_its_reference_unless_it_names_another() -> None:
    assert config(rest=drift('metric = "auc"')).drifts == (
        DeclaredDrift("moved", "auc", "previous", None, 10),
    )
    text = 'metric = "auc"\nreference = "2024-01-01/2024-01-01T02:00:00Z"\nlabel = 0\nbins = 4'
    hours = 1_704_067_200_000, 1_704_074_400_000
    (declaration,) = config(rest=drift(text)).drifts
    assert declaration == DeclaredDrift("moved", "auc", hours, 0, 4)
    assert DeclaredDrift.from_plain("auc", declaration.plain) == declaration


def test_a_drift_changes_no_fingerprint_and_is_shown_with_its_metric() -> None:
    plain, drift_config = config(), config(rest=drift('metric = "auc"'))
    assert plain.fingerprints() == drift_config.fingerprints()
    shown = [run_config.descriptions["auc"]["shown"] for run_config in (plain, drift_config)]
    assert "drift" not in str(shown[0]) and "moved" in str(shown[1])


def test_a_saved_state_is_relative_to_the_config_and_may_be_one_of_several(tmp_path: Path) -> None:
    state = HistogramAUC()
    state.update([0, 1], [0.25, 0.5])
    path = saved(tmp_path, state)
    (declaration,) = loaded(tmp_path, 'metric = "auc"\nreference = "ref.state"').drifts
    assert (declaration.reference, reference_of(declaration)) == (str(path), state)
    panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()})
    saved(tmp_path, panel, "several")
    (declaration,) = loaded(tmp_path, 'metric = "auc"\nreference = "several"').drifts
    assert reference_of(declaration) == HistogramAUC()


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = saved(tmp_path, HistogramAUC())
    (declaration,) = loaded(tmp_path, 'metric = "auc"\nreference = "ref.state"').drifts
    state = HistogramAUC()
    state.update([0, 1], [0.25, 0.5])
    path.write_bytes(state.to_file_bytes())
    assert reference_of(declaration) == state
    path.unlink()
    with pytest.raises(StateError, match="No such file"):
        reference_of(declaration)


@pytest.mark.parametrize(
    ("where", "message", "text"),
    [
        ("[drift.moved] metric", "the name of a metric of [metrics], got nothing", ""),
        ("[drift.moved] metric", "did you mean `auc`?", 'metric = "aux"'),
        ("[drift.moved] window", "a known key", 'metric = "auc"\nwindow = "x"'),
        ("[drift.moved] (drift(reference))", "a state of Quantiles", 'metric = "ctr"'),
        (
            "[drift.moved] reference",
            "whole windows, 3600 s long",
            'metric = "auc"\nreference = "2024-01-01T00:00:00Z/2024-01-01T00:30:00Z"',
        ),
        (
            "[drift.moved] reference",
            "whole windows, 3600 s long",
            'metric = "auc"\nreference = "2024-01-02/2024-01-01"',
        ),
    ],
)
def test_a_bad_drift_is_refused(where: str, message: str, text: str) -> None:
    refused(where, message, rest=drift(text))


def test_a_label_of_weighted_rows_is_refused() -> None:
    event = f'{EVENT}\nweight = "w"'
    metrics = METRICS.split("\n")[0]
    refused(
        "[drift.moved] label",
        "where rows have weights",
        rest=drift('metric = "auc"\nlabel = 1'),
        event=event,
        metrics=metrics,
    )
    assert config(rest=drift('metric = "auc"'), event=event, metrics=metrics).drifts


def test_a_name_of_a_drift_is_that_of_no_metric_and_has_no_odd_characters() -> None:
    refused("[drift.auc]", "that no metric has", rest=drift('metric = "auc"', "auc"))
    refused("[drift.a b]", "letters, digits", rest=drift('metric = "auc"', '"a b"'))
    refused("[drift.moved]", "a table", rest="[drift]\nmoved = 1")


def test_a_file_that_is_no_state_of_the_metric_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(name: str) -> str:
        text = f'metric = "auc"\nreference = "{tmp_path / name}"'
        with pytest.raises(Exception, match="1 bad setting") as caught:
            config(rest=drift(text), metrics=METRICS)
        return str(caught.value)

    (tmp_path / "text").write_text("no state", encoding="utf-8")
    saved(tmp_path, HistogramAUC(resolution=3), "coarse")
    saved(tmp_path, Panel({"ctr": Ratio()}), "other")
    saved(tmp_path, Ratio(), "ratio")
    os.mkfifo(tmp_path / "pipe")
    for name, message in (
        ("none", "No such file"),
        ("text", "an undamaged state"),
        ("coarse", "resolution=3, as in the reference, got 8"),
        ("other", "a state of auc, got ctr"),
        ("ratio", "a state of Quantiles, ExactQuantiles, HistogramAUC or ExactAUC"),
        ("pipe", "got no file"),
        (".", "got no file"),
    ):
        assert message in problem(name), name
    monkeypatch.setattr(module, "MAX_STATE_BYTES", 100)
    assert "a file of at most 0 MiB, got" in problem("coarse")

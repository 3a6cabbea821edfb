"""`streammetrics eval`: errors of calibration, by mass and by width."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import Calibration

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    scores = 1 / (1 + np.exp(-rng.normal(-4.2, 1, 5000)))
    labels = (rng.random(5000) < scores * 1.3).astype(int)
    path = tmp_path / "clicks.parquet"
    polars.DataFrame({"click": labels, "p": scores}).write_parquet(path)
    return path


def whole(file: Path) -> Calibration:
    rows = polars.read_parquet(file)
    metric = Calibration(grid="relative")
    metric.update(rows["click"], rows["p"])
    return metric


def test_errors_are_by_mass_with_certain_bounds_and_by_width_where_they_say_so(
    file: Path, capsys: Capture
) -> None:
    names = "log_loss,ece,mce,ace,ece_by_mass,mce_by_mass,ece_by_width,mce_by_width"
    words = f"--labels click --scores p --metrics {names} --json".split()
    assert main(["eval", str(file), *words]) == 0
    lines = {line["metric"]: line for line in json.loads(capsys.readouterr().out)}
    result = whole(file).compute()
    views = {"ece": "ece_by_mass", "mce": "mce_by_mass", "ace": "ace"}
    views |= {"ece_by_mass": "ece_by_mass", "mce_by_mass": "mce_by_mass"}
    for name, view in views.items():
        bounded = getattr(result, view)
        ends = lines[name]["exact_low"], lines[name]["exact_high"]
        assert (lines[name]["value"], *ends) == (bounded.value, bounded.low, bounded.high)
    exact = {"log_loss": result.log_loss, "ece_by_width": result.ece, "mce_by_width": result.mce}
    assert {name: lines[name]["value"] for name in exact} == exact
    assert not any("exact_low" in lines[name] for name in exact)


def test_the_table_has_certain_bounds_and_says_what_the_groups_are(
    file: Path, capsys: Capture
) -> None:
    words = ["--labels", "click", "--scores", "p", "--metrics", "brier,ece", "--by", "click"]
    assert main(["eval", str(file), *words]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["click", "metric", "value", "exact", "within", "95", "%", "CI", "over"]
    assert [line.split()[3] for line in lines if " brier " in line] == ["exact", "exact"]
    assert [line.split()[3][0] for line in lines if " ece " in line] == ["[", "["]
    assert any(line.startswith("ece: over 15 groups of equal mass") for line in lines)
    words = ["--labels", "click", "--scores", "p", "--metrics", "brier"]
    assert main(["eval", str(file), *words]) == 0
    assert "exact within" not in capsys.readouterr().out

"""Many classes in a config: from events to results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.small_config import config

TOML = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
label = "kind"
[store]
url = "events.db"
[metrics]
kinds = { type = "MulticlassConfusion", n_classes = 3, inputs = { predictions = "guess" } }
"""
PAIRS = [(0, 0), (0, 1), (1, 1), (2, 2), (2, 2), (2, 0)]
BAD = [(3, 0), (0, -1), (0.5, 0), ("cat", 0), (0, None)]


def test_a_class_and_a_predicted_class_of_each_event_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.toml").write_text(TOML)
    events = (
        {"ts": f"2024-01-01T00:00:{i:02}Z", "kind": truth, "guess": guess}
        for i, (truth, guess) in enumerate([*PAIRS[:3], *BAD, *PAIRS[3:]])
    )
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert main(["run", str(tmp_path / "events.toml"), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    assert main(["results", str(tmp_path / "events.db"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {row["view"]: row["value"] for row in found["results"]}
    assert values["accuracy"] == 4 / 6
    assert values["balanced_accuracy"] == (1 / 2 + 1 + 2 / 3) / 3
    assert values["macro_f1"] == (1 / 2 + 2 / 3 + 4 / 5) / 3
    assert found["quarantined"] == len(BAD)
    assert found["results"][0]["counts"] == {"n_classes": 3, "rows": 6}


@pytest.mark.parametrize(
    ("metric", "where"),
    [
        ('type = "MulticlassConfusion", n_classes = 3', "predictions"),
        ('type = "MulticlassConfusion", n_classes = 1', r"m\.n_classes"),
    ],
)
def test_a_metric_of_classes_needs_their_number_and_what_was_predicted(
    metric: str, where: str
) -> None:
    with pytest.raises(ConfigError, match=where):
        config(
            event='time = "ts"\nlabel = "kind"',
            slices="by = [[]]",
            metrics=f"m = {{ {metric} }}",
        )

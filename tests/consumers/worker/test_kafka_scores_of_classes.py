"""A score for each class through a real broker: the states of the library, and bad events aside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import MulticlassAUC, MulticlassConfusion
from tests.consumers.obd_men import from_kafka
from tests.kafka_broker import Record, create_topic, produce, unique_topic

TOML = """\
[source]
{source}
[event]
time = "ts"
label = "digit"
score = "probs"
[slices]
by = [[]]
[store]
url = "digits.db"
[metrics]
kinds = {{ type = "MulticlassConfusion", n_classes = 10, top_k = [2] }}
areas = {{ type = "MulticlassAUC", n_classes = 10 }}
"""


def test_arrays_of_json_messages_are_counted_from_every_partition(
    kafka: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = np.genfromtxt(data / "digits.csv", delimiter=",", skip_header=1)
    truth, scores = table[:, 1], table[:, 2:12]
    topic = create_topic(kafka, 2, configs={"retention.ms": "-1"})
    records = [
        Record(
            json.dumps({"ts": "2026-01-01T00:00:00Z", "digit": int(y), "probs": p}).encode(),
            i % 2,
            timestamp_ms=1_767_225_600_000,
        )
        for i, (y, p) in enumerate(zip(truth.tolist(), [*scores.tolist()], strict=True))
    ]
    short = {"ts": "2026-01-01T00:00:00Z", "digit": 1, "probs": [0.5, 0.5]}
    bad = Record(json.dumps(short).encode(), 1, timestamp_ms=1_767_225_600_000)
    produce(kafka, topic, [*records[:1000], bad, *records[1000:]])
    source = from_kafka(kafka, topic, unique_topic("group"))
    (tmp_path / "run.toml").write_text(TOML.format(source=source))
    assert main(["run", str(tmp_path / "run.toml"), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    assert main(["results", str(tmp_path / "digits.db"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["rows_read"], document["quarantined"]) == (len(records) + 1, 1)
    kinds, areas = MulticlassConfusion(10, top_k=(2,)), MulticlassAUC(10)
    kinds.update(truth, scores)
    areas.update(truth, scores)
    digests = {row["metric"]: row["digest"] for row in document["results"]}
    assert digests == {"kinds": kinds.digest(), "areas": areas.digest()}

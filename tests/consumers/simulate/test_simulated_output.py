"""Where a simulated stream goes, and messages that carry many of its events."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli.demo_configs import JOINED_CONFIG
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation, is_outcome
from streammetrics_consumers.simulate.output import MESSAGES, packed, write
from streammetrics_consumers.simulate.stream import Format, Simulation
from streammetrics_consumers.sources.open_source import open_source

from tests.consumers.messages import counted, in_chunks, of_format
from tests.consumers.small_config import SLICES
from tests.kafka_broker import create_topic

CONFIG = """\
[source]
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{topic}"
[event]
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
label = "label"
[metrics]
ctr = {{ type = "Ratio" }}
[store]
url = "store.db"
"""


def test_a_rate_is_kept_by_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    waits: list[float] = []

    def sleep(wait_s: float) -> None:
        waits.append(wait_s)
        seconds[0] += wait_s

    monkeypatch.setattr("streammetrics_consumers.simulate.output.time.sleep", sleep)
    reports: list[Progress] = []
    write(Simulation(100, 1), str(tmp_path / "x"), 50.0, reports.append, lambda: seconds[0])
    assert len((tmp_path / "x").read_bytes().splitlines()) == 100
    assert seconds[0] == 2.0
    assert max(waits) <= 0.1 + 1e-9
    assert (reports[-1].rows, reports[-1].remaining) == (100, 0)
    for rate in (1e-300, 5e-324):  # longer pauses than a clock has
        waits.clear()
        write(Simulation(2, 1), str(tmp_path / "x"), rate, reports.append, lambda: seconds[0])
        assert waits == [1e9, 1e9]


def test_a_stream_fills_the_partitions_of_a_topic_in_turn_and_is_counted(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = create_topic(kafka, 3)
    assert main(["simulate", "--events", "3000", "-o", f"kafka://{kafka}/{topic}"]) == 0
    config = tmp_path / "kafka.toml"
    config.write_text(CONFIG.format(bootstrap=kafka, topic=topic), encoding="utf-8")
    with closing(open_source(load_config(config), Options(partitions=(0, 1, 2)))) as source:
        assert list(source.ends().values()) == [1000, 1000, 1000]
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    capsys.readouterr()
    assert main(["results", str(tmp_path / "store.db"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows_read"] == 3000
    assert answer["offsets"] == {f"{topic}/{number}": 1000 for number in range(3)}


def test_a_topic_and_a_broker_that_are_not_there_are_said(
    kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--events", "1", "-o", f"kafka://{kafka}/nothing-here"]) == 1
    assert "create the topic first" in capsys.readouterr().err
    assert main(["simulate", "--events", "1", "-o", "kafka://127.0.0.1:1/x"]) == 75
    assert "no broker answers: 127.0.0.1:1" in capsys.readouterr().err


def test_impressions_and_outcomes_on_two_topics_are_what_they_are_in_one_file(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = [create_topic(kafka, 2), create_topic(kafka, 3)]
    to = f"kafka://{kafka}/{','.join(topics)}"
    assert main(["simulate", "--join", "--items", "10", "--events", "6000", "-o", to]) == 0
    file = str(tmp_path / "events.jsonl")
    assert main(["simulate", "--join", "--items", "10", "--events", "6000", "-o", file]) == 0
    source = (
        f'kind = "kafka"\nbootstrap_servers = "{kafka}"\ntopic = {json.dumps(topics)}\n'
        f'group = "{topics[0]}"\n'
    )
    in_one = JOINED_CONFIG.replace("size_s = 21600", "size_s = 21600\nlateness_s = 7200")
    on_two = in_one.replace('kind = "file"\npath = "events.jsonl"\n', source)
    answers = []
    for name, text in (("one", in_one), ("two", on_two)):
        config = tmp_path / f"{name}.toml"
        config.write_text(text.replace("demo.db", f"{name}.db"), encoding="utf-8")
        assert main(["run", str(config), "--until-end", "--close", "--no-serve"]) == 0
        capsys.readouterr()
        assert main(["results", str(tmp_path / f"{name}.db"), "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    single, joined = answers
    assert joined["results"] == single["results"] and len(single["results"]) > 10
    assert joined["join"] == {**single["join"], "closed_ms": joined["join"]["closed_ms"]}
    assert single["join"]["pending"] == 0 and single["join"]["repeated"] > 0


EVENT = """
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "label"
score = "score"
"""


def sent(format: Format, size: int, events: int = 10_000) -> list[bytes]:
    messages: list[bytes] = []
    stream = Simulation(events, 3, format)
    with packed(messages.extend, format, size) as sink:
        for batch in stream.batches():
            sink(batch)
    return messages


@pytest.mark.parametrize("format", MESSAGES)
def test_messages_carry_the_stream_and_its_faults(format: Format) -> None:
    values = sent(format, 1000)
    settings = of_format(format, event=EVENT, slices=SLICES.replace("phase", "segment"))
    delta = counted(settings, in_chunks(values, []))
    assert len(values) == 10
    assert delta.counters.rows == 10_000
    assert 3 <= delta.counters.quarantined <= 20
    assert {entry.reason for entry in delta.quarantine} <= {
        "not_json", "two_documents", "invalid_utf8", "not_an_object", "metric", "not_a_number",
        "wrong_type", "missing_field", "unknown_variant", "bad_time",
    }  # fmt: skip


def test_the_last_message_has_the_rest_and_one_event_a_message_is_sent_as_it_is() -> None:
    for format, sizes in (("ndjson", [3, 3, 3, 1]), ("jsonl", [0] * 10)):
        messages: list[bytes] = []
        with packed(messages.extend, format, 3) as sink:
            sink([b"{}"] * 10)
        assert [value.count(b"\n") for value in messages] == sizes


def test_of_two_topics_the_second_has_the_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, list[bytes]] = {}

    class Producing:
        def __init__(self, servers: str, topic: str) -> None:
            self._name = f"{servers}/{topic}"

        def __enter__(self) -> Any:
            return sent.setdefault(self._name, []).extend

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("streammetrics_consumers.sources.kafka.kafka_client.producing", Producing)
    stream = JoinedSimulation(Simulation(20_000))
    whole = [line for batch in stream.batches() for line in batch]
    write(stream, "kafka://host:1/shown,clicks", None, lambda _: None, lambda: 0.0)
    assert sorted(sent) == ["host:1/clicks", "host:1/shown"]
    assert sent["host:1/clicks"] == [line for line in whole if is_outcome(line)]
    assert sent["host:1/shown"] == [line for line in whole if not is_outcome(line)]

import pyarrow.ipc
import pytest
from streammetrics_consumers.simulate.output import MESSAGES, packed
from streammetrics_consumers.simulate.stream import Format, Simulation

from tests.consumers.messages import counted, in_chunks, of_format
from tests.consumers.small_config import SLICES

EVENT = """
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "label"
score = "score"
"""


def sent(format: Format, size: int, events: int = 10_000) -> list[bytes]:
    found: list[bytes] = []
    stream = Simulation(events, 3, format)
    with packed(found.extend, format, size) as sink:
        for batch in stream.batches():
            sink(batch)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("format", MESSAGES)
def test_messages_carry_the_stream_and_its_faults(format: Format) -> None:
    values = sent(format, 1000)
    made = of_format(format, event=EVENT, slices=SLICES.replace("phase", "segment"))
    delta = counted(made, in_chunks(values, []))
    assert len(values) == 10
    assert delta.counters.rows == 10_000
    assert 3 <= delta.counters.quarantined <= 20
    assert {entry.reason for entry in delta.quarantine} <= {
        "not_json", "two_documents", "invalid_utf8", "not_an_object", "metric", "not_a_number",
        "wrong_type", "missing_field", "unknown_variant", "bad_time",
    }  # fmt: skip


@pytest.mark.slow
def test_the_last_message_has_the_rest() -> None:
    values = sent("ndjson", 3000)
    assert [value.count(b"\n") for value in values] == [3000, 3000, 3000, 1000]
    assert sent("arrow", 3000) == sent("arrow", 3000)
    assert pyarrow.ipc.open_stream(sent("arrow", 3000)[-1]).read_all().num_rows == 1000


def test_one_event_a_message_is_sent_as_it_is() -> None:
    assert len(sent("jsonl", 1000, 10)) == 10

"""Decoding JSON events into columns, with and without bad ones among them.

The events are those of `streammetrics simulate`, the config that of `bench_consumer`: a time, a
variant, a slice, a label, a score and an id are read of nine fields. The anchor is msgspec's own
decoding of the same bytes into objects with these fields, in the same run. Bad events are cut off.
They should cost no good ones, so a chunk is compared with its good and its bad events, each
measured alone. `python -m benchmarks.bench_decoding`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.simulate.stream import Simulation
from streammetrics_consumers.sources.files.text_file import TextRecords, text_chunk

from benchmarks.answer import Answer, answer, run_question
from benchmarks.bench_consumer import CONFIG
from benchmarks.harness import in_turns, timing

EVENTS: Final = 8192  # in a chunk, as a file source gives them
CHUNKS: Final = 4
ROUNDS: Final = 9
LOG: Final = Partition("bench", "events.jsonl", "id", 0)
BAD: Final = {
    "none bad": 0,
    "one bad in a chunk": 1,
    "1 % bad": 82,
    "50 % bad": 4096,
    "all bad": EVENTS,
}


class Event(msgspec.Struct, frozen=True, gc=False):
    """The fields that the config reads."""

    ts: str
    variant: str | int
    label: int | float | bool
    score: int | float
    user: str | int
    segment: str | int | float | bool | None = None


def good_events() -> list[bytes]:
    """Events that no one refuses."""
    lines = (line for batch in Simulation(2 * CHUNKS * EVENTS).batches() for line in batch)
    events = [line for line in lines if is_good(line)]
    return events[: CHUNKS * EVENTS]


def is_good(line: bytes) -> bool:
    """Whether the decoder takes this line of the simulated stream."""
    try:
        event = json.loads(line)
        return (
            event["variant"] in ("control", "treatment")
            and event["ts"][-1] == "Z"
            and 0 <= event["score"] <= 1
        )
    except (ValueError, TypeError, KeyError):
        return False


def chunks(lines: Sequence[bytes]) -> list[Chunk]:
    """The lines as chunks of a file."""
    records = TextRecords("jsonl", max(map(len, lines)), "events")
    events = records.feed(b"".join(line + b"\n" for line in lines))
    starts = range(0, len(lines), EVENTS)
    return [text_chunk(LOG, start, events[start : start + EVENTS], records) for start in starts]


def with_bad(lines: Sequence[bytes], count: int) -> list[bytes]:
    """The lines, with `count` of each chunk cut off, evenly spread."""
    events = list(lines)
    for start in range(0, len(lines), EVENTS):
        for i in range(count):
            index = start + i * EVENTS // count
            events[index] = events[index][:70]
    return events


def demo() -> Config:
    """The config of the demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.toml"
        path.write_text(CONFIG)
        return load_config(path, {})


def ask(quick: bool) -> Answer:
    config, lines = demo(), good_events()
    decoder, read = Decoder(config), msgspec.json.Decoder(Event).decode

    def decoding(count: int) -> Callable[[], None]:
        chunk_list = chunks(with_bad(lines, count))

        def job() -> None:
            for chunk in chunk_list:
                decoder.decode(chunk)

        return job

    def anchor() -> None:
        for start in range(0, len(lines), EVENTS):
            list(map(read, lines[start : start + EVENTS]))

    jobs = {name: decoding(count) for name, count in BAD.items()}
    turns = in_turns({"msgspec": anchor} | jobs, len(lines), 3 if quick else ROUNDS)
    spent = {turn.name: turn for turn in turns}
    report = answer(
        "decoding",
        "JSON events into columns",
        rows=len(lines),
        arrays=[np.frombuffer(b"".join(lines), np.uint8)],
        unit="event",
    )
    good, bad = spent["none bad"], spent["all bad"]
    for name, count in BAD.items():
        report.add(spent[name])
        if 0 < count < EVENTS:
            share = count / EVENTS
            mean_ns = (1 - share) * good.median + share * bad.median
            report.add(timing(f"{name}, its events each alone", [mean_ns]))
    report.add(replace(spent["msgspec"], peer="msgspec"))
    report.notes.append(
        f"Chunks of {EVENTS:,} events. msgspec decodes the same bytes into objects with the same "
        "fields; it checks and converts nothing. Bad events are cut off, evenly spread. The reader "
        "of files has measured the longest line; for messages of Kafka the decoder does, which is "
        "some 7 % of msgspec's time more."
    )
    return report


if __name__ == "__main__":
    run_question(ask)

"""Decoding JSON events into columns, with and without bad ones among them.

The events are those of `streammetrics simulate`, the config that of `bench_consumer`: a time, a
variant, a slice, a label, a score and an id are read of nine fields. The anchor is msgspec's own
decoding of the same bytes into objects with these fields, in the same run; the target for good
events is TARGET times that. Bad events are cut off. They should cost no good ones: the last column
compares a chunk with its good and its bad events, each measured alone.
`python -m benchmarks.bench_decoding`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.simulate.stream import Simulation
from streammetrics_consumers.sources.files.text_file import Records, text_chunk

from benchmarks.bench_consumer import CONFIG

EVENTS: Final = 8192  # in a chunk, as a file source gives them
CHUNKS: Final = 4
ROUNDS: Final = 15
TARGET: Final = 2.1
LOG: Final = Partition("bench", "events.jsonl", "id", 0)
BAD: Final = {"none bad": 0, "one bad in a chunk": 1, "1 % bad": 82, "50 % bad": 4096}


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
    found = [line for line in lines if is_good(line)]
    return found[: CHUNKS * EVENTS]


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
    records = Records("jsonl", max(map(len, lines)), "events")
    found = records.feed(b"".join(line + b"\n" for line in lines))
    starts = range(0, len(lines), EVENTS)
    return [text_chunk(LOG, start, found[start : start + EVENTS], records) for start in starts]


def with_bad(lines: Sequence[bytes], count: int) -> list[bytes]:
    """The lines, with `count` of each chunk cut off, evenly spread."""
    found = list(lines)
    for start in range(0, len(lines), EVENTS):
        for i in range(count):
            at = start + i * EVENTS // count
            found[at] = found[at][:70]
    return found


def fastest(jobs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least CPU time of each job in nanoseconds an event; the jobs take turns."""
    spent: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            started = time.process_time_ns()
            job()
            now = (time.process_time_ns() - started) / (CHUNKS * EVENTS)
            spent[name] = min(spent.get(name, now), now)
    return spent


def demo() -> Config:
    """The config of the demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.toml"
        path.write_text(CONFIG)
        return load_config(path, {})


def main() -> None:
    """Print the table."""
    config, lines = demo(), good_events()
    decoder, read = Decoder(config), msgspec.json.Decoder(Event).decode

    def decoding(count: int) -> Callable[[], None]:
        made = chunks(with_bad(lines, count))

        def job() -> None:
            for one in made:
                decoder.decode(one)

        return job

    def anchor() -> None:
        for start in range(0, len(lines), EVENTS):
            list(map(read, lines[start : start + EVENTS]))

    jobs: dict[str, Callable[[], object]] = {"msgspec": anchor, "all bad": decoding(EVENTS)}
    spent = fastest(jobs | {name: decoding(count) for name, count in BAD.items()})
    print(f"{'ns of CPU an event':<22}{'':>9}{'× msgspec':>11}{'× alone':>9}")
    for name, each in spent.items():
        line = f"{name:<22}{each:>9.0f}{each / spent['msgspec']:>11.2f}"
        if name in BAD:
            share = BAD[name] / EVENTS
            alone = (1 - share) * spent["none bad"] + share * spent["all bad"]
            line += f"{each / alone:>9.2f}"
        print(line)
    met = spent["none bad"] <= TARGET * spent["msgspec"]
    print(f"\ntarget: none bad at most {TARGET} × msgspec{'' if met else ' ✗'}")


if __name__ == "__main__":
    main()

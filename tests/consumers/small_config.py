"""A small config for tests, made from a TOML text with parts replaced, chunks for it, and events:
good ones, and those that must be refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.events import Reason
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition

SOURCE = 'kind = "file"\npath = "events.jsonl"'
EVENT = """
time = "ts"
variant = "variant"
variants = ["a", "b"]
user = "user"
label = "label"
score = "score"
"""
WINDOWS = "size_s = 3600\nlateness_s = 60\nmax_ahead_s = 100\nretention_s = 86400"
SLICES = 'by = [[], ["variant"], ["variant", "phase"]]'
METRICS = 'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }'

LOG = Partition("test", "events", "id", 0)


def head(
    path: str,
    variants: str = '["old", "new"]',
    fields: str = "",
    size_s: int = 3600,
    slices: str = '[["variant"]]',
) -> str:
    """The tables of a config that counts users' events in a file into `store.db` beside it: all but
    its metrics and its experiment. fields: further lines of [event]."""
    return f"""\
[source]
kind = "file"
path = "{path}"
[event]
time = "ts"
variant = "variant"
variants = {variants}
user = "user"
{fields}
[windows]
size_s = {size_s}
[slices]
by = {slices}
[store]
url = "store.db"
[server]
port = 0
"""


def toml(
    source: str = SOURCE,
    event: str = EVENT,
    windows: str = WINDOWS,
    slices: str = SLICES,
    metrics: str = METRICS,
    rest: str = "",
) -> str:
    """The text of a config."""
    if ("[join]" in rest or "[exposures]" in rest) and windows == WINDOWS:
        windows = windows.replace("max_ahead_s = 100", "max_ahead_s = 60")
    return (
        f"[source]\n{source}\n[event]\n{event}\n[windows]\n{windows}\n[slices]\n{slices}\n"
        f"[metrics]\n{metrics}\n{rest}\n"
    )


def config(text: str | None = None, **parts: str) -> Config:
    """The config of a text, or of the small one with these tables replaced."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_text(toml(**parts) if text is None else text, encoding="utf-8")
        return load_config(path)


def problems(**parts: str) -> dict[str, str]:
    """What is wrong with the small config with these tables replaced, by where."""
    with pytest.raises(ConfigError) as caught:
        config(**parts)
    return {problem.where: str(problem) for problem in caught.value.problems}


def refused(where: str, message: str, **parts: str) -> None:
    """Assert that the small config with these tables replaced is refused there, in these words."""
    messages = problems(**parts)
    assert message in messages.get(where, ""), (
        f"{parts}: {where} is not refused with {message!r}: {messages}"
    )


def chunk(
    values: Sequence[bytes | None],
    start: int = 0,
    timestamps_ms: Sequence[int | None] | None = None,
    fields: tuple[str, ...] | None = None,
) -> Chunk:
    """Records of the log from an offset on."""
    end = start + len(values)
    return Chunk(LOG, start, end, range(start, end), list(values), timestamps_ms, fields=fields)


def event(
    ts: str = "2024-01-01T00:00:00Z",
    variant: str = "a",
    label: object = 0,
    score: object = 0.25,
    user: str = "u1",
    phase: str = "fit",
) -> bytes:
    """A good event, unless the caller says otherwise."""
    text = (
        f'{{"ts":"{ts}","variant":"{variant}","user":"{user}","label":{label},'
        f'"score":{score},"phase":"{phase}"}}'
    )
    return text.encode()


# Each is refused for a reason of its own. None of them may cost a neighbour anything.
GOOD: Final = event()
POISON: Final[Mapping[str, tuple[bytes, Reason]]] = MappingProxyType(
    {
        "cut off": (GOOD[:-1], "not_json"),
        "a text without an end": (b'{"broken', "not_json"),
        "a bracket without an end": (b"[", "not_json"),
        "a letter too few": (GOOD.replace(b'"fit"', b"fit"), "not_json"),
        "a zero byte": (b"\0", "not_json"),
        "empty": (b"", "empty"),
        "null": (b"null", "not_an_object"),
        "a number": (b"17", "not_an_object"),
        "an array": (b"[1]", "not_an_object"),
        "a null for a number": (event(score="null"), "missing_field"),
        "a field too few": (GOOD.replace(b'"label":0,', b""), "missing_field"),
        "a text for a number": (event(label='"0"'), "wrong_type"),
        "an object for a number": (event(score='{"x":1}'), "wrong_type"),
        "NaN": (event(score="NaN"), "not_a_number"),
        "Infinity": (event(score="Infinity"), "not_a_number"),
        "-Infinity": (event(score="-Infinity"), "not_a_number"),
        "a huge exponent": (event(score="1e999"), "out_of_range"),
        "an integer of 5000 digits": (event(label="1" + "0" * 5000), "out_of_range"),
        "a label that is not 0 or 1": (event(label=2), "metric"),
        "a time that is none": (event(ts="yesterday"), "bad_time"),
        "an unknown variant": (event(variant="z"), "unknown_variant"),
        "invalid UTF-8": (event(phase="\xff").decode().encode("latin-1"), "invalid_utf8"),
        "half of a character": (event(phase="\\ud800"), "not_json"),
        "a newline inside": (GOOD[:20] + b"\n" + GOOD[20:], "not_json"),
        "two documents": (GOOD + GOOD, "two_documents"),
        "deep arrays": (GOOD[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}", "too_deep"),
        "deep objects": (b'{"a":' * 300 + b"1" + b"}" * 300, "too_deep"),
        "100,000 brackets": (b"[" * 100_000, "too_deep"),
        "1 MB": (event(phase="x" * 1_000_000), "too_large"),
    }
)
# These take what follows them in a text with them: in an array they spoil the whole message.
OPEN: Final = ("cut off", "a text without an end", "a bracket without an end", "100,000 brackets")

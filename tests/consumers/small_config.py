"""A small config for tests, made from a TOML text with parts replaced, and chunks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.section import ConfigError
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


def toml(
    source: str = SOURCE,
    event: str = EVENT,
    windows: str = WINDOWS,
    slices: str = SLICES,
    metrics: str = METRICS,
    rest: str = "",
) -> str:
    """The text of a config."""
    if "[join]" in rest and windows == WINDOWS:
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


def refused(where: str, said: str, **parts: str) -> None:
    """Assert that the small config with these tables replaced is refused there, in these words."""
    found = problems(**parts)
    assert said in found.get(where, ""), f"{parts}: {where} is not refused with {said!r}: {found}"


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

"""`run --close`: what it goes with."""

from __future__ import annotations

from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from tests.consumers.joined_stream import JOIN
from tests.consumers.small_config import toml

PLAIN = toml()
JOINED = toml(event='time = "ts"\ntime_unit = "ms"\nscore = "score"', slices="by = [[]]", rest=JOIN)


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        (JOINED, ["--close"], "--close: expected with --until-end"),
        (PLAIN, ["--close", "--until-end"], "--close: expected a config with [join]"),
    ],
)
def test_close_needs_an_end_and_something_that_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, flags: list[str], said: str
) -> None:
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    (tmp_path / "events.jsonl").write_bytes(b"")
    assert main(["run", str(tmp_path / "run.toml"), "--no-serve", *flags]) != 0
    assert said in capsys.readouterr().err


def test_a_dry_run_with_close_prints_what_all_impressions_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.toml").write_text(JOINED, encoding="utf-8")
    lines = (
        b'{"kind": "shown", "id": "x", "ts": 1700000000000, "score": 0.5}\n'
        b'{"kind": "shown", "id": "y", "ts": 1700000000000, "score": 0.25}\n'
        b'{"kind": "click", "id": "x", "ts": 1700000001000}\n'
    )
    (tmp_path / "events.jsonl").write_bytes(lines)
    assert main(["run", str(tmp_path / "run.toml"), "--dry-run", "--close"]) == 0
    assert "0.5" in capsys.readouterr().out

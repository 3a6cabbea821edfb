"""Refused events: place, reason and payload, for people and for programs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from tests.consumers.stores import EVENTS, make_store

Capture = pytest.CaptureFixture[str]
LONG = b'{"variant": "' + b"x" * 10_000 + b'"}'


def test_each_refused_event_has_its_place_reason_and_payload(store: Path, capsys: Capture) -> None:
    assert main(["quarantine", str(store)]) == 0
    sha = hashlib.sha256(b"not json \x1b[2J\xff").hexdigest()
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "2 in quarantine: 1 invalid_utf8, 1 metric"
    assert out.startswith(
        "clicks.jsonl/0 offset 4: invalid_utf8\n"
        "  the record is not UTF-8\n"
        "  not json \\x1b[2J\\xff\n"
        f"  14 bytes, sha256 {sha}\n"
    )


def test_a_long_payload_is_cut_with_its_size_and_hash(tmp_path: Path, capsys: Capture) -> None:
    store = make_store(tmp_path, [LONG])
    capsys.readouterr()
    assert main(["quarantine", str(store)]) == 0
    out = capsys.readouterr().out
    assert f"  10,015 bytes, sha256 {hashlib.sha256(LONG).hexdigest()}\n" in out
    assert max(map(len, out.splitlines())) < 300
    assert main(["quarantine", str(store), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["cut"], entry["size"]) == (True, len(LONG))
    assert len(entry["payload"]) < entry["size"]


def test_an_export_has_one_event_a_line_and_all_pages(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert main(["quarantine", "export", str(store)]) == 0
    out = capsys.readouterr().out
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [4, 9]
    monkeypatch.setattr("streammetrics_consumers.render.quarantine.PAGE", 1)
    assert main(["quarantine", "export", str(store), "-o", str(tmp_path / "bad.jsonl")]) == 0
    assert (tmp_path / "bad.jsonl").read_text(encoding="utf-8") == out


def test_an_empty_quarantine_says_so(tmp_path: Path, capsys: Capture) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    capsys.readouterr()
    assert main(["quarantine", str(store)]) == 0
    assert capsys.readouterr().out == "nothing is in quarantine\n"

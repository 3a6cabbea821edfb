"""Logs: one line each, on stderr."""

from __future__ import annotations

import io
import json
import logging
import re
import sys

import pytest
from streammetrics_consumers.cli import logs

Capture = pytest.CaptureFixture[str]


def test_a_line_has_its_time_and_no_control_characters(capsys: Capture) -> None:
    logs.to_stderr("text")
    logging.getLogger("streammetrics_consumers.x").info("partition \x1b[31m\nforged line")
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z partition \\x1b\[31m\\nforged line\n", err)


def test_a_warning_says_so(capsys: Capture) -> None:
    logs.to_stderr("text")
    logging.getLogger("streammetrics_consumers.x").warning("slow")
    assert capsys.readouterr().err.endswith("Z warning: slow\n")


def test_json_is_one_object_a_line_with_the_error(capsys: Capture) -> None:
    logs.to_stderr("json")
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("streammetrics_consumers.x").exception("it failed")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == (
        "error",
        "streammetrics_consumers.x",
        "it failed",
    )
    assert line["error"].endswith("ValueError: bad")


def test_what_others_say_below_a_warning_is_not_for_users(capsys: Capture) -> None:
    logs.to_stderr("text")
    logging.getLogger("kafka.conn").info("connected")
    assert capsys.readouterr().err == ""


def test_a_signal_in_the_middle_of_a_line_loses_neither(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Busy(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    logs.to_stderr("text")
    monkeypatch.setattr(sys, "stderr", Busy())
    logging.getLogger("streammetrics_consumers.x").info("SIGTERM: committing, then ending")
    assert capfd.readouterr().err.endswith("Z SIGTERM: committing, then ending\n")


def test_what_a_library_says_over_and_over_is_written_now_and_then(capsys: Capture) -> None:
    logs.to_stderr("text")
    for port in range(5):
        logging.getLogger("kafka.net").error("no broker at port %d", port)
        logging.getLogger("streammetrics_consumers.x").error("ours")
    err = capsys.readouterr().err
    assert (err.count("no broker"), err.count("ours")) == (1, 5)

"""The command `hooks`: what was sent and would be sent, and events that are held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.process.hook_request import headers_of
from streammetrics_consumers.server.openapi import openapi_json
from streammetrics_consumers.server.process import serving

from tests.consumers.experiment_run import run
from tests.consumers.hook_run import NOWHERE, SECRET, Receiver, config, hook, receiving, rows_of
from tests.patience import until
from tests.requirements import ROOT

PAGE = ROOT / "docs" / "circuit_breaker.md"


def validate(event: object, name: str = "HookContent") -> None:
    """Fails unless an event is as /openapi.json says."""
    api = json.loads(openapi_json())
    schema = {**api["components"]["schemas"][name], "components": api["components"]}
    jsonschema.validate(event, schema, cls=jsonschema.Draft202012Validator)


def test_it_lists_each_event_with_its_state_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiving(Receiver(answers=[204, 503])) as receiver:
        store = run(config(tmp_path, hook(receiver.url, retry_s=600)))
    capsys.readouterr()
    assert main(["hooks", str(store)]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split("  ")[1] for line in lines[::2]] == [
        "recommendation: old", "guardrail_broken: rail, old", "worse: ctr, old",
    ]  # fmt: skip
    assert lines[1::2] == [
        "  sent: flags (127.0.0.1), 1 attempt, HTTP 204",
        "  waiting: flags (127.0.0.1), 1 attempt, HTTP 503",
        "  sent: flags (127.0.0.1), 1 attempt, HTTP 204",
    ]
    assert main(["status", str(store)]) == 0
    assert "hook flags: 1 waiting, 2 sent" in capsys.readouterr().out
    assert main(["status", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hooks"] == {"flags": {"sent": 2, "waiting": 1}}
    assert main(["hooks", str(store), "--json"]) == 0
    printed = capsys.readouterr().out
    with serving(str(store), ServerConfig(port=0)) as url:
        for path in ("api/hooks", "api/hooks?experiment="):
            assert urllib.request.urlopen(f"{url}{path}").read().decode() == printed
        experiment = json.loads(urllib.request.urlopen(f"{url}api/experiment").read())
        metrics = urllib.request.urlopen(f"{url}metrics").read().decode()
    assert experiment["hooks"] == json.loads(printed)["hooks"]
    validate(json.loads(printed), "Hooks")
    assert 'streammetrics_hooks{hook="flags",state="sent"} 2.0' in metrics
    assert 'streammetrics_hook_waiting_seconds{hook="flags"} ' in metrics


def test_a_store_without_hooks_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = run(config(tmp_path, ""))
    capsys.readouterr()
    assert main(["hooks", str(store)]) == 0
    assert "no event of a hook yet" in capsys.readouterr().out
    assert not (tmp_path / "hooks-of-store.db.jsonl").exists()


def test_a_dry_run_prints_what_a_look_would_send_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = run(config(tmp_path, ""))
    path = config(tmp_path, hook(NOWHERE))
    before = store.read_bytes()
    capsys.readouterr()
    assert main(["hooks", str(store), "--config", str(path), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[::3] == [
        f"hook flags to 127.0.0.1: {event}"
        for event in ("worse", "guardrail_broken", "recommendation")
    ]
    for line in lines[1::3]:
        validate(json.loads(line))
    assert (store.read_bytes(), rows_of(store)) == (before, [])
    run(path)
    sent = {row.message.subject for row in rows_of(store)}
    assert sent == set()  # no event came since the last look
    assert "of-the-address" not in "".join(lines)


@pytest.mark.parametrize(
    "words",
    [
        ["send", "x"],
        ["list", "x", "y"],
        ["x", "--dry-run"],
        ["x", "--config", "c"],
        ["drop", "x", "--config", "c", "--dry-run"],
    ],
)
def test_what_is_no_command_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hooks", *words]) == 2
    assert "hooks: expected " in capsys.readouterr().err


@pytest.mark.parametrize(("action", "state"), [("release", "sent"), ("drop", "dropped")])
def test_events_that_are_held_are_released_or_dropped(
    tmp_path: Path, action: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, hook(NOWHERE))
    store = run(path)
    (tmp_path / "hooks-of-store.db.jsonl").unlink()
    with receiving() as receiver:
        path = config(tmp_path, hook(receiver.url))
        run(path)
        assert {row.state for row in rows_of(store)} == {"held"}
        capsys.readouterr()
        assert main(["hooks", action, str(store)]) == 0
        verb = "will be sent" if action == "release" else "will not be sent"
        assert f"3 events {verb}; from now on" in capsys.readouterr().out
        run(path)
    assert {row.state for row in rows_of(store)} == {state}
    assert len(receiver.received) == (3 if action == "release" else 0)


def test_the_event_of_the_page_is_as_the_schema_says() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("```json\n")[2].partition("```")[0]
    validate(json.loads(text))


def test_each_event_that_is_sent_is_as_the_schema_says(tmp_path: Path) -> None:
    with receiving() as receiver:
        run(config(tmp_path, hook(receiver.url)))
    for request in receiver.received:
        validate(request.event)
    assert len(receiver.received) == 3


def test_the_receiver_of_the_examples_turns_the_arm_off_once_and_refuses_others(
    tmp_path: Path,
) -> None:
    flags = tmp_path / "flags"
    flags.mkdir()
    log = tmp_path / "receiver.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "examples" / "hook_receiver.py", str(flags), "0"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "STREAMMETRICS_SECRET": SECRET.decode()},
        )
        try:
            until(lambda: log.read_text().startswith("http"), log.read_text)
            url = log.read_text().split()[0]
            store = run(config(tmp_path, hook(url)))
            assert {row.state for row in rows_of(store)} == {"sent"}
            assert (
                "old is worse" in (flags / ".old.off").read_text()
                or "breaks the guardrail" in (flags / ".old.off").read_text()
            )
            (flags / ".old.off").unlink()
            row = next(row for row in rows_of(store) if row.message.subject.event == "worse")
            body, key, now_s = row.message.body, row.message.key, int(time.time())
            assert sent(url, headers_of(SECRET, now_s, key, "worse", body), body) == 204
            assert not (flags / ".old.off").exists()  # it was there already
            for secret, at_s, altered in (
                (b"another secret...", now_s, body),
                (SECRET, now_s - 1000, body),
            ):
                assert sent(url, headers_of(secret, at_s, key, "worse", altered), altered) == 401
            assert sent(url, headers_of(SECRET, now_s, key, "worse", body), body + b" ") == 401
            assert sent(url, {}, body) == 401
        finally:
            process.kill()
            process.wait()


def sent(url: str, headers: object, body: bytes) -> int:
    """The status of the answer to a request."""
    request = urllib.request.Request(url, body, dict(headers))  # type: ignore[call-overload]
    try:
        return int(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code

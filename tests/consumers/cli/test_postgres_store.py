"""The command line over PostgreSQL answers what it answers over SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from streammetrics_consumers.cli.main import main

from tests.consumers.experiment_run import write
from tests.consumers.hook_run import hook, receiving, rows_of
from tests.consumers.stores import make_store, write_config, write_events
from tests.postgres_server import Postgres

pytestmark = pytest.mark.postgres

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.new_store()
    yield url
    postgres.drop(url)


def counted(folder: Path, url: str) -> None:
    """Count the events of `stores.py` into a store."""
    write_events(folder)
    run = ["run", str(write_config(folder)), "--until-end", "--no-serve", "--store", url]
    assert main(run) == 0


def test_every_command_that_reads_answers_the_same(
    tmp_path: Path, url: str, capsys: Capture
) -> None:
    file = str(make_store(tmp_path))
    counted(tmp_path, url)
    capsys.readouterr()
    for words in (
        ["results", "{}", "--json"],
        ["results", "{}", "--json", "--window", "all", "--by", "variant,phase"],
        ["status", "{}", "--json"],
        ["quarantine", "{}", "--json"],
        ["export", "{}", "-o", f"{tmp_path}/{{}}.state"],
    ):
        outputs = []
        for name, store in (("file", file), ("url", url)):
            assert main([words[0], store, *(word.format(name) for word in words[2:])]) == 0
            outputs.append(capsys.readouterr().out.replace(f"{name}.state", "x.state"))
        assert outputs[0] == outputs[1]
    assert (tmp_path / "file.state").read_bytes() == (tmp_path / "url.state").read_bytes()


def test_a_password_is_nowhere_to_be_read(tmp_path: Path, url: str, capsys: Capture) -> None:
    password = make_url(url).password or "secret-word"  # a server of ours asks for none
    query = {"sslpassword": "secret-word"}
    guarded = make_url(url).set(password=password).update_query_dict(query)
    secret = guarded.render_as_string(hide_password=False)
    counted(tmp_path, secret)
    run = ["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve", "--store", secret]
    for words in ([*run, "--check"], run, ["results", secret], ["status", secret]):
        assert main(words) == 0
    missing = make_url(secret).set(database="none_here").render_as_string(hide_password=False)
    assert main(["results", missing]) == 1
    captured = capsys.readouterr()
    assert "secret-word" not in captured.out + captured.err
    assert str(password) not in captured.out + captured.err
    assert '"none_here" does not exist' in captured.err


def test_an_epoch_of_any_characters_stops_neither_looks_nor_hooks(
    tmp_path: Path, url: str, capsys: Capture
) -> None:
    config, epoch = write(tmp_path, rows=400), "z\0\x1a0"
    text = config.read_text(encoding="utf-8").replace("[event]", '[event]\nepoch = "epoch"')
    events = [json.loads(line) for line in (tmp_path / "clicks.jsonl").read_text().splitlines()]
    for event in events:
        event |= {"epoch": epoch, "variant": "new"}  # so the sample ratio has an alarm
    write_events(tmp_path, events)
    with receiving() as receiver:
        config.write_text(f"{text}\n{hook(receiver.url, ['sample_ratio'])}", encoding="utf-8")
        for _ in range(2):
            assert main(["run", str(config), "--until-end", "--no-serve", "--store", url]) == 0
    assert [request.event["event"] for request in receiver.received] == ["sample_ratio"]
    assert [row.message.subject.episode for row in rows_of(url)] == [epoch]
    capsys.readouterr()
    assert main(["results", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recommendation"]["action"] == "check_setup"

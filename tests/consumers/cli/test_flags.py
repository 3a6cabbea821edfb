"""Flags that name partitions, offsets, topics and batches, and flags that need another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streammetrics_consumers.cli.arguments import UsageError, parse
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.cli.run import partitions, skips, worker_command
from streammetrics_consumers.cli.upkeep import offsets
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.process.preflight import require_options
from streammetrics_consumers.sources import Skips, UnreadableBatch, Unsuitable

from tests.consumers.joined_stream import JOIN
from tests.consumers.small_config import config, toml

KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ntopic = "clicks,a/b"\ngroup = "g"'
PLAIN = toml()
JOINED = toml(event='time = "ts"\ntime_unit = "ms"\nscore = "score"', slices="by = [[]]", rest=JOIN)


def test_partitions_offsets_and_batches_are_read_as_errors_write_them() -> None:
    assert partitions(None) is None
    assert partitions("1,0, clicks/2,0") == (1, 0, "clicks/2")
    assert offsets(["0:5-10", "clicks/0:7-"]) == {0: (5, 10), "clicks/0": (7, None)}
    error = UnreadableBatch("a/b", 3, 17, 29, "one with another checksum")
    found = skips([str(error).rpartition("--skip ")[2], "clicks/0:0"])
    assert ("a/b", 3, 17) in found and ("clicks", 0, 0) in found
    assert ("clicks", 0, 1) not in found and ("clicks", 3, 17) not in found


def refused(said: str, read: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as error:
        read()
    assert said in str(error.value)


def test_other_words_are_errors_of_usage() -> None:
    for text in ("", "a", "0,", "clicks/x", "-1"):
        refused(
            "--partitions: expected numbers, such as 0,1, or names",
            lambda text=text: partitions(text),  # type: ignore[misc]
        )
    for text in ("5-10", "clicks:5-10", ":5-10", "0:a-10", "0:5"):
        refused("--offsets: expected PARTITION:FROM-TO", lambda text=text: offsets([text]))  # type: ignore[misc]
    refused("got two for clicks/0", lambda: offsets(["clicks/0:1-2", "clicks/0:5-6"]))
    for text in ("", "clicks", "0:5", "clicks/0", "clicks/x:5", "clicks/0:-1"):
        refused("--skip: expected TOPIC/PARTITION:OFFSET", lambda text=text: skips([text]))  # type: ignore[misc]


def test_topics_are_several_with_commas_and_a_batch_is_of_one_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(toml(source=KAFKA), encoding="utf-8")
    assert load_config(path, {"source.topic": "views,clicks"}).source.topics == ("views", "clicks")
    options = Options(skips=Skips([("click", 0, 1)]))
    with pytest.raises(Unsuitable, match="which reads clicks, a/b, got click"):
        require_options(config(source=KAFKA), options)
    with pytest.raises(Unsuitable, match="no topic, since it is a file"):
        require_options(config(), options)


def test_close_needs_an_end_and_something_that_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_bytes(
        b'{"kind": "shown", "id": "x", "ts": 1700000000000, "score": 0.5}\n'
        b'{"kind": "shown", "id": "y", "ts": 1700000000000, "score": 0.25}\n'
        b'{"kind": "click", "id": "x", "ts": 1700000001000}\n'
    )
    path = tmp_path / "run.toml"
    for text, flags, said in (
        (JOINED, ["--close"], "--close: expected with --until-end"),
        (PLAIN, ["--close", "--until-end"], "--close: expected a config with [join]"),
    ):
        path.write_text(text, encoding="utf-8")
        assert main(["run", str(path), "--no-serve", *flags]) != 0
        assert said in capsys.readouterr().err
    path.write_text(JOINED, encoding="utf-8")
    assert main(["run", str(path), "--dry-run", "--close"]) == 0
    assert "0.5" in capsys.readouterr().out


def test_a_secret_of_the_environment_is_not_in_the_words_of_a_worker() -> None:
    environ = {
        "STREAMMETRICS_CLIENT": "sasl_plain_password=x1",
        "STREAMMETRICS_STORE": "postgresql://u:x2@h/d",
    }
    words = worker_command(parse(["run", "c.toml", "-X", "linger_ms=5"], {}))
    assert "--client=linger_ms=5" in words
    assert not any("x1" in w or "x2" in w for w in worker_command(parse(["run", "c"], environ)))

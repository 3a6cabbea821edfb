"""`streammetrics run`: its config, its flags, its checks, its exit codes and its address."""

from __future__ import annotations

import json
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
from tests.consumers.stores import EVENTS, make_store, write_config, write_events

Capture = pytest.CaptureFixture[str]


def test_a_config_says_all_that_is_wrong_with_it_at_once(tmp_path: Path, capsys: Capture) -> None:
    path = write_config(tmp_path, windows='slde_s = 3\nmax_ahead_s = "x"', rest="\n[stor]\n")
    assert main(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert all(key in err for key in ("slde_s", "max_ahead_s", "stor"))
    missing = tmp_path / "none.toml"
    assert main(["run", str(missing)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"streammetrics: {missing}: expected a readable file, got No such file")
    assert err.count(str(missing)) == err.count("\n") == 1


def test_a_file_of_events_that_is_not_there_is_exit_1_and_makes_no_store(
    tmp_path: Path, capsys: Capture
) -> None:
    path = write_config(tmp_path)
    assert main(["run", str(path), "--no-serve"]) == 1
    missing = tmp_path / "clicks.jsonl"
    assert f"[source] path: expected a file of events, got {missing}" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["clicks.toml"]


def test_a_flag_goes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(tmp_path)
    run = ["run", str(write_config(tmp_path)), "--until-end", "--no-serve"]
    monkeypatch.setenv("STREAMMETRICS_STORE", str(tmp_path / "environment.db"))
    assert main([*run, "--store", str(tmp_path / "flag.db")]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["flag.db"]
    assert main(run) == 0
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["environment.db", "flag.db"]


def test_a_bad_value_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = str(write_config(tmp_path))
    monkeypatch.setenv("STREAMMETRICS_PORT", "99999")
    assert main(["run", path]) == 2
    assert "STREAMMETRICS_PORT: expected a whole number from 0 to 65535" in capsys.readouterr().err
    assert main(["run", path, "--port", "77777"]) == 2
    assert "--port: expected a whole number from 0 to 65535" in capsys.readouterr().err
    monkeypatch.setenv("STREAMMETRICS_PORT", "eighty")
    assert main(["run", path]) == 2
    assert "STREAMMETRICS_PORT: expected a whole number, got 'eighty'" in capsys.readouterr().err


def test_a_flag_of_run_that_cannot_be_is_exit_2_and_makes_no_store(
    tmp_path: Path, capsys: Capture
) -> None:
    write_events(tmp_path)
    run = ["run", str(write_config(tmp_path)), "--no-serve", "--until-end"]
    for flag, value, message in (
        ("--from", "yesterday", "--from: expected a time in ISO UTC"),
        (
            "--partitions",
            "a",
            "--partitions: expected numbers of partitions, such as 0,1, or their names",
        ),
        ("-X", "linger", "-X: expected KEY=VALUE, got 'linger'"),
        ("-X", "linger_ms=5", "-X linger_ms: expected a setting that applies here"),
        ("--workers", "0", "--workers: expected 1 or more, got 0"),
        ("--topic", "clicks", '--topic: expected nothing, since kind is "file"'),
        ("--partitions", "0,5", "--partitions: expected existing partitions (0), got 5"),
        ("--from", "2024-01-01", "--from: expected beginning or latest, since a file has no"),
    ):
        assert main([*run, flag, value]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "store.db").exists()


def test_changed_settings_are_exit_3_and_the_change_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    make_store(tmp_path)
    path = write_config(tmp_path, slices="max_keys = 5")
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 3
    assert "max_keys" in capsys.readouterr().err
    assert main(["run", str(path), "--until-end", "--no-serve", "--new-generation"]) == 0
    main(["results", str(tmp_path / "store.db"), "--json"])
    assert json.loads(capsys.readouterr().out)["generation"] == 2


def test_a_file_that_lost_its_end_is_exit_4(tmp_path: Path, capsys: Capture) -> None:
    make_store(tmp_path)
    write_events(tmp_path, EVENTS[:3])
    run = ["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]
    assert main([*run, "--check"]) == main(run) == 4
    assert "the next offset is 10, but the log holds 0 to 3" in capsys.readouterr().err


def test_too_many_bad_events_are_exit_5(tmp_path: Path, capsys: Capture) -> None:
    write_events(tmp_path, [*EVENTS[:2], b"x", b"y"])
    path = write_config(tmp_path)
    path.write_text(path.read_text().replace("[store]", "[store]\nmax_bad_share = 0.1"))
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 5
    assert "2 of 4 events were refused" in capsys.readouterr().err


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_check_and_a_dry_run_say_what_is_there_and_leave_everything_as_it_was(
    tmp_path: Path, capsys: Capture
) -> None:
    run = ["run", str(write_config(tmp_path)), "--no-serve"]
    write_events(tmp_path)
    for begun in (False, True):
        before = contents(tmp_path)
        for flags in ([], ["--new-generation"])[: 1 + begun]:
            capsys.readouterr()
            assert main([*run, "--check", *flags]) == 0
            out, err = capsys.readouterr()
            assert out == "" and "clicks.jsonl/0: offsets 0 to 10" in err
            assert ("store.db: it does not exist yet; a run creates it" in err) is not begun
            assert main([*run, "--dry-run", *flags]) == 0
            assert "10 read, 2 quarantined, 1 late" in capsys.readouterr().out
            assert contents(tmp_path) == before
        assert main([*run, "--until-end"]) == 0


KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ntopic = "clicks,a/b"\ngroup = "g"'
PLAIN = toml()
JOINED = toml(event='time = "ts"\ntime_unit = "ms"\nscore = "score"', slices="by = [[]]", rest=JOIN)


def test_partitions_offsets_and_batches_are_read_as_errors_write_them() -> None:
    assert partitions(None) is None
    assert partitions("1,0, clicks/2,0") == (1, 0, "clicks/2")
    assert offsets(["0:5-10", "clicks/0:7-"]) == {0: (5, 10), "clicks/0": (7, None)}
    error = UnreadableBatch("a/b", 3, 17, 29, "one with a wrong checksum")
    result = skips([str(error).rpartition("--skip ")[2], "clicks/0:0"])
    assert ("a/b", 3, 17) in result and ("clicks", 0, 0) in result
    assert ("clicks", 0, 1) not in result and ("clicks", 3, 17) not in result


def refused(message: str, read: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as error:
        read()
    assert message in str(error.value)


def test_other_words_are_errors_of_usage() -> None:
    for text in ("", "a", "0,", "clicks/x", "-1"):
        refused(
            "--partitions: expected numbers of partitions, such as 0,1, or their names",
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
    for text, flags, message in (
        (JOINED, ["--close"], "--close: expected --until-end too"),
        (PLAIN, ["--close", "--until-end"], "--close: expected a config with [join] or"),
    ):
        path.write_text(text, encoding="utf-8")
        assert main(["run", str(path), "--no-serve", *flags]) != 0
        assert message in capsys.readouterr().err
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

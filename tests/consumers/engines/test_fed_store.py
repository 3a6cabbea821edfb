"""A store that a streaming query feeds, through the commands: it reads like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import load
from tests.consumers.engines.fed_store import SPARK, Fed, row
from tests.consumers.small_config import toml

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    """A store with two batches, of which one row is refused."""
    fed = Fed(tmp_path)
    fed.feed(0, [row(0, "a", 1, 0.75), row(1, "b", 0, 0.5)], [row(2, "c", 1)])
    fed.feed(1, [row(70, "a", 0, 0.25)])
    return fed


def written(folder: Path, **parts: str) -> str:
    """The config of that store as a file."""
    path = folder / "clicks.toml"
    text = toml(**{"source": SPARK, "rest": '[store]\nurl = "fed.db"', **parts})
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_run_says_that_the_query_writes_by_itself(tmp_path: Path, capsys: Capture) -> None:
    for more in ([], ["--until-end"], ["--check"], ["--dry-run"]):
        assert main(["run", written(tmp_path), "--no-serve", *more]) == 2
        err = capsys.readouterr().err
        assert "[source] kind: expected a source that this program reads, got 'spark'" in err
    assert not (tmp_path / "fed.db").exists()


@pytest.mark.slow
def test_verify_says_that_there_is_no_log_to_read_again(
    fed: Fed, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["verify", written(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "clicks/0: a streaming query of Spark has counted batches 0 to 2 of it" in out
    assert "no log to read again, and it is not verified" in out
    assert "nothing could be verified" in out


def test_results_and_status_name_the_query_and_its_batches(fed: Fed, capsys: Capture) -> None:
    url = fed.config.store.url
    assert main(["results", url, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["offsets"] == {"clicks/0": 2}
    assert main(["status", url]) == 0
    assert "clicks/0" in capsys.readouterr().out


def test_export_says_which_batches_it_counted_and_they_do_not_count_twice(
    fed: Fed, tmp_path: Path, capsys: Capture
) -> None:
    one = tmp_path / "one"
    assert main(["export", fed.config.store.url, "-o", str(one), "--metric", "ctr"]) == 0
    assert list(load(one).provenance) == [("spark/one/clicks/0", "total/{}/ctr", 0, 2)]
    assert main(["merge", str(one), str(one), "-o", str(tmp_path / "two")]) == 1
    assert "got [0, 2) twice" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_that_were_refused_are_counted_by_a_retry(fed: Fed, tmp_path: Path) -> None:
    parts = {"event": 'time = "ts"\nvariant = "variant"\nvariants = ["a", "b", "c"]\n'
                      'user = "user"\nlabel = "label"\nscore = "score"'}  # fmt: skip
    words = ["quarantine", "retry", fed.config.store.url, "--config", written(tmp_path, **parts)]
    more = Fed(tmp_path, **parts)
    more.config = replace(more.config, store=fed.config.store)
    more.feed(2, [])  # the variant is declared
    assert main(words) == 0
    seen = fed.seen()
    assert (seen.counters.rows, seen.counters.quarantined) == (4, 0)
    (tmp_path / "whole").mkdir()
    whole = Fed(tmp_path / "whole", **parts)
    whole.feed(0, [row(0, "a", 1, 0.75), row(1, "b", 0, 0.5), row(2, "c", 1), row(70, "a", 0)])
    assert more.digests() == whole.digests()

"""`run --check`, and what is refused before a store is made. Nothing of this changes anything."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, NewSource
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.process.preflight import check, require_options
from streammetrics_consumers.sources import Disconnected, GapError, Unsuitable

from tests.consumers.memory_run import ONE, UNTIL_END, Run, log
from tests.consumers.memory_source import MemorySource
from tests.consumers.stores import stored


def place(folder: Path, **parts: str) -> Run:
    return Run(folder, {ONE: log(5)}, **parts)


def checked(run: Run, options: Options = UNTIL_END, **more: bool) -> list[str]:
    return check(run.config, options, opener=run.opener, **more)


def tables(run: Run) -> list[str]:
    """Every row of the store, as text."""
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return [repr(ledger.generations()), repr(stored(ledger))]


def test_a_check_without_a_store_makes_none(tmp_path: Path) -> None:
    run = place(tmp_path)
    lines = checked(run)
    assert lines[0] == "events/0: offsets 0 to 5"
    assert lines[1].endswith("run.db: it does not exist yet; a run creates it")
    assert list(tmp_path.iterdir()) == []


def test_a_check_of_a_store_leaves_every_byte_as_it_was(tmp_path: Path) -> None:
    run = place(tmp_path)
    run()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lines = checked(run)
    assert lines[1].endswith("run.db: generation 1")
    assert lines[2] == "events/0: counted up to offset 5"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_check_starts_no_metric_ends_none_and_begins_no_generation(tmp_path: Path) -> None:
    place(tmp_path)()
    second_run = place(tmp_path, metrics='other = { type = "Ratio" }')
    before = tables(second_run)
    with pytest.raises(SettingsChanged, match="or end it with --drop-metric auc"):
        checked(second_run)
    lines = checked(second_run, replace(UNTIL_END, requested=Requested(drop=("auc", "ctr"))))
    assert "metric other: new; it would start at the offsets reached so far" in lines
    assert "metric ctr: dropped; it would end at the offsets reached so far" in lines
    assert checked(second_run, new_generation=True)[-1].endswith("a run starts generation 2")
    assert tables(second_run) == before


def test_a_check_finds_another_log_and_a_gap(tmp_path: Path) -> None:
    run = place(tmp_path)
    run()
    run.logs = {ONE: log(5, beginning=8)}
    with pytest.raises(GapError, match="the next offset is 5, but the log holds 8 to 13"):
        checked(run)
    run.logs = {ONE: log(3)}
    with pytest.raises(GapError, match="the next offset is 5, but the log holds 0 to 3"):
        checked(run)
    run.logs = {replace(ONE, topic_id="new"): log(9)}
    with pytest.raises(LogChanged):
        checked(run)
    assert checked(run, Options(on_gap="skip"))


def test_partitions_of_a_topic_are_asked_for_before_a_store_is_made(tmp_path: Path) -> None:
    run = place(tmp_path)
    kafka = replace(run.config, source=replace(run.config.source, kind="kafka"))
    with pytest.raises(Unsuitable, match=r"expected existing partitions \(0\), got 3, 7"):
        require_options(kafka, Options(partitions=(7, 0, 3)), opener=run.opener)
    require_options(kafka, Options(partitions=(0,)), opener=run.opener)

    def away(config: Config, options: Options) -> MemorySource:
        raise Disconnected("no broker")

    require_options(kafka, Options(partitions=(7,)), opener=away)  # the worker asks again


def test_a_missing_client_is_named_with_its_extra_before_a_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(
        sys.modules, "streammetrics_consumers.sources.kafka.kafka_source", raising=False
    )
    monkeypatch.delattr("streammetrics_consumers.sources.kafka.kafka_source", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "kafka"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)
    run = place(tmp_path)
    kafka = replace(run.config, source=replace(run.config.source, kind="kafka"))
    with pytest.raises(SourceError, match=r"package kafka.*pip install '\.\[kafka\]'"):
        require_options(kafka, Options())


def test_a_check_names_a_topic_that_is_new_to_the_store(tmp_path: Path) -> None:
    run = place(tmp_path)
    run()
    before = tables(run)
    run.logs = {replace(ONE, topic="views"): log(9)}
    with pytest.raises(NewSource, match=r"got views of cluster test.*--new-source"):
        checked(run, Options(on_gap="skip"))
    lines = checked(run, Options(new_source=True))
    message = "source views of cluster test: new to the store; a run adds its events to the counts"
    assert message in lines
    assert tables(run) == before
    run.logs = {replace(ONE, cluster="other"): log(9)}
    with pytest.raises(NewSource, match="got events of cluster other"):
        checked(run)
    assert checked(run, Options(new_source=True))

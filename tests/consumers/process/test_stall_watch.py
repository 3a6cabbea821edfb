"""A store into which nothing is committed although there are events."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.process.hook_request import HookReply
from streammetrics_consumers.process.stall_watch import StallWatch

from tests.consumers.hook_run import VARIABLE, config, hook, receiving
from tests.consumers.running import Running, until

HOOK = HookConfig(
    "http://x.example", ("store_stalled",), secret_env=VARIABLE, name="pager", stalled_s=30
)


class Watched:
    """Workers, a clock that the test moves, and what was sent."""

    def __init__(self, *hooks: HookConfig) -> None:
        self.now_s = 1000.0
        self.workers: list[WorkerStatus] = []
        self.replies: list[bool] = []
        self.bodies: list[bytes] = []
        self.watch = StallWatch(
            hooks or (HOOK,),
            "store",
            1,
            lambda: self.workers,
            monotonic=lambda: self.now_s,
            clock=lambda: self.now_s + 1e9,
            post=self.post,
        )

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
    ) -> HookReply:
        self.bodies.append(body)
        return HookReply(self.replies.pop(0) if self.replies else True, "")

    def seconds(self, count: int) -> None:
        """Let time pass."""
        for _ in range(count):
            self.now_s += 1.0
            self.watch.step()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was sent."""
        return [json.loads(body) for body in self.bodies]


def worker(committed_s: float | None, **partition: Any) -> WorkerStatus:
    """A worker with one partition."""
    place = PartitionStatus("clicks", 0, **{"position": 100, "counted": 100, **partition})
    return WorkerStatus(1, 0.0, 0.0, committed_s=committed_s, partitions=[place])


@pytest.mark.parametrize("events", [{"position": 101}, {"end": 101}])
def test_it_is_sent_once_when_nothing_is_committed_although_there_are_events(
    events: dict[str, int],
) -> None:
    harness = Watched()
    harness.workers = [worker(None, **events)]
    harness.seconds(29)
    assert harness.events == []
    harness.seconds(60)
    (event,) = harness.events
    assert event["event"] == "store_stalled" and event["look"] is None
    assert event["stall"] == {"start_ms": int(1e12 + 1000_000), "seconds": 30.0}
    assert "Nothing has been committed for 30 s" in event["sentence"]


def test_a_store_without_events_or_with_commits_does_not_stall() -> None:
    harness = Watched()
    harness.workers = [worker(None)]
    harness.seconds(100)
    for _ in range(10):
        harness.workers = [worker(harness.now_s, position=101), worker(None, position=101)]
        harness.seconds(20)
    assert harness.events == []


def test_a_worker_that_replaces_another_does_not_move_the_last_commit() -> None:
    harness = Watched()
    harness.seconds(100)
    harness.workers = [worker(harness.now_s + 500, position=101)]
    harness.seconds(510)
    harness.workers = [worker(None, position=101)]
    harness.seconds(19)
    assert harness.events == []
    harness.seconds(1)
    (event,) = harness.events
    assert event["stall"] == {"start_ms": int((1e9 + 1600) * 1000), "seconds": 30.0}


def test_the_time_without_events_does_not_count() -> None:
    harness = Watched()
    harness.workers = [worker(None)]
    harness.seconds(100)
    harness.workers = [worker(None, position=101)]
    harness.seconds(29)
    assert harness.events == []


def test_it_is_tried_again_as_the_same_bytes_until_it_arrives() -> None:
    harness = Watched(replace(HOOK, retry_s=10.0, max_retry_s=10.0))
    harness.workers, harness.replies = [worker(None, position=101)], [False, False]
    harness.seconds(100)
    assert len(harness.bodies) == 3 and len(set(harness.bodies)) == 1


def test_another_stall_has_another_key() -> None:
    harness = Watched()
    harness.workers = [worker(None, position=101)]
    harness.seconds(40)
    harness.workers = [worker(harness.now_s, position=101)]
    harness.seconds(40)
    first, second = harness.events
    assert first["key"] != second["key"]
    assert second["stall"]["start_ms"] == int((1e9 + 1040) * 1000)


def test_a_hook_that_does_not_ask_for_it_gets_none() -> None:
    harness = Watched(replace(HOOK, on=("worse",)))
    harness.workers = [worker(None, position=101)]
    harness.seconds(100)
    assert not harness.watch.is_asked_for
    assert harness.events == []


@pytest.mark.faults
def test_a_locked_store_is_reported_while_it_is_locked(tmp_path: Path) -> None:
    with receiving() as receiver:
        text = hook(receiver.url, ["store_stalled"], "stalled_s = 2")
        path = config(tmp_path, text)
        path.write_text(
            path.read_text().replace(
                'url = "store.db"', 'url = "store.db"\ncommit_interval_s = 0.2'
            )
        )
        with Running(path) as running:
            until(lambda: running.is_ready(), running)
            with closing(
                sqlite3.connect(tmp_path / "store.db", isolation_level=None)
            ) as connection:
                connection.execute("BEGIN IMMEDIATE")
                first, *_ = (tmp_path / "clicks.jsonl").read_text().splitlines()
                with (tmp_path / "clicks.jsonl").open("a") as log:
                    log.write(f"{first}\n")
                until(lambda: bool(receiver.received), running)
                connection.execute("ROLLBACK")
    (event,) = {request.body: request.event for request in receiver.received}.values()
    assert event["event"] == "store_stalled"
    receiver.require_good()

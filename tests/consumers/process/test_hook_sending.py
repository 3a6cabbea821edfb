"""Events of hooks are sent at least once and always the same; counting never waits for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.sent_hooks import SentHooks
from streammetrics_consumers.process.hook_request import HookReply, post, signature
from streammetrics_consumers.process.hook_sending import HookSender
from streammetrics_consumers.process.stop import Stop

from tests.consumers.experiment_run import run
from tests.consumers.hook_run import (
    NOWHERE,
    SECRET,
    VARIABLE,
    Received,
    Receiver,
    config,
    hook,
    looks_of,
    receiving,
    rows_of,
)
from tests.patience import LIMIT_S, until

HOOK = HookConfig(
    "http://127.0.0.1:9/x", ("worse",), secret_env=VARIABLE, name="flags", give_up_s=10**10
)


class Recorder:
    """In place of requests: what would be sent, and the replies."""

    def __init__(self, *replies: bool) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[bytes, Mapping[str, str]]] = []

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float
    ) -> HookReply:
        self.sent.append((body, headers))
        is_good = self.replies.pop(0) if self.replies else True
        return HookReply(is_good, "HTTP 204" if is_good else "HTTP 500")


def stepped(sender: HookSender) -> None:
    """One step, and the end of its attempts."""
    sender.step()
    for thread in list(sender._threads.values()):
        thread.join(LIMIT_S)


def counted(folder: Path, events: tuple[str, ...] = ("worse",), rest: str = "") -> Path:
    """A store with events that could not be sent yet."""
    store = run(config(folder, hook(NOWHERE, events, rest, retry_s=600)))
    assert {row.state for row in rows_of(store)} == {"waiting"}
    return store


@pytest.mark.usefixtures("each_store")
def test_a_look_says_what_is_worse_and_each_is_received_once_and_signed(tmp_path: Path) -> None:
    with receiving() as receiver:
        path = config(tmp_path, hook(receiver.url))
        store = run(path)
        assert run(path) == store  # nothing new is counted
    receiver.require_good()
    events = {request.event["event"]: request for request in receiver.received}
    assert sorted(events) == ["guardrail_broken", "recommendation", "worse"]
    assert len(receiver.received) == 3
    worse = events["worse"].event
    assert (worse["metric"], worse["arm"], worse["control"]) == ("ctr", "old", "new")
    assert worse["effect"]["upper"] < -0.1 and worse["effect"]["estimate"] == -0.25
    assert worse["look"] == {"number": 1, "place": 2000, "watermark_ms": 5_397_300}
    rows = rows_of(store)
    assert {row.message.body for row in rows} == {request.body for request in receiver.received}
    assert {(row.state, row.attempts, row.answer) for row in rows} == {("sent", 1, "HTTP 204")}
    assert {row.host for row in rows} == {"127.0.0.1"}


def test_later_looks_repeat_nothing_and_a_new_recommendation_is_sent(tmp_path: Path) -> None:
    with receiving() as receiver:
        path = config(tmp_path, hook(receiver.url), rows=1000)
        store = run(path)
        log_file = tmp_path / "clicks.jsonl"
        first, long_config = log_file.read_text(), config(tmp_path / "..", "", 4000)
        later_lines = long_config.with_name("clicks.jsonl").read_text().replace("T00:", "T02:")
        log_file.write_text(first + later_lines, encoding="utf-8")
        run(path)
    receiver.require_good()
    assert looks_of(store) == 2
    assert len(receiver.received) == 3


@pytest.mark.parametrize("event", ["guardrail_broken", "sample_ratio", "recommendation"])
def test_a_hook_gets_only_the_events_that_it_asks_for(tmp_path: Path, event: str) -> None:
    with receiving() as receiver:
        run(config(tmp_path, hook(receiver.url, [event])))
    expected = [] if event == "sample_ratio" else [event]
    assert [request.event["event"] for request in receiver.received] == expected


def test_a_failed_attempt_is_repeated_as_the_same_bytes_after_longer_pauses(tmp_path: Path) -> None:
    store, now_s, recorder = counted(tmp_path), [2e9], Recorder(False, False, False)
    (row,) = rows_of(store)
    times = []
    with closing(Ledger.open(str(store))) as ledger:
        patient = replace(HOOK, retry_s=8.0, max_retry_s=20.0)
        sender = HookSender(ledger.store, [patient], lambda: now_s[0], recorder)
        for _ in range(100):
            before = len(recorder.sent)
            stepped(sender)
            times += [now_s[0] - 2e9] * (len(recorder.sent) - before)
            now_s[0] += 1.0
    assert times == [0.0, 16.0, 36.0, 56.0]  # after one attempt of the run
    assert {body for body, _ in recorder.sent} == {row.message.body}
    assert {headers["Idempotency-Key"] for _, headers in recorder.sent} == {row.message.key}
    assert [(hook_row.state, hook_row.attempts) for hook_row in rows_of(store)] == [("sent", 5)]


def test_each_attempt_is_signed_for_its_own_time(tmp_path: Path) -> None:
    store, recorder = counted(tmp_path), Recorder(False)
    with closing(Ledger.open(str(store))) as ledger:
        for now_s in (2e9, 2e9 + 100):
            stepped(HookSender(ledger.store, [HOOK], lambda time_s=now_s: time_s, recorder))  # type: ignore[misc]
    assert len(recorder.sent) == 2
    for (body, headers), sent_s in zip(recorder.sent, ("2000000000", "2000000100"), strict=True):
        assert headers["Streammetrics-Timestamp"] == sent_s
        assert headers["Streammetrics-Signature"] == signature(SECRET, sent_s, body)


def test_an_event_that_nobody_takes_for_long_has_failed_and_stays(tmp_path: Path) -> None:
    store, recorder = counted(tmp_path), Recorder(False)
    (row,) = rows_of(store)
    late_s = row.message.created_ms / 1000 + 700
    with closing(Ledger.open(str(store))) as ledger:
        for _ in range(2):
            stepped(
                HookSender(ledger.store, [replace(HOOK, give_up_s=650)], lambda: late_s, recorder)
            )
    assert len(recorder.sent) == 1
    assert [(hook_row.state, hook_row.answer) for hook_row in rows_of(store)] == [
        ("failed", "HTTP 500")
    ]


@pytest.mark.usefixtures("each_store")
def test_of_two_processes_one_sends(tmp_path: Path) -> None:
    store, inside, goes_on = counted(tmp_path), threading.Event(), threading.Event()
    sent: list[bytes] = []

    def slow(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> HookReply:
        sent.append(body)
        inside.set()
        assert goes_on.wait(LIMIT_S)
        return HookReply(True, "HTTP 204")

    with (
        closing(Ledger.open(str(store))) as first_ledger,
        closing(Ledger.open(str(store))) as second_ledger,
    ):
        first = HookSender(first_ledger.store, [HOOK], lambda: 2e9, slow)
        first.step()
        assert inside.wait(LIMIT_S)
        second = Recorder()
        stepped(HookSender(second_ledger.store, [HOOK], lambda: 2e9 + 1, second))
        goes_on.set()
        stepped(first)
    assert (len(sent), second.sent) == (1, [])


@pytest.mark.usefixtures("each_store")
def test_another_process_goes_on_after_one_that_died_in_an_attempt(tmp_path: Path) -> None:
    store, inside = counted(tmp_path), threading.Event()
    sent: list[bytes] = []

    def dies(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> HookReply:
        sent.append(body)
        inside.set()
        raise OSError("the thread ends, and no answer is noted")

    with closing(Ledger.open(str(store))) as ledger:
        stepped(HookSender(ledger.store, [HOOK], lambda: 2e9, dies))
        assert inside.is_set()
        recorder, now_s = Recorder(), [2e9 + 39]
        second_sender = HookSender(ledger.store, [HOOK], lambda: now_s[0], recorder)
        stepped(second_sender)
        assert recorder.sent == []  # the claim has not ended
        now_s[0] += 2
        stepped(second_sender)
    assert [body for body, _ in recorder.sent] == sent


@pytest.mark.usefixtures("each_store")
def test_an_answer_after_the_end_of_a_claim_does_not_undo_that_of_another(tmp_path: Path) -> None:
    store = counted(tmp_path)
    with closing(Ledger.open(str(store))) as ledger:
        second_sender = HookSender(ledger.store, [HOOK], lambda: 2e9 + 100, Recorder())

        def overtaken(*_: object) -> HookReply:
            stepped(second_sender)
            return HookReply(False, "HTTP 500")

        stepped(HookSender(ledger.store, [HOOK], lambda: 2e9, overtaken))
    assert [(row.state, row.answer) for row in rows_of(store)] == [("sent", "HTTP 204")]


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize(("delivered", "state"), [(False, "dropped"), (True, "sent")])
def test_an_event_that_is_dropped_during_an_attempt_is_not_tried_again(
    tmp_path: Path, delivered: bool, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, late_recorder = counted(tmp_path), Recorder()
    with closing(Ledger.open(str(store))) as ledger:

        def drop(*_: object) -> HookReply:
            assert SentHooks(ledger.store).adopt(0, "dropped") == 1
            return HookReply(delivered, "HTTP 500")

        stepped(HookSender(ledger.store, [HOOK], lambda: 2e9, drop))
        stepped(HookSender(ledger.store, [HOOK], lambda: 3e9, late_recorder))
    assert [row.state for row in rows_of(store)] == [state]
    assert late_recorder.sent == []
    logged = capsys.readouterr().err
    assert ("held, dropped or tried again meanwhile" in logged) is not delivered


@pytest.mark.usefixtures("each_store")
def test_an_event_is_there_only_with_its_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise KeyboardInterrupt

    path = config(tmp_path, hook(NOWHERE))
    with monkeypatch.context() as patch:
        patch.setattr("streammetrics_consumers.process.experiment_looks.add", fails)
        main(["run", str(path), "--until-end", "--no-serve"])
    assert (looks_of(tmp_path / "store.db"), rows_of(tmp_path / "store.db")) == (0, [])
    run(path)
    assert (looks_of(tmp_path / "store.db"), len(rows_of(tmp_path / "store.db"))) == (1, 3)


def test_a_receiver_that_is_slow_delays_no_other(tmp_path: Path) -> None:
    goes_on = threading.Event()
    slow, quick = Receiver(before_answer=lambda: goes_on.wait(LIMIT_S) and None), Receiver()  # type: ignore[func-returns-value]
    with receiving(slow), receiving(quick):
        hooks = hook(slow.url, ["worse"], name="a") + hook(quick.url, ["worse"], name="b")
        path = config(tmp_path, hooks)
        stop = Stop()
        from streammetrics_consumers.counting.options import Options
        from streammetrics_consumers.process import service

        loaded = load_config(path)
        thread = threading.Thread(
            target=service.run, args=(loaded, Options(until_end=True)), kwargs={"stop": stop}
        )
        thread.start()
        until(lambda: bool(quick.received) and bool(slow.received))
        goes_on.set()
        thread.join(LIMIT_S)
    assert slow.received[0].body == quick.received[0].body


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(tmp_path: Path, status: int) -> None:
    with receiving() as elsewhere:
        receiver = Receiver(answers=[status], headers={"Location": elsewhere.url})
        with receiving(receiver):
            reply = post(receiver.url, b"{}", {"Streammetrics-Timestamp": "0",
                         "Streammetrics-Signature": ""}, LIMIT_S)  # fmt: skip
    assert reply == HookReply(False, f"HTTP {status}")
    assert elsewhere.received == []


def answered(write: Callable[[socket.socket], None], timeout_s: float) -> HookReply:
    """The reply of a receiver that writes this."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as client:
                client.recv(65536)
                try:
                    write(client)
                except OSError:
                    return  # it was cut off

        thread = threading.Thread(target=serve)
        thread.start()
        reply = post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, timeout_s)
        thread.join(LIMIT_S)
    return reply


def test_a_receiver_that_answers_byte_by_byte_is_cut_off() -> None:
    ended = threading.Event()

    def drip(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        while not ended.wait(0.02):
            client.sendall(b"X-More: 1\r\n")

    assert answered(drip, 0.3) == HookReply(False, "no answer in time")


def test_an_endless_answer_is_not_read_to_its_end() -> None:
    def flood(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        while True:
            client.sendall(b"x" * 65536)

    assert answered(flood, LIMIT_S) == HookReply(True, "HTTP 200")


def test_what_is_no_answer_is_a_failed_attempt() -> None:
    def garbage(client: socket.socket) -> None:
        client.sendall(b"\x00 garbage of-the-address\r\n\r\n")

    reply = answered(garbage, LIMIT_S)
    assert not reply.delivered and "garbage" not in reply.text
    assert not post("http://no-such-host.invalid/of-the-address", b"{}", {}, 5.0).delivered
    assert post(NOWHERE, b"{}", {}, 5.0).text == "Connection refused"


def test_secrets_are_in_no_log_store_or_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiving(Receiver(answers=[500])) as receiver:
        path = config(tmp_path, hook(receiver.url, retry_s=600))  # the store keeps the refusal
        run(path)
    assert "of-the-address" not in repr(load_config(path))
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir() if "store.db" in file.name)
    content += capsys.readouterr().err.encode()
    assert content.count(b"HTTP 500") > 1
    for secret in (SECRET, b"of-the-address", b"hooks/of-tests"):
        assert secret not in content


def test_a_secret_of_a_file_may_change_while_it_runs(tmp_path: Path) -> None:
    store, file = counted(tmp_path), tmp_path / "secret"
    hook_of_file = replace(HOOK, secret_env=None, secret_file=file)
    recorder = Recorder(False)
    with closing(Ledger.open(str(store))) as ledger:
        for i, secret in enumerate((b"first, of 16 bytes", b"second, of 16 bytes\n")):
            file.write_bytes(secret)
            stepped(
                HookSender(
                    ledger.store, [hook_of_file], lambda time_s=2e9 + 100 * i: time_s, recorder
                )
            )  # type: ignore[misc]
            body, headers = recorder.sent[-1]
            expected = signature(secret.rstrip(), headers["Streammetrics-Timestamp"], body)
            assert headers["Streammetrics-Signature"] == expected


@pytest.mark.parametrize("flags", [(), ("--check",)])
def test_a_run_without_its_secret_ends_before_it_begins(
    tmp_path: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, hook(NOWHERE).replace(VARIABLE, "STREAMMETRICS_NO_SUCH_SECRET"))
    assert main(["run", str(path), "--until-end", "--no-serve", *flags]) == 2
    assert "[hooks.flags] secret_env: expected a secret of 16 to 1024" in capsys.readouterr().err
    assert not (tmp_path / "store.db").exists()


def test_a_hook_that_cannot_be_sent_warns_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = counted(tmp_path)
    capsys.readouterr()
    with closing(Ledger.open(str(store))) as ledger:
        missing = replace(HOOK, secret_env="STREAMMETRICS_NO_SUCH")
        sender = HookSender(ledger.store, [missing], lambda: 2e9, Recorder())
        for _ in range(5):
            stepped(sender)
    assert capsys.readouterr().err.count("hook flags waits: the config: 1 bad setting") == 1


def test_a_dry_run_of_a_log_sends_nothing_and_needs_no_secret(tmp_path: Path) -> None:
    with receiving() as receiver:
        path = config(tmp_path, hook(receiver.url).replace(VARIABLE, "STREAMMETRICS_NO_SUCH"))
        assert main(["run", str(path), "--dry-run"]) == 0
    assert receiver.received == []


def test_an_altered_body_has_another_signature() -> None:
    request = Received("/", {}, b"{}", is_good=True)
    assert signature(SECRET, "1", request.body) != signature(SECRET, "1", b"{ }")
    assert signature(SECRET, "1", request.body) != signature(SECRET, "2", request.body)

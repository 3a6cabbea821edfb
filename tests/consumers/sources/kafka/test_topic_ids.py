"""How the id of a topic is asked for beside a reader, with clients that fall silent."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import Disconnected
from streammetrics_consumers.sources.kafka import confluent_client
from streammetrics_consumers.sources.kafka.confluent_client import TopicIds

Answer = int | str | None  # the topic's id, the name of an error, or nothing at all
MISSING = "UNKNOWN_TOPIC_OR_PART"


class Admin:
    """A client that answers once for each entry, and then as the last time."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers, self.asked = answers, 0

    def describe_topics(
        self, topics: TopicCollection, request_timeout: float
    ) -> dict[str, Future[object]]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        found: Future[object] = Future()
        if isinstance(answer, int):
            found.set_result(SimpleNamespace(topic_id=Uuid(0, answer), partitions=[]))
        elif answer is not None:
            found.set_exception(KafkaException(KafkaError(getattr(KafkaError, answer))))
        return {"clicks": found}


class Clients:
    """The clients that are made, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[Answer]) -> None:
        self.made: list[Admin] = []
        waiting = [Admin(one) for one in answers]

        def made(settings: dict[str, str], logger: object) -> Admin:
            self.made.append(waiting[len(self.made)])
            return self.made[-1]

        monkeypatch.setattr(confluent_client, "AdminClient", made)
        # A hundredth of a second, with the reserve.
        monkeypatch.setattr(confluent_client, "TRY_S", -0.99)
        monkeypatch.setattr(confluent_client, "ASK_S", -0.99)


def topic_ids() -> TopicIds:
    return TopicIds({"bootstrap.servers": "h:1"}, ["clicks"])


def test_a_client_that_falls_silent_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    silences: tuple[Answer, ...] = (None, "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
    for silence in silences:
        clients = Clients(monkeypatch, [silence], [7])
        ids = topic_ids()
        assert ids.ask()["clicks"].id == "00000000-0000-0000-0000-000000000007"
        assert [one.asked for one in clients.made] == [1, 1]
        ids.require_same()
        assert [one.asked for one in clients.made] == [1, 2]  # the new one is asked from then on
    clients = Clients(monkeypatch, [7, 7, None], [7])  # later it costs nothing either
    ids = topic_ids()
    ids.ask()
    for _ in range(3):
        ids.require_same()
    assert [one.asked for one in clients.made] == [3, 2]
    clients = Clients(monkeypatch, [None], [None])
    with pytest.raises(Disconnected, match="the broker does not answer"):
        topic_ids().ask()
    assert len(clients.made) == 2


def test_another_topic_is_found_out_by_the_second_client_too_and_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second: tuple[tuple[Answer, str], ...] = (
        (8, "deleted and created again"),
        (MISSING, "deleted and created again"),
        (None, "does not answer"),  # nobody says which topic it is
    )
    for after, said in second:
        clients = Clients(monkeypatch, [7, None], [after, 7])
        ids = topic_ids()
        ids.ask()
        for _ in range(2):
            with pytest.raises(Disconnected, match=said):
                ids.require_same()
        assert clients.made[1].asked == 1  # nothing that is read from then on may be committed


def test_an_error_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(monkeypatch, [MISSING, "TOPIC_AUTHORIZATION_FAILED"])
    ids = topic_ids()
    assert ids.ask() == {}
    with pytest.raises(SourceError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        ids.ask()
    assert not isinstance(caught.value, Disconnected)
    assert len(clients.made) == 1

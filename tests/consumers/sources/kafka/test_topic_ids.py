"""The ids of topics, which a source confirms before a commit: replaced topics, and clients of
librdkafka that get no answers."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import Disconnected, compaction_warning
from streammetrics_consumers.sources.kafka import Topic, TopicReading, TopicSource, confluent_client
from streammetrics_consumers.sources.kafka.confluent_client import ConfluentTopics

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
        future: Future[object] = Future()
        if isinstance(answer, int):
            future.set_result(SimpleNamespace(topic_id=Uuid(0, answer), partitions=[]))
        elif answer is not None:
            future.set_exception(KafkaException(KafkaError(getattr(KafkaError, answer))))
        return {"clicks": future}


class Clients:
    """The clients that are made, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[Answer]) -> None:
        self.made: list[Admin] = []
        waiting = [Admin(replies) for replies in answers]

        def make_client(settings: dict[str, str], logger: object) -> Admin:
            self.made.append(waiting[len(self.made)])
            return self.made[-1]

        monkeypatch.setattr(confluent_client, "AdminClient", make_client)
        # A hundredth of a second, with the reserve.
        monkeypatch.setattr(confluent_client, "TRY_S", -0.99)
        monkeypatch.setattr(confluent_client, "ASK_S", -0.99)


def described_topics() -> ConfluentTopics:
    return ConfluentTopics({"bootstrap.servers": "h:1"}, ["clicks"])


class Described(TopicSource):
    """A source of the topic clicks, with id 7 at its start, described by a list of answers."""

    def __init__(self, *answers: list[Topic] | SourceError) -> None:
        self._lost = None
        self._reading = TopicReading("cluster", [Topic("clicks", "7", (0,))])
        self._answers = list(answers)

    def _described(self) -> dict[str, Topic]:
        answer = self._answers.pop(0)
        if isinstance(answer, SourceError):
            raise answer
        return {topic.name: topic for topic in answer}


Described.__abstractmethods__ = frozenset()


def test_a_client_that_falls_silent_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    silences: tuple[Answer, ...] = (None, "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
    for silence in silences:
        clients = Clients(monkeypatch, [silence], [7])
        ids = described_topics()
        assert ids.ask()["clicks"].id == "00000000-0000-0000-0000-000000000007"
        assert [client.asked for client in clients.made] == [1, 1]
        ids.ask()
        assert [client.asked for client in clients.made] == [
            1,
            2,
        ]  # the new one is asked from then on
    clients = Clients(monkeypatch, [7, 7, None], [7])  # later it costs nothing either
    ids = described_topics()
    ids.ask()
    for _ in range(3):
        ids.ask()
    assert [client.asked for client in clients.made] == [3, 2]
    clients = Clients(monkeypatch, [None], [None])
    with pytest.raises(Disconnected, match="the broker does not answer"):
        described_topics().ask()
    assert len(clients.made) == 2


def test_a_replaced_topic_is_refused_from_then_on() -> None:
    same, replacement = Topic("clicks", "7", (0, 1)), Topic("clicks", "8", (0,))
    silent = SourceError("the broker does not answer")
    for answer, message in (
        ([replacement], "'clicks' was deleted or replaced"),
        ([], "'clicks' was deleted or replaced"),
        (silent, "does not answer"),  # the id is unknown
    ):
        source = Described([same], answer, [same])
        source.confirm()
        for _ in range(2):  # records read after the first error must not be committed
            with pytest.raises(SourceError, match=message):
                source.confirm()


def test_an_error_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(monkeypatch, [MISSING, "TOPIC_AUTHORIZATION_FAILED"])
    ids = described_topics()
    assert ids.ask() == {}
    with pytest.raises(SourceError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        ids.ask()
    assert not isinstance(caught.value, Disconnected)
    assert len(clients.made) == 1


class Policies(Described):
    """A source whose broker tells these policies, or refuses to."""

    topics = ("a", "b", "c", "d")

    def __init__(self, answer: dict[str, str] | Exception) -> None:
        super().__init__()
        self._answer = answer

    def _cleanup_policies(self) -> dict[str, str]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


Policies.__abstractmethods__ = frozenset()


def test_topics_that_are_compacted_are_named_and_a_refusal_costs_nothing() -> None:
    policies = {"a": "delete", "b": "compact", "c": "delete,compact"}
    assert Policies(policies).compacted() == ["b", "c"]
    assert "topics b, c are compacted" in str(compaction_warning(Policies(policies)))
    assert str(compaction_warning(Policies({"a": "compact"}))).startswith("topic a is compacted")
    assert compaction_warning(Policies({"a": "delete"})) is None
    refused = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert compaction_warning(Policies(refused)) is None

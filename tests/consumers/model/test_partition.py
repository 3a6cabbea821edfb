"""Partitions as a person names them."""

from __future__ import annotations

from streammetrics_consumers.model.partition import (
    Name,
    Partition,
    name_of,
    names_of,
    names_without,
)

VIEWS, MORE, CLICKS = (
    Partition("c", topic, topic, number)
    for topic, number in (("views", 0), ("views", 10), ("clicks", 0))
)


def test_a_word_is_a_number_or_the_name_of_a_log() -> None:
    words: dict[str, Name] = {
        "0": 0, " 12 ": 12, "clicks/0": "clicks/0", "a/b.jsonl/00": "a/b.jsonl/0",
    }  # fmt: skip
    assert {word: name_of(word) for word in words} == words
    for word in ("", "clicks", "/0", "clicks/", "-1", "1.5", "²", "9" * 10):
        assert name_of(word) is None, word


def test_a_number_means_it_in_every_topic_and_a_name_one_log() -> None:
    assert [p.is_named([0]) for p in (VIEWS, MORE, CLICKS)] == [True, False, True]
    assert [p.is_named(["clicks/0", 10]) for p in (VIEWS, MORE, CLICKS)] == [False, True, True]


def test_names_that_mean_nothing_are_found() -> None:
    names: list[Name] = ["clicks/1", 0, 7, "views/10"]
    assert names_without(names, [VIEWS, MORE, CLICKS]) == [7, "clicks/1"]


def test_partitions_are_named_by_number_where_that_tells_them_apart() -> None:
    assert names_of([MORE, VIEWS]) == "0, 10"
    assert names_of([MORE, CLICKS, VIEWS]) == "clicks/0, views/0, views/10"

"""The headers of librdkafka's messages are those that kafka-python reads."""

from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("confluent_kafka", reason="needs the extra confluent")

from streammetrics_consumers.sources.kafka.confluent_client import headers_of

UNNAMED = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")


def test_a_header_without_a_value_is_there_and_a_name_that_is_not_utf8_hides_all() -> None:
    answers: list[Any] = [[("arm", None), ("arm", b"a")], None, SystemError("set"), UNNAMED]
    message = Mock(**{"headers.side_effect": answers})
    assert [headers_of(message) for _ in answers] == [answers[0], [], None, None]

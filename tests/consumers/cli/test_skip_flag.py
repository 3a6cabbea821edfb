"""`--skip` is read as the error that names a batch writes it."""

from __future__ import annotations

import pytest
from streammetrics_consumers.cli.arguments import UsageError
from streammetrics_consumers.cli.run import skips
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.process.preflight import require_options
from streammetrics_consumers.sources.source import Skips, UnreadableBatch, Unsuitable

from tests.consumers.small_config import config

KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ntopic = "clicks,a/b"\ngroup = "g"'


def test_the_words_of_the_error_are_those_of_the_flag() -> None:
    error = UnreadableBatch("a/b", 3, 17, 29, "one with another checksum")
    found = skips([str(error).rpartition("--skip ")[2], "clicks/0:0"])
    assert ("a/b", 3, 17) in found and ("clicks", 0, 0) in found
    assert ("clicks", 0, 1) not in found and ("clicks", 3, 17) not in found


@pytest.mark.parametrize("text", ["", "clicks", "0:5", "clicks/0", "clicks/x:5", "clicks/0:-1"])
def test_other_words_are_errors_of_usage(text: str) -> None:
    with pytest.raises(UsageError, match="--skip: expected TOPIC/PARTITION:OFFSET"):
        skips([text])


def test_a_topic_that_is_not_read_is_an_error() -> None:
    options = Options(skips=Skips([("click", 0, 1)]))
    with pytest.raises(Unsuitable, match="which reads clicks, a/b, got click"):
        require_options(config(source=KAFKA), options)
    with pytest.raises(Unsuitable, match="no topic, since it is a file"):
        require_options(config(), options)

"""TLS and SASL against a real broker's listeners, by both libraries; secrets are said nowhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.running import Running
from tests.consumers.small_config import event, toml
from tests.kafka_broker import Record, create_topic, missing, produce
from tests.kafka_secured import PASSWORD, USER, Secured
from tests.requirements import absent

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.xdist_group("kafka")]

NAMES = {  # what librdkafka calls a setting of kafka-python
    "security_protocol": "security.protocol",
    "ssl_cafile": "ssl.ca.location",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if (why := missing()) is not None:
        absent("kafka", why)
    if shutil.which("keytool") is None:
        absent("java", "`keytool` is not on the PATH")
    with Secured(tmp_path_factory.mktemp("secured") / "broker") as broker:
        assert isinstance(broker, Secured)
        yield broker


@pytest.fixture(scope="module")
def topic(secured: Secured) -> str:
    name = create_topic(secured.bootstrap)
    produce(secured.bootstrap, name, [Record(event())] * 5)
    return name


def counted(
    folder: Path, servers: str, topic: str, library: str, client: Mapping[str, str], *flags: str
) -> Running:
    """A run to the end, over; the settings of the client stand in the environment."""
    names = NAMES if library == "confluent-kafka" else {name: name for name in NAMES}
    lines = "\n".join(f"{names[name]}={value}" for name, value in client.items())
    source = (
        f'kind = "kafka"\nlibrary = "{library}"\nbootstrap_servers = "{servers}"\n'
        f'topic = "{topic}"\ngroup = "g-{library}"'
    )
    path = folder / "config.toml"
    path.write_text(toml(source=source), encoding="utf-8")
    flags = flags or ("--until-end", "--no-serve")
    with Running(path, *flags, environ={"STREAMMETRICS_CLIENT": lines}) as running:
        running.process.wait(100)
    return running


def plain(password: str = PASSWORD) -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


def over_tls(secured: Secured) -> dict[str, str]:
    return {**plain(), "security_protocol": "SASL_SSL", "ssl_cafile": str(secured.authority)}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_user_with_a_password_is_let_in_over_tls_and_nothing_says_the_password(
    secured: Secured, topic: str, tmp_path: Path, library: str, workers: str
) -> None:
    flags = ("--until-end", "--no-serve", "--workers", workers)
    done = counted(tmp_path, secured.tls, topic, library, over_tls(secured), *flags)
    assert done.process.returncode == 0, done.log
    with closing(Ledger.open(str(tmp_path / "streammetrics.db"))) as ledger:
        assert ledger.snapshot().counters.rows == 5
    assert "connected with" in done.log
    assert PASSWORD not in done.log


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_check_and_a_dry_run_are_let_in_too(
    secured: Secured, topic: str, tmp_path: Path, library: str
) -> None:
    done = counted(tmp_path, secured.sasl, topic, library, plain(), "--check")
    assert done.process.returncode == 0, done.log
    assert f"{topic}/0: offsets 0 to 5" in done.log
    assert PASSWORD not in done.log


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_wrong_password_ends_the_run_and_is_not_repeated(
    secured: Secured, topic: str, tmp_path: Path, library: str
) -> None:
    done = counted(tmp_path, secured.sasl, topic, library, plain("wrong-secret"))
    assert done.process.returncode == 77, done.log  # a supervisor need not try again
    assert "uthentication" in done.log
    assert "wrong-secret" not in done.log


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_broker_whose_certificate_is_not_known_is_not_spoken_to(
    secured: Secured, topic: str, tmp_path: Path, library: str
) -> None:
    client = {name: text for name, text in over_tls(secured).items() if name != "ssl_cafile"}
    done = counted(tmp_path, secured.tls, topic, library, client, "--check")
    assert done.process.returncode in (1, 75), done.log
    assert "certificate" in done.log.lower()
    assert not (tmp_path / "streammetrics.db").exists() or PASSWORD not in done.log

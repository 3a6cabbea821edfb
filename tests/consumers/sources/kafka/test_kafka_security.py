"""TLS and SASL against a real broker's listeners, by both libraries; secrets are said nowhere."""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.exit_codes import explained
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import NotLetIn

from tests.consumers.running import Running
from tests.consumers.small_config import event, toml
from tests.consumers.sources.kafka.kafka_reader import Library, Reader, read_to_end
from tests.kafka_broker import Broker, Record, create_topic, missing, produce
from tests.patience import LIMIT_S
from tests.ports import free_ports
from tests.requirements import absent

pytestmark = [pytest.mark.kafka, pytest.mark.faults, pytest.mark.xdist_group("kafka")]

USER, PASSWORD = "counter", "hunter2-and-more"
SECURED = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},\\
SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{tls}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl},\\
SASL_SSL://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\\
SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}
listener.name.sasl_ssl.plain.sasl.jaas.config={jaas}
ssl.keystore.type=PKCS12
ssl.keystore.location={keystore}
ssl.keystore.password=changeit
ssl.key.password=changeit
"""
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class Secured(Broker):
    """`sasl` and `tls` are its further addresses, and `authority` the file of the certificate by
    which its own is known."""

    def _config(self, controller: int) -> str:
        sasl, tls = free_ports(2)
        self.sasl, self.tls = f"127.0.0.1:{sasl}", f"127.0.0.1:{tls}"
        self.authority = self.folder / "authority.pem"
        keystore = self.folder / "keys.p12"
        store_options = ["-alias", "k", "-keystore", str(keystore), "-storepass", "changeit"]
        keypair = [
            "-genkeypair",
            "-keyalg",
            "RSA",
            "-storetype",
            "PKCS12",
            "-dname",
            "CN=127.0.0.1",
        ]
        for words in (
            [*keypair, "-ext", "san=ip:127.0.0.1"],
            ["-exportcert", "-rfc", "-file", str(self.authority)],
        ):
            subprocess.run(["keytool", *words, *store_options], check=True, capture_output=True)
        security = SECURED.format(
            port=self.port, controller=controller, sasl=sasl, tls=tls, keystore=keystore, jaas=JAAS
        )
        return (
            super()._config(controller) + security
        )  # of a name that is there twice the last one counts


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


def plain(library: Library, password: str = PASSWORD) -> dict[str, str]:
    """Settings of SASL; some names are alike in both libraries but for dots."""
    dots = library.name == "confluent-kafka"
    return {
        "security.protocol" if dots else "security_protocol": "SASL_PLAINTEXT",
        "sasl.mechanism" if dots else "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


def over_tls(library: Library, secured: Secured) -> dict[str, str]:
    protocol = next(iter(plain(library)))
    return plain(library) | {protocol: "SASL_SSL", "ssl_cafile": str(secured.authority)}


def test_a_run_is_let_in_over_tls_and_its_workers_say_the_password_nowhere(
    library: Library, secured: Secured, topic: str, tmp_path: Path
) -> None:
    client = library.settings(over_tls(library, secured))
    lines = "\n".join(f"{name}={value}" for name, value in client.items())
    source = (
        f'kind = "kafka"\nlibrary = "{library.name}"\nbootstrap_servers = "{secured.tls}"\n'
        f'topic = "{topic}"\ngroup = "g-{library.name}"'
    )
    path = tmp_path / "config.toml"
    path.write_text(toml(source=source), encoding="utf-8")
    # With one worker the process itself reads, with two those that it starts.
    workers = "2" if library.name == "kafka-python" else "1"
    flags = ("--until-end", "--no-serve", "--workers", workers)
    with Running(path, *flags, environ={"STREAMMETRICS_CLIENT": lines}) as running:
        running.process.wait(LIMIT_S)
    assert running.process.returncode == 0, running.log
    with closing(Ledger.open(str(tmp_path / "streammetrics.db"))) as ledger:
        assert ledger.snapshot().counters.rows == 5
    assert "connected with" in running.log
    assert PASSWORD not in running.log


def test_a_password_is_checked_and_neither_a_right_nor_a_wrong_one_is_repeated(
    library: Library, secured: Secured, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with library.opened(secured.sasl, topic, **plain(library)) as source:
        source.assign(Reader())
        assert sum(map(len, read_to_end(source))) == 5
    with pytest.raises(NotLetIn, match=r"(?i)authentication") as caught:
        library.source(library.config(secured.sasl, topic, **plain(library, "wrong-secret")))
    assert explained(caught.value) == (str(caught.value), 77)  # a supervisor need not try again
    assert "connected with" in caplog.text
    for secret in (PASSWORD, "wrong-secret"):
        assert secret not in caplog.text + str(caught.value)


# kafka-python leaves a connection whose handshake failed to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_broker_whose_certificate_is_not_known_is_not_spoken_to(
    library: Library, secured: Secured, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = over_tls(library, secured)
    del client["ssl_cafile"]
    with pytest.raises(SourceError) as caught:
        library.source(library.config(secured.tls, topic, **client))
    assert "certificate" in (caplog.text + str(caught.value)).lower()
    assert PASSWORD not in caplog.text + str(caught.value)
    del caught
    gc.collect()

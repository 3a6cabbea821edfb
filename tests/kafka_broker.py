"""A real Apache Kafka broker for the tests (one KRaft node), and what tests need to talk to it.

Measured on 2 cores: 2.4 s from nothing to the first answer, and 4 to 7 s for the jars (54 MB) the
first time. What we met on the way:

* Clients are told the advertised port, so it is chosen before the start and kept over a restart
  (`stop` or `kill`, then `start`). It lies below the ephemeral range: a client that retries an
  ephemeral port where nobody listens can be connected to itself by the kernel, and then holds
  the port that the broker wants back.
* `log.retention.ms` is a week by default, and records of tests are older by their timestamps:
  half a minute after its start a broker would delete them.
* `offsets.topic.replication.factor`, `transaction.state.log.*` and `share.coordinator.*` are 3 by
  default: with one node the first consumer group would wait for ever, without an error.
* A JVM that outlives a killed test run keeps 512 MB. `kill -9` runs no `atexit`, so the broker's
  process group is tied to a pipe that this process holds: when it closes, for whatever reason, a
  watcher in that group kills the group.
* Ready is when ApiVersions answers. A client of kafka-python that cannot bootstrap leaks a thread
  for each attempt, so readiness is asked over a plain socket.
* Deleting a topic answers before its files are gone: take a new name from `unique_topic`.
* After `kill -9` the controller (in the same process) refuses the broker until its old session
  ends: 9 s by default, 3 s here.
* `import kafka` (3.0.12) warns that importlib's read_text and open_text are deprecated; where
  warnings are errors it cannot be imported without the filter in pyproject.toml.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.patience import LIMIT_S
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent
POM = Path(__file__).resolve().parent / "kafka" / "pom.xml"
JARS = ROOT / ".cache" / "kafka"
COPY_JARS = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime")

CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=10000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=200
log.cleaner.enable=false
log.retention.ms=-1
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""

# The shell becomes the JVM (exec), so the pid and the exit code are the broker's own. The watcher
# stays in the same process group and ends it when the pipe on its stdin closes. (No `--` before
# the group: the kill of dash refuses it.)
TIED = 'exec 3<&0; (cat <&3 >/dev/null; kill -KILL -$$) & exec "$@" 3<&- </dev/null'


NO_GROUPS_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


class Unavailable(Exception):
    """The broker cannot run here; the text says what is missing and how to get it."""


def missing() -> str | None:
    """Why no broker can be started on this machine, or None if it can."""
    for tool, package in (("java", "a Java 17 runtime"), ("mvn", "Maven")):
        if tool == "mvn" and JARS.is_dir():
            continue
        if shutil.which(tool) is None:
            return (
                f"`{tool}` is not on the PATH; install {package}, "
                "or set KAFKA_BOOTSTRAP=host:port to use a running broker"
            )
    return None


def fetch_jars(target: Path = JARS, pom: Path = POM) -> Path:
    """The folder of the jars that `pom` names; Maven fills it once, whole or not at all."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        lib = Path(scratch) / "lib"
        command = [*COPY_JARS, f"-DoutputDirectory={lib}", "-f", str(pom)]
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if process.returncode != 0:
            raise Unavailable(f"Maven could not fetch the jars:\n{process.stdout}{process.stderr}")
        # Two test runs may get here together: the first rename wins, both folders are equal.
        with contextlib.suppress(OSError):
            lib.rename(target)
    return target


def answers_api_versions(bootstrap: str, timeout_s: float = 1.0) -> bool:
    """Whether a broker at host:port answers an ApiVersions request (version 0)."""
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    request = struct.pack(">hhih", 18, 0, 7, -1)  # key, version, correlation id, no client id
    try:
        with socket.create_connection((host, int(port)), timeout=timeout_s) as link:
            link.sendall(struct.pack(">i", len(request)) + request)
            head = link.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    if len(head) < 10:
        return False
    _, correlation, error = struct.unpack(">iih", head)
    return bool(correlation == 7 and error == 0)


class Broker:
    """One broker: its folder, its ports and its process. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "broker.log"
        self.port, controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._jars = fetch_jars()
        folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(self._config(controller))
        self._make_storage()

    def _config(self, controller: int) -> str:
        return CONFIG.format(port=self.port, controller=controller, logs=self.folder / "logs")

    def _make_storage(self) -> None:
        """The folder of an empty log: Kafka's tool makes it once, since that takes as long as the
        start of a broker; each broker has a copy with a cluster id of its own."""
        template, logs = self._jars / "storage", self.folder / "logs"
        # A cluster id is 16 bytes in base64url. A leading "-" would be read as an option.
        cluster = "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        if not template.is_dir():
            command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, heap="128m")
            command += ["-c", str(self._properties), "--ignore-formatted"]
            process = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if process.returncode != 0:
                raise Unavailable(
                    f"the broker's storage was not made:\n{process.stdout}{process.stderr}"
                )
            # Two test runs may get here together: the first rename wins.
            with (
                contextlib.suppress(OSError),
                tempfile.TemporaryDirectory(dir=self._jars) as scratch,
            ):
                shutil.copytree(logs, Path(scratch) / "logs").rename(template)
            return
        shutil.copytree(template, logs)
        meta = logs / "meta.properties"
        meta.write_text(re.sub("cluster.id=.*", f"cluster.id={cluster}", meta.read_text()))

    def _java(self, *arguments: str, heap: str) -> list[str]:
        # A young, short-lived JVM: one compiler tier and the serial collector start soonest.
        flags = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        flags += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return ["java", *flags, "-cp", f"{self._jars}/*", *arguments]

    def start(self) -> Broker:
        """Start the broker, on the same port and log each time, and wait until it answers."""
        archive = self._jars / "classes.jsa"
        if not archive.is_file():
            self._archive_classes(archive)
        return self._start(f"-XX:SharedArchiveFile={archive}" if archive.stat().st_size else "")

    def _archive_classes(self, archive: Path) -> None:
        """Have the JVM of a broker archive the classes that it has loaded, when it ends: with them
        a start takes half as much of the processor. Once, since that takes some seconds; the file
        is empty where this JVM makes none."""
        with tempfile.TemporaryDirectory(dir=self._jars) as scratch:
            path = Path(scratch) / archive.name
            self._start(f"-XX:ArchiveClassesAtExit={path}")
            assert self._process is not None
            self._process.terminate()
            self._process.wait(LIMIT_S)
            self.kill()
            path.touch()
            path.rename(archive)  # two test runs may get here together: both archives will do

    def _start(self, option: str) -> Broker:
        java, *command = self._java("kafka.Kafka", str(self._properties), heap="512m")
        command = [java, *filter(None, [option]), *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", TIED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        limit = time.monotonic() + LIMIT_S
        while not answers_api_versions(self.bootstrap):
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                tail = self.log.read_text(errors="replace")[-4000:]
                raise Unavailable(f"the broker did not start; the end of its log:\n{tail}")
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """End the broker in good order (SIGTERM); after 20 s, or if it is stopped, by force."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            self.kill()

    def kill(self) -> None:
        """`kill -9` the broker and its watcher; does nothing when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdin is not None
            process.stdin.close()

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """SIGSTOP: connections stay open, and nothing is answered until the block ends."""
        assert self._process is not None
        with contextlib.ExitStack() as stack:
            stack.callback(self._process.send_signal, signal.SIGCONT)
            self._process.send_signal(signal.SIGSTOP)
            yield

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()  # nobody reads its log again, so no good order is needed


@contextlib.contextmanager
def running_broker() -> Iterator[str]:
    """The bootstrap servers of KAFKA_BOOTSTRAP, or of a broker that lives as long as the block.

    Raises `Unavailable` when neither is to be had.
    """
    bootstrap = os.environ.get("KAFKA_BOOTSTRAP")
    if bootstrap:
        if not answers_api_versions(bootstrap, timeout_s=10):
            raise Unavailable(f"no broker answers at KAFKA_BOOTSTRAP={bootstrap}")
        yield bootstrap
        return
    why = missing()
    if why is not None:
        raise Unavailable(why)
    with (
        tempfile.TemporaryDirectory(prefix="streammetrics-kafka-") as folder,
        Broker(Path(folder)) as broker,
    ):
        yield broker.bootstrap


@dataclass(frozen=True)
class Record:
    """One record to produce."""

    value: bytes | None
    partition: int = 0
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes]] = ()


def unique_topic(stem: str = "events") -> str:
    """A topic name that nobody has used."""
    return f"{stem}-{uuid.uuid4().hex[:12]}"


@contextlib.contextmanager
def _admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        yield admin


def create_topic(
    bootstrap: str,
    partitions: int = 1,
    *,
    name: str | None = None,
    configs: Mapping[str, str] | None = None,
) -> str:
    """Make a topic, wait until its partitions have leaders, and return its name."""
    name = name or unique_topic()
    options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
    with _admin(bootstrap) as admin:
        admin.create_topics({name: options}, wait_for_metadata=True)
    return name


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic."""
    with _admin(bootstrap) as admin:
        admin.delete_topics([name])


def add_partitions(bootstrap: str, name: str, total: int) -> None:
    """Give a topic more partitions: `total` of them from now on."""
    with _admin(bootstrap) as admin:
        admin.create_partitions({name: total})


def produce(bootstrap: str, topic: str, records: Iterable[Record]) -> list[int]:
    """Write the records, each to its partition in the order given, and return their offsets."""
    offsets: dict[int, int] = {}

    def note_offset(error: KafkaError | None, message: Message, i: int) -> None:
        assert error is None, error
        offsets[i] = message.offset() or 0

    # The broker checks the order, also of what is sent again; the log level keeps a broker quiet
    # that goes away.
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    producer = Producer(settings)
    for i, record in enumerate(records):
        time_ms = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        producer.produce(
            topic,
            record.value,
            record.key,
            record.partition,
            on_delivery=partial(note_offset, i=i),
            headers=list(record.headers),
            **time_ms,
        )
        if i % 1000 == 999:
            producer.poll(0)
    assert producer.flush(LIMIT_S) == 0, f"{topic}: some records have no answer"
    return [offsets[i] for i in range(len(offsets))]


def shares(bootstrap: str, group: str) -> list[int]:
    """The number of partitions that each member of a consumer group has. A broker that was just
    started knows no group yet, and says so."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        members = admin.describe_consumer_groups([group])[group].result().members
    except KafkaException as error:
        if error.args[0].code() not in NO_GROUPS_YET:
            raise
        return []
    return [len(member.assignment.topic_partitions) for member in members]


def main() -> None:
    """Say where a broker runs, make a topic for each line with a number of partitions and say its
    name, and end with the input: for those who cannot import this module."""
    with running_broker() as bootstrap:
        lines = [bootstrap]
        while lines:
            sys.stdout.write(lines.pop() + "\n")
            sys.stdout.flush()
            lines += [create_topic(bootstrap, int(line)) for line in sys.stdin.readline().split()]


if __name__ == "__main__":
    main()

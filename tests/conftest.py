"""Fixtures and settings for every test."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests import seconds
from tests.cpu_seconds import CpuSeconds
from tests.expected import EveryCaseIsRead
from tests.requirements import ROOT, UnknownPart, absent, data_folder, required_parts

if TYPE_CHECKING:
    from tests.pgbouncer_server import PgBouncer
    from tests.postgres_server import Postgres

# Derandomized, and without a limit of time: a run that passed passes again, also on a busy machine.
# The number keeps the laws under a minute; raise it with `--hypothesis-profile=long` when a law or
# a part changes: see tests/depth.py.
hypothesis.settings.register_profile(
    "default",
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("long", max_examples=2_000, deadline=None)
hypothesis.settings.load_profile("default")

# Where Linux keeps files in memory. The temporary folders of tests are there when it has 4 GB to
# spare: what is written to disk for good costs stores a third of their time, and proves nothing.
MEMORY = Path("/dev/shm")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cpu`, of tests/cpu_seconds.py; `--at-most` and `--write-seconds`, of tests/seconds.py."""
    parser.addoption(
        "--cpu",
        nargs="?",
        type=int,
        const=40,
        metavar="LINES",
        help="print the files of tests that use most of the processor",
    )
    parser.addoption(
        "--at-most",
        type=float,
        metavar="S",
        help="of each test, only the first cases that fit into so many seconds of the processor",
    )
    parser.addoption(
        "--write-seconds",
        action="store_true",
        help="write what each test took into tests/seconds.tsv",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped, one line for each reason."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a misspelt STREAMMETRICS_REQUIRE before any test runs; note which cases they read."""
    # Where a shell started the tests in the background, SIGINT is ignored, and every process that
    # they start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        required_parts()
    except UnknownPart as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(EveryCaseIsRead(), "every_case_is_read")
    if config.getoption("at_most") is not None:
        config.pluginmanager.register(seconds.AtMost(config.getoption("at_most"), seconds.read()))
    if config.getoption("write_seconds") or config.getoption("cpu") is not None:
        written = seconds.PATH if config.getoption("write_seconds") else None
        config.pluginmanager.register(CpuSeconds(config.getoption("cpu") or 0, written))
    if _has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 << 30


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file go to one worker, which makes what they share only once."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadGroupScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            group = str(super()._split_scope(nodeid))
            return nodeid.partition("::")[0] if group == nodeid else group

    return Scheduling(config, log)


# First: the plugin that shares tests out reads the marks of groups in this hook too.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use a real part are marked; those of the broker share the worker that owns it.

    What takes long comes first, so that no worker is alone with it at the end: tests of several
    files that share a worker, then the files that take longest.
    """
    total_ms = seconds.file_totals_ms(item.nodeid for item in items)
    items.sort(key=lambda item: -total_ms[seconds.file(item.nodeid)])
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
        if "kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module whose marks keep all of its tests out of this run is not imported at all."""
    expression = config.option.markexpr
    if " or " in expression or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if expression == "faults":  # what the fixtures of a test ask for has no mark in the text
        return None if "pytest.mark.faults" in text else True
    marks = marks_of_module(text)
    return True if {f"not {mark}" for mark in marks} & set(expression.split(" and ")) else None


def marks_of_module(text: str) -> set[str]:
    """The marks that `pytestmark` gives to each test of a module."""
    value = text.partition("\npytestmark = ")[2].partition("\n\n")[0]
    return set(re.findall(r"pytest\.mark\.(\w+)", value))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Nobody looks for examples in the docstrings of tests: there are none."""
    return [collector for collector in (yield) if type(collector).__name__ != "DoctestModule"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tests that were collected are no garbage, and what a test makes is small: to look through
    all of it after every 700 new objects, as Python does, takes several seconds of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the site, built without a warning. Tests that use it share the group "site"."""
    python = ROOT / ".cache" / "site" / "bin" / "python"
    if not python.exists():
        absent("site", ".cache/site is not there")
    folder = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [python, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert build.returncode == 0, build.stdout + build.stderr
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the shared data: real events and values that others computed."""
    folder = data_folder()
    if not (folder / "MANIFEST.sha256").is_file():
        absent("data", f"{folder} has no MANIFEST.sha256")
    return folder


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The bootstrap servers of a real Apache Kafka broker, shared by the whole run."""
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from streammetrics_consumers.sources.kafka.kafka_client import Client

    from tests.kafka_broker import Unavailable, running_broker

    for kind in (KafkaAdminClient, KafkaConsumer, KafkaProducer):
        kind.DEFAULT_CONFIG["kafka_client"] = Client  # what tests open is closed whole too
    broker = running_broker()
    try:
        bootstrap = broker.__enter__()
    except Unavailable as error:
        absent("kafka", str(error))
    try:
        yield bootstrap
    finally:
        broker.__exit__(None, None, None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL server, shared by the tests of this process."""
    try:
        from tests.postgres_server import Unavailable, running_postgres
    except ImportError as error:
        absent("postgres", str(error))

    server = running_postgres()
    try:
        instance = server.__enter__()
    except Unavailable as error:
        absent("postgres", str(error))
    try:
        yield instance
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def pgbouncer(postgres: Postgres) -> Iterator[PgBouncer]:
    """A real PgBouncer in transaction mode, before that server."""
    from tests.pgbouncer_server import running_pgbouncer
    from tests.postgres_server import Unavailable

    pooler = running_pgbouncer(postgres)
    try:
        instance = pooler.__enter__()
    except Unavailable as error:
        absent("pgbouncer", str(error))
    try:
        yield instance
    finally:
        pooler.__exit__(None, None, None)

"""Fixtures of the tests of the shell."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Dialect, Engine, create_engine
from sqlalchemy.util import LRUCache

from tests.consumers import verdict_cases
from tests.consumers.stores import Databases, make_store
from tests.requirements import absent

if TYPE_CHECKING:
    from tests.kafka_broker import Broker


class Compiled(LRUCache[Any, Any]):
    """Compiled statements, for every engine of a kind of database."""

    @staticmethod
    def _of_kind(key: tuple[Dialect, *tuple[object, ...]]) -> tuple[object, ...]:
        return type(key[0]), *key[1:]

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self._of_kind(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self._of_kind(key), value)


@pytest.fixture(scope="session", autouse=True)
def clients_read_no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The servers of tests are on this machine and have no TLS, and a client of HTTP reads all
    authorities of the system: a hundred times what it costs otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-authorities")))
        yield


@pytest.fixture(scope="session", autouse=True)
def statements_are_compiled_once() -> Iterator[None]:
    """Tests open thousands of stores, whose engines would each compile the same statements: a third
    of what a simulation costs."""
    compiled = Compiled(5_000)

    def make_engine(*args: Any, **settings: Any) -> Engine:
        engine = create_engine(*args, **settings)
        engine._compiled_cache = compiled
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streammetrics_consumers.ledger.store.create_engine", make_engine)
        yield


@pytest.fixture(
    scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def databases(request: pytest.FixtureRequest) -> Iterator[Databases | None]:
    """What stands in for files of SQLite, if anything."""
    if request.param == "sqlite":
        yield None
        return
    databases = Databases(request.getfixturevalue("postgres"))
    yield databases
    databases.end()


@pytest.fixture
def each_store(databases: Databases | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test runs over SQLite, and again over PostgreSQL, whatever file it names."""
    if databases is None:
        yield
        return
    before = tuple(databases.urls)
    monkeypatch.setattr("streammetrics_consumers.ledger.store.connect", databases.connect)
    yield
    databases.drop(*before)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that tests may stop, kill and damage, if they start it again."""
    from tests.kafka_broker import Broker, missing

    why = missing()
    if why is not None:
        absent("kafka", why)
    with Broker(tmp_path_factory.mktemp("broker") / "node") as running:
        yield running


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has counted `stores.EVENTS`. Only for tests that read it."""
    return make_store(tmp_path_factory.mktemp("store"))


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """`run` sends logs to stderr; the next test starts without that."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def case_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The store of a case of `verdict_cases`, by its name. Only for tests that read it."""

    @cache
    def make_case_store(name: str) -> Path:
        return verdict_cases.store(tmp_path_factory.mktemp(name), verdict_cases.CASES[name])

    return make_case_store

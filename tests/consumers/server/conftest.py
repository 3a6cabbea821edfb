"""An application over a store, asked in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server import assets
from streammetrics_consumers.server.application import application

from tests.consumers.server.asking import EXPERIMENT, Client
from tests.consumers.stores import make_store


@pytest.fixture(scope="session", autouse=True)
def charts_are_made_when_they_are_asked_for() -> Iterator[None]:
    """And not by a process in the background as soon as a test asks for a page: it takes two
    seconds of a processor from the tests beside it."""
    with pytest.MonkeyPatch.context() as patch:
        flag = Event()
        flag.set()
        patch.setattr(assets, "_CHARTS_ASKED", flag)
        yield


@pytest.fixture
def make_client() -> Iterator[Callable[[Path], Client]]:
    """A client of any store."""
    with ExitStack() as stack:
        yield lambda store: Client(
            application(stack.enter_context(closing(Ledger.open(str(store)))), store=str(store))
        )


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[Client]:
    """A client of the store that all tests read."""
    with closing(Ledger.open(str(store))) as ledger:
        yield Client(application(ledger, store=str(store)))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a store with an experiment."""
    store = make_store(tmp_path_factory.mktemp("compared"), rest=EXPERIMENT)
    with closing(Ledger.open(str(store))) as ledger:
        yield Client(application(ledger, store=str(store)))

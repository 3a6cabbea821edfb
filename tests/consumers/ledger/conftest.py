"""Fixtures of the tests of the ledger: one that is open, its generation, a head in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.small_ledger import (
    DESCRIPTIONS,
    LOG,
    PRINTS,
    opened,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(opened(tmp_path)) as ledger:
        yield ledger


@pytest.fixture
def generation(ledger: Ledger) -> Generation:
    return ledger.begin(PRINTS, DESCRIPTIONS).generation


@pytest.fixture
def head(ledger: Ledger, generation: Generation) -> Head:
    return ledger.resolve(generation, LOG, 10)


@pytest.fixture
def ledgers(tmp_path: Path) -> Iterator[list[Ledger]]:
    """Four of one store, with connections of their own. Nothing has to be tried again."""
    all_ledgers = [opened(tmp_path) for _ in range(4)]
    yield all_ledgers
    for ledger in all_ledgers:
        ledger.close()

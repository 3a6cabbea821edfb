"""Fixtures of the tests of the shell."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consumers.stores import make_store


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

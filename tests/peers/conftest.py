"""The peers of torch, for the tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.torch_process import PYTHON, Peers
from tests.requirements import absent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To start a peer takes longer than a quick test: none is imported for these (4 s a worker)."""
    at_most_s = config.getoption("at_most")
    return True if at_most_s is not None and at_most_s < 1 else None


@pytest.fixture(scope="session")
def torch_peers() -> Iterator[Peers]:
    """The process that has torch, torchmetrics and torcheval."""
    if not (PYTHON.parents[1] / ".made").is_file():
        absent("torch", f"no {PYTHON}")
    peers = Peers()
    try:
        yield peers
    finally:
        peers.end()

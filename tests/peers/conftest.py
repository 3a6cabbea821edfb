"""The peers of torch, for the tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.torch_process import PYTHON, Peers
from tests.requirements import absent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Every test here is slow: where these are left out, no peer is imported (4 s a worker)."""
    return True if "not slow" in config.option.markexpr else None


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

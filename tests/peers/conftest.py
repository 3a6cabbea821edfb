"""The peers of torch, for the tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peers.torch_process import PYTHON, Peers
from tests.requirements import absent


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

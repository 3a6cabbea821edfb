"""In simulations small states are packed, and shared between windows and totals, as large ones."""

from __future__ import annotations

import pytest
from streammetrics_consumers.ledger import packing, write


@pytest.fixture(autouse=True)
def as_large_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "SHARED_BYTES", 0)
    monkeypatch.setattr(packing, "_LEAST", 0)

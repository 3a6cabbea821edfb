"""Whether a program that is broken on purpose is found out by a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.settings import SettingsChanged

from tests.consumers.interleaved import Simulation, interleave
from tests.consumers.lives import FusedLedger
from tests.consumers.upsets import Differs

FEW = 50  # seeds, in which most mistakes are found


def opened(folder: Path, ledger_type: type[FusedLedger] = FusedLedger) -> FusedLedger:
    ledger = ledger_type.open(
        str(folder / "simulated.db"), create=True, pauses_s=(0.0,), sleep=lambda seconds: None
    )
    assert isinstance(ledger, FusedLedger)
    return ledger


def is_found_out(
    simulation: Simulation, *errors: type[Exception], seeds: Sequence[int] = range(FEW)
) -> bool:
    return first_found(simulation, seeds, *errors) is not None


def first_found(
    simulation: Simulation, seeds: Sequence[int], *errors: type[Exception]
) -> int | None:
    """The first of these seeds that fails, None where none does."""
    # Some are found by the store's own conditions.
    found: tuple[type[Exception], ...] = (Differs, LedgerError, *errors)
    for seed in seeds:
        try:
            interleave(simulation, seed)
        except SettingsChanged:
            raise  # a mistake of the simulation: it asks for no change that may be refused
        except found:
            return seed
    return None

"""A company whose users are exposed: every look has what polars finds in the log that was closed by
then, and its effects are those of scipy over the users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.simulate.exposures_simulation import ExposuresSimulation

from tests.consumers.company_run import Look, company_config, effects_of, looks_at


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "company.db"), create=True)) as ledger:
        yield ledger


def looks(folder: Path, ledger: Ledger, simulation: ExposuresSimulation) -> list[Look]:
    return list(looks_at(company_config(folder), ledger, simulation))


def test_every_look_at_a_company_has_what_polars_finds_in_what_was_closed_by_then(
    tmp_path: Path, ledger: Ledger
) -> None:
    company_looks = looks(tmp_path, ledger, ExposuresSimulation(users=500, seed=3))
    assert [look.differences for look in company_looks] == [[], [], [], []]
    assert sum(look.days for look in company_looks) > 28


def test_the_effects_of_a_company_are_those_of_scipy_over_its_users(
    tmp_path: Path, ledger: Ledger
) -> None:
    company_looks = looks(tmp_path, ledger, ExposuresSimulation(users=1_500, seed=1))
    assert [look.differences for look in company_looks] == [[], [], [], []]
    effects = list(effects_of(company_looks[-1].states, company_looks[-1].users))
    assert len(effects) == 8
    assert [effect for effect in effects if effect.differs()] == []

"""What the consumer says of experiments with a story is what was reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.consumers.scenarios.sentences import reviewed
from tests.consumers.scenarios.stories import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_sentences_of_an_experiment_are_the_reviewed_ones(name: str, tmp_path: Path) -> None:
    assert SCENARIOS[name].text(tmp_path) == reviewed()[name]


def test_the_page_has_every_scenario_and_no_other() -> None:
    assert list(reviewed()) == list(SCENARIOS)

"""The command that prints how large and how tangled the house is, beside what it should be."""

from __future__ import annotations

import pytest

from tests import house


@pytest.mark.slow
def test_every_figure_is_counted_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    house.main([])
    lines = capsys.readouterr().out.splitlines()[1:]
    figures = {line[:46].rstrip(): line[46:].split()[0] for line in lines}
    assert len(figures) == len(lines) == 14
    assert all(now.isdecimal() for now in figures.values())
    assert int(figures["functions that one Worker.step crosses"]) > 50
    assert int(figures["ways that one row can take through update"]) > 1


def test_a_shape_that_is_gone_leaves_the_list() -> None:
    assert not house.missing_shapes()

"""The page is read as data, and a table that is missing fails."""

from __future__ import annotations

import pytest

from tests.interface.page import table


def test_a_table_that_is_not_there_is_found_out() -> None:
    with pytest.raises(pytest.fail.Exception):
        table("no such table")

"""An absent part is a skip with a reason, or a failure where it is required; never silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.requirements import PARTS, UnknownPart, absent, data_folder, required_parts


def test_an_absent_part_skips_and_says_how_to_enable_it() -> None:
    with pytest.raises(pytest.skip.Exception) as caught:
        absent("kafka", "`java` is not on the PATH", required=frozenset({"data"}))
    assert "`java` is not on the PATH" in str(caught.value)
    assert "To enable: install Java" in str(caught.value)


@pytest.mark.parametrize("part", PARTS)
def test_an_absent_part_that_is_required_fails(part: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="To enable"):
        absent(part, "not here", required=frozenset({part}))


def test_nothing_is_required_unless_it_is_named() -> None:
    assert required_parts({}) == frozenset()
    assert required_parts({"STREAMMETRICS_REQUIRE": ""}) == frozenset()
    assert required_parts({"STREAMMETRICS_REQUIRE": "kafka, data"}) == {"kafka", "data"}


def test_a_misspelt_requirement_is_an_error() -> None:
    with pytest.raises(UnknownPart, match="names kaffka"):
        required_parts({"STREAMMETRICS_REQUIRE": "data,kaffka"})


def test_the_data_lies_beside_the_repository_unless_the_environment_says_where() -> None:
    assert data_folder({}).parts[-2:] == ("shared", "data")
    assert data_folder({"STREAMMETRICS_DATA": "elsewhere"}) == Path("elsewhere")

"""The sentence about refused events names the key of the config that is likely to be wrong."""

from __future__ import annotations

import pytest
from streammetrics_consumers.model.refusals import RefusedKind, likely_key

from tests.consumers.small_config import config

EXPOSURES = """
[exposures]
field = "kind"
equals = "exposure"
unit = "who"
experiment = "flag.key"
arm = "flag.arm"
time = "at"
[experiments.ranker]
control = "a"
decision = ["ctr"]
"""


@pytest.mark.parametrize(
    ("reason", "field", "key"),
    [
        ("missing_field", "flag.arm", "[exposures] arm: name the field that events have"),
        ("wrong_type", "flag.key", "[exposures] experiment: name the right field"),
        ("too_long", "who", "[exposures] unit: name the right field"),
        ("missing_field", "at", "[exposures] time: name the field that events have"),
        ("bad_time", "at", "[exposures] time_unit: set the right one"),
        ("wrong_type", "at", "[exposures] time_unit: set the right one"),
        ("missing_field", "ts", "[event] time: name the field that events have"),
        ("missing_field", "variant", "[event] variant: name the field that events have"),
    ],
)
def test_a_field_of_an_exposure_has_the_key_that_names_it(
    reason: str, field: str, key: str
) -> None:
    description = config(rest=EXPOSURES).descriptions["ctr"]
    assert likely_key(RefusedKind(reason, field, 300), description) == key

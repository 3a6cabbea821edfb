"""What a look gives where nothing is known, or everything."""

from __future__ import annotations

import math

from streammetrics.experiments.confidence_sequence import Anytime, e_value


def test_a_look_that_knows_nothing_concludes_nothing() -> None:
    found = Anytime()
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert (found.e_value, found.p_value, found.gated) == (1.0, 1.0, False)


def test_e_and_p_are_of_the_same_evidence() -> None:
    assert e_value(math.inf) == e_value(710.0) == math.inf
    assert e_value(-math.inf) == 0.0
    assert Anytime(log_e=-2.0).p_value == 1.0
    assert math.isclose(Anytime(log_e=3.0).p_value * Anytime(log_e=3.0).e_value, 1.0)

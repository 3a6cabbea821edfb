"""The law of intervals: a file of its own, as `laws.py` is long."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random

from streammetrics.core.accumulator import Accumulator
from streammetrics.results.figures import views_of
from streammetrics.testing.case import Case, Row


def intervals(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Every field of every interval has the same bits however rows are split; thin data, and none,
    is no error."""
    whole = case.fed(rows)
    if not hasattr(whole.compute(), "interval"):
        return
    shuffled = list(rows)
    random.shuffle(shuffled)
    cut = random.randint(0, len(rows))
    parts = case.fed(shuffled[cut:]) + case.fed(shuffled[:cut])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, resharded = _intervals(whole), _intervals(parts)
        nothing = _intervals(case.empty.empty())
    for view, interval in found.items():
        assert resharded[view] == interval, f"{view}: {resharded[view]} sharded, else {interval}"
    assert all("[-inf, inf]" in printed for _, printed in nothing.values()), "intervals of nothing"


def _intervals(state: Accumulator) -> dict[str, tuple[str, str]]:
    """Of each view: repr, in which equal bits are equal, and as it prints."""
    views = views_of(state.compute())
    found = {view: state.confidence_interval(view=view) for view in views}
    return {view: (repr(interval), str(interval)) for view, interval in found.items()}

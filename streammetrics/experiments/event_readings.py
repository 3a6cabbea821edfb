"""Readings of two rates, or of wins, by their events alone: exact, and without a burn-in."""

from __future__ import annotations

from typing import Final

from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.one_look import Anytime
from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_successes, relative_rates

PRIOR: Final = 100.0  # the weight of the prior, in events
# Only lists that two variants drafted have users and successes. If each draft is random, a coin
# decides for whom a click counts, whoever clicks; another share of wins may depend on the user.
_SEVERAL: Final = "users may have several lists, for which only equal shares can be tested"


def reading_of_events(found: Evidence, alpha: float, prior: float = PRIOR) -> Anytime:
    """The interval of the treatment's rate divided by the control's, and the evidence."""
    if found.successes is None:
        hint = "compare rates of independent rows in an Experiment"
        return Anytime(reason=f"no events with planned shares: {hint}")
    log_e = log_e_of_successes(found.successes, prior)
    if found.groups is not None:
        return Anytime(log_e=log_e, reason=_SEVERAL)
    return Anytime(*relative_rates(found.successes, alpha, prior), log_e)


def evidence_of_events(found: Evidence, prior: float) -> float:
    """The evidence of the events alone, which needs no burn-in, of a rate of independent rows
    with planned shares; 0 for others."""
    if found.successes is None or found.kind != "rate" or found.groups is not None:
        return 0.0
    return log_e_of_successes(found.successes, prior)

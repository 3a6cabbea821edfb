"""Joins: impressions, and the outcomes that follow them within a label window."""

from streammetrics.join.join_rows import END_OF_TIME, JoinRows
from streammetrics.join.joined import Joined
from streammetrics.join.label_delays import LabelDelays
from streammetrics.results.join_results import (
    JoinedResult,
    LabelDelaysResult,
    OutcomeDelays,
    PendingRows,
)

__all__ = [
    "END_OF_TIME",
    "JoinRows",
    "Joined",
    "JoinedResult",
    "LabelDelays",
    "LabelDelaysResult",
    "OutcomeDelays",
    "PendingRows",
]

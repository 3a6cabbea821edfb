"""Joins: impressions, and the outcomes that follow them within a label window."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.join.join_rows": "END_OF_TIME JoinRows",
            "streammetrics.join.joined": "Joined",
            "streammetrics.join.label_delays": "LabelDelays",
            "streammetrics.results.join_results": (
                "JoinedResult LabelDelaysResult OutcomeDelays PendingRows"
            ),
        },
    )

"""Products, maps and groups of metrics: what is true of a metric is true of these."""

from streammetrics.combine.join_rows import END_OF_TIME, JoinRows
from streammetrics.combine.joined import Joined
from streammetrics.combine.label_delays import LabelDelays
from streammetrics.combine.panel import Panel, PanelResult
from streammetrics.combine.per_key import KeyedResult, PerKey
from streammetrics.combine.units import Units, UnitsResult, in_several
from streammetrics.combine.user_groups import UserGroups
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.combine.windows import Windows, WindowsResult
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
    "KeyedResult",
    "LabelDelays",
    "LabelDelaysResult",
    "OutcomeDelays",
    "Panel",
    "PanelResult",
    "PendingRows",
    "PerKey",
    "Units",
    "UnitsResult",
    "UserGroups",
    "UserGroupsResult",
    "Windows",
    "WindowsResult",
    "in_several",
]

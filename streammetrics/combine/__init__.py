"""Products, maps and groups of metrics: what is true of a metric is true of these."""

from streammetrics.combine.panel import Panel, PanelResult
from streammetrics.combine.per_key import KeyedResult, PerKey
from streammetrics.combine.units import Units, UnitsResult, in_several
from streammetrics.combine.user_groups import UserGroups
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.combine.windows import Windows, WindowsResult

__all__ = [
    "KeyedResult",
    "Panel",
    "PanelResult",
    "PerKey",
    "Units",
    "UnitsResult",
    "UserGroups",
    "UserGroupsResult",
    "Windows",
    "WindowsResult",
    "in_several",
]

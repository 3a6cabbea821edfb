"""Products, maps and groups of metrics, which obey the laws of a metric themselves."""

from streammetrics.combine.paired import Paired
from streammetrics.combine.paired_result import PairedResult
from streammetrics.combine.panel import Panel, PanelResult
from streammetrics.combine.per_key import KeyedResult, PerKey
from streammetrics.combine.units import Units, UnitsResult, in_several
from streammetrics.combine.user_groups import UserGroups
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.combine.windows import Windows, WindowsResult

__all__ = [
    "KeyedResult",
    "Paired",
    "PairedResult",
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

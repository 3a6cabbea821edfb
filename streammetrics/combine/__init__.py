"""Products, maps and groups of metrics, which obey the laws of a metric themselves."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.combine.drift_of_states import drift
    from streammetrics.combine.paired import Paired
    from streammetrics.combine.paired_result import PairedResult
    from streammetrics.combine.panel import Panel, PanelResult
    from streammetrics.combine.per_key import KeyedResult, PerKey
    from streammetrics.combine.stored_per_key import StoredPerKey
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
    "StoredPerKey",
    "Units",
    "UnitsResult",
    "UserGroups",
    "UserGroupsResult",
    "Windows",
    "WindowsResult",
    "drift",
    "in_several",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.combine.drift_of_states": "drift",
            "streammetrics.combine.paired": "Paired",
            "streammetrics.combine.paired_result": "PairedResult",
            "streammetrics.combine.panel": "Panel PanelResult",
            "streammetrics.combine.per_key": "KeyedResult PerKey",
            "streammetrics.combine.stored_per_key": "StoredPerKey",
            "streammetrics.combine.units": "Units UnitsResult in_several",
            "streammetrics.combine.user_groups": "UserGroups",
            "streammetrics.combine.user_groups_result": "UserGroupsResult",
            "streammetrics.combine.windows": "Windows WindowsResult",
        },
    )

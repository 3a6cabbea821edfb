"""Metrics of policies: off-policy values, interleaving and uplift."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.policies.drafts import balanced_clicks, team_draft
    from streammetrics.policies.exact_uplift import ExactUplift
    from streammetrics.policies.grouped_interleaving import GroupedInterleaving
    from streammetrics.policies.interleaving import Interleaving
    from streammetrics.policies.off_policy import OffPolicy
    from streammetrics.policies.uplift import Uplift

__all__ = [
    "ExactUplift",
    "GroupedInterleaving",
    "Interleaving",
    "OffPolicy",
    "Uplift",
    "balanced_clicks",
    "team_draft",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.policies.drafts": "balanced_clicks team_draft",
            "streammetrics.policies.exact_uplift": "ExactUplift",
            "streammetrics.policies.grouped_interleaving": "GroupedInterleaving",
            "streammetrics.policies.interleaving": "Interleaving",
            "streammetrics.policies.off_policy": "OffPolicy",
            "streammetrics.policies.uplift": "Uplift",
        },
    )

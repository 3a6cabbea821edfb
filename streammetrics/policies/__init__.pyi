from streammetrics.policies.drafts import balanced_clicks as balanced_clicks
from streammetrics.policies.drafts import team_draft as team_draft
from streammetrics.policies.exact_uplift import ExactUplift as ExactUplift
from streammetrics.policies.grouped_interleaving import GroupedInterleaving as GroupedInterleaving
from streammetrics.policies.interleaving import Interleaving as Interleaving
from streammetrics.policies.off_policy import OffPolicy as OffPolicy
from streammetrics.policies.uplift import Uplift as Uplift

"""Comparison of two variants: intervals and e-values valid at every look, and sanity checks."""

from streammetrics.combine.units import keeps_units
from streammetrics.experiments.assignment import Contamination, SampleRatio, SampleRatioFound
from streammetrics.experiments.compare import Comparison, compare
from streammetrics.experiments.confidence_sequence import (
    Anytime,
    ConfidenceSequence,
    Evidence,
    Guarded,
    Guardrail,
)
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.covariate import (
    Covariate,
    PlannedCovariate,
    UserTotals,
    user_slope,
)
from streammetrics.experiments.experiment import Experiment
from streammetrics.experiments.monitor import Look, Monitor, Watched
from streammetrics.experiments.plan import Horizon, Plan, Safeguard
from streammetrics.experiments.report import Finding, Outcome, Report, adjust_fdr, adjust_fwer
from streammetrics.experiments.verdict import ACTIONS, VERDICTS, Action, Recommendation, Verdict

__all__ = [
    "ACTIONS",
    "VERDICTS",
    "Action",
    "Anytime",
    "Comparison",
    "ConfidenceSequence",
    "Contamination",
    "Contrast",
    "Covariate",
    "Evidence",
    "Experiment",
    "Finding",
    "Guarded",
    "Guardrail",
    "Horizon",
    "Look",
    "Monitor",
    "Outcome",
    "Plan",
    "PlannedCovariate",
    "Recommendation",
    "Report",
    "Safeguard",
    "SampleRatio",
    "SampleRatioFound",
    "UserTotals",
    "Verdict",
    "Watched",
    "adjust_fdr",
    "adjust_fwer",
    "compare",
    "keeps_units",
    "user_slope",
]
